import json
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from plotly.offline import get_plotlyjs

from graphmrf.comparison import Effects, Explanation, FittedMethod
from graphmrf.errors import InvalidInputError
from graphmrf.estimators.methods import METHODS, Method
from graphmrf.report import render, write_report
from graphmrf.report.charts import coverage_chart
from graphmrf.report.page import accuracy
from graphmrf.text import DASH, MINUS
from report.conftest import lp

Maker = Callable[..., Any]
EVIL = '<script>alert("1")</script><img src=x onerror=alert(2)>'

LEVELS = {"alpha": np.array([0.0, 0.5]), "mean_r2": np.zeros(2), "fold_r2": np.zeros((2, 2))}


def explained(target: Any, **changes: Any) -> Any:
    """A target with another explanation."""
    return replace(target, explanation=replace(target.explanation, **changes))


class Reader(HTMLParser):
    """Elements and text of a page, script and style apart."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(content)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] not in ("script", "style"):
            self.text.append(data)

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)

    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


def data_of(content: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', content, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found.group(1))
    return data


def test_the_page_says_what_was_predicted_how_well_and_by_what(make_report: Maker) -> None:
    words = Reader(render(make_report())).words()
    assert "Predicted income for 20 of 40 nodes." in words
    assert "R² is about 0.62" in words
    assert "Neighbours carry the prediction." in words
    assert "Held out fold by fold, 88 % of the known values lie inside their 90 % interval." in words
    assert "dropped constant column 'zone'" in words
    assert "graphmrf predict nodes.csv edges.csv --target income" in words
    assert "graphmrf 0.1.0" in words


def test_strings_of_users_are_never_markup(make_report: Maker) -> None:
    report = make_report(names=(EVIL, "b"), title=EVIL, notes=(EVIL,), command=EVIL, version=EVIL, node_ids=[EVIL] * 40)
    odd = replace(
        report.targets[0],
        carries=EVIL,
        method=EVIL,
        methods=(FittedMethod(Method(EVIL, None, EVIL, EVIL), 0.5, search=LEVELS),),
        explanation=Explanation({EVIL: 1.0}, Effects((EVIL,), np.ones(1), np.ones(1), transform=EVIL)),
    )
    content = render(replace(report, targets=(odd, report.targets[1])))
    clean, dirty = Reader(render(make_report(names=("a", "b")))), Reader(content)
    assert dirty.count("script") == clean.count("script") == 3
    assert dirty.count("img") == clean.count("img") == 0
    assert "<script>alert" not in content
    assert dirty.words().count('<script>alert("1")</script>') > 20
    assert data_of(content)["nodes"]["id"] == [EVIL] * 40


def test_names_are_literal_in_plotly_texts_too(make_report: Maker) -> None:
    effects = Effects(("<b>x</b>",), np.ones(1), np.ones(1))
    target = explained(make_report().targets[0], effects=effects)
    figure = data_of(render(make_report(targets=(target,))))["targets"][0]["figures"]["effects"]
    assert figure["layout"]["yaxis"]["ticktext"] == ["&lt;b&gt;x&lt;/b&gt;"]


def test_figures_are_what_plotly_knows(make_report: Maker) -> None:
    for figure in data_of(render(make_report()))["targets"][0]["figures"].values():
        known = json.loads(go.Figure(figure).to_json())
        assert len(known["data"]) == len(figure["data"])
        assert {trace["type"] for trace in figure["data"]} <= {"scatter", "bar"}


def test_the_page_loads_nothing(make_report: Maker) -> None:
    tags = Reader(render(make_report())).tags
    links = [value for _, attributes in tags for name, value in attributes.items() if name in ("src", "href")]
    assert {link for link in links if not str(link).startswith("#word-")} == {"#main", "data:,"}
    policy = next(a["content"] for tag, a in tags if tag == "meta" and a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert "default-src 'none'" in policy
    assert "http" not in policy


def test_no_script_runs_but_ours_and_none_is_made_of_text(make_report: Maker) -> None:
    content = render(make_report())
    policy = re.search(r"script-src ([^;]*);", content)
    assert policy is not None
    allowed = policy[1].split()
    (ours,) = re.findall(r"<script>(.*?)</script>", content, re.DOTALL)
    (packed,) = re.findall(r'<script type="application/octet-stream" id="plotly">(.*?)</script>', content)
    scripts = [zlib.decompress(b64decode(packed)), ours.encode()]
    assert allowed == [f"'sha256-{b64encode(sha256(script).digest()).decode()}'" for script in scripts]
    assert scripts[0].decode() == get_plotlyjs()


def test_every_figure_has_a_place_and_a_description(make_report: Maker) -> None:
    content = render(make_report(names=("a", "b")))
    placed = [a for _, a in Reader(content).tags if "data-figure" in a]
    figures = [name for target in data_of(content)["targets"] for name in target["figures"]]
    assert sorted(str(a["data-figure"]) for a in placed) == sorted(figures)
    assert len(figures) == 16
    assert all(a["role"] == "img" and a["aria-label"] for a in placed)


def test_sections_without_rows_are_left_out(make_report: Maker) -> None:
    full = make_report().targets[0]
    bare = replace(
        full,
        std=None,
        lower=None,
        upper=None,
        methods=(),
        explanation=Explanation(),
        held_out=None,
        coverage=None,
        carries="",
    )
    content = render(make_report(targets=(bare,), notes=(), command="", version=""))
    words = Reader(content).words()
    for absent in (
        "Most uncertain",
        "Which method",
        "Accuracy against",
        "features contribute",
        "What carries",
        "Standard deviation of",
        "Surprising values",
        "Predicted against",
        "intervals contain",
        "more known values",
        "depends on a feature",
        "Notes",
    ):
        assert absent not in words
    assert set(data_of(content)["targets"][0]["figures"]) == {"distribution"}
    assert set(data_of(content)["targets"][0]["maps"]) == {"value"}


def test_shares_have_bars_and_effects_their_units(make_report: Maker) -> None:
    content = render(make_report())
    assert re.findall(r'<i class="(bar[ a-z]*)" style="width:([0-9.]+)%">', content) == [
        ("bar", "25.0"),
        ("bar", "45.0"),
        ("bar quiet", "30.0"),
    ]
    words = Reader(content).words()
    assert "The graph field what neighbours have in common beyond their features 45 %" in words
    standardised, units = words.split("In units of the features")
    assert f"rooms {MINUS}1.20 age 0.600" in standardised
    assert f"rooms {MINUS}1.20 age 0.300" in units


def test_every_coefficient_has_three_digits_whatever_its_units(make_report: Maker) -> None:
    rows = Effects("abcd", np.array([0.00138, -78.21, 0.0, 5.5e-8]), scales=np.ones(4), transform="log")
    words = Reader(render(make_report(targets=(explained(make_report().targets[0], effects=rows),)))).words()
    assert f"Feature coefficient b {MINUS}78.2 a 0.00138 d 5.50e{MINUS}08 c {DASH}" in words
    assert "of the outcome after its transform (log)" in words


@pytest.mark.parametrize(
    ("method", "where", "constant"),
    [
        ("lr", "at the node and the others stay", "Constant term: 2.000"),
        ("lgc-rp", "throughout a neighbourhood and the others stay", "Where all features are average: 2.000"),
    ],
)
def test_coefficients_say_whose_features_they_are_of(
    method: str, where: str, constant: str, make_report: Maker
) -> None:
    target = replace(make_report().targets[0], method=method, methods=(FittedMethod(METHODS[method], 0.5),))
    words = Reader(render(make_report(targets=(target,)))).words()
    assert where in words
    assert constant in words


def test_labels_with_most_weight_are_named_at_predicted_nodes(make_report: Maker) -> None:
    report = make_report(8)
    strongest = pd.DataFrame({"node": [1, 1], "labelled": [0, 2], "weight": [0.5, -0.25]})
    shown = replace(report, targets=[explained(report.targets[0], strongest=strongest)])
    assert data_of(render(shown))["targets"][0]["strongest"] == {"1": [[0, "0.50"], [2, f"{MINUS}0.25"]]}
    assert "strongest" not in data_of(render(report))["targets"][0]


def test_features_without_effect_are_left_out(make_report: Maker) -> None:
    none = Effects("ab", np.zeros(2), scales=np.ones(2))
    words = Reader(render(make_report(targets=(explained(make_report().targets[0], effects=none),)))).words()
    assert "features contribute" not in words


def test_unmeasured_accuracy_is_a_dash_not_a_crash(make_report: Maker) -> None:
    nothing = np.full(3, np.nan)
    target = replace(
        make_report().targets[0],
        methods=(lp(nothing, np.full((3, 2), np.nan)),),
    )
    words = Reader(render(make_report(targets=(target,)))).words()
    assert "R² is about" not in words
    assert DASH in words


@pytest.mark.parametrize("worst", [-11.0, -3e10])
def test_a_collapse_at_one_level_leaves_the_others_readable(worst: float, make_report: Maker) -> None:
    scores = np.array([0.7, worst, 0.5])
    target = replace(make_report().targets[0], methods=(lp(scores, np.c_[scores, scores], alpha=0.0),))
    figures = data_of(render(make_report(targets=(target,))))["targets"][0]["figures"]
    low, high = figures["alpha_curves"]["layout"]["yaxis"]["range"]
    assert -1.1 < low <= -1
    assert 0.7 < high < 1.2
    (line,) = (trace for trace in figures["alpha_curves"]["data"] if "customdata" in trace)
    assert line["y"] == [0.7, -1.0, 0.5]
    assert [r2 for _, r2 in line["customdata"]] == [0.7, worst, 0.5]  # shown when pointed at


def test_the_headline_admits_when_there_is_no_accuracy(make_report: Maker) -> None:
    target = replace(make_report().targets[0], methods=(FittedMethod(METHODS["lp"], -0.2),))
    assert (
        f"No method predicts held-out values of income better than their mean does: R² {MINUS}0.20."
        in Reader(render(make_report(targets=(target,)))).words()
    )


def test_the_table_counts_observed_neighbours(make_report: Maker) -> None:
    report = make_report(40)
    rows = re.findall(
        r'<tr data-node="(\d+)" data-place="\d+">.*?<td[^>]*>(\d+)</td><td[^>]*>(\d+)</td></tr>', render(report)
    )
    W = report.graph.adjacency.toarray() > 0
    rows = [row for row in rows if not report.targets[0].observed[int(row[0])]]
    assert len(rows) == 20
    for node, neighbours, observed in rows:
        assert int(neighbours) == W[int(node)].sum()
        assert int(observed) == (W[int(node)] & report.targets[0].observed).sum()


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1.0, 1e5, 1e15])
def test_any_scale_of_values_is_readable(make_report: Maker, scale: float) -> None:
    target = make_report().targets[0]
    target = replace(target, y=target.y * scale, value=target.value * scale, lower=None, upper=None)
    target = replace(target, held_out=None)
    pattern = r'<tr data-node="(\d+)" data-place="\d+">.*?</th><td[^>]*>([^<]*)</td>'
    rows = re.findall(pattern, render(make_report(targets=(target,))))
    assert max(len(text) for _, text in rows) <= 10
    shown = [float(text.replace(",", "").replace(MINUS, "-")) for _, text in rows]
    np.testing.assert_allclose(shown, target.value[[int(node) for node, _ in rows]], atol=0.01 * scale)


def test_probabilities_of_exceedance_are_drawn_in_classes(make_report: Maker) -> None:
    probability = np.linspace(0.0, 1.0, 40)
    target = replace(make_report().targets[0], above=1.5, exceeding=probability)
    content = render(make_report(targets=(target,)))
    drawn = data_of(content)["targets"][0]
    assert drawn["maps"]["above"]["classes"] == ["below 5 %", "5 to 20 %", "20 to 80 %", "80 to 95 %", "above 95 %"]
    codes = np.frombuffer(b64decode(drawn["above_class"]["data"]), np.int32)
    edges = np.array([0.05, 0.2, 0.8, 0.95])
    np.testing.assert_array_equal(codes, (probability[:, None] >= edges).sum(axis=1))
    words = Reader(content).words()
    assert "2 nodes of 40 exceed 1.5 with a probability above 95 %, and 2 with one below 5 %." in words


@pytest.mark.slow
def test_the_same_report_gives_the_same_page(make_report: Maker) -> None:
    assert render(make_report(300)) == render(make_report(300))


@pytest.mark.parametrize(("everything", "sentence"), [("observed", "for 0 of 40"), ("hidden", "for 40 of 40")])
def test_all_observed_and_all_hidden_are_shown(make_report: Maker, everything: str, sentence: str) -> None:
    target = make_report().targets[0]
    y = np.ones(40) if everything == "observed" else np.full(40, np.nan)
    bare = replace(target, y=y, std=np.isnan(y).astype(float), held_out=None)
    assert sentence in Reader(render(make_report(targets=(bare,)))).words()


def test_writing_replaces_the_file_and_leaves_nothing_else(make_report: Maker, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    assert write_report(path, make_report()) == path
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_report_leaves_the_old_file(
    make_report: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")

    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full_disk)
    with pytest.raises(InvalidInputError, match="No space left on device"):
        write_report(path, make_report())
    assert [file.read_text() for file in tmp_path.iterdir()] == ["old"]


def test_a_directory_is_not_a_report(make_report: Maker, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="is a directory"):
        write_report(tmp_path, make_report())
    with pytest.raises(InvalidInputError, match="does not exist"):
        write_report(tmp_path / "absent" / "report.html", make_report())


def test_ids_that_are_not_text_are_shown_as_text(make_report: Maker) -> None:
    assert data_of(render(make_report(node_ids=np.arange(40))))["nodes"]["id"][7] == "7"


def test_half_a_surrogate_in_an_id_is_written(make_report: Maker, tmp_path: Path) -> None:
    path = write_report(tmp_path / "report.html", make_report(node_ids=["\ud800"] * 40))
    assert "&#55296;" in path.read_text(encoding="utf-8")


def test_embedded_json_cannot_end_its_script(make_report: Maker) -> None:
    content = render(make_report(node_ids=["</script><!--&"] * 40))
    text = content.partition('id="data">')[2].partition("</script>")[0]
    assert not set("<>&") & set(text)
    assert json.loads(text)["nodes"]["id"] == ["</script><!--&"] * 40


@pytest.mark.parametrize(
    ("r2", "error", "words"),
    [
        (0.6, 0.02, "R² is about 0.60: the prediction"),
        (0.45, 0.125, "R² is about 0.45, but uncertain (0.20 to 0.70):"),
        (
            0.1,
            0.2,
            "No method predicts held-out values of income better than their mean does: R² 0.10 ± 0.20.",
        ),
    ],
)
def test_the_headline_has_a_range_where_accuracy_is_uncertain(
    r2: float, error: float, words: str, make_report: Maker
) -> None:
    target = replace(make_report().targets[0], method="lp", methods=(FittedMethod(METHODS["lp"], r2, error),))
    assert accuracy(target).startswith(words)


def test_the_band_of_chance_about_coverage_stays_between_none_and_all() -> None:
    rows = pd.DataFrame({"level": [0.05, 0.5, 0.95], "inside": [0.1, 0.5, 1.0]})
    low, high = (np.array(trace["y"]) for trace in coverage_chart(rows, 8, 0.95)["data"][:2])
    spread = 100 * 1.645 * np.sqrt(0.25 / 8)
    np.testing.assert_allclose([low, high], [[0, 50 - spread, 82.3], [17.7, 50 + spread, 100]], atol=0.05)

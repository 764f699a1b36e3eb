"""Every number that appears twice is the same: in the terminal, on the page, in the summary, the table, in Python."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import graphmrf as gm
from cases import random_case
from graphmrf import datasets
from graphmrf.cli import app
from graphmrf.comparison import Settings, predict_outcome
from graphmrf.datasets.written_tables import read_page
from graphmrf.report import unpack_content
from graphmrf.text import number, r2_in_words


def numbers(town: Any) -> tuple[str, ...]:
    """The town as it is, by all methods."""
    town.write()
    return ()


def few(town: Any) -> tuple[str, ...]:
    """Seven known values."""
    known = town.nodes["income"].notna().cumsum()
    town.write(town.nodes.assign(income=town.nodes["income"].where(known <= 7)))
    return ("--method", "field")


def regions(town: Any) -> tuple[str, ...]:
    """One half known, the other to be predicted."""
    side = np.arange(64) % 8
    town.write(town.nodes.assign(income=(np.sin(np.arange(64) / 9) + 0.1 * town.nodes["age"]).where(side < 4)))
    return ("--method", "lgc-rp")


def without_features(town: Any) -> tuple[str, ...]:
    """No feature is left."""
    town.write(town.nodes.drop(columns="age"))
    return ("--method", "auto")


def summed(town: Any) -> tuple[str, ...]:
    """With groups and nodes to label."""
    town.write(town.nodes.assign(ward=[f"w{i // 16}" for i in range(64)]))
    return ("--method", "field", "--group", "ward", "--suggest", "2", "--interval", "0.8")


CASES = (numbers, few, regions, without_features, summed)


@pytest.fixture(params=CASES, ids=lambda case: str(case.__name__))
def case(request: pytest.FixtureRequest, town: Any) -> tuple[Any, tuple[str, ...]]:
    return town, ("--target", "income", *request.param(town))


N = 60
HIDDEN = np.arange(N) % 3 == 0
WAVE = np.sin(np.arange(N) / 6.0)
PEOPLE = np.random.default_rng(0).uniform(50.0, 500.0, N).round()
ABOUT_COUNTS = {"likelihood": "poisson", "known": {"exposure": PEOPLE}}
ABOUT_SHARES = {"likelihood": "binomial", "known": {"trials": PEOPLE}}


def on_a_ring(folder: Path, **columns: Any) -> list[str]:
    """Write a ring of nodes with a useless feature and an outcome that follows a wave; return the paths."""
    x = np.random.default_rng(1).standard_normal(N)
    nodes = pd.DataFrame({"id": [f"n{k}" for k in range(N)], "x": x, **columns})
    nodes.to_csv(folder / "nodes.csv", index=False)
    ends = pd.DataFrame({"source": nodes["id"], "target": np.roll(nodes["id"], -1)})
    ends.to_csv(folder / "edges.csv", index=False)
    return [str(folder / "nodes.csv"), str(folder / "edges.csv")]


def example(folder: Path) -> tuple[list[str], str, dict[str, Any]]:
    """The bundled example of 1,000 districts."""
    del folder
    files = datasets.example()
    options = ["--target", "rent", "--method", "lgc-rp"]
    return [str(files.nodes), str(files.edges), *options], "rent", {"methods": "lgc-rp"}


def counts(folder: Path) -> tuple[list[str], str, dict[str, Any]]:
    """Counts of cases among people."""
    cases = np.random.default_rng(2).poisson(0.05 * PEOPLE * np.exp(WAVE)).astype(float)
    paths = on_a_ring(folder, people=PEOPLE, cases=np.where(HIDDEN, np.nan, cases))
    return [*paths, "-t", "cases", "--likelihood", "poisson", "--exposure", "people"], "cases", ABOUT_COUNTS


def shares(folder: Path) -> tuple[list[str], str, dict[str, Any]]:
    """Successes among trials."""
    won = np.random.default_rng(3).binomial(PEOPLE.astype(int), 1 / (1 + np.exp(-WAVE))).astype(float)
    paths = on_a_ring(folder, people=PEOPLE, won=np.where(HIDDEN, np.nan, won))
    return [*paths, "-t", "won", "--likelihood", "binomial", "--trials", "people"], "won", ABOUT_SHARES


def classes(folder: Path) -> tuple[list[str], str, dict[str, Any]]:
    """Three classes, by all methods."""
    colour = pd.Series(np.select([WAVE > 0.4, WAVE < -0.4], ["red", "blue"], "green")).where(~HIDDEN)
    return [*on_a_ring(folder, colour=colour), "-t", "colour"], "colour", {}


def generated(folder: Path) -> tuple[list[str], str, dict[str, Any]]:
    """A random graph of the tests, with two features."""
    case = random_case(4, n=80, labelled=50)
    ids, paths = np.array([f"n{k}" for k in range(80)]), [str(folder / "nodes.csv"), str(folder / "edges.csv")]
    pd.DataFrame({"id": ids, "rain": case.X[:, 0], "height": case.X[:, 1], "crop": case.y}).to_csv(
        paths[0], index=False
    )
    u, v = np.triu(case.W).nonzero()
    pd.DataFrame({"source": ids[u], "target": ids[v]}).to_csv(paths[1], index=False)
    return [*paths, "-t", "crop", "--method", "field"], "crop", {"methods": "field"}


@pytest.mark.slow
@pytest.mark.parametrize("data", [example, counts, shares, classes, generated])
def test_every_surface_has_the_same_numbers_for_data_of_every_kind(data: Any, tmp_path: Path) -> None:
    arguments, name, asked = data(tmp_path)
    out = tmp_path / "out.parquet"
    shown = CliRunner().invoke(app, ["predict", *arguments, "-o", str(out)])
    assert shown.exit_code == 0, shown.output
    words = " ".join(shown.stdout.split())
    (target,) = json.loads(CliRunner().invoke(app, ["predict", *arguments, "--json"]).stdout)["targets"]
    (section,), frame = unpack_content(read_page(out))["sections"], pd.read_parquet(out)
    score = next(each for each in ("r2", "explained_deviance", "accuracy") if each in target)
    (fact,) = (
        value for title, value in section["facts"].items() if title.endswith(("in cross-validation", ", held out"))
    )
    expected = f"{100 * target[score]:.0f} % ±" if score == "accuracy" else f"{number(target[score], 3)} ±"
    assert fact.startswith(expected)
    on_page = {row["cells"][1][0] for row in section["methods"]["body"]}
    assert on_page == {number(row[score], 3) for row in target["comparison"]}
    known = frame["observed"]
    assert (target["observed"], target["predicted"]) == (known.sum(), (~known).sum())
    assert f"{target['predicted']} of {len(frame)} nodes" in words
    if score == "accuracy":
        assert target[score] == pytest.approx(np.mean(frame["left_out"][known] == frame["prediction"][known]))
        assert f"right for {100 * target[score]:.0f} % of the labels held out" in words
    else:
        assert target["mean_std"] == pytest.approx(frame["std"][~known].mean())
        assert target["carries"] in words

    table = datasets.read(*arguments[:2])
    y = pd.read_csv(arguments[0])[name].to_numpy() if score == "accuracy" else table.outcome(name)
    ignored = ("people",) if "known" in asked else ()
    X = datasets.features(table, targets=(name,), ignore=ignored).unfilled
    found = gm.compare(table.graph, X, y, **asked)
    assert found.chosen.method.key == target["method"]
    assert found.table[score].to_dict() == pytest.approx({row["method"]: row[score] for row in target["comparison"]})


def check_table(target: dict[str, Any], frame: pd.DataFrame) -> None:
    """Compare the summary of a target with the table of results."""
    known, hidden = frame["observed"], ~frame["observed"]
    assert target["observed"] == known.sum()
    assert target["predicted"] == hidden.sum()
    if target["mean_std"] is not None:
        assert target["mean_std"] == pytest.approx(frame["std"][hidden].mean())
    residual = frame["prediction"][known] - frame["left_out"][known]
    if not target["held_out_regions"]:
        total = np.sum((frame["prediction"][known] - frame["prediction"][known].mean()) ** 2)
        assert target["r2"] == pytest.approx(1 - np.sum(residual**2) / total)


@pytest.mark.slow
def test_the_terminal_the_page_the_summary_the_table_and_python_agree(case: tuple[Any, tuple[str, ...]]) -> None:
    town, options = case
    out = town.folder / "out.parquet"
    shown = town.run(*options, "-o", str(out))
    assert shown.exit_code == 0, shown.output
    words = " ".join(shown.stdout.split())
    summary = json.loads(town.run(*options, "--json").stdout)
    (target,) = summary["targets"]
    (section,) = unpack_content(read_page(out))["sections"]
    frame = pd.read_parquet(out)

    assert f"cross-validated {r2_in_words(target['r2'], target['r2_error'])}" in words
    assert section["facts"]["R² in cross-validation"] == f"{number(target['r2'], 3)} ± {number(target['r2_error'], 3)}"
    for row in target["comparison"] if len(target["comparison"]) > 1 else []:
        assert f"{number(row['r2'])} {number(row['r2_error'])}" in words
    on_page = {row["cells"][1][0] for row in section["methods"]["body"]}
    assert on_page == {number(row["r2"], 3) for row in target["comparison"]}
    assert f"({target['method']}" in words

    check_table(target, frame)
    assert f"{target['predicted']} of 64 nodes predicted from {target['observed']} known values" in words
    for name, share in (target["shares"] or {}).items():
        assert f"{100 * share:.0f} %" in words, name
    curve = [row for title, _, row in section["further"] if title == "How many labels"]
    if curve:
        assert curve[0]["body"][0]["cells"][1][0] == number(target["r2"], 3)
    if target["carries"]:
        assert target["carries"] in words
        assert target["carries"] in section["sentences"]


@pytest.mark.slow
def test_groups_and_suggestions_are_the_same_everywhere(town: Any) -> None:
    options = ("--target", "income", *summed(town))
    out = town.folder / "out.parquet"
    words = " ".join(town.run(*options, "-o", str(out)).stdout.split())
    summary = json.loads(town.run(*options, "--json").stdout)
    further = {title: rows for title, _, rows in unpack_content(read_page(out))["sections"][0]["further"]}
    groups = pd.read_parquet(town.folder / "out-by-ward.parquet")
    pd.testing.assert_frame_equal(pd.DataFrame(summary["groups"]["income"]), groups)
    for row in further["By ward"]["body"]:
        assert " ".join(text for text, _ in row["cells"]) in words
    suggested = summary["suggest"]["income"]["nodes"]
    assert [row["cells"][0][0] for row in further["Label these next"]["body"]] == [row["place"] for row in suggested]
    assert [row["cells"][2][0] for row in further["Label these next"]["body"]] == [
        number(row["expected_r2"], 3) for row in suggested
    ]
    r2 = summary["targets"][0]["r2"]
    assert f"expected R² {number(r2, 3)} now, {number(suggested[-1]['expected_r2'], 3)} then" in words


@pytest.mark.slow
def test_python_gives_what_the_command_line_gives(town: Any) -> None:
    out = town.folder / "out.csv"
    result = town.run("--target", "income", "-o", str(out), "--json")
    (target,) = json.loads(result.stdout)["targets"]
    table = datasets.read(town.folder / "nodes.csv", town.folder / "edges.csv")
    X, y = datasets.features(table, targets=("income",)).unfilled, table.outcome("income")
    found = gm.compare(table.graph, X, y)
    assert found.chosen.method.key == target["method"]
    assert found.reason == target["reason"]
    assert found.table["r2"].to_dict() == pytest.approx({row["method"]: row["r2"] for row in target["comparison"]})
    prediction, frame = predict_outcome(table.graph, X, y, Settings()), pd.read_csv(out)
    for name in ("std", "lower", "upper"):
        np.testing.assert_allclose(frame[name], getattr(prediction, name))
    np.testing.assert_allclose(frame["prediction"], found.model.predict())


def test_classes_agree(town: Any) -> None:
    income = town.nodes["income"]
    words = pd.Series(np.where(income > income.median(), "high", "low")).where(income.notna())
    town.write(town.nodes.drop(columns="income").assign(wealth=words))
    out, options = town.folder / "out.parquet", ("--target", "wealth", "--method", "lgc-rp")
    shown = " ".join(town.run(*options, "-o", str(out)).stdout.split())
    (target,) = json.loads(town.run(*options, "--json").stdout)["targets"]
    section, frame = unpack_content(read_page(out))["sections"][0], pd.read_parquet(out)
    known = frame["observed"]
    assert target["accuracy"] == pytest.approx(np.mean(frame["left_out"][known] == frame["prediction"][known]))
    assert f"right for {100 * target['accuracy']:.0f} % of the labels held out" in shown
    assert section["facts"]["Right, held out"].startswith(f"{100 * target['accuracy']:.0f} %")
    (row,) = section["methods"]["body"]
    assert row["cells"][2][0] == number(target["log_loss"], 3)

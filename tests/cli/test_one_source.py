"""Every number that appears twice is the same: in the terminal, on the page, in the summary, the table, in Python."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

import graphmrf as gm
from graphmrf import datasets
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

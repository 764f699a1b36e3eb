"""Targets of words are classified; the other methods by name."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from graphmrf.cli import app
from graphmrf.cli.targets import is_category

pytestmark = pytest.mark.slow


@pytest.fixture
def worded(town: Any) -> Any:
    """The town, with its income as a word: low or high, or missing."""
    income = town.nodes["income"]
    words = np.where(income > income.median(), "high", "low").astype(object)
    words[income.isna()] = None
    town.write(town.nodes.drop(columns="income").assign(wealth=words))
    return town


def test_classes_are_neither_added_up_nor_foreseen(worded: Any) -> None:
    result = worded.run("--target", "wealth", "--group", "age", "-o", str(worded.folder / "out.csv"))
    assert result.exit_code == 2
    assert "--group is for numbers, got classes in 'wealth'" in result.stderr
    files = [str(worded.folder / name) for name in ("nodes.csv", "edges.csv")]
    result = CliRunner().invoke(app, ["foresee", *files, "--target", "wealth"])
    assert result.exit_code == 2
    assert "foresee is for numbers, and this column has classes" in result.stderr


def test_labels_of_classes_are_suggested(worded: Any) -> None:
    result = worded.run("--target", "wealth", "--suggest", "2", "--json")
    suggested = json.loads(result.stdout)["suggest"]["wealth"]["nodes"]
    assert len({row["place"] for row in suggested}) == 2
    assert all(row["prediction"] in ("low", "high") and 0 <= row["probability"] <= 1 for row in suggested)
    page = worded.folder / "page.html"
    result = worded.run("--target", "wealth", "--suggest", "2", "--report", str(page))
    assert "labels that would help most, in this order" in result.stdout
    assert all(row["place"] in result.stdout for row in suggested)
    assert "Label these next" in page.read_text()
    result = worded.run("--target", "wealth", "--suggest", "2", "--method", "lp")
    assert "suggested by method field, which was not fitted" in result.stderr
    result = worded.run("--target", "wealth", "--suggest", "1000")
    assert (result.exit_code, "--suggest must be at most" in result.stderr) == (2, True)


def test_words_are_classified_with_a_line_saying_so(worded: Any) -> None:
    out = worded.folder / "out.csv"
    result = worded.run("--target", "wealth", "-o", str(out))
    assert result.exit_code == 0, result.output
    assert "note: wealth: nodes are classified (2 classes: high, low)" in result.stderr
    assert "nodes classified from" in result.stdout
    assert "accuracy" in result.stdout
    frame = pd.read_csv(out, dtype={"place": str})
    assert list(frame.columns) == [
        "place",
        "prediction",
        "probability",
        "observed",
        "left_out",
        "probability_high",
        "probability_low",
    ]
    assert (frame["left_out"].notna() == frame["observed"]).all()
    assert (frame["left_out"] == frame["prediction"])[frame["observed"]].mean() > 0.5
    given = pd.read_csv(worded.folder / "nodes.csv")["wealth"]
    assert (frame["prediction"][given.notna()] == given.dropna()).all()
    assert (frame["observed"] == given.notna()).all()
    assert (frame["probability"][frame["observed"]] == 1).all()
    hidden = frame["probability"][~frame["observed"]]
    assert ((hidden > 0) & (hidden < 1)).all()
    both = frame[["probability_high", "probability_low"]]
    np.testing.assert_allclose(both.sum(axis=1), 1.0)
    np.testing.assert_allclose(
        both.max(axis=1)[frame["probability"] > 0.5], frame["probability"][frame["probability"] > 0.5]
    )


def test_numbers_are_classes_where_that_is_asked(town: Any) -> None:
    rich = (town.nodes["income"] > 30).where(town.nodes["income"].notna()).astype(float)
    town.write(town.nodes.drop(columns="income").assign(rich=rich))
    plain = town.run("--target", "rich", "--method", "lp")
    assert "rich is 0/1 and treated as numeric; use --classify for classes" in plain.stderr
    out = town.folder / "out.csv"
    result = town.run("--target", "rich", "--method", "lp", "--classify", "-o", str(out))
    assert result.exit_code == 0, result.output
    assert "rich: nodes are classified (2 classes: 0, 1)" in result.stderr
    frame = pd.read_csv(out)
    assert {"probability_0", "probability_1"} <= {*frame.columns}
    assert (frame["prediction"][rich.notna()] == rich.dropna()).all()


def test_ordered_classes_share_one_field(town: Any) -> None:
    income = town.nodes["income"]
    words = pd.cut(income, [-np.inf, *income.quantile([1 / 3, 2 / 3]), np.inf], labels=["low", "middle", "high"])
    town.write(town.nodes.drop(columns="income").assign(wealth=words.astype(object), level=words.cat.codes))
    options, tables = ("--target", "wealth", "--ignore", "level"), []
    for order in ("low,middle,high", "high, middle, low"):
        out = town.folder / "out.csv"
        result = town.run(*options, "--ordered", order, "-o", str(out))
        assert result.exit_code == 0, result.output
        assert "a latent value for each" not in result.stderr
        tables.append(pd.read_csv(out).filter(like="probability"))
    np.testing.assert_allclose(tables[0], tables[1], atol=0.05)
    middle = tables[0]["probability_middle"]
    assert (middle < tables[0][["probability_low", "probability_high"]].max(axis=1)).mean() > 0.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--ordered", "low"], "column wealth: --ordered low lacks the class 'high'; name each of 'high', 'low' once"),
        (["--ordered", "low,high,rich"], "--ordered low,high,rich has 'rich', a class of no known node"),
        (["--ordered", "low,high,low"], "--ordered low,high,low has a class twice"),
        (["--ordered", "low,high", "--method", "lp"], "--ordered is for --method field, got lp"),
    ],
)
def test_bad_orders(options: list[str], message: str, worded: Any, refused: Callable[..., str]) -> None:
    assert worded
    assert message in refused("--target", "wealth", *options)


def test_the_summary_of_classes(worded: Any) -> None:
    result = worded.run("--target", "wealth", "--method", "lgc-rp", "--json", "--quiet")
    (target,) = json.loads(result.stdout)["targets"]
    assert target["classes"] == ["high", "low"]
    assert target["method"] == "lgc-rp"
    assert 0.5 < target["accuracy"] <= 1
    assert target["observed"] + target["predicted"] == 64


def test_the_report_has_one_section_for_all_classes(worded: Any) -> None:
    page = worded.folder / "page.html"
    assert worded.run("--target", "wealth", "--method", "lp", "--report", str(page)).exit_code == 0
    text = page.read_text()
    assert text.count('<section class="target"') == 1
    for part in ("Predicted wealth for", "of the classes to be right; predicting", "Which classes are confused"):
        assert part in text
    assert "Least certain classes" in text


def test_the_report_and_the_table_compare_methods(worded: Any) -> None:
    page = worded.folder / "page.html"
    result = worded.run("--target", "wealth", "--report", str(page))
    assert result.stdout.count(" * ") == 1
    assert "Which method works here" in page.read_text()
    assert "(field; other methods" not in result.stderr


def test_several_targets_may_be_of_both_kinds(town: Any) -> None:
    income = town.nodes["income"]
    words = np.where(income > income.median(), "high", "low").astype(object)
    words[income.isna()] = None
    town.write(town.nodes.assign(wealth=words))
    out = town.folder / "out.csv"
    options = ("--target", "wealth", "--target", "income", "--method", "lr", "-o", str(out))
    result = town.run(*options)
    assert result.exit_code == 0
    assert "note: wealth, income: targets, so none is a feature of another" in result.stderr
    columns = list(pd.read_csv(out).columns)
    assert columns[1:4] == ["wealth_prediction", "wealth_probability", "wealth_observed"]
    assert columns[7:9] == ["income_prediction", "income_std"]


def test_one_label_of_every_class_is_enough(town: Any) -> None:
    words = pd.Series([None] * 64, dtype=object)
    words[[0, 63]] = "high", "low"
    town.write(town.nodes.drop(columns="income").assign(wealth=words))
    page = town.folder / "page.html"
    result = town.run("--target", "wealth", "--json", "--report", str(page))
    assert result.exit_code == 0, result.output
    shown = page.read_text(encoding="utf-8")
    assert "Predictions are not checked, as every label is the only one of its class." in shown
    assert "nan %" not in shown
    assert "The most frequent error" not in shown
    summary = json.loads(result.stdout)
    assert summary["targets"][0]["method"] == "field"
    assert not any("left out" in note for note in summary["notes"])
    result = town.run("--target", "wealth", "--json", "--method", "lp")
    assert result.exit_code == 0, result.output
    (target,) = json.loads(result.stdout)["targets"]
    assert target["method"] == "lp"
    assert target["alpha"] == 0.99


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["high"] * 40 + [None] * 24, "column wealth: y must have at least two classes, got only 'high'"),
        (["high", "low"] * 32, "column wealth: nothing to predict, every node has a class"),
    ],
)
def test_bad_classes(words: list[str | None], message: str, town: Any, refused: Callable[..., str]) -> None:
    town.write(town.nodes.drop(columns="income").assign(wealth=words))
    assert message in refused("--target", "wealth")


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pd.Series(["a", "b", None]), True),
        (pd.Series(["a", "b"], dtype="category"), True),
        (pd.Series([True, None], dtype="boolean"), True),
        (pd.Series(["1", "2", "x"]), False),
        (pd.Series([1.0, np.nan]), False),
        (pd.Series([None, None], dtype=object), False),
    ],
)
def test_what_counts_as_classes(column: Any, expected: bool) -> None:
    assert is_category(column) is expected


@pytest.mark.parametrize("method", ["sgc", "sgc-rp", "gcn", "gcn-rp"])
def test_methods_by_name(method: str, town: Any) -> None:
    if method.startswith("gcn"):
        pytest.importorskip("torch")
    result = town.run("--target", "income", "--method", method, "--json", "--quiet")
    assert result.exit_code == 0, result.output
    (target,) = json.loads(result.stdout)["targets"]
    assert target["method"] == method
    assert -1 < target["r2"] < 1
    assert len(target["comparison"]) == 1
    assert target["mean_std"] > 0
    assert (target["alpha"] is None) is (not method.endswith("rp"))


def test_the_report_of_a_method_without_a_level(town: Any) -> None:
    page = town.folder / "page.html"
    assert town.run("--method", "sgc", "--report", str(page)).exit_code == 0
    assert "Simple graph convolution" in page.read_text()

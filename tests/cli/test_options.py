"""Options of files: bounds, columns kept, edges dropped, standard input, output by suffix, rare classes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from graphmrf.cli import app

LR = ("--target", "income", "--method", "lr")


def result(town: Any, *options: str, name: str = "out.csv") -> pd.DataFrame:
    path = town.folder / name
    run = town.run("-o", str(path), *options)
    assert run.exit_code == 0, run.output
    return pd.read_excel(path) if name.endswith(".xlsx") else pd.read_csv(path, dtype={"place": "str"})


def test_predictions_and_intervals_keep_to_the_bounds(town: Any) -> None:
    known = town.nodes["income"].dropna()
    low, high = float(known.min()), float(known.max())
    free = result(town, *LR)
    kept = result(town, *LR, "--at-least", str(low), "--at-most", str(high))
    for name in ("prediction", "lower", "upper"):
        np.testing.assert_allclose(kept[name], free[name].clip(low, high))
    assert (free["lower"] < low).any()
    np.testing.assert_allclose(kept["std"], free["std"])


def test_whole_values_have_whole_intervals(town: Any, refused: Callable[..., str]) -> None:
    assert "--integer is not met by a known value" in refused(*LR, "--integer")
    town.write(town.nodes.assign(income=town.nodes["income"].round()))
    plain, whole = result(town, *LR), result(town, *LR, "--integer")
    for name in ("prediction", "lower", "upper"):
        assert (whole[name] == whole[name].round()).all()
    np.testing.assert_array_equal(whole["prediction"], plain["prediction"].round())
    for level in range(20, 50):  # as many whole values inside as before, and the prediction
        inside = (plain["lower"] <= level) & (level <= plain["upper"])
        kept = (whole["lower"] <= level) & (level <= whole["upper"])
        assert (kept == (inside | (level == whole["prediction"]))).all()


@pytest.mark.parametrize("bounds", [("--at-least", "29"), ("--at-most", "29"), ("--at-least", "2", "--at-most", "1")])
def test_bounds_that_cannot_be(bounds: tuple[str, ...], refused: Callable[..., str]) -> None:
    assert bounds[0] in refused(*LR, *bounds)


def test_a_bound_of_zero_is_one(town: Any, refused: Callable[..., str]) -> None:
    town.write(town.nodes.assign(income=town.nodes["income"] - 100))
    assert "--at-least 0 is not met by a known value" in refused(*LR, "--at-least", "0")


def test_columns_of_the_input_are_kept(town: Any) -> None:
    made = result(town, *LR, "--keep-columns")
    assert list(made.columns[-2:]) == ["age", "income"]
    np.testing.assert_array_equal(made["income"], town.nodes["income"])


def test_a_column_to_keep_with_the_name_of_a_result(town: Any, refused: Callable[..., str]) -> None:
    town.write(town.nodes.assign(std=1.5 * town.nodes["age"]))
    assert "cannot keep 'std'" in refused(*LR, "--keep-columns")


@pytest.mark.parametrize("name", ["out.tsv", "out.parquet", "out.xlsx"])
def test_the_suffix_of_the_output_says_its_format(name: str, town: Any) -> None:
    expected = result(town, *LR)
    assert town.run("-o", str(town.folder / name), *LR).exit_code == 0
    readers: dict[str, Callable[..., pd.DataFrame]] = {
        "out.tsv": lambda path: pd.read_csv(path, sep="\t", dtype={"place": "str"}),
        "out.parquet": pd.read_parquet,
        "out.xlsx": lambda path: pd.read_excel(path, dtype={"place": "str"}),
    }
    pd.testing.assert_frame_equal(readers[name](town.folder / name), expected, check_dtype=False)


def test_a_dash_reads_standard_input(town: Any) -> None:
    expected = result(town, *LR)
    piped = town.folder / "piped.csv"
    words = ["predict", "-", str(town.folder / "edges.csv"), *LR, "-o", str(piped)]
    run = CliRunner().invoke(app, words, input=town.nodes.to_csv(index=False, sep=";", decimal=","))
    assert run.exit_code == 0, run.output
    pd.testing.assert_frame_equal(pd.read_csv(piped, dtype={"place": "str"}), expected)


def test_edges_to_unknown_nodes_are_dropped_on_request(town: Any) -> None:
    expected = result(town, "--target", "income", "--method", "lp")
    stray = pd.DataFrame({"source": ["Q9"], "target": [town.nodes["place"][0]]})
    town.write(edges=pd.concat([town.edges, stray]))
    run = town.run("--target", "income", "--method", "lp", "--unknown", "drop", "-o", str(town.folder / "out.csv"))
    assert "dropped 1 edge to 1 unknown id, such as 'Q9'" in run.stderr
    pd.testing.assert_frame_equal(pd.read_csv(town.folder / "out.csv", dtype={"place": "str"}), expected)


@pytest.mark.parametrize("option", [("--unknown", "ignore"), ("--weight-is", "far")])
def test_words_that_are_none_of_the_choices(option: tuple[str, str], refused: Callable[..., str]) -> None:
    assert f"{option[0]} must be" in refused(*option)


def test_a_rare_class_is_predicted(town: Any) -> None:
    kind = np.array(["a", "b"] * (len(town.nodes) // 2), dtype=object)
    kind[:2], kind[40:] = "rare", None
    town.write(town.nodes.assign(kind=kind).drop(columns="income"))
    run = town.run("--target", "kind", "--method", "lp", "-o", str(town.folder / "out.csv"))
    assert run.exit_code == 0, run.output
    assert "only 2 labels are rare, so cross-validation uses 2 folds" in run.stderr


@pytest.mark.parametrize("method", ["lp", "lr", "lgc-rp", "field"])
@pytest.mark.parametrize("others", [("a", "b"), ("a", "a")])
def test_a_class_of_one_label_is_predicted(town: Any, method: str, others: tuple[str, str]) -> None:
    kind = np.array(others * (len(town.nodes) // 2), dtype=object)
    kind[0], kind[40:] = "rare", None
    town.write(town.nodes.assign(kind=kind).drop(columns="income"))
    run = town.run("--target", "kind", "--method", method, "-o", str(town.folder / "out.csv"))
    assert run.exit_code == 0, run.output
    assert "rare has one label only, and cannot be checked" in run.stderr
    made = pd.read_csv(town.folder / "out.csv")
    assert made["prediction"][0] == "rare"
    assert made["probability"].between(0, 1).all()


@pytest.mark.slow
def test_a_long_tail_is_noticed(town: Any) -> None:
    node = np.arange(len(town.nodes))
    town.write(town.nodes.assign(income=np.where(node < 40, np.exp(node / 8), np.nan)))
    hint = "income: its values have a long tail; --transform auto may improve accuracy"
    assert hint in town.run("--target", "income", "--method", "field").stderr
    assert hint not in town.run("--target", "income", "--method", "lp").stderr
    assert hint not in town.run("--target", "income", "--transform", "log").stderr
    counts = np.where(node < 40, np.exp(node / 8).round(), np.nan)
    town.write(town.nodes.assign(income=counts))
    assert hint not in town.run("--target", "income", "--likelihood", "poisson").stderr


def test_dates_are_no_classes(town: Any, refused: Callable[..., str]) -> None:
    town.write(town.nodes.assign(since=["2020-01-31", None] * (len(town.nodes) // 2)))
    assert "column since: contains dates" in refused("--target", "since")

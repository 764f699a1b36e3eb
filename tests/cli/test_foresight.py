"""Groups, nodes to ask and accuracy with more labels on the command line: with the field, on files."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

import graphmrf as gm
from cli.conftest import Town
from graphmrf import GraphRegressor, datasets
from graphmrf.cli import app
from graphmrf.estimators.methods import METHODS
from graphmrf.report.tables import group_cells, suggestion_table

FIELD = ("--target", "income", "--method", "field")


@pytest.fixture
def wards(town: Town) -> Town:
    """The town with a column of four wards, one place being in none."""
    ward = [f"w{i // 16}" for i in range(64)]
    nodes = town.nodes.assign(ward=ward, total=ward)
    nodes.loc[0, "ward"] = None
    town.write(nodes)
    return Town(town.folder, nodes, town.edges)


@pytest.fixture
def waves(town: Town) -> Town:
    """The town with an income that is smooth over its grid, known at a quarter of the places."""
    place = np.arange(64)
    income = pd.Series(30 + 5 * np.sin(place // 8 / 2) + 5 * np.cos(place % 8 / 2))
    nodes = town.nodes.assign(income=income.where(place % 4 == place // 8 % 4))
    town.write(nodes)
    return Town(town.folder, nodes, town.edges)


def fitted(town: Town) -> tuple[GraphRegressor, pd.DataFrame]:
    table = datasets.read(town.folder / "nodes.csv", town.folder / "edges.csv")
    X = datasets.features(table, targets=("income",)).unfilled
    return GraphRegressor().fit(table.graph, X, table.outcome("income")), table.frame


def test_groups_are_written_beside_the_predictions(wards: Town) -> None:
    out, page = wards.folder / "out.csv", wards.folder / "page.html"
    result = wards.run(*FIELD, "--group", "ward", "-o", str(out), "--report", str(page))
    assert result.exit_code == 0, result.output
    assert wards.made == ["out-by-ward.csv", "out.csv", "page.html"]
    found = pd.read_csv(wards.folder / "out-by-ward.csv").set_index("ward")
    model, frame = fitted(wards)
    expected = model.predict_mean(frame["ward"].to_numpy())
    np.testing.assert_allclose(found.loc["w1", ["prediction", "std", "lower", "upper"]], expected.loc["w1"].iloc[:4])
    assert found.loc["w0", "n_nodes"] == 15
    np.testing.assert_allclose(found["total"], found["n_nodes"] * found["prediction"])
    assert "income by ward, mean and total with 90 % intervals" in result.stdout
    assert "out-by-ward.csv" in result.stdout
    assert "By ward" in page.read_text()


@pytest.mark.parametrize("method", ["lr", "lgc-rp", "field"])
def test_weighted_means_of_groups_are_those_of_the_estimator(wards: Town, method: str) -> None:
    options = ("--target", "income", "--method", method, "--group", "ward")
    result = wards.run(*options, "--group-weight", "age", "-o", str(wards.folder / "out.csv"))
    assert result.exit_code == 0, result.output
    made = pd.read_csv(wards.folder / "out-by-ward.csv", index_col="ward")
    read = gm.read(wards.folder / "nodes.csv", wards.folder / "edges.csv")
    X = datasets.features(read, targets=("income",)).unfilled
    model = METHODS[method].make().fit(read.graph, X, read.outcome("income"))
    expected = model.predict_mean(read.frame["ward"], weight=read.frame["age"])
    np.testing.assert_allclose(made["prediction"], expected["prediction"])
    np.testing.assert_allclose(made["upper"], expected["upper"])
    assert "total" not in made
    assert "weighted mean" in result.stdout
    assert "out-by-ward.csv" in wards.run(*options, "-o", str(wards.folder / "out.csv")).stdout
    assert "total" in pd.read_csv(wards.folder / "out-by-ward.csv")


def test_groups_and_suggestions_are_in_the_summary(wards: Town) -> None:
    result = wards.run(*FIELD, "--group", "ward", "--suggest", "2", "--json")
    summary = json.loads(result.stdout)
    assert [row["ward"] for row in summary["groups"]["income"]] == ["w0", "w1", "w2", "w3"]
    model, frame = fitted(wards)
    ids = [row["place"] for row in summary["suggest"]["income"]["nodes"]]
    assert ids == frame["place"].iloc[model.suggest(2)["node"]].tolist()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--group", "wrd"), "did you mean 'ward'?"),
        (("--group", "place"), "contains the node ids"),
        (("--group", "total"), "has the name of a result"),
        (("--suggest", "60"), "--suggest must be at most"),
        (("--suggest", "2", "--method", "lp"), "method lp does not offer suggested labels; use --method field"),
        (("--group-weight", "age"), "name their column with --group"),
        (("--group", "ward", "--group-weight", "agge"), "did you mean 'age'?"),
        (("--group", "ward", "--group-weight", "income"), "column income: weights must be 0 or more, got none"),
    ],
)
def test_what_cannot_be_grouped_or_suggested_is_refused(wards: Town, options: tuple[str, ...], why: str) -> None:
    result = wards.run("--target", "income", *options)
    assert result.exit_code == 2
    assert why in result.stderr


def test_groups_do_not_overwrite_other_files(wards: Town) -> None:
    (wards.folder / "nodes.csv").rename(wards.folder / "x-by-ward.csv")
    path = wards.folder / "x-by-ward.csv"
    wards.write()
    command = ["predict", str(path), str(wards.folder / "edges.csv"), *FIELD, "--group", "ward"]
    result = CliRunner().invoke(app, [*command, "-o", str(wards.folder / "x.csv")])
    assert result.exit_code == 2


def test_ids_and_groups_that_are_numbers_stay_whole() -> None:
    named = pd.DataFrame({"node": [0], "std": [0.5], "expected_r2": [0.9]})
    assert suggestion_table(named, [116])[1][0][0] == "116"
    sums = dict.fromkeys(("prediction", "lower", "upper", "total", "total_lower", "total_upper"), 1.5)
    groups = pd.DataFrame([{"area": 28, "n_nodes": 1200, "n_observed": 3} | sums])
    assert group_cells(groups)[1][0][:3] == ("28", "1,200", "3")


def foresee(town: Town, *options: str) -> Result:
    paths = [str(town.folder / "nodes.csv"), str(town.folder / "edges.csv")]
    return CliRunner().invoke(app, ["foresee", *paths, "--target", "income", *options])


def test_foresee_fits_the_field_where_no_model_is_named(waves: Town) -> None:
    page = waves.folder / "page.html"
    result = foresee(waves, "--target-r2", "0.9999", "--suggest", "2", "--report", str(page))
    assert result.exit_code == 0, result.output
    model, frame = fitted(waves)
    r2 = json.loads(waves.run(*FIELD, "--json").stdout)["targets"][0]["r2"]
    assert f"expect R² {r2:.3f} on the others" in result.stdout
    assert "R² 0.9999 is not reached with" in result.stdout
    assert str(frame["place"].iloc[model.suggest(1)["node"].iloc[0]]) in result.stdout
    assert "How many labels" in page.read_text()
    assert 'data-figure="learning"' in page.read_text()
    assert "Label these next" in page.read_text()


def test_foresee_tells_scripts_what_the_library_says(waves: Town) -> None:
    summary = json.loads(foresee(waves, "--json", "--suggest", "1").stdout)
    model, _ = fitted(waves)
    curve = model.expected_learning_curve()
    predicted = json.loads(waves.run(*FIELD, "--json").stdout)["targets"][0]
    assert summary["r2"]["field"] == {"r2": predicted["r2"], "error": predicted["r2_error"]}
    assert summary["curve"][0]["expected_r2"] == pytest.approx(predicted["r2"])
    assert [row["n_labels"] for row in summary["curve"]] == curve["n_labels"].tolist()
    assert len(summary["suggest"]) == 1


def test_where_no_label_helps_foresee_says_so(town: Town) -> None:
    rng = np.random.default_rng(0)
    noise = pd.DataFrame({"place": town.nodes["place"], "income": rng.standard_normal(64)})
    noise.loc[:5, "income"] = np.nan
    town.write(noise, town.edges.iloc[:1])
    result = foresee(town, "--suggest", "3")
    assert result.exit_code == 0, result.output
    assert "no label helps other nodes" in result.stdout
    assert json.loads(foresee(town, "--suggest", "3", "--json").stdout)["suggest"] == []


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--target-r2", "80"), "--target-r2 must be between 0 and 1"),
        (("--suggest", "99"), "--suggest must be at most"),
        (("--report", "page.txt"), "name the file something.html"),
        (("extra.csv", "more.csv"), "foresee takes NODES and EDGES, or MODEL, NODES and EDGES"),
        (("--target", "age"), "64 known and 0 empty cells"),
        (("--target", "incme"), "did you mean 'income'?"),
    ],
)
def test_what_cannot_be_foreseen_is_refused(town: Town, options: tuple[str, ...], why: str) -> None:
    result = foresee(town, *options)
    assert result.exit_code == 2
    assert why in result.stderr

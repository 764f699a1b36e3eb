"""Groups, nodes to ask and accuracy with more labels on the command line: with the field, on files."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from cli.conftest import Town
from graphmrf import GraphRegressor, datasets
from graphmrf.cli import app

FIELD = ("--target", "income", "--method", "field")


@pytest.fixture
def wards(town: Town) -> Town:
    """The town with a column of four wards, one place being in none."""
    ward = [f"w{i // 16}" for i in range(64)]
    nodes = town.nodes.assign(ward=[None, *ward[1:]])
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
    assert found.loc["w1", "total"] == pytest.approx(16 * found.loc["w1", "prediction"])
    assert "income by ward, mean and total with 90 % intervals" in result.stdout
    assert "out-by-ward.csv" in result.stdout
    assert "By ward" in page.read_text()


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
        (("--group", "place"), "holds the node ids"),
        (("--suggest", "60"), "--suggest must be at most"),
        (("--suggest", "2", "--method", "lp"), "--suggest is for --method field"),
        (("--group", "ward", "--method", "lr"), "--group is for --method field"),
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

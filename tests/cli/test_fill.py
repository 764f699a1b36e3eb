"""graphmrf fill: all missing cells of a table."""

from typing import Any

import numpy as np
import pandas as pd
from typer.testing import CliRunner, Result

from graphmrf.cli import app, later
from graphmrf.estimators.graph_regressor import GraphRegressor


def run(town: Any, *options: str) -> Result:
    paths = [str(town.folder / name) for name in ("nodes.csv", "edges.csv")]
    return CliRunner().invoke(app, ["fill", *paths, "-o", str(town.folder / "out.csv"), *options])


def test_every_empty_cell_is_filled_and_known_ones_stay(town: Any) -> None:
    nodes = town.nodes.copy()
    nodes["age"] = nodes["age"].where(np.arange(64) % 7 > 0)
    side = np.where(np.arange(64) < 32, "north", "south")
    nodes["side"] = pd.Series(side).where(np.arange(64) % 5 > 0)
    nodes["founded"] = "2001-01-01"
    town.write(nodes=nodes)
    result = run(town, "--method", "coupled")
    assert result.exit_code == 0, result.output
    made = pd.read_csv(town.folder / "out.csv", dtype={"place": "str"})
    assert list(made.columns[:5]) == list(nodes.columns)
    assert set(made.columns[5:]) == {"age_std", "income_std", "side_probability"}
    assert not made.isna().any().any()
    for name in ("age", "income", "side"):
        known = nodes[name].notna()
        assert (made[name][known] == nodes[name][known]).all()
    assert (made["income_std"][nodes["income"].isna()] > 0).all()
    assert "left as they are: 'founded'" in " ".join(result.output.split())


def test_what_cannot_be_filled_is_refused(town: Any) -> None:
    assert "method must be one of" in run(town, "--method", "mean").output
    assert "has a column 'income_std'" in _refused(town, town.nodes.assign(income_std=np.arange(64) * 0.1))
    assert "nothing to fill" in _refused(town, town.nodes[["place", "age"]])
    assert "--horizon needs --time" in run(town, "--horizon", "1").output
    assert not (town.folder / "out.csv").exists()


def _refused(town: Any, nodes: pd.DataFrame, draws: str = "0") -> str:
    town.write(nodes=nodes)
    result = run(town, "--method", "coupled", "--draws", draws)
    assert result.exit_code == 2
    return " ".join(result.output.split())


def test_counts_are_filled_by_their_likelihood_and_drawn(town: Any) -> None:
    rng = np.random.default_rng(0)
    people = rng.uniform(50.0, 500.0, 64).round()
    cases = rng.poisson(0.05 * people * np.exp(np.sin(np.arange(64) / 6.0))).astype(float)
    cases[::4] = np.nan
    nodes = town.nodes[["place"]].assign(people=people, cases=cases)
    town.write(nodes=nodes)
    result = run(town, "--likelihood", "cases=poisson", "--size", "cases=people", "--draws", "3")
    assert result.exit_code == 0, result.output
    assert "out-draws.csv" in "".join(result.output.split())
    made = pd.read_csv(town.folder / "out.csv", dtype={"place": "str"})
    table = later.datasets.read(town.folder / "nodes.csv", town.folder / "edges.csv")
    model = GraphRegressor(likelihood="poisson").fit(table.graph, table.frame[["people"]], cases, exposure=people)
    hidden = np.isnan(cases)
    mean, std = model.predict(return_std=True, of="observation")
    np.testing.assert_allclose(made["cases"][hidden], np.asarray(mean)[hidden], rtol=1e-6)
    np.testing.assert_allclose(made["cases_std"][hidden], np.asarray(std)[hidden], rtol=1e-6)
    draws = pd.read_csv(town.folder / "out-draws.csv", dtype={"place": "str"})
    assert draws["draw"].tolist() == np.repeat([1, 2, 3], 64).tolist()
    assert draws["place"].tolist() == 3 * nodes["place"].tolist()
    np.testing.assert_array_equal(draws["cases"].to_numpy().reshape(3, 64)[:, ~hidden], np.tile(cases[~hidden], (3, 1)))
    drawn = draws["cases"].to_numpy().reshape(3, 64)[:, hidden]
    assert (drawn == drawn.round()).all()
    assert (drawn[0] != drawn[1]).any()


def test_options_of_columns_name_what_is_wrong(town: Any) -> None:
    for options, message in (
        (("--likelihood", "income"), "--likelihood needs a column and a value, such as cases=people, got 'income'"),
        (("--likelihood", "wealth=poisson"), "has no column 'wealth'"),
        (("--likelihood", "place=poisson"), "column 'place' contains the node ids"),
        (("--size", "income=age"), "sizes must lead from columns with a likelihood to columns of numbers"),
        (("--likelihood", "income=gamma"), "likelihood must be one of"),
    ):
        result = run(town, *options)
        assert result.exit_code == 2
        assert message in " ".join(result.output.split())
    assert "a column 'draw', the name of a result" in _refused(town, town.nodes.assign(draw=np.arange(64) * 0.5), "1")

"""graphmrf fill: all missing cells of a table."""

from typing import Any

import numpy as np
import pandas as pd
from typer.testing import CliRunner, Result

from graphmrf.cli import app


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


def _refused(town: Any, nodes: pd.DataFrame) -> str:
    town.write(nodes=nodes)
    result = run(town, "--method", "coupled")
    assert result.exit_code == 2
    return " ".join(result.output.split())

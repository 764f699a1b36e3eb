"""A small town on a grid, written as two files, and a way to run the command on it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from graphmrf.cli import app

SIDE = 8


@dataclass(frozen=True)
class Town:
    """Two files in a folder of their own, and the tables they were written from."""

    folder: Path
    nodes: pd.DataFrame
    edges: pd.DataFrame

    def write(self, nodes: pd.DataFrame | None = None, edges: pd.DataFrame | None = None) -> None:
        (self.nodes if nodes is None else nodes).to_csv(self.folder / "nodes.csv", index=False)
        (self.edges if edges is None else edges).to_csv(self.folder / "edges.csv", index=False)

    def run(self, *options: str) -> Result:
        paths = [str(self.folder / "nodes.csv"), str(self.folder / "edges.csv")]
        return CliRunner().invoke(app, ["predict", *paths, *options])

    @property
    def made(self) -> list[str]:
        """Everything in the folder besides the two inputs."""
        return sorted(path.name for path in self.folder.iterdir() if path.name not in ("nodes.csv", "edges.csv"))


@pytest.fixture
def town(tmp_path: Path) -> Town:
    """64 places whose income follows age and its neighbours' income; two thirds of the incomes are missing."""
    rng = np.random.default_rng(4)
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(SIDE, SIDE))
    names = np.array([f"{i:03d}" for i in rng.permutation(SIDE * SIDE)])
    smooth = np.linalg.inv(np.eye(SIDE * SIDE) + 9 * nx.normalized_laplacian_matrix(grid).toarray())
    age = 40 + 5 * rng.standard_normal(SIDE * SIDE)
    income = 30 + 4 * smooth @ (age - 40) + 8 * np.linalg.cholesky(smooth) @ rng.standard_normal(SIDE * SIDE)
    nodes = pd.DataFrame({"place": names, "age": age.round(1), "income": income.round(2)})
    nodes.loc[rng.random(SIDE * SIDE) < 0.66, "income"] = np.nan
    nodes.loc[:1, "income"] = np.nan, 30.0
    u, v = np.array(grid.edges).T
    town = Town(tmp_path, nodes, pd.DataFrame({"source": names[u], "target": names[v]}))
    town.write()
    return town


@pytest.fixture
def refused(town: Town) -> Callable[..., str]:
    """Run with outputs asked for, on something that must be refused; return the one line that says why."""

    def run(*options: str) -> str:
        outputs = ["-o", str(town.folder / "out.csv"), "--report", str(town.folder / "report.html")]
        result = town.run(*outputs, *options)
        assert result.exit_code == 2, result.output
        assert town.made == []
        assert result.stdout == ""
        said = [line for line in result.stderr.splitlines() if not line.startswith("fitting: ")]  # told after seconds
        assert len(said) == 1
        assert said[0].startswith("error: ")
        return said[0] + "\n"

    return run

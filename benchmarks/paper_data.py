"""The paper's 14 real tasks, read from the clean files that ``GRAPHMRF_CLEAN_DATA`` points at."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.sparse.linalg import svds

from graphmrf.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphmrf._typing import Floats

SHARES = ["sh050m", "sh100m", "sh500m"]
COUNTY = [*SHARES, "income", "migration", "birth", "death", "education", "unemployment", "election"]
CLIMATE = ["airT", "landT", "precipitation", "sunlight", "pm2.5"]
WARD = ["edu", "age", "gender", "income", "populationsize", "election"]
TABLES = {
    "U.S.": ("county_facebook", "nodes_2016", COUNTY, ["income", "education", "unemployment", "election"]),
    "CDC": ("climate", "nodes_2008", CLIMATE, CLIMATE),
    "London": ("london", "nodes_2016", WARD, ["income", "edu", "age", "election"]),
}


@dataclass(frozen=True)
class Task:
    """One row of the paper's table of real data: standardised features (n, p) and outcome (n,)."""

    data: str
    outcome: str
    graph: Graph
    X: Floats
    y: Floats


def root() -> Path | None:
    """Return the folder of the clean data sets, or None where there is none."""
    folder = os.environ.get("GRAPHMRF_CLEAN_DATA")
    return Path(folder) if folder else None


def tasks() -> Iterator[Task]:
    """Yield the 14 tasks in the order of the paper's table."""
    folder = root()
    assert folder is not None
    for data in TABLES:
        frame = _frame(folder, data)
        yield from _outcomes(folder, data, data, frame)
    yield _twitch(folder / "twitch" / "PTBR")


def london_as_printed() -> Iterator[Task]:
    """Yield the four London tasks as in print: with the logarithm of the election result."""
    folder = root()
    assert folder is not None
    frame = _frame(folder, "London")
    yield from _outcomes(folder, "London", "London, log", frame.assign(election=np.log(frame["election"])))


def _frame(folder: Path, data: str) -> pd.DataFrame:
    name, nodes, attributes, _ = TABLES[data]
    return pd.read_csv(folder / name / f"{nodes}.csv.gz")[attributes]


def _outcomes(folder: Path, data: str, label: str, frame: pd.DataFrame) -> Iterator[Task]:
    name, _, attributes, outcomes = TABLES[data]
    values = standardise(frame.fillna(frame.mean()).to_numpy(dtype=np.float64))
    for outcome in outcomes:
        k = attributes.index(outcome)
        yield Task(label, outcome, _graph(folder / name), np.delete(values, k, axis=1), values[:, k])


def standardise(values: Floats) -> Floats:
    """Return columns of mean 0 and standard deviation 1 over all nodes, as the paper's code does."""
    return np.asarray((values - values.mean(axis=0)) / values.std(axis=0, ddof=1))


@cache
def _graph(folder: Path) -> Graph:
    edges = pd.read_csv(folder / "edges.csv.gz")
    return Graph.from_edges(edges["u"], edges["v"])


def _twitch(folder: Path) -> Task:
    """64 principal components of the binary features without centring, then centred, and the root of the degree."""
    graph, nodes = _graph(folder), pd.read_csv(folder / "nodes.csv.gz")
    ones = pd.read_csv(folder / "features.csv.gz")
    binary = sparse.csr_array((np.ones(len(ones)), (ones["node"], ones["feature"])), shape=(len(nodes), 3170))
    _, _, Vt = svds(binary, k=64, random_state=0)
    scores = np.asarray(binary @ Vt.T)
    root_degree = standardise(np.sqrt(graph.degrees)[:, None])
    X = np.hstack([scores - scores.mean(axis=0), root_degree])
    return Task("Twitch", "days", graph, X, standardise(nodes["days"].to_numpy(dtype=np.float64)))

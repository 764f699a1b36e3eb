"""The paper's 14 real tasks and its synthetic samples, from the raw files in the folder of ``GRAPHMRF_DATA``."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from graphmrf import GaussianMRF, datasets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from graphmrf._typing import Floats
    from graphmrf.datasets import Dataset
    from graphmrf.graph import Graph

SETS = {"U.S.": "us-2016", "CDC": "cdc-2008", "London": "london-2016", "Twitch": "twitch-ptbr"}
"""The data sets of the paper's table of real data."""

UNSEEN = {
    "2012 U.S.": "us-2012",
    "2007 CDC": "cdc-2007",
    "2012 London": "london-2012",
    "ENGB Twitch": "twitch-engb",
    "DE Twitch": "twitch-de",
}
"""Other years, by which nothing was chosen, and other countries."""


@dataclass(frozen=True)
class Task:
    """One row of the paper's table of real data: standardised features (n, p) and outcome (n,)."""

    data: str
    outcome: str
    graph: Graph
    X: Floats
    y: Floats


def root() -> Path | None:
    """Return the folder of the raw data sets, or None where there is none."""
    folder = os.environ.get("GRAPHMRF_DATA")
    return Path(folder) if folder else None


def tasks(sets: Mapping[str, str] = SETS) -> Iterator[Task]:
    """Yield the 14 tasks in the order of the paper's table, or those of other data sets."""
    for label, name in sets.items():
        yield from _outcomes(label, _load(name))


@cache
def counties() -> dict[str, Task]:
    """Return the four tasks of the U.S. counties by outcome, loaded once."""
    return {task.outcome: task for task in tasks() if task.data == "U.S."}


@cache
def samples(h0: int, graph: str = "") -> tuple[Graph, Floats, GaussianMRF]:
    """Return graph, draws (10, n, 5) and true parameters of the synthetic data; the paper's own graph has no name."""
    data = _load(f"synthetic-paper-{graph}h{h0}")
    drawn, parameters = data.extra["samples"][data.info.columns], data.extra["parameters"]
    mrf = GaussianMRF(parameters.loc[:, "H1":].to_numpy(), parameters["h"].to_numpy())
    return data.graph, drawn.to_numpy().reshape(-1, data.graph.n_nodes, mrf.q), mrf


@cache
def _load(name: str) -> Dataset:
    return datasets.load(name)


def _outcomes(label: str, data: Dataset) -> Iterator[Task]:
    values = datasets.paper(data)
    for outcome in data.info.outcomes:
        X, y = values.drop(columns=outcome), values[outcome]
        yield Task(label, outcome, data.graph, X.to_numpy(), y.to_numpy())

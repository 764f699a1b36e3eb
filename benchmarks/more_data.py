"""Nine further tasks with continuous outcomes, from ``GRAPHMRF_MORE``, or ``data/more`` beside ``GRAPHMRF_DATA``.

Land temperature, house prices, Wikipedia traffic, class years of a university, New York census tracts (two outcomes),
respiratory admissions, bus boardings and oral cancer; sources and licences are in the README of each folder.
``python -m benchmarks.more_data`` prints their sizes. Features are standardised over all nodes, missing cells are at
their mean; outcomes are in their own units, NaN where nobody knows them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.sparse.csgraph import breadth_first_order

from benchmarks.paper_data import root
from benchmarks.show import show
from graphmrf.errors import InvalidInputError
from graphmrf.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphmrf._typing import Bools, Floats, Ints

COMMON = 30
"""Nodes that a level of a categorical feature needs for a column of its own; the other levels share one."""


@dataclass(frozen=True)
class Task:
    """One outcome (n,) with the features (n, p) of all nodes; `kind` is what the edges are.

    `places` (n, 2) are the coordinates of the nodes, where they have some, and `table` the features with columns of
    categories as such.
    """

    name: str
    graph: Graph
    X: Floats
    y: Floats
    kind: str
    places: Floats | None = None
    table: pd.DataFrame | None = None

    def at(self, nodes: Ints, graph: Graph) -> Task:
        """Return the task on a part of its nodes."""
        places = None if self.places is None else self.places[nodes]
        table = None if self.table is None else self.table.iloc[nodes].reset_index(drop=True)
        return replace(self, graph=graph, X=self.X[nodes], y=self.y[nodes], places=places, table=table)

    @property
    def known(self) -> Bools:
        """Nodes whose outcome is known, shape (n,)."""
        return np.asarray(np.isfinite(self.y))


def more_root() -> Path | None:
    """Return the folder of the further data sets, or None where there is none."""
    raw, named = root(), os.environ.get("GRAPHMRF_MORE")
    folder = Path(named) if named else None if raw is None else raw.parent / "data" / "more"
    return folder if folder is not None and folder.exists() else None


def connected_part(task: Task, size: int, *, seed: int = 0) -> Task:
    """Return the task on a connected part of `size` nodes, found by breadth-first search in the largest component."""
    if size >= task.graph.n_nodes:
        return task
    components = task.graph.components
    largest = np.flatnonzero(components == np.bincount(components).argmax())
    start = np.random.default_rng(seed).choice(largest)
    nodes = np.sort(breadth_first(task.graph, int(start))[:size])
    return task.at(nodes, Graph(task.graph.adjacency[nodes][:, nodes]))


def breadth_first(graph: Graph, start: int) -> Ints:
    """Return the nodes of the component of `start` in the order of a breadth-first search."""
    order: Ints = breadth_first_order(graph.adjacency, start, directed=False, return_predecessors=False)
    return order


def competition() -> tuple[Task, Bools]:
    """Return land temperature in degrees Celsius and the training cells of Heaton and others (2019)."""
    return load("land:temperature"), _nodes("modis_lst_heaton")["heaton_train"].to_numpy() == 1


@cache
def load(name: str) -> Task:
    """Return one of the tasks in `NAMES`."""
    if name not in _MAKERS:
        raise InvalidInputError(f"task must be one of {', '.join(NAMES)}, got {name!r}")
    return _MAKERS[name](name)


def _land(name: str) -> Task:
    return _task(name, "modis_lst_heaton", ["lon", "lat"], "temp", "lattice", ["lon", "lat"])


def _houses(name: str) -> Task:
    left_out = ["id", "sale_id", "date", "zipcode", "price", "log_price"]
    columns = [column for column in _columns("king_county_houses") if column not in left_out]
    return _task(name, "king_county_houses", columns, "log_price", "points", ["long", "lat"])


def _traffic(name: str) -> Task:
    columns = [column for column in _columns("wiki_chameleon") if column == "n_nouns" or column.startswith("svd")]
    return _task(name, "wiki_chameleon", columns, "log_traffic", "links", [])


def _class_year(name: str) -> Task:
    frame, graph = _nodes("fb100_johnshopkins"), _graph("fb100_johnshopkins")
    codes = frame[["status", "major", "minor", "dorm", "highschool"]]
    columns = pd.concat([_levels(codes[column]) for column in codes], axis=1)
    X = columns.assign(degree=np.log1p(graph.degrees))
    table = codes.where(codes > 0).astype("category").assign(degree=X["degree"])
    return Task(name, graph, _standardised(X), _numbers(frame, "class_year"), "friends", table=table)


def _levels(codes: pd.Series[int]) -> pd.DataFrame:
    """Return a column of 0 and 1 for every common level, and one for all others."""
    counts = codes.value_counts()
    pooled = codes.where(codes.map(counts) >= COMMON, -1)
    return pd.get_dummies(pooled, prefix=str(codes.name)).astype(float)


def _tracts(name: str) -> Task:
    frame, outcome = _nodes("nyc_tracts_unemployment"), name.split(":")[1]
    persons = ["white", "black", "asian", "hispanic", "poor", "struggling", "households", "pop_over18"]
    workers = ["commute_lt5", "commute_ge90"]
    degrees = [column for column in _columns("nyc_tracts_unemployment") if column.startswith("edu_")]
    shares = [
        frame[persons].div(frame["population"], axis=0),
        frame[degrees].div(frame[degrees].sum(axis=1).clip(lower=1), axis=0),
        frame[workers].div(frame["labour_force"], axis=0),
        frame[["median_age", "gini"]],
    ]
    X = pd.concat(shares, axis=1).assign(
        labour_force=frame["labour_force"] / frame["pop_over18"].clip(lower=1),
        density=np.log(_numbers(frame, "population") / _numbers(frame, "area_sqft")),
    )
    graph = _graph("nyc_tracts_unemployment")
    return Task(name, graph, _standardised(X), _numbers(frame, outcome), "map", _places(frame, ["lon", "lat"]))


def _admissions(name: str) -> Task:
    frame = _nodes("glasgow_respiratory")
    y = np.log(_numbers(frame, "observed_2011") / _numbers(frame, "expected_2011"))
    X = frame[["pm10_2011", "jsa_2011", "price_2011", "easting", "northing"]]
    places = _places(frame, ["easting", "northing"])
    return Task(name, _graph("glasgow_respiratory"), _standardised(X), y, "map", places)


def _boardings(name: str) -> Task:
    frame = _nodes("montevideo_bus")
    y = np.log1p(_numbers(frame, "boardings_total"))
    places, X = _places(frame, ["x_utm", "y_utm"]), _standardised(frame[["x_utm", "y_utm", "in_degree"]])
    return Task(name, _graph("montevideo_bus"), X, y, "roads", places)


def _cancer(name: str) -> Task:
    frame = _nodes("germany_oral_cancer")
    y = np.log((_numbers(frame, "observed") + 0.5) / _numbers(frame, "expected"))
    places = _places(frame, ["x", "y"])
    return Task(name, _graph("germany_oral_cancer"), _standardised(frame[["x", "y"]]), y, "map", places)


_MAKERS: dict[str, Callable[[str], Task]] = {
    "king_county:log_price": _houses,
    "nyc:unemp_rate": _tracts,
    "montevideo:log_boardings": _boardings,
    "chameleon:log_traffic": _traffic,
    "fb100:class_year": _class_year,
    "nyc:median_income": _tracts,
    "glasgow:log_admissions": _admissions,
    "germany:log_mortality": _cancer,
    "land:temperature": _land,
}
NAMES = tuple(_MAKERS)


def _task(name: str, folder: str, columns: list[str], outcome: str, kind: str, places: list[str]) -> Task:
    frame, graph = _nodes(folder), _graph(folder)
    return Task(name, graph, _standardised(frame[columns]), _numbers(frame, outcome), kind, _places(frame, places))


def _places(frame: pd.DataFrame, columns: list[str]) -> Floats | None:
    """Return coordinates if there are some; degrees of longitude as long as those of latitude."""
    if not columns:
        return None
    places = frame[columns].to_numpy(dtype=np.float64)
    if columns[1] == "lat":
        places[:, 0] *= np.cos(np.radians(places[:, 1].mean()))
    return places


@cache
def _nodes(folder: str) -> pd.DataFrame:
    return pd.read_csv(_folder() / folder / "nodes.csv.gz")


def _columns(folder: str) -> list[str]:
    return [str(column) for column in _nodes(folder).columns]


@cache
def _graph(folder: str) -> Graph:
    """Return the graph with its nodes in the order of their table; distances are no weights and are not used."""
    edges, ids = pd.read_csv(_folder() / folder / "edges.csv.gz"), pd.Index(_nodes(folder)["id"])
    return Graph.from_edges(ids.get_indexer(edges["u"]), ids.get_indexer(edges["v"]), n_nodes=len(ids))


def _folder() -> Path:
    folder = more_root()
    if folder is None:
        raise InvalidInputError("the further data sets are not there; set GRAPHMRF_DATA to the folder of the raw ones")
    return folder


def _numbers(frame: pd.DataFrame, column: str) -> Floats:
    return frame[column].to_numpy(dtype=np.float64)


def _standardised(frame: pd.DataFrame) -> Floats:
    filled = frame.fillna(frame.mean())
    varying = filled.loc[:, filled.std() > 0]
    return np.asarray((varying - varying.mean()) / varying.std(), dtype=np.float64)


def main() -> None:
    """Print the sizes of all tasks."""
    rows = []
    for name in NAMES:
        task = load(name)
        size = {"nodes": task.graph.n_nodes, "edges": task.graph.n_edges, "features": task.X.shape[1]}
        components = {"components": task.graph.n_components, "outcomes": int(task.known.sum())}
        moments = {"mean": float(np.nanmean(task.y)), "std": float(np.nanstd(task.y))}
        rows.append({"task": name, "kind": task.kind} | size | components | moments)
    show("more_data", __doc__, rows)


if __name__ == "__main__":
    main()

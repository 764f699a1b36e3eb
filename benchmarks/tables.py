"""Whole tables with 20 and 50 % of all cells removed at random, filled by GraphImputer and by what people use.

London wards, climate of U.S. counties, U.S. counties and census tracts of New York, columns standardised. R2 is the
mean over columns; "90 %" the share of removed cells that intervals of the coupled field cover. "features" is feature
propagation (missing cells become the mean of their neighbours until nothing changes), "knn" and "ridge" are
scikit-learn's `KNNImputer` and `IterativeImputer`, "boosting" is a chain over columns, twice, of boosting on the other
columns and on the neighbours' means of all.
"""

from __future__ import annotations

import os
import warnings
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from sklearn.experimental import enable_iterative_imputer  # noqa: F401 - makes the next import possible
from sklearn.impute import IterativeImputer, KNNImputer
from sklearn.metrics import r2_score

from benchmarks.holes import boosting
from benchmarks.more_data import load as load_more
from benchmarks.more_data import more_root
from benchmarks.paper_data import SETS, tasks
from benchmarks.pool import NO_DATA, sweep, swept
from benchmarks.show import timed
from graphmrf import GraphImputer

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.show import Row
    from graphmrf._typing import Bools, Floats
    from graphmrf.graph import Graph

NAMES = ("London", "CDC", "U.S.", "New York")
SHARES = {"20 %": 0.2, "50 %": 0.5}
STEPS = 200
"""Steps of feature propagation, after which it has converged to three digits."""


def one(work: tuple[str, str, str]) -> Row:
    """Return accuracy, coverage and seconds of a method on a table with a share of its cells removed."""
    name, removed, method = work
    graph, A = load(name)
    hidden = ~np.isnan(A) & (np.random.default_rng(0).random(A.shape) < SHARES[removed])
    seconds, (filled, std) = timed(lambda: METHODS[method](graph, np.where(hidden, np.nan, A)))
    row: Row = {"R2": float(np.mean([r2_score(a[h], f[h]) for a, f, h in zip(A.T, filled.T, hidden.T, strict=True)]))}
    if std is not None:
        row["90 %"] = float((np.abs(A - filled) <= 1.6449 * std)[hidden].mean())
    return row | {"s": seconds}


@cache
def load(name: str) -> tuple[Graph, Floats]:
    """Return a graph and a table (n, q) of standardised columns."""
    if name == "New York":
        tracts = load_more("nyc:unemp_rate")
        columns = np.column_stack([tracts.X, tracts.y])
        return tracts.graph, (columns - np.nanmean(columns, axis=0)) / np.nanstd(columns, axis=0)
    task = next(task for task in tasks({name: SETS[name]}))
    return task.graph, np.column_stack([task.X, task.y])


def _ours(method: str) -> Callable[[Graph, Floats], tuple[Floats, Floats]]:
    def fill(graph: Graph, A: Floats) -> tuple[Floats, Floats]:
        imputer = GraphImputer(graph.with_ids(None), method=method).fit(A)
        return np.asarray(imputer.filled_, dtype=np.float64), np.asarray(imputer.std_, dtype=np.float64)

    return fill


def _propagated(graph: Graph, A: Floats) -> tuple[Floats, None]:
    W, degrees = graph.adjacency, np.maximum(graph.degrees, 1e-12)[:, None]
    known = ~np.isnan(A)
    filled = np.where(known, A, np.nanmean(A, axis=0))
    for _ in range(STEPS):
        filled = np.where(known | graph.isolated[:, None], filled, (W @ filled) / degrees)
    return filled, None


def _knn(_: Graph, A: Floats) -> tuple[Floats, None]:
    return np.asarray(KNNImputer(n_neighbors=10, weights="distance").fit_transform(A)), None


def _ridge(_: Graph, A: Floats) -> tuple[Floats, None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that it has not converged
        return np.asarray(IterativeImputer(max_iter=20, random_state=0).fit_transform(A)), None


def _chain(graph: Graph, A: Floats) -> tuple[Floats, None]:
    W, degrees = graph.adjacency, np.maximum(graph.degrees, 1e-12)[:, None]
    missing: Bools = np.isnan(A)
    filled = _propagated(graph, A)[0]
    for _ in range(2):
        for j in np.flatnonzero(missing.any(axis=0)):
            features, hole = np.hstack([np.delete(filled, j, axis=1), (W @ filled) / degrees]), missing[:, j]
            filled[hole, j] = boosting().fit(features[~hole], A[~hole, j]).predict(features[hole])
    return filled, None


METHODS: dict[str, Callable[[Graph, Floats], tuple[Floats, Floats | None]]] = {
    "auto": _ours("auto"),
    "coupled": _ours("coupled"),
    "fields": _ours("fields"),
    "features": _propagated,
    "knn": _knn,
    "ridge": _ridge,
    "boosting": _chain,
}
"""GraphImputer's three methods, and its peers."""


CHOICES = {"table": NAMES, "removed": tuple(SHARES), "method": tuple(METHODS)}


def run(*, quick: bool) -> list[Row]:
    """Run everything on this machine's cores; quick: two methods on one of them."""
    chosen = {"table": ["London"], "removed": ["20 %"], "method": ["features", "knn"]} if quick else CHOICES
    return NO_DATA if more_root() is None else swept(one, chosen, os.cpu_count() or 1, None)


if __name__ == "__main__":
    sweep("tables", __doc__, one, CHOICES)

"""GraphRegressor with 20 % of the feature cells missing: filled by the joint field, by column means, and complete.

U.S. counties, 30 % labelled; cells are removed at random, others in every split.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
from sklearn.metrics import r2_score

from benchmarks.paper_data import Task, counties, root
from benchmarks.pool import perform
from benchmarks.show import timed
from graphmrf.estimators.graph_regressor import GraphRegressor
from graphmrf.metrics import coverage, log_score
from graphmrf.selection import split

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.show import Row
    from graphmrf._typing import Floats

SHARE = 0.2
KINDS = ("complete", "joint", "mean")


def run(*, quick: bool) -> list[Row]:
    """Fit every kind of features on every split of every outcome."""
    if root() is None:
        return [{"skipped": "set GRAPHMRF_DATA to the folder of the raw data sets"}]
    work = [(outcome, seed) for outcome in counties() for seed in range(2 if quick else 10)]
    found = dict(perform(_one, work))
    rows = [_mean(name, kind, [found[each][kind] for each in work if each[0] == name]) for name, kind in _titles()]
    whole = [_mean("mean", kind, [row for row in rows if row["features"] == kind]) for kind in KINDS]
    return [*rows, *whole]


def _titles() -> Iterator[tuple[str, str]]:
    return itertools.product(counties(), KINDS)


def _one(work: tuple[str, int]) -> dict[str, Row]:
    task = counties()[work[0]]
    _ = task.graph.eigenpairs  # once for every graph, and no part of the times below
    return one_split(task, work[1])


def _mean(outcome: str, kind: str, rows: list[Row]) -> Row:
    numbers = [name for name, value in rows[0].items() if not isinstance(value, str)]
    return {"outcome": outcome, "features": kind} | {
        name: float(np.mean([row[name] for row in rows])) for name in numbers
    }


def one_split(task: Task, seed: int) -> dict[str, Row]:
    """Return the scores of one split for every kind of features."""
    labelled = split(len(task.y), 0.3, random_state=seed)
    y = np.where(labelled, task.y, np.nan)
    holes = np.where(np.random.default_rng(seed).random(task.X.shape) < SHARE, np.nan, task.X)
    means = np.where(np.isnan(holes), np.nanmean(holes, axis=0), holes)
    return {kind: _scores(task, X, y) for kind, X in zip(KINDS, (task.X, holes, means), strict=True)}


def _scores(task: Task, X: Floats, y: Floats) -> Row:
    seconds, (model, mean, std) = timed(lambda: _fit(task, X, y))
    low, high = model.predict_interval(0.9)
    U = np.isnan(y)
    return {
        "R2": r2_score(task.y[U], mean[U]),
        "90 %": coverage(task.y[U], low[U], high[U]),
        "log score": log_score(task.y[U], mean[U], std[U]),
        "s": seconds,
    }


def _fit(task: Task, X: Floats, y: Floats) -> tuple[GraphRegressor, Floats, Floats]:
    model = GraphRegressor().fit(task.graph, X, y)
    return (model, *model.predict(return_std=True))

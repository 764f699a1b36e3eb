"""The dense and the sparse representation of GraphRegressor: R2 of each on the paper's tasks, and how far they agree.

One split with 30 % of the nodes labelled. "agreement" is the correlation of the two predictions of the hidden outcomes.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from sklearn.metrics import r2_score

from benchmarks.paper_data import SETS, root, tasks
from benchmarks.pool import perform
from benchmarks.show import timed
from graphmrf import GraphRegressor
from graphmrf.selection import split

if TYPE_CHECKING:
    from benchmarks.show import Row


def run(*, quick: bool) -> list[Row]:
    """Fit all tasks with both solvers, those of London if it is to be quick."""
    if root() is None:
        return [{"skipped": "set GRAPHMRF_DATA to the folder of the raw data sets"}]
    names = [(task.data, task.outcome) for task in tasks({"London": SETS["London"]} if quick else SETS)]
    found = dict(perform(_one, names, os.cpu_count() or 1))
    rows = [{"task": ":".join(name), **found[name]} for name in names]
    return [*rows, {"task": "mean"} | {key: float(np.mean([row[key] for row in rows])) for key in found[names[0]]}]


def _one(name: tuple[str, str]) -> Row:
    data, outcome = name
    [task] = [task for task in tasks({data: SETS[data]}) if task.outcome == outcome]
    labelled = split(len(task.y), 0.3, random_state=0)
    y, hidden = np.where(labelled, task.y, np.nan), ~labelled
    row: Row = {}
    answers = []
    for solver in ("dense", "sparse"):
        seconds, model = timed(partial(GraphRegressor(solver=solver).fit, task.graph, task.X, y))
        answers.append(model.predict()[hidden])
        row |= {f"{solver} R2": r2_score(task.y[hidden], answers[-1]), f"{solver} s": seconds}
    return row | {"agreement": float(np.corrcoef(*answers)[0, 1])}

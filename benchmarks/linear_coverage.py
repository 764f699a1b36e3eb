"""Coverage of 90 % intervals of the linear methods with 5 to 100 labels, by number of labels.

The paper's 14 tasks and the areas bundled with libpysal (see `areas`), random labels, a smaller set contained in the
larger ones of its split. ``python -m benchmarks.linear_coverage [--tasks London areas ...] [--splits 10]
[--sizes 5 8 13 20 31 61 100] [--jobs 2] [--keep FILE]``. "runs" is the smallest number of runs, over methods, that had
error bars at all: with no more labels than coefficients a method has none. R2 is beside coverage.
"""

from __future__ import annotations

import argparse
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.stats import norm
from sklearn.metrics import r2_score

from benchmarks.areas import areas
from benchmarks.paper_data import SETS, root, tasks
from benchmarks.pool import resume
from benchmarks.show import show
from graphmrf.estimators.methods import METHODS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.paper_data import Task
    from benchmarks.show import Row

SIZES = (5, 8, 13, 20, 31, 61, 100)
MOST = 0.6
"""Largest part of the nodes that is labelled, so that something is left to predict of small areas."""
LINEAR = ("lp", "lr", "lgc", "sgc", "lr-rp", "sgc-rp", "lgc-rp")
"""Methods that are linear in the labels, by their keys."""
LEVEL = 0.9


class Work(NamedTuple):
    """One split of one task with some labels."""

    task: str
    size: int
    seed: int


def run(*, quick: bool) -> list[Row]:
    """Run all tasks on this machine's cores; quick: one of London's at two sizes."""
    if quick:
        return measure(["London:income"], range(1), (5, 20), jobs=1)
    return measure([], range(10), SIZES, jobs=os.cpu_count() or 1)


def measure(
    wanted: Sequence[str], seeds: range, sizes: Sequence[int], *, jobs: int, keep: Path | None = None
) -> list[Row]:
    """Return a row for each number of labels; finished runs are added to the file `keep`."""
    if root() is None:
        return [{"skipped": "set GRAPHMRF_DATA to the folder of the raw data sets"}]
    names = [name for name in _tasks() if not wanted or name.startswith(tuple(wanted))]
    work = [Work(name, size, seed) for seed in seeds for name in names for size in sizes]
    found = {each: row for each, row in resume(_one, work, jobs, keep).items() if row}
    return [_summary(size, [row for each, row in found.items() if each.size == size]) for size in sizes]


def _summary(size: int, rows: list[Row]) -> Row:
    """Return the means of every method over the runs in which it had error bars."""
    told = {key: [row for row in rows if np.isfinite(row[key])] for key in LINEAR}
    covered = {key: float(np.mean([row[key] for row in own])) for key, own in told.items() if own}
    accuracy = {f"{key} R2": float(np.mean([row[f"{key} R2"] for row in own])) for key, own in told.items() if own}
    return {"labels": str(size)} | covered | accuracy | {"runs": min(map(len, told.values()))}


@cache
def _tasks() -> dict[str, Task]:
    found = {f"{task.data}:{task.outcome}": task for task in tasks(SETS)}
    return found | {f"areas:{task.data}:{task.outcome}": task for task in areas()}


def _one(work: Work) -> Row:
    task = _tasks()[work.task]
    n = task.y.size
    if work.size > MOST * n:
        return {}
    order = np.random.default_rng(1000 + work.seed).permutation(n)
    labelled = np.isin(np.arange(n), order[: work.size])
    y, hidden, row = np.where(labelled, task.y, np.nan), ~labelled, dict[str, float]()
    reach = norm.ppf(0.5 + 0.5 * LEVEL)
    for key in LINEAR:
        mean, std = METHODS[key].make().fit(task.graph, task.X, y).predict(return_std=True)
        inside = np.abs(task.y - mean) <= reach * std
        row[key] = float("nan") if np.isnan(std).any() else float(inside[hidden].mean())
        row[f"{key} R2"] = float(r2_score(task.y[hidden], mean[hidden]))
    return row


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.linear_coverage", description=__doc__)
    parser.add_argument("--tasks", nargs="*", default=[], help="how names begin: U.S.:income, London, areas")
    parser.add_argument("--splits", type=int, default=10, help="number of splits")
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SIZES), help="numbers of labels")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--keep", type=Path, help="file of finished runs, which are not repeated")
    given = parser.parse_args()
    rows = measure(given.tasks, range(given.splits), given.sizes, jobs=given.jobs, keep=given.keep)
    show("linear_coverage", __doc__, rows)


if __name__ == "__main__":
    main()

"""GraphRegressor with 5 to 100 labels beside LGC/RP, LP, boosting + RP and the mean of the labels: R2 and coverage.

The paper's 14 tasks and the areas bundled with libpysal (see `areas`), random labels, a smaller set contained in the
larger ones of its split. By itself it takes more options: ``python -m benchmarks.few_labels [--tasks London areas ...]
[--splits 10] [--sizes 5 8 13 20 31 61 100] [--jobs 2] [--keep FILE]``. A row for every size: means over all runs, the
coverage of 90 % intervals of the worst task, and how many runs have R2 below -.1 where the mean of the labels has not,
ours and those of the others.
With ``--linear`` it is the coverage of the linear methods instead, where labels are more than coefficients.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import r2_score

from benchmarks.areas import areas
from benchmarks.paper_data import SETS, root, tasks
from benchmarks.pool import perform
from benchmarks.show import show
from graphmrf import GraphRegressor, LabelPropagation, LinearGraphConvolution, ResidualPropagation
from graphmrf.errors import GraphMRFError
from graphmrf.estimators.methods import METHODS as METHODS_BY_KEY
from graphmrf.field.matern import eigen
from graphmrf.metrics import coverage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.paper_data import Task
    from benchmarks.show import Row
    from graphmrf._typing import Bools, Floats

SIZES = (5, 8, 13, 20, 31, 61, 100)
METHODS = ("GR", "LGC/RP", "LP", "GB/RP", "mean")
MOST = 0.6
"""Largest part of the nodes that is labelled, so that something is left to predict of small areas."""
LINEAR = ("lp", "lr", "lgc", "sgc", "lr-rp", "sgc-rp", "lgc-rp")
"""Methods that are linear in the labels, by their keys."""
BAD = -0.1
"""R2 below which a prediction is clearly worse than the mean of the hidden outcomes."""
_NORMAL = 1.645
"""Half width of a 90 % interval in standard deviations."""


def run(*, quick: bool) -> list[Row]:
    """Run all tasks on this machine's cores; quick: London's wards at three sizes."""
    if quick:
        return measure(["London:income"], range(1), (5, 20), jobs=1)
    return measure([], range(10), SIZES, jobs=os.cpu_count() or 1)


def measure(
    wanted: Sequence[str],
    seeds: range,
    sizes: Sequence[int],
    *,
    jobs: int,
    keep: Path | None = None,
    linear: bool = False,
) -> list[Row]:
    """Return a row for each group of tasks and size, then for each task; finished splits go to the file `keep`."""
    if root() is None:
        return [{"skipped": "set GRAPHMRF_DATA to the folder of the raw data sets"}]
    names = [name for name in _names() if not wanted or name.startswith(tuple(wanted))]
    kept = [json.loads(line) for line in keep.read_text().splitlines()] if keep and keep.exists() else []
    rows: list[Row] = [row for row in kept if row["labels"] in sizes and row["seed"] in seeds and row["task"] in names]
    done = {(row["task"], row["seed"]) for row in rows}
    work = [(name, seed, tuple(sizes), linear) for seed in seeds for name in names if (name, seed) not in done]
    try:
        for _, found in perform(_one, work, jobs):
            rows += found
            if keep:
                with keep.open("a") as file:
                    file.writelines(json.dumps(row) + "\n" for row in found)
    except KeyboardInterrupt:
        print(f"stopped: {len(rows)} runs")
    return _coverages(rows) if linear else _tables(rows)


def _coverages(rows: list[Row]) -> list[Row]:
    """Return the mean coverage of every linear method by size, and how many runs had error bars at all."""
    told: list[Row] = []
    for size in sorted({row["labels"] for row in rows}):
        found = {key: [row[key] for row in rows if row["labels"] == size and np.isfinite(row[key])] for key in LINEAR}
        means = {key: float(np.mean(each)) for key, each in found.items() if each}
        told.append({"labels": str(size)} | means | {"runs": min(map(len, found.values()))})
    return told


def _tables(rows: list[Row]) -> list[Row]:
    groups = {"14 tasks": [r for r in rows if not r["task"].startswith("areas")]}
    groups["areas"] = [r for r in rows if r["task"].startswith("areas")]
    sizes = sorted({row["labels"] for row in rows})
    told = [
        {"tasks": title, "labels": str(size)} | _summary([row for row in group if row["labels"] == size])
        for title, group in groups.items()
        for size in sizes
        if any(row["labels"] == size for row in group)
    ]
    for name in dict.fromkeys(row["task"] for row in rows):
        for size in sizes:
            some = [row for row in rows if row["task"] == name and row["labels"] == size]
            told += [{"tasks": name, "labels": str(size)} | _summary(some)] if some else []
    return told


def _summary(rows: list[Row]) -> Row:
    means = {name: float(np.mean([row[name] for row in rows])) for name in (*METHODS, "90 %", "s")}
    each: dict[str, list[float]] = {}
    for row in rows:
        each.setdefault(row["task"], []).append(row["90 %"])
    worst = min(each, key=lambda name: float(np.mean(each[name])))
    bad = {name: sum(row[name] < BAD <= row["mean"] for row in rows) for name in METHODS}
    lowest = float(min(row["GR"] for row in rows))
    return means | {
        "worst task": float(np.mean(each[worst])),
        "which": worst,
        "bad": bad["GR"],
        "bad of LGC/RP, LP, GB/RP": " / ".join(str(bad[name]) for name in METHODS[1:4]),
        "lowest": lowest,
        "runs": len(rows),
    }


@cache
def _names() -> tuple[str, ...]:
    return tuple(_tasks())


@cache
def _tasks() -> dict[str, Task]:
    found = {f"{task.data}:{task.outcome}": task for task in tasks(SETS)}
    return found | {f"areas:{task.data}:{task.outcome}": task for task in areas()}


def _one(work: tuple[str, int, tuple[int, ...], bool]) -> list[Row]:
    name, seed, sizes, linear = work
    task = _tasks()[name]
    n, rows = len(task.y), list[dict[str, Any]]()
    order = np.random.default_rng(1000 + seed).permutation(n)
    if not linear:
        eigen(task.graph)  # found once for a graph, so no part of the seconds of a fit
    for size in sizes:
        if size <= MOST * n:
            labelled = np.isin(np.arange(n), order[:size])
            scores = _linear_coverage(task, labelled) if linear else _scores(task, labelled)
            rows.append({"task": name, "seed": seed, "labels": size} | scores)
    return rows


def _linear_coverage(task: Task, labelled: Bools) -> Row:
    """Return the coverage of 90 % intervals by every linear method; NaN where it has no error bars."""
    y, hidden, row = np.where(labelled, task.y, np.nan), ~labelled, dict[str, Any]()
    for key in LINEAR:
        mean, std = METHODS_BY_KEY[key].make().fit(task.graph, task.X, y).predict(return_std=True)
        inside = np.abs(task.y - mean) <= _NORMAL * std
        row[key] = float("nan") if np.isnan(std).any() else float(inside[hidden].mean())
    return row


def _scores(task: Task, labelled: Bools) -> Row:
    y, hidden = np.where(labelled, task.y, np.nan), ~labelled
    start = time.perf_counter()
    model = GraphRegressor().fit(task.graph, task.X, y)
    prediction, (low, high) = model.predict(), model.predict_interval(0.9)
    seconds = time.perf_counter() - start
    row: Row = {"mean": float(r2_score(task.y[hidden], np.full(hidden.sum(), task.y[labelled].mean())))}
    row |= {"GR": float(r2_score(task.y[hidden], prediction[hidden])), "s": seconds}
    row |= {"90 %": float(coverage(task.y[hidden], low[hidden], high[hidden]))}
    for name, (method, X) in _others(task).items():
        row[name] = _r2(method, task, X, y, hidden, otherwise=row["mean"])
    return row


def _others(task: Task) -> dict[str, tuple[Any, Floats]]:
    S, X = task.graph.S, task.X
    boosting = HistGradientBoostingRegressor(max_iter=200, learning_rate=0.05, max_leaf_nodes=15, random_state=0)
    return {
        "LP": (LabelPropagation(), X),
        "LGC/RP": (ResidualPropagation(LinearGraphConvolution()), X),
        "GB/RP": (ResidualPropagation(boosting), np.hstack([X, S @ X, S @ (S @ X)])),
    }


def _r2(method: Any, task: Task, X: Floats, y: Floats, hidden: Bools, *, otherwise: float) -> float:
    """Return the score of a method; that of the mean of the labels where it refuses so few."""
    try:
        return float(r2_score(task.y[hidden], method.fit(task.graph, X, y).predict()[hidden]))
    except GraphMRFError:
        return otherwise


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.few_labels", description=__doc__)
    parser.add_argument("--tasks", nargs="*", default=[], help="how names begin: U.S.:income, London, areas")
    parser.add_argument("--splits", type=int, default=10, help="number of splits")
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SIZES), help="numbers of labels")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--keep", type=Path, help="file of finished splits, which are not repeated")
    parser.add_argument("--linear", action="store_true", help="coverage of the linear methods instead")
    given = parser.parse_args()
    options = {"jobs": given.jobs, "keep": given.keep, "linear": given.linear}
    show("few_labels", __doc__, measure(given.tasks, range(given.splits), given.sizes, **options))


if __name__ == "__main__":
    main()

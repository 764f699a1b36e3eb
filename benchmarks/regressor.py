"""GraphRegressor beside LP, LR, LGC, LGC/RP and gradient boosting + RP: R2, coverage, log score, time; 10 splits.

``python -m benchmarks.regressor [--tasks U.S.:income London ...] [--splits 10] [--first 0] [--fraction 0.3] [--jobs 2]
[--alone]``. Tasks are the paper's 14 real ones and, named "synthetic", those of its synthetic table, where the
column "true" is the optimum: the expectation given features and labels under the parameters that made the data.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from benchmarks.paper_data import Task, root, tasks
from benchmarks.show import show, timed
from graphmrf import GaussianMRF, Graph, LabelPropagation, LinearGraphConvolution, LinearRegression, ResidualPropagation
from graphmrf.estimators.graph_regressor import GraphRegressor
from graphmrf.linalg.matern import eigen
from graphmrf.metrics import coverage, log_score, r2
from graphmrf.selection import split

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.show import Row
    from graphmrf._typing import Bools, Floats

LEVELS = (0.5, 0.8, 0.9, 0.95)
STRENGTHS = (1, 10, 100)
BOOSTING = HistGradientBoostingRegressor(max_iter=200, learning_rate=0.05, max_leaf_nodes=15, random_state=0)


def run(*, quick: bool) -> list[Row]:
    """Run all tasks on this machine's cores."""
    return measure([], range(2 if quick else 10), jobs=os.cpu_count() or 1)


def measure(wanted: list[str], seeds: range, *, fraction: float = 0.3, jobs: int = 2, alone: bool = False) -> list[Row]:
    """Return one row for each task, and one of means."""
    if root() is None:
        return [{"skipped": "set GRAPHMRF_DATA to the folder of the raw data sets"}]
    names = [name for name in _all() if not wanted or any(part in name for part in wanted)]
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["NUMBA_NUM_THREADS"] = "1"  # for the workers: one core each
    work = [(name, seed, fraction, alone) for name in names for seed in seeds]
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        results = list(pool.map(_one, work, chunksize=max(1, min(len(seeds), len(work) // jobs))))
    rows = [_mean(name, results[k * len(seeds) : (k + 1) * len(seeds)]) for k, name in enumerate(names)]
    real = [row for row in rows if not row["task"].startswith("synthetic")]
    return [*rows, *([_mean("mean of real tasks", real)] if len(real) > 1 else [])]


def _mean(name: str, rows: list[Row]) -> Row:
    keys = [key for key in rows[0] if key != "task"]
    return {"task": name} | {key: float(np.mean([row[key] for row in rows])) for key in keys}


@cache
def _all() -> dict[str, Task]:
    found = {f"{task.data}:{task.outcome}": task for task in tasks()}
    return found | {f"synthetic:h{h}:{k}": task for h in STRENGTHS for k, task in enumerate(_synthetic(h))}


def _synthetic(h: int) -> Iterator[Task]:
    folder = os.environ.get("GRAPHMRF_CLEAN_DATA")
    if folder is None:
        return
    with np.load(Path(folder) / "synthetic" / f"WattsStrogatzOriginal_h{h}.npz") as data:
        A, edges = data["attributes"][0], data["edges"]
    graph = Graph.from_edges(edges[:, 0], edges[:, 1], n_nodes=len(A))
    for k in range(A.shape[1]):
        yield Task(f"synthetic h{h}", str(k), graph, np.delete(A, k, axis=1), A[:, k])


def _one(work: tuple[str, int, float, bool]) -> Row:
    name, seed, fraction, alone = work
    task = _all()[name]
    labelled = split(len(task.y), fraction, seed=seed)
    y, hidden = np.where(labelled, task.y, np.nan), ~labelled
    basis, _ = timed(lambda: eigen(task.graph))
    seconds, model = timed(lambda: GraphRegressor().fit(task.graph, task.X, y))
    mean, std = model.predict(return_std=True)
    row: Row = {"GR": r2(task.y[hidden], mean[hidden])}
    if not alone:
        row |= _others(task, y, hidden)
    if name.startswith("synthetic"):
        row["true"] = _optimum(task, name, y, hidden)
    for kind, level in ((kind, level) for kind in ("field", "conformal") for level in LEVELS):
        low, high = model.predict_interval(level, interval=kind)
        row[f"{kind[:4]} {level:.0%}"] = coverage(task.y[hidden], low[hidden], high[hidden])
    row |= {
        "log score": log_score(task.y[hidden], mean[hidden], std[hidden]),
        "fit s": seconds,
        "eigenvectors s": basis,
    }
    return row | {"evaluations": model.n_evaluations_}


def _others(task: Task, y: Floats, hidden: Bools) -> Row:
    S, X = task.graph.S, task.X
    methods: dict[str, tuple[Any, Floats]] = {
        "LP": (LabelPropagation(), X),
        "LR": (LinearRegression(), X),
        "LGC": (LinearGraphConvolution(), X),
        "LGC/RP": (ResidualPropagation(LinearGraphConvolution()), X),
        "GB/RP": (ResidualPropagation(BOOSTING), np.hstack([X, S @ X, S @ (S @ X)])),
    }
    row: Row = {}
    for name, (method, features) in methods.items():
        row[name] = r2(task.y[hidden], method.fit(task.graph, features, y).predict()[hidden])
    mean, std = methods["LGC/RP"][0].predict(return_std=True)
    return row | {"LGC/RP log score": log_score(task.y[hidden], mean[hidden], std[hidden])}


def _optimum(task: Task, name: str, y: Floats, hidden: Bools) -> float:
    k, h = int(task.outcome), name.split(":")[1]
    with np.load(Path(os.environ["GRAPHMRF_CLEAN_DATA"]) / "synthetic" / f"WattsStrogatzOriginal_{h}.npz") as data:
        mrf = GaussianMRF(data["H"], data["h"])
    posterior = mrf.condition(task.graph, np.insert(task.X, k, y, axis=1))
    return r2(task.y[hidden], posterior.mean[hidden, k])


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.regressor", description=__doc__)
    parser.add_argument("--tasks", nargs="*", default=[], help="parts of names, as U.S.:income, London, synthetic")
    parser.add_argument("--splits", type=int, default=10, help="number of splits")
    parser.add_argument("--first", type=int, default=0, help="seed of the first split")
    parser.add_argument("--fraction", type=float, default=0.3, help="part of the nodes that is labelled")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--alone", action="store_true", help="leave the other methods out")
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.splits)
    rows = measure(given.tasks, seeds, fraction=given.fraction, jobs=given.jobs, alone=given.alone)
    show("regressor", __doc__, rows)


if __name__ == "__main__":
    main()

"""Land temperature under clouds with the split of a published competition, beside the competition's own table.

150,000 cells of MODIS, 105,569 of them for training and 42,740 to be predicted: Heaton and others (2019), "A Case Study
Competition Among Methods for Analyzing Large Spatial Data", Journal of Agricultural, Biological and Environmental
Statistics 24, 398-425, doi:10.1007/s13253-018-00348-w. MAE, RMSE, CRPS (of normal predictions, as there), interval
score and coverage of 95 % intervals, coverage of 90 % intervals overall and by steps to the nearest label, wall-clock
time and peak memory; each method runs in a process of its own. ``python -m benchmarks.heaton [--methods GraphRegressor
LGC/RP ...] [--threads 2] [--size N]``. With ``--size`` it is a connected part of N cells, to which the
published numbers do not apply.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.metrics import r2_score

from benchmarks.holes import BOTH, LINEAR, METHODS, OURS, bands, crps, forecast, steps
from benchmarks.more_data import breadth_first, competition, more_root
from benchmarks.pool import NO_DATA, ONE_THREAD
from benchmarks.show import peak_gigabytes, show
from graphmrf.graph import Graph
from graphmrf.metrics import coverage

if TYPE_CHECKING:
    from benchmarks.holes import Forecast
    from benchmarks.more_data import Task
    from benchmarks.show import Row
    from graphmrf._typing import Bools, Floats

OWN = [OURS, LINEAR, BOTH]
"""Methods that are measured here."""
ALPHA = 0.05
"""One less the level of the intervals of the competition."""


class Published(NamedTuple):
    """A row of the competition's table for the satellite data: scores, minutes and cores."""

    mae: float
    rmse: float
    crps: float
    interval_score: float
    coverage: float
    minutes: float
    cores: int


PUBLISHED = {
    "SPDE": Published(1.10, 1.53, 0.83, 8.85, 0.97, 120.33, 2),
    "NNGP": Published(1.21, 1.64, 0.85, 7.57, 0.95, 2.06, 10),
    "LatticeKrig": Published(1.22, 1.68, 0.87, 7.55, 0.96, 27.92, 1),
    "Periodic embedding": Published(1.29, 1.79, 0.91, 7.44, 0.93, 9.81, 1),
    "Partition": Published(1.41, 1.80, 1.02, 10.49, 0.86, 79.98, 55),
    "MRA": Published(1.33, 1.85, 0.94, 8.00, 0.92, 15.61, 1),
    "Gapfill": Published(1.33, 1.86, 1.17, 34.78, 0.36, 1.39, 40),
    "LAGP": Published(1.65, 2.08, 1.17, 10.81, 0.83, 2.27, 40),
    "FRK": Published(1.96, 2.44, 1.44, 14.08, 0.79, 2.32, 1),
    "Tapering": Published(1.87, 2.45, 1.32, 10.31, 0.93, 133.26, 1),
    "Metakriging": Published(2.08, 2.50, 1.44, 10.77, 0.89, 2888.52, 30),
    "Pred. Proc.": Published(2.15, 2.64, 1.55, 15.51, 0.83, 160.24, 10),
}
"""From memory, and to be compared with the paper before they are published, but for the RMSE of those below."""

CHECKED = ("SPDE", "LatticeKrig", "Periodic embedding", "Gapfill", "LAGP")
"""Methods whose RMSE was compared with a second source, russellgoebel.com/posts/kriging-competition."""


def run(*, quick: bool) -> list[Row]:
    """Run our three methods with two threads; quick: on a part of 2,000 cells."""
    return NO_DATA if more_root() is None else measure(OWN, size=2000 if quick else None, threads=2)


def measure(methods: list[str], *, size: int | None, threads: int) -> list[Row]:
    """Return a row for each method, each of a new process, and the rows of the competition."""
    os.environ.update(dict.fromkeys(ONE_THREAD, str(threads)))  # for the processes, which read it when they start
    rows = []
    for method in methods:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            rows.append(pool.submit(run_method, method, size).result())
    return rows + ([] if size else list(map(_as_row, PUBLISHED)))


def run_method(method: str, size: int | None) -> Row:
    """Return the scores of one method, its time, and the memory of this process."""
    task, labelled = _part(size) if size else competition()
    before = peak_gigabytes()
    found = forecast(method, task.graph, task.X, np.where(labelled, task.y, np.nan))
    row: Row = {"method": method} | _scores(task, labelled, found)
    return row | {"minutes": found.seconds / 60, "peak GB": peak_gigabytes(), "peak GB before": before}


def _part(size: int) -> tuple[Task, Bools]:
    """Return a connected part around the first cell that is four steps from a label, with its part of the split."""
    task, labelled = competition()
    start = int(np.flatnonzero(task.known & (steps(task.graph, labelled) == 4))[0])
    nodes = np.sort(breadth_first(task.graph, start)[:size])
    graph = Graph(task.graph.adjacency[nodes][:, nodes])
    return replace(task, graph=graph, X=task.X[nodes], y=task.y[nodes]), labelled[nodes]


def _scores(task: Task, labelled: Bools, found: Forecast) -> Row:
    hidden = task.known & ~labelled
    truth, mean = task.y[hidden], found.mean[hidden]
    row: Row = {"MAE": float(np.mean(np.abs(truth - mean))), "RMSE": float(np.sqrt(np.mean((truth - mean) ** 2)))}
    outer, inner = found.interval(1 - ALPHA), found.interval(0.9)
    if found.std is not None and outer is not None and inner is not None:
        low, high = (end[hidden] for end in outer)
        row |= {"CRPS": float(np.mean(crps(truth, mean, found.std[hidden]))), "INT": interval_score(truth, low, high)}
        row |= {"CVG": coverage(truth, low, high), "90 %": coverage(truth, inner[0][hidden], inner[1][hidden])}
        inside = (inner[0] <= task.y) & (task.y <= inner[1])
        for name, chosen in bands(steps(task.graph, labelled)[hidden]).items():
            row[f"90 % at {name}"] = float(inside[hidden][chosen].mean()) if chosen.any() else None
    for name, chosen in bands(steps(task.graph, labelled)[hidden]).items():
        errors = (truth - mean)[chosen]
        row[f"RMSE at {name}"] = float(np.sqrt(np.mean(errors**2))) if chosen.any() else None
    return row | {"R2": float(r2_score(truth, mean)), "nodes": task.y.size, "labels": int(labelled.sum())}


def interval_score(y: Floats, low: Floats, high: Floats) -> float:
    r"""Mean interval score :math:`u - l + \frac{2}{\alpha} [(l - y)_+ + (y - u)_+]`; smaller is better."""
    outside = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    return float(np.mean(high - low + 2.0 / ALPHA * outside))


def _as_row(name: str) -> Row:
    row = PUBLISHED[name]
    source = "from memory, RMSE checked" if name in CHECKED else "from memory"
    scores = {"MAE": row.mae, "RMSE": row.rmse, "CRPS": row.crps, "INT": row.interval_score, "CVG": row.coverage}
    return {"method": name} | scores | {"minutes": row.minutes, "cores": row.cores, "source": source}


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.heaton", description=__doc__)
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=OWN)
    parser.add_argument("--threads", type=int, default=2, help="threads of each method")
    parser.add_argument("--size", type=int, help="cells of a connected part, to try it")
    given = parser.parse_args()
    if more_root() is None:
        show("heaton", __doc__, NO_DATA)
        return
    show("heaton", __doc__, measure(given.methods, size=given.size, threads=given.threads))


if __name__ == "__main__":
    main()

"""Time and peak memory of GraphRegressor beside boosting with residual propagation, with R2 and coverage.

Every run is a process of its own with 2 threads, and a fit of a small graph comes first, so that all code is loaded.
Cases: 2,000 nodes with 600 labels, New York tracts (2,116; 634), King County (21,613; 6,483), and houses like those of
another county (25,357; 7,607): clustered points with 12 features, joined to their 6 nearest neighbours, by which
scaling is measured, too: 2,000, 10,000 and 100,000 nodes with 5 and 33 % of the labels. Networks of 20,000 and 60,000
nodes have communities and degrees with a heavy tail, so that no sparse factor exists.
``python -m benchmarks.core_speed [--cases small nyc king county network scaling] [--methods ...] [--threads 2]
[--limit 1800] [--keep FILE]``. "times" and "times CPU" are ratios of wall-clock and CPU times; on a busy machine
compare the latter. A run
that takes longer than the limit is stopped and shown as not finished.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.holes import BOTH, METHODS, OURS, forecast, scores
from benchmarks.more_data import Task, load, more_root
from benchmarks.pool import ONE_THREAD
from benchmarks.show import peak_gigabytes, show
from graphmrf.graph import Graph
from graphmrf.selection import split

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.show import Row
    from graphmrf._typing import Bools

FEATURES = 12
NEIGHBOURS = 6
WARM = "houses:400:120"
CASES = {
    "small": ("houses:2000:600",),
    "nyc": ("nyc:unemp_rate",),
    "king": ("king_county:log_price",),
    "county": ("houses:25357:7607",),
    "network": tuple(f"network:{n}:{3 * n // 10}" for n in (20_000, 60_000)),
    "scaling": tuple(f"houses:{n}:{n // part}" for n in (2_000, 10_000, 100_000) for part in (20, 3)),
}
GOALS = {"houses:2000:600": 3.0, "king_county:log_price": 15.0, "houses:25357:7607": 15.0}
"""How many times as long as boosting with residual propagation a fit may take."""


def houses(n: int, *, seed: int = 0) -> Task:
    """Return clustered points with features, and a price that depends on them, on the place and on chance."""
    rng = np.random.default_rng(seed)
    towns = max(n // 250, 4)
    centres, widths = rng.uniform(size=(towns, 2)), 0.02 * rng.lognormal(sigma=0.7, size=towns)
    town = rng.choice(towns, size=n, p=rng.dirichlet(np.ones(towns)))
    points = centres[town] + widths[town, None] * rng.normal(size=(n, 2))
    waves, phases = rng.normal(scale=6.0, size=(2, 30)), rng.uniform(0, 2 * np.pi, size=30)
    place = np.cos(points @ waves + phases) @ rng.normal(size=30) / 30**0.5
    X = rng.normal(size=(n, FEATURES)) + 0.5 * (points @ rng.normal(size=(2, FEATURES)))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    effect = X @ rng.normal(size=FEATURES) / FEATURES**0.5 + 0.5 * np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] * X[:, 2]
    y = effect + place + 0.3 * rng.normal(scale=0.3, size=towns)[town] + 0.4 * rng.normal(size=n)
    return Task(f"houses:{n}", Graph.from_knn(points, NEIGHBOURS), X, y, "points")


def network(n: int, *, degree: int = 15, seed: int = 0) -> Task:
    """Return people in communities with degrees of a heavy tail, and an outcome that friends and communities share."""
    rng = np.random.default_rng(seed)
    sociable, group = np.minimum(rng.pareto(1.5, n) + 1.0, n**0.5), rng.integers(0, n // 200, n)
    order = np.argsort(group, kind="stable")
    ends = np.cumsum(sociable[order])
    first, last = (np.searchsorted(group[order], group, side=side) for side in ("left", "right"))
    start = np.append(0.0, ends)
    u = rng.choice(n, n * degree // 2, p=sociable / sociable.sum())
    inside = rng.random(u.size) < 0.7
    low, high = np.where(inside, start[first[u]], 0.0), np.where(inside, start[last[u]], ends[-1])
    v = order[np.minimum(np.searchsorted(ends, rng.uniform(low, high)), n - 1)]
    graph = Graph.from_edges(u[u != v], v[u != v], n_nodes=n)
    effect = rng.normal(size=n // 200)[group]
    X = rng.normal(size=(n, FEATURES))
    X[:, :3] += 0.7 * effect[:, None]
    field = effect + 1.5 * (graph.S @ rng.normal(size=n))
    y = X @ rng.normal(size=FEATURES) / FEATURES**0.5 + 0.5 * np.sin(2 * X[:, 0]) + field + 0.6 * rng.normal(size=n)
    return Task(f"network:{n}", graph, X, y, "links")


def run(*, quick: bool) -> list[Row]:
    """Run all cases, or the smallest one."""
    cases = ["small"] if quick else _available(list(CASES))
    return list(measure(cases, [OURS, BOTH], threads=2, limit=1800.0, keep=None))


def _available(cases: list[str]) -> list[str]:
    """Return the cases whose data are there."""
    return [case for case in cases if more_root() is not None or case not in ("nyc", "king")]


def measure(cases: list[str], methods: list[str], *, threads: int, limit: float, keep: Path | None) -> Iterator[Row]:
    """Yield a row for each case: sizes, and of every method time, memory, R2 and coverage."""
    lines = keep.read_text().splitlines() if keep is not None and keep.exists() else []
    found = {tuple(key): row for key, row in map(json.loads, lines)}
    for case in dict.fromkeys(each for name in cases for each in CASES[name]):
        row: Row = {"case": case}
        for method in methods:
            if (case, method) not in found:
                found[case, method] = _new_process(case, method, threads, limit)
                if keep is not None:
                    with keep.open("a") as file:
                        file.write(json.dumps([[case, method], found[case, method]]) + "\n")
            row |= _columns(method, found[case, method])
        yield row | _ratio(row, case)


def _columns(method: str, found: Row) -> Row:
    sizes = {key: found[key] for key in ("nodes", "labels") if key in found}
    title = {OURS: "GR", BOTH: "GB/RP"}.get(method, method)
    return sizes | {f"{title} {key}": found.get(key) for key in ("s", "CPU s", "GB", "R2", "90 %")}


def _ratio(row: Row, case: str) -> Row:
    ours, theirs = row.get("GR s"), row.get("GB/RP s")
    if not isinstance(ours, float) or not isinstance(theirs, float):
        return {}
    cpu = {"times CPU": row["GR CPU s"] / row["GB/RP CPU s"]}
    return {"times": ours / theirs} | cpu | ({"goal": GOALS[case]} if case in GOALS else {})


def _new_process(case: str, method: str, threads: int, limit: float) -> Row:
    command = [sys.executable, "-m", "benchmarks.core_speed", "--one", case, method]
    environment = os.environ | dict.fromkeys(ONE_THREAD, str(threads))
    try:
        run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, timeout=limit, check=True)
    except subprocess.TimeoutExpired:
        return {"s": f"> {limit:.0f}"}
    row: Row = json.loads(run.stdout.splitlines()[-1])
    return row


def run_one(case: str, method: str) -> Row:
    """Return the scores of one run in this process, after a small one."""
    warm, known = _case(WARM)
    forecast(method, warm.graph, warm.X, np.where(known, warm.y, np.nan))
    task, labelled = _case(case)
    before = time.process_time()
    found = forecast(method, task.graph, task.X, np.where(labelled, task.y, np.nan))
    measured = {"CPU s": time.process_time() - before, "GB": peak_gigabytes()}
    return scores(task, labelled, found) | measured


MADE = {"houses": houses, "network": network}


def _case(name: str) -> tuple[Task, Bools]:
    kind, size, *labels = name.split(":")
    task = MADE[kind](int(size)) if kind in MADE else load(name)
    return task, split(task.known, int(labels[0]) / int(size) if labels else 0.3)


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.core_speed", description=__doc__)
    parser.add_argument("--cases", nargs="*", choices=list(CASES), default=list(CASES))
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=[OURS, BOTH])
    parser.add_argument("--threads", type=int, default=2, help="threads of each run")
    parser.add_argument("--limit", type=float, default=1800.0, help="seconds after which a run is stopped")
    parser.add_argument("--keep", type=Path, help="file of finished runs, which are not repeated")
    parser.add_argument("--one", nargs=2, metavar=("CASE", "METHOD"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(run_one(*given.one)))
        return
    cases = _available(given.cases)
    options = {"threads": given.threads, "limit": given.limit, "keep": given.keep}
    show("core_speed", __doc__, list(measure(cases, given.methods, **options)))


if __name__ == "__main__":
    main()

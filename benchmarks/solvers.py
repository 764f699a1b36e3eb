"""The two solvers of GraphRegressor where both run: R2 of each on the paper's tasks, and how far they agree.

One split with 30 % of the nodes labelled. "agreement" is the correlation of the two predictions of the hidden outcomes.

``python -m benchmarks.solvers --foreseen [power:20000:40 map:20000:40 ...]`` compares the seconds that `exact_cost` and
`sparse_cost` foresee, by which GraphRegressor chooses, with those that a fit and prediction take (of the processor, on
one core), with the R2 and coverage of 90 % intervals of both. Graphs are power-law ones or random maps, of so many
nodes and labels, with five features.
"""

from __future__ import annotations

import argparse
import os
import time
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial import cKDTree
from sklearn.metrics import r2_score

from benchmarks.paper_data import SETS, root, tasks
from benchmarks.pool import perform
from benchmarks.show import show, timed
from benchmarks.workload import power_law_graph
from graphmrf import Graph, GraphRegressor
from graphmrf.field.fit import choose_solver, exact_cost, sparse_cost
from graphmrf.linalg import smooth
from graphmrf.metrics import coverage
from graphmrf.selection import split

if TYPE_CHECKING:
    from benchmarks.show import Row
    from graphmrf._typing import Bools, Floats

CASES = ("power:1000:300", "power:5000:1500", "power:20000:40", "map:20000:40", "power:20000:1000", "power:50000:100")
FEATURES = 5
LEVEL = 0.9


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
    labelled = split(len(task.y), 0.3, seed=0)
    y, hidden = np.where(labelled, task.y, np.nan), ~labelled
    row: Row = {}
    answers = []
    for solver in ("exact", "sparse"):
        seconds, model = timed(partial(GraphRegressor(solver=solver).fit, task.graph, task.X, y))
        answers.append(model.predict()[hidden])
        row |= {f"{solver} R2": r2_score(task.y[hidden], answers[-1]), f"{solver} s": seconds}
    return row | {"agreement": float(np.corrcoef(*answers)[0, 1])}


def foreseen(cases: list[str], seeds: int, solvers: list[str]) -> list[Row]:
    """Return foreseen and measured seconds of every case, solver and seed, R2 and coverage."""
    costs = {"exact": exact_cost, "sparse": sparse_cost}
    rows: list[Row] = []
    for case in ("power:2100:50", *cases):  # the first loads all code, and is not shown
        for seed in range(seeds if rows else 1):
            graph, X, y, labelled = made(case, seed)
            m = int(labelled.sum())
            chosen = choose_solver(graph, m, FEATURES)[0]
            for solver in solvers:
                seconds, needed = costs[solver](graph, m, FEATURES)
                row: Row = {"case": case, "seed": seed, "solver": solver, "chosen": solver == chosen}
                row |= {"foreseen s": seconds, **_measured(graph, X, y, labelled, solver), "foreseen GB": needed / 1e9}
                rows.append(row)
    return [row for row in rows if row["case"] in cases]


def _measured(graph: Graph, X: Floats, y: Floats, labelled: Bools, solver: str) -> Row:
    before, hidden = time.process_time(), ~labelled
    model = GraphRegressor(solver=solver, exact_limits=(y.size, y.size)).fit(graph, X, np.where(labelled, y, np.nan))
    low, high = model.predict_interval(LEVEL)
    return {
        "measured s": time.process_time() - before,
        "R2": r2_score(y[hidden], model.predict()[hidden]),
        f"coverage of {LEVEL:.0%}": coverage(y[hidden], low[hidden], high[hidden]),
    }


def made(case: str, seed: int) -> tuple[Graph, Floats, Floats, Bools]:
    """Return linear effects of own and smoothed features, a field, and noise."""
    kind, (n, m) = case.split(":")[0], map(int, case.split(":")[1:])
    rng, graph = np.random.default_rng(seed), GRAPHS[kind](n, seed)
    X = rng.standard_normal((n, FEATURES))
    sources = np.column_stack([X @ rng.standard_normal(FEATURES), rng.standard_normal(n)])
    smoothed, field = smooth(graph, sources, [0.8, 0.95], tolerance=1e-6).T
    parts = [X @ rng.standard_normal(FEATURES), 0.5 * smoothed / smoothed.std(), field / field.std()]
    y = parts[0] / parts[0].std() + parts[1] + parts[2] + 0.5 * rng.standard_normal(n)
    labelled = np.zeros(n, dtype=np.bool_)
    labelled[rng.permutation(n)[:m]] = True
    return graph, X, np.asarray(y), labelled


def random_map(n: int, seed: int) -> Graph:
    """Return a random geometric graph in the plane, with eight neighbours on average."""
    pairs = cKDTree(np.random.default_rng(seed).random((n, 2))).query_pairs(np.sqrt(8.0 / (np.pi * n)))
    u, v = np.array(sorted(pairs)).T
    return Graph.from_edges(u, v, n_nodes=n)


GRAPHS = {"power": lambda n, seed: power_law_graph(n, int(10.5 * n), seed), "map": random_map}


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.solvers", description=__doc__)
    parser.add_argument("--foreseen", nargs="*", default=None, help="cases of foreseen and measured times")
    parser.add_argument("--seeds", type=int, default=1, help="number of random data sets of each")
    parser.add_argument("--solvers", nargs="*", default=["exact", "sparse"], help="solvers to run")
    given = parser.parse_args()
    asked = given.foreseen is not None
    rows = foreseen(given.foreseen or list(CASES), given.seeds, given.solvers) if asked else run(quick=False)
    show("solvers", __doc__, rows)


if __name__ == "__main__":
    main()

"""A fit and prediction of GraphRegressor before and after a change, in one sitting: time, evaluations, R2, coverage.

``python -m benchmarks.field_speed --before DIR [--cases power:1000:300 U.S.:income London ...] [--splits 2]
[--keep FILE]`` runs every case with the sources of the tree DIR and with those of this one, each in a process of one
thread, after a fit of another graph, so that all code is loaded; without ``--before`` this tree alone. Cases are the
paper's tasks with 30 % of the nodes labelled, by how their names begin, and power-law graphs of so many nodes and
labels. Times are of the processor: the machine is shared.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import r2_score

import graphmrf
from benchmarks.paper_data import root, tasks
from benchmarks.pool import ONE_THREAD
from benchmarks.show import show, timed
from benchmarks.workload import power_law_graph
from graphmrf import GraphRegressor
from graphmrf.linalg import smooth
from graphmrf.metrics import coverage
from graphmrf.selection import split

if TYPE_CHECKING:
    from benchmarks.show import Row
    from graphmrf._typing import Bools, Floats
    from graphmrf.graph import Graph

HERE = Path(__file__).resolve().parent.parent
LEVEL = 0.9
FEATURES = 16
WARM = "power:2100:150"
"""The graph of the first fit, which is not timed: large enough for polynomials in place of eigenvectors."""
EVIDENCE = ("graphmrf.field.exact", "graphmrf.model.field.evidence")
"""Where the likelihood of the exact solver is, in this tree and in older ones."""
MADE = ("power:1000:300", "power:10000:3000")


def run(*, quick: bool) -> list[Row]:
    """Run this tree alone."""
    return measure([MADE[0]] if quick else [*MADE, "U.S.:income"], 1, {"after": HERE})


def measure(cases: list[str], splits: int, trees: dict[str, Path], keep: Path | None = None) -> list[Row]:
    """Return one row a case and tree, means over splits, and the ratio of times; finished runs are kept in a file."""
    kept = keep.read_text().splitlines() if keep is not None and keep.exists() else []
    found = {tuple(key): row for key, row in map(json.loads, kept)}
    rows = []
    for case in _named(cases):
        means = {}
        for title, tree in trees.items():
            for seed in range(splits):
                if (title, case, seed) not in found:
                    found[title, case, seed] = _in_tree(tree, case, seed)
                    if keep is not None:
                        with keep.open("a") as file:
                            file.write(json.dumps([[title, case, seed], found[title, case, seed]]) + "\n")
            each = [found[title, case, seed] for seed in range(splits)]
            means[title] = {key: float(np.mean([row[key] for row in each])) for key in each[0]}
            first = means[next(iter(trees))]["seconds"]
            rows.append({"case": case, "tree": title, **means[title], "times faster": first / means[title]["seconds"]})
    return rows


def _named(cases: list[str]) -> list[str]:
    made = [case for case in cases if case.startswith("power")]
    real = tuple(case for case in cases if case not in made)
    names = [f"{task.data}:{task.outcome}" for task in tasks()] if root() is not None and real else []
    return made + [name for name in names if name.startswith(real)]


def _in_tree(tree: Path, case: str, seed: int) -> Row:
    one = {**os.environ, **dict.fromkeys(ONE_THREAD, "1"), "PYTHONPATH": f"{tree / 'src'}:{HERE}"}
    command = [sys.executable, "-m", "benchmarks.field_speed", "--one", case, str(seed)]
    done = subprocess.run(command, env=one, cwd=HERE, check=True, capture_output=True, text=True)
    found: Row = json.loads(done.stdout.splitlines()[-1])
    return found


def _one(case: str, seed: int) -> Row:
    graph, X, y, labelled = _made(WARM, seed)
    GraphRegressor().fit(graph, X, np.where(labelled, y, np.nan)).predict_interval(LEVEL)
    graph, X, y, labelled = _made(case, seed) if case.startswith("power") else _task(case, seed)
    likelihoods = _counted()
    before = time.process_time()
    wall, model = timed(lambda: GraphRegressor().fit(graph, X, np.where(labelled, y, np.nan)))
    low, high = model.predict_interval(LEVEL)
    seconds, hidden = time.process_time() - before, ~labelled
    return {
        "nodes": graph.n_nodes,
        "labels": int(labelled.sum()),
        "seconds": seconds,
        "fit on the clock": wall,
        "likelihoods": len(likelihoods),
        "R2": r2_score(y[hidden], model.predict()[hidden]),
        f"coverage of {LEVEL:.0%}": coverage(y[hidden], low[hidden], high[hidden]),
    }


def _counted() -> list[int]:
    """Return a list of the numbers of labels of all likelihoods that the exact solver computes from now on."""
    found: list[int] = []
    tree = Path(graphmrf.__file__).parents[1]
    place = next(name for name in EVIDENCE if (tree / (name.replace(".", "/") + ".py")).exists())
    evidence = importlib.import_module(place).Evidence
    name = "expanded" if hasattr(evidence, "expanded") else "__call__"
    original = getattr(evidence, name)

    def counted(self: Any, theta: Floats) -> Any:
        found.append(self.z.size)
        return original(self, theta)

    setattr(evidence, name, counted)
    return found


def _task(case: str, seed: int) -> tuple[Graph, Floats, Floats, Bools]:
    found = next(task for task in tasks() if f"{task.data}:{task.outcome}" == case)
    return found.graph, found.X, found.y, split(len(found.y), 0.3, seed=seed)


def _made(case: str, seed: int) -> tuple[Graph, Floats, Floats, Bools]:
    """Return linear effects of own and smoothed features, one that is not linear, a field and noise."""
    n, m = (int(number) for number in case.split(":")[1:])
    rng, graph = np.random.default_rng(seed), power_law_graph(n, int(10.5 * n), seed)
    X = rng.standard_normal((n, FEATURES))
    sources = np.column_stack([X @ rng.standard_normal(FEATURES), rng.standard_normal(n)])
    smoothed, field = smooth(graph, sources, [0.8, 0.95], tolerance=1e-6).T
    parts = [X @ rng.standard_normal(FEATURES), smoothed, field, np.cos(1.5 * X[:, 0]) * X[:, 1]]
    y = sum((part / part.std() for part in parts), 0.5 * rng.standard_normal(n))
    labelled = np.zeros(n, dtype=np.bool_)
    labelled[rng.permutation(n)[:m]] = True
    return graph, X, np.asarray(y), labelled


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.field_speed", description=__doc__)
    parser.add_argument("--before", type=Path, help="another tree, whose sources are run first")
    parser.add_argument("--cases", nargs="*", default=[MADE[0], "U.S.:income", MADE[1]], help="see above")
    parser.add_argument("--splits", type=int, default=1, help="number of splits")
    parser.add_argument("--keep", type=Path, help="file of finished runs, which are not repeated")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(_one(given.one[0], int(given.one[1])), default=float))
        return
    trees = ({"before": given.before} if given.before else {}) | {"after": HERE}
    show("field_speed", __doc__, measure(given.cases, given.splits, trees, given.keep))


if __name__ == "__main__":
    main()

"""GraphRegressor beside LP, LR, LGC, LGC/RP and gradient boosting + RP on the paper's tasks: R2, coverage, log score.

Ten splits with 30 % of the nodes labelled, no test node used in any choice. By itself it takes more options:
``python -m benchmarks.accuracy [--tasks U.S.:income London ...] [--splits 10] [--fractions 0.05 0.1 0.3 0.6] [--jobs 2]
[--keep FILE]``. Tasks are the paper's 14 real ones; "unseen": the same of other years, by which nothing was chosen, and
of other countries; "synthetic": those of the paper's synthetic table, all on one draw; and "samples": the same with
every split on a draw of its own. There the column "true" is the optimum: the expectation given features and labels
under the parameters that made the data. Boosting sees the features `X`, `SX` and `S²X`.
"""

from __future__ import annotations

import argparse
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.metrics import r2_score

from benchmarks.paper_data import SETS, UNSEEN, Task, root, samples, tasks
from benchmarks.pool import resume
from benchmarks.show import show, timed
from graphmrf import (
    GraphRegressor,
    LabelPropagation,
    LinearGraphConvolution,
    LinearRegression,
    ResidualPropagation,
)
from graphmrf.metrics import coverage, log_score
from graphmrf.selection import split

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.show import Row
    from graphmrf._typing import Bools, Floats

LEVELS = (0.5, 0.8, 0.9, 0.95)
STRENGTHS = (1, 10, 100)
MADE = ("synthetic", "samples")
USUAL = (*SETS, *MADE)
OTHERS = ("LP", "LR", "LGC", "LGC/RP", "GB/RP")


class Work(NamedTuple):
    """One split of one task."""

    task: str
    fraction: float
    seed: int


def run(*, quick: bool) -> list[Row]:
    """Run all tasks on this machine's cores."""
    return measure([], range(1 if quick else 10), [0.3], jobs=os.cpu_count() or 1)


def measure(
    wanted: Sequence[str], seeds: range, fractions: Sequence[float], *, jobs: int, keep: Path | None = None
) -> list[Row]:
    """Return one row for each task and fraction, and rows of means; finished splits are added to the file `keep`."""
    if root() is None:
        return [{"skipped": "set GRAPHMRF_DATA to the folder of the raw data sets"}]
    names = [name for name in _all() if name.startswith(tuple(wanted) or USUAL)]
    work = [Work(name, fraction, seed) for fraction in fractions for name in names for seed in seeds]
    found = resume(_one, work, jobs, keep)
    rows = []
    for fraction in fractions:
        splits = {name: [found[w] for w in work if w in found and w[:2] == (name, fraction)] for name in names}
        each = [_mean(name, scores) for name, scores in splits.items() if scores]
        rows += [{"labelled": f"{fraction:.0%}", **row} for row in (*each, *_summary(each))]
    return rows


def _mean(name: str, rows: list[Row]) -> Row:
    means = {key: float(np.mean([row[key] for row in rows])) for key in rows[0] if key != "task"}
    return {"task": name} | ({"GR": means["GR"], "±": float(np.std([row["GR"] for row in rows]))} | means)


def _summary(rows: list[Row]) -> Iterator[Row]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        first, *rest = row["task"].split(":")
        title = f"mean, {first} {rest[0]}" if first in MADE else "mean, unseen" if first == "unseen" else "mean, real"
        groups.setdefault(title, []).append(row)
    for title, group in groups.items():
        if len(group) > 1:
            ahead = [row["GR"] - max(row[name] for name in OTHERS) for row in group]
            best = sum(margin >= -0.002 for margin in ahead)
            beaten = sum(row["log score"] > row["LGC/RP log score"] for row in group)
            yield _mean(title, group) | {
                "best or tied": f"{best} of {len(group)}",
                "least margin": min(ahead),
                "better log score": f"{beaten} of {len(group)}",
            }


@cache
def _all() -> dict[str, Task]:
    found = {f"{task.data}:{task.outcome}": task for task in tasks(SETS)}
    found |= {f"unseen:{task.data}:{task.outcome}": task for task in tasks(UNSEEN)}
    made = [(kind, h, k) for kind in MADE for h in STRENGTHS for k in range(5)]
    return found | {f"{kind}:h{h}:{k}": _synthetic(h, 0, k) for kind, h, k in made}


def _synthetic(h: int, draw: int, k: int) -> Task:
    graph, draws, _ = samples(h)
    A = draws[draw]
    return Task(f"h{h}", str(k), graph, np.delete(A, k, axis=1), A[:, k])


def _task(work: Work) -> Task:
    kind, *place = work.task.split(":")
    return _synthetic(int(place[0][1:]), work.seed, int(place[1])) if kind == "samples" else _all()[work.task]


def _one(work: Work) -> Row:
    task = _task(work)
    labelled = split(len(task.y), work.fraction, random_state=work.seed)
    y, hidden = np.where(labelled, task.y, np.nan), ~labelled
    basis, _ = timed(lambda: task.graph.eigenpairs)
    seconds, model = timed(lambda: GraphRegressor().fit(task.graph, task.X, y))
    mean, std = model.predict(return_std=True)
    row: Row = {"GR": r2_score(task.y[hidden], mean[hidden])} | _others(task, y, hidden)
    if work.task.startswith(MADE):
        row["true"] = _optimum(task, y, hidden)
    for kind, level in ((kind, level) for kind in ("field", "conformal") for level in LEVELS):
        low, high = model.predict_interval(level, interval=kind)
        row[f"{kind[:4]} {level:.0%}"] = coverage(task.y[hidden], low[hidden], high[hidden])
    row |= {"log score": log_score(task.y[hidden], mean[hidden], std[hidden])}
    return row | {"fit s": seconds, "eigenvectors s": basis}


def _others(task: Task, y: Floats, hidden: Bools) -> Row:
    from sklearn.ensemble import HistGradientBoostingRegressor

    S, X = task.graph.S, task.X
    boosting = HistGradientBoostingRegressor(max_iter=200, learning_rate=0.05, max_leaf_nodes=15, random_state=0)
    methods: dict[str, tuple[Any, Floats]] = {
        "LP": (LabelPropagation(), X),
        "LR": (LinearRegression(), X),
        "LGC": (LinearGraphConvolution(shrinkage=0), X),
        "LGC/RP": (ResidualPropagation(LinearGraphConvolution()), X),
        "GB/RP": (ResidualPropagation(boosting), np.hstack([X, S @ X, S @ (S @ X)])),
    }
    row: Row = {}
    for name, (method, features) in methods.items():
        row[name] = r2_score(task.y[hidden], method.fit(task.graph, features, y).predict()[hidden])
    mean, std = methods["LGC/RP"][0].predict(return_std=True)
    return row | {"LGC/RP log score": log_score(task.y[hidden], mean[hidden], std[hidden])}


def _optimum(task: Task, y: Floats, hidden: Bools) -> float:
    k, mrf = int(task.outcome), samples(int(task.data[1:]))[2]
    posterior = mrf.condition(task.graph, np.insert(task.X, k, y, axis=1))
    return float(r2_score(task.y[hidden], posterior.mean[hidden, k]))


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("--tasks", nargs="*", default=[], help="how names begin: U.S.:income, London, unseen, samples")
    parser.add_argument("--splits", type=int, default=10, help="number of splits")
    parser.add_argument(
        "--fractions", type=float, nargs="*", default=[0.3], help="parts of the nodes that are labelled"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--keep", type=Path, help="file of finished splits, which are not repeated")
    given = parser.parse_args()
    rows = measure(given.tasks, range(given.splits), given.fractions, jobs=given.jobs, keep=given.keep)
    show("accuracy", __doc__, rows)


if __name__ == "__main__":
    main()

"""GraphRegressor beside LGC/RP on the paper's tasks, small areas and draws from the paper's model: R2 and coverage.

The 14 tasks and the areas of libpysal (see `areas`) with 8, 20 and 61 labels and with 30 % of them; draws (the
published samples on the paper's graph, h0 = 1, 10 and 100, each of the 5 attributes in turn the outcome, every split a
draw of its own) with 20, 61 and 30 %. "ahead" is the mean difference in R2 from LGC/RP on the same runs, "±" its
standard error, where outcomes of the same graph and split count as one observation.
``python -m benchmarks.core [--sets development|validation|all] [--splits 2] [--labels 8 20 61 0.3] [--jobs 1]
[--keep FILE] [--tasks London drawn areas ...]``. On draws the column "true" is the R2 of the expectation under the
parameters that made the data. "below -0.1" counts the runs with so low an R2, which are clearly worse than a constant.
"""

from __future__ import annotations

import argparse
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.metrics import r2_score

from benchmarks.areas import AREAS, areas, centres
from benchmarks.holes import LINEAR, OURS, choose, forecast, scores
from benchmarks.more_data import Task
from benchmarks.paper_data import root, samples
from benchmarks.pool import NO_DATA, resume
from benchmarks.sets import NAMED, PAPER, load
from benchmarks.show import show

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.show import Row
    from graphmrf._typing import Floats

LABELS = ("8", "20", "61", "0.3")
STRENGTHS = (1, 10, 100)
DRAWN = tuple(f"drawn:h{h}:{k}" for h in STRENGTHS for k in range(5))
SMALL = tuple(f"areas:{name}:{outcome}" for name, area in AREAS.items() for outcome in area.outcomes)
TOO_FEW = ("8",)
"""Labels that are not tried on draws: most methods predict nothing there."""
METHODS = {OURS: "GR", LINEAR: LINEAR}
"""Methods and their titles."""
GOALS = {"8": 0.31, "20": 0.49, "61": 0.70, "0.3": 0.870}
"""Mean R2 to reach on the paper's tasks."""
BAD = -0.1
"""R2 below which a prediction is clearly worse than the mean of the hidden outcomes."""


class Work(NamedTuple):
    """One method on one split of a task with some labels."""

    task: str
    labels: str
    seed: int
    method: str


def run(*, quick: bool) -> list[Row]:
    """Run all tasks on this machine's cores; quick: one of London's with 20 labels."""
    if root() is None:
        return NO_DATA
    if quick:
        return measure(["London:income"], ["20"], 1, jobs=1, keep=None)
    return measure([*PAPER, *SMALL, *DRAWN], LABELS, 10, jobs=os.cpu_count() or 1, keep=None)


def measure(names: Sequence[str], labels: Sequence[str], splits: int, *, jobs: int, keep: Path | None) -> list[Row]:
    """Return rows of means by number of labels, then rows for every task."""
    work = [
        Work(name, amount, seed, method)
        for seed in range(splits)
        for amount in labels
        for name in names
        for method in METHODS
        if not (name in DRAWN and amount in TOO_FEW)
    ]
    found = {each: row for each, row in resume(_one, work, jobs, keep).items() if row}
    return [*_groups(found), *_tasks(found)]


def _groups(found: dict[Work, Row]) -> Iterator[Row]:
    for title, group in (("14 tasks", PAPER), ("areas", SMALL), ("drawn", DRAWN)):
        for amount in dict.fromkeys(work.labels for work in found):
            some = {work: row for work, row in found.items() if work.task in group and work.labels == amount}
            if some:
                goal = {"goal": GOALS.get(amount)} if title == "14 tasks" else {}
                yield {"tasks": title, "labels": amount} | _means(some) | goal


def _tasks(found: dict[Work, Row]) -> Iterator[Row]:
    for name, amount in dict.fromkeys((work.task, work.labels) for work in found):
        some = {work: row for work, row in found.items() if (work.task, work.labels) == (name, amount)}
        yield {"tasks": name, "labels": amount} | _means(some)


def _means(found: dict[Work, Row]) -> Row:
    row: Row = {}
    for method, title in METHODS.items():
        results = [result for work, result in found.items() if work.method == method]
        for key in ("R2", "90 %", "CRPS", "s"):
            values = [result[key] for result in results if key in result]
            row[f"{title} {key}"] = float(np.mean(values)) if values else None
        row[f"{title} below {BAD:.1f}"] = sum(result["R2"] < BAD for result in results)
    row |= _ahead(found)
    optimum = [result["true"] for result in found.values() if "true" in result]
    row |= {"true": float(np.mean(optimum))} if optimum else {}
    return row | {"runs": len(found) // len(METHODS)}


def _ahead(found: dict[Work, Row]) -> Row:
    """Return the mean gap to LGC/RP and its standard error, with runs on the same graph and split as one cluster."""
    gaps: dict[tuple[str, int], list[float]] = {}
    for work, row in found.items():
        if work.method == OURS and (peer := found.get(work._replace(method=LINEAR))):
            gaps.setdefault((work.task.rpartition(":")[0], work.seed), []).append(row["R2"] - peer["R2"])
    count, runs = len(gaps), sum(map(len, gaps.values()))
    if not runs:
        return {}
    mean = sum(map(sum, gaps.values())) / runs
    sums = np.array([sum(gap) - len(gap) * mean for gap in gaps.values()])
    error = float(np.sqrt(count / (count - 1) * (sums @ sums)) / runs) if count > 1 else None
    return {"ahead": mean, "±": error}


def _one(work: Work) -> Row:
    task = _drawn(work) if work.task in DRAWN else small()[work.task] if work.task in SMALL else load(work.task)
    labelled = choose(task, f"random {work.labels}", work.seed)
    if labelled is None:
        return {}
    y = np.where(labelled, task.y, np.nan)
    row = scores(task, labelled, forecast(work.method, task.graph, task.X, y))
    return row | ({"true": _optimum(task, work, y)} if work.task in DRAWN else {})


@cache
def small() -> dict[str, Task]:
    """Return the tasks of small areas by name."""
    found = [(f"areas:{task.data}:{task.outcome}", task) for task in areas()]
    return {name: Task(name, task.graph, task.X, task.y, "map", centres(task.data)) for name, task in found}


def _drawn(work: Work) -> Task:
    h, k = _place(work)
    graph, draws, _ = samples(h)
    A = draws[work.seed % len(draws)]
    return Task(work.task, graph, np.delete(A, k, axis=1), A[:, k], "drawn")


def _optimum(task: Task, work: Work, y: Floats) -> float:
    h, k = _place(work)
    posterior = samples(h)[2].condition(task.graph, np.insert(task.X, k, y, axis=1))
    hidden = np.isnan(y)
    return float(r2_score(task.y[hidden], posterior.mean[hidden, k]))


def _place(work: Work) -> tuple[int, int]:
    _, h, k = work.task.split(":")
    return int(h[1:]), int(k)


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.core", description=__doc__)
    parser.add_argument("--sets", choices=list(NAMED), default="all", help="which of the paper's tasks")
    parser.add_argument("--tasks", nargs="*", default=[], help="how names begin: U.S.:income, London, areas, drawn:h10")
    parser.add_argument("--splits", type=int, default=2, help="number of splits")
    parser.add_argument("--labels", nargs="*", default=list(LABELS), help="numbers of labels; below 1: a part")
    parser.add_argument("--jobs", type=int, default=1, help="processes; 0 prints what is kept")
    parser.add_argument("--keep", type=Path, help="file of finished runs, which are not repeated")
    given = parser.parse_args()
    if root() is None:
        show("core", __doc__, NO_DATA)
        return
    chosen = [*(name for name in NAMED[given.sets] if name in PAPER), *SMALL, *DRAWN]
    names = [name for name in chosen if not given.tasks or name.startswith(tuple(given.tasks))]
    show("core", __doc__, measure(names, given.labels, given.splits, jobs=given.jobs, keep=given.keep))


if __name__ == "__main__":
    main()

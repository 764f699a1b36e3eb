"""Node regression on everything: real and synthetic sets, all methods, labels missing at random and in blocks.

Sets: the paper's 14 tasks, nine of `more_data`, the areas of libpysal and the synthetic `families`. Holes: "random 5"
to "random 0.6" (numbers of labels, or parts of the nodes), "blocks 0.03" (half of the labels hidden in regions of 3 %
of the nodes), and "groups 0.3" where many nodes are copies of others (the same neighbours and outcome): copies are
labelled together. Methods: all of `peers`. Scored are the hidden nodes: R2, CRPS in standard deviations of the outcome
(of predictions without error bars the mean absolute error), coverage of 90 % intervals, wall-clock and CPU seconds,
and gigabytes on top of what the process holds before.

``python -m benchmarks.everything [--quick] [--sets paper more areas made] [--tasks ...] [--holes ...] [--methods ...]
[--splits 1] [--size 6000] [--limit 300] [--jobs 1] [--keep FILE]``. FILE has a line for every run of every method, so
methods, sets and splits can be added to it later; ``--jobs 0`` prints what is in it. Data are found by GRAPHMRF_DATA
(see `paper_data`), GRAPHMRF_MORE and GRAPHMRF_AREAS. Graphs of more than ``--size`` nodes are cut to a connected part;
a run that takes longer than ``--limit`` seconds counts as not finished.

In means an R2 below -1 counts as -1. Rows of GraphRegressor have "trees", 1 where learned effects are in the fit. The
last table is of `targets`. A rank is that among all methods that finished the run.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks import families
from benchmarks.areas import AREAS
from benchmarks.core import SMALL, small
from benchmarks.holes import choose, scores
from benchmarks.more_data import NAMES as MORE
from benchmarks.more_data import Task, connected_part, more_root
from benchmarks.paper_data import root
from benchmarks.peers import METHODS, OURS, PLAIN, NotApplicableError
from benchmarks.pool import resume
from benchmarks.sets import PAPER, load
from benchmarks.show import peak_gigabytes, show
from benchmarks.targets import WORST, targets
from graphmrf import GraphRegressor
from graphmrf.errors import GraphMRFError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.show import Row
    from graphmrf._typing import Bools

SETS = {"paper": PAPER, "more": MORE, "areas": SMALL, "made": families.NAMES}
HOLES = (
    *("random 5", "random 20", "random 100", "random 0.1", "random 0.3", "random 0.6"),
    *("blocks 0.01", "blocks 0.03", "blocks 0.1", "groups 0.3"),
)
COPIES = 0.1
"""Part of the nodes that are copies of others from which on a set is also split by groups of copies."""
NOTABLE = 0.005
"""R2 by which a set counts as behind or ahead."""
SIZE, LIMIT = 6000, 300
"""Nodes of the largest graph, and seconds of the longest run, unless given."""
QUICK = ("London:income", "made:steps")
MEASURES = ("R2", "CRPS", "90 %", "s", "CPU s", "GB")


class Work(NamedTuple):
    """One method on one split of one task."""

    task: str
    hole: str
    seed: int
    size: int
    method: str


class _Late(Exception):  # noqa: N818 - no fault of the method
    """The time for a run is over."""


def run(*, quick: bool) -> list[Row]:
    """Return means by hole and method of all that is there, or of a small part of it, on this machine's cores."""
    names = QUICK if quick else [name for group in SETS.values() for name in group]
    holes = ["random 0.3"] if quick else HOLES
    found = measure(plan(available(names), holes, 1, SIZE, list(METHODS)), jobs=os.cpu_count() or 1)
    return list(by_method({work: row for work, row in found.items() if "R2" in row}))


def available(names: Sequence[str]) -> list[str]:
    """Return the sets whose data are there, and print which are not."""
    missing = {
        "GRAPHMRF_DATA": [name for name in names if name in PAPER and root() is None],
        "GRAPHMRF_MORE": [name for name in names if name in MORE and more_root() is None],
        "GRAPHMRF_AREAS": [name for name in names if name in SMALL and not _has_areas()],
    }
    for variable, absent in missing.items():
        if absent:
            print(f"skipped {len(absent)} sets: set {variable}", file=sys.stderr)
    return [name for name in names if not any(name in absent for absent in missing.values())]


@cache
def _has_areas() -> bool:
    try:
        return len(small()) == sum(len(area.outcomes) for area in AREAS.values())
    except (ImportError, OSError):
        return False


def plan(names: Sequence[str], holes: Sequence[str], splits: int, size: int, methods: Sequence[str]) -> list[Work]:
    """Return all runs of methods that are installed, the first split of all sets first."""
    for name in methods:
        if METHODS[name].missing:
            print(f"skipped {name}: {METHODS[name].missing} is not installed", file=sys.stderr)
    return [
        Work(name, hole, seed, size, method)
        for seed in range(splits)
        for hole in holes
        for name in names
        for method in methods
        if METHODS[method].missing is None
    ]


def measure(work: Sequence[Work], *, jobs: int, limit: int = LIMIT, keep: Path | None = None) -> dict[Work, Row]:
    """Return the rows of all runs; finished ones are added to the file `keep`."""
    return resume(_Limited(limit), work, jobs, keep)


@dataclass(frozen=True)
class _Limited:
    """A run that ends after some seconds."""

    seconds: int

    def __call__(self, work: Work) -> Row:
        """Return the scores of a run, or why there are none."""

        def late(*_: Any) -> None:
            raise _Late

        signal.signal(signal.SIGALRM, late)
        signal.alarm(self.seconds)
        try:
            return _one(work)
        except _Late:
            return {"skipped": f"more than {self.seconds} s"}
        except (NotApplicableError, GraphMRFError, np.linalg.LinAlgError, ValueError) as error:
            return {"skipped": str(error)[:200]}
        finally:
            signal.alarm(0)


def _one(work: Work) -> Row:
    task = _task(work)
    labelled = chosen(task, work.hole, work.seed)
    if labelled is None:
        return {"skipped": "too few nodes, or no copies"}
    y, method = np.where(labelled, task.y, np.nan), METHODS[work.method]
    _ready(work.method)
    _warm(task)
    before, started = _used(), time.perf_counter()
    found = method.predict(task, y)
    seconds, used = time.perf_counter() - started, _used()
    if not np.isfinite(found.mean).all():
        return {"skipped": "predictions are not finite"}
    row = {key: value for key, value in scores(task, labelled, found).items() if " at " not in key}
    if found.std is None:  # the score of a prediction that is certain of itself
        hidden = task.known & ~labelled
        row["CRPS"] = float(np.abs(task.y - found.mean)[hidden].mean() / np.std(task.y[task.known]))
    if work.method in (OURS, PLAIN):
        row["trees"] = int("learned" in found.model.hyperparameters_)
    return row | {"s": seconds, "CPU s": used[0] - before[0], "GB": max(used[1] - before[2], 0.0)}


@cache
def _ready(method: str) -> None:
    """Import and compile what a method needs, by a small task, once in every process."""
    task = connected_part(families.draw("made:steps", 0), 100)
    y = np.where(np.arange(100) < 60, task.y, np.nan)
    METHODS[method].predict(task, y)
    if method in (OURS, PLAIN):
        GraphRegressor(solver="sparse").fit(task.graph, task.X, y)


def _warm(task: Task) -> None:
    """Compute what all methods share, and forget the peak of memory of the run before."""
    task.graph.S  # noqa: B018 - cached
    peak = Path("/proc/self/clear_refs")
    if peak.exists():
        peak.write_text("5")


def _used() -> tuple[float, float, float]:
    """Return CPU seconds, with those of programs that have ended, and the peak and present gigabytes."""
    times = [getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    status = Path("/proc/self/statm")
    now = int(status.read_text().split()[1]) * 4096 / 2**30 if status.exists() else peak_gigabytes()
    return sum(each.ru_utime + each.ru_stime for each in times), peak_gigabytes(), now


def _task(work: Work) -> Task:
    if work.task in families.NAMES:
        return families.draw(work.task, work.seed)
    return _part(work.task, work.size)


@cache
def _part(name: str, size: int) -> Task:
    return connected_part(small()[name] if name in SMALL else load(name), size)


def chosen(task: Task, hole: str, seed: int) -> Bools | None:
    """Return the nodes that stay labelled; None where the set is too small, or has no copies to keep together."""
    kind, amount = hole.split()
    if kind != "groups":
        return choose(task, hole, seed)
    group = copies(task)
    sizes = np.bincount(group)
    if np.mean(sizes[group] > 1) < COPIES:
        return None
    order = np.random.default_rng(3000 + seed).permutation(sizes.size)
    counted = np.cumsum(np.bincount(group, weights=task.known)[order])
    labelled = np.isin(group, order[counted <= float(amount) * task.known.sum()])
    return np.asarray(labelled & task.known)


def copies(task: Task) -> Any:
    """Return the number of the group of every node: nodes of a group have the same neighbours and outcome."""
    A = task.graph.adjacency.tocsr()
    A.sort_indices()
    rows = [A.indices[A.indptr[i] : A.indptr[i + 1]].tobytes() for i in range(task.graph.n_nodes)]
    return np.unique([row + float(y).hex().encode() for row, y in zip(rows, task.y, strict=True)], return_inverse=True)[
        1
    ]


def by_method(found: dict[Work, Row]) -> Iterator[Row]:
    """Yield means of every method by hole, with its rank and the R2 of GraphRegressor on the same runs."""
    places = ranks(found)
    for hole in dict.fromkeys(work.hole for work in found):
        for method in dict.fromkeys(work.method for work in found):
            own = {work: row for work, row in found.items() if (work.hole, work.method) == (hole, method)}
            if not own:
                continue
            means = {key: _mean([row[key] for row in own.values() if row.get(key) is not None]) for key in MEASURES}
            same = [found[ours]["R2"] for work in own if (ours := work._replace(method=OURS)) in found]
            rank = {"rank": _mean([places[work] for work in own]), f"{OURS} R2 there": _mean(same)}
            yield {"hole": hole, "method": method, "runs": len(own)} | rank | means


def ranks(found: dict[Work, Row]) -> dict[Work, float]:
    """Return the rank of every run among the methods on the same split, 1 the best.

    Examples
    --------
    >>> a, b = (Work("set", "random 5", 0, 0, name) for name in "ab")
    >>> list(ranks({a: {"R2": 0.1}, b: {"R2": 0.4}}).values())
    [2.0, 1.0]
    """
    runs: dict[Any, list[float]] = {}
    for work, row in found.items():
        runs.setdefault(work[:4], []).append(row["R2"])
    return {work: 1.0 + sum(other > row["R2"] for other in runs[work[:4]]) for work, row in found.items()}


def by_set(found: dict[Work, Row]) -> Iterator[Row]:
    """Yield the mean R2 of GraphRegressor and of the best other method by set and hole, with the verdict."""
    for task, hole in dict.fromkeys((work.task, work.hole) for work in found):
        means: dict[str, list[float]] = {}
        for work, row in found.items():
            if (work.task, work.hole) == (task, hole):
                means.setdefault(work.method, []).append(row["R2"])
        if OURS not in means:
            continue
        splits = len(means[OURS])
        scored = {name: _mean(values) or 0.0 for name, values in means.items() if len(values) == splits}
        others = {name: value for name, value in scored.items() if name not in (OURS, PLAIN)}
        row = {"set": task, "hole": hole, "splits": splits, OURS: scored[OURS], PLAIN: scored.get(PLAIN)}
        yield row | (_against(scored[OURS], others) if others else {})


def _against(ours: float, others: dict[str, float]) -> Row:
    best = max(others, key=lambda name: others[name])
    gap = ours - others[best]
    verdict = "behind" if gap < -NOTABLE else "ahead" if gap > NOTABLE else "level"
    return {"best": best, "best R2": others[best], "ahead by": gap, "verdict": verdict}


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(np.maximum(values, WORST))) if len(values) else None


def overall(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield, by hole, the mean R2 of GraphRegressor and of the best other method of every set, and the verdicts."""
    for hole in dict.fromkeys(row["hole"] for row in rows):
        own = [row for row in rows if row["hole"] == hole and "best" in row]
        if own:
            verdicts = [row["verdict"] for row in own]
            means = {key: float(np.mean([row[key] for row in own])) for key in (OURS, "best R2", "ahead by")}
            yield {"hole": hole, "sets": len(own)} | means | {key: verdicts.count(key) for key in _VERDICTS}


_VERDICTS = ("ahead", "level", "behind")


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.everything", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two sets and one hole")
    parser.add_argument("--sets", nargs="*", choices=list(SETS), default=list(SETS))
    parser.add_argument("--tasks", nargs="*", default=[], help="how names of tasks begin; default all of the sets")
    parser.add_argument("--holes", nargs="*", default=list(HOLES))
    parser.add_argument("--methods", nargs="*", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--size", type=int, default=SIZE, help="nodes to which graphs are cut")
    parser.add_argument("--limit", type=int, default=LIMIT, help="seconds of a run")
    parser.add_argument("--jobs", type=int, default=1, help="processes; 0 prints what is kept")
    parser.add_argument("--keep", type=Path, help="file of finished runs, which are not repeated")
    given = parser.parse_args()
    wanted = QUICK if given.quick else [name for key in given.sets for name in SETS[key]]
    names = [name for name in available(wanted) if not given.tasks or name.startswith(tuple(given.tasks))]
    holes = ["random 0.3"] if given.quick else given.holes
    work = plan(names, holes, given.splits, given.size, given.methods)
    found = measure(work, jobs=given.jobs, limit=given.limit, keep=given.keep)
    done = {work: row for work, row in found.items() if "R2" in row}
    sets = list(by_set(done))
    show("everything", __doc__, list(by_method(done)))
    show("everything by set", "GraphRegressor and the best other method on every set.", sets)
    show("everything overall", "Means over sets, and where GraphRegressor is behind.", list(overall(sets)))
    show("everything targets", "What was to be reached.", list(targets(done)))
    show("everything not run", "Runs without scores.", list(_failed(found)))


def _failed(found: dict[Work, Row]) -> Iterator[Row]:
    whys = Counter((work.method, row["skipped"]) for work, row in found.items() if "skipped" in row)
    for (method, why), count in whys.most_common():
        yield {"method": method, "why": why, "runs": count}


if __name__ == "__main__":
    main()

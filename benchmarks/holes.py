"""GraphRegressor beside LGC/RP and gradient boosting where labels are missing at random and in blocks.

Random holes: some labels, or a part of all, at random. Holes in blocks: connected regions of 1, 3 and 10 % of the
nodes, grown by breadth-first search from random nodes until half of all labels are hidden. R2, CRPS in standard
deviations of the outcome, coverage of 90 % intervals overall and by steps to the nearest label, the R2 that the model
promises, and seconds. Boosting sees ``[X, SX, S²X]``; all methods get the same features and the same split.

``python -m benchmarks.holes [--sets development|validation|all] [--splits 2] [--labels 8 20 61 0.3] [--blocks 0.01 0.03
0.1] [--methods ...] [--size 4000] [--jobs 1] [--keep FILE]``. The file has a line for every run of every method, so
methods can be added to it later; ``--jobs 0`` prints what is in it. Graphs of more than ``--size`` nodes are cut to a
connected part for holes in blocks. Printed are averages by kind of hole, R2 by task, and the runs in which
GraphRegressor is behind the better of LGC/RP and boosting by more than .02.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse.csgraph import dijkstra
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import r2_score

from benchmarks.more_data import Task, breadth_first, connected_part, more_root
from benchmarks.pool import NO_DATA, resume
from benchmarks.sets import NAMED, load
from benchmarks.show import show, show_each, timed
from graphmrf import GraphRegressor, LinearGraphConvolution, ResidualPropagation
from graphmrf.errors import GraphMRFError
from graphmrf.metrics import coverage
from graphmrf.selection import assign_folds, distance_matched_folds, split

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.show import Row
    from graphmrf._typing import Bools, Floats
    from graphmrf.graph import Graph

OURS, LINEAR, BOOSTING, BOTH = METHODS = ("GraphRegressor", "LGC/RP", "boosting", "boosting + RP")
LABELS = (0.3,)
BLOCKS = (0.01, 0.03, 0.1)
BANDS = {"1": (1, 1), "2-3": (2, 3), "4-9": (4, 9), "10+": (10, np.inf)}
"""Steps to the nearest label, both ends included; nodes that no label reaches are in the last band."""
HIDDEN = 0.5
"""Part of the labels that blocks hide."""
MOST = 0.6
"""Largest part of the nodes that is labelled at random, so that something is left to predict of small graphs."""
LEVEL = 0.9
SHORT = 0.02
"""How far behind the better of LGC/RP and boosting a run is listed."""
REASONS = {
    "chameleon:log_traffic": "many pages are copies with the same links, which trees recognise",
    "montevideo:log_boardings": "hardly anything can be said of whole districts: no method is above .03",
    "germany:log_mortality": "whole regions without a label: every method is worse than the mean",
    "glasgow:log_admissions": "not known: 271 areas, half of them labelled",
}
"""Why tasks are behind, where it is known."""
FOLDS = 5
PROMISES = ("expected R2", "random folds", "imitating folds")
"""What a model promises: by its own formula, and the R2 of out-of-fold predictions on two kinds of folds."""
_ENOUGH = 20
"""Nodes that a band needs for its coverage to be counted in averages."""


class Work(NamedTuple):
    """One method on one split of one task; a hole is "random 0.3", "random 20" or "blocks 0.03"."""

    task: str
    hole: str
    seed: int
    size: int
    method: str


@dataclass(frozen=True)
class Forecast:
    """Predictions (n,), their standard deviations where there are some, the fitted model and its time."""

    mean: Floats
    std: Floats | None
    model: Any
    seconds: float

    def interval(self, level: float) -> tuple[Floats, Floats] | None:
        """Return the ends of the intervals: the model's own, or normal ones; None without standard deviations."""
        if self.std is None:
            return None
        if hasattr(self.model, "predict_interval"):
            ends: tuple[Floats, Floats] = self.model.predict_interval(level)
            return ends
        reach = norm.ppf(0.5 + 0.5 * level) * self.std
        return self.mean - reach, self.mean + reach


def neighbourhoods(graph: Graph, X: Floats) -> Floats:
    """Return the features of boosting, ``[X, SX, S²X]``."""
    S = graph.S
    return np.hstack([X, S @ X, S @ (S @ X)])


def boosting() -> HistGradientBoostingRegressor:
    """Return the boosting of all benchmarks."""
    return HistGradientBoostingRegressor(max_iter=200, learning_rate=0.05, max_leaf_nodes=15, random_state=0)


def forecast(method: str, graph: Graph, X: Floats, y: Floats) -> Forecast:
    """Return what a method predicts; the mean of the labels where they are too few for it."""
    try:
        seconds, (model, mean, std) = timed(lambda: _fit(method, graph, X, y))
    except GraphMRFError:
        if method == OURS:
            raise
        labels = y[np.isfinite(y)]
        return Forecast(np.full(y.size, labels.mean()), np.full(y.size, labels.std(ddof=1)), None, 0.0)
    return Forecast(mean, std, model, seconds)


def _fit(method: str, graph: Graph, X: Floats, y: Floats) -> tuple[Any, Floats, Floats | None]:
    if method == BOOSTING:
        features, known = neighbourhoods(graph, X), np.isfinite(y)
        trees = boosting().fit(features[known], y[known])
        return trees, np.asarray(trees.predict(features)), None
    features = neighbourhoods(graph, X) if method == BOTH else X
    model = _estimator(method).fit(graph, features, y)
    mean, std = model.predict(return_std=True)
    return model, mean, None if np.isnan(std).any() else std


def _estimator(method: str) -> Any:
    if method == OURS:
        return GraphRegressor()
    return ResidualPropagation(boosting() if method == BOTH else LinearGraphConvolution())


def scores(task: Task, labelled: Bools, found: Forecast) -> Row:
    """Return R2, CRPS, and coverage overall and by band, at the nodes whose known outcome was hidden."""
    hidden = task.known & ~labelled
    truth, mean = task.y[hidden], found.mean[hidden]
    row: Row = {"nodes": task.graph.n_nodes, "labels": int(labelled.sum()), "R2": float(r2_score(truth, mean))}
    row |= {"rmse": float(np.sqrt(np.mean((truth - mean) ** 2)))}
    ends = found.interval(LEVEL)
    if found.std is not None and ends is not None:
        row["CRPS"] = float(np.mean(crps(truth, mean, found.std[hidden]))) / float(np.std(task.y[task.known]))
        low, high = (end[hidden] for end in ends)
        row["90 %"] = coverage(truth, low, high)
        row |= _by_band(steps(task.graph, labelled)[hidden], (low <= truth) & (truth <= high))
    return row | {"s": found.seconds}


def _by_band(distance: Floats, inside: Bools) -> Row:
    row: Row = {}
    for name, chosen in bands(distance).items():
        if chosen.any():
            row |= {f"90 % at {name}": float(inside[chosen].mean()), f"nodes at {name}": int(chosen.sum())}
    return row


def bands(distance: Floats) -> dict[str, Bools]:
    """Return the masks of the bands of distance to the nearest label."""
    return {name: (distance >= low) & (distance <= high) for name, (low, high) in BANDS.items()}


def steps(graph: Graph, labelled: Bools) -> Floats:
    """Return the number of steps from every node to the nearest label, infinite where no label reaches."""
    distance = dijkstra(
        graph.adjacency, directed=False, unweighted=True, indices=np.flatnonzero(labelled), min_only=True
    )
    return np.asarray(distance)


def crps(y: Floats, mean: Floats, std: Floats) -> Floats:
    r"""Continuous ranked probability score of normal predictions, in the units of `y`; smaller is better.

    .. math:: \sigma \big(z (2 \Phi(z) - 1) + 2 \phi(z) - \pi^{-1/2}\big), \qquad z = (y - \mu) / \sigma
    """
    z = (y - mean) / std
    return np.asarray(std * (z * (2.0 * norm.cdf(z) - 1.0) + 2.0 * norm.pdf(z) - np.pi**-0.5))


def promises(task: Task, y: Floats, found: Forecast, X: Floats) -> Row:
    """Return the R2 that a fit promises: as it expects, and of out-of-fold predictions on folds of both kinds."""
    row: Row = {}
    if hasattr(found.model, "expected_r2"):
        row["expected R2"] = float(found.model.expected_r2())
    known = np.isfinite(y)
    matched, plain = distance_matched_folds(task.graph, known, FOLDS), assign_folds(int(known.sum()), FOLDS)
    kinds = {"random folds": plain} | ({} if matched.is_random else {"imitating folds": matched.folds})
    for name, folds in kinds.items():
        row[name] = float(r2_score(y[known], found.model.out_of_fold(task.graph, X, y, folds)))
    return row | {"imitating folds": row.get("imitating folds", row["random folds"])}


def choose(task: Task, hole: str, seed: int) -> Bools | None:
    """Return the nodes that stay labelled; None where the graph is too small for so many labels."""
    kind, amount = hole.split()
    if kind == "blocks":
        return task.known & ~blocks(task, float(amount), seed=seed)
    if float(amount) < 1:
        return split(task.known, float(amount), random_state=seed)
    known = np.flatnonzero(task.known)
    if int(amount) > MOST * known.size:
        return None
    order = np.random.default_rng(1000 + seed).permutation(known)
    return np.isin(np.arange(task.y.size), order[: int(amount)])


def blocks(task: Task, part: float, *, seed: int) -> Bools:
    """Return the mask of regions of `part` of the nodes each that hide half of the labels; the last may be smaller."""
    rng, n = np.random.default_rng(2000 + seed), task.y.size
    hidden, wanted = np.zeros(n, dtype=bool), int(HIDDEN * task.known.sum())
    while (count := int((hidden & task.known).sum())) < wanted:
        start = int(rng.choice(np.flatnonzero(~hidden)))
        region = breadth_first(task.graph, start)[: max(round(part * n), 1)]
        fresh = region[~hidden[region]]
        labels = np.cumsum(task.known[fresh])
        hidden[fresh[labels <= wanted - count]] = True
    return hidden


def run(*, quick: bool) -> list[Row]:
    """Run one split of all tasks on this machine's cores; quick: two methods on one of London's."""
    if more_root() is None:
        return NO_DATA
    names, methods = (["London:income"], [OURS, LINEAR]) if quick else (NAMED["all"], METHODS)
    holes = ["random 20"] if quick else ["random 0.3", *(f"blocks {part}" for part in BLOCKS)]
    found = measure(plan(names, holes, 1, 4000, methods), jobs=os.cpu_count() or 1)
    return list(rows(found, methods))


def rows(found: dict[Work, Row], methods: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of all tables: averages, R2 by task, and where GraphRegressor is behind."""
    yield from averages(found, methods)
    yield from ({"benchmark": "holes by task"} | row for row in by_task(found, methods))
    yield from ({"benchmark": "holes behind"} | row for row in behind(found))


def measure(work: Sequence[Work], *, jobs: int, keep: Path | None = None) -> dict[Work, Row]:
    """Return the scores of all runs; finished ones are added to the file `keep`."""
    found = resume(_one, work, jobs, keep)
    return {each: row for each, row in found.items() if row}


def _one(work: Work) -> Row:
    task = load(work.task)
    if work.hole.startswith("blocks"):
        task = connected_part(task, work.size, seed=work.seed)
    labelled = choose(task, work.hole, work.seed)
    if labelled is None:
        return {}
    y = np.where(labelled, task.y, np.nan)
    found = forecast(work.method, task.graph, task.X, y)
    row = scores(task, labelled, found)
    promise = work.method in (OURS, LINEAR) and found.model is not None
    return row | (promises(task, y, found, task.X) if promise else {})


def plan(names: Sequence[str], holes: Sequence[str], splits: int, size: int, methods: Sequence[str]) -> list[Work]:
    """Return all runs, the first split of all tasks first."""
    return [
        Work(name, hole, seed, size if hole.startswith("blocks") else 0, method)
        for seed in range(splits)
        for name in names
        for hole in holes
        for method in methods
    ]


def averages(found: dict[Work, Row], methods: Sequence[str]) -> list[Row]:
    """Return a row for each kind of hole and method: means over the runs that all methods have finished."""
    rows = []
    for hole in dict.fromkeys(work.hole for work in found):
        runs = {work[:4] for work in found if work.hole == hole}
        shared = [run for run in runs if all(Work(*run, method) in found for method in methods)]
        for method in methods:
            results = [found[Work(*run, method)] for run in shared]
            if results:
                rows.append({"hole": hole, "method": method, "runs": len(results)} | _means(results))
    return rows


def _means(results: list[Row]) -> Row:
    row: Row = {"R2": _mean(results, "R2"), "median R2": float(np.median([result["R2"] for result in results]))}
    row |= {"CRPS": _mean(results, "CRPS"), "90 %": _mean(results, "90 %")}
    for name in BANDS:
        enough = [result for result in results if result.get(f"nodes at {name}", 0) >= _ENOUGH]
        row[f"90 % at {name}"] = _mean(enough, f"90 % at {name}")
    for promise in PROMISES:
        errors = [result[promise] - result["R2"] for result in results if promise in result]
        if errors:
            row |= {f"{promise}, error": float(np.mean(errors)), f"{promise}, |error|": float(np.mean(np.abs(errors)))}
    return row | {"s": _mean(results, "s")}


def _mean(results: list[Row], key: str) -> float | None:
    values = [result[key] for result in results if key in result]
    return float(np.mean(values)) if values else None


def by_task(found: dict[Work, Row], methods: Sequence[str]) -> Iterator[Row]:
    """Yield the mean R2 of every method, and our coverage, by task and hole."""
    for name, hole in dict.fromkeys((work.task, work.hole) for work in found):
        runs = {work: row for work, row in found.items() if (work.task, work.hole) == (name, hole)}
        means = {
            method: _mean([row for work, row in runs.items() if work.method == method], "R2") for method in methods
        }
        own = [row for work, row in runs.items() if work.method == OURS]
        yield {"task": name, "hole": hole} | means | ({"90 %": _mean(own, "90 %")} if own else {})


def behind(found: dict[Work, Row]) -> Iterator[Row]:
    """Yield the runs in which GraphRegressor is behind the better of LGC/RP and boosting by more than `SHORT`."""
    for work, row in found.items():
        peers = {name: found.get(work._replace(method=name)) for name in (LINEAR, BOOSTING)}
        best = max((peer["R2"] for peer in peers.values() if peer), default=-np.inf)
        if work.method == OURS and row["R2"] < best - SHORT:
            others = {name: peer["R2"] for name, peer in peers.items() if peer}
            short = {"behind": best - row["R2"], "90 %": row.get("90 %"), "reason": REASONS.get(work.task)}
            yield {"task": work.task, "hole": work.hole, "split": work.seed, OURS: row["R2"]} | others | short


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.holes", description=__doc__)
    parser.add_argument("--sets", choices=list(NAMED), default="development")
    parser.add_argument("--tasks", nargs="*", default=[], help="how names of tasks begin; default all of the sets")
    parser.add_argument("--splits", type=int, default=2, help="number of splits")
    parser.add_argument("--labels", nargs="*", default=list(map(str, LABELS)), help="labels at random; below 1: a part")
    parser.add_argument("--blocks", nargs="*", default=list(map(str, BLOCKS)), help="parts of the nodes in a block")
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=list(METHODS))
    parser.add_argument("--size", type=int, default=4000, help="nodes to which graphs are cut for holes in blocks")
    parser.add_argument("--jobs", type=int, default=1, help="processes; 0 prints what is kept")
    parser.add_argument("--keep", type=Path, help="file of finished runs, which are not repeated")
    given = parser.parse_args()
    if more_root() is None:
        show("holes", __doc__, NO_DATA)
        return
    names = [name for name in NAMED[given.sets] if not given.tasks or name.startswith(tuple(given.tasks))]
    holes = [f"random {amount}" for amount in given.labels] + [f"blocks {part}" for part in given.blocks]
    found = measure(plan(names, holes, given.splits, given.size, given.methods), jobs=given.jobs, keep=given.keep)
    show_each("holes", __doc__, list(rows(found, given.methods)))


if __name__ == "__main__":
    main()

"""The general field with one term or one rule less: R2 and coverage of 90 % intervals with 8 to 61 labels and 30 %.

Every term of `graphmrf.field.TERMS` is taken away in turn, and every rule of `RULES`, which are arguments of
`GraphRegressor`, is switched off. ``python -m benchmarks.ablation [--sets development|validation|all] [--splits 2]
[--labels 8 20 61 0.3] [--blocks 0.03] [--wild 61] [--without TERM ...] [--size 4000] [--jobs 1] [--keep FILE]``. With
``--wild`` one label in twenty is wrong, by 10 standard deviations. The columns
"costs" are what taking it away loses against the whole field on the same runs, in R2 and in the distance of coverage
from 90 %, with standard errors over runs. A term or rule earns its place if, for some kind of hole, it costs at least
.002 in R2 or 1 point of coverage, and more than twice the standard error. Levels and times have runs only on data that
have them.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.holes import LEVEL, Forecast, choose, scores
from benchmarks.more_data import Task, connected_part, more_root
from benchmarks.pool import NO_DATA, resume
from benchmarks.sets import DEVELOPMENT, NAMED, load
from benchmarks.show import show, timed
from graphmrf import GraphRegressor
from graphmrf.field import TERMS, Design

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.show import Row
    from graphmrf._typing import Bools, Floats

LABELS = ("8", "20", "61", "0.3")
WHOLE = "nothing"
RULES: dict[str, dict[str, Any]] = {
    "tails": {"likelihood": "gaussian"},
    "average": {"members": 1},
    "trees": {"learner": None},
}
"""Remaining rules by name: the arguments of `GraphRegressor` that switch each of them off."""
WRONG, FAR = 0.05, 10.0
"""Part of the labels that are wrong in tasks with wild labels, and by how many standard deviations of the outcome."""
LIMITED = ("levels", "time")
"""Terms of columns that few data have; on others there is no run without them."""
EARNS = {"R2": 0.002, "90 %": 0.01}
"""Mean R2 or coverage that a term or rule has to earn with some number of labels."""


class Work(NamedTuple):
    """One split of a task with one thing taken away."""

    task: str
    hole: str
    seed: int
    size: int
    without: str


def has(task: Task, without: str) -> bool:
    """Whether the data of a task have what a term is about: levels of categories, times."""
    return without not in LIMITED or TERMS[without].applies(Design.of(task.graph, task.X))


def estimator(without: str) -> Any:
    """Return the regressor with one thing less."""
    if without == WHOLE:
        return GraphRegressor()
    if without in RULES:
        return GraphRegressor(**RULES[without])
    arguments: dict[str, Any] = {"terms": tuple(name for name in TERMS if name != without)}
    return GraphRegressor(**arguments)


def _one(work: Work) -> Row:
    task = load(work.task)
    if work.hole.startswith("blocks"):
        task = connected_part(task, work.size, seed=work.seed)
    labelled = choose(task, work.hole.replace("wild", "random"), work.seed)
    if labelled is None or not has(task, work.without):
        return {}
    y = np.where(labelled, task.y, np.nan)
    if work.hole.startswith("wild"):
        y += _errors(labelled, work.seed) * np.nanstd(task.y)
    seconds, model = timed(lambda: estimator(work.without).fit(task.graph, task.X, y))
    mean, std = model.predict(return_std=True)
    return scores(task, labelled, Forecast(mean, std, model, seconds))


def _errors(labelled: Bools, seed: int) -> Floats:
    """Return the errors of wild labels in standard deviations, 0 for all others."""
    rng, errors = np.random.default_rng(3000 + seed), np.zeros(labelled.size)
    nodes = np.flatnonzero(labelled)
    wrong = rng.choice(nodes, max(round(WRONG * nodes.size), 1), replace=False)
    errors[wrong] = FAR * rng.choice([-1.0, 1.0], wrong.size)
    return errors


def table(found: dict[Work, Row], holes: Sequence[str]) -> list[Row]:
    """Return a row for each thing taken away: means by kind of hole, and what it costs on the same runs."""
    rows = []
    for without in dict.fromkeys(work.without for work in found):
        row: Row = {"without": without}
        for hole in holes:
            runs = [work for work in found if (work.without, work.hole) == (without, hole)]
            pairs = [(found[work], whole) for work in runs if (whole := found.get(work._replace(without=WHOLE)))]
            if pairs:
                means = _mean([after for after, _ in pairs])
                costs = {} if without == WHOLE else _costs(pairs)
                row |= {"runs": len(pairs)} | {f"{hole} {key}": value for key, value in (means | costs).items()}
        earns = any(_earns(row, hole) for hole in holes)
        rows.append(row | ({} if without == WHOLE else {"earns": "yes" if earns else "no"}))
    return rows


def _costs(pairs: list[tuple[Row, Row]]) -> dict[str, float]:
    """Return what it costs in R2 and in the distance of mean coverage from its level, with standard errors."""
    own, whole = (_mean([pair[k] for pair in pairs]) for k in range(2))
    far = abs(own["90 %"] - LEVEL) - abs(whole["90 %"] - LEVEL)
    errors = {f"{key} ±": _error([after[key] - before[key] for after, before in pairs]) for key in ("R2", "90 %")}
    return {"R2 costs": whole["R2"] - own["R2"], "90 % costs": far} | errors


def _earns(row: Row, hole: str) -> bool:
    """Whether taking it away costs something with a kind of hole, beyond twice the standard error."""
    costs = {key: row.get(f"{hole} {key} costs", -np.inf) for key in EARNS}
    return any(costs[key] >= least and costs[key] > 2.0 * row[f"{hole} {key} ±"] for key, least in EARNS.items())


def _error(differences: list[float]) -> float:
    """Return the standard error of the mean difference between paired runs."""
    return float(np.std(differences, ddof=1) / len(differences) ** 0.5) if len(differences) > 1 else float("nan")


def _mean(results: list[Row]) -> dict[str, float]:
    return {key: float(np.mean([result[key] for result in results])) for key in ("R2", "90 %", "s")}


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ablation", description=__doc__)
    parser.add_argument("--sets", choices=list(NAMED), default="development")
    parser.add_argument("--tasks", nargs="*", default=[], help="how names of tasks begin; default all of the sets")
    parser.add_argument("--splits", type=int, default=2, help="number of splits")
    parser.add_argument("--labels", nargs="*", default=list(LABELS), help="labels at random; below 1: a part")
    parser.add_argument("--blocks", nargs="*", default=[], help="parts of the nodes in a block")
    parser.add_argument("--wild", nargs="*", default=[], help="labels at random, one in twenty of them wrong")
    parser.add_argument("--without", nargs="*", default=[], help="terms and rules to take away; default all")
    parser.add_argument("--size", type=int, default=4000, help="nodes to which graphs are cut for holes in blocks")
    parser.add_argument("--jobs", type=int, default=1, help="processes; 0 prints what is kept")
    parser.add_argument("--keep", type=Path, help="file of finished runs, which are not repeated")
    given = parser.parse_args()
    if more_root() is None:
        show("ablation", __doc__, NO_DATA)
        return
    names = [name for name in NAMED[given.sets] if not given.tasks or name.startswith(tuple(given.tasks))]
    holes = [f"random {amount}" for amount in given.labels] + [f"blocks {part}" for part in given.blocks]
    holes += [f"wild {amount}" for amount in given.wild]
    without = [WHOLE, *(given.without or [*TERMS, *RULES])]
    plan = _plan(names, holes, given.splits, given.size, without)
    show("ablation", __doc__, measure(given.sets, plan, given.jobs, given.keep))


def run(*, quick: bool) -> list[Row]:
    """Run one split of all tasks with random labels on this machine's cores; quick: two things less on one task."""
    if more_root() is None:
        return NO_DATA
    names, amounts = (["London:income"], ["20"]) if quick else (DEVELOPMENT, LABELS)
    without = [WHOLE, "local", "average"] if quick else [WHOLE, *TERMS, *RULES]
    plan = _plan(names, [f"random {amount}" for amount in amounts], 1, 0, without)
    return measure("development", plan, os.cpu_count() or 1, None)


def measure(sets: str, plan: Sequence[Work], jobs: int, keep: Path | None) -> list[Row]:
    """Return a row for each thing taken away, on some tasks."""
    found = {work: row for work, row in resume(_one, plan, jobs, keep).items() if row}
    rows = table(found, list(dict.fromkeys(work.hole for work in found)))
    return [{"sets": sets} | row for row in rows]


def _plan(names: Sequence[str], holes: Sequence[str], splits: int, size: int, without: Sequence[str]) -> list[Work]:
    return [
        Work(name, hole, seed, size if hole.startswith("blocks") else 0, less)
        for seed in range(splits)
        for less in without
        for name in names
        for hole in holes
    ]


if __name__ == "__main__":
    main()

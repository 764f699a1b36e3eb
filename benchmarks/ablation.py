"""The general field with one term or one rule less: R2 and coverage of 90 % intervals with 8 to 61 labels and 30 %.

Every term of `graphmrf.field.TERMS` is taken away in turn, and every rule of `RULES`, which are arguments of
`GraphRegressor`, is switched off. ``python -m benchmarks.ablation [--sets development|validation|all] [--splits 2]
[--labels 8 20 61 0.3] [--blocks 0.03] [--without TERM ...] [--size 4000] [--jobs 1] [--keep FILE]``. The columns
"costs" are what taking it away loses against the whole field on the same runs, in R2 and in the distance of coverage
from 90 %; what costs less than .002 and less than 1 point of coverage is not needed. "±" is the standard error of the
cost in R2 over runs: another seed alone can move one run with 20 labels by .002.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.holes import LEVEL, Forecast, choose, scores
from benchmarks.more_data import connected_part, more_root
from benchmarks.pool import resume
from benchmarks.sets import NAMED, load
from benchmarks.show import show, timed
from graphmrf import GraphRegressor, field

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.show import Row

LABELS = ("8", "20", "61", "0.3")
WHOLE = "nothing"
RULES: dict[str, dict[str, Any]] = {"tails": {"likelihood": "gaussian"}}
"""Remaining rules by name: the arguments of `GraphRegressor` that switch each of them off."""
EARNS = {"R2 costs": 0.002, "90 % costs": 0.01}
"""Mean R2 or coverage that a term or rule has to earn with some number of labels."""


class Work(NamedTuple):
    """One split of a task with one thing taken away."""

    task: str
    hole: str
    seed: int
    size: int
    without: str


def terms() -> tuple[str, ...]:
    """Return the names of all terms of the default field."""
    return tuple(getattr(field, "TERMS", ()))


def estimator(without: str) -> Any:
    """Return the regressor with one thing less."""
    if without == WHOLE:
        return GraphRegressor()
    if without in RULES:
        return GraphRegressor(**RULES[without])
    arguments: dict[str, Any] = {"terms": tuple(name for name in terms() if name != without)}
    return GraphRegressor(**arguments)


def _one(work: Work) -> Row:
    task = load(work.task)
    if work.hole.startswith("blocks"):
        task = connected_part(task, work.size, seed=work.seed)
    labelled = choose(task, work.hole, work.seed)
    if labelled is None:
        return {}
    y = np.where(labelled, task.y, np.nan)
    seconds, model = timed(lambda: estimator(work.without).fit(task.graph, task.X, y))
    mean, std = model.predict(return_std=True)
    return scores(task, labelled, Forecast(mean, std, model, seconds))


def table(found: dict[Work, Row], holes: Sequence[str]) -> list[Row]:
    """Return a row for each thing taken away: means by kind of hole, and what it costs on the same runs."""
    rows = []
    for without in dict.fromkeys(work.without for work in found):
        row: Row = {"without": without}
        for hole in holes:
            runs = [work for work in found if (work.without, work.hole) == (without, hole)]
            pairs = [(found[work], whole) for work in runs if (whole := found.get(work._replace(without=WHOLE)))]
            if pairs:
                own, whole = (_mean([pair[k] for pair in pairs]) for k in range(2))
                row |= {f"{hole} R2": own["R2"], f"{hole} 90 %": own["90 %"], f"{hole} s": own["s"]}
                costs = _costs(own, whole) | {"±": _error([after["R2"] - before["R2"] for after, before in pairs])}
                row |= {} if without == WHOLE else {f"{hole} {key}": cost for key, cost in costs.items()}
        earns = any(row[key] >= least for key in row for end, least in EARNS.items() if key.endswith(end))
        rows.append(row | ({} if without == WHOLE else {"earns": "yes" if earns else "no"}))
    return rows


def _costs(own: dict[str, float], whole: dict[str, float]) -> dict[str, float]:
    return {"R2 costs": whole["R2"] - own["R2"], "90 % costs": abs(own["90 %"] - LEVEL) - abs(whole["90 %"] - LEVEL)}


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
    parser.add_argument("--without", nargs="*", default=[], help="terms and rules to take away; default all")
    parser.add_argument("--size", type=int, default=4000, help="nodes to which graphs are cut for holes in blocks")
    parser.add_argument("--jobs", type=int, default=1, help="processes; 0 prints what is kept")
    parser.add_argument("--keep", type=Path, help="file of finished runs, which are not repeated")
    given = parser.parse_args()
    if more_root() is None or not terms():
        reason = "set GRAPHMRF_DATA to the folder of the raw data sets" if terms() else "graphmrf.field has no TERMS"
        show("ablation", __doc__, [{"skipped": reason}])
        return
    names = [name for name in NAMED[given.sets] if not given.tasks or name.startswith(tuple(given.tasks))]
    holes = [f"random {amount}" for amount in given.labels] + [f"blocks {part}" for part in given.blocks]
    without = [WHOLE, *(given.without or [*terms(), *RULES])]
    found = resume(_one, _plan(names, holes, given.splits, given.size, without), given.jobs, given.keep)
    rows = table({work: row for work, row in found.items() if row}, holes)
    show("ablation", __doc__, [{"sets": given.sets} | row for row in rows])


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

"""`auto` against always taking the field, and against the best method in hindsight, with few labels on real areas.

Every outcome of the areas of libpysal and of London's wards, ten draws each of 15 to 150 labels (at most 70 % of the
nodes); R2 at the nodes that had none. By itself it takes more options: ``python -m benchmarks.auto [--tasks columbus
London:income ...] [--samples 250] [--jobs 2] [--keep FILE]``. Columns: samples, how often `auto` left the field, how
often that was right, and what it gained (+) or lost (-) in R2 by it: mean over all samples, worst and best of one; then
the mean loss of always taking the field to the best method in hindsight, which nobody can know, and that of `auto`;
and how often R2 at the hidden nodes is within two standard errors of the cross-validated one, over all methods. Where
there is no switch `auto` is the field and cannot lose to it: read gains and losses together with that number.
"""

from __future__ import annotations

import argparse
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from sklearn.metrics import r2_score

from benchmarks.areas import areas
from benchmarks.paper_data import SETS, root, tasks
from benchmarks.pool import resume
from benchmarks.show import show
from graphmrf.comparison import DEFAULT, Settings
from graphmrf.comparison.candidates import compare_methods, gain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.paper_data import Task
    from benchmarks.show import Row
    from graphmrf._typing import Floats

LEAST, MOST, SHARE = 15, 150, 0.7
FOLDS = 5


class Work(NamedTuple):
    """One draw of labels of one task."""

    task: str
    seed: int


def run(*, quick: bool) -> list[Row]:
    """Run all tasks on this machine's cores."""
    return measure([], 5 if quick else 250, jobs=os.cpu_count() or 1)


def measure(wanted: Sequence[str], samples: int, *, jobs: int, keep: Path | None = None) -> list[Row]:
    """Return one row for each area and one for all samples; finished samples are added to the file `keep`."""
    names = [name for name in _all() if name.startswith(tuple(wanted) or "")]
    work = [Work(names[i % len(names)], i // len(names)) for i in range(samples)]
    found = resume(_one, work, jobs, keep)
    return [*_rows([found[each] | {"area": each.task.split(":")[0]} for each in work if each in found])]


@cache
def _all() -> dict[str, Task]:
    london = () if root() is None else tasks({"London": SETS["London"]})
    return {f"{task.data}:{task.outcome}": task for task in (*areas(), *london)}


def labels(task: Task, work: Work) -> Floats:
    """Return the outcome, NaN but for as many labels as the draw has: evenly spread on a logarithmic scale."""
    rng, n = np.random.default_rng([work.seed, list(_all()).index(work.task)]), task.y.size
    count = round(float(np.exp(rng.uniform(np.log(LEAST), np.log(min(MOST, SHARE * n))))))
    known = np.isin(np.arange(n), rng.choice(n, count, replace=False))
    return np.where(known, task.y, np.nan)


def _one(work: Work) -> Row:
    """Return R2 of every method at the hidden nodes, and what `auto` chose on which evidence."""
    task = _all()[work.task]
    y, X = labels(task, work), pd.DataFrame(task.X)
    found, hidden = compare_methods(task.graph, X, y, Settings(cv=FOLDS)), np.isnan(y)
    fits, chosen = found.methods, found.chosen
    field = next(fit for fit in fits if fit.method.key == DEFAULT)
    row: Row = {
        "labels": int(np.sum(~hidden)),
        "chosen": chosen.method.key,
        "evidence": gain(chosen, field),
    }
    row["r2"] = {fit.method.key: r2_score(task.y[hidden], fit.model.predict()[hidden]) for fit in fits}
    return row | {"held out": {fit.method.key: (fit.score, fit.error) for fit in fits}}


def _rows(found: list[Row]) -> Iterator[Row]:
    """Yield a row for each area, for each range of sizes, and for all."""
    groups: dict[str, list[Row]] = {}
    for row in found:
        size = "15-29" if row["labels"] < 30 else "30-59" if row["labels"] < 60 else "60-150"
        for name in (row["area"], f"{size} labels", "all"):
            groups.setdefault(name, []).append(row)
    for name in sorted(groups, key=lambda name: (name == "all", name.endswith("labels"), name)):
        yield {"samples of": name} | _summary(groups[name])


def _summary(rows: list[Row]) -> Row:
    field = np.array([row["r2"][DEFAULT] for row in rows])
    auto = np.array([row["r2"][row["chosen"]] for row in rows])
    best_one = np.array([max(row["r2"].values()) for row in rows])
    change = auto - field
    inside = [
        abs(row["r2"][key] - score) < 2 * error for row in rows for key, (score, error) in row["held out"].items()
    ]
    return {
        "samples": len(rows),
        "switches": sum(row["chosen"] != DEFAULT for row in rows),
        "right": int(np.sum(change > 0)),
        "auto - field": float(change.mean()),
        "worst": float(change.min()),
        "best": float(change.max()),
        "field - hindsight": float(np.mean(field - best_one)),
        "auto - hindsight": float(np.mean(auto - best_one)),
        "median R2 of auto": float(np.median(auto)),
        "range holds": float(np.mean(inside)),
    }


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.auto", description=__doc__)
    parser.add_argument("--tasks", nargs="*", default=[], help="how names begin: columbus, London:income")
    parser.add_argument("--samples", type=int, default=250, help="draws of labels in all, the tasks in turn")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--keep", type=Path, help="file of finished samples, which are not repeated")
    given = parser.parse_args()
    show("auto", __doc__, measure(given.tasks, given.samples, jobs=given.jobs, keep=given.keep))


if __name__ == "__main__":
    main()

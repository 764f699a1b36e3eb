"""What the field foresees on the paper's 14 real tasks: R2 against measured, labels suggested, means over regions.

Parts: "r2", expected against measured R2 at 10, 30, 60 % of labels; "regions", how often 90 % intervals of means over
10, 40 and 160 neighbouring nodes (60 random centres each) hold the mean, by the same fit at 30 %; "suggest", R2 on one
half of the nodes after 20 labels more than 40 from the other half, suggested, at random, and of largest degree. By
itself it takes more options: ``python -m benchmarks.foresee_field [--parts r2 regions suggest]
[--tasks U.S.:income London ...] [--splits 10] [--first 3] [--jobs 2] [--keep FILE]``.

The limit on uncertain nodes in `suggest` was chosen on some of splits 0 to 2, so splits start at 3.
"""

from __future__ import annotations

import argparse
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.metrics import r2_score

from benchmarks.more_data import breadth_first
from benchmarks.paper_data import Task, root, tasks
from benchmarks.pool import resume
from benchmarks.show import show, timed
from graphmrf import GraphRegressor
from graphmrf.selection import split

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.show import Row
    from graphmrf._typing import Bools, Ints

PARTS: dict[str, tuple[float, ...]] = {"r2": (0.6, 0.3, 0.1), "regions": (0.3,), "suggest": (0.0,)}
"""Fractions of labels of every part; 0 stands for so many labels."""
SIZES = (10, 40, 160)
_COVERED = tuple(f"{size} nodes" for size in SIZES)
CENTRES = 60
LABELS, MORE = 40, 20
FIRST = 3
"""First split that is measured; on those before it rules were chosen."""


class Work(NamedTuple):
    """One split of one task."""

    task: str
    fraction: float
    seed: int


def run(*, quick: bool) -> list[Row]:
    """Run all parts on this machine's cores."""
    return measure(
        tuple(PARTS), ["London"] if quick else [], range(FIRST, FIRST + (1 if quick else 10)), jobs=os.cpu_count() or 1
    )


def measure(
    parts: Sequence[str], wanted: Sequence[str], seeds: range, *, jobs: int, keep: Path | None = None
) -> list[Row]:
    """Return one row for each part, fraction and task, and their means; finished splits are added to `keep`."""
    if root() is None:
        return [{"skipped": "set GRAPHMRF_DATA to the folder of the raw data sets"}]
    names = [name for name in _all() if name.startswith(tuple(wanted) or ("",))]
    fractions = dict.fromkeys(f for p in parts for f in PARTS[p])
    work = [Work(name, f, seed) for seed in seeds for f in fractions for name in names]
    found = resume(_one, work, jobs, keep)
    return [row for p in parts for f in PARTS[p] for row in _rows(p, f, names, found)]


def _rows(part: str, fraction: float, names: Sequence[str], found: dict[Work, dict[str, Row]]) -> Iterator[Row]:
    """Yield the mean over splits of every task, then of all tasks with the best and worst of them."""
    label, rows = {"part": part if not fraction else f"{part} {fraction:.0%}"}, []
    for name in names:
        splits = [row[part] for work, row in found.items() if work[:2] == (name, fraction)]
        if splits:
            rows.append({key: float(np.mean([row[key] for row in splits])) for key in splits[0]})
            least = {f"{key}, least": min(row[key] for row in splits) for key in splits[0] if key in _COVERED}
            yield label | {"task": name, "splits": len(splits)} | rows[-1] | least
    if len(rows) < 2:
        return
    for title, pooled in (("mean", np.mean), ("least", np.min), ("most", np.max)):
        yield label | {"task": title} | {key: float(pooled([row[key] for row in rows])) for key in rows[0]}
    if part == "suggest":
        yield from (label | {"task": line} for line in _compared(rows))


def _compared(rows: Sequence[Row]) -> Iterator[str]:
    """Yield on how many tasks suggested labels are better than others, and than all of them."""
    rivals = ("random", "degree")
    for names in (*((name,) for name in rivals), rivals):
        better = sum(all(row["suggested"] > row[name] for name in names) for row in rows)
        yield f"better than {' and '.join(names)}: {better} of {len(rows)}"


@cache
def _all() -> dict[str, Task]:
    return {f"{task.data}:{task.outcome}": task for task in tasks()}


def _one(work: Work) -> dict[str, Row]:
    """Return what one fit tells, by part."""
    task = _all()[work.task]
    if not work.fraction:
        return {"suggest": _suggest(task, work.seed)}
    labelled = split(len(task.y), work.fraction, random_state=work.seed)
    model = _fitted(task, labelled)
    found = {"r2": _r2(task, model, labelled)}
    return found | {"regions": _regions(task, model, work.seed)} if work.fraction in PARTS["regions"] else found


def _fitted(task: Task, labelled: Bools) -> GraphRegressor:
    return GraphRegressor().fit(task.graph, task.X, np.where(labelled, task.y, np.nan))


def _r2(task: Task, model: GraphRegressor, labelled: Bools) -> Row:
    measured = float(r2_score(task.y[~labelled], model.predict()[~labelled]))
    seconds, (foreseen, error) = timed(lambda: model.expected_r2(return_std=True))
    distance = abs(foreseen - measured)
    inside = float(distance < 1.645 * error)
    return {
        "foreseen": foreseen,
        "measured": measured,
        "difference": distance,
        "within 90 %": inside,
        "standard error": error,
        "s": seconds,
    }


def _suggest(task: Task, seed: int) -> Row:
    n, rng = len(task.y), np.random.default_rng(seed)
    order = rng.permutation(n)
    pool, test = np.isin(np.arange(n), order[: n // 2]), np.isin(np.arange(n), order[n // 2 :])
    labelled = np.isin(np.arange(n), order[:LABELS])
    model, candidates = _fitted(task, labelled), pool & ~labelled
    seconds, chosen = timed(lambda: model.suggest(MORE, among=candidates))
    others = np.flatnonzero(candidates)
    picks: dict[str, Ints] = {
        "suggested": chosen["node"].to_numpy(),
        "random": rng.permutation(others)[:MORE],
        "degree": others[np.argsort(-task.graph.degrees[others], kind="stable")[:MORE]],
    }
    row: Row = {"before": _score(task, model, test)}
    for name, nodes in picks.items():
        row[name] = _score(task, _fitted(task, labelled | np.isin(np.arange(n), nodes)), test)
    return row | {"named": float(len(chosen)), "suggest s": seconds}


def _score(task: Task, model: GraphRegressor, test: Bools) -> float:
    return float(r2_score(task.y[test], model.predict()[test]))


def _regions(task: Task, model: GraphRegressor, seed: int) -> Row:
    rng, row = np.random.default_rng(seed), {}
    members = {size: [breadth_first(task.graph, int(c))[:size] for c in _centres(task, rng)] for size in SIZES}
    seconds, found = timed(
        lambda: model._field.accuracy.sums([nodes for each in members.values() for nodes in each], 0.9)
    )
    truth = np.array([task.y[nodes].sum() for each in members.values() for nodes in each])
    for k, size in enumerate(SIZES):
        total, std, low, high = found[:, CENTRES * k : CENTRES * (k + 1)]
        true = truth[CENTRES * k : CENTRES * (k + 1)]
        error, sure = true - total, std > 0
        row[f"{size} nodes"] = float(np.mean((low <= true) & (true <= high)))
        row[f"{size} rms score"] = float(np.sqrt(np.mean((error[sure] / std[sure]) ** 2)))
    return row | {"s": seconds}


def _centres(task: Task, rng: np.random.Generator) -> Ints:
    """Return random nodes of the largest component, in which every size fits."""
    inside = task.graph.components == np.bincount(task.graph.components).argmax()
    return rng.choice(np.flatnonzero(inside), CENTRES, replace=False)


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.foresee_field", description=__doc__)
    parser.add_argument("--parts", nargs="*", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--tasks", nargs="*", default=[], help="how names begin: U.S.:income, London")
    parser.add_argument("--splits", type=int, default=10, help="number of splits")
    parser.add_argument("--first", type=int, default=FIRST, help="number of the first split")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--keep", type=Path, help="file of finished splits, which are not repeated")
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.splits)
    rows = measure(given.parts, given.tasks, seeds, jobs=given.jobs, keep=given.keep)
    show("foresee_field", __doc__, rows)


if __name__ == "__main__":
    main()

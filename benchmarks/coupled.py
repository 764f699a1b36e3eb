"""The coupled field (full C) beside the paper's (diag h) on the U.S. counties: likelihood, and R2 given 30 % labels.

Both fields are fitted to all features and the labelled outcomes, and conditioned on them; LGC/RP sees the same.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np
from sklearn.metrics import r2_score

from benchmarks.paper_data import Task, counties, root
from benchmarks.pool import perform
from benchmarks.show import timed
from graphmrf import GaussianMRF, LinearGraphConvolution, ResidualPropagation
from graphmrf.metrics import coverage, log_score
from graphmrf.model import density_of_states
from graphmrf.selection import split

if TYPE_CHECKING:
    from benchmarks.show import Row
    from graphmrf._typing import Floats
    from graphmrf.linalg.spectrum import Spectrum

REACH = 1.6448536269514722
"""Standard deviations that a 90 % interval reaches."""


def run(*, quick: bool) -> list[Row]:
    """Fit both fields to the complete table, then to every split of every outcome."""
    if root() is None:
        return [{"skipped": "set GRAPHMRF_DATA to the folder of the raw data sets"}]
    work = [(outcome, seed) for outcome in counties() for seed in range(1 if quick else 10)]
    found = dict(perform(_split, work))
    first = next(iter(counties().values()))
    rows = [_row(name, [found[each] for each in work if each[0] == name]) for name in counties()]
    return [_complete(first, _states()), *rows]


@cache
def _states() -> Spectrum:
    return density_of_states(next(iter(counties().values())).graph)


def _complete(task: Task, states: Spectrum) -> Row:
    A, row = np.column_stack([task.X, task.y]), dict[str, float | str](task="all attributes, complete")
    for name, coupled in (("field", False), ("coupled", True)):
        fit = partial(GaussianMRF.fit, task.graph, A, coupled=coupled, spectrum=states)
        seconds, mrf = timed(fit)
        row |= {f"{name} log likelihood": mrf.diagnostics.log_likelihood, f"{name} s": seconds}
    return row


def _row(outcome: str, splits: list[dict[str, float]]) -> Row:
    return {"task": outcome} | {key: float(np.mean([row[key] for row in splits])) for key in splits[0]}


def _split(work: tuple[str, int]) -> dict[str, float]:
    task, states = counties()[work[0]], _states()
    labelled = split(len(task.y), 0.3, random_state=work[1])
    y, row = np.where(labelled, task.y, np.nan), dict[str, float]()
    A = np.column_stack([task.X, y])
    for name, coupled in (("field", False), ("coupled", True)):
        fit = partial(GaussianMRF.fit, task.graph, A, coupled=coupled, spectrum=states)
        seconds, mrf = timed(fit)
        posterior = mrf.condition(task.graph, A)
        row |= {f"{name} log likelihood": mrf.diagnostics.log_likelihood, f"{name} s": seconds}
        row |= _scores(name, task.y[~labelled], posterior.mean[~labelled, -1], posterior.std[~labelled, -1])
    mean, std = ResidualPropagation(LinearGraphConvolution()).fit(task.graph, task.X, y).predict(return_std=True)
    return row | _scores("LGC/RP", task.y[~labelled], mean[~labelled], std[~labelled])


def _scores(name: str, truth: Floats, mean: Floats, std: Floats) -> dict[str, float]:
    inside = coverage(truth, mean - REACH * std, mean + REACH * std)
    return {
        f"{name} R2": r2_score(truth, mean),
        f"{name} log score": log_score(truth, mean, std),
        f"{name} 90 %": inside,
    }

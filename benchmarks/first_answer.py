"""Seconds to the first usable answer of ``graphmrf predict``, and the CPU time of all methods beside others.

Houses as in `core_speed` with a tenth of the labels: prices, and their quarters as classes. `compare` fits the methods
of "auto" one after the other; the first accuracy at held-out labels is the first answer. CPU seconds of the whole are
shown beside label propagation alone and boosted trees with residual propagation (of classes: of the indicator of each).
R2, or the share of right classes, at hidden nodes. ``python -m benchmarks.first_answer [--nodes 60000] [--tasks prices
classes]``.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import r2_score

from benchmarks.core_speed import houses
from benchmarks.show import Row, show
from graphmrf import GraphClassifier, LabelPropagation, ResidualPropagation
from graphmrf.comparison import Settings
from graphmrf.comparison.candidates import Comparison, as_outcome, compare_methods

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from graphmrf.graph import Graph

KNOWN, PARTS = 0.1, 4
TASKS = ("prices", "classes")


def run(*, quick: bool) -> list[Row]:
    """Return a row for each task."""
    return [measure(task, 1_500 if quick else 60_000) for task in TASKS]


def measure(name: str, n: int) -> Row:
    """Return times and accuracies of one task."""
    task = houses(n)
    quarters = np.asarray(pd.qcut(task.y, PARTS, labels=False)).astype(str)
    truth = task.y if name == "prices" else quarters.astype(object)
    y = truth.copy()
    hidden = np.random.default_rng(0).random(n) >= KNOWN
    y[hidden] = np.nan if name == "prices" else None

    def right(answer: Any) -> float:
        found = np.asarray(answer)[hidden]
        return r2_score(truth[hidden], found) if name == "prices" else float(np.mean(found == truth[hidden]))

    answers: list[tuple[float, float]] = []
    start = time.perf_counter(), time.process_time()
    found = compared(task.graph, task.X, y, lambda: answers.append((time.perf_counter() - start[0], _cpu(start[1]))))
    whole = time.perf_counter() - start[0], _cpu(start[1])
    of_each = np.diff([0.0, *(cpu for _, cpu in answers)])
    row: Row = {"task": name, "nodes": n, "labels": int((~hidden).sum()), "first answer s": answers[0][0]}
    row |= {
        "quick answers s": answers[-2][0],
        "auto s": whole[0],
        "auto CPU s": whole[1],
        "chosen": found.chosen.method.key,
    }
    for fit, cpu in zip(found.methods, of_each, strict=True):
        row |= {f"{fit.method.key} CPU s": cpu, fit.method.key: right(fit.model.predict())}
    base: Any = ResidualPropagation(HistGradientBoostingRegressor(random_state=0))
    for key, model in (("LP alone", LabelPropagation()), ("boosting + RP", base)):
        began = time.process_time()
        fitted = (model if name == "prices" else GraphClassifier(model)).fit(task.graph, task.X, y)
        row |= {key: right(fitted.predict()), f"auto CPU / {key}": whole[1] / _cpu(began)}
    return row


def compared(graph: Graph, X: Any, y: Any, advance: Callable[[], None]) -> Comparison:
    """Return the methods of "auto" compared; `advance` is called after each."""
    return compare_methods(graph, pd.DataFrame(X), as_outcome(y, graph.n_nodes), Settings(), lambda _: advance())


def _cpu(began: float) -> float:
    return time.process_time() - began


def main(names: Sequence[str] = TASKS) -> None:
    """Print the tasks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=60_000)
    parser.add_argument("--tasks", nargs="*", default=list(names))
    options = parser.parse_args()
    show("first_answer", __doc__, [measure(task, options.nodes) for task in options.tasks])


if __name__ == "__main__":
    main()

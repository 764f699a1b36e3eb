"""Probabilities of classes: fields with a logistic link beside regressions of the indicator with Platt's sigmoid.

Hemlock in forest stands of Michigan (a connected part), mature streamers of Twitch, and thirds and fifths of incomes in
London; 30 % of the labels known. Log loss, area under the ROC curve (of more than two classes its mean over all against
the rest), and expected calibration error in ten groups of equal size. ``python -m benchmarks.classes [--draws 2]
[--size 1500]``.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss, roc_auc_score

from benchmarks import paper_data, questions
from benchmarks.more_data import Task, connected_part, more_root
from benchmarks.show import show
from graphmrf import Graph, GraphClassifier, GraphRegressor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.show import Row
    from graphmrf._typing import Floats, Ints

KNOWN = 0.3
_CLIMATE = ["MIN", "MAX", "SUP", "WIP", "AET", "DEF"]


@dataclass(frozen=True)
class Classes:
    """A graph, features (n, p) and the class of every node (n,)."""

    name: str
    graph: Graph
    X: Floats
    y: Ints


def tasks(size: int) -> Iterator[Classes]:
    """Yield the tasks."""
    folder = more_root()
    if folder is not None:
        frame, edges = (pd.read_csv(folder / "michigan_hemlock" / f"{part}.csv.gz") for part in ("nodes", "edges"))
        graph = Graph.from_edges(edges.iloc[:, 0], edges.iloc[:, 1], n_nodes=len(frame))
        whole = Task(
            "hemlock", graph, frame[_CLIMATE].to_numpy(), frame["hemlock"].to_numpy(dtype=np.float64), "points"
        )
        parts = [connected_part(whole, size, seed=seed) for seed in range(20)]
        part = max(parts, key=lambda each: float(each.y.mean()))
        yield Classes("hemlock", part.graph, part.X, part.y.astype(np.int64))
    question, _ = questions.mature("PTBR", 1)
    yield Classes("Twitch PTBR, mature", question.graph, question.X, question.y.astype(np.int64))
    for task in paper_data.tasks({"London": "london-2016"}):
        if task.outcome == "income":
            for count, word in ((3, "thirds"), (5, "fifths")):
                groups = np.asarray(pd.qcut(task.y, count, labels=False))
                yield Classes(f"London, {word} of income", task.graph, task.X, groups)


def calibration_error(probability: Floats, truth: Floats) -> float:
    """Return the mean distance between probabilities and shares, in ten groups of equal size."""
    groups = np.argsort(np.argsort(probability, kind="stable"), kind="stable") * 10 // probability.size
    parts = [(groups == group) for group in np.unique(groups)]
    return float(sum(part.mean() * abs(probability[part].mean() - truth[part].mean()) for part in parts))


def run(draws: int, size: int) -> list[Row]:
    """Return a row for every task and method."""
    methods = {"logistic link": GraphClassifier(), "sigmoid of a regression": GraphClassifier(GraphRegressor())}
    return [_row(task, name, model, draws) for task in tasks(size) for name, model in methods.items()]


def _row(task: Classes, name: str, model: GraphClassifier, draws: int) -> Row:
    found, started = [], time.perf_counter()
    for draw in range(draws):
        known = np.random.default_rng(draw).random(task.y.size) < KNOWN
        y = np.where(known, task.y, np.nan)
        probability = model.fit(task.graph, task.X, y).predict_proba()[~known]
        truth, classes = task.y[~known], range(probability.shape[1])
        sides = [(truth == code).astype(float) for code in classes]
        each = [1] if len(sides) == 2 else list(classes)
        auc = np.mean([roc_auc_score(sides[k], probability[:, k]) for k in each])
        ece = np.mean([calibration_error(probability[:, k], sides[k]) for k in each])
        found.append([log_loss(truth, probability, labels=list(classes)), float(auc), float(ece)])
    scores = np.mean(found, axis=0)
    row: Row = {"task": task.name, "method": name, "nodes": task.y.size}
    row |= dict(zip(("log loss", "AUC", "calibration error"), scores.round(4).tolist(), strict=True))
    return row | {"seconds": round((time.perf_counter() - started) / draws, 1)}


def main() -> None:
    """Print all tasks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--size", type=int, default=1500)
    options = parser.parse_args()
    show("classes", __doc__, run(options.draws, options.size))


if __name__ == "__main__":
    main()

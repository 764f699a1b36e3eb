"""Probabilities of classes: fields with a logistic link beside regressions of the indicator with Platt's sigmoid.

Hemlock in forest stands of Michigan (a connected part), mature streamers of Twitch, and thirds and fifths of incomes in
London; 30 % of the labels known. Handwritten digits on the graph of 8 nearest neighbours, 100 labels, 5 draws. Log
loss, area under the ROC curve (of more than two classes its mean over all against the rest), and expected calibration
error in ten groups of equal size, beside that of outcomes drawn from the very probabilities, which is not 0 as groups
are finite. Then accuracy beside label propagation, of digits, and of Karate club with 1, 2 and 4 labels of each class,
20 draws. Models were developed on draws 10 and 11. ``python -m benchmarks.classes [--draws 2] [--size 1500] [--tasks
London Karate digits ...] [--keep FILE]``.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss, roc_auc_score

from benchmarks import paper_data
from benchmarks.more_data import Task, connected_part, more_root
from benchmarks.pool import resume
from benchmarks.show import show, timed
from graphmrf import Graph, GraphClassifier, GraphRegressor, LabelPropagation, compare, datasets

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
    data = datasets.load("twitch-ptbr")
    X = datasets.paper(data).drop(columns="days").to_numpy()
    yield Classes("Twitch PTBR, mature", data.graph, X, data.frame["mature"].to_numpy(dtype=np.int64))
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


def chance_error(probability: Floats, *, draws: int = 50) -> float:
    """Return the expected calibration error of outcomes that have these probabilities."""
    rng = np.random.default_rng(0)
    outcomes = rng.random((draws, probability.size)) < probability
    return float(np.mean([calibration_error(probability, each.astype(float)) for each in outcomes]))


METHODS = {
    "logistic link": GraphClassifier(),
    "sigmoid of a regression": GraphClassifier(GraphRegressor()),
    "ordered": GraphClassifier(ordered=True),
}


def run(*, quick: bool) -> list[Row]:
    """Run all tasks with two draws; quick: Karate club alone."""
    return measure(2, 1500, ["karate"] if quick else [])


def measure(draws: int, size: int, names: Sequence[str] = (), jobs: int = 1, keep: Path | None = None) -> list[Row]:
    """Return a row for every task and method, of the tasks whose names begin with one of some names, or of all."""
    chosen = tuple(name.lower() for name in names) or ("",)
    runs = [
        (task.name, method)
        for task in tasks(size)
        if task.name.lower().startswith(chosen)
        for method in METHODS
        if method != "ordered" or task.y.max() > 1
    ]
    found = resume(one, [(*run, draw, size) for run in runs for draw in range(draws)], jobs, keep)
    means = {run: [found[*run, draw, size] for draw in range(draws) if (*run, draw, size) in found] for run in runs}
    rows = [_row(*run, scores) for run, scores in means.items() if scores]
    rows += [_karate(count) for count in (1, 2, 4) if "karate club".startswith(chosen)]
    return rows + (_digits() if "digits".startswith(chosen) else [])


def one(work: tuple[str, str, int, int]) -> list[float]:
    """Return the scores of a method on a draw of a task, the number of nodes and the seconds."""
    name, method, draw, size = work
    task = next(task for task in tasks(size) if task.name == name)
    known = np.random.default_rng(draw).random(task.y.size) < KNOWN
    y = np.where(known, task.y, np.nan)
    seconds, probability = timed(lambda: METHODS[method].fit(task.graph, task.X, y).predict_proba()[~known])
    return [*_scores(probability, task.y[~known]), task.y.size, seconds]


def _row(task: str, method: str, runs: list[list[float]]) -> Row:
    """Return the means over draws."""
    *scores, nodes, seconds = np.mean(runs, axis=0).round(4).tolist()
    return {"task": task, "method": method, "nodes": int(nodes)} | _named(scores) | {"seconds": round(seconds, 1)}


def _digits(labels: int = 100, draws: int = 5) -> list[Row]:
    """Return a row for every method on handwritten digits, which have the graph alone, and one of accuracies."""
    data = load_digits()
    graph = Graph.from_knn(data.data, k=8)
    found: dict[str, list[list[float]]] = {"default": [], "auto": [], "label propagation": []}
    for draw in range(draws):
        known = np.zeros(data.target.size, dtype=bool)
        known[np.random.default_rng(draw).permutation(known.size)[:labels]] = True
        y = np.where(known, data.target, np.nan)
        named = [None if np.isnan(value) else str(int(value)) for value in y]
        models = {
            "default": GraphClassifier().fit(graph, None, y),
            "auto": compare(graph, None, named).model,
            "label propagation": GraphClassifier(LabelPropagation(), cv=2).fit(graph, None, y),
        }
        for name, model in models.items():
            found[name].append(_scores(model.predict_proba()[~known], data.target[~known]))
    means = {name: np.mean(scores, axis=0).round(4).tolist() for name, scores in found.items()}
    task: Row = {"task": f"digits, {labels} labels"}
    rows = [task | {"method": name, "nodes": data.target.size} | _named(each) for name, each in means.items()]
    return [*rows, task | {name: each[-1] for name, each in means.items()}]


def _named(scores: list[float]) -> Row:
    return dict(zip(("log loss", "AUC", "calibration error", "by chance"), scores, strict=False))


def _scores(probability: Floats, truth: Ints) -> list[float]:
    """Return log loss, area under the ROC curve, calibration error, that by chance, and accuracy."""
    classes = range(probability.shape[1])
    sides = [(truth == code).astype(float) for code in classes]
    each = [1] if len(sides) == 2 else list(classes)
    means = [
        float(np.mean([measured(k) for k in each]))
        for measured in (
            lambda k: roc_auc_score(sides[k], probability[:, k]),
            lambda k: calibration_error(probability[:, k], sides[k]),
            lambda k: chance_error(probability[:, k]),
        )
    ]
    right = float(np.mean(probability.argmax(axis=1) == truth))
    return [float(log_loss(truth, probability, labels=list(classes))), *means, right]


def _karate(count: int) -> Row:
    """Return the accuracy with some labels of each class."""
    club = nx.karate_club_graph()
    graph = Graph(nx.to_scipy_sparse_array(club, weight=None, dtype=float))
    truth = np.array([club.nodes[node]["club"] == "Officer" for node in club]).astype(float)
    found: dict[str, list[float]] = {"default": [], "auto": [], "label propagation": []}
    for draw in range(20):
        rng = np.random.default_rng(draw)
        chosen = np.concatenate([rng.permutation(np.flatnonzero(truth == side))[:count] for side in (0, 1)])
        y = np.full(truth.size, np.nan)
        y[chosen] = truth[chosen]
        hidden = np.isnan(y)
        named = [None if np.isnan(value) else str(int(value)) for value in y]
        sides = {
            "default": GraphClassifier().fit(graph, None, y).predict() == truth,
            "auto": compare(graph, None, named).model.predict().astype(float) == truth,
            "label propagation": (LabelPropagation(alpha=0.9).fit(graph, None, 2 * y - 1).predict() > 0) == truth,
        }
        for name, right in sides.items():
            found[name].append(float(np.mean(right[hidden])))
    return {"task": f"Karate club, {2 * count} labels"} | {
        name: round(float(np.mean(v)), 3) for name, v in found.items()
    }


def main() -> None:
    """Print all tasks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--size", type=int, default=1500)
    parser.add_argument("--tasks", nargs="*", default=[])
    parser.add_argument("--jobs", type=int, default=1, help="processes; 0 prints what is in the file")
    parser.add_argument("--keep", type=Path, help="file of finished runs, which are not repeated")
    options = parser.parse_args()
    show("classes", __doc__, measure(options.draws, options.size, options.tasks, options.jobs, options.keep))


if __name__ == "__main__":
    main()

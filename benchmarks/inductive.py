"""Fit on one graph, predict another: mean R2 of 10 splits, U.S. counties 2012 -> 2016 and synthetic samples 2 -> 1.

"constant": with the intercept that least squares, or the training, finds. "auto": with one only if the labels show it
beyond what a smooth sample has by chance (``fit_intercept="auto"``; networks have no such test, so there it is
``fit_intercept=False``). "here": the hidden nodes of the graph of the fit. SGC and GCN are trained as in the paper,
"SGC exact" is by least squares. On the synthetic graphs a mean learned from one sample is wrong in the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import r2_score

from benchmarks import questions
from benchmarks.company import Question, answer
from graphmrf import LinearGraphConvolution, LinearRegression, SimpleGraphConvolution
from graphmrf.errors import InvalidInputError
from graphmrf.networks.options import PAPER_TRAINING, pick_device

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.show import Row
    from graphmrf._typing import Floats

LINEAR: dict[str, Callable[[int, Any], Any]] = {
    "LR": lambda _, intercept: LinearRegression(fit_intercept=intercept),
    "LGC": lambda seed, intercept: LinearGraphConvolution(seed=seed, fit_intercept=intercept),
    "SGC exact": lambda seed, intercept: SimpleGraphConvolution(seed=seed, fit_intercept=intercept),
}
LOGS = {("WattsStrogatz", 10): "LGC .23, SGC .45", ("WattsStrogatz", 100): "LGC -.76, SGC .29"}
LEAST_SQUARES = {
    ("WattsStrogatz", 10): "LGC -.90 / .58",
    ("WattsStrogatz", 100): "LGC -3.06 / .37",
    ("WattsStrogatzOriginal", 100): "LGC .30 / .37",
}


def run(*, quick: bool) -> list[Row]:
    """Fit every method on every split, with and without a constant."""
    problem = questions.missing()
    if problem:
        return [{"skipped": problem}]
    n_splits, rows = 2 if quick else 10, []
    for outcome, question, truth in questions.counties(n_splits):
        rows.append({"data": "U.S. 2012 -> 2016", "outcome": outcome, **_cells([(question, truth)])})
        if quick:
            break
    for graph in questions.FAMILIES:
        rows += [_transferred(graph, h0, n_splits, quick=quick) for h0 in ((100,) if quick else questions.H0)]
    return rows


def _transferred(graph: str, h0: int, n_splits: int, *, quick: bool) -> Row:
    try:
        asked = list(questions.transferred(graph, h0, n_splits))[: 1 if quick else None]
    except InvalidInputError as error:
        return {"data": graph, "outcome": f"h0 = {h0}", "skipped": str(error)}
    return {"data": graph, "outcome": f"h0 = {h0}", **_cells(asked), **_known(graph, h0)}


def _known(graph: str, h0: int) -> Row:
    """Return what is on record: the reference's logs, and least squares with and without intercept."""
    key = (graph, h0)
    return {"reference logs": LOGS.get(key), "on record, with / without": LEAST_SQUARES.get(key)}


def _cells(asked: Sequence[tuple[Question, Floats]]) -> Row:
    cells: Row = {}
    for name, make in LINEAR.items():
        scores = np.concatenate([_linear(make, question, truth) for question, truth in asked])
        cells[name] = _cell(scores)
    for name, relu in (("SGC", False), ("GCN", True)):
        scores = np.concatenate([_network(question, truth, relu=relu) for question, truth in asked])
        cells[name] = _cell(scores)
    return cells


def _cell(scores: Floats) -> dict[str, float]:
    means = np.asarray(scores).mean(axis=0)
    return dict(zip(("constant", "auto", "here"), means.tolist(), strict=True))


def _linear(make: Callable[[int, Any], Any], question: Question, truth: Floats) -> list[tuple[float, float, float]]:
    """Return R2 elsewhere with an intercept and with an automatic one, and R2 on the graph of the fit."""
    assert question.other is not None
    rows = []
    for seed, labelled in enumerate(question.labelled):
        y, hidden = np.where(labelled, question.y, np.nan), ~labelled
        learned, auto = (make(seed, choice).fit(question.graph, question.X, y) for choice in (True, "auto"))
        there, safely = (r2_score(truth[hidden], model.predict(*question.other)[hidden]) for model in (learned, auto))
        rows.append((there, safely, r2_score(question.y[hidden], learned.predict()[hidden])))
    return rows


def _network(question: Question, truth: Floats, *, relu: bool) -> list[tuple[float, float, float]]:
    """Return the same of a network; without constants on samples of mean zero only."""
    zero_mean = question.name.startswith("Watts")
    with_bias = answer(question, PAPER_TRAINING, relu=relu, device=pick_device("auto"))
    without = answer(question, PAPER_TRAINING, relu=relu, bias=not zero_mean, device=pick_device("auto"))
    parts = zip(question.labelled, with_bias.elsewhere, without.elsewhere, with_bias.final, strict=True)
    return [
        (r2_score(truth[~mask], a[~mask]), r2_score(truth[~mask], b[~mask]), r2_score(question.y[~mask], here[~mask]))
        for mask, a, b, here in parts
    ]

"""Which Twitch channels use explicit language: F1 and accuracy at 30 % labels, and German -> English.

Every method is a regression of 0 and 1 with a cut-off tuned on held-out folds, for F1 (as in `GraphClassifier`) and for
accuracy. SGC is exact; GCN is trained on all labels at once. Mean of 10 splits (of 3 on the two larger
graphs). "majority" says the same of everyone: the more frequent class, or mature for F1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import f1_score

from benchmarks import questions
from benchmarks.company import Question, answer
from graphmrf import (
    LabelPropagation,
    LinearGraphConvolution,
    LinearRegression,
    ResidualPropagation,
    SimpleGraphConvolution,
)
from graphmrf.estimators.graph_classifier import best_cutoff
from graphmrf.linalg import propagate
from graphmrf.networks.options import FULL_TRAINING, pick_device
from graphmrf.selection import own_fold, search_residual

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.show import Row
    from graphmrf._typing import Floats

LINEAR: dict[str, Any] = {
    "LP": LabelPropagation(),
    "LR": LinearRegression(),
    "LGC": LinearGraphConvolution(shrinkage=0),
    "SGC": SimpleGraphConvolution(),
    "LR/RP": ResidualPropagation(LinearRegression()),
    "LGC/RP": ResidualPropagation(LinearGraphConvolution()),
    "SGC/RP": ResidualPropagation(SimpleGraphConvolution()),
}


def run(*, quick: bool) -> list[Row]:
    """Score every method on every split of the three languages, then the transfer."""
    problem = questions.missing()
    if problem:
        return [{"skipped": problem}]
    rows = []
    for code in questions.MATURE[:1] if quick else questions.MATURE:
        question, _ = questions.mature(code, _splits(code, quick=quick), other="ENGB" if code == "DE" else None)
        rows += _rows(code, {"majority": _majority(question), **_transductive(question)})
    if not quick:
        question, truth = questions.mature("DE", _splits("DE", quick=quick), other="ENGB")
        assert truth is not None
        rows += _rows("DE -> ENGB", _inductive(question, truth))
    return rows


def _splits(code: str, *, quick: bool) -> int:
    return 1 if quick else 10 if code == "PTBR" else 3


def _rows(data: str, scores: dict[str, Floats]) -> list[Row]:
    means = {name: np.asarray(values).mean(axis=0) for name, values in scores.items()}
    return [
        {"data": data, "metric": metric, **{name: float(mean[k]) for name, mean in means.items()}}
        for k, metric in enumerate(("F1", "accuracy"))
    ]


def _majority(question: Question) -> Floats:
    hidden = [question.y[~labelled] for labelled in question.labelled]
    return np.array([(f1_score(y, np.ones_like(y)), max(y.mean(), 1 - y.mean())) for y in hidden])


def _transductive(question: Question) -> dict[str, Floats]:
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in (*LINEAR, "GCN", "GCN/RP")}
    network = _network(question)
    for split, labelled in enumerate(question.labelled):
        hidden, truth = ~labelled, question.y[~labelled]
        for name, estimator in LINEAR.items():
            fitted, scores = _fit(estimator, question, split)
            found[name].append(_measure(question, split, scores, fitted.predict()[hidden], truth))
        for name, (scores, final) in zip(("GCN", "GCN/RP"), _networks(question, network, split), strict=True):
            found[name].append(_measure(question, split, scores, final[hidden], truth))
    return {name: np.array(values) for name, values in found.items()}


def _inductive(question: Question, truth: Floats) -> dict[str, Floats]:
    assert question.other is not None
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ("LR", "LGC", "SGC", "GCN")}
    network = _network(question)
    for split in range(len(question.labelled)):
        for name in ("LR", "LGC", "SGC"):
            fitted, scores = _fit(LINEAR[name], question, split)
            found[name].append(_measure(question, split, scores, fitted.predict(*question.other), truth))
        scores = own_fold(network.fits[split], question.folds[split])
        found["GCN"].append(_measure(question, split, scores, network.elsewhere[split], truth))
    everyone = np.array([(f1_score(truth, np.ones_like(truth)), max(truth.mean(), 1 - truth.mean()))])
    return {"majority": everyone, **{name: np.array(values) for name, values in found.items()}}


def _fit(estimator: Any, question: Question, split: int) -> tuple[Any, Floats]:
    """Return the fitted estimator, and its scores of labelled nodes that it had not seen."""
    y = np.where(question.labelled[split], question.y, np.nan)
    fitted = estimator.fit(question.graph, question.X, y)
    return fitted, fitted.out_of_fold(question.graph, question.X, y, question.folds[split])


def _network(question: Question) -> Any:
    return answer(question, FULL_TRAINING, relu=True, device=pick_device("auto"))


def _networks(question: Question, network: Any, split: int) -> Iterator[tuple[Floats, Floats]]:
    """Yield unseen scores and predictions of the network, alone and with residual propagation."""
    labelled, folds, graph = question.labelled[split], question.folds[split], question.graph
    fits, final = network.fits[split].astype(np.float64), network.final[split].astype(np.float64)
    yield own_fold(fits, folds), final
    search = search_residual(graph, np.where(labelled, question.y, np.nan), fits, folds)
    residuals = np.where(labelled, question.y - final, 0.0)[:, None]
    yield search.predictions[search.best], final + propagate(graph, residuals, labelled, search.alpha)[:, 0]


def _measure(question: Question, split: int, scores: Floats, predicted: Floats, truth: Floats) -> tuple[float, float]:
    """Return F1 and accuracy, each at the cut-off that is best for it on unseen scores."""
    positive = question.y[question.labelled[split]] == 1
    by_f1, by_accuracy = (best_cutoff(scores, positive, metric)[0] for metric in ("f1", "accuracy"))
    return f1_score(truth, predicted >= by_f1), float(np.mean((predicted >= by_accuracy) == (truth == 1)))

"""Methods side by side on the same folds, and one sentence on what carries the prediction."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from graphmrf._typing import Floats
from graphmrf.cli.methods import Estimator, Method, Tuning
from graphmrf.estimators.held_out import held_out
from graphmrf.estimators.inputs import read_outcome
from graphmrf.graph import Graph
from graphmrf.selection import AlphaSearch

CLEAR = 0.02
"""A difference of R2 below this is no difference."""


@dataclass(frozen=True, eq=False)
class Fit:
    """One method fitted to one target; `scores` has its cross-validated accuracy at every level tried."""

    method: Method
    estimator: Estimator
    scores: dict[str, Floats]

    @property
    def alpha(self) -> float | None:
        """Smoothing level in use; None for a method without one."""
        return getattr(self.estimator, "alpha_", None)

    @property
    def r2(self) -> float:
        """Pooled accuracy at that level."""
        return float(self.scores["mean_r2"][self._row])

    @property
    def fold_r2(self) -> tuple[float, ...]:
        """Accuracy of every fold at that level."""
        return tuple(float(score) for score in self.scores["fold_r2"][self._row])

    @property
    def _row(self) -> int:
        return int(np.argmin(np.abs(self.scores["alpha"] - (self.alpha or 0.0))))


def fit_all(
    methods: Sequence[Method], graph: Graph, X: pd.DataFrame, y: Floats, *, tuning: Tuning, advance: Callable[[], None]
) -> tuple[Fit, ...]:
    """Return every method fitted and scored; the same seed gives them the same folds."""
    fits = []
    for method in methods:
        features = X if method.features else None
        estimator = method.make(tuning)
        estimator.fit(graph, features, y)
        searched: dict[str, Floats] | None = getattr(estimator, "cv_results_", None)
        scores = searched if searched and "alpha" in searched else _scores(estimator, graph, features, y, tuning)
        fits.append(Fit(method, estimator, scores))
        advance()
    return tuple(fits)


def _scores(estimator: Estimator, graph: Graph, X: pd.DataFrame | None, y: Floats, tuning: Tuning) -> dict[str, Floats]:
    """Cross-validate where the estimator itself had no level to choose, on the folds it would use."""
    outcome = read_outcome(y, graph.n_nodes)
    folds = outcome.folds(tuning.folds, tuning.seed)
    predictions = held_out(estimator, graph, X, outcome, folds)
    return AlphaSearch.score((tuning.alpha or 0.0,), predictions[None], outcome.y[outcome.known], folds).table()


def best(fits: Sequence[Fit]) -> Fit:
    """Return the most accurate fit; of equals the first, which is the simplest."""
    return max(fits, key=lambda fit: -np.inf if np.isnan(fit.r2) else fit.r2)


def carrier(fits: Sequence[Fit]) -> str:
    """Return one sentence on what carries the prediction: outcomes of neighbours, features, or both."""
    outcomes = _accuracy(fits, outcomes=True, features=False)
    if not any(fit.method.features for fit in fits):
        return f"Without features only outcomes of neighbours can carry the prediction: R2 {outcomes:.2f}."
    features = _accuracy(fits, outcomes=False, features=True)
    return _sentence(outcomes, features, _accuracy(fits, outcomes=True, features=True))


def _accuracy(fits: Sequence[Fit], *, outcomes: bool, features: bool) -> float:
    scores = [fit.r2 for fit in fits if (fit.method.outcomes, fit.method.features) == (outcomes, features)]
    return max(scores)


def _sentence(outcomes: float, features: float, both: float) -> str:
    alone = f"outcomes of neighbours alone reach R2 {outcomes:.2f}, features alone {features:.2f}"
    if max(outcomes, features, both) < CLEAR:
        return f"Neither outcomes of neighbours nor features carry a prediction here: {alone}, both {both:.2f}."
    if both >= max(outcomes, features) + CLEAR:
        return f"Both carry the prediction: {alone}, together {both:.2f}."
    if outcomes >= features + CLEAR:
        return (
            f"Outcomes of neighbours carry the prediction and features add nothing to them: {alone}, both {both:.2f}."
        )
    if features >= outcomes + CLEAR:
        return (
            f"Features carry the prediction and outcomes of neighbours add nothing to them: {alone}, both {both:.2f}."
        )
    return f"Outcomes of neighbours and features say the same here, either is enough: {alone}, both {both:.2f}."

"""Choices a user makes or leaves to the labels: the smoothing level, shrinkage, and whether to fit an intercept.

A strongly smooth field has a large mean of its own, which changes from sample to sample. On the graph of the labels
an intercept rightly takes it up; on another graph it is an error at every node. "auto" therefore tests whether the
labels support an intercept, or only the mean of one smooth sample.
"""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from sklearn.base import clone

from graphmrf.errors import InvalidInputError
from graphmrf.estimators.error_bars import precision_times
from graphmrf.estimators.out_of_fold import refit_folds
from graphmrf.linalg import propagate
from graphmrf.selection import SHRINKAGE, search_residual
from graphmrf.selection.least_squares import RANK_TOLERANCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphmrf._typing import Floats, Ints
    from graphmrf.estimators.inputs import Outcome
    from graphmrf.graph import Graph
    from graphmrf.selection import AlphaSearch

Level: TypeAlias = float | Literal["cv"]
Intercept: TypeAlias = bool | Literal["auto"]


def given_level(alpha: Level, omega: float | None) -> float | None:
    r"""Return the level alpha that the user gave, or None when it is to be chosen by cross-validation.

    The two scales are :math:`\alpha = \omega / (1 + \omega)` in [0, 1) and :math:`\omega = \alpha / (1 - \alpha) \ge
    0`.
    """
    if isinstance(alpha, str):
        if alpha != "cv":
            raise InvalidInputError(f"alpha must be 'cv' or a number in [0, 1), got {alpha!r}")
        return None if omega is None else _from_omega(omega)
    if omega is not None:
        raise InvalidInputError(
            f"give alpha or omega, got alpha={alpha!r} and omega={omega!r}; leave alpha at 'cv' to use omega"
        )
    if not _is_number(alpha) or not 0 <= alpha < 1:
        raise InvalidInputError(f"alpha must be 'cv' or a number in [0, 1), got {alpha!r}")
    return float(alpha)


def settle(
    level: float | None, estimator: Any, graph: Graph, outcome: Outcome, search: Callable[[Ints], AlphaSearch]
) -> tuple[float, dict[str, Floats] | None]:
    """Return the level and the table of the search, which is run only if no level was given.

    The search is given folds that imitate the holes, and is scored with their weights.
    """
    if level is not None:
        return level, None
    matched = outcome.matched_folds(graph, estimator.cv, estimator.random_state)
    found = search(matched.folds).matched(outcome.y[outcome.known], matched)
    return found.alpha, found.table()


def given_shrinkage(shrinkage: float | None, level: float | None) -> float:
    """Return the strength of the prior on coefficients: as given, or by whether the level is searched."""
    if shrinkage is None:
        return SHRINKAGE if level is None else 0.0
    if not _is_number(shrinkage) or not np.isfinite(shrinkage) or shrinkage < 0:
        raise InvalidInputError(f"shrinkage must be None or a number >= 0, got {shrinkage!r}; 0 is least squares")
    return float(shrinkage)


def _from_omega(omega: float) -> float:
    if not _is_number(omega) or not np.isfinite(omega) or omega < 0 or omega / (1.0 + omega) >= 1.0:
        raise InvalidInputError(f"omega must be a number >= 0 with omega / (1 + omega) below 1, got {omega!r}")
    return float(omega / (1.0 + omega))


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def settle_intercept(estimator: Any, graph: Graph, X: Any, outcome: Outcome, smoothed: Callable[[Any], Floats]) -> bool:
    """Return whether to fit an intercept: as the user says, or with "auto" as the labels support.

    For "auto" the estimator is first fitted with an intercept, and the smoothing level of its residuals is chosen
    by cross-validation. The intercept stays if it is more than 3 standard errors from zero at that level and, if the
    estimator smooths features, also at its own level. `smoothed` gives the smoothed features (n, p) of a fit.
    """
    choice = estimator.fit_intercept
    if isinstance(choice, bool | np.bool_):
        return bool(choice)
    if choice != "auto":
        raise InvalidInputError(f"fit_intercept must be True, False or 'auto', got {choice!r}")
    fitted = clone(estimator).set_params(fit_intercept=True).fit(graph, X, outcome.y)
    matched = outcome.matched_folds(graph, getattr(estimator, "cv", 5), getattr(estimator, "random_state", 0))
    folds = matched.folds
    without_fold = refit_folds(fitted, graph, X, outcome, folds)
    found = search_residual(graph, outcome.y, without_fold, folds).matched(outcome.y[outcome.known], matched)
    levels = {found.alpha, getattr(fitted, "alpha_", 0.0)}
    F = smoothed(fitted)
    return min(standard_errors(graph, F, outcome, alpha) for alpha in levels) > 3.0  # a chance of 0.3 % of a false one


def standard_errors(graph: Graph, F: Floats, outcome: Outcome, alpha: float) -> float:
    r"""Return how many standard errors the intercept is from zero, at a given smoothing level of the residuals.

    With :math:`V = [(I + \omega N)^{-1}]_{LL}` the generalised least squares of `y` on `F`, and on `F` with a constant,
    leave :math:`Q_0 \ge Q_1`; the answer is the root of :math:`(Q_0 - Q_1)(|L| - k) / Q_1`. It is infinite
    when no degrees of freedom are left, and 0 when a constant is a combination of the features.
    """
    known = outcome.known
    columns = np.column_stack([F, np.ones(known.size), np.where(known, outcome.y, 0.0)])
    M = columns[known].T @ precision_times(graph, propagate(graph, columns, known, alpha), known, alpha)
    without, (intercept, rank) = _residual_sum(M, F.shape[1])[0], _residual_sum(M, F.shape[1] + 1)
    left = outcome.n_labelled - rank
    if left <= 0 or intercept <= 0:
        return float("inf") if without > intercept else 0.0
    return float(np.sqrt(max(without - intercept, 0.0) * left / intercept))


def _residual_sum(M: Floats, k: int) -> tuple[float, int]:
    """Return the residual sum of squares of the last column on the first k, in the metric of `M`, and their rank."""
    scale = np.sqrt(np.maximum(np.diag(M)[:k], np.finfo(float).tiny))
    coef, _, rank, _ = np.linalg.lstsq(M[:k, :k] / np.outer(scale, scale), M[:k, -1] / scale, rcond=RANK_TOLERANCE)
    return float(M[-1, -1] - coef @ (M[:k, -1] / scale)), int(rank)

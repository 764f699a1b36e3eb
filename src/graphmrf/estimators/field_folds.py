"""Out-of-fold predictions of the general field.

A `GraphRegressor` has many hyper-parameters, which a few labels determine so loosely that they remember them: up to
`SEARCHED_AGAIN` labels they are searched anew without each fold, with more they are kept, and the field is only
conditioned on the other folds. The sparse solver does that, too, and beyond `COEFFICIENTS_KEPT` labels, which
determine some hundred coefficients well, keeps these as well.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from graphmrf.field import Covariance, FieldPosterior, Scale, maximise
from graphmrf.field.mixture import MixedPosterior
from graphmrf.field.sparse_posterior import SparsePosterior
from graphmrf.field.sparse_weights import Equations

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.estimators.field_answer import FieldAnswer

SEARCHED_AGAIN = 400
"""Labels up to which the hyper-parameters of a `GraphRegressor` are searched again without each fold."""

COEFFICIENTS_KEPT = 20_000
"""Labels beyond which the sparse solver of a `GraphRegressor` keeps the coefficients that all labels give."""

_TOLERANCE = 1e-4


def field_out_of_fold(
    answer: FieldAnswer,
    folds: Ints,
    *,
    searched_again: int = SEARCHED_AGAIN,
    coefficients_kept: int = COEFFICIENTS_KEPT,
) -> Floats:
    """Return the prediction (n_labelled,) of each labelled node by a field without its fold."""
    if isinstance(answer.posterior, SparsePosterior):
        return _sparse_given_others(answer, folds, coefficients_kept)
    few = 2 < folds.size <= searched_again
    return _searched_anew(answer, folds) if few else _given_others(answer, folds)


def _searched_anew(answer: FieldAnswer, folds: Ints) -> Floats:
    """Search the hyper-parameters again without each fold; the transform is kept."""
    predictions = np.empty(folds.size)
    for fold in range(int(folds.max()) + 1):
        own = folds == fold
        predictions[own] = _elsewhere(answer, own)
    return predictions


def _elsewhere(answer: FieldAnswer, own: Bools) -> Floats:
    whole, labels = _exact(answer).covariance, answer.outcome.y[answer.outcome.known]
    scale = Scale(labels[~own], answer.scale.power)
    others = Covariance(whole.design, whole.eigen, whole.rows[~own])
    h = maximise(others, scale.z, seed=answer.seed).h
    mean, variance = FieldPosterior(others, h, scale.z).moments(whole.rows[own])
    return scale.moments(mean, np.sqrt(variance))[0]


def _given_others(answer: FieldAnswer, folds: Ints) -> Floats:
    r"""Condition on the other folds: :math:`z_B - P_{BB}^{-1} (P z)_B`, with P the inverse of the covariance."""
    posterior, predictions = _exact(answer), np.empty(folds.size)
    triangle = posterior.covariance.triangle
    P = triangle.square(posterior.factor.inverse(triangle))
    for fold in range(int(folds.max()) + 1):
        own = np.flatnonzero(folds == fold)
        variance = np.linalg.inv(P[np.ix_(own, own)])
        mean = posterior.z[own] - variance @ posterior.dual[own]
        predictions[own] = answer.scale.moments(mean, np.sqrt(np.diag(variance)))[0]
    return predictions


def _exact(answer: FieldAnswer) -> FieldPosterior:
    """Return the field at the expected features."""
    posterior: Any = answer.posterior
    found = posterior.base if isinstance(posterior, MixedPosterior) else posterior
    assert isinstance(found, FieldPosterior)
    return found


def _sparse_given_others(answer: FieldAnswer, folds: Ints, coefficients_kept: int) -> Floats:
    """Condition the field on the other folds; the spread is that of each label given all others."""
    posterior, mean = answer.posterior, np.empty(folds.size)
    assert isinstance(posterior, SparsePosterior)
    for fold in range(int(folds.max()) + 1):
        own = folds == fold
        mean[own] = posterior.without(own) if folds.size > coefficients_kept else _sparse_elsewhere(posterior, own)
    return answer.scale.moments(mean, np.sqrt(posterior.left_out[1]))[0]


def _sparse_elsewhere(posterior: SparsePosterior, own: Bools) -> Floats:
    """Return the mean of some labels given the others, which also determine the coefficients."""
    whole, beta, rows = posterior.projection, posterior.beta, posterior.projection.system.ground.rows
    system = replace(whole.system, ground=replace(whole.system.ground, rows=rows[~own]), tolerance=_TOLERANCE)
    seen = system.project(whole.F, posterior.z[~own])
    products, count = seen.products, int(np.count_nonzero(~own))
    equations = Equations(products[1:, 1:], products[1:, 0], float(products[0, 0]), count, 0.0)
    weights, there = equations.given(beta.variances, beta.noise).mean, rows[own]
    left = seen.carried[there, 0] - seen.carried[there, 1:] @ weights
    return np.asarray(whole.F[there] @ weights + np.sqrt(system.rho) * system.g[there] * left)

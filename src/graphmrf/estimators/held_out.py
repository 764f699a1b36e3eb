"""What a fitted predictor says of labels it has not seen: refitted without each fold, its level kept.

A `GraphRegressor` has many hyper-parameters, which a few labels determine so loosely that they remember them: up to
`SEARCHED_AGAIN` labels they are searched anew without each fold, with more they are kept, and the field is only
conditioned on the other folds. The sparse solver does that, too, and beyond `COEFFICIENTS_KEPT` labels, which
determine some hundred coefficients well, keeps these as well.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from graphmrf.estimators.graph_regressor import GraphRegressor
from graphmrf.estimators.label_propagation import LabelPropagation
from graphmrf.estimators.residual_propagation import ResidualPropagation
from graphmrf.estimators.trends import check_regressor, cross_fitted, knows_graph, refitted
from graphmrf.field import Covariance, FieldPosterior, Scale, maximise
from graphmrf.field.mixture import MixedPosterior
from graphmrf.field.sparse_posterior import SparsePosterior
from graphmrf.field.sparse_weights import Equations
from graphmrf.selection import search_propagation, search_residual
from graphmrf.selection.propagation import own_fold

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.estimators.inputs import Outcome
    from graphmrf.graph import Graph

SEARCHED_AGAIN = 400
"""Labels up to which the hyper-parameters of a `GraphRegressor` are searched again without each fold."""

COEFFICIENTS_KEPT = 20_000
"""Labels beyond which the sparse solver of a `GraphRegressor` keeps the coefficients that all labels give."""

_TOLERANCE = 1e-4


def held_out(fitted: Any, graph: Graph, X: Any, outcome: Outcome, folds: Ints) -> Floats:
    """Return the prediction (n_labelled,) of each labelled node by a fit without its fold.

    Parameters
    ----------
    fitted : estimator
        A predictor fitted on `graph`, `X` and `outcome`; one that is not of graphmrf searches again for every fold.
    graph, X, outcome : Graph, features, Outcome
        What it was fitted on.
    folds : integer array of shape (n_labelled,)
        Fold of every labelled node.
    """
    if isinstance(fitted, GraphRegressor):
        if fitted.solver_ == "sparse":
            return _sparse_field_given_others(fitted, folds)
        few = 2 < folds.size <= SEARCHED_AGAIN
        return _field_without_folds(fitted, outcome, folds) if few else _field_given_others(fitted, folds)
    if isinstance(fitted, LabelPropagation):
        search = search_propagation(graph, outcome.y, folds, alphas=(fitted.alpha_,))
        return np.asarray(search.predictions[0])
    if isinstance(fitted, ResidualPropagation):
        base = _base_without_folds(fitted, graph, X, outcome, folds)
        search = search_residual(graph, outcome.y, base, folds, alphas=(fitted.alpha_,))
        return np.asarray(search.predictions[0])
    if knows_graph(fitted):
        return own_fold(refitted(fitted, graph, X, outcome, folds), folds)
    return _searched_again(fitted, graph, X, outcome, folds)


def _base_without_folds(fitted: ResidualPropagation, graph: Graph, X: Any, outcome: Outcome, folds: Ints) -> Floats:
    if knows_graph(fitted.base_):
        return refitted(fitted.base_, graph, X, outcome, folds)
    trend = cross_fitted(fitted.base, check_regressor(fitted.base, X, graph.n_nodes), outcome, folds)
    left_out = outcome.y[outcome.known] - trend.residuals
    return np.broadcast_to(left_out[:, None], (left_out.size, int(folds.max()) + 1))


def _searched_again(fitted: Any, graph: Graph, X: Any, outcome: Outcome, folds: Ints) -> Floats:
    labelled, predictions = np.flatnonzero(outcome.known), np.empty(folds.size)
    for fold in range(int(folds.max()) + 1):
        hidden = outcome.y.copy()
        hidden[labelled[folds == fold]] = np.nan
        predictions[folds == fold] = clone(fitted).fit(graph, X, hidden).predict()[labelled[folds == fold]]
    return predictions


def _field_without_folds(fitted: GraphRegressor, outcome: Outcome, folds: Ints) -> Floats:
    """Search the hyper-parameters again without each fold; the transform is kept."""
    labels, predictions = outcome.y[outcome.known], np.empty(folds.size)
    for fold in range(int(folds.max()) + 1):
        own = folds == fold
        predictions[own] = _field_elsewhere(fitted, labels, own)
    return predictions


def _field_elsewhere(fitted: GraphRegressor, labels: Floats, own: Bools) -> Floats:
    whole, power = _exact(fitted).covariance, fitted.transform_.power
    scale = Scale(labels[~own], power)
    others = Covariance(whole.design, whole.eigen, whole.rows[~own])
    h = maximise(others, scale.z, seed=fitted.seed).h
    mean, variance = FieldPosterior(others, h, scale.z).moments(whole.rows[own])
    return scale.moments(mean, np.sqrt(variance))[0]


def _field_given_others(fitted: GraphRegressor, folds: Ints) -> Floats:
    r"""Condition on the other folds: :math:`z_B - P_{BB}^{-1} (P z)_B`, with P the inverse of the covariance."""
    posterior, predictions = _exact(fitted), np.empty(folds.size)
    triangle = posterior.covariance.triangle
    P = triangle.square(posterior.factor.inverse(triangle))
    for fold in range(int(folds.max()) + 1):
        own = np.flatnonzero(folds == fold)
        variance = np.linalg.inv(P[np.ix_(own, own)])
        mean = posterior.z[own] - variance @ posterior.dual[own]
        predictions[own] = fitted.transform_.moments(mean, np.sqrt(np.diag(variance)))[0]
    return predictions


def _exact(fitted: GraphRegressor) -> FieldPosterior:
    """Return the field at the expected features."""
    posterior = fitted._answer.posterior
    found = posterior.base if isinstance(posterior, MixedPosterior) else posterior
    assert isinstance(found, FieldPosterior)
    return found


def _sparse_field_given_others(fitted: GraphRegressor, folds: Ints) -> Floats:
    """Condition the field on the other folds; the spread is that of each label given all others."""
    posterior, mean = fitted._answer.posterior, np.empty(folds.size)
    assert isinstance(posterior, SparsePosterior)
    for fold in range(int(folds.max()) + 1):
        own = folds == fold
        mean[own] = posterior.without(own) if folds.size > COEFFICIENTS_KEPT else _sparse_elsewhere(posterior, own)
    return fitted.transform_.moments(mean, np.sqrt(posterior.left_out[1]))[0]


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

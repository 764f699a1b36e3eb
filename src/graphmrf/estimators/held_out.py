"""What a fitted predictor says of labels it has not seen: refitted without each fold, hyper-parameters kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from graphmrf.estimators.label_propagation import LabelPropagation
from graphmrf.estimators.residual_propagation import ResidualPropagation
from graphmrf.estimators.trends import check_regressor, cross_fitted, knows_graph, refitted
from graphmrf.selection import search_propagation, search_residual
from graphmrf.selection.propagation import own_fold

if TYPE_CHECKING:
    from graphmrf._typing import Floats, Ints
    from graphmrf.estimators.inputs import Outcome
    from graphmrf.graph import Graph


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

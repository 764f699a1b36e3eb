"""Trends whose residuals may be propagated: the predictors that know the graph, and any scikit-learn regressor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier

from graphmrf.errors import InvalidInputError

if TYPE_CHECKING:
    from typing import Self

    from graphmrf._typing import Floats, Ints
    from graphmrf.estimators.inputs import Outcome
    from graphmrf.graph import Graph


class NodeRegressor(Protocol):
    """A predictor that knows the graph and that residuals can be propagated on top of."""

    n_coefficients_: int
    """Degrees of freedom spent by the fit, for the noise scale."""

    def fit(self, graph: Graph, X: Any, y: Any) -> Self:
        """Learn from the labelled nodes."""
        ...

    def predict(self) -> Floats:
        """Return the prediction of every node, at the labelled ones what the model says, not the label."""
        ...

    def fixed(self) -> NodeRegressor:
        """Return an unfitted copy whose hyper-parameters are those that fit chose."""
        ...


@dataclass(frozen=True)
class Trend:
    """What a base says, and what it leaves of the labels.

    Attributes
    ----------
    base : estimator
        The base fitted on all labelled nodes.
    prediction : array of shape (n,)
        Its prediction of every node.
    residuals : array of shape (n_labelled,)
        The labels less what was predicted for them.
    spent : int
        Degrees of freedom those residuals have lost.
    """

    base: Any
    prediction: Floats
    residuals: Floats
    spent: int


def knows_graph(base: Any) -> TypeGuard[NodeRegressor]:
    """Whether the base is fitted with a graph."""
    return hasattr(base, "fixed")


def graph_trend(base: NodeRegressor, graph: Graph, X: Any, outcome: Outcome) -> Trend:
    """Fit a copy of the base, its hyper-parameters included; residuals are those of that fit."""
    fitted: NodeRegressor = clone(base).fit(graph, X, outcome.y)
    prediction = fitted.predict()
    known = outcome.known
    return Trend(fitted, prediction, outcome.y[known] - prediction[known], fitted.n_coefficients_)


def refitted(fitted: Any, graph: Graph, X: Any, outcome: Outcome, folds: Ints) -> Floats:
    """Return (n_labelled, n_folds): predictions at the labelled nodes without each fold, hyper-parameters kept.

    A predictor may do this itself in a better way, as ``refit_folds``.
    """
    if hasattr(fitted, "refit_folds"):
        predictions: Floats = fitted.refit_folds(graph, X, outcome, folds)
        return predictions
    base, labelled, columns = fitted.fixed(), np.flatnonzero(outcome.known), []
    for fold in range(int(folds.max()) + 1):
        hidden = outcome.y.copy()
        hidden[labelled[folds == fold]] = np.nan
        columns.append(clone(base).fit(graph, X, hidden).predict()[labelled])
    return np.column_stack(columns)


def cross_fitted(base: Any, X: Any, outcome: Outcome, folds: Ints) -> Trend:
    """Fit copies of a scikit-learn regressor: on all labels for the prediction, without each fold for its residuals."""
    labelled, left_out = np.flatnonzero(outcome.known), np.empty(outcome.n_labelled)
    for fold in range(int(folds.max()) + 1):
        others = labelled[folds != fold]
        part = clone(base).fit(_rows(X, others), outcome.y[others])
        left_out[folds == fold] = np.ravel(part.predict(_rows(X, labelled[folds == fold])))
    fitted = clone(base).fit(_rows(X, labelled), outcome.y[labelled])
    prediction = np.asarray(np.ravel(fitted.predict(X)), dtype=np.float64)
    return Trend(fitted, prediction, outcome.y[labelled] - left_out, 0)


def check_regressor(base: Any, X: Any, n: int) -> Any:
    """Return the features for a scikit-learn regressor, which checks their values itself."""
    if not (hasattr(base, "fit") and hasattr(base, "predict")) or isinstance(base, type) or is_classifier(base):
        raise InvalidInputError(
            f"base must be a regressor of graphmrf or scikit-learn, got {base!r}; pass an instance, such as "
            "LinearGraphConvolution()"
        )
    if X is None:
        raise InvalidInputError(
            f"{type(base).__name__} needs features X, got None; without features use LabelPropagation"
        )
    X = X if isinstance(X, pd.DataFrame) else np.asarray(X)
    if len(X) != n:
        raise InvalidInputError(f"X must have one row for each of the {n} nodes, got {len(X)}")
    return X


def _rows(X: Any, rows: Ints) -> Any:
    return X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]

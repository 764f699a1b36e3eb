"""Out-of-fold predictions: every labelled node predicted by a fit without the labels of its fold.

Every estimator has them as a method ``out_of_fold(graph, X, y, folds)``, and says by ``keeps_labels`` whether its
``predict`` returns the known outcome of a labelled node instead of what the model says of it (False where it has none).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from sklearn.base import clone

from graphmrf.estimators.inputs import read_outcome
from graphmrf.selection import own_fold

if TYPE_CHECKING:
    from typing import Self

    from graphmrf._typing import Floats, Ints
    from graphmrf.estimators.inputs import Outcome
    from graphmrf.graph import Graph


class NodeRegressor(Protocol):
    """A predictor that knows the graph and that residuals can be propagated on top of.

    One that is linear in the labels may say by ``directions_``, columns (n, k) that span its fit and are orthonormal
    over the labelled nodes (see `LeastSquares.directions`), how uncertain its coefficients are.
    """

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


def out_of_fold(fitted: Any, graph: Graph, X: Any, y: Any, folds: Ints) -> Floats:
    """Return the prediction (n_labelled,) of each labelled node by a fit without its fold.

    `fitted`: a fitted predictor. Its own ``out_of_fold`` is asked where it has one. Otherwise it is refitted without
    each fold: with the hyper-parameters it chose if it has ``fixed``, else it chooses them again. `graph`, `X`, `y`
    (n,): what it was fitted on. `folds` (n_labelled,): fold of every labelled node, in node order.
    """
    if hasattr(fitted, "out_of_fold"):
        predictions: Floats = fitted.out_of_fold(graph, X, y, folds)
        return predictions
    return refitted_out_of_fold(fitted, graph, X, y, folds)


def refitted_out_of_fold(fitted: Any, graph: Graph, X: Any, y: Any, folds: Ints) -> Floats:
    """Return the out-of-fold prediction (n_labelled,) of each labelled node by plain refits."""
    return own_fold(refit_folds(fitted, graph, X, read_outcome(y, graph.n_nodes), folds), folds)


def refit_folds(fitted: Any, graph: Graph, X: Any, outcome: Outcome, folds: Ints) -> Floats:
    """Return (n_labelled, n_folds): predictions at the labelled nodes of the fit without each fold.

    Hyper-parameters are kept where the predictor has ``fixed``. It may do all of this in a better way itself, as a
    method ``refit_folds``.
    """
    if hasattr(fitted, "refit_folds"):
        predictions: Floats = fitted.refit_folds(graph, X, outcome, folds)
        return predictions
    unfitted = fitted.fixed() if hasattr(fitted, "fixed") else clone(fitted)
    labelled, columns = np.flatnonzero(outcome.known), []
    for fold in range(int(folds.max()) + 1):
        hidden = outcome.y.copy()
        hidden[labelled[folds == fold]] = np.nan
        columns.append(clone(unfitted).fit(graph, X, hidden).predict()[labelled])
    return np.column_stack(columns)

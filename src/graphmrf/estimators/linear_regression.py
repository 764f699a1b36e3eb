"""Linear regression: the features of a node, no edges. The reference that a graph has to beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from graphmrf.estimators.base import LeastSquaresEstimator
from graphmrf.estimators.choices import Intercept, settle_intercept
from graphmrf.estimators.error_bars import degrees_of_freedom, root_mean
from graphmrf.estimators.inputs import match_features
from graphmrf.selection import fit_least_squares, fold_fits, whiten

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphmrf._typing import Floats, Ints
    from graphmrf.estimators.inputs import Outcome, Table
    from graphmrf.graph import Graph


@dataclass(eq=False, repr=False, kw_only=True)
class LinearRegression(LeastSquaresEstimator):
    r"""Ordinary least squares on the labelled nodes (LR).

    .. math:: y = X b + c

    (The paper trains it as a network by gradient descent, with early stopping; least squares is where that would end.)

    When the labelled nodes do not determine all coefficients, the answer is the `b` whose predictor `X b` varies
    least over all nodes: a constant feature gets coefficient 0, equal features share theirs, no features at all leave
    the mean of the labels, and predictions do not depend on the units of the features.

    Parameters
    ----------
    fit_intercept : bool or "auto", default True
        Fit the constant c, see `LinearGraphConvolution`.

    Attributes
    ----------
    coef_ : array of shape (p,), or Series
        Coefficients b, named by column when X was a DataFrame.
    intercept_ : float
        The constant c.
    n_coefficients_ : int
        Degrees of freedom spent: the rank of the features, and one for the intercept.
    dof_ : float
        Degrees of freedom left to the noise scale, those of Student's distribution of errors.
    scale_ : float
        Standard deviation of the residuals, :math:`s^2 = \lVert r \rVert^2 / (|L| - k)` with `k` degrees of freedom
        spent; NaN when none is left.

    Examples
    --------
    >>> import numpy as np
    >>> from graphmrf import Graph, LinearRegression
    >>> path = Graph.from_edges([0, 1, 2], [1, 2, 3])
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([1.0, 3.0, 5.0, np.nan])
    >>> LinearRegression().fit(path, X, y).predict().round(6)
    array([1., 3., 5., 7.])
    """

    fit_intercept: Intercept = True

    def _learn_features(self, graph: Graph, table: Table, outcome: Outcome) -> None:
        intercept = settle_intercept(self, graph, table.X, outcome, lambda _: table.X)
        self._features = features = whiten(table.X, centred=intercept)
        Z, known = features.Z[outcome.known], outcome.y[outcome.known]
        self._fit = fit = fit_least_squares(Z, known, intercept=intercept)
        coef = features.T @ fit.coef
        self.coef_, self.intercept_ = table.columns.named(coef), fit.intercept - float(features.means @ coef)
        self.n_coefficients_ = fit.n_coefficients
        self.dof_ = degrees_of_freedom(known.size, fit.n_coefficients)
        self.scale_ = root_mean((known - Z @ fit.coef - fit.intercept) ** 2, self.dof_)
        self._fitted = features.Z @ fit.coef + fit.intercept

    def _elsewhere(self, graph: Graph | None, X: Any) -> tuple[Floats, Callable[[], Floats]]:
        n = None if graph is None else graph.n_nodes
        X = match_features(X, n, self._columns, "LinearRegression")
        Z = np.asarray((X - self._features.means) @ self._features.T)
        return Z @ self._fit.coef + self._fit.intercept, lambda: self._std(Z)

    def _design(self) -> Floats:
        return self._features.Z

    def refit_folds(self, graph: Graph, X: Any, outcome: Outcome, folds: Ints) -> Floats:  # noqa: ARG002  (as in others)
        """Return (n_labelled, n_folds): predictions at labelled nodes of the regression without each fold."""
        Z, y = self._features.Z[outcome.known], outcome.y[outcome.known]
        return fold_fits(Z, y, folds, intercept=self._features.centred, noise=0.0)

    def _choices(self) -> dict[str, Any]:
        return {"fit_intercept": self._features.centred}

"""Linear regression: the features of a node, no edges. The reference that a graph has to beat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from sklearn.base import clone

from graphmrf.estimators.calibration import CheckedEstimator, IntervalCheck
from graphmrf.estimators.choices import Intercept, settle_intercept
from graphmrf.estimators.error_bars import degrees_of_freedom, root_mean, student_std
from graphmrf.estimators.inputs import (
    as_given,
    check_fitted,
    check_graph,
    match_features,
    read_features,
    read_outcome,
)
from graphmrf.estimators.out_of_fold import refitted_out_of_fold
from graphmrf.estimators.tables import predicts_tables, takes_folds, takes_tables
from graphmrf.selection import fit_least_squares, fold_fits, whiten

if TYPE_CHECKING:
    from typing import Self

    from graphmrf._typing import Floats, Ints
    from graphmrf.estimators.inputs import Outcome
    from graphmrf.graph import Graph


class LinearRegression(CheckedEstimator):
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

    keeps_labels = False

    def __init__(self, *, fit_intercept: Intercept = True) -> None:
        self.fit_intercept = fit_intercept

    @takes_tables
    def fit(self, graph: Graph, X: Any, y: Any) -> Self:
        """Learn the coefficients.

        Parameters
        ----------
        graph : Graph, or a graph of SciPy (sparse), NetworkX or igraph
            The graph; only its number of nodes is read.
        X : array or DataFrame of shape (n, p)
            Features, finite.
        y : array or Series of shape (n,)
            Outcomes, NaN where they are to be predicted.

        Raises
        ------
        InvalidInputError
            If the inputs break a rule.
        """
        n = check_graph(graph).n_nodes
        table, outcome = read_features(X, n, "LinearRegression"), read_outcome(y, n)
        intercept = settle_intercept(self, graph, X, outcome, lambda _: table.X)
        features = whiten(table.X, centred=intercept)
        Z, known = features.Z[outcome.known], outcome.y[outcome.known]
        fit = fit_least_squares(Z, known, intercept=intercept)
        coef = features.T @ fit.coef
        self.coef_, self.intercept_ = table.columns.named(coef), fit.intercept - float(features.means @ coef)
        self.n_coefficients_ = fit.n_coefficients
        self.dof_ = degrees_of_freedom(known.size, fit.n_coefficients)
        self.scale_ = root_mean((known - Z @ fit.coef - fit.intercept) ** 2, self.dof_)
        self._columns, self._single = table.columns, table.single and outcome.single
        self._features, self._fit = features, fit
        self.interval_check_ = IntervalCheck(self, graph, X, outcome)
        return self

    @overload
    def predict(self, graph: Graph | None = None, X: Any = None, *, return_std: Literal[False] = False) -> Floats: ...
    @overload
    def predict(
        self, graph: Graph | None = None, X: Any = None, *, return_std: Literal[True]
    ) -> tuple[Floats, Floats]: ...
    @predicts_tables
    def predict(
        self, graph: Graph | None = None, X: Any = None, *, return_std: bool = False
    ) -> Floats | tuple[Floats, Floats]:
        r"""Return what the model says at every node, also at the labelled ones.

        Parameters
        ----------
        graph : Graph, optional
            Another graph; not needed, because edges play no part.
        X : array or DataFrame, optional
            Features of other nodes, the same columns. By default those of the fit.
        return_std : bool, default False
            Also return :math:`s \sqrt{1 + z'(Z'Z)^{-1} z}` with z the features of the node and the intercept: the
            standard deviation of a new outcome, the uncertainty of the coefficients and of `s` included (the factor
            of `student_std`). A direction in which the labelled nodes do not vary adds nothing.

        Returns
        -------
        array of shape (n,), or two of them
            In float32 when X and y were.
        """
        check_fitted(self, "_fit")
        own = graph is None and X is None
        Z = self._features.Z if own else self._transform(graph, X)
        mean = as_given(Z @ self._fit.coef + self._fit.intercept, single=self._single)
        if not return_std:
            return mean
        std = self.model_std_ * self.interval_check_.factors if own else self._std(Z)
        return mean, as_given(std, single=self._single)

    @property
    def model_std_(self) -> Floats:
        """Standard deviations (n,) of the model, before intervals are checked."""
        check_fitted(self, "_fit")
        return self._std(self._features.Z)

    def _std(self, Z: Floats) -> Floats:
        return student_std(self.scale_, 1.0 + self._fit.leverage(Z), self.dof_)

    @property
    def directions_(self) -> Floats:
        """Columns (n, k) that span the fit, see `NodeRegressor`."""
        return self._fit.directions(self._features.Z)

    @takes_folds
    def out_of_fold(self, graph: Graph, X: Any, y: Any, folds: Ints) -> Floats:
        """Return the prediction (n_labelled,) of each labelled node by a fit without its fold.

        Parameters
        ----------
        graph, X, y : Graph, features, array of shape (n,)
            What the fit was given.
        folds : integer array of shape (n_labelled,)
            Fold of every labelled node, in node order.
        """
        check_fitted(self, "_fit")
        return refitted_out_of_fold(self, graph, X, y, folds)

    def refit_folds(self, graph: Graph, X: Any, outcome: Outcome, folds: Ints) -> Floats:  # noqa: ARG002  (as in others)
        """Return (n_labelled, n_folds): predictions at labelled nodes of the regression without each fold."""
        Z, y = self._features.Z[outcome.known], outcome.y[outcome.known]
        return fold_fits(Z, y, folds, intercept=self._features.centred, noise=0.0)

    def fixed(self) -> LinearRegression:
        """Return an unfitted copy; there is nothing to choose but whether there is an intercept."""
        check_fitted(self, "_fit")
        copy: LinearRegression = clone(self).set_params(fit_intercept=self._features.centred)
        return copy

    def _transform(self, graph: Graph | None, X: Any) -> Floats:
        n = None if graph is None else check_graph(graph).n_nodes
        X = match_features(X, n, self._columns, "LinearRegression")
        return np.asarray((X - self._features.means) @ self._features.T)

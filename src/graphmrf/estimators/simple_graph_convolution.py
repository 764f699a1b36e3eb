"""Simple graph convolution: features averaged over a whole number of steps, then least squares."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from threadpoolctl import threadpool_limits

from graphmrf.errors import InvalidInputError
from graphmrf.estimators.base import LeastSquaresEstimator
from graphmrf.estimators.choices import Intercept, settle_intercept
from graphmrf.estimators.error_bars import degrees_of_freedom, root_mean
from graphmrf.estimators.inputs import check_fitted
from graphmrf.linalg.smoothing import loop_engine, power, powers
from graphmrf.selection import AlphaSearch, fit_least_squares, fold_fits, own_fold, whiten

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from graphmrf._typing import Floats, Ints
    from graphmrf.estimators.inputs import Outcome, Table
    from graphmrf.graph import Graph
    from graphmrf.selection import Whitened

Layers: TypeAlias = int | Literal["cv"]

_LAYERS = (0, 1, 2, 3)  # numbers of layers tried: the paper's 1, 2, 3, and 0, linear regression


@dataclass(eq=False, repr=False, kw_only=True)
class SimpleGraphConvolution(LeastSquaresEstimator):
    r"""Least squares on features that are averaged with those of the neighbours, K times (SGC).

    .. math:: y = \tilde S^K (X - 1 m') b + c, \qquad \tilde S = (D + I)^{-1/2} (W + I) (D + I)^{-1/2}

    with `m` the means of the features over all nodes; the constant c is not averaged. It is exact. (The paper trains
    it by gradient steps and draws at most 30 neighbours; that variant is a `GraphConvolutionalNetwork` with
    ``activation="identity"``.) With ``n_layers=0`` the predictions are those of `LinearRegression`; an isolated node
    keeps its own features. Where the labelled nodes do not determine all coefficients, see `LinearRegression`.

    Parameters
    ----------
    n_layers : "cv" or int >= 0, default "cv"
        The power K; "cv" takes the best of 0, 1, 2, 3 by cross-validation, see `selection.AlphaSearch`.
    cv : int, default 5
        Folds of the cross-validation, which imitate the holes, see `selection.distance_matched_folds`; as many as
        labelled nodes if there are fewer.
    random_state : int, default 0
        Seed of the folds.
    fit_intercept : bool or "auto", default True
        Fit the constant c, see `LinearGraphConvolution`.

    Attributes
    ----------
    n_layers_ : int
        The power in use.
    coef_ : array of shape (p,), or Series
        Coefficients b of the averaged features, named by column when X was a DataFrame.
    intercept_ : float
        The constant c: the prediction of a node with average features among average neighbours.
    feature_means_ : array of shape (p,)
        The means m.
    n_coefficients_ : int
        Degrees of freedom spent: the rank of the averaged features, and one for the intercept.
    dof_ : float
        Degrees of freedom left to the noise scale, those of Student's distribution of errors.
    scale_ : float
        Standard deviation of the residuals; NaN when there are no more labels than coefficients.
    cv_results_ : dict or None
        "n_layers", "mean_r2" (pooled over the folds) and "fold_r2" of every number tried; None when it was given.

    Examples
    --------
    >>> import numpy as np
    >>> from graphmrf import Graph, SimpleGraphConvolution
    >>> path = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4])
    >>> X, y = np.array([[0.0], [1.0], [0.0], [2.0], [4.0]]), np.array([1.0, 1.0, np.nan, 3.0, np.nan])
    >>> SimpleGraphConvolution(n_layers=1).fit(path, X, y).predict().round(2)
    array([1.18, 0.85, 1.68, 2.97, 3.78])
    """

    n_layers: Layers = "cv"
    cv: int = 5
    random_state: int = 0
    fit_intercept: Intercept = True

    def _learn_features(self, graph: Graph, table: Table, outcome: Outcome) -> None:
        given, engine = given_layers(self.n_layers), loop_engine(graph)
        intercept = settle_intercept(
            self, graph, table.X, outcome, lambda fitted: power(engine, table.X, fitted.n_layers_)
        )
        self._graph, self._features = graph, whiten(table.X, centred=intercept)
        coef = self._regress(graph, self._features, outcome, given)
        self.coef_, self.feature_means_ = table.columns.named(coef), self._features.means

    def _regress(self, graph: Graph, features: Whitened, outcome: Outcome, given: int | None) -> Floats:
        """Choose the number of layers unless given, fit on its features; return the coefficients of the features."""
        engine, y, intercept = loop_engine(graph), outcome.y[outcome.known], features.centred
        Z = powers(engine, features.Z, max(_LAYERS) if given is None else given, np.flatnonzero(outcome.known))
        self.n_layers_, self.cv_results_ = len(Z) - 1, None
        if given is None:
            matched = outcome.matched_folds(graph, self.cv, self.random_state)
            search = search_layers(Z, y, matched.folds, intercept=intercept).matched(y, matched)
            self.n_layers_ = search.best
            self.cv_results_ = {"n_layers": np.array(_LAYERS), "mean_r2": search.mean_r2, "fold_r2": search.fold_r2}
        self._fit = fit_least_squares(Z[self.n_layers_], y, intercept=intercept)
        self.intercept_, self.n_coefficients_ = self._fit.intercept, self._fit.n_coefficients
        self._fitted = power(engine, (features.Z @ self._fit.coef)[:, None], self.n_layers_)[:, 0] + self.intercept_
        self.dof_ = degrees_of_freedom(y.size, self.n_coefficients_, chosen=given is None)
        self.scale_ = root_mean((y - self._fitted[outcome.known]) ** 2, self.dof_)
        return np.asarray(features.T @ self._fit.coef)

    def _design(self) -> Floats:
        return power(loop_engine(self._graph), self._features.Z, self.n_layers_)

    def _elsewhere(self, graph: Graph | None, X: Any) -> tuple[Floats, Callable[[], Floats]]:
        graph, X = self._other_features(graph, X)
        Z = power(loop_engine(graph), (X - self.feature_means_) @ self._features.T, self.n_layers_)
        return Z @ self._fit.coef + self.intercept_, lambda: self._std(Z)

    def frequency_response(self, eigenvalues: ArrayLike) -> Floats:
        r"""Return :math:`(1 - \lambda)^K`, the factor by which features on each eigenvector of :math:`\tilde S` count.

        The eigenvalues :math:`\lambda` are those of :math:`I - \tilde S`; on a graph where every node has `d` edges
        they are :math:`d / (d + 1)` times those of `N`.
        """
        check_fitted(self, "n_layers_")
        return np.asarray((1.0 - np.asarray(eigenvalues, dtype=np.float64)) ** self.n_layers_)

    def _choices(self) -> dict[str, Any]:
        return {"n_layers": self.n_layers_, "fit_intercept": self._features.centred}


def given_layers(n_layers: Layers) -> int | None:
    """Return the number of layers that the user gave, or None when it is to be chosen by cross-validation."""
    if isinstance(n_layers, str) and n_layers == "cv":
        return None
    if isinstance(n_layers, Integral) and not isinstance(n_layers, bool) and n_layers >= 0:
        return int(n_layers)
    raise InvalidInputError(f"n_layers must be 'cv' or a whole number >= 0, got {n_layers!r}")


def search_layers(powers: Floats, y: Floats, folds: Ints, *, intercept: bool) -> AlphaSearch:
    """Cross-validate least squares on the features after every number of layers.

    Parameters
    ----------
    powers : array of shape (n_powers, n_labelled, p)
        The features of the labelled nodes after 0, 1, ... layers, see `linalg.smoothing.powers`.
    y : array of shape (n_labelled,)
        Their outcomes.
    folds : integer array of shape (n_labelled,)
        Their folds.
    intercept : bool
        Whether to fit a constant.

    Returns
    -------
    AlphaSearch
        The number of layers stands in the place of the level.

    Examples
    --------
    >>> import numpy as np
    >>> X, y, folds = np.arange(4.0)[:, None], np.array([0.0, 1.0, 2.0, 3.0]), np.array([0, 1, 0, 1])
    >>> search_layers(np.stack([X % 2, X]), y, folds, intercept=True).alpha
    1.0
    """
    with threadpool_limits(1, "blas"):
        fits = [fold_fits(Z, y, folds, intercept=intercept, noise=0.0) for Z in powers]
    return AlphaSearch.score(range(len(powers)), own_fold(np.stack(fits), folds), y, folds)

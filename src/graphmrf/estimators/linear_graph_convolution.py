"""Linear graph convolution: the features of a node and of its neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from graphmrf.estimators.base import FeatureEstimator
from graphmrf.estimators.choices import (
    Intercept,
    Level,
    as_omega,
    given_level,
    given_shrinkage,
    settle,
    settle_intercept,
)
from graphmrf.estimators.error_bars import ResidualField, degrees_of_freedom
from graphmrf.estimators.inputs import check_fitted
from graphmrf.linalg import smooth_features
from graphmrf.selection import fit_least_squares, search_convolution, whiten

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from graphmrf._typing import Floats
    from graphmrf.estimators.inputs import Outcome, Table
    from graphmrf.graph import Graph
    from graphmrf.selection import Whitened


@dataclass(eq=False, repr=False, kw_only=True)
class LinearGraphConvolution(FeatureEstimator):
    r"""Regularised least squares on features that are smoothed over the graph (LGC).

    .. math:: y = (I + \omega N)^{-1} (X - 1 m') b + c

    with `m` the means of the features over all nodes, which the model assumes to be 0. Smoothing acts on the centred
    features only, the constant c is not smoothed. It is exact, not a fixed number of steps.

    Where the labelled nodes do not determine all coefficients, or only below the accuracy of the solver, the answer
    is the `b` whose unsmoothed predictor `X b` varies least over all nodes (see `LinearRegression`). At ``alpha=0``,
    or without edges, the predictions are those of `LinearRegression`. An isolated node counts as one whose neighbours
    have average features: its own features vary far more than the smoothed ones that the coefficients are for.

    A strongly smoothed feature is almost constant, and with a large enough coefficient explains whatever is smooth on
    this graph by chance, which is far off on another. While a level is searched the coefficients therefore have a weak
    Gaussian prior; with ``shrinkage=0``, or at a given level, it is the least squares of the paper.

    Parameters
    ----------
    alpha, omega, cv, random_state : see `LabelPropagation`
        Smoothing level, on one of two scales, or how it is chosen.
    fit_intercept : bool or "auto", default True
        Fit the constant c. Without it the features are not centred either: the model as it stands, for data of mean
        zero. That carries over better to another graph, because one strongly smooth sample has a large mean of its
        own, which says nothing about the next. "auto" finds out: it fits an intercept only if the labels show one
        more than 3 standard errors from zero, under the field that the residuals form. True is right for predictions
        on the graph of the fit; use "auto" (or False, if means are known to be zero) to predict another graph.
    shrinkage : float >= 0, optional
        Strength of the prior on the coefficients: one standard deviation of the features in any direction, before they
        are smoothed, is expected to change the outcome by ``1 / sqrt(shrinkage)`` of its own. By default 4 (half a
        standard deviation) when the level is chosen by cross-validation, and 0 (least squares) when it is given. It
        weighs as much as that many labels times the share of noise; with hundreds of labels it matters at high levels
        of smoothing only.

    Attributes
    ----------
    alpha_, omega_ : float
        The smoothing level in use.
    shrinkage_ : float
        The strength of the prior in use.
    coef_ : array of shape (p,), or Series
        Coefficients b of the smoothed features, named by column when X was a DataFrame.
    intercept_ : float
        The constant c: the prediction of a node with average features among average neighbours.
    feature_means_ : array of shape (p,)
        The means m.
    n_coefficients_ : int
        The rank of the smoothed features, and one for the intercept.
    directions_ : array of shape (n, k)
        Columns that span the fit, orthonormal over the labelled nodes (shorter where coefficients are shrunk); none
        where labels are so many that error bars need none, see `certain`.
    dof_ : float
        Degrees of freedom left to the noise scale, those of Student's distribution of errors.
    scale_ : float
        Noise scale, from the residuals; NaN when there are no more labels than coefficients.
        Computed when first asked for.
    cv_results_ : dict or None
        "alpha", "mean_r2" (pooled over the folds) and "fold_r2" of every level tried; None when alpha was given.

    Examples
    --------
    >>> import numpy as np
    >>> from graphmrf import Graph, LinearGraphConvolution
    >>> path = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4])
    >>> X, y = np.array([[0.0], [1.0], [0.0], [2.0], [4.0]]), np.array([1.0, 1.0, np.nan, 3.0, np.nan])
    >>> LinearGraphConvolution(alpha=0.5).fit(path, X, y).predict().round(2)
    array([0.86, 1.17, 1.17, 2.98, 4.12])
    """

    alpha: Level = "cv"
    omega: float | None = None
    cv: int = 5
    random_state: int = 0
    fit_intercept: Intercept = True
    shrinkage: float | None = None
    # Labels for each coefficient beyond which error bars take coefficients for exact: the rest is a ten-thousandth of
    # the variance on average, a hundredth at a node with ten times the usual features. The columns of the directions
    # would take as much memory and time as the search.
    certain: ClassVar[int] = 10_000

    def _learn_features(self, graph: Graph, table: Table, outcome: Outcome) -> None:
        level = given_level(self.alpha, self.omega)
        self.shrinkage_ = given_shrinkage(self.shrinkage, level)
        self._centred = settle_intercept(
            self, graph, table.X, outcome, lambda fitted: smooth_features(graph, table.X, fitted.alpha_)
        )
        features = whiten(table.X, centred=self._centred, shrinkage=self.shrinkage_)
        self.alpha_, self.cv_results_ = settle(
            level, self, graph, outcome, lambda folds: search_convolution(graph, features, outcome.y, folds)
        )
        self.omega_, self.feature_means_ = as_omega(self.alpha_), features.means
        self.coef_ = table.columns.named(self._regress(graph, features, outcome))

    def _regress(self, graph: Graph, features: Whitened, outcome: Outcome) -> Floats:
        """Fit on the smoothed features at the level in use; return the coefficients of the features."""
        tolerance = 1e-8  # 100 times below that of the search: coefficients of near-collinear features magnify it
        Z = smooth_features(graph, features.Z, self.alpha_, tolerance=tolerance)
        known, noise = outcome.known, features.noise(tolerance if self.alpha_ > 0 else 0.0)
        options = {"noise": noise, "shrinkage": features.shrinkage}
        fit = fit_least_squares(Z[known], outcome.y[known], intercept=features.centred, **options)
        self.intercept_, self.n_coefficients_ = fit.intercept, fit.n_coefficients
        self._fit, self._T = fit, features.T
        self._certain = outcome.n_labelled > self.certain * fit.n_coefficients
        self._fitted, self.directions_ = Z @ fit.coef + fit.intercept, self._directions(Z)
        residuals = outcome.y[known] - self._fitted[known]
        spent = fit.n_coefficients if self._certain else float(np.sum(self.directions_[known] ** 2))
        self.dof_ = degrees_of_freedom(residuals.size, spent, chosen=self.cv_results_ is not None)
        parts = (residuals, self.alpha_, self.directions_, self.dof_)
        self._residuals = ResidualField(graph, known, *parts, self.random_state)
        return np.asarray(features.T @ fit.coef)

    def _directions(self, Z: Floats) -> Floats:
        return np.empty((len(Z), 0)) if self._certain else self._fit.directions(Z)

    def _elsewhere(self, graph: Graph | None, X: Any) -> tuple[Floats, Callable[[], Floats]]:
        graph, X = self._other_features(graph, X)
        X = X - self.feature_means_
        predictor = X @ np.asarray(self.coef_)  # smoothing is linear, so this one column is enough
        mean = smooth_features(graph, predictor[:, None], self.alpha_)[:, 0] + self.intercept_

        def std() -> Floats:
            smoothed = smooth_features(graph, X @ self._T, self.alpha_)
            return self._residuals.std_elsewhere(graph, self._directions(smoothed))

        return mean, std

    @property
    def model_std_(self) -> Floats:
        """Standard deviations (n,) of the model, before intervals are checked."""
        check_fitted(self, "_residuals")
        return self._residuals.marginal_std

    def _model_errors(self, count: int, rng: np.random.Generator) -> Floats:
        return self._residuals.marginal_errors(count, rng)

    @property
    def scale_(self) -> float:
        """Noise scale; computed when first asked for."""
        check_fitted(self, "_residuals")
        return self._residuals.marginal_scale

    def frequency_response(self, eigenvalues: ArrayLike) -> Floats:
        r"""Return :math:`1 / (1 + \omega \lambda)`, the factor by which features on each eigenvector of `N` count."""
        check_fitted(self, "omega_")
        return np.asarray(1.0 / (1.0 + self.omega_ * np.asarray(eigenvalues, dtype=np.float64)))

    def _choices(self) -> dict[str, Any]:
        level = {"alpha": self.alpha_, "omega": None}
        return level | {"fit_intercept": self._centred, "shrinkage": self.shrinkage_}

"""Linear predictors from features of a node alone, smoothed over the graph, or averaged a number of times.

A strongly smooth field has a large mean of its own, which changes from sample to sample. On the fitted graph an
intercept rightly absorbs it; on another graph that intercept is wrong at every node. ``fit_intercept="auto"`` therefore
tests whether the labels support an intercept, or only the mean of one smooth sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from graphmrf.errors import InvalidInputError
from graphmrf.estimators.base import FeatureEstimator, LeastSquaresEstimator
from graphmrf.estimators.error_bars import ResidualField, as_omega, degrees_of_freedom, precision_times, root_mean
from graphmrf.estimators.inputs import check_fitted, match_features
from graphmrf.estimators.out_of_fold import refit_folds
from graphmrf.linalg import propagate, smooth_features
from graphmrf.linalg.smoothing import isolated_weight, power, powers
from graphmrf.selection import (
    SHRINKAGE,
    AlphaSearch,
    fit_least_squares,
    fold_fits,
    own_fold,
    search_convolution,
    search_residual,
    whiten,
)
from graphmrf.selection.least_squares import RANK_TOLERANCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from graphmrf._typing import Floats, Ints
    from graphmrf.estimators.inputs import Outcome, Table
    from graphmrf.graph import Graph
    from graphmrf.selection import Whitened

Level: TypeAlias = float | Literal["cv"]
Intercept: TypeAlias = bool | Literal["auto"]
Layers: TypeAlias = int | Literal["cv"]

_LAYERS = (0, 1, 2, 3)  # numbers of layers tried: the paper's 1, 2, 3, and 0, linear regression


@dataclass(eq=False, repr=False, kw_only=True)
class LinearRegression(LeastSquaresEstimator):
    r"""Ordinary least squares on the labelled nodes (LR).

    .. math:: y = X b + c

    (The paper trains it by gradient descent with early stopping, which converges to least squares.)

    When the labelled nodes do not determine all coefficients, `b` is the one whose predictor `X b` varies least over
    all nodes: a constant feature gets coefficient 0, equal features share theirs, without features the prediction is
    the mean of the labels, and predictions do not depend on the units of the features.

    Parameters
    ----------
    fit_intercept : bool or "auto", default True
        Fit the constant c, see `LinearGraphConvolution`.

    Attributes
    ----------
    coef_ : array of shape (p,), or Series
        Coefficients b, named by column when X was a DataFrame.
    coef_std_ : array of shape (p,), or Series
        Their standard errors, if residuals are independent of each other.
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
        intercept = choose_intercept(self, graph, table.X, outcome, lambda _: table.X)
        self._features = features = whiten(table.X, centred=intercept)
        Z, known = features.Z[outcome.known], outcome.y[outcome.known]
        self._fit = fit = fit_least_squares(Z, known, intercept=intercept)
        coef = features.T @ fit.coef
        self.coef_, self.intercept_ = table.columns.named(coef), fit.intercept - float(features.means @ coef)
        self.n_coefficients_ = fit.n_coefficients
        self.dof_ = degrees_of_freedom(known.size, fit.n_coefficients)
        self.scale_ = root_mean((known - Z @ fit.coef - fit.intercept) ** 2, self.dof_)
        self._fitted = features.Z @ fit.coef + fit.intercept

    def _on_other_graph(self, graph: Graph | None, X: Any) -> tuple[Floats, Callable[[], Floats]]:
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


@dataclass(eq=False, repr=False, kw_only=True)
class LinearGraphConvolution(FeatureEstimator):
    r"""Regularised least squares on features that are smoothed over the graph (LGC).

    .. math:: y = (I + \omega N)^{-1} (X - 1 m') b + c

    with `m` the means of the features over all nodes, which the model assumes to be 0. Smoothing acts on the centred
    features only, not on the constant c. It is exact, not a fixed number of steps.

    Where the labelled nodes do not determine all coefficients, or only below the accuracy of the solver, `b` is the one
    whose unsmoothed predictor `X b` varies least over all nodes (see `LinearRegression`). At ``alpha=0``, or without
    edges, the predictions are those of `LinearRegression`. An isolated node counts as one whose neighbours have average
    features: its raw features vary far more than the smoothed features on which the coefficients were estimated.

    A strongly smoothed feature is almost constant, so that with a large coefficient it fits by chance whatever is
    smooth on this graph, and is far off on another. While a level is searched the coefficients therefore have a weak
    Gaussian prior; with ``shrinkage=0``, or at a given level, the fit is the least squares of the paper.

    Parameters
    ----------
    alpha, omega, cv, random_state : see `LabelPropagation`
        Smoothing level, on one of two scales, or how it is chosen.
    fit_intercept : bool or "auto", default True
        Fit the constant c. Without it features are not centred either, as in the paper: for data of mean
        zero. That transfers better to another graph, because one strongly smooth sample has a large mean of its own.
        "auto" fits an intercept only if it is more than 3 standard errors from zero, under the field that the
        residuals form. True is right for predictions on the graph of the fit; use "auto" (or False, if means are known
        to be zero) to predict another graph.
    shrinkage : float >= 0, optional
        Strength of the prior on the coefficients: one standard deviation of the features in any direction, before they
        are smoothed, is expected to change the outcome by ``1 / sqrt(shrinkage)`` of its own. By default 4 when the
        level is chosen by cross-validation, and 0 (least squares) when it is given. With hundreds of labels it matters
        at high levels of smoothing only.

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
        Columns that span the fit, orthonormal over the labelled nodes (shorter where coefficients are shrunk); none if
        there are enough labels for error bars without them, see `certain`.
    dof_, scale_, cv_results_ : see `LabelPropagation`
        Degrees of freedom, noise scale from the residuals, and the search of the level.

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
    # Labels per coefficient beyond which error bars treat coefficients as exact: their errors are a ten-thousandth of
    # the variance on average, and the directions would take as much memory and time as the search.
    certain: ClassVar[int] = 10_000

    def _learn_features(self, graph: Graph, table: Table, outcome: Outcome) -> None:
        level = given_level(self.alpha, self.omega)
        self.shrinkage_ = given_shrinkage(self.shrinkage, level)
        self._centred = choose_intercept(
            self, graph, table.X, outcome, lambda fitted: smooth_features(graph, table.X, fitted.alpha_)
        )
        features = whiten(table.X, centred=self._centred, shrinkage=self.shrinkage_)
        self.alpha_, self.cv_results_ = choose_level(
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

    def _on_other_graph(self, graph: Graph | None, X: Any) -> tuple[Floats, Callable[[], Floats]]:
        graph, X = self._other_features(graph, X)
        X = X - self.feature_means_
        predictor = X @ np.asarray(self.coef_)  # smoothing is linear, so this one column is enough
        mean = smooth_features(graph, predictor[:, None], self.alpha_)[:, 0] + self.intercept_

        def std() -> Floats:
            smoothed = smooth_features(graph, X @ self._T, self.alpha_)
            return self._residuals.std_on_other_graph(graph, self._directions(smoothed))

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


@dataclass(eq=False, repr=False, kw_only=True)
class SimpleGraphConvolution(LeastSquaresEstimator):
    r"""Least squares on features that are averaged with those of the neighbours, K times (SGC).

    .. math:: y = \tilde S^K (X - 1 m') b + c, \qquad \tilde S = (D + I)^{-1/2} (W + I) (D + I)^{-1/2}

    with `m` the means of the features over all nodes; the constant c is not averaged. The fit is exact. (The paper
    trains it by gradient steps on at most 30 neighbours; that variant is a `GraphConvolutionalNetwork` with
    ``activation="identity"``.) With ``n_layers=0`` the predictions are those of `LinearRegression`; an isolated node
    counts as one of mean degree whose neighbours have average features. Where the labelled nodes do not determine all
    coefficients, see `LinearRegression`.

    Parameters
    ----------
    n_layers : "cv" or int >= 0, default "cv"
        The power K; "cv" takes the best of 0, 1, 2, 3 by cross-validation, see `selection.AlphaSearch`.
    cv, random_state : see `LabelPropagation`
        Folds of the cross-validation, and their seed.
    fit_intercept : bool or "auto", default True
        Fit the constant c, see `LinearGraphConvolution`.

    Attributes
    ----------
    n_layers_ : int
        The power in use.
    coef_, intercept_, feature_means_, n_coefficients_ : see `LinearGraphConvolution`
        The fit on the averaged features.
    coef_std_ : see `LinearRegression`
        Standard errors of the coefficients.
    dof_, scale_ : see `LinearRegression`
        Degrees of freedom left to the noise, and the standard deviation of the residuals.
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
        given, self._isolated = given_layers(self.n_layers), isolated_weight(graph)
        intercept = choose_intercept(
            self, graph, table.X, outcome, lambda fitted: self._averaged(graph, table.X, fitted.n_layers_)
        )
        self._graph, self._features = graph, whiten(table.X, centred=intercept)
        coef = self._regress(graph, self._features, outcome, given)
        self.coef_, self.feature_means_ = table.columns.named(coef), self._features.means

    def _regress(self, graph: Graph, features: Whitened, outcome: Outcome, given: int | None) -> Floats:
        """Choose the number of layers unless given, fit on its features; return the coefficients of the features."""
        y, intercept = outcome.y[outcome.known], features.centred
        most = max(_LAYERS) if given is None else given
        Z = powers(graph.loop_engine, features.Z, most, np.flatnonzero(outcome.known))
        Z[:, graph.isolated[outcome.known]] *= self._isolated ** np.arange(most + 1)[:, None, None]
        self.n_layers_, self.cv_results_ = len(Z) - 1, None
        if given is None:
            matched = outcome.matched_folds(graph, self.cv, self.random_state)
            search = search_layers(Z, y, matched.folds, intercept=intercept).matched(y, matched)
            self.n_layers_ = search.best
            self.cv_results_ = {"n_layers": np.array(_LAYERS), "mean_r2": search.mean_r2, "fold_r2": search.fold_r2}
        self._fit = fit_least_squares(Z[self.n_layers_], y, intercept=intercept)
        self.intercept_, self.n_coefficients_ = self._fit.intercept, self._fit.n_coefficients
        self._fitted = self._averaged(graph, (features.Z @ self._fit.coef)[:, None])[:, 0] + self.intercept_
        self.dof_ = degrees_of_freedom(y.size, self.n_coefficients_, chosen=given is None)
        self.scale_ = root_mean((y - self._fitted[outcome.known]) ** 2, self.dof_)
        return np.asarray(features.T @ self._fit.coef)

    def _design(self) -> Floats:
        return self._averaged(self._graph, self._features.Z)

    def _averaged(self, graph: Graph, X: Floats, n_layers: int | None = None) -> Floats:
        """Return centred features averaged with those of neighbours, by default as often as the fit does."""
        order = self.n_layers_ if n_layers is None else n_layers
        averaged = power(graph.loop_engine, X, order)
        averaged[graph.isolated] *= self._isolated**order
        return averaged

    def _on_other_graph(self, graph: Graph | None, X: Any) -> tuple[Floats, Callable[[], Floats]]:
        graph, X = self._other_features(graph, X)
        Z = self._averaged(graph, (X - self.feature_means_) @ self._features.T)
        return Z @ self._fit.coef + self.intercept_, lambda: self._std(Z)

    def frequency_response(self, eigenvalues: ArrayLike) -> Floats:
        r"""Return :math:`(1 - \lambda)^K`, by which features on eigenvectors of :math:`I - \tilde S` count.

        Where every node has `d` edges the eigenvalues :math:`\lambda` are :math:`d / (d + 1)` times those of `N`.
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
    """Cross-validate least squares on features (n_powers, n_labelled, p) after 0, 1, ... layers, not a level."""
    with threadpool_limits(1, "blas"):
        fits = [fold_fits(Z, y, folds, intercept=intercept, noise=0.0) for Z in powers]
    return AlphaSearch.score(range(len(powers)), own_fold(np.stack(fits), folds), y, folds)


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


def choose_level(
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


def choose_intercept(estimator: Any, graph: Graph, X: Any, outcome: Outcome, smoothed: Callable[[Any], Floats]) -> bool:
    """Return whether to fit an intercept: as given, or for "auto" if the labels support one.

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

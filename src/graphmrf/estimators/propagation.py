"""Propagation along the edges of labels, fixed or not, and of the residuals of a base predictor."""

from __future__ import annotations

import logging
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone, is_classifier

from graphmrf.errors import InvalidInputError
from graphmrf.estimators.base import NodeEstimator, PropagatingEstimator
from graphmrf.estimators.error_bars import ResidualField, as_omega, degrees_of_freedom
from graphmrf.estimators.inputs import (
    as_given,
    check_fitted,
    check_graph,
    read_features,
    read_outcome,
    refuse_other_graph,
)
from graphmrf.estimators.linear import Level, LinearGraphConvolution, choose_level, given_level, given_shrinkage
from graphmrf.estimators.out_of_fold import refit_folds
from graphmrf.estimators.tables import answers_tables, takes_folds, takes_tables
from graphmrf.linalg import smooth
from graphmrf.selection import (
    search_convolution_and_residual,
    search_propagation,
    search_residual,
    search_spreading,
    whiten,
)

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.estimators.inputs import Outcome
    from graphmrf.estimators.out_of_fold import NodeRegressor
    from graphmrf.graph import Graph
    from graphmrf.selection import AlphaSearch

_PROGRESS = logging.getLogger("graphmrf.progress")


@dataclass(eq=False, repr=False, kw_only=True)
class LabelPropagation(PropagatingEstimator):
    r"""The mean of the labels plus their propagated deviations from it (LP).

    .. math:: y_U = \bar y - (I + \omega N)_{UU}^{-1} (I + \omega N)_{UL} (y_L - \bar y)

    It is the expectation of a field of precision proportional to :math:`I + \omega N` given its labels, about the
    labelled mean. (The paper assumes centred data and leaves the mean out; its experiments include it.)

    A labelled node keeps its label. A node that no label reaches (another component, an isolated node, or
    ``alpha=0``) gets the mean.

    Parameters
    ----------
    alpha : "cv" or float in [0, 1), default "cv"
        Smoothing level; "cv" takes the best of the paper's 14 by cross-validation, see `selection.AlphaSearch`.
    omega : float >= 0, optional
        The level on the other scale, :math:`\alpha = \omega / (1 + \omega)`; leave alpha at "cv" then.
    cv : int, default 5
        Folds of the cross-validation, which imitate the holes, see `selection.distance_matched_folds`; as many as
        labelled nodes if there are fewer.
    random_state : int, default 0
        Seed of the folds, and of the probes for the standard deviations of large graphs.

    Attributes
    ----------
    alpha_, omega_ : float
        The smoothing level in use.
    mean_ : float
        Mean of the labels.
    dof_ : float
        Degrees of freedom left to the noise scale, those of Student's distribution of errors.
    scale_ : float
        Noise scale, from leave-one-out residuals; NaN with a single label. Computed when first asked for.
    cv_results_ : dict or None
        "alpha", "mean_r2" (pooled over the folds) and "fold_r2" of every level tried; None when alpha was given.

    Examples
    --------
    >>> import numpy as np
    >>> from graphmrf import Graph, LabelPropagation
    >>> path = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4])
    >>> y = np.array([1.0, 2.0, np.nan, 4.0, np.nan])
    >>> LabelPropagation(alpha=0.9).fit(path, None, y).predict().round(2)
    array([1.  , 2.  , 2.93, 4.  , 3.39])
    """

    alpha: Level = "cv"
    omega: float | None = None
    cv: int = 5
    random_state: int = 0

    def _learn(self, graph: Graph, X: Any, outcome: Outcome) -> None:  # noqa: ARG002  (every estimator is fitted alike)
        level = given_level(self.alpha, self.omega)
        self.alpha_, self.cv_results_ = choose_level(
            level, self, graph, outcome, lambda folds: search_propagation(graph, outcome.y, folds)
        )
        labels, m = outcome.y[outcome.known], outcome.n_labelled
        self.omega_, self.mean_ = as_omega(self.alpha_), float(labels.mean())
        mean, dof = np.full((graph.n_nodes, 1), m**-0.5), degrees_of_freedom(m, 1.0, chosen=level is None)
        parts = labels - self.mean_, self.alpha_, mean, dof, self.random_state
        self._propagate(np.full(graph.n_nodes, self.mean_), ResidualField(graph, outcome.known, *parts), outcome)

    def _out_of_fold(self, graph: Graph, X: Any, outcome: Outcome, folds: Ints) -> Floats:  # noqa: ARG002
        return np.asarray(search_propagation(graph, outcome.y, folds, alphas=(self.alpha_,)).predictions[0])


@dataclass(eq=False, repr=False, kw_only=True)
class LabelSpreading(NodeEstimator):
    r"""The labels smoothed over the graph, without holding them fixed.

    .. math:: \hat y = \arg\min_f \; \tfrac{1}{\omega} \lVert f - y^{(0)} \rVert^2 + f^\top N f
              = (I + \omega N)^{-1} y^{(0)}

    with :math:`y^{(0)}` the deviations of the labels from their mean, and 0 where there is none: equation 1 of the
    paper, and the label spreading of Zhou et al. (2004). Predictions shrink to the mean where labels are sparse;
    `LabelPropagation` is the expectation of a model, has error bars, and predicts better.

    Parameters
    ----------
    alpha, omega, cv, random_state : see `LabelPropagation`
        Smoothing level, on one of two scales, or how it is chosen.

    Attributes
    ----------
    alpha_, omega_, mean_, cv_results_ : see `LabelPropagation`
        The smoothing level in use, the mean of the labels, and the search of the level.

    Examples
    --------
    >>> import numpy as np
    >>> from graphmrf import Graph, LabelSpreading
    >>> path = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4])
    >>> y = np.array([1.0, 2.0, np.nan, 4.0, np.nan])
    >>> LabelSpreading(alpha=0.9).fit(path, None, y).predict().round(2)
    array([2.13, 2.22, 2.45, 2.7 , 2.57])
    """

    keeps_labels = False

    alpha: Level = "cv"
    omega: float | None = None
    cv: int = 5
    random_state: int = 0

    @takes_tables
    def fit(self, graph: Graph, X: Any = None, y: Any = None) -> Self:  # noqa: ARG002  (every estimator is fitted alike)
        """Learn the level and smooth the labels; `X` is ignored, `y` (n,) is NaN where it is to be predicted."""
        level, outcome = given_level(self.alpha, self.omega), read_outcome(y, check_graph(graph).n_nodes)
        self.alpha_, self.cv_results_ = choose_level(
            level, self, graph, outcome, lambda folds: search_spreading(graph, outcome.y, folds)
        )
        self.omega_, self.mean_ = as_omega(self.alpha_), float(outcome.y[outcome.known].mean())
        deviations = np.where(outcome.known, outcome.y - self.mean_, 0.0)
        self._fitted = smooth(graph, deviations[:, None], self.alpha_)[:, 0] + self.mean_
        self._single = outcome.single
        return self

    @answers_tables
    def predict(self, graph: None = None, X: None = None) -> Floats:
        """Return the smoothed labels of all nodes of the fitted graph, shape (n,)."""
        check_fitted(self, "_fitted")
        refuse_other_graph(graph, X, "LabelSpreading")
        return as_given(self._fitted, single=self._single)

    @takes_folds
    def out_of_fold(self, graph: Graph, X: Any, y: Any, folds: Ints) -> Floats:  # noqa: ARG002  (as in every estimator)
        """Return the prediction (n_labelled,) of each labelled node by a fit without its fold, at the same level."""
        check_fitted(self, "_fitted")
        outcome = read_outcome(y, graph.n_nodes)
        return np.asarray(search_spreading(graph, outcome.y, folds, alphas=(self.alpha_,)).predictions[0])

    def frequency_response(self, eigenvalues: ArrayLike) -> Floats:
        r"""Return :math:`1 / (1 + \omega \lambda)`, the factor by which spreading damps each eigenvector of `N`."""
        check_fitted(self, "_fitted")
        return np.asarray(1.0 / (1.0 + self.omega_ * np.asarray(eigenvalues, dtype=np.float64)))


@dataclass(eq=False, repr=False)
class ResidualPropagation(PropagatingEstimator):
    r"""A base predictor plus its propagated residuals (RP).

    .. math:: y_U = f_U - (I + \omega N)_{UU}^{-1} (I + \omega N)_{UL} (y_L - f_L)

    Over `LinearGraphConvolution` this is the paper's LGC/RP, the expectation given all features and the labels. A
    labelled node keeps its label; a node that no label reaches gets the prediction of the base.

    How the level and the residuals :math:`y_L - f_L` are found depends on the base.

    ``LinearGraphConvolution``, both levels alpha being "cv"
        One level for both, chosen jointly by cross-validation with the folds and the seed given here.
    any other predictor of graphmrf
        First the base chooses its own hyper-parameters; then alpha is chosen by a second cross-validation, in which
        the base is refitted with these without each fold. Residuals are those of the base fitted on all labels.
    a scikit-learn regressor
        Such a base may fit its training labels perfectly and leave no residual to propagate, so it is cross-fitted: the
        residual of a labelled node is its label less the prediction of a copy fitted without its fold. The same
        residuals choose alpha, each fold predicted from those of the others. Unlabelled nodes are predicted by a copy
        fitted on all labels. Features are passed to the base unchanged, with missing cells or text if it accepts them.

    Parameters
    ----------
    base : estimator, optional
        A predictor of graphmrf that does not itself return the labels, or a regressor with methods ``fit(X, y)`` and
        ``predict(X)``, such as those of scikit-learn. It is cloned.
    predictions : array or Series of shape (n,), optional
        In place of a base, existing predictions of all nodes, such as those of a network. Those at labelled nodes must
        be out of fold, or there is no residual to propagate.
    alpha, omega, cv, random_state : see `LabelPropagation`
        Level of the propagation, on one of two scales, or how it is chosen.

    Attributes
    ----------
    base_ : estimator
        The base fitted on all labels; its coefficients are in ``base_.coef_``.
    alpha_, omega_, dof_, scale_, cv_results_ : see `LabelPropagation`
        The level in use, degrees of freedom, noise scale, and the search of the level.

    Examples
    --------
    >>> import numpy as np
    >>> from graphmrf import Graph, LinearGraphConvolution, ResidualPropagation
    >>> path = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4])
    >>> X, y = np.array([[0.0], [1.0], [0.0], [2.0], [4.0]]), np.array([1.0, 1.0, np.nan, 3.0, np.nan])
    >>> model = ResidualPropagation(LinearGraphConvolution(alpha=0.5), alpha=0.5).fit(path, X, y)
    >>> model.predict().round(2)
    array([1.  , 1.  , 1.14, 3.  , 4.12])
    """

    base: Any = None
    _: KW_ONLY
    predictions: Any = None
    alpha: Level = "cv"
    omega: float | None = None
    cv: int = 5
    random_state: int = 0

    def _learn(self, graph: Graph, X: Any, outcome: Outcome) -> None:
        base, level, known = self.base, given_level(self.alpha, self.omega), outcome.known
        self._check_base()
        if self.predictions is not None:
            self.base_: Any = None
            self._base_values = read_predictions(graph, self.predictions)
            residuals = self._choose_level(level, graph, outcome, self._base_values[known])
        elif level is None and isinstance(base, LinearGraphConvolution) and given_level(base.alpha, base.omega) is None:
            residuals = self._fit_jointly(graph, X, outcome)
        elif knows_graph(base):
            residuals = self._fit_in_turn(level, graph, X, outcome)
        else:
            residuals = self._fit_crosswise(level, graph, X, outcome)
        self.omega_ = as_omega(self.alpha_)
        directions = getattr(self.base_, "directions_", np.empty((graph.n_nodes, 0)))
        dof = self._freedom(directions[known], chosen=level is None)
        parts = residuals, self.alpha_, directions, dof, self.random_state
        self._propagate(self._base_values, ResidualField(graph, known, *parts), outcome)

    def _freedom(self, directions: Floats, *, chosen: bool) -> float:
        """Return the degrees of freedom left, given the directions of the base at the labelled nodes."""
        nonlinear = self.base_.n_coefficients_ if knows_graph(self.base_) else 0  # else residuals are out of fold
        spent = float(np.sum(directions**2)) if directions.shape[1] else nonlinear
        return degrees_of_freedom(len(directions), spent, chosen=chosen)

    def _out_of_fold(self, graph: Graph, X: Any, outcome: Outcome, folds: Ints) -> Floats:
        if knows_graph(self.base_):
            base = refit_folds(self.base_, graph, X, outcome, folds)
        elif self.predictions is not None:
            base = _for_all_folds(self._base_values[outcome.known], folds)
        else:
            left_out = cross_predictions(self.base, check_regressor(self.base, X, graph), outcome, folds)
            base = _for_all_folds(left_out, folds)
        return np.asarray(search_residual(graph, outcome.y, base, folds, alphas=(self.alpha_,)).predictions[0])

    def _choices(self) -> dict[str, Any]:
        return super()._choices() | {"base": self.base_.fixed() if knows_graph(self.base_) else self.base}

    def _fit_base(self, base: NodeRegressor, graph: Graph, X: Any, outcome: Outcome) -> Floats:
        """Fit a copy of the base, its hyper-parameters included; return the residuals of that fit."""
        _PROGRESS.info("%s on all labels", type(base).__name__)
        self.base_ = clone(base).fit(graph, X, outcome.y)
        self._base_values = self.base_.predict()
        return np.asarray((outcome.y - self._base_values)[outcome.known])

    def _fit_jointly(self, graph: Graph, X: Any, outcome: Outcome) -> Floats:
        shrinkage = given_shrinkage(self.base.shrinkage or 0.0, None)  # a field of residuals takes up what is smooth
        read = read_features(X, graph.n_nodes, "LinearGraphConvolution")
        features = whiten(read.X, centred=self.base.fit_intercept is not False, shrinkage=shrinkage)
        del read  # whitened features take as much memory, and the search needs no others
        self.alpha_, self.cv_results_ = choose_level(
            None, self, graph, outcome, lambda folds: search_convolution_and_residual(graph, features, outcome.y, folds)
        )
        return self._fit_base(clone(self.base).set_params(alpha=self.alpha_), graph, X, outcome)

    def _fit_in_turn(self, level: float | None, graph: Graph, X: Any, outcome: Outcome) -> Floats:
        residuals = self._fit_base(self.base, graph, X, outcome)

        def search(folds: Ints) -> AlphaSearch:
            without_fold = refit_folds(self.base_, graph, X, outcome, folds)
            return search_residual(graph, outcome.y, without_fold, folds)

        self.alpha_, self.cv_results_ = choose_level(level, self, graph, outcome, search)
        return residuals

    def _fit_crosswise(self, level: float | None, graph: Graph, X: Any, outcome: Outcome) -> Floats:
        folds = outcome.matched_folds(graph, self.cv, self.random_state).folds
        X = check_regressor(self.base, X, graph)
        left_out = cross_predictions(self.base, X, outcome, folds)
        self.base_ = clone(self.base, safe=False).fit(_rows(X, outcome.known), outcome.y[outcome.known])
        self._base_values = np.asarray(np.ravel(self.base_.predict(X)), dtype=np.float64)
        return self._choose_level(level, graph, outcome, left_out)

    def _choose_level(self, level: float | None, graph: Graph, outcome: Outcome, left_out: Floats) -> Floats:
        """Choose the level from predictions of labelled nodes without their labels; return the residuals."""

        def search(folds: Ints) -> AlphaSearch:
            return search_residual(graph, outcome.y, _for_all_folds(left_out, folds), folds)

        self.alpha_, self.cv_results_ = choose_level(level, self, graph, outcome, search)
        return np.asarray(outcome.y[outcome.known] - left_out)

    def _check_base(self) -> None:
        if (self.base is None) == (self.predictions is None):
            found = "neither" if self.base is None else "both"
            raise InvalidInputError(f"ResidualPropagation needs a base or predictions, got {found}; pass one of them")
        if getattr(self.base, "keeps_labels", False):
            name = type(self.base).__name__
            raise InvalidInputError(
                f"base must leave residuals at the labelled nodes, got {name}, which returns labels; use {name} alone"
            )


def knows_graph(base: Any) -> TypeGuard[NodeRegressor]:
    """Whether the base is fitted with a graph."""
    return hasattr(base, "fixed")


def cross_predictions(base: Any, X: Any, outcome: Outcome, folds: Ints) -> Floats:
    """Return the out-of-fold predictions (n_labelled,) of a scikit-learn regressor."""
    rows, y, predicted = _rows(X, outcome.known), outcome.y[outcome.known], np.empty(folds.size)
    for fold in np.unique(folds):
        own = folds == fold
        fitted = clone(base, safe=False).fit(_rows(rows, ~own), y[~own])
        predicted[own] = np.ravel(fitted.predict(_rows(rows, own)))
    return predicted


def read_predictions(graph: Graph, predictions: Any) -> Floats:
    """Return the predictions of all nodes, checked."""
    values = np.asarray(graph.align(predictions, "predictions"), dtype=np.float64)
    if values.shape != (graph.n_nodes,) or not np.isfinite(values).all():
        raise InvalidInputError(
            f"predictions must be a finite number for each of the {graph.n_nodes} nodes, got shape {values.shape} with "
            f"{np.count_nonzero(~np.isfinite(values))} that are not finite; predict every node"
        )
    return values


def check_regressor(base: Any, X: Any, graph: Graph) -> Any:
    """Return the features for a scikit-learn regressor, which checks their values itself."""
    classifies = is_classifier(base) if isinstance(base, BaseEstimator) else hasattr(base, "predict_proba")
    if not (hasattr(base, "fit") and hasattr(base, "predict")) or isinstance(base, type) or classifies:
        raise InvalidInputError(
            f"base must be a regressor of graphmrf or scikit-learn, got {base!r}; pass an instance, such as "
            "LinearGraphConvolution()"
        )
    if X is None:
        raise InvalidInputError(
            f"{type(base).__name__} needs features X, got None; without features use LabelPropagation"
        )
    X = X if isinstance(X, pd.DataFrame) else np.asarray(X)
    if len(X) != graph.n_nodes:
        raise InvalidInputError(f"X must have one row for each of the {graph.n_nodes} nodes, got {len(X)}")
    return X


def _rows(X: Any, rows: Bools) -> Any:
    return X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]


def _for_all_folds(left_out: Floats, folds: Ints) -> Floats:
    """Return (n_labelled, n_folds): the same residual of a label, whichever fold it helps to predict."""
    return np.broadcast_to(left_out[:, None], (left_out.size, int(folds.max()) + 1))

"""Residual propagation: what a base predictor leaves of the labels, carried along the edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from sklearn.base import BaseEstimator, clone

from graphmrf.errors import InvalidInputError
from graphmrf.estimators.fields import ConditionalField
from graphmrf.estimators.inputs import (
    as_given,
    check_fitted,
    check_graph,
    read_features,
    read_outcome,
    refuse_other_graph,
)
from graphmrf.estimators.label_propagation import LabelPropagation
from graphmrf.estimators.levels import Level, as_omega, given_level, settle
from graphmrf.estimators.linear_graph_convolution import LinearGraphConvolution
from graphmrf.estimators.trends import check_regressor, cross_fitted, graph_trend, knows_graph, refitted
from graphmrf.linalg import propagate
from graphmrf.selection import search_convolution_and_residual, search_residual, whiten

if TYPE_CHECKING:
    from typing import Self

    from graphmrf._typing import Floats
    from graphmrf.estimators.inputs import Outcome
    from graphmrf.estimators.trends import Trend
    from graphmrf.graph import Graph
    from graphmrf.selection import AlphaSearch


class ResidualPropagation(BaseEstimator):
    r"""A base predictor plus its propagated residuals (RP).

    .. math:: y_U = f_U - (I + \omega N)_{UU}^{-1} (I + \omega N)_{UL} (y_L - f_L)

    Over `LinearGraphConvolution` this is the paper's LGC/RP, the expectation given all features and the labels. A
    labelled node keeps its label; a node that no label reaches gets what the base says.

    How the level and the residuals :math:`y_L - f_L` are found depends on the base.

    ``LinearGraphConvolution`` with its alpha at "cv", and alpha here at "cv"
        One level for both, chosen jointly by cross-validation with the folds and the seed given here.
    any other predictor of graphmrf
        First the base chooses its own hyper-parameters; then alpha is chosen by a second cross-validation, in which
        the base, its hyper-parameters fixed, is refitted without each fold. Residuals are those of the base fitted on
        all labels.
    a scikit-learn regressor
        Such a base may fit its training labels perfectly and leave no residual to propagate. So it is cross-fitted:
        the residual of a labelled node is its label less the prediction of a copy fitted without its fold. The same
        residuals choose alpha, each fold predicted from those of the others. Unlabelled nodes are predicted by a copy
        fitted on all labels. Features go to the base as they are, so it may take missing cells or text where it can.

    Parameters
    ----------
    base : estimator
        A predictor of graphmrf that does not itself return the labels, or a scikit-learn regressor. It is cloned.
    alpha : "cv" or float in [0, 1), default "cv"
        Level of the propagation; "cv" takes the best of the paper's 14, see `selection.AlphaSearch`.
    omega : float >= 0, optional
        The level on the other scale, :math:`\alpha = \omega / (1 + \omega)`; leave alpha at "cv" then.
    folds : int, default 5
        Folds of the cross-validation; as many as labelled nodes if there are fewer.
    seed : int, default 0
        Seed of the folds, and of the probes behind the standard deviations of large graphs.

    Attributes
    ----------
    base_ : estimator
        The base fitted on all labels; its coefficients are in ``base_.coef_``.
    alpha_, omega_ : float
        The level in use.
    scale_ : float
        Noise scale, from leave-one-out residuals; NaN when there are no more labels than fitted coefficients.
        Computed when first asked for.
    cv_results_ : dict or None
        "alpha", "mean_r2" (pooled over the folds) and "fold_r2" of every level tried; None when alpha was given.

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

    def __init__(
        self, base: Any, *, alpha: Level = "cv", omega: float | None = None, folds: int = 5, seed: int = 0
    ) -> None:
        self.base = base
        self.alpha = alpha
        self.omega = omega
        self.folds = folds
        self.seed = seed

    def fit(self, graph: Graph, X: Any, y: Any) -> Self:
        """Learn the base and the level, and propagate the residuals.

        Parameters
        ----------
        graph : Graph
            The graph.
        X : array or DataFrame of shape (n, p)
            Features of all nodes.
        y : array or Series of shape (n,)
            Outcomes, NaN where they are to be predicted.

        Raises
        ------
        InvalidInputError
            If the inputs break a rule, or a cross-validation is asked for and there are fewer than 2 labels.
        """
        level, outcome = given_level(self.alpha, self.omega), read_outcome(y, check_graph(graph).n_nodes)
        self._check_base()
        if level is None and _chooses_level(self.base):
            trend = self._fit_jointly(graph, X, outcome)
        elif knows_graph(self.base):
            trend = self._fit_in_turn(level, graph, X, outcome)
        else:
            trend = self._fit_crosswise(level, graph, X, outcome)
        self.omega_, self.base_, self._base_values = as_omega(self.alpha_), trend.base, trend.prediction
        residuals = np.zeros((graph.n_nodes, 1))
        residuals[outcome.known, 0] = trend.residuals
        filled = propagate(graph, residuals, outcome.known, self.alpha_)[:, 0]
        self._outcome = outcome
        self._field = ConditionalField(graph, outcome.known, filled, self.alpha_, trend.spent, self.seed)
        return self

    @overload
    def predict(self, graph: None = None, X: None = None, *, return_std: Literal[False] = False) -> Floats: ...
    @overload
    def predict(self, graph: None = None, X: None = None, *, return_std: Literal[True]) -> tuple[Floats, Floats]: ...
    def predict(
        self, graph: None = None, X: None = None, *, return_std: bool = False
    ) -> Floats | tuple[Floats, Floats]:
        r"""Return the outcome of every node; labelled nodes keep their label.

        Parameters
        ----------
        graph, X : None
            Propagation lives on the labels of its graph, so there is no prediction for another one.
        return_std : bool, default False
            Also return :math:`\tau \sqrt{[(I + \omega N)_{UU}^{-1}]_{uu}}`, 0 at the labelled nodes; the uncertainty of
            the base is left out.

        Returns
        -------
        array of shape (n,), or two of them
            In float32 when y was.
        """
        check_fitted(self, "_field")
        refuse_other_graph(graph, X, "ResidualPropagation")
        outcome = self._outcome
        mean = as_given(outcome.clamp(self._base_values + self._field.values), single=outcome.single)
        return (mean, as_given(self._field.std, single=outcome.single)) if return_std else mean

    @property
    def scale_(self) -> float:
        """Noise scale; computed when first asked for."""
        check_fitted(self, "_field")
        return self._field.scale

    def _fit_jointly(self, graph: Graph, X: Any, outcome: Outcome) -> Trend:
        table = read_features(X, graph.n_nodes, "LinearGraphConvolution")
        features, folds = (
            whiten(table.X, centred=self.base.fit_intercept is not False),
            outcome.folds(self.folds, self.seed),
        )
        self.alpha_, self.cv_results_ = settle(
            None, lambda: search_convolution_and_residual(graph, features, outcome.y, folds)
        )
        return graph_trend(clone(self.base).set_params(alpha=self.alpha_), graph, X, outcome)

    def _fit_in_turn(self, level: float | None, graph: Graph, X: Any, outcome: Outcome) -> Trend:
        trend = graph_trend(self.base, graph, X, outcome)

        def search() -> AlphaSearch:
            folds = outcome.folds(self.folds, self.seed)
            without_fold = refitted(trend.base, graph, X, outcome, folds)
            return search_residual(graph, outcome.y, without_fold, folds)

        self.alpha_, self.cv_results_ = settle(level, search)
        return trend

    def _fit_crosswise(self, level: float | None, graph: Graph, X: Any, outcome: Outcome) -> Trend:
        folds = outcome.folds(self.folds, self.seed)
        trend = cross_fitted(self.base, check_regressor(self.base, X, graph.n_nodes), outcome, folds)

        def search() -> AlphaSearch:
            left_out = outcome.y[outcome.known] - trend.residuals
            by_fold = np.broadcast_to(left_out[:, None], (left_out.size, int(folds.max()) + 1))
            return search_residual(graph, outcome.y, by_fold, folds)

        self.alpha_, self.cv_results_ = settle(level, search)
        return trend

    def _check_base(self) -> None:
        if isinstance(self.base, LabelPropagation | ResidualPropagation):
            name = type(self.base).__name__
            raise InvalidInputError(
                f"base must leave residuals at the labelled nodes, got {name}, which returns labels; use {name} alone"
            )


def _chooses_level(base: Any) -> bool:
    """Whether the base is a convolution that leaves its level to cross-validation."""
    return isinstance(base, LinearGraphConvolution) and given_level(base.alpha, base.omega) is None

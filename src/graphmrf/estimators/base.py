"""What the estimators of the paper share: fit, predictions with standard deviations, and out-of-fold predictions.

An estimator has its options as the fields of a data class, its formula in ``_learn``, which sets ``_fitted``, the
predictions (n,) of the fit, and its standard deviations in ``model_std_``. One that predicts other nodes too has
``_elsewhere``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, overload

import numpy as np
from sklearn.base import clone

from graphmrf.errors import InvalidInputError
from graphmrf.estimators.calibration import IntervalCheck
from graphmrf.estimators.error_bars import ResidualField, student_std
from graphmrf.estimators.inputs import (
    as_given,
    check_fitted,
    check_graph,
    match_features,
    read_features,
    read_outcome,
    refuse_other_graph,
)
from graphmrf.estimators.joint import JointEstimator
from graphmrf.estimators.out_of_fold import refit_folds
from graphmrf.estimators.tables import predicts_tables, takes_folds, takes_tables
from graphmrf.selection import own_fold

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from graphmrf._typing import Floats, Ints
    from graphmrf.estimators.inputs import FeatureColumns, Outcome, Table
    from graphmrf.graph import Graph
    from graphmrf.selection import LeastSquares, Whitened


class CheckedEstimator(JointEstimator):
    """An estimator whose intervals are checked on held-out labels, and widened where they are too narrow.

    Attributes
    ----------
    interval_check_ : IntervalCheck
        The check, computed when standard deviations are first asked for.
    notes_ : tuple of str
        What it found.
    """

    keeps_labels: ClassVar[bool] = False
    """Whether `predict` returns the label of a labelled node, and not what the model says there."""

    interval_check_: IntervalCheck
    _fitted: Floats
    _single: bool

    @property
    def notes_(self) -> tuple[str, ...]:
        """What the check of the intervals found; none where holes are random, or intervals cover."""
        check_fitted(self, "interval_check_")
        return self.interval_check_.notes

    @takes_tables
    def fit(self, graph: Graph, X: Any = None, y: Any = None) -> Self:
        """Learn from the labelled nodes.

        Parameters
        ----------
        graph : Graph, or a graph of SciPy (sparse), NetworkX or igraph
            The graph.
        X : array, DataFrame or sparse matrix of shape (n, p), or None
            Features of all nodes, finite; label propagation ignores them. More than 50 columns of a sparse matrix are
            reduced to 50, see `Components`.
        y : array or Series of shape (n,), or with several columns
            Outcomes, NaN where they are to be predicted. Each of several columns is fitted for itself, see `targets_`.

        Raises
        ------
        InvalidInputError
            If the inputs break a rule, or a cross-validation is asked for and there are fewer than 2 labels.
        ConvergenceError
            If an iteration does not reach its tolerance, or the training of a network goes to infinity.
        """
        outcome = read_outcome(y, graph.n_nodes)
        self._single = outcome.single
        self._learn(graph, X, outcome)
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
        """Return the outcome of every node.

        Where residuals or labels are propagated, labelled nodes keep their label; else the prediction of the model is
        returned there, too.

        Parameters
        ----------
        graph, X : Graph and array or DataFrame, optional
            Another graph and the features of its nodes, the same columns; they are centred on the means of the fit.
            By default those of the fit, and given again they are, too. Propagation predicts the graph of its labels
            only.
        return_std : bool, default False
            Also return the standard deviation of outcome less prediction, 0 where labels are kept. It includes the
            uncertainty of the coefficients and of the noise scale (see `ResidualField` and `student_std`), and what
            held-out labels add (see `calibration`).

        Returns
        -------
        array of shape (n,), or two of them
            In float32 when X and y were.
        """
        check_fitted(self, "interval_check_")
        if graph is None and X is None:
            mean, std = self._fitted, self._checked_std
        else:
            mean, std = self._elsewhere(graph, X)
        answer = as_given(mean, single=self._single)
        return (answer, as_given(std(), single=self._single)) if return_std else answer

    @property
    def model_std_(self) -> Floats:
        """Standard deviations (n,) of the model, before intervals are checked."""
        raise NotImplementedError

    def _checked_std(self) -> Floats:
        return self.model_std_ * self.interval_check_.factors

    def _errors(self, count: int, rng: np.random.Generator) -> Floats:
        return self._model_errors(count, rng) * self.interval_check_.factors[:, None]

    def _model_errors(self, count: int, rng: np.random.Generator) -> Floats:
        """Return joint draws (n, count) of outcomes less predictions, by default independent of each other."""
        return self.model_std_[:, None] * rng.standard_normal((self._fitted.size, count))

    @takes_folds
    def out_of_fold(self, graph: Graph, X: Any, y: Any, folds: Ints) -> Floats:
        """Return the prediction (n_labelled,) of each labelled node by a fit without its fold.

        Hyper-parameters remain those that the fit chose.

        Parameters
        ----------
        graph, X, y : Graph, features, array of shape (n,)
            What the fit was given.
        folds : integer array of shape (n_labelled,)
            Fold of every labelled node, in node order.
        """
        check_fitted(self, "interval_check_")
        return self._out_of_fold(graph, X, read_outcome(y, graph.n_nodes), folds)

    def fixed(self) -> Self:
        """Return an unfitted copy with the hyper-parameters that were chosen."""
        check_fitted(self, "interval_check_")
        copy: Self = clone(self).set_params(**self._choices())
        return copy

    def _learn(self, graph: Graph, X: Any, outcome: Outcome) -> None:
        """Set what the fit learns, and `_fitted`."""
        raise NotImplementedError

    def _choices(self) -> dict[str, Any]:
        """Return the options that the fit chose."""
        raise NotImplementedError

    def _elsewhere(self, graph: Graph | None, X: Any) -> tuple[Floats, Callable[[], Floats]]:
        """Return the predictions at other nodes, and what computes their standard deviations."""
        refuse_other_graph(graph, X, type(self).__name__)
        raise AssertionError

    def _out_of_fold(self, graph: Graph, X: Any, outcome: Outcome, folds: Ints) -> Floats:
        return own_fold(refit_folds(self, graph, X, outcome, folds), folds)


class FeatureEstimator(CheckedEstimator):
    """An estimator that predicts from features, on other graphs too."""

    _columns: FeatureColumns

    def _learn(self, graph: Graph, X: Any, outcome: Outcome) -> None:
        table = read_features(X, graph.n_nodes, type(self).__name__)
        self._columns, self._single = table.columns, table.single and outcome.single
        self._learn_features(graph, table, outcome)

    def _learn_features(self, graph: Graph, table: Table, outcome: Outcome) -> None:
        """Set what the fit learns from features that were checked."""
        raise NotImplementedError

    def _other_features(self, graph: Graph | None, X: Any) -> tuple[Graph, Floats]:
        """Return another graph and its features, checked."""
        if graph is None:
            raise InvalidInputError(
                f"{type(self).__name__} predicts other nodes on their graph, got X alone; pass both"
            )
        graph = check_graph(graph)
        return graph, match_features(X, graph.n_nodes, self._columns, type(self).__name__)


class PropagatingEstimator(CheckedEstimator):
    """An estimator that propagates residuals from the labels, which it keeps."""

    keeps_labels = True
    alpha_: float
    dof_: float
    _residuals: ResidualField

    def _propagate(self, base: Floats, residuals: ResidualField, outcome: Outcome) -> None:
        """Set the predictions: those of a base, plus its residuals, propagated."""
        self._residuals, self.dof_ = residuals, residuals.freedom
        self._fitted = outcome.clamp(base + residuals.propagated)

    @property
    def model_std_(self) -> Floats:
        """Standard deviations (n,) of the model, before intervals are checked; 0 at the labelled nodes."""
        check_fitted(self, "_residuals")
        return self._residuals.conditional_std

    def _model_errors(self, count: int, rng: np.random.Generator) -> Floats:
        return self._residuals.conditional_errors(count, rng)

    @property
    def scale_(self) -> float:
        """Noise scale; computed when first asked for."""
        check_fitted(self, "_residuals")
        return self._residuals.conditional_scale

    def _choices(self) -> dict[str, Any]:
        return {"alpha": self.alpha_, "omega": None}


class LeastSquaresEstimator(FeatureEstimator):
    """An estimator that is a least-squares fit on features or averaged features."""

    dof_: float
    scale_: float
    _features: Whitened
    _fit: LeastSquares

    def _design(self) -> Floats:
        """Return the uncorrelated features (n, k) of the fit, averaged or not."""
        raise NotImplementedError

    def _std(self, Z: Floats) -> Floats:
        r"""Return :math:`s \sqrt{1 + z'(Z'Z)^{-1} z}` for rows z, times the factor of `student_std`."""
        return student_std(self.scale_, 1.0 + self._fit.leverage(Z), self.dof_)

    @property
    def model_std_(self) -> Floats:
        """Standard deviations (n,) of the model, before intervals are checked."""
        check_fitted(self, "_fit")
        return self._std(self._design())

    def _model_errors(self, count: int, rng: np.random.Generator) -> Floats:
        noise, G = rng.standard_normal((self._fitted.size, count)), self.directions_
        drawn = noise + G @ rng.standard_normal((G.shape[1], count))
        return float(student_std(self.scale_, np.ones(1), self.dof_)[0]) * drawn

    @property
    def directions_(self) -> Floats:
        """Columns (n, k) that span the fit, see `NodeRegressor`."""
        return self._fit.directions(self._design())

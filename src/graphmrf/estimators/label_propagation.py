"""Label propagation: the outcomes of neighbours, no features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from graphmrf.estimators.calibration import CheckedEstimator, IntervalCheck
from graphmrf.estimators.choices import Level, as_omega, given_level, settle
from graphmrf.estimators.error_bars import ResidualField, degrees_of_freedom
from graphmrf.estimators.inputs import as_given, check_fitted, check_graph, read_outcome, refuse_other_graph
from graphmrf.estimators.tables import predicts_tables, takes_folds, takes_tables
from graphmrf.selection import search_propagation

if TYPE_CHECKING:
    from typing import Self

    from graphmrf._typing import Floats, Ints
    from graphmrf.graph import Graph


class LabelPropagation(CheckedEstimator):
    r"""The mean of the labels plus their propagated deviations from it (LP).

    .. math:: y_U = \bar y - (I + \omega N)_{UU}^{-1} (I + \omega N)_{UL} (y_L - \bar y)

    It is the expectation of a field of precision proportional to :math:`I + \omega N` given its labels, about the
    labelled mean. The paper assumes centred data and leaves the mean out; its experiments use it as we do.

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
        Seed of the folds, and of the probes behind the standard deviations of large graphs.

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

    keeps_labels = True

    def __init__(self, *, alpha: Level = "cv", omega: float | None = None, cv: int = 5, random_state: int = 0) -> None:
        self.alpha = alpha
        self.omega = omega
        self.cv = cv
        self.random_state = random_state

    @takes_tables
    def fit(self, graph: Graph, X: Any, y: Any) -> Self:  # noqa: ARG002  (every estimator is fitted alike)
        """Learn the level and propagate the labels.

        Parameters
        ----------
        graph : Graph, or a graph of SciPy (sparse), NetworkX or igraph
            The graph.
        X : ignored
            Present because every estimator has it; pass None.
        y : array or Series of shape (n,)
            Outcomes, NaN where they are to be predicted.

        Raises
        ------
        InvalidInputError
            If the inputs break a rule, or alpha is "cv" and there are fewer than 2 labels.
        """
        level, outcome = given_level(self.alpha, self.omega), read_outcome(y, check_graph(graph).n_nodes)
        self.alpha_, self.cv_results_ = settle(
            level, self, graph, outcome, lambda folds: search_propagation(graph, outcome.y, folds)
        )
        self.omega_, self.mean_ = as_omega(self.alpha_), float(outcome.y[outcome.known].mean())
        m, self._outcome = outcome.n_labelled, outcome
        mean, deviations = np.full((graph.n_nodes, 1), m**-0.5), outcome.y[outcome.known] - self.mean_
        self.dof_ = degrees_of_freedom(m, 1.0, chosen=level is None)
        self._residuals = ResidualField(
            graph, outcome.known, deviations, self.alpha_, mean, self.dof_, self.random_state
        )
        self._field = self._residuals.propagated
        self.interval_check_ = IntervalCheck(self, graph, None, outcome)
        return self

    @overload
    def predict(self, graph: None = None, X: None = None, *, return_std: Literal[False] = False) -> Floats: ...
    @overload
    def predict(self, graph: None = None, X: None = None, *, return_std: Literal[True]) -> tuple[Floats, Floats]: ...
    @predicts_tables
    def predict(
        self, graph: None = None, X: None = None, *, return_std: bool = False
    ) -> Floats | tuple[Floats, Floats]:
        r"""Return the outcome of every node; labelled nodes keep their label.

        Parameters
        ----------
        graph, X : None
            Propagation lives on the labels of its graph, so there is no prediction for another one.
        return_std : bool, default False
            Also return the standard deviation given the labels, 0 at the labelled nodes; that of the mean and of the
            noise scale are part of it, see `ResidualField`, and so is what held-out labels add, see `calibration`.

        Returns
        -------
        array of shape (n,), or two of them
            In float32 when y was.
        """
        check_fitted(self, "_residuals")
        refuse_other_graph(graph, X, "LabelPropagation")
        outcome = self._outcome
        mean = as_given(outcome.clamp(self.mean_ + self._field), single=outcome.single)
        if not return_std:
            return mean
        return mean, as_given(self.model_std_ * self.interval_check_.factors, single=outcome.single)

    @property
    def model_std_(self) -> Floats:
        """Standard deviations (n,) of the model, before intervals are checked; 0 at the labelled nodes."""
        check_fitted(self, "_residuals")
        return self._residuals.conditional_std

    @takes_folds
    def out_of_fold(self, graph: Graph, X: Any, y: Any, folds: Ints) -> Floats:  # noqa: ARG002  (as in every estimator)
        """Return the prediction (n_labelled,) of each labelled node by a fit without its fold, the level kept.

        Parameters
        ----------
        graph, X, y : Graph, features, array of shape (n,)
            What the fit was given.
        folds : integer array of shape (n_labelled,)
            Fold of every labelled node, in node order.
        """
        check_fitted(self, "_residuals")
        outcome = read_outcome(y, graph.n_nodes)
        return np.asarray(search_propagation(graph, outcome.y, folds, alphas=(self.alpha_,)).predictions[0])

    @property
    def scale_(self) -> float:
        """Noise scale; computed when first asked for."""
        check_fitted(self, "_residuals")
        return self._residuals.conditional_scale

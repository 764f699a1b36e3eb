"""Label propagation: the outcomes of neighbours, no features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from graphmrf.estimators.base import PropagatingEstimator
from graphmrf.estimators.choices import Level, as_omega, given_level, settle
from graphmrf.estimators.error_bars import ResidualField, degrees_of_freedom
from graphmrf.selection import search_propagation

if TYPE_CHECKING:
    from graphmrf._typing import Floats, Ints
    from graphmrf.estimators.inputs import Outcome
    from graphmrf.graph import Graph


@dataclass(eq=False, repr=False, kw_only=True)
class LabelPropagation(PropagatingEstimator):
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

    alpha: Level = "cv"
    omega: float | None = None
    cv: int = 5
    random_state: int = 0

    def _learn(self, graph: Graph, X: Any, outcome: Outcome) -> None:  # noqa: ARG002  (every estimator is fitted alike)
        level = given_level(self.alpha, self.omega)
        self.alpha_, self.cv_results_ = settle(
            level, self, graph, outcome, lambda folds: search_propagation(graph, outcome.y, folds)
        )
        labels, m = outcome.y[outcome.known], outcome.n_labelled
        self.omega_, self.mean_ = as_omega(self.alpha_), float(labels.mean())
        mean, dof = np.full((graph.n_nodes, 1), m**-0.5), degrees_of_freedom(m, 1.0, chosen=level is None)
        parts = labels - self.mean_, self.alpha_, mean, dof, self.random_state
        self._propagate(np.full(graph.n_nodes, self.mean_), ResidualField(graph, outcome.known, *parts), outcome)

    def _out_of_fold(self, graph: Graph, X: Any, outcome: Outcome, folds: Ints) -> Floats:  # noqa: ARG002
        return np.asarray(search_propagation(graph, outcome.y, folds, alphas=(self.alpha_,)).predictions[0])

"""Label spreading: label propagation that may move the labels, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from graphmrf.estimators.choices import Level, as_omega, given_level, settle
from graphmrf.estimators.inputs import as_given, check_fitted, check_graph, read_outcome, refuse_other_graph
from graphmrf.estimators.tables import NodeEstimator, predicts_tables, takes_folds, takes_tables
from graphmrf.linalg import smooth
from graphmrf.selection import search_spreading

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike

    from graphmrf._typing import Floats, Ints
    from graphmrf.graph import Graph


@dataclass(eq=False, repr=False, kw_only=True)
class LabelSpreading(NodeEstimator):
    r"""The labels smoothed over the graph, without holding them fixed.

    .. math:: \hat y = \arg\min_f \; \tfrac{1}{\omega} \lVert f - y^{(0)} \rVert^2 + f^\top N f
              = (I + \omega N)^{-1} y^{(0)}

    with :math:`y^{(0)}` the deviations of the labels from their mean, and 0 where there is none: equation 1 of the
    paper, and the label spreading of Zhou et al. (2004). Predictions therefore shrink to the mean where labels are
    sparse; `LabelPropagation` is the expectation of a model, has error bars, and is the better choice for predicting.

    Parameters
    ----------
    alpha, omega, cv, random_state : see `LabelPropagation`
        Smoothing level, on one of two scales, or how it is chosen.

    Attributes
    ----------
    alpha_, omega_ : float
        The smoothing level in use.
    mean_ : float
        Mean of the labels.
    cv_results_ : dict or None
        As of `LabelPropagation`.

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
        self.alpha_, self.cv_results_ = settle(
            level, self, graph, outcome, lambda folds: search_spreading(graph, outcome.y, folds)
        )
        self.omega_, self.mean_ = as_omega(self.alpha_), float(outcome.y[outcome.known].mean())
        deviations = np.where(outcome.known, outcome.y - self.mean_, 0.0)
        self._fitted = smooth(graph, deviations[:, None], self.alpha_)[:, 0] + self.mean_
        self._single = outcome.single
        return self

    @predicts_tables
    def predict(self, graph: None = None, X: None = None) -> Floats:
        """Return the smoothed labels of all nodes of the fitted graph, shape (n,)."""
        check_fitted(self, "_fitted")
        refuse_other_graph(graph, X, "LabelSpreading")
        return as_given(self._fitted, single=self._single)

    @takes_folds
    def out_of_fold(self, graph: Graph, X: Any, y: Any, folds: Ints) -> Floats:  # noqa: ARG002  (as in every estimator)
        """Return the prediction (n_labelled,) of each labelled node by a fit without its fold, the level kept."""
        check_fitted(self, "_fitted")
        outcome = read_outcome(y, graph.n_nodes)
        return np.asarray(search_spreading(graph, outcome.y, folds, alphas=(self.alpha_,)).predictions[0])

    def frequency_response(self, eigenvalues: ArrayLike) -> Floats:
        r"""Return :math:`1 / (1 + \omega \lambda)`, the factor by which spreading damps each eigenvector of `N`."""
        check_fitted(self, "_fitted")
        return np.asarray(1.0 / (1.0 + self.omega_ * np.asarray(eigenvalues, dtype=np.float64)))

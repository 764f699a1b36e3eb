"""Adapters for the tools of scikit-learn, whose rows are samples: here a row names a node of a graph.

``cross_val_score``, ``GridSearchCV`` and ``Pipeline`` choose rows. With nodes as rows any of their splitters hides the
labels of some nodes and leaves the nodes, their features and their edges in place.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin, clone

from graphmrf.errors import InvalidInputError
from graphmrf.estimators.error_bars import as_omega
from graphmrf.estimators.inputs import check_fitted, check_graph, node_positions, read_features
from graphmrf.estimators.linear import given_level
from graphmrf.estimators.storage import Storable
from graphmrf.linalg import smooth_features

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike

    from graphmrf._typing import Floats
    from graphmrf.graph import Graph


@dataclass(eq=False, repr=False)
class NodeAdapter(RegressorMixin, Storable, BaseEstimator):
    """A scikit-learn regressor that wraps any regressor of graphmrf; its samples are nodes.

    The one column of its `X` names nodes: scikit-learn's ``permutation_importance`` would shuffle these names, not the
    features. Shuffle a column of `features` instead and score the model again.

    Parameters
    ----------
    estimator : estimator
        Any regressor of graphmrf; it is cloned. Its options are searched as ``estimator__alpha`` and so on.
    graph : Graph, or a graph of SciPy, NetworkX or igraph
        The graph of all nodes.
    features : array or DataFrame of shape (n, p), optional
        Features of all nodes, matched by id where the graph has ids.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import GridSearchCV, KFold
    >>> from graphmrf import Graph, LabelPropagation, NodeAdapter
    >>> ring = Graph.from_edges(np.arange(30), (np.arange(30) + 1) % 30)
    >>> labelled = np.arange(0, 30, 2)
    >>> y = np.sin(labelled / 3)
    >>> model = NodeAdapter(LabelPropagation(), ring)
    >>> search = GridSearchCV(model, {"estimator__alpha": [0.5, 0.99]}, cv=KFold(3, shuffle=True, random_state=0))
    >>> search.fit(labelled, y).best_params_
    {'estimator__alpha': 0.99}
    >>> search.predict([1, 3]).shape
    (2,)
    """

    estimator: Any
    graph: Any
    _: KW_ONLY
    features: Any = None

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from some labelled nodes.

        `X` (m,) or (m, 1): ids of nodes where the graph has ids, otherwise their positions; each once. `y` (m,): their
        outcomes; all other nodes are unlabelled.
        """
        graph = check_graph(self.graph)
        nodes, labels = node_positions(graph, X), np.asarray(y)
        if labels.shape != nodes.shape:
            raise InvalidInputError(f"y must have one outcome for each of the {nodes.size} nodes, got {labels.shape}")
        repeated = nodes[np.bincount(nodes, minlength=graph.n_nodes)[nodes] > 1]
        if repeated.size:
            raise InvalidInputError(f"X must name a node once, got node {repeated[0]} twice; average its outcomes")
        outcome = np.full(graph.n_nodes, np.nan, dtype=np.result_type(labels.dtype, np.float32))
        outcome[nodes] = labels
        self.estimator_ = clone(self.estimator).fit(graph, self.features, outcome)
        self._predictions = np.asarray(self.estimator_.predict())
        self.n_features_in_ = 1
        return self

    def predict(self, X: Any) -> Floats:
        """Return the prediction of some nodes, given as in `fit`."""
        check_fitted(self, "_predictions")
        return np.asarray(self._predictions[node_positions(check_graph(self.graph), X)])


@dataclass(eq=False, repr=False)
class GraphSmoother(TransformerMixin, Storable, BaseEstimator):
    r"""Features averaged over the neighbourhood: graph convolution as a transformer.

    .. math:: (I + \omega N)^{-1} (X - \bar x) + \bar x,

    with :math:`\bar x` the mean over all nodes, which smoothing leaves unchanged.

    It can precede any regressor or classifier in a ``Pipeline``. With `features` its samples are nodes, as in
    `NodeAdapter`, so that rows can be split; without, it takes the features of all nodes.

    Parameters
    ----------
    graph : Graph, or a graph of SciPy, NetworkX or igraph
        The graph of all nodes.
    features : array or DataFrame of shape (n, p), optional
        Features of all nodes, matched by id where the graph has ids.
    alpha : float in [0, 1), default 0.5
        Smoothing level, :math:`\alpha = \omega / (1 + \omega)`; 0 leaves features as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from graphmrf import Graph, GraphSmoother
    >>> path = Graph.from_edges([0, 1], [1, 2])
    >>> GraphSmoother(path, features=[[0.0], [1.0], [0.0]], alpha=0.5).fit_transform([1]).round(3)
    array([[0.621]])
    """

    graph: Any
    _: KW_ONLY
    features: Any = None
    alpha: float = 0.5

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002  (every transformer is fitted alike)
        """Smooth the features of all nodes; `X`: nodes or, without `features`, the features of all nodes."""
        graph = check_graph(self.graph)
        level = given_level(self.alpha, None)
        if level is None:
            raise InvalidInputError(
                f"alpha must be a number in [0, 1), got {self.alpha!r}; search it with GridSearchCV"
            )
        table = read_features(graph.align(X if self.features is None else self.features, "X"), None, "GraphSmoother")
        if len(table.X) != graph.n_nodes:
            raise InvalidInputError(f"X must have one row for each of the {graph.n_nodes} nodes, got {len(table.X)}")
        self._mean, self._names = table.X.mean(axis=0), table.columns.names
        self._smoothed = self._smooth(graph, table.X)
        self.n_features_in_ = table.columns.count if self.features is None else 1
        return self

    def transform(self, X: Any) -> Floats:
        """Return the smoothed features of some nodes; without `features`, those of all, of whatever table X is."""
        check_fitted(self, "_smoothed")
        graph = check_graph(self.graph)
        if self.features is not None:
            return np.asarray(self._smoothed[node_positions(graph, X)])
        return self._smooth(graph, read_features(graph.align(X, "X"), graph.n_nodes, "GraphSmoother").X)

    def _smooth(self, graph: Graph, X: Floats) -> Floats:
        return np.asarray(smooth_features(graph, X - self._mean, self.alpha) + self._mean)

    def frequency_response(self, eigenvalues: ArrayLike) -> Floats:
        r"""Return :math:`1 / (1 + \omega \lambda)`, the factor by which smoothing damps each eigenvector of `N`."""
        return np.asarray(1.0 / (1.0 + as_omega(self.alpha) * np.asarray(eigenvalues, dtype=np.float64)))

    def get_feature_names_out(self, input_features: Any = None) -> Any:  # noqa: ARG002  (scikit-learn's signature)
        """Return the names of the features, or ``x0, x1, ...``."""
        check_fitted(self, "_smoothed")
        names = [f"x{j}" for j in range(self._smoothed.shape[1])] if self._names is None else self._names
        return np.asarray([str(name) for name in names], dtype=object)

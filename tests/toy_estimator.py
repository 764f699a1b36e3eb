"""A new estimator in a few lines: this file and the row at its end is all that graphmrf needs."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from graphmrf import Graph
from graphmrf.estimators.inputs import as_given, check_fitted, check_graph, read_outcome
from graphmrf.estimators.methods import Method


class Median(BaseEstimator):
    """The median of the labels, at every node."""

    n_coefficients_ = 1  # this and `fixed` are for the propagation of its residuals

    def fit(self, graph: Graph, X: Any, y: Any) -> Self:  # noqa: ARG002  (every estimator is fitted alike)
        outcome = read_outcome(y, check_graph(graph).n_nodes)
        labels = outcome.y[outcome.known]
        self.median_, self.scale_ = float(np.median(labels)), float(labels.std())
        self._n, self._single = graph.n_nodes, outcome.single
        return self

    def predict(self, graph: Graph | None = None, X: Any = None, *, return_std: bool = False) -> Any:  # noqa: ARG002
        check_fitted(self, "median_")
        n = self._n if graph is None else graph.n_nodes
        mean, std = (as_given(np.full(n, value), single=self._single) for value in (self.median_, self.scale_))
        return (mean, std) if return_std else mean

    def fixed(self) -> "Median":
        return Median()


TOY = Method("toy", Median, "Median", "no information", needs_features=False)

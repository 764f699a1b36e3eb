"""A new estimator in a few lines: this file and the row at its end is all that graphmrf needs."""

from typing import Any, Self

import numpy as np
import pandas as pd
from scipy.stats import norm
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
        self._n, self._single, self._outcome = graph.n_nodes, outcome.single, outcome
        return self

    def predict(self, graph: Graph | None = None, X: Any = None, *, return_std: bool = False) -> Any:  # noqa: ARG002
        check_fitted(self, "median_")
        n = self._n if graph is None else graph.n_nodes
        mean, std = (as_given(np.full(n, value), single=self._single) for value in (self.median_, self.scale_))
        return (mean, std) if return_std else mean

    def fixed(self) -> "Median":
        return Median()

    def predict_total(self, groups: Any, *, level: float = 0.9) -> pd.DataFrame:
        """Return sums over groups: this and what follows are for the command line and the report."""
        nodes = pd.Series(np.ones(self._n)).groupby(np.asarray(groups)).sum()
        total, half = nodes * self.median_, norm.ppf(0.5 + level / 2) * self.scale_ * nodes
        bars = {"std": self.scale_ * nodes, "lower": total - half, "upper": total + half}
        return pd.DataFrame({"prediction": total, **bars, "n_nodes": nodes.astype(int), "n_observed": 0})

    def expected_r2(self) -> float:
        return 0.0

    def suggest(self, k: int = 1) -> pd.DataFrame:
        return pd.DataFrame({"node": np.arange(k), "std": self.scale_, "expected_r2": 0.0})

    def expected_learning_curve(self) -> pd.DataFrame:
        return pd.DataFrame(
            {"n_labels": [16, 32], "expected_r2": [0.0, 0.1], "lower": [-0.1, 0.0], "upper": [0.1, 0.2]}
        )

    @property
    def loo_(self) -> pd.DataFrame:
        """The median of the other labels, at every label."""
        nodes = np.flatnonzero(self._outcome.known)
        labels = self._outcome.y[nodes]
        others = [np.median(np.delete(labels, k)) for k in range(labels.size)]
        return pd.DataFrame({"node": nodes, "label": labels, "prediction": others, "std": self.scale_})

    def partial_dependence(self, feature: Any, values: Any) -> Any:  # noqa: ARG002
        return np.full(np.shape(values), self.median_)


TOY = Method("toy", Median, "Median", "no information", needs_features=False)

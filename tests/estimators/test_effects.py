"""Coefficients of the general field are per unit of what the documentation says they belong to."""

from typing import Any

import numpy as np
import pytest

from graphmrf import Graph, GraphRegressor
from graphmrf.field.exact import ExactPosterior

N = 60


@pytest.fixture(scope="module")
def fitted() -> tuple[Graph, Any, GraphRegressor]:
    rng = np.random.default_rng(5)
    u = rng.integers(0, N, 150)
    graph = Graph.from_edges(np.r_[np.arange(N), u], np.r_[(np.arange(N) + 1) % N, rng.permutation(u)], n_nodes=N)
    X = rng.standard_normal((N, 2)) * [1.0, 50.0]
    smooth = np.linalg.inv(np.eye(N) + 4.0 * graph.N.toarray())
    y = 7 + smooth @ (X @ [3.0, 0.1]) + 0.3 * X[:, 0] + 0.05 * rng.standard_normal(N)
    y[::5] = np.nan
    return graph, X, GraphRegressor().fit(graph, X, y)


@pytest.mark.parametrize(
    ("column", "component"), [("own", "own"), ("neighbours", "neighbours"), ("smoothed", "smoothed")]
)
def test_effects_of_features_are_their_coefficients(column: str, component: str, fitted: Any) -> None:
    graph, X, model = fitted
    posterior = model._field.posterior
    assert isinstance(posterior, ExactPosterior)
    h, N_ = posterior.h, graph.N.toarray()
    values, vectors = np.linalg.eigh(N_)
    operators = {
        "own": np.eye(N),
        "neighbours": np.eye(N) - N_,
        "smoothed": vectors @ np.diag((1 + h.omega * values) ** -h.nu) @ vectors.T,
    }
    block = posterior.covariance.across(h, np.arange(N)).get(component, np.zeros((N, posterior.z.size)))
    expected = model.transform_.unit * block @ posterior.dual
    actual = operators[column] @ (X - X.mean(axis=0)) @ model.coefficients_[column].to_numpy()
    np.testing.assert_allclose(actual - actual.mean(), expected - expected.mean(), atol=1e-6)

"""Coefficients of the general field are per unit of what the documentation says they belong to."""

from typing import Any

import numpy as np
import pytest

from cases import random_case
from graphmrf import Graph, GraphRegressor
from graphmrf._typing import Floats
from graphmrf.field.averaged import AveragedPosterior
from graphmrf.field.components.kernels import squared_exponential
from graphmrf.field.exact import ExactPosterior

pytestmark = pytest.mark.usefixtures("few_draws")

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
    posterior = model._field.posterior.base
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
    actual = operators[column] @ (X - X.mean(axis=0)) @ (model.transform_.unit * posterior.coefficients[column][0])
    np.testing.assert_allclose(actual - actual.mean(), expected - expected.mean(), atol=1e-6)


def test_the_effect_of_a_unit_is_the_mean_slope_of_what_is_predicted() -> None:
    """Against finite differences of the expected outcome, one node's feature being moved at a time."""
    case = random_case(8, n=40, p=2, labelled=30)
    y = np.where(np.isnan(case.y), np.nan, np.sin(2 * case.X[:, 0]) + case.X[:, 0] ** 2 + case.y)
    averaged = GraphRegressor().fit(case.graph, case.X, y)._field.posterior
    assert isinstance(averaged, AveragedPosterior)
    posterior = averaged.base
    field, step = posterior.covariance, 1e-4
    p, rows = field.design.p, field.rows
    h, dual = posterior.h, posterior.dual

    def functions(Z: Floats) -> Floats:
        k = squared_exponential(Z / h["lengths"], field.design.Z[rows] / h["lengths"])
        near = squared_exponential(Z / h["local_length"], field.design.Z[rows] / h["local_length"])
        R = field.correlations.across(h["local_omega"], h["local_nu"], rows)
        return np.asarray((h["nonlinear"] * k + h["local"] * near * R) @ dual)

    slopes = np.empty(p)
    for j in range(p):
        moved = np.zeros(2 * p)
        moved[j] = step
        difference = functions(field.design.Z[rows] + moved) - functions(field.design.Z[rows] - moved)
        slopes[j] = np.mean(difference) / (2 * step) / field.design.scales[0][j]
    np.testing.assert_allclose(posterior._slopes(), slopes, atol=1e-6)
    S, omega, nu = case.graph.S.toarray(), h["omega"], h["nu"]
    values, vectors = np.linalg.eigh(case.graph.N.toarray())
    T = vectors @ np.diag((1 + omega * values) ** -nu) @ vectors.T
    coefficients = posterior.coefficients
    expected = coefficients["own"][0] + np.diag(S @ S).mean() * coefficients["second neighbours"][0]
    expected = expected + np.diag(T).mean() * coefficients["smoothed"][0] + slopes
    np.testing.assert_allclose(posterior.own_effects(np.diag(S @ S).mean()), expected, atol=1e-6)


def test_an_effect_through_smoothed_or_nonlinear_features_is_told() -> None:
    rng = np.random.default_rng(0)
    graph = Graph.from_edges(np.arange(200), (np.arange(200) + 1) % 200)
    X = rng.normal(size=(200, 1))
    y = X[:, 0] + 0.5 * X[:, 0] ** 2 + 0.1 * rng.normal(size=200)
    y[::3] = np.nan
    curved = GraphRegressor().fit(graph, X, y)
    assert np.asarray(curved.coef_)[0] == pytest.approx(1.0, abs=0.15)
    T = np.linalg.inv(np.eye(200) + 4 * graph.N.toarray())
    smoothed = 3.0 * (T @ X)[:, 0] + 0.05 * np.linalg.cholesky(T) @ rng.normal(size=200)
    smoothed[::3] = np.nan
    assert np.asarray(GraphRegressor().fit(graph, X, smoothed).coef_)[0] == pytest.approx(3 * T[0, 0], rel=0.15)

"""Precisions of the graph field, factored and iterated, against dense algebra."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from cases import random_case
from families import grid
from fields import covariance_gap
from graphmrf import Graph
from graphmrf._typing import Floats
from graphmrf.field.precision import FactoredPrecision, GraphPrecisions, IteratedPrecision
from graphmrf.linalg.precision import NodePrecision

seeds = st.integers(0, 10**6)


def dense(W: Floats, kappa2: float, order: int, d: Floats) -> Floats:
    base = oracle.laplacian(W) + kappa2 * np.eye(len(W))
    return np.asarray(np.linalg.matrix_power(base, order) + np.diag(d))


@given(seeds, st.sampled_from([1, 2, 3]), st.floats(-3, 1))
@settings(max_examples=15)
def test_factors_are_those_of_dense_algebra(seed: int, order: int, log_range: float) -> None:
    case, rng = random_case(seed), np.random.default_rng(seed)
    d, kappa2 = rng.uniform(0.0, 2.0, 14), 10.0**log_range
    for held, given_d in ((np.zeros(14), None), (d, d)):
        Q = dense(case.W, kappa2, order, held)
        found = GraphPrecisions(case.graph, order).at(kappa2, given_d)
        assert isinstance(found, FactoredPrecision)
        assert found.log_determinant == pytest.approx(np.linalg.slogdet(Q)[1], rel=1e-9, abs=1e-9)
        np.testing.assert_allclose(found.inverse_diagonal, np.diag(np.linalg.inv(Q)), rtol=1e-6)
        B = rng.standard_normal((14, 3))
        np.testing.assert_allclose(Q @ found.solve(B), B, atol=1e-6)


@pytest.mark.parametrize("order", [1, 2])
def test_draws_have_the_inverse_as_their_covariance(order: int) -> None:
    case = random_case(3)
    found = GraphPrecisions(case.graph, order).at(0.4, np.ones(14))
    draws = found.draw(20_000, np.random.default_rng(0)).T
    assert covariance_gap(draws, np.linalg.inv(dense(case.W, 0.4, order, np.ones(14)))) < 5


@pytest.mark.parametrize("kappa2", [0.05, 0.5])
def test_iteration_agrees_with_the_factor(kappa2: float) -> None:
    graph, rng = grid(45), np.random.default_rng(0)
    d = np.where(rng.random(2025) < 0.3, 2.0, 0.0)
    factored = GraphPrecisions(graph).at(kappa2, d)
    iterated = IteratedPrecision(NodePrecision(graph, 1.0 / kappa2, d / kappa2), kappa2)
    B = rng.standard_normal((2025, 2))
    np.testing.assert_allclose(iterated.solve(B), factored.solve(B), atol=1e-4)
    assert iterated.log_determinant == pytest.approx(factored.log_determinant, abs=0.01 * 2025)
    ratio = iterated.inverse_diagonal / factored.inverse_diagonal
    assert np.mean(ratio) == pytest.approx(1.0, abs=0.03)
    assert np.std(ratio) < 0.2
    draws = iterated.draw(200, rng)
    assert np.mean(draws**2 / factored.inverse_diagonal[:, None]) == pytest.approx(1.0, abs=0.02)


def test_dense_factors_are_not_tried() -> None:
    graph = Graph.from_edges(*np.random.default_rng(0).integers(0, 7000, (2, 70_000)), n_nodes=7000)
    assert GraphPrecisions(graph).ordering is None
    assert GraphPrecisions(graph, 2).ordering is None
    assert isinstance(GraphPrecisions(graph).at(1.0), IteratedPrecision)

"""The Matern family on a graph, against dense algebra."""

import numpy as np
import pytest
from scipy.linalg import fractional_matrix_power

from cases import random_case
from graphmrf._typing import Floats
from graphmrf.field.matern import Correlations, eigen, single_eigen
from graphmrf.graph import Graph
from graphmrf.linalg.dense import Triangle


def dense_correlation(graph: Graph, omega: float, nu: float) -> Floats:
    K = fractional_matrix_power(np.eye(graph.n_nodes) + omega * graph.N.toarray(), -nu).real
    scale = np.sqrt(np.diag(K))
    return np.asarray(K / np.outer(scale, scale))


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
@pytest.mark.parametrize(("omega", "nu"), [(0.05, 0.25), (3.0, 1.0), (700.0, 2.7), (3e4, 5.0)])
def test_correlations_are_those_of_the_dense_power(seed: int, omega: float, nu: float) -> None:
    graph, rows = random_case(seed).graph, np.array([0, 3, 4, 9, 13])
    expected = dense_correlation(graph, omega, nu)
    family = Correlations(eigen(graph), rows)
    np.testing.assert_allclose(
        family.triangle.square(family.among(omega, nu).R), expected[np.ix_(rows, rows)], atol=1e-6
    )
    np.testing.assert_allclose(family.across(omega, nu, np.arange(14)), expected[:, rows], atol=1e-6)


def test_kernels_without_unit_variance_are_those_of_the_dense_power_over_its_mean_variance() -> None:
    graph, rows = random_case(2).graph, np.array([0, 3, 4, 9, 13])
    K = fractional_matrix_power(np.eye(14) + 5.0 * graph.N.toarray(), -1.5).real
    K *= 14 / np.trace(K)
    family = Correlations(eigen(graph), rows)
    found = family.triangle.square(family.among(5.0, 1.5, unit_variance=False).R)
    np.testing.assert_allclose(found, K[np.ix_(rows, rows)], atol=1e-6)
    np.testing.assert_allclose(family.across(5.0, 1.5, np.arange(14), unit_variance=False), K[:, rows], atol=1e-9)
    np.testing.assert_allclose(family.variances(5.0, 1.5, np.arange(14), unit_variance=False), np.diag(K))


@pytest.mark.parametrize("unit_variance", [False, True])
def test_derivatives_of_correlations_are_finite_differences(unit_variance: bool) -> None:
    graph = random_case(1).graph
    family = Correlations(eigen(graph), np.arange(1, 8))
    triangle, M = Triangle(7), np.random.default_rng(3).normal(size=(7, 7))
    G = triangle.pack(M + M.T)

    def value(log_omega: float, log_nu: float) -> float:
        return triangle.dot(
            G, family.among(float(np.exp(log_omega)), float(np.exp(log_nu)), unit_variance=unit_variance).R
        )

    step = 1e-5
    expected = [
        (value(1.0 + step, 0.3) - value(1.0 - step, 0.3)) / (2 * step),
        (value(1.0, 0.3 + step) - value(1.0, 0.3 - step)) / (2 * step),
    ]
    found = family.among(float(np.exp(1.0)), float(np.exp(0.3)), unit_variance=unit_variance).vjp(G)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_an_isolated_node_correlates_with_nobody() -> None:
    graph = Graph.from_edges([0, 1], [1, 2], n_nodes=4)
    R = Correlations(eigen(graph), np.arange(4)).across(50.0, 1.0, np.arange(4))
    np.testing.assert_allclose(R[3], [0.0, 0.0, 0.0, 1.0], atol=1e-12)


def test_eigenvectors_are_found_once_per_graph() -> None:
    graph = random_case(2).graph
    assert eigen(graph) is eigen(graph)


def test_eigenvectors_in_single_precision_make_nearly_the_same_kernels() -> None:
    case = random_case(3, n=200, p=1)
    single, double = single_eigen(case.graph), eigen(case.graph)
    for omega, nu in ((0.5, 0.5), (20.0, 1.0), (1e4, 3.0)):
        found, expected = ((e.vectors * e.matern(omega, nu)) @ e.vectors.T for e in (single, double))
        np.testing.assert_allclose(found, expected, atol=1e-5 * expected.max())
    np.testing.assert_allclose(single.values, double.values, atol=1e-10)

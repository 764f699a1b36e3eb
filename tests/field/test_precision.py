"""Precisions of the graph field, factored and iterated, against dense algebra."""

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import latent
import oracle
from cases import random_case
from families import FAMILIES, grid
from fields import covariance_gap
from graphmrf import Graph
from graphmrf._typing import Floats
from graphmrf.field.precision import (
    FactoredPrecision,
    FieldPrecision,
    GraphPrecisions,
    IteratedPrecision,
    JointPrecision,
    Rational,
    SpectralPrecision,
    rational,
)
from graphmrf.graph import Laplacian
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
        found = GraphPrecisions(case.graph, order).at(kappa2, order, d=given_d)
        assert isinstance(found, FactoredPrecision)
        assert found.log_determinant == pytest.approx(np.linalg.slogdet(Q)[1], rel=1e-9, abs=1e-9)
        np.testing.assert_allclose(found.inverse_diagonal, np.diag(np.linalg.inv(Q)), rtol=1e-6)
        B = rng.standard_normal((14, 3))
        np.testing.assert_allclose(Q @ found.solve(B), B, atol=1e-6)


@pytest.mark.parametrize("order", [1.0, 1.6, 2.0])
def test_draws_have_the_inverse_as_their_covariance(order: float) -> None:
    found = GraphPrecisions.of(random_case(3).graph).at(0.4, order, d=np.ones(14))
    draws = found.draw(20_000, np.random.default_rng(0)).T
    assert covariance_gap(draws, found.solve(np.eye(14))) < 5


def power(W: Floats, kappa2: float, order: float) -> Floats:
    values, U = np.linalg.eigh(oracle.laplacian(W))
    return np.asarray((U * (kappa2 + np.maximum(values, 0.0)) ** -order) @ U.T)


@pytest.mark.parametrize("degree", [2, 3])
@pytest.mark.parametrize("graph", [grid(12), FAMILIES["tree"], FAMILIES["expander"], FAMILIES["path"]], ids=repr)
def test_fractional_orders_have_the_correlations_of_the_eigenvectors(graph: Graph, degree: int) -> None:
    precisions, eye, worst = GraphPrecisions(graph, degree), np.eye(graph.n_nodes), 0.0
    for kappa2 in (0.01, 0.1, 1.0):
        for order in (0.6, 1.3, 1.7, 2.2, 2.7)[: 2 * degree - 1]:
            exact = latent.correlations(graph.adjacency.toarray(), kappa2, order)
            found = precisions.at(kappa2, order)
            K = found.solve(eye)
            np.testing.assert_allclose(found.inverse_diagonal, np.diag(K), rtol=1e-6)
            unit = 1.0 / np.sqrt(np.diag(K))
            worst = max(worst, float(np.abs(unit[:, None] * K * unit - exact).max()))
            d = np.where(np.arange(graph.n_nodes) % 3 == 0, 2.0, 0.0)
            held = precisions.at(kappa2, order, d=d)
            np.testing.assert_allclose(held.solve(eye), np.linalg.inv(np.linalg.inv(K) + np.diag(d)), atol=1e-6)
            np.testing.assert_allclose(held.inverse_diagonal, np.diag(held.solve(eye)), rtol=1e-6)
            log_ratio = np.linalg.slogdet(eye + K * d)[1]
            assert held.log_determinant - found.log_determinant == pytest.approx(log_ratio, rel=1e-6)
    assert worst < (0.06 if degree == 2 else 0.04)


@given(st.floats(-4, 1), st.floats(0.5, 3.0))
def test_the_rational_function_is_nearly_the_power(log_range: float, order: float) -> None:
    kappa2, values = 10.0**log_range, np.linspace(0.0, 2.0, 500)
    p, q = rational(kappa2, order, 3)
    ratio = np.polyval(p[::-1], values) ** 2 / np.polyval(q[::-1], values) * (kappa2 + values) ** order
    assert np.abs(np.log(ratio)).max() < 0.1 + 0.1 * max(0.0, -log_range)


@given(seeds, st.sampled_from([1, 2, 3]), st.floats(-4, 0), st.floats(-3, 1))
@settings(max_examples=10)
def test_two_ranges_are_those_of_dense_algebra(seed: int, order: int, log_range: float, log_near: float) -> None:
    case, kappa2, near = random_case(seed), 10.0**log_range, 10.0**log_near
    found = GraphPrecisions(case.graph, 3).at(kappa2, order, near)
    N, eye = oracle.laplacian(case.W), np.eye(len(case.W))
    Q = (N + kappa2 * eye) @ np.linalg.matrix_power(N + near * eye, order - 1)
    np.testing.assert_allclose(found.inverse_diagonal, np.diag(np.linalg.inv(Q)), rtol=1e-6)
    np.testing.assert_allclose(found.solve(eye), np.linalg.inv(Q), rtol=1e-6, atol=1e-6 / kappa2)


@given(st.floats(-4, -1), st.floats(-1, 1), st.floats(0.5, 3.0))
def test_the_rational_function_is_nearly_that_of_two_ranges(log_range: float, log_near: float, order: float) -> None:
    kappa2, near, values = 10.0**log_range, 10.0**log_near, np.geomspace(1e-5, 2.0, 500)
    p, q = rational(kappa2, order, 3, near)
    ratio = np.polyval(p[::-1], values) ** 2 / np.polyval(q[::-1], values)
    ratio *= (kappa2 + values) * (near + values) ** (order - 1.0)
    assert np.abs(np.log(ratio)).max() < 0.1


@pytest.mark.parametrize("kappa2", [0.05, 0.5])
def test_iteration_agrees_with_the_factor(kappa2: float) -> None:
    graph, rng = grid(45), np.random.default_rng(0)
    d = np.where(rng.random(2025) < 0.3, 2.0, 0.0)
    factored = GraphPrecisions(graph).at(kappa2, 1.0, d=d)
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
    assert GraphPrecisions.of(graph).degree == 1
    assert isinstance(GraphPrecisions(graph).at(1.0), IteratedPrecision)


def test_a_graph_is_released_with_its_precisions() -> None:
    graph = grid(5)
    assert GraphPrecisions.of(graph) is GraphPrecisions.of(graph)
    released = weakref.ref(graph)
    del graph
    gc.collect()
    assert released() is None


SPACE = Graph(random_case(5).W * 1.7)
TIMES = [2001, 2002, 2004, 2005, 2006]


@pytest.mark.parametrize("laplacian", ["normalised", "combinatorial"])
@pytest.mark.parametrize("ring", [False, True])
@pytest.mark.parametrize("order", [1.0, 1.6, 2.0])
def test_that_of_a_panel_is_that_of_the_same_graph_without_its_times(
    laplacian: Laplacian, ring: bool, order: float
) -> None:
    assert SPACE.weights is not None
    panel = SPACE.with_laplacian(laplacian).over_time(TIMES, weight=0.7, ring=ring)
    plain = Graph(panel.adjacency).with_laplacian(laplacian)
    for degree in (2, 3):
        by_times, by_factor = (GraphPrecisions(graph, degree).at(0.05, order, 0.3) for graph in (panel, plain))
        assert isinstance(by_times, SpectralPrecision)
        assert isinstance(by_factor, FactoredPrecision)
        assert by_times.log_determinant == pytest.approx(by_factor.log_determinant, rel=1e-8)
        np.testing.assert_allclose(by_times.inverse_diagonal, by_factor.inverse_diagonal, rtol=1e-8)
        B = np.random.default_rng(0).standard_normal((panel.n_nodes, 3))
        expected = by_factor.solve(B)
        np.testing.assert_allclose(by_times.solve(B), expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())
        nodes = np.array([3, 0, 11])
        np.testing.assert_allclose(by_times.at(by_times.half(B), nodes), expected[nodes], rtol=1e-7)
        moved = [GraphPrecisions(graph, degree).at(0.0501, order, 0.3) for graph in (panel, plain)]
        assert by_times.change(moved[0]) == pytest.approx(by_factor.change(moved[1]), rel=1e-6)
        assert isinstance(
            GraphPrecisions(panel, degree).at(0.05, order, 0.3, np.ones(panel.n_nodes)), FactoredPrecision
        )


def test_draws_of_a_panel_have_the_inverse_as_their_covariance() -> None:
    found = GraphPrecisions(SPACE.over_time([1, 2, 3]), 2).at(0.4, 1.6)
    assert isinstance(found, SpectralPrecision)
    draws = found.draw(20_000, np.random.default_rng(0)).T
    assert covariance_gap(draws, found.solve(np.eye(draws.shape[1]))) < 5


def test_panels_with_isolated_nodes_have_a_factor() -> None:
    panel = Graph.from_edges([0], [1], n_nodes=3).over_time([1, 2, 3])
    assert isinstance(GraphPrecisions(panel, 2).at(0.4, 1.6), FactoredPrecision)


@given(seeds, st.floats(-3, 0), st.floats(-1, 1), st.floats(0.6, 2.9))
@settings(max_examples=15)
def test_changes_of_log_determinants_are_derivatives(seed: int, far: float, near: float, order: float) -> None:
    case, step = random_case(seed), 1e-4
    precisions, shape = GraphPrecisions(case.graph, 3), np.array([10.0**far, order, 10.0**near])
    d = np.random.default_rng(seed).uniform(0.0, 2.0, 14)

    def pair(shape: Floats) -> tuple[FieldPrecision, FieldPrecision]:
        kappa2, order, near = map(float, shape)
        return precisions.at(kappa2, order, near, d), precisions.at(kappa2, order, near)

    def ratio(shape: Floats) -> float:
        held, prior = pair(shape)
        return held.log_determinant - prior.log_determinant

    for k in range(3):
        up, down = (shape * np.exp(sign * step * (np.arange(3) == k)) for sign in (1, -1))
        found = pair(shape)[0].change(pair(up)[0]) - pair(shape)[1].change(pair(up)[1])
        assert found / step == pytest.approx((ratio(up) - ratio(down)) / (2 * step), abs=0.02)


def test_across_whole_orders_there_is_no_first_order_change() -> None:
    assert Rational(0.1, 1.0, 3, 0.1).change(Rational(0.1, 1.001, 3, 0.1)) is None
    change = Rational(0.1, 1.0, 3, 0.1).change(Rational(0.1001, 1.0, 3, 0.1))
    assert change is not None
    np.testing.assert_allclose(change[1][:2], [1e-4, 0.0], atol=1e-6)


def test_coefficients_of_many_labels_are_as_accurate_as_the_field() -> None:
    n, rng = 1500, np.random.default_rng(0)
    graph = Graph.from_edges(rng.integers(0, n, 6 * n), rng.integers(0, n, 6 * n), n_nodes=n)
    F = np.column_stack([np.full(n, 10.0), 5.0 * (rng.random((n, 8)) < 0.4)])
    R = 1.5 * sparse.eye_array(n, format="csr")
    Y = 2.0 + F @ rng.standard_normal((9, 1)) / 5.0 + rng.standard_normal((n, 1))
    Q = 0.1 * np.eye(n) + graph.N.toarray()
    expected = np.linalg.solve(np.eye(n) + 2.25 * np.linalg.inv(Q) + F @ F.T, Y)
    joint = JointPrecision(graph, 0.1, R, F)
    found, field = joint.split(Y)
    np.testing.assert_allclose(F.T @ found, F.T @ expected, atol=1e-4)
    np.testing.assert_allclose(field, 1.5 * np.linalg.solve(Q, expected), atol=1e-3)
    np.testing.assert_allclose(joint.energy(found, field), Y.T @ expected, rtol=1e-6)

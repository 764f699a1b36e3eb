"""The Matern family on a graph, against dense algebra."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import fractional_matrix_power

from cases import random_case
from families import expander, pieces
from graphmrf._typing import Floats
from graphmrf.field import correlations, matern
from graphmrf.field.correlations import Correlations, Smoothings
from graphmrf.field.matern import (
    Eigen,
    dense_eigen,
    eigen,
    probed_series,
    short_series,
    single_eigen,
)
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


def in_pieces() -> Graph:
    """A grid of 16 x 10 nodes with a weighted border, a ring of 30, and 3 isolated nodes."""
    cell, ring = np.arange(160).reshape(16, 10), np.arange(160, 190)
    u = np.concatenate([cell[:-1].ravel(), cell[:, :-1].ravel(), ring])
    v = np.concatenate([cell[1:].ravel(), cell[:, 1:].ravel(), np.roll(ring, 1)])
    return Graph.from_edges(u, v, np.where(u < 10, 3.0, 1.0), n_nodes=193)


@pytest.fixture
def series(monkeypatch: pytest.MonkeyPatch) -> Eigen:
    monkeypatch.setattr(matern, "_LOWEST", (5, 20))
    monkeypatch.setattr(matern, "_SERIES_GAIN", 1e9)
    found = short_series(in_pieces())
    assert found is not None
    assert found.low.size == 20  # the smallest 5 end before the gap
    return Eigen(found.nodes, np.empty((193, 0)), found)


@pytest.mark.parametrize(("omega", "nu"), [(0.005, 0.25), (1.0, 0.5), (20.0, 1.0), (500.0, 2.0), (3e4, 5.0)])
def test_a_series_makes_the_matrices_of_eigenvectors(series: Eigen, omega: float, nu: float) -> None:
    dense, rows, X = dense_eigen(in_pieces()), np.arange(3, 193, 2), np.random.default_rng(0).normal(size=(193, 3))
    pairs = [(Correlations(each, rows), Smoothings(each, rows, X)) for each in (series, dense)]
    for unit_variance in (True, False):
        found, expected = (family.among(omega, nu, unit_variance=unit_variance) for family, _ in pairs)
        np.testing.assert_allclose(found.R, expected.R, atol=1e-6)
        np.testing.assert_allclose(found.slopes, expected.slopes, atol=1e-5)
        nodes = np.arange(0, 193, 5)
        here, there = (family.across(omega, nu, nodes, unit_variance=unit_variance) for family, _ in pairs)
        np.testing.assert_allclose(here, there, atol=1e-6)
    for quantity, at in (("among", ()), ("slopes", ()), ("at", (np.arange(193),))):
        found, expected = (getattr(smoothings, quantity)(omega, nu, *at) for _, smoothings in pairs)
        np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(series.mean(omega, nu), dense.mean(omega, nu), rtol=1e-6)
    np.testing.assert_allclose(series.variances(omega, nu), dense.variances(omega, nu), atol=1e-6)


def test_fields_that_are_expected_together_are_as_each_alone(series: Eigen) -> None:
    rows, nodes, fields = np.arange(0, 193, 3), np.arange(0, 193, 5), [(20.0, 1.0), (3.0, 2.0)]
    together = Correlations(series, rows)
    together.expect(fields)
    for omega, nu in fields:
        alone = Correlations(series, rows)
        np.testing.assert_allclose(together.across(omega, nu, nodes), alone.across(omega, nu, nodes), atol=1e-9)
        found, expected = together.among(omega, nu), alone.among(omega, nu)
        np.testing.assert_allclose(found.R, expected.R, atol=1e-12)
        np.testing.assert_allclose(found.slopes, expected.slopes, atol=1e-12)


def test_a_series_serves_fields_of_many_hyperparameters(series: Eigen) -> None:
    rows, nodes = np.arange(0, 193, 3), np.arange(20)
    plain, spanned = Correlations(series, rows), Correlations(series, rows, spanned=True)
    for omega in (1.0, 20.0, 300.0):
        np.testing.assert_allclose(spanned.across(omega, 1.0, nodes), plain.across(omega, 1.0, nodes), atol=1e-6)


def test_a_series_that_would_be_long_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matern, "_LOWEST", (5, 20))
    assert short_series(Graph.from_edges(np.arange(299), np.arange(1, 300))) is None


@pytest.mark.parametrize(("copies", "size"), [(20, 10), (12, 20)])
def test_a_series_serves_graphs_of_equal_pieces(monkeypatch: pytest.MonkeyPatch, copies: int, size: int) -> None:
    monkeypatch.setattr(matern, "_LOWEST", (5, 20))  # fewer than there are copies of the smallest eigenvalue
    monkeypatch.setattr(matern, "_SERIES_GAIN", 1e9)
    nodes = np.arange(copies * size)
    ring = Graph.from_edges(nodes, np.where((nodes + 1) % size, nodes + 1, nodes + 1 - size))
    found = short_series(ring)
    assert found is not None
    R = [Correlations(each, nodes[::3]) for each in (Eigen(found.nodes, np.empty((nodes.size, 0)), found), eigen(ring))]
    np.testing.assert_allclose(R[0].among(100.0, 1.0).R, R[1].among(100.0, 1.0).R, atol=1e-6)


@pytest.mark.parametrize("joined", [12, 40])
def test_a_series_serves_graphs_of_many_pieces(monkeypatch: pytest.MonkeyPatch, joined: int) -> None:
    monkeypatch.setattr(matern, "_LOWEST", (5, 20))
    monkeypatch.setattr(matern, "_SERIES_GAIN", 1e9)
    u, v = np.triu_indices(joined, 1)  # all nonzero eigenvalues are beyond 1
    graph = Graph.from_edges(u, v, n_nodes=100)
    found = short_series(graph)
    assert found is not None
    assert not found.low.size
    R = [Correlations(each, np.arange(50)) for each in (Eigen(found.nodes, np.empty((100, 0)), found), eigen(graph))]
    np.testing.assert_allclose(R[0].among(20.0, 1.5).R, R[1].among(20.0, 1.5).R, atol=1e-6)


def test_matrices_of_some_nodes_are_taken_from_those_of_more() -> None:
    case, places = random_case(4, n=60, p=1), np.array([3, 17, 30, 41])
    family = Correlations(eigen(case.graph), np.arange(5, 55))
    part, alone = family.part(places), Correlations(eigen(case.graph), np.arange(5, 55)[places])
    np.testing.assert_allclose(part.basis, alone.basis, atol=1e-12)


def test_eigenvectors_in_single_precision_make_nearly_the_same_kernels() -> None:
    case = random_case(3, n=200, p=1)
    single, double = single_eigen(case.graph), eigen(case.graph)
    for omega, nu in ((0.5, 0.5), (20.0, 1.0), (1e4, 3.0)):
        found, expected = ((e.vectors * e.matern(omega, nu)) @ e.vectors.T for e in (single, double))
        np.testing.assert_allclose(found, expected, atol=1e-5 * expected.max())
    np.testing.assert_allclose(single.values, double.values, atol=1e-10)


@pytest.fixture
def probed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have all graphs count as large."""
    monkeypatch.setattr(matern, "_EXACT_DIAGONALS", 10)
    monkeypatch.setattr(matern, "_WINDOW", 8 * 193 * 16 * 3)  # sums are made of three terms at a time


@pytest.mark.usefixtures("probed")
@pytest.mark.parametrize(("omega", "nu"), [(0.005, 0.25), (20.0, 1.0), (500.0, 2.0), (3e4, 5.0)])
def test_polynomials_of_a_large_graph_are_exact_among_labels(omega: float, nu: float) -> None:
    graph, rows = in_pieces(), np.arange(3, 193, 4)
    large, dense = eigen(graph, rows), dense_eigen(graph)
    assert large.series is not None
    families = [Correlations(each, rows) for each in (large, dense)]
    for unit_variance in (True, False):
        found, expected = (family.among(omega, nu, unit_variance=unit_variance) for family in families)
        scale = 1.0 if unit_variance else large.mean(omega, nu) / dense.mean(omega, nu)
        np.testing.assert_allclose(scale * found.R, expected.R, atol=2e-6 * np.abs(expected.R).max())
    ratio = large.variances(omega, nu) / dense.variances(omega, nu)
    assert np.sqrt(np.mean(np.log(ratio) ** 2)) < 0.25
    np.testing.assert_allclose(large.mean(omega, nu), dense.mean(omega, nu), rtol=0.03)
    np.testing.assert_allclose(ratio[rows], dense.mean(omega, nu) / large.mean(omega, nu), rtol=1e-5)


@pytest.mark.usefixtures("probed")
@pytest.mark.parametrize(
    "graph",
    [
        Graph.from_edges([0, 1], [1, 2], n_nodes=12),
        Graph.from_edges(np.arange(199), np.arange(1, 200)),
        Graph.from_edges(*np.triu_indices(30, 1)),
        Graph.from_edges(*np.concatenate([np.array(np.triu_indices(60, 1)) + k for k in (0, 59, 118)], axis=1)),
        Graph.from_edges(np.zeros(40, dtype=int), np.arange(1, 41), np.geomspace(1e-3, 1e3, 40)),
    ],
    ids=["isolated", "path", "clique", "three cliques", "weighted star"],
)
def test_polynomials_serve_large_graphs_of_any_shape(graph: Graph) -> None:
    rows = np.arange(0, graph.n_nodes, 3)
    found, expected = (Correlations(each, rows).among(50.0, 1.0).R for each in (eigen(graph, rows), dense_eigen(graph)))
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.usefixtures("probed")
@pytest.mark.parametrize(("copies", "size"), [(30, 8), (7, 40), (2, 100)])
def test_polynomials_serve_large_graphs_of_equal_pieces(
    monkeypatch: pytest.MonkeyPatch, copies: int, size: int
) -> None:
    monkeypatch.setattr(matern, "_BY_FACTOR", 20)
    monkeypatch.setattr(matern, "_SMALL_GAP", 1.0)
    nodes = np.arange(copies * size)
    joined = nodes[(nodes + 1) % size > 0]
    paths, rows = Graph.from_edges(joined, joined + 1, n_nodes=nodes.size), nodes[::3]
    found, expected = (
        Correlations(each, rows).among(100.0, 1.0).R for each in (eigen(paths, rows), dense_eigen(paths))
    )
    np.testing.assert_allclose(found, expected, atol=1e-6)


@settings(max_examples=15)
@given(seed=st.integers(0, 1000), omega=st.floats(0.1, 1000.0), nu=st.floats(0.3, 4.0))
def test_any_large_graph_has_the_correlations_of_dense_algebra(seed: int, omega: float, nu: float) -> None:
    case = random_case(seed, n=40, p=1)
    rows = np.flatnonzero(case.known)
    series = replace(probed_series(case.graph), exact=rows)
    large = Eigen(series.nodes, np.empty((40, 0)), series)
    found, expected = (Correlations(each, rows).among(omega, nu).R for each in (large, dense_eigen(case.graph)))
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert (large.variances(omega, nu) > 0).all()


@pytest.mark.usefixtures("probed")
def test_blocks_of_the_basis_are_kept_for_all_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(correlations, "_MANY", 50)
    rows = np.arange(1, 193, 9)
    plain = Correlations(eigen(in_pieces(), rows), rows)
    rest = np.setdiff1d(np.arange(193), rows)
    expected = plain.across(20.0, 1.0, rest)
    np.testing.assert_allclose(plain.many().across(20.0, 1.0, rest), expected, atol=1e-5)
    np.testing.assert_allclose(plain.many().across(20.0, 1.0, rest[:30]), expected[:30], atol=1e-6)
    monkeypatch.setattr(correlations, "_TILE", 80 * 4 * plain.eigen.basis.shape[1] * (rows.size + 64))  # of 80 nodes
    family, parts = plain.many(), [rest[:60], rest[60:65], rest[65:120], rest[:60]]
    found = np.vstack([family.across(20.0, 1.0, part) for part in parts])
    np.testing.assert_allclose(found, np.vstack([expected[:120], expected[:60]]), atol=1e-5)


def test_blocks_with_labelled_nodes_are_taken_from_those_among_them() -> None:
    case = random_case(4, n=60, p=1)
    family, fresh = (Correlations(eigen(case.graph), np.arange(5, 55)) for _ in range(2))
    part, places = family.part(np.arange(0, 50, 2)), np.arange(5, 55)[1::2]
    expected = Correlations(eigen(case.graph), part.rows).across(20.0, 1.5, places)
    assert family.basis.size
    np.testing.assert_allclose(part.across(20.0, 1.5, places), expected, atol=1e-7)
    np.testing.assert_allclose(family.across(3.0, 1.0, places), fresh.across(3.0, 1.0, places), atol=1e-7)


def test_places_are_known_once_all_nodes_are_among_the_labelled_ones() -> None:
    family = Correlations(eigen(random_case(4, n=60, p=1).graph), np.arange(5, 55, 2))
    assert family.places(np.array([5])) is None  # before the matrices are made
    assert family.basis.size
    for nodes, expected in ((family.rows[[3, 9]], [3, 9]), (family.rows, range(25)), ([4], None), ([], None)):
        found = family.places(np.array(nodes, dtype=np.int64))
        assert found is None if expected is None else found is not None and found.tolist() == list(expected)


def linked_cliques(count: int) -> Graph:
    """Cliques of 12 nodes in a ring of weak links: as many eigenvalues near 0, one of them 0."""
    u, v = np.triu_indices(12, 1)
    first = 12 * np.arange(count)
    u, v = (
        np.concatenate([(first[:, None] + ends).ravel(), link])
        for ends, link in ((u, first), (v, np.roll(first, 1) + 1))
    )
    return Graph.from_edges(u, v, np.where(np.arange(u.size) < count * 66, 1.0, 0.05))


def test_eigenvectors_below_a_gap_are_all_that_there_are_or_none() -> None:
    graph = linked_cliques(5)
    members, values = matern._constants(graph)[1], np.linalg.eigvalsh(graph.N.toarray())
    assert values[4] < matern._SMALL_GAP < 0.5 < values[5]
    found = matern._below_gap(graph, members, 4)
    assert found is not None
    np.testing.assert_allclose(found[0], values[1:5], atol=1e-8)
    np.testing.assert_allclose(graph.N @ found[1], found[1] * found[0], atol=1e-5)
    assert matern._below_gap(graph, members, 3) is None  # a fourth is left
    np.testing.assert_allclose(probed_series(graph).low, values[1:5], atol=1e-8)


def test_a_sparse_factor_gives_the_smallest_eigenvalues_up_to_the_first_that_it_missed() -> None:
    graph = Graph.from_edges(np.arange(89), np.arange(1, 90))
    values = np.linalg.eigvalsh(graph.N.toarray())
    found = matern._lowest_by_factor(graph, matern._constants(graph)[1])
    assert found is not None
    np.testing.assert_allclose(found[0], values[1:31], atol=1e-8)  # a third of them, all but the constant
    np.testing.assert_allclose(graph.N @ found[1], found[1] * found[0], atol=1e-6)


def test_the_oldest_blocks_of_correlations_make_room_for_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(correlations, "_FIELDS", 2)
    family = Correlations(eigen(random_case(4, n=60, p=1).graph), np.arange(20), remembered=2)
    nodes, levels = np.arange(30, 40), (1.0, 2.0, 3.0, 1.0)
    found = [family.across(omega, 1.0, nodes) for omega in levels]
    assert [key[0] for key in family._blocks] == [3.0, 1.0]
    assert [key[0] for key in family._scales] == [3.0, 1.0]
    assert family.across(3.0, 1.0, nodes) is found[2]
    np.testing.assert_array_equal(found[0], found[3])
    forgetful = Correlations(family.eigen, family.rows)
    np.testing.assert_allclose(forgetful.across(2.0, 1.0, nodes), found[1])
    assert not forgetful._blocks


def test_variances_are_probed_on_large_graphs_with_few_labels() -> None:
    few, most = matern.PROBED_LABELS - 1, matern._EXACT_DIAGONALS
    on_device = SimpleNamespace(place=None)
    for n, labels, engine, probed in (
        (most, few, None, False),
        (most + 1, few, None, True),
        (most + 1, few + 1, None, False),
        (most + 1, few, on_device, False),
        (matern._DEVICE_DENSE + 1, few, on_device, True),
    ):
        graph: Any = SimpleNamespace(n_nodes=n, engine=engine)
        assert matern.is_probed(graph, labels) == probed


def test_without_small_eigenvalues_polynomials_are_right_from_the_first_one_on() -> None:
    graph = expander(60)
    first = np.linalg.eigvalsh(graph.N.toarray())[1]
    series = probed_series(graph)
    assert series.low.size == 0
    assert 0.75 * first < series._first < first


def test_isolated_nodes_are_left_as_they_are_by_a_series() -> None:
    graph, X = pieces(), np.random.default_rng(0).normal(size=(27, 2))
    expected = fractional_matrix_power(np.eye(27) + 7.0 * graph.N.toarray(), -1.3).real @ X
    np.testing.assert_allclose(matern.matern_smooth(graph, X, 7.0, 1.3), expected, atol=1e-7)

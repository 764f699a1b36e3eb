"""Standardised features of nodes: units, origins and orders."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from cases import random_case
from families import pieces
from graphmrf._typing import Floats
from graphmrf.field.design import damped, make_design, with_distant
from graphmrf.graph import Graph

CASE = random_case(3, n=30, p=3)
PLAIN = make_design(CASE.graph, CASE.X)


@given(st.integers(-1000, 1000))
@example(1024 - int(np.frexp(np.abs(CASE.X).max())[1]))  # to the largest numbers there are
def test_powers_of_two_as_units_change_no_bit(exponent: int) -> None:
    made = make_design(CASE.graph, np.ldexp(CASE.X, exponent))
    np.testing.assert_array_equal(made.kept, PLAIN.kept)
    np.testing.assert_array_equal(made.groups, PLAIN.groups)
    np.testing.assert_array_equal(np.ldexp(made.scales, -exponent), PLAIN.scales)


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_a_feature_that_differs_by_rounding_alone_is_constant(size: float) -> None:
    X = np.full((30, 2), size)
    X[::2, 0] *= 1.0 + 4 * np.finfo(float).eps
    X[::2, 1] *= 1.0 + 1e-12
    assert make_design(CASE.graph, X).kept.tolist() == [False, True]


@pytest.mark.parametrize("graph", [CASE.graph, pieces()], ids=["connected", "isolated nodes"])
def test_groups_are_powers_of_the_normalised_adjacency_standardised(graph: Graph) -> None:
    X, S, alone = CASE.X[: graph.n_nodes], graph.S.toarray(), graph.isolated
    made, own = make_design(graph, X), (X - X.mean(axis=0)) / X.std(axis=0)
    for k, group in enumerate(made.groups):
        raw = np.linalg.matrix_power(S, k) @ own
        regression = [np.linalg.lstsq(x[~alone, None], y[~alone])[0][0] for x, y in zip(own.T, raw.T, strict=True)]
        raw[alone] = regression * own[alone]
        np.testing.assert_allclose(group, (raw - raw.mean(axis=0)) / raw.std(axis=0), atol=1e-10)
        np.testing.assert_allclose(made.scales[k], X.std(axis=0) * raw.std(axis=0), rtol=1e-10)
    np.testing.assert_array_equal(made.Z, np.hstack([made.groups[0], made.groups[1]]))


@pytest.mark.parametrize("distant", [False, True])
def test_isolated_nodes_elsewhere_have_what_the_fitted_graph_predicts(distant: bool) -> None:
    graph = pieces()
    made = with_distant(CASE.graph, PLAIN, 0.6) if distant else make_design(CASE.graph, CASE.X, (0.9,))
    there, alone = made.elsewhere(graph, CASE.X[:27]), graph.isolated
    np.testing.assert_array_equal(there.isolated, alone)
    for k in range(4):
        here, own = made.groups[k], made.groups[0]
        expected = np.einsum("ij,ij->j", here, own) / 30 * there.groups[0][alone]  # a correlation, as of variance 1
        level = there.groups[k][alone] - expected
        np.testing.assert_allclose(level, level[:1].repeat(2, axis=0), atol=1e-9)  # but for the mean of the group


def test_without_edges_nothing_is_known_of_neighbours() -> None:
    made = make_design(Graph.from_edges([], [], n_nodes=30), CASE.X, (0.9,))
    np.testing.assert_array_equal(made.groups[1:], 0.0)
    np.testing.assert_array_equal(made.groups[0], PLAIN.groups[0])


def test_nodes_are_ordered_by_features_the_first_one_first() -> None:
    X = np.random.default_rng(0).integers(0, 3, (30, 3)).astype(float)
    ordered = make_design(CASE.graph, X).groups[0][make_design(CASE.graph, X).order]
    assert [tuple(row) for row in ordered] == sorted(tuple(row) for row in ordered)


def test_labels_are_ordered_by_distance_from_their_mean_and_then_by_features() -> None:
    rng = np.random.default_rng(0)
    X, rows = rng.integers(0, 2, (30, 3)).astype(float), rng.permutation(30)[:20]
    made, z = make_design(CASE.graph, X), rng.integers(0, 3, 20).astype(float)
    order = made.order_of_labels(rows, z)
    ordered = [(abs(z[i] - z.mean()), *made.groups[0][rows[i]]) for i in order]
    assert ordered == sorted(ordered)
    for mirrored in (-z, 5.0 - 2.0 * z):
        np.testing.assert_array_equal(made.order_of_labels(rows, mirrored), order)


def test_some_nodes_keep_their_features_and_components() -> None:
    nodes = np.array([4, 1, 7])
    some = PLAIN.at(nodes)
    np.testing.assert_array_equal(some.groups, PLAIN.groups[:, nodes])
    np.testing.assert_array_equal(some.components, PLAIN.components[nodes])
    np.testing.assert_array_equal(some.isolated, PLAIN.isolated[nodes])


@pytest.mark.parametrize("distant", [False, True])
def test_the_same_graph_elsewhere_has_the_same_features(distant: bool) -> None:
    for graph in (CASE.graph, pieces()):
        X = CASE.X[: graph.n_nodes]
        plain = make_design(graph, X)
        made = with_distant(graph, plain, 0.6) if distant else plain
        again = made.elsewhere(graph, X)
        np.testing.assert_allclose(again.groups, made.groups, atol=1e-7)


@given(arrays(np.float64, array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=12), elements=st.integers(0, 2)))
def test_features_are_ordered_as_by_a_full_lexical_sort(X: Floats) -> None:
    made = replace(PLAIN, groups=X[None])
    np.testing.assert_array_equal(made.order, np.lexsort(X.T[::-1]))


def test_rows_beyond_three_times_the_usual_norm_are_brought_back_to_it() -> None:
    image = np.array([1.0, 2.0, 2.0, 5.0, 8.0])[:, None] * np.array([1.0, -1.0])  # columns of mean 0 but for 3.6
    image -= image.mean(axis=0)
    norms = np.sqrt(np.mean(image**2, axis=1))
    found = damped(image)[:, 0]
    np.testing.assert_allclose(found * norms, np.minimum(norms, 3.0 * np.median(norms)))
    np.testing.assert_allclose(damped(np.array([[1.0], [-1.0], [2.0], [-2.0], [50.0], [-50.0]]))[4:], 6.0 / 50.0)
    np.testing.assert_array_equal(damped(np.zeros((3, 2))), np.ones((3, 1)))


@pytest.mark.parametrize("distant", [False, True])
def test_columns_that_no_label_tells_of_are_in_units_of_their_distance_from_the_labels(distant: bool) -> None:
    """A level of two nodes in 30 is far away in standard deviations; of another graph it has the same units."""
    rare, rows = np.zeros(30), np.arange(10)
    rare[[20, 25]] = 1.0
    X = np.column_stack([CASE.X, rare])
    usual, made = make_design(CASE.graph, X), make_design(CASE.graph, X, rows=rows)
    if distant:
        usual, made = with_distant(CASE.graph, usual, 0.6), with_distant(CASE.graph, made, 0.6, rows=rows)
    assert np.abs(usual.groups[0, [20, 25], -1]).min() > 3.0
    np.testing.assert_allclose(made.groups[0, 20, -1] - made.groups[0, 0, -1], 2.0)
    for before, after in zip(usual.groups, made.groups, strict=True):
        np.testing.assert_allclose(after[:, :-1], before[:, :-1], rtol=1e-12)
        distances = np.abs(after - after[rows].mean(axis=0))[:, -1]
        assert distances.max() <= np.abs(before - before[rows].mean(axis=0))[:, -1].max() * (1 + 1e-12)
    np.testing.assert_allclose(made.elsewhere(CASE.graph, X).groups, made.groups, atol=1e-12)


@pytest.mark.parametrize("jitter", [0.0, 1e-12, 1e-3])
def test_the_unit_of_an_unseen_level_does_not_jump_with_what_labels_show_of_it(jitter: float) -> None:
    rng, rows = np.random.default_rng(0), np.arange(40)
    column = np.zeros(400)
    column[rows] = jitter * rng.standard_normal(40)
    column[-1] = 1.0
    own = make_design(Graph.from_edges([0], [1], n_nodes=400), column[:, None], rows=rows).groups[0, :, 0]
    assert 1.9 < abs(own[-1] - own[0]) < 2.8


def test_a_skewed_column_keeps_its_standard_deviation() -> None:
    rng, rows = np.random.default_rng(0), np.arange(40)
    column = np.where(rng.random(400) < 0.3, np.exp(1.0 + 1.2 * rng.standard_normal(400)), 0.0)
    column[rows] = 0.0
    graph = Graph.from_edges([0], [1], n_nodes=400)
    seen, plain = (make_design(graph, column[:, None], rows=each).scales[0] for each in (rows, None))
    np.testing.assert_allclose(seen, plain, rtol=0.1)

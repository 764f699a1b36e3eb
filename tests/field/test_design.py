"""Standardised features of nodes: units, origins and orders."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from cases import random_case
from graphmrf._typing import Floats
from graphmrf.field.design import make_design, with_distant

CASE = random_case(3, n=30, p=3)
PLAIN = make_design(CASE.graph, CASE.X)


@given(st.integers(-1000, 1000))
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


def test_groups_are_powers_of_the_normalised_adjacency_standardised() -> None:
    X, S = CASE.X, CASE.graph.S.toarray()
    own = (X - X.mean(axis=0)) / X.std(axis=0)
    for k, group in enumerate(PLAIN.groups):
        raw = np.linalg.matrix_power(S, k) @ own
        np.testing.assert_allclose(group, (raw - raw.mean(axis=0)) / raw.std(axis=0), atol=1e-10)
        np.testing.assert_allclose(PLAIN.scales[k], X.std(axis=0) * raw.std(axis=0), rtol=1e-10)
    np.testing.assert_array_equal(PLAIN.Z, np.hstack([PLAIN.groups[0], PLAIN.groups[1]]))


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


@pytest.mark.parametrize("distant", [False, True])
def test_the_same_graph_elsewhere_has_the_same_features(distant: bool) -> None:
    made = with_distant(CASE.graph, PLAIN, 0.6) if distant else PLAIN
    again = made.elsewhere(CASE.graph, CASE.X)
    np.testing.assert_allclose(again.groups, made.groups, atol=1e-7)


@given(arrays(np.float64, array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=12), elements=st.integers(0, 2)))
def test_features_are_ordered_as_by_a_full_lexical_sort(X: Floats) -> None:
    made = replace(PLAIN, groups=X[None])
    np.testing.assert_array_equal(made.order, np.lexsort(X.T[::-1]))

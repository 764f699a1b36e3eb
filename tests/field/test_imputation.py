"""Missing features: imputed as dense algebra imputes them."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from cases import random_case
from graphmrf import GaussianMRF, Graph
from graphmrf._typing import Bools, Floats
from graphmrf.field import impute
from graphmrf.field.imputation import PAIRS
from graphmrf.model.fit import fit_for_imputation

seeds = st.integers(0, 10**6)


def with_holes(X: Floats, share: float = 0.2, seed: int = 0) -> Floats:
    """At least three cells of every column stay."""
    hole = np.random.default_rng(seed).random(X.shape) < share
    hole[:3] = False
    return np.where(hole, np.nan, X)


@given(seeds)
def test_cells_are_filled_as_dense_algebra_fills_them(seed: int) -> None:
    case = random_case(seed, p=3)
    X = with_holes(case.X, 0.3, seed)
    mrf = fit_for_imputation(case.graph, X, prior=3.0)
    expected, _ = oracle.field_given(case.W, mrf.H, mrf.C, X - mrf.mean)
    np.testing.assert_allclose(impute(case.graph, X).X, expected + mrf.mean, atol=1e-6, rtol=1e-6)


@given(seeds)
@settings(max_examples=20)
def test_draws_keep_what_is_known_and_come_in_pairs(seed: int) -> None:
    case = random_case(seed, p=3)
    X = with_holes(case.X, 0.3, seed)
    X[5, 0] = np.nan
    found, missing = impute(case.graph, X), np.isnan(X)
    assert found.draws.shape == (2 * PAIRS, *X.shape)
    np.testing.assert_array_equal(found.X[~missing], X[~missing])
    for draw in found.draws:
        np.testing.assert_allclose(draw[~missing], X[~missing], rtol=1e-12)
        assert (draw[missing] != found.X[missing]).all()
    np.testing.assert_allclose(found.draws.mean(axis=0), found.X, atol=1e-9)


def test_draws_have_the_dense_spread() -> None:
    case = random_case(4, n=40, p=3)
    X = with_holes(case.X, 0.3)
    mrf = fit_for_imputation(case.graph, X, prior=3.0)
    _, covariance = oracle.field_given(case.W, mrf.H, mrf.C, X - mrf.mean)
    scale = np.zeros(X.T.size)
    scale[np.isnan(X.T.ravel())] = np.sqrt(np.diag(covariance))
    found = impute(case.graph, X)
    missing = np.isnan(X)
    z = (found.draws - found.X)[:, missing] / scale.reshape(X.T.shape).T[missing]
    assert 0.7 < np.mean(z**2) < 1.4


def test_nothing_missing_changes_nothing() -> None:
    case = random_case(2)
    found = impute(case.graph, case.X)
    assert found.X is case.X
    assert not len(found.draws)


def test_a_column_that_is_the_same_wherever_it_is_known_is_so_everywhere() -> None:
    case = random_case(3)
    X = np.column_stack([case.X, np.full(14, 7.0)])
    X[[1, 4], 2] = np.nan
    found = impute(case.graph, X)
    np.testing.assert_array_equal(found.X[:, 2], 7.0)
    assert not len(found.draws)


def smooth_features(seed: int, n: int = 150) -> tuple[Graph, Floats]:
    i = np.arange(n)
    graph = Graph.from_edges(np.tile(i, 2), np.concatenate([(i + 1) % n, (i + 2) % n]))
    H = [[5.0, -4.7, 0.0], [-4.7, 5.0, 0.0], [0.0, 0.0, 1.0]]
    return graph, GaussianMRF(H, C=[[0.5, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 8.0]]).sample(
        graph, random_state=seed
    )[0]


def copies(X: Floats) -> tuple[Floats, Bools]:
    doubled = np.column_stack([X, 2.0 * X[:, 0]])
    hole = np.zeros(doubled.shape, dtype=bool)
    hole[10:30, 3] = True
    return np.where(hole, np.nan, doubled), hole


def test_a_copy_of_a_column_is_filled_from_it() -> None:
    graph, X = smooth_features(6)
    holes, hole = copies(X)
    np.testing.assert_allclose(impute(graph, holes).X[hole], 2.0 * X[10:30, 0], atol=0.4)


def test_another_graph_is_filled_by_the_field_of_the_first() -> None:
    graph, X = smooth_features(1)
    _, other = smooth_features(2)
    holes = with_holes(other, 0.3)
    mrf = fit_for_imputation(graph, X, prior=3.0)
    expected, _ = oracle.field_given(graph.adjacency.toarray(), mrf.H, mrf.C, holes - mrf.mean)
    np.testing.assert_allclose(impute(graph, holes, like=(graph, X)).X, expected + mrf.mean, atol=1e-5)


def test_draws_of_features_come_in_opposite_pairs() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    X[::3, 1] = np.nan
    found = impute(Graph.from_edges(np.arange(29), np.arange(1, 30)), X, seed=5)
    half = len(found.draws) // 2
    assert half == PAIRS
    np.testing.assert_allclose(found.draws[:half] + found.draws[half:], np.tile(2.0 * found.X, (half, 1, 1)))
    np.testing.assert_array_equal(found.draws[:, :, 0], np.tile(X[:, 0], (2 * half, 1)))


def test_draws_do_not_depend_on_the_order_of_nodes() -> None:
    graph, X = smooth_features(3)
    holes, order = with_holes(X, 0.3), np.random.default_rng(0).permutation(150)
    found = impute(Graph(graph.adjacency[order][:, order]), holes[order])
    np.testing.assert_allclose(found.draws, impute(graph, holes).draws[:, order], atol=1e-6)

"""Multigrid against sparse factors, and when it is chosen."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.linalg import spsolve

import cases
import oracle
from families import expander, grid, path, star
from graphmrf import linalg
from graphmrf._typing import Floats
from graphmrf.graph import Graph
from graphmrf.linalg import multigrid
from graphmrf.linalg.limits import Limits
from graphmrf.linalg.multigrid import Multigrid, prefers_multigrid
from graphmrf.linalg.multishift import ShiftedSystems

ALWAYS = Limits(factor_nodes=0, multigrid_nodes=0, multigrid_setup=0, multigrid_products=10, multigrid_coarsest=20)


def columns(n: int, k: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).normal(size=(n, k))


def matrix(graph: Graph, alpha: float) -> sparse.csr_array:
    return sparse.csr_array(sparse.eye_array(graph.n_nodes) - alpha * graph.S)


def levels_of(graph: Graph, alpha: float) -> Multigrid:
    found = Multigrid.of(graph.engine, matrix(graph, alpha), np.sqrt(graph.degrees + graph.isolated), coarsest=20)
    assert found is not None
    return found


@pytest.mark.parametrize("engine", ["scipy", "numba"])
@pytest.mark.parametrize("alpha", [0.9, 0.999, 0.9999])
@pytest.mark.parametrize("graph", [grid(30), path(700)], ids=["grid", "path"])
def test_it_solves_as_a_sparse_factor_does(graph: Graph, alpha: float, engine: str) -> None:
    levels, B = levels_of(graph.to(engine), alpha), columns(graph.n_nodes, 5)
    found = levels.solve(B, tolerance=1e-9)
    expected = spsolve(sparse.csc_array(levels.A), B)
    assert found.converged
    assert found.residual <= 1e-9
    assert len(levels.levels) > 1
    np.testing.assert_allclose(found.x[0], expected, atol=1e-9 / (1 - alpha) * np.linalg.norm(B, axis=0).max())


def test_iterations_hardly_depend_on_size_and_level() -> None:
    counts = [
        levels_of(grid(side), alpha).solve(columns(side * side, 2), tolerance=1e-8).iterations
        for side in (20, 80)
        for alpha in (0.99, 0.9999)
    ]
    assert max(counts) <= 20


@given(st.floats(0.01, 2.0))
def test_a_relaxation_damps_all_rough_eigenvalues_by_the_same(largest: float) -> None:
    first, second = multigrid.relaxation_steps(largest)
    x = largest * np.array([1 / 6, (1 + 1 / 6) / 2, 1.0])
    left = (1 - first * x) * (1 - second * x)
    np.testing.assert_allclose(left, left[0] * np.array([1, -1, 1]), rtol=1e-9)
    assert first < second


@pytest.mark.parametrize("alpha", [0.9, 0.999])
@pytest.mark.parametrize("graph", [grid(14), path(150)], ids=["grid", "path"])
def test_a_cycle_is_symmetric_and_leaves_less_than_half_of_any_error(graph: Graph, alpha: float) -> None:
    levels = levels_of(graph, alpha)
    M = levels.cycle(np.eye(graph.n_nodes, dtype=np.float32)).astype(np.float64)
    np.testing.assert_allclose(M, M.T, atol=1e-5 * np.abs(M).max())
    values = np.linalg.eigvals(M @ levels.A.toarray()).real
    assert values.min() > 0.5
    assert values.max() < 1.0 + 1e-5


def test_a_column_of_zeros_has_the_solution_zero() -> None:
    B = columns(900, 3)
    B[:, 1] = 0.0
    found = levels_of(grid(30), 0.999).solve(B, tolerance=1e-8)
    assert found.converged
    assert not found.x[0][:, 1].any()


def random_graph(n: int, degree: int) -> Graph:
    u, v = np.random.default_rng(0).integers(0, n, (2, n * degree // 2))
    return Graph.from_edges(u[u != v], v[u != v], n_nodes=n)


def test_levels_that_would_be_dense_are_given_up() -> None:
    graph = random_graph(4000, 6)
    assert (
        Multigrid.of(graph.engine, matrix(graph, 0.999), np.sqrt(graph.degrees + graph.isolated), coarsest=20) is None
    )


@given(cases.cases())
def test_aggregates_are_disjoint_neighbourhoods_that_cover_all_but_isolated_nodes(case: Any) -> None:
    graph = case.graph
    strong = multigrid.strong_entries(sparse.csr_array(matrix(graph, 0.9)))
    joined = multigrid.aggregates(strong)
    near = (strong.toarray() > 0) | np.eye(graph.n_nodes, dtype=bool)
    np.testing.assert_array_equal(joined < 0, graph.isolated)
    assert set(joined[joined >= 0]) == set(range(joined.max(initial=-1) + 1))
    for k in range(joined.max(initial=-1) + 1):
        members = np.flatnonzero(joined == k)
        within_two = (near.astype(int) @ near)[np.ix_(members, members)] > 0
        assert within_two.all(axis=1).any()  # its root


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_smoothing_and_propagation_of_many_columns_agree_with_dense_algebra(dtype: Any) -> None:
    graph, X = grid(30), columns(900, 20).astype(dtype)
    W, known = graph.adjacency.toarray(), np.random.default_rng(1).random(900) < 0.1
    tolerance = 1e-9 if dtype == np.float64 else 1e-5
    smoothed = linalg.smooth(graph, X, 0.999, tolerance=tolerance, limits=ALWAYS)
    filled = linalg.propagate(graph, X, known, 0.999, tolerance=tolerance, limits=ALWAYS)
    assert smoothed.dtype == filled.dtype == dtype
    np.testing.assert_allclose(smoothed, oracle.smooth(W, X, 0.999), atol=1e3 * tolerance)
    expected = np.column_stack([oracle.propagate(W, x, known, 0.999) for x in X.T])
    np.testing.assert_allclose(filled, expected, atol=1e3 * tolerance)


def test_right_hand_sides_at_known_nodes_are_not_read() -> None:
    graph, known, B = grid(30), np.arange(900) < 450, columns(900, 1)
    unknown = np.linalg.inv(oracle.precision(graph.adjacency.toarray(), 0.999)[~known][:, ~known])
    found = linalg.smooth(graph, B, 0.999, unknown=~known, tolerance=1e-10, limits=ALWAYS)
    np.testing.assert_allclose(found[~known], unknown @ B[~known], atol=1e-6)
    assert not found[known].any()


def test_what_cannot_be_joined_is_iterated() -> None:
    graph, X = random_graph(500, 10), columns(500, 2)
    found = linalg.smooth(graph, X, 0.9999, limits=Limits(factor_nodes=0, multigrid_nodes=0, multigrid_products=0))
    np.testing.assert_allclose(found, oracle.smooth(graph.adjacency.toarray(), X, 0.9999), atol=1e-6)


def test_it_is_chosen_where_iterations_are_many() -> None:
    def chosen(graph: Graph, alpha: float, B: Floats, allowed: Any = None, **limits: int) -> bool:
        sizes = Limits(multigrid_nodes=1000, **limits)
        systems = ShiftedSystems(graph.engine, np.full((1, B.shape[1]), 1 / alpha), allowed, sizes)
        return prefers_multigrid(systems, B, 1e-8)

    B = columns(10_000, 8)
    assert chosen(grid(100), 0.9999, B)
    assert chosen(path(10_000), 0.9999, B)
    assert chosen(grid(100), 0.9999, 1e-3 * B * (np.arange(8) > 0))  # the first column has nothing to solve
    assert not chosen(grid(100), 0.5, B)
    assert not chosen(expander(10_000), 0.9999, B)
    assert not chosen(star(10_000), 0.9999, B)
    assert not chosen(grid(30), 0.9999, B[:900])
    assert not chosen(grid(100), 0.9999, np.zeros((10_000, 2)))
    assert not chosen(grid(100), 0.9999, np.zeros((10_000, 0)))
    masks = np.random.default_rng(0).random((10_000, 8)) < 0.99
    assert not chosen(grid(100), 0.9999, B * masks, masks)


@given(st.integers(0, 4), st.integers(0, 2**32 - 1))
def test_engines_add_products_of_any_sparse_matrix(k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    M: Any = sparse.csr_array(rng.normal(size=(7, 7)) * (rng.random((7, 7)) < 0.3))
    V, B, numbers = rng.normal(size=(7, 5 * k)), rng.normal(size=(7, 5 * k)), tuple(rng.normal(size=3))
    expected = numbers[0] * V + numbers[1] * B + numbers[2] * (M.toarray() @ V)
    for name in ("scipy", "numba"):
        affine: Any = grid(3).to(name).engine
        np.testing.assert_allclose(affine.affine(M, V, B, numbers), expected, atol=1e-12)
        np.testing.assert_allclose(affine.affine(M[:4], V, None, (0.0, 0.0, 1.0)), M.toarray()[:4] @ V, atol=1e-12)

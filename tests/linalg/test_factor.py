import numpy as np
import pytest

import oracle
from families import FAMILIES, expander, grid, path, star
from graphmrf.linalg.factor import prefers_factor, solve_factor
from graphmrf.linalg.multishift import solve


@pytest.mark.parametrize("name", [name for name, graph in FAMILIES.items() if graph.n_nodes])
@pytest.mark.parametrize("share", [None, 0.0, 0.3, 1.0])
def test_factors_and_iterations_agree_with_dense_algebra(name: str, share: float | None) -> None:
    graph, rng = FAMILIES[name], np.random.default_rng(0)
    n, alpha = graph.n_nodes, 0.99
    allowed = None if share is None else rng.random(n) < share
    U = np.ones(n, dtype=bool) if allowed is None else allowed
    B = rng.normal(size=(n, 3)) * U[:, None]
    A = (np.eye(n) / alpha - np.eye(n) + oracle.laplacian(graph.adjacency.toarray()))[U][:, U]
    expected = np.zeros((n, 3))
    expected[U] = np.linalg.solve(A, B[U])
    factored = solve_factor(graph, B, alpha, allowed)
    masks = None if allowed is None else np.column_stack([allowed] * 3)
    iterated = solve(graph.engine, B, np.array([[1 / alpha]]), allowed=masks, tolerance=1e-11)
    np.testing.assert_allclose(factored, expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(iterated.or_raise(1e-11)[0], expected, rtol=0, atol=1e-7)


def test_a_factor_is_preferred_for_graphs_that_are_nearly_a_line() -> None:
    levels = np.full((1, 3), 0.99)
    assert prefers_factor(path(2000), levels, None)
    assert prefers_factor(grid(20), levels, None)
    assert not prefers_factor(star(2000), levels, None)
    assert not prefers_factor(expander(2000), levels, None)
    assert not prefers_factor(path(30_000), levels, None)
    assert not prefers_factor(FAMILIES["empty"], levels, None)


def test_a_factor_serves_one_level_and_one_mask_only() -> None:
    graph, rng = path(100), np.random.default_rng(0)
    shared = np.broadcast_to(rng.random((100, 1)) < 0.5, (100, 3))
    assert prefers_factor(graph, np.full((1, 3), 0.9), shared)
    assert not prefers_factor(graph, np.full((1, 3), 0.9), rng.random((100, 3)) < 0.5)
    assert not prefers_factor(graph, np.array([[0.9, 0.9, 0.8]]), shared)
    assert not prefers_factor(graph, np.full((1, 3), 0.2), shared)
    assert not prefers_factor(graph, np.zeros((1, 0)), None)

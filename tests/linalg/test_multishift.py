from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cases
import oracle
from families import FAMILIES, expander, path
from graphmrf._typing import Bools, Floats
from graphmrf.engines import ENGINES
from graphmrf.errors import ConvergenceError
from graphmrf.graph import Graph
from graphmrf.linalg.limits import Limits
from graphmrf.linalg.multishift import ShiftedSystems, Solution, iteration_bound, product


def solved(graph: Graph, b: Floats, sigma: float, allowed: Bools | None = None) -> Floats:
    """(sigma I - M (I - N) M)^-1 b for one column."""
    n = graph.n_nodes
    M = np.eye(n) if allowed is None else np.diag(allowed.astype(float))
    operator = M @ (np.eye(n) - oracle.laplacian(graph.adjacency.toarray())) @ M
    return np.asarray(np.linalg.solve(sigma * np.eye(n) - operator, b))


@given(case=cases.cases(), k=st.integers(1, 20), n_shifts=st.integers(1, 4), seed=st.integers(0, 10**6))
def test_every_shift_of_every_column_is_solved(case: cases.Case, k: int, n_shifts: int, seed: int) -> None:
    rng, n = np.random.default_rng(seed), len(case.W)
    allowed = rng.random((n, k)) < 0.7
    B, sigma = rng.normal(size=(n, k)) * allowed, 1 + 10 ** rng.uniform(-4, 2, (n_shifts, k))
    rows = rng.integers(0, n, 5)
    systems = ShiftedSystems(case.graph.engine, sigma, allowed)
    everywhere, some = systems.solve(B, tolerance=1e-10), systems.solve_rows(B, rows, tolerance=1e-10)
    assert everywhere.converged
    assert some.converged
    for s in range(n_shifts):
        for c in range(k):
            expected = solved(case.graph, B[:, c], sigma[s, c], allowed[:, c])
            atol = 1e-9 * np.linalg.norm(B[:, c]) / (sigma[s, c] - 1) + 1e-14
            np.testing.assert_allclose(everywhere.x[s, :, c], expected, rtol=0, atol=atol)
            np.testing.assert_allclose(some.x[s, :, c], expected[rows], rtol=0, atol=atol)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_reported_residual_is_the_true_one(name: str, dtype: Any) -> None:
    graph = FAMILIES[name]
    B = np.random.default_rng(0).normal(size=(graph.n_nodes, 3)).astype(dtype)
    solution = ShiftedSystems(graph.engine, np.array([[1.01], [2.0]])).solve(B, tolerance=1e-4)
    residuals = [0.0]
    for x, sigma in zip(solution.x.astype(float), (1.01, 2.0), strict=True):
        N = oracle.laplacian(graph.adjacency.toarray())
        r = np.linalg.norm(B - (sigma - 1) * x - N @ x, axis=0)
        residuals.append((r / np.maximum(np.linalg.norm(B, axis=0), 1e-30)).max(initial=0.0))
    assert solution.residual == pytest.approx(max(residuals), rel=0.05, abs=1e-6 if dtype == np.float32 else 1e-13)
    assert solution.converged
    assert solution.residual <= 1e-4


@pytest.mark.parametrize("limits", [Limits(cached_columns=1), Limits(cached_columns=3), Limits(cached_bytes=0),
                                    Limits(cached_bytes=0, solve_bytes=1)])  # fmt: skip
def test_columns_taken_in_blocks_are_those_taken_alone(limits: Limits) -> None:
    graph, rng = FAMILIES["pieces"], np.random.default_rng(0)
    B, sigma = rng.normal(size=(27, 10)), 1 + 10 ** rng.uniform(-3, 1, (2, 10))
    x = ShiftedSystems(graph.engine, sigma, limits=limits).solve_rows(B, tolerance=1e-10).x
    for c in range(10):
        alone = ShiftedSystems(graph.engine, sigma[:, [c]]).solve_rows(B[:, [c]], tolerance=1e-10).x
        np.testing.assert_allclose(x[:, :, [c]], alone, rtol=0, atol=1e-6)


def test_columns_that_converge_early_are_left_alone() -> None:
    graph = path(120)
    B = np.zeros((120, 3))
    B[:, 0], B[0, 1] = np.sqrt(graph.degrees), 1.0  # an eigenvector, a hard column and a zero one
    x = ShiftedSystems(graph.engine, np.array([[1.0001], [3.0]])).solve_rows(B, tolerance=1e-10).x
    np.testing.assert_allclose(x[0, :, 0], B[:, 0] / 0.0001, rtol=1e-6)
    np.testing.assert_allclose(x[1, :, 0], B[:, 0] / 2.0, rtol=1e-8)
    np.testing.assert_allclose(x[0, :, 1], solved(graph, B[:, 1], 1.0001), atol=1e-5)
    assert not x[:, :, 2].any()


def test_iterations_stay_below_the_bound_where_the_shift_is_what_limits_them() -> None:
    for graph in (path(3000), expander(400)):
        for sigma in (1.0001, 1.01, 2.0):
            B = np.random.default_rng(0).normal(size=(graph.n_nodes, 2))
            solution = ShiftedSystems(graph.engine, np.array([[sigma]])).solve_rows(B, tolerance=1e-9)
            assert solution.converged
            assert solution.iterations < iteration_bound(np.array([sigma]), 1e-9)


def test_a_solution_that_missed_its_tolerance_is_refined() -> None:
    graph, B, sigma = path(200), np.random.default_rng(0).normal(size=(200, 2)), np.array([[1.01]])
    solution = ShiftedSystems(graph.engine, sigma, limits=Limits(max_iterations=60)).solve(B, tolerance=1e-8)
    assert solution.converged
    assert solution.iterations > 60
    np.testing.assert_allclose(solution.x[0], solved(graph, B, 1.01), atol=1e-5)


def test_the_product_and_the_residual_are_those_of_dense_algebra() -> None:
    graph, rng = FAMILIES["pieces"], np.random.default_rng(0)
    X, allowed = rng.normal(size=(27, 3)), rng.random((27, 3)) < 0.5
    S = np.eye(27) - oracle.laplacian(graph.adjacency.toarray())
    np.testing.assert_allclose(product(graph.engine, X, allowed), allowed * (S @ X), atol=1e-14)
    B, x = rng.normal(size=(27, 3)), rng.normal(size=(2, 27, 3))
    worst = max(
        float((np.linalg.norm(B - sigma * y + S @ y, axis=0) / np.linalg.norm(B, axis=0)).max())
        for y, sigma in zip(x, (1.5, 3.0), strict=True)
    )
    assert ShiftedSystems(graph.engine, np.array([[1.5], [3.0]])).residual(B, x) == pytest.approx(worst)


@pytest.mark.parametrize("engine", sorted(ENGINES))
@pytest.mark.parametrize("window_bytes", [None, 1])
@pytest.mark.parametrize("masked", [True, False])
def test_long_solves_pass_through_many_windows(engine: str, window_bytes: int | None, masked: bool) -> None:
    graph, rng, sigma = path(300).to(engine), np.random.default_rng(0), np.array([[1e16], [2.0], [1.0001]])
    limits = Limits() if window_bytes is None else Limits(window_bytes=window_bytes)
    allowed = rng.random((300, 3)) < 0.9 if masked else None
    B, rows = rng.normal(size=(300, 3)) * (1.0 if allowed is None else allowed), np.arange(0, 300, 9)
    systems = ShiftedSystems(graph.engine, sigma, allowed, limits)
    some, everywhere = systems.solve_rows(B, rows, tolerance=1e-9).x, systems.solve(B, tolerance=1e-9).x
    for s, c in np.ndindex(3, 3):
        expected = solved(graph, B[:, c], sigma[s, 0], None if allowed is None else allowed[:, c])
        np.testing.assert_allclose(some[s, :, c], expected[rows], rtol=0, atol=1e-4)
        np.testing.assert_allclose(everywhere[s, :, c], expected, rtol=0, atol=1e-4)


def test_a_solution_raises_unless_it_converged() -> None:
    x = np.ones((1, 2, 1))
    assert Solution(x, 3, 1e-9, converged=True).or_raise(1e-8) is x
    message = "relative residual 1.0e-03 after 3 iterations, wanted 1.0e-08; raise the tolerance, lower alpha, or use"
    with pytest.raises(ConvergenceError, match=message):
        Solution(x, 3, 1e-3, converged=False).or_raise(1e-8)


def test_as_many_columns_go_together_as_the_memory_has_room_for() -> None:
    """Five columns that fit are not split at four, and rows that are kept take less than all."""
    graph, n = FAMILIES["pieces"], 27
    some, column = np.arange(3), 8 * (4 * n + 6 * 3) + n
    limits = Limits(cached_bytes=0, solve_bytes=5 * column)
    systems = ShiftedSystems(graph.engine, np.array([[2.0]]), limits=limits)
    widths = {k: systems.together(np.ones((n, k)), some) for k in (5, 16)}
    assert widths == {5: 16, 16: 4}
    assert systems.together(np.ones((n, 5)), None) < 5

"""Smoothing and propagation, alone and on grids, against dense solves."""

from typing import TYPE_CHECKING, Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cases
import oracle
from families import FAMILIES, expander, grid, path, star
from graphmrf import linalg
from graphmrf._typing import Bools, Floats
from graphmrf.engines import ENGINES
from graphmrf.errors import ConvergenceError, InvalidInputError
from graphmrf.graph import Graph
from graphmrf.linalg import smoothing
from graphmrf.linalg.limits import Limits
from graphmrf.linalg.multishift import ShiftedSystems
from graphmrf.linalg.smoothing import prefers_factor, solve_factor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ALPHAS = [0.0, 1e-8, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999]

every_family = pytest.mark.parametrize("name", FAMILIES)


@pytest.fixture(params=["factor", *ENGINES])
def route(request: pytest.FixtureRequest) -> "Iterator[tuple[str, Limits]]":
    """Run a test by factorisation where it is preferred, and by iteration on each engine."""
    threads = numba.get_num_threads()
    numba.set_num_threads(1)  # for graphs this small waiting for each other would take longer than the work
    yield ("auto", Limits()) if request.param == "factor" else (request.param, Limits(factor_nodes=0))
    numba.set_num_threads(threads)


def columns(n: int, k: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).normal(size=(n, k))


def dense(graph: Graph) -> Floats:
    return graph.adjacency.toarray()


def propagated(W: Floats, Y: Floats, known: Bools, alphas: Floats) -> Floats:
    """Column by column, each with its own mask and level."""
    filled = [oracle.propagate(W, Y[:, c], known[:, c], alphas[c]) for c in range(Y.shape[1])]
    return np.column_stack(filled) if filled else np.zeros(Y.shape)


def assert_solves(graph: Graph, x: Floats, b: Floats, alpha: float, tolerance: float) -> None:
    """The residual of (I - alpha S) x = (1 - alpha) b, in units of the right-hand side, by dense algebra."""
    residual = np.linalg.norm((1 - alpha) * (b - oracle.precision(dense(graph), alpha) @ x), axis=0)
    scale = alpha * np.linalg.norm(b, axis=0) * (1 - alpha) / alpha
    assert (residual <= tolerance * scale * (1 + 1e-6) + 1e-13).all()


@every_family
def test_multiply_is_the_complement_of_the_laplacian(name: str) -> None:
    graph = FAMILIES[name]
    X = columns(graph.n_nodes, 3)
    np.testing.assert_allclose(linalg.multiply(graph, X), X - oracle.laplacian(dense(graph)) @ X, atol=1e-14)


@every_family
def test_smooth_is_the_dense_solve(name: str, route: tuple[str, Limits]) -> None:
    graph, limits = FAMILIES[name].to(route[0]), route[1]
    X = columns(graph.n_nodes, 3)
    for alpha in ALPHAS:
        smoothed = linalg.smooth(graph, X, alpha, limits=limits)
        np.testing.assert_allclose(smoothed, oracle.smooth(dense(graph), X, alpha), rtol=0, atol=2e-7)


@every_family
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_propagate_is_the_dense_solve(name: str, share: float, route: tuple[str, Limits]) -> None:
    graph, limits = FAMILIES[name].to(route[0]), route[1]
    Y, known = columns(graph.n_nodes, 2), np.random.default_rng(1).random(graph.n_nodes) < share
    masks = np.column_stack([known, known])
    for alpha in ALPHAS:
        filled = linalg.propagate(graph, np.where(masks, Y, np.nan), known, alpha, limits=limits)
        expected = propagated(dense(graph), Y, masks, np.full(2, alpha))
        np.testing.assert_allclose(filled, expected, rtol=0, atol=2e-6)
        np.testing.assert_array_equal(filled[known], Y[known])


@given(
    case=cases.cases(),
    k=st.integers(0, 20),
    alphas=st.lists(st.floats(0, 0.9999), min_size=20, max_size=20),
    seed=st.integers(0, 10**6),
)
def test_every_column_may_have_its_own_level_and_mask(case: cases.Case, k: int, alphas: list[float], seed: int) -> None:
    rng, n = np.random.default_rng(seed), len(case.W)
    Y, known, levels = columns(n, k, seed), rng.random((n, k)) < rng.random(), np.array(alphas[:k])
    hidden = np.where(known, Y, np.nan)
    filled = linalg.propagate(case.graph, hidden, known, levels)
    np.testing.assert_allclose(filled, propagated(case.W, Y, known, levels), rtol=0, atol=2e-6)
    smoothed = [oracle.smooth(case.W, Y[:, [c]], levels[c]) for c in range(k)]
    np.testing.assert_allclose(
        linalg.smooth(case.graph, Y, levels), np.hstack([np.zeros((n, 0)), *smoothed]), rtol=0, atol=2e-6
    )


@given(case=cases.cases(), alpha=st.floats(0.001, 0.9999), exponent=st.integers(-10, -2))
def test_the_tolerance_is_honoured(case: cases.Case, alpha: float, exponent: int) -> None:
    X, tolerance = columns(len(case.W), 4), 10.0**exponent
    assert_solves(case.graph, linalg.smooth(case.graph, X, alpha, tolerance=tolerance), X, alpha, tolerance)
    grid = linalg.smooth_grid(case.graph, X, [alpha, alpha / 2], tolerance=tolerance)
    assert_solves(case.graph, grid[0], X, alpha, tolerance)
    assert_solves(case.graph, grid[1], X, alpha / 2, tolerance)


@every_family
def test_a_grid_is_all_its_single_solves(name: str, route: tuple[str, Limits]) -> None:
    graph = FAMILIES[name].to(route[0])
    n, rng = graph.n_nodes, np.random.default_rng(2)
    Y, known, rows = columns(n, 5), rng.random((n, 5)) < 0.3, rng.permutation(n)[: n // 2]
    smoothed = linalg.smooth_grid(graph, Y, ALPHAS, rows, tolerance=1e-10)
    filled = linalg.propagate_labels(graph, Y, known, np.array(ALPHAS), np.arange(n), tolerance=1e-10)[:, rows]
    assert smoothed.shape == filled.shape == (len(ALPHAS), len(rows), 5)
    for s, alpha in enumerate(ALPHAS):
        np.testing.assert_allclose(smoothed[s], oracle.smooth(dense(graph), Y, alpha)[rows], rtol=0, atol=1e-7)
        expected = propagated(dense(graph), Y, known, np.full(5, alpha))[rows]
        np.testing.assert_allclose(filled[s], expected, rtol=0, atol=1e-7)


@given(case=cases.cases(), k=st.integers(0, 20), n_alphas=st.integers(0, 4), seed=st.integers(0, 10**6))
def test_a_grid_may_have_levels_of_its_own_in_every_column(case: cases.Case, k: int, n_alphas: int, seed: int) -> None:
    rng, n = np.random.default_rng(seed), len(case.W)
    Y, known = columns(n, k, seed), rng.random((n, k)) < 0.5
    alphas = 1 - 10 ** rng.uniform(-4, 0, (n_alphas, k))
    filled = linalg.propagate_labels(case.graph, Y, known, alphas, np.arange(n), tolerance=1e-10)
    assert filled.shape == (n_alphas, n, k)
    for levels, values in zip(alphas, filled, strict=True):
        np.testing.assert_allclose(values, propagated(case.W, Y, known, levels), rtol=0, atol=1e-6)


@pytest.mark.parametrize("limits", [Limits(), Limits(window_bytes=1)])
def test_long_solves_pass_through_many_windows(limits: Limits) -> None:
    graph = path(300)
    Y, alphas, rows = columns(300, 3), [0.0, 0.5, 0.9999], np.arange(0, 300, 9)
    smoothed = linalg.smooth_grid(graph, Y, alphas, rows, tolerance=1e-9, limits=limits)
    for s, alpha in enumerate(alphas):
        np.testing.assert_allclose(smoothed[s], oracle.smooth(dense(graph), Y, alpha)[rows], rtol=0, atol=1e-5)
    np.testing.assert_allclose(
        linalg.smooth(graph, Y, 0.9999, limits=limits), oracle.smooth(dense(graph), Y, 0.9999), rtol=0, atol=1e-7
    )


def test_single_precision_stays_single_and_is_nearly_as_good(route: tuple[str, Limits]) -> None:
    graph, limits = FAMILIES["pieces"].to(route[0]), route[1]
    Y, known = columns(graph.n_nodes, 6).astype(np.float32), np.arange(graph.n_nodes) % 3 == 0
    masks = np.broadcast_to(known[:, None], Y.shape)
    results = {
        "smooth": (linalg.smooth(graph, Y, 0.9, limits=limits), oracle.smooth(dense(graph), Y, 0.9)),
        "propagate": (
            linalg.propagate(graph, Y, known, 0.9, limits=limits),
            propagated(dense(graph), Y, masks, np.full(6, 0.9)),
        ),
        "grid": (linalg.smooth_grid(graph, Y, [0.9], tolerance=1e-5)[0], oracle.smooth(dense(graph), Y, 0.9)),
    }
    for actual, expected in results.values():
        assert actual.dtype == np.float32
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-4)


def test_single_precision_is_not_called_converged_when_it_cannot_be() -> None:
    graph, X = path(300), columns(300, 2).astype(np.float32)
    with pytest.raises(ConvergenceError, match="use float64"):
        linalg.smooth_grid(graph, X, [0.5, 0.9999], tolerance=1e-6)


@pytest.mark.parametrize("dtype", [np.int64, np.bool_, np.float16])
def test_other_numbers_are_computed_in_double_precision(dtype: Any) -> None:
    graph = FAMILIES["grid"]
    X = (columns(graph.n_nodes, 2) > 0).astype(dtype)
    smoothed = linalg.smooth(graph, X, 0.9)
    assert smoothed.dtype == np.float64
    np.testing.assert_allclose(smoothed, oracle.smooth(dense(graph), X.astype(float), 0.9), atol=1e-7)


def test_zero_columns_and_no_columns_are_solved(route: tuple[str, Limits]) -> None:
    graph, limits, known = FAMILIES["grid"].to(route[0]), route[1], np.arange(36) < 5
    X = columns(36, 3)
    X[:, 1] = 0.0
    assert not linalg.smooth(graph, X, 0.99, limits=limits)[:, 1].any()
    assert not linalg.propagate(graph, X, known, 0.99, limits=limits)[:, 1].any()
    assert linalg.smooth(graph, X[:, :0], 0.99, limits=limits).shape == (36, 0)
    assert linalg.propagate(graph, X[:, :0], known, 0.99, limits=limits).shape == (36, 0)
    assert linalg.smooth_grid(graph, X[:, :0], [0.5, 0.9], np.arange(4)).shape == (2, 4, 0)
    assert linalg.smooth_grid(graph, X, []).shape == (0, 36, 3)


def test_inputs_are_not_changed() -> None:
    graph, known = FAMILIES["pieces"], np.arange(27) < 5
    X = columns(27, 3)
    X.flags.writeable = known.flags.writeable = False
    before = X.copy()
    results = [linalg.smooth(graph, X, 0.0), linalg.propagate(graph, X, known, 0.3), linalg.multiply(graph, X)]
    for result in results:
        result[:] = 7.0
    np.testing.assert_array_equal(X, before)


def test_a_component_without_known_values_is_filled_with_zeros() -> None:
    graph, Y = Graph.from_edges([0, 2], [1, 3], n_nodes=5), np.full((5, 1), 3.0)
    filled = linalg.propagate(graph, Y, np.array([True, False, False, False, False]), 0.9)
    np.testing.assert_allclose(filled.ravel(), [3.0, 2.7, 0.0, 0.0, 0.0])


def test_too_few_iterations_raise() -> None:
    limits = Limits(max_iterations=3, factor_nodes=0)
    graph, X, known = path(200), columns(200, 2), np.arange(200) == 0
    message = r"relative residual .* after \d+ iterations, wanted 1.0e-08; raise the tolerance, lower alpha, or use"
    with pytest.raises(ConvergenceError, match=message):
        linalg.smooth(graph, X, 0.999, limits=limits)
    with pytest.raises(ConvergenceError, match=message):
        linalg.propagate(graph, X, known, 0.999, limits=limits)
    with pytest.raises(ConvergenceError, match="after 3 iterations"):
        linalg.smooth_grid(graph, X, [0.1, 0.999], limits=limits)


def test_a_wrong_factorisation_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smoothing, "solve_factor", lambda _graph, B, _alpha, _allowed: B)
    graph = path(50)
    assert prefers_factor(graph, np.array([[0.9]]), None)
    with pytest.raises(ConvergenceError):
        linalg.smooth(graph, columns(50, 1), 0.9)


@pytest.mark.parametrize("alpha", [-0.1, 1.0, 1.5, np.nan, np.inf])
def test_levels_outside_their_range_are_refused(alpha: float) -> None:
    graph, X, known = FAMILIES["grid"], columns(36, 2), np.zeros(36, dtype=bool)
    calls: list[Callable[[], Floats]] = [
        lambda: linalg.smooth(graph, X, [0.5, alpha]),
        lambda: linalg.propagate(graph, X, known, alpha),
        lambda: linalg.smooth_grid(graph, X, [0.5, alpha]),
        lambda: linalg.propagate_labels(graph, X, known[:, None], np.array([alpha]), np.arange(36)),
        lambda: linalg.conditional_variance(graph, known, alpha),
        lambda: linalg.loo_precision(graph, known, alpha),
    ]
    for call in calls:
        with pytest.raises(InvalidInputError, match=r"alpha must be in \[0, 1\), got"):
            call()


def test_shapes_and_types_are_checked() -> None:
    graph, X = FAMILIES["grid"], columns(36, 2)
    for wrong in (X[:1], X.ravel(), X.T):
        with pytest.raises(InvalidInputError, match=r"columns must have shape \(n_nodes, k\) = \(36, k\), got"):
            linalg.smooth(graph, wrong, 0.5)
    with pytest.raises(InvalidInputError, match=r"one number or one for each of 2 columns, got shape \(3,\)"):
        linalg.smooth(graph, X, [0.1, 0.2, 0.3])
    with pytest.raises(InvalidInputError, match=r"known must be a bool array of shape \(36,\) or \(36, 2\), got int64"):
        linalg.propagate(graph, X, np.zeros(36, dtype=int), 0.5)
    with pytest.raises(InvalidInputError, match=r"known must be a bool array of shape \(36,\), got bool of \(3,\)"):
        linalg.conditional_variance(graph, np.zeros(3, dtype=bool), 0.5)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(bad: float, route: tuple[str, Limits]) -> None:
    graph, limits = FAMILIES["path"].to(route[0]), route[1]
    X, known = columns(40, 2), np.arange(40) < 9
    X[3, 1] = bad
    calls: list[Callable[[], Floats]] = [
        lambda: linalg.smooth(graph, X, 0.9, limits=limits),
        lambda: linalg.propagate(graph, X, known, 0.9, limits=limits),
        lambda: linalg.smooth_grid(graph, X, [0.9]),
        lambda: linalg.propagate_labels(graph, X, known[:, None], np.array([0.9]), np.arange(40)),
    ]
    for call in calls:
        with pytest.raises(InvalidInputError, match=rf"values must be finite, got {bad} at row 3, column 1"):
            call()
    for size in (1e-200, 1e200):
        X[:, 1] = size * np.sin(np.arange(40.0))
        for call in calls:
            with pytest.raises(InvalidInputError, match=r"can be squared, got .*e[+-]\d+ at most in column 1; divide"):
                call()


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
    iterated = ShiftedSystems(graph.engine, np.array([[1 / alpha]]), masks).solve(B, tolerance=1e-11)
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


@pytest.mark.parametrize("graph", [path(100), expander(100)], ids=["factored", "iterated"])
def test_zeros_are_solved_to_any_tolerance(graph: Graph) -> None:
    assert not linalg.smooth(graph, np.zeros((100, 2)), 0.99, tolerance=0.0).any()


@given(cases.cases())
def test_at_level_zero_labels_go_nowhere(case: cases.Case) -> None:
    labelled = np.arange(case.graph.n_nodes)
    Y, known = case.truth[:, None], case.known[:, None]
    found = smoothing.propagate_labels(case.graph, Y, known, np.array([0.0, 0.5]), labelled)
    np.testing.assert_array_equal(found[0], np.where(known, Y, 0.0))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("k", [1, 50])
def test_a_power_of_few_or_many_columns_is_that_of_dense_algebra(k: int, engine: str) -> None:
    graph, X = FAMILIES["pieces"].to(engine), columns(27, k)
    W = dense(graph) + np.eye(27)
    root = np.sqrt(W.sum(axis=1))
    expected = np.linalg.matrix_power(W / np.outer(root, root), 3) @ X
    np.testing.assert_allclose(smoothing.power(graph.loop_engine, X, 3), expected, atol=1e-12)


@pytest.mark.parametrize("alpha", [0.999, 0.9999, 0.999999])
def test_single_precision_smooths_at_high_levels(alpha: float) -> None:
    for name in ("grid", "pieces"):
        X = columns(FAMILIES[name].n_nodes, 3)
        found = linalg.smooth(FAMILIES[name], X.astype(np.float32), alpha)
        assert found.dtype == np.float32
        expected = linalg.smooth(FAMILIES[name], X, alpha)
        np.testing.assert_allclose(found, expected, atol=2e-4 * np.abs(expected).max())

"""Smoothing and propagation, alone and on grids, against dense solves."""

from typing import TYPE_CHECKING, Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cases
import oracle
from families import FAMILIES, path
from graphmrf import linalg
from graphmrf._typing import Bools, Floats
from graphmrf.engines.cpu import CpuEngine
from graphmrf.errors import ConvergenceError, InvalidInputError
from graphmrf.graph import Graph
from graphmrf.linalg import factor, multishift, smoothing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ALPHAS = [0.0, 1e-8, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999]

every_family = pytest.mark.parametrize("name", FAMILIES)


@pytest.fixture(params=["factor", "plain", "cpu"])
def route(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> "Iterator[None]":
    """Run a test by factorisation where it is preferred, and by iteration in each engine."""
    if request.param != "factor":
        monkeypatch.setattr(smoothing, "prefers_factor", lambda *_: False)
    if request.param == "cpu":
        monkeypatch.setattr(Graph, "engine", property(lambda g: CpuEngine(g.indptr, g.indices, g.weights, g.degrees)))
    threads = numba.get_num_threads()
    numba.set_num_threads(1)  # for graphs this small waiting for each other would take longer than the work
    yield
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
@pytest.mark.usefixtures("route")
def test_smooth_is_the_dense_solve(name: str) -> None:
    graph = FAMILIES[name]
    X = columns(graph.n_nodes, 3)
    for alpha in ALPHAS:
        smoothed = linalg.smooth(graph, X, alpha)
        np.testing.assert_allclose(smoothed, oracle.smooth(dense(graph), X, alpha), rtol=0, atol=2e-7)


@every_family
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.usefixtures("route")
def test_propagate_is_the_dense_solve(name: str, share: float) -> None:
    graph = FAMILIES[name]
    Y, known = columns(graph.n_nodes, 2), np.random.default_rng(1).random(graph.n_nodes) < share
    masks = np.column_stack([known, known])
    for alpha in ALPHAS:
        filled = linalg.propagate(graph, np.where(masks, Y, np.nan), known, alpha)
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
@pytest.mark.usefixtures("route")
def test_a_grid_is_all_its_single_solves(name: str) -> None:
    graph = FAMILIES[name]
    n, rng = graph.n_nodes, np.random.default_rng(2)
    Y, known, rows = columns(n, 5), rng.random((n, 5)) < 0.3, rng.permutation(n)[: n // 2]
    smoothed = linalg.smooth_grid(graph, Y, ALPHAS, rows, tolerance=1e-10)
    filled = linalg.propagate_grid(graph, Y, known, ALPHAS, rows, tolerance=1e-10)
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
    filled = linalg.propagate_grid(case.graph, Y, known, alphas, tolerance=1e-10)
    assert filled.shape == (n_alphas, n, k)
    for levels, values in zip(alphas, filled, strict=True):
        np.testing.assert_allclose(values, propagated(case.W, Y, known, levels), rtol=0, atol=1e-6)


@pytest.mark.parametrize("window", [None, 1])
def test_long_solves_pass_through_many_windows(window: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if window is not None:
        monkeypatch.setattr(multishift, "_WINDOW_BYTES", window)
    graph = path(300)
    Y, known = columns(300, 3), np.arange(300) % 133 == 0
    alphas, rows = [0.0, 0.5, 0.9999], np.arange(0, 300, 9)
    smoothed = linalg.smooth_grid(graph, Y, alphas, rows, tolerance=1e-9)
    filled = linalg.propagate_grid(graph, Y, known, alphas, rows, tolerance=1e-9)
    masks = np.column_stack([known] * 3)
    for s, alpha in enumerate(alphas):
        np.testing.assert_allclose(smoothed[s], oracle.smooth(dense(graph), Y, alpha)[rows], rtol=0, atol=1e-5)
        expected = propagated(dense(graph), Y, masks, np.full(3, alpha))[rows]
        np.testing.assert_allclose(filled[s], expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(
        linalg.smooth(graph, Y, 0.9999), oracle.smooth(dense(graph), Y, 0.9999), rtol=0, atol=1e-7
    )


@pytest.mark.usefixtures("route")
def test_single_precision_stays_single_and_is_nearly_as_good() -> None:
    graph = FAMILIES["pieces"]
    Y, known = columns(graph.n_nodes, 6).astype(np.float32), np.arange(graph.n_nodes) % 3 == 0
    masks = np.broadcast_to(known[:, None], Y.shape)
    results = {
        "smooth": (linalg.smooth(graph, Y, 0.9), oracle.smooth(dense(graph), Y, 0.9)),
        "propagate": (linalg.propagate(graph, Y, known, 0.9), propagated(dense(graph), Y, masks, np.full(6, 0.9))),
        "grid": (linalg.smooth_grid(graph, Y, [0.9], tolerance=1e-5)[0], oracle.smooth(dense(graph), Y, 0.9)),
    }
    for actual, expected in results.values():
        assert actual.dtype == np.float32
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-4)


def test_single_precision_is_not_called_converged_when_it_cannot_be() -> None:
    graph, X = path(300), columns(300, 2).astype(np.float32)
    with pytest.raises(ConvergenceError, match="use float64"):
        linalg.smooth(graph, X, 0.9999)
    with pytest.raises(ConvergenceError, match="use float64"):
        linalg.smooth_grid(graph, X, [0.5, 0.9999], tolerance=1e-6)


@pytest.mark.parametrize("dtype", [np.int64, np.bool_, np.float16])
def test_other_numbers_are_computed_in_double_precision(dtype: Any) -> None:
    graph = FAMILIES["grid"]
    X = (columns(graph.n_nodes, 2) > 0).astype(dtype)
    smoothed = linalg.smooth(graph, X, 0.9)
    assert smoothed.dtype == np.float64
    np.testing.assert_allclose(smoothed, oracle.smooth(dense(graph), X.astype(float), 0.9), atol=1e-7)


@pytest.mark.usefixtures("route")
def test_zero_columns_and_no_columns_are_solved() -> None:
    graph, known = FAMILIES["grid"], np.arange(36) < 5
    X = columns(36, 3)
    X[:, 1] = 0.0
    assert not linalg.smooth(graph, X, 0.99)[:, 1].any()
    assert not linalg.propagate(graph, X, known, 0.99)[:, 1].any()
    assert linalg.smooth(graph, X[:, :0], 0.99).shape == (36, 0)
    assert linalg.propagate(graph, X[:, :0], known, 0.99).shape == (36, 0)
    assert linalg.smooth_grid(graph, X[:, :0], [0.5, 0.9], np.arange(4)).shape == (2, 4, 0)
    assert linalg.propagate_grid(graph, X, known, [0.5], np.arange(0)).shape == (1, 0, 3)
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


def test_too_few_iterations_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multishift, "iteration_bound", lambda *_: 3)
    monkeypatch.setattr(smoothing, "prefers_factor", lambda *_: False)
    graph, X, known = path(200), columns(200, 2), np.arange(200) == 0
    message = r"relative residual .* after \d+ iterations, wanted 1.0e-08; raise the tolerance, lower alpha, or use"
    with pytest.raises(ConvergenceError, match=message):
        linalg.smooth(graph, X, 0.999)
    with pytest.raises(ConvergenceError, match=message):
        linalg.propagate(graph, X, known, 0.999)
    with pytest.raises(ConvergenceError, match="after 3 iterations"):
        linalg.smooth_grid(graph, X, [0.1, 0.999])
    with pytest.raises(ConvergenceError, match="after 3 iterations"):
        linalg.propagate_grid(graph, X, known, [0.1, 0.999])


def test_a_wrong_factorisation_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smoothing, "solve_factor", lambda _graph, B, _alpha, _allowed: B)
    graph = path(50)
    assert factor.prefers_factor(graph, np.array([[0.9]]), None)
    with pytest.raises(ConvergenceError):
        linalg.smooth(graph, columns(50, 1), 0.9)


@pytest.mark.parametrize("alpha", [-0.1, 1.0, 1.5, np.nan, np.inf])
def test_levels_outside_their_range_are_refused(alpha: float) -> None:
    graph, X, known = FAMILIES["grid"], columns(36, 2), np.zeros(36, dtype=bool)
    calls: list[Callable[[], Floats]] = [
        lambda: linalg.smooth(graph, X, [0.5, alpha]),
        lambda: linalg.propagate(graph, X, known, alpha),
        lambda: linalg.smooth_grid(graph, X, [0.5, alpha]),
        lambda: linalg.propagate_grid(graph, X, known, [alpha]),
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
@pytest.mark.usefixtures("route")
def test_values_that_are_not_finite_are_refused(bad: float) -> None:
    graph, X, known = FAMILIES["path"], columns(40, 2), np.arange(40) < 9
    X[3, 1] = bad
    calls: list[Callable[[], Floats]] = [
        lambda: linalg.smooth(graph, X, 0.9),
        lambda: linalg.propagate(graph, X, known, 0.9),
        lambda: linalg.smooth_grid(graph, X, [0.9]),
        lambda: linalg.propagate_grid(graph, X, known, [0.9]),
    ]
    for call in calls:
        with pytest.raises(InvalidInputError, match=rf"values must be finite, got {bad} at row 3, column 1"):
            call()
    X[3, 1] = 1e200
    for call in calls[2:3]:
        with pytest.raises(InvalidInputError, match="values are too large"):
            call()

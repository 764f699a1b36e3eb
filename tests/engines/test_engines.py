"""Every engine against dense algebra, through the operations that solvers use and nothing else."""

from functools import partial
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cases
import oracle
from graphmrf._typing import Bools, Floats
from graphmrf.engines import ENGINES, Engine, build_engine
from graphmrf.engines.numba import NumbaEngine, local_engine, local_order, ordered_engine
from graphmrf.engines.probes import random_columns
from graphmrf.engines.scipy import ScipyEngine
from graphmrf.errors import InvalidInputError
from graphmrf.graph import Graph
from graphmrf.linalg import propagate, smooth, smooth_grid

TOLERANCE = {np.dtype(np.float32): 2e-5, np.dtype(np.float64): 1e-12}

every_engine = pytest.mark.parametrize("kind", [*sorted(ENGINES), "ordered"])
every_type = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def build(kind: str, graph: Graph) -> Engine:
    if kind != "ordered":
        return graph.to(kind).engine
    order = np.random.default_rng(graph.n_nodes).permutation(graph.n_nodes)
    return ordered_engine((graph.indptr, graph.indices, graph.weights, graph.degrees), order)


def squares(engine: Engine, V: Any) -> Floats:
    return engine.subtract(V, np.zeros(V.shape[1]), V)


def operator(W: Floats) -> Floats:
    """I - N: S, with a 1 on the diagonal of isolated nodes."""
    return np.eye(len(W)) - oracle.laplacian(W)


def columns(rng: np.random.Generator, n: int, k: int, dtype: Any) -> Floats:
    return np.asarray(rng.normal(size=(n, k)), dtype=dtype)


def padded(coefficients: Floats, width: int) -> Floats:
    """The coefficients of the columns, and some number for the columns an engine adds."""
    return np.append(coefficients, np.full(width - coefficients.size, 0.7))


def close(actual: Floats, expected: Floats, dtype: Any) -> None:
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=scale * TOLERANCE[np.dtype(dtype)])


def check_advance(engine: Engine, W: Floats, V: Floats, allowed: Bools | None, rng: np.random.Generator) -> None:
    k, dtype = V.shape[1], V.dtype
    previous, (scale, back) = columns(rng, len(W), k, dtype), rng.normal(size=(2, k))
    block = engine.load(V)
    out, width = engine.like(block), block.shape[1]
    mask = engine.mask(allowed, width)
    dots = engine.advance(block, padded(scale, width), engine.load(previous), padded(back, width), mask, out)
    through = np.ones((len(W), k)) if allowed is None else allowed
    expected = through * (operator(W) @ (V * scale) - previous * back)
    close(engine.unload(out, k), expected, dtype)
    close(dots[:k], np.einsum("ij,ij->j", V * scale, expected), dtype)
    assert not np.any(engine.unload(out, width)[:, k:])
    assert engine.unload(out, k).dtype == dtype


@every_engine
@every_type
@pytest.mark.parametrize("seed", [0, 1])
def test_the_product_is_that_of_dense_algebra_at_every_width(kind: str, dtype: Any, seed: int) -> None:
    case, rng = cases.random_case(seed, n=11), np.random.default_rng(seed)
    engine = build(kind, case.graph)
    for k in range(1, 41):
        check_advance(engine, case.W, columns(rng, 11, k, dtype), None, rng)


@every_engine
@every_type
@given(case=cases.cases(), k=st.integers(1, 20), seed=st.integers(0, 10**6))
def test_masks_stop_entries_column_by_column(kind: str, dtype: Any, case: cases.Case, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    allowed = rng.random((len(case.W), k)) < rng.random()
    check_advance(build(kind, case.graph), case.W, columns(rng, len(case.W), k, dtype), allowed, rng)


@every_engine
def test_a_mask_may_be_a_read_only_view(kind: str) -> None:
    case, rng = cases.random_case(3), np.random.default_rng(0)
    allowed = np.broadcast_to(case.known[:, None], (len(case.W), 5))
    check_advance(build(kind, case.graph), case.W, columns(rng, len(case.W), 5, np.float64), allowed, rng)


@pytest.mark.parametrize("cost", [1, 7, 50])
def test_the_product_does_not_depend_on_the_division_of_work(cost: int) -> None:
    case, rng = cases.random_case(5, n=40), np.random.default_rng(0)
    graph = case.graph
    engine = NumbaEngine(graph.indptr, graph.indices, graph.weights, graph.degrees, chunk_cost=cost)
    check_advance(engine, case.W, columns(rng, 40, 3, np.float64), None, rng)


@every_engine
@every_type
def test_an_isolated_node_keeps_its_values(kind: str, dtype: Any) -> None:
    graph = Graph.from_edges([0, 2], [2, 3], n_nodes=6)
    rng = np.random.default_rng(0)
    check_advance(build(kind, graph), graph.adjacency.toarray(), columns(rng, 6, 9, dtype), None, rng)
    check_advance(build(kind, Graph(np.zeros((4, 4)))), np.zeros((4, 4)), columns(rng, 4, 2, dtype), None, rng)


@every_engine
@every_type
@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_the_unit_of_the_weights_does_not_matter(kind: str, dtype: Any, scale: float) -> None:
    case, rng = cases.random_case(1), np.random.default_rng(0)
    check_advance(build(kind, Graph(case.W * scale)), case.W, columns(rng, len(case.W), 3, dtype), None, rng)


@pytest.mark.slow
@every_engine
def test_indices_of_64_bits_are_followed(kind: str) -> None:
    case, rng = cases.random_case(1), np.random.default_rng(0)
    graph = case.graph
    wide = {name: getattr(graph, name).astype(np.int64) for name in ("indptr", "indices")}
    graph.__setstate__(graph.__getstate__() | wide)
    check_advance(build(kind, graph), case.W, columns(rng, len(case.W), 5, np.float64), None, rng)


@every_engine
@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("k", [0, 1])
def test_blocks_may_be_empty(kind: str, n: int, k: int) -> None:
    rng, V = np.random.default_rng(0), np.ones((n, k))
    engine = build(kind, Graph.from_edges([], [], n_nodes=n))
    check_advance(engine, np.zeros((n, n)), V, None, rng)
    check_advance(engine, np.zeros((n, n)), V, np.zeros((n, k), dtype=bool), rng)
    close(squares(engine, engine.load(V))[:k], np.full(k, float(n)), np.float64)


@every_engine
@every_type
@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray, lambda X: np.repeat(X, 2, axis=1)[:, ::2]])
def test_what_is_loaded_comes_back_and_shares_no_memory(kind: str, dtype: Any, layout: Any) -> None:
    case = cases.random_case(1)
    X = layout(columns(np.random.default_rng(0), len(case.W), 6, dtype))
    X.flags.writeable = False
    engine = build(kind, case.graph)
    block = engine.load(X)
    engine.subtract(block, np.full(block.shape[1], 0.5), engine.load(X))
    close(engine.unload(block, 6), X / 2, dtype)
    close(engine.unload(engine.load(X), 4), X[:, :4], dtype)


@every_engine
@every_type
@pytest.mark.parametrize("n", [13, 9000])
def test_subtract_and_squares_sum_in_double_precision(kind: str, dtype: Any, n: int) -> None:
    rng = np.random.default_rng(n)
    graph = Graph.from_edges(rng.integers(0, n, 2 * n), rng.integers(0, n, 2 * n), rng.random(2 * n), n_nodes=n)
    U, V, coefficient = columns(rng, n, 5, dtype), columns(rng, n, 5, dtype), rng.normal(size=5)
    engine = build(kind, graph)
    block = engine.load(U)
    sums = engine.subtract(block, padded(coefficient, block.shape[1]), engine.load(V))
    expected = U - V * coefficient
    close(engine.unload(block, 5), expected, dtype)
    np.testing.assert_allclose(sums[:5], (expected.astype(np.float64) ** 2).sum(axis=0), rtol=1e-6)
    np.testing.assert_allclose(squares(engine, block)[:5], sums[:5], rtol=1e-12)


@every_engine
@every_type
@pytest.mark.parametrize("rows", [None, [3, 0, 0, 12], []])
def test_store_writes_its_slot_and_no_other(kind: str, dtype: Any, rows: list[int] | None) -> None:
    case = cases.random_case(1)
    V = columns(np.random.default_rng(0), len(case.W), 6, dtype)
    chosen = None if rows is None else np.array(rows, dtype=np.int64)
    engine = build(kind, case.graph)
    window = engine.window(5, 3, chosen, dtype)
    engine.store(engine.load(V), window, 1)
    values = engine.read(window)
    assert values.dtype == dtype
    close(values[:, 1], (V if chosen is None else V[chosen])[:, :5].T, dtype)
    assert not values[:, [0, 2]].any()


@every_engine
@every_type
def test_a_slot_comes_back_as_a_block(kind: str, dtype: Any) -> None:
    case = cases.random_case(1)
    V = columns(np.random.default_rng(0), len(case.W), 6, dtype)
    engine = build(kind, case.graph)
    window, out = engine.window(5, 2, None, dtype), engine.load(V)
    engine.store(engine.load(2 * V), window, 1)
    engine.restore(window, 1, out)
    close(engine.unload(out, 5), 2 * V[:, :5], dtype)
    assert not np.any(engine.unload(out, out.shape[1])[:, 5:])


@every_engine
@every_type
@pytest.mark.parametrize("rows", [None, [3, 0, 0, 12], []])
@pytest.mark.parametrize("used", [0, 2, 5, 6])
def test_combine_adds_up_the_slots_of_each_column(kind: str, dtype: Any, rows: list[int] | None, used: int) -> None:
    case, rng = cases.random_case(1), np.random.default_rng(0)
    chosen = None if rows is None else np.array(rows, dtype=np.int64)
    engine, vectors = build(kind, case.graph), rng.normal(size=(6, len(case.W), 5)).astype(dtype)
    window, out = engine.window(5, 6, chosen, dtype), engine.window(5, 2, chosen, dtype)
    for slot, V in enumerate(vectors):
        engine.store(engine.load(V), window, slot)
    first, second, keep = rng.normal(size=(5, 2, 6)), rng.normal(size=(5, 2, used)), rng.normal(size=(5, 2))
    first[0, 0, :4] = first[1, 1, 3:] = 0.0
    engine.combine(window, first, out)
    engine.combine(window, second, out, keep=keep)
    held = vectors if chosen is None else vectors[:, chosen]
    expected = keep[:, :, None] * np.einsum("cst,trc->csr", first, held)
    close(engine.read(out), expected + np.einsum("cst,trc->csr", second, held[:used]), dtype)


@every_type
@pytest.mark.parametrize("k", [1, 4, 8, 16])
def test_rows_of_blocks_begin_with_a_line_of_memory(dtype: Any, k: int) -> None:
    engine = build("numba", cases.random_case(1).graph)
    block = engine.zeros(k, dtype)
    for each in (block, engine.like(block), engine.load(np.ones((engine.n, k), dtype=dtype))):
        assert each.ctypes.data % 64 == 0
        assert each.flags.c_contiguous


@every_engine
@every_type
@pytest.mark.parametrize("n", [0, 1, 7, 9000])
def test_zeros_are_as_wide_as_loaded_columns(kind: str, dtype: Any, n: int) -> None:
    rng = np.random.default_rng(n)
    u, v = rng.integers(0, max(n, 1), (2, 2 * n))
    engine = build(kind, Graph.from_edges(u, v, rng.random(2 * n), n_nodes=n))
    V = columns(rng, n, 5, dtype)
    nothing = engine.zeros(5, dtype)
    assert nothing.shape == engine.load(V).shape
    assert engine.unload(nothing, 5).dtype == dtype
    assert not engine.unload(nothing, 5).any()


@every_engine
@every_type
@pytest.mark.parametrize("rows", [[3, 0, 0, 12], []])
def test_rows_are_unloaded_as_asked_for(kind: str, dtype: Any, rows: list[int]) -> None:
    case, chosen = cases.random_case(1), np.array(rows, dtype=np.int64)
    V = columns(np.random.default_rng(0), len(case.W), 6, dtype)
    engine = build(kind, case.graph)
    close(engine.unload(engine.load(V), 4, chosen), V[chosen, :4], dtype)


@every_engine
@every_type
@pytest.mark.parametrize("rows", [[3, 0, 12], []])
def test_values_and_masks_of_some_rows_are_placed_among_the_others(kind: str, dtype: Any, rows: list[int]) -> None:
    case, chosen, rng = cases.random_case(1), np.array(rows, dtype=np.int64), np.random.default_rng(0)
    engine, X, whole = build(kind, case.graph), columns(rng, len(rows), 5, dtype), np.zeros((len(case.W), 5))
    whole[chosen] = X
    block = engine.load(X, chosen)
    close(engine.unload(block, 5), whole, dtype)
    V, allowed, out = columns(rng, len(case.W), 5, dtype), np.ones(whole.shape, dtype=bool), engine.like(block)
    allowed[chosen] = X > 0
    width = block.shape[1]
    mask = engine.mask(X > 0, width, chosen)
    engine.advance(engine.load(V), np.ones(width), block, np.zeros(width), mask, out)
    close(engine.unload(out, 5), allowed * (operator(case.W) @ V), dtype)
    assert not np.any(engine.unload(out, width)[:, 5:])


@every_engine
@pytest.mark.parametrize("random", ["rademacher", "normal"])
def test_every_engine_draws_the_same_columns(kind: str, random: Any) -> None:
    case = cases.random_case(1)
    engine = build(kind, case.graph)
    close(engine.unload(engine.random(7, 5, random), 5), random_columns(7, len(case.W), 5, random), np.float64)


@pytest.mark.parametrize("kind", ["rademacher", "normal"])
@given(first=st.integers(0, 50), n=st.integers(0, 50), k=st.integers(0, 70), fewer=st.integers(0, 70))
def test_an_entry_depends_on_its_row_and_column_alone(kind: Any, first: int, n: int, k: int, fewer: int) -> None:
    everything = random_columns(3, 100, k, kind)
    part = random_columns(3, n, min(fewer, k), kind, first=first)
    np.testing.assert_array_equal(part, everything[first : first + n, :fewer])


def test_random_columns_have_the_moments_of_their_kind_and_differ_by_seed() -> None:
    signs, normal = random_columns(0, 20_000, 66), random_columns(0, 20_000, 5, "normal")
    assert set(np.unique(signs)) == {-1.0, 1.0}
    for Z in (signs, normal):
        inner = Z.T @ Z / len(Z)
        np.testing.assert_allclose(inner, np.eye(Z.shape[1]), atol=0.05)
        np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=0.05)
    np.testing.assert_allclose((normal**4).mean(axis=0), 3.0, atol=0.3)
    assert (random_columns(1, 100, 1) != signs[:100, :1]).any()


@every_engine
@every_type
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 2, 4), (2, 5, 5)])
@pytest.mark.parametrize("subtracted", [True, False])
def test_mix_multiplies_groups_of_columns_by_small_matrices(
    kind: str, dtype: Any, shape: tuple[int, int, int], subtracted: bool
) -> None:
    case, rng = cases.random_case(1), np.random.default_rng(0)
    (groups, q, r), n = shape, len(case.W)
    V, minus = columns(rng, n, groups * q, dtype), columns(rng, n, groups * r, dtype)
    tables, kinds = rng.normal(size=(3, q, r)), rng.integers(0, 3, n)
    engine = build(kind, case.graph)
    out = engine.load(minus)
    engine.mix(engine.load(V), tables, kinds, engine.load(minus) if subtracted else None, out)
    expected = np.stack([V[i].reshape(groups, q) @ tables[kinds[i]] for i in range(n)]).reshape(n, -1)
    close(engine.unload(out, groups * r), expected - (minus if subtracted else 0), dtype)


@every_type
def test_the_number_of_threads_changes_no_bit(dtype: Any) -> None:
    rng, n = np.random.default_rng(0), 20_000
    u, v = (n * rng.random((2, 5 * n)) ** 2).astype(int)
    graph = Graph.from_edges(u, v, rng.random(5 * n), n_nodes=n)
    V, coefficient = columns(rng, n, 6, dtype), rng.normal(size=8)
    results, available = [], numba.get_num_threads()
    for threads in (1, available):
        numba.set_num_threads(threads)
        engine = build("numba", graph)
        block = engine.load(V)
        out = engine.like(block)
        mask = engine.mask(V > -1, block.shape[1])
        sums = [engine.advance(block, coefficient, block, coefficient, mask, out)]
        sums.append(engine.subtract(out, coefficient, block))
        results.append([*sums, engine.unload(out, 6)])
    numba.set_num_threads(available)
    for one, many in zip(*results, strict=True):
        np.testing.assert_array_equal(one, many)


def test_small_graphs_take_scipy_and_large_ones_numba() -> None:
    graph = cases.random_case(1).graph
    arrays = (graph.indptr, graph.indices, graph.weights, graph.degrees)
    assert isinstance(graph.engine, ScipyEngine)
    assert isinstance(build_engine("auto", *arrays), ScipyEngine)
    assert isinstance(build_engine("auto", *arrays, small=graph.n_edges), ScipyEngine)
    assert isinstance(build_engine("auto", *arrays, small=graph.n_edges - 1), NumbaEngine)
    assert graph.engine is graph.engine


def test_a_graph_goes_where_it_is_told() -> None:
    graph = cases.random_case(1).graph
    moved = graph.to("numba")
    assert isinstance(moved.engine, NumbaEngine)
    assert moved.indptr is graph.indptr
    assert isinstance(Graph(graph.adjacency, engine="numba").engine, NumbaEngine)
    assert isinstance(moved.to("auto").engine, ScipyEngine)
    assert isinstance(graph.engine, ScipyEngine)
    message = "engine must be one of 'auto', 'scipy', 'numba', 'cuda', got 'abacus'"
    with pytest.raises(InvalidInputError, match=message):
        graph.to("abacus")
    with pytest.raises(InvalidInputError, match=message):
        Graph(graph.adjacency, engine="abacus")


def test_a_shuffled_mesh_is_computed_in_another_order_and_a_network_with_hubs_as_it_is() -> None:
    small: Any = {"smallest": 10, "near": 25}
    ordering = partial(local_engine, **small)
    side, rng = 20, np.random.default_rng(0)
    cell = rng.permutation(side * side).reshape(side, side)
    u = np.concatenate([cell[:-1].ravel(), cell[:, :-1].ravel()])
    v = np.concatenate([cell[1:].ravel(), cell[:, 1:].ravel()])
    mesh, X = Graph.from_edges(u, v), rng.normal(size=(side * side, 3))
    placed = Graph.from_edges(*(np.argsort(cell.ravel())[ends] for ends in (u, v)))
    star = Graph.from_edges(np.zeros(399, np.int64), 1 + rng.permutation(399))
    moved = [local_order(graph.indptr, graph.indices, **small) is not None for graph in (mesh, placed, star)]
    assert moved == [True, False, False]
    np.testing.assert_allclose(smooth(mesh.to(ordering), X, 0.9), smooth(mesh.to("scipy"), X, 0.9), atol=1e-12)
    rows, known = np.array([3, 1, 200]), rng.random(side * side) < 0.3
    np.testing.assert_allclose(
        smooth_grid(mesh.to(ordering), X, [0.5, 0.9], rows),
        smooth_grid(mesh.to("scipy"), X, [0.5, 0.9], rows),
        atol=1e-12,
    )
    np.testing.assert_allclose(
        propagate(mesh.to(ordering), X, known, 0.9), propagate(mesh.to("scipy"), X, known, 0.9), atol=1e-12
    )

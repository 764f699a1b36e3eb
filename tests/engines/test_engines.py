"""Every engine against dense algebra, through the operations that solvers use and nothing else."""

from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cases
import oracle
from graphmrf import engines
from graphmrf._typing import Bools, Floats
from graphmrf.engines import Engine, cpu, engine_for
from graphmrf.engines.cpu import CpuEngine
from graphmrf.engines.plain import PlainEngine
from graphmrf.graph import Graph, checks

KINDS = [PlainEngine, CpuEngine]
TOLERANCE = {np.dtype(np.float32): 2e-5, np.dtype(np.float64): 1e-12}

every_engine = pytest.mark.parametrize("kind", KINDS)
every_type = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def build(kind: Any, graph: Graph) -> Engine:
    engine: Engine = kind(graph.indptr, graph.indices, graph.weights, graph.degrees)
    return engine


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
def test_the_product_is_that_of_dense_algebra_at_every_width(kind: Any, dtype: Any, seed: int) -> None:
    case, rng = cases.random_case(seed, n=11), np.random.default_rng(seed)
    engine = build(kind, case.graph)
    for k in range(1, 41):
        check_advance(engine, case.W, columns(rng, 11, k, dtype), None, rng)


@every_engine
@every_type
@given(case=cases.cases(), k=st.integers(1, 20), seed=st.integers(0, 10**6))
def test_masks_stop_entries_column_by_column(kind: Any, dtype: Any, case: cases.Case, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    allowed = rng.random((len(case.W), k)) < rng.random()
    check_advance(build(kind, case.graph), case.W, columns(rng, len(case.W), k, dtype), allowed, rng)


@every_engine
def test_a_mask_may_be_a_read_only_view(kind: Any) -> None:
    case, rng = cases.random_case(3), np.random.default_rng(0)
    allowed = np.broadcast_to(case.known[:, None], (len(case.W), 5))
    check_advance(build(kind, case.graph), case.W, columns(rng, len(case.W), 5, np.float64), allowed, rng)


@pytest.mark.parametrize("cost", [1, 7, 50])
def test_the_product_does_not_depend_on_the_division_of_work(cost: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "_CHUNK_COST", cost)
    case, rng = cases.random_case(5, n=40), np.random.default_rng(0)
    check_advance(build(CpuEngine, case.graph), case.W, columns(rng, 40, 3, np.float64), None, rng)


@every_engine
@every_type
def test_an_isolated_node_keeps_its_values(kind: Any, dtype: Any) -> None:
    graph = Graph.from_edges([0, 2], [2, 3], n_nodes=6)
    rng = np.random.default_rng(0)
    check_advance(build(kind, graph), graph.adjacency.toarray(), columns(rng, 6, 9, dtype), None, rng)
    check_advance(build(kind, Graph(np.zeros((4, 4)))), np.zeros((4, 4)), columns(rng, 4, 2, dtype), None, rng)


@every_engine
@every_type
@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_the_unit_of_the_weights_does_not_matter(kind: Any, dtype: Any, scale: float) -> None:
    case, rng = cases.random_case(1), np.random.default_rng(0)
    check_advance(build(kind, Graph(case.W * scale)), case.W, columns(rng, len(case.W), 3, dtype), None, rng)


@every_engine
def test_indices_of_64_bits_are_followed(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_LARGEST_INT32", 2)
    case, rng = cases.random_case(1), np.random.default_rng(0)
    assert case.graph.indices.dtype == np.int64
    check_advance(build(kind, case.graph), case.W, columns(rng, len(case.W), 5, np.float64), None, rng)


@every_engine
@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("k", [0, 1])
def test_blocks_may_be_empty(kind: Any, n: int, k: int) -> None:
    rng, V = np.random.default_rng(0), np.ones((n, k))
    engine = build(kind, Graph.from_edges([], [], n_nodes=n))
    check_advance(engine, np.zeros((n, n)), V, None, rng)
    check_advance(engine, np.zeros((n, n)), V, np.zeros((n, k), dtype=bool), rng)
    close(engine.squares(engine.load(V))[:k], np.full(k, float(n)), np.float64)


@every_engine
@every_type
@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray, lambda X: np.repeat(X, 2, axis=1)[:, ::2]])
def test_what_is_loaded_comes_back_and_shares_no_memory(kind: Any, dtype: Any, layout: Any) -> None:
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
def test_subtract_and_squares_sum_in_double_precision(kind: Any, dtype: Any, n: int) -> None:
    rng = np.random.default_rng(n)
    graph = Graph.from_edges(rng.integers(0, n, 2 * n), rng.integers(0, n, 2 * n), rng.random(2 * n), n_nodes=n)
    U, V, coefficient = columns(rng, n, 5, dtype), columns(rng, n, 5, dtype), rng.normal(size=5)
    engine = build(kind, graph)
    block = engine.load(U)
    squares = engine.subtract(block, padded(coefficient, block.shape[1]), engine.load(V))
    expected = U - V * coefficient
    close(engine.unload(block, 5), expected, dtype)
    np.testing.assert_allclose(squares[:5], (expected.astype(np.float64) ** 2).sum(axis=0), rtol=1e-6)
    np.testing.assert_allclose(engine.squares(block)[:5], squares[:5], rtol=1e-12)


@every_engine
@every_type
@pytest.mark.parametrize("rows", [None, [3, 0, 0, 12], []])
def test_store_writes_its_slot_and_no_other(kind: Any, dtype: Any, rows: list[int] | None) -> None:
    case = cases.random_case(1)
    V = columns(np.random.default_rng(0), len(case.W), 6, dtype)
    chosen = None if rows is None else np.array(rows, dtype=np.int64)
    window = np.full((5, 3, len(case.W) if chosen is None else len(chosen)), 9.0, dtype=dtype)
    engine = build(kind, case.graph)
    engine.store(engine.load(V), chosen, window, 1)
    close(window[:, 1], (V if chosen is None else V[chosen])[:, :5].T, dtype)
    assert (window[:, [0, 2]] == 9.0).all()


@every_engine
@every_type
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 2, 4), (2, 5, 5)])
@pytest.mark.parametrize("subtracted", [True, False])
def test_mix_multiplies_groups_of_columns_by_small_matrices(
    kind: Any, dtype: Any, shape: tuple[int, int, int], subtracted: bool
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
        engine = build(CpuEngine, graph)
        block = engine.load(V)
        out = engine.like(block)
        mask = engine.mask(V > -1, block.shape[1])
        sums = [engine.advance(block, coefficient, block, coefficient, mask, out)]
        sums.append(engine.subtract(out, coefficient, block))
        results.append([*sums, engine.squares(out), engine.unload(out, 6)])
    numba.set_num_threads(available)
    for one, many in zip(*results, strict=True):
        np.testing.assert_array_equal(one, many)


def test_small_graphs_take_the_plain_engine_and_large_ones_the_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = cases.random_case(1).graph
    arrays = (graph.indptr, graph.indices, graph.weights, graph.degrees)
    assert isinstance(engine_for(*arrays), PlainEngine)
    assert isinstance(graph.engine, PlainEngine)
    monkeypatch.setattr(engines, "_PLAIN_LIMIT", graph.n_edges - 1)
    assert isinstance(engine_for(*arrays), CpuEngine)
    assert graph.engine is graph.engine

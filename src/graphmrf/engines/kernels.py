"""Functions compiled by numba, in every thread and process, and the kernels of its engine.

Each kernel passes over its arrays once.

Two steps of a product are in LLVM vector form: add up the rows that a node's edges point at, then finish the row. numba
assumes that arrays may overlap, and vectorises only rows much longer than ours, so its own code for them is scalar and
two to four times slower. Everything else is left to numba.
"""

from __future__ import annotations

import logging
import os
import threading
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir
from numba import njit, prange, types
from numba.core import cgutils as untyped_cgutils
from numba.extending import intrinsic

from graphmrf.engines.probes import EDGE_MIX

if TYPE_CHECKING:
    from collections.abc import Callable

_LOGGER = logging.getLogger("graphmrf.engines")
_LOCK = threading.RLock()
# Without the lock of the interpreter other threads continue, such as those that keep connections of a worker alive.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract", "nsz", "arcp"}, "nogil": True}


class Kernel:
    """A function compiled for all cores (loops over ``numba.prange``), or for one core in a forked child.

    numba's OpenMP layer ends a forked child that asks for its threads, and its own layer (workqueue) ends a process in
    which two threads ask at once. So kernels take turns, a fork waits for the running one, and its child computes on
    one core. If compiled code cannot be cached, or the cache is damaged, it is compiled again.
    """

    def __init__(self, function: Callable[..., Any], *, parallel: bool = True) -> None:
        self._function, self._parallel = function, parallel
        self.dispatchers: dict[bool, Any] = {}
        self._uncached: set[bool] = set()

    def __call__(self, *arguments: Any) -> Any:
        """Return what the function returns."""
        with _LOCK:
            parallel = self._parallel and not IN_CHILD.is_set()
            try:
                return self._dispatcher(parallel)(*arguments)
            except MemoryError:
                raise
            except Exception as error:  # any error of a damaged cache or a full disk, before the code has run
                if parallel in self._uncached:
                    raise
                self._uncached.add(parallel)
                del self.dispatchers[parallel]
                _LOGGER.warning("compiled code of %s cannot be cached (%r)", self._function.__name__, error)
                return self._dispatcher(parallel)(*arguments)

    def _dispatcher(self, parallel: bool) -> Any:  # noqa: FBT001 - a key
        if parallel not in self.dispatchers:
            function = self._function if parallel else _renamed(self._function)
            cache = parallel not in self._uncached
            self.dispatchers[parallel] = _compiled(function, cache=cache, parallel=parallel)
        return self.dispatchers[parallel]


def _compiled(function: Callable[..., Any], *, cache: bool, parallel: bool) -> Any:
    try:
        return njit(cache=cache, parallel=parallel, **_OPTIONS)(function)
    except RuntimeError as error:
        if not cache or "cannot cache" not in str(error):
            raise
    if not _WARNED.is_set():
        _WARNED.set()
        _LOGGER.warning(
            "no folder for compiled code can be written, so every process compiles it again, for some seconds; "
            "name one with the environment variable NUMBA_CACHE_DIR"
        )
    return njit(parallel=parallel, **_OPTIONS)(function)


def _renamed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a copy of a function under its own name, because numba's cache ignores options."""
    assert isinstance(function, FunctionType)
    copy = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__)
    copy.__qualname__ = f"{function.__qualname__}_serial"
    copy.__module__ = function.__module__
    return copy


IN_CHILD, _WARNED = threading.Event(), threading.Event()


def _in_child() -> None:
    IN_CHILD.set()
    _LOCK.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_in_child)


cgutils: Any = untyped_cgutils
_I32 = ir.IntType(32)
_I64 = ir.IntType(64)


def neighbour_sum(width: int) -> Any:
    """Return the intrinsic for blocks of `width` columns.

    ``add_rows(indices, start, stop, weights, V, column, out, row)`` sets, for the `width` columns from `column` on,
    ``out[row] = sum(weights[e] * V[indices[e]] for e in range(start, stop))``; `weights` may be None.
    """

    @intrinsic
    def add_rows(  # noqa: PLR0913, PLR0917 - numba reads the signature
        _: Any, indices: Any, start: Any, stop: Any, weights: Any, V: Any, column: Any, out: Any, row: Any
    ) -> Any:
        signature = types.void(indices, start, stop, weights, V, column, out, row)
        return signature, lambda *parts: _generate(width, *parts)

    return add_rows


def finish(width: int) -> Any:
    """Return the intrinsic that turns the sum over neighbours into a row of the result.

    ``finish_row(arrays, numbers, row, mask_row, chunk, column)``, with ``arrays = (out, V, previous, scale, back, mask,
    dots)`` and ``numbers = (inverse, loop, degree)``, sets, for the `width` columns from `column` on,
    ``out[row] = ((inverse out[row] + loop V[row]) scale - previous[row] back) mask[mask_row]`` and adds
    ``degree out[row] V[row]`` to ``dots[chunk]``.
    """

    @intrinsic
    def finish_row(_: Any, arrays: Any, numbers: Any, row: Any, mask_row: Any, chunk: Any, column: Any) -> Any:
        signature = types.void(arrays, numbers, row, mask_row, chunk, column)
        return signature, lambda *parts: _generate_finish(width, *parts)

    return finish_row


def _generate_finish(width: int, context: Any, builder: Any, signature: Any, args: Any) -> Any:
    kinds, (row, mask_row, chunk, column) = signature.args[0].types, args[2:]
    packed = cgutils.unpack_tuple(builder, args[0])
    arrays = [cgutils.create_struct_proxy(kind)(context, builder, one) for kind, one in zip(kinds, packed, strict=True)]
    out, V, previous, scale, back, mask, dots = (array.data for array in arrays)
    vector = ir.VectorType(context.get_value_type(kinds[0].dtype), width)
    double = ir.VectorType(ir.DoubleType(), width)
    place, first = (cgutils.unpack_tuple(builder, arrays[1].shape)[1], column), ir.Constant(_I64, 0)

    def load(data: Any, which: Any, kind: Any = vector) -> Any:
        return builder.load(_columns(builder, data, which, place, kind), align=_size(kind.element))

    inverse, loop, degree = cgutils.unpack_tuple(builder, args[1])
    own, flags = load(V, row), {"flags": ["contract"]}
    summed = builder.fmul(_splat(builder, inverse, vector), load(out, row), **flags)
    product = builder.fadd(summed, builder.fmul(_splat(builder, loop, vector), own, **flags), **flags)
    behind = builder.fmul(load(previous, row), load(back, first), **flags)
    value = builder.fsub(builder.fmul(product, load(scale, first), **flags), behind, **flags)
    let_through = builder.uitofp(load(mask, mask_row, ir.VectorType(ir.IntType(8), width)), vector)
    value = builder.fmul(value, let_through, **flags)
    builder.store(value, _columns(builder, out, row, place, vector), align=_size(vector.element))
    pair = [one if vector.element == double.element else builder.fpext(one, double) for one in (value, own)]
    weighted = builder.fmul(builder.fmul(*pair, **flags), _splat(builder, degree, double), **flags)
    total = builder.fadd(load(dots, chunk, double), weighted, **flags)
    builder.store(total, _columns(builder, dots, chunk, place, double), align=8)
    return context.get_dummy_value()


def _generate(width: int, context: Any, builder: Any, signature: Any, args: Any) -> Any:
    which = [k for k in (0, 3, 4, 6) if not isinstance(signature.args[k], types.NoneType)]
    arrays = {k: cgutils.create_struct_proxy(signature.args[k])(context, builder, args[k]) for k in which}
    vector = ir.VectorType(context.get_value_type(signature.args[4].dtype), width)
    place = cgutils.unpack_tuple(builder, arrays[4].shape)[1], args[5]
    start, stop, row = args[1], args[2], args[7]
    entry, loop, end = builder.block, builder.append_basic_block("edge"), builder.append_basic_block("done")
    zero = ir.Constant(vector, [0.0] * width)
    builder.cbranch(builder.icmp_signed("<", start, stop), loop, end)

    builder.position_at_end(loop)
    edge, total = builder.phi(_I64), builder.phi(vector)
    _prefetch(builder, arrays, edge, place, vector)
    new_total = builder.fadd(_neighbour(builder, arrays, edge, place, vector), total, flags=["contract"])
    next_edge = builder.add(edge, ir.Constant(_I64, 1))
    for phi, first, later in ((edge, start, next_edge), (total, zero, new_total)):
        phi.add_incoming(first, entry)
        phi.add_incoming(later, loop)
    builder.cbranch(builder.icmp_signed("<", next_edge, stop), loop, end)

    builder.position_at_end(end)
    result = builder.phi(vector)
    result.add_incoming(zero, entry)
    result.add_incoming(new_total, loop)
    builder.store(result, _columns(builder, arrays[6].data, row, place, vector), align=_size(vector.element))
    return context.get_dummy_value()


def _neighbour(builder: Any, arrays: Any, edge: Any, place: Any, vector: Any) -> Any:
    """Load the columns of the node an edge points at, times the weight of the edge where there are weights."""
    there = _columns(builder, arrays[4].data, _node(builder, arrays, edge), place, vector)
    values = builder.load(there, align=_size(vector.element))
    if 3 not in arrays:
        return values
    weight = builder.load(builder.gep(arrays[3].data, [edge]))
    return builder.fmul(_splat(builder, weight, vector), values, flags=["contract"])


def _node(builder: Any, arrays: Any, edge: Any) -> Any:
    """Load the number of the node an edge points at."""
    node = builder.load(builder.gep(arrays[0].data, [edge]))
    return builder.zext(node, _I64) if node.type.width < 64 else node


def _prefetch(  # noqa: PLR0913, PLR0917 - what `_generate` has
    builder: Any, arrays: Any, edge: Any, place: Any, vector: Any, ahead_by: int = 32, memory_line: int = 64
) -> None:
    """Prefetch the columns of the node that the 32nd edge from here points at, of this row or a next one.

    With 16 columns these are 4 kB, an eighth of the first cache; on a graph of a million nodes products take half the
    time or less (`benchmarks/smoothing.py`). Memory sends lines of 64 bytes.
    """
    last = builder.sub(arrays[0].nitems, ir.Constant(_I64, 1))
    ahead = builder.add(edge, ir.Constant(_I64, ahead_by))
    ahead = builder.select(builder.icmp_signed("<", ahead, last), ahead, last)
    byte = ir.IntType(8).as_pointer()
    there = _columns(builder, arrays[4].data, _node(builder, arrays, ahead), place, vector)
    start = builder.bitcast(there, byte)
    kind = ir.FunctionType(ir.VoidType(), [byte, _I32, _I32, _I32])
    prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
    for line in range(0, vector.count * _size(vector.element), memory_line):
        where = builder.gep(start, [ir.Constant(_I64, line)])
        builder.call(prefetch, [where, ir.Constant(_I32, 0), ir.Constant(_I32, 3), ir.Constant(_I32, 1)])


def _columns(builder: Any, data: Any, row: Any, place: Any, vector: Any) -> Any:
    """Point at the columns of a row; `place` is the length of rows and the first of the columns."""
    stride, column = place
    return builder.bitcast(builder.gep(data, [builder.add(builder.mul(row, stride), column)]), vector.as_pointer())


def _splat(builder: Any, scalar: Any, vector: Any) -> Any:
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(_I32, 0))
    lanes = ir.Constant(ir.VectorType(_I32, vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, undefined, lanes)


def _size(real: Any) -> int:
    """Return the size in bytes of an LLVM type: rows are aligned to no more than that."""
    if isinstance(real, ir.IntType):
        return int(real.width) // 8
    return 8 if isinstance(real, ir.DoubleType) else 4


_add_16, _finish_16 = neighbour_sum(16), finish(16)
_add_8, _finish_8 = neighbour_sum(8), finish(8)
_add_4, _finish_4 = neighbour_sum(4), finish(4)
_add_1, _finish_1 = neighbour_sum(1), finish(1)


@njit(inline="always")  # part of the kernel that calls it, and cached with it
def _row(edges: Any, arrays: Any, numbers: Any, i: Any, mask_row: Any, t: Any) -> None:
    """Compute one row of `advance`, by the widest groups of columns that fit."""
    indices, start, stop, weights = edges
    out, V = arrays[0], arrays[1]
    width = V.shape[1]
    c = 0
    while width - c >= 16:
        _add_16(indices, start, stop, weights, V, c, out, i)
        _finish_16(arrays, numbers, i, mask_row, t, c)
        c += 16
    while width - c >= 8:
        _add_8(indices, start, stop, weights, V, c, out, i)
        _finish_8(arrays, numbers, i, mask_row, t, c)
        c += 8
    while width - c >= 4:
        _add_4(indices, start, stop, weights, V, c, out, i)
        _finish_4(arrays, numbers, i, mask_row, t, c)
        c += 4
    while c < width:
        _add_1(indices, start, stop, weights, V, c, out, i)
        _finish_1(arrays, numbers, i, mask_row, t, c)
        c += 1


@Kernel
def advance(  # noqa: PLR0913, PLR0917 - a kernel takes every array it touches
    indptr: Any,
    indices: Any,
    weights: Any,
    degrees: Any,
    V: Any,
    scale: Any,
    previous: Any,
    back: Any,
    mask: Any,
    out: Any,
    chunks: Any,
) -> Any:
    """Set ``out = mask * ((I - N) V scale - previous back)``; return its inner products with V scale, by chunk."""
    width = V.shape[1]
    masked = 1 if mask.shape[0] > 1 else 0
    dots = np.zeros((len(chunks) - 1, width))
    for t in prange(len(chunks) - 1):
        for i in range(chunks[t], chunks[t + 1]):
            start, stop = np.int64(indptr[i]), np.int64(indptr[i + 1])
            loop, inverse = V.dtype.type(start == stop), V.dtype.type(1.0 / degrees[i])
            edges, arrays = (indices, start, stop, weights), (out, V, previous, scale, back, mask, dots)
            _row(edges, arrays, (inverse, loop, degrees[i]), np.int64(i), np.int64(i * masked), np.int64(t))
        for c in range(width):
            dots[t, c] *= scale[c]
    return dots


@Kernel
def subtract(out: Any, coefficient: Any, V: Any, degrees: Any, chunks: Any) -> Any:
    """Compute ``out -= V coefficient``; return the sums of squares of the result, chunk by chunk."""
    width = V.shape[1]
    squares = np.zeros((len(chunks) - 1, width))
    for t in prange(len(chunks) - 1):
        for i in range(chunks[t], chunks[t + 1]):
            for c in range(width):
                value = out[i, c] - coefficient[c] * V[i, c]
                out[i, c] = value
                squares[t, c] += degrees[i] * np.float64(value) * np.float64(value)
    return squares


@Kernel
def store(V: Any, rows: Any, roots: Any, window: Any, slot: Any, chunks: Any) -> None:
    """Set ``window[c, slot, r] = V[rows[r], c] * roots[rows[r]]``; an empty `rows` means all rows."""
    for t in prange(len(chunks) - 1):
        for r in range(chunks[t], chunks[t + 1]):
            i = rows[r] if len(rows) else r
            for c in range(window.shape[0]):
                window[c, slot, r] = V[i, c] * roots[i, 0]


@Kernel
def scale(V: Any, factors: Any, kinds: Any, minus: Any, out: Any, chunks: Any) -> None:
    """Set ``out = V factors[kinds] - minus``, one factor a row; an empty `minus` subtracts nothing."""
    for t in prange(len(chunks) - 1):
        for i in range(chunks[t], chunks[t + 1]):
            factor = factors[kinds[i]]
            if minus.shape[0]:
                for c in range(out.shape[1]):
                    out[i, c] = V[i, c] * factor - minus[i, c]
            else:
                for c in range(out.shape[1]):
                    out[i, c] = V[i, c] * factor


@Kernel
def mix(V: Any, tables: Any, kinds: Any, minus: Any, out: Any, chunks: Any) -> None:
    """Set ``out = V tables[kinds] - minus`` group by group; an empty `minus` subtracts nothing, padding becomes 0."""
    q, r = tables.shape[1], tables.shape[2]
    n_groups = min(V.shape[1] // q, out.shape[1] // r)
    for t in prange(len(chunks) - 1):
        for i in range(chunks[t], chunks[t + 1]):
            for c in range(out.shape[1]):
                out[i, c] = -minus[i, c] if minus.shape[0] else 0.0
            for pair in range(n_groups * q):
                group, a = divmod(pair, q)
                for c in range(r):
                    out[i, group * r + c] += V[i, pair] * tables[kinds[i], a, c]


@Kernel
def combine(window: Any, coefficients: Any, keep: Any, out: Any, chunks: Any) -> None:
    """Set ``out[c] = keep[c] out[c] + coefficients[c] @ window[c]``, by chunks of rows that stay in the cache."""
    k, n_shifts, n_slots = coefficients.shape
    for t in prange(len(chunks) - 1):
        rows = slice(chunks[t], chunks[t + 1])
        for c in range(k):
            for s in range(n_shifts):
                total = out[c, s, rows]
                if keep[c, s] != 1.0:
                    total *= keep[c, s]
                _add(total, coefficients[c, s], window[c, :n_slots, rows])


@njit(inline="always")
def _add(total: Any, factors: Any, vectors: Any) -> None:
    """Add ``factors @ vectors``; zeros are of shifts that have converged, and off the diagonal of p -> x."""
    wide = factors.size - factors.size % 4
    for slot in range(0, wide, 4):
        if factors[slot : slot + 4].any():
            _add_four(total, factors[slot : slot + 4], vectors[slot : slot + 4])
    for slot in range(wide, factors.size):
        if factors[slot] != 0.0:
            for r in range(total.size):
                total[r] += factors[slot] * vectors[slot][r]


@njit(inline="always")
def _add_four(total: Any, factors: Any, vectors: Any) -> None:
    """Add four vectors at once: `total` is read and written once for all of them."""
    a, b, c, d = vectors[0], vectors[1], vectors[2], vectors[3]
    p, q, s, t = factors[0], factors[1], factors[2], factors[3]  # in registers: arrays might overlap with `total`
    for r in range(total.size):
        total[r] += p * a[r] + q * b[r] + s * c[r] + t * d[r]


@njit(inline="always")
def _sum(edges: Any, V: Any, out: Any, i: Any) -> None:
    """Set a row of `out` to the sum over its edges, by the widest groups of columns that fit."""
    indices, start, stop, weights = edges
    width, c = V.shape[1], 0
    while width - c >= 8:
        _add_8(indices, start, stop, weights, V, c, out, i)
        c += 8
    while width - c >= 4:
        _add_4(indices, start, stop, weights, V, c, out, i)
        c += 4
    while c < width:
        _add_1(indices, start, stop, weights, V, c, out, i)
        c += 1


@Kernel
def affine(  # noqa: PLR0913, PLR0917 - a kernel takes every array it touches
    indptr: Any, indices: Any, weights: Any, V: Any, B: Any, numbers: Any, out: Any, chunks: Any
) -> None:
    """Set ``out = a V + b B + c M V`` for the sparse matrix `M` and numbers (a, b, c); an empty `B` adds nothing."""
    a, b, c = numbers
    for t in prange(len(chunks) - 1):
        for i in range(chunks[t], chunks[t + 1]):
            edges = (indices, np.int64(indptr[i]), np.int64(indptr[i + 1]), weights)
            _sum(edges, V, out, np.int64(i))
            for j in range(V.shape[1]):
                value = c * out[i, j]
                if a != 0.0:
                    value += a * V[i, j]
                if B.shape[0]:
                    value += b * B[i, j]
                out[i, j] = value


_A, _B, _FIRST, _C, _SECOND, _D, _THIRD = EDGE_MIX


@njit(inline="always")
def _edge_word(key: Any, low: Any, high: Any) -> Any:
    """Return what `graphmrf.engines.probes.edge_words` does, of one edge."""
    word = key + np.uint64(low) * _A + np.uint64(high) * _B
    word = (word ^ (word >> _FIRST)) * _C
    word = (word ^ (word >> _SECOND)) * _D
    return word ^ (word >> _THIRD)


@Kernel
def sum_edges(rows: Any, first: Any, key: Any, out: Any, chunks: Any) -> None:
    """Set row r of `out`, of node ``first + r``, to what `graphmrf.engines.probes.edge_sums` returns."""
    indptr, indices, roots = rows
    for t in prange(len(chunks) - 1):
        for r in range(chunks[t], chunks[t + 1]):
            i = np.int64(first + r)
            for c in range(out.shape[1]):
                out[r, c] = 0.0
            for e in range(indptr[r], indptr[r + 1]):
                j = np.int64(indices[e])
                word = _edge_word(key, min(i, j), max(i, j))
                root = np.float32(roots[e] if roots.size else 1.0)
                if j < i:
                    root = -root
                for c in range(out.shape[1]):
                    out[r, c] += root if (word >> np.uint64(c)) & np.uint64(1) else -root

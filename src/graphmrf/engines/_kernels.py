"""Kernels of the numba engine; each passes over its arrays once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange

from graphmrf.engines._simd import finish, gather
from graphmrf.engines.compiled import Kernel
from graphmrf.engines.probes import EDGE_MIX

_add_16, _finish_16 = gather(16), finish(16)
_add_8, _finish_8 = gather(8), finish(8)
_add_4, _finish_4 = gather(4), finish(4)
_add_1, _finish_1 = gather(1), finish(1)


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
    """Set ``window[c, slot, r] = V[rows[r], c] * roots[rows[r]]``; an empty `rows` stands for all of them."""
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
            _add_one(total, factors[slot], vectors[slot])


@njit(inline="always")
def _add_four(total: Any, factors: Any, vectors: Any) -> None:
    """Add four vectors at once: `total` is read and written once for all of them."""
    a, b, c, d = vectors[0], vectors[1], vectors[2], vectors[3]
    p, q, s, t = factors[0], factors[1], factors[2], factors[3]  # in registers: arrays might overlap with `total`
    for r in range(total.size):
        total[r] += p * a[r] + q * b[r] + s * c[r] + t * d[r]


@njit(inline="always")
def _add_one(total: Any, factor: Any, vector: Any) -> None:
    for r in range(total.size):
        total[r] += factor * vector[r]


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
def sum_signs(rows: Any, first: Any, key: Any, out: Any, chunks: Any) -> None:
    """Set row r of `out`, of node ``first + r``, to the sum of its edges' random signs times roots of weights.

    The lower end of an edge sees the sign, the other its opposite. Empty roots are all 1, and `out` has at most 64
    columns.
    """
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

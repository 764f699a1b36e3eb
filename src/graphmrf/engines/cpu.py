"""The engine for large graphs on one machine: numba kernels over all cores, float32 or float64."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from graphmrf.engines import _kernels

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats, Ints

_CHUNK_COST = 20_000
"""Edges and rows of work per chunk: enough chunks to balance the cores, few enough that sums stay small."""


class CpuEngine:
    """Products by :math:`I - N` in compiled, parallel passes; blocks are arrays (n, width), zero columns as padding.

    A block holds :math:`D^{-1/2} V` instead of V, because then an edge of an unweighted graph is one addition of rows
    and looks nothing else up; inner products weigh a row by its degree to make up for it. (Isolated nodes count as
    degree 1.) Sums are taken chunk by chunk in float64 and added in a fixed order: the number of threads changes no
    result.

    Parameters
    ----------
    indptr, indices, weights : arrays
        Compressed rows of the adjacency; `weights` is None for an unweighted graph.
    degrees : array of shape (n,)
        Row sums of the adjacency.
    """

    def __init__(self, indptr: Ints, indices: Ints, weights: Floats | None, degrees: Floats) -> None:
        self.n = degrees.size
        self._indptr, self._indices, self._weights = indptr, indices, weights
        self._degrees = np.where(degrees > 0, degrees, 1.0)
        self._roots = np.sqrt(self._degrees)[:, None]
        self._typed_weights: dict[np.dtype[np.floating], Floats | None] = {}

    def load(self, X: Floats) -> Floats:
        """Return the columns of `X`, padded with zeros to a width the kernels like."""
        X = np.asarray(X)
        block = np.zeros((self.n, _width(X.shape[1])), dtype=X.dtype)
        np.divide(X, self._roots, out=block[:, : X.shape[1]], casting="same_kind")
        return block

    def unload(self, V: Floats, k: int) -> Floats:
        """Return the first `k` columns."""
        return np.multiply(V[:, :k], self._roots, dtype=V.dtype, casting="same_kind")

    def mask(self, allowed: Bools | None, width: int) -> Bools:
        """Return `allowed` padded to `width`, or one row of True for None."""
        if allowed is None:
            return np.ones((1, width), dtype=bool)
        block = np.zeros((self.n, width), dtype=bool)
        block[:, : allowed.shape[1]] = allowed
        return block

    def like(self, V: Floats) -> Floats:
        """Return an uninitialised array of the same shape and type."""
        return np.empty_like(V)

    def squares(self, V: Floats) -> Floats:
        """Return the sum of squares of every column."""
        total: Floats = np.einsum("i,ij,ij->j", self._degrees, V, V, dtype=np.float64)
        return total

    def advance(self, V: Floats, scale: Floats, previous: Floats, back: Floats, mask: Bools, out: Floats) -> Floats:
        """Set ``out = mask * ((I - N) V scale - previous back)`` and return the inner products of V scale with it."""
        weights, scale, back = self._weights_in(V.dtype), scale.astype(V.dtype), back.astype(V.dtype)
        edges = (self._indptr, self._indices, weights, self._degrees)
        dots: Floats = _kernels.advance(*edges, V, scale, previous, back, mask, out, self._edge_chunks)
        return np.asarray(dots.sum(axis=0))

    def subtract(self, out: Floats, coefficient: Floats, V: Floats) -> Floats:
        """Set ``out -= V coefficient`` and return the sum of squares of every column of the result."""
        squares: Floats = _kernels.subtract(
            out, coefficient.astype(V.dtype), V, self._degrees, self._row_chunks(self.n)
        )
        return np.asarray(squares.sum(axis=0))

    def mix(self, V: Floats, tables: Floats, kinds: Ints, minus: Floats | None, out: Floats) -> None:
        """Set ``out = V tables - minus`` with the small matrix ``tables[kinds[i]]`` at row i."""
        rows = self._row_chunks(self.n)
        subtracted = np.empty((0, 0), dtype=out.dtype) if minus is None else minus
        _kernels.mix(V, tables.astype(V.dtype, copy=False), kinds, subtracted, out, rows)

    def store(self, V: Floats, rows: Ints | None, window: Floats, slot: int) -> None:
        """Set ``window[c, slot, r] = V[rows[r], c]``."""
        rows = np.empty(0, dtype=np.int64) if rows is None else np.asarray(rows, dtype=np.int64)
        _kernels.store(V, rows, self._roots, window, slot, self._row_chunks(window.shape[2]))

    def combine(self, window: Floats, coefficients: Floats, out: Floats) -> None:
        """Add ``coefficients[c] @ window[c]`` to ``out[c]``."""
        _kernels.combine(window, coefficients, out, self._row_chunks(window.shape[2]))

    def _weights_in(self, dtype: np.dtype[np.floating]) -> Floats | None:
        if dtype not in self._typed_weights:
            self._typed_weights[dtype] = None if self._weights is None else self._weights.astype(dtype)
        return self._typed_weights[dtype]

    @cached_property
    def _edge_chunks(self) -> Ints:
        cost = self._indptr.astype(np.int64) + 4 * np.arange(self.n + 1)
        n_chunks = max(1, int(cost[-1]) // _CHUNK_COST)
        return np.searchsorted(cost, np.linspace(0, cost[-1], n_chunks + 1)).astype(np.int64)

    def _row_chunks(self, n_rows: int) -> Ints:
        n_chunks = max(1, n_rows // 4096)
        return np.linspace(0, n_rows, n_chunks + 1).astype(np.int64)


def _width(k: int) -> int:
    if k <= 1:
        return k
    return 4 if k <= 4 else -(-k // 8) * 8

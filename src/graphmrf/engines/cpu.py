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

    Sums are taken chunk by chunk in float64 and added in a fixed order: the number of threads changes no result.

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
        self._d = np.divide(1.0, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)
        self._factors: dict[np.dtype[np.floating], tuple[Floats, Floats]] = {}

    def load(self, X: Floats) -> Floats:
        """Return the columns of `X`, padded with zeros to a width the kernels like."""
        X = np.asarray(X)
        block = np.zeros((self.n, _width(X.shape[1])), dtype=X.dtype)
        block[:, : X.shape[1]] = X
        return block

    def unload(self, V: Floats, k: int) -> Floats:
        """Return the first `k` columns."""
        return V[:, :k]

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
        total: Floats = np.einsum("ij,ij->j", V, V, dtype=np.float64)
        return total

    def advance(self, V: Floats, scale: Floats, previous: Floats, back: Floats, mask: Bools, out: Floats) -> Floats:
        """Set ``out = mask * ((I - N) V scale - previous back)`` and return the inner products of V scale with it."""
        factors, d = self._in(V.dtype)
        scale, back = scale.astype(V.dtype), back.astype(V.dtype)
        dots: Floats = _kernels.advance(
            self._indptr, self._indices, factors, d, V, scale, previous, back, mask, out, self._edge_chunks
        )
        return np.asarray(dots.sum(axis=0))

    def subtract(self, out: Floats, coefficient: Floats, V: Floats) -> Floats:
        """Set ``out -= V coefficient`` and return the sum of squares of every column of the result."""
        squares: Floats = _kernels.subtract(out, coefficient.astype(V.dtype), V, self._row_chunks(self.n))
        return np.asarray(squares.sum(axis=0))

    def store(self, V: Floats, rows: Ints | None, window: Floats, slot: int) -> None:
        """Set ``window[c, slot, r] = V[rows[r], c]``."""
        rows = np.empty(0, dtype=np.int64) if rows is None else np.asarray(rows, dtype=np.int64)
        _kernels.store(V, rows, window, slot, self._row_chunks(window.shape[2]))

    def _in(self, dtype: np.dtype[np.floating]) -> tuple[Floats, Floats]:
        """Return what an edge multiplies by, per node or (shape (1, m)) per edge, and :math:`D^{-1/2}`, in `dtype`."""
        if dtype not in self._factors:
            d = self._d.astype(dtype)
            per_edge = None if self._weights is None else (self._weights * self._d[self._indices]).astype(dtype)
            self._factors[dtype] = (d if per_edge is None else per_edge[None, :], d)
        return self._factors[dtype]

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

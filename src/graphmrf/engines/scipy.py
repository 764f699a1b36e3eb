"""The engine for small graphs: SciPy products and plain arrays, nothing to compile."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy import sparse

from graphmrf.engines.protocol import Engine

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from graphmrf._typing import Bools, Floats, Ints


HostWindow: TypeAlias = "tuple[Floats, Ints | None]"
"""A window in main memory: values of shape (k, slots, n_rows), and the rows, None for all of them."""


class ScipyEngine(Engine):
    """Products by :math:`I - N` with SciPy; blocks are plain arrays of shape (n, k).

    `indptr`, `indices`, `weights`: compressed rows of the adjacency; `weights` is None for an unweighted graph.
    `degrees` (n,): row sums of the adjacency.
    """

    def __init__(self, indptr: Ints, indices: Ints, weights: Floats | None, degrees: Floats) -> None:
        self.n = degrees.size
        self._operators: dict[np.dtype[np.floating], sparse.csr_array] = {}
        d = np.divide(1.0, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)
        values = np.repeat(d, np.diff(indptr)) * d[indices]
        if weights is not None:
            values *= weights
        S = sparse.csr_array((values, indices, indptr), shape=(self.n, self.n))
        loops = sparse.diags_array((degrees == 0).astype(np.float64))
        self._operators[np.dtype(np.float64)] = sparse.csr_array(S + loops)

    def load(self, X: Floats, rows: Ints | None = None) -> Floats:
        if rows is None:
            return np.array(X, order="C")
        block = self.zeros(X.shape[1], X.dtype)
        block[rows] = X
        return block

    def unload(self, V: Floats, k: int, rows: Ints | None = None) -> Floats:
        return V[:, :k] if rows is None else V[rows, :k]

    def zeros(self, k: int, dtype: DTypeLike = np.float64) -> Floats:
        return np.zeros((self.n, k), dtype=dtype)

    def mask(self, allowed: Bools | None, width: int, rows: Ints | None = None) -> Bools:
        if allowed is None or rows is None:
            return np.ones((1, width), dtype=bool) if allowed is None else allowed
        block = np.ones((self.n, width), dtype=bool)
        block[rows] = allowed
        return block

    def like(self, V: Floats) -> Floats:
        return np.empty_like(V)

    def advance(self, V: Floats, scale: Floats, previous: Floats, back: Floats, mask: Bools, out: Floats) -> Floats:
        np.multiply(self._operator(V.dtype) @ V, scale.astype(V.dtype), out=out)
        out -= previous * back.astype(V.dtype)
        out *= mask
        return _column_dots(V, out) * scale

    def subtract(self, out: Floats, coefficient: Floats, V: Floats) -> Floats:
        out -= V * coefficient.astype(V.dtype)
        return _column_dots(out, out)

    def mix(self, V: Floats, tables: Floats, kinds: Ints, minus: Floats | None, out: Floats) -> None:
        if tables.shape[1:] == (1, 1):  # a product of rows and numbers, for which matmul is ten times slower
            np.multiply(V, tables[kinds, 0], out=out)
        else:
            mixed = np.matmul(V.reshape(self.n, V.shape[1] // tables.shape[1], tables.shape[1]), tables[kinds])
            out[:] = mixed.reshape(out.shape)
        if minus is not None:
            out -= minus

    def window(self, k: int, slots: int, rows: Ints | None, dtype: DTypeLike = np.float64) -> HostWindow:
        """Return a window of zeros."""
        return np.zeros((k, slots, self.n if rows is None else len(rows)), dtype=dtype), rows

    def store(self, V: Floats, window: HostWindow, slot: int) -> None:
        values, rows = window
        values[:, slot] = (V if rows is None else V[rows]).T[: len(values)]

    def restore(self, window: HostWindow, slot: int, out: Floats) -> None:
        out[:, : len(window[0])] = window[0][:, slot].T
        out[:, len(window[0]) :] = 0.0

    def combine(self, window: HostWindow, coefficients: Floats, out: HostWindow, keep: Floats | None = None) -> None:
        weights = coefficients.astype(out[0].dtype, copy=False)
        if keep is not None:
            np.multiply(out[0], keep[:, :, None], out=out[0], casting="same_kind")
        np.add(out[0], weights @ window[0][:, : weights.shape[2]], out=out[0])

    def read(self, window: HostWindow) -> Floats:
        return window[0]

    def _operator(self, dtype: np.dtype[np.floating]) -> sparse.csr_array:
        if dtype not in self._operators:
            self._operators[dtype] = self._operators[np.dtype(np.float64)].astype(dtype)
        return self._operators[dtype]


def _column_dots(U: Floats, V: Floats) -> Floats:
    result: Floats = np.einsum("ij,ij->j", U, V, dtype=np.float64)
    return result

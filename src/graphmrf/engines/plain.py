"""The engine for small graphs: SciPy products, nothing to compile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats, Ints


class PlainEngine:
    """Products by :math:`I - N` with SciPy; blocks are plain arrays of shape (n, k).

    Parameters
    ----------
    indptr, indices, weights : arrays
        Compressed rows of the adjacency; `weights` is None for an unweighted graph.
    degrees : array of shape (n,)
        Row sums of the adjacency.
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

    def load(self, X: Floats) -> Floats:
        """Return a copy of `X`."""
        return np.array(X, order="C")

    def unload(self, V: Floats, k: int) -> Floats:
        """Return the first `k` columns."""
        return V[:, :k]

    def mask(self, allowed: Bools | None, width: int) -> Bools:
        """Return `allowed`, or one row of True for None."""
        return np.ones((1, width), dtype=bool) if allowed is None else allowed

    def like(self, V: Floats) -> Floats:
        """Return an uninitialised array of the same shape and type."""
        return np.empty_like(V)

    def squares(self, V: Floats) -> Floats:
        """Return the sum of squares of every column."""
        return _column_dots(V, V)

    def advance(self, V: Floats, scale: Floats, previous: Floats, back: Floats, mask: Bools, out: Floats) -> Floats:
        """Set ``out = mask * ((I - N) V scale - previous back)`` and return the inner products of V scale with it."""
        np.multiply(self._operator(V.dtype) @ V, scale.astype(V.dtype), out=out)
        out -= previous * back.astype(V.dtype)
        out *= mask
        return _column_dots(V, out) * scale

    def subtract(self, out: Floats, coefficient: Floats, V: Floats) -> Floats:
        """Set ``out -= V coefficient`` and return the sum of squares of every column of the result."""
        out -= V * coefficient.astype(V.dtype)
        return _column_dots(out, out)

    def mix(self, V: Floats, tables: Floats, kinds: Ints, minus: Floats | None, out: Floats) -> None:
        """Set ``out = V tables - minus`` with the small matrix ``tables[kinds[i]]`` at row i."""
        mixed = np.matmul(V.reshape(self.n, -1, tables.shape[1]), tables[kinds])
        np.subtract(mixed.reshape(out.shape), 0.0 if minus is None else minus, out=out)

    def store(self, V: Floats, rows: Ints | None, window: Floats, slot: int) -> None:
        """Set ``window[c, slot, r] = V[rows[r], c]``."""
        window[:, slot, :] = (V if rows is None else V[rows]).T[: len(window)]

    def combine(self, window: Floats, coefficients: Floats, out: Floats) -> None:
        """Add ``coefficients[c] @ window[c]`` to ``out[c]``."""
        out += coefficients @ window[:, : coefficients.shape[2]]

    def _operator(self, dtype: np.dtype[np.floating]) -> sparse.csr_array:
        if dtype not in self._operators:
            self._operators[dtype] = self._operators[np.dtype(np.float64)].astype(dtype)
        return self._operators[dtype]


def _column_dots(U: Floats, V: Floats) -> Floats:
    result: Floats = np.einsum("ij,ij->j", U, V, dtype=np.float64)
    return result

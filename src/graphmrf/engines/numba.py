"""The engine for large graphs on one machine: numba kernels over all cores, float32 or float64."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee

from graphmrf.caching import cached_property
from graphmrf.engines import kernels
from graphmrf.engines.protocol import Engine

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import DTypeLike

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.engines.scipy import HostWindow


class NumbaEngine(Engine):
    """Products by :math:`I - N` in compiled, parallel passes; blocks are arrays (n, width), zero columns as padding.

    A block holds :math:`D^{-1/2} V` instead of V, because then an edge of an unweighted graph is one addition of rows;
    inner products weigh a row by its degree to make up for it. (Isolated nodes count as degree 1.) Sums are taken chunk
    by chunk in float64 and added in a fixed order: the number of threads changes no result.

    `order` (n,): nodes of the caller in the order of the rows, in which neighbours are near; callers see none of it.
    `chunk_cost`: work per chunk of a product, an edge counting 1 and a row 4. `chunk_rows`: rows per chunk of the
    passes without edges: 16 columns of them are 512 kB, inside a core's cache.
    """

    def __init__(  # noqa: PLR0913 - the graph, and how it is computed
        self,
        indptr: Ints,
        indices: Ints,
        weights: Floats | None,
        degrees: Floats,
        *,
        order: Ints | None = None,
        chunk_cost: int = 20_000,
        chunk_rows: int = 4096,
    ) -> None:
        self.n, self._chunk_cost, self._chunk_rows, self._order = degrees.size, chunk_cost, chunk_rows, order
        self._place = None if order is None else _inverse(order)
        self._indptr, self._indices, self._weights = indptr, indices, weights
        self._degrees = np.where(degrees > 0, degrees, 1.0)
        self._roots = np.sqrt(self._degrees)[:, None]
        self._typed_weights: dict[np.dtype[np.floating], Floats | None] = {}
        self._chunks: dict[int, Ints] = {}

    def load(self, X: Floats, rows: Ints | None = None) -> Floats:
        X = np.asarray(X)
        block = self.zeros(X.shape[1], X.dtype)
        if rows is None:
            np.divide(self._ordered(X), self._roots, out=block[:, : X.shape[1]], casting="same_kind")
        else:
            rows = self._places(rows)
            block[rows, : X.shape[1]] = X / self._roots[rows]
        return block

    def unload(self, V: Floats, k: int, rows: Ints | None = None) -> Floats:
        rows = self._places(rows)
        wanted, roots = (V[:, :k], self._roots) if rows is None else (V[rows, :k], self._roots[rows])
        return np.multiply(wanted, roots, dtype=V.dtype, casting="same_kind")

    def zeros(self, k: int, dtype: DTypeLike = np.float64) -> Floats:
        return _aligned(np.zeros, (self.n, padded_width(k)), np.dtype(dtype))

    def mask(self, allowed: Bools | None, width: int, rows: Ints | None = None) -> Bools:
        if allowed is None:
            return np.ones((1, width), dtype=bool)
        block = np.zeros((self.n, width), dtype=bool)
        block[:, : allowed.shape[1]] = self._ordered(allowed) if rows is None else True
        if rows is not None:
            block[self._places(rows), : allowed.shape[1]] = allowed
        return block

    def like(self, V: Floats) -> Floats:
        return _aligned(np.empty, V.shape, V.dtype)

    def advance(self, V: Floats, scale: Floats, previous: Floats, back: Floats, mask: Bools, out: Floats) -> Floats:
        weights, scale, back = self._weights_in(V.dtype), scale.astype(V.dtype), back.astype(V.dtype)
        edges = (self._indptr, self._indices, weights, self._degrees)
        dots: Floats = kernels.advance(*edges, V, scale, previous, back, mask, out, self._edge_chunks)
        return np.asarray(dots.sum(axis=0))

    def subtract(self, out: Floats, coefficient: Floats, V: Floats) -> Floats:
        squares: Floats = kernels.subtract(out, coefficient.astype(V.dtype), V, self._degrees, self._row_chunks(self.n))
        return np.asarray(squares.sum(axis=0))

    def mix(self, V: Floats, tables: Floats, kinds: Ints, minus: Floats | None, out: Floats) -> None:
        rows, kinds = self._row_chunks(self.n), self._ordered(kinds)
        subtracted = np.empty((0, 0), dtype=out.dtype) if minus is None else minus
        values = tables.astype(V.dtype, copy=False)
        if values.shape[1:] == (1, 1):
            kernels.scale(V, values[:, 0, 0].copy(), kinds, subtracted, out, rows)
        else:
            kernels.mix(V, values, kinds, subtracted, out, rows)

    def window(self, k: int, slots: int, rows: Ints | None, dtype: DTypeLike = np.float64) -> HostWindow:
        """Return a window of zeros; one of all rows has them in the order of blocks until it is read."""
        values = np.zeros((k, slots, self.n if rows is None else len(rows)), dtype=dtype)
        return values, None if rows is None else np.asarray(self._places(rows), dtype=np.int64)

    def store(self, V: Floats, window: HostWindow, slot: int) -> None:
        values, rows = window
        chosen = np.empty(0, dtype=np.int64) if rows is None else rows
        kernels.store(V, chosen, self._roots, values, slot, self._row_chunks(values.shape[2]))

    def restore(self, window: HostWindow, slot: int, out: Floats) -> None:
        k = len(window[0])
        np.divide(window[0][:, slot].T, self._roots, out=out[:, :k], casting="same_kind")
        out[:, k:] = 0.0

    def combine(self, window: HostWindow, coefficients: Floats, out: HostWindow, keep: Floats | None = None) -> None:
        weights = coefficients.astype(out[0].dtype, copy=False)
        kept = np.ones(weights.shape[:2], dtype=weights.dtype) if keep is None else keep.astype(weights.dtype)
        kernels.combine(window[0], weights, kept, out[0], self._row_chunks(out[0].shape[2]))

    def read(self, window: HostWindow) -> Floats:
        values, rows = window
        return values if rows is not None or self._place is None else np.take(values, self._place, axis=2)

    def affine(self, M: Any, V: Floats, B: Floats | None, numbers: tuple[float, float, float]) -> Floats:
        out, rows = np.empty((M.shape[0], V.shape[1]), dtype=V.dtype), self._row_chunks(M.shape[0])
        V, added = np.ascontiguousarray(V), np.ascontiguousarray(np.empty((0, 0), dtype=V.dtype) if B is None else B)
        typed = tuple(V.dtype.type(number) for number in numbers)
        kernels.affine(M.indptr, M.indices, M.data, V, added, typed, out, rows)
        return out

    def _ordered(self, values: Any) -> Any:
        """Return what the caller gave for every node in the order of blocks."""
        return values if self._order is None else values[self._order]

    def _places(self, rows: Ints | None) -> Ints | None:
        """Return the rows of nodes in blocks; None for all, where none was moved."""
        return rows if self._place is None else self._place if rows is None else self._place[rows]

    def _weights_in(self, dtype: np.dtype[np.floating]) -> Floats | None:
        if dtype not in self._typed_weights:
            self._typed_weights[dtype] = None if self._weights is None else self._weights.astype(dtype)
        return self._typed_weights[dtype]

    @cached_property
    def _edge_chunks(self) -> Ints:
        cost = self._indptr.astype(np.int64) + 4 * np.arange(self.n + 1)
        n_chunks = max(1, int(cost[-1]) // self._chunk_cost)
        return np.searchsorted(cost, np.linspace(0, cost[-1], n_chunks + 1)).astype(np.int64)

    def _row_chunks(self, n_rows: int) -> Ints:
        if n_rows not in self._chunks:
            self._chunks[n_rows] = np.linspace(0, n_rows, max(1, n_rows // self._chunk_rows) + 1).astype(np.int64)
        return self._chunks[n_rows]


def _aligned(allocate: Callable[..., Any], shape: tuple[int, ...], dtype: np.dtype[Any], line: int = 64) -> Floats:
    """Return an array whose rows begin with a line of memory: else one of 16 columns takes three lines, not two."""
    size = math.prod(shape) * dtype.itemsize
    raw = allocate(size + line, dtype=np.uint8)
    first = -raw.ctypes.data % line
    return np.asarray(raw[first : first + size].view(dtype).reshape(shape))


def padded_width(k: int) -> int:
    """Return how wide a block of `k` columns is."""
    if k <= 1:
        return k
    return 4 if k <= 4 else -(-k // 8) * 8


def local_engine(
    indptr: Ints, indices: Ints, weights: Floats | None, degrees: Floats, *, smallest: int = 100_000, near: int = 8192
) -> NumbaEngine:
    """Return the engine of a graph, with its nodes reordered where that puts neighbours close to each other."""
    order = local_order(indptr, indices, smallest=smallest, near=near)
    if order is None:
        return NumbaEngine(indptr, indices, weights, degrees)
    return ordered_engine((indptr, indices, weights, degrees), order)


def ordered_engine(graph: tuple[Ints, Ints, Floats | None, Floats], order: Ints) -> NumbaEngine:
    """Return the engine of a graph (compressed rows, weights, degrees) with its nodes in an order."""
    indptr, indices, weights, degrees = graph
    values = np.ones(indices.size, dtype=np.bool_) if weights is None else weights
    rows = sparse.csr_array((values, indices, indptr), shape=2 * (degrees.size,))[order]
    place = _inverse(order)
    W = sparse.csr_array((rows.data, place[rows.indices], rows.indptr), shape=rows.shape)
    W.sort_indices()
    renumbered = W.indptr.astype(indptr.dtype, copy=False), W.indices.astype(indices.dtype, copy=False)
    return NumbaEngine(*renumbered, None if weights is None else W.data, degrees[order], order=order)


def _inverse(order: Ints) -> Ints:
    place = np.empty_like(order)
    place[order] = np.arange(order.size, dtype=order.dtype)
    return place


def local_order(
    indptr: Ints, indices: Ints, *, smallest: int = 100_000, near: int = 8192, far: float = 0.5, sampled: int = 65_536
) -> Ints | None:
    """Return the reverse Cuthill-McKee order of nodes; None where it would help little.

    That is with fewer nodes than `smallest`, whose blocks fit the cache, and where less than the share `far` of
    `sampled` neighbours are more than `near` places apart as they are given, or more than that remain so: a block of 8
    columns of near ones stays in the second-level cache. See `benchmarks/smoothing.py orders`.
    """
    n = indptr.size - 1
    if n < smallest or not indices.size:
        return None
    sample = np.linspace(0, indices.size - 1, sampled).astype(np.int64)
    ends = np.searchsorted(indptr, sample, side="right") - 1, indices[sample]
    if _far_apart(*ends, near) < far or _spreads(indptr, indices, near):
        return None
    bits = np.ones(indices.size, dtype=np.bool_)
    order = reverse_cuthill_mckee(sparse.csr_array((bits, indices, indptr), shape=(n, n)), symmetric_mode=True)
    place = _inverse(order)
    return order if _far_apart(place[ends[0]], place[ends[1]], near) < far else None


def _spreads(indptr: Ints, indices: Ints, many: int, *, steps: int = 64) -> bool:
    """Whether the graph has hubs: a few steps from the node with most neighbours reach too many nodes for any order."""
    frontier = np.array([int(np.argmax(np.diff(indptr)))])
    seen = np.zeros(indptr.size - 1, dtype=np.bool_)
    for _ in range(steps):
        seen[frontier] = True
        near = np.concatenate([indices[indptr[node] : indptr[node + 1]] for node in frontier])
        frontier = np.unique(near[~seen[near]])
        if frontier.size > many or not frontier.size:
            break
    return frontier.size > many


def _far_apart(u: Ints, v: Ints, near: int) -> float:
    return float(np.mean(np.abs(u.astype(np.int64) - v) > near))

r"""Averages over neighbours as differentiable products, on any device of PyTorch.

Engines multiply all rows of a graph and are not differentiable. Networks need products at the few nodes that a batch
reaches, with neighbours drawn again at every step and gradients by the transpose. Neighbours are drawn on the CPU, so
that all devices draw the same, and averaged on the device of the networks (`torch.nn.functional.embedding_bag`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numba import njit
from scipy import sparse
from torch.nn.functional import embedding_bag

from graphmrf.caching import cached_property
from graphmrf.engines.compiled import Kernel

if TYPE_CHECKING:
    from torch import Tensor

    from graphmrf._typing import Floats, Ints
    from graphmrf.graph import Graph

_serial = partial(Kernel, parallel=False)
_ODD = np.uint64(0xBF58476D1CE4E5B9)  # the first multiplier of SplitMix64


@dataclass(frozen=True)
class Hop:
    """Weighted averages at some nodes, over the nodes `sources`: a sparse matrix in compressed rows."""

    sources: Ints  # (n_sources,): nodes whose values are read, those of the rows first
    # pointers, columns, weights (n_rows + 1,), (n_entries,), (n_entries,): the matrix (n_rows, n_sources)
    pointers: Ints
    columns: Ints
    weights: Floats
    device: str  # where it multiplies

    def __call__(self, H: Tensor) -> Tensor:
        """Return the averages (n_rows, k) of values (n_sources, k); differentiable in `H`."""
        return _Product.apply(H, self)

    def multiply(self, H: Tensor) -> Tensor:
        """Return the product, without gradients."""
        pointers, columns, weights = self._tensors
        return embedding_bag(columns, H, pointers, mode="sum", per_sample_weights=weights, include_last_offset=True)

    @cached_property
    def transpose(self) -> Hop:
        """The transposed matrix; its `sources` are the places of the rows."""
        shape = self.pointers.size - 1, self.sources.size
        T = sparse.csr_array((self.weights, self.columns, self.pointers), shape=shape).tocsc()
        pointers, rows = T.indptr.astype(np.int64, copy=False), T.indices.astype(np.int64, copy=False)
        return Hop(np.arange(shape[0]), pointers, rows, np.asarray(T.data, dtype=np.float32), self.device)

    @cached_property
    def _tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        parts = (self.pointers, self.columns, self.weights)
        pointers, columns, weights = (torch.from_numpy(part).to(self.device) for part in parts)
        return pointers, columns, weights


class _Product(torch.autograd.Function):
    """Product by a sparse matrix; PyTorch's own gradient of a weighted sum of rows takes ten times as long."""

    @staticmethod
    def forward(ctx: Any, H: Tensor, hop: Hop) -> Tensor:
        ctx.hop = hop
        return hop.multiply(H)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return ctx.hop.transpose.multiply(gradients[0].contiguous()), None


@dataclass(frozen=True)
class Average:
    """Weighted averages over each node and at most `limit` of its neighbours."""

    # pointers, columns, weights (n + 1,), (n_entries,), (n_entries,): the matrix (n, n) over all neighbours in
    # compressed rows, of which each begins with the node itself
    pointers: Ints
    columns: Ints
    weights: Floats
    # how many neighbours count; where there are more, they are drawn without replacement, and their weights scaled to
    # add up to 1 with that of the node
    limit: int

    @classmethod
    def convolution(cls, graph: Graph) -> Average:
        r"""Return :math:`\tilde S = (D + I)^{-1/2} (W + I) (D + I)^{-1/2}`."""
        graph.require_normalised()
        pointers, columns, weights = _with_loops(graph)
        root = 1.0 / np.sqrt(graph.degrees + 1.0)
        weights *= root[columns] * np.repeat(root, np.diff(pointers))
        return cls(pointers, columns, weights.astype(np.float32), graph.n_nodes)

    @classmethod
    def mean(cls, graph: Graph, limit: int) -> Average:
        """Return the mean, weighted by the edges."""
        pointers, columns, weights = _with_loops(graph)
        weights /= np.repeat(graph.degrees + 1.0, np.diff(pointers))
        return cls(pointers, columns, weights.astype(np.float32), limit)

    @cached_property
    def random(self) -> bool:
        """Whether a node has more neighbours than count."""
        return bool((np.diff(self.pointers) > self.limit + 1).any())

    @cached_property
    def keeps_constants(self) -> bool:
        """Whether the average of a constant is that constant: weights of every node add up to 1."""
        return bool(np.allclose(np.add.reduceat(self.weights, self.pointers[:-1]), 1.0, atol=1e-5))

    def hop(self, rows: Ints, *key: int, device: str = "cpu") -> Hop:
        """Return the averages at some nodes; a node draws the same for the same key, whatever the other rows are."""
        sizes = np.minimum(self.pointers[rows + 1] - self.pointers[rows], self.limit + 1)
        pointers = np.zeros(rows.size + 1, dtype=np.int64)
        np.cumsum(sizes, out=pointers[1:])
        columns, weights = np.empty(pointers[-1], dtype=np.int64), np.empty(pointers[-1], dtype=np.float32)
        sources = np.empty(min(self.pointers.size - 1, int(pointers[-1])), dtype=np.int64)
        matrix = (self.pointers, self.columns, self.weights)
        count = _draw(matrix, rows, _hash(key), (pointers, columns, weights, sources))
        return Hop(sources[:count], pointers, columns, weights, device)


def _with_loops(graph: Graph) -> tuple[Ints, Ints, Floats]:
    """Return compressed rows of W + I, each beginning with the node itself."""
    n = graph.n_nodes
    pointers = graph.indptr.astype(np.int64) + np.arange(n + 1)
    columns = np.insert(graph.indices.astype(np.int64), graph.indptr[:-1], np.arange(n))
    return pointers, columns, np.insert(graph.adjacency.data.astype(np.float64), graph.indptr[:-1], 1.0)


def _hash(key: tuple[int, ...]) -> Any:
    """Return one word of 64 bits for some integers."""
    word = 0
    for part in key:
        word = ((word ^ part) * 0x9E3779B97F4A7C15 + 0xD1B54A32D192ED03) & 0xFFFFFFFFFFFFFFFF
        word ^= word >> 29
    return np.uint64(word)


@_serial
def _draw(matrix: Any, rows: Any, key: Any, out: Any) -> Any:
    """Fill the matrix of averages at some rows; return the number of sources."""
    all_pointers, all_columns, all_weights = matrix
    pointers, columns, weights, sources = out
    place = np.full(all_pointers.size - 1, -1, dtype=np.int64)
    count = rows.size
    for i in range(rows.size):
        sources[i] = rows[i]
        place[rows[i]] = i
    shuffled = np.empty(all_columns.size, dtype=np.int64)
    for i in range(rows.size):
        start, stop, first, last = all_pointers[rows[i]], all_pointers[rows[i] + 1], pointers[i], pointers[i + 1]
        few = last - first < stop - start
        if few:
            _shuffle(shuffled, start + 1, stop, last - first - 1, key + np.uint64(rows[i]) * _ODD)
        total = np.float32(0.0)
        for t in range(last - first):
            entry = shuffled[t - 1] if few and t else start + t
            node = all_columns[entry]
            if place[node] < 0:
                place[node] = count
                sources[count] = node
                count += 1
            columns[first + t], weights[first + t] = place[node], all_weights[entry]
            total += all_weights[entry]
        if few:
            for t in range(first, last):
                weights[t] /= total
    return count


@njit(error_model="numpy")  # part of `_draw`, and cached with it
def _shuffle(out: Any, start: Any, stop: Any, count: Any, state: Any) -> None:
    """Begin `out` with `count` different numbers from start to stop - 1 (SplitMix64, high halves of the words)."""
    for t in range(stop - start):
        out[t] = start + t
    for t in range(count):
        state += np.uint64(0x9E3779B97F4A7C15)
        word = (state ^ (state >> np.uint64(30))) * _ODD
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        word = (word ^ (word >> np.uint64(31))) >> np.uint64(32)
        jump = np.int64((word * np.uint64(stop - start - t)) >> np.uint64(32))
        out[t], out[t + jump] = out[t + jump], out[t]

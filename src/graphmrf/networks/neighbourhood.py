"""Means over a node and a few of its neighbours, drawn only where a batch needs them; on the CPU."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from graphmrf._typing import Floats, Ints
    from graphmrf.graph import Graph

_compiled: Any = njit(cache=True, error_model="numpy", fastmath={"contract", "nsz", "arcp"})
_WORD = (1 << 64) - 1


@dataclass(frozen=True)
class Means:
    """Rows of a matrix of means: each is over few of the nodes `sources`, the nodes of the rows first among them.

    Attributes
    ----------
    sources : integer array of shape (n_sources,)
        Nodes whose values are read.
    pointers, places, weights : arrays of shapes (n_rows + 1,), (n_entries,), (n_entries,)
        The matrix in compressed rows; places count in `sources`.
    """

    sources: Ints
    pointers: Ints
    places: Ints
    weights: Floats

    def __matmul__(self, H: Floats) -> Floats:
        """Return the means (n_rows, k) of values (n_sources, k)."""
        out = np.empty((self.pointers.size - 1, H.shape[1]), dtype=np.float32)
        _multiply(self.pointers, self.places, self.weights, H, out)
        return out

    def transposed(self, G: Floats) -> Floats:
        """Return the product (n_sources, k) of the transpose and `G` (n_rows, k)."""
        out = np.zeros((self.sources.size, G.shape[1]), dtype=np.float32)
        _multiply_transpose(self.pointers, self.places, self.weights, G, out)
        return out


@dataclass(frozen=True)
class Neighbourhood:
    """A graph of which a mean takes at most `limit` neighbours of a node, and the node.

    Attributes
    ----------
    indptr, indices, weights : arrays of shapes (n + 1,), (n_entries,), (n_entries,)
        The edges.
    limit : int
        How many neighbours count; drawn without replacement where there are more.
    """

    indptr: Ints
    indices: Ints
    weights: Floats
    limit: int

    @classmethod
    def of(cls, graph: Graph, limit: int) -> Neighbourhood:
        """Return the edges of a graph, compact."""
        W = graph.adjacency
        return cls(W.indptr.astype(np.int64), W.indices.astype(np.int32), W.data.astype(np.float32), limit)

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return self.indptr.size - 1

    @cached_property
    def random(self) -> bool:
        """Whether a node has more neighbours than count."""
        return bool((np.diff(self.indptr) > self.limit).any())

    def draw(self, rows: Ints, *key: int) -> Means:
        """Return the means at some nodes; a node draws the same for the same key, whatever the other rows are."""
        sizes = np.minimum(self.indptr[rows + 1] - self.indptr[rows], self.limit) + 1
        pointers = np.concatenate([[0], np.cumsum(sizes)])
        places, weights = np.empty(pointers[-1], dtype=np.int32), np.empty(pointers[-1], dtype=np.float32)
        sources = np.empty(min(self.n_nodes, int(pointers[-1])), dtype=np.int64)
        edges = (self.indptr, self.indices, self.weights)
        count = _draw(edges, rows, _hash(key), (pointers, places, weights, sources))
        return Means(sources[:count], pointers, places, weights)


def _hash(key: tuple[int, ...]) -> Any:
    """Return one word of numbers that are at least 0."""
    word = 0
    for part in key:
        word = ((word ^ part) * 0x9E3779B97F4A7C15 + 0xD1B54A32D192ED03) & _WORD
        word ^= word >> 29
    return np.uint64(word)


@_compiled
def _draw(edges: Any, rows: Any, key: Any, out: Any) -> Any:
    """Fill the matrix of means; return the number of sources."""
    indptr, indices, edge_weights = edges
    pointers, places, weights, sources = out
    place = np.full(indptr.size - 1, -1, dtype=np.int32)
    count = rows.size
    for i in range(rows.size):
        sources[i] = rows[i]
        place[rows[i]] = i
    shuffled = np.empty(indices.size, dtype=np.int64)
    for i in range(rows.size):
        start, stop, first, last = indptr[rows[i]], indptr[rows[i] + 1], pointers[i], pointers[i + 1]
        places[first], weights[first] = i, 1.0
        total = np.float32(1.0)
        drawn = last - first - 1
        if drawn < stop - start:
            _shuffle(shuffled, start, stop, drawn, key + np.uint64(rows[i]) * np.uint64(0xBF58476D1CE4E5B9))
        for t in range(drawn):
            edge = start + t if drawn == stop - start else shuffled[t]
            node = indices[edge]
            if place[node] < 0:
                place[node] = count
                sources[count] = node
                count += 1
            places[first + 1 + t], weights[first + 1 + t] = place[node], edge_weights[edge]
            total += edge_weights[edge]
        for entry in range(first, last):
            weights[entry] /= total
    return count


@_compiled
def _shuffle(out: Any, start: Any, stop: Any, count: Any, state: Any) -> None:
    """Begin `out` with `count` different numbers from start to stop - 1 (SplitMix64, high halves of the words)."""
    for t in range(stop - start):
        out[t] = start + t
    for t in range(count):
        state += np.uint64(0x9E3779B97F4A7C15)
        word = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        word = (word ^ (word >> np.uint64(31))) >> np.uint64(32)
        jump = np.int64((word * np.uint64(stop - start - t)) >> np.uint64(32))
        out[t], out[t + jump] = out[t + jump], out[t]


@_compiled
def _multiply(pointers: Any, places: Any, weights: Any, H: Any, out: Any) -> None:
    for i in range(out.shape[0]):
        row = out[i]
        row[:] = 0.0
        for entry in range(pointers[i], pointers[i + 1]):
            weight, source = weights[entry], H[places[entry]]
            for c in range(row.size):
                row[c] += weight * source[c]


@_compiled
def _multiply_transpose(pointers: Any, places: Any, weights: Any, G: Any, out: Any) -> None:
    for i in range(G.shape[0]):
        row = G[i]
        for entry in range(pointers[i], pointers[i + 1]):
            weight, target = weights[entry], out[places[entry]]
            for c in range(row.size):
                target[c] += weight * row[c]

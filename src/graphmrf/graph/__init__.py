"""The graph: checked once, immutable afterwards, sparse from end to end."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee

from graphmrf.engines import Engine, engine_for
from graphmrf.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import ArrayLike

    from graphmrf._typing import Bools, Floats, Ints

_LARGEST_INT32 = np.iinfo(np.int32).max


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Graph:
    r"""An undirected graph with non-negative edge weights.

    It gives the two operators of every formula,

    .. math:: S = D^{-1/2} W D^{-1/2}, \qquad N = I - S,

    with an empty row for an isolated node in both, so that no edges means no smoothing.
    Self loops are dropped. What was changed on the way in is told in `notes`.

    Parameters
    ----------
    W : sparse matrix, sparse array or dense array of shape (n, n)
        Symmetric weights, finite and >= 0. When all are equal to 1 no values are stored.
    symmetrize : bool, default False
        Accept a directed `W` and use ``(W + W.T) / 2``.

    Raises
    ------
    InvalidInputError
        If `W` is not square, not symmetric, or holds NaN, infinite or negative weights.

    Examples
    --------
    >>> graph = Graph([[0, 1, 0], [1, 0, 2], [0, 2, 0]])
    >>> graph
    Graph(n_nodes=3, n_edges=2, weighted)
    >>> graph.degrees
    array([1., 3., 2.])
    """

    indptr: Ints
    indices: Ints
    weights: Floats | None
    notes: tuple[str, ...]

    def __init__(self, W: Any, *, symmetrize: bool = False) -> None:
        W = _as_csr(W)
        if symmetrize:
            W = sparse.csr_array((W + W.T) / 2)
        _check_symmetric(W)
        self._store(W, ())

    @classmethod
    def from_edges(
        cls, u: ArrayLike, v: ArrayLike, weight: ArrayLike | None = None, *, n_nodes: int | None = None
    ) -> Graph:
        """Graph of the undirected edges ``u[i] -- v[i]``.

        An edge listed again, in either direction, counts once when there are no weights; with weights they add up.

        Parameters
        ----------
        u, v : integer arrays of shape (m,)
            End points, from 0 to ``n_nodes - 1``.
        weight : array of shape (m,), optional
            Finite and >= 0.
        n_nodes : int, optional
            Number of nodes; by default one more than the largest end point.

        Examples
        --------
        >>> Graph.from_edges([0, 1, 2], [1, 2, 1]).notes
        ('1 repeated edge was counted once',)
        """
        u, v = _end_points(u, "u"), _end_points(v, "v")
        if u.shape != v.shape:
            raise InvalidInputError(f"u and v must have the same length, got {u.size} and {v.size}")
        n = _count_nodes(u, v, n_nodes)
        w = np.ones(u.size) if weight is None else _edge_weights(weight, u, v)
        forward = sparse.coo_array((w, (np.minimum(u, v), np.maximum(u, v))), shape=(n, n))
        upper = sparse.csr_array(forward)
        repeated = u.size - upper.nnz
        if weight is None:
            upper.data[:] = 1.0
        loops = _n_loops(upper)
        upper.setdiag(0.0)
        graph = object.__new__(cls)
        graph._store(sparse.csr_array(upper + upper.T), (*_repeats(repeated, weight is not None), *_loops(loops)))
        return graph

    @classmethod
    def from_networkx(cls, G: Any, weight: str | None = "weight") -> Graph:
        """Graph of a NetworkX graph, nodes in the order of ``G.nodes``.

        Parameters
        ----------
        G : networkx.Graph or networkx.MultiGraph
            Undirected; call ``G.to_undirected()`` first if direction does not matter.
        weight : str or None
            Edge attribute that holds the weight; an edge without it has weight 1. None ignores weights.
        """
        if G.is_directed():
            raise InvalidInputError(
                "G must be undirected, got a directed graph; pass G.to_undirected() to drop the directions"
            )
        number: dict[Hashable, int] = {node: i for i, node in enumerate(G.nodes)}
        edges = list(G.edges(data=weight, default=1.0)) if weight else [(a, b, 1.0) for a, b in G.edges()]
        u = [number[a] for a, _, _ in edges]
        v = [number[b] for _, b, _ in edges]
        w = np.array([x for _, _, x in edges], dtype=np.float64)
        weighted = bool((w != 1.0).any()) or G.is_multigraph()
        return cls.from_edges(u, v, w if weighted else None, n_nodes=len(number))

    def _store(self, W: sparse.csr_array, notes: tuple[str, ...]) -> None:
        loops = _n_loops(W)
        if loops:
            W = W - sparse.diags_array(W.diagonal())
            notes = (*notes, *_loops(loops))
        W = sparse.csr_array(W)
        W.eliminate_zeros()
        W.sort_indices()
        index = np.int32 if max(W.nnz, W.shape[0]) <= _LARGEST_INT32 else np.int64
        unweighted = bool((W.data == 1.0).all())
        values: dict[str, Any] = {
            "indptr": _frozen(W.indptr, index),
            "indices": _frozen(W.indices, index),
            "weights": None if unweighted else _frozen(W.data, np.float64),
            "notes": notes,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        kind = "weighted" if self.is_weighted else "unweighted"
        return f"Graph(n_nodes={self.n_nodes}, n_edges={self.n_edges}, {kind})"

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return self.indptr.size - 1

    @property
    def n_edges(self) -> int:
        """Number of undirected edges."""
        return self.indices.size // 2

    @property
    def is_weighted(self) -> bool:
        """Whether some edge weighs something else than 1."""
        return self.weights is not None

    @cached_property
    def degrees(self) -> Floats:
        """Sum of the weights at each node, shape (n,)."""
        if self.weights is None:
            return np.diff(self.indptr).astype(np.float64)
        return np.asarray(self.adjacency.sum(axis=1), dtype=np.float64)

    @cached_property
    def isolated(self) -> Bools:
        """Nodes without any edge, shape (n,)."""
        return np.asarray(self.degrees == 0)

    @cached_property
    def _components(self) -> tuple[int, Ints]:
        count, labels = connected_components(self.adjacency, directed=False)
        return int(count), labels

    @property
    def components(self) -> Ints:
        """Number of the connected component of each node, from 0, shape (n,)."""
        return self._components[1]

    @property
    def n_components(self) -> int:
        """Number of connected components; an isolated node is one."""
        return self._components[0]

    @cached_property
    def bandwidth(self) -> int:
        """Largest distance between neighbours in reverse Cuthill-McKee order: small for a graph that is nearly a line."""
        order = reverse_cuthill_mckee(self.adjacency, symmetric_mode=True)
        place = np.empty(self.n_nodes, dtype=np.int64)
        place[order] = np.arange(self.n_nodes)
        rows = np.repeat(place, np.diff(self.indptr))
        return int(np.abs(rows - place[self.indices]).max(initial=0))

    @property
    def adjacency(self) -> sparse.csr_array:
        """The weights `W` as a SciPy sparse array."""
        data = np.ones(self.indices.size) if self.weights is None else self.weights
        return self._matrix(data)

    @cached_property
    def S(self) -> sparse.csr_array:
        """Normalised adjacency :math:`D^{-1/2} W D^{-1/2}` as a SciPy sparse array."""
        d = inverse_square_root(self.degrees)
        W = self.adjacency
        return self._matrix(W.data * np.repeat(d, np.diff(self.indptr)) * d[self.indices])

    @cached_property
    def N(self) -> sparse.csr_array:
        """Normalised Laplacian as a SciPy sparse array; the row of an isolated node is empty."""
        return sparse.csr_array(sparse.diags_array((~self.isolated).astype(np.float64)) - self.S)

    @cached_property
    def engine(self) -> Engine:
        """What multiplies by :math:`I - N` on this machine; chosen by the size of the graph."""
        return engine_for(self.indptr, self.indices, self.weights, self.degrees)

    def _matrix(self, data: Floats) -> sparse.csr_array:
        return sparse.csr_array((data, self.indices, self.indptr), shape=(self.n_nodes, self.n_nodes), copy=False)


def inverse_square_root(degrees: Floats) -> Floats:
    """Entrywise ``degrees ** -0.5``, and 0 where the degree is 0."""
    return np.divide(1.0, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)


def _as_csr(W: Any) -> sparse.csr_array:
    if not sparse.issparse(W):
        W = np.asarray(W)
    if W.ndim != 2 or W.shape[0] != W.shape[1]:
        raise InvalidInputError(f"W must be a square matrix, got shape {W.shape}")
    if W.dtype.kind not in "buif":
        raise InvalidInputError(f"W must hold real numbers, got dtype {W.dtype}")
    W = sparse.csr_array(W, dtype=np.float64)
    W.sum_duplicates()
    _check_weights(W.data, lambda k: f"entry ({np.searchsorted(W.indptr, k, side='right') - 1}, {W.indices[k]})")
    return W


def _check_symmetric(W: sparse.csr_array) -> None:
    difference = abs(W - W.T)
    largest = W.data.max(initial=0.0)
    unmatched = int((difference.data > 1e-12 * largest).sum())
    if unmatched:
        raise InvalidInputError(
            f"W must be symmetric, got {unmatched} unmatched entries; "
            "pass symmetrize=True to drop the directions, that is to use (W + W.T) / 2"
        )


def _check_weights(data: Floats, place: Any) -> None:
    bad = ~np.isfinite(data) | (data < 0)
    if bad.any():
        k = int(np.flatnonzero(bad)[0])
        raise InvalidInputError(
            f"weights must be finite and >= 0, got {data[k]} at {place(k)}; remove the edge or correct its weight"
        )


def _end_points(values: ArrayLike, name: str) -> Ints:
    array = np.asarray(values)
    if array.ndim != 1:
        raise InvalidInputError(f"{name} must be one-dimensional, got shape {array.shape}")
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise InvalidInputError(
            f"{name} must hold integer node numbers, got dtype {array.dtype}; number the nodes 0..n-1"
        )
    return array.astype(np.int64)


def _count_nodes(u: Ints, v: Ints, n_nodes: int | None) -> int:
    ends = np.concatenate([u, v])
    smallest, largest = int(ends.min(initial=0)), int(ends.max(initial=-1))
    n = largest + 1 if n_nodes is None else n_nodes
    if smallest < 0 or largest >= n:
        stray = smallest if smallest < 0 else largest
        raise InvalidInputError(f"edges must join nodes 0..{n - 1}, got node {stray}; raise n_nodes or renumber")
    return n


def _edge_weights(weight: ArrayLike, u: Ints, v: Ints) -> Floats:
    w = np.asarray(weight, dtype=np.float64)
    if w.shape != u.shape:
        raise InvalidInputError(f"weight must have one entry per edge, got {w.shape} for {u.size} edges")
    _check_weights(w, lambda k: f"edge {k} ({u[k]} -- {v[k]})")
    return w


def _n_loops(W: sparse.csr_array) -> int:
    return int(np.count_nonzero(W.diagonal()))


def _loops(count: int) -> tuple[str, ...]:
    return (f"dropped {count} self loop{'s' * (count > 1)}",) if count else ()


def _repeats(count: int, weighted: bool) -> tuple[str, ...]:  # noqa: FBT001
    if not count:
        return ()
    were, fate = ("were" if count > 1 else "was"), ("added to the first" if weighted else "counted once")
    return (f"{count} repeated edge{'s' * (count > 1)} {were} {fate}",)


def _frozen(values: Any, dtype: Any) -> Any:
    array = np.array(values, dtype=dtype)
    array.flags.writeable = False
    return array

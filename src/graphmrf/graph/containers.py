"""Graphs of other libraries as edge lists or matrices, read through their own methods: none is imported here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy import sparse

from graphmrf.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Hashable

    from graphmrf._typing import Ints

Edges: TypeAlias = "tuple[Any, Any, Any]"
"""End points `u` and `v`, and weights or None: what `Graph.from_edges` takes."""


def networkx_edges(G: Any, weight: str | None) -> Edges:
    """Return the edges of a NetworkX graph; nodes are numbered in the order of ``G.nodes``."""
    if G.is_directed():
        raise _directed("G.to_undirected()")
    number: dict[Hashable, int] = {node: i for i, node in enumerate(G.nodes)}
    edges = list(G.edges(data=weight, default=1.0)) if weight else [(a, b, 1.0) for a, b in G.edges()]
    u, v = ([number[edge[end]] for edge in edges] for end in (0, 1))
    return u, v, [edge[2] for edge in edges]


def igraph_edges(G: Any, weight: str | None) -> Edges:
    """Return the edges of an igraph graph."""
    if G.is_directed():
        raise _directed("G.as_undirected()")
    ends = np.array(G.get_edgelist(), dtype=np.int64).reshape(-1, 2)
    weighted = weight is not None and weight in G.es.attributes()
    return ends[:, 0], ends[:, 1], G.es[weight] if weighted else np.ones(len(ends))


def pyg_matrix(data: Any, weight: str | None) -> sparse.coo_array:
    """Return the weights of a PyTorch Geometric graph, one entry per column of `edge_index`."""
    ends = _array(getattr(data, "edge_index", None))
    if ends.ndim != 2 or len(ends) != 2:
        raise InvalidInputError(
            "data.edge_index must have shape (2, n_edges), "
            f"got {ends.shape if ends.ndim else 'none'}; of a heterogeneous graph pass one edge type, data[edge_type]"
        )
    n = int(data.num_nodes)
    if ends.size and (ends.min() < 0 or ends.max() >= n):
        raise InvalidInputError(f"data.edge_index must name nodes 0..{n - 1}, got {ends.min()}..{ends.max()}")
    w = _pyg_weights(data, weight, ends.shape[1])
    if w is None:
        ends = np.unique(ends, axis=1)
        w = np.ones(ends.shape[1])
    return sparse.coo_array((w, (ends[0], ends[1])), shape=(n, n))


def pysal_matrix(w: Any) -> Any:
    """Return the sparse matrix of PySAL weights."""
    transform = str(getattr(w, "transformation", None) or w.transform).upper()
    if transform in ("R", "V"):
        raise InvalidInputError(
            f"w must be symmetric, got weights with transform {transform!r}, which scales rows; "
            "take the original ones: w.transform = 'O', or w.transform('B') of a libpysal.graph.Graph"
        )
    return w.sparse


def polygon_edges(frame: Any) -> Edges:
    """Return the pairs of polygons that share a point, each once."""
    shapes = frame.geometry
    kinds = shapes.geom_type.fillna("nothing")
    strange = np.flatnonzero(~kinds.isin(["Polygon", "MultiPolygon"]))
    if strange.size:
        raise InvalidInputError(
            f"geometry must hold polygons, got {kinds.iloc[strange[0]]} at row {strange[0]}; "
            "drop such rows, or give the edges yourself with Graph.from_edges"
        )
    first, second = shapes.sindex.query(shapes, predicate="intersects")
    once = first < second
    return first[once], second[once], None


def _pyg_weights(data: Any, weight: str | None, n_edges: int) -> Any:
    """Return one weight per edge, or None if there are none or none are wanted."""
    if weight is None:
        return None
    if weight == "auto":
        weight = "edge_weight"
        if getattr(data, weight, None) is None:
            attributes = _array(getattr(data, "edge_attr", None))
            return attributes.reshape(-1) if attributes.ndim and attributes.size == n_edges else None
    w = _array(getattr(data, weight, None))
    if w.ndim == 0 or w.size != n_edges:
        raise InvalidInputError(f"data.{weight} must hold one weight per edge, got shape {w.shape} for {n_edges} edges")
    return w.reshape(-1)


def _array(values: Any) -> Ints:
    """Return a tensor on any device, or anything like an array, as an array; None has no dimension."""
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def _directed(remedy: str) -> InvalidInputError:
    return InvalidInputError(
        f"G must be undirected, got a directed graph; pass {remedy} if the directions do not matter"
    )

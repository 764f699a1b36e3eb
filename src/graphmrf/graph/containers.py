"""Graphs of other libraries as edge lists or matrices, through their own methods: none but shapely is imported."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.spatial import cKDTree

from graphmrf.errors import InvalidInputError
from graphmrf.graph.checks import distinct

if TYPE_CHECKING:
    from collections.abc import Hashable

    from graphmrf._typing import Floats, Ints

Edges: TypeAlias = "tuple[Any, Any, Any]"  # end points `u` and `v`, and weights or None: what `Graph.from_edges` takes


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


def polygon_edges(geometry: Any, *, rook: bool) -> tuple[Any, Any, int]:
    """Return the pairs of polygons that touch, each once, and the number of polygons."""
    shapely = import_module("shapely")
    shapes = np.asarray(getattr(geometry, "geometry", geometry), dtype=object)
    kinds = shapely.get_type_id(shapes)
    empty = shapely.is_empty(shapes)
    strange = np.flatnonzero(~np.isin(kinds, [shapely.GeometryType.POLYGON, shapely.GeometryType.MULTIPOLYGON]) | empty)
    if strange.size:
        kind = "nothing" if empty[strange[0]] else getattr(shapes[strange[0]], "geom_type", "nothing")
        raise InvalidInputError(
            f"geometry must contain polygons, got {kind} at row {strange[0]}; "
            "drop such rows, join points with Graph.from_knn, or give the edges yourself with Graph.from_edges"
        )
    first, second = shapely.STRtree(shapes).query(shapes, predicate="intersects")
    once = first < second
    first, second = first[once], second[once]
    if rook:
        shared = shapely.get_dimensions(shapely.intersection(shapes[first], shapes[second])) >= 1
        first, second = first[shared], second[shared]
    return first, second, len(shapes)


def nearest_neighbours(points: Any, k: int, metric: str) -> tuple[Any, Any, int]:
    """Return every point once for each of its `k` nearest neighbours, these neighbours, and the number of points."""
    places = _coordinates(points)
    n = len(places)
    if metric not in ("euclidean", "haversine"):
        raise InvalidInputError(f"metric must be 'euclidean' or 'haversine', got {metric!r}")
    if not 1 <= int(k) < max(n, 2):
        raise InvalidInputError(f"k must be from 1 to the {n} points less one, got {k}")
    if metric == "haversine":
        places = _on_sphere(places)
    _, near = cKDTree(places).query(places, k=min(int(k) + 1, n))
    near = np.asarray(near).reshape(n, -1)
    own = near == np.arange(n)[:, None]
    own[~own.any(axis=1), -1] = True  # more than k others at the same place: leave the last of them out
    return np.repeat(np.arange(n), near.shape[1] - 1), near[~own], n


def index_of_table(table: Any) -> pd.Index | None:
    """Return the index of a table of pandas or GeoPandas, if it names every row once."""
    return distinct(table.index, len(table)) if isinstance(table, pd.DataFrame | pd.Series) else None


def matrix_ids(W: Any) -> pd.Index | None:
    """Return the ids of a matrix of weights: the index of a DataFrame, if its columns are the same."""
    if not isinstance(W, pd.DataFrame) or isinstance(W.index, pd.RangeIndex):
        return None
    if not W.index.equals(W.columns):
        raise InvalidInputError("W must have the same index and columns; pass W.loc[ids, ids], or W.to_numpy()")
    return W.index


def pyg_ids(data: Any) -> Any:
    """Return the names of nodes in a PyTorch Geometric graph, None where there are none."""
    for name in ("node_id", "name"):
        names = getattr(data, name, None)
        if names is None or isinstance(names, str):
            continue
        index = distinct(_array(names).tolist(), int(data.num_nodes))
        if index is not None:
            return index
    return None


def _coordinates(points: Any) -> Floats:
    """Return points as an array (n, d), those of GeoPandas, too."""
    shapes = getattr(points, "geometry", None)
    if shapes is not None:
        points = np.column_stack([shapes.x, shapes.y])
    try:
        places = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"points must be numbers: {error}; pass columns of coordinates") from error
    places = places[:, None] if places.ndim == 1 else places
    if places.ndim != 2 or not places.shape[1]:
        raise InvalidInputError(f"points must have shape (n, d), got {places.shape}")
    bad = np.flatnonzero(~np.isfinite(places).all(axis=1))
    if bad.size:
        raise InvalidInputError(f"points must be finite, got {places[bad[0]].tolist()} at row {bad[0]}; drop such rows")
    return places


def _on_sphere(places: Floats) -> Floats:
    """Return longitudes and latitudes in degrees as points of a sphere, where near is near in a straight line, too."""
    if places.shape[1] != 2 or (np.abs(places) > (360.0, 90.0)).any():
        raise InvalidInputError(
            "points must be longitude (up to 360) and latitude (up to 90) in degrees for metric 'haversine'; "
            "swap the columns, or use metric 'euclidean'"
        )
    longitude, latitude = np.radians(places).T
    return np.column_stack(
        [np.cos(latitude) * np.cos(longitude), np.cos(latitude) * np.sin(longitude), np.sin(latitude)]
    )


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
        raise InvalidInputError(f"data.{weight} must have one weight per edge, got shape {w.shape} for {n_edges} edges")
    return w.reshape(-1)


def _array(values: Any) -> Ints:
    """Return a tensor on any device, or anything like an array, as an array; None has no dimension."""
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def _directed(remedy: str) -> InvalidInputError:
    return InvalidInputError(
        f"G must be undirected, got a directed graph; pass {remedy} if the directions do not matter"
    )

"""Graphs in Parquet files that workers read: edges of a file by the part of their row, and the rows of a part.

Every function here is one task of Dask, which runs it again where its worker is lost; none sees more edges than a file
or a part of the rows has.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from graphmrf.errors import InvalidInputError

if TYPE_CHECKING:
    from graphmrf._typing import Floats, Ints

_Piece: TypeAlias = "tuple[Ints, Floats | None]"
"""Edges of one file with their row in one part, see `split_edges`."""

_Rows: TypeAlias = "tuple[Ints, Ints, Floats | None]"
"""Compressed rows: pointers, columns, and weights or None."""


def weight_sums(indptr: Ints, weights: Floats) -> Floats:
    """Return the sum of the weights of every row."""
    sums = np.zeros(indptr.size - 1)
    filled = np.diff(indptr) > 0
    sums[filled] = np.add.reduceat(weights, indptr[:-1][filled])
    return sums


def edge_files(path: str) -> list[str]:
    """Return the Parquet files of a folder, a pattern or a URL, in order.

    Raises
    ------
    InvalidInputError
        If there are none.
    """
    fsspec = import_module("fsspec")
    files, _, found = fsspec.get_fs_token_paths(
        path if "*" in path or path.endswith(".parquet") else f"{path}/*.parquet"
    )
    if not found:
        raise InvalidInputError(
            f"{path} has no .parquet files; give a folder of them, or a pattern such as edges/*.parquet"
        )
    return [files.unstrip_protocol(each) for each in sorted(found)]


def split_edges(file: str, names: tuple[str, ...], bounds: Ints, ids: Any = None) -> list[_Piece]:
    """Return the edges of a file, both ways round and without loops, by the part of their row.

    An edge is one number, its row in the part times the number of nodes plus its column, which sorts by both. Ends are
    numbers of nodes, or their ids. The weight of an edge that is listed from the larger number to the smaller is
    negative, so that one listed in both directions can be told from one listed twice.
    """
    with import_module("fsspec").open(file) as stream:
        table = import_module("pyarrow.parquet").read_table(stream, columns=list(names))
    n, weight = int(bounds[-1]), names[2:]
    u, v = (_numbered(file, table[end], n) if ids is None else _located(file, table[end], ids) for end in names[:2])
    weights = _weighed(f"{file}, column {weight[0]}", table[weight[0]].to_numpy()) if weight else None
    kept = u != v if weights is None else (u != v) & (weights > 0)
    u, v = u[kept].astype(np.int64), v[kept].astype(np.int64)
    rows, columns = np.concatenate([u, v]), np.concatenate([v, u])
    part = np.searchsorted(bounds, rows, side="right") - 1
    pairs = (rows - bounds[part]) * n + columns
    if weights is None:
        return [(pairs[part == p], None) for p in range(bounds.size - 1)]
    signed = np.tile(np.where(u < v, weights[kept], -weights[kept]), 2)
    return [(pairs[part == p], signed[part == p]) for p in range(bounds.size - 1)]


def _weighed(place: str, weights: Floats) -> Floats:
    """Return the weights of edges; raise InvalidInputError for what is no finite number >= 0."""
    if weights.dtype.kind not in "iuf" or not (np.isfinite(weights) & (weights >= 0)).all():
        raise InvalidInputError(f"{place}: an edge weight must be a finite number >= 0; correct it or remove the edge")
    return weights.astype(np.float64)


def _numbered(file: str, ends: Any, n: int) -> Ints:
    """Return ends of edges that are numbers of nodes; raise InvalidInputError for others."""
    numbers: Ints = ends.to_numpy()
    if numbers.dtype.kind not in "iu" or numbers.min(initial=0) < 0:
        raise InvalidInputError(f"{file}: ends of edges must be whole numbers from 0 to {n - 1}; or pass ids=")
    if numbers.max(initial=0) >= n:
        raise InvalidInputError(f"{file}: there are {n} nodes, got the number {numbers.max()}; raise n_nodes")
    return numbers


def _located(file: str, ends: Any, ids: Any) -> Ints:
    """Return the numbers of nodes by their ids; raise InvalidInputError for an id that no node has."""
    pyarrow, compute = import_module("pyarrow"), import_module("pyarrow.compute")
    try:
        cells = ends.cast(ids.type)
        found = compute.index_in(
            compute.utf8_trim_whitespace(cells) if pyarrow.types.is_string(ids.type) else cells, value_set=ids
        )
    except pyarrow.ArrowException as error:
        raise InvalidInputError(
            f"{file}: ends of edges are {ends.type}, ids are {ids.type}; save both alike"
        ) from error
    if found.null_count:
        stray = ends.filter(found.is_null())[0]
        raise InvalidInputError(f"{file}: an edge leads to {stray}, which is no id; add the node, or drop the edge")
    numbers: Ints = found.to_numpy()
    return numbers


def compress_rows(bounds: Ints, part: int, pieces: list[_Piece]) -> _Rows:
    """Return the compressed rows of a part from its edges, see `split_edges`.

    An edge listed again counts once; weights add up, but for an edge listed in both directions with the same weight.
    """
    pairs, n = np.concatenate([each for each, _ in pieces]), int(bounds[-1])
    weights = None if pieces[0][1] is None else np.concatenate([each for _, each in pieces])
    if weights is None:
        pairs.sort()
    else:
        order = np.argsort(pairs, kind="stable")
        pairs, weights = pairs[order], weights[order]
    once = np.ones(pairs.size, dtype=bool)
    np.not_equal(pairs[1:], pairs[:-1], out=once[1:])
    if weights is not None:
        there, back = (np.add.reduceat(np.maximum(w, 0.0), np.flatnonzero(once)) for w in (weights, -weights))
        weights = np.where(np.isclose(there, back, rtol=1e-9, atol=0.0), there, there + back)
    if not once.all():
        pairs = pairs[once]
    indptr = np.searchsorted(pairs, n * np.arange(bounds[part + 1] - bounds[part] + 1))
    indices: Ints = np.empty(pairs.size, dtype=np.int32 if n < 2**31 else np.int64)
    np.remainder(pairs, n, out=indices, casting="same_kind")
    return indptr, indices, weights


def row_sums(rows: _Rows) -> tuple[Ints, Floats | None]:
    """Return the neighbours that every row has, and the sums of their weights where there are weights."""
    return np.diff(rows[0]), None if rows[2] is None else weight_sums(rows[0], rows[2])


def with_loops(rows: _Rows, first: int) -> _Rows:
    """Return rows of which every node is its own neighbour, too."""
    (indptr, indices, weights), n = rows, rows[0].size - 1
    loops = np.insert(indices, indptr[1:], np.arange(first, first + n))
    return indptr + np.arange(n + 1), loops, None if weights is None else np.insert(weights, indptr[1:], 1.0)


def row_components(rows: _Rows, first: int, n: int) -> Ints:
    """Return the component of every node of the graph by the edges of some rows."""
    before, after = np.zeros(first, rows[0].dtype), np.full(n - first - rows[0].size + 1, rows[0][-1])
    indptr = np.concatenate([before, rows[0], after])
    edges = sparse.csr_array((np.ones(rows[1].size, np.int8), rows[1], indptr), shape=(n, n))
    labels: Ints = connected_components(edges, directed=False)[1]
    return labels


def joined_components(labels: Ints, others: Ints) -> Ints:
    """Return the components of all nodes by two sets of edges, from those by either.

    Examples
    --------
    >>> joined_components(np.array([0, 0, 1, 2]), np.array([0, 1, 1, 2]))
    array([0, 0, 0, 1], dtype=int32)
    """
    k, size = int(labels.max(initial=-1)) + 1, int(labels.max(initial=-1) + others.max(initial=-1)) + 2
    same = sparse.coo_array((np.ones(labels.size, np.int8), (labels, k + others)), shape=(size, size))
    return np.asarray(connected_components(same.tocsr(), directed=False)[1][labels])

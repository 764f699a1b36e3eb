"""Checks of what users pass: weights and edges, sizes of values, ids of nodes, and tables that are matched by them."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd
from scipy import sparse

from graphmrf.errors import InvalidInputError
from graphmrf.text import count

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from graphmrf._typing import Floats, Ints

Tidy: TypeAlias = "tuple[sparse.csr_array, tuple[str, ...]]"
"""Symmetric weights > 0 off the diagonal, in canonical form, and what was changed to get there."""


# Largest size of a value, 1.8e75, and its inverse the smallest spread of a column: fourth powers of them, such as
# the products of two variances, can be represented.
LARGEST = 2.0**250


def symmetric_matrix(W: Any, *, symmetrize: bool, rounding: float = 1e-12) -> Tidy:
    """Return a square matrix as checked weights; `symmetrize` accepts directions and averages over them.

    Entries that differ by the share `rounding` of the largest count as equal.
    """
    W = _as_csr(W)
    W.data, scaled = _scaled(W.data)
    difference = W - W.T
    unmatched = int((abs(difference.data) > rounding * W.data.max(initial=0.0)).sum())
    if unmatched and not symmetrize:
        raise InvalidInputError(
            f"W must be symmetric, got {unmatched} unmatched entries, such as {_example(W, difference)}; "
            "pass symmetrize=True to drop the directions, that is to use (W + W.T) / 2"
        )
    if difference.nnz:
        W = sparse.csr_array((W + W.T) / 2)
    notes = (f"averaged over directions: {unmatched} entries differed from their counterparts",) if unmatched else ()
    loops = W.diagonal()
    if loops.any():
        W = sparse.csr_array(W - sparse.diags_array(loops))
    W.eliminate_zeros()
    W.sort_indices()
    return W, (*notes, *_dropped(int(np.count_nonzero(loops)), "self loop"), *scaled)


def edge_matrix(u: ArrayLike, v: ArrayLike, weight: ArrayLike | None, n_nodes: int | None) -> Tidy:
    """Return a list of undirected edges as checked weights; repeated edges count once, or add up if weighted."""
    u, v = _end_points(u, "u"), _end_points(v, "v")
    if u.shape != v.shape:
        raise InvalidInputError(f"u and v must have the same length, got {u.size} and {v.size}")
    n = _count_nodes(u, v, n_nodes)
    w, scaled = (None, ()) if weight is None else _scaled(_edge_weights(weight, u, v))
    proper = u != v
    ends = np.minimum(u, v)[proper], np.maximum(u, v)[proper]
    # Bits where there are no weights: an eighth of the memory of numbers, and listed twice they stay one.
    values = np.ones(ends[0].size, dtype=np.bool_) if w is None else w[proper]
    upper = sparse.csr_array(sparse.coo_array((values, ends), shape=(n, n)))
    repeated, absent = ends[0].size - upper.nnz, int((upper.data == 0).sum())
    upper.eliminate_zeros()
    W = sparse.csr_array(upper + upper.T)
    W.sort_indices()
    fate = f"{'were' if repeated > 1 else 'was'} {'counted once' if weight is None else 'added to the first'}"
    twice = (f"{count(repeated, 'repeated edge')} {fate}",) if repeated else ()
    return W, (
        *twice,
        *_dropped(u.size - ends[0].size, "self loop"),
        *_dropped(absent, "edge", " of weight 0"),
        *scaled,
    )


def index_type(n_entries: int, n_nodes: int) -> type[np.int32 | np.int64]:
    """Return the integer type that counts all entries and all nodes: int32 as long as it can."""
    return np.int32 if max(n_entries, n_nodes) <= np.iinfo(np.int32).max else np.int64


def _as_csr(W: Any) -> sparse.csr_array:
    """Return a copy of `W`, so that nothing below changes the caller's arrays."""
    if not sparse.issparse(W):
        W = np.asarray(W)
    if W.ndim != 2 or W.shape[0] != W.shape[1]:
        raise InvalidInputError(
            f"W must be a square matrix, got shape {W.shape}; edge lists go to Graph.from_edges(u, v), graphs of other "
            "libraries to Graph.from_networkx and its like"
        )
    if W.dtype.kind not in "buif":
        raise InvalidInputError(f"W must be numeric, got dtype {W.dtype}")
    # Entries listed twice are added by SciPy on the way to CSR: in float64, where small integers cannot overflow.
    real = sparse.csr_array(W.astype(np.float64))
    real.sum_duplicates()
    rows = np.repeat(np.arange(W.shape[0]), np.diff(real.indptr))
    _check_weights(real.data, lambda k: f"entry ({rows[k]}, {real.indices[k]})")
    return real


def _example(W: sparse.csr_array, difference: Any) -> str:
    worst = sparse.coo_array(difference)
    k = int(np.argmax(worst.data))
    i, j = int(worst.row[k]), int(worst.col[k])
    return f"W[{i}, {j}] = {W[i, j]:g} but W[{j}, {i}] = {W[j, i]:g}"


def _check_weights(data: Floats, place: Callable[[int], str]) -> None:
    bad = ~np.isfinite(data) | (data < 0)
    if bad.any():
        k = int(np.flatnonzero(bad)[0])
        raise InvalidInputError(
            f"weights must be finite and >= 0, got {data[k]} at {place(k)}; remove the edge or correct its weight"
        )


def _scaled(
    data: Floats, *, moderate: tuple[float, float] = (1e-30, 1e30), widest: int = 1900
) -> tuple[Floats, tuple[str, ...]]:
    """Return weights whose sums and roots can be represented, in another unit if need be: S does not depend on it.

    Roots of `moderate` weights times values of any size stay finite in float32. In the middle of the 2,046 binary
    digits there are, sums of 2^70 weights stay finite where these span up to `widest`.
    """
    positive = data[data > 0]
    if not positive.size or moderate[0] <= positive.min() <= positive.max() <= moderate[1]:
        return data, ()
    if positive.min() < np.finfo(np.float64).tiny:
        raise InvalidInputError(
            f"weights must be 0 or at least {np.finfo(np.float64).tiny:.2g}, got {positive.min():g}, of which digits "
            "are lost; give them in another unit"
        )
    smallest, largest = (int(np.frexp(weight)[1]) for weight in (positive.min(), positive.max()))
    if largest - smallest > widest:
        raise InvalidInputError(
            f"weights must be within a factor of 1e{int(widest * np.log10(2))} of each other, got {positive.min():g} "
            f"and {positive.max():g}; drop the edges that weigh nothing beside others"
        )
    power = (smallest + largest) // 2
    unit = f"weights are in units of 2^{power}, which changes no result"
    return np.ldexp(data, -power), (unit,)


def _end_points(values: ArrayLike, name: str) -> Ints:
    array = np.asarray(values)
    if array.ndim != 1:
        raise InvalidInputError(f"{name} must be one-dimensional, got shape {array.shape}")
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise InvalidInputError(
            f"{name} must contain integer node numbers, got dtype {array.dtype}; number the nodes 0..n-1"
        )
    return array if array.dtype == np.int32 else array.astype(np.int64)


def _count_nodes(u: Ints, v: Ints, n_nodes: int | None) -> int:
    smallest = min(int(u.min(initial=0)), int(v.min(initial=0)))
    largest = max(int(u.max(initial=-1)), int(v.max(initial=-1)))
    n = largest + 1 if n_nodes is None else int(n_nodes)
    if n < 0:
        raise InvalidInputError(f"n_nodes must be >= 0, got {n}")
    if smallest < 0 or largest >= n:
        stray = smallest if smallest < 0 else largest
        raise InvalidInputError(f"edges must join nodes 0..{n - 1}, got node {stray}; raise n_nodes or renumber")
    return n


def _edge_weights(weight: ArrayLike, u: Ints, v: Ints) -> Floats:
    try:
        w = np.asarray(weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"weight must be numeric: {error}; convert or drop the others") from error
    if w.shape != u.shape:
        raise InvalidInputError(f"weight must have one entry per edge, got shape {w.shape} for {u.size} edges")
    _check_weights(w, lambda k: f"edge {k} ({u[k]} -- {v[k]})")
    return w


def _dropped(n: int, noun: str, which: str = "") -> tuple[str, ...]:
    """Return a note on a number of things that were dropped; none for 0."""
    return (f"dropped {count(n, noun)}{which}",) if n else ()


def check_count(n_samples: int) -> int:
    """Return a number of samples >= 0."""
    if isinstance(n_samples, bool) or not isinstance(n_samples, int | np.integer) or n_samples < 0:
        raise InvalidInputError(f"n_samples must be a whole number >= 0, got {n_samples!r}")
    return int(n_samples)


def check_magnitude(A: Floats, name: str, columns: Sequence[Any] | None = None) -> None:
    """Raise unless the squares of all values, and of the spread of every column that varies, can be computed with.

    `name`, `columns`: what the values (n, q) are, and the names of the columns, for the message.
    """
    if not A.size:
        return
    low, high = np.nanmin(A, axis=0, initial=np.inf), np.nanmax(A, axis=0, initial=-np.inf)
    with np.errstate(over="ignore", invalid="ignore"):
        spread, size = high - low, np.maximum(np.abs(low), np.abs(high))
    known = np.isfinite(size)
    bad = np.flatnonzero(known & ((size > LARGEST) | ((spread > 0) & (spread < 1 / LARGEST))))
    if bad.size:
        which = bad[0] if columns is None else repr(columns[bad[0]])
        place = "" if A.shape[1] == 1 and columns is None else f" in column {which}"
        raise InvalidInputError(
            f"{name} must be of a size that can be squared, got {low[bad[0]]:g} to {high[bad[0]]:g}{place}; "
            f"give them in another unit, within {LARGEST:.0e}, and varying by {1 / LARGEST:.0e} or more"
        )


def as_ids(ids: Any, n: int) -> pd.Index | None:
    """Return the ids of `n` nodes as an index without repeats or missing values; None stays None."""
    if ids is None:
        return None
    index = ids if isinstance(ids, pd.Index) else pd.Index(ids, tupleize_cols=False)
    if len(index) != n:
        raise InvalidInputError(f"ids must name each of the {n} nodes, got {len(index)}")
    missing = index.to_frame().isna().any(axis=1) if isinstance(index, pd.MultiIndex) else index.isna()
    if np.any(missing):
        raise InvalidInputError(f"ids must name every node, got a missing one at node {int(np.argmax(missing))}")
    if not index.is_unique:
        raise InvalidInputError(f"ids must differ, got {_some(index[index.duplicated()])} more than once")
    return index


def distinct(names: Any, n: int) -> pd.Index | None:
    """Return the names of `n` nodes if they can be ids: one for each, none missing or repeated."""
    index = names if isinstance(names, pd.Index) else pd.Index(names, tupleize_cols=False)
    return index if len(index) == n and index.is_unique and not index.hasnans else None


def numbered(u: Any, v: Any, ids: Any) -> tuple[Any, Any, pd.Index | None]:
    """Return the ends of edges as node numbers, and the ids of the nodes.

    Integer ends are numbers already unless there are `ids` to look them up in. Other ends without `ids` become nodes
    in order of appearance, those of `u` first.
    """
    u, v = _ends(u), _ends(v)
    # node numbers, or invalid as names, which `edge_matrix` reports
    if ids is None and all(end.size == 0 or end.dtype.kind in "iufbc" or end.ndim != 1 for end in (u, v)):
        return u, v, None
    if ids is None:
        ids = pd.unique(pd.concat([pd.Series(u, dtype=object), pd.Series(v, dtype=object)], ignore_index=True))
        ids = pd.Index(ids, tupleize_cols=False).infer_objects()
        ids = ids[~ids.isna()]
    index = as_ids(ids, len(ids))
    assert index is not None
    return _positions(u, index, "u"), _positions(v, index, "v"), index


def as_pandas(table: Any, ids: pd.Index | None, *, mostly: float = 0.5) -> Any:
    """Return a table of Polars or Arrow as one of pandas, the column of ids as its index; anything else as it is.

    Such tables have no index. The column of ids is the one that has most of them, each once, and more than the share
    `mostly`; without one rows are in node order, as those of arrays are.
    """
    pandas = isinstance(table, np.ndarray | pd.DataFrame | pd.Series | pd.Index | list)
    if table is None or pandas or not hasattr(table, "to_pandas"):
        return table
    found = table.to_pandas()
    if ids is None:
        return found
    columns = found.loc[:, found.nunique() == len(found)] if isinstance(found, pd.DataFrame) else pd.DataFrame()
    held = {name: ids.isin(columns[name]).mean() for name in columns}
    best = max(held, key=lambda name: held[name], default=None)
    if best is not None and held[best] > mostly:
        return found.set_index(best)
    return found.set_axis(ids, axis=0) if len(found) == len(ids) else found


def in_node_order(table: Any, ids: pd.Index | None, n: int, name: str) -> Any:
    """Return a Series or DataFrame with its rows in node order; anything else is read by position, unchanged.

    Tables of Polars and Arrow become tables of pandas, see `as_pandas`.

    Raises InvalidInputError if the index of the table and the ids of the graph do not match, or is ambiguous
    ways.
    """
    table = as_pandas(table, ids)
    if not isinstance(table, pd.DataFrame | pd.Series) or len(table) != n:
        return _checked_length(table, ids, n, name)
    index = table.index
    default = isinstance(index, pd.RangeIndex) and index.equals(pd.RangeIndex(n))
    if ids is None:
        return table if default else _refuse_shuffled(table, n, name)
    if index.equals(ids):
        return table
    if default:
        _refuse_unnamed(ids, n, name)
    _refuse_repeats(index, name)
    _refuse_mismatch(index, ids, name)
    return table.reindex(ids)


def _checked_length(table: Any, ids: pd.Index | None, n: int, name: str) -> Any:
    """Return objects without an index; for a table of another length raise an error naming the missing nodes."""
    if ids is not None and isinstance(table, pd.DataFrame | pd.Series):
        if isinstance(table.index, pd.RangeIndex):
            raise InvalidInputError(f"{name} must have one row for each of the {n} nodes, got {len(table)}")
        _refuse_repeats(table.index, name)
        _refuse_mismatch(table.index, ids, name)
    return table


def _refuse_unnamed(ids: pd.Index, n: int, name: str) -> None:
    """Raise as a default RangeIndex does not identify nodes."""
    if _same_numbers(ids, n):
        raise InvalidInputError(
            f"{name} has rows 0 to {n - 1}, which may be ids or only the order of rows, and the graph has these "
            f"ids in another order; pass {name}.loc[graph.ids] if they are ids, {name}.set_axis(graph.ids) if rows "
            "are in node order"
        )
    raise InvalidInputError(
        f"{name} must have the ids of the graph as its index, got rows 0 to {n - 1}, and the graph has {_some(ids)}; "
        f"pass {name} of a table with .set_index('COLUMN OF IDS'), or {name}.set_axis(graph.ids) if rows are in node "
        "order"
    )


def _refuse_repeats(index: pd.Index, name: str) -> None:
    if not index.is_unique:
        repeated = _some(index[index.duplicated()].unique())
        raise InvalidInputError(f"the index of {name} must name a node once, got {repeated} twice; drop repeats")


def _same_numbers(index: pd.Index, n: int) -> bool:
    """Whether an index contains the numbers 0 to n - 1 in another order."""
    return index.dtype.kind in "iu" and not index.equals(pd.RangeIndex(n)) and set(index) == set(range(n))


def _refuse_shuffled(table: Any, n: int, name: str) -> Any:
    """Return a table for a graph without ids; refuse one whose index is 0..n-1 in another order."""
    if _same_numbers(table.index, n):
        raise InvalidInputError(
            f"{name} has rows 0 to {n - 1} in another order, and the graph has no ids to put them right; pass "
            f"{name}.sort_index() if they number the nodes, {name}.reset_index(drop=True) if rows are in node order "
            "already, or give the graph its ids"
        )
    return table


def _refuse_mismatch(index: pd.Index, ids: pd.Index, name: str) -> None:
    missing, unknown = ids[~ids.isin(index)], index[~index.isin(ids)]
    if not len(missing) and not len(unknown):
        return
    lacks = [f"no row for {_some(missing)}"] if len(missing) else []
    extra = [f"unknown {_some(unknown)}"] if len(unknown) else []
    kinds = ""
    if len(missing) and len(unknown) and set(map(str, missing)) & set(map(str, unknown)):
        kinds = f" (ids are {_kind(ids)} in the graph, {_kind(index)} in {name}: convert one)"
    kinds = kinds or _normalisation(missing, unknown)
    remedy = "" if kinds else f"; {_remedy(len(missing), len(unknown), name)}"
    raise InvalidInputError(
        f"the index of {name} must contain the ids of the graph, got {' and '.join(lacks + extra)}{kinds}{remedy}"
    )


def _normalisation(missing: pd.Index, unknown: pd.Index) -> str:
    """Return how two ids that look the same differ, and the remedy; empty where none do."""
    composed = {unicodedata.normalize("NFC", name): name for name in missing if isinstance(name, str)}
    for name in unknown:
        other = composed.get(unicodedata.normalize("NFC", name)) if isinstance(name, str) else None
        if other is not None:
            return (
                f", which look the same: {other!a} in the graph is {name!a} in the table; convert both with "
                ".str.normalize('NFC')"
            )
    return ""


def _remedy(missing: int, unknown: int, name: str) -> str:
    if not missing:
        return f"pass {name}.loc[graph.ids] to leave other rows out"
    if not unknown:
        return f"pass {name}.reindex(graph.ids) to leave these nodes unknown"
    return f"set the index to the ids, {name}.index = graph.ids if rows are in node order"


def _ends(values: Any) -> Any:
    """Return the ends of edges as an array; those of pandas keep their values, whatever their index."""
    if isinstance(values, pd.Series | pd.Index):
        values = values.to_numpy()
    if isinstance(values, list | tuple) and values and isinstance(values[0], tuple):
        return _objects(values)
    array = np.asarray(values)
    if array.dtype.kind in "US":
        return _objects(array.tolist())
    return array.astype(np.int64) if array.ndim == 1 and _integers(array) else array


def _objects(values: Any) -> Any:
    named = np.empty(len(values), dtype=object)
    named[:] = list(values)
    return named


def _integers(array: Any) -> bool:
    return array.dtype.kind == "O" and pd.api.types.infer_dtype(array, skipna=False) == "integer"


def _positions(end: Any, index: pd.Index, name: str) -> Ints:
    if end.size == 0:
        return np.zeros(0, dtype=np.int64)
    places = index.get_indexer(pd.Index(end, tupleize_cols=False))
    stray = np.flatnonzero(places < 0)
    if stray.size:
        end_id = end.tolist()[stray[0]]
        if pd.isna(end_id):
            raise InvalidInputError(
                f"{name} must name a node for every edge, got none at edge {stray[0]}; drop the edge"
            )
        raise InvalidInputError(
            f"{name} must name nodes in ids, got {end_id!r} at edge {stray[0]} ({stray.size} such edges); add it to "
            "ids, or drop the edge"
        )
    return np.asarray(places, dtype=np.int64)


def shown(ids: pd.Index, most: int = 3) -> str:
    """Return the first ids for the display of a graph."""
    first = ", ".join(str(value) for value in ids[:most])
    return f"{first}, ..." if len(ids) > most else first


def _some(ids: pd.Index, most: int = 3) -> str:
    """Return some ids for a message: enough to see what kind they are."""
    first = ", ".join(repr(value) for value in ids[:most].tolist())
    return f"{first} and {len(ids) - most} more" if len(ids) > most else first


def _kind(ids: pd.Index) -> str:
    return "text" if pd.api.types.is_string_dtype(ids) else str(ids.dtype)

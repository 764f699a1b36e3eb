"""Ids of nodes: checked, assigned to named ends of edges, and matched with the index of users' tables."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from graphmrf.errors import InvalidInputError

if TYPE_CHECKING:
    from graphmrf._typing import Ints


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
    # node numbers, or invalid as names, which `checks.edge_matrix` reports
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

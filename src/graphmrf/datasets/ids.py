"""Ids: which column of a table has them, and which nodes the ends of edges are."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from graphmrf._typing import Ints
from graphmrf.datasets.table_files import TableFile, listing, row_number
from graphmrf.errors import InvalidInputError
from graphmrf.text import count, quoted_distinctly

IDS = ("id", "node", "node_id", "nodeid", "vertex", "key", "name")
ADD, DROP, REFUSE = "add", "drop", "error"  # how edges to unknown ids are treated


def id_column(
    file: TableFile, option: str | None, time: str | None = None, *, distinct_share: float = 0.9
) -> tuple[str, tuple[str, ...]]:
    """Return the id column of a node file, and a note if it was guessed.

    It is the option, else the first well-known name, else a first column (almost) without repeats, or with at least a
    share of distinct cells; with times, the column of the fewest values that has (almost) none of them twice at a time.
    A few repeated or empty ids are reported by the caller, as no other column would have them.
    """
    if option is not None:
        return file.require(option, option="--id"), ()
    known = file.by_name
    for name in IDS:
        if name in known:
            return known[name], ()
    first = next(iter(file.columns))
    if time is None and _looks_like_ids(file, first, distinct_share):
        return first, (f"{file.path.name}: the first column, '{first}', is used as the node id",)
    found = None if time is None else _ids_at_times(file, time)
    if found is not None:
        return found, (f"{file.path.name}: '{found}', once at each {time}, is used as the node id",)
    raise InvalidInputError(
        f"{file.path}: no id column found; its columns are {listing(file.columns)}; choose one with --id"
    )


def _looks_like_ids(file: TableFile, name: str, distinct_share: float) -> bool:
    """Whether a column can have ids; a few repeats are typing errors, reported as such."""
    kind = file.values(name).dtype.kind
    distinct = len(pc.unique(file.keys(name).drop_null()))
    return (kind not in "fbM" and distinct >= distinct_share * file.n_rows) or file.n_rows == 0


def _ids_at_times(file: TableFile, time: str, *, distinct_share: float = 0.9) -> str | None:
    """Return the column of ids of a long table, None where there is none: any other has at least as many values."""
    times, counts = file.keys(time).to_pandas(), {}
    for name in file.columns:
        keys = file.keys(name).to_pandas()
        pairs = pd.DataFrame({"key": keys, "time": times}).dropna().drop_duplicates()
        if name != time and file.values(name).dtype.kind not in "fbM" and len(pairs) >= distinct_share * file.n_rows:
            counts[name] = keys.nunique()
    return min(counts, key=lambda name: counts[name], default=None)


def unique_ids(file: TableFile, name: str) -> pa.Array:
    """Return the ids of a node table as they are compared; raise if one is missing or repeated."""
    if file.n_rows == 0:
        raise InvalidInputError(f"{file.path} has no rows; it needs one for each node")
    keys = file.keys(name).combine_chunks()
    if keys.null_count:
        record = pc.index(keys.is_null(), True).as_py()
        raise InvalidInputError(f"{file.place(record)}, column {name}: the node id is missing; give every node an id")
    written = file.columns[name]
    distinct = pc.count_distinct(written if pa.types.is_integer(written.type) else keys).as_py()
    if distinct < len(keys):
        counts = pc.value_counts(keys)
        repeated = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
        rows = np.flatnonzero(pc.equal(keys, repeated[0]).to_numpy(zero_copy_only=False))[:2]
        first, second = (row_number(file.path, int(row)) for row in rows)
        others = f" ({len(repeated)} such ids)" if len(repeated) > 1 else ""
        raise InvalidInputError(
            f"{file.path}, rows {first} and {second}, column {name}: node id '{repeated[0]}' is not unique"
            f"{others}; keep one row per node, choose another column with --id, or predict with --repeated where rows "
            "are observations of a node"
        )
    return keys


def with_ends(
    nodes: TableFile, name: str, file: TableFile, ends: tuple[str, str], keys: pa.Array
) -> tuple[TableFile, pa.Array, tuple[str, ...]]:
    """Return a node file to which ends of edges are added that it lacks, the ids of its nodes, and a note.

    Cells of the new nodes are empty. A file that has none of the ends is refused later, as its ids do not match.
    """
    cells = [] if file.size is not None else [file.keys(end) for end in ends]
    found = distinct_ids(cells) if cells else keys
    looser, _ = _spelt_alike(cells, keys, nodes) if cells else (lambda each: each, ())
    strays = found.filter(pc.invert(pc.is_in(looser(found), value_set=looser(keys))))
    if len(strays) in (0, len(found)):
        return nodes, keys, ()
    longer = {column: _lengthened(values, len(strays)) for column, values in nodes.columns.items()}
    longer[name] = _with_ids(nodes.columns[name], keys, strays)
    numbers = {column: _lengthened(values, len(strays)) for column, values in nodes.numbers.items()}
    messages = f"{count(len(strays), 'node')} of {file.path.name} added to {nodes.path.name}, such as '{strays[0]}'"
    return replace(nodes, columns=longer, numbers=numbers, index=None), pa.concat_arrays([keys, strays]), (messages,)


def _lengthened(cells: pa.ChunkedArray, n: int) -> pa.ChunkedArray:
    return pa.chunked_array([*cells.chunks, pa.nulls(n, cells.type)], type=cells.type)


def _with_ids(cells: pa.ChunkedArray, keys: pa.Array, strays: pa.Array) -> pa.ChunkedArray:
    """Return a column of ids with more of them, as text where they do not have its type."""
    try:
        return pa.chunked_array([*cells.chunks, strays.cast(cells.type)], type=cells.type)
    except pa.ArrowInvalid:
        return pa.chunked_array([keys, strays])


def distinct_ids(cells: Sequence[pa.ChunkedArray]) -> pa.Array:
    """Return the different ids in some columns."""
    return pc.unique(pa.concat_arrays([each.combine_chunks() for each in cells])).drop_null()


def end_positions(
    file: TableFile, ends: tuple[str, str], keys: pa.Array, nodes: TableFile, *, unknown: str
) -> tuple[Ints, Ints, tuple[str, ...]]:
    """Return the nodes at both ends of every edge, -1 where there is none and edges are dropped; and notes."""
    if file.size is not None:
        return *_by_row(file, ends, keys, nodes), ()
    numbered = _by_number(file, ends, keys)
    if numbered is not None:
        return *numbered, ()
    found = [pc.index_in(file.keys(end), value_set=keys) for end in ends]  # one after the other: texts are large
    messages: tuple[str, ...] = ()
    if found[0].null_count or found[1].null_count:
        cells = [file.keys(end) for end in ends]
        looser, messages = _spelt_alike(cells, keys, nodes)
        found = [pc.index_in(looser(each), value_set=looser(keys)) for each in cells]
        for end, each, positions in zip(ends, cells, found, strict=True):
            _check_ends(file, end, pc.is_null(positions if unknown == REFUSE else each), nodes, keys)
        messages += _dropped(file, cells, found, nodes)
    u, v = (np.asarray(pc.fill_null(each, -1).to_numpy(), dtype=np.int32) for each in found)
    return u, v, messages


def _by_number(file: TableFile, ends: tuple[str, str], keys: pa.Array) -> tuple[Ints, Ints] | None:
    """Return the ends of edges where these and all ids are whole numbers and match; None where they are text or do not.

    Numbers are compared as such, file by file: their decimal text would take several times the memory and time.
    """
    cells = [file.columns[end] for end in ends]
    if any(each.null_count or not pa.types.is_integer(each.type) or pa.types.is_uint64(each.type) for each in cells):
        return None
    ids = as_integers(keys)
    if ids is None:
        return None
    u, v = (_numbered_end(each, ids) for each in cells)
    return (u, v) if min(u.min(initial=0), v.min(initial=0)) >= 0 else None


def as_integers(keys: pa.Array) -> Ints | None:
    """Return ids as integers; None where one is not, or has zeros before it: 007 is another id than 7."""
    try:
        ids = keys.cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    return np.asarray(ids.to_numpy()) if ids.cast(keys.type).equals(keys) else None


def _numbered_end(cells: pa.ChunkedArray, ids: Ints, *, spread: int = 8) -> Ints:
    """Return the position of every cell among ids, -1 where it is none.

    Where the range of ids is at most `spread` times their number, by a table of the memory of a hash table.
    """
    low, span = int(ids.min()), int(ids.max()) - int(ids.min()) + 1
    if span > spread * ids.size:
        found = pc.index_in(cells.cast(pa.int64()), value_set=pa.array(ids))
        return np.asarray(pc.fill_null(found, -1).to_numpy(), dtype=np.int32)
    table = np.full(span, -1, dtype=np.int32)
    table[ids - low] = np.arange(ids.size, dtype=np.int32)
    places, first = np.full(len(cells), -1, dtype=np.int32), 0
    for chunk in cells.chunks:
        offsets = chunk.to_numpy().astype(np.int64) - low
        inside = (offsets >= 0) & (offsets < span)
        places[first : first + offsets.size][inside] = table[offsets[inside]]
        first += offsets.size
    return places


def _by_row(file: TableFile, ends: tuple[str, str], keys: pa.Array, nodes: TableFile) -> tuple[Ints, Ints]:
    """Return the ends in a matrix, whose rows are those of the table of nodes."""
    if file.size != len(keys):
        raise InvalidInputError(
            f"{file.path} has {file.size} rows, but {nodes.path} has {len(keys)} nodes; row i belongs to node i"
        )
    numbers = [str(k) for k in range(1, len(keys) + 1)]
    if keys.to_pylist() != numbers and set(keys.to_pylist()) == set(numbers):
        raise InvalidInputError(
            f"{nodes.path}: its ids are 1 to {len(keys)} in another order, and {file.path} may mean ids or rows; "
            "sort the nodes by id"
        )
    u, v = (np.asarray(file.columns[end].to_numpy(), dtype=np.int64) - 1 for end in ends)
    return u, v


def _spelt_alike(
    cells: list[pa.ChunkedArray], keys: pa.Array, nodes: TableFile
) -> tuple[Callable[[Any], Any], tuple[str, ...]]:
    """Return the spelling under which more ends are ids of nodes while all ids stay different, and a note."""
    ends = distinct_ids(cells)
    best, matched, messages = (lambda keys: keys), pc.sum(pc.is_in(ends, value_set=keys)).as_py() or 0, ""
    for looser in _LOOSER:
        alike, others = looser(ends), looser(keys)
        found = pc.index_in(alike, value_set=others)
        n_found = len(found) - found.null_count
        if n_found > matched and len(pc.unique(others)) == len(keys) and len(pc.unique(alike)) == len(ends):
            new = pc.index(pc.and_(found.is_valid(), pc.invert(pc.is_in(ends, value_set=keys))), True).as_py()
            end, key = quoted_distinctly(ends[new].as_py(), keys[found[new].as_py()].as_py())
            messages = f"{end} is matched to {key} of {nodes.path.name}, and similar ids"
            best, matched = looser, n_found
    return best, (messages,) if messages else ()


def _without_point(keys: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(keys, r"^(-?\d+)\.0+$", r"\1")


def _composed(keys: pa.Array) -> pa.Array:
    return pc.utf8_normalize(keys, form="NFC")


def _without_case(keys: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(pc.utf8_lower(_composed(keys)), r"\s+", " ")


# Spellings under which ids may still be the same: 13001.0 and 13001; accents as a character of their own or not;
# capitals and repeated blanks, too; all of them.
_LOOSER: tuple[Callable[[pa.Array], pa.Array], ...] = (
    _without_point,
    _composed,
    _without_case,
    lambda keys: _without_point(_without_case(keys)),
)


def _check_ends(file: TableFile, name: str, lost: pa.ChunkedArray, nodes: TableFile, keys: pa.Array) -> None:
    """Raise on the first end of an edge that is lost, if there is one."""
    n_lost = pc.sum(lost).as_py()
    if n_lost:
        record = pc.index(lost, True).as_py()
        more = f" ({n_lost} such cells in the column)" if n_lost > 1 else ""
        raise InvalidInputError(_stray(file, name, record, file.keys(name)[record].as_py(), nodes, keys) + more)


def _dropped(
    file: TableFile, cells: list[pa.ChunkedArray], found: list[pa.ChunkedArray], nodes: TableFile
) -> tuple[str, ...]:
    """Return a note on dropped edges; raise if none is left."""
    lost = [pc.is_null(each) for each in found]
    unknown = [each.filter(out).unique().to_pylist() for each, out in zip(cells, lost, strict=True)]
    strays = list(dict.fromkeys([*unknown[0], *unknown[1]]))
    n_lost = pc.sum(pc.or_(*lost)).as_py()
    if n_lost == file.n_rows:
        raise InvalidInputError(
            f"{file.path}: no edge joins two nodes of {nodes.path}; check the ids, such as '{strays[0]}'"
        )
    if not strays:
        return ()
    return (f"dropped {count(n_lost, 'edge')} to {count(len(strays), 'unknown id')}, such as '{strays[0]}'",)


def _stray(file: TableFile, name: str, record: int, end: str | None, nodes: TableFile, keys: pa.Array) -> str:
    place = f"{file.place(record)}, column {name}"
    if end is None:
        return f"{place}: the node id is missing; remove the edge or name both its ends"
    bare = pc.index_in(pa.array([end.lstrip("0")]), value_set=pc.utf8_ltrim(keys, characters="0"))[0].as_py()
    if bare is not None:
        return f"{place}: node '{end}' is written '{keys[bare]}' in {nodes.path}; write ids with the same zeros"
    return (
        f"{place}: node '{end}' is not in {nodes.path}; add such nodes, with empty cells, by --unknown {ADD}, "
        f"or leave such edges out by --unknown {DROP}"
    )


def all_in(cells: pa.Array, keys: pa.Array | pa.ChunkedArray) -> bool:
    """Whether all ids are among others."""
    return bool(pc.all(pc.is_in(cells, value_set=pc.unique(keys))).as_py())

"""A graph with a table of its nodes, read from a node file and an edge file: ids matched, columns found by name."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from graphmrf._typing import Floats, Ints
from graphmrf.datasets.table_files import (
    PathLike,
    TableFile,
    delimiter_hint,
    listing,
    read_table,
    row_number,
    shown_ids,
)
from graphmrf.errors import InvalidInputError
from graphmrf.graph import Graph
from graphmrf.text import did_you_mean

IDS = ("id", "node", "node_id", "nodeid", "vertex", "key", "name")
ENDS = (
    ("source", "target"),
    ("u", "v"),
    ("from", "to"),
    ("src", "dst"),
    ("node1", "node2"),
    ("source", "dest"),
    ("source", "destination"),
    ("src", "dest"),
    ("from_node", "to_node"),
    ("node_1", "node_2"),
    ("id1", "id2"),
)
WEIGHTS = ("weight", "weights", "w")
UNWEIGHTED = "none"
ALMOST = 0.9
"""Least share of distinct cells of a first column that is taken for ids: a few repeats are typing errors, to be named.

By eye. Halving it takes columns such as ages for ids; at 1 one repeated id hides which column was meant.
"""
_NOT_WEIGHTS = ("id", "edge_id", "edgeid", "index")


@dataclass(frozen=True, eq=False)
class AttributedGraph:
    """A graph and a table with one row per node, in the same order.

    Parameters
    ----------
    graph : Graph
        Node ``i`` is row ``i`` of `frame`.
    frame : DataFrame of shape (n, 1 + columns)
        The id column first, then the other columns of the node file under their own names; missing is NaN.
    id : str
        Name of the id column.
    notes : tuple of str
        What was assumed or changed on the way in, one line each.
    path : path, optional
        The node file, for messages.

    Examples
    --------
    >>> import pandas as pd
    >>> from graphmrf.graph import Graph
    >>> table = AttributedGraph(Graph.from_edges([0], [1]), pd.DataFrame({"id": ["a", "b"], "rent": [9.5, None]}), "id")
    >>> table
    AttributedGraph(Graph(n_nodes=2, n_edges=1, unweighted), id='id', columns: 'rent')
    >>> table.outcome("rent")
    array([9.5, nan])
    """

    graph: Graph
    frame: pd.DataFrame
    id: str
    notes: tuple[str, ...] = ()
    path: Path | None = None

    def outcome(self, column: str) -> Floats:
        """Return a numeric column as float64, NaN where it is missing.

        Raises
        ------
        InvalidInputError
            No such column, or a cell that is not a finite number; the message names its row.
        """
        self.require(column)
        numbers, stray = _as_numbers(self.frame[column])
        if stray is not None:
            raise InvalidInputError(
                f"{self._place(stray)}, column {column}: '{self.frame[column].iloc[stray]}' is not a finite number; "
                "correct the cell, or leave it empty to have it predicted"
            )
        return numbers

    def require(self, column: str, *, option: str = "") -> None:
        """Raise InvalidInputError unless the table has this column besides its ids; `option` is what to change."""
        if column == self.id:
            raise InvalidInputError(f"column '{column}' holds the node ids; choose another column")
        if column not in self.frame.columns:
            near = did_you_mean(column, self.frame.columns[1:])
            others = listing(self.frame.columns[1:]) or "nothing but ids"
            choice = f": choose one with {option}" if option else ""
            raise InvalidInputError(
                f"{self.path or 'the table'} has no column '{column}'; {near}it has {others}{choice}"
            )

    def __repr__(self) -> str:
        """Return the graph and the names of the columns, without their cells."""
        return f"AttributedGraph({self.graph!r}, id='{self.id}', columns: {listing(self.frame.columns[1:]) or 'none'})"

    def _place(self, record: int) -> str:
        return f"row {record + 1}" if self.path is None else f"{self.path}, row {row_number(self.path, record)}"


def read(
    nodes: PathLike,
    edges: PathLike,
    *,
    id: str | None = None,  # noqa: A002 - the public name of the option
    source: str | None = None,
    dest: str | None = None,
    weight: str | None = None,
) -> AttributedGraph:
    r"""Return the attributed graph in a node file and an edge file (CSV, TSV, gzipped or not, or Parquet).

    Ids are compared as text without surrounding blanks: an integer is its decimal text, so ``7`` in Parquet matches
    ``7`` in CSV, while ``"00123"`` keeps its zeros and is another id than ``"123"``. An edge listed again, in either
    direction, counts once without weights and adds up with them. Self loops are dropped.

    Parameters
    ----------
    nodes, edges : path
        The suffix says the format: `.csv`, `.tsv`, `.csv.gz`, `.tsv.gz`, `.parquet`, `.pq`.
    id : str, optional
        Id column of the node file; by default `id`, `node`, `node_id`, `name`, ..., else a first column
        without repeats.
    source, dest : str, optional
        Columns of the edge file; by default `source,target`, `u,v`, `from,to`, `src,dst` or `node1,node2`.
    weight : str, optional
        Column of non-negative edge weights; by default the only numeric column besides the ends, if there is one.
        ``"none"`` counts every edge the same.

    Returns
    -------
    AttributedGraph
        One row per node, in the order of the node file.

    Raises
    ------
    InvalidInputError
        Anything that cannot be right, with its file, column and row (the line of a text file; the header is line 1).

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     nodes, edges = pathlib.Path(folder, "nodes.csv"), pathlib.Path(folder, "edges.csv")
    ...     _ = nodes.write_text("id,rent\n007,9.5\n008,\n"), edges.write_text("u,v\n007,008\n")
    ...     table = read(nodes, edges)
    >>> table.graph
    Graph(n_nodes=2, n_edges=1, unweighted)
    >>> table.frame["id"].tolist()
    ['007', '008']
    """
    node_file, edge_file = read_table(nodes), read_table(edges)
    name, assumed = id_column(node_file, id)
    keys = _unique_ids(node_file, name)
    graph, notes = _graph(edge_file, _ends(edge_file, source, dest), weight, keys, node_file)
    return AttributedGraph(graph, _frame(node_file, name), name, (*node_file.notes, *assumed, *notes), node_file.path)


def read_edges(
    edges: PathLike, *, source: str | None = None, dest: str | None = None, weight: str | None = None
) -> AttributedGraph:
    """Return the graph of an edge file alone: its nodes are the ends of the edges, in order of appearance.

    The parameters are those of `read`; the table has the single column `node`.
    """
    file = read_table(edges)
    ends = _ends(file, source, dest)
    keys = pc.unique(pa.concat_arrays([file.keys(end).combine_chunks() for end in ends])).drop_null()
    if len(keys) == 0:
        raise InvalidInputError(f"{file.path} has no edges; without a table of nodes there is nothing to draw on")
    graph, notes = _graph(file, ends, weight, keys, file)
    frame = pd.DataFrame({"node": shown_ids(pa.chunked_array([keys]), typed=file.typed)})
    return AttributedGraph(graph, frame, "node", notes, file.path)


def id_column(file: TableFile, option: str | None) -> tuple[str, tuple[str, ...]]:
    """Return the id column of a node file, and a line about it where it was not obvious.

    It is the option, else the first well-known name, else a first column (almost) without repeats. A few repeated or
    empty ids are for the caller to name, since nobody would look for them in another column.
    """
    if option is not None:
        return file.require(option, option="--id"), ()
    known = _by_name(file)
    for name in IDS:
        if name in known:
            return known[name], ()
    first = next(iter(file.columns))
    if not _delimiter_hint(file) and _looks_like_ids(file, first):
        return first, (f"{file.path.name}: the first column, '{first}', is taken as the node id",)
    raise InvalidInputError(
        f"{file.path}: no id column found; "
        + (_delimiter_hint(file) or f"its columns are {listing(file.columns)}: say which with --id")
    )


def _by_name(file: TableFile) -> dict[str, str]:
    return {name.lower(): name for name in reversed(file.columns)}


def _ends(file: TableFile, source: str | None, dest: str | None) -> tuple[str, str]:
    if source is not None and dest is not None:
        return file.require(source, option="--source"), file.require(dest, option="--dest")
    known = _by_name(file)
    for u, v in ENDS:
        if u in known and v in known:
            return _named(file, source, known[u], "--source"), _named(file, dest, known[v], "--dest")
    raise InvalidInputError(
        f"{file.path}: cannot tell which columns hold the two ends of an edge (source,target | u,v | from,to ...); "
        + (_delimiter_hint(file) or f"its first line has {listing(file.columns)}: say which with --source and --dest")
    )


def _named(file: TableFile, option: str | None, guess: str, flag: str) -> str:
    return guess if option is None else file.require(option, option=flag)


def _weight_column(file: TableFile, ends: tuple[str, str], option: str | None) -> tuple[str | None, tuple[str, ...]]:
    """Return the column of edge weights, None when every edge counts the same, and a line where it was assumed."""
    if option is not None:
        unweighted = option == UNWEIGHTED and option not in file.columns
        return None if unweighted else file.require(option, option="--weight"), ()
    candidates = _weight_candidates(file, ends)
    if len(candidates) > 1:
        raise InvalidInputError(
            f"{file.path} has more than one column that could be the edge weight: {listing(candidates)}; "
            f"choose with --weight COLUMN, or --weight {UNWEIGHTED} to count every edge the same"
        )
    if not candidates:
        return None, ()
    note = f"{file.path.name}: edge weights come from column '{candidates[0]}', where more is taken for a stronger tie"
    return candidates[0], (f"{note} (--weight {UNWEIGHTED} ignores it)",)


def _weight_candidates(file: TableFile, ends: tuple[str, str]) -> list[str]:
    others = [name for name in file.columns if name not in ends and name.lower() not in _NOT_WEIGHTS]
    named = [name for name in others if name.lower() in WEIGHTS]
    numeric = [name for name in others if name not in named and _is_numeric(file, name)]
    return named + numeric


def _is_numeric(file: TableFile, name: str) -> bool:
    series = file.values(name)
    return series.dtype.kind in "iuf" and bool(series.notna().any())


def _looks_like_ids(file: TableFile, name: str) -> bool:
    kind = file.values(name).dtype.kind
    distinct = len(pc.unique(file.keys(name).drop_null()))
    return (kind not in "fbM" and distinct >= ALMOST * file.n_rows) or file.n_rows == 0


def _delimiter_hint(file: TableFile) -> str:
    return "" if file.typed else delimiter_hint(list(file.columns))


def _as_numbers(series: pd.Series) -> tuple[Floats, int | None]:
    """Return a column as float64 with NaN where it is missing, and the first record that is not a number (or None).

    Examples
    --------
    >>> import pandas as pd
    >>> _as_numbers(pd.Series(["1.5", None, "abc"]))
    (array([1.5, nan, nan]), 2)
    """
    numbers = pd.to_numeric(series, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    stray = np.flatnonzero(np.isinf(numbers) | (np.isnan(numbers) & series.notna().to_numpy()))
    return numbers, int(stray[0]) if stray.size else None


def _graph(
    file: TableFile, ends: tuple[str, str], weight: str | None, keys: pa.Array, nodes: TableFile
) -> tuple[Graph, tuple[str, ...]]:
    """Return the graph on the nodes of these ids, and what was assumed or changed."""
    column, assumed = _weight_column(file, ends, weight)
    u, v = (_positions(file, end, keys, nodes) for end in ends)
    graph = Graph.from_edges(u, v, _weights(file, column), n_nodes=len(keys))
    return graph, (*file.notes, *assumed, *(f"{file.path.name}: {note}" for note in graph.notes))


def _frame(file: TableFile, id_name: str) -> pd.DataFrame:
    others = {name: file.values(name) for name in file.columns if name != id_name}
    return pd.DataFrame({id_name: file.ids(id_name), **others})


def _unique_ids(file: TableFile, name: str) -> pa.Array:
    if file.n_rows == 0:
        raise InvalidInputError(f"{file.path} has no rows; it needs one for each node")
    keys = file.keys(name).combine_chunks()
    if keys.null_count:
        record = pc.index(keys.is_null(), True).as_py()
        raise InvalidInputError(f"{file.place(record)}, column {name}: the node id is missing; give every node an id")
    counts = pc.value_counts(keys)
    if len(counts) < len(keys):
        repeated = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
        rows = np.flatnonzero(pc.equal(keys, repeated[0]).to_numpy(zero_copy_only=False))[:2]
        first, second = (row_number(file.path, int(row)) for row in rows)
        others = f" ({len(repeated)} such ids)" if len(repeated) > 1 else ""
        raise InvalidInputError(
            f"{file.path}, rows {first} and {second}, column {name}: node id '{repeated[0]}' is not unique"
            f"{others}; keep one row per node, or choose another column with --id"
        )
    return keys


def _positions(file: TableFile, name: str, keys: pa.Array, nodes: TableFile) -> Ints:
    ends = file.keys(name)
    positions = pc.index_in(ends, value_set=keys)
    if positions.null_count:
        record = pc.index(positions.is_null(), True).as_py()
        others = f" ({positions.null_count} such cells in the column)" if positions.null_count > 1 else ""
        raise InvalidInputError(_stray(file, name, record, ends[record].as_py(), nodes, keys) + others)
    return np.asarray(positions.to_numpy(), dtype=np.int64)


def _stray(file: TableFile, name: str, record: int, end: str | None, nodes: TableFile, keys: pa.Array) -> str:
    place = f"{file.place(record)}, column {name}"
    if end is None:
        return f"{place}: the node id is missing; remove the edge or name both its ends"
    bare = pc.index_in(pa.array([end.lstrip("0")]), value_set=pc.utf8_ltrim(keys, characters="0"))[0].as_py()
    if bare is not None:
        return f"{place}: node '{end}' is written '{keys[bare]}' in {nodes.path}; write ids with the same zeros"
    return f"{place}: node '{end}' is not in {nodes.path}; add it there or remove the edge"


def _weights(file: TableFile, name: str | None) -> Floats | None:
    if name is None:
        return None
    series = file.values(name)
    weights, stray = _as_numbers(series)
    bad = np.flatnonzero(~(weights >= 0))
    records = [record for record in (stray, *bad[:1]) if record is not None]
    if records:
        record = int(min(records))
        got = "a missing value" if series.isna().iloc[record] else f"'{series.iloc[record]}'"
        raise InvalidInputError(
            f"{file.place(record)}, column {name}: an edge weight must be a finite number >= 0, "
            f"got {got}; correct it or remove the edge"
        )
    return weights

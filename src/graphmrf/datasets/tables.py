"""Two files in, a graph whose nodes carry values out."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from graphmrf._typing import Floats, Ints
from graphmrf.datasets import cells, columns
from graphmrf.datasets.files import PathLike, TableFile, listing, load, row_number
from graphmrf.errors import InvalidInputError
from graphmrf.graph import Graph
from graphmrf.text import did_you_mean


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
        numbers, stray = cells.as_numbers(self.frame[column])
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
    node_file, edge_file = load(nodes), load(edges)
    choice = columns.id_column(node_file, id)
    keys = _unique_ids(node_file, choice.column)
    names = columns.edge_columns(edge_file, source, dest, weight)
    u, v = (_positions(edge_file, name, keys, node_file) for name in (names.source, names.dest))
    graph = Graph.from_edges(u, v, _weights(edge_file, names.weight), n_nodes=len(keys))
    told = (f"{edge_file.path.name}: {note}" for note in graph.notes)
    notes = (*node_file.notes, *choice.notes, *edge_file.notes, *names.notes, *told)
    return AttributedGraph(graph, _frame(node_file, choice.column), choice.column, notes, node_file.path)


def read_edges(
    edges: PathLike, *, source: str | None = None, dest: str | None = None, weight: str | None = None
) -> AttributedGraph:
    """Return the graph of an edge file alone: its nodes are the ends of the edges, in order of appearance.

    The parameters are those of `read`; the table has the single column `node`.
    """
    file = load(edges)
    names = columns.edge_columns(file, source, dest, weight)
    ends = [cells.canonical(file.columns[name]).combine_chunks() for name in (names.source, names.dest)]
    keys = pc.unique(pa.concat_arrays(ends)).drop_null()
    if len(keys) == 0:
        raise InvalidInputError(f"{file.path} has no edges; without a table of nodes there is nothing to draw on")
    u, v = (_positions(file, name, keys, file) for name in (names.source, names.dest))
    graph = Graph.from_edges(u, v, _weights(file, names.weight), n_nodes=len(keys))
    told = (f"{file.path.name}: {note}" for note in graph.notes)
    frame = pd.DataFrame({"node": cells.ids(pa.chunked_array([keys]), typed=file.typed)})
    return AttributedGraph(graph, frame, "node", (*file.notes, *names.notes, *told), file.path)


def _frame(file: TableFile, id_name: str) -> pd.DataFrame:
    others = {name: cells.values(column, typed=file.typed) for name, column in file.columns.items() if name != id_name}
    return pd.DataFrame({id_name: cells.ids(file.columns[id_name], typed=file.typed), **others})


def _unique_ids(file: TableFile, name: str) -> pa.Array:
    if file.n_rows == 0:
        raise InvalidInputError(f"{file.path} has no rows; it needs one for each node")
    keys = cells.canonical(file.columns[name]).combine_chunks()
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
    ends = cells.canonical(file.columns[name])
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
    series = cells.values(file.columns[name], typed=file.typed)
    weights, stray = cells.as_numbers(series)
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

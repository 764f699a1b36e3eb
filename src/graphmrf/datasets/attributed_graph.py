"""A graph with a table of its nodes, read from a node file and an edge file: ids matched, columns found by name."""

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pandas.api import types

from graphmrf._typing import Floats, Ints
from graphmrf.datasets.edge_files import (
    DISTANCE,
    EdgeColumns,
    covering_ids,
    edge_graph,
    end_columns,
    read_edge_file,
    weight_column,
)
from graphmrf.datasets.ids import ADD, REFUSE, as_integers, distinct_ids, id_column, unique_ids, with_ends
from graphmrf.datasets.table_files import (
    STDIN,
    PathLike,
    TableFile,
    as_numbers,
    listing,
    parts_of,
    read_table,
    row_number,
    shown_ids,
)
from graphmrf.errors import InvalidInputError
from graphmrf.files import as_url, is_absent, parquet_files
from graphmrf.graph import Graph
from graphmrf.graph.product import time_numbers
from graphmrf.text import did_you_mean

_PROGRESS = logging.getLogger("graphmrf.progress")


@dataclass(frozen=True, eq=False)
class AttributedGraph:
    """A graph and a table with one row per node, in the same order.

    Parameters
    ----------
    graph : Graph
        Node ``i`` is row ``i`` of `frame`, with the id of that row.
    frame : DataFrame of shape (n, 1 + columns)
        The id column first, then the other columns of the node file under their own names; missing is NaN. Rows have
        the ids of the graph as their index, by which estimators match them.
    id : str
        Name of the id column.
    notes : tuple of str
        Assumptions and changes, one line each.
    path : path, optional
        The node file, for messages.
    rounded : mapping of str to int
        Columns with a whole number that float64 rounds, and the first record with one.
    shapes : GeoSeries, optional
        Outlines of the nodes, where they were read from a file of areas.
    time : str, optional
        Name of the column of times of a panel, the second one. A node of the graph is then a node at a time.
    records : integer array of shape (n,), optional
        Record of the node file in every row, -1 for none; by default they are the same.
    rows : DataFrame of shape (k, columns), optional
        All rows of a file with several rows of a node, by position of their node; `frame` has means of numbers then.

    Examples
    --------
    >>> import pandas as pd
    >>> from graphmrf.graph import Graph
    >>> table = AttributedGraph(Graph.from_edges([0], [1]), pd.DataFrame({"id": ["a", "b"], "rent": [9.5, None]}), "id")
    >>> table
    AttributedGraph(Graph(n_nodes=2, n_edges=1, unweighted, ids a, b), id='id', columns: 'rent')
    >>> table.outcome("rent")
    array([9.5, nan])
    """

    graph: Graph
    frame: pd.DataFrame
    id: str
    notes: tuple[str, ...] = ()
    path: Path | None = None
    rounded: Mapping[str, int] = field(default_factory=dict)
    shapes: Any = None
    time: str | None = None
    records: Ints | None = None
    rows: pd.DataFrame | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the columns that identify a row: the id, and the time of a panel."""
        return (self.id,) if self.time is None else (self.id, self.time)

    @property
    def labels(self) -> list[Any]:
        """A name for every row: the id, or the id and the time."""
        if self.time is None:
            return list(self.frame[self.id].tolist())
        return [f"{node}, {time}" for node, time in zip(self.frame[self.id], self.frame[self.time], strict=True)]

    def __post_init__(self) -> None:
        if self.graph.ids is None and self.id in self.frame.columns:
            object.__setattr__(self, "graph", self.graph.with_ids(pd.Index(self.frame[self.id], tupleize_cols=False)))
        if self.graph.ids is not None:
            nameless = self.graph.ids.set_names([None] * self.graph.ids.nlevels)  # columns have these names
            object.__setattr__(self, "frame", self.frame.set_axis(nameless, axis=0))

    def outcome(self, column: str) -> Floats:
        """Return a numeric column as float64, NaN where it is missing.

        Raises
        ------
        InvalidInputError
            No such column, or a cell that is not a finite number; the message names its row.
        """
        self.require(column)
        return self._numbers(column, self.frame[column], self.place)

    def observations(self, column: str) -> Floats:
        """Return a numeric column of all rows of the file, of which a node may have several; see `outcome`."""
        self.require(column)
        return self.outcome(column) if self.rows is None else self._numbers(column, self.rows[column], self.row_place)

    def _numbers(self, column: str, cells: pd.Series, place: Callable[[int], str]) -> Floats:
        numbers, stray = as_numbers(cells)
        if stray is not None:
            raise InvalidInputError(
                f"{place(stray)}, column {column}: '{cells.iloc[stray]}' is not a finite number; "
                "correct the cell, or leave it empty to have it predicted"
            )
        if column in self.rounded:
            raise InvalidInputError(
                f"{self.place(self.rounded[column])}, column {column}: whole numbers beyond 2^53 cannot be "
                "represented exactly; subtract a common offset, or give it in a larger unit"
            )
        return numbers

    def carried_forward(self, values: Floats) -> Floats:
        """Return a column in which missing rows of a panel have the last known value of their node.

        Rows before the first known value have that one.
        """
        if self.time is None or self.records is None:
            return values
        by_node = pd.DataFrame(values).groupby(self.frame[self.id].to_numpy(), sort=False)
        last = by_node.ffill().fillna(by_node.bfill())[0].to_numpy()
        return np.where((self.records < 0) & np.isnan(values), last, values)

    def require(self, column: str, *, option: str = "") -> None:
        """Raise InvalidInputError unless the table has this column besides its ids; `option` is the one to change."""
        if column in self.keys:
            held = "node ids" if column == self.id else "times"
            raise InvalidInputError(f"column '{column}' contains the {held}; choose another column")
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

    def place(self, row: int) -> str:
        """Return the row of the file that a node is in, in words."""
        return self._place(row if self.records is None else int(self.records[row]))

    def row_place(self, row: int) -> str:
        """Return the row of the file that an observation is in, in words."""
        return self.place(row) if self.rows is None else self._place(row)

    def _place(self, record: int) -> str:
        return f"row {record + 1}" if self.path is None else f"{self.path}, row {row_number(self.path, record)}"


def read(  # noqa: PLR0913 - one parameter for each option
    nodes: PathLike | Any,
    edges: PathLike | Any,
    *,
    id: str | None = None,  # noqa: A002 - the public name of the option
    source: str | None = None,
    dest: str | None = None,
    weight: str | None = None,
    weight_is: str | None = None,
    unknown: str = REFUSE,
    time: str | None = None,
    horizon: int = 0,
) -> AttributedGraph:
    r"""Return the attributed graph in a node file and an edge file.

    Ids are compared as text without surrounding blanks: an integer is its decimal text, so ``7`` in Parquet matches
    ``7`` in CSV, while ``"00123"`` and ``"123"`` are different ids. Where that leaves ends of edges
    without a node, ``13001.0`` may be ``13001`` and capitals may differ, as long as all ids stay different. An edge
    listed again, in either direction, counts once without weights; with weights they add up, except for an edge that is
    listed in both directions with the same weight. Self loops are dropped. Assumptions are reported in `notes`.

    Parameters
    ----------
    nodes, edges : path or DataFrame
        Tables of pandas, GeoPandas, Polars or Arrow are read like files with typed columns; an index
        of names is the first column.
        The suffix gives the format: `.csv`, `.tsv` or `.txt` (also with `.gz`; commas, semicolons, tabs or `|`;
        decimal commas; UTF-8, UTF-16 or Windows-1252), `.parquet`, `.pq`, `.xlsx`, and of `.geojson`, `.gpkg` and
        `.shp` the columns besides the shapes; ``-`` is standard input. Edges may also be in `.graphml`, `.mtx`,
        `.gal` and `.gwt`.
    id : str, optional
        Id column of the node file; by default `id`, `node`, `node_id`, `name`, ..., else a first column
        without repeats; and where that lacks ends of edges, the only column that has them all.
    source, dest : str, optional
        Columns of the edge file; by default `source,target`, `u,v`, `from,to`, `src,dst`, `focal,neighbor` and
        their like, else the only two columns, or the only two that contain ids.
    weight : str, optional
        Column of non-negative edge weights; by default the only numeric column besides the ends, if there is one
        (and its name does not look like a distance). ``"none"`` ignores weights.
    weight_is : str, optional
        ``"strength"``, or ``"distance"``: its inverse is the weight; 0 becomes the smallest other distance.
    unknown : str, default "error"
        What to do with edges to ids that are not in the node file: ``"error"``, ``"drop"`` the edges, or ``"add"``
        the nodes, after all others and with empty cells: for a file of known values only.
    time : str, optional
        Column of times, numbers or dates, of a node file with one row for each node and time. The result is a panel,
        see `Graph.over_time`: a row for each node and time, node by node. Where the file has none, cells are missing,
        except for columns that are the same at all times of every node.
    horizon : int, default 0
        Times to come after the last, whose rows are to be predicted.

    Returns
    -------
    AttributedGraph
        One row per node, in the order of the node file.

    Raises
    ------
    InvalidInputError
        Invalid input, with its file, column and row (the line of a text file; the header is line 1).

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     nodes, edges = pathlib.Path(folder, "nodes.csv"), pathlib.Path(folder, "edges.csv")
    ...     _ = nodes.write_text("id,rent\n007,9.5\n008,\n"), edges.write_text("u,v\n007,008\n")
    ...     table = read(nodes, edges)
    >>> table.graph
    Graph(n_nodes=2, n_edges=1, unweighted, ids 007, 008)
    >>> table.frame["id"].tolist()
    ['007', '008']
    """
    asked = EdgeColumns(source, dest, weight, weight_is, unknown)
    _PROGRESS.info("reading nodes")
    node_file = read_table(nodes)
    _PROGRESS.info("reading edges")
    edge_file, name = _edges(edges), ""
    if time is not None:
        name, assumed = id_column(node_file, id, node_file.require(time, option="--time"))
        return _over_time(node_file, (name, time, horizon), edge_file, asked, assumed)
    try:
        name, assumed = id_column(node_file, id)
        return _attributed(node_file, name, edge_file, asked, assumed)
    except InvalidInputError:
        found = None if id is not None else _ids_by_cells(node_file, edge_file, asked, name)
        if found is None:
            raise
        return _attributed(*found, edge_file, asked, (f"{node_file.path.name}: '{found[1]}' has the ids of the edges",))


def _edges(edges: PathLike | Any) -> TableFile:
    """Return the table of edges; raise an error that names it where it is missing."""
    named = isinstance(edges, str | os.PathLike) and as_url(edges) is None and Path(edges) != STDIN
    if named and is_absent(edges):
        raise InvalidInputError(
            f"{edges}: no such file; it should be the table of edges: check the path, or join the nodes by --knn or "
            "--shapes"
        )
    return read_edge_file(edges)


def _attributed(
    node_file: TableFile, name: str, edge_file: TableFile, asked: EdgeColumns, assumed: tuple[str, ...]
) -> AttributedGraph:
    _PROGRESS.info("ids of %d nodes and %d edges", node_file.n_rows, edge_file.n_rows)
    keys = unique_ids(node_file, name)
    edge_file, ends, messages = end_columns(edge_file, asked, keys)
    if asked.unknown == ADD:
        node_file, keys, added = with_ends(node_file, name, edge_file, ends, keys)
        messages += added
    graph, notes = edge_graph(edge_file, ends, asked, keys, node_file)
    notes = (*node_file.notes, *assumed, *messages, *notes)
    return with_nodes(graph, node_file, name, notes)


def _over_time(
    file: TableFile, names: tuple[str, str, int], edge_file: TableFile, asked: EdgeColumns, assumed: tuple[str, ...]
) -> AttributedGraph:
    """Return the panel of a long table, given the names of its ids and times, and how many times are to come."""
    name, time, horizon = names
    node = _nodes_of_rows(file, name)
    position, found = pd.factorize(_times_of_rows(file, time), sort=True)
    _check_once(file, node * len(found) + position, (name, time))
    times = _with_future(pd.Index(found, name=time), horizon)
    once = _attributed(file.take(np.unique(node, return_index=True)[1]), name, edge_file, asked, assumed)
    n, T = once.graph.n_nodes, times.size
    rows, records = node * T + position, np.full(n * T, -1)
    records[rows] = np.arange(file.n_rows)
    keys = {name: once.frame[name].repeat(T).to_numpy(), time: np.tile(times, n)}
    others = pd.DataFrame({other: file.values(other) for other in file.columns if other not in (name, time)})
    absent = int((records < 0).sum())
    added = (f"{absent} of {n * T} rows of a node at a time are not in {file.path.name}, and are predicted",)
    return AttributedGraph(
        once.graph.over_time(times),
        pd.concat([pd.DataFrame(keys), _spread(others, node, records, n)], axis=1),
        name,
        once.notes + (added if absent else ()),
        file.path,
        {other: int(rows[record]) for other, record in file.all_rounded.items()},
        time=time,
        records=records,
    )


def read_repeated(
    nodes: PathLike | Any,
    read_once: Callable[[TableFile, str], AttributedGraph],
    *,
    id: str | None = None,  # noqa: A002 - the public name of the option
) -> AttributedGraph:
    """Return the attributed graph of a table with any number of rows of a node, each an observation of it.

    `nodes`, `id`: as in `read`. `read_once`: returns the graph of a table with one row of each node, given the name of
    its id column. In the result `rows` has all rows, and `frame` for each node the mean of a column of numbers that
    differs between its rows, and the first known cell of any other.
    """
    file = read_table(nodes)
    name, assumed = id_column(file, id, distinct_share=0.0)
    node = _nodes_of_rows(file, name)
    first = np.unique(node, return_index=True)[1]
    once = read_once(file.take(first), name)
    rows = pd.DataFrame({other: file.values(other) for other in file.columns if other != name}).set_axis(node)
    by_node = rows.groupby(level=0)
    frame, differs = by_node.first(), (by_node.nunique() > 1).any()
    for other in rows.columns[differs]:
        if types.is_numeric_dtype(rows[other]) and not types.is_bool_dtype(rows[other]):
            frame[other] = by_node[other].mean()
    frame = frame.reindex(range(once.graph.n_nodes)).set_axis(once.frame.index)
    return replace(
        once,
        frame=pd.concat([once.frame[[name]], frame], axis=1),
        notes=(*assumed, *once.notes),
        rounded={other: int(node[record]) for other, record in file.all_rounded.items()},
        records=np.append(first, np.full(once.graph.n_nodes - first.size, -1)),
        rows=rows,
    )


def _spread(frame: pd.DataFrame, node: Ints, records: Ints, n: int) -> pd.DataFrame:
    """Return columns of a long table with a row for each node and time, given the record in every row, -1 for none.

    Without a record, columns that never change within a node keep their value; others are missing.
    """
    rows, absent = range(records.size), records < 0
    whole = frame.reindex(records).set_axis(rows)
    by_node = frame.groupby(node)
    lasting = (by_node.nunique() <= 1).all() if absent.any() else np.zeros(frame.shape[1], dtype=bool)
    for name in frame.columns[lasting]:
        value = by_node[name].first().reindex(range(n)).repeat(records.size // n).set_axis(rows)
        whole[name] = whole[name].where(~absent, value)
    return whole


def _nodes_of_rows(file: TableFile, name: str) -> Ints:
    """Return the node of every row of a long table, numbered in the order of the file."""
    keys = file.keys(name).combine_chunks()
    if keys.null_count:
        record = int(np.argmax(keys.is_null().to_numpy(zero_copy_only=False)))
        raise InvalidInputError(f"{file.place(record)}, column {name}: the node id is missing; give it in every row")
    return np.asarray(pd.factorize(keys.to_pandas())[0])


def with_nodes(graph: Graph, file: TableFile, name: str, notes: tuple[str, ...]) -> AttributedGraph:
    """Return a graph with the table of its nodes, whose ids are in the column of this name."""
    others = {other: file.values(other) for other in file.columns if other != name}
    frame = pd.DataFrame({name: file.ids(name), **others})
    return AttributedGraph(graph, frame, name, notes, file.path, file.all_rounded)


def _ids_by_cells(
    node_file: TableFile, edge_file: TableFile, asked: EdgeColumns, tried: str
) -> tuple[TableFile, str] | None:
    """Return the node file and the only one of its columns that has all ends of the edges; None for no such column.

    A first column without a name, as pandas writes an index, is one of them, and then named `id`.
    """
    if node_file.index is not None and "id" not in node_file.columns:
        kept = tuple(note for note in node_file.notes if "without a name" not in note)
        node_file = replace(node_file, columns={"id": node_file.index, **node_file.columns}, notes=kept)
    names = covering_ids(node_file, edge_file, asked)
    if tried in names:
        return None
    if len(names) > 1:
        raise InvalidInputError(f"{node_file.path}: {listing(names)} all have the ids of the edges; choose with --id")
    return (node_file, names[0]) if names else None


def read_on_workers(
    nodes: PathLike,
    edges: PathLike,
    machines: Any,
    *,
    id: str | None = None,  # noqa: A002 - the public name of the option
    **columns: Any,
) -> AttributedGraph:
    """Return what `read` does, of a folder or URL of Parquet files of edges that only the workers of a cluster read.

    The first file determines the columns of ends and weight. See `Graph.from_parquet` for what such a graph can do.
    The parameters are those of `read`, and a `graphmrf.cluster` whose workers see the folder.
    """
    url = as_url(edges)
    files = parts_of(edges) if url is None else parquet_files(url)
    asked, node_file, first = EdgeColumns(**columns), read_table(nodes), read_table(files[0])
    if asked.unknown != REFUSE or asked.weight_is == DISTANCE:
        option = f"--weight-is {DISTANCE}" if asked.unknown == REFUSE else f"--unknown {asked.unknown}"
        raise InvalidInputError(f"{option} needs all edges at once; drop it, or --partition rows")
    name, assumed = id_column(node_file, id)
    keys = unique_ids(node_file, name)
    _, ends, messages = end_columns(first, asked, keys)
    weight, weighed = weight_column(first, ends, asked)
    ids = _as_in_edges(keys, first.columns[ends[0]].type)
    graph = Graph.from_parquet(
        url or str(edges), n_nodes=len(keys), cluster=machines, ends=ends, weight=weight, ids=ids
    )
    return with_nodes(graph.with_ids(None), node_file, name, (*node_file.notes, *assumed, *messages, *weighed))


def _as_in_edges(keys: pa.Array, kind: pa.DataType) -> Any:
    """Return ids in the form that ends of edges have: text, or numbers; None where they number the nodes from 0."""
    ids = as_integers(keys) if pa.types.is_integer(kind) else None
    if ids is None:
        return keys.to_pandas()
    return None if np.array_equal(ids, np.arange(ids.size)) else ids


def read_edges(
    edges: PathLike,
    *,
    source: str | None = None,
    dest: str | None = None,
    weight: str | None = None,
    weight_is: str | None = None,
) -> AttributedGraph:
    """Return the graph of an edge file alone: its nodes are the ends of the edges, in order of appearance.

    The parameters are those of `read`; the table has the single column `node`.
    """
    asked = EdgeColumns(source, dest, weight, weight_is)
    file, ends, messages = end_columns(read_edge_file(edges), asked, pa.array([], pa.string()))
    keys = distinct_ids([file.keys(end) for end in ends])
    if len(keys) == 0:
        raise InvalidInputError(f"{file.path} has no edges; without a table of nodes there is nothing to read")
    graph, notes = edge_graph(file, ends, asked, keys, file)
    frame = pd.DataFrame({"node": shown_ids(pa.chunked_array([keys]), typed=file.typed)})
    return AttributedGraph(graph, frame, "node", (*messages, *notes), file.path)


def _times_of_rows(file: TableFile, name: str) -> Any:
    """Return the time of every row of a long table, numbers or dates."""
    values = file.values(name)
    if values.isna().any():
        record = int(np.argmax(values.isna()))
        raise InvalidInputError(f"{file.place(record)}, column {name}: the time is missing; give it in every row")
    if values.dtype.kind in "iufM":
        return values
    dates = pd.to_datetime(values, errors="coerce", format="ISO8601")
    if dates.isna().any():
        record = int(np.argmax(dates.isna()))
        raise InvalidInputError(
            f"{file.place(record)}, column {name}: '{values.iloc[record]}' is neither a number nor a date; write times "
            "such as 2024, 17.5 or 2024-05-31"
        )
    return dates


def _check_once(file: TableFile, pairs: Ints, names: tuple[str, str]) -> None:
    """Raise where two rows are of one node and time."""
    again = np.flatnonzero(pd.Series(pairs).duplicated())
    if again.size:
        rows = np.flatnonzero(pairs == pairs[again[0]])[:2]
        first, second = (row_number(file.path, int(row)) for row in rows)
        node, time = (file.columns[name][int(rows[0])].as_py() for name in names)
        more = f" ({again.size} such rows)" if again.size > 1 else ""
        raise InvalidInputError(
            f"{file.path}, rows {first} and {second}: both are of {names[0]} '{node}' at {names[1]} {time}{more}; keep "
            "one row for each node and time, such as their mean"
        )


def _with_future(times: pd.Index, horizon: int) -> pd.Index:
    """Return times followed by a number of later ones at the usual spacing."""
    if horizon < 0 or (horizon and times.size < 2):
        need = f"must be 0 or more, got {horizon}" if horizon < 0 else "needs at least two times to go on from, got one"
        raise InvalidInputError(f"--horizon {need}")
    if not horizon:
        return times
    ahead: Any
    if isinstance(times, pd.DatetimeIndex) and np.ptp(times.day) == 0:  # months or years, of unequal length
        months = int(np.median(np.diff(12 * times.year + times.month)))
        ahead = [times[-1] + pd.DateOffset(months=months * k) for k in range(1, horizon + 1)]
        return times.append(pd.DatetimeIndex(ahead)).rename(times.name)
    step = np.median(np.diff(time_numbers(times)))
    ahead = step * np.arange(1, horizon + 1)
    if isinstance(times, pd.DatetimeIndex):
        ahead = pd.to_timedelta(ahead, unit="D")
    elif times.dtype.kind in "iu" and step == np.floor(step):
        ahead = ahead.astype(np.int64)
    return times.append(pd.Index(times[-1] + ahead)).rename(times.name)

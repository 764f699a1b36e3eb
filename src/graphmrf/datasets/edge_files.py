"""Edges in files: tables, GraphML, Matrix Market, GAL, GWT; which columns are ends and weight; the graph."""

import logging
import os
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from graphmrf._typing import Bools, Floats, Ints
from graphmrf.datasets.dialect import decoded, encoding_of
from graphmrf.datasets.ids import ADD, DROP, REFUSE, all_in, distinct_ids, end_positions
from graphmrf.datasets.table_files import PathLike, TableFile, as_numbers, listing, read_table
from graphmrf.errors import InvalidInputError
from graphmrf.files import check_readable
from graphmrf.graph import Graph
from graphmrf.text import count

_PROGRESS = logging.getLogger("graphmrf.progress")

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
    ("focal", "neighbor"),
    ("focal", "neighbour"),
    ("origin", "destination"),
    ("ego", "alter"),
    ("i", "j"),
)
WEIGHTS = ("weight", "weights", "w")
UNWEIGHTED = "none"
STRENGTH, DISTANCE = "strength", "distance"
DISTANCES = frozenset(
    {
        *("distance", "distances", "dist", "length", "len", "separation", "dissimilarity", "resistance", "impedance"),
        *("km", "kilometers", "kilometres", "mile", "miles", "metre", "metres", "meter", "meters"),
        *("time", "duration", "hours", "minutes", "seconds", "travel", "cost", "costs"),
    }
)
"""Words in names of columns in which smaller means nearer; they are used as strengths only on request."""
_LENGTHS = frozenset({"km", "m", "cm", "mm", "mi", "ft"})
_NOT_WEIGHTS = frozenset({"id", "edge_id", "edgeid", "index", "fid", "objectid", "key"})


@dataclass(frozen=True)
class EdgeColumns:
    """Options of an edge file; None detects them."""

    # source, dest: columns of the two ends
    source: str | None = None
    dest: str | None = None
    weight: str | None = None  # column of weights; ``"none"`` ignores weights
    weight_is: str | None = None  # `strength`, or `distance` of which the inverse is taken
    unknown: str = REFUSE  # what to do about edges to ids that no node has: `error`, `drop`, or `add` the nodes

    def __post_init__(self) -> None:
        if self.weight_is not in (None, STRENGTH, DISTANCE):
            raise InvalidInputError(f"--weight-is must be {STRENGTH} or {DISTANCE}, got '{self.weight_is}'")
        if self.unknown not in (REFUSE, DROP, ADD):
            raise InvalidInputError(f"--unknown must be {REFUSE}, {DROP} or {ADD}, got '{self.unknown}'")
        if self.weight == UNWEIGHTED and self.weight_is is not None:
            raise InvalidInputError(f"--weight {UNWEIGHTED} and --weight-is exclude each other; drop one of them")


def read_edge_file(path: PathLike | Any) -> TableFile:
    """Return the edges in a file as a table with one row per edge: a table as it is, other formats by their suffix.

    `.graphml` (NetworkX reads it), `.mtx` (a square Matrix Market matrix, whose rows are those of the table of nodes),
    and `.gal` and `.gwt` (spatial weights) have the columns `source`, `target` and any others.

    Raises InvalidInputError: as `read_table`, or a file that is not of the format of its suffix.
    """
    if not isinstance(path, str | os.PathLike):
        return read_table(path)
    path = Path(path)
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        return read_table(path)
    try:
        return reader(check_readable(path))
    except InvalidInputError:
        raise
    except Exception as error:  # each library has errors of its own for a damaged file
        message = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InvalidInputError(f"{path} cannot be read as {path.suffix} ({message}); it may be damaged") from error


def _edge_table(path: Path, columns: dict[str, Any], **more: Any) -> TableFile:
    return TableFile(path, {name: pa.chunked_array([pa.array(cells)]) for name, cells in columns.items()}, **more)


def _read_graphml(path: Path) -> TableFile:
    try:
        import networkx
    except ImportError as error:
        raise InvalidInputError(
            f"{path}: .graphml files need NetworkX; install it with pip install 'graphmrf[graphml]', "
            "or save the edges as .csv"
        ) from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an attribute without a type is text
        graph = networkx.read_graphml(path)
    ends = [(str(u), str(v), data) for u, v, data in graph.edges(data=True)]
    columns: dict[str, Any] = {"source": [u for u, _, _ in ends], "target": [v for _, v, _ in ends]}
    for name in dict.fromkeys(key for _, _, data in ends for key in data):
        columns[str(name)] = [data.get(name) for _, _, data in ends]
    for label in ("label", "name", "id"):
        labels = {str(node): value for node, value in graph.nodes(data=label) if value is not None}
        if len(labels) == len(graph) == len(set(labels.values())) and len(graph):
            columns |= {f"{end} {label}": [str(labels[each]) for each in columns[end]] for end in ("source", "target")}
    return _edge_table(path, columns)


def _read_matrix(path: Path) -> TableFile:
    """Return the entries of a Matrix Market file; NumPy parses it, as damaged files crash SciPy's reader."""
    with path.open(encoding="latin-1") as lines:
        field = _matrix_field(path, next(lines, ""))
        sizes = next((line.split() for line in lines if line.strip() and not line.startswith("%")), [])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a matrix without entries has no lines
            numbers = np.loadtxt(lines, comments=None, ndmin=2)
    n_rows, n_columns, n_entries = map(int, sizes)
    if n_rows != n_columns:
        raise InvalidInputError(
            f"{path} must hold a square matrix with a row for each node, got {n_rows} x {n_columns}"
        )
    entries = _entries(path, numbers, n_rows, n_entries, 2 if field == "pattern" else 3)
    columns: dict[str, Any] = {"source": entries[0].astype(np.int64), "target": entries[1].astype(np.int64)}
    weights = {} if field == "pattern" or (entries[2] == 1).all() else {"weight": entries[2]}
    return _edge_table(path, columns | weights, size=n_rows)


def _matrix_field(path: Path, line: str) -> str:
    """Return what the entries of a Matrix Market file are, from its first line; raise for what is no graph."""
    kind = re.fullmatch(
        r"%%matrixmarket matrix coordinate (real|double|integer|unsigned-integer|pattern) (general|symmetric)\s*",
        " ".join(line.lower().split()),
    )
    if kind is None:
        raise InvalidInputError(
            f"{path} cannot be read as .mtx: its first line must be %%MatrixMarket matrix coordinate, then real, "
            "integer or pattern, then general or symmetric; save a sparse matrix of numbers >= 0"
        )
    return kind[1]


def _entries(path: Path, numbers: Floats, n_rows: int, n_entries: int, width: int) -> Floats:
    """Return rows, columns and values of the entries as they are listed; a symmetric matrix lists each once."""
    found = len(numbers) if numbers.size else 0
    if found != n_entries or (found and numbers.shape[1] != width):
        raise InvalidInputError(
            f"{path} cannot be read as .mtx: expected {n_entries} lines of {width} numbers, got {found} of "
            f"{numbers.shape[1]}; it may be cut short"
        )
    if not found:
        return np.empty((3, 0))
    ends = numbers[:, :2]
    wrong = ~((ends >= 1) & (ends <= n_rows) & (ends == np.floor(ends))).all(axis=1)
    if wrong.any():
        raise InvalidInputError(
            f"{path}, entry {int(wrong.argmax()) + 1}: row and column must be whole numbers from 1 to {n_rows}"
        )
    return numbers.T


def _words(path: Path) -> Iterator[list[str]]:
    """Yield the words of every line of a text file."""
    raw = path.read_bytes()
    text = decoded(raw, encoding_of(raw))
    return (line.split() for line in text.splitlines())


def _read_gal(path: Path) -> TableFile:
    lines = _words(path)
    head = next(lines, [])
    n_nodes = int(head[1] if len(head) > 1 else head[0])
    words = [word for line in lines for word in line]
    source: list[str] = []
    target: list[str] = []
    at = seen = 0
    while at < len(words):
        n_neighbours = int(words[at + 1])
        target += words[at + 2 : at + 2 + n_neighbours]
        source += [words[at]] * n_neighbours
        at, seen = at + 2 + n_neighbours, seen + 1
    if seen != n_nodes or len(source) != len(target):
        raise InvalidInputError(
            f"{path} must list {n_nodes} nodes by its first line, got {seen}; save it again, without blanks in ids"
        )
    return _edge_table(path, {"source": source, "target": target})


def _read_gwt(path: Path) -> TableFile:
    _, *rows = [words for words in _words(path) if words]
    wrong = next((i for i, words in enumerate(rows, 2) if len(words) != 3), None)
    if wrong is not None:
        raise InvalidInputError(f"{path}, row {wrong}: expected two ids and a number; save it without blanks in ids")
    source, target, distance = zip(*rows, strict=True) if rows else ((), (), ())
    return _edge_table(path, {"source": source, "target": target, "distance": [float(each) for each in distance]})


_READERS: dict[str, Callable[[Path], TableFile]] = {
    ".graphml": _read_graphml,
    ".mtx": _read_matrix,
    ".gal": _read_gal,
    ".gwt": _read_gwt,
}


def end_columns(
    file: TableFile, asked: EdgeColumns, keys: pa.Array
) -> tuple[TableFile, tuple[str, str], tuple[str, ...]]:
    """Return the edge file, its two columns of ends, and a note if they were guessed.

    They are the options, else well-known names, else the only two columns, or the two that hold ids of nodes. A file
    whose first line is an edge rather than names gets names.
    """
    if asked.source is not None and asked.dest is not None:
        return file, (file.require(asked.source, option="--source"), file.require(asked.dest, option="--dest")), ()
    named = named_ends(file)
    if named is not None:
        u, v = named
        source = u if asked.source is None else file.require(asked.source, option="--source")
        dest = v if asked.dest is None else file.require(asked.dest, option="--dest")
        return file, (source, dest), ()
    if asked.source is None and asked.dest is None:
        if len(file.columns) > 1 and all_in(pa.array(list(file.columns)[:2]), keys):
            return _headed(file), ("source", "target"), (f"{file.path.name}: its first line is read as an edge",)
        ends = _ends_by_cells(file, keys)
        if ends:
            return file, ends, (f"{file.path.name}: edges run from '{ends[0]}' to '{ends[1]}'",)
    raise InvalidInputError(
        f"{file.path}: cannot find the two columns with the ends of an edge (source,target | u,v | from,to ...); "
        f"its first line has {listing(file.columns)}; choose two with --source and --dest"
    )


def named_ends(file: TableFile) -> tuple[str, str] | None:
    """Return the columns of the ends by well-known names, or None."""
    known = file.by_name
    return next(((known[u], known[v]) for u, v in ENDS if u in known and v in known), None)


def _ends_by_cells(file: TableFile, keys: pa.Array | pa.ChunkedArray) -> tuple[str, str] | None:
    """Return the two columns whose cells are ids of nodes, or the only two columns; None where that is not clear."""
    others = [name for name in file.columns if name.lower() not in WEIGHTS and not _is_distance(name)]
    if file.n_rows and len(file.columns) > 2:
        others = [name for name in others if _holds_ids(file, name, keys)]
    return (others[0], others[1]) if len(others) == 2 else None


def _holds_ids(file: TableFile, name: str, keys: pa.Array | pa.ChunkedArray) -> bool:
    cells = pc.unique(file.keys(name)).drop_null()
    return len(cells) > 0 and all_in(cells, keys)


def _headed(file: TableFile) -> TableFile:
    """Return a table without a header with its first line as the first record."""
    names = ["source", "target", "weight", *(f"column {k}" for k in range(4, len(file.columns) + 1))]
    columns = {
        name: pa.chunked_array([pa.array([first]), *cells.chunks], pa.string())
        for name, (first, cells) in zip(names, file.columns.items(), strict=False)
    }
    return replace(file, columns=columns, numbers={}, headless=True)


def covering_ids(nodes: TableFile, file: TableFile, asked: EdgeColumns) -> list[str]:
    """Return the columns of a node file that hold all ends of the edges and no id twice."""
    given = None if asked.source is None or asked.dest is None else (asked.source, asked.dest)
    ends: tuple[str, ...] = given or named_ends(file) or tuple(file.columns)
    if len(ends) > 2 and asked.source is None and asked.dest is None:
        return [name for name in nodes.columns if nodes.has_unique(name) and _ends_by_cells(file, nodes.keys(name))]
    if len(ends) != 2 or not set(ends) <= set(file.columns) or file.size is not None:
        return []
    cells = distinct_ids([file.keys(end) for end in ends])
    return [name for name in nodes.columns if len(cells) and nodes.has_unique(name) and all_in(cells, nodes.keys(name))]


def edge_graph(
    file: TableFile, ends: tuple[str, str], asked: EdgeColumns, keys: pa.Array, nodes: TableFile
) -> tuple[Graph, tuple[str, ...]]:
    """Return the graph on the nodes of these ids, and what was assumed or changed."""
    column, assumed = weight_column(file, ends, asked)
    if ends[0] == ends[1] or column in ends:
        alike = "--source and --dest" if ends[0] == ends[1] else "--weight and an end of the edges"
        raise InvalidInputError(f"{file.path}: {alike} are the same column, '{column or ends[0]}'; name another")
    u, v, messages = end_positions(file, ends, keys, nodes, unknown=asked.unknown)
    weights, inverted = _weights(file, column, asked)
    kept = (u >= 0) & (v >= 0)
    if not kept.all():
        u, v, weights = u[kept], v[kept], None if weights is None else weights[kept]
    _PROGRESS.info("graph of %d edges", u.size)
    graph = Graph.from_edges(u, v, weights, n_nodes=len(keys))
    if weights is not None and graph.n_edges < np.count_nonzero(u != v):
        once, both = _one_direction(u, v, weights, len(keys))
        graph, messages = Graph.from_edges(u[once], v[once], weights[once], n_nodes=len(keys)), messages + both
    notes = (*messages, *inverted, *graph.notes)
    return graph, (*file.notes, *assumed, *(f"{file.path.name}: {note}" for note in notes))


def _one_direction(u: Ints, v: Ints, weights: Floats, n: int) -> tuple[Bools, tuple[str, ...]]:
    """Return which edges to keep so that a pair listed in both directions with the same weight counts once."""
    backward = u > v
    keep = np.ones(u.size, dtype=bool)
    if not backward.any() or backward.all():
        return keep, ()
    pairs, place = np.unique(np.minimum(u, v).astype(np.int64) * n + np.maximum(u, v), return_inverse=True)
    there = np.bincount(place[~backward], weights[~backward], pairs.size)
    back = np.bincount(place[backward], weights[backward], pairs.size)
    same = (there > 0) & np.isclose(there, back, rtol=1e-9, atol=0)
    keep[backward & same[place]] = False
    messages = f"{count(int(same.sum()), 'edge')} listed in both directions, each used once"
    return keep, (messages,) if same.any() else ()


def weight_column(file: TableFile, ends: tuple[str, str], asked: EdgeColumns) -> tuple[str | None, tuple[str, ...]]:
    """Return the column of edge weights, None when every edge counts the same, and a note if it was guessed."""
    if asked.weight is not None:
        return _asked_weight(file, asked)
    candidates = _weight_candidates(file, ends)
    if len(candidates) > 1:
        raise InvalidInputError(
            f"{file.path} has more than one column that could be the edge weight: {listing(candidates)}; "
            f"choose with --weight COLUMN, or --weight {UNWEIGHTED} to count every edge the same"
        )
    if not candidates and asked.weight_is is not None:
        raise InvalidInputError(f"{file.path} has no column of numbers for --weight-is; name it with --weight")
    if not candidates:
        return None, ()
    name = candidates[0]
    if asked.weight_is is None and (_is_distance(name) or _in_lengths(file, name)):
        raise InvalidInputError(
            f"{file.path}, column {name}: looks like a distance, for which larger means weaker; use "
            f"--weight-is {DISTANCE} (1 / {name} is the strength), --weight-is {STRENGTH}, or --weight {UNWEIGHTED}"
        )
    meaning = "smaller" if asked.weight_is == DISTANCE else "larger"
    note = f"{file.path.name}: edge weights come from column '{name}', where {meaning} means stronger"
    return name, (f"{note} (--weight {UNWEIGHTED} ignores it)",)


def _asked_weight(file: TableFile, asked: EdgeColumns) -> tuple[str | None, tuple[str, ...]]:
    if asked.weight == UNWEIGHTED and UNWEIGHTED not in file.columns:
        return None, ()
    name = file.require(str(asked.weight), option="--weight")
    if asked.weight_is is not None or not _is_distance(name):
        return name, ()
    messages = (
        f"{file.path.name}: '{name}' is used as a strength, as requested; --weight-is {DISTANCE} takes its inverse"
    )
    return name, (messages,)


def _is_distance(name: str) -> bool:
    """Return whether a name suggests that smaller means nearer."""
    return not DISTANCES.isdisjoint(name_words(name))


def _in_lengths(file: TableFile, name: str) -> bool:
    """Return whether a column has numbers with a unit of length, such as 5 km."""
    cells = pc.drop_null(file.columns[name]).slice(0, 1) if name in file.numbers else []
    return any(not _LENGTHS.isdisjoint(name_words(str(cell))) for cell in cells)


def name_words(name: str) -> list[str]:
    """Return the words of a column's name, in small letters.

    Examples
    --------
    >>> name_words("travelTime_min"), name_words("GEOID10")
    (['travel', 'time', 'min'], ['geoid'])
    """
    return [word.lower() for word in re.findall(r"[A-Z]?[^\W\dA-Z_]+|[A-Z]+(?![a-z])", name)]


def _weight_candidates(file: TableFile, ends: tuple[str, str]) -> list[str]:
    labels = {f"{end} {label}" for end in ("source", "target") for label in ("label", "name", "id")}
    others = [name for name in file.columns if name not in (*ends, *labels) and name.lower() not in _NOT_WEIGHTS]
    named = [name for name in others if name.lower() in WEIGHTS]
    numeric = [name for name in others if name not in named and _is_numeric(file, name)]
    return named + numeric


def _is_numeric(file: TableFile, name: str) -> bool:
    series = file.values(name)
    return series.dtype.kind in "iuf" and bool(series.notna().any())


def _weights(file: TableFile, name: str | None, asked: EdgeColumns) -> tuple[Floats | None, tuple[str, ...]]:
    """Return the strength of every edge: the cells, or the inverse of distances, of which a zero is the smallest."""
    if name is None:
        return None, ()
    series = file.values(name)
    weights = _checked(file, name, series)
    if asked.weight_is != DISTANCE:
        return weights, ()
    zero = weights == 0
    if zero.all():
        raise InvalidInputError(f"{file.path}, column {name}: all distances are 0; use --weight {UNWEIGHTED}")
    nearest = weights[~zero].min()
    messages = f"{count(int(zero.sum()), 'distance')} of 0 set to {nearest:g}, the smallest positive one"
    return 1 / np.where(zero, nearest, weights), (messages,) if zero.any() else ()


def _checked(file: TableFile, name: str, series: pd.Series) -> Floats:
    weights, stray = as_numbers(series)
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

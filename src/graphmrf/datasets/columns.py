"""Which column is the id, which are the ends of an edge, which is its weight: by option, else by name."""

from dataclasses import dataclass

import pyarrow.compute as pc

from graphmrf.datasets import cells
from graphmrf.datasets.files import TableFile, delimiter_hint, listing
from graphmrf.errors import InvalidInputError

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
_NOT_WEIGHTS = ("id", "edge_id", "edgeid", "index")


@dataclass(frozen=True)
class Choice:
    """A column and, when it was not obvious, the line that says so."""

    column: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class EdgeColumns:
    """Columns of an edge file; `weight` is None when every edge counts the same."""

    source: str
    dest: str
    weight: str | None
    notes: tuple[str, ...] = ()


def id_column(file: TableFile, option: str | None) -> Choice:
    """Return the id column: the option, else the first well-known name, else a first column (almost) without repeats.

    A few repeated or empty ids are for the caller to name, since nobody would look for them in another column.
    """
    if option is not None:
        return Choice(file.require(option, option="--id"))
    known = _by_name(file)
    for name in IDS:
        if name in known:
            return Choice(known[name])
    first = next(iter(file.columns))
    if not _delimiter_hint(file) and _looks_like_ids(file, first):
        return Choice(first, (f"{file.path.name}: the first column, '{first}', is taken as the node id",))
    raise InvalidInputError(
        f"{file.path}: no id column found; "
        + (_delimiter_hint(file) or f"its columns are {listing(file.columns)}: say which with --id")
    )


def edge_columns(file: TableFile, source: str | None, dest: str | None, weight: str | None) -> EdgeColumns:
    """Return the columns of an edge file: the options, else by name."""
    source, dest = _ends(file, source, dest)
    if weight is not None:
        if weight == UNWEIGHTED and weight not in file.columns:
            return EdgeColumns(source, dest, None)
        return EdgeColumns(source, dest, file.require(weight, option="--weight"))
    candidates = _weight_candidates(file, (source, dest))
    if len(candidates) > 1:
        raise InvalidInputError(
            f"{file.path} has more than one column that could be the edge weight: {listing(candidates)}; "
            f"choose with --weight COLUMN, or --weight {UNWEIGHTED} to count every edge the same"
        )
    if not candidates:
        return EdgeColumns(source, dest, None)
    note = f"{file.path.name}: edge weights come from column '{candidates[0]}', where more is taken for a stronger tie"
    return EdgeColumns(source, dest, candidates[0], (f"{note} (--weight {UNWEIGHTED} ignores it)",))


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


def _weight_candidates(file: TableFile, ends: tuple[str, str]) -> list[str]:
    others = [name for name in file.columns if name not in ends and name.lower() not in _NOT_WEIGHTS]
    named = [name for name in others if name.lower() in WEIGHTS]
    numeric = [name for name in others if name not in named and _is_numeric(file, name)]
    return named + numeric


def _is_numeric(file: TableFile, name: str) -> bool:
    series = cells.values(file.columns[name], typed=file.typed)
    return series.dtype.kind in "iuf" and bool(series.notna().any())


def _looks_like_ids(file: TableFile, name: str) -> bool:
    column = file.columns[name]
    kind = cells.values(column, typed=file.typed).dtype.kind
    distinct = len(pc.unique(cells.canonical(column).drop_null()))
    return (kind not in "fbM" and distinct >= ALMOST * file.n_rows) or file.n_rows == 0


def _delimiter_hint(file: TableFile) -> str:
    return "" if file.typed else delimiter_hint(list(file.columns))

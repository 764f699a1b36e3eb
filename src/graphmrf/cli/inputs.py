"""Inputs of a command: tables that make a graph, files to write, and the columns to predict."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
from pandas.api import types
from pyarrow.types import is_integer

from graphmrf import datasets
from graphmrf._typing import Floats
from graphmrf.cli.results import CLASS_COLUMNS, OUTPUT_COLUMNS, group_file
from graphmrf.comparison import AUTO, Bounds, Settings, choose
from graphmrf.comparison.candidates import DEFAULT, ENOUGH, Values
from graphmrf.comparison.prediction import GROUP_COLUMNS
from graphmrf.datasets import AttributedGraph, Features
from graphmrf.datasets.attributed_graph import id_column
from graphmrf.datasets.columns import FILLED, is_dates, is_text
from graphmrf.datasets.edge_files import name_words, named_ends, read_edge_file
from graphmrf.datasets.table_files import PARQUET, SHAPES, STDIN, TableFile, and_more, listing, parts_of
from graphmrf.errors import InvalidInputError
from graphmrf.estimators.inputs import Labels, check_classes, read_labels
from graphmrf.estimators.methods import Method
from graphmrf.estimators.rows import COUNTED, RowError, read_rows
from graphmrf.field import POSITIVE
from graphmrf.files import check_apart, check_place, free_memory
from graphmrf.graph import Graph
from graphmrf.linalg.limits import LIMITS
from graphmrf.selection import search_time_weight
from graphmrf.text import inner_percent, joined

A_MODEL, OF_NODES, OF_EDGES = "a model", "a table of nodes", "a table of edges"
"""What a file may look like."""
# What the file of an argument should look like.
_ROLES = {"MODEL": A_MODEL, "NODES": OF_NODES, "EDGES": OF_EDGES, "--given": OF_NODES}
_MEASURED = frozenset(
    {"se", "stderr", "moe", "n", "sd", "variance", "denominator", "population", "sample_size", "standard_error"}
)
"""Last words of the names of columns that say how an outcome was measured."""
_DIGITS = frozenset("0123456789")
# Share of the different cells of a column of text that must be numbers, or words, to count as one of them.
MOSTLY = 0.5
# A number as people write it, with separators, signs or units that are no letters.
_DRESSED = r"[^\w.,+-]*[+-]?\d[\d.,'\s]*[^\w.,+-]*"


@dataclass(frozen=True)
class Memory:
    """The memory that is free, and what a large graph takes of it."""

    free: int | None = field(default_factory=free_memory)  # bytes; None where the system does not report them
    large: int = 100_000  # nodes or edges from which memory is estimated; below it is at most a gigabyte
    # solve, feature, field: bytes a node takes beside the tables: blocks of a solve, copies of a feature, and what the
    # sparse field stores, which had 2.4 GB for 300,000 nodes and 16 features (`benchmarks/scalable.py`)
    solve: int = 18 * 16 * 8
    feature: int = 3 * 8
    field: int = 8000
    # numbers, text: bytes an edge takes while it is read: two ends, numbers or text, these as numbers of nodes, and the
    # graph; `benchmarks/scaling.py files` had 7.7 GB at 100 million edges, .9 of them for nodes
    numbers: int = 70
    text: int = 120

    def has(self, n_bytes: float) -> bool:
        """Whether so many bytes are free, as far as is known."""
        return self.free is None or n_bytes <= self.free

    def __str__(self) -> str:
        return f"{(self.free or 0) / 1e9:.1f} GB are free"

    def of_fit(self, graph: Graph, n_features: int, methods: Sequence[Method]) -> float:
        """Return how much more memory fits of a large graph take; 0 where that is small, or that of a cluster."""
        n = graph.n_nodes
        if n < self.large or not isinstance(graph.engine_name, str):
            return 0.0
        field = self.field if any(method.key == DEFAULT for method in methods) else 0
        return n * (self.feature * n_features + field) + min(n * self.solve, LIMITS.solve_bytes)


def read_graph(
    nodes: Path,
    edges: Path | None,
    columns: Mapping[str, Any],
    *,
    knn: str | None = None,
    k: int | None = None,
    shapes: Path | None = None,
    id: str | None = None,  # noqa: A002 - named like the option
) -> AttributedGraph:
    """Return the graph of a table of nodes by its edges, or by the coordinates or the shapes of the nodes.

    `nodes`, `edges`: the tables; None for `edges` with `knn` or `shapes`, or where `nodes` are areas with their shapes.
    `columns`: how edges are read: the options `source`, `dest`, `weight`, `weight_is` and `unknown` of `datasets.read`.
    `knn`, `k`, `shapes`, `id`: the options of that name.
    """
    if edges is None and knn is None and shapes is None and nodes.suffix.lower() in SHAPES:
        shapes = nodes
    if edges is not None and edges.suffix.lower() in SHAPES:
        raise InvalidInputError(f"{edges} has shapes, not edges; give it as --shapes {edges}")
    given = sum(each is not None for each in (edges, knn, shapes))
    if columns.get("time") is not None and edges is None:
        raise InvalidInputError(
            "--time needs a table of EDGES between the nodes; give one in place of --knn or --shapes"
        )
    if k is not None and knn is None:
        raise InvalidInputError("-k is the number of neighbours for --knn; drop it, or add --knn COL,COL")
    if given != 1:
        raise InvalidInputError(
            f"{'edges are given more than once' if given else 'no edges given'}: pass one of an edge file, --knn or "
            f"--shapes; for example graphmrf predict {nodes} edges.csv, or {nodes} --knn lon,lat for coordinates"
        )
    if edges is not None:
        table = _read_either_way(nodes, edges, id=id, **columns)
        pa.default_memory_pool().release_unused()  # as much as the fit of a large graph takes
        return table
    if shapes is not None:
        return datasets.read_shapes(nodes, shapes, id=id)
    return datasets.read_points(nodes, str(knn), datasets.NEAREST if k is None else k, id=id)


def _read_either_way(nodes: Path, edges: Path, **columns: Any) -> AttributedGraph:
    """Return the graph of two tables, also where the edges come first."""
    check_room(edges, Memory())
    if looks_like(nodes) != OF_EDGES or looks_like(edges) != OF_NODES:
        return datasets.read(nodes, edges, **columns)
    swapped = f"{edges} is taken as the table of nodes, and {nodes} as that of edges; the order is NODES EDGES"
    try:
        table = datasets.read(edges, nodes, **columns)
    except InvalidInputError as error:
        try:
            return datasets.read(nodes, edges, **columns)
        except InvalidInputError as other:
            raise InvalidInputError(f"{swapped}. {error}") from other
    return replace(table, notes=(swapped, *table.notes))


def check_room(edges: Path, memory: Memory) -> None:
    """Raise where there is no memory to read a Parquet file or folder of edges, by its number of rows."""
    files = parts_of(edges) or [path for path in (edges,) if path.suffix.lower() in PARQUET and path.is_file()]
    if not files or (n_edges := datasets.count_rows(edges)) < memory.large:
        return
    of_numbers = all(map(is_integer, pa.parquet.read_schema(files[0]).types))
    needed = (memory.numbers if of_numbers else memory.text) * n_edges
    if not memory.has(needed):
        raise InvalidInputError(
            f"{edges} would take about {needed / 1e9:.1f} GB of memory to read, and {memory}; read it on workers with "
            "--cluster ADDRESS --partition rows"
        )


def looks_like(path: Path) -> str:
    r"""Return whether a file looks like a model, a table of edges or a table of nodes; nothing where it is unclear.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "streets.csv")
    ...     _ = path.write_text("from,to\na,b\n")
    ...     looks_like(path)
    'a table of edges'
    """
    if path.suffix.lower() == ".json":
        return A_MODEL
    if path == STDIN:
        return ""
    try:
        file = read_edge_file(next(iter(parts_of(path)), path))  # of a folder the first file decides
    except InvalidInputError:
        return ""
    if named_ends(file) or _are_ends(file):
        return OF_EDGES
    return OF_NODES if _has_ids(file) else ""


@contextmanager
def explained(command: str, **files: Path | None) -> Iterator[None]:
    """Put a hint at files that look as if they were in another's place before an error on bad input.

    `command`: name of the command, for its usage. `**files`: the files `model`, `nodes`, `edges` and `given`, in the
    order of the command; None is left out.
    """
    try:
        yield
    except InvalidInputError as error:
        shown = {"--given" if name == "given" else name.upper(): path for name, path in files.items()}
        given = {name: path for name, path in shown.items() if path is not None}
        wrong = _misplaced(given)
        if not wrong or isinstance(error.__cause__, InvalidInputError):  # which names it already
            raise
        usage = " ".join(name if name.isupper() else f"{name} NODES" for name in given)
        raise InvalidInputError(f"{wrong}; the order is graphmrf {command} {usage}. As given: {error}") from error


def _misplaced(given: Mapping[str, Path]) -> str:
    """Return a sentence on files that look like another argument; empty where that is only a guess."""
    wrong = {name: seen for name, path in given.items() if (seen := looks_like(path)) not in ("", _ROLES[name])}
    sure = "NODES" not in given or any(seen != OF_NODES for seen in wrong.values())
    return ", and ".join(f"{name} is {given[name]}, which looks like {seen}" for name, seen in wrong.items() if sure)


def _are_ends(file: TableFile) -> bool:
    """Whether a table is two columns of the same ids, neither of which names rows."""
    if len(file.columns) != 2:
        return False
    try:
        id_column(file, None)
    except InvalidInputError:
        first, second = (file.keys(name).combine_chunks() for name in file.columns)
        return bool(pc.any(pc.is_in(first, value_set=second.drop_null())).as_py())
    return False


def _has_ids(file: TableFile) -> bool:
    try:
        keys = file.keys(id_column(file, None)[0])
    except InvalidInputError:
        return False
    return file.n_rows > 1 and keys.null_count == 0 and len(keys.unique()) == file.n_rows


def check_places(*inputs: Path | None, output: Path | None, group: str | None, report: Path | None) -> list[Path]:
    """Return the files to write, after making sure that each can be written without harming another."""
    groups = None if output is None or group is None else group_file(output, group)
    for written in (output, groups):
        if written is not None:
            datasets.check_writable(written, geographic=written is output)
    if report is not None:
        check_page(report)
    check_apart((output, groups, report), inputs)
    return [path for path in (output, groups, report) if path is not None]


def check_page(report: Path, *inputs: Path | None) -> None:
    """Raise unless a page can be written there without harming an input."""
    if report.suffix.lower() not in (".html", ".htm"):
        raise InvalidInputError(f"a report is a page of HTML, got {report}; name the file something.html")
    check_place(report)
    check_apart((report,), inputs)


def settings_of(options: Mapping[str, Any], bounds: Mapping[str, Any]) -> Settings:
    """Return the checked options of a prediction; errors name the option."""
    with said_of_options():
        return Settings(**options, bounds=Bounds(**bounds))


_KNOWN = {"exposure": "--exposure", "trials": "--trials", "std": "--std", "weight": "--value-weight"}
"""Option of every column that is known of observations, by its name in `fit`."""


def method_for(likelihood: str, method: str, known: Mapping[str, str]) -> str:
    """Return the method of a likelihood, the field where more is known of observations than their values."""
    takers = {"exposure": COUNTED[:2], "trials": COUNTED[2:], "std": (AUTO,), "weight": (AUTO,)}
    named = list(known)
    for option in named:
        if likelihood not in takers[option]:
            raise InvalidInputError(
                f"{_KNOWN[option]} is for --likelihood {' or '.join(takers[option])}, got {likelihood}; "
                "drop one of them"
            )
    if len(named) > 1:
        raise InvalidInputError(f"{' and '.join(_KNOWN[each] for each in named)} exclude each other; drop one of them")
    if named and method not in (AUTO, DEFAULT):
        raise InvalidInputError(f"{_KNOWN[named[0]]} is for --method {DEFAULT}, got {method}; drop one of them")
    return DEFAULT if (named or likelihood in COUNTED) and method == AUTO else method


def with_known(
    table: AttributedGraph, settings: Settings, columns: Mapping[str, str], targets: Mapping[str, Values]
) -> Settings:
    """Return settings with the columns that are known of observations, all checked row by row."""
    found = {option: table.outcome(column) for option, column in columns.items()}
    for option, column in columns.items():
        missing = np.flatnonzero(np.isnan(found[option]))
        if option in ("exposure", "trials") and missing.size:
            raise InvalidInputError(
                f"{table.place(missing[0])}, column {column}: every node needs a number, also where the target is "
                "empty, got an empty cell; fill it, or leave out the node"
            )
    for name, y in targets.items():
        if not isinstance(y, Labels) and (found or settings.likelihood in COUNTED):
            _check_rows(table, settings.likelihood, {"y": name, **columns}, y, found)
    with said_of_options():
        return replace(settings, known=found)


def _check_rows(
    table: AttributedGraph, likelihood: str, columns: Mapping[str, str], y: Floats, known: Mapping[str, Floats]
) -> None:
    """Raise where an observation breaks a rule of its likelihood; the message names row and column of the file."""
    try:
        read_rows(likelihood, table.graph, np.arange(y.size), y, known)
    except RowError as error:
        rule = error.at
        for option, flag in _KNOWN.items():
            rule = rule.replace(f"{option}=", flag)
        column = columns.get(error.option, columns["y"])
        raise InvalidInputError(f"{table.place(error.row)}, column {column}: {rule}") from error


_OPTIONS = {"cv": "--folds"} | {
    name: f"--{name.replace('_', '-')}"
    for name in (
        "alpha",
        "interval",
        "method",
        "transform",
        "conformal",
        "at_least",
        "at_most",
        "integer",
        "likelihood",
    )
}
"""Option of every setting."""
_NAMED = re.compile(r"^[a-z_]+|\bmethod(?= \w)|\bat_most(?= )")


@contextmanager
def said_of_options() -> Iterator[None]:
    """Let errors that begin with the name of a setting begin with its option instead."""
    try:
        yield
    except InvalidInputError as error:
        raise InvalidInputError(_said_of_option(str(error))) from error


def _said_of_option(problem: str) -> str:
    return _NAMED.sub(lambda found: _OPTIONS.get(found[0], found[0]), problem)


def read_targets(
    table: AttributedGraph,
    named: Sequence[str],
    ignore: Sequence[str],
    settings: Settings,
    *,
    group: str | None = None,
    suggest: int = 0,
    classify: bool = False,
) -> dict[str, Values]:
    """Return the columns to predict, as numbers or classes: those named, else the only numeric one with empty cells.

    With `classify` numbers are classes, too.
    """
    names = tuple(dict.fromkeys(named)) or (only_target(table, ignore),)
    _check_roles(names, ignore, group)
    targets = {name: _read_target(table, name, settings, classify=classify) for name in names}
    for name, y in targets.items():
        if problem := _too_many(y, suggest):
            raise InvalidInputError(f"{table.path}, column {name}: {problem}")
    if group is not None and all(isinstance(each, Labels) for each in targets.values()):
        raise InvalidInputError(f"--group adds up numbers, got classes in {listing(names)}; leave out --group")
    results = {*OUTPUT_COLUMNS, *CLASS_COLUMNS}
    taken = (results if len(names) == 1 else {f"{name}_{result}" for name in names for result in results}) & {
        *table.keys
    }
    if taken:
        kind, clash = "id" if table.id in taken else "time", min(taken, key=table.keys.index)
        raise InvalidInputError(f"the {kind} column '{clash}' has the name of a result; rename it in {table.path}")
    return targets


def group_of_nodes(table: AttributedGraph, column: str | None) -> pd.Series | None:
    """Return the group of every node, an empty cell being in none; None where no column is named."""
    if column is None:
        return None
    table.require(column, option="--group")
    groups = table.frame[column].reset_index(drop=True)
    if groups.isna().all():
        raise InvalidInputError(f"{table.path}, column {column}: every cell is empty, so there is no group; fill some")
    if column in GROUP_COLUMNS:
        raise InvalidInputError(f"the column of groups '{column}' has the name of a result; rename it in {table.path}")
    return groups


def read_group_weight(table: AttributedGraph, column: str | None, group: str | None) -> Floats | None:
    """Return the weights of nodes in means of groups; None for equal ones."""
    if column is None:
        return None
    if group is None:
        raise InvalidInputError("--group-weight weights the means of groups; name their column by --group")
    weight = table.outcome(column)
    bad = np.flatnonzero(~(weight >= 0))
    if bad.size:
        found = "none" if np.isnan(weight[bad[0]]) else f"{weight[bad[0]]:g}"
        raise InvalidInputError(
            f"{table.path}, column {column}: weights must be 0 or more, got {found} for {table.labels[bad[0]]} "
            f"({bad.size} such rows in all); fill them in"
        )
    return weight


def group_notes(groups: pd.Series | None) -> list[str]:
    """Return that some nodes are in no group, so that totals of groups do not add up to that of all nodes.

    Examples
    --------
    >>> group_notes(pd.Series(["north", None], name="zone"))
    ['1 node is in no group: its cell of zone is empty']
    """
    outside = 0 if groups is None else int(groups.isna().sum())
    if groups is None or not outside:
        return []
    nodes = "node is in no group: its cell" if outside == 1 else "nodes are in no group: their cells"
    return [f"{outside} {nodes} of {groups.name} {'is' if outside == 1 else 'are'} empty"]


def _check_roles(targets: Sequence[str], ignore: Sequence[str], group: str | None) -> None:
    """Raise where a column to predict is also to be left out, or names groups."""
    for name in targets:
        other = "--ignore" if name in ignore else "--group" if name == group else ""
        if other:
            raise InvalidInputError(f"'{name}' is both --target and {other}; drop one of them")


def only_target(table: AttributedGraph, ignore: Sequence[str]) -> str:
    """Return the only numeric column with empty cells; raise where there is none, or more than one to choose from.

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> frame = pd.DataFrame({"id": ["a", "b"], "rent": [9.5, None], "rooms": [3, 4]})
    >>> only_target(AttributedGraph(Graph.from_edges([0], [1]), frame, "id"), ())
    'rent'
    """
    frame = table.frame.drop(columns=[*table.keys, *(name for name in ignore if name in table.frame)])
    empty = frame.loc[:, frame.isna().any() & frame.notna().any()]
    found = empty.loc[:, [_means_numbers(column) for _, column in empty.items()]]
    if found.shape[1] == 1:
        return str(found.columns[0])
    if found.shape[1] > 1:
        raise InvalidInputError(_which(table, found))
    for name, column in frame.items():
        if is_text(column) and _means_numbers(column):
            table.outcome(str(name))
    words = [name for name, column in empty.items() if is_category(column)]
    remedy = f"classify a column of text with --target {words[0]}" if words else "name their column with --target"
    raise InvalidInputError(
        f"nothing to predict: no numeric column of {table.path} has an empty cell; empty the cells to predict, "
        f"{'or' if words else 'and'} {remedy}"
    )


def _which(table: AttributedGraph, found: pd.DataFrame) -> str:
    """Ask which of several columns to predict, the emptiest first."""
    shares = found.isna().mean().sort_values(ascending=False, kind="stable")
    listed = [f"'{name}' ({inner_percent(share)} empty)" for name, share in shares.items()]
    return (
        f"{table.path}: {len(listed)} numeric columns have empty cells, {and_more(listed)}; "
        f"name what to predict, such as --target {shares.index[0]} (repeatable): "
        "the others are features then, and their empty cells are filled"
    )


def _means_numbers(column: pd.Series) -> bool:
    """Return whether a column has numbers, or mostly numbers: a stray word in it is then an error, not a category."""
    if types.is_numeric_dtype(column) or not is_text(column):
        return types.is_numeric_dtype(column)
    return MOSTLY < _share_of_numbers(column) < 1


def read_forecast(table: AttributedGraph, target: str, suggest: int) -> Floats:
    """Return the numbers of a column whose accuracy is to be forecast, or say what is wrong with them."""
    check_numbers(table, target, "foresee")
    y = table.outcome(target)
    left, known = int(np.isnan(y).sum()), y[~np.isnan(y)]
    if left < 2 or known.size < 2 or np.ptp(known) == 0:
        raise InvalidInputError(
            f"{table.path}, column {target}: {known.size} known and {left} empty cells; give at least two "
            "different values, and leave at least two cells to predict empty"
        )
    if problem := _too_many(y, suggest):
        raise InvalidInputError(problem)
    return y


def check_numbers(table: AttributedGraph, column: str, command: str) -> None:
    """Raise where a column has classes."""
    table.require(column, option="--target")
    if is_category(table.frame[column]):
        raise InvalidInputError(
            f"{table.path}, column {column}: {command} is for numbers, and this column has classes; choose another "
            "column with --target, or classify this one with graphmrf predict"
        )


def is_category(column: pd.Series) -> bool:
    """Return whether a column holds classes: true and false, or words, most of which are no numbers.

    A word counts once, however often it is there: many a ``?`` among numbers is no class, but a cell to be emptied.

    Examples
    --------
    >>> is_category(pd.Series(["red", None, "blue"])), is_category(pd.Series(["1.5", "2", "?", "?", "?"]))
    (True, False)
    """
    kind = types.infer_dtype(column, skipna=True)
    return kind in ("boolean", "categorical") or (kind == "string" and _share_of_numbers(column) <= MOSTLY)


def _share_of_numbers(column: pd.Series) -> float:
    """Return the share of numbers among the different cells of a column of text."""
    return float(pd.to_numeric(column.dropna().drop_duplicates(), errors="coerce").notna().mean())


def _read_target(table: AttributedGraph, name: str, settings: Settings, *, classify: bool) -> Values:
    """Return the numbers of a column, or the classes of one of words; or say what is wrong with them and where."""
    table.require(name, option="--target")
    if is_category(table.frame[name]):
        return _read_classes(table, name, table.frame[name])
    y = table.outcome(name)
    if classify:
        return _read_classes(table, name, pd.Series(y).map(lambda value: f"{value:g}", na_action="ignore"))
    problem = _problem(y, settings.transform) or _said_of_option(settings.bounds.problem(y))
    if problem:
        raise InvalidInputError(f"{table.path}, column {name}: {problem}")
    return y


def _problem(y: Floats, transform: str) -> str:
    """Return why numbers cannot be learned from, and the remedy; empty where they can."""
    known = y[~np.isnan(y)]
    if known.size == y.size:
        return "nothing to predict, every node has a value; leave the cells to predict empty"
    if known.size == 0:
        return "no labelled node, every cell is empty; give the values that are known"
    if known.size == 1:
        return "a single labelled node is not enough to learn from; give at least two values"
    if np.ptp(known) == 0:
        return f"constant, all {known.size} known values are {known[0]:g}; there is nothing to learn"
    return "" if transform == "identity" else _transform_problem(known, transform)


def _too_many(y: Values, suggest: int) -> str:
    left = int(np.sum(~y.known if isinstance(y, Labels) else np.isnan(y)))
    return f"--suggest must be at most {left}, the nodes without a label, got {suggest}" if suggest > left else ""


def _transform_problem(known: Floats, transform: str, *, orders: int = 30) -> str:
    """Return why values cannot be transformed: over so many orders of magnitude, unseen ones determine the mean."""
    if transform in POSITIVE and known.min() <= 0:
        return f"--transform {transform} needs positive values, got {known.min():g}; use --transform yeo-johnson"
    sizes = np.abs(known[known != 0])
    if np.log10(sizes.max()) - np.log10(sizes.min()) > orders:
        return f"values from {sizes.min():g} to {sizes.max():g} in size are too skewed to transform; give logarithms"
    return ""


def _read_classes(table: AttributedGraph, name: str, column: pd.Series) -> Labels:
    if is_dates(table.frame[name]):
        raise InvalidInputError(f"{table.path}, column {name}: holds dates; give numbers, such as days or years")
    if column is table.frame[name] and column.dtype.kind != "b" and _dressed(column):
        raise InvalidInputError(f"{table.path}, column {name}: {_dressed(table.frame[name])}")
    try:
        labels = read_labels(column, len(table.frame))
        _check_many(labels)
        check_classes(labels, 1)
    except InvalidInputError as error:
        raise InvalidInputError(f"{table.path}, column {name}: {error}") from error
    if labels.known.all():
        raise InvalidInputError(
            f"{table.path}, column {name}: nothing to predict, every node has a class; leave the cells to predict empty"
        )
    return labels


def _check_many(labels: Labels, *, few: int = 10) -> None:
    """Raise where most labels of more than a few classes are one of their own, as numbers with a unit are."""
    known = int(labels.known.sum())
    if labels.classes.size > max(few, known / 2):
        raise InvalidInputError(
            f"{labels.classes.size} different texts, such as '{labels.classes[0]}', in {known} cells are too many for "
            "classes; write numbers without a unit, or merge classes"
        )


def _dressed(column: pd.Series) -> str:
    """Return the remedy for numbers written with signs or separators; empty where cells are words.

    Examples
    --------
    >>> print(_dressed(pd.Series(["1.080,50", "990,00"])))
    cells such as '1.080,50' are no plain numbers; write 1080.5, with no other separator or sign, or words for classes
    >>> _dressed(pd.Series(["10-20", "20-30"]))
    ''
    """
    text = column.dropna().astype(str).drop_duplicates()
    if text.str.fullmatch(_DRESSED).mean() <= MOSTLY:
        return ""
    most_marks = max(text, key=lambda cell: len(set(cell) - _DIGITS))
    return (
        f"cells such as '{most_marks}' are no plain numbers; write 1080.5, with no other separator or sign, "
        "or words for classes"
    )


def time_columns(time: str | None, horizon: int, machines: Any) -> dict[str, Any]:
    """Return the options of a panel for `datasets.read`; none without --time."""
    if time is None:
        if horizon:
            raise InvalidInputError("--horizon counts times to come; add --time COL, the column of times in NODES")
        return {}
    if machines is not None:
        raise InvalidInputError("--time runs on this machine; drop --cluster")
    return {"time": time, "horizon": horizon}


def with_time_weight(
    table: AttributedGraph, targets: Mapping[str, Values], features: Features, settings: Settings
) -> AttributedGraph:
    """Return the table; a panel with the weight of steps in time that predicts the first target of numbers best."""
    numbers = [y for y in targets.values() if not isinstance(y, Labels)]
    if table.time is None or not numbers:
        return table
    graph = search_time_weight(table.graph, features.X, numbers[0], cv=settings.cv, random_state=settings.random_state)
    product = graph.product
    assert product is not None
    note = (
        f"a step in time weighs {product.weight:g} times as much as all neighbours at the same time, "
        "which predicts held-out values best"
    )
    return replace(table, graph=graph, notes=(*table.notes, note))


def any_numbers(targets: Mapping[str, Values]) -> bool:
    """Return whether any target has numbers."""
    return not all(isinstance(y, Labels) for y in targets.values())


def within_memory(
    graph: Graph, n_features: int, settings: Settings, memory: Memory | None = None, *, numbers: bool
) -> tuple[Settings, tuple[str, ...]]:
    """Return the settings, less a default method for which there is no memory, and notes on large graphs.

    Raises InvalidInputError if the fit takes more memory than is free, with what would fit.
    """
    with said_of_options():
        wanted = settings.wanted if numbers else ()
        methods = choose(settings.methods, n_features=n_features, wanted=wanted)
    memory = memory or Memory()
    everything = needed = memory.of_fit(graph, n_features, methods)
    notes = []
    if settings.methods == (AUTO,) and not settings.wanted and not memory.has(needed):
        methods = tuple(method for method in methods if method.key != DEFAULT)
        settings = replace(settings, methods=tuple(each.key for each in methods))
        needed = memory.of_fit(graph, n_features, methods)
        notes.append(
            f"{DEFAULT} is left out, as it would take about {everything / 1e9:.1f} GB of memory more, and {memory}"
        )
    if not needed:
        return settings, ()
    if not memory.has(needed):
        remedy = "--method lgc-rp" if memory.has(memory.of_fit(graph, n_features, ())) else "fewer features (--ignore)"
        raise InvalidInputError(
            f"the fit of {graph.n_nodes:,} nodes and {n_features} features would take about {needed / 1e9:.1f} GB of "
            f"memory more, and {memory}; use {remedy}, or --cluster"
        )
    notes.append(
        f"{graph.n_nodes:,} nodes, {graph.n_edges:,} edges: the fit takes about {needed / 1e9:.1f} GB more memory"
        f"{_time_needed(graph, n_features, methods)}"
    )
    return settings, tuple(notes)


def _time_needed(graph: Graph, n_features: int, methods: Sequence[Method], *, seconds: float = 8.5e-8) -> str:
    """Return how long the paper's methods take, from a minute on; the field takes longer, as another note states.

    `seconds` are those of a core for each edge and column that is solved for: `benchmarks/scaling.py files` took 1,545
    for 100 million edges and 182 columns: 16 features twice, 70 pairs of level and fold, 80 draws.
    """
    minutes = graph.n_edges * (2 * n_features + 150) * seconds / (os.cpu_count() or 1) / 60
    linear = [method.key for method in methods if method.key != DEFAULT]
    return f", {joined(linear)} about {minutes:.0f} minutes" if linear and minutes > 0.5 else ""


def slow_fits(targets: Mapping[str, Values], methods: Sequence[Method]) -> Iterator[str]:
    """Yield a warning on more than two classes, each of which has a field of its own."""
    for name, y in targets.items():
        k = y.classes.size if isinstance(y, Labels) else 0
        if k > 2 and DEFAULT in [method.key for method in methods]:
            yield f"{name}: {k} classes, so {DEFAULT} is fitted {k} times; --method lgc-rp is faster"


def column_notes(
    targets: Mapping[str, Values],
    features: Features,
    settings: Settings,
    methods: Sequence[Method],
    *,
    named: bool,
) -> Iterator[str]:
    """Yield what was made of the columns."""
    yield from target_notes(targets, settings, named=named)
    yield from feature_notes(targets, features, methods)


def target_notes(
    targets: Mapping[str, Values], settings: Settings, *, named: bool, skewed: float = 1.5
) -> Iterator[str]:
    """Yield which column was taken as the target, and what its known values suggest.

    A transform may help from the skewness of a log-normal whose logarithms vary by .45.
    """
    if not named:
        yield f"{next(iter(targets))}: predicted, as the only numeric column with empty cells"
    able = settings.transform == "identity" and settings.plain and {AUTO, DEFAULT} & {*settings.methods}
    for name, y in targets.items():
        if isinstance(y, Labels):
            continue
        known = y[~np.isnan(y)]
        values = [f"{value:g}" for value in np.unique(known)]
        if len(values) == 2:
            yield f"{name} is {'/'.join(values)} and treated as numeric; use --classify for classes"
        elif able and known.size >= ENOUGH and _skewness(known) > skewed:
            yield f"{name}: its values have a long tail; --transform auto may be more accurate, with intervals that fit"


def _skewness(known: Floats) -> float:
    z = (known - known.mean()) / known.std()
    return abs(float(np.mean(z**3)))


def feature_notes(targets: Mapping[str, Values], features: Features, methods: Sequence[Method]) -> Iterator[str]:
    """Yield how features were made of the other columns."""
    if not any(method.features for method in methods):
        return
    if features.names or features.notes:
        yield f"features: {listing(features.names) or 'none'}"
    suspect = [name for name in features.names if is_about_measurement(name)]
    if suspect:
        yield (
            f"{listing(suspect)}: features, but by name standard errors or sizes of samples, which say how an outcome "
            "was measured; leave them out with --ignore unless they describe the nodes"
        )
    for note in features.notes:
        yield imputation_note(note, methods)
    if len(targets) > 1:
        yield f"{', '.join(targets)}: targets, so none is a feature of another"


def is_about_measurement(name: str) -> bool:
    """Return whether a column is, by its name, a standard error, a margin of error, or the size of a sample.

    Examples
    --------
    >>> [name for name in ("rent_se", "moe", "n", "income", "sample_size", "nse") if is_about_measurement(name)]
    ['rent_se', 'moe', 'n', 'sample_size']
    """
    words = name_words(name)
    return bool(words) and (words[-1] in _MEASURED or "_".join(words[-2:]) in _MEASURED)


def imputation_note(note: str, methods: Sequence[Method]) -> str:
    """Return a note on the features; one on missing cells names the imputation of every method."""
    able = [method.key for method in methods if method.missing]
    if not note.startswith(FILLED) or not able:
        return note
    jointly = "filled missing cells from the other features and the neighbours"
    others = "" if len(able) == len(methods) else f" ({joined(able)}; other methods: with the column mean)"
    return note.replace(FILLED, jointly + others, 1)

"""Files of a command: tables that make a graph, which of them is what, and places to write."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
from pyarrow.types import is_integer

from graphmrf import datasets
from graphmrf.cli.options import GraphOptions
from graphmrf.cli.results import group_file
from graphmrf.datasets import AttributedGraph
from graphmrf.datasets.edge_files import named_ends, read_edge_file
from graphmrf.datasets.ids import id_column
from graphmrf.datasets.table_files import PARQUET, SHAPES, STDIN, TableFile, parts_of
from graphmrf.errors import InvalidInputError
from graphmrf.files import check_apart, check_place, free_memory

A_MODEL, OF_NODES, OF_EDGES = "a model", "a table of nodes", "a table of edges"
"""What a file may look like."""
# What the file of an argument should look like.
_ROLES = {"MODEL": A_MODEL, "NODES": OF_NODES, "EDGES": OF_EDGES, "--given": OF_NODES}


@dataclass(frozen=True)
class Memory:
    """The free memory, and how much of it a large graph takes."""

    free: int | None = field(default_factory=free_memory)  # bytes; None where the system does not report them
    large: int = 100_000  # nodes or edges from which memory is estimated; below it is at most a gigabyte
    # bytes per node of a solve, of a feature, and of the sparse field (`benchmarks/scalable.py`)
    solve: int = 18 * 16 * 8
    feature: int = 3 * 8
    field: int = 8000
    # bytes per edge while edges of whole numbers or of text are read (`benchmarks/scaling.py files`)
    numbers: int = 70
    text: int = 120

    def has(self, n_bytes: float) -> bool:
        """Whether so many bytes are free, as far as is known."""
        return self.free is None or n_bytes <= self.free

    def __str__(self) -> str:
        return f"{(self.free or 0) / 1e9:.1f} GB are free"


def read_several_rows(nodes: Path, edges: Path | None, options: GraphOptions) -> AttributedGraph:
    """Return the graph of a table with several rows of a node, as `read_graph` does of one row of each."""
    if "time" in options.of_edges:
        raise InvalidInputError("--repeated and --time exclude each other: give one row for each node and time")

    def once(file: TableFile, name: str) -> AttributedGraph:
        return read_graph(nodes, edges, replace(options, id=name), file=file)

    return datasets.read_repeated(nodes, once, id=options.id)


def read_graph(
    nodes: Path, edges: Path | None, options: GraphOptions, *, file: TableFile | None = None
) -> AttributedGraph:
    """Return the graph of a table of nodes by its edges, or by the coordinates or the shapes of the nodes.

    `file`: the table, where it was read before.
    """
    shapes, columns = options.shapes, options.of_edges
    if edges is None and not options.has_places and nodes.suffix.lower() in SHAPES:
        shapes = nodes
    if edges is not None and edges.suffix.lower() in SHAPES:
        raise InvalidInputError(f"{edges} contains shapes, not edges; give it as --shapes {edges}")
    if "time" in columns and edges is None:
        raise InvalidInputError(
            "--time needs a table of EDGES between the nodes; give one instead of --knn or --shapes"
        )
    if options.k is not None and options.knn is None:
        raise InvalidInputError("-k is the number of neighbours for --knn; drop it, or add --knn COL,COL")
    given = sum(each is not None for each in (edges, options.knn, shapes))
    if given != 1:
        raise InvalidInputError(
            f"{'edges are given more than once' if given else 'no edges given'}: pass one of an edge file, --knn or "
            f"--shapes; for example graphmrf predict {nodes} edges.csv, or {nodes} --knn lon,lat for coordinates"
        )
    if edges is not None:
        table = _read_either_way(nodes, edges, file, id=options.id, **columns)
        pa.default_memory_pool().release_unused()  # as much as the fit of a large graph takes
        return datasets.with_areas(table, nodes) if nodes.suffix.lower() in SHAPES and "time" not in columns else table
    if shapes is not None:
        return datasets.read_shapes(file or nodes, shapes, id=options.id)
    nearest = {} if options.k is None else {"k": options.k}
    return datasets.read_points(file or nodes, str(options.knn), id=options.id, **nearest)


def _read_either_way(nodes: Path, edges: Path, file: TableFile | None, **columns: Any) -> AttributedGraph:
    """Return the graph of two tables, also where the edges come first, unless the table of nodes is read already."""
    check_room(edges, Memory())
    if file is not None:
        return datasets.read(file, edges, **columns)
    if looks_like(nodes) != OF_EDGES or looks_like(edges) != OF_NODES:
        return datasets.read(nodes, edges, **columns)
    swapped = f"{edges} is taken as the table of nodes, and {nodes} as that of edges; the order is NODES EDGES"
    try:
        table = datasets.read(edges, nodes, **columns)
    except InvalidInputError as error:
        raise InvalidInputError(f"{swapped}. {error}") from error
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
    """Return whether a file looks like a model, a table of edges or a table of nodes; nothing where it is unclear."""
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
    """Put a hint before an error on bad input where files look as if they were in each other's place.

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
        name, _ = id_column(file, None)
        return file.n_rows > 1 and file.has_unique(name)
    except InvalidInputError:
        return False


def check_places(
    *inputs: Path | None, output: Path | None, group: str | None, report: Path | None, draws: Path | None = None
) -> list[Path]:
    """Return the files to write, after making sure that each can be written without harming another."""
    groups = None if output is None or group is None else group_file(output, group)
    for written in (output, groups, draws):
        if written is not None:
            datasets.check_writable(written, geographic=written is output)
    if report is not None:
        check_page(report)
    check_apart((output, groups, draws, report), inputs)
    return [path for path in (output, groups, draws, report) if path is not None]


def check_page(report: Path, *inputs: Path | None) -> None:
    """Raise unless a page can be written there without harming an input."""
    if report.suffix.lower() not in (".html", ".htm"):
        raise InvalidInputError(f"a report is an HTML page, got {report}; name the file something.html")
    check_place(report)
    check_apart((report,), inputs)

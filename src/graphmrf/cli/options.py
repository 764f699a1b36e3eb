"""The options of the commands, as annotated types: name, help and panel in one place; and those that go together."""

from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import typer

_COLUMNS, _OUTPUT, _METHOD, _CLUSTER = "Columns", "Output", "Method", "Many machines"


def _in(panel: str, metavar: str | None, help: str, *names: str, least: int | None = None) -> Any:  # noqa: A002
    """Return an option of a panel, by default under the name of its argument."""
    return typer.Option(*names, metavar=metavar, help=help, min=least, rich_help_panel=panel)


def _file(metavar: str, help: str) -> Any:  # noqa: A002 - named like that of Typer
    return typer.Argument(metavar=metavar, help=help, show_default=False)


NodesFile = Annotated[
    Path,
    _file(
        "NODES",
        "Table of nodes: .csv, .tsv, .txt (also .gz), .xlsx, .parquet, a folder or URL of them, .geojson, .gpkg, "
        ".shp; - reads stdin.",
    ),
]
EdgesFile = Annotated[Path, _file("EDGES", "Table of edges, or .graphml, .mtx, .gal, .gwt.")]
MaybeEdgesFile = Annotated[
    Path | None,
    _file("EDGES", "Table of edges, or .graphml, .mtx, .gal, .gwt; not needed with --knn, --shapes or areas."),
]
Knn = Annotated[
    str | None,
    _in(
        _COLUMNS,
        "COL,COL",
        "In place of EDGES: join every node to its nearest by these columns, such as lon,lat.",
        "--knn",
    ),
]
Nearest = Annotated[int | None, _in(_COLUMNS, "K", "How many nearest, 8 if not given.", "-k")]
Shapes = Annotated[
    Path | None,
    _in(
        _COLUMNS,
        "FILE",
        "In place of EDGES: GeoJSON, GeoPackage or shapefile of the nodes; areas that touch are joined.",
        "--shapes",
    ),
]
Target = Annotated[
    list[str] | None,
    _in(
        _COLUMNS,
        "COL",
        "Column whose empty cells to predict; repeatable. Without it: the only numeric column with empty cells. A "
        "column of text is classified. Other columns are features, and their empty cells are filled.",
        "--target",
        "-t",
    ),
]
Ignore = Annotated[list[str] | None, _in(_COLUMNS, "COL", "Column to leave out; repeatable.")]
Id = Annotated[str | None, _in(_COLUMNS, "COL", "Id column of NODES; found by name or by the edges.")]
Source = Annotated[str | None, _in(_COLUMNS, "COL", "Column of EDGES with one end; found by name.")]
Dest = Annotated[str | None, _in(_COLUMNS, "COL", "Column of EDGES with the other end.")]
Weight = Annotated[
    str | None, _in(_COLUMNS, "COL", "Column of EDGES with weights, larger for stronger ties; 'none' ignores weights.")
]
WeightIs = Annotated[
    str | None, _in(_COLUMNS, "WHAT", "What the weights are: strength, or distance, of which the inverse is taken.")
]
TimeColumn = Annotated[
    str | None,
    _in(_COLUMNS, "COL", "Column of NODES with times, numbers or dates: one row per node and time.", "--time"),
]
Horizon = Annotated[int, _in(_COLUMNS, "H", "With --time: how many times to forecast after the last.")]
Unknown = Annotated[
    str, _in(_COLUMNS, "WHAT", "Ends of edges that are not in NODES: error, drop the edges, or add the nodes.")
]
MethodName = Annotated[
    str,
    _in(
        _METHOD,
        "M",
        "auto: field, unless lp, lr, lgc, lr-rp or lgc-rp is clearly better at held-out values; for classes the best "
        "of them; field: effects of features, straight and curved, and of the graph; lp: outcomes of neighbours; lr: "
        "own features; lgc, sgc, gcn: features of the neighbourhood, smoothed, averaged, or through a neural "
        "network; lr-rp, lgc-rp, sgc-rp, gcn-rp: the same and outcomes of neighbours.",
    ),
]
Alpha = Annotated[float | None, _in(_METHOD, "A", "Smoothing level in [0, 1); chosen by cross-validation otherwise.")]
Transform = Annotated[
    str,
    _in(
        _METHOD,
        "T",
        "Transform of a skewed target, for field: identity, log, box-cox, yeo-johnson, or auto, the most likely of "
        "them. Results are in the units of the target.",
    ),
]
CountLikelihood = Annotated[
    str,
    _in(
        _METHOD,
        "L",
        "Distribution of the target, for field: auto (numbers), poisson or negative-binomial (counts), binomial "
        "(successes, or 0 and 1). Predictions are median counts.",
    ),
]
Exposure = Annotated[
    str | None, _in(_METHOD, "COLUMN", "Column with the exposure of every count: population, time, or expected number.")
]
Trials = Annotated[str | None, _in(_METHOD, "COLUMN", "Column with the trials of which the target counts successes.")]
Std = Annotated[
    str | None,
    _in(_METHOD, "COLUMN", "Column with the standard error of every known value; these are then predicted, too."),
]
ValueWeight = Annotated[
    str | None,
    _in(_METHOD, "COLUMN", "Column with the weight of every known value, such as the number of people asked."),
]
Conformal = Annotated[
    bool,
    _in(
        _METHOD,
        None,
        "Intervals of field from the errors at known values alone, no distribution assumed.",
        "--conformal",
    ),
]
Interval = Annotated[float, _in(_METHOD, "P", "Probability inside lower..upper.")]
AtLeast = Annotated[float | None, _in(_METHOD, "MIN", "No prediction or interval goes below this number.")]
AtMost = Annotated[float | None, _in(_METHOD, "MAX", "No prediction or interval goes above this number.")]
Integer = Annotated[bool, _in(_METHOD, None, "Predictions and intervals are whole numbers, like counts.", "--integer")]
Classify = Annotated[
    bool, _in(_METHOD, None, "Treat numbers of the target, such as 0 and 1, as classes.", "--classify")
]
Folds = Annotated[int, _in(_METHOD, "K", "Folds of the cross-validation.")]
FoldSeed = Annotated[int, _in(_METHOD, "S", "Seed of the folds and of every random probe.", least=0)]
GroupBy = Annotated[
    str | None,
    _in(
        _COLUMNS,
        "COL",
        "Column of NODES that names groups: also their means and totals with intervals; with -o in a file of "
        "their own.",
    ),
]
GroupWeight = Annotated[
    str | None,
    _in(
        _COLUMNS,
        "COL",
        "With --group: column with weights of nodes in means, such as population where the target is a rate; no totals "
        "then.",
    ),
]
Suggest = Annotated[int, _in(_OUTPUT, "K", "Also name the K nodes whose labels would help most, by field.", least=0)]
TableOutput = Annotated[
    Path | None,
    _in(
        _OUTPUT,
        "FILE",
        "Predictions: .csv, .tsv (also .gz), .parquet, .xlsx, .geojson, .gpkg, or a folder for .parquet.",
        "--output",
        "-o",
    ),
]
KeepColumns = Annotated[bool, _in(_OUTPUT, None, "Add the columns of NODES to the predictions.", "--keep-columns")]
Report = Annotated[Path | None, _in(_OUTPUT, "FILE", "A page with maps and figures, one .html file.")]
OnCluster = Annotated[
    str | None,
    _in(
        _CLUSTER,
        "ADDRESS",
        "Run on the workers of Dask: tcp://host:8786, a scheduler file .json, or local:4.",
        "--cluster",
    ),
]
Share = Annotated[
    str | None,
    _in(
        _CLUSTER,
        "WHAT",
        "What is divided among workers: columns, each worker having the whole graph, or rows of a large graph.",
        "--partition",
    ),
]
Checkpoint = Annotated[
    Path | None, _in(_CLUSTER, "DIR", "Folder for finished work, from which an interrupted run continues.")
]
Json = Annotated[bool, _in(_OUTPUT, None, "Print nothing on stdout but a summary as JSON, for scripts.", "--json")]
Quiet = Annotated[bool, _in(_OUTPUT, None, "Print errors only.", "--quiet", "-q")]
Debug = Annotated[bool, _in(_OUTPUT, None, "Show the traceback of an error.", "--debug")]


@dataclass(frozen=True, kw_only=True)
class GraphOptions:
    """How the graph is made: which columns of the tables, or which places or areas in place of EDGES."""

    knn: Knn = None
    k: Nearest = None
    shapes: Shapes = None
    id: Id = None
    source: Source = None
    dest: Dest = None
    weight: Weight = None
    weight_is: WeightIs = None
    unknown: Unknown = "error"

    @property
    def has_places(self) -> bool:
        """Whether nodes are joined by their places or areas."""
        return self.knn is not None or self.shapes is not None

    @property
    def of_nodes(self) -> dict[str, Any]:
        """Options of the table of nodes, see `inputs.read_graph`."""
        return {name: getattr(self, name) for name in ("knn", "k", "shapes", "id")}

    @property
    def of_edges(self) -> dict[str, Any]:
        """Options of the table of edges."""
        return {name: getattr(self, name) for name in ("source", "dest", "weight", "weight_is", "unknown")}


@dataclass(frozen=True, kw_only=True)
class PanelOptions(GraphOptions):
    """The same of tables that may have times."""

    time: TimeColumn = None
    horizon: Horizon = 0


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose parameters of a dataclass are the options in it, as Typer reads them."""
    declared = signature(command)
    annotations = {name: each.annotation for name, each in declared.parameters.items()}
    groups: dict[str, Any] = {name: kind for name, kind in annotations.items() if is_dataclass(kind)}

    @wraps(command)
    def parsed(*arguments: Any, **options: Any) -> None:
        for name, kind in groups.items():
            options[name] = kind(**{option: options.pop(option) for option in signature(kind).parameters})
        command(*arguments, **options)

    parameters = [
        option
        for name, each in declared.parameters.items()
        for option in (signature(groups[name]).parameters.values() if name in groups else [each])
    ]
    vars(parsed)["__signature__"] = declared.replace(parameters=parameters)
    parsed.__annotations__ = {each.name: each.annotation for each in parameters}
    return parsed

"""The options of the commands, as annotated types: name, help and panel in one place; and those that go together."""

from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from functools import partial, wraps
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import typer

from graphmrf.errors import InvalidInputError


def _option(panel: str, metavar: str | None, text: str, *names: str, least: int | None = None) -> Any:
    """Return an option of a panel, by default under the name of its argument."""
    return typer.Option(*names, metavar=metavar, help=text, min=least, rich_help_panel=panel)


_column, _output, _method, _cluster = (
    partial(_option, panel) for panel in ("Columns", "Output", "Method", "Many machines")
)


def argument(metavar: str, text: str) -> Any:
    """Return an argument of a command."""
    return typer.Argument(metavar=metavar, help=text, show_default=False)


_NODES = (
    "Table of nodes: .csv, .tsv, .txt (also .gz), .xlsx, .parquet, a folder or URL of them, .geojson, .gpkg, .shp; "
    "- reads stdin."
)
_EDGES = "Table of edges, or .graphml, .mtx, .gal, .gwt"
NodesFile = Annotated[Path, argument("NODES", _NODES)]
MaybeEdgesFile = Annotated[
    Path | None, argument("EDGES", f"{_EDGES}; not needed with --knn, --shapes or a file of areas.")
]

Knn = Annotated[
    str | None,
    _column("COL,COL", "Instead of EDGES: join each node to its nearest neighbours by these columns, such as lon,lat."),
]
Nearest = Annotated[int | None, _column("K", "Number of nearest neighbours for --knn; 8 by default.", "-k")]
Shapes = Annotated[
    Path | None,
    _column("FILE", "Instead of EDGES: GeoJSON, GeoPackage or shapefile of the nodes; areas that touch are joined."),
]
Target = Annotated[
    list[str] | None,
    _column(
        "COL",
        "Column whose empty cells to predict; repeatable. By default the only numeric column with empty cells. A "
        "column of text is classified. Other columns are features, and their empty cells are filled.",
        "--target",
        "-t",
    ),
]
Ignore = Annotated[list[str] | None, _column("COL", "Column to leave out; repeatable.")]
Id = Annotated[str | None, _column("COL", "Id column of NODES; found by its name, or by the ids in EDGES.")]
Source = Annotated[str | None, _column("COL", "Column of EDGES with one end of each edge; found by name.")]
Dest = Annotated[str | None, _column("COL", "Column of EDGES with the other end.")]
Weight = Annotated[
    str | None, _column("COL", "Column of EDGES with weights, larger for stronger ties; 'none' ignores weights.")
]
WeightIs = Annotated[
    str | None, _column("WHAT", "Meaning of the weights: strength, or distance (its inverse is used).")
]
TimeColumn = Annotated[
    str | None, _column("COL", "Column of NODES with times, numbers or dates: one row per node and time.")
]
Horizon = Annotated[int, _column("H", "With --time: number of times to forecast after the last.")]
Unknown = Annotated[
    str, _column("WHAT", "Ends of edges that are not in NODES: error, drop the edges, or add the nodes.")
]
GroupBy = Annotated[
    str | None,
    _column(
        "COL",
        "Column of NODES with groups: also estimate their means and totals, with intervals; -o saves them in a "
        "separate file.",
    ),
]
GroupWeight = Annotated[
    str | None,
    _column(
        "COL",
        "With --group: column of weights for the means, such as population if the target is a rate; there are no "
        "totals then.",
    ),
]

MethodName = Annotated[
    str,
    _method(
        "M",
        "auto: field, unless lp, lr, lgc, lr-rp or lgc-rp is clearly better at held-out values; for classes the best "
        "of them; field: linear and nonlinear effects of features, and of the graph; lp: outcomes of neighbours; lr: "
        "own features; lgc, sgc, gcn: features of the neighbourhood, smoothed, averaged, or through a neural "
        "network; lr-rp, lgc-rp, sgc-rp, gcn-rp: the same and outcomes of neighbours.",
    ),
]
Alpha = Annotated[float | None, _method("A", "Smoothing level in [0, 1); by default chosen by cross-validation.")]
Transform = Annotated[
    str,
    _method(
        "T",
        "Transform of a skewed target, for field: identity, log, box-cox, yeo-johnson, or auto, the most likely of "
        "them. Results are in the units of the target.",
    ),
]
LikelihoodName = Annotated[
    str,
    _method(
        "L",
        "Distribution of the target, for field: auto (numbers), gaussian, student (heavy tails), poisson or "
        "negative-binomial (counts; predictions are medians), binomial (successes, or 0 and 1). A note proposes one.",
    ),
]
Exposure = Annotated[
    str | None, _method("COLUMN", "Column with the exposure of every count: population, time, or expected number.")
]
Trials = Annotated[
    str | None, _method("COLUMN", "Column with the number of trials; the target has the number of successes.")
]
Std = Annotated[
    str | None,
    _method("COLUMN", "Column with the standard error of every known value; known values are then predicted, too."),
]
ValueWeight = Annotated[
    str | None, _method("COLUMN", "Column with the weight of every known value, such as the number of people asked.")
]
Repeated = Annotated[
    bool,
    _column(None, "NODES may have several rows per node, each an observation of the target.", "--repeated"),
]
Conformal = Annotated[
    bool,
    _method(None, "Intervals of field from out-of-fold errors, with no distribution assumed.", "--conformal"),
]
Interval = Annotated[float, _method("P", "Probability that a value lies between lower and upper.")]
AtLeast = Annotated[float | None, _method("MIN", "No prediction or interval goes below this number.")]
AtMost = Annotated[float | None, _method("MAX", "No prediction or interval goes above this number.")]
Integer = Annotated[bool, _method(None, "Round predictions and intervals to whole numbers.", "--integer")]
Classify = Annotated[bool, _method(None, "Treat numbers of the target, such as 0 and 1, as classes.", "--classify")]
Ordered = Annotated[
    str | None,
    _method(
        "CLASS,CLASS,...",
        "The classes of the target, from the lowest to the highest, such as low,middle,high: field then has one latent "
        "value for all of them. Numbers are classes, too.",
    ),
]
Folds = Annotated[int, _method("K", "Folds of the cross-validation.")]
FoldSeed = Annotated[int, _method("S", "Seed of the folds and of every random probe.", least=0)]

Above = Annotated[
    float | None,
    _output(
        "X",
        "Also estimate the probability of exceeding X, by field (counts: of the rate, successes: of the share).",
    ),
]
Suggest = Annotated[int, _output("K", "Also name the K nodes whose labels would help most, by field.", least=0)]
TableOutput = Annotated[
    Path | None,
    _output(
        "FILE",
        "Predictions: .csv, .tsv (also .gz), .parquet, .xlsx, .geojson, .gpkg, or a folder for .parquet.",
        "--output",
        "-o",
    ),
]
KeepColumns = Annotated[bool, _output(None, "Add the columns of NODES to the predictions.", "--keep-columns")]
Report = Annotated[Path | None, _output("FILE", "A page with maps and figures, one .html file.")]
Json = Annotated[bool, _output(None, "Print only a summary as JSON on stdout, for scripts.", "--json")]
Quiet = Annotated[bool, _output(None, "Print errors only.", "--quiet", "-q")]
Debug = Annotated[bool, _output(None, "Show the traceback of an error.", "--debug")]

OnCluster = Annotated[
    str | None,
    _cluster("ADDRESS", "Run on Dask workers: tcp://host:8786, a scheduler file .json, or local:4."),
]
Partition = Annotated[
    str | None,
    _cluster("WHAT", "What workers divide: columns (each has the whole graph), or rows of a large graph."),
]
Checkpoint = Annotated[
    Path | None, _cluster("DIR", "Folder for finished work, so that an interrupted run can continue.")
]


@dataclass(frozen=True, kw_only=True)
class GraphOptions:
    """How the graph is made: which columns of the tables, or which places or areas instead of EDGES."""

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
    def of_edges(self) -> dict[str, Any]:
        """Options of the table of edges."""
        return {name: getattr(self, name) for name in ("source", "dest", "weight", "weight_is", "unknown")}


@dataclass(frozen=True, kw_only=True)
class PanelOptions(GraphOptions):
    """The same of tables that may have times."""

    time: TimeColumn = None
    horizon: Horizon = 0

    @property
    def of_edges(self) -> dict[str, Any]:
        """Options of the table of edges, and of the times."""
        if self.time is None and self.horizon:
            raise InvalidInputError("--horizon needs --time; add --time COL, the column of times in NODES")
        return super().of_edges | ({} if self.time is None else {"time": self.time, "horizon": self.horizon})


@dataclass(frozen=True, kw_only=True)
class TargetOptions:
    """What is to be predicted, and what is known of its values."""

    target: Target = None
    ignore: Ignore = None
    group: GroupBy = None
    group_weight: GroupWeight = None
    exposure: Exposure = None
    trials: Trials = None
    repeated: Repeated = False
    std: Std = None
    value_weight: ValueWeight = None
    classify: Classify = False
    ordered: Ordered = None
    above: Above = None
    suggest: Suggest = 0

    @property
    def known(self) -> dict[str, str]:
        """The columns with what is known of observations, by their names in `fit`."""
        columns = {"exposure": self.exposure, "trials": self.trials, "std": self.std, "weight": self.value_weight}
        return {option: column for option, column in columns.items() if column is not None}

    @property
    def order(self) -> tuple[str, ...]:
        """The classes from the lowest to the highest; empty where they have no order."""
        return tuple(name.strip() for name in self.ordered.split(",")) if self.ordered is not None else ()

    @property
    def has_classes(self) -> bool:
        """Whether targets of numbers are classes."""
        return self.classify or bool(self.order)

    @property
    def no_features(self) -> list[str]:
        """Columns that are left out of the features."""
        return [*(self.ignore or ()), *self.known.values()]


@dataclass(frozen=True, kw_only=True)
class MethodOptions:
    """How it is predicted."""

    method: MethodName = "auto"
    alpha: Alpha = None
    interval: Interval = 0.9
    likelihood: LikelihoodName = "auto"
    conformal: Conformal = False
    transform: Transform = "identity"
    at_least: AtLeast = None
    at_most: AtMost = None
    integer: Integer = False
    folds: Folds = 5
    seed: FoldSeed = 0


@dataclass(frozen=True, kw_only=True)
class ClusterOptions:
    """Where it is computed."""

    cluster: OnCluster = None
    partition: Partition = None
    checkpoint: Checkpoint = None


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

"""The options of the commands, as annotated types: name, help and panel in one place."""

from pathlib import Path
from typing import Annotated

import typer

_COLUMNS, _OUTPUT, _METHOD, _CLUSTER = "Columns", "Output", "Method", "Many machines"

NodesFile = Annotated[
    Path,
    typer.Argument(
        metavar="NODES",
        help="Table of nodes: .csv, .tsv, .txt (also .gz), .xlsx, .parquet, a folder or URL of them, .geojson, .gpkg, "
        ".shp; - reads stdin.",
        show_default=False,
    ),
]
EdgesFile = Annotated[
    Path, typer.Argument(metavar="EDGES", help="Table of edges, or .graphml, .mtx, .gal, .gwt.", show_default=False)
]
MaybeEdgesFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="EDGES",
        help="Table of edges, or .graphml, .mtx, .gal, .gwt; none with --knn, --shapes or a NODES of areas.",
        show_default=False,
    ),
]
Knn = Annotated[
    str | None,
    typer.Option(
        "--knn",
        metavar="COL,COL",
        help="In place of EDGES: join every node to its nearest by these columns, such as lon,lat.",
        rich_help_panel=_COLUMNS,
    ),
]
Nearest = Annotated[
    int | None, typer.Option("-k", metavar="K", help="How many nearest, 8 if not given.", rich_help_panel=_COLUMNS)
]
Shapes = Annotated[
    Path | None,
    typer.Option(
        "--shapes",
        metavar="FILE",
        help="In place of EDGES: GeoJSON, GeoPackage or shapefile of the nodes; areas that touch are joined.",
        rich_help_panel=_COLUMNS,
    ),
]

Target = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        "-t",
        metavar="COL",
        help="Column whose empty cells to predict; repeatable. Without it: the only numeric column with empty cells. "
        "A column of text is classified. Other columns are features, and their empty cells are filled.",
        rich_help_panel=_COLUMNS,
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(metavar="COL", help="Column to leave out; repeatable.", rich_help_panel=_COLUMNS),
]
Id = Annotated[
    str | None,
    typer.Option(metavar="COL", help="Id column of NODES; found by name or by the edges.", rich_help_panel=_COLUMNS),
]
Source = Annotated[
    str | None,
    typer.Option(metavar="COL", help="Column of EDGES with one end; found by name.", rich_help_panel=_COLUMNS),
]
Dest = Annotated[
    str | None, typer.Option(metavar="COL", help="Column of EDGES with the other end.", rich_help_panel=_COLUMNS)
]
Weight = Annotated[
    str | None,
    typer.Option(
        metavar="COL",
        help="Column of EDGES with weights, more being a stronger tie; 'none': all alike.",
        rich_help_panel=_COLUMNS,
    ),
]

WeightIs = Annotated[
    str | None,
    typer.Option(
        metavar="WHAT",
        help="What the weights are: strength, or distance, of which the inverse is taken.",
        rich_help_panel=_COLUMNS,
    ),
]
Time = Annotated[
    str | None,
    typer.Option(
        "--time",
        metavar="COL",
        help="Column of NODES with times, numbers or dates: one row per node and time.",
        rich_help_panel=_COLUMNS,
    ),
]
Horizon = Annotated[
    int,
    typer.Option(metavar="H", help="With --time: how many times to forecast after the last.", rich_help_panel=_COLUMNS),
]
Unknown = Annotated[
    str,
    typer.Option(
        metavar="WHAT",
        help="Ends of edges that are not in NODES: error, drop the edges, or add the nodes.",
        rich_help_panel=_COLUMNS,
    ),
]

MethodName = Annotated[
    str,
    typer.Option(
        metavar="M",
        help="auto: field, unless lp, lr, lgc or lgc-rp is clearly better at held-out values; for classes the best of "
        "them; "
        "field: effects of features, straight and curved, and of the graph; lp: outcomes of neighbours; lr: own "
        "features; lgc, sgc, gcn: features of the neighbourhood, smoothed, averaged, or through a neural network; "
        "lr-rp, lgc-rp, sgc-rp, gcn-rp: the same and outcomes of neighbours.",
        rich_help_panel=_METHOD,
    ),
]
Alpha = Annotated[
    float | None,
    typer.Option(
        metavar="A", help="Smoothing level in [0, 1); chosen by cross-validation otherwise.", rich_help_panel=_METHOD
    ),
]
Transform = Annotated[
    str,
    typer.Option(
        metavar="T",
        help="Transform of a skewed target, for field: identity, log, box-cox, yeo-johnson, or auto, the likeliest of "
        "them. Results are in the units of the target.",
        rich_help_panel=_METHOD,
    ),
]
CountLikelihood = Annotated[
    str,
    typer.Option(
        metavar="L",
        help="Distribution of the target, for field: auto (numbers), poisson or negative-binomial (counts), binomial "
        "(successes, or 0 and 1). Predictions are expected counts.",
        rich_help_panel=_METHOD,
    ),
]
Exposure = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column with the exposure of every count: population, time, or expected number.",
        rich_help_panel=_METHOD,
    ),
]
Trials = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="Column with the trials of which the target counts successes.", rich_help_panel=_METHOD
    ),
]
Conformal = Annotated[
    bool,
    typer.Option(
        "--conformal",
        help="Intervals of field from the errors at known values alone, no distribution assumed.",
        rich_help_panel=_METHOD,
    ),
]
Interval = Annotated[float, typer.Option(metavar="P", help="Probability inside lower..upper.", rich_help_panel=_METHOD)]
AtLeast = Annotated[
    float | None,
    typer.Option(metavar="MIN", help="No prediction or interval goes below this number.", rich_help_panel=_METHOD),
]
AtMost = Annotated[
    float | None,
    typer.Option(metavar="MAX", help="No prediction or interval goes above this number.", rich_help_panel=_METHOD),
]
Integer = Annotated[
    bool,
    typer.Option(
        "--integer", help="Predictions and intervals are whole numbers, like counts.", rich_help_panel=_METHOD
    ),
]
Classify = Annotated[
    bool,
    typer.Option(
        "--classify", help="Treat numbers of the target, such as 0 and 1, as classes.", rich_help_panel=_METHOD
    ),
]
Folds = Annotated[int, typer.Option(metavar="K", help="Folds of the cross-validation.", rich_help_panel=_METHOD)]
FoldSeed = Annotated[
    int,
    typer.Option(metavar="S", min=0, help="Seed of the folds and of every random probe.", rich_help_panel=_METHOD),
]

GroupBy = Annotated[
    str | None,
    typer.Option(
        metavar="COL",
        help="Column of NODES that names groups: also their means and totals with intervals, for field; with -o in a "
        "file of their own.",
        rich_help_panel=_COLUMNS,
    ),
]
Suggest = Annotated[
    int,
    typer.Option(
        metavar="K",
        min=0,
        help="Also name the K nodes whose labels would help most, for field.",
        rich_help_panel=_OUTPUT,
    ),
]

TableOutput = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Predictions: .csv, .tsv (also .gz), .parquet, .xlsx, .geojson, .gpkg, or a folder for .parquet.",
        rich_help_panel=_OUTPUT,
    ),
]
KeepColumns = Annotated[
    bool,
    typer.Option("--keep-columns", help="Add the columns of NODES to the predictions.", rich_help_panel=_OUTPUT),
]
Report = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A page with maps and figures, one .html file.", rich_help_panel=_OUTPUT),
]
OnCluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Run on the workers of Dask: tcp://host:8786, a scheduler file .json, or local:4.",
        rich_help_panel=_CLUSTER,
    ),
]
Share = Annotated[
    str | None,
    typer.Option(
        "--partition",
        metavar="WHAT",
        help="What is divided among workers: columns, each worker having the whole graph, or rows of a large graph.",
        rich_help_panel=_CLUSTER,
    ),
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Keep finished work here, and go on from it.", rich_help_panel=_CLUSTER),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print nothing on stdout but a summary as JSON, for scripts.", rich_help_panel=_OUTPUT),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.", rich_help_panel=_OUTPUT)]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.", rich_help_panel=_OUTPUT)]

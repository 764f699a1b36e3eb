"""graphmrf fill: all missing cells of all columns."""

from pathlib import Path
from typing import Annotated

import typer

from graphmrf.cli import later, options, terminal

FilledOutput = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="The filled table: .csv, .csv.gz, .tsv, .parquet, .xlsx, .geojson or .gpkg.",
    ),
]
How = Annotated[
    str,
    typer.Option(
        "--method",
        metavar="M",
        help="How numbers are filled: coupled (one field of all columns), fields (one for each column, slower), or "
        "auto: whichever predicts hidden cells of the column better.",
    ),
]


@options.grouped
def fill(
    nodes: options.NodesFile,
    edges: options.MaybeEdgesFile = None,
    *,
    output: FilledOutput,
    ignore: options.Ignore = None,
    graph: options.PanelOptions,
    method: How = "auto",
    folds: options.Folds = 5,
    seed: options.FoldSeed = 0,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Fill the empty cells of all columns of NODES, numbers and classes.

    Each cell is predicted from the other columns and from the neighbours.
    The result has all columns of NODES, in their order, then for each filled
    one its standard deviation (COL_std) or, of classes, the probability
    (COL_probability). To predict one column, with a report, use predict.

    [bold]Example[/bold]:

        graphmrf fill districts.csv borders.csv -o filled.csv
    """
    with terminal.errors_as_exit_codes(debug=debug):
        later.inputs.check_places(nodes, edges, graph.shapes, output=output, group=None, report=None)
        with later.inputs.explained("fill", nodes=nodes, edges=edges):
            table = later.inputs.read_graph(nodes, edges, graph)
        places = later.results.places_of(table, output)
        frame, notes = later.targets.columns_to_fill(table, ignore or ())
        with terminal.progress([1.0], quiet=quiet):
            imputer = later.estimators.GraphImputer(table.graph, method=method, cv=folds, random_state=seed).fit(frame)
        later.datasets.write(later.results.filled_table(table, imputer), output, places=places)
        if not quiet:
            terminal.note([*table.notes, *notes, *imputer.notes_])
            later.results.show_filled(frame, imputer)
            terminal.say(f"Saved {output}")

"""graphmrf fill: all missing cells of all columns."""

from pathlib import Path
from typing import Annotated

import typer

from graphmrf.cli import later, options, terminal
from graphmrf.errors import InvalidInputError

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
Likelihoods = Annotated[
    list[str] | None,
    typer.Option(
        "--likelihood",
        metavar="COL=L",
        help="Distribution of a column of counts or successes: poisson, negative-binomial or binomial; repeatable.",
    ),
]
Sizes = Annotated[
    list[str] | None,
    typer.Option(
        "--size",
        metavar="COL=COL",
        help="Column with the exposure of these counts or the trials of these successes; repeatable.",
    ),
]
DrawnTables = Annotated[
    int,
    typer.Option(
        metavar="K", min=0, help="Also write K draws of the filled table, one below the other, to FILE with -draws."
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
    likelihood: Likelihoods = None,
    size: Sizes = None,
    draws: DrawnTables = 0,
    folds: options.Folds = 5,
    seed: options.FoldSeed = 0,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Fill the empty cells of all columns of NODES, numbers and classes.

    Each cell is predicted from the other columns and from the neighbours.
    The result has all columns of NODES, in their order, then for each filled
    one its standard deviation (COL_std) or, of classes, the probability
    (COL_probability). Counts and successes have a likelihood of their own. To
    predict one column, with a report, use predict.

    [bold]Example[/bold]:

        graphmrf fill districts.csv borders.csv -o filled.csv
        graphmrf fill districts.csv borders.csv -o filled.csv
            --likelihood cases=poisson --size cases=people --draws 20
    """
    with terminal.errors_as_exit_codes(debug=debug):
        likelihoods, sizes = _pairs("--likelihood", likelihood), _pairs("--size", size)
        drawn = later.results.draws_file(output) if draws else None
        later.inputs.check_places(nodes, edges, graph.shapes, output=output, group=None, report=None, draws=drawn)
        with later.inputs.explained("fill", nodes=nodes, edges=edges):
            table = later.inputs.read_graph(nodes, edges, graph)
        places = later.results.places_of(table, output)
        frame, notes = later.targets.columns_to_fill(table, ignore or (), {**likelihoods, **sizes})
        imputer = later.estimators.GraphImputer(
            table.graph, method=method, likelihoods=likelihoods, sizes=sizes, cv=folds, random_state=seed
        )
        with terminal.progress([1.0], quiet=quiet):
            imputer.fit(frame)
        filled = later.results.filled_table(table, imputer)
        if drawn is not None:
            later.datasets.write(later.results.drawn_tables(table, imputer.sample(draws, random_state=seed)), drawn)
        later.datasets.write(filled, output, places=places)
        if not quiet:
            terminal.note([*table.notes, *notes, *imputer.notes_])
            later.results.show_filled(frame, imputer)
            terminal.say(f"Saved {output}" + ("" if drawn is None else f" and {drawn}"))


def _pairs(option: str, given: list[str] | None) -> dict[str, str]:
    """Return the values that an option gives, by column."""
    found = {}
    for each in given or ():
        name, equals, value = each.partition("=")
        if not (name and equals and value):
            raise InvalidInputError(f"{option} needs a column and a value, such as cases=people, got '{each}'")
        found[name] = value
    return found

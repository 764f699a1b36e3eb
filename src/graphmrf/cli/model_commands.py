"""graphmrf fit, sample and foresee: the generative model of the paper on the same files as predict."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphmrf.cli import later, options, terminal
from graphmrf.errors import InvalidInputError
from graphmrf.files import check_apart

if TYPE_CHECKING:
    from graphmrf.comparison import Prediction
    from graphmrf.datasets import AttributedGraph

ModelFile = Annotated[Path, options.argument("MODEL", "A model written by graphmrf fit (.json).")]
ModelOutput = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to save the model: a .json file.")
]
SampleOutput = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="The draws: .csv, .csv.gz, .tsv or .parquet.")
]
Named = Annotated[
    list[str] | None,
    typer.Option("--attribute", "-a", metavar="COL", help="Column to model; repeatable. Without it: all numeric ones."),
]
OneTarget = Annotated[str, typer.Option("--target", "-t", metavar="COL", help="The attribute to be predicted.")]
Coupled = Annotated[bool, typer.Option("--coupled", help="Let attributes of neighbours interact across columns, too.")]
Draws = Annotated[int, typer.Option("--draws", "-n", metavar="N", min=1, help="Number of draws.")]
DrawSeed = Annotated[int, typer.Option(metavar="S", min=0, help="Seed of the draws.")]
Given = Annotated[
    Path | None, typer.Option(metavar="NODES", help="Table of nodes: its empty cells are drawn, given the others.")
]
_Files = Annotated[
    list[Path],
    options.argument(
        "[MODEL] NODES [EDGES]",
        "Tables of nodes and of edges (none with --knn or --shapes), optionally preceded by a model of graphmrf fit "
        "(.json).",
    ),
]
_TargetR2 = Annotated[
    float | None,
    typer.Option("--target-r2", metavar="R²", help="Also estimate how many labels this R² takes, such as 0.8."),
]
_Suggest = Annotated[int, typer.Option(metavar="K", min=0, help="Also name the K nodes whose labels would help most.")]


@options.grouped
def fit(
    nodes: options.NodesFile,
    edges: options.MaybeEdgesFile = None,
    *,
    attribute: Named = None,
    ignore: options.Ignore = None,
    coupled: Coupled = False,
    graph: options.GraphOptions,
    output: ModelOutput = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Fit the generative model to the numeric columns of NODES.

    Empty cells are fine: the likelihood of the known cells is maximised. The
    model describes how attributes of one node depend on each other, and how
    smooth each is along the edges.

    [bold]Example[/bold]:

        graphmrf fit districts.csv borders.csv --ignore x --ignore y -o city.json
    """
    with terminal.errors_as_exit_codes(debug=debug):
        check_apart([output], [nodes, edges, graph.shapes])
        if output is not None:
            later.model_results.check_model_place(output)
        with later.inputs.explained("fit", nodes=nodes, edges=edges):
            table = later.inputs.read_graph(nodes, edges, graph)
        with terminal.progress([1.0], quiet=quiet):
            mrf, notes = later.model_results.fitted(table, attribute or (), ignore or (), coupled=coupled)
        if output is not None:
            mrf.save(output)
        if not quiet:
            terminal.note(notes)
        if json:
            terminal.print_json(later.model_results.model_summary(mrf))
        elif not quiet:
            later.model_results.show_model(mrf, table.graph.n_nodes, output)


@options.grouped
def sample(
    model: ModelFile,
    edges: options.MaybeEdgesFile = None,
    *,
    given: Given = None,
    draws: Draws = 1,
    seed: DrawSeed = 0,
    graph: options.GraphOptions,
    output: SampleOutput = None,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Draw attributes for all nodes from MODEL, or, with --given, only what is empty.

    MODEL needs nothing but a graph, whose nodes are the ends of EDGES. With
    --given, a table of nodes, known cells stay and empty ones are drawn. The
    result has one row per draw and node: sample, the node's id, its attributes.

    [bold]Example[/bold]:

        graphmrf sample city.json edges.csv --given nodes.csv -n 10 -o rents.csv
    """
    with terminal.errors_as_exit_codes(debug=debug):
        check_apart([output], [model, edges, given, graph.shapes])
        if output is not None:
            later.datasets.check_writable(output)
        with later.inputs.explained("sample", model=model, edges=edges, given=given):
            mrf = later.model.GaussianMRF.load(model)
            if given is None:
                table = later.model_results.read_ends(edges, graph)
            else:
                table = later.inputs.read_graph(given, edges, graph)
        frame = later.model_results.draw_table(table, mrf, draws, seed, conditional=given is not None)
        if output is not None:
            later.datasets.write(frame, output)
        if not quiet:
            terminal.note(table.notes)
            later.model_results.show_draws(frame, draws, output)


@options.grouped
def foresee(
    context: typer.Context,
    files: _Files,
    *,
    target: OneTarget,
    suggest: _Suggest = 0,
    target_r2: _TargetR2 = None,
    ignore: options.Ignore = None,
    graph: options.GraphOptions,
    report: options.Report = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Estimate how accurate predictions of a column are, now and with more labels.

    Nodes with a value in the column are labelled. Printed is the R² to expect
    on the others, by the field that graphmrf predict fits, and how it grows
    with labels at further nodes. With a MODEL of graphmrf fit before the
    tables: the R² to expect of label propagation, graph convolution and both.

    [bold]Example[/bold]:

        graphmrf foresee nodes.csv edges.csv --target rent --target-r2 0.8 --suggest 5
    """
    with terminal.errors_as_exit_codes(debug=debug):
        model, nodes, edges = later.model_results.check_files(files, places=graph.has_places)
        if model is not None and (report is not None or target_r2 is not None or ignore):
            raise InvalidInputError(
                "--report, --target-r2 and --ignore are for the field, without MODEL; drop one of them"
            )
        if report is not None:
            later.inputs.check_page(report, nodes, edges, graph.shapes)
        with later.inputs.explained("foresee", model=model, nodes=nodes, edges=edges):
            mrf = None if model is None else later.model.GaussianMRF.load(model)
            table = later.inputs.read_graph(nodes, edges, graph)
        if mrf is not None:
            notes, summary, show = later.model_results.under_model(table, mrf, target, suggest)
        else:
            found, needed, notes = _forecast(table, target, ignore or (), target_r2, suggest, quiet=quiet)
            summary = later.results.forecast_summary(table, found, needed)
            show = partial(later.results.show_forecast, table, found, needed)
            if report is not None:
                said = (*notes, *([needed] if needed else []))
                page = later.results.page_of(table, [found], said, context, title="Expected accuracy")
                later.report.write_report(report, page)
        terminal.note([] if quiet else notes)
        if json:
            terminal.print_json(summary)
        elif not quiet:
            show()


def _forecast(
    table: "AttributedGraph", target: str, ignore: Sequence[str], target_r2: float | None, suggest: int, *, quiet: bool
) -> "tuple[Prediction, str, tuple[str, ...]]":
    """Return the accuracy to expect of the default method, the labels needed for an R², and notes."""
    if target_r2 is not None and not 0 < target_r2 < 1:
        raise InvalidInputError(f"--target-r2 must be between 0 and 1, got {target_r2:g}; 0.8 means R² 0.8")
    y = later.targets.read_forecast(table, target, suggest)
    made = later.datasets.features(table, targets=(target,), ignore=ignore)
    settings = later.comparison.Settings((later.comparison.DEFAULT,), needs=("a learning curve", "suggested labels"))
    with terminal.progress([1.0, 1.0], quiet=quiet) as advance:
        found = later.comparison.predict_outcome(table.graph, made.unfilled, y, settings, name=target, advance=advance)
        found = found.with_details(made.unfilled)
        found = found.with_suggestions(suggest) if suggest else found
    curve = found.explanation.learning
    needed = "" if target_r2 is None or curve is None else later.comparison.labels_needed(curve, target_r2)
    methods = later.comparison.choose(settings.methods, n_features=made.X.shape[1])
    about = (later.targets.imputation_note(each, methods) for each in made.notes)
    return found, needed, (*table.notes, *about, *found.notes)

"""graphmrf predict: files, columns, fits; then the table, the page and the summary."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from graphmrf.cli import later, options, terminal
from graphmrf.cli.cluster import WITHOUT_EDGES, on_cluster, read_placed

if TYPE_CHECKING:
    from graphmrf.cli.targets import Problem
    from graphmrf.comparison import Prediction


@options.grouped
def predict(
    context: typer.Context,
    nodes: options.NodesFile,
    edges: options.MaybeEdgesFile = None,
    *,
    asked: options.TargetOptions,
    graph: options.PanelOptions,
    how: options.MethodOptions,
    output: options.TableOutput = None,
    keep_columns: options.KeepColumns = False,
    report: options.Report = None,
    where: options.ClusterOptions,
    json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Fill the empty cells of a column of NODES, with error bars.

    The two tables make a graph: NODES has one row per node (an id, numbers,
    text), EDGES has one row per edge (two ids, perhaps a weight). Columns are
    found by name, and every assumption is printed as a note.

    [bold]Example[/bold]: rents are known for some districts only.

        graphmrf predict districts.csv borders.csv --target rent -o rents.csv

    With --time NODES has one row per node and time, and the edges between
    nodes are the same at all times; --horizon 1 predicts the time after the last.
    With --repeated it may have several rows of a node, all used as observations.

    The result has one row per node, in the order of NODES: the id, prediction,
    std, lower, upper, observed; of known values also left_out, the prediction
    without their fold, and its residual in standard deviations. Counts and
    shares have smoothed rates in smoothed, smoothed_lower and smoothed_upper,
    known ones, too. For a target
    of words: prediction, probability, observed, left_out, and the probability
    of every class. Ctrl-C during the fit of the field falls back on the best of
    the methods that are fitted already, whose accuracy is printed as soon as it
    is known. Exit code: 0 done, 1 a failure of graphmrf, 2 wrong input.
    """
    with terminal.errors_as_exit_codes(debug=debug), on_cluster(where, quiet=quiet) as machines:
        settings = later.targets.settings_of(how, asked, stoppable=machines is None)
        saved = later.inputs.check_places(nodes, edges, graph.shapes, output=output, group=asked.group, report=report)
        needs_edges = (
            "--report" if report is not None else "" if how.method in WITHOUT_EDGES else f"--method {how.method}"
        )
        reading = terminal.progress([1.0], quiet=quiet, label="reading")
        with later.inputs.explained("predict", nodes=nodes, edges=edges), reading:
            table = read_placed(machines, nodes, edges, graph, needs_edges=needs_edges, repeated=asked.repeated)
        later.results.places_of(table, output)
        problem = later.targets.read_problem(table, asked, settings)
        terminal.note([] if quiet else problem.warnings)

        paged = report is not None or _keeps_page(output, problem)
        predictions = _predictions(problem, asked, paged=paged, quiet=quiet)
        notes = [*problem.notes, *(note for each in predictions for note in each.notes)]
        shown = later.results.page_of(problem.table, predictions, notes, context, features=problem.features.names)
        content = later.report.page_content(shown) if paged else None
        later.results.write_all(
            problem.table,
            predictions,
            content,
            output=output,
            keep_columns=keep_columns,
            group=asked.group,
            page=report,
        )
        terminal.note([] if quiet else notes)
        if json:
            terminal.print_json(later.results.result_summary(problem.table, predictions, notes=notes))
        elif not quiet:
            later.results.show_results(problem.table, predictions, saved=saved)


def _predictions(problem: "Problem", asked: options.TargetOptions, *, paged: bool, quiet: bool) -> "list[Prediction]":
    """Return the prediction of every target, with all that is asked for and what a page shows."""
    field = later.comparison.DEFAULT  # takes some thirty times as long as another method; at the end come error bars
    steps = [*(30.0 if method.key == field else 1.0 for method in problem.methods), 1.0] * len(problem.targets)
    X, made = problem.features.unfilled, []
    with terminal.progress(steps, quiet=quiet) as advance:
        for name, y in problem.targets.items():
            settings = problem.settings[name]
            found = later.comparison.predict_outcome(problem.table.graph, X, y, settings, name=name, advance=advance)
            if problem.groups is not None:
                found = found.with_groups(problem.groups, problem.weights)
            found = found if asked.above is None else found.with_probability(asked.above)
            found = found.with_suggestions(asked.suggest) if asked.suggest else found
            made.append(found.with_details(X) if paged else found)
    return made


def _keeps_page(output: Path | None, problem: "Problem") -> bool:
    """Return whether the table of results contains what a page shows, as Parquet does."""
    return output is not None and later.datasets.keeps_page(output) and not problem.table.graph.is_remote

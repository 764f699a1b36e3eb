"""graphmrf predict: files, columns, fits; then the table, the page and the summary."""

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path

import typer

from graphmrf.cli import later, options, terminal
from graphmrf.cli.cluster import on_cluster, read_placed


def predict(
    context: typer.Context,
    nodes: options.NodesFile,
    edges: options.MaybeEdgesFile = None,
    *,
    knn: options.Knn = None,
    k: options.Nearest = None,
    shapes: options.Shapes = None,
    target: options.Target = None,
    ignore: options.Ignore = None,
    id: options.Id = None,  # noqa: A002 - named like the option
    source: options.Source = None,
    dest: options.Dest = None,
    weight: options.Weight = None,
    weight_is: options.WeightIs = None,
    unknown: options.Unknown = "error",
    time: options.Time = None,
    horizon: options.Horizon = 0,
    group: options.GroupBy = None,
    method: options.MethodName = options.AUTO,
    alpha: options.Alpha = None,
    interval: options.Interval = 0.9,
    conformal: options.Conformal = False,
    transform: options.Transform = "identity",
    at_least: options.AtLeast = None,
    at_most: options.AtMost = None,
    whole: options.Whole = False,
    folds: options.Folds = 5,
    seed: options.FoldSeed = 0,
    suggest: options.Suggest = 0,
    output: options.TableOutput = None,
    keep_columns: options.KeepColumns = False,
    report: options.Report = None,
    cluster: options.OnCluster = None,
    partition: options.Share = None,
    checkpoint: options.Checkpoint = None,
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
    nodes hold at all times; --horizon 1 predicts the time after the last.

    The result has one row per node, in the order of NODES: the id, prediction,
    std, lower, upper, observed; of known values also left_out, the prediction
    without their fold, and its residual in standard deviations. For a target
    of words: prediction, probability, observed, left_out. Exit code: 0 done,
    1 a failure of graphmrf, 2 wrong input.
    """
    running = on_cluster(cluster, partition, checkpoint, quiet=quiet)
    with terminal.errors_as_exit_codes(debug=debug), running as machines:
        settings = later.prediction.PredictionSettings(
            *(method, interval, conformal, alpha, folds, seed, transform, group, suggest),
            later.prediction.Bounds(at_least, at_most, whole),
        )
        saved = later.inputs.check_places(nodes, edges, shapes, output=output, group=group, report=report)
        columns = {"source": source, "dest": dest, "weight": weight, "weight_is": weight_is, "unknown": unknown} | (
            later.inputs.time_columns(time, horizon, machines)
        )
        reading = terminal.progress([1.0], quiet=quiet, label="reading")
        with later.inputs.explained("predict", nodes=nodes, edges=edges), reading:
            table = read_placed(
                machines, (nodes, edges), columns, asked=(method, report), knn=knn, k=k, shapes=shapes, id=id
            )

        later.results.places_of(table, output)
        groups = later.foresight.read_groups(table, group)
        targets = later.inputs.read_targets(table, target or (), ignore or (), settings)
        contest = later.inputs.contest(table, tuple(targets), ignore or (), settings)
        foreseen = [*later.inputs.foreseen_memory(contest), *later.inputs.slow_fits(contest, targets)]
        terminal.note([] if quiet else foreseen)

        with terminal.progress([*contest.durations] * len(targets), quiet=quiet) as advance:
            predictions = [contest.predict(name, y, advance) for name, y in targets.items()]

        about_columns = [
            *later.inputs.column_notes(targets, contest, named=bool(target)),
            *later.foresight.group_notes(groups),
        ]
        notes = [*table.notes, *about_columns, *(note for each in predictions for note in each.notes)]
        beyond = later.foresight.BeyondNodes.of(table, groups, predictions, settings)
        page = partial(later.results.result_page, table, predictions, contest.features, notes=notes)
        shown = partial(page, command=terminal.command_line(context))
        _save(table, predictions, beyond, shown, output=output, keep_columns=keep_columns, report=report)
        if not quiet:
            terminal.note(notes)
        if json:
            terminal.print_json(beyond.in_summary(later.results.result_summary(table, predictions, notes=notes)))
        elif not quiet:
            later.results.show_results(table, predictions, saved=saved)
            beyond.show()


def _save(
    table: "later.datasets.AttributedGraph",
    predictions: "later.results.Predictions",
    beyond: "later.foresight.BeyondNodes",
    page: Callable[[], "later.report.PredictionReport"],
    *,
    output: Path | None,
    keep_columns: bool,
    report: Path | None,
) -> None:
    """Write the table, the groups and the page, as far as they are asked for; Parquet keeps what the page shows."""
    shown = report is not None or (
        output is not None and later.datasets.keeps_page(output) and not table.graph.is_elsewhere
    )
    logging.getLogger(terminal.LOGGER).info("writing")
    content = later.report.page_content(beyond.on_page(page())) if shown else None
    if output is not None:
        later.results.write_results(table, predictions, output, keep_columns=keep_columns, content=content)
        beyond.write(output)
    if report is not None and content is not None:
        later.report.write_content(report, content)

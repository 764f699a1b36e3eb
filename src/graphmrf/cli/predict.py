"""graphmrf predict: files, columns, fits; then the table, the page and the summary."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from graphmrf.cli import later, options, terminal
from graphmrf.cli.cluster import on_cluster, read_placed

if TYPE_CHECKING:
    import pandas as pd

_FIELD_TAKES = 30.0  # time of the field over that of another method, for the time left


@options.grouped
def predict(
    context: typer.Context,
    nodes: options.NodesFile,
    edges: options.MaybeEdgesFile = None,
    *,
    target: options.Target = None,
    ignore: options.Ignore = None,
    graph: options.PanelOptions,
    group: options.GroupBy = None,
    group_weight: options.GroupWeight = None,
    method: options.MethodName = "auto",
    alpha: options.Alpha = None,
    interval: options.Interval = 0.9,
    likelihood: options.CountLikelihood = "auto",
    exposure: options.Exposure = None,
    trials: options.Trials = None,
    std: options.Std = None,
    value_weight: options.ValueWeight = None,
    conformal: options.Conformal = False,
    transform: options.Transform = "identity",
    at_least: options.AtLeast = None,
    at_most: options.AtMost = None,
    integer: options.Integer = False,
    classify: options.Classify = False,
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
    nodes are the same at all times; --horizon 1 predicts the time after the last.

    The result has one row per node, in the order of NODES: the id, prediction,
    std, lower, upper, observed; of known values also left_out, the prediction
    without their fold, and its residual in standard deviations. For a target
    of words: prediction, probability, observed, left_out, and the probability
    of every class. Ctrl-C during the fit of the field uses the best of the methods
    that are fitted already, whose accuracy is printed as soon as it is known.
    Exit code: 0 done, 1 a failure of graphmrf, 2 wrong input.
    """
    running = on_cluster(cluster, partition, checkpoint, quiet=quiet)
    with terminal.errors_as_exit_codes(debug=debug), running as machines:
        known, ignore = _known(ignore or (), exposure=exposure, trials=trials, std=std, weight=value_weight)
        settings = later.inputs.settings_of(
            {"methods": (later.inputs.method_for(likelihood, method, known),)}
            | {"likelihood": likelihood, "alpha": alpha, "cv": folds, "random_state": seed, "level": interval}
            | {"transform": transform, "conformal": conformal, "needs": _needs(group, suggest)}
            | {"stoppable": machines is None},
            {"at_least": at_least, "at_most": at_most, "integer": integer},
        )
        saved = later.inputs.check_places(nodes, edges, graph.shapes, output=output, group=group, report=report)
        table = _read(machines, (nodes, edges), graph, (method, report), quiet=quiet)
        later.results.places_of(table, output)
        groups = later.inputs.group_of_nodes(table, group), later.inputs.read_group_weight(table, group_weight, group)
        targets = later.inputs.read_targets(
            table, target or (), ignore, settings, group=group, suggest=suggest, classify=classify
        )
        features = later.datasets.features(table, targets=tuple(targets), ignore=ignore)
        table = later.inputs.with_time_weight(table, targets, features, settings)
        n_features, numbers = features.X.shape[1], later.inputs.any_numbers(targets)
        settings, large = later.inputs.within_memory(
            table.graph, n_features, later.inputs.with_known(table, settings, known, targets), numbers=numbers
        )
        methods = later.comparison.choose(settings.methods, n_features=n_features)
        terminal.note([] if quiet else [*large, *later.inputs.slow_fits(targets, methods)])

        predictions, page = [], _wants_page(table, output, report)
        with terminal.progress([*_durations(methods)] * len(targets), quiet=quiet) as advance:
            for name, y in targets.items():
                found = later.comparison.predict(
                    table.graph, features.unfilled, y, settings, name=name, advance=advance
                )
                predictions.append(_complete(found, groups, suggest, features.unfilled if page else None))

        notes = [
            *table.notes,
            *later.inputs.column_notes(targets, features, settings, methods, named=bool(target)),
            *later.inputs.group_notes(groups[0]),
            *(note for each in predictions for note in each.notes),
        ]
        content = later.results.report_content(table, predictions, features, notes, context) if page else None
        later.results.write_all(
            table, predictions, content, output=output, keep_columns=keep_columns, group=group, page=report
        )
        terminal.note([] if quiet else notes)
        if json:
            terminal.print_json(later.results.result_summary(table, predictions, notes=notes))
        elif not quiet:
            later.results.show_results(table, predictions, saved=saved)


def _read(
    machines: "later.clusters.Cluster | None",
    tables: tuple[Path, Path | None],
    graph: options.PanelOptions,
    asked: tuple[str, Path | None],
    *,
    quiet: bool,
) -> "later.datasets.AttributedGraph":
    """Return nodes and edges as a graph with a table, given the method and the page that are asked for."""
    columns = graph.of_edges | later.inputs.time_columns(graph.time, graph.horizon, machines)
    reading = terminal.progress([1.0], quiet=quiet, label="reading")
    with later.inputs.explained("predict", nodes=tables[0], edges=tables[1]), reading:
        return read_placed(machines, tables, columns, asked=asked, **graph.of_nodes)


def _complete(
    found: "later.comparison.Prediction",
    groups: "tuple[pd.Series | None, Any]",
    suggest: int,
    X: "pd.DataFrame | None",
) -> "later.comparison.Prediction":
    """Return a prediction with groups and suggestions, as far as asked for, and with what a page shows, given X."""
    column, weight = groups
    found = found if column is None else found.with_groups(column, weight)
    found = found.with_suggestions(suggest) if suggest else found
    return found if X is None else found.with_details(X)


def _known(ignore: Sequence[str], **columns: str | None) -> tuple[dict[str, str], list[str]]:
    """Return the columns that are known of observations, as far as named, and those that are no features."""
    known = {option: column for option, column in columns.items() if column is not None}
    return known, [*ignore, *known.values()]


def _needs(group: str | None, suggest: int) -> tuple[str, ...]:
    """Return what options ask of a method, in the words of `comparison.capabilities`."""
    return (*(["totals of groups"] if group else []), *([later.comparison.SUGGESTIONS] if suggest else []))


def _wants_page(table: "later.datasets.AttributedGraph", output: Path | None, report: Path | None) -> bool:
    """Return whether a page is made: where it is asked for, and into Parquet, which retains what the page shows."""
    if report is not None:
        return True
    return output is not None and later.datasets.keeps_page(output) and not table.graph.is_elsewhere


def _durations(methods: "Sequence[Any]") -> Iterator[float]:
    """How long the methods take, beside each other, and at the end the error bars of the best."""
    yield from (_FIELD_TAKES if method.key == later.comparison.DEFAULT else 1.0 for method in methods)
    yield 1.0

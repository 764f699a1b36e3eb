"""What a person sees in the terminal: results on stdout; notes, progress and errors on stderr."""

import json
import re
import shlex
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column, Table

from graphmrf.cli.classes import Classification
from graphmrf.cli.job import Prediction
from graphmrf.cli.results import Results, columns_of
from graphmrf.cli.stages import listened_to
from graphmrf.errors import GraphMRFError, InvalidInputError
from graphmrf.report.rows import effect_name, method_name, method_uses
from graphmrf.text import decimals, number

OURS, BAD_INPUT = 1, 2
_STAGE = TextColumn("{task.fields[stage]}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis"))
_NUMBER = re.compile(r"[-+]?[\d,.]*(e[-+]?\d+)?")
_PREVIEW = 8
_BAR = 30


@contextmanager
def errors_as_exit_codes(*, debug: bool) -> Iterator[None]:
    """Turn an exception into one line on stderr and an exit code: 2 for bad input, 1 for a failure of ours."""
    try:
        yield
    except InvalidInputError as error:
        _fail(f"error: {error}", BAD_INPUT, debug=debug)
    except GraphMRFError as error:
        _fail(f"failed: {error}", OURS, debug=debug)
    except BrokenPipeError:  # whoever reads the results has seen enough
        raise
    except (OSError, MemoryError) as error:
        _fail(f"failed: {error or type(error).__name__}", OURS, debug=debug)
    except (typer.Exit, typer.Abort):
        raise
    except Exception as error:  # the last resort: a user never sees a traceback unasked
        _fail(f"failed: {type(error).__name__}: {error} (a bug of ours; --debug shows where)", OURS, debug=debug)


def _fail(message: str, code: int, *, debug: bool) -> None:
    if debug:
        typer.echo(traceback.format_exc(), err=True)
    typer.echo(" ".join(message.split()), err=True)
    raise typer.Exit(code)


def note(lines: Sequence[str]) -> None:
    """Print one line for everything that was assumed or changed."""
    for line in lines:
        typer.echo(f"note: {line}", err=True)


@contextmanager
def progress(steps: int, *, quiet: bool, label: str = "fitting") -> Iterator[Callable[[], None]]:
    """Show a bar on stderr, moved on by what it yields, and the latest stage; nothing where stderr is no terminal."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), _STAGE)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(label, total=steps, stage="")
        with listened_to(lambda stage: bar.update(task, stage=stage)):
            yield lambda: bar.update(task, advance=1, stage="")


def print_json(summary: dict[str, Any]) -> None:
    """Print a summary on stdout."""
    typer.echo(json.dumps(summary, indent=2, allow_nan=False))


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table on stdout, columns of numbers to the right and of words to the left."""
    table = Table(box=box.SIMPLE_HEAD)
    for name, column in zip(header, zip(*rows, strict=True), strict=True):
        table.add_column(name, justify="right" if all(_NUMBER.fullmatch(cell) for cell in column) else "left")
    for row in rows:
        table.add_row(*row)
    _print(table)


def command_line(context: typer.Context) -> str:
    """Return the command as it was given, options in their own order."""
    words = ["graphmrf", str(context.info_name)]
    for parameter in context.command.params:
        name = str(parameter.name)
        source = context.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE":
            continue
        value = context.params[name]
        for each in value if isinstance(value, (list, tuple)) else [value]:
            flag = [] if parameter.param_type_name == "argument" else [parameter.opts[0]]
            words += flag if isinstance(each, bool) else [*flag, str(each)]
    return shlex.join(words)


def show(found: Results, *, saved: Sequence[Path]) -> None:
    """Print how every target was predicted, and where the results are or how to keep them."""
    for prediction in found.predictions:
        if isinstance(prediction, Classification):
            _show_classes(prediction)
        else:
            _show_target(prediction)
    if saved:
        typer.echo("Saved " + " and ".join(str(path) for path in saved))
    else:
        _preview(found)


def _show_target(prediction: Prediction) -> None:
    chosen, observed = prediction.chosen, prediction.observed
    smoothing = "" if chosen.alpha is None else f", alpha {chosen.alpha:g}"
    typer.echo(
        f"{prediction.name}: {int((~observed).sum())} of {observed.size} nodes predicted from {int(observed.sum())} "
        f"known values by {method_name(chosen.method.key).lower()} ({chosen.method.key}{smoothing}), "
        f"cross-validated R2 {number(chosen.r2)}"
    )
    if len(prediction.fits) > 1:
        _print(_comparison(prediction))
    if chosen.shares:
        _print(_shares(chosen.shares))
    if prediction.carries:
        typer.echo(prediction.carries)


def _show_classes(found: Classification) -> None:
    chosen, observed = found.chosen, found.observed
    smoothing = "" if chosen.alpha is None else f", alpha {chosen.alpha:g}"
    typer.echo(
        f"{found.name}: {int((~observed).sum())} of {observed.size} nodes classified from {int(observed.sum())} "
        f"labels by {method_name(chosen.method.key).lower()} ({chosen.method.key}{smoothing}), "
        f"right for {100 * chosen.held_out_score:.0f} % of the labels held out"
    )
    if len(found.fits) > 1:
        _print(_accuracies(found))


def _accuracies(found: Classification) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("method")
    table.add_column("uses")
    table.add_column("accuracy", justify="right")
    for fit in found.fits:
        chosen = " *" if fit is found.chosen else ""
        table.add_row(fit.method.key + chosen, method_uses(fit.method.key), number(fit.held_out_score))
    return table


def _comparison(prediction: Prediction) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("method")
    table.add_column("uses")
    for name in ("R2", "worst fold", "alpha"):
        table.add_column(name, justify="right")
    for fit in prediction.fits:
        chosen = " *" if fit is prediction.chosen else ""
        alpha = "" if fit.alpha is None else f"{fit.alpha:g}"
        worst = min((score for score in fit.fold_r2 if not np.isnan(score)), default=np.nan)
        table.add_row(fit.method.key + chosen, method_uses(fit.method.key), number(fit.r2), number(worst), alpha)
    return table


def _shares(shares: dict[str, float]) -> Table:
    """Share of the variance by kind of effect, with bars."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("what carries it")
    table.add_column("share", justify="right")
    table.add_column("")
    block = "█" if Console().encoding.startswith("utf") else "#"
    for name, share in shares.items():
        table.add_row(effect_name(name), f"{100 * share:.0f} %", block * round(_BAR * share))
    return table


def _preview(found: Results) -> None:
    for prediction in found.predictions:
        hidden = ~prediction.observed
        ids = found.table.frame[found.table.id]
        columns: dict[str, Any] = {found.table.id: ids, **columns_of(prediction)}
        frame = pd.DataFrame(columns)[hidden].drop(columns="observed")
        _print(_first(frame, title=prediction.name if len(found.predictions) > 1 else None))
        shown = min(_PREVIEW, len(frame))
        typer.echo(f"The first {shown} of {len(frame)} predicted nodes; save all with -o predictions.csv")


def _first(frame: pd.DataFrame, *, title: str | None) -> Table:
    """Return the first rows, all numbers with the decimals of the prediction."""
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
    for name in frame.columns:
        table.add_column(str(name), justify="left" if name == frame.columns[0] else "right")
    places = _places(frame["prediction"]) if frame["prediction"].dtype.kind == "f" else 3
    for row in zip(*(_cells(frame[name].head(_PREVIEW), places) for name in frame.columns), strict=True):
        table.add_row(*row)
    return table


def _places(column: pd.Series) -> int | None:
    """Return the decimals that show the spread of a column, or the size of one that is constant but for rounding."""
    values = column.to_numpy()
    return decimals(values[:1] if np.ptp(values) <= 1e-9 * np.abs(values).max() else values)


def _cells(column: pd.Series, places: int | None) -> list[str]:
    return [number(cell, places) if column.dtype.kind == "f" else str(cell) for cell in column]


def _print(table: Table) -> None:
    Console(markup=False, highlight=False).print(table)

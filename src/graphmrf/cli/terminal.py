"""Output in the terminal: results on stdout; notes, progress and errors on stderr."""

import json
import logging
import os
import re
import shlex
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from enum import IntEnum
from pathlib import Path
from typing import Any

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Column, Table

from graphmrf.errors import GraphMRFError, InvalidInputError, MissingExtraError

_STAGE = TextColumn("{task.fields[stage]}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis"))
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_ENDLESS = re.compile(r"\S{160,}")  # A word that is no longer read: two lines of a terminal
LOGGER = "graphmrf.progress"  # the logger on which long fits report their stages


class ExitCode(IntEnum):
    """How a command ended; the last is what a shell reports of a program that Ctrl-C ended."""

    FAILED = 1
    BAD_INPUT = 2
    STOPPED = 130


@contextmanager
def errors_as_exit_codes(*, debug: bool) -> Iterator[None]:
    """Turn an exception into one line on stderr and an exit code: 2 bad input, 1 a failure of graphmrf, 130 Ctrl-C."""
    try:
        yield
        _flush_output()
    except (InvalidInputError, MissingExtraError) as error:
        _fail(f"error: {error}", ExitCode.BAD_INPUT, debug=debug)
    except GraphMRFError as error:
        _fail(f"failed: {error}", ExitCode.FAILED, debug=debug)
    except KeyboardInterrupt:
        _fail("stopped by Ctrl-C; every file is untouched or complete", ExitCode.STOPPED, debug=debug)
    except BrokenPipeError:  # the reader of the results, such as head, is done
        _discard_output()
        raise typer.Exit(0) from None
    except (OSError, MemoryError) as error:
        _discard_output()
        _fail(f"failed: {error or type(error).__name__}", ExitCode.FAILED, debug=debug)
    except (typer.Exit, typer.Abort):
        raise
    except Exception as error:  # a user sees a traceback with --debug only
        _fail(
            f"failed: {type(error).__name__}: {error} (internal error; please report it with the output of --debug)",
            ExitCode.FAILED,
            debug=debug,
        )


def _flush_output() -> None:
    if sys.stdout is not None:  # as where there is no console
        sys.stdout.flush()


def _discard_output() -> None:
    """Redirect stdout where writing failed: Python would try again when it ends."""
    with suppress(OSError, ValueError):  # it may be no file
        sys.stdout.flush()
        return
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: ExitCode, *, debug: bool) -> None:
    if debug:
        typer.echo(traceback.format_exc(), err=True)
    typer.echo(_on_one_line(message), err=True)
    raise typer.Exit(code)


def printable(text: str) -> str:
    r"""Return text in which characters that control a terminal, or the direction of writing, are escaped.

    Names and ids come from files that anyone may have written: printing them must not move the cursor, set a title or
    overwrite other lines.

    Examples
    --------
    >>> print(printable("a\x1b[2Jb\u202ec"))
    a\x1b[2Jb\u202ec
    """
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def _on_one_line(text: str) -> str:
    """Return a message on one line, with very long words cut in the middle."""
    return printable(_ENDLESS.sub(lambda found: f"{found[0][:40]}...{found[0][-20:]}", " ".join(text.split())))


def note(lines: Sequence[str]) -> None:
    """Print one line for everything that was assumed or changed."""
    for line in lines:
        typer.echo(_on_one_line(f"note: {line}"), err=True)


def say(line: str) -> None:
    """Print one line of results on stdout."""
    typer.echo(printable(line))


@contextmanager
def progress(steps: Sequence[float], *, quiet: bool, label: str = "fitting") -> Iterator[Callable[..., None]]:
    """Show on stderr the progress, the elapsed time and the current stage; yields the function that reports a step.

    `steps`: how long the parts of the work take, in any unit. A terminal shows a bar; otherwise a line is printed now
    and then. The function may be called with a line on what the step found, which is printed.
    """
    console, coming = Console(stderr=True), iter(steps)
    if quiet:
        yield lambda _="": None
    elif not console.is_terminal:
        lines = ProgressLines(label, len(steps), timed=False)
        with listened_to(lines.stage):
            yield lambda found="": lines.advance(float(next(coming, 0.0) > 0), found=found)
    else:
        columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), _STAGE
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task(label, total=sum(steps), stage="")
            with listened_to(lambda stage: bar.update(task, stage=stage)):
                yield lambda found="": _show_step(bar, task, next(coming, 0.0), found)


def _show_step(bar: Progress, task: TaskID, move: float, found: str) -> None:
    """Move a bar to the end of a step, and print what it found above the bar."""
    bar.update(task, advance=move, stage="")
    if found:
        bar.console.print(printable(found), markup=False, highlight=False)


class ProgressLines:
    """Lines on stderr where there is no terminal: the progress, the time left, and the current stage.

    `label`: what is done. `total`: amount of work, in any unit. `every`: seconds between lines: a short fit prints
    none, one of an hour a few hundred. `timed`: whether equal amounts of work take equal time: lines then have the time
    left, else the steps done and the time so far.
    """

    def __init__(self, label: str, total: float, *, every: float = 10.0, timed: bool = True) -> None:
        self.label, self.total, self.every, self.timed = label, total, every, timed
        self.done = 0.0
        self.found: list[str] = []
        self.start = self.last = self.moved = time.monotonic()

    def advance(self, work: float, label: str = "", *, found: str = "") -> None:
        """Note that some work is done, and what it found, which is printed with the next line."""
        self.done, self.label, self.moved = self.done + work, label or self.label, time.monotonic()
        self.found += [found] if found else []
        self._print("")

    def stage(self, words: str) -> None:
        """Note what is being done."""
        self._print(f": {words}")

    def _print(self, words: str) -> None:
        now = time.monotonic()
        if now - self.last < self.every:
            return
        self.last = now
        while self.found:
            typer.echo(_on_one_line(self.found.pop(0)), err=True)
        if self.done and not self.timed:
            so_far = timedelta(seconds=round(now - self.start))
            words = f", {self.done:.0f} of {self.total:.0f} steps done in {so_far}{words}"
        elif self.done:
            left = round((self.moved - self.start) * (self.total / self.done - 1) - (now - self.moved))
            time_left = f", about {timedelta(seconds=left)} left" if left > 0 else ""
            words = f", {self.done / self.total:.0%} done{time_left}{words}"
        typer.echo(printable(f"{self.label}{words}"), err=True)


class _Listener(logging.Handler):
    def __init__(self, show: Callable[[str], object]) -> None:
        super().__init__(logging.INFO)
        self._show = show

    def emit(self, record: logging.LogRecord) -> None:
        """Pass the message on, on one line."""
        self._show(" ".join(record.getMessage().split()))


@contextmanager
def listened_to(show: Callable[[str], object]) -> Iterator[None]:
    """Call `show` with every message of the logger while the block runs, and leave the logger as it was."""
    logger, listener = logging.getLogger(LOGGER), _Listener(show)
    level, propagates = logger.level, logger.propagate
    logger.addHandler(listener)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(listener)
        logger.setLevel(level)
        logger.propagate = propagates


def print_json(summary: dict[str, Any]) -> None:
    """Print a summary on stdout."""
    typer.echo(json.dumps(summary, indent=2, allow_nan=False))


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "") -> None:
    """Print a table on stdout; columns whose head starts with # are aligned to the right."""
    table = Table(box=box.SIMPLE_HEAD, title=printable(title) or None, title_justify="left")
    for name in map(printable, heads):
        table.add_column(name.removeprefix("#"), justify="right" if name.startswith("#") else "left")
    for row in rows:
        table.add_row(*map(printable, row))
    _Output(markup=False, highlight=False).print(table)


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
            # Typer below 0.21 has paths as text here, which only the type of the parameter shows.
            is_path = isinstance(each, Path) or type(getattr(parameter, "type", None)).__name__.endswith("Path")
            text = _relative(Path(each)) if is_path else str(each)
            words += flag if isinstance(each, bool) else [*flag, text]
    return shlex.join(words)


def _relative(path: Path) -> str:
    """Return a path from the current folder: a page that is passed on does not reveal the folders above."""
    try:
        return os.path.relpath(path) if path.is_absolute() else str(path)
    except ValueError:  # on another drive
        return path.name


class _Output(Console):
    def on_broken_pipe(self) -> None:
        """Raise the error for `errors_as_exit_codes`, where Rich would exit."""
        raise BrokenPipeError

"""The experiments of the paper run again: what is pending, its progress, and the files written."""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import typer
from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from graphmrf._typing import Floats
from graphmrf.cli import terminal
from graphmrf.errors import FetchError, GraphMRFError, InvalidInputError
from graphmrf.files import atomic
from graphmrf.report.layout import positions
from graphmrf.text import count, near_or_all
from graphmrf_paper import accuracy, classification, coupled, deviations, expected, generative, smoothing
from graphmrf_paper.attributes import load_raw
from graphmrf_paper.catalogue import recipe
from graphmrf_paper.figures import Drawing, Rings, check_figures, draw, packaged_shapes, read_outlines
from graphmrf_paper.findings import as_csv, as_latex, as_markdown
from graphmrf_paper.methods import TABLE_METHODS
from graphmrf_paper.pages import Parts, Reproduction, as_document, as_page
from graphmrf_paper.runner import (
    RESULTS_FILE,
    Journal,
    available_cores,
    execute,
    open_journal,
    pending,
    spoken,
    timings,
)
from graphmrf_paper.runs import Experiment, Run, RunSettings

_PAGE, _DOCUMENT = "index.html", "reproduction.md"
_UNBOUNDED = 10_000  # characters: wider than any table, to ask how wide one is

EXPERIMENTS: tuple[Experiment, ...] = (
    accuracy.SYNTHETIC_ACCURACY,
    smoothing.FREQUENCY_RESPONSE,
    smoothing.OMEGA_LP,
    smoothing.OMEGA_LGC,
    smoothing.OMEGA_LGC_RP,
    accuracy.DATA_STATISTICS,
    accuracy.REAL_ACCURACY,
    deviations.TRUNCATED,
    deviations.AUTHORS_FOLDS,
    accuracy.LABEL_FRACTION,
    accuracy.INDUCTIVE_SYNTHETIC,
    accuracy.INDUCTIVE_US,
    accuracy.COEFFICIENTS,
    classification.CLASSIFICATION,
    classification.CLASSIFICATION_TWITCH,
    generative.FITTED_PARAMETERS,
    generative.SAMPLED_MAPS,
    expected.R2_SYNTHETIC,
    expected.R2_REAL,
    smoothing.SMOOTHING_REAL,
    deviations.TRAINED,
    coupled.COUPLED,
)
"""Every table and figure of the paper with numbers or data in it, in the order of the paper."""

_LeftOut = tuple[str, str, GraphMRFError]
"""Experiments without a data set they need, its name, and the error on loading it."""


def run_again(
    names: Sequence[str],
    *,
    quick: bool,
    output: Path,
    data_dir: str | None,
    jobs: int | None,
    seed: int,
    shapes: Path | None,
    without: Sequence[str],
    drawn: bool,
    quiet: bool,
    command: str,
    executor: Executor | None = None,
) -> None:
    """Run what the journal in a folder lacks of some experiments, or of all, and write tables, figures and the page."""
    if seed < 0:
        raise InvalidInputError(f"--seed must be 0 or more, got {seed}")
    if jobs is not None and jobs < 1:
        raise InvalidInputError(f"--jobs must be at least 1, got {jobs}")
    settings, workers, chosen = RunSettings(quick, seed), jobs or available_cores(), find_experiments(names)
    for name in without:
        if name not in TABLE_METHODS:
            raise InvalidInputError(f"--without: no method is called '{name}'; {near_or_all(name, TABLE_METHODS)}")
    if drawn:
        check_figures()
    outlines = _prepare(output, shapes, drawn=drawn)
    wanted, left_out = _with_data(chosen, data_dir, named=bool(names))
    with _written_to(output):
        with open_journal(output / RESULTS_FILE) as journal:
            run_all = partial(execute, data_dir=data_dir, jobs=workers, executor=executor)
            runs = [run for experiment in wanted for run in experiment.plan(settings)]
            chosen_runs = [run for run in runs if run.method not in without]
            failures = _run(chosen_runs, journal, run_all, jobs=workers, quiet=quiet)
            times, missing = timings(wanted, settings, journal.found), pending(runs, journal)
        parts = [(experiment, experiment.collect(journal.results, settings)) for experiment in wanted]
        notes = [_why(lacking, data) for lacking, data, _ in left_out]
        notes += [_unfinished(missing)] if missing else []
        _write_all(output, Reproduction(parts, settings, times, command, notes, missing), outlines, data_dir)
    if not quiet:
        terminal.note([f"left out {lacking}: {error}" for lacking, _, error in left_out])
        _summary(parts, output, drawn=drawn)
    if failures:
        key, message = next(iter(failures.items()))
        raise GraphMRFError(
            f"{len(failures)} runs failed, the first is '{key}' ({message}); the same command tries them again"
        )


def _why(lacking: str, data: str) -> str:
    """Return which experiments were left out for lack of a data set, and how to get one with a licence to accept."""
    fetch = f"; graphmrf datasets fetch {data} --accept-licence downloads it once you accept its licence"
    return f"{lacking}: the data set {data} was not there{fetch if recipe(data).terms else ''}"


def _unfinished(missing: Sequence[Run]) -> str:
    """Return how many runs have no result, by method or task."""
    counts = Counter(run.method or run.task.__name__ for run in missing)
    parts = ", ".join(f"{number:,} of {name}" for name, number in counts.most_common())
    return f"{len(missing):,} runs have no result: {parts}; cells are means of the runs that have one"


@contextmanager
def _written_to(folder: Path) -> Iterator[None]:
    """Name the folder where writing fails, and that nothing is lost."""
    try:
        yield
    except OSError as error:
        raise GraphMRFError(
            f"cannot write to {folder} ({error.strerror or error}); what was finished is kept: make room, and the same "
            "command goes on from there"
        ) from error


def _with_data(
    chosen: tuple[Experiment, ...], data_dir: str | None, *, named: bool
) -> tuple[tuple[Experiment, ...], tuple[_LeftOut, ...]]:
    """Load every data set once; leave out experiments without their data, unless they were named."""
    trouble: dict[str, GraphMRFError] = {}
    for data in dict.fromkeys(data for experiment in chosen for data in experiment.data):
        try:
            load_raw(data_dir, data)
        except (InvalidInputError, FetchError) as error:
            if named:
                raise
            trouble[data] = error
    there = tuple(each for each in chosen if trouble.keys().isdisjoint(each.data))
    if trouble and not any(each.data for each in there):
        raise next(iter(trouble.values()))
    # Every experiment is listed with the first data set that it lacks.
    lacking = {each.name: next((data for data in each.data if data in trouble), None) for each in chosen}
    names = {data: ", ".join(name for name, lacks in lacking.items() if lacks == data) for data in trouble}
    return there, tuple((names[data], data, error) for data, error in trouble.items() if names[data])


def _run(
    runs: Sequence[Run], journal: Journal, run_all: Callable[..., dict[str, str]], *, jobs: int, quiet: bool
) -> dict[str, str]:
    missing = pending(runs, journal)
    if missing and not quiet:
        done = len(set(runs)) - len(missing)
        expected = spoken(sum(run.seconds for run in missing) / jobs)
        before = f", {done} are there already" if done else ""
        typer.echo(f"{len(missing)} runs to do{before}: about {expected} on {count(jobs, 'core')}", err=True)
    start = time.monotonic()
    try:
        with terminal.progress([run.seconds for run in missing], quiet=quiet or not missing, label="runs") as step:
            failures = run_all(missing, journal, watch=lambda _: step())
    except KeyboardInterrupt:
        typer.echo("interrupted; what was finished is kept, the same command goes on from there", err=True)
        raise typer.Exit(130) from None
    if missing and not quiet:
        spent = spoken(sum(journal.found[run.key].seconds for run in missing if run.key in journal.found))
        typer.echo(
            f"{len(missing)} runs took {spoken(time.monotonic() - start)} of wall-clock time, {spent} of CPU time",
            err=True,
        )
    return failures


def find_experiments(names: Sequence[str]) -> tuple[Experiment, ...]:
    """Return the experiments named, in the order of the paper; all of them when none is."""
    known = [experiment.name for experiment in EXPERIMENTS]
    for name in names:
        if name not in known:
            raise InvalidInputError(f"no experiment is called '{name}'; {near_or_all(name, known)}")
    return tuple(each for each in EXPERIMENTS if not names or each.name in names)


def show_list(names: Sequence[str]) -> None:
    """Print the experiments of these names, all without any, and how long each takes."""
    rows = [
        (each.name, each.place, each.title, spoken(sum(run.seconds for run in set(each.plan(RunSettings())))))
        for each in find_experiments(names)
    ]
    _show(("name", "in the paper", "shows", "CPU time"), rows)


def _prepare(folder: Path, shapes: Path | None, *, drawn: bool) -> dict[str, Rings] | None:
    """Make the folders, and return the outlines for maps, before any work is done; None where nothing is drawn."""
    outlines = read_outlines(shapes) if shapes is not None else packaged_shapes() if drawn else None
    others = [name for name in (_PAGE, _DOCUMENT) if os.path.lexists(folder / name)]
    if others and not os.path.lexists(folder / RESULTS_FILE):
        raise InvalidInputError(
            f"{folder} has a file {others[0]} and no {RESULTS_FILE}, so it is not of an earlier run and would be "
            "replaced; give another folder with --output"
        )
    try:
        for part in ("tables", "figures") if drawn else ("tables",):
            (folder / part).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(
            f"cannot make the folder {folder} ({error.strerror}); choose another --output"
        ) from error
    return outlines if drawn else None


def _write_all(folder: Path, made: Reproduction, outlines: dict[str, Rings] | None, data_dir: str | None) -> None:
    """Write tables, figures unless the outlines are None, the document and the page, each file whole or not at all."""
    for _, found in made.parts:
        for table in found.tables:
            for suffix, text in (("csv", as_csv), ("md", as_markdown), ("tex", as_latex)):
                _write(folder / "tables" / f"{table.name}.{suffix}", text(table).encode())
    drawings = {} if outlines is None else _drawings(folder, made.parts, outlines, data_dir)
    _write(folder / _DOCUMENT, as_document(made, drawn=outlines is not None).encode())
    _write(folder / _PAGE, as_page(made, drawings).encode())


def _drawings(folder: Path, parts: Parts, outlines: dict[str, Rings], data_dir: str | None) -> dict[str, Drawing]:
    figures = [figure for _, found in parts for figure in found.figures]
    drawings = {figure.name: draw(figure, outlines, partial(_places, data_dir)) for figure in figures}
    for name, drawing in drawings.items():
        for suffix, content in (("png", drawing.png), ("svg", drawing.svg)):
            _write(folder / "figures" / f"{name}.{suffix}", content)
    return drawings


def _places(data_dir: str | None, data: str) -> Floats:
    """Return where to draw the nodes of maps without outlines: their coordinates, or a layout of the graph."""
    loaded = load_raw(data_dir, data)
    graph, frame = loaded.graph, loaded.frame
    if {"x", "y"} <= set(frame.columns):
        return frame[["x", "y"]].to_numpy()
    return positions(graph.adjacency, graph.components)


def _write(path: Path, content: bytes) -> None:
    with atomic(path) as draft:
        draft.write_bytes(content)


def _summary(parts: Parts, folder: Path, *, drawn: bool) -> None:
    """Print the goals and where the files are."""
    signs = {True: "met", False: "not met", None: ""}
    rows = [
        (experiment.name, goal.what, goal.printed, goal.authors, goal.measured, goal.wanted, signs[goal.met])
        for experiment, found in parts
        for goal in found.goals
    ]
    if rows:
        _show(("experiment", "quantity", "printed", "authors' files", "ours", "goal", ""), rows)
    typer.echo(f"Saved tables{' and figures' if drawn else ''} in {folder}; open {folder / _PAGE}")


def _show(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; its first column is never cut, so that names can be copied from a narrow terminal."""
    table = Table(box=box.SIMPLE_HEAD)
    for number, head in enumerate(heads):
        table.add_column(head, no_wrap=number == 0, overflow="fold")
    for row in rows:
        table.add_row(*row)
    console = Console(markup=False, highlight=False)
    needed = Measurement.get(console, console.options.update(width=_UNBOUNDED), table).minimum
    console.width = max(console.width, needed)
    console.print(table)

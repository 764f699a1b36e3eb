"""graphmrf reproduce: every table and figure of the paper again, beside the published numbers."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from graphmrf.cli import options, terminal
from graphmrf.cli.reproduction import Outputs, progress, show, summary
from graphmrf.errors import FetchError, GraphMRFError, InvalidInputError
from graphmrf.experiments import (
    EXPERIMENTS,
    Experiment,
    Journal,
    Settings,
    Source,
    available_cores,
    execute,
    find,
    journal,
    load_raw,
    pending,
    spending,
    spoken,
)
from graphmrf.experiments.document import Origin
from graphmrf.experiments.store import FILE
from graphmrf.report.reproduction_figures import check_figures

Names = Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Experiments; all without a name.")]
Quick = Annotated[bool, typer.Option("--quick", help="Two splits and small networks: a few minutes.")]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for results, tables and figures.")]
DataDir = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Folder of the data, raw or cleaned; downloaded otherwise.")
]
Jobs = Annotated[int | None, typer.Option(metavar="N", help="Processes; one for each core by default.")]
Seed = Annotated[int, typer.Option(metavar="S", help="Another seed takes other splits and samples.")]
List = Annotated[bool, typer.Option("--list", help="List the experiments and stop.")]
Shapes = Annotated[Path | None, typer.Option(metavar="FILE", help="GeoJSON outlines of U.S. counties, for the maps.")]
NoFigures = Annotated[bool, typer.Option("--no-figures", help="Tables only; figures need Matplotlib.")]


@dataclass(frozen=True)
class Plan:
    """What is run, and what is left out for want of which data, with the trouble they gave."""

    experiments: tuple[Experiment, ...]
    left_out: tuple[tuple[str, str, GraphMRFError], ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """A line for every data set that is missing, with what to do about it."""
        return tuple(f"left out {names}: {error}" for names, _, error in self.left_out)

    @property
    def short_notes(self) -> tuple[str, ...]:
        """The same without the places on this machine."""
        return tuple(f"{names}: the data set {data} was not there" for names, data, _ in self.left_out)


def reproduce(
    context: typer.Context,
    names: Names = None,
    *,
    quick: Quick = False,
    output: Output = Path("reproduction"),
    data_dir: DataDir = None,
    jobs: Jobs = None,
    seed: Seed = 0,
    list: List = False,  # noqa: A002 - named like the option
    shapes: Shapes = None,
    no_figures: NoFigures = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Run the experiments of the paper again, beside its numbers.

    Writes tables (CSV, Markdown, LaTeX), figures (PNG, SVG) and one page,
    index.html. Finished runs are kept in results.jsonl: the same command
    goes on where it was interrupted, and repeats nothing.

    [bold]Example[/bold]: see everything in a few minutes, then in full.

        graphmrf reproduce --quick

        graphmrf reproduce real-accuracy --output paper
    """
    with terminal.errors_as_exit_codes(debug=debug):
        if list:
            _show_list()
            return
        settings, source = _settings(quick=quick, seed=seed), Source(None if data_dir is None else str(data_dir))
        workers = _jobs(jobs)
        chosen = find(names or ())
        if not no_figures:
            check_figures()
        outputs = Outputs.prepare(output, shapes, drawn=not no_figures)
        plan = _with_data(chosen, source, named=bool(names))
        with _written_to(output):
            with journal(output / FILE) as kept:
                failures = _run(plan, settings, source, kept, jobs=workers, quiet=quiet)
                results, times = kept.results, spending(plan.experiments, settings, kept.found)
            parts = [(experiment, experiment.collect(results, settings)) for experiment in plan.experiments]
            outputs.write(parts, source, Origin(settings, terminal.command_line(context), times, plan.short_notes))
        if not quiet:
            terminal.note(plan.notes)
            summary(parts, outputs)
        _report_failures(failures)


@contextmanager
def _written_to(folder: Path) -> Iterator[None]:
    """Say which folder is full or refuses, and that nothing is lost."""
    try:
        yield
    except OSError as error:
        raise GraphMRFError(
            f"cannot write to {folder} ({error.strerror or error}); what was finished is kept: make room, and the same "
            "command goes on from there"
        ) from error


def _settings(*, quick: bool, seed: int) -> Settings:
    if seed < 0:
        raise InvalidInputError(f"--seed must be 0 or more, got {seed}")
    return Settings(quick, seed)


def _jobs(jobs: int | None) -> int:
    if jobs is not None and jobs < 1:
        raise InvalidInputError(f"--jobs must be at least 1, got {jobs}")
    return jobs or available_cores()


def _with_data(chosen: tuple[Experiment, ...], source: Source, *, named: bool) -> Plan:
    """Load every data set once; without its data an experiment that was not named is left out, with a note."""
    trouble: dict[str, GraphMRFError] = {}
    for data in dict.fromkeys(data for experiment in chosen for data in experiment.data):
        try:
            load_raw(source, data)
        except (InvalidInputError, FetchError) as error:
            if named:
                raise
            trouble[data] = error
    kept = tuple(each for each in chosen if trouble.keys().isdisjoint(each.data))
    if trouble and not any(each.data for each in kept):
        raise next(iter(trouble.values()))
    return Plan(kept, tuple(_left_out(chosen, trouble)))


def _left_out(
    chosen: tuple[Experiment, ...], trouble: dict[str, GraphMRFError]
) -> Iterator[tuple[str, str, GraphMRFError]]:
    """Yield for every data set that is missing the experiments that lack it first."""
    first = {each.name: next((data for data in each.data if data in trouble), None) for each in chosen}
    for data, error in trouble.items():
        names = [name for name, lacks in first.items() if lacks == data]
        if names:
            yield ", ".join(names), data, error


def _run(plan: Plan, settings: Settings, source: Source, kept: Journal, *, jobs: int, quiet: bool) -> dict[str, str]:
    runs = [run for experiment in plan.experiments for run in experiment.plan(settings)]
    missing = pending(runs, kept)
    cores = f"{jobs} core{'' if jobs == 1 else 's'}"
    if missing and not quiet:
        done = len(set(runs)) - len(missing)
        expected = spoken(sum(run.seconds for run in missing) / jobs)
        before = f", {done} are there already" if done else ""
        typer.echo(f"{len(missing)} runs to do{before}: about {expected} on {cores}", err=True)
    start = time.monotonic()
    try:
        with progress(missing, quiet=quiet) as watch:
            failures = execute(missing, kept, source, jobs=jobs, watch=watch)
    except KeyboardInterrupt:
        typer.echo("interrupted; what was finished is kept, the same command goes on from there", err=True)
        raise typer.Exit(130) from None
    if missing and not quiet:
        spent = spoken(sum(kept.found[run.key].seconds for run in missing if run.key in kept.found))
        typer.echo(f"{len(missing)} runs took {spoken(time.monotonic() - start)}, {spent} of one core", err=True)
    return failures


def _report_failures(failures: dict[str, str]) -> None:
    if failures:
        key, message = next(iter(failures.items()))
        raise GraphMRFError(
            f"{len(failures)} runs failed, the first is '{key}' ({message}); the same command tries them again"
        )


def _show_list() -> None:
    rows = [
        (each.name, each.place, each.title, spoken(sum(run.seconds for run in set(each.plan(Settings())))))
        for each in EXPERIMENTS
    ]
    show(("name", "in the paper", "shows", "core time"), rows)

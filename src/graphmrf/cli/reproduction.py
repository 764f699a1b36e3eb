"""What a reproduction leaves behind: files in a folder, a bar while it runs, a summary at its end."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

import typer
from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from graphmrf._typing import Floats
from graphmrf.errors import InvalidInputError
from graphmrf.experiments import Experiment, Figure, Findings, Run, Source, load_raw, spoken
from graphmrf.experiments.document import Origin, as_document
from graphmrf.experiments.findings import Map
from graphmrf.experiments.tables import as_csv, as_latex, as_markdown
from graphmrf.files import atomic
from graphmrf.report.layout import positions
from graphmrf.report.reproduction import (
    ReproductionFigure,
    ReproductionReport,
    ReproductionSection,
    render_reproduction,
)
from graphmrf.report.reproduction_figures import draw
from graphmrf.report.reproduction_shapes import Atlas, Rings, outlined, packaged_shapes, read_shapes

Parts: TypeAlias = Sequence[tuple[Experiment, Findings]]

PAGE, DOCUMENT = "index.html", "reproduction.md"
_EVERY = 30.0
_UNBOUNDED = 10_000


@dataclass(frozen=True, eq=False)
class Outputs:
    """The folder of a reproduction.

    Parameters
    ----------
    folder : path
        Where everything goes.
    shapes : mapping
        Outlines for maps, by FIPS code.
    drawn : bool
        Whether figures are wanted.
    """

    folder: Path
    shapes: dict[str, Rings] = field(default_factory=dict)
    drawn: bool = True

    @classmethod
    def prepare(cls, folder: Path, shapes: Path | None, *, drawn: bool) -> "Outputs":
        """Make the folders, and read the outlines, before any work is done."""
        outlines = read_shapes(shapes) if shapes is not None else packaged_shapes() if drawn else {}
        try:
            for part in ("tables", "figures") if drawn else ("tables",):
                (folder / part).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInputError(
                f"cannot make the folder {folder} ({error.strerror}); choose another --output"
            ) from error
        return cls(folder, outlines, drawn)

    def write(self, parts: Parts, source: Source, origin: Origin) -> None:
        """Write tables, figures, the document and the page, each file whole or not at all."""
        for _, found in parts:
            for table in found.tables:
                for suffix, text in (("csv", as_csv), ("md", as_markdown), ("tex", as_latex)):
                    _write(self.folder / "tables" / f"{table.name}.{suffix}", text(table).encode())
        sections = [self._section(experiment, found, source) for experiment, found in parts]
        missing = sum(found.missing for _, found in parts)
        notes = (*origin.left_out, *((f"{missing} runs have no result",) if missing else ()))
        _write(self.folder / DOCUMENT, as_document(parts, replace(origin, left_out=notes), drawn=self.drawn).encode())
        quick = ", quick run" if origin.settings.quick else ""
        amount = f"{len(origin.settings.seeds)} splits{quick}; {origin.spending.sentence()}"
        page = render_reproduction(ReproductionReport(sections, amount, notes, origin.command, version("graphmrf")))
        _write(self.folder / PAGE, page.encode())

    def _section(self, experiment: Experiment, found: Findings, source: Source) -> ReproductionSection:
        figures = [self._figure(figure, source) for figure in found.figures] if self.drawn else []
        name, title, place = experiment.name, experiment.title, experiment.place
        return ReproductionSection(name, title, place, found.tables, figures, found.goals, found.remarks)

    def _figure(self, figure: Figure, source: Source) -> ReproductionFigure:
        drawing = draw(figure, Atlas(self.shapes, self._points(figure, source)))
        for suffix, content in (("png", drawing.png), ("svg", drawing.svg)):
            _write(self.folder / "figures" / f"{figure.name}.{suffix}", content)
        return ReproductionFigure(figure.name, figure.caption, drawing.svg, drawing.width)

    def _points(self, figure: Figure, source: Source) -> dict[str, Floats]:
        """Return where to draw the nodes of maps without outlines: their coordinates, or a layout of the graph."""
        maps = {panel.data: panel.ids for panel in figure.panels if isinstance(panel, Map)}
        points = {}
        for data, ids in maps.items():
            if not outlined(ids, self.shapes):
                loaded = load_raw(source, data)
                graph, frame = loaded.graph, loaded.frame
                has_xy = {"x", "y"} <= set(frame.columns)
                points[data] = frame[["x", "y"]].to_numpy() if has_xy else positions(graph.adjacency, graph.components)
        return points


def _write(path: Path, content: bytes) -> None:
    with atomic(path) as draft:
        draft.write_bytes(content)


@contextmanager
def progress(runs: Iterable[Run], *, quiet: bool) -> Iterator[Callable[[Run], None]]:
    """Show on stderr how far the runs are and how long they will take: a bar, or a line now and then."""
    planned = list(runs)
    if quiet or not planned:
        yield lambda _: None
        return
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines(len(planned), sum(run.seconds for run in planned))
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, speed_estimate_period=600) as bar:
        task, done = bar.add_task("", total=sum(run.seconds for run in planned)), 0

        def watch(run: Run) -> None:
            nonlocal done
            done += 1
            bar.update(task, advance=run.seconds, description=f"{done} of {len(planned)} runs")

        yield watch


class _Lines:
    """A line on stderr every half minute, where there is no terminal."""

    def __init__(self, count: int, expected: float) -> None:
        self.count, self.expected = count, expected
        self.done, self.weight = 0, 0.0
        self.start = self.last = time.monotonic()

    def __call__(self, run: Run) -> None:
        self.done, self.weight = self.done + 1, self.weight + run.seconds
        now = time.monotonic()
        if now - self.last >= _EVERY:
            self.last = now
            left = (now - self.start) * (self.expected / self.weight - 1)
            typer.echo(f"{self.done} of {self.count} runs, about {spoken(left)} left", err=True)


def summary(parts: Parts, outputs: Outputs) -> None:
    """Print the goals and where the files are."""
    signs = {True: "met", False: "not met", None: ""}
    rows = [
        (experiment.name, goal.what, goal.measured, goal.wanted, signs[goal.met])
        for experiment, found in parts
        for goal in found.goals
    ]
    if rows:
        show(("experiment", "measured quantity", "here", "goal", ""), rows)
    typer.echo(
        f"Saved tables{' and figures' if outputs.drawn else ''} in {outputs.folder}; open {outputs.folder / PAGE}"
    )


def show(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; in a narrow terminal it is too wide rather than cut, for names are there to be copied."""
    table = Table(box=box.SIMPLE_HEAD)
    for number, head in enumerate(heads):
        table.add_column(head, no_wrap=number == 0, overflow="fold")
    for row in rows:
        table.add_row(*row)
    console = Console(markup=False, highlight=False)
    needed = Measurement.get(console, console.options.update(width=_UNBOUNDED), table).minimum
    console.width = max(console.width, needed)
    console.print(table)

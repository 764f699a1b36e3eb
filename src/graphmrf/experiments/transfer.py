"""Figures of accuracy: against the share of labelled nodes, and on a graph that was not trained on."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from graphmrf.experiments.accuracy import transductive
from graphmrf.experiments.experiment import average, base, count_missing, method_run, title_of
from graphmrf.experiments.findings import Bars, Cell, Figure, Findings, Lines, Row, Series, Table
from graphmrf.experiments.methods import METHODS, Method, method_of, methods_for, shown, why_empty
from graphmrf.experiments.runs import Results, Run, Settings

FRACTIONS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)


@dataclass(frozen=True)
class LabelFraction:
    """Accuracy of some methods as more nodes are labelled, one outcome for each data set."""

    name: str
    title: str
    place: str
    tasks: tuple[tuple[str, str], ...]
    columns: tuple[str, ...]
    remarks: tuple[str, ...] = ()

    @property
    def data(self) -> tuple[str, ...]:
        """Data sets it needs."""
        return tuple(base(data) for data, _ in self.tasks)

    def plan(self, settings: Settings) -> Iterable[Run]:
        """Return a run for every task, method, share and split."""
        return [
            run
            for task in self.tasks
            for method in methods_for(self.columns)
            for fraction in FRACTIONS
            for run in self._runs(task, method, fraction, settings)
        ]

    def collect(self, results: Results, settings: Settings) -> Findings:
        """Return the curves, and the same as a table."""
        rows = tuple(
            Row((title_of(data), outcome, column), self._cells(results, settings, (data, outcome), column))
            for data, outcome in self.tasks
            for column in shown(self.columns)
        )
        shares = tuple(f"{fraction:.0%}" for fraction in FRACTIONS)
        caption = f"{self.title}: mean R² of random splits."
        table = Table(self.name, caption, ("data", "outcome", "method"), shares, rows)
        panels = tuple(_curves(table, title_of(data), outcome) for data, outcome in self.tasks)
        figure = Figure(self.name, caption, panels, columns=4)
        return Findings((table,), (figure,), (), self.remarks, count_missing(results, self.plan(settings)))

    def _runs(self, task: tuple[str, str], method: Method, fraction: float, settings: Settings) -> list[Run]:
        runs = [transductive(*task, method, settings, seed, fraction) for seed in settings.seeds]
        longer = 0.4 + (18 * fraction**3 if method.growth == "field" else 2 * fraction)
        return [replace(run, seconds=run.seconds * longer) for run in runs]

    def _cells(self, results: Results, settings: Settings, task: tuple[str, str], column: str) -> tuple[Cell, ...]:
        method = method_of(column)
        if method is None or method.unavailable:
            return (Cell(note=why_empty(column)),) * len(FRACTIONS)
        return tuple(average(results, self._runs(task, method, fraction, settings), column) for fraction in FRACTIONS)


@dataclass(frozen=True)
class Group:
    """Bars that stand together: averages over pairs of a training and a test set, and over outcomes."""

    label: str
    train: str
    test: str
    outcomes: tuple[str, ...]


@dataclass(frozen=True)
class Inductive:
    """Accuracy on a graph whose labels were not seen, beside that with 30 % of its labels."""

    name: str
    title: str
    place: str
    groups: tuple[Group, ...]
    columns: tuple[str, ...]
    remarks: tuple[str, ...] = ()

    @property
    def data(self) -> tuple[str, ...]:
        """Data sets it needs."""
        return tuple(dict.fromkeys(base(data) for group in self.groups for data in (group.train, group.test)))

    def plan(self, settings: Settings) -> Iterable[Run]:
        """Return a run for every group, outcome, method and split, on the other graph and on its own."""
        return [
            run
            for group in self.groups
            for method in self._methods()
            for kind in ("transductive", "inductive")
            for run in _runs(group, method, kind, settings)
        ]

    def collect(self, results: Results, settings: Settings) -> Findings:
        """Return the bars, and the same as a table."""
        rows = tuple(
            Row((group.label, kind), self._cells(results, settings, group, kind))
            for group in self.groups
            for kind in ("transductive", "inductive")
        )
        caption = f"{self.title}: mean R² of random splits."
        table = Table(self.name, caption, ("data", "setting"), shown(self.columns), rows, ranked=True)
        panels = tuple(_bars(table, group.label) for group in self.groups)
        figure = Figure(self.name, caption, panels, columns=len(panels))
        return Findings((table,), (figure,), (), self.remarks, count_missing(results, self.plan(settings)))

    def _methods(self) -> tuple[Method, ...]:
        return tuple(method for method in methods_for(self.columns) if method.name in self.columns)

    def _cells(self, results: Results, settings: Settings, group: Group, kind: str) -> tuple[Cell, ...]:
        cells = []
        for column in shown(self.columns):
            reason = why_empty(column)
            runs = [] if reason else _runs(group, METHODS[column], kind, settings)
            cells.append(replace(average(results, runs, column), note=reason))
        return tuple(cells)


def _runs(group: Group, method: Method, kind: str, settings: Settings) -> list[Run]:
    if kind == "transductive":
        return [
            transductive(group.test, outcome, method, settings, seed)
            for outcome in group.outcomes
            for seed in settings.seeds
        ]
    options: dict[str, str | int | float] = {"train": group.train, "test": group.test}
    return [
        method_run("inductive", {**options, "outcome": outcome, "seed": seed}, method, settings)
        for outcome in group.outcomes
        for seed in settings.seeds
    ]


def _curves(table: Table, data: str, outcome: str) -> Lines:
    rows = [row for row in table.rows if row.labels[:2] == (data, outcome)]
    series = []
    for row in rows:
        known = [
            (fraction, cell.ours, cell.spread or 0.0)
            for fraction, cell in zip(FRACTIONS, row.cells, strict=True)
            if cell.ours is not None
        ]
        if known:
            x, y, spread = zip(*known, strict=True)
            series.append(Series(row.labels[2], x, y, spread))
    return Lines(f"{data}: {outcome}", "share of labelled nodes", "R²", tuple(series))


def _bars(table: Table, label: str) -> Bars:
    rows = {row.labels[1]: row for row in table.rows if row.labels[0] == label}
    shown = [k for k, cell in enumerate(rows["inductive"].cells) if cell.ours is not None]
    series = []
    for kind, row in rows.items():
        cells = [row.cells[k] for k in shown]
        series.append(
            Series(
                kind, range(len(shown)), [cell.ours or 0.0 for cell in cells], [cell.spread or 0.0 for cell in cells]
            )
        )
    return Bars(label, tuple(table.columns[k] for k in shown), "R²", tuple(series))

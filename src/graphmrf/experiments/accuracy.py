"""Tables of accuracy: mean R2 over splits, the levels chosen, and how far from print."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from graphmrf.experiments.experiment import average, base, count_missing, method_run, title_of
from graphmrf.experiments.findings import Cell, Findings, Goal, Row, Table
from graphmrf.experiments.methods import LINEAR, NETWORKS, OURS, PAPER, Method, method_of, methods_for, shown, why_empty
from graphmrf.experiments.published import published
from graphmrf.experiments.runs import TRAINING, Results, Run, Settings

LEVELS = ("LP", "LGC", "LGC/RP", "SGC/RP", "GCN/RP", "SGC exact/RP")
LAYERS = ("SGC", "GCN", "SGC exact")


@dataclass(frozen=True)
class Line:
    """A row of a table: an average over tasks, each a data set and an outcome.

    Parameters
    ----------
    labels : tuple of str
        How the row begins.
    printed : str
        Its row in the published numbers.
    tasks : tuple of pairs
        Data set and outcome.
    compared : bool
        Whether it counts when the distance from print is taken.
    """

    labels: tuple[str, ...]
    printed: str
    tasks: tuple[tuple[str, str], ...]
    compared: bool = True


@dataclass(frozen=True)
class AccuracyTable:
    """Accuracy of every method on every line, 30 % of the nodes labelled at random.

    `nearest_level` is how close to print the mean level of LGC is wanted, None to print it only.
    """

    name: str
    title: str
    place: str
    heads: tuple[str, ...]
    lines: tuple[Line, ...]
    remarks: tuple[str, ...] = ()
    columns: tuple[str, ...] = (*PAPER, *OURS)
    nearest_level: float | None = None

    @property
    def data(self) -> tuple[str, ...]:
        """Data sets it needs."""
        return tuple(dict.fromkeys(base(data) for line in self.lines for data, _ in line.tasks))

    def plan(self, settings: Settings) -> Iterable[Run]:
        """Return a run for every task, method and split."""
        return [
            run
            for line in self.lines
            for method in methods_for(self.columns)
            for run in self._runs(line, method, settings)
        ]

    def collect(self, results: Results, settings: Settings) -> Findings:
        """Return the table, the hyper-parameters, and the distance from print."""
        accuracy = self._table(results, settings, "value", shown(self.columns))
        levels = self._table(results, settings, "alpha", shown(LEVELS))
        layers = self._table(results, settings, "layers", shown(LAYERS))
        compared = replace(accuracy, rows=self._compared(accuracy))
        goals = [*_distances(compared, settings), *self._levels(levels), *_best(accuracy)]
        missing = count_missing(results, self.plan(settings))
        return Findings((accuracy, levels, layers), (), tuple(goals), self.remarks, missing)

    def _levels(self, table: Table) -> list[Goal]:
        differences = np.abs(replace(table, rows=self._compared(table)).differences(["LGC"]))
        if not differences.size:
            return []
        near, wanted = int(np.count_nonzero(differences <= 0.1)), self.nearest_level
        measured = f"largest {differences.max():.3f}, {near} of {differences.size} within 0.1"
        met = None if wanted is None else bool(differences.max() <= wanted)
        text = "printed" if wanted is None else f"<= {wanted}"
        return [Goal("|difference| of the mean α of LGC from the paper", measured, text, met)]

    def _compared(self, table: Table) -> tuple[Row, ...]:
        return tuple(row for row, line in zip(table.rows, self.lines, strict=True) if line.compared)

    def _runs(self, line: Line, method: Method, settings: Settings) -> list[Run]:
        return [
            transductive(data, outcome, method, settings, seed)
            for data, outcome in line.tasks
            for seed in settings.seeds
        ]

    def _table(self, results: Results, settings: Settings, quantity: str, columns: tuple[str, ...]) -> Table:
        captions = {
            "value": f"{self.title}: mean R² of random splits, 30 % of the nodes labelled.",
            "alpha": f"{self.title}: smoothing level α chosen by cross-validation, mean over the runs.",
            "layers": f"{self.title}: number of layers K chosen by cross-validation, mean over the runs.",
        }
        rows = tuple(
            Row(line.labels, tuple(self._cell(results, settings, line, column, quantity) for column in columns))
            for line in self.lines
        )
        name = self.name if quantity == "value" else f"{self.name}-{quantity}"
        decimals = 3 if quantity == "value" else 2
        return Table(name, captions[quantity], self.heads, columns, rows, decimals, ranked=quantity == "value")

    def _cell(self, results: Results, settings: Settings, line: Line, column: str, quantity: str) -> Cell:
        paper = published(self.name, line.printed, column, quantity=quantity)
        method = method_of(column)
        if method is None or method.unavailable:
            return Cell(paper=paper, note=why_empty(column))
        cell = average(results, self._runs(line, method, settings), column, quantity=quantity)
        return replace(cell, paper=paper, note="" if cell.n_runs else "not run")


def transductive(
    data: str, outcome: str, method: Method, settings: Settings, seed: int, fraction: float = TRAINING
) -> Run:
    """Return the run of a method on one split of one task."""
    options: dict[str, str | int | float] = {"data": data, "outcome": outcome, "seed": seed, "fraction": fraction}
    return method_run("accuracy", options, method, settings)


def _distances(table: Table, settings: Settings) -> list[Goal]:
    goals = []
    for columns, limit in ((LINEAR, 0.012), (NETWORKS, 0.04)):
        differences = np.abs(table.differences(columns))
        if differences.size:
            mean, largest = float(differences.mean()), float(differences.max())
            what = f"mean |difference| from the paper, {differences.size} cells of {', '.join(columns)}"
            small = settings.quick and columns is NETWORKS
            wanted = "printed: the networks of a quick run are small" if small else f"< {limit}"
            goals.append(Goal(what, f"{mean:.4f} (largest {largest:.3f})", wanted, None if small else mean < limit))
    return goals


def _best(table: Table) -> list[Goal]:
    """Return in how many rows our best method is the most accurate, of those where it was run."""
    column = OURS[-1]
    pairs = [(cell.ours, table.best(row)) for row in table.rows for cell in replace(table, rows=(row,)).cells([column])]
    ours = [value == best for value, best in pairs if value is not None]
    what = f"rows in which {column} is more accurate than all others"
    return [Goal(what, f"{sum(ours)} of {len(ours)}", "printed", None)] if ours else []


def real_lines() -> tuple[Line, ...]:
    """Return the 14 tasks; London also as printed, with the logarithm of the election result."""
    outcomes = {
        "us-2016": ("income", "education", "unemployment", "election"),
        "cdc-2008": ("airT", "landT", "precipitation", "sunlight", "pm2.5"),
        "london-2016": ("income", "edu", "age", "election"),
        "london-2016+log": ("income", "edu", "age", "election"),
        "twitch-ptbr": ("days",),
    }
    return tuple(
        Line((title_of(data), outcome), f"{data}/{outcome}", ((data, outcome),), compared=data != "london-2016")
        for data, named in outcomes.items()
        for outcome in named
    )

"""Figures of foreseen against measured accuracy."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from graphmrf.experiments.accuracy import transductive
from graphmrf.experiments.experiment import average, count_missing, family, title_of
from graphmrf.experiments.findings import Cell, Figure, Findings, Goal, Points, Row, Series, Table
from graphmrf.experiments.foresight import FORESEEN, LEVEL
from graphmrf.experiments.methods import METHODS
from graphmrf.experiments.runs import Results, Run, Settings

COLUMNS = ("foreseen", f"foreseen{LEVEL}", "measured")
MARKERS = {"LP": "o", "LGC": "s", "LGC/RP": "^"}
ALL = "all together"


@dataclass(frozen=True)
class ForeseenAccuracy:
    """R2 foreseen from the fitted model against R2 measured, for every outcome and LP, LGC, LGC/RP.

    `wanted` is the correlation to reach over all data sets together.
    """

    name: str
    title: str
    place: str
    tasks: tuple[tuple[str, tuple[str, ...]], ...]
    wanted: float | None = None
    remarks: tuple[str, ...] = ()

    @property
    def data(self) -> tuple[str, ...]:
        """Data sets it needs."""
        return tuple(data for data, _ in self.tasks)

    def plan(self, settings: Settings) -> Iterable[Run]:
        """Return the foreseen values of every outcome, and the measured ones of every split."""
        tasks = [(data, outcome) for data, outcomes in self.tasks for outcome in outcomes]
        measured = [run for task in tasks for name in FORESEEN for run in _measured(*task, name, settings)]
        return [*(_foreseen(*task, settings) for task in tasks), *measured]

    def collect(self, results: Results, settings: Settings) -> Findings:
        """Return the points, the same as a table, and the correlations."""
        rows = {
            _label(data): [row for outcome in outcomes for row in _rows(results, settings, data, outcome)]
            for data, outcomes in self.tasks
        }
        together = [row for group in rows.values() for row in group]
        caption = f"{self.title}: mean over random splits, 30 % of the nodes labelled."
        table = Table(self.name, caption, ("data", "outcome", "method"), COLUMNS, tuple(together))
        panels = tuple(_points(label, group) for label, group in rows.items())
        goals = [goal for label, group in {**rows, ALL: together}.items() for goal in self._goals(label, group)]
        figure = Figure(self.name, caption, panels, columns=len(panels))
        return Findings((table,), (figure,), tuple(goals), self.remarks, count_missing(results, self.plan(settings)))

    def _goals(self, label: str, rows: Sequence[Row]) -> list[Goal]:
        triples = [
            [cell.ours for cell in row.cells] for row in rows if all(cell.ours is not None for cell in row.cells)
        ]
        if len(triples) < 3:
            return []
        paper, level, measured = np.array(triples, dtype=np.float64).T
        correlation, fitted = (float(np.corrcoef(each, measured)[0, 1]) for each in (paper, level))
        text = f"{correlation:.3f} (mean |difference| {np.abs(paper - measured).mean():.3f}{LEVEL} {fitted:.3f})"
        what = f"correlation of foreseen and measured R², {label}"
        if self.wanted is None or label != ALL:
            return [Goal(what, text, "printed")]
        return [Goal(what, text, f"> {self.wanted}", correlation > self.wanted)]


def _foreseen(data: str, outcome: str, settings: Settings) -> Run:
    seeds, seconds = settings.seeds, 0.5 if family(data) in ("synthetic", "london") else 8.0
    options: dict[str, str | int | float] = {"data": data, "outcome": outcome, "seed": seeds[0], "splits": len(seeds)}
    return Run.of("foreseen", options, seconds=seconds)


def _measured(data: str, outcome: str, name: str, settings: Settings) -> list[Run]:
    return [transductive(data, outcome, METHODS[name], settings, seed) for seed in settings.seeds]


def _rows(results: Results, settings: Settings, data: str, outcome: str) -> list[Row]:
    foreseen = results.get(_foreseen(data, outcome, settings).key, {})
    rows = []
    for name in FORESEEN:
        cells = [_mean(foreseen.get(name + suffix, [])) for suffix in ("", LEVEL)]
        measured = average(results, _measured(data, outcome, name, settings), name)
        rows.append(Row((_label(data), outcome, name), (*cells, measured)))
    return rows


def _mean(values: Sequence[float]) -> Cell:
    return Cell(float(np.mean(values)), n_runs=len(values)) if values else Cell(note="not run")


def _label(data: str) -> str:
    return f"h₀ = {data.rpartition('-h')[2]}" if family(data) == "synthetic" else title_of(data)


def _points(title: str, rows: Sequence[Row]) -> Points:
    outcomes = list(dict.fromkeys(row.labels[1] for row in rows))
    series = []
    for row in rows:
        x, y = row.cells[0].ours, row.cells[-1].ours
        if x is None or y is None:
            continue
        colour = outcomes.index(row.labels[1]) / max(len(outcomes) - 1, 1)
        series.append(
            Series(f"{row.labels[1]}, {row.labels[2]}", [x], [y], colour=colour, marker=MARKERS[row.labels[2]])
        )
    return Points(title, "foreseen R²", "measured R²", tuple(series))

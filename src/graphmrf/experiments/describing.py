"""Small tables: what the data sets are, and the coefficients of linear graph convolution."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from graphmrf.experiments.experiment import count_missing, title_of
from graphmrf.experiments.findings import Cell, Findings, Goal, Row, Table
from graphmrf.experiments.published import published
from graphmrf.experiments.runs import Results, Run, Settings

COUNTS = ("vertices", "edges", "attributes")


@dataclass(frozen=True)
class DataStatistics:
    """Counts of the real data sets."""

    name: str
    title: str
    place: str
    data: tuple[str, ...]
    remarks: tuple[str, ...] = ()

    def plan(self, settings: Settings) -> Iterable[Run]:  # noqa: ARG002 - every experiment has settings
        """Return a run for every data set."""
        return [self._run(data) for data in self.data]

    def collect(self, results: Results, settings: Settings) -> Findings:
        """Return the table."""
        rows = tuple(Row((title_of(data),), self._cells(results, data)) for data in self.data)
        table = Table(self.name, f"{self.title}.", ("data",), COUNTS, rows, decimals=0)
        return Findings((table,), remarks=self.remarks, missing=count_missing(results, self.plan(settings)))

    def _run(self, data: str) -> Run:
        return Run.of("statistics", {"data": data})

    def _cells(self, results: Results, data: str) -> tuple[Cell, ...]:
        found = results.get(self._run(data).key, {})
        return tuple(
            Cell(found.get(count), published(self.name, data, count), n_runs=len(found) and 1) for count in COUNTS
        )


@dataclass(frozen=True)
class Coefficients:
    """Coefficients of linear graph convolution for one outcome, mean over splits; the levels differ between them."""

    name: str
    title: str
    place: str
    data: tuple[str, ...]
    outcome: str
    features: tuple[str, ...]
    remarks: tuple[str, ...] = ()

    def plan(self, settings: Settings) -> Iterable[Run]:
        """Return a run for every year and split."""
        return [run for data in self.data for run in self._runs(data, settings)]

    def collect(self, results: Results, settings: Settings) -> Findings:
        """Return the table, and how far from print it is."""
        rows = tuple(
            Row((data.partition("-")[2],), tuple(self._cell(results, settings, data, name) for name in self.features))
            for data in self.data
        )
        caption = f"{self.title}: mean over random splits, 30 % of the counties labelled."
        table = Table(self.name, caption, ("year",), self.features, rows, decimals=2)
        return Findings(
            (table,), (), tuple(_distance(table)), self.remarks, count_missing(results, self.plan(settings))
        )

    def _runs(self, data: str, settings: Settings) -> list[Run]:
        return [
            Run.of("coefficients", {"data": data, "outcome": self.outcome, "seed": seed}) for seed in settings.seeds
        ]

    def _cell(self, results: Results, settings: Settings, data: str, feature: str) -> Cell:
        found = [results.get(run.key, {}).get("coefficients", {}).get(feature) for run in self._runs(data, settings)]
        values = [value for value in found if value is not None]
        cell = Cell(paper=published(self.name, data, feature), note="" if values else "not run")
        if not values:
            return cell
        spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
        return replace(cell, ours=float(np.mean(values)), spread=spread, n_runs=len(values))


def _distance(table: Table) -> list[Goal]:
    pairs = [(cell.ours, cell.paper) for cell in table.cells() if cell.difference is not None]
    if not pairs:
        return []
    ours, paper = np.array(pairs).T
    measured = f"{np.abs(ours - paper).mean():.3f} (correlation {np.corrcoef(ours, paper)[0, 1]:.3f})"
    return [Goal(f"mean |difference| of {len(pairs)} coefficients from the paper", measured, "printed")]

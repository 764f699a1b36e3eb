"""Experiments on the fitted model: its parameters, and maps drawn from it."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from graphmrf.experiments.fields import MAPPED
from graphmrf.experiments.findings import Cell, Figure, Findings, Goal, Heat, Map, Row, Table
from graphmrf.experiments.runs import Result, Results, Run, Settings

LIMITS = {"unemployment": (0.0, 15.0), "election": (-1.0, 1.0)}


@dataclass(frozen=True)
class FittedParameters:
    """Parameters of maximum likelihood beside those that drew the sample."""

    name: str
    title: str
    place: str
    data: tuple[str, ...]
    remarks: tuple[str, ...] = ()

    def plan(self, settings: Settings) -> Iterable[Run]:  # noqa: ARG002 - every experiment has settings
        """Return a fit for every data set."""
        return [Run.of("parameters", {"data": data}, seconds=0.5) for data in self.data]

    def collect(self, results: Results, settings: Settings) -> Findings:
        """Return the matrices as a figure, and their relative errors."""
        runs = dict(zip(self.data, self.plan(settings), strict=True))
        found = {data: results[run.key] for data, run in runs.items() if run.key in results}
        columns = ("error H", "error h", "nll", "true nll")
        rows = tuple(Row((_level(data),), tuple(Cell(each[name]) for name in columns)) for data, each in found.items())
        caption = f"{self.title}: relative error of H and h, and negative log-likelihood per node (fitted and true)."
        heads = ("error of H", "error of h", "NLL/n fitted", "NLL/n true")
        table = Table(self.name, caption, ("h₀",), heads, rows, decimals=4)
        panels = [_matrix(each, kind, _level(data)) for kind in ("true ", "") for data, each in found.items()]
        figure = Figure(self.name, f"{self.title}: true above, fitted below.", tuple(panels), columns=len(found) or 1)
        missing = len(self.data) - len(found)
        return Findings((table,), (figure,) if panels else (), tuple(_errors(found)), self.remarks, missing)


@dataclass(frozen=True)
class SampledMaps:
    """Two attributes drawn from the fitted model given all others, beside what was observed."""

    name: str
    title: str
    place: str
    data: tuple[str, ...]
    remarks: tuple[str, ...] = ()

    def plan(self, settings: Settings) -> Iterable[Run]:
        """Return one run for every data set."""
        return [Run.of("maps", {"data": data, "seed": settings.seeds[0]}, seconds=4.0) for data in self.data]

    def collect(self, results: Results, settings: Settings) -> Findings:
        """Return the maps, and a table of how smooth and how correlated they are."""
        tables, figures, missing = [], [], 0
        for data, run in zip(self.data, self.plan(settings), strict=True):
            if run.key not in results:
                missing += 1
                continue
            found = results[run.key]
            labels = ["observed", *(f"sample {k + 1}" for k in range(len(found["layers"]) - 1))]
            tables.append(self._table(found, labels))
            panels = tuple(
                _map(found, layer, label, name, data)
                for name in MAPPED
                for layer, label in zip(found["layers"], labels, strict=True)
            )
            figures.append(Figure(self.name, f"{self.title}.", panels, columns=len(labels)))
        return Findings(tuple(tables), tuple(figures), (), self.remarks, missing)

    def _table(self, found: Result, labels: list[str]) -> Table:
        columns = (*(f"correlation along edges, {name}" for name in MAPPED), "correlation of the two")
        rows = tuple(
            Row((label,), tuple(Cell(value) for value in (*smooth, both)))
            for label, smooth, both in zip(labels, found["smoothness"], found["correlation"], strict=True)
        )
        caption = "Do the samples resemble the data? Correlation along edges, and between the two attributes."
        return Table(self.name, caption, ("map",), columns, rows)


def _level(data: str) -> str:
    return data.rpartition("-h")[2]


def _matrix(found: Result, kind: str, level: str) -> Heat:
    values = np.column_stack([found[f"{kind}H"], np.full(len(found["h"]), np.nan), found[f"{kind}h"]])
    ticks = (*(str(k + 1) for k in range(len(values))), "", "h")
    name = "true" if kind else "fitted"
    return Heat(f"{name}, h₀ = {level}", "", "", values, ticks, ticks[: len(values)], signed=True)


def _errors(found: dict[str, Result]) -> list[Goal]:
    if not found:
        return []
    H, h = (max(each[f"error {name}"] for each in found.values()) for name in "Hh")
    better = all(each["nll"] <= each["true nll"] for each in found.values())
    return [
        Goal("largest relative error of the fitted H and h", f"{H:.3f} and {h:.3f}", "printed"),
        Goal("the fit is at least as likely as the true parameters", "yes" if better else "no", "yes", better),
    ]


def _map(found: Result, layer: dict[str, list[float]], label: str, name: str, data: str) -> Map:
    return Map(f"{name}, {label}", data, tuple(found["ids"]), np.asarray(layer[name]), LIMITS[name])

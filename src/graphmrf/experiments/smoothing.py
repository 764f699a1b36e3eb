"""Figures on smoothing: frequency responses of the filters, and omega recovered from samples of the model."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from graphmrf._typing import Floats
from graphmrf.experiments.experiment import count_missing
from graphmrf.experiments.fields import OMEGAS
from graphmrf.experiments.findings import Figure, Findings, Goal, Heat, Lines, Series
from graphmrf.experiments.runs import Results, Run, Settings

WITHIN_ONE_STEP = 11


@dataclass(frozen=True)
class FrequencyResponse:
    r"""What smoothing leaves of an eigenvector of N, on a regular graph.

    .. math:: g(\lambda) = 1 / (1 + \omega \lambda) \quad \text{(LGC)}, \qquad
              g(\lambda) = (1 - \tfrac{d}{d + 1} \lambda)^K \quad \text{(SGC)}
    """

    name: str
    title: str
    place: str
    degree: int = 6
    omegas: tuple[float, ...] = tuple(float(10.0**step) for step in np.linspace(-2, 3, 11))
    layers: tuple[int, ...] = tuple(range(21))
    data: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    def plan(self, settings: Settings) -> Iterable[Run]:  # noqa: ARG002 - every experiment has settings
        """Return nothing: the responses are formulas."""
        return ()

    def collect(self, results: Results, settings: Settings) -> Findings:  # noqa: ARG002
        """Return the curves."""
        frequency = np.linspace(0, 2, 201)
        d = self.degree
        lgc = [(f"ω = {omega:.3g}", 1 / (1 + omega * frequency)) for omega in self.omegas]
        sgc = [(f"K = {K}", (1 - d / (d + 1) * frequency) ** K) for K in self.layers]
        panels = tuple(
            Lines(title, "eigenvalue λ of N", "response g(λ)", _gradient(frequency, curves))
            for title, curves in (("LGC", lgc), ("SGC", sgc))
        )
        caption = f"{self.title}: LGC with ω from 0.01 (blue) to 1000 (red), SGC with K from 0 (blue) to 20 (red)."
        return Findings(figures=(Figure(self.name, caption, panels, columns=2),), remarks=self.remarks)


@dataclass(frozen=True)
class OmegaRecovery:
    """Accuracy for every pair of the omega that drew the sample and the omega of the predictor."""

    name: str
    title: str
    place: str
    method: str
    graph: str
    remarks: tuple[str, ...] = ()

    @property
    def data(self) -> tuple[str, ...]:
        """Data sets it needs."""
        return (self.graph,)

    def plan(self, settings: Settings) -> Iterable[Run]:
        """Return a run for every true omega and sample."""
        return [run for step in range(len(OMEGAS)) for run in self._runs(step, settings)]

    def collect(self, results: Results, settings: Settings) -> Findings:
        """Return the heat map, and how many of its maxima are within one step of the diagonal."""
        missing = count_missing(results, self.plan(settings))
        columns = [self._mean(results, settings, step) for step in range(len(OMEGAS))]
        if any(column is None for column in columns):
            return Findings(remarks=self.remarks, missing=missing)
        R2 = np.array(columns).T
        best = R2.argmax(axis=0)
        ticks = tuple(f"{omega:.3g}" if step % 4 == 0 else "" for step, omega in enumerate(OMEGAS))
        marks = tuple((step, int(found)) for step, found in enumerate(best))
        title = f"{self.method}: R²"
        panel = Heat(title, "ω of the model", f"ω of {self.method}", R2, ticks, ticks, marks)
        caption = f"{self.title}: mean R² of {len(settings.repeats)} samples; a dot marks the best ω of each column."
        return Findings(
            (), (Figure(self.name, caption, (panel,)),), (_recovered(self.method, best),), self.remarks, missing
        )

    def _runs(self, step: int, settings: Settings) -> list[Run]:
        features = int(self.method != "LP")
        return [
            Run.of(
                "omega",
                {"data": self.graph, "features": features, "step": step, "seed": seed},
                seconds=0.1 if features else 0.05,
            )
            for seed in settings.repeats
        ]

    def _mean(self, results: Results, settings: Settings, step: int) -> Floats | None:
        found = [results[run.key][self.method] for run in self._runs(step, settings) if run.key in results]
        return np.mean(found, axis=0) if found else None


def _recovered(method: str, best: Floats) -> Goal:
    off = np.abs(best - np.arange(len(best)))
    near = int(np.count_nonzero(off <= 1))
    measured = f"{near} of {len(best)} ({int(np.count_nonzero(off == 0))} on the diagonal)"
    what = f"columns whose best ω of {method} is within one step of the true ω"
    return Goal(what, measured, f">= {WITHIN_ONE_STEP} of {len(best)}", near >= WITHIN_ONE_STEP)


def _gradient(x: Floats, curves: Sequence[tuple[str, Floats]]) -> tuple[Series, ...]:
    last = max(len(curves) - 1, 1)
    return tuple(
        Series(label, x.tolist(), y.tolist(), colour=position / last) for position, (label, y) in enumerate(curves)
    )

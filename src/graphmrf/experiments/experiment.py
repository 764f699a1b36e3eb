"""What an experiment is, and the averages that all of them take over runs."""

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np

from graphmrf.experiments.data import LOG
from graphmrf.experiments.findings import Cell, Findings
from graphmrf.experiments.methods import Method
from graphmrf.experiments.runs import Results, Run, Settings

TITLES = {"us": "U.S.", "cdc": "CDC", "london": "London", "twitch": "Twitch", "synthetic": "Synthetic"}
# Time of a run relative to one on the U.S. counties, by the growth of the method.
_SIZES = {
    "synthetic": {"direct": 0.3, "network": 0.2, "field": 0.2},
    "london": {"direct": 0.25, "network": 0.15, "field": 0.09},
    "us": {"direct": 1.0, "network": 1.0, "field": 1.0},
    "cdc": {"direct": 0.9, "network": 0.45, "field": 1.05},
    "twitch": {"direct": 1.6, "network": 1.1, "field": 0.5},
}
_QUICK = 0.06


class Experiment(Protocol):
    """A table or figure of the paper: a frozen value that expands into runs and reads their results."""

    @property
    def name(self) -> str:
        """Its name on the command line."""

    @property
    def title(self) -> str:
        """What it shows, in a few words."""

    @property
    def place(self) -> str:
        """Where it is in the paper."""

    @property
    def data(self) -> tuple[str, ...]:
        """Data sets it needs."""

    def plan(self, settings: Settings) -> Iterable[Run]:
        """Return the runs."""

    def collect(self, results: Results, settings: Settings) -> Findings:
        """Return what the runs found; those without a result leave empty cells."""


def family(data: str) -> str:
    """Return the first part of the name of a data set.

    Examples
    --------
    >>> family("london-2016+log")
    'london'
    """
    return data.partition("-")[0]


def title_of(data: str) -> str:
    """Return a data set's name in tables.

    Examples
    --------
    >>> title_of("us-2016"), title_of("london-2016+log")
    ('U.S.', 'London, log')
    """
    return TITLES[family(data)] + (", log" if data.endswith(LOG) else "")


def base(data: str) -> str:
    """Return the data set itself, without the variant of the experiment.

    Examples
    --------
    >>> base("london-2016+log"), base("synthetic-paper-h1:1")
    ('london-2016', 'synthetic-paper-h1')
    """
    return data.removesuffix(LOG).partition(":")[0]


def method_run(kind: str, options: dict[str, str | int | float], method: Method, settings: Settings) -> Run:
    """Return a run of a method; networks have their effort in the key."""
    where = str(options.get("data") or options["train"])
    seconds = method.seconds * _SIZES[family(where)][method.growth]
    if not method.extra:
        return Run.of(kind, {**options, "method": method.name}, seconds=seconds)
    seconds *= _QUICK if settings.quick else 1.0
    return Run.of(kind, {**options, "method": method.name, "effort": settings.effort}, seconds=seconds)


def average(results: Results, runs: Sequence[Run], column: str, *, quantity: str = "value") -> Cell:
    """Return mean and standard deviation over the runs that have a number.

    Examples
    --------
    >>> run = Run.of("accuracy", {"seed": 1})
    >>> average({run.key: {"LP": {"value": 0.5}}}, [run], "LP").ours
    0.5
    """
    found = (results.get(run.key, {}).get(column, {}).get(quantity) for run in runs)
    values = [float(value) for value in found if value is not None]
    if not values:
        return Cell()
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return Cell(float(np.mean(values)), spread=spread, n_runs=len(values))


def count_missing(results: Results, runs: Iterable[Run]) -> int:
    """Return how many runs have no result."""
    return sum(run.key not in results for run in runs)

"""Experiments, the runs they are made of, and how much of them to do."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from graphmrf_paper.findings import Findings, TableCell

Scalar: TypeAlias = str | int | float
Options: TypeAlias = Mapping[str, Any]
Result: TypeAlias = Mapping[str, Any]
Results: TypeAlias = Mapping[str, Result]
Task: TypeAlias = Callable[[str | None, Options], Result]
"""What a run does: from the folder of the data (None: downloaded) and its options to a result that JSON can hold."""

TRAINING = 0.3
"""Share of labelled nodes, the paper's."""
_SPLITS, _QUICK_SPLITS = 10, 2  # the paper's ten; two are the fewest with a spread
_REPEATS, _QUICK_REPEATS = 30, 4  # the paper's thirty samples; four for a quick look
_SEEDS_APART = 1000  # more than any count of splits or samples, so that two seeds share none


@dataclass(frozen=True)
class RunSettings:
    """How much to do.

    Parameters
    ----------
    quick : bool
        Two splits and small networks, to see everything in a few minutes.
    seed : int
        Another seed takes other splits and samples, >= 0.

    Examples
    --------
    >>> RunSettings(quick=True).seeds, RunSettings(seed=1).seeds
    (range(1, 3), range(1001, 1011))
    """

    quick: bool = False
    seed: int = 0

    @property
    def seeds(self) -> range:
        """Seeds of the random splits."""
        return self._from_one(_QUICK_SPLITS if self.quick else _SPLITS)

    @property
    def repeats(self) -> range:
        """Seeds of the samples that are drawn from the model."""
        return self._from_one(_QUICK_REPEATS if self.quick else _REPEATS)

    @property
    def effort(self) -> str:
        """How long networks are trained: part of the key of their runs."""
        return "quick" if self.quick else "full"

    def over_splits(self, task: Task, options: Mapping[str, Scalar], *, seconds: float = 0.1) -> "list[Run]":
        """Return a run with these options for every split."""
        return [Run.of(task, {**options, "seed": seed}, seconds=seconds) for seed in self.seeds]

    def _from_one(self, count: int) -> range:
        first = _SEEDS_APART * self.seed + 1
        return range(first, first + count)


@dataclass(frozen=True)
class Run:
    """One independent task and everything its result depends on.

    Parameters
    ----------
    task : callable
        What is done: a function at the top level of a module, so that another process finds it. Its name begins the
        key, so no two tasks share one.
    options : tuple of pairs
        Its arguments, sorted by name.
    seconds : float
        Expected CPU time; not part of what the run is.

    Examples
    --------
    >>> def accuracy(data_dir, options):
    ...     return {"R2": 0.5}
    >>> run = Run.of(accuracy, {"seed": 1, "data": "us-2016"})
    >>> run.key, run.perform(None)
    ('accuracy data=us-2016 seed=1', {'R2': 0.5})
    """

    task: Task
    options: tuple[tuple[str, Scalar], ...]
    seconds: float = field(default=0.1, compare=False)

    @classmethod
    def of(cls, task: Task, options: Mapping[str, Scalar], *, seconds: float = 0.1) -> "Run":
        """Return the run with these options, in whatever order they are given."""
        return cls(task, tuple(sorted(options.items())), seconds)

    @property
    def key(self) -> str:
        """The name under which the result is kept."""
        return " ".join([self.task.__name__, *(f"{name}={value}" for name, value in self.options)])

    @property
    def method(self) -> str:
        """The method of the table that it fits; empty for other tasks."""
        return str(dict(self.options).get("method", ""))

    def perform(self, data_dir: str | None) -> Result:
        """Return the result, from the data in a folder, or downloaded."""
        return self.task(data_dir, dict(self.options))


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper: it expands into runs and reads their results.

    Parameters
    ----------
    name, title, place : str
        Its name on the command line, what it shows in a few words, where it is in the paper.
    data : tuple of str
        Data sets it needs.
    plan : callable
        From `RunSettings` to the runs.
    collect : callable
        From the results there are, and `RunSettings`, to tables, figures and goals; missing results leave empty cells.
    remarks : tuple of str
        What agrees, what differs, and why.
    """

    name: str
    title: str
    place: str
    data: tuple[str, ...]
    plan: Callable[[RunSettings], Sequence[Run]]
    collect: Callable[[Results, RunSettings], Findings]
    remarks: tuple[str, ...] = ()

    def n_missing(self, results: Results, settings: RunSettings) -> int:
        """Return how many runs have no result."""
        return sum(run.key not in results for run in set(self.plan(settings)))


def average(
    results: Results, runs: Iterable[Run], column: str, *, quantity: str = "value", missing: str = ""
) -> TableCell:
    """Return mean and standard deviation over the runs that have a number; `missing` says why there is none.

    Examples
    --------
    >>> run = Run.of(print, {"seed": 1})
    >>> average({run.key: {"LP": {"value": 0.5}}}, [run], "LP").ours
    0.5
    """
    return (
        TableCell(note=missing)
        if missing
        else mean_cell(results.get(run.key, {}).get(column, {}).get(quantity) for run in runs)
    )


def mean_cell(numbers: Iterable[float | None]) -> TableCell:
    """Return mean and standard deviation of the numbers that are there.

    Examples
    --------
    >>> mean_cell([0.4, None, 0.6]).ours, mean_cell([None]).ours
    (0.5, None)
    """
    values = [float(value) for value in numbers if value is not None]
    if not values:
        return TableCell(note="not run")
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return TableCell(float(np.mean(values)), spread=spread, n_runs=len(values))

"""Experiments: the runs they consist of, the tables that runs fill, and how much to run."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np

from graphmrf_paper.findings import Figure, Findings, Goal, PaperTable, TableCell, TableRow
from graphmrf_paper.published import authors, printed

Scalar: TypeAlias = str | int | float
Options: TypeAlias = Mapping[str, Any]
Result: TypeAlias = Mapping[str, Any]
Results: TypeAlias = Mapping[str, Result]
Task: TypeAlias = Callable[[str | None, Options], Result]
"""What a run does: from the folder of the data (None: downloaded) and its options to a result that JSON can hold."""

_SPLITS, _QUICK_SPLITS = 10, 2  # the paper's ten; two are the fewest with a spread
_REPEATS, _QUICK_REPEATS = 30, 4  # the paper's thirty samples; four for a quick look
_SEEDS_APART = 1000  # more than any count of splits or samples, so that two seeds share none


@dataclass(frozen=True)
class RunSettings:
    """How much to run: `quick` takes two splits and small networks, another `seed` other splits and samples."""

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
    """An independent task with all options that its result depends on.

    The task is a function at the top level of a module, so that another process finds it; its name begins the key, so
    no two tasks share one. `seconds`, the expected CPU time, is not part of what the run is.
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
        """The name under which the result is stored."""
        return " ".join([self.task.__name__, *(f"{name}={value}" for name, value in self.options)])

    @property
    def method(self) -> str:
        """The method of the table that it fits; empty for other tasks."""
        return str(dict(self.options).get("method", ""))

    def perform(self, data_dir: str | None) -> Result:
        """Return the result, from the data in a folder, or downloaded."""
        return self.task(data_dir, dict(self.options))


@dataclass(frozen=True)
class Entry:
    """A cell before its runs are done: the mean of a number in their results, and the published numbers beside it.

    Parameters
    ----------
    runs : sequence of Run
        Those averaged over.
    path : tuple of str and int
        Where the number, or a list of numbers, is in the result of each run.
    printed, authors : tuple of str
        Arguments of `graphmrf_paper.published.printed` and `authors`; empty for none.
    note : str
        Why there is no number.
    """

    runs: Sequence[Run] = ()
    path: tuple[str | int, ...] = ()
    printed: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    note: str = "not run"

    def beside(self, *place: str) -> "Entry":
        """Return the entry with the number printed in a place and that of the authors' files."""
        return replace(self, printed=place, authors=place)

    def cell(self, results: Results) -> TableCell:
        """Return mean and standard deviation over the runs that have a result."""
        by_run = [values for run in self.runs if (values := _numbers_at(results.get(run.key), self.path))]
        found = [value for values in by_run for value in values]
        empty = TableCell(
            printed=printed(*self.printed) if self.printed else None,
            authors=authors(*self.authors) if self.authors else None,
            note=self.note,
        )
        if not found:
            return empty
        spread = float(np.std(found, ddof=1)) if len(found) > 1 else None
        missing = len(self.runs) - len(by_run)
        return replace(empty, ours=float(np.mean(found)), spread=spread, n_runs=len(found), missing=missing, note="")


def _numbers_at(result: Any, path: Sequence[str | int]) -> list[float]:
    for step in path:
        if result is None:
            break
        result = result[step] if isinstance(step, int) else result.get(step)
    return [] if result is None else [float(value) for value in np.ravel(result)]


_Labels = TypeVar("_Labels", bound=tuple[str, ...])
_R = TypeVar("_R")
_C = TypeVar("_C")


@dataclass(frozen=True)
class Plan:
    """A table before its runs are done: its form, without rows, and the entries of every row."""

    form: PaperTable
    rows: Mapping[tuple[str, ...], Sequence[Entry]]

    @classmethod
    def of(
        cls, form: PaperTable, rows: Mapping[_Labels, _R], columns: Iterable[_C], entry: Callable[[_R, _C], Entry]
    ) -> "Plan":
        """Return the table whose entries are a function of row and column."""
        wanted = list(columns)
        return cls(form, {labels: [entry(row, column) for column in wanted] for labels, row in rows.items()})

    @property
    def runs(self) -> list[Run]:
        """All runs, row by row."""
        return [run for entries in self.rows.values() for entry in entries for run in entry.runs]

    def fill(self, results: Results) -> PaperTable:
        """Return the table; entries without results are empty cells."""
        rows = (TableRow(labels, tuple(each.cell(results) for each in row)) for labels, row in self.rows.items())
        return replace(self.form, rows=tuple(rows))


@dataclass(frozen=True)
class Outline:
    """An experiment for some settings: tables to fill, and a function from them and all results to the findings."""

    plans: Sequence[Plan] = ()
    conclude: Callable[[Sequence[PaperTable], Results], Findings] = lambda tables, _: Findings(tuple(tables))

    @classmethod
    def of(
        cls,
        *plans: Plan,
        goals: Callable[..., Iterable[Goal]] = lambda *_: (),
        figures: Callable[..., Iterable[Figure]] = lambda *_: (),
    ) -> "Outline":
        """Return the outline whose goals and figures are functions of the filled tables."""

        def conclude(tables: Sequence[PaperTable], _: Results) -> Findings:
            return Findings(tuple(tables), tuple(figures(*tables)), tuple(goals(*tables)))

        return cls(plans, conclude)


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper.

    Parameters
    ----------
    name, title, place : str
        Its name on the command line, what it shows in a few words, where it is in the paper.
    data : tuple of str
        Data sets it needs.
    outline : callable
        From `RunSettings` to its `Outline`.
    remarks : tuple of str
        What agrees, what differs, and why.
    """

    name: str
    title: str
    place: str
    data: tuple[str, ...]
    outline: Callable[[RunSettings], Outline]
    remarks: tuple[str, ...] = ()

    def plan(self, settings: RunSettings) -> list[Run]:
        """Return the runs of all tables; a run that several need is there several times."""
        return [run for plan in self.outline(settings).plans for run in plan.runs]

    def collect(self, results: Results, settings: RunSettings) -> Findings:
        """Return tables, figures and goals; missing results leave empty cells."""
        outline = self.outline(settings)
        return outline.conclude([plan.fill(results) for plan in outline.plans], results)

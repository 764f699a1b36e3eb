"""Targets of node regression on everything: what was to be reached, and whether the runs there are reach it.

A difference is the mean, over the sets and splits that both methods have finished, of the R2 of GraphRegressor less
that of the other method; an R2 below -1 counts as -1. "of" is how many of the sets, or runs, there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.more_data import NAMES as MORE
from benchmarks.peers import OURS, PLAIN
from benchmarks.sets import PAPER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from benchmarks.show import Row

    Runs = Mapping[Any, Row]
    Values = dict[tuple[str, int], float]

WORST = -1.0
"""What an R2 below it counts as in means."""
RANDOM = "random 0.3"
BOTH = "boosting + RP"
TREES = "boosting"


def _values(runs: Runs, method: str, hole: str, tasks: tuple[str, ...], key: str = "R2") -> Values:
    """Return a number of all runs of a method, by set and split."""
    return {
        (work.task, work.seed): max(row[key], WORST)
        for work, row in runs.items()
        if work.method == method and work.hole == hole and work.task in tasks and row.get(key) is not None
    }


def _by_set(values: Values) -> list[float]:
    """Return the mean over splits of every set."""
    tasks = dict.fromkeys(task for task, _ in values)
    return [float(np.mean([value for (own, _), value in values.items() if own == task])) for task in tasks]


@dataclass(frozen=True)
class Mean:
    """The mean R2 of GraphRegressor over some sets."""

    tasks: tuple[str, ...]
    hole: str = RANDOM

    def __call__(self, runs: Runs) -> list[float]:
        """Return the R2 of every set."""
        return _by_set(_values(runs, OURS, self.hole, self.tasks))


@dataclass(frozen=True)
class Ahead:
    """By how much GraphRegressor is ahead of another method."""

    tasks: tuple[str, ...]
    other: str
    hole: str = RANDOM

    def __call__(self, runs: Runs) -> list[float]:
        """Return the difference on every set."""
        ours, others = (_values(runs, method, self.hole, self.tasks) for method in (OURS, self.other))
        return _by_set({run: ours[run] - others[run] for run in ours if run in others})


def _peers(runs: Runs, tasks: tuple[str, ...]) -> tuple[Values, dict[str, Values]]:
    names = dict.fromkeys(work.method for work in runs if work.method not in (OURS, PLAIN))
    return _values(runs, OURS, RANDOM, tasks), {name: _values(runs, name, RANDOM, tasks) for name in names}


def _ahead_of_best_of_each(runs: Runs) -> list[float]:
    """Return, for every set, the difference from the method that is best there."""
    ours, others = _peers(runs, MORE)
    best = {run: max((values[run] for values in others.values() if run in values), default=np.nan) for run in ours}
    return _by_set({run: ours[run] - best[run] for run in ours if np.isfinite(best[run])})


def _ahead_of_best_on_average(runs: Runs) -> list[float]:
    """Return, for every set, the difference from the method with the best mean of those that finished all sets."""
    ours, others = _peers(runs, MORE)
    whole = {name: values for name, values in others.items() if ours and values.keys() >= ours.keys()}
    if not whole:
        return []
    best = max(whole.values(), key=lambda values: float(np.mean([values[run] for run in ours])))
    return _by_set({run: ours[run] - best[run] for run in ours})


def _coverage(kind: str) -> Callable[[Runs], list[float]]:
    """Return the coverage of 90 % intervals in all runs with learned effects."""

    def of(runs: Runs) -> list[float]:
        return [row["90 %"] for work, row in runs.items() if work.hole.startswith(kind) and row.get("trees") == 1]

    return of


def _seconds(runs: Runs) -> list[tuple[float, float]]:
    """Return CPU seconds that learned effects add, and those of one fit of boosting, of all runs that have both."""
    names = (OURS, PLAIN, TREES)
    found = [
        [runs[work._replace(method=name)]["CPU s"] for name in names]
        for work in runs
        if work.method == OURS and all(work._replace(method=name) in runs for name in names)
    ]
    return [(ours - plain, learner) for ours, plain, learner in found]


def _added(runs: Runs) -> list[float]:
    """Return the seconds that learned effects add in every run, over the mean of those of one fit of boosting."""
    pairs = _seconds(runs)
    return [added / float(np.mean([learner for _, learner in pairs])) for added, _ in pairs]


def _slow(runs: Runs) -> list[float]:
    """Return 1 for every run in which learned effects add more than two fits of boosting take, 0 for the others."""
    return [float(added > 2.0 * learner) for added, learner in _seconds(runs)]


@dataclass(frozen=True)
class Target:
    """A figure: its name, the least and greatest value that meet it, its values, and of how many they should be."""

    figure: str
    low: float
    high: float
    values: Callable[[Runs], list[float]]
    wanted: int | None = None

    def row(self, runs: Runs) -> Row:
        """Return the value and the verdict."""
        found = self.values(runs)
        value = float(np.mean(found)) if found else None
        sets = f"{len(found)} of {self.wanted}" if self.wanted else f"{len(found)} runs"
        return {"figure": self.figure, "target": self._text, "of": sets, "value": value, "verdict": self._of(value)}

    @property
    def _text(self) -> str:
        ends = np.isfinite([self.low, self.high])
        if ends.all():
            return f"{self.low:g} to {self.high:g}"
        return f"at least {self.low:g}" if ends[0] else f"at most {self.high:g}" if ends[1] else "reported"

    def _of(self, value: float | None) -> str:
        if value is None:
            return "not run"
        if self._text == "reported":
            return self._text
        return "met" if self.low <= value <= self.high else "MISSED"


def _least(figure: str, low: float, values: Callable[[Runs], list[float]], wanted: int = 1) -> Target:
    return Target(figure, low, np.inf, values, wanted)


def _compared(task: str, other: str, low: float, hole: str = RANDOM) -> Target:
    return _least(f"{task}, {hole}: R² ahead of {other} by", low, Ahead((task,), other, hole))


CHAMELEON, FB100 = "chameleon:log_traffic", "fb100:class_year"

TARGETS = (
    _least("further sets: ahead of the best method of each set by", 0.005, _ahead_of_best_of_each, len(MORE)),
    _least("further sets: ahead of the best method on average by", 0.005, _ahead_of_best_on_average, len(MORE)),
    _compared(CHAMELEON, BOTH, 0.0),
    _compared(FB100, BOTH, 0.0),
    _least("Twitch:days: R²", 0.63, Mean(("Twitch:days",))),
    _least("the paper's 14 tasks: R²", 0.875, Mean(PAPER), len(PAPER)),
    _least(f"{CHAMELEON}, groups 0.3: R²", -np.inf, Mean((CHAMELEON,), "groups 0.3")),
    _compared(CHAMELEON, BOTH, -np.inf, "groups 0.3"),
    Target("coverage of 90 % intervals with trees, at random", 0.88, 0.92, _coverage("random")),
    Target("coverage of 90 % intervals with trees, in blocks", 0.88, 0.92, _coverage("blocks")),
    *(_compared(f"made:{name}", TREES, -0.01) for name in ("steps", "few of 50", "log-normal")),
    *(_compared(f"made:{name}", PLAIN, -0.01) for name in ("label noise", "useless")),
    _compared("made:wide", PLAIN, -0.01, "random 100"),
    Target("CPU seconds that trees add, over those of one fit of boosting", -np.inf, 2.0, _added),
    Target("part of the runs in which they add more than twice those", -np.inf, 0.0, _slow),
)


def targets(runs: Runs) -> Iterator[Row]:
    """Yield the value of every target and whether it is met, missed or not run."""
    return (target.row(runs) for target in TARGETS)

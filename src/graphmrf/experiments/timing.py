"""Wall-clock and CPU time of the runs, for every experiment and for groups of methods."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from graphmrf.experiments.journal import Record
from graphmrf.experiments.methods import TABLE_METHODS
from graphmrf.experiments.run import Experiment, Run, RunSettings
from graphmrf.text import DASH

_NETWORKS, _FIELD, _OTHERS = "SGC, GCN", "GraphRegressor", "all others"
_GROUPS = {"direct": _OTHERS, "network": _NETWORKS, "field": _FIELD}


@dataclass(frozen=True)
class Timing:
    """Time of some runs in seconds.

    Parameters
    ----------
    name : str
        What they are for.
    n_runs : int
        How many have ended.
    elapsed : float
        Wall-clock time while they ended one after the other.
    groups : mapping
        CPU time of every group of methods that was run.
    """

    name: str
    n_runs: int
    elapsed: float
    groups: Mapping[str, float]

    @property
    def cpu(self) -> float:
        """CPU time, all together."""
        return sum(self.groups.values())

    def sentence(self) -> str:
        """Return how long they took."""
        return f"{self.n_runs} runs took {spoken(self.elapsed)} of wall-clock time, {spoken(self.cpu)} of CPU time"


def timings(
    experiments: Iterable[Experiment], settings: RunSettings, found: Mapping[str, Record]
) -> tuple[Timing, ...]:
    """Return the time of every experiment, runs that ended only, and last that of all runs, each counted once."""
    plans = {experiment.name: set(experiment.plan(settings)) for experiment in experiments}
    plans["all, runs in common once"] = set().union(*plans.values())
    return tuple(_timing(name, runs, found) for name, runs in plans.items())


def timing_table(times: Sequence[Timing]) -> str:
    """Return a table of times in Markdown."""
    heads = ("experiment", "runs", "wall-clock time", "CPU time", *_GROUPS.values())
    lines = [heads, ("---", *["---:"] * (len(heads) - 1)), *map(_line, times)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def spoken(seconds: float) -> str:
    """Return a time in words.

    Examples
    --------
    >>> spoken(0.2), spoken(20), spoken(200), spoken(8000)
    ('1 second', '20 seconds', '4 minutes', '2.2 hours')
    """
    if seconds < 90:
        return f"{round(seconds)} seconds" if seconds >= 1.5 else "1 second"
    return f"{-(-seconds // 60):.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def _timing(name: str, runs: Iterable[Run], found: Mapping[str, Record]) -> Timing:
    ended = [(run, found[run.key]) for run in runs if run.key in found]
    groups: dict[str, float] = {}
    for run, record in ended:
        group = _group(run)
        groups[group] = groups.get(group, 0.0) + record.seconds
    return Timing(name, len(ended), sum(record.elapsed for _, record in ended), groups)


def _group(run: Run) -> str:
    method = TABLE_METHODS.get(str(dict(run.options).get("method")))
    return _OTHERS if method is None else _GROUPS[method.growth]


def _line(time: Timing) -> tuple[str, ...]:
    if not time.n_runs:
        return (time.name, "0", *[DASH] * (2 + len(_GROUPS)))
    groups = (spoken(time.groups[group]) if group in time.groups else DASH for group in _GROUPS.values())
    return (time.name, f"{time.n_runs:,}", spoken(time.elapsed), spoken(time.cpu), *groups)

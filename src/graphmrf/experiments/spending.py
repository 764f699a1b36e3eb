"""How long it took: on the clock, and of one core, for every experiment and for groups of methods."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from graphmrf.experiments.experiment import Experiment
from graphmrf.experiments.methods import METHODS
from graphmrf.experiments.runs import Run, Settings
from graphmrf.experiments.store import Record
from graphmrf.experiments.tables import DASH

NETWORKS, BEST, OTHERS = "SGC, GCN", "GraphRegressor", "all others"
GROUPS = (OTHERS, NETWORKS, BEST)


@dataclass(frozen=True)
class Spent:
    """Time of some runs in seconds.

    Parameters
    ----------
    name : str
        What they are for.
    n_runs : int
        How many have ended.
    elapsed : float
        On the clock while they ended one after the other.
    cores : mapping
        Of one core, for every group of methods that was run.
    """

    name: str
    n_runs: int
    elapsed: float
    cores: Mapping[str, float]

    @property
    def core(self) -> float:
        """Of one core, all together."""
        return sum(self.cores.values())


@dataclass(frozen=True)
class Spending:
    """Time of every experiment, and of all runs, each counted once."""

    experiments: tuple[Spent, ...]
    total: Spent

    def sentence(self) -> str:
        """Return how long everything took."""
        clock, core = spoken(self.total.elapsed), spoken(self.total.core)
        return f"{self.total.n_runs} runs took {clock} on the clock, {core} of one core"

    def markdown(self) -> str:
        """Return a table of times."""
        heads = ("experiment", "runs", "on the clock", "of one core", *GROUPS)
        lines = [heads, ("---", *["---:"] * (len(heads) - 1)), *map(_line, (*self.experiments, self.total))]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def spending(experiments: Iterable[Experiment], settings: Settings, found: Mapping[str, Record]) -> Spending:
    """Return the times of the runs that have ended."""
    plans = {experiment.name: set(experiment.plan(settings)) for experiment in experiments}
    each = tuple(_spent(name, runs, found) for name, runs in plans.items())
    return Spending(each, _spent("all, runs in common once", set().union(*plans.values()), found))


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


def _spent(name: str, runs: Iterable[Run], found: Mapping[str, Record]) -> Spent:
    ended = [(run, found[run.key]) for run in runs if run.key in found]
    cores: dict[str, float] = {}
    for run, record in ended:
        group = _group(run)
        cores[group] = cores.get(group, 0.0) + record.seconds
    return Spent(name, len(ended), sum(record.elapsed for _, record in ended), cores)


def _group(run: Run) -> str:
    method = METHODS.get(str(dict(run.options).get("method")))
    if method is None:
        return OTHERS
    return NETWORKS if method.extra else BEST if method.name == BEST else OTHERS


def _line(spent: Spent) -> tuple[str, ...]:
    if not spent.n_runs:
        return (spent.name, "0", *[DASH] * (2 + len(GROUPS)))
    groups = (spoken(spent.cores[group]) if group in spent.cores else DASH for group in GROUPS)
    return (spent.name, f"{spent.n_runs:,}", spoken(spent.elapsed), spoken(spent.core), *groups)

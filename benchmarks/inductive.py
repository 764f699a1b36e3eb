"""Fit on one graph, predict another: R2 of GraphRegressor beside LGC, LR, SGC and GCN, coverage of 90 % intervals.

U.S. counties 2012 -> 2016, CDC 2007 -> 2008, London's wards 2012 -> 2016 (each year standardised by itself), Twitch
from one country to another, and samples of the paper's model on six families of graphs, fitted on one sample and scored
on another (each split has its own two); 30 % of the nodes labelled. "LGC" is the default, "LGC paper" has no shrinkage,
"LGC auto" has ``fit_intercept="auto"``, "optimum" knows the parameters that made the samples. By itself it takes more
options: ``python -m benchmarks.inductive [--tasks U.S. London:age ring ...] [--splits 10] [--twitch-splits 2]
[--network-splits 2] [--jobs 2] [--keep FILE] [--peers FILE]``. Every finished run is added to FILE and not repeated;
with ``--jobs 0`` only what FILE has is shown. --network-splits trains the paper's GCN in so many splits; --peers takes
all scores but GraphRegressor's from a file that an earlier run kept, but for samples that another version drew
otherwise. The table at the end, for docs/networks.md, has means by set or family: how many runs there are of those
wanted, R2 (of GCN in the splits that trained it), the least margin of a run to the best of LGC, LR and GCN and how many
runs are behind by more than .01, the lowest R2, and coverage; of samples also how often the optimum itself is behind
and its lowest R2, for on average no method does better than one that knows the parameters; and how many runs are below
-.05 by GraphRegressor, by the optimum, and by the mean of the labels.
"""

from __future__ import annotations

import argparse
import os
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds
from sklearn.metrics import r2_score

from benchmarks.paper_data import root
from benchmarks.pool import resume
from benchmarks.show import show, timed
from graphmrf import (
    GaussianMRF,
    GraphConvolutionalNetwork,
    GraphRegressor,
    LinearGraphConvolution,
    LinearRegression,
    SimpleGraphConvolution,
    datasets,
)
from graphmrf.metrics import coverage
from graphmrf.selection import split
from graphmrf_paper.twitch import N_FEATURES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.show import Row
    from graphmrf import Graph
    from graphmrf._typing import Bools, Floats

YEARS = {"U.S.": ("us-2012", "us-2016"), "CDC": ("cdc-2007", "cdc-2008"), "London": ("london-2012", "london-2016")}
COUNTRIES = {"Twitch PTBR DE": ("ptbr", "de"), "Twitch DE ENGB": ("de", "engb"), "Twitch ENGB PTBR": ("engb", "ptbr")}
STRENGTHS = (1, 10, 100)
FAMILIES = (
    *("ring", "watts-strogatz", "erdos-renyi", "barabasi-albert"),
    *("block-model", "degree-corrected-block-model"),
)
METHODS: dict[str, Callable[[int], Any]] = {
    "LGC": lambda seed: LinearGraphConvolution(random_state=seed),
    "LGC paper": lambda seed: LinearGraphConvolution(random_state=seed, shrinkage=0),
    "LGC auto": lambda seed: LinearGraphConvolution(random_state=seed, fit_intercept="auto"),
    "LR": lambda _: LinearRegression(),
    "SGC exact": lambda seed: SimpleGraphConvolution(random_state=seed),
}
NETWORKS: dict[str, Callable[[int], Any]] = {
    "GCN": lambda seed: GraphConvolutionalNetwork(training="paper", random_state=seed),
}
RIVALS = ("LGC", "LR", "GCN")
"""Those that margins are counted from."""
BEHIND, BAD = 0.01, -0.05
"""R2 by which a run may be behind the best of them, and below which it is not to fall; goals, not findings."""
COVERED = (0.85, 0.97)
"""Coverage of 90 % intervals that a run is meant to have."""


class Work(NamedTuple):
    """One split of one task, with or without networks."""

    task: str
    seed: int
    networks: bool


class Pair(NamedTuple):
    """Graph, features and outcome to fit, and those to predict; of samples also the best prediction there is."""

    graph: Graph
    X: Floats
    y: Floats
    other: Graph
    other_X: Floats
    truth: Floats
    optimum: Floats | None = None


def run(*, quick: bool) -> list[Row]:
    """Run all tasks on this machine's cores; quick: one split of London and of rings."""
    work = plan(["London", "ring h10:"] if quick else [], 1 if quick else 10)
    return measure(work, jobs=os.cpu_count() or 1)


def plan(wanted: Sequence[str], splits: int, *, twitch: int = 2, networks: int = 0) -> list[Work]:
    """Return the runs of some tasks, split by split, those that take longest first; none without the raw data."""
    if root() is None:
        return []
    names = [name for name in _names() if name.startswith(tuple(wanted) or "")]
    names.sort(key=lambda name: not name.startswith(tuple(COUNTRIES)))
    most = {name: min(splits, twitch) if name.startswith(tuple(COUNTRIES)) else splits for name in names}
    return [Work(name, seed, seed < networks) for seed in range(splits) for name in names if seed < most[name]]


def measure(work: list[Work], *, jobs: int, keep: Path | None = None, peers: Path | None = None) -> list[Row]:
    """Return one row for each task, for each set or family, and for all; finished runs are added to the file `keep`."""
    if not work:
        return [{"skipped": "set GRAPHMRF_DATA to the folder of the raw data sets, or name other tasks"}]
    earlier = resume(partial(_one, {}), work, 0, peers)  # nothing is computed
    found = resume(partial(_one, earlier), work, jobs, keep)
    tasks = sorted({each.task for each in work}, key=_names().index)
    families = list(dict.fromkeys(task.split(":")[0] + ":" for task in tasks))
    groups = [(task, task) for task in tasks] + [(f"mean, {family[:-1]}", family) for family in families]
    rows = []
    for title, start in [*groups, ("mean, all", "")]:
        asked = [each for each in work if each.task.startswith(start)]
        done = [found[each] for each in asked if each in found]
        rows += [{"task": title, "runs": f"{len(done)} of {len(asked)}", **_summary(done)}] if done else []
    return rows


def _names() -> list[str]:
    real = [f"{label}:{outcome}" for label, pair in YEARS.items() for outcome in _load(pair[1]).info.outcomes]
    made = [f"{family} h{h}:a{k + 1}" for family in FAMILIES for h in STRENGTHS for k in range(5)]
    return [*real, *(f"{label}:days" for label in COUNTRIES), *made]


def _summary(runs: list[Row]) -> Row:
    """Return means over the runs that have a score, margins to the best rival, and how many runs miss their goals."""
    keys = dict.fromkeys(key for run in runs for key in run)
    means = {key: float(np.mean([run[key] for run in runs if key in run])) for key in keys}
    margins, samples = _margins("GR", runs), [run for run in runs if "optimum" in run]
    found = means | {
        "least margin": min(margins),
        "behind": sum(margin < -BEHIND for margin in margins),
        "lowest R2": min(run["GR"] for run in runs),
        "85-97 %": sum(COVERED[0] <= run["90 %"] <= COVERED[1] for run in runs),
    }
    if not samples:
        return found
    return found | {
        "optimum behind": sum(margin < -BEHIND for margin in _margins("optimum", samples)),
        "lowest optimum": min(run["optimum"] for run in samples),
        "below -.05": " / ".join(str(sum(run[name] < BAD for run in samples)) for name in ("GR", "optimum", "mean")),
    }


def _margins(method: str, runs: list[Row]) -> list[float]:
    """Return by how much a method has more R2 than the best rival, in every run."""
    return [run[method] - max(run[name] for name in RIVALS if name in run) for run in runs]


@cache
def _load(name: str) -> Any:
    return datasets.load(name)


@cache
def _pair(task: str, seed: int) -> Pair:
    label, outcome = task.split(":")
    if label in YEARS:
        return _transfer(*YEARS[label], outcome)
    if label in COUNTRIES:
        return _countries(*COUNTRIES[label], outcome)
    return _samples(_load("synthetic-" + label.replace(" ", "-")), outcome, seed)


def _samples(data: Any, outcome: str, seed: int) -> Pair:
    """Return two samples of a model on one graph, and the expectation of the second outcome given its features."""
    columns, parameters = data.info.columns, data.extra["parameters"]
    A = data.extra["samples"][columns].to_numpy().reshape(-1, data.graph.n_nodes, len(columns))
    k, there, here = columns.index(outcome), A[seed % len(A)], A[(seed + 1) % len(A)]
    hidden = there.copy()
    hidden[:, k] = np.nan
    mrf = GaussianMRF(parameters.loc[:, "H1":].to_numpy(), parameters["h"].to_numpy())
    X, other = (np.delete(sample, k, axis=1) for sample in (here, there))
    optimum = mrf.condition(data.graph, hidden).mean[:, k]
    return Pair(data.graph, X, here[:, k], data.graph, other, there[:, k], optimum)


def _transfer(first: str, second: str, outcome: str) -> Pair:
    parts: list[Any] = []
    for data in (_load(first), _load(second)):
        table = datasets.paper(data)
        parts += [data.graph, table.drop(columns=outcome).to_numpy(), table[outcome].to_numpy()]
    return Pair(*parts)


def _countries(first: str, second: str, outcome: str) -> Pair:
    """Return two countries with the same columns: components of the first one's features, root of the degree.

    Each graph has its own means subtracted, as the paper does with the counties of two years.
    """
    loaded = [_load(f"twitch-{code}") for code in (first, second)]
    binary = [_ones(data.extra["features"], len(data.frame)) for data in loaded]
    _, _, Vt = svds(binary[0], k=64, random_state=0)
    parts: list[Any] = []
    for data, each in zip(loaded, binary, strict=True):
        scores, own = each @ Vt.T, datasets.paper(data)
        X = np.column_stack([scores - scores.mean(axis=0), own["root_degree"]])
        parts += [data.graph, X, own[outcome].to_numpy()]
    return Pair(*parts)


def _ones(ones: Any, n: int) -> sparse.csr_array:
    return sparse.csr_array((np.ones(len(ones)), (ones["node"], ones["feature"])), shape=(n, N_FEATURES))


def _one(peers: dict[Work, Row], work: Work) -> Row:
    pair = _pair(work.task, work.seed)
    labelled = split(pair.y.size, 0.3, random_state=work.seed)
    y = np.where(labelled, pair.y, np.nan)
    scored = ~labelled if pair.truth.size == pair.y.size else np.ones(pair.truth.size, dtype=bool)
    seconds, model = timed(lambda: GraphRegressor().fit(pair.graph, pair.X, y))
    more, mean = timed(lambda: model.predict(pair.other, pair.other_X))
    low, high = model.predict_interval(0.9, graph=pair.other, X=pair.other_X)
    constant = np.full(pair.truth.size, pair.y[labelled].mean())
    own = {name: r2_score(pair.truth[scored], said[scored]) for name, said in (("GR", mean), ("mean", constant))}
    covered = coverage(pair.truth[scored], low[scored], high[scored])
    others = peers[work] if _same_samples(peers.get(work), pair, scored) else _others(work, pair, y, scored)
    return {**others, **own, "90 %": covered, "fit s": seconds, "transfer s": more}


def _same_samples(row: Row | None, pair: Pair, scored: Bools) -> bool:
    """Return whether an earlier run scored the same data: other versions drew other samples."""
    if row is None or pair.optimum is None:
        return row is not None
    return bool(np.isclose(row["optimum"], r2_score(pair.truth[scored], pair.optimum[scored]), atol=1e-6))


def _others(work: Work, pair: Pair, y: Floats, scored: Bools) -> Row:
    """Return the R2 of all other methods on the nodes scored."""
    row: Row = {}
    for name, make in (METHODS | (NETWORKS if work.networks else {})).items():
        there = make(work.seed).fit(pair.graph, pair.X, y).predict(pair.other, pair.other_X)
        row[name] = r2_score(pair.truth[scored], there[scored])
    if pair.optimum is not None:
        row["optimum"] = r2_score(pair.truth[scored], pair.optimum[scored])
    return row


def _page(rows: list[Row]) -> list[str]:
    """Return the table of docs/networks.md: the means of every set or family."""
    means = [row for row in rows if row.get("task", "").startswith("mean, ")]
    own = ("runs", "GR", *RIVALS, "optimum", "behind", "least margin", "lowest R2", "90 %", "85-97 %")
    wanted = (*own, "optimum behind", "lowest optimum", "below -.05")
    columns = [name for name in wanted if any(name in row for row in means)]
    table = [f"| {' | '.join(['fitted and predicted', *columns])} |", "| --- |" + " ---: |" * len(columns)]
    for row in means:
        cells = [_cell(row.get(name, "")) for name in columns]
        table.append(f"| {' | '.join([row['task'].removeprefix('mean, '), *cells])} |")
    return table


def _cell(value: Any) -> str:
    return f"{value:.2f}".replace("0.", ".", 1) if isinstance(value, float) else str(value)


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.inductive", description=__doc__)
    parser.add_argument("--tasks", nargs="*", default=[], help="how names begin: U.S.:income, London, ring")
    parser.add_argument("--splits", type=int, default=10, help="number of splits")
    parser.add_argument("--twitch-splits", type=int, default=2, help="splits of Twitch, whose fits take minutes")
    parser.add_argument("--network-splits", type=int, default=0, help="splits in which GCN is trained, too")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes; 0: show what is kept")
    parser.add_argument("--keep", type=Path, help="file of finished runs, which are not repeated")
    parser.add_argument("--peers", type=Path, help="file of an earlier run whose other methods' scores are taken")
    given = parser.parse_args()
    work = plan(given.tasks, given.splits, twitch=given.twitch_splits, networks=given.network_splits)
    rows = measure(work, jobs=given.jobs, keep=given.keep, peers=given.peers)
    show("inductive", __doc__, rows)
    print(*_page(rows), sep="\n")


if __name__ == "__main__":
    main()

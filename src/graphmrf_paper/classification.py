"""Table 5: classification by regression on 0 and 1; level and cut-off maximise F1 on validation nodes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, TypeAlias

import numpy as np
from sklearn.metrics import f1_score

from graphmrf._typing import Bools, Floats
from graphmrf.estimators.methods import METHODS
from graphmrf.graph import Graph
from graphmrf.linalg import propagate
from graphmrf.selection import ALPHAS
from graphmrf_paper.attributes import family, load_attributes, load_raw
from graphmrf_paper.findings import PaperTable, compare
from graphmrf_paper.methods import BERNOULLI, PAPER_COLUMNS, TABLE_METHODS, TableMethod, method_entry
from graphmrf_paper.runs import Entry, Experiment, Options, Outline, Plan, Result, Run, RunSettings, Scalar
from graphmrf_paper.splits import authors_parts

Candidate: TypeAlias = tuple[float, Floats]
"""A level, and the scores of all nodes with it."""

_PARTS = (31, 5, 13)  # shares of training, validation and test: the time steps of the Elliptic data
_ALWAYS = "always 1"
_CLASSES = {"elliptic": "illicit", "twitch": "mature"}
_CUTS = 100  # cut-offs tried between the least and the largest score; by eye, twice as many take twice the time


@dataclass(frozen=True, eq=False)
class NodeSplit:
    """A graph whose nodes, those with a class, are for training, validation or test; y (n,) is 0, 1 or NaN."""

    graph: Graph
    X: Floats
    y: Floats
    train: Bools
    validation: Bools
    test: Bools

    @property
    def hidden(self) -> Floats:
        """Classes of the training nodes, NaN elsewhere."""
        return np.where(self.train, self.y, np.nan)


def classify_nodes(data_dir: str | None, o: Options) -> Result:
    """F1 of class 1 on the test nodes, with the level and cut-off that are best on the validation nodes."""
    problem = split_nodes(data_dir, o["data"], o["setting"], o["seed"])
    columns = _columns(problem, TABLE_METHODS[o["method"]], o["seed"], o.get("effort", ""))
    found = {column: _chosen(problem, candidates) for column, candidates in columns}
    everyone = np.ones(int(problem.test.sum()))
    return {**found, _ALWAYS: {"value": float(f1_score(problem.y[problem.test], everyone))}}


def _chosen(problem: NodeSplit, candidates: Iterator[Candidate]) -> dict[str, float]:
    best: tuple[float, float, Candidate] | None = None
    y = problem.y[problem.validation]
    for candidate in candidates:
        scores = candidate[1][problem.validation]
        cuts = np.linspace(scores.min(), scores.max(), _CUTS)
        values = _f1_at(scores, cuts, y)
        place = int(np.argmax(values))
        if best is None or values[place] > best[0]:
            best = float(values[place]), float(cuts[place]), candidate
    assert best is not None
    _, cut, (alpha, scores) = best
    value = f1_score(problem.y[problem.test], (scores[problem.test] > cut).astype(float), zero_division=0.0)
    return {"value": float(value), "alpha": alpha, "cut": cut}


def _f1_at(scores: Floats, cuts: Floats, y: Floats) -> Floats:
    """Return the F1 of class 1 for every cut-off; 0 where there is no node of class 1, true or predicted."""
    named = scores > cuts[:, None]
    return np.asarray(2.0 * (named @ y) / np.maximum(named.sum(axis=1) + y.sum(), 1.0))


def _columns(
    problem: NodeSplit, method: TableMethod, seed: int, effort: str
) -> Iterator[tuple[str, Iterator[Candidate]]]:
    """Yield the columns of a method with their candidates; a network has one, its residuals one for each level."""

    def candidate(alpha: float, estimator: Any) -> Candidate:
        return alpha, estimator.fit(problem.graph, problem.X, problem.hidden).predict()

    if method.is_network:
        network = method.make(seed, "full").set_params(n_layers=2, epochs=100 if effort == "quick" else 500)
        base = candidate(0.0, network)
        yield method.name, iter([base])
        yield method.propagated, _propagated(problem, base[1])
    elif method.name == BERNOULLI:
        yield method.name, iter([candidate(0.0, method.make(seed, effort))])
    else:
        registered = METHODS[method.key]
        levels = ALPHAS if registered.has_level else (0.0,)
        yield method.name, (candidate(alpha, registered.make(alpha=alpha)) for alpha in levels)


def _propagated(problem: NodeSplit, base: Floats) -> Iterator[Candidate]:
    """Residual propagation on a base that does not depend on the level."""
    residuals = np.where(problem.train, problem.y - base, 0.0)[:, None]
    for alpha in ALPHAS:
        yield alpha, base + propagate(problem.graph, residuals, problem.train, alpha)[:, 0]


def split_nodes(data_dir: str | None, data: str, setting: str, seed: int) -> NodeSplit:
    """Return the nodes of each part, in random order or by time; those without a class are in none."""
    graph, X, y = _table(data_dir, data)
    parts = _by_time(data_dir, data) if setting == "inductive" else random_parts(~np.isnan(y), _PARTS, seed)
    train, validation, test = (part & ~np.isnan(y) for part in parts)
    return NodeSplit(graph, X, y, train, validation, test)


def random_parts(nodes: Bools, parts: tuple[int, ...], seed: int) -> list[Bools]:
    """Return nodes in random parts of these relative sizes."""
    # The authors' code counts the seeds of classification from 0.
    groups = authors_parts(np.flatnonzero(nodes), [part / sum(parts) for part in parts], seed - 1)
    return [np.isin(np.arange(nodes.size), group) for group in groups]


def _by_time(data_dir: str | None, data: str) -> list[Bools]:
    step = load_raw(data_dir, data).frame["time_step"].to_numpy()
    first, second = np.cumsum(_PARTS)[:2]
    return [step <= first, (step > first) & (step <= second), step > second]


@lru_cache(maxsize=2)  # all rows of one table
def _table(data_dir: str | None, data: str) -> tuple[Graph, Floats, Floats]:
    """Return graph, features and classes; of Twitch the features of the paper's regression."""
    (graph, frame), outcome = load_attributes(data_dir, data), _CLASSES[family(data)]
    X = frame.drop(columns=[name for name in (outcome, "days") if name in frame])
    return graph, X.to_numpy(), load_raw(data_dir, data).frame[outcome].to_numpy(dtype=np.float64)


@dataclass(frozen=True)
class ClassificationRow:
    """A row: how the nodes of a data set are split, how often, in which columns, and how long a network takes."""

    label: str
    data: str
    setting: str
    columns: tuple[str, ...]
    max_seeds: int = 1
    seconds: float = 60.0

    def runs(self, settings: RunSettings, method: TableMethod) -> list[Run]:
        """Return the run of a method on every split."""
        options: dict[str, Scalar] = {"data": self.data, "setting": self.setting, "method": method.name}
        if method.is_network:
            options["effort"] = settings.effort
        # Shares of the time of a full network, estimated from full reproductions; they only weigh the progress bar.
        seconds = self.seconds * ((0.3 if settings.quick else 1.0) if method.is_network else 0.4)
        seeds = settings.seeds[: self.max_seeds]
        return [Run.of(classify_nodes, {**options, "seed": seed}, seconds=seconds) for seed in seeds]

    def entry(self, settings: RunSettings, column: str) -> Entry:
        """Return the entry of a column."""
        if column == _ALWAYS:
            return Entry(self.runs(settings, TABLE_METHODS["LR"]), (_ALWAYS, "value"))
        if column not in self.columns:
            return Entry(note="not in this setting")
        entry = method_entry(column, partial(self.runs, settings))
        return entry.beside("classification", self.setting, column) if self.data == "elliptic" else entry


def _classification(
    name: str, title: str, place: str, lines: Sequence[ClassificationRow], remarks: tuple[str, ...]
) -> Experiment:
    """F1 of class 1 for every method."""
    columns = (*max((line.columns for line in lines), key=len), _ALWAYS)
    form = PaperTable(
        name, f"{title}: F1 of class 1 on the test nodes.", ("data", "setting"), columns, ranked=True, quantity="F1"
    )

    def outline(settings: RunSettings) -> Outline:
        rows = {(line.label, line.setting): line for line in lines}
        plan = Plan.of(form, rows, columns, lambda line, column: line.entry(settings, column))
        return Outline.of(plan, goals=lambda table: compare("F1", table.cells(), small=settings.quick))

    return Experiment(name, title, place, tuple(dict.fromkeys(line.data for line in lines)), outline, remarks)


CLASSIFICATION = _classification(
    "classification",
    "Classification of Bitcoin transactions",
    "Table 5",
    (
        ClassificationRow("Elliptic", "elliptic", "transductive", PAPER_COLUMNS, seconds=600.0),
        # Later transactions have no edges to labels, so nothing is propagated.
        ClassificationRow("Elliptic", "elliptic", "inductive", ("LR", "LGC", "SGC", "GCN"), seconds=600.0),
    ),
    (
        "One run, as in the paper. Level and cut-off are chosen on the validation part by F1.",
        "The data are downloaded once you accept their licence: graphmrf datasets fetch elliptic --accept-licence.",
    ),
)
CLASSIFICATION_TWITCH = _classification(
    "classification-twitch",
    "Classification of Twitch streamers",
    "Stand-in for Table 5",
    (
        ClassificationRow(
            "Twitch PTBR, mature", "twitch-ptbr", "transductive", (*PAPER_COLUMNS, BERNOULLI), max_seeds=10, seconds=4.0
        ),
    ),
    (
        "A stand-in for those who may not use the Elliptic data, whose licence excludes commercial use: the same "
        "protocol, for whether a streamer uses explicit language.",
        "'always 1' predicts class 1 for every node.",
        f"'{BERNOULLI}' is the paper's model with a likelihood for classes: smoothed features and a smooth field in "
        "the logit, by Laplace's approximation, in place of regression on 0 and 1.",
        "There is no inductive row: from German to English streamers no method is clearly better than 'always 1'.",
    ),
)

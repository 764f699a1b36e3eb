"""Classification through regression on 0 and 1: level and cut-off chosen on validation nodes by the F1 of class 1."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.sparse.linalg import svds

from graphmrf._typing import Bools, Floats
from graphmrf.estimators import (
    GraphConvolutionalNetwork,
    LabelPropagation,
    LinearGraphConvolution,
    LinearRegression,
    ResidualPropagation,
)
from graphmrf.experiments.data import Source, attributes, raw
from graphmrf.experiments.runs import Options, Result
from graphmrf.graph import Graph
from graphmrf.linalg import propagate
from graphmrf.metrics import f1
from graphmrf.selection import ALPHAS

PARTS = (31, 5, 13)
"""Shares of training, validation and test: the time steps of the Elliptic data."""
ALWAYS = "always 1"
OUTCOMES = {"elliptic": "illicit", "twitch": "mature"}
_CUTS, _COMPONENTS = 100, 64


@dataclass(frozen=True, eq=False)
class Problem:
    """A graph to learn from, and one to be scored on, which may be the same.

    Parameters
    ----------
    graph, X, y : Graph, array (n, p), array (n,)
        What is learnt from; y is 0, 1 or NaN.
    train, validation : bool arrays of shape (n,)
        Nodes whose classes are used.
    test : bool array
        Nodes of the graph that is scored.
    other : (Graph, X, y) or None
        The other graph, if there is one.
    """

    graph: Graph
    X: Floats
    y: Floats
    train: Bools
    validation: Bools
    test: Bools
    other: tuple[Graph, Floats, Floats] | None = None

    @property
    def hidden(self) -> Floats:
        """Classes of the training nodes, NaN elsewhere."""
        return np.where(self.train, self.y, np.nan)

    @property
    def truth(self) -> Floats:
        """Classes of the graph that is scored."""
        return self.y if self.other is None else self.other[2]


@dataclass(frozen=True, eq=False)
class Candidate:
    """Scores with one level: of the nodes learnt from, and of those that are tested."""

    alpha: float
    known: Floats
    tested: Floats


def classify(source: Source, o: Options) -> Result:
    """F1 of class 1 on the test nodes, at the level and cut-off that are best on the validation nodes."""
    problem = _problem(source, o["data"], o["setting"], o["seed"])
    columns = _FAMILIES[o["method"]](problem, o["seed"], o.get("effort", ""))
    found = {column: _chosen(problem, candidates) for column, candidates in columns}
    everyone = np.ones(int(problem.test.sum()))
    return {**found, ALWAYS: {"value": f1(problem.truth[problem.test], everyone)}}


def _chosen(problem: Problem, candidates: Iterator[Candidate]) -> dict[str, float]:
    best: tuple[float, float, Candidate] | None = None
    y = problem.y[problem.validation]
    for candidate in candidates:
        scores = candidate.known[problem.validation]
        cuts = np.linspace(scores.min(), scores.max(), _CUTS)
        values = [f1(y, (scores > cut).astype(float)) for cut in cuts]
        place = int(np.argmax(values))
        if best is None or values[place] > best[0]:
            best = values[place], float(cuts[place]), candidate
    assert best is not None
    _, cut, kept = best
    value = f1(problem.truth[problem.test], (kept.tested[problem.test] > cut).astype(float))
    return {"value": value, "alpha": kept.alpha, "cut": cut}


Columns = Iterator[tuple[str, Iterator[Candidate]]]


def _lp(problem: Problem, *_: Any) -> Columns:
    yield "LP", _levels(problem, lambda alpha: LabelPropagation(alpha=alpha))


def _lr(problem: Problem, *_: Any) -> Columns:
    yield "LR", _levels(problem, lambda _: LinearRegression(), (0.0,))


def _lgc(problem: Problem, *_: Any) -> Columns:
    yield "LGC", _levels(problem, lambda alpha: LinearGraphConvolution(alpha=alpha))


def _lgc_rp(problem: Problem, *_: Any) -> Columns:
    yield "LGC/RP", _levels(problem, lambda a: ResidualPropagation(LinearGraphConvolution(alpha=a), alpha=a))


def _levels(problem: Problem, make: Callable[[float], Any], alphas: tuple[float, ...] = ALPHAS) -> Iterator[Candidate]:
    X = problem.X
    for alpha in alphas:
        yield _candidate(problem, alpha, make(alpha).fit(problem.graph, X, problem.hidden))


def _candidate(problem: Problem, alpha: float, fitted: Any) -> Candidate:
    known = fitted.predict()
    return Candidate(alpha, known, known if problem.other is None else fitted.predict(*problem.other[:2]))


def _networks(name: str, activation: Any) -> Callable[[Problem, int, str], Columns]:
    def columns(problem: Problem, seed: int, effort: str) -> Columns:
        epochs = 100 if effort == "quick" else 500
        network = GraphConvolutionalNetwork(
            n_layers=2, epochs=epochs, activation=activation, training="paper", device="cpu", seed=seed
        )
        base = _candidate(problem, 0.0, network.fit(problem.graph, problem.X, problem.hidden))
        yield name, iter([base])
        if problem.other is None:
            yield f"{name}/RP", _propagated(problem, base.known)

    return columns


def _propagated(problem: Problem, base: Floats) -> Iterator[Candidate]:
    """Residual propagation on a base that does not depend on the level."""
    residuals = np.where(problem.train, problem.y - base, 0.0)[:, None]
    for alpha in ALPHAS:
        scores = base + propagate(problem.graph, residuals, problem.train, alpha)[:, 0]
        yield Candidate(alpha, scores, scores)


_FAMILIES: dict[str, Callable[[Problem, int, str], Columns]] = {
    "LP": _lp,
    "LR": _lr,
    "LGC": _lgc,
    "LGC/RP": _lgc_rp,
    "SGC": _networks("SGC", "identity"),
    "GCN": _networks("GCN", "relu"),
}


def _problem(source: Source, data: str, setting: str, seed: int) -> Problem:
    if ">" in data:
        return _two_graphs(source, *data.split(">"), seed=seed)
    graph, X, y = _table(source, data)
    parts = _by_time(source, data) if setting == "inductive" else _at_random(~np.isnan(y), PARTS, seed)
    train, validation, test = (part & ~np.isnan(y) for part in parts)
    return Problem(graph, X, y, train, validation, test)


def _at_random(nodes: Bools, parts: tuple[int, ...], seed: int) -> list[Bools]:
    order = np.random.default_rng(seed).permutation(np.flatnonzero(nodes))
    ends = np.ceil(np.cumsum(parts) / sum(parts) * order.size - 1e-9).astype(int)
    return [np.isin(np.arange(nodes.size), group) for group in np.split(order, ends[:-1])]


def _by_time(source: Source, data: str) -> list[Bools]:
    step = raw(source, data).frame["time_step"].to_numpy()
    first, second = np.cumsum(PARTS)[:2]
    return [step <= first, (step > first) & (step <= second), step > second]


@lru_cache(maxsize=2)
def _table(source: Source, data: str) -> tuple[Graph, Floats, Floats]:
    """Return graph, features and classes; of Twitch the features of the paper's regression."""
    known, outcome = attributes(source, data), OUTCOMES[data.partition("-")[0]]
    X = known.frame.drop(columns=[name for name in (outcome, "days") if name in known.frame])
    return known.graph, X.to_numpy(), raw(source, data).frame[outcome].to_numpy(dtype=np.float64)


def _two_graphs(source: Source, old: str, new: str, *, seed: int) -> Problem:
    tables = [raw(source, name) for name in (old, new)]
    classes = [table.frame[OUTCOMES["twitch"]].to_numpy(dtype=np.float64) for table in tables]
    X, X_new = _shared_features(source, old, new)
    train, validation = _at_random(np.ones(len(X), dtype=bool), PARTS[:2], seed)
    test = np.ones(len(X_new), dtype=bool)
    return Problem(tables[0].graph, X, classes[0], train, validation, test, (tables[1].graph, X_new, classes[1]))


@lru_cache(maxsize=1)
def _shared_features(source: Source, old: str, new: str) -> tuple[Floats, Floats]:
    """Return components and root of the degree of two Twitch graphs, both with the basis and scale of the first."""
    tables = [raw(source, name) for name in (old, new)]
    binary = [_binary(table.extra["features"], len(table.frame)) for table in tables]
    _, _, Vt = svds(binary[0], k=_COMPONENTS, v0=np.ones(min(binary[0].shape)))
    scores = [np.asarray(each @ Vt.T) for each in binary]
    roots = [np.sqrt(table.graph.degrees)[:, None] for table in tables]
    X, X_new = (np.hstack(pair) for pair in zip(scores, roots, strict=True))
    center, spread = X.mean(axis=0), np.append(np.ones(_COMPONENTS), roots[0].std(ddof=1))
    return (X - center) / spread, (X_new - center) / spread


def _binary(ones: pd.DataFrame, n: int) -> Any:
    shape = (n, 3170)
    return sparse.csr_array((np.ones(len(ones)), (ones["node"], ones["feature"])), shape=shape)

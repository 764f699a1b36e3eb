"""Synthetic families of node regression, each with one property that real data have in other mixtures.

``made:steps``: steps and thresholds of features; ``made:log-normal``: features with log standard deviation 3, of whose
logarithms the outcome is a function; ``made:few of 50``: 50 features, 5 of which matter; ``made:useless``: a smooth
field and 50 features without effect; ``made:wide``: 200 features, 5 of which matter; ``made:label noise``: 10 % of the
labels are those of random other nodes; ``made:neighbours differ``: edges join nodes of opposite values;
``made:categories``: 150 levels of unequal size with an effect each.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from benchmarks.more_data import Task
from graphmrf import Graph

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphmrf._typing import Floats

    Draw = Callable[[np.random.Generator], Task]

NODES = 1000
NEIGHBOURS = 6
SIGNAL = 0.8
"""Variance of what could be known over that of the outcome."""


def _map(rng: np.random.Generator) -> tuple[Graph, Floats]:
    """Return random points, joined to their nearest neighbours."""
    places = rng.random((NODES, 2))
    return Graph.from_knn(places, NEIGHBOURS), places


def _smooth(places: Floats, rng: np.random.Generator, count: int) -> Floats:
    """Return smooth functions of places with variance 1, shape (n, count)."""
    waves = 8.0 * rng.standard_normal((2, 40))
    phases = np.cos(places @ waves + 2 * np.pi * rng.random(40))
    found = phases @ rng.standard_normal((40, count))
    return np.asarray((found - found.mean(axis=0)) / found.std(axis=0))


def _noisy(signal: Floats, rng: np.random.Generator) -> Floats:
    spread = signal.std() * np.sqrt(1.0 / SIGNAL - 1.0)
    return np.asarray(signal + spread * rng.standard_normal(signal.size))


def _steps(rng: np.random.Generator) -> Task:
    graph, places = _map(rng)
    X = 0.6 * _smooth(places, rng, 5) + 0.8 * rng.standard_normal((NODES, 5))
    signal = 1.0 * (X[:, 0] > 0.3) + 2.0 * ((X[:, 1] > 0) & (X[:, 2] < 0.5)) - 1.5 * (np.abs(X[:, 3]) > 1)
    return Task("", graph, X, _noisy(signal + 0.5 * _smooth(places, rng, 1)[:, 0], rng), "map", places)


def _log_normal(rng: np.random.Generator) -> Task:
    graph, places = _map(rng)
    logs = 0.6 * _smooth(places, rng, 4) + 0.8 * rng.standard_normal((NODES, 4))
    signal = logs @ np.array([1.0, -0.8, 0.6, 0.0]) + 0.5 * _smooth(places, rng, 1)[:, 0]
    return Task("", graph, np.exp(3.0 * logs), _noisy(signal, rng), "map", places)


def _few_of(count: int) -> Draw:
    def draw(rng: np.random.Generator) -> Task:
        graph, places = _map(rng)
        X = rng.standard_normal((NODES, count))
        signal = X[:, :5] @ np.array([1.0, -1.0, 0.7, 0.5, 0.5]) + 0.7 * _smooth(places, rng, 1)[:, 0]
        return Task("", graph, X, _noisy(signal, rng), "map", places)

    return draw


def _useless(rng: np.random.Generator) -> Task:
    graph, places = _map(rng)
    X = rng.standard_normal((NODES, 50))
    return Task("", graph, X, _noisy(_smooth(places, rng, 1)[:, 0], rng), "map", places)


def _label_noise(rng: np.random.Generator) -> Task:
    graph, places = _map(rng)
    X = rng.standard_normal((NODES, 4))
    y = _noisy(X @ np.array([1.0, 0.7, -0.5, 0.0]) + _smooth(places, rng, 1)[:, 0], rng)
    wrong = rng.permutation(NODES)[: NODES // 10]
    y[wrong] = rng.choice(y, wrong.size)
    return Task("", graph, X, y, "map", places)


def _neighbours_differ(rng: np.random.Generator) -> Task:
    """Return nodes of two sides, whose edges mostly cross; the outcome follows the side, a feature shows it dimly."""
    side = rng.integers(0, 2, NODES)
    u, v = rng.integers(0, NODES, (2, 8 * NODES))
    crossing = (side[u] != side[v]) | (rng.random(u.size) < 0.1)
    keep = crossing & (u != v)
    X = np.column_stack([side + 1.5 * rng.standard_normal(NODES), rng.standard_normal((NODES, 3))])
    y = _noisy(2.0 * side + 0.7 * X[:, 1], rng)
    return Task("", Graph.from_edges(u[keep], v[keep], n_nodes=NODES), X, y, "links")


def _categories(rng: np.random.Generator) -> Task:
    graph, places = _map(rng)
    shares = rng.dirichlet(np.full(150, 0.5))
    level = rng.choice(150, NODES, p=shares)
    x = rng.standard_normal((NODES, 2))
    signal = rng.standard_normal(150)[level] + 0.5 * x[:, 0] + 0.5 * _smooth(places, rng, 1)[:, 0]
    table = pd.DataFrame({"level": pd.Categorical([f"level {k}" for k in level]), "a": x[:, 0], "b": x[:, 1]})
    X = pd.get_dummies(table, dtype=float).to_numpy()
    return Task("", graph, X, _noisy(signal, rng), "map", places, table)


_MAKERS: dict[str, Draw] = {
    "made:steps": _steps,
    "made:log-normal": _log_normal,
    "made:few of 50": _few_of(50),
    "made:wide": _few_of(200),
    "made:useless": _useless,
    "made:label noise": _label_noise,
    "made:neighbours differ": _neighbours_differ,
    "made:categories": _categories,
}
NAMES = tuple(_MAKERS)


@cache
def draw(name: str, seed: int) -> Task:
    """Return a draw of a family."""
    made = _MAKERS[name](np.random.default_rng([seed, NAMES.index(name)]))
    return Task(name, made.graph, made.X, made.y, made.kind, made.places, made.table)

"""The workload of the speed benchmarks: a power-law graph with shuffled ids, features and a partly known outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from graphmrf.graph import Graph
from graphmrf.linalg import smooth

if TYPE_CHECKING:
    from graphmrf._typing import Floats


@dataclass(frozen=True)
class Workload:
    """A graph, features (n, p) and an outcome (n,) with NaN where it is unknown."""

    graph: Graph
    X: Floats
    y: Floats


def power_law_graph(n_nodes: int, n_edges: int, seed: int) -> Graph:
    """Return a Chung-Lu graph with degree exponent 2.5, its node numbers shuffled."""
    rng = np.random.default_rng(seed)
    weight = (np.arange(1, n_nodes + 1) / n_nodes) ** (-1 / 1.5)
    cumulative = np.cumsum(np.minimum(weight, weight.mean() * np.sqrt(n_nodes)))
    cumulative /= cumulative[-1]
    label = rng.permutation(n_nodes)
    u, v = (label[np.searchsorted(cumulative, rng.random(n_edges))] for _ in range(2))
    return Graph.from_edges(u, v, n_nodes=n_nodes)


def workload(n_nodes: int, *, n_features: int = 16, edges_per_node: float = 10.5, seed: int = 0) -> Workload:
    """Return features, and an outcome made of smoothed features, a smooth field and noise; 30 % of it is known."""
    rng = np.random.default_rng(seed)
    graph = power_law_graph(n_nodes, int(edges_per_node * n_nodes), seed)
    X = rng.standard_normal((n_nodes, n_features))
    sources = np.hstack([X @ rng.standard_normal((n_features, 1)), rng.standard_normal((n_nodes, 1))])
    parts = smooth(graph, sources, [0.8, 0.99], tolerance=1e-6)
    y = (parts / parts.std(axis=0)).sum(axis=1) + 0.3 * rng.standard_normal(n_nodes)
    y[rng.permutation(n_nodes)[: int(0.7 * n_nodes)]] = np.nan
    return Workload(graph, X, y)

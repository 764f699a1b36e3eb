"""Sparse factorisation against iterating, on small graphs: where `linalg.smoothing.prefers_factor` draws its line."""

from __future__ import annotations

import numpy as np

from benchmarks.show import Row, best_of
from graphmrf.graph import Graph
from graphmrf.linalg.multishift import ShiftedSystems
from graphmrf.linalg.smoothing import prefers_factor, solve_factor


def run(*, quick: bool) -> list[Row]:
    """Solve for 10 columns on a path, a grid, a ring lattice and a random graph at four levels."""
    rows = []
    for n in (500,) if quick else (1000, 5000):
        for name, graph in _graphs(n).items():
            rows += [_measure(name, graph, alpha) for alpha in (0.9, 0.95, 0.99, 0.999)]
    return rows


def _graphs(n: int) -> dict[str, Graph]:
    node, side = np.arange(n), int(np.sqrt(n))
    cell = np.arange(side * side).reshape(side, side)
    rng = np.random.default_rng(0)
    down = np.concatenate([cell[:-1].ravel(), cell[:, :-1].ravel()])
    right = np.concatenate([cell[1:].ravel(), cell[:, 1:].ravel()])
    return {
        "path": Graph.from_edges(node[:-1], node[1:]),
        "grid": Graph.from_edges(down, right),
        "ring of degree 6": Graph.from_edges(np.tile(node, 3), (node + np.array([[1], [2], [3]])).ravel() % n),
        "random of degree 6": Graph.from_edges(rng.integers(0, n, 3 * n), rng.integers(0, n, 3 * n), n_nodes=n),
    }


def _measure(name: str, graph: Graph, alpha: float) -> Row:
    B = np.random.default_rng(0).standard_normal((graph.n_nodes, 10))
    sigma = np.array([[1 / alpha]])
    factored, x = best_of(3, lambda: solve_factor(graph, B, alpha, None))
    iterated, solution = best_of(3, lambda: ShiftedSystems(graph.engine, sigma).solve(B, tolerance=1e-8))
    return {
        "graph": name,
        "nodes": graph.n_nodes,
        "alpha": alpha,
        "factorisation times faster": iterated / factored,
        "chosen": "factorisation" if prefers_factor(graph, np.array([[alpha]]), None) else "iteration",
        "iterations": solution.iterations,
        "difference": float(np.abs(x - solution.x[0]).max() / np.abs(x).max()),
    }

"""Graphs with known shapes: those on which smoothing is slow, quick or cut in pieces."""

import numpy as np

from graphmrf.graph import Graph


def path(n: int) -> Graph:
    return Graph.from_edges(np.arange(n - 1), np.arange(1, n))


def grid(side: int) -> Graph:
    cell = np.arange(side * side).reshape(side, side)
    above, left = np.concatenate([cell[:-1].ravel(), cell[:, :-1].ravel()]), cell[1:].ravel()
    return Graph.from_edges(above, np.concatenate([left, cell[:, 1:].ravel()]))


def tree(n: int) -> Graph:
    child = np.arange(1, n)
    return Graph.from_edges((child - 1) // 2, child)


def star(n: int) -> Graph:
    return Graph.from_edges(np.zeros(n - 1, dtype=int), np.arange(1, n))


def expander(n: int, seed: int = 0) -> Graph:
    """Three random matchings of all nodes: every eigenvalue but one is far from 1."""
    order = np.random.default_rng(seed).permuted(np.tile(np.arange(n), (3, 1)), axis=1)
    return Graph.from_edges(order[:, : n // 2].ravel(), order[:, n // 2 : n // 2 * 2].ravel(), n_nodes=n)


def pieces(seed: int = 0) -> Graph:
    """A weighted ring, a triangle, an edge and two isolated nodes, in shuffled order."""
    rng = np.random.default_rng(seed)
    ring, place = np.arange(20), rng.permutation(27)
    u = np.concatenate([ring, [20, 21, 22, 23]])
    v = np.concatenate([(ring + 1) % 20, [21, 22, 20, 24]])
    return Graph.from_edges(place[u], place[v], rng.uniform(0.1, 5.0, u.size), n_nodes=27)


FAMILIES = {
    "path": path(40),
    "grid": grid(6),
    "tree": tree(31),
    "star": star(25),
    "expander": expander(30),
    "pieces": pieces(),
    "edgeless": Graph.from_edges([], [], n_nodes=4),
    "single": Graph.from_edges([], [], n_nodes=1),
    "empty": Graph.from_edges([], []),
}

"""Smoothing of 16 columns on a grid and on a road-like graph at levels near 1, multigrid against conjugate gradients.

Both solve to a relative residual of 1e-8, recomputed; our conjugate gradients take all columns at once, and SciPy's,
timed on one column and multiplied, one after the other. ``python -m benchmarks.hard_spectra [--nodes N] [--columns K]
[--alphas A ...] [--graphs grid roads]`` prints seconds of the processor, as machines are shared, setting up included,
iterations, and how far apart the solutions are.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import cg

from benchmarks.show import Row, show
from graphmrf.graph import Graph
from graphmrf.linalg.multigrid import prefers_multigrid, solve_multigrid
from graphmrf.linalg.multishift import ShiftedSystems

if TYPE_CHECKING:
    from collections.abc import Callable

TOLERANCE = 1e-8
GRAPHS = ("grid", "roads")


def run(*, quick: bool) -> list[Row]:
    """Solve at two levels near 1."""
    return measure(40_000 if quick else 1_000_000, 16, (0.999, 0.9999))


def measure(nodes: int, columns: int, alphas: tuple[float, ...], graphs: tuple[str, ...] = GRAPHS) -> list[Row]:
    """Return one row a graph and level."""
    _measure("grid", grid(120).to("numba"), columns, 0.99)  # compile
    side = round(nodes**0.5)
    made = {name: grid(side) if name == "grid" else roads(round(0.64 * side)) for name in graphs}
    return [_measure(name, graph.to("numba"), columns, alpha) for name, graph in made.items() for alpha in alphas]


def grid(side: int) -> Graph:
    """Return a square grid."""
    return Graph.from_edges(*_grid_edges(side), n_nodes=side * side)


def _grid_edges(side: int) -> tuple[np.ndarray, np.ndarray]:
    cell = np.arange(side * side).reshape(side, side)
    return (
        np.concatenate([cell[:-1].ravel(), cell[:, :-1].ravel()]),
        np.concatenate([cell[1:].ravel(), cell[:, 1:].ravel()]),
    )


def roads(side: int) -> Graph:
    """Return a grid of crossings that has lost 30 % of its streets, each street with up to two nodes on its way."""
    rng, (u, v), n = np.random.default_rng(0), _grid_edges(side), side * side
    kept = rng.random(u.size) < 0.7
    here, there, bends = u[kept], v[kept], rng.integers(0, 3, kept.sum())
    sources, targets = [], []
    for bend in range(2):
        bent = np.flatnonzero(bends > bend)
        fresh = n + np.arange(bent.size)
        sources.append(here[bent])
        targets.append(fresh)
        here = here.copy()
        here[bent] = fresh
        n += bent.size
    return Graph.from_edges(np.concatenate([*sources, here]), np.concatenate([*targets, there]), n_nodes=n)


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of the processor that `work` took, and what it returned."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def _measure(name: str, graph: Graph, columns: int, alpha: float) -> Row:
    B = np.random.default_rng(0).standard_normal((graph.n_nodes, columns))
    systems = ShiftedSystems(graph.engine, np.full((1, columns), 1 / alpha))
    choosing, chosen = _timed(lambda: prefers_multigrid(systems, B, TOLERANCE))
    seconds, ours = _timed(lambda: solve_multigrid(graph, systems, B, TOLERANCE))
    peer_seconds, peer = _timed(lambda: systems.solve(B, tolerance=TOLERANCE))
    A = sparse.eye_array(graph.n_nodes, format="csr") / alpha - graph.S
    scipy_seconds = columns * _timed(lambda: cg(A, B[:, 0], rtol=TOLERANCE))[0]
    assert ours is not None
    return {
        "graph": name,
        "nodes": graph.n_nodes,
        "edges": graph.n_edges,
        "columns": columns,
        "alpha": alpha,
        "times faster": peer_seconds / (choosing + seconds),
        "times SciPy": scipy_seconds / (choosing + seconds),
        "multigrid s": seconds,
        "choosing s": choosing,
        "conjugate gradients s": peer_seconds,
        "SciPy s": scipy_seconds,
        "chosen": "multigrid" if chosen else "conjugate gradients",
        "cycles": ours.iterations,
        "iterations": peer.iterations,
        "residual": ours.residual,
        "difference": float(np.abs(ours.x - peer.x).max() / np.abs(peer.x).max()),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hard_spectra", description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000_000, help="nodes of the grid")
    parser.add_argument("--columns", type=int, default=16, help="columns solved for")
    parser.add_argument("--alphas", type=float, nargs="*", default=[0.999, 0.9999], help="levels")
    parser.add_argument("--graphs", nargs="*", choices=GRAPHS, default=GRAPHS, help="kinds of graphs")
    given = parser.parse_args()
    show("hard_spectra", __doc__, measure(given.nodes, given.columns, tuple(given.alphas), tuple(given.graphs)))

"""One smoothing of 16 columns at alpha .9 to 1e-6, against scipy's conjugate gradients and the memory-traffic floor.

The floor is the bytes one must move if every neighbour's row came from memory once per edge, none from a cache: per
product the column indices, a row of the block for each of them, and the passes over the vectors around it; divided by
the bandwidth of a parallel copy measured in the same process. Caches can beat it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit, prange
from scipy import sparse
from scipy.sparse.linalg import cg

from benchmarks.show import Row, best_of
from benchmarks.workload import workload
from graphmrf.linalg import smooth
from graphmrf.linalg.multishift import ShiftedSystems

if TYPE_CHECKING:
    from graphmrf._typing import Floats
    from graphmrf.graph import Graph

ALPHA, TOLERANCE = 0.9, 1e-6


def run(*, quick: bool) -> list[Row]:
    """Time the smoothing in both precisions."""
    work = workload(20_000 if quick else 200_000)
    graph = work.graph
    A = sparse.eye_array(graph.n_nodes, format="csr") - ALPHA * graph.S
    peer_seconds, expected = best_of(2, lambda: _loop(A, work.X))
    expected[graph.isolated] = work.X[graph.isolated]
    return [_row(graph, work.X.astype(dtype), (peer_seconds, expected)) for dtype in (np.float64, np.float32)]


def _row(graph: Graph, X: Floats, peer: tuple[float, Floats]) -> Row:
    tolerance = TOLERANCE if X.dtype == np.float64 else 1e-5
    smooth(graph, X, ALPHA, tolerance=tolerance)  # compile
    seconds, result = best_of(5, lambda: smooth(graph, X, ALPHA, tolerance=tolerance))
    solution = ShiftedSystems(graph.engine, np.array([[1 / ALPHA]])).solve(X, tolerance=tolerance)
    floor = (solution.iterations + 1) * _bytes_per_product(graph, X) / _bandwidth()
    return {
        "precision": str(X.dtype),
        "nodes": graph.n_nodes,
        "edges": graph.n_edges,
        "times faster": peer[0] / seconds,
        "ours s": seconds,
        "scipy s": peer[0],
        "iterations": solution.iterations,
        "residual": solution.residual,
        "difference": float(np.abs(result - peer[1]).max()),
        "times the floor": seconds / floor,
    }


def _loop(A: sparse.csr_array, X: Floats) -> Floats:
    return np.column_stack([(1 - ALPHA) * cg(A, x, rtol=TOLERANCE)[0] for x in X.T])


def _bytes_per_product(graph: Graph, X: Floats) -> float:
    gathered = graph.indices.size * (graph.indices.itemsize * -(-X.shape[1] // 8) + X.shape[1] * X.itemsize)
    passes = 8 * X.nbytes  # read v, previous, write w; read w, v, write w; read v, write the window
    return float(gathered + passes)


def _bandwidth() -> float:
    """Bytes per second of a copy by all cores."""
    source = np.ones(2**25)
    target = np.empty_like(source)
    _copy(source, target)  # compile
    seconds, _ = best_of(5, lambda: _copy(source, target))
    return float(2 * source.nbytes / seconds)


@njit(parallel=True)
def _copy(source: Floats, target: Floats) -> None:
    for i in prange(source.size):
        target[i] = source[i]

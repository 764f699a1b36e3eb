"""One smoothing of 16 columns at alpha .9 to 1e-6, against SciPy, APPNP and PyGSP, and the memory-traffic floor.

Peers run to the same accuracy: SciPy's conjugate gradients column by column, to the same residual; APPNP's power
iteration by PyTorch Geometric, as many steps as it takes to our error, timed on a few of them; and PyGSP's Chebyshev
filter, of the order that its error bound asks for to get there; building its graph and finding the largest eigenvalue
are not counted. ``python -m benchmarks.smoothing [--nodes N] [--peers scipy appnp pygsp] [--clock processor]``: seconds
of the processor, with one thread each, where a machine is shared.

``python -m benchmarks.smoothing orders [--nodes N ...]`` smooths on graphs with shuffled numbers of nodes, and again in
another order of them: reverse Cuthill-McKee, by degree, and by communities (Louvain's, of scikit-network). Seconds are
those of the processor; ordering includes renumbering the graph, and pays from so many smoothings on.

The floor is the bytes one must move if every neighbour's row came from memory once per edge, none from a cache: per
product the column indices, a row of the block for each of them, and the passes over the vectors around it; divided by
the bandwidth of a parallel copy measured in the same process. Caches can beat it.
"""

from __future__ import annotations

import argparse
import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit, prange
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import cg

from benchmarks.hard_spectra import grid, roads
from benchmarks.show import Row, best_of, show
from benchmarks.workload import power_law_graph, workload
from graphmrf.engines.numba import NumbaEngine
from graphmrf.graph import Graph
from graphmrf.linalg import multiply, smooth
from graphmrf.linalg.multishift import ShiftedSystems

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphmrf._typing import Floats, Ints

ALPHA, TOLERANCE = 0.9, 1e-6
STEPS = 5
CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}


def run(*, quick: bool) -> list[Row]:
    """Time the smoothing in both precisions."""
    return measure(20_000 if quick else 200_000, tuple(PEERS))


def measure(nodes: int, peers: tuple[str, ...], clock: str = "wall") -> list[Row]:
    """Return one row a precision; the peers run in float64, and their times are in both."""
    work = workload(nodes)
    expected = smooth(work.graph, work.X, ALPHA, tolerance=1e-10)
    reached = _error(smooth(work.graph, work.X, ALPHA, tolerance=TOLERANCE), expected)
    found: Row = {}
    for name in peers:
        seconds, error = PEERS[name](work.graph, work.X, (expected, reached), clock)
        found |= {f"{name} s": seconds, f"{name} error": error}
    return [_row(work.graph, work.X.astype(dtype), expected, found, clock) for dtype in (np.float64, np.float32)]


def _row(graph: Graph, X: Floats, expected: Floats, peers: Row, clock: str) -> Row:
    tolerance = TOLERANCE if X.dtype == np.float64 else 1e-5
    smooth(graph, X[:, :16], ALPHA, tolerance=tolerance)  # compile
    runs = [_clocked(clock, lambda: smooth(graph, X, ALPHA, tolerance=tolerance)) for _ in range(3)]
    seconds, result = min(run[0] for run in runs), runs[-1][1]
    solution = ShiftedSystems(graph.engine, np.array([[1 / ALPHA]])).solve(X, tolerance=tolerance)
    floor = (solution.iterations + 1) * _bytes_per_product(graph, X) / _bandwidth()
    times = {f"times {name[:-2]}": value / seconds for name, value in peers.items() if name.endswith(" s")}
    return {
        "precision": str(X.dtype),
        "clock": clock,
        "nodes": graph.n_nodes,
        "edges": graph.n_edges,
        "columns": X.shape[1],
        "ours s": seconds,
        **times,
        "iterations": solution.iterations,
        "residual": solution.residual,
        "error": _error(result, expected),
        "times the floor": seconds / floor,
        **peers,
    }


def _clocked(clock: str, work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds that `work` took by a clock, and what it returned."""
    now = CLOCKS[clock]
    start = now()
    result = work()
    return now() - start, result


def _error(found: Floats, expected: Floats) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def _scipy(graph: Graph, X: Floats, goal: tuple[Floats, float], clock: str) -> tuple[float, float]:
    A = sparse.eye_array(graph.n_nodes, format="csr") - ALPHA * graph.S

    def loop() -> Floats:
        found = np.column_stack([(1 - ALPHA) * cg(A, x, rtol=TOLERANCE)[0] for x in X.T])
        found[graph.isolated] = X[graph.isolated]
        return found

    seconds, found = _clocked(clock, loop)
    return seconds, _error(found, goal[0])


def _appnp(graph: Graph, X: Floats, goal: tuple[Floats, float], clock: str) -> tuple[float, float]:
    """Propagate as PyTorch Geometric's documentation does, along an array of edges."""
    import torch

    S = graph.S.tocoo()
    edges = torch.from_numpy(np.stack(S.coords).astype(np.int64))
    return _propagated((edges, torch.from_numpy(S.data)), graph, X, goal, clock)


def _appnp_csr(graph: Graph, X: Floats, goal: tuple[Floats, float], clock: str) -> tuple[float, float]:
    """Propagate by PyTorch's product with compressed rows, which takes a third of the time."""
    import torch

    S = graph.S.tocsr()
    edges = torch.sparse_csr_tensor(*map(torch.from_numpy, (S.indptr.astype(np.int64), S.indices.astype(np.int64))),
                                    torch.from_numpy(S.data), size=S.shape)  # fmt: skip
    return _propagated((edges,), graph, X, goal, clock)


def _propagated(
    edges: tuple[Any, ...], graph: Graph, X: Floats, goal: tuple[Floats, float], clock: str
) -> tuple[float, float]:
    import torch
    from torch_geometric.nn import APPNP

    steps, error = _power_steps(graph, X, *goal)
    layer, columns = APPNP(STEPS, 1 - ALPHA, normalize=False), torch.from_numpy(X)
    with torch.no_grad():
        APPNP(1, 1 - ALPHA, normalize=False)(columns, *edges)  # start the threads
        seconds, _ = _clocked(clock, lambda: layer(columns, *edges))
    return seconds * steps / STEPS, error


def _power_steps(graph: Graph, X: Floats, expected: Floats, target: float) -> tuple[int, float]:
    """Return how many steps of APPNP's recurrence reach an error, and that error, by our own products."""
    steps, found = 0, X
    while (error := _error(found, expected)) > target:
        found, steps = (1 - ALPHA) * X + ALPHA * multiply(graph, found), steps + 1
    return steps, error


def _pygsp(graph: Graph, X: Floats, goal: tuple[Floats, float], clock: str) -> tuple[float, float]:
    from pygsp import filters, graphs

    omega = ALPHA / (1 - ALPHA)
    there = graphs.Graph(sparse.csr_matrix(graph.adjacency.copy()), lap_type="normalized")
    there.estimate_lmax()
    x = 1.0 + 2.0 / (omega * there.lmax)  # the singularity, in units of half the spectrum
    order = math.ceil(-math.log(goal[1]) / math.log(x + math.sqrt(x * x - 1.0)))
    kernel = filters.Filter(there, lambda eigenvalue: 1.0 / (1.0 + omega * eigenvalue))
    seconds, found = _clocked(clock, lambda: kernel.filter(X[:, :, None], method="chebyshev", order=order))
    found = np.array(np.squeeze(found))
    found[graph.isolated] = X[graph.isolated]
    return seconds, _error(found, goal[0])


PEERS: dict[str, Callable[[Graph, Floats, tuple[Floats, float], str], tuple[float, float]]] = {
    "scipy": _scipy,
    "appnp": _appnp,
    "appnp-csr": _appnp_csr,
    "pygsp": _pygsp,
}
"""Seconds and error of every peer, given the right result and the error of ours."""


def orders(nodes: int) -> list[Row]:
    """Return one row a graph and order of its nodes."""
    side, rng = round(nodes**0.5), np.random.default_rng(0)
    made = {"grid": grid(side), "roads": roads(round(0.64 * side)), "power law": power_law_graph(nodes, 10 * nodes, 0)}
    return [
        row for name, graph in made.items() for row in _orders(name, _renumbered(graph, rng.permutation(graph.n_nodes)))
    ]


def _orders(name: str, graph: Graph) -> list[Row]:
    X = np.random.default_rng(1).standard_normal((graph.n_nodes, 16))
    about = {"graph": name, "nodes": graph.n_nodes, "edges": graph.n_edges, "columns": 16}
    given_seconds, expected = _smoothing_seconds(graph, X)
    rows: list[Row] = [about | {"order": "given", "smoothing s": given_seconds}]
    for order, find in ORDERS.items():
        start = time.process_time()
        nodes = find(graph)
        ordered = _renumbered(graph, nodes)
        ordering = time.process_time() - start
        seconds, found = _smoothing_seconds(ordered, X[nodes])
        gain = given_seconds - seconds
        rows.append(
            about
            | {"order": order, "smoothing s": seconds, "ordering s": ordering, "times faster": given_seconds / seconds}
            | {"pays from": math.ceil(ordering / gain) if gain > 0 else None}
            | {"difference": _error(found, expected[nodes])}
        )
    return rows


def _smoothing_seconds(graph: Graph, X: Floats) -> tuple[float, Floats]:
    """Return the least seconds of the processor of three solves by conjugate gradients, and the solution."""
    engine = NumbaEngine(graph.indptr, graph.indices, graph.weights, graph.degrees)  # which orders nothing itself
    systems = ShiftedSystems(engine, np.array([[1 / ALPHA]]))
    systems.solve(X[:, :1], tolerance=TOLERANCE)  # compile
    least = math.inf
    for _ in range(3):
        start = time.process_time()
        found = systems.solve(X, tolerance=TOLERANCE).x[0]
        least = min(least, time.process_time() - start)
    return least, found


def _renumbered(graph: Graph, order: Ints) -> Graph:
    """Return the graph whose node i is node ``order[i]`` of another."""
    W = sparse.csr_array((np.ones(graph.indices.size, np.bool_), graph.indices, graph.indptr))[order][:, order]
    return Graph._of(sparse.csr_array(W), (), None)


def _rcm(graph: Graph) -> Ints:
    return np.asarray(reverse_cuthill_mckee(graph.adjacency, symmetric_mode=True), dtype=np.int64)


def _by_degree(graph: Graph) -> Ints:
    return np.argsort(-graph.degrees, kind="stable")


def _by_community(graph: Graph) -> Ints:
    from sknetwork.clustering import Louvain

    return np.argsort(Louvain().fit_predict(sparse.csr_matrix(graph.adjacency)), kind="stable")


ORDERS: dict[str, Callable[[Graph], Ints]] = {
    "reverse Cuthill-McKee": _rcm,
    "degree": _by_degree,
    "communities": _by_community,
}
"""Orders of nodes."""


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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.smoothing", description=__doc__)
    parser.add_argument("what", nargs="?", choices=("peers", "orders"), default="peers", help="what to measure")
    parser.add_argument("--nodes", type=int, nargs="*", default=(200_000,), help="nodes, each with 10.5 edges")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=tuple(PEERS), help="what to compare with")
    parser.add_argument(
        "--clock", choices=CLOCKS, default="wall", help="which seconds; with one thread for all of one core"
    )
    given = parser.parse_args()
    for n in given.nodes:
        if given.what == "orders":
            show("orders", "Smoothing of 16 columns in another order of nodes.", orders(n))
        else:
            show("smoothing", __doc__, measure(n, tuple(given.peers), given.clock))

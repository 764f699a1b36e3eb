"""The density of states by Lanczos quadrature on graphs whose spectrum is known: error, error bar and time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.show import Row, timed
from graphmrf.graph import Graph
from graphmrf.linalg.spectrum import density_of_states
from graphmrf_paper import synthetic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphmrf._typing import Floats


def run(*, quick: bool) -> list[Row]:
    """Compare log det(I + c N) for c = 10 and 1000 with the truth, on a torus, a ring, a star and a complete graph."""
    side, n = (50, 3000) if quick else (1000, 1_000_000)
    waves = np.cos(2 * np.pi * np.arange(side) / side)
    cases = {
        "torus": (_torus(side), 1 - np.add.outer(waves, waves).ravel() / 2),
        "ring": (synthetic.ring(n), 1 - np.cos(2 * np.pi * np.arange(n) / n)),
        "star": (Graph.from_edges(np.zeros(n - 1, dtype=int), np.arange(1, n)), np.array([0, *np.ones(n - 2), 2])),
        "complete": (synthetic.erdos_renyi(1500, 1499.0), np.array([0, *np.full(1499, 1500 / 1499)])),
    }
    return [row for name, (graph, eigenvalues) in cases.items() for row in _rows(name, graph, eigenvalues)]


def _torus(side: int) -> Graph:
    """Return a square grid whose opposite sides are joined."""
    i, j = np.divmod(np.arange(side**2), side)
    ends = np.concatenate([(i + 1) % side * side + j, i * side + (j + 1) % side])
    return Graph.from_edges(np.tile(np.arange(side**2), 2), ends)


def _rows(name: str, graph: Graph, eigenvalues: Floats) -> Iterator[Row]:
    seconds, states = timed(lambda: density_of_states(graph, probes=16))
    assert states.rules is not None
    for c in (10.0, 1000.0):
        terms = partial(_log_terms, c)
        truth, bar = float(terms(eigenvalues).sum()), states.error(terms)
        error = states.sum(terms) - truth
        yield {
            "graph": name,
            "nodes": graph.n_nodes,
            "edges": graph.n_edges,
            "probes": len(states.rules.nodes),
            "steps": states.rules.nodes.shape[1],
            "seconds": seconds,
            "c": c,
            "log det": truth,
            "relative error": error / truth,
            "relative error bar": bar / truth,
            "in error bars": abs(error) / max(bar, 1e-12 * truth),
        }


def _log_terms(c: float, x: Floats) -> Floats:
    return np.asarray(np.log1p(c * x))

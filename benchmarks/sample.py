"""One draw of five attributes on a large graph, against scipy's conjugate gradients on the same systems.

A draw is one block solve for all five channels. The peer solves the five systems one after the other, with the same
right sides, to the same relative residual of 1e-8. The residual of both is recomputed from what they return.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import cg

from benchmarks.show import Row, best_of, peak_gigabytes, timed
from benchmarks.workload import power_law_graph
from graphmrf.model import GaussianMRF
from graphmrf.model.conditional import field_noise

if TYPE_CHECKING:
    from graphmrf._typing import Floats
    from graphmrf.graph import Graph

TOLERANCE = 1e-8
SEED = 1


def run(*, quick: bool) -> list[Row]:
    """Draw once at three strengths of smoothing, h0 = 1, 10, 100 of the paper."""
    n = 20_000 if quick else 1_000_000
    graph = power_law_graph(n, int(10.2 * n), seed=0)
    paper_model(0).sample(graph, 1, SEED)  # compile
    return [_measure(graph, shift) for shift in ((1,) if quick else (0, 1, 2))]


def paper_model(shift: int, *, q: int = 5, seed: int = 0) -> GaussianMRF:
    """Return parameters drawn as in the paper: H = (Z'Z + 0.01 I)^-1 and h = 10^(shift + U - 1/2)."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((q, q))
    return GaussianMRF(np.linalg.inv(Z.T @ Z + 0.01 * np.eye(q)), 10.0 ** (shift + rng.random(q) - 0.5))


def _measure(graph: Graph, shift: int) -> Row:
    mrf = paper_model(shift)
    seconds, draws = best_of(2, lambda: mrf.sample(graph, 1, SEED))
    memory = peak_gigabytes()
    strength = mrf.channels.strength
    noise_seconds, noise = timed(lambda: field_noise(graph, strength, 1, np.random.default_rng(SEED))[:, 0])
    peer_seconds, solved = timed(lambda: _one_by_one(graph, noise, strength))
    channels = draws[0] @ mrf.channels.U
    return {
        "nodes": graph.n_nodes,
        "edges": graph.n_edges,
        "h0": 10.0**shift,
        "strongest channel": float(strength.max()),
        "draw s": seconds,
        "of it noise s": noise_seconds,
        "five scipy solves s": peer_seconds,
        "block solve times faster": peer_seconds / (seconds - noise_seconds),
        "draw / one scipy solve": seconds / (peer_seconds / strength.size),
        "residual": _residual(graph, channels, noise, strength),
        "scipy residual": _residual(graph, solved, noise, strength),
        "difference": float(np.linalg.norm(channels - solved) / np.linalg.norm(solved)),
        "peak GB": memory,
    }


def _operator(graph: Graph) -> sparse.csr_array:
    return sparse.csr_array(graph.N)


def _one_by_one(graph: Graph, noise: Floats, strength: Floats) -> Floats:
    N, columns = _operator(graph), []
    for b, level in zip(noise.T, strength, strict=True):
        A = sparse.eye_array(len(b), format="csr") + level * N
        columns.append(cg(A, b, rtol=TOLERANCE)[0])
    return np.column_stack(columns)


def _residual(graph: Graph, F: Floats, noise: Floats, strength: Floats) -> float:
    R = noise - F - strength * (_operator(graph) @ F)
    return float((np.linalg.norm(R, axis=0) / np.linalg.norm(noise, axis=0)).max())

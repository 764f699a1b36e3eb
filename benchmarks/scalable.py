"""GraphRegressor on graphs too large for dense covariances, beside LGC/RP and boosting + RP: R2, coverage, cost.

Two outcomes on one power-law graph with 16 features, of which a third of the nodes is known. "model draw" is drawn
from the paper's model, where LGC/RP with the right level is the optimum; "nonlinear" is a sum of linear effects of own
and smoothed features, a smooth function of two of them, a field that is smooth over the graph, and noise. Boosting sees
the features `X`, `SX` and `S²X`.

``python -m benchmarks.scalable [--nodes 1000000] [--labels 0.3] [--outcomes nonlinear]`` measures another size.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import r2_score

from benchmarks.show import Row, peak_gigabytes, show, timed
from benchmarks.workload import power_law_graph
from graphmrf import GaussianMRF, GraphRegressor, LinearGraphConvolution, ResidualPropagation
from graphmrf.linalg import multiply, smooth
from graphmrf.linalg.limits import LIMITS
from graphmrf.metrics import coverage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphmrf._typing import Floats
    from graphmrf.graph import Graph

FEATURES = 16
LEVEL = 0.9


def run(*, quick: bool) -> list[Row]:
    """Fit both outcomes; the peak of memory is that of everything so far, so the fit comes first."""
    return measure(30_000 if quick else 300_000, 1 / 3, list(OUTCOMES))


def measure(n: int, share: float, outcomes: Sequence[str]) -> list[Row]:
    """Fit some outcomes on a graph of `n` nodes, a share of which is labelled."""
    warm = power_law_graph(LIMITS.single_nodes, 10 * LIMITS.single_nodes, seed=1).to("numba")
    _measure(warm, "warm", *_nonlinear(warm), share)  # compile, what runs in float32, too
    graph = power_law_graph(n, int(10.08 * n), seed=0)
    made = {name: OUTCOMES[name](graph) for name in outcomes}
    return [_measure(graph, name, X, y, share) for name, (X, y) in made.items()]


def _drawn(graph: Graph) -> tuple[Floats, Floats]:
    """Draw from the paper's model: y given features and no edges has coefficients b and variance 1/2."""
    b = np.random.default_rng(0).standard_normal(FEATURES)
    b *= 1.5 / np.linalg.norm(b)
    H = np.block([[np.eye(FEATURES) + 2.0 * np.outer(b, b), -2.0 * b[:, None]], [-2.0 * b, 2.0]])
    attributes = GaussianMRF(H, np.append(np.ones(FEATURES), 10.0)).sample(graph, 1, 0)[0]
    return attributes[:, :-1], attributes[:, -1]


def _nonlinear(graph: Graph) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(0)
    n, p = graph.n_nodes, FEATURES
    X = rng.standard_normal((n, p))
    sources = np.column_stack([X @ rng.standard_normal(p), rng.standard_normal(n)])
    smoothed, field = smooth(graph, sources, [0.8, 0.95], tolerance=1e-6).T
    parts = [X @ rng.standard_normal(p), smoothed, field, np.cos(1.5 * X[:, 0]) * X[:, 1]]
    y = sum(part / part.std() for part in parts) + 0.5 * rng.standard_normal(n)
    return X, np.asarray(y)


OUTCOMES = {"nonlinear": _nonlinear, "model draw": _drawn}


def _measure(graph: Graph, name: str, X: Floats, y: Floats, share: float) -> Row:
    labelled = np.zeros(graph.n_nodes, dtype=np.bool_)
    labelled[np.random.default_rng(1).permutation(graph.n_nodes)[: int(share * graph.n_nodes)]] = True
    known, hidden = np.where(labelled, y, np.nan), ~labelled
    before = time.process_time()
    fit_seconds, model = timed(lambda: GraphRegressor(solver="sparse").fit(graph, X, known))
    processor_seconds = time.process_time() - before
    answer_seconds, (low, high) = timed(lambda: model.predict_interval(LEVEL))
    memory = peak_gigabytes()
    peer = ResidualPropagation(LinearGraphConvolution())
    peer_seconds, _ = timed(lambda: peer.fit(graph, X, known))
    boosted_seconds, boosted = timed(lambda: _boosted(graph, X, known))
    return {
        "outcome": name,
        "nodes": graph.n_nodes,
        "edges": graph.n_edges,
        "labels": int(labelled.sum()),
        "R2": r2_score(y[hidden], model.predict()[hidden]),
        "LGC/RP R2": r2_score(y[hidden], peer.predict()[hidden]),
        "GB/RP R2": r2_score(y[hidden], boosted[hidden]),
        f"coverage of {LEVEL:.0%}": coverage(y[hidden], low[hidden], high[hidden]),
        "fit s": fit_seconds,
        "fit processor s": processor_seconds,
        "intervals s": answer_seconds,
        "LGC/RP s": peer_seconds,
        "times LGC/RP": fit_seconds / peer_seconds,
        "GB/RP s": boosted_seconds,
        "peak GB": memory,
        "explanation": model.explanation_,
    }


def _boosted(graph: Graph, X: Floats, y: Floats) -> Floats:
    """Return what gradient boosting on features of the neighbourhood with residual propagation predicts."""
    boosting = HistGradientBoostingRegressor(max_iter=200, learning_rate=0.05, max_leaf_nodes=15, random_state=0)
    near = multiply(graph, X)
    features = np.hstack([X, near, multiply(graph, near)])
    return ResidualPropagation(boosting).fit(graph, features, y).predict()


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scalable", description=__doc__)
    parser.add_argument("--nodes", type=int, default=300_000, help="nodes, each with 10 edges")
    parser.add_argument("--labels", type=float, default=1 / 3, help="share of the nodes that are labelled")
    parser.add_argument("--outcomes", nargs="*", choices=OUTCOMES, default=list(OUTCOMES), help="what to fit")
    given = parser.parse_args()
    show("scalable", __doc__, measure(given.nodes, given.labels, given.outcomes))


if __name__ == "__main__":
    main()

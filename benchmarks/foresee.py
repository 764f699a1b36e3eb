"""Accuracy foreseen by the model against the mean accuracy on 50 simulated data sets, and probes against exact traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import networkx as nx
import numpy as np

from benchmarks.sample import paper_model
from benchmarks.show import Row, timed
from benchmarks.workload import power_law_graph
from graphmrf.graph import Graph
from graphmrf.metrics import r2
from graphmrf.model.condition import condition
from graphmrf.model.foresee import estimate_r2, exact_r2, probed_r2
from graphmrf.model.sample import sample
from graphmrf.model.target import target_of

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats
    from graphmrf.model import GaussianMRF
    from graphmrf.model.target import Given

METHODS: dict[str, Given] = {"LP": "labels", "LGC": "features", "LGC/RP": "both"}


def run(*, quick: bool) -> list[Row]:
    """Compare on three graphs of the paper, then time the probes on a large graph."""
    n = 300 if quick else 1000
    rows = []
    for name, graph in _graphs(n).items():
        mrf, labelled = paper_model(1), _labelled(n)
        draws = sample(mrf, graph, 10 if quick else 50, seed=2)
        rows += [_compare(name, graph, mrf, labelled, draws, method) for method in METHODS]
    large = power_law_graph(20_000 if quick else 100_000, 200_000 if quick else 1_000_000, seed=0)
    return rows + [_time(large, method) for method in METHODS]


def _graphs(n: int) -> dict[str, Graph]:
    made = {
        "Watts-Strogatz": nx.connected_watts_strogatz_graph(n, 6, 0.01, seed=0),
        "Barabasi-Albert": nx.barabasi_albert_graph(n, 3, seed=0),
        "block model": nx.stochastic_block_model([n // 2, n // 2], [[10 / n, 2 / n], [2 / n, 10 / n]], seed=0),
    }
    return {name: Graph.from_networkx(G) for name, G in made.items()}


def _labelled(n: int) -> Bools:
    labelled = np.zeros(n, dtype=bool)
    labelled[np.random.default_rng(1).permutation(n)[: -(-3 * n // 10)]] = True
    return labelled


def _compare(  # noqa: PLR0913, PLR0917 - one row of the table
    name: str, graph: Graph, mrf: GaussianMRF, labelled: Bools, draws: Floats, method: str
) -> Row:
    given, problem = METHODS[method], target_of(mrf, graph, -1, labelled)
    exact = exact_r2(problem, given)
    probed = probed_r2(problem, given, probes=64, seed=0)
    scores = [_score(mrf, graph, truth, labelled, given) for truth in draws]
    return {
        "graph": name,
        "nodes": graph.n_nodes,
        "method": method,
        "expected R2": exact,
        "mean R2 of simulated": float(np.mean(scores)),
        "difference": float(np.mean(scores)) - exact,
        "simulated standard error": float(np.std(scores, ddof=1) / np.sqrt(len(scores))),
        "probed R2": probed.value,
        "probed standard error": probed.standard_error,
        "probed less exact, in standard errors": (probed.value - exact) / probed.standard_error,
    }


def _score(mrf: GaussianMRF, graph: Graph, truth: Floats, labelled: Bools, given: Given) -> float:
    A = truth.copy()
    if given == "labels":
        A[:, :-1] = np.nan
    A[:, -1] = np.nan if given == "features" else np.where(labelled, A[:, -1], np.nan)
    return r2(truth[~labelled, -1], condition(mrf, graph, A).mean[~labelled, -1])


def _time(graph: Graph, method: str) -> Row:
    mrf, labelled = paper_model(1), _labelled(graph.n_nodes)
    seconds, estimate = timed(lambda: estimate_r2(mrf, graph, -1, labelled, METHODS[method]))
    return {
        "graph": "power law",
        "nodes": graph.n_nodes,
        "method": method,
        "probed R2": estimate.value,
        "probed standard error": estimate.standard_error,
        "probed s": seconds,
    }

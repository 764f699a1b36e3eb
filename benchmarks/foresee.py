"""Accuracy foreseen by the model against the mean on 50 simulated data sets, and probes against exact traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import networkx as nx
import numpy as np
from sklearn.metrics import r2_score

from benchmarks.sample import paper_model
from benchmarks.show import Row, timed
from benchmarks.workload import power_law_graph
from graphmrf.graph import Graph
from graphmrf.model.conditional import condition
from graphmrf.model.expected_accuracy import estimate_r2, exact_r2, probed_r2, target_covariance

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats
    from graphmrf.model import GaussianMRF
    from graphmrf.model.expected_accuracy import KnownData, TargetCovariance

METHODS: dict[str, KnownData] = {"LP": "labels", "LGC": "features", "LGC/RP": "both"}


def run(*, quick: bool) -> list[Row]:
    """Compare on three graphs of the paper, then time the probes on a large graph."""
    n = 300 if quick else 1000
    rows = []
    for name, graph in _graphs(n).items():
        draws = paper_model(1).sample(graph, 5 if quick else 50, random_state=2)
        rows += [_compare(name, graph, paper_model(1), draws, method) for method in METHODS]
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


def _compare(name: str, graph: Graph, mrf: GaussianMRF, draws: Floats, method: str) -> Row:
    """Every attribute in turn is the target, the others the features, as in the paper; the row has their means."""
    targets = [target_covariance(mrf.parameters, graph, t, _labelled(graph.n_nodes)) for t in range(mrf.q)]
    exact = np.array([exact_r2(target, METHODS[method]) for target in targets])
    probed = [probed_r2(target, METHODS[method], probes=64, random_state=0) for target in targets]
    distance = [(value - e) / error for (value, error), e in zip(probed, exact, strict=True)]
    scores = np.array([[_score(target, truth, METHODS[method]) for truth in draws] for target in targets])
    difference = scores.mean(axis=1) - exact
    return {
        "graph": name,
        "nodes": graph.n_nodes,
        "method": method,
        "expected R2": float(exact.mean()),
        "R2 of simulated": float(scores.mean()),
        "difference": float(difference.mean()),
        "largest of 5 targets": float(np.abs(difference).max()),
        "its standard error": float(scores.std(axis=1, ddof=1)[np.abs(difference).argmax()] / np.sqrt(len(draws))),
        "probed R2": float(np.mean([value for value, _ in probed])),
        "standard error of a probed": float(np.mean([error for _, error in probed])),
        "largest (probed - exact) / error": float(np.abs(distance).max()),
    }


def _score(target: TargetCovariance, truth: Floats, given: KnownData) -> float:
    A, t, U = np.where(target.conditional(given).missing, np.nan, truth), target.position, target.unlabelled
    return float(r2_score(truth[U, t], condition(target.parameters, target.graph, A).mean[U, t]))


def _time(graph: Graph, method: str) -> Row:
    mrf = paper_model(1)
    target = target_covariance(mrf.parameters, graph, mrf.index(-1), _labelled(graph.n_nodes))
    seconds, (value, error) = timed(lambda: estimate_r2(target, METHODS[method]))
    return {
        "graph": "power law",
        "nodes": graph.n_nodes,
        "method": method,
        "probed R2": value,
        "probed standard error": error,
        "probed s": seconds,
    }

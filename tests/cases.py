"""Random small problems for the tests: weighted graphs, often with isolated nodes or several components."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from graphmrf._typing import Bools, Floats
from graphmrf.graph import Graph
from graphmrf.model import GaussianMRF


@dataclass(frozen=True)
class Case:
    """A graph as dense weights `W`, features `X`, and outcomes `y` of which `truth` has all."""

    W: Floats
    X: Floats
    y: Floats
    truth: Floats

    @property
    def graph(self) -> Graph:
        return Graph(self.W)

    @property
    def known(self) -> Bools:
        return ~np.isnan(self.y)


def random_case(seed: int, n: int = 14, p: int = 2, labelled: int | None = None) -> Case:
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((n, n)) < rng.uniform(0.05, 0.4), 1)
    weights = rng.uniform(0.2, 3.0, (n, n)) if seed % 2 else np.ones((n, n))
    W = np.where(upper, weights, 0.0)
    X = rng.normal(size=(n, p)) * rng.uniform(0.1, 10.0, p) + rng.normal(size=p)
    truth = X @ rng.normal(size=p) + rng.normal(size=n) + 3.0
    y = truth.copy()
    count = rng.integers(p + 4, n) if labelled is None else labelled
    y[rng.permutation(n)[count:]] = np.nan
    return Case(W + W.T, X, y, truth)


def cases() -> st.SearchStrategy[Case]:
    return st.integers(0, 10**6).map(random_case)


def check_model_on(engine: str) -> Graph:
    """Check that a model draws and conditions on an engine as on the default one; return the graph it ran on."""
    u, v = np.random.default_rng(0).integers(0, 1600, (2, 4000))  # too large for dense factors
    graph = Graph.from_edges(u, v, n_nodes=1600)
    graphs = graph, graph.to(engine)
    mrf = GaussianMRF(np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([3.0, 20.0]))
    expected, found = (mrf.sample(each, 3, random_state=1) for each in graphs)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
    A = expected[0].copy()
    A[::2, 1] = A[1::3, 0] = np.nan
    means = [mrf.condition(each, A).mean for each in graphs]
    np.testing.assert_allclose(means[0], means[1], rtol=0, atol=1e-6)
    return graphs[1]

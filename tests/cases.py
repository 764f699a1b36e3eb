"""Random small problems for the tests: weighted graphs, often with isolated nodes or several components."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from graphmrf._typing import Bools, Floats
from graphmrf.graph import Graph


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

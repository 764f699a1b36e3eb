"""Random small fields for the tests of the model: any H, diagonal or coupled C, some of it zero."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

import oracle
from cases import random_case
from graphmrf._typing import Bools, Floats
from graphmrf.graph import Graph
from graphmrf.model import GaussianMRF


@dataclass(frozen=True)
class Field:
    """A graph as dense weights `W`, a model, and attributes of which some are missing."""

    W: Floats
    mrf: GaussianMRF
    truth: Floats
    missing: Bools

    @property
    def graph(self) -> Graph:
        return Graph(self.W)

    @property
    def A(self) -> Floats:
        return np.where(self.missing, np.nan, self.truth)

    def given(self) -> tuple[Floats, Floats]:
        """Conditional mean (n, q), and covariance of the missing entries, node by node."""
        mean, covariance = oracle.field_given(self.W, self.mrf.H, self.mrf.C, self.A - self.mrf.mean)
        n, q = self.A.shape
        columns_first = np.arange(n * q).reshape(q, n).T[self.missing]
        position = np.argsort(np.argsort(columns_first))
        return mean + self.mrf.mean, covariance[np.ix_(position, position)]


def parameters(rng: np.random.Generator, q: int) -> tuple[Floats, Floats]:
    """H of condition up to 1e4; C diagonal with zeros, of low rank, or full."""
    Z = rng.normal(size=(q, q)) * 10.0 ** rng.uniform(-0.5, 0.5, q)
    H = np.linalg.inv(Z.T @ Z + 0.01 * np.eye(q))
    G = rng.normal(size=(q, int(rng.integers(1, q + 1))))
    h = 10.0 ** rng.uniform(-1, 2, q) * (rng.random(q) < 0.7)
    C = np.diag(h) if rng.random() < 0.5 else G @ G.T * 10.0 ** rng.uniform(-1, 2)
    return H, (C + C.T) / 2


def random_missing(rng: np.random.Generator, n: int, q: int) -> Bools:
    """Scattered cells, whole columns, whole nodes, nodes by columns, everything or nothing."""
    nodes, columns = rng.random((n, 1)) < 0.5, rng.random((1, q)) < 0.5
    cells = rng.random((n, q)) < rng.uniform(0.1, 0.9)
    everything = np.ones((n, q), dtype=bool)
    kinds = [
        cells,
        cells,
        cells | columns,
        cells | nodes,
        nodes & columns,
        columns & everything,
        everything,
        ~everything,
    ]
    return kinds[int(rng.integers(len(kinds)))]


def random_field(seed: int, q: int = 3) -> Field:
    rng = np.random.default_rng(seed)
    W = random_case(seed).W * (seed % 7 > 0)  # sometimes no edges at all
    H, C = parameters(rng, q)
    mrf = GaussianMRF(H, C=C, mean=rng.normal(size=q))
    truth = rng.normal(size=(len(W), q))
    return Field(W, mrf, truth, random_missing(rng, *truth.shape))


def fields() -> st.SearchStrategy[Field]:
    return st.integers(0, 10**6).map(random_field)


def covariance_gap(draws: Floats, covariance: Floats) -> float:
    """Largest distance of an empirical second moment from its expectation, in standard errors; draws have mean 0."""
    K = len(draws)
    variance = np.diag(covariance)
    error = np.sqrt((covariance**2 + np.outer(variance, variance)) / K)
    return float((np.abs(draws.T @ draws / K - covariance) / error).max(initial=0.0))

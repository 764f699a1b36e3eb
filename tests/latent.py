"""The general field in plain algebra: covariances of its terms by definition, and joint Gaussian posteriors."""

from dataclasses import replace
from typing import Any

import numpy as np

import oracle
from cases import random_case
from graphmrf._typing import Floats, Ints
from graphmrf.field import Design, Observations
from graphmrf.field.dense import INTERCEPT

VARIANCES = {
    "own": 0.6,
    "neighbours": 0.3,
    "smoothed": 0.5,
    "nonlinear": 0.4,
    "local": 0.35,
    "field": 0.8,
    "learned": 0.45,
    "levels": 0.55,
    "time": 0.25,
}


def filtered(W: Floats, kappa2: float, order: float) -> Floats:
    """(kappa^2 + N)^-order."""
    values, vectors = np.linalg.eigh(oracle.laplacian(W))
    return np.asarray((vectors * (kappa2 + np.maximum(values, 0.0)) ** -order) @ vectors.T)


def correlations(W: Floats, kappa2: float, order: float) -> Floats:
    """(kappa^2 + N)^-order with a diagonal of ones."""
    K = filtered(W, kappa2, order)
    unit = 1.0 / np.sqrt(np.diag(K))
    return np.asarray(unit[:, None] * K * unit)


def kernel(Z: Floats) -> Floats:
    """exp(-|z_i - z_j|^2 / 2)."""
    return np.asarray(np.exp(-0.5 * ((Z[:, None] - Z[None]) ** 2).sum(axis=2)))


def hyperparameters(p: int, *, kappa2: float = 0.3, order: float = 1.0, noise: float = 0.2) -> dict[str, Any]:
    """Variances of all terms and of noise, ranges, orders and length scales."""
    shapes = {
        "field.range": np.array([kappa2]),
        "field.order": np.array([order]),
        "nonlinear.lengths": np.linspace(1.0, 3.0, 2 * p),
        "local.length": np.array([2.5]),
        "local.range": np.array([0.7]),
        "local.order": np.array([1.4]),
    }
    return {**VARIANCES, "noise": noise, **shapes}


def covariance_of(term: str, W: Floats, design: Design, h: dict[str, Any]) -> Floats:
    """The prior covariance of one term among all nodes."""
    X, M, kappa2, order = design.own, design.neighbours, h["field.range"], h["field.order"]
    Z = np.hstack([X, M])
    T = filtered(W, kappa2, order)
    TX = np.where(W.sum(axis=1)[:, None] > 0, T / np.diag(T).mean() @ X, 0.0)
    near = correlations(W, h["local.range"], h["local.order"])
    found = {
        "own": X @ X.T / X.shape[1],
        "neighbours": M @ M.T / X.shape[1],
        "smoothed": TX @ TX.T / X.shape[1],
        "levels": design.levels @ design.levels.T / max(design.levels.shape[1], 1),
        "learned": design.learned @ design.learned.T,
        "time": design.times @ design.times.T / 3,
        "nonlinear": kernel(Z / h["nonlinear.lengths"]),
        "local": kernel(Z / h["local.length"]) * near,
        "field": correlations(W, kappa2, order),
    }
    return np.asarray(h[term] * found[term])


def prior(terms: tuple[str, ...], W: Floats, design: Design, h: dict[str, Any]) -> Floats:
    """The prior covariance of the latent field among all nodes."""
    parts = [covariance_of(term, W, design, h) for term in terms]
    return np.asarray(sum(parts, start=np.full((len(W), len(W)), INTERCEPT)))


def given(K: Floats, observations: Observations, noise: float) -> tuple[Floats, Floats]:
    """Mean and covariance of the latent field at all nodes given observations."""
    rows = observations.nodes
    among = K[np.ix_(rows, rows)] + np.diag(noise / observations.weights)
    gain = np.linalg.solve(among, K[rows]).T
    return gain @ observations.z, K - gain @ K[rows]


def misfit(K: Floats, observations: Observations, noise: float) -> float:
    """Negative log density of the observations."""
    rows = observations.nodes
    among = K[np.ix_(rows, rows)] + np.diag(noise / observations.weights)
    energy = observations.z @ np.linalg.solve(among, observations.z)
    return float(0.5 * (energy + np.linalg.slogdet(2 * np.pi * among)[1]))


def problem(seed: int, n: int = 16, p: int = 2, labelled: int = 9) -> tuple[Floats, Design, Observations]:
    """A small graph, often with isolated nodes or several components, its features, and weighted observations."""
    case, rng = random_case(seed, n=n, p=p), np.random.default_rng(seed)
    rows: Ints = np.sort(rng.permutation(n)[:labelled])
    observations = Observations.of(rows, rng.standard_normal(labelled)).weighted(rng.uniform(0.3, 2.0, labelled))
    learned, times, levels = (rng.standard_normal((n, q)) for q in (1, 3, 4))
    design = replace(Design.of(case.graph, case.X), learned=learned, times=times, levels=levels, groups=("",) * 4)
    return case.W, design, observations


def slopes(value: Any, x: Floats, step: float = 1e-5) -> Floats:
    """The gradient by central differences."""
    steps = step * np.eye(x.size)
    return np.array([(value(x + each) - value(x - each)) / (2 * step) for each in steps])


def with_one_range(space: Any, x: Floats, order: float = 1.0) -> Floats:
    """Coordinates of the sparse representation with both ranges equal, as in the dense one, and an order."""
    names, found = list(space.names), x.copy()
    found[names.index("field.order")] = np.log(order) / 0.7
    found[names.index("field.near")] = found[names.index("field.range")] - 2.0  # medians are two spreads apart
    return found


def by_one_range(dense: Any, sparse: Any) -> Floats:
    """The matrix from derivatives by the coordinates of the sparse representation to those of the dense one."""
    pairs = [[a == b or (a, b) == ("field.range", "field.near") for b in sparse.names] for a in dense.names]
    found = np.zeros((dense.size, sparse.size))
    found[:-1, :-1], found[-1, -1] = pairs, 1.0
    return found

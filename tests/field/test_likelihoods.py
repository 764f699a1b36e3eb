"""Likelihoods against SciPy's distributions, and Laplace's approximation against quadrature and dense algebra."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import latent
import oracle
from graphmrf._typing import Floats
from graphmrf.field import TERMS, AveragedPosterior, Design, Responses
from graphmrf.field.dense import DenseField
from graphmrf.field.likelihoods import LIKELIHOODS, Likelihood, Measured, Ordinal
from graphmrf.field.sparse import SparseField
from graphmrf.graph import Graph

seeds = st.integers(0, 10**6)
REPEATED = Measured("repeated", typical=0.5)
ORDINAL = Ordinal(-0.5, (0.8, 0.4, 1.1))
ALL = (*LIKELIHOODS.values(), REPEATED, ORDINAL)
SPARSE = ("own", "neighbours", "field")


def hyperparameters(likelihood: Likelihood) -> dict[str, Any]:
    return {shape.name: np.full(shape.size, 0.7 * shape.median) for shape in likelihood.shapes}


def rows(likelihood: Likelihood, rng: np.random.Generator, count: int) -> tuple[Floats, Floats, Floats]:
    """Latent values, observations, and their exposures, trials or standard errors."""
    eta = rng.normal(0.0, 0.8, count)
    sizes = {"binomial": rng.integers(1, 9, count).astype(float), "bernoulli": np.ones(count)}
    size = sizes.get(likelihood.name, rng.uniform(0.5, 4.0, count))
    return eta, likelihood.draw(eta, size, hyperparameters(likelihood), rng), size


@dataclass
class Finite:
    """Numbers 0, 1, ... with some probabilities (k, n)."""

    shares: Floats

    def logpmf(self, y: Floats) -> Floats:
        return np.asarray(np.log(self.shares[y.astype(int), np.arange(y.size)]))

    def mean(self) -> Floats:
        return np.asarray(np.arange(len(self.shares)) @ self.shares)

    def var(self) -> Floats:
        return np.asarray(np.arange(len(self.shares)) ** 2 @ self.shares - self.mean() ** 2)

    def cdf(self, y: Floats) -> Floats:
        return np.asarray((self.shares * (np.arange(len(self.shares))[:, None] <= y)).sum(axis=0))


def distribution(likelihood: Likelihood, eta: Floats, size: Floats) -> Any:
    mean = size * np.exp(eta)
    if likelihood.name == "poisson":
        return stats.poisson(mean)
    if likelihood.name == "negative-binomial":
        return stats.nbinom(7.0, 7.0 / (7.0 + mean))
    if likelihood.name == "ordinal":
        cuts = np.cumsum([-0.5, 0.56, 0.28, 0.77])
        above = 1.0 / (1.0 + np.exp(cuts[:, None] - eta))
        shares = -np.diff(np.vstack([np.ones(eta.size), above, np.zeros(eta.size)]), axis=0)
        return Finite(shares)
    if likelihood.name in ("binomial", "bernoulli"):
        return stats.binom(size.astype(int), 1.0 / (1.0 + np.exp(-eta)))
    return stats.norm(eta, size * (0.35 if likelihood.name == "repeated" else 1.0))


@pytest.mark.parametrize("likelihood", ALL, ids=lambda each: str(each.name))
def test_the_information_of_an_observation_is_its_mean_curvature(likelihood: Likelihood) -> None:
    h, eta, size = hyperparameters(likelihood), np.linspace(-1.5, 1.5, 7), np.full(7, 4.0)
    size = np.ones(7) if likelihood.name in ("bernoulli", "ordinal") else size
    y = likelihood.draw(np.tile(eta, (5000, 1)), size, h, np.random.default_rng(0))
    mean = np.mean([likelihood.expand(eta, each, size, h).curvature for each in y], axis=0)
    np.testing.assert_allclose(likelihood.information(eta, size, h), mean, rtol=0.05)


@pytest.mark.parametrize("name", ["poisson", "negative-binomial"])
def test_counts_are_drawn_of_any_rate(name: str) -> None:
    likelihood = LIKELIHOODS[name]
    drawn = likelihood.draw(
        np.array([-300.0, 0.0, 300.0]), np.ones(3), hyperparameters(likelihood), np.random.default_rng(0)
    )
    assert drawn[0] == 0.0
    assert drawn[2] > 1e18


@pytest.mark.parametrize("likelihood", ALL, ids=lambda each: str(each.name))
def test_the_deviance_is_least_at_the_mean(likelihood: Likelihood) -> None:
    rng = np.random.default_rng(0)
    _, y, size = rows(likelihood, rng, 200)
    share = size * y.sum() / size.sum() if likelihood.name in LIKELIHOODS else np.full(200, y.mean())
    at, off = (likelihood.deviance(y, share * factor, size).sum() for factor in (1.0, 0.9))
    assert at < off


@pytest.mark.parametrize("likelihood", ALL, ids=lambda each: each.name)
def test_densities_moments_and_probabilities_are_those_of_scipy(likelihood: Likelihood) -> None:
    eta, y, size = rows(likelihood, np.random.default_rng(0), 50)
    h, expected = hyperparameters(likelihood), distribution(likelihood, eta, size)
    density = expected.logpmf(y) if likelihood.is_whole else expected.logpdf(y)
    np.testing.assert_allclose(likelihood.expand(eta, y, size, h).log_density, density, atol=1e-10)
    mean, variance = likelihood.moments(eta, size, h)
    np.testing.assert_allclose(mean, expected.mean(), atol=1e-12)
    np.testing.assert_allclose(variance, expected.var(), atol=1e-10)
    for shift in (-2.0, 0.0, 1.0, 100.0):
        np.testing.assert_allclose(likelihood.below(y + shift, eta, size, h), expected.cdf(y + shift), atol=1e-10)


@pytest.mark.parametrize("likelihood", ALL, ids=lambda each: each.name)
def test_derivatives_are_those_of_finite_differences(likelihood: Likelihood) -> None:
    eta, y, size = rows(likelihood, np.random.default_rng(1), 50)
    h, step = hyperparameters(likelihood), 1e-5
    high, low = (likelihood.expand(eta + side * step, y, size, h) for side in (1.0, -1.0))
    found = likelihood.expand(eta, y, size, h)
    np.testing.assert_allclose(found.slope, (high.log_density - low.log_density) / (2 * step), atol=1e-5)
    np.testing.assert_allclose(-found.curvature, (high.slope - low.slope) / (2 * step), atol=1e-5)
    np.testing.assert_allclose(-found.third, (high.curvature - low.curvature) / (2 * step), atol=1e-5)


@pytest.mark.parametrize("likelihood", ALL, ids=lambda each: each.name)
def test_draws_have_the_moments(likelihood: Likelihood) -> None:
    eta, size, h = np.array([-0.5, 0.4]), np.array([3.0, 1.0]), hyperparameters(likelihood)
    drawn = likelihood.draw(np.tile(eta, (200_000, 1)), size, h, np.random.default_rng(0))
    mean, variance = likelihood.moments(eta, size, h)
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=0.03)
    np.testing.assert_allclose(drawn.var(axis=0), variance, rtol=0.03)


def responses(likelihood: Likelihood, seed: int, labelled: int = 9) -> tuple[Floats, Any, Responses]:
    """A small graph with two rows at some nodes."""
    W, design, observations = latent.problem(seed, labelled=labelled)
    nodes = np.concatenate([observations.nodes, observations.nodes[:3]])
    _, y, size = rows(likelihood, np.random.default_rng(seed), nodes.size)
    return W, design, Responses.of(likelihood, nodes, y, size)


def dense(design: Any, observations: Any, names: tuple[str, ...] = SPARSE) -> DenseField:
    return DenseField.of(design, tuple(TERMS[name] for name in names), observations)


@pytest.mark.parametrize("likelihood", ALL, ids=lambda each: each.name)
@given(seeds)
@settings(max_examples=5)
def test_gradients_of_the_evidence(likelihood: Likelihood, seed: int) -> None:
    _, design, observations = responses(likelihood, seed)
    field = dense(design, observations, (*SPARSE, "nonlinear"))
    x = 0.5 * np.random.default_rng(seed).standard_normal(field.size)
    np.testing.assert_allclose(field.expand(x)[1], latent.slopes(field.value, x), atol=1e-4)
    assert field.expand(x)[0] == pytest.approx(field.value(x), abs=1e-6)


@pytest.mark.parametrize("likelihood", ALL, ids=lambda each: each.name)
def test_the_sparse_representation_agrees(likelihood: Likelihood) -> None:
    n = 16
    graph = Graph.from_edges(np.arange(n - 1), np.arange(1, n))
    _, design, observations = responses(likelihood, 2)
    design = type(design).of(graph, np.random.default_rng(2).standard_normal((n, 2)))
    sparse = SparseField.of(design, tuple(TERMS[name] for name in SPARSE), observations, {})
    full = dense(design, observations)
    x = latent.with_one_range(sparse.space, 0.5 * np.random.default_rng(3).standard_normal(sparse.size))
    z, P = full.space.taken_from(sparse.space, x), latent.by_one_range(full.space, sparse.space)
    assert sparse.value(x) - 0.5 * x @ x == pytest.approx(full.value(z) - 0.5 * z @ z, abs=1e-4)
    np.testing.assert_allclose(P @ (sparse.expand(x)[1] - x), full.expand(z)[1] - z, atol=0.03)
    for found, expected in zip(
        sparse.posterior(x).moments(np.arange(n)), full.posterior(z).moments(np.arange(n)), strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_known_errors_are_exact() -> None:
    W, design, observations = latent.problem(4)
    std = np.linspace(0.2, 1.5, 9)
    given_rows = Responses.of(LIKELIHOODS["measured"], observations.nodes, 3.0 + 2.0 * observations.z, std)
    field = dense(design, given_rows, ("own", "field"))
    x = 0.3 * np.random.default_rng(0).standard_normal(field.size)
    h = latent.hyperparameters(2) | field.space.read(x)
    K = latent.prior(("own", "field"), W, design, h)
    z = (given_rows.y - given_rows.origin) / given_rows.unit
    error = (std / given_rows.unit) ** 2
    among = K[np.ix_(given_rows.nodes, given_rows.nodes)] + np.diag(h["noise"] + error)
    expected = stats.multivariate_normal(np.zeros(9), among).logpdf(z) - 9 * np.log(given_rows.unit)
    assert field.value(x) - 0.5 * x @ x == pytest.approx(-expected, abs=1e-6)
    gain = K[:, given_rows.nodes] @ np.linalg.inv(among)
    mean, variance = field.posterior(x).moments(np.arange(16))
    np.testing.assert_allclose(mean, gain @ z, atol=1e-6)
    np.testing.assert_allclose(variance, np.diag(K - gain @ K[given_rows.nodes]), atol=1e-6)


@pytest.mark.parametrize("name", ["poisson", "negative-binomial", "binomial"])
@pytest.mark.parametrize("count", [2, 3])
def test_the_evidence_is_that_of_quadrature(name: str, count: int) -> None:
    likelihood, graph = LIKELIHOODS[name], Graph.from_edges([0, 1], [1, 2])
    _, design, _ = responses(likelihood, 0)
    design = type(design).of(graph, np.arange(3.0)[:, None])
    size = np.full(count, 40.0)
    h_own = hyperparameters(likelihood)
    y = likelihood.draw(np.array([0.1, 0.5, -0.3])[:count], size, h_own, np.random.default_rng(1))
    given_rows = Responses(likelihood, np.arange(count), np.arange(count), y, size, 0.0, 1.0)
    field = dense(design, given_rows, ("field",))
    x = np.zeros(field.size)
    h = latent.hyperparameters(1) | field.space.read(x)
    K = latent.prior(("field",), graph.adjacency.toarray(), design, h)[:count, :count] + h["noise"] * np.eye(count)
    points, weights = np.polynomial.hermite_e.hermegauss(61)
    grid = np.stack(np.meshgrid(*[points] * count, indexing="ij"), -1).reshape(-1, count)
    mass = np.prod(np.stack(np.meshgrid(*[weights] * count, indexing="ij"), -1).reshape(-1, count), axis=1)
    centre, spread = likelihood.start(y, size), 0.25
    v = centre + spread * grid
    log_prior = stats.multivariate_normal(np.zeros(count), K).logpdf(v)
    log_rows = likelihood.expand(v, y, size, h).log_density.sum(axis=1)
    log_grid = stats.norm(centre, spread).logpdf(v).sum(axis=1)
    expected = np.log(np.sum(mass / mass.sum() * np.exp(log_prior + log_rows - log_grid)))
    assert -field.value(x) == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize(("name", "size"), [("poisson", 1.0), ("binomial", 5.0), ("bernoulli", 1.0)])
def test_values_have_the_moments_of_a_long_run_of_a_sampler(name: str, size: float) -> None:
    """Means within .05 standard deviations and standard deviations within 5 %, at fixed hyper-parameters."""
    likelihood, rng, n = LIKELIHOODS[name], np.random.default_rng(0), 20
    graph, labelled = Graph.from_edges(np.arange(n), (np.arange(n) + 1) % n), np.arange(0, n, 2)
    eta = np.sin(labelled / 4.0) + 0.3 * rng.standard_normal(labelled.size)
    sizes = np.full(labelled.size, size)
    y = likelihood.draw(eta, sizes, {}, rng)
    given_rows = Responses(likelihood, labelled, np.arange(labelled.size), y, sizes, likelihood.pooled(y, sizes), 1.0)
    design = Design.of(graph, rng.standard_normal((n, 1)))
    field = dense(design, given_rows, ("own", "field"))
    x = np.zeros(field.size)
    h = latent.hyperparameters(1) | field.space.read(x)
    K = latent.prior(("own", "field"), graph.adjacency.toarray(), design, h) + h["noise"] * np.eye(n)

    def log_density(v: Floats) -> Floats:
        rows = likelihood.expand(given_rows.origin + v, y, sizes, {}).log_density
        return np.asarray(rows.sum(axis=1))

    among = K[np.ix_(labelled, labelled)]
    drawn = oracle.elliptical_slice(log_density, among, chains=300, steps=600, rng=rng)[100:].reshape(-1, labelled.size)
    found = AveragedPosterior([field.posterior(x)]).values(np.arange(n))
    gain = K[:, labelled] @ np.linalg.inv(among)
    mean = gain @ drawn.mean(axis=0)
    std = np.sqrt(np.diag(K - gain @ K[labelled]) + np.einsum("ij,jk,ik->i", gain, np.cov(drawn.T), gain))
    np.testing.assert_array_less(np.abs(found.means[0] - mean) / std, 0.05)
    np.testing.assert_allclose(np.sqrt(found.variances[0]), std, rtol=0.05)


def test_the_size_of_counts_is_estimated_by_moments() -> None:
    likelihood, rng = LIKELIHOODS["negative-binomial"], np.random.default_rng(0)
    exposure = rng.uniform(10.0, 50.0, 4000)
    h = {"negative-binomial.size": np.array([1.5])}
    y = likelihood.draw(np.full(4000, 0.3), exposure, h, rng)
    assert likelihood.shape_estimates(y, exposure)["negative-binomial.size"] == pytest.approx(1.5, rel=0.1)
    assert likelihood.shape_estimates(rng.poisson(exposure).astype(float), exposure) == {}

"""Averages of posteriors, normal mixtures, and leaving one out."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm

import latent
from families import path
from fields import covariance_gap
from graphmrf._typing import Floats
from graphmrf.field import TERMS, AveragedPosterior, Design, Mixture, Observations
from graphmrf.field.dense import DenseField, DensePosterior
from graphmrf.field.noise import StudentT
from graphmrf.field.posterior import Posterior
from graphmrf.field.sparse import SparseField, SparsePosterior, SparseSystem

NAMES = ("own", "smoothed", "field")
NODES = np.arange(16)
NOISES = (0.1, 0.3, 0.8)


def members(kind: str, design: Design, observations: Observations, noises: tuple[float, ...]) -> list[Posterior]:
    terms, found = tuple(TERMS[name] for name in NAMES), list[Posterior]()
    for k, noise in enumerate(noises):
        h = latent.hyperparameters(2, kappa2=0.2 + 0.3 * k, noise=noise)
        if kind == "dense":
            found.append(DensePosterior(DenseField.of(design, terms, observations), h))
        else:
            found.append(SparsePosterior(SparseSystem(SparseField.of(design, terms, observations, {}), h)))
    return found


def averaged(kind: str = "dense", seed: int = 4) -> tuple[AveragedPosterior, Observations, Floats, Design]:
    W, design, observations = latent.problem(seed)
    return AveragedPosterior(members(kind, design, observations, NOISES)), observations, W, design


def random_mixture(seed: int) -> Mixture:
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(4))
    return Mixture(weights, 3.0 * rng.standard_normal((4, 5)), rng.uniform(0.1, 4.0, (4, 5)))


@given(st.integers(0, 10**6), st.floats(0.001, 0.999))
def test_quantiles_of_mixtures_invert_their_distribution(seed: int, level: float) -> None:
    mixture = random_mixture(seed)
    for node, found in enumerate(mixture.quantile(level)):
        means, stds = mixture.means[:, node], np.sqrt(mixture.variances[:, node])
        expected = brentq(lambda x: mixture.weights @ norm.cdf((x - means) / stds) - level, -50.0, 50.0)  # noqa: B023
        assert found == pytest.approx(expected, abs=1e-6)


@given(st.integers(0, 10**6))
def test_moments_of_mixtures_are_integrals(seed: int) -> None:
    mixture, x = random_mixture(seed), np.linspace(-40.0, 40.0, 20_001)
    mean, variance = mixture.moments
    for node in range(5):
        density = mixture.weights @ norm.pdf(x, mixture.means[:, node, None], np.sqrt(mixture.variances[:, node, None]))
        density /= density.sum()
        assert mean[node] == pytest.approx(density @ x, abs=1e-6)
        assert variance[node] == pytest.approx(density @ (x - mean[node]) ** 2, rel=1e-6)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_leaving_one_out_is_the_posterior_of_all_others(kind: str) -> None:
    posterior, observations, W, design = averaged(kind)
    found = posterior.leave_one_out()
    for k, noise in enumerate(NOISES):
        K = latent.prior(NAMES, W, design, latent.hyperparameters(2, kappa2=0.2 + 0.3 * k, noise=noise))
        for i, node in enumerate(observations.nodes):
            mean, covariance = latent.given(K, observations.part(np.arange(9) != i), noise)
            assert found.means[k, i] == pytest.approx(mean[node], abs=1e-5)
            assert found.variances[k, i] == pytest.approx(covariance[node, node] + noise, abs=1e-5)


def test_leaving_out_one_of_several_observations_of_a_node() -> None:
    W, design, _ = latent.problem(4)
    repeated = Observations.of(np.array([2, 2, 5, 9]), np.array([0.1, 0.4, -1.0, 2.0]))
    posterior = AveragedPosterior(members("dense", design, repeated, (0.2,)))
    found, K = posterior.leave_one_out(), latent.prior(NAMES, W, design, latent.hyperparameters(2, kappa2=0.2))
    for i, node in enumerate(repeated.nodes):
        mean, covariance = latent.given(K, repeated.part(np.arange(4) != i), 0.2)
        assert found.means[0, i] == pytest.approx(mean[node], abs=1e-6)
        assert found.variances[0, i] == pytest.approx(covariance[node, node] + 0.2, abs=1e-6)


def test_leaving_one_out_where_there_is_hardly_any_noise() -> None:
    design, n = Design.of(path(60), np.zeros((60, 0))), 60
    observations = Observations.of(np.arange(n), np.sin(np.arange(n) / 5.0))
    field = DenseField.of(design, (TERMS["field"],), observations)
    h = field.space.read(np.zeros(field.size)) | {"noise": 1e-12, "field.range": np.array([1e-3])}
    found = AveragedPosterior([DensePosterior(field, h)]).leave_one_out()
    for i in (0, 17, 59):
        others = DensePosterior(field, h).given(observations.part(np.arange(n) != i))
        mean, variance = others.moments(np.array([i]))
        assert found.means[0, i] == pytest.approx(mean[0], rel=1e-4, abs=1e-6)
        assert found.variances[0, i] == pytest.approx(variance[0], rel=1e-2)


def test_leaving_one_out_where_columns_leave_much() -> None:
    rng, n = np.random.default_rng(0), 400
    design = Design.of(path(n), rng.standard_normal((n, 4)))
    observations = Observations.of(np.arange(n), rng.standard_normal(n))
    fixed = {"nonlinear.lengths": np.full(8, 1.0)}
    field = SparseField.of(design, (TERMS["own"], TERMS["nonlinear"]), observations, fixed)
    h = latent.hyperparameters(4) | fixed
    found = AveragedPosterior([SparsePosterior(SparseSystem(field, h))]).leave_one_out()
    assert np.abs(found.means).max() < 10.0


def test_moments_are_those_of_all_members() -> None:
    posterior = averaged()[0]
    mean, variance = posterior.moments(NODES)
    each = [member.moments(NODES) for member in posterior.members]
    np.testing.assert_allclose(mean, np.mean([m for m, _ in each], axis=0))
    second = np.mean([v + m**2 for m, v in each], axis=0)
    np.testing.assert_allclose(variance, second - mean**2, atol=1e-9)
    outcome = posterior.outcome(NODES).moments
    np.testing.assert_allclose(outcome[0], mean)
    np.testing.assert_allclose(outcome[1], variance + np.mean(NOISES))
    assert posterior.noise == pytest.approx(np.mean(NOISES))


def test_covariances_and_draws_include_the_differences_of_the_members() -> None:
    posterior, nodes = averaged()[0], np.arange(0, 16, 3)
    covariance = posterior.covariance_times(nodes, np.eye(nodes.size))
    np.testing.assert_allclose(np.diag(covariance), posterior.moments(nodes)[1])
    rng = np.random.default_rng(0)
    draws = posterior.draw(nodes, 20_000, rng) - posterior.moments(nodes)[0]
    assert covariance_gap(draws, covariance) < 5
    noisy = posterior.draw_outcome(nodes, 20_000, rng) - posterior.moments(nodes)[0]
    assert covariance_gap(noisy, covariance + posterior.noise * np.eye(nodes.size)) < 5


def test_parts_are_averaged() -> None:
    posterior = averaged()[0]
    parts = [member.parts(NODES) for member in posterior.members]
    for name, found in posterior.parts(NODES).items():
        np.testing.assert_allclose(found, np.mean([part[name] for part in parts], axis=0))


def test_tails_of_the_noise_are_tails_of_outcomes() -> None:
    posterior = averaged()[0]
    heavy = replace(posterior, likelihood=StudentT(8.0))
    plain, tailed = (each.outcome(NODES) for each in (posterior, heavy))
    np.testing.assert_allclose(tailed.moments[0], plain.moments[0])
    assert (tailed.quantile(0.999) - tailed.quantile(0.5) > plain.quantile(0.999) - plain.quantile(0.5)).all()
    draws = heavy.draw_outcome(NODES, 20_000, np.random.default_rng(0))
    np.testing.assert_allclose(np.quantile(draws, 0.95, axis=0), tailed.quantile(0.95), atol=0.1)
    latent_variance = heavy.moments(NODES)[1]
    np.testing.assert_allclose(tailed.moments[1] - latent_variance, heavy.noise, rtol=0.05)


def test_other_observations_keep_members() -> None:
    posterior, observations, _, design = averaged()
    fewer = observations.part(np.arange(5))
    expected = AveragedPosterior(members("dense", design, fewer, NOISES)).moments(NODES)
    np.testing.assert_allclose(posterior.given(fewer).moments(NODES), expected)

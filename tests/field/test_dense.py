"""The dense representation against joint Gaussian algebra."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import latent
from fields import covariance_gap
from graphmrf._typing import Floats
from graphmrf.field import TERMS, Design, Observations
from graphmrf.field.dense import INTERCEPT, DenseField, DensePosterior
from graphmrf.field.terms import Prior

seeds = st.integers(0, 10**6)
NAMES = tuple(TERMS)
EVERYWHERE = np.arange(16)


def field(design: Design, observations: Observations, names: tuple[str, ...] = NAMES) -> DenseField:
    return DenseField.of(design, tuple(TERMS[name] for name in names), observations)


@pytest.mark.parametrize("term", NAMES)
@pytest.mark.parametrize("seed", [0, 3, 5])
def test_terms_have_the_covariance_of_their_formula(term: str, seed: int) -> None:
    W, design, observations = latent.problem(seed)
    data, h = field(design, observations, (term,)), latent.hyperparameters(design.p, order=1.7)
    expected = latent.covariance_of(term, W, design, h)
    rows = observations.nodes
    np.testing.assert_allclose(TERMS[term].among(data, h).K, expected[np.ix_(rows, rows)], atol=1e-6)
    np.testing.assert_allclose(TERMS[term].between(data, h, EVERYWHERE, rows), expected[:, rows], atol=1e-6)
    np.testing.assert_allclose(TERMS[term].variance(data, h, EVERYWHERE), np.diag(expected), atol=1e-6)


@given(seeds)
@settings(max_examples=10)
def test_the_value_is_the_density_of_labels_and_hyperparameters(seed: int) -> None:
    W, design, observations = latent.problem(seed)
    data = field(design, observations)
    x = 0.7 * np.random.default_rng(seed).standard_normal(data.size)
    h = data.space.read(x)
    expected = latent.misfit(latent.prior(NAMES, W, design, h), observations, h["noise"]) + 0.5 * x @ x
    assert data.value(x) == pytest.approx(expected, abs=1e-4)
    assert data.expand(x)[0] == pytest.approx(expected, abs=1e-4)


@given(seeds)
@settings(max_examples=10)
def test_gradients_are_those_of_finite_differences(seed: int) -> None:
    _, design, observations = latent.problem(seed)
    data = field(design, observations)
    x = 0.7 * np.random.default_rng(seed).standard_normal(data.size)
    np.testing.assert_allclose(data.expand(x)[1], latent.slopes(data.value, x), atol=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_the_curvature_is_average_information(seed: int) -> None:
    W, design, observations = latent.problem(seed)
    data, rows = field(design, observations), observations.nodes
    x = 0.5 * np.random.default_rng(seed).standard_normal(data.size)

    def among(x: Floats) -> Floats:
        h = data.space.read(x)
        K = latent.prior(NAMES, W, design, h)[np.ix_(rows, rows)]
        return np.asarray(K + np.diag(h["noise"] / observations.weights))

    K = among(x)
    steps = 1e-5 * np.eye(x.size)
    slopes = np.array([(among(x + step) - among(x - step)) / 2e-5 for step in steps])
    products = slopes @ np.linalg.solve(K, observations.z)
    expected = 0.5 * products @ np.linalg.solve(K, products.T) + np.eye(x.size)
    np.testing.assert_allclose(data.expand(x)[2], expected, atol=1e-3)


@given(seeds)
@settings(max_examples=10)
def test_posteriors_are_those_of_the_joint_gaussian(seed: int) -> None:
    W, design, observations = latent.problem(seed)
    h = latent.hyperparameters(design.p, order=0.8)
    posterior = DensePosterior(field(design, observations), h)
    K = latent.prior(NAMES, W, design, h)
    mean, covariance = latent.given(K, observations, h["noise"])
    found = posterior.moments(EVERYWHERE)
    np.testing.assert_allclose(found[0], mean, atol=1e-6)
    np.testing.assert_allclose(found[1], np.diag(covariance), atol=1e-6)
    nodes, Z = np.array([3, 0, 9]), np.random.default_rng(seed).standard_normal((3, 2))
    np.testing.assert_allclose(posterior.covariance_times(nodes, Z), covariance[np.ix_(nodes, nodes)] @ Z, atol=1e-5)


def test_the_mean_is_the_sum_of_its_parts() -> None:
    W, design, observations = latent.problem(4)
    h = latent.hyperparameters(design.p)
    posterior = DensePosterior(field(design, observations), h)
    K, rows = latent.prior(NAMES, W, design, h), observations.nodes
    dual = np.linalg.solve(K[np.ix_(rows, rows)] + np.diag(h["noise"] / observations.weights), observations.z)
    parts = posterior.parts(EVERYWHERE)
    for name in NAMES:
        np.testing.assert_allclose(parts[name], latent.covariance_of(name, W, design, h)[:, rows] @ dual, atol=1e-6)
    np.testing.assert_allclose(parts.pop("constant"), INTERCEPT * dual.sum())
    assert set(parts) == set(NAMES)
    np.testing.assert_allclose(sum(posterior.parts(EVERYWHERE).values()), posterior.moments(EVERYWHERE)[0], atol=1e-9)


def test_draws_have_mean_and_covariance() -> None:
    _, design, observations = latent.problem(4)
    posterior, nodes = DensePosterior(field(design, observations), latent.hyperparameters(2)), np.arange(0, 16, 3)
    draws = posterior.draw(nodes, 20_000, np.random.default_rng(0)) - posterior.moments(nodes)[0]
    assert covariance_gap(draws, posterior.covariance_times(nodes, np.eye(nodes.size))) < 5


def test_other_observations_at_the_same_hyperparameters() -> None:
    W, design, observations = latent.problem(4)
    h, others = latent.hyperparameters(2), Observations.of(np.array([1, 1, 5]), np.array([0.3, 0.5, -1.0]))
    posterior = DensePosterior(field(design, observations), h).given(others)
    mean, covariance = latent.given(latent.prior(NAMES, W, design, h), others, h["noise"])
    np.testing.assert_allclose(posterior.moments(EVERYWHERE)[0], mean, atol=1e-6)
    np.testing.assert_allclose(posterior.moments(EVERYWHERE)[1], np.diag(covariance), atol=1e-6)


def test_terms_of_features_are_left_out_without_features() -> None:
    W, design, _ = latent.problem(4)
    without = Design.of(design.graph, np.zeros((len(W), 0)))
    assert [term.name for term in Prior.of(NAMES, without).terms] == ["field"]
    assert [term.name for term in Prior.of(NAMES, design).terms] == list(NAMES)

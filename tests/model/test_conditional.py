"""Conditioning against dense algebra, for every pattern of missing entries and every route to the answer."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

import oracle
from cases import random_case
from fields import Field, covariance_gap, fields, random_field
from graphmrf._typing import Floats
from graphmrf.errors import InvalidInputError
from graphmrf.graph import Graph
from graphmrf.model import GaussianMRF, conditional
from graphmrf.model.conditional import AttributePosterior, field_noise

seeds = st.integers(0, 10**6)


def iterating(mrf: GaussianMRF, graph: Graph, A: Floats) -> AttributePosterior:
    """No dense factors: channels where entries separate, coupled conjugate gradients elsewhere."""
    return replace(mrf.condition(graph, A), tolerance=1e-11, dense_entries=-1, exact_entries=-1)


@given(fields())
def test_mean_and_std_are_those_of_dense_algebra(field: Field) -> None:
    posterior = field.mrf.condition(field.graph, field.A)
    mean, covariance = field.given()
    np.testing.assert_allclose(posterior.mean, mean, atol=1e-8, rtol=1e-8)
    np.testing.assert_allclose(posterior.std[field.missing], np.sqrt(np.diag(covariance)), atol=1e-8, rtol=1e-8)
    np.testing.assert_array_equal(posterior.mean[~field.missing], field.truth[~field.missing])
    assert not posterior.std[~field.missing].any()
    assert not posterior.std_error.any()


@given(fields())
def test_iterated_mean_is_that_of_dense_algebra(field: Field) -> None:
    mean = iterating(field.mrf, field.graph, field.A).mean
    np.testing.assert_allclose(mean, field.given()[0], atol=1e-8, rtol=1e-8)


@given(seeds)
def test_std_through_channels_is_that_of_dense_algebra(seed: int) -> None:
    field = random_field(seed)
    rng = np.random.default_rng(seed)
    missing = (rng.random((len(field.W), 1)) < 0.7) & (rng.random((1, 3)) < 0.7)
    field = Field(field.W, field.mrf, field.truth, missing)
    std = replace(field.mrf.condition(field.graph, field.A), exact_entries=int(missing.any(axis=1).sum())).std
    np.testing.assert_allclose(std[missing], np.sqrt(np.diag(field.given()[1])), atol=1e-8, rtol=1e-8)


@given(seeds)
def test_perturbed_samples_solve_the_dense_system(seed: int) -> None:
    field = random_field(seed)
    draws = iterating(field.mrf, field.graph, field.A).sample(3, seed)
    mean, covariance = field.given()
    parts = field.mrf.channels
    noise = field_noise(field.graph, parts.strength, 3, np.random.default_rng(seed)) @ parts.U.T
    for s in range(3):
        expected = mean.copy()
        expected[field.missing] += covariance @ noise[:, s][field.missing]
        np.testing.assert_allclose(draws[s], expected, atol=1e-8, rtol=1e-8)


@pytest.mark.parametrize("seed", [2, 3, 5, 8])
def test_samples_have_the_posterior_covariance(seed: int) -> None:
    field = random_field(seed)
    posterior = field.mrf.condition(field.graph, field.A)
    draws = (posterior.sample(20_000, seed) - posterior.mean)[:, field.missing]
    bound = norm.isf(1e-6 / max(1, draws.shape[1] * (draws.shape[1] + 1)))
    assert covariance_gap(draws, field.given()[1]) < bound


@pytest.mark.parametrize("seed", [2, 3, 5, 8])
def test_estimated_std_lies_within_its_error_bar(seed: int) -> None:
    field = random_field(seed)
    posterior = replace(iterating(field.mrf, field.graph, field.A), tolerance=1e-8, probes=400)
    std, error = posterior.std[field.missing], posterior.std_error[field.missing]
    exact = np.sqrt(np.diag(field.given()[1]))
    assert (std > 0).all()
    assert (np.abs(std - exact) <= 5 * error + 1e-6 * exact).all()
    assert not posterior.std[~field.missing].any()


@given(fields(), seeds)
def test_conditioning_again_is_conditioning_at_once(field: Field, seed: int) -> None:
    later = np.random.default_rng(seed).random(field.missing.shape) < 0.3
    first = field.mrf.condition(field.graph, np.where(later, np.nan, field.A))
    twice = first.condition(np.where(later, field.A, np.nan))
    once = field.mrf.condition(field.graph, field.A)
    np.testing.assert_allclose(twice.mean, once.mean, atol=1e-8)
    np.testing.assert_allclose(twice.std, once.std, atol=1e-8)


@given(seeds)
def test_label_propagation_is_a_field_of_one_attribute(seed: int) -> None:
    case, omega = random_case(seed), 3.0
    posterior = GaussianMRF([[2.0]], [2.0 * omega]).condition(case.graph, case.y)
    expected = oracle.propagate(case.W, case.y, case.known, omega / (1 + omega))
    np.testing.assert_allclose(posterior.mean[:, 0], expected, atol=1e-8)


@given(fields(), seeds)
def test_label_propagation_marginalises_the_features(field: Field, seed: int) -> None:
    """Against the covariance of the labels alone: y_U = K_UL K_LL^-1 y_L."""
    n, known = len(field.W), np.random.default_rng(seed).random(len(field.W)) < 0.5
    K = np.linalg.inv(oracle.field_precision(field.W, field.mrf.H, field.mrf.C))[-n:, -n:]
    y = field.truth[:, -1] - field.mrf.mean[-1]
    A = np.full_like(field.truth, np.nan)
    A[known, -1] = field.truth[known, -1]
    actual = iterating(field.mrf, field.graph, A).mean[~known, -1] - field.mrf.mean[-1]
    expected = K[~known][:, known] @ np.linalg.solve(K[known][:, known], y[known])
    np.testing.assert_allclose(actual, expected, atol=1e-8, rtol=1e-8)


def paper_model(field: Field) -> GaussianMRF:
    return GaussianMRF(field.mrf.H, field.mrf.h, mean=field.mrf.mean)


@given(fields())
def test_linear_graph_convolution_is_the_mean_given_the_features(field: Field) -> None:
    mrf, A = paper_model(field), field.truth.copy()
    A[:, -1] = np.nan
    trend = (A[:, :-1] - mrf.mean[:-1]) @ mrf.beta()
    expected = mrf.mean[-1] + oracle.smooth(field.W, trend, mrf.alpha())
    np.testing.assert_allclose(mrf.condition(field.graph, A).mean[:, -1], expected, atol=1e-8, rtol=1e-8)


@given(fields(), seeds)
def test_residual_propagation_is_the_mean_given_features_and_labels(field: Field, seed: int) -> None:
    mrf, A = paper_model(field), field.truth.copy()
    A[np.random.default_rng(seed).random(len(A)) < 0.6, -1] = np.nan
    trend = mrf.mean[-1] + oracle.smooth(field.W, (A[:, :-1] - mrf.mean[:-1]) @ mrf.beta(), mrf.alpha())
    expected = oracle.residual_propagation(field.W, trend, A[:, -1], mrf.alpha())
    np.testing.assert_allclose(iterating(mrf, field.graph, A).mean[:, -1], expected, atol=1e-8, rtol=1e-8)


def test_everything_missing_gives_the_model_itself() -> None:
    field = random_field(11)
    posterior = field.mrf.condition(field.graph, np.full_like(field.truth, np.nan))
    np.testing.assert_allclose(posterior.mean, np.broadcast_to(field.mrf.mean, field.truth.shape))
    covariance = np.linalg.inv(oracle.field_precision(field.W, field.mrf.H, field.mrf.C))
    np.testing.assert_allclose(posterior.std.T.ravel(), np.sqrt(np.diag(covariance)), atol=1e-10)


@pytest.mark.parametrize("limit", [0, 10**6])
def test_nothing_missing_gives_the_values_back(limit: int) -> None:
    field = random_field(12)
    posterior = field.mrf.condition(field.graph, field.truth)
    posterior = replace(posterior, dense_entries=limit - 1, exact_entries=limit - 1)
    np.testing.assert_array_equal(posterior.mean, field.truth)
    np.testing.assert_array_equal(posterior.sample(2), np.stack([field.truth] * 2))
    assert not posterior.std.any()


def test_a_graph_without_nodes_has_an_empty_posterior() -> None:
    mrf, graph = GaussianMRF(np.eye(2), [1.0, 0.0]), Graph.from_edges([], [], n_nodes=0)
    posterior = mrf.condition(graph, np.zeros((0, 2)))
    assert posterior.mean.shape == posterior.std.shape == posterior.sample(1)[0].shape == (0, 2)


def test_many_nodes_without_edges_are_independent() -> None:
    rng = np.random.default_rng(0)
    A = rng.normal(size=(5000, 2))
    A[rng.random(A.shape) < 0.5] = np.nan
    mrf = GaussianMRF([[2.0, -1.0], [-1.0, 2.0]], [1.0, 0.0])
    posterior = mrf.condition(Graph.from_edges([], [], n_nodes=5000), A)
    second = np.isnan(A[:, 1]) & ~np.isnan(A[:, 0])
    np.testing.assert_allclose(posterior.mean[second, 1], A[second, 0] / 2, atol=1e-12)
    np.testing.assert_allclose(posterior.std[second, 1], np.sqrt(0.5))
    np.testing.assert_allclose(posterior.std_error, 0.0, atol=1e-6)


def test_a_node_without_edges_sees_its_own_attributes_only() -> None:
    graph = Graph.from_edges([0], [1], n_nodes=3)
    H = np.array([[2.0, -1.0], [-1.0, 2.0]])
    posterior = GaussianMRF(H, [5.0, 5.0]).condition(graph, [[1.0, 1.0], [1.0, np.nan], [3.0, np.nan]])
    assert posterior.mean[2, 1] == pytest.approx(1.5)
    assert posterior.std[2, 1] == pytest.approx(np.sqrt(0.5))


def test_a_large_scattered_pattern_keeps_to_the_error_bars() -> None:
    """Coupled iteration beyond all dense limits, checked on a subset by its own residual and by simulation."""
    rng = np.random.default_rng(0)
    u, v = rng.integers(0, 3000, (2, 9000))
    graph = Graph.from_edges(u, v, n_nodes=3000)
    mrf = GaussianMRF([[2.0, -1.5], [-1.5, 2.0]], C=[[3.0, 1.0], [1.0, 8.0]])
    truth = mrf.sample(graph, 1, 1)[0]
    missing = rng.random(truth.shape) < 0.9
    posterior = mrf.condition(graph, np.where(missing, np.nan, truth))
    assert (posterior.std_error[missing] > 0).all()
    z = ((truth - posterior.mean) / np.where(missing, posterior.std, 1.0))[missing]
    assert abs(np.mean(z**2) - 1) < 0.06
    residual = posterior.conditional.apply((posterior.mean - mrf.mean)[None])
    assert np.abs(residual).max() < 1e-6


def test_a_table_is_matched_by_name() -> None:
    mrf = GaussianMRF([[2.0, -1.0], [-1.0, 2.0]], [1.0, 2.0], names=["income", "rent"])
    graph = Graph.from_edges([0], [1])
    table = pd.DataFrame({"rent": [1.0, np.nan], "income": [1.0, 0.0]})
    np.testing.assert_allclose(mrf.condition(graph, table).mean, [[1.0, 1.0], [0.0, 0.5]])


def test_what_contradicts_the_known_values_is_an_error() -> None:
    field = random_field(3)
    posterior = field.mrf.condition(field.graph, field.truth)
    with pytest.raises(InvalidInputError, match="agree with what is known already"):
        posterior.condition(field.truth + 1.0)


def test_a_posterior_shows_its_size() -> None:
    field = random_field(3)
    assert repr(field.mrf.condition(field.graph, field.A)).startswith("AttributePosterior(n_nodes=14, attributes=3")


def test_tables_in_tables_out() -> None:
    graph = Graph.from_edges(["a", "b"], ["b", "c"])
    mrf = GaussianMRF([[2.0, -1.0], [-1.0, 2.0]], [1.0, 2.0], names=["x", "y"])
    A = pd.DataFrame({"y": [1.0, None, 2.0], "x": [0.5, 1.0, None]}, index=["c", "b", "a"])
    posterior = mrf.condition(graph, A)
    plain = mrf.condition(graph.with_ids(None), A.loc[["a", "b", "c"], ["x", "y"]].to_numpy())
    assert isinstance(plain.mean, np.ndarray)
    for name in ("mean", "std", "std_error"):
        table = getattr(posterior, name)
        assert (table.index.tolist(), table.columns.tolist()) == (["a", "b", "c"], ["x", "y"])
        np.testing.assert_allclose(table, getattr(plain, name))
    np.testing.assert_allclose(posterior.sample(3, random_state=1), plain.sample(3, random_state=1))


def test_errors_of_drawn_deviations_are_those_of_as_many_normal_draws() -> None:
    case = random_field(8)
    A = np.where(np.arange(case.truth.size).reshape(case.truth.shape) % 4, np.nan, case.truth)
    drawn = iterating(case.mrf, case.graph, A)
    explained = drawn.std**2 - drawn.conditional.block.node_variance
    missing = drawn.missing
    expected = 0.5 * explained * np.sqrt(2.0 / 64) / np.where(missing, drawn.std, 1.0)
    np.testing.assert_allclose(drawn.std_error, expected, atol=1e-12)
    assert (explained[missing] >= 0).all()
    more = replace(drawn, probes=256).std_error
    assert 0.3 < np.median(more[missing & (expected > 1e-6)] / expected[missing & (expected > 1e-6)]) < 0.8


def test_draws_are_taken_in_batches_that_fit_the_memory() -> None:
    batches = partial(conditional.batches_of_matrices, memory=8 * 10 * 3)
    assert batches(7, 10) == [range(3), range(3, 6), range(6, 7)]
    assert batches(2, 999) == [range(1), range(1, 2)]
    assert batches(2, 0) == [range(2)]
    assert batches(0, 10) == []

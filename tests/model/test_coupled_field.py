"""The coupled field, Gamma = H (x) I + C (x) N with any C: every verb against dense algebra, and the limits of C."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import norm

import oracle
from cases import random_case
from fields import Field, covariance_gap, random_missing
from graphmrf._typing import Floats
from graphmrf.errors import InvalidInputError
from graphmrf.graph import Graph
from graphmrf.model import GaussianMRF

seeds = st.integers(0, 10**6)


def random_coupling(rng: np.random.Generator, q: int, rank: int) -> tuple[Floats, Floats]:
    """H, and a C that is no diagonal, of some rank."""
    Z, G = rng.normal(size=(q, q)), rng.normal(size=(q, rank))
    C = 10.0 ** rng.uniform(-1, 1.5) * (G @ G.T)
    return Z @ Z.T + 0.1 * np.eye(q), (C + C.T) / 2


def coupled_field(seed: int, q: int = 3, rank: int | None = None) -> Field:
    """Weighted graphs for odd seeds, often with isolated nodes; C of any rank unless told."""
    rng = np.random.default_rng(seed)
    H, C = random_coupling(rng, q, int(rng.integers(1, q + 1)) if rank is None else rank)
    W = random_case(seed).W
    truth = rng.normal(size=(len(W), q))
    return Field(W, GaussianMRF(H, C=C, mean=rng.normal(size=q)), truth, random_missing(rng, *truth.shape))


def trend(field: Field) -> Floats:
    """E[y | X] = mean + (I + omega N)^-1 (X b + N X g), with b = -H_xy / H_yy and g = -C_xy / H_yy."""
    H, C, mean = field.mrf.H, field.mrf.C, field.mrf.mean
    X, N = field.truth[:, :-1] - mean[:-1], oracle.laplacian(field.W)
    b, g, omega = -H[:-1, -1] / H[-1, -1], -C[:-1, -1] / H[-1, -1], C[-1, -1] / H[-1, -1]
    smoother = np.eye(len(N)) + omega * N
    return np.asarray(mean[-1] + np.linalg.solve(smoother, X @ b + N @ X @ g))


@given(seeds)
def test_mean_given_features_smooths_features_and_their_differences(seed: int) -> None:
    field = coupled_field(seed)
    A = field.truth.copy()
    A[:, -1] = np.nan
    expected = trend(field)
    np.testing.assert_allclose(field.mrf.condition(field.graph, A).mean[:, -1], expected, atol=1e-8, rtol=1e-8)
    mrf, N = field.mrf, oracle.laplacian(field.W)
    X = A[:, :-1] - mrf.mean[:-1]
    by_names = mrf.mean[-1] + oracle.smooth(field.W, X @ mrf.beta() + N @ X @ mrf.edge_beta(), mrf.alpha())
    np.testing.assert_allclose(by_names, expected, atol=1e-8, rtol=1e-8)


@given(seeds)
def test_labels_add_their_propagated_residual(seed: int) -> None:
    field, rng = coupled_field(seed), np.random.default_rng(seed)
    A = field.truth.copy()
    A[rng.random(len(A)) < 0.6, -1] = np.nan
    expected = oracle.residual_propagation(field.W, trend(field), A[:, -1], field.mrf.alpha())
    np.testing.assert_allclose(field.mrf.condition(field.graph, A).mean[:, -1], expected, atol=1e-8, rtol=1e-8)


@given(seeds)
def test_any_pattern_is_conditioned_as_dense_algebra_does(seed: int) -> None:
    field = coupled_field(seed)
    posterior = field.mrf.condition(field.graph, field.A)
    mean, covariance = field.given()
    np.testing.assert_allclose(posterior.mean, mean, atol=1e-8, rtol=1e-8)
    np.testing.assert_allclose(posterior.std[field.missing], np.sqrt(np.diag(covariance)), atol=1e-8, rtol=1e-8)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_draws_given_the_known_have_the_dense_covariance(rank: int) -> None:
    field = coupled_field(rank, rank=rank)
    field = Field(field.W, field.mrf, field.truth, np.random.default_rng(rank).random(field.truth.shape) < 0.5)
    posterior = field.mrf.condition(field.graph, field.A)
    draws = (posterior.sample(20_000, random_state=rank) - posterior.mean)[:, field.missing]
    assert covariance_gap(draws, field.given()[1]) < norm.isf(1e-6 / draws.shape[1] ** 2)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_samples_have_the_dense_covariance(rank: int) -> None:
    field = coupled_field(10 + rank, rank=rank)
    draws = field.mrf.sample(field.graph, 20_000, random_state=rank) - field.mrf.mean
    covariance = np.linalg.inv(oracle.field_precision(field.W, field.mrf.H, field.mrf.C))
    columns = draws.transpose(0, 2, 1).reshape(len(draws), -1)
    assert covariance_gap(columns, covariance) < norm.isf(1e-6 / columns.shape[1] ** 2)


@given(seeds)
def test_log_likelihood_is_the_dense_density_with_and_without_holes(seed: int) -> None:
    field = coupled_field(seed)
    for A in (field.truth, np.where(field.missing & ~field.missing.all(), np.nan, field.truth)):
        dense = oracle.field_log_density(field.W, field.mrf.H, field.mrf.C, A - field.mrf.mean)
        np.testing.assert_allclose(field.mrf.log_likelihood(field.graph, A), dense, rtol=1e-8, atol=1e-8)


@given(seeds)
def test_foreseen_accuracy_is_the_ratio_of_dense_traces(seed: int) -> None:
    field = coupled_field(seed)
    labelled = np.random.default_rng(seed).random(len(field.W)) < 0.4
    labelled[:2] = False
    n, U = len(field.W), ~labelled
    gamma = oracle.field_precision(field.W, field.mrf.H, field.mrf.C)
    prior = np.linalg.inv(gamma)[-n:, -n:][U][:, U]
    spread = np.trace(prior) - prior.sum() / U.sum()
    given_all = np.linalg.inv(gamma[-n:, -n:][U][:, U])
    actual = field.mrf.expected_r2(field.graph, -1, labelled, "both")
    np.testing.assert_allclose(actual, 1 - np.trace(given_all) / spread, atol=1e-8, rtol=1e-8)


def ring(n: int) -> Graph:
    i = np.arange(n)
    return Graph.from_edges(np.tile(i, 2), np.concatenate([(i + 1) % n, (i + 3) % n]))


def drawn(graph: Graph, seed: int = 0, q: int = 2) -> Floats:
    H, C = random_coupling(np.random.default_rng(seed), q, q)
    return np.asarray(GaussianMRF(H, C=C).sample(graph, random_state=seed)[0])


@pytest.mark.parametrize("seed", [0, 1])
def test_a_general_optimiser_finds_nothing_better(seed: int) -> None:
    """BFGS over Cholesky factors of H and C, on the dense density."""
    graph = ring(40)
    A = drawn(graph, seed)
    fitted = GaussianMRF.fit(graph, A, center=False, coupled=True)

    def loss(theta: Floats) -> float:
        P, Q = (np.array([[a, 0.0], [b, c]]) for a, b, c in theta.reshape(2, 3))
        return -oracle.field_log_density(graph.adjacency.toarray(), P @ P.T, Q @ Q.T, A)

    start = np.concatenate([np.linalg.cholesky(M)[np.tril_indices(2)] for M in (np.eye(2), np.eye(2))])
    best = minimize(loss, start, method="BFGS")
    assert fitted.log_likelihood(graph, A) == pytest.approx(-best.fun, rel=1e-7)
    Q = np.array([[best.x[3], 0.0], [best.x[4], best.x[5]]])
    np.testing.assert_allclose(fitted.C, Q @ Q.T, rtol=2e-3, atol=1e-3 * np.abs(fitted.C).max())


@pytest.mark.slow
@given(seeds)
@settings(max_examples=25)
def test_every_direction_from_the_fit_is_downhill(seed: int) -> None:
    graph, rng = ring(60), np.random.default_rng(seed)
    A = drawn(graph, seed, q=3)
    fitted = GaussianMRF.fit(graph, A, coupled=True)
    best = fitted.log_likelihood(graph, A)
    for _ in range(5):
        E, F = np.eye(3) + 0.02 * rng.normal(size=(2, 3, 3))
        nudged = GaussianMRF(E @ fitted.H @ E.T, C=F @ fitted.C @ F.T, mean=fitted.mean)
        assert nudged.log_likelihood(graph, A) < best + 1e-9 * abs(best)


@given(seeds)
def test_a_diagonal_C_is_the_uncoupled_model(seed: int) -> None:
    field, h = coupled_field(seed), np.random.default_rng(seed).exponential(size=3)
    one, other = GaussianMRF(field.mrf.H, C=np.diag(h)), GaussianMRF(field.mrf.H, h)
    graph, labelled = field.graph, np.arange(len(field.W)) % 2 == 0
    assert not one.is_coupled
    assert not one.edge_beta().any()
    assert one.log_likelihood(graph, field.truth) == other.log_likelihood(graph, field.truth)
    np.testing.assert_array_equal(one.condition(graph, field.A).mean, other.condition(graph, field.A).mean)
    np.testing.assert_array_equal(one.sample(graph, 2, random_state=1), other.sample(graph, 2, random_state=1))
    assert one.expected_r2(graph, 0, labelled) == other.expected_r2(graph, 0, labelled)


def test_one_attribute_has_nothing_to_couple() -> None:
    graph = ring(50)
    A = GaussianMRF([[1.0]], [4.0]).sample(graph, random_state=3)[0]
    plain, coupled = (GaussianMRF.fit(graph, A, coupled=coupled) for coupled in (False, True))
    np.testing.assert_allclose(coupled.H, plain.H, rtol=1e-6)
    np.testing.assert_allclose(coupled.C, plain.C, rtol=1e-6)
    assert coupled.edge_beta().shape == (0,)


def test_without_edges_there_is_no_coupling_to_find() -> None:
    graph, A = Graph.from_edges([], [], n_nodes=30), np.random.default_rng(0).normal(size=(30, 2))
    fitted = GaussianMRF.fit(graph, A, coupled=True)
    assert not fitted.C.any()
    np.testing.assert_allclose(np.linalg.inv(fitted.H), np.cov(A.T, bias=True), rtol=1e-9)
    given_C = GaussianMRF(fitted.H, C=[[2.0, 1.0], [1.0, 2.0]], mean=fitted.mean)
    assert given_C.log_likelihood(graph, A) == pytest.approx(fitted.log_likelihood(graph, A))


def test_an_isolated_node_sees_its_own_attributes_only() -> None:
    graph = Graph.from_edges([0], [1], n_nodes=3)
    mrf = GaussianMRF([[2.0, -1.0], [-1.0, 2.0]], C=[[5.0, 4.0], [4.0, 5.0]])
    posterior = mrf.condition(graph, [[1.0, 1.0], [1.0, np.nan], [3.0, np.nan]])
    assert posterior.mean[2, 1] == pytest.approx(1.5)
    assert posterior.std[2, 1] == pytest.approx(np.sqrt(0.5))


def test_a_zero_C_ignores_the_edges() -> None:
    graph, H = ring(12), np.array([[2.0, -1.0], [-1.0, 2.0]])
    A = np.random.default_rng(0).normal(size=(12, 2))
    A[::2, 1] = np.nan
    mean = GaussianMRF(H, C=np.zeros((2, 2))).condition(graph, A).mean
    np.testing.assert_allclose(mean[::2, 1], A[::2, 0] / 2)


def test_the_units_of_weights_do_not_matter_but_their_ratios_do() -> None:
    field = coupled_field(3)
    mean = field.mrf.condition(field.graph, field.A).mean
    np.testing.assert_allclose(field.mrf.condition(Graph(5.0 * field.W), field.A).mean, mean, atol=1e-10)
    assert np.abs(field.mrf.condition(Graph(field.W**2), field.A).mean - mean).max() > 1e-3


def test_a_saved_model_gives_the_same_answers(tmp_path: Path) -> None:
    graph = ring(40)
    A = drawn(graph)
    fitted = GaussianMRF.fit(graph, A, coupled=True)
    fitted.save(tmp_path / "coupled.json")
    again = GaussianMRF.load(tmp_path / "coupled.json")
    assert again.is_coupled
    A[::3, 1] = np.nan
    np.testing.assert_array_equal(again.condition(graph, A).mean, fitted.condition(graph, A).mean)
    np.testing.assert_array_equal(again.sample(graph, random_state=4), fitted.sample(graph, random_state=4))


def test_a_C_with_a_negative_direction_is_an_error() -> None:
    with pytest.raises(InvalidInputError, match="C must be positive semidefinite"):
        GaussianMRF(np.eye(2), C=[[1.0, 2.0], [2.0, 1.0]])

"""Fits with missing entries: the observed-data likelihood of dense algebra, and its maximum."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from cases import random_case
from graphmrf._typing import Floats
from graphmrf.errors import ConvergenceError, InvalidInputError
from graphmrf.graph import Graph
from graphmrf.model import Diagnostics, GaussianMRF, density_of_states, em
from graphmrf.model.attributes import standardise
from graphmrf.model.em import Incomplete, e_step, fit_incomplete, missing_log_determinant, observed_log_likelihood
from graphmrf.model.fit import fit_maximum_likelihood, log_density
from graphmrf.model.maximise import FitProblem
from graphmrf.model.parameters import Parameters

seeds = st.integers(0, 10**6)


def ring(n: int) -> Graph:
    i = np.arange(n)
    return Graph.from_edges(np.tile(i, 2), np.concatenate([(i + 1) % n, (i + 3) % n]))


def attributes(graph: Graph, seed: int, missing: float) -> Floats:
    model = GaussianMRF([[2.0, -1.0], [-1.0, 1.5]], [4.0, 6.0], mean=[10.0, -3.0])
    A: Floats = model.sample(graph, random_state=seed)[0]
    A[np.random.default_rng(seed).random(A.shape) < missing] = np.nan
    return A


def report(mrf: GaussianMRF) -> Diagnostics:
    assert mrf.diagnostics is not None
    return mrf.diagnostics


@given(seeds)
def test_pairs_of_observed_entries_give_all_of_the_products_where_none_is_missing(seed: int) -> None:
    case = random_case(seed)
    found, share = em.edge_pairs(case.graph, case.X, np.ones_like(case.X))
    np.testing.assert_allclose(found, case.X.T @ oracle.laplacian(case.W) @ case.X, atol=1e-9 * np.abs(found).max())
    np.testing.assert_allclose(share, 1.0)


def test_a_likelihood_of_dense_algebra_has_no_error() -> None:
    graph = ring(40)
    incomplete = Incomplete(graph, attributes(graph, 0, 0.3))
    parameters = Parameters(np.eye(2), np.eye(2), np.zeros(2))
    assert observed_log_likelihood(incomplete, parameters, density_of_states(graph))[1] == 0.0


@given(seeds)
def test_expectations_are_those_of_dense_algebra(seed: int) -> None:
    case, rng = random_case(seed, n=9), np.random.default_rng(seed)
    Z, B = rng.normal(size=(2, 2)), rng.normal(size=(9, 2))
    H, C = Z @ Z.T + 0.2 * np.eye(2), np.diag(rng.exponential(size=2))
    B[rng.random(B.shape) < 0.5] = np.nan
    B[:2] = [[0.3, 0.4], [np.nan, np.nan]]
    filled, K0, K1 = e_step(Incomplete(case.graph, B), Parameters(H, C, np.zeros(2)))
    mean, covariance = oracle.field_given(case.W, H, C, B)
    full = np.zeros((18, 18))
    hidden = np.isnan(B.T.ravel())
    full[np.ix_(hidden, hidden)] = covariance
    blocks = full.reshape(2, 9, 2, 9)
    np.testing.assert_allclose(filled, mean, atol=1e-9)
    np.testing.assert_allclose(K0, np.einsum("iuju->ij", blocks), atol=1e-9)
    np.testing.assert_allclose(K1, np.einsum("iujv,uv->ij", blocks, oracle.laplacian(case.W)), atol=1e-9)


@pytest.mark.parametrize("center", [True, False, "fitted"])
@pytest.mark.parametrize("coupled", [True, False])
def test_optimum_is_that_of_the_observed_likelihood(center: Any, coupled: bool) -> None:
    graph = ring(40)
    A = attributes(graph, 1, 0.3)
    mrf = GaussianMRF.fit(graph, A, center=center, coupled=coupled)
    d = report(mrf)
    W = graph.adjacency.toarray()
    dense = oracle.field_log_density(W, mrf.H, mrf.C, A - mrf.mean)
    np.testing.assert_allclose(d.log_likelihood, dense, rtol=1e-9)
    assert d.gradient_norm < 1e-6
    assert d.H_std is None
    rng = np.random.default_rng(0)
    for _ in range(20):
        E, F = rng.normal(size=(2, 2, 2)) * 0.02
        other_H = (np.eye(2) + E) @ mrf.H @ (np.eye(2) + E).T
        other_C = (np.eye(2) + F) @ mrf.C @ (np.eye(2) + F).T if coupled else mrf.C * np.exp(np.diag(F[0]))
        assert oracle.field_log_density(W, other_H, other_C, A - mrf.mean) < dense + 1e-9
        if center == "fitted":
            assert oracle.field_log_density(W, mrf.H, mrf.C, A - mrf.mean - E[0]) < dense


def test_slope_at_the_optimum_vanishes_by_finite_differences() -> None:
    graph = ring(60)
    A = attributes(graph, 2, 0.25)
    mrf = GaussianMRF.fit(graph, A)
    W, e = graph.adjacency.toarray(), 1e-4

    def value(dH: Floats, dC: Floats) -> float:
        return oracle.field_log_density(W, mrf.H + dH, mrf.C + dC, A - mrf.mean) / 60

    zero, unit = np.zeros((2, 2)), np.array([[0.0, 1.0], [1.0, 0.0]])
    for move in (np.diag([1.0, 0.0]), np.diag([0.0, 1.0]), unit):
        assert abs(value(e * move, zero) - value(-e * move, zero)) / (2 * e) < 1e-6
    for move in (np.diag([1.0, 0.0]), np.diag([0.0, 1.0])):
        assert abs(value(zero, e * move) - value(zero, -e * move)) / (2 * e) < 1e-6


@pytest.mark.parametrize("center", [True, "fitted"])
def test_nothing_missing_gives_the_complete_fit(center: Any) -> None:
    graph = ring(50)
    A = attributes(graph, 3, 0.0)
    complete, (B, _, scale) = GaussianMRF.fit(graph, A, center=center), standardise(A, ("a", "b"), centre=True)
    problem = FitProblem(density_of_states(graph), ("a", "b"), coupled=False, mean_is_free=center == "fitted")
    found, _, _ = fit_incomplete(Incomplete(graph, B), problem)
    likelihood, _ = observed_log_likelihood(Incomplete(graph, B), found, problem.states)
    np.testing.assert_allclose(found.scaled(scale).H, complete.H, rtol=1e-9)
    np.testing.assert_allclose(found.scaled(scale).C, complete.C, rtol=1e-9)
    np.testing.assert_allclose(likelihood - 50 * np.log(scale).sum(), report(complete).log_likelihood, rtol=1e-12)


@pytest.mark.slow
@given(seeds)
@settings(max_examples=8)
def test_nodes_without_any_value_do_not_break_the_fit(seed: int) -> None:
    graph = ring(45)
    A = attributes(graph, seed, 0.2)
    A[::5] = np.nan
    mrf = GaussianMRF.fit(graph, A)
    assert report(mrf).n_nodes == int((~np.isnan(A)).any(axis=1).sum())
    assert report(mrf).gradient_norm < 1e-6


def test_probed_rounds_agree_with_exact_ones() -> None:
    graph = ring(600)
    A = attributes(graph, 4, 0.3)
    exact, complete = GaussianMRF.fit(graph, A), GaussianMRF.fit(graph, attributes(graph, 4, 0.0))
    problem = FitProblem(density_of_states(graph), ("a", "b"), coupled=False, mean_is_free=False)
    probed, d = fit_maximum_likelihood(graph, A, problem, centre=True, exact_entries=0)
    errors = report(complete)
    assert errors.h_std is not None
    assert errors.H_std is not None
    assert (np.abs(np.diag(probed.C) - exact.h) < 0.5 * errors.h_std).all()
    assert (np.abs(probed.H - exact.H) < 0.5 * errors.H_std).all()
    assert d.log_likelihood_error > 0
    assert abs(d.log_likelihood - exact.log_likelihood(graph, A)) < 4 * d.log_likelihood_error
    assert any("probes" in flag for flag in d.flags)


@pytest.mark.slow
@pytest.mark.parametrize("coupled", [True, False])
def test_one_attribute_with_missing_entries_is_fitted_by_quadrature_as_exactly(coupled: bool) -> None:
    graph = ring(1200)
    A = attributes(graph, 4, 0.0)
    A[np.random.default_rng(0).random(1200) < 0.6, 1] = np.nan
    problem = FitProblem(density_of_states(graph), ("a", "b"), coupled=coupled, mean_is_free=False)
    exact, known = fit_maximum_likelihood(graph, A, problem, centre=True)
    probed, d = fit_maximum_likelihood(graph, A, problem, centre=True, exact_entries=0)
    np.testing.assert_allclose(probed.H, exact.H, rtol=0.02, atol=0.02)
    np.testing.assert_allclose(probed.C, exact.C, rtol=0.02, atol=0.05)
    assert 0 < d.log_likelihood_error < 2
    assert abs(d.log_likelihood - known.log_likelihood) < 4 * d.log_likelihood_error


@pytest.mark.slow
@given(seeds)
@settings(max_examples=5)
def test_quadrature_of_many_probes_gives_the_sums_of_dense_algebra(seed: int) -> None:
    case, rng = random_case(seed, n=12), np.random.default_rng(seed)
    B, Z = rng.normal(size=(12, 2)), rng.normal(size=(2, 2))
    parameters = Parameters(Z @ Z.T + 0.2 * np.eye(2), np.diag(rng.exponential(size=2)), np.zeros(2))
    B[rng.random(12) < 0.5, 1] = np.nan
    B[0, 1] = np.nan
    exact, probed = Incomplete(case.graph, B), Incomplete(case.graph, B, most_probes=2_000, exact_entries=0)
    for one, other in zip(e_step(exact, parameters), e_step(probed, parameters), strict=True):
        np.testing.assert_allclose(other, one, rtol=0.1, atol=0.1 * max(np.abs(one).max(), 1e-3))
    known, estimated = (
        observed_log_likelihood(each, parameters, density_of_states(case.graph)) for each in (exact, probed)
    )
    assert abs(estimated[0] - known[0]) < 6 * estimated[1] + 1e-9


def test_probed_likelihood_lies_within_its_error() -> None:
    graph = ring(300)
    A = attributes(graph, 5, 0.4)
    for C in ([[4.0, 0.0], [0.0, 6.0]], [[400.0, 100.0], [100.0, 600.0]], [[0.0, 0.0], [0.0, 0.0]]):
        mrf = GaussianMRF([[2.0, -1.0], [-1.0, 1.5]], C=C, mean=[10.0, -3.0])
        exact = mrf.log_likelihood(graph, A)
        probed = log_density(graph, A, mrf.parameters, density_of_states(graph), exact_entries=0)
        assert abs(probed - exact) < 0.005 * abs(exact) + 2.0


def test_the_determinant_of_separate_edges_is_exact_given_the_probes() -> None:
    """At the eigenvalue 2, the largest there is, the integrand is constant: no quadrature error is left."""
    pairs, strength = 10, 1e4
    graph = Graph.from_edges(2 * np.arange(pairs), 2 * np.arange(pairs) + 1)
    incomplete = Incomplete(graph, np.full((2 * pairs, 2), np.nan), exact_entries=0)
    Z = np.concatenate(list(incomplete.rademacher()))
    unlike = (Z[:, ::2] != Z[:, 1::2]).sum(axis=(1, 2))  # unlike signs: an eigenvector of 2, of squared norm 2
    found = missing_log_determinant(incomplete, Parameters(np.eye(2), strength * np.eye(2), np.zeros(2)))
    assert found[0] == pytest.approx(2.0 * np.log1p(2.0 * strength) * unlike.mean(), rel=1e-9)


def test_probes_are_drawn_one_by_one_where_two_are_too_large() -> None:
    graph = ring(40)
    B = attributes(graph, 0, 0.3)
    incomplete = Incomplete(graph, B, most_probes=5, batch_entries=B.size - 1)
    stacks = list(incomplete.rademacher())
    assert [len(stack) for stack in stacks] == [1] * 5
    for Z in np.concatenate(stacks):
        np.testing.assert_array_equal(np.abs(Z), incomplete.missing)
    assert len({Z.tobytes() for Z in stacks}) == 5


def test_attribute_of_one_side_of_a_bipartite_graph_is_not_taken_for_rough() -> None:
    i = np.arange(40)
    graph = Graph.from_edges(np.tile(i, 2), np.concatenate([(i + 1) % 40, (i + 3) % 40]))
    A = np.where(i % 2 == 1, np.nan, GaussianMRF([[1.0]], [100.0]).sample(graph)[0][:, 0])[:, None]
    mrf = GaussianMRF.fit(graph, A)
    assert mrf.diagnostics is not None
    W, seen = graph.adjacency.toarray(), ~np.isnan(A[:, 0])
    for omega in 10.0 ** np.linspace(-2, 3, 30):
        K = np.linalg.inv(np.eye(40) + omega * oracle.laplacian(W))[seen][:, seen]
        z = A[seen, 0] - mrf.mean[0]
        H = np.array([[seen.sum() / (z @ np.linalg.solve(K, z))]])  # the best for this omega
        assert oracle.field_log_density(W, H, omega * H, A - mrf.mean) < mrf.diagnostics.log_likelihood + 1e-6


def test_collinear_attributes_with_holes_are_named() -> None:
    graph = ring(60)
    A = attributes(graph, 6, 0.0)
    A = np.column_stack([A, A.sum(axis=1)])
    A[:10, 2] = np.nan
    with pytest.raises(InvalidInputError, match="but a0, a1, a2 are"):
        GaussianMRF.fit(graph, A)


def test_a_fit_that_does_not_settle_says_what_to_leave_out() -> None:
    graph = ring(40)
    A = attributes(graph, 0, 0.4)
    problem = FitProblem(density_of_states(graph), ("a", "b"), coupled=False, mean_is_free=True)
    with pytest.raises(ConvergenceError, match="did not converge in 1 rounds; leave out attributes that are missing"):
        fit_incomplete(Incomplete(graph, A - np.nanmean(A, axis=0)), problem, rounds=1)

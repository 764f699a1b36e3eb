"""The fit for imputation: the maximum of the observed likelihood under its prior, by dense algebra."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from graphmrf._typing import Floats
from graphmrf.graph import Graph
from graphmrf.linalg.spectrum import density_of_states
from graphmrf.model import GaussianMRF
from graphmrf.model.conditional import condition
from graphmrf.model.em import Incomplete, fit_incomplete
from graphmrf.model.fit import fit_for_imputation, log_density
from graphmrf.model.likelihood import statistics
from graphmrf.model.maximise import FitProblem, best_mean

seeds = st.integers(0, 10**6)


def ring(n: int) -> Graph:
    i = np.arange(n)
    return Graph.from_edges(np.tile(i, 2), np.concatenate([(i + 1) % n, (i + 2) % n]))


def attributes(graph: Graph, seed: int, share: float = 0.2) -> Floats:
    rng = np.random.default_rng(seed)
    H = [[2.0, -0.8, 0.2], [-0.8, 1.0, 0.1], [0.2, 0.1, 1.5]]
    mrf = GaussianMRF(H, C=[[4.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 0.5]])
    A = mrf.sample(graph, random_state=seed)[0]
    return np.where(rng.random(A.shape) < share, np.nan, A)


def objective(graph: Graph, H: Floats, C: Floats, B: Floats, prior: float) -> float:
    """Log density of what is observed, plus that of `prior` nodes of white noise on a graph alike."""
    W = graph.adjacency.toarray()
    values = np.linalg.eigvalsh(oracle.laplacian(W))
    spread = np.mean([np.linalg.slogdet(H + value * C)[1] for value in values])
    white = np.trace(H) + values.mean() * np.trace(C)
    return oracle.field_log_density(W, H, C, B) + 0.5 * prior * float(spread - white)


@given(seeds, st.sampled_from([0.5, 3.0, 20.0]))
@settings(max_examples=3)
def test_no_direction_is_uphill_from_the_settled_fit(seed: int, prior: float) -> None:
    graph, rng = ring(30), np.random.default_rng(seed)
    B = attributes(graph, seed)
    problem = FitProblem(density_of_states(graph), ("a", "b", "c"), coupled=True, mean_is_free=False, prior=prior)
    point, _, _ = fit_incomplete(Incomplete(graph, B), problem, change=1e-9)
    assert not point.mean.any()
    best = objective(graph, point.H, point.C, B, prior)
    for _ in range(8):
        E, F = np.eye(3) + 0.02 * rng.normal(size=(2, 3, 3))
        assert objective(graph, E @ point.H @ E.T, F @ point.C @ F.T, B, prior) < best + 1e-7


def test_a_prior_says_nothing_of_the_mean() -> None:
    graph = ring(30)
    data = statistics(graph, np.column_stack([attributes(graph, 0, share=0.0), np.ones(30)]))
    problem = FitProblem(density_of_states(graph), ("a", "b", "c"), coupled=True, mean_is_free=True, prior=20.0)
    found, _ = problem.best(data, None)
    np.testing.assert_allclose(found.mean, best_mean(data, found), atol=1e-8)
    assert np.abs(found.mean).min() > 1e-3


@given(seeds)
@settings(max_examples=3)
def test_a_light_prior_gives_nearly_the_maximum_of_likelihood(seed: int) -> None:
    graph = ring(50)
    A = attributes(graph, seed)
    exact, quick = GaussianMRF.fit(graph, A, coupled=True), fit_for_imputation(graph, A, prior=1e-3)
    assert exact.log_likelihood(graph, A) - log_density(graph, A, quick, density_of_states(graph)) < 0.1


def test_units_do_not_matter() -> None:
    graph, units = ring(50), np.array([1e-6, 1.0, 1e5])
    A = attributes(graph, 1)
    one, other = fit_for_imputation(graph, A), fit_for_imputation(graph, A * units)
    np.testing.assert_allclose(other.H * np.outer(units, units), one.H, rtol=1e-8)
    np.testing.assert_allclose(other.mean, one.mean * units, rtol=1e-12)


def test_copies_of_attributes_have_a_fit_that_knows_them() -> None:
    graph, rng = ring(60), np.random.default_rng(0)
    A = rng.normal(size=(60, 3))
    A[:, 1] = 2.0 * A[:, 0]
    A[3, 1] = A[5, 2] = np.nan
    filled = condition(fit_for_imputation(graph, A, prior=0.01), graph, A).mean
    assert filled[3, 1] == pytest.approx(2.0 * A[3, 0], abs=0.05)


def test_more_attributes_than_nodes_have_a_fit() -> None:
    graph, A = ring(12), np.random.default_rng(0).normal(size=(12, 20))
    A[3, 1] = A[5, 7] = np.nan
    filled = condition(fit_for_imputation(graph, A, prior=20.0), graph, A).mean
    assert np.abs(filled).max() == np.nanmax(np.abs(A))


def test_a_graph_without_edges_has_a_fit() -> None:
    graph = Graph.from_edges([], [], n_nodes=40)
    A = np.random.default_rng(0).normal(size=(40, 2)) @ [[1.0, 0.9], [0.0, 0.5]]
    A[0, 1] = np.nan
    found = fit_for_imputation(graph, A, prior=1e-6)
    assert not found.C.any()
    slope = np.cov(A[1:].T)[0, 1] / np.var(A[1:, 0], ddof=1)
    expected = found.mean[1] + slope * (A[0, 0] - found.mean[0])
    assert condition(found, graph, A).mean[0, 1] == pytest.approx(expected, abs=0.1)


def test_probes_come_near_to_exact_sums() -> None:
    graph = ring(200)
    A = attributes(graph, 5, share=0.4)
    fits = fit_for_imputation(graph, A), fit_for_imputation(graph, A, exact_entries=0)
    exact, probed = (log_density(graph, A, found, density_of_states(graph)) for found in fits)
    assert abs(exact - probed) < 1.0
    one, other = (condition(found, graph, A).mean for found in fits)
    assert 0 < np.std(one - other) < 0.1 * np.std(one)

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cases
import oracle
from families import FAMILIES, expander, grid, path, pieces
from graphmrf._typing import Bools, Floats
from graphmrf.graph import Graph
from graphmrf.linalg import conditional_variance, draw_conditional, loo_precision, multiply, propagate, smooth
from graphmrf.linalg.limits import Limits

ALPHAS = [0.0, 0.3, 0.9, 0.999, 0.9999]
PROBES = Limits(dense_variance=0)


def drawn_variance(graph: Graph, known: Bools, alpha: float, *, probes: int = 64, seed: int = 0) -> Floats:
    return conditional_variance(graph, known, alpha, random_state=seed, probes=probes, limits=PROBES)


def probed_precision(graph: Graph, known: Bools, alpha: float, *, seed: int = 0) -> Floats:
    return loo_precision(graph, known, alpha, random_state=seed, limits=PROBES)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_small_graphs_have_exact_variances(name: str, share: float) -> None:
    graph = FAMILIES[name]
    W, known = graph.adjacency.toarray(), np.random.default_rng(0).random(graph.n_nodes) < share
    for alpha in ALPHAS:
        expected = oracle.conditional_variance(W, known, alpha)
        np.testing.assert_allclose(conditional_variance(graph, known, alpha), expected, rtol=1e-7, atol=1e-12)


@given(case=cases.cases(), alpha=st.floats(0, 0.9999))
def test_leave_one_out_is_leaving_one_out(case: cases.Case, alpha: float) -> None:
    residual, spread = oracle.leave_one_out(case.W, case.truth, case.known, alpha)
    P = loo_precision(case.graph, case.known, alpha)
    np.testing.assert_allclose(1 / P, spread, rtol=1e-6)
    filled = propagate(case.graph, case.truth[:, None], case.known, alpha, tolerance=1e-12)
    Pr = filled + alpha / (1 - alpha) * (filled - multiply(case.graph, filled))
    np.testing.assert_allclose(Pr[case.known, 0] / P, residual, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", FAMILIES)
def test_all_or_no_known_nodes_have_a_leave_one_out_precision(name: str) -> None:
    graph = FAMILIES[name]
    everything = np.ones(graph.n_nodes, dtype=bool)
    precision = oracle.precision(graph.adjacency.toarray(), 0.9)
    np.testing.assert_allclose(loo_precision(graph, everything, 0.9), np.diag(precision))
    assert loo_precision(graph, ~everything, 0.9).shape == (0,)
    assert loo_precision(graph, everything, 0.0).tolist() == [1.0] * graph.n_nodes


@pytest.mark.parametrize("seed", range(5))
def test_few_probes_leave_a_precision_within_its_bounds(seed: int) -> None:
    graph, known = FAMILIES["star"], np.random.default_rng(0).random(FAMILIES["star"].n_nodes) < 0.3
    found = loo_precision(graph, known, 0.99, random_state=seed, probes=4, limits=PROBES)
    assert found.min() >= 1.0
    assert found.max() <= 1.0 + 0.99 / (1.0 - 0.99)


def test_many_known_nodes_are_taken_some_at_a_time() -> None:
    graph, known = path(1200), np.arange(1200) % 12 != 0  # more than are taken at once
    inverse = np.linalg.inv(oracle.precision(graph.adjacency.toarray(), 0.95))
    expected = np.diag(np.linalg.inv(inverse[known][:, known]))
    np.testing.assert_allclose(loo_precision(graph, known, 0.95), expected)


PROBED = {"grid": grid(18), "expander": expander(300), "path": path(200), "pieces": pieces()}


@pytest.mark.parametrize("name", PROBED)
@pytest.mark.parametrize("share", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("alpha", [0.5, 0.9, 0.999])
def test_draws_come_close_to_the_exact_diagonals(name: str, share: float, alpha: float) -> None:
    graph = PROBED[name]
    known = np.random.default_rng(3).random(graph.n_nodes) < share
    exact = conditional_variance(graph, known, alpha), loo_precision(graph, known, alpha)
    probed = drawn_variance(graph, known, alpha), probed_precision(graph, known, alpha)
    assert not probed[0][known].any()
    for estimate, truth in zip((probed[0][~known], probed[1]), (exact[0][~known], exact[1]), strict=True):
        error = np.sqrt(estimate / truth) - 1
        assert (error**2).sum() <= 0.09**2 * error.size


def test_the_level_of_a_component_without_known_nodes_needs_no_luck() -> None:
    graph, known = expander(300), np.zeros(300, dtype=bool)
    exact = conditional_variance(
        graph, known, 0.99999
    )  # nearly all of it is the level, which draws tell to 18 per cent
    np.testing.assert_allclose(drawn_variance(graph, known, 0.99999), exact, rtol=0.02)


def test_callers_need_not_give_a_seed() -> None:
    graph, known = PROBED["expander"], np.arange(300) % 3 == 0
    expected = loo_precision(graph, known, 0.9)
    np.testing.assert_allclose(loo_precision(graph, known, 0.9, limits=PROBES), expected, rtol=0.3)


@pytest.mark.parametrize("name", ["edgeless", "single"])
def test_isolated_nodes_need_no_luck(name: str) -> None:
    none = np.zeros(FAMILIES[name].n_nodes, dtype=bool)
    assert (drawn_variance(FAMILIES[name], none, 0.9) == 1.0).all()
    assert (probed_precision(FAMILIES[name], ~none, 0.9) == 1.0).all()


def test_more_draws_come_closer() -> None:
    graph, known = PROBED["grid"], np.arange(324) % 5 == 0
    exact = conditional_variance(graph, known, 0.99)
    few, many = (drawn_variance(graph, known, 0.99, probes=probes) - exact for probes in (20, 2000))
    assert np.linalg.norm(many) < 0.3 * np.linalg.norm(few)


def test_the_seed_decides_the_draws() -> None:
    graph, known = PROBED["expander"], np.arange(300) % 3 == 0
    for diagonal in (drawn_variance, probed_precision):
        first = diagonal(graph, known, 0.9, seed=4)
        np.testing.assert_array_equal(first, diagonal(graph, known, 0.9, seed=4))
        assert (first != diagonal(graph, known, 0.9, seed=5)).any()


def test_without_smoothing_unknown_nodes_are_independent() -> None:
    graph, known = path(6), np.arange(6) < 2
    assert conditional_variance(graph, known, 0.0, limits=PROBES).tolist() == [0, 0, 1, 1, 1, 1]
    B = np.arange(12.0).reshape(6, 2)
    np.testing.assert_array_equal(smooth(graph, B, 0.0, unknown=~known), np.where(known[:, None], 0.0, B))


def test_draws_of_unknown_nodes_have_their_covariance() -> None:
    graph, known = Graph.from_edges([0, 1, 2], [1, 2, 0], n_nodes=5), np.array([False, True, False, False, False])
    covariance = np.zeros((5, 5))
    inverse = np.linalg.inv(oracle.precision(graph.adjacency.toarray(), 0.8)[~known][:, ~known])
    covariance[np.ix_(~known, ~known)] = inverse
    draws = draw_conditional(graph, known, 0.8, 20_000, np.random.default_rng(0))
    np.testing.assert_allclose(draws @ draws.T / 20_000, covariance, atol=0.04)

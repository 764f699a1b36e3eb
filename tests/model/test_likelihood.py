"""The likelihood against dense algebra, its derivatives against finite differences."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import oracle
from cases import random_case
from graphmrf._typing import Floats
from graphmrf.graph import Graph
from graphmrf.linalg.spectrum import density_of_states
from graphmrf.model.likelihood import derivatives, log_determinant, log_likelihood, log_likelihood_error, statistics
from graphmrf.model.parameters import channels

seeds = st.integers(0, 10**6)


def symmetric(rng: np.random.Generator, q: int) -> Floats:
    M = rng.normal(size=(q, q))
    return (M + M.T) / 2


def positive(rng: np.random.Generator, q: int) -> Floats:
    M = rng.normal(size=(q, q))
    return M @ M.T + 0.3 * np.eye(q)


@given(seeds)
def test_statistics_are_dense_products(seed: int) -> None:
    case = random_case(seed)
    data, N = statistics(case.graph, case.X), oracle.laplacian(case.W)
    np.testing.assert_allclose(data.M0, case.X.T @ case.X)
    np.testing.assert_allclose(data.M1, case.X.T @ N @ case.X, atol=1e-10 * np.abs(data.M0).max())
    shift = np.array([0.3, -2.0])
    with_ones = statistics(case.graph, np.column_stack([case.X, np.ones(len(case.X))])).centred(shift)
    expected = statistics(case.graph, case.X - shift)
    np.testing.assert_allclose(with_ones.M0, expected.M0, atol=1e-9 * np.abs(data.M0).max())
    np.testing.assert_allclose(with_ones.M1, expected.M1, atol=1e-9 * np.abs(data.M0).max())


@given(seeds)
def test_log_likelihood_and_determinant_are_dense_ones(seed: int) -> None:
    case, rng = random_case(seed), np.random.default_rng(seed)
    H, C, A = positive(rng, 3), positive(rng, 3), rng.normal(size=(14, 3))
    parts, states = channels(H, C), density_of_states(case.graph)
    gamma = oracle.field_precision(case.W, H, C)
    np.testing.assert_allclose(log_determinant(parts, states), np.linalg.slogdet(gamma)[1], rtol=1e-9)
    expected = oracle.field_log_density(case.W, H, C, A)
    np.testing.assert_allclose(log_likelihood(parts, statistics(case.graph, A), states), expected, rtol=1e-9)


@given(seeds)
def test_derivatives_are_those_of_finite_differences(seed: int) -> None:
    case, rng = random_case(seed), np.random.default_rng(seed)
    H, C, A = positive(rng, 3), positive(rng, 3), rng.normal(size=(14, 3))
    dH, dC = 0.1 * symmetric(rng, 3), 0.1 * symmetric(rng, 3)
    data, states, parts = statistics(case.graph, A), density_of_states(case.graph), channels(H, C)
    d = derivatives(parts, data, states)
    X, Y = (parts.inverse @ move @ parts.inverse.T for move in (dH, dC))

    def value(t: float) -> float:
        return -2 * log_likelihood(channels(H + t * dH, C + t * dC), data, states)

    e = 1e-3
    slope = np.vdot(d.G0, X) + np.vdot(d.G1, Y)
    curvature = (d.s0 * X**2 + 2 * d.s1 * X * Y + d.s2 * Y**2).sum()
    scale = abs(slope) + abs(curvature) + 1e-3 * abs(value(0))
    assert abs((value(e) - value(-e)) / (2 * e) - slope) < 1e-4 * scale
    assert abs((value(e) - 2 * value(0) + value(-e)) / e**2 - curvature) < 1e-4 * scale


@given(seeds)
def test_negative_log_likelihood_is_convex(seed: int) -> None:
    case, rng = random_case(seed), np.random.default_rng(seed)
    data, states = statistics(case.graph, rng.normal(size=(14, 3))), density_of_states(case.graph)
    ends = [(positive(rng, 3), positive(rng, 3)) for _ in range(2)]
    values = [-log_likelihood(channels(H, C), data, states) for H, C in ends]
    middle = [sum(parts) / 2 for parts in zip(*ends, strict=True)]
    assert -log_likelihood(channels(*middle), data, states) <= sum(values) / 2 + 1e-9


def test_probed_likelihood_lies_within_its_error() -> None:
    i = np.arange(900)
    ring = Graph.from_edges(i, (i + 1) % 900)
    rng = np.random.default_rng(0)
    parts, data = channels(positive(rng, 3), positive(rng, 3)), statistics(ring, rng.normal(size=(900, 3)))
    exact = log_likelihood(parts, data, density_of_states(ring))
    for seed in range(6):
        states = density_of_states(ring, probes=16, random_state=seed)
        error = log_likelihood_error(parts, states)
        assert 0 < error < 0.01 * abs(exact)
        assert abs(log_likelihood(parts, data, states) - exact) < 4 * error
    assert log_likelihood_error(parts, density_of_states(ring)) == 0.0


def test_the_error_of_a_likelihood_is_its_spread_over_probes() -> None:
    i = np.arange(900)
    ring, parts = Graph.from_edges(i, (i + 1) % 900), channels(np.eye(2), np.diag([3.0, 30.0]))
    many = [density_of_states(ring, probes=16, random_state=seed) for seed in range(40)]
    spread = np.std([0.5 * log_determinant(parts, states) for states in many], ddof=1)
    told = np.mean([log_likelihood_error(parts, states) for states in many])
    assert 0.6 < told / spread < 1.7

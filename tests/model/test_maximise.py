"""Steps of the fit: Newton directions by finite differences, the strength of a channel, Anderson acceleration."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import random_case
from graphmrf._typing import Floats
from graphmrf.errors import InvalidInputError
from graphmrf.linalg.spectrum import density_of_states
from graphmrf.model import maximise
from graphmrf.model.attributes import check_names, index_of
from graphmrf.model.em import Anderson, is_valid, nearest_valid
from graphmrf.model.likelihood import Statistics, log_likelihood, statistics
from graphmrf.model.maximise import FitProblem

CASE = random_case(2, n=40, p=3)
STATES = density_of_states(CASE.graph)
EVERY = np.ones(3, dtype=bool)


def iterate(barrier: float, seed: int = 0) -> maximise.Iterate:
    rng = np.random.default_rng(seed)
    half, B = rng.normal(size=(3, 3)), np.eye(3) + 0.2 * rng.normal(size=(3, 3))
    A = CASE.X - CASE.X.mean(axis=0)
    return maximise.Iterate(
        statistics(CASE.graph, A), STATES, B, half @ half.T + np.eye(3), 0.5 + rng.random(3), barrier
    )


def moved(point: maximise.Iterate, dH: Floats, dh: Floats, length: float) -> float:
    return replace(point, H=point.H + length * dH, h=point.h + length * dh).value


def test_the_objective_is_the_negative_log_likelihood_of_dense_algebra() -> None:
    point, n = iterate(0.0), CASE.graph.n_nodes
    C, N = (point.B * point.h) @ point.B.T, CASE.graph.N.toarray()
    Gamma = np.kron(point.H, np.eye(n)) + np.kron(C, N)
    a = (CASE.X - CASE.X.mean(axis=0)).ravel(order="F")
    expected = (a @ Gamma @ a - np.linalg.slogdet(Gamma)[1]) / n
    assert point.value == pytest.approx(expected)
    held = 2.0 * 0.3 * (np.linalg.slogdet(point.H)[1] + np.log(point.h).sum())
    assert iterate(0.3).value == pytest.approx(expected - held)


@pytest.mark.parametrize("barrier", [0.0, 0.3])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_newton_steps_are_those_of_finite_differences(barrier: float, seed: int) -> None:
    point, t = iterate(barrier, seed), 1e-3
    step = maximise.newton_step(point, EVERY)
    scale = 0.1 / max(np.abs(step.dH).max(), np.abs(step.dh).max())
    ahead, here, behind = (moved(point, scale * step.dH, scale * step.dh, length) for length in (t, 0.0, -t))
    assert (ahead - behind) / (2 * t) == pytest.approx(-scale * step.decrement, rel=1e-4)
    assert (ahead - 2 * here + behind) / t**2 == pytest.approx(scale**2 * step.decrement, rel=1e-2)
    rng = np.random.default_rng(seed)
    for _ in range(4):
        other, dh = rng.normal(size=(3, 3)), rng.normal(size=3)
        eH, eh = 0.05 * (other + other.T), 0.1 * dh
        slope = (moved(point, eH, eh, t) - moved(point, eH, eh, -t)) / (2 * t)
        mixed = [
            moved(point, scale * step.dH + sign * eH, scale * step.dh + sign * eh, length)
            for sign in (1.0, -1.0)
            for length in (t, -t)
        ]
        crossed = (mixed[0] + mixed[1] - mixed[2] - mixed[3]) / (4 * t**2)
        assert crossed / scale == pytest.approx(-slope, rel=1e-2, abs=1e-3 * step.decrement)


def test_entries_that_are_held_do_not_move_and_the_way_ends_before_the_boundary() -> None:
    point, free = iterate(0.0), np.array([True, False, True])
    step = maximise.newton_step(point, free)
    assert step.dh[1] == 0.0
    assert (point.h + 0.999 * min(step.longest, 1e6) * step.dh >= 0).all()
    assert np.linalg.eigvalsh(point.H + 0.999 * min(step.longest, 1e6) * step.dH)[0] > 0


@pytest.mark.parametrize("barrier", [0.0, 0.3])
def test_a_strength_that_is_rounding_is_0_once_the_barrier_is_gone(barrier: float) -> None:
    point = replace(iterate(barrier), h=np.array([1.0, 2.0, 1e-20]))
    reached = point.moved(maximise.Step(np.zeros((3, 3)), np.array([0.5, -1.0, 1e-20]), 1.0, 1.0), 1.0)
    np.testing.assert_array_equal(reached.h, [1.5, 1.0, 2e-20 if barrier else 0.0])


@pytest.mark.parametrize("unit", [1e-4, 1.0, 1e4])
def test_what_is_rounding_is_told_by_its_share_of_the_objective(unit: float) -> None:
    plain = iterate(0.0)
    point = replace(plain, data=replace(plain.data, M1=unit * plain.data.M1))
    np.testing.assert_allclose(point.roughness, np.diag(point.B.T @ point.data.M1 @ point.B))
    rounding = point.newton.zero * point.data.n / point.roughness
    step = maximise.Step(np.zeros((3, 3)), np.zeros(3), 1.0, 1.0)
    reached = replace(point, h=rounding * np.array([0.5, 2.0, 0.5])).moved(step, 1.0)
    np.testing.assert_array_equal(reached.h, [0.0, 2.0 * rounding[1], 0.0])


@pytest.mark.parametrize(("rise", "accepted"), [(-1e-9, True), (0.5e-14, True), (2e-14, False)])
@pytest.mark.parametrize("value", [0.0, 999.0])
def test_a_step_may_rise_by_rounding_and_no_more(rise: float, accepted: bool, value: float) -> None:
    tried = []

    def moved(_step: Any, length: float) -> Any:
        tried.append(length)
        return SimpleNamespace(value=value + rise * (1.0 + value))

    point: Any = SimpleNamespace(value=value, moved=moved, newton=maximise.Newton(halvings=60))
    found = maximise.line_search(point, maximise.Step(np.zeros((1, 1)), np.zeros(1), 0.0, 0.25))
    assert (found is not None) == accepted
    assert tried == [0.25 / 2**k for k in range(1 if accepted else 60)]


class OutsideTheCone:
    @property
    def value(self) -> float:
        raise np.linalg.LinAlgError


def test_a_step_that_leaves_the_cone_or_falls_too_little_is_halved() -> None:
    def moved(_step: Any, length: float) -> Any:
        if length > 0.5:
            return OutsideTheCone()
        return SimpleNamespace(value=-0.25 * length * (0.9 if length > 0.25 else 1.1), length=length)

    point: Any = SimpleNamespace(value=0.0, moved=moved, newton=maximise.Newton(armijo=0.25))
    found: Any = maximise.line_search(point, maximise.Step(np.zeros((1, 1)), np.zeros(1), 1.0, np.inf))
    assert found.length == 0.25


def test_mean_and_precision_are_the_likeliest_for_each_other_from_either_start() -> None:
    A = np.column_stack([CASE.X + np.array([1.0, -2.0, 5.0]), np.ones(40)])
    data, problem = statistics(CASE.graph, A), FitProblem(STATES, ("a", "b", "c"), False, True)
    found, _ = problem.best(data, None)
    np.testing.assert_allclose(maximise.best_mean(data, found), found.mean, atol=1e-6)
    from_zero, _ = problem.best(data, None, near=True)
    ends = [log_likelihood(end.channels, data.centred(end.mean), STATES) for end in (found, from_zero)]
    assert ends[0] >= ends[1] - 1e-9


def test_a_prior_is_so_many_nodes_of_white_noise() -> None:
    A = np.column_stack([CASE.X, np.ones(40)])
    data = statistics(CASE.graph, A)
    problem = FitProblem(STATES, ("a", "b", "c"), False, True, prior=8.0)
    found, white = problem.with_prior(data), np.diag([1.0, 1.0, 1.0, 0.0])
    roughness = np.trace(CASE.graph.N.toarray()) / 40
    np.testing.assert_allclose(found.M0, 40 / 48 * (data.M0 + 8.0 * white))
    np.testing.assert_allclose(found.M1, 40 / 48 * (data.M1 + 8.0 * roughness * white))
    assert replace(problem, prior=0.0).with_prior(data) is data


@given(st.integers(0, 10**6))
def test_a_matrix_is_singular_where_it_is_said_to_be(seed: int) -> None:
    X = np.random.default_rng(seed).normal(size=(3, 3))
    X = X + X.T
    t = maximise.until_singular(X)
    if np.isfinite(t):
        assert np.linalg.eigvalsh(np.eye(3) + t * X)[0] == pytest.approx(0.0, abs=1e-9)
    else:
        assert np.linalg.eigvalsh(X)[0] >= 0
    assert maximise.until_singular(X @ X) == np.inf


def test_a_singular_system_is_solved_where_it_can_be() -> None:
    half = np.diag([1.0, 1e6, 1.0])[:, :2] @ np.array([[1.0, 2.0], [3.0, -1.0]])
    S, b = half @ half.T, half @ [1.0, 2.0]
    np.testing.assert_allclose(S @ maximise.solve_semidefinite(S, b), b, rtol=1e-8)


@given(st.floats(0.05, 1.5))
def test_the_strength_of_a_channel_is_its_likeliest(m: float) -> None:
    strength, evaluations = maximise.channel_strength(m, STATES)
    x, w = STATES.nodes, STATES.weights / STATES.n_nodes

    def likelihood(strength: float) -> float:
        return float(w @ np.log1p(strength * x) - np.log1p(strength * m))

    rough = m >= w @ x
    assert (strength == 0) == (evaluations == 0) == rough
    for other in (1e-3, 0.1) if rough else (strength * 0.99, strength * 1.01):
        assert likelihood(other) <= likelihood(strength) + 1e-15


FIXED = np.stack([np.diag([3.0, 2.0, 1.0]) + 0.2, np.diag([1.0, 2.0, 0.5]) + 0.1])
DIRECTIONS = np.random.default_rng(0).normal(size=(2, *FIXED.shape))
DIRECTIONS = DIRECTIONS + DIRECTIONS.transpose(0, 1, 3, 2)


def linear(shares: Floats, factors: tuple[float, float]) -> Statistics:
    values = FIXED + sum(s * f * D for s, f, D in zip(shares, factors, DIRECTIONS, strict=True))
    return Statistics(10, values[0], values[1])


def shares_of(data: Statistics) -> Floats:
    flat = DIRECTIONS.reshape(2, -1)
    return np.asarray(np.linalg.lstsq(flat.T, (np.stack([data.M0, data.M1]) - FIXED).ravel())[0])


def test_a_linear_map_in_two_directions_settles_after_three_rounds() -> None:
    rounds, data = Anderson(), linear(np.array([0.05, -0.03]), (1.0, 1.0))
    for _ in range(3):
        data = rounds.next(data, linear(shares_of(data), (0.9, 0.7)))
    np.testing.assert_allclose(np.stack([data.M0, data.M1]), FIXED, atol=1e-6)


def test_rounds_that_are_remembered_are_few_and_forgotten_when_changes_grow() -> None:
    rounds, data = Anderson(memory=5), linear(np.array([0.05, -0.03]), (1.0, 1.0))
    for k in range(10):
        rounds.next(linear(np.array([0.04, -0.03 + 1e-4 * k]), (1.0, 1.0)), data)
    assert len(rounds.inputs) == len(rounds.changes) == 6
    found = rounds.next(data, linear(np.array([0.08, -0.06]), (1.0, 1.0)))
    assert len(rounds.inputs) == len(rounds.changes) == 1
    np.testing.assert_allclose(shares_of(found), [0.08, -0.06])


def test_a_mixture_that_no_attributes_have_is_not_taken() -> None:
    rounds, expected = Anderson(), linear(np.array([0.01, 0.01]), (1.0, 1.0))
    broken = Statistics(10, -np.eye(3), np.eye(3))
    rounds.inputs, rounds.changes = [np.stack([broken.M0, broken.M1])], [np.zeros_like(FIXED)]
    rounds.inputs.append(FIXED)
    rounds.changes.append(np.full_like(FIXED, 5.0))
    found = rounds.next(broken, Statistics(10, -np.eye(3), expected.M1))
    np.testing.assert_array_equal(found.M1, expected.M1)
    assert rounds.inputs == rounds.changes == []


def test_targets_are_names_or_positions() -> None:
    names = ("a", "b", "c")
    assert [index_of(k, names) for k in (-3, -1, 0, 2, "b")] == [0, 2, 0, 2, 1]
    for wrong in (-4, 3, "d"):
        with pytest.raises(InvalidInputError, match="target must be"):
            index_of(wrong, names)


def test_names_differ() -> None:
    assert check_names(["x", "y"], 2) == ("x", "y")
    assert check_names(None, 2) == ("a0", "a1")
    with pytest.raises(InvalidInputError, match="got y more than once"):
        check_names(["x", "y", "y"], 3)


@pytest.mark.parametrize(("smallest", "valid"), [(500.0, False), (2000.0, True)])
def test_statistics_are_valid_while_no_combination_of_attributes_vanishes(smallest: float, valid: bool) -> None:
    M, other = np.diag([1.0, 999.0, smallest * 1e-12, -5.0]), np.eye(4)
    assert is_valid(np.stack([M, other])) == is_valid(np.stack([other, M])) == valid
    assert is_valid(np.stack([other, other]))


def test_first_statistics_are_shrunk_no_more_than_they_must_be() -> None:
    valid = np.array([[2.0, 0.9, 0.3], [0.9, 1.0, 0.1], [0.3, 0.1, 1.0]])
    np.testing.assert_array_equal(nearest_valid(valid), valid)
    broken = np.array([[1.0, 1.15, 0.2], [1.15, 1.0, 0.4], [0.2, 0.4, 1.0]])  # valid from a correlation below 1 on
    expected = 0.8 * broken + 0.2 * np.diag(np.diag(broken))
    np.testing.assert_allclose(nearest_valid(broken), expected)

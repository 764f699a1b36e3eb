"""The search for a mode and the average around it."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmrf._typing import Floats
from graphmrf.field.search import Mode, average, find_mode


@dataclass(frozen=True)
class Bowl:
    """A quadratic function of curvature `A` with its least value at `centre`."""

    A: Floats
    centre: Floats

    @property
    def size(self) -> int:
        return int(self.centre.size)

    def value(self, x: Floats) -> float:
        return float(0.5 * (x - self.centre) @ self.A @ (x - self.centre))

    def expand(self, x: Floats) -> tuple[float, Floats, Floats]:
        return self.value(x), self.A @ (x - self.centre), self.A


@dataclass(frozen=True)
class Valley:
    """Rosenbrock's valley, its curvature by Gauss and Newton; infinite right of `wall`."""

    wall: float = np.inf
    size: int = 2

    def value(self, x: Floats) -> float:
        return self.expand(x)[0]

    def expand(self, x: Floats) -> tuple[float, Floats, Floats]:
        if x[0] > self.wall:
            return math.inf, np.zeros(2), np.eye(2)
        residual = np.array([1.0 - x[0], 10.0 * (x[1] - x[0] ** 2)])
        J = np.array([[-1.0, 0.0], [-20.0 * x[0], 10.0]])
        return float(0.5 * residual @ residual), residual @ J, J.T @ J


@dataclass(frozen=True)
class Skewed:
    """The negative log density of the logarithm of a gamma variable."""

    shape: float
    size: int = 1

    def value(self, x: Floats) -> float:
        return float(math.exp(x[0]) - self.shape * x[0])

    def expand(self, x: Floats) -> tuple[float, Floats, Floats]:
        return self.value(x), np.array([math.exp(x[0]) - self.shape]), np.array([[math.exp(x[0])]])


def random_bowl(seed: int, size: int = 4) -> Bowl:
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((size, size))
    return Bowl(Z @ Z.T + 0.1 * np.eye(size), rng.standard_normal(size))


@given(st.integers(0, 10**6))
def test_the_bottom_of_a_bowl_is_found(seed: int) -> None:
    bowl = random_bowl(seed)
    found = find_mode(bowl, np.zeros(4), tolerance=1e-9)
    assert found.value < 1e-6
    np.testing.assert_allclose(found.curvature, bowl.A)


@pytest.mark.parametrize("wall", [np.inf, 1.2])
def test_the_end_of_a_curved_valley_is_found(wall: float) -> None:
    found = find_mode(Valley(wall), np.array([-1.2, 1.0]), max_steps=200, tolerance=1e-9)
    np.testing.assert_allclose(found.x, [1.0, 1.0], atol=1e-3)


def test_steps_end_where_nothing_is_gained_and_where_they_are_used_up() -> None:
    bowl = random_bowl(0)
    assert find_mode(bowl, bowl.centre).steps == 0
    assert find_mode(Valley(), np.array([-1.2, 1.0]), max_steps=3, tolerance=0.0).steps == 3


def test_a_looser_tolerance_takes_fewer_steps() -> None:
    start = np.array([-1.2, 1.0])
    loose, tight = (find_mode(Valley(), start, tolerance=tolerance) for tolerance in (0.1, 1e-8))
    assert loose.steps < tight.steps
    assert loose.value >= tight.value


def at_mode(bowl: Bowl) -> Mode:
    return Mode(bowl.centre, 0.0, bowl.A, 0)


def test_members_of_a_normal_posterior_have_equal_weights() -> None:
    bowl = random_bowl(1)
    points, weights = average(bowl, at_mode(bowl), count=2000, seed=3)
    np.testing.assert_allclose(weights, 1.0 / 2000)
    np.testing.assert_allclose(np.mean(points, axis=0), bowl.centre, atol=1e-12)  # pairs opposite each other
    np.testing.assert_allclose(np.cov(np.array(points).T), np.linalg.inv(bowl.A), rtol=0.3, atol=0.3)
    again, _ = average(bowl, at_mode(bowl), count=2000, seed=3)
    np.testing.assert_array_equal(points, again)


def test_weights_correct_for_what_is_not_normal() -> None:
    skewed = Skewed(6.0)
    mode = find_mode(skewed, np.zeros(1), tolerance=1e-12)
    points, weights = average(skewed, mode, count=20_000, seed=0)
    assert weights.sum() == pytest.approx(1.0)
    assert weights @ np.exp(points)[:, 0] == pytest.approx(6.0, rel=0.02)  # the mean of a gamma variable is its shape


def test_no_weight_is_above_the_bound_and_tiny_ones_are_dropped() -> None:
    narrow, bowl = Bowl(1e-6 * np.eye(3), np.zeros(3)), Bowl(np.eye(3), np.zeros(3))
    points, weights = average(bowl, Mode(narrow.centre, 0.0, 0.05 * np.eye(3), 0), count=40)
    assert len(points) == len(weights) < 40
    assert weights.sum() == pytest.approx(1.0)
    assert weights.min() > 0.1 / 40


def test_members_of_a_narrow_posterior_are_one() -> None:
    bowl = Bowl(1e8 * np.eye(3), np.ones(3))
    points, _ = average(bowl, at_mode(bowl))
    np.testing.assert_allclose(points, np.ones((len(points), 3)), atol=1e-3)

"""The search for a mode and the average around it."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import gamma

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


@dataclass(frozen=True)
class Wall:
    """Standard normal left of a wall, nothing right of it."""

    size: int = 2

    def value(self, x: Floats) -> float:
        return 0.5 * float(x @ x) if x[0] <= 0.1 else math.inf

    def expand(self, x: Floats) -> tuple[float, Floats, Floats]:
        return self.value(x), x, np.eye(2)


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


def test_members_of_a_normal_posterior_are_draws_from_it() -> None:
    bowl = random_bowl(1)
    points = list(average(bowl, at_mode(bowl), count=2000, seed=3))
    assert len(points) == 2000
    np.testing.assert_allclose(np.mean(points, axis=0), bowl.centre, atol=1e-12)  # chains opposite each other
    np.testing.assert_allclose(np.cov(np.array(points).T), np.linalg.inv(bowl.A), rtol=0.3, atol=0.3)
    np.testing.assert_array_equal(points, list(average(bowl, at_mode(bowl), count=2000, seed=3)))


def test_members_follow_a_posterior_that_is_not_normal() -> None:
    skewed = Skewed(6.0)
    mode = find_mode(skewed, np.zeros(1), tolerance=1e-12)
    drawn = np.exp(list(average(skewed, mode, count=20_000, seed=0))).ravel()
    levels = [0.05, 0.25, 0.5, 0.75, 0.95]
    np.testing.assert_allclose(np.mean(drawn <= gamma(6.0).ppf(levels)[:, None], axis=1), levels, atol=0.015)


@pytest.mark.parametrize("curvature", [0.1, 3.0])
def test_members_follow_the_posterior_where_its_curvature_is_wrong(curvature: float) -> None:
    bowl = Bowl(np.eye(2), np.zeros(2))
    points = np.array(list(average(bowl, Mode(bowl.centre, 0.0, curvature * np.eye(2), 0), count=6000)))
    np.testing.assert_allclose(np.cov(points.T), np.eye(2), atol=0.2)


def test_fewer_members_are_the_first_of_more() -> None:
    bowl = random_bowl(4)
    np.testing.assert_array_equal(
        list(average(bowl, at_mode(bowl), count=4)), list(average(bowl, at_mode(bowl), count=8))[:4]
    )


def test_members_of_nearly_the_same_posteriors_are_nearly_the_same() -> None:
    one, other = random_bowl(2), random_bowl(2)
    other.centre[0] += 1e-6
    pairs = zip(list(average(one, at_mode(one))), list(average(other, at_mode(other))), strict=True)
    assert max(float(np.abs(x - y).max()) for x, y in pairs) < 1e-5


def test_members_are_never_where_the_covariance_is_singular() -> None:
    wall = Wall()
    points = np.array(list(average(wall, Mode(np.zeros(2), 0.0, np.eye(2), 0), count=200)))
    assert (points[:, 0] <= 0.1).all()
    assert points[:, 0].mean() < -0.5


def test_members_of_a_narrow_posterior_are_one() -> None:
    bowl = Bowl(1e8 * np.eye(3), np.ones(3))
    points = list(average(bowl, at_mode(bowl)))
    np.testing.assert_allclose(points, np.ones((len(points), 3)), atol=1e-3)

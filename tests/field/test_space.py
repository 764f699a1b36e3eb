"""Coordinates of the hyper-parameters."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import halfnorm, norm

from graphmrf._typing import Floats
from graphmrf.field.space import LEAST_NOISE, TOTAL, Shape, Space

SPACE = Space(("own", "field"), (Shape("field.range", 0.1, 2.0), Shape("nonlinear.lengths", 3.0, 1.0, 2)))


def logs(x: Floats) -> Floats:
    h: dict[str, Any] = SPACE.read(x)
    names = dict.fromkeys(SPACE.names)
    return np.asarray(np.log(np.concatenate([np.atleast_1d(h[name]) for name in names])))


def test_scales_share_the_same_total() -> None:
    x = np.random.default_rng(0).standard_normal(3)
    plain, scaled = Space(("own",), ()).read(x), Space(("own",), (), scales={"own": 3.0}).read(x)
    expected = {"own": plain["own"] * 9 / 5, "noise": (plain["noise"] - LEAST_NOISE) / 5 + LEAST_NOISE}
    assert scaled == pytest.approx(expected)


@given(st.integers(0, 10**6), st.floats(0.1, 3.0))
def test_the_jacobian_is_that_of_finite_differences(seed: int, size: float) -> None:
    x = size * np.random.default_rng(seed).standard_normal(SPACE.size)
    steps = 1e-5 * np.eye(SPACE.size)
    expected = np.array([(logs(x + step) - logs(x - step)) / 2e-5 for step in steps]).T
    np.testing.assert_allclose(SPACE.jacobian(x), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("place", [-40.0, -9.0, 0.0, 9.0, 40.0])
def test_far_coordinates_have_finite_values(place: float) -> None:
    x = np.full(SPACE.size, place)
    x[-1] = 0.0
    x[3:-1] = np.sign(place) * min(abs(place), 9.0)
    assert all(np.isfinite(value).all() for value in SPACE.read(x).values())
    assert np.isfinite(SPACE.jacobian(x)).all()


@pytest.mark.parametrize("level", [0.05, 0.5, 0.95])
def test_standard_deviations_are_half_normal_and_shapes_log_normal(level: float) -> None:
    x = np.full(SPACE.size, float(norm.ppf(level)))
    x[-1] = 0.0
    h = SPACE.read(x)
    share = TOTAL[0] / 3.0
    assert math.sqrt(h["own"] / share) == pytest.approx(halfnorm.ppf(level))
    assert math.sqrt((h["noise"] - LEAST_NOISE) / share) == pytest.approx(halfnorm.ppf(level))
    assert h["field.range"] == pytest.approx(0.1 * np.exp(2.0 * norm.ppf(level)))
    np.testing.assert_allclose(h["nonlinear.lengths"], 3.0 * np.exp(norm.ppf(level)))


def test_variances_add_up_to_the_total_on_average() -> None:
    points = np.random.default_rng(0).standard_normal((20_000, SPACE.size))
    points[:, -1] = 0.0
    totals = [sum(SPACE.read(x)[name] for name in SPACE.variances) for x in points]
    assert np.mean(totals) == pytest.approx(TOTAL[0], rel=0.02)
    points[:, -1] = 1.0
    assert SPACE.read(points[0])["own"] == pytest.approx(
        math.exp(TOTAL[1]) * SPACE.read(np.append(points[0, :-1], 0.0))["own"]
    )


def test_terms_may_vanish() -> None:
    x = np.zeros(SPACE.size)
    x[0] = -6.0
    assert SPACE.read(x)["own"] < 1e-15


def test_fixed_shapes_are_read_and_not_searched() -> None:
    space = Space(("field",), (), {"field.order": np.array([2.0])})
    assert space.size == 3
    assert space.read(np.zeros(3))["field.order"] == 2.0


def test_slopes_and_products_are_gathered_by_name() -> None:
    found = SPACE.gather({"field": 2.0, "nonlinear.lengths": np.array([3.0, 4.0])})
    assert found.tolist() == [0.0, 2.0, 0.0, 0.0, 3.0, 4.0]
    stacked = SPACE.stack({"field": np.ones(5), "nonlinear.lengths": np.full((5, 2), 7.0)}, 5)
    np.testing.assert_array_equal(stacked, np.tile([0.0, 1.0, 0.0, 0.0, 7.0, 7.0], (5, 1)))


def test_coordinates_of_another_space_are_those_of_the_same_names() -> None:
    other = Space(("field",), (Shape("nonlinear.lengths", 3.0, 1.0, 2), Shape("size", 1.0, 1.0)), has_noise=False)
    x = np.arange(1.0, 1.0 + SPACE.size)
    found = other.taken_from(SPACE, x)
    names = list(SPACE.names)
    lengths = [k for k, name in enumerate(names) if name == "nonlinear.lengths"]
    np.testing.assert_array_equal(found, [x[names.index("field")], *x[lengths], 0.0, x[-1]])


def test_shapes_are_taken_by_value_where_medians_differ() -> None:
    other = Space(("field",), (Shape("field.range", 0.4, 0.5),))
    found = other.read(other.taken_from(SPACE, np.linspace(-1.0, 1.0, SPACE.size)))
    expected = SPACE.read(np.linspace(-1.0, 1.0, SPACE.size))["field.range"]
    np.testing.assert_allclose(found["field.range"], expected)


def test_shapes_are_placed_by_value() -> None:
    x = np.linspace(-1.0, 1.0, SPACE.size)
    found, before = (SPACE.read(each) for each in (SPACE.placed(x, {"field.range": 0.3}), x))
    assert found.pop("field.range") == pytest.approx(0.3)
    assert all(np.array_equal(value, before[name]) for name, value in found.items())

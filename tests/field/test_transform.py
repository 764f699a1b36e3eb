"""Transforms of the outcome."""

import numpy as np
import pytest

from cases import random_case
from graphmrf.errors import InvalidInputError
from graphmrf.field import Design, Kind, Scale, choose_transform
from graphmrf.field.transform import Power

rng = np.random.default_rng(1)
POSITIVE = np.exp(0.5 * rng.normal(size=200))
EVEN = rng.uniform(1.0, 3.0, 200)
POWERS = [Power(e, signed=s) for e in (0.0, 0.4, 1.0, 1.7, 2.0) for s in (False, True)]


@pytest.mark.parametrize("power", POWERS, ids=str)
def test_back_and_forth(power: Power) -> None:
    u = POSITIVE if not power.signed else POSITIVE - 2.0
    np.testing.assert_allclose(power.backward(power.forward(u)), u, rtol=1e-9)


@pytest.mark.parametrize("power", POWERS, ids=str)
def test_log_slopes_are_finite_differences(power: Power) -> None:
    u, step = (POSITIVE if not power.signed else POSITIVE - 2.0), 1e-6
    slope = (power.forward(u + step) - power.forward(u - step)) / (2 * step)
    np.testing.assert_allclose(power.log_slope(u), np.log(slope), atol=1e-5)


@pytest.mark.parametrize("power", [None, *POWERS], ids=str)
def test_a_scale_standardises_and_comes_back(power: Power | None) -> None:
    scale = Scale(EVEN, power)
    assert scale.z.mean() == pytest.approx(0.0, abs=1e-9)
    assert scale.z.std() == pytest.approx(1.0)
    np.testing.assert_allclose(scale.back(scale.z), EVEN, rtol=1e-9)
    np.testing.assert_allclose(Scale(POSITIVE, power).back(Scale(POSITIVE, power).z), POSITIVE, rtol=1e-9)


def test_labels_that_are_nearly_equal_have_the_scale_of_equal_ones() -> None:
    rng = np.random.default_rng(0)
    equal = np.where(rng.random(100) < 0.85, 0.0, rng.normal(3.0, 1.0, 100))
    nearly = Scale(equal + 1e-9 * rng.standard_normal(100))
    assert nearly.unit == pytest.approx(Scale(equal).unit, rel=1e-6)
    np.testing.assert_allclose(nearly.z, Scale(equal).z, atol=1e-6)


@pytest.mark.parametrize("wild", [1e3, 1e9, -1e9])
def test_one_wild_label_does_not_move_the_scale(wild: float) -> None:
    y = rng.normal(5.0, 2.0, 200)
    scale, moved = Scale(y), Scale(np.append(y, wild))
    assert moved.unit == pytest.approx(scale.unit, rel=0.2)
    np.testing.assert_allclose(moved.z[:200], scale.z, atol=0.5)


def test_a_unit_is_the_deviation_of_the_labels_or_of_what_they_are_transformed_to() -> None:
    assert Scale(EVEN).unit == pytest.approx(EVEN.std())
    assert Scale(EVEN, Power(0.0, signed=False)).unit == pytest.approx(np.log(EVEN).std())
    straight = (EVEN - EVEN.mean()) / EVEN.std()
    signed = Power(0.4, signed=True)
    assert Scale(EVEN, signed).unit == pytest.approx(signed.forward(straight).std())


@pytest.mark.parametrize("power", [None, *POWERS], ids=str)
def test_the_jacobian_is_that_of_finite_differences(power: Power | None) -> None:
    scale, step = Scale(POSITIVE, power), 1e-6
    slopes = [2 * step / (scale.back(np.array([z + step])) - scale.back(np.array([z - step])))[0] for z in scale.z]
    assert scale.log_jacobian == pytest.approx(float(np.log(slopes).sum()), abs=0.01)


def test_moments_under_a_logarithm_are_lognormal() -> None:
    scale, mean, std = Scale(EVEN, Power(0.0, signed=False)), np.array([0.3]), np.array([0.5])
    logs = np.log(EVEN)
    m, s = logs.mean() + 0.3 * logs.std(), 0.5 * logs.std()
    expected = np.exp(m + s**2 / 2)
    first, second = scale.moments(mean, std)
    np.testing.assert_allclose(first, expected, rtol=1e-8)
    np.testing.assert_allclose(second, expected * np.sqrt(np.expm1(s**2)), rtol=1e-8)


def test_equal_labels_have_one_value() -> None:
    scale = Scale(np.full(5, 0.1))
    assert scale.is_constant
    assert scale.back(np.ones(2)).tolist() == [0.1, 0.1]
    assert scale.moments(np.zeros(2), np.ones(2))[1].tolist() == [0.0, 0.0]


def test_values_beyond_all_numbers_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="use 'identity', or fit the logarithm of the labels"):
        Scale(np.exp(np.linspace(0.0, 600.0, 20)), Power(0.0, signed=False)).back(np.array([9.0]))


def test_skewed_outcomes_are_recognised() -> None:
    case = random_case(6, n=120, p=2, labelled=100)
    rows, design = np.flatnonzero(case.known), Design.of(case.graph, case.X)
    straight = (case.y[rows] - case.y[rows].mean()) / case.y[rows].std()
    kinds: tuple[Kind, ...] = ("identity", "log", "box-cox", "yeo-johnson")
    skewed = choose_transform(design, rows, np.exp(straight), kinds).power
    assert skewed is not None
    assert skewed.exponent < 0.3
    nearly = choose_transform(design, rows, straight, ("identity", "yeo-johnson")).power
    assert nearly is None or abs(nearly.exponent - 1.0) < 0.2
    assert choose_transform(design, rows, straight, ("identity",)).power is None

"""Transforms of the outcome, and the widths of intervals."""

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

from cases import random_case
from graphmrf.field import COMPONENTS, Covariance, IntervalCalibration, Kind, Scale
from graphmrf.field.design import make_design
from graphmrf.field.matern import eigen
from graphmrf.field.transform import Power, choose_transform

rng = np.random.default_rng(1)
POSITIVE = np.exp(rng.normal(size=200))
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
    scale = Scale(POSITIVE, power)
    assert scale.z.mean() == pytest.approx(0.0, abs=1e-9)
    assert scale.z.std() == pytest.approx(1.0)
    np.testing.assert_allclose(scale.back(scale.z), POSITIVE, rtol=1e-9)


def test_a_unit_is_the_deviation_of_the_labels_or_of_what_they_are_transformed_to() -> None:
    assert Scale(POSITIVE).unit == pytest.approx(POSITIVE.std())
    assert Scale(POSITIVE, Power(0.0, signed=False)).unit == pytest.approx(np.log(POSITIVE).std())
    straight = (POSITIVE - POSITIVE.mean()) / POSITIVE.std()
    signed = Power(0.4, signed=True)
    assert Scale(POSITIVE, signed).unit == pytest.approx(signed.forward(straight).std())


def test_the_jacobian_does_not_depend_on_the_path() -> None:
    plain, log = Scale(POSITIVE), Scale(POSITIVE, Power(0.0, signed=False))
    assert plain.log_jacobian == pytest.approx(-200 * np.log(POSITIVE.std()))
    assert log.log_jacobian == pytest.approx(-np.log(POSITIVE).sum() - 200 * np.log(np.log(POSITIVE).std()))


def test_moments_under_a_logarithm_are_lognormal() -> None:
    scale, mean, std = Scale(POSITIVE, Power(0.0, signed=False)), np.array([0.3]), np.array([0.5])
    logs = np.log(POSITIVE)
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


def test_skewed_outcomes_are_recognised() -> None:
    case = random_case(6, n=120, p=2, labelled=100)
    rows = np.flatnonzero(case.known)
    field = Covariance.of(make_design(case.graph, case.X), eigen(case.graph), rows, COMPONENTS)
    straight = (case.y[rows] - case.y[rows].mean()) / case.y[rows].std()
    kinds: tuple[Kind, ...] = ("identity", "log", "box-cox", "yeo-johnson")
    skewed = choose_transform(field, np.exp(straight), kinds).power
    assert skewed is not None
    assert skewed.exponent < 0.3
    nearly = choose_transform(field, straight, ("identity", "yeo-johnson")).power
    assert nearly is None or abs(nearly.exponent - 1.0) < 0.2
    assert choose_transform(field, straight, ("identity",)).power is None


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
def test_normal_scores_ask_for_normal_widths(level: float) -> None:
    calibration = IntervalCalibration(np.random.default_rng(0).normal(size=20_000))
    expected = norm.ppf(0.5 + level / 2)
    assert calibration.student(level) == pytest.approx(expected, rel=0.03)
    assert calibration.conformal(level) == pytest.approx(expected, rel=0.03)
    assert calibration.scale == pytest.approx(1.0, abs=0.02)


def test_heavy_tails_are_found() -> None:
    calibration = IntervalCalibration(student.rvs(4, size=20_000, random_state=0))
    for level in (0.5, 0.95):
        assert calibration.student(level) == pytest.approx(student.ppf(0.5 + level / 2, 4), rel=0.04)


def test_conformal_widths_are_order_statistics() -> None:
    calibration = IntervalCalibration(np.array([0.4, -3.0, 1.0, 2.0]))
    assert calibration.conformal(0.8) == 3.0
    assert calibration.conformal(0.4) == 1.0
    assert calibration.conformal(0.9) == np.inf


def test_few_scores_ask_for_the_widths_of_few_degrees_of_freedom() -> None:
    few = IntervalCalibration(np.array([0.9, -1.1, 1.0, -0.8]))
    assert few.student(0.9) > 1.2 * norm.ppf(0.95)
    assert IntervalCalibration(np.zeros(1)).student(0.9) > norm.ppf(0.95)

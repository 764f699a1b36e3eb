"""Normal and Student's t noise."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm
from scipy.stats import t as student

from graphmrf.field.noise import Gaussian, StudentT


@pytest.mark.parametrize("dof", [2.5, 4.0, 30.0])
def test_weights_are_expected_precisions(dof: float) -> None:
    """The precision of a residual r, a priori gamma with shape and rate dof / 2, by quadrature."""
    precisions = np.linspace(1e-4, 30.0, 200_001)
    prior = precisions ** (dof / 2 - 1) * np.exp(-dof / 2 * precisions)
    for r in (0.0, 1.0, 4.0):
        posterior = prior * np.sqrt(precisions) * np.exp(-0.5 * precisions * r**2)
        expected = (posterior @ precisions) / posterior.sum()
        assert StudentT(dof).weights(np.array([r]))[0] == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize("dof", [4.0, 5.0, 12.0, 100.0])
@pytest.mark.parametrize("level", [0.75, 0.95, 0.975])
def test_a_few_normal_components_have_the_quantiles_of_t(dof: float, level: float) -> None:
    weights, variances = StudentT(dof).components
    assert weights.sum() == pytest.approx(1.0)
    found = brentq(lambda x: weights @ norm.cdf(x / np.sqrt(variances)) - level, 0.0, 100.0)
    assert found == pytest.approx(student.ppf(level, dof), rel=0.03)


@pytest.mark.parametrize("dof", [8.0, 12.0, 100.0])
def test_components_have_the_variance_of_t(dof: float) -> None:
    weights, variances = StudentT(dof).components
    assert weights @ variances == pytest.approx(StudentT(dof).inflation, rel=0.02)
    assert StudentT(dof).inflation == pytest.approx(student.var(dof))


def test_heavy_tails_are_found() -> None:
    scores = student.rvs(4, size=2000, random_state=0)
    assert 3.0 < StudentT.fit(scores).dof < 5.5
    assert StudentT.fit(student.rvs(12, size=2000, random_state=0)).dof > 8.0


@pytest.mark.parametrize("seed", range(3))
def test_normal_residuals_have_normal_tails(seed: int) -> None:
    assert StudentT.fit(np.random.default_rng(seed).standard_normal(2000)).dof > 30.0


def test_equal_residuals_have_an_answer() -> None:
    assert np.isfinite(StudentT.fit(np.zeros(5)).dof)


def test_noise_has_its_distribution() -> None:
    rng = np.random.default_rng(0)
    assert Gaussian().draw_noise((200, 500), rng).var() == pytest.approx(1.0, abs=0.03)
    drawn = StudentT(6.0).draw_noise((200, 500), rng)
    assert drawn.var() == pytest.approx(1.5, abs=0.05)
    assert np.quantile(drawn, 0.95) == pytest.approx(student.ppf(0.95, 6.0), rel=0.03)


def test_normal_noise_weighs_all_alike() -> None:
    assert Gaussian().weights(np.array([0.0, 9.0])).tolist() == [1.0, 1.0]
    assert Gaussian().inflation == 1.0
    assert [part.tolist() for part in Gaussian().components] == [[1.0], [1.0]]

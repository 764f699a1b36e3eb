"""Units of latent values: the spread of the rows, also where rates differ by orders of magnitude."""

import numpy as np
import pytest

from graphmrf.field import Responses
from graphmrf.field.likelihoods import LIKELIHOODS


def unit(y: list[float], size: list[float]) -> float:
    return Responses.of(LIKELIHOODS["poisson"], np.arange(len(y)), np.array(y), np.array(size)).unit


def test_rates_that_differ_by_orders_of_magnitude_have_the_spread_of_their_logarithms() -> None:
    y, exposure = [5.0, 3.0, 8.0], [1e-6, 1.0, 1e6]
    assert unit(y, exposure) == pytest.approx(np.std(np.log((np.array(y) + 0.5) / exposure)))


def test_rates_that_differ_little_have_the_spread_beyond_chance() -> None:
    rng, found = np.random.default_rng(0), []
    for _ in range(40):
        rates = np.exp(0.4 * rng.standard_normal(300))
        found.append(unit(rng.poisson(6.0 * rates).tolist(), [6.0] * 300))
    assert np.median(found) == pytest.approx(0.4, abs=0.05)

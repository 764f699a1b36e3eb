import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import norm
from sklearn.metrics import f1_score, r2_score

from graphmrf._typing import Floats
from graphmrf.errors import InvalidInputError
from graphmrf.metrics import coverage, f1, log_score, r2

values = arrays(float, 8, elements=st.floats(-5, 5).map(lambda x: round(x, 3)), unique=True)
classes = arrays(float, 8, elements=st.sampled_from([0.0, 1.0]))


@given(values, values)
def test_r2_is_that_of_scikit_learn(y: Floats, prediction: Floats) -> None:
    np.testing.assert_allclose(r2(y, prediction), r2_score(y, prediction))


@given(classes, classes)
def test_f1_is_that_of_scikit_learn(y: Floats, prediction: Floats) -> None:
    np.testing.assert_allclose(f1(y, prediction), f1_score(y, prediction, zero_division=0))


@given(values, values)
def test_log_score_is_the_mean_log_density(y: Floats, mean: Floats) -> None:
    std = 0.5 + mean**2
    np.testing.assert_allclose(log_score(y, mean, std), np.mean(norm.logpdf(y, mean, std)))


def test_coverage_counts_the_ends() -> None:
    assert coverage([0.0, 1.0, 2.0, 3.0], [0.0, 0.0, 0.0, 0.0], [2.0, 2.0, 2.0, 2.0]) == 0.75


def test_r2_of_a_constant_outcome_is_undefined() -> None:
    assert np.isnan(r2([1.0, 1.0], [1.0, 1.0]))
    assert np.isnan(r2([0.1, 0.1, 0.1], [0.1, 0.1, 0.2]))  # the mean is not 0.1 but the next number


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: r2([], []), "at least one node"),
        (lambda: r2([1.0], [1.0, 2.0]), "one length"),
        (lambda: r2([[1.0]], [[1.0]]), "one-dimensional"),
        (lambda: r2([1.0, np.nan], [1.0, 2.0]), "y must be finite, got nan at position 1"),
        (lambda: f1([0, 2], [0, 1]), "apply a threshold"),
        (lambda: coverage([0.0], [1.0], [0.0]), "turned"),
        (lambda: log_score([0.0], [0.0], [0.0]), "std must be positive"),
    ],
)
def test_bad_input_is_told(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(InvalidInputError, match=message):
        call()

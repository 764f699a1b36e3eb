import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import norm

from graphmrf._typing import Floats
from graphmrf.errors import InvalidInputError
from graphmrf.metrics import coverage, log_score

values = arrays(float, 8, elements=st.floats(-5, 5).map(lambda x: round(x, 3)), unique=True)


@given(values, values)
def test_log_score_is_the_mean_log_density(y: Floats, mean: Floats) -> None:
    std = 0.5 + mean**2
    np.testing.assert_allclose(log_score(y, mean, std), np.mean(norm.logpdf(y, mean, std)))


def test_coverage_counts_the_ends() -> None:
    assert coverage([0.0, 1.0, 2.0, 3.0], [0.0, 0.0, 0.0, 0.0], [2.0, 2.0, 2.0, 2.0]) == 0.75


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: coverage([], [], []), "at least one node"),
        (lambda: coverage([1.0], [1.0, 2.0], [1.0, 2.0]), "one length"),
        (lambda: log_score([[1.0]], [[1.0]], [[1.0]]), "one-dimensional"),
        (lambda: log_score([1.0, np.nan], [1.0, 2.0], [1.0, 1.0]), "y must be finite, got nan at position 1"),
        (lambda: coverage([0.0], [1.0], [0.0]), "turned"),
        (lambda: log_score([0.0], [0.0], [0.0]), "std must be positive"),
    ],
)
def test_bad_input_is_told(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(InvalidInputError, match=message):
        call()

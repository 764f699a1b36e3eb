"""Dense matrices against NumPy's plain algebra."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmrf.linalg.dense import Dense

seeds = st.integers(0, 2**32 - 1)


@given(seeds)
def test_dense_factor_solves_draws_and_gives_variances(seed: int) -> None:
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(5, 5))
    A = Z @ Z.T + np.eye(5)
    factored = Dense(A)
    np.testing.assert_allclose(factored.apply(Z), A @ Z)
    np.testing.assert_allclose(factored.inverse, np.linalg.inv(A), atol=1e-12)
    np.testing.assert_allclose(factored.inverse_diagonal(), np.diag(np.linalg.inv(A)), atol=1e-12)
    np.testing.assert_allclose(A @ factored.solve(Z), Z, atol=1e-10)
    assert factored.log_determinant() == pytest.approx(np.linalg.slogdet(A)[1])
    E = np.random.default_rng(seed).standard_normal((5, 3))
    np.testing.assert_allclose(factored.factor.T @ factored.draw(3, np.random.default_rng(seed)), E, atol=1e-12)

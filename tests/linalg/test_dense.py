"""Dense matrices, and packed halves of symmetric ones, against NumPy's plain algebra."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmrf.linalg.dense import Dense, Factor, Triangle

seeds = st.integers(0, 2**32 - 1)
rng = np.random.default_rng(3)
A, B = (M + M.T for M in rng.normal(size=(2, 7, 7)))
POSITIVE = A @ A + np.eye(7)
TRIANGLE = Triangle(7)


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


def test_packed_operations_are_those_of_the_square() -> None:
    a, b, x = TRIANGLE.pack(A), TRIANGLE.pack(B), rng.normal(size=(7, 3))
    np.testing.assert_allclose(TRIANGLE.square(a), A)
    np.testing.assert_allclose(TRIANGLE.dot(a, b), np.sum(A * B))
    np.testing.assert_allclose(TRIANGLE.double(a) @ b, np.sum(A * B))
    np.testing.assert_allclose(TRIANGLE.sums(a), A.sum(axis=1))
    np.testing.assert_allclose(TRIANGLE.times(a, x), A @ x)
    np.testing.assert_allclose(TRIANGLE.outer(x[:, 0]), TRIANGLE.pack(np.outer(x[:, 0], x[:, 0])))


def test_a_factor_solves_inverts_and_has_the_determinant() -> None:
    factor = Factor.of(TRIANGLE, TRIANGLE.pack(POSITIVE))
    assert factor is not None
    np.testing.assert_allclose(factor.solve(A), np.linalg.solve(POSITIVE, A))
    np.testing.assert_allclose(TRIANGLE.square(factor.inverse(TRIANGLE)), np.linalg.inv(POSITIVE))
    assert factor.log_determinant == pytest.approx(np.linalg.slogdet(POSITIVE)[1])


def test_an_indefinite_matrix_has_no_factor() -> None:
    assert Factor.of(TRIANGLE, TRIANGLE.pack(A - 100 * np.eye(7))) is None

"""Dense matrices, and packed halves of symmetric ones, against NumPy's plain algebra."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmrf._typing import Floats
from graphmrf.engines import Engine
from graphmrf.graph import Graph
from graphmrf.linalg.dense import Dense, Factor, Triangle, array, beside, place

seeds = st.integers(0, 2**32 - 1)
rng = np.random.default_rng(3)
A, B = (M + M.T for M in rng.normal(size=(2, 7, 7)))
POSITIVE = A @ A + np.eye(7)
TRIANGLE = Triangle(7)
MANY = rng.normal(size=(300, 300))
"""More rows than a strip has, and not a multiple of them."""


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


@pytest.mark.parametrize(("A", "B"), [(A, B), (MANY + MANY.T, MANY @ MANY.T)])
def test_packed_operations_are_those_of_the_square(A: Floats, B: Floats) -> None:
    n = len(A)
    triangle, x = Triangle(n), rng.normal(size=(n, 3))
    a, b = triangle.pack(A), triangle.pack(np.tril(B))
    np.testing.assert_allclose(triangle.square(a), A)
    np.testing.assert_allclose(triangle.square(b), B)
    np.testing.assert_allclose(np.tril(triangle.lower(a)), np.tril(A))
    np.testing.assert_allclose(triangle.dot(a, b), np.sum(A * B))
    np.testing.assert_allclose(triangle.total(b), B.sum())
    np.testing.assert_allclose(triangle.sums(a), A.sum(axis=1), atol=1e-10)
    np.testing.assert_allclose(triangle.times(a, x), A @ x, atol=1e-10)
    np.testing.assert_allclose(triangle.square(triangle.gram(x)), x @ x.T, atol=1e-12)
    np.testing.assert_allclose(triangle.square(triangle.outer(x[:, 0])), np.outer(x[:, 0], x[:, 0]))
    np.testing.assert_allclose(a[triangle.places(np.arange(n)[:, None], np.arange(n))], A)
    triangle.scale(b, x[:, 0])
    np.testing.assert_allclose(triangle.square(b), B * np.outer(x[:, 0], x[:, 0]), atol=1e-12)


def test_a_factor_solves_inverts_and_has_the_determinant() -> None:
    factor = Factor.of(TRIANGLE, TRIANGLE.pack(POSITIVE))
    assert factor is not None
    np.testing.assert_allclose(factor.solve(A), np.linalg.solve(POSITIVE, A))
    np.testing.assert_allclose(factor.R.T @ factor.whiten(A), A, atol=1e-12)
    np.testing.assert_allclose(TRIANGLE.square(factor.inverse(TRIANGLE)), np.linalg.inv(POSITIVE))
    assert factor.log_determinant == pytest.approx(np.linalg.slogdet(POSITIVE)[1])


def test_an_indefinite_matrix_has_no_factor() -> None:
    assert Factor.of(TRIANGLE, TRIANGLE.pack(A - 100 * np.eye(7))) is None


def test_a_constant_matrix_and_the_places_of_the_diagonal() -> None:
    for n in (7, 300):
        triangle = Triangle(n)
        np.testing.assert_array_equal(triangle.square(triangle.full(2.5)), np.full((n, n), 2.5))
        numbered = np.arange(n * n).reshape(n, n)
        np.testing.assert_array_equal(triangle.pack(np.tril(numbered))[triangle.diagonal], np.diag(numbered))


def test_a_triangle_whose_device_is_gone_is_in_main_memory() -> None:
    gone: Any = np.zeros(1)  # as after pickling
    triangle = Triangle(7, beside=gone)
    assert triangle.place(A) is A
    assert isinstance(triangle.empty(2), np.ndarray)


def device() -> Engine:
    pytest.importorskip("torch")
    return Graph.from_edges([0], [1]).to("cuda").engine


def test_without_a_device_arrays_stay_where_they_are() -> None:
    host = Graph.from_edges([0], [1]).engine
    assert place(None, A) is A
    assert place(host, A) is A
    assert beside(A) is None
    assert Triangle(7).place(A) is A


def test_on_a_device_the_matrix_is_one_strip_and_solves_the_same() -> None:
    there = place(device(), POSITIVE)
    aside = beside(there)
    assert aside is not None
    assert aside.shape == (0, 7)
    triangle = Triangle(7, aside)
    assert array(there) is there
    packed = triangle.pack(there)
    np.testing.assert_allclose(np.asarray(triangle.lower(packed)), POSITIVE)
    np.testing.assert_array_equal(np.asarray(triangle.full(2.0)), np.full(49, 2.0))
    factor = Factor.of(triangle, packed)
    assert factor is not None
    for right in (A, A[:, 0]):
        found = factor.solve(right)
        assert isinstance(found, np.ndarray)
        np.testing.assert_allclose(found, np.linalg.solve(POSITIVE, right), atol=1e-12)
        np.testing.assert_allclose(np.asarray(factor.solve(triangle.place(right))), found, atol=1e-12)
    np.testing.assert_allclose(factor.whiten(A).T @ factor.whiten(A), A.T @ np.linalg.solve(POSITIVE, A), atol=1e-10)
    inverse = np.asarray(factor.inverse(triangle)).reshape(7, 7)
    np.testing.assert_allclose(inverse, np.linalg.inv(POSITIVE), atol=1e-12)
    assert factor.log_determinant == pytest.approx(np.linalg.slogdet(POSITIVE)[1])
    assert Factor.of(triangle, triangle.pack(triangle.place(A - 100 * np.eye(7)))) is None

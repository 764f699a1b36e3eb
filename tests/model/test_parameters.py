"""The channels against the matrices they factor."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
from cases import random_case
from graphmrf._typing import Floats
from graphmrf.errors import InvalidInputError
from graphmrf.graph.checks import LARGEST, check_magnitude
from graphmrf.model import GaussianMRF
from graphmrf.model.parameters import channels


def random_pair(seed: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    q = int(rng.integers(1, 6))
    Z, Y = rng.normal(size=(q, q)), rng.normal(size=(q, int(rng.integers(0, q + 1))))
    H = Z @ Z.T + 10 ** rng.uniform(-6, 0) * np.eye(q)
    return H, Y @ Y.T if seed % 2 else np.diag(rng.exponential(size=q) * (rng.random(q) < 0.7))


@given(st.integers(0, 10**6), st.floats(0, 2))
def test_one_matrix_factors_every_pencil(seed: int, level: float) -> None:
    H, C = random_pair(seed)
    parts = channels(H, C)
    assert (parts.strength >= 0).all()
    rebuilt = parts.U @ np.diag(1 + level * parts.strength) @ parts.U.T
    np.testing.assert_allclose(rebuilt, H + level * C, atol=1e-9 * np.abs(H + level * C).max())
    np.testing.assert_allclose(parts.U @ parts.inverse, np.eye(len(H)), atol=1e-7)
    np.testing.assert_allclose(parts.log_det_H, np.linalg.slogdet(H)[1], rtol=1e-8, atol=1e-8)


@given(st.integers(0, 10**6), st.integers(0, 31))
def test_signs_of_eigenvectors_change_nothing(seed: int, flipped: int) -> None:
    H, C = random_pair(seed)
    signs = np.where(np.arange(len(H)) & flipped, -1.0, 1.0)
    expected = channels(H, C)

    def otherwise(matrix: Floats, **_: object) -> tuple[Floats, Floats]:
        values, vectors = np.linalg.eigh(matrix)
        return values, vectors * signs

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("graphmrf.model.parameters.eigh", otherwise)
        actual = channels(H, C)
    assert (np.take_along_axis(actual.inverse, np.abs(actual.inverse).argmax(axis=1)[:, None], axis=1) > 0).all()
    if (np.diff(expected.strength) > 1e-6 * (1.0 + expected.strength[-1])).all():  # each has one direction
        np.testing.assert_allclose(actual.inverse, expected.inverse, rtol=1e-5, atol=1e-6)


@given(st.integers(0, 10**6))
def test_precision_of_the_field_falls_apart(seed: int) -> None:
    H, C = random_pair(seed)
    W = random_case(seed, n=7).W
    parts, n = channels(H, C), len(W)
    mix = np.kron(parts.U, np.eye(n))
    inner = oracle.field_precision(W, np.eye(len(H)), np.diag(parts.strength))
    gamma = oracle.field_precision(W, H, C)
    np.testing.assert_allclose(mix @ inner @ mix.T, gamma, atol=1e-9 * np.abs(gamma).max())


def test_attributes_come_back_from_channels() -> None:
    H, C = random_pair(3)
    A = np.random.default_rng(0).normal(size=(6, len(H)))
    parts = channels(H, C)
    np.testing.assert_allclose(A @ parts.U @ parts.inverse, A, atol=1e-10)
    np.testing.assert_allclose(parts.alpha, parts.strength / (1 + parts.strength))


def test_indefinite_H_is_refused() -> None:
    with pytest.raises(np.linalg.LinAlgError):
        channels(np.array([[1.0, 2.0], [2.0, 1.0]]), np.eye(2))


def test_numbers_whose_squares_overflow_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"H must be within 3e\+150, got 1e\+151; give the attributes"):
        GaussianMRF([[1e151]], [1.0])
    with pytest.raises(InvalidInputError, match="H must have a diagonal of 3e-151 or more, got 1e-151; give"):
        GaussianMRF([[1e-151]], [1.0])
    np.testing.assert_array_equal(GaussianMRF([[2.0**500]], [2.0**-500]).H, [[2.0**500]])


def test_sizes_of_attributes_are_checked_column_by_column() -> None:
    A = np.array([[1.0, 2.0], [3.0, np.nan]])
    check_magnitude(np.empty((0, 2)), "attributes")
    check_magnitude(A * [LARGEST / 3, 1.0], "attributes")
    check_magnitude(A * 0.0 + LARGEST, "attributes")  # constant, and just small enough
    with pytest.raises(InvalidInputError, match=r"values must be .* got 1e\+80 to 3e\+80 in column 0; give them in"):
        check_magnitude(A * [1e80, 1.0], "values")
    with pytest.raises(InvalidInputError, match=r"got -3e\+80 to -1e\+80 in column 'height'; .* within 2e\+75"):
        check_magnitude(A[:, :1] * -1e80, "values", ["height"])
    with pytest.raises(InvalidInputError, match=r"got 1e-80 to 3e-80; give .* varying by 6e-76 or more"):
        check_magnitude(A[:, :1] * 1e-80, "values")


def test_of_several_columns_beyond_size_the_first_is_named_with_its_values() -> None:
    A = np.array([[1.0, 2.0, 4.0], [3.0, 5.0, 6.0]]) * [1.0, 1e80, 1e90]
    with pytest.raises(InvalidInputError, match=r"got 2e\+80 to 5e\+80 in column 1;"):
        check_magnitude(A, "values")
    with pytest.raises(InvalidInputError, match=r"got 2e\+80 to 5e\+80 in column 'weight';"):
        check_magnitude(A, "values", ["age", "weight", "height"])

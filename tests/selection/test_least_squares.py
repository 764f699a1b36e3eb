import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmrf.selection import fit_least_squares, triangular, whiten


@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(0, 6))
def test_the_triangular_factor_has_the_gram_matrix(seed: int, m: int, k: int) -> None:
    M = np.random.default_rng(seed).normal(size=(m, k))
    R = triangular(M)
    assert len(R) <= max(k, 1)
    np.testing.assert_allclose(R.T @ R, M.T @ M, atol=1e-12)


@pytest.mark.parametrize("k", [1, 5, 300])
def test_the_factor_of_a_tall_matrix_is_taken_by_blocks(k: int) -> None:
    M = np.random.default_rng(0).normal(size=(5000, k))
    R = triangular(M)
    assert R.shape == (k, k)
    np.testing.assert_allclose(R.T @ R, M.T @ M, rtol=1e-12, atol=1e-9)


@given(st.integers(0, 10**6), st.integers(5, 30), st.integers(0, 4), st.booleans())
def test_the_fit_is_that_of_lstsq(seed: int, m: int, p: int, intercept: bool) -> None:
    rng = np.random.default_rng(seed)
    Z, y = rng.normal(size=(m, p)), rng.normal(size=m)
    fit = fit_least_squares(Z, y, intercept=intercept)
    M = np.column_stack([np.ones(m), Z]) if intercept else Z
    expected = np.linalg.lstsq(M, y, rcond=None)[0]
    np.testing.assert_allclose(Z @ fit.coef + fit.intercept, M @ expected, atol=1e-10)
    np.testing.assert_allclose(fit.leverage(Z), np.diag(M @ np.linalg.pinv(M)), atol=1e-10)
    assert fit.n_coefficients == p + intercept


@given(st.integers(0, 10**6), st.integers(5, 30), st.booleans())
def test_a_shrunk_fit_is_that_of_ridge_regression(seed: int, m: int, intercept: bool) -> None:
    rng = np.random.default_rng(seed)
    Z, y = rng.normal(size=(m, 3)), rng.normal(size=m)
    centred, outcome = (Z - Z.mean(axis=0), y - y.mean()) if intercept else (Z, y)
    left = outcome - centred @ np.linalg.lstsq(centred, outcome, rcond=None)[0]
    rows = m - intercept
    noise = (rows * (left @ left) / (outcome @ outcome) + 1.0) / (rows - 3 + 1.0)
    expected = np.linalg.solve(centred.T @ centred + 4.0 * noise * np.eye(3), centred.T @ outcome)
    fit = fit_least_squares(Z, y, intercept=intercept, shrinkage=4.0)
    np.testing.assert_allclose(fit.coef, expected, atol=1e-10)
    np.testing.assert_allclose(fit.intercept, intercept * (y.mean() - Z.mean(axis=0) @ expected), atol=1e-10)


def test_a_deficient_fit_has_least_norm_and_leaves_the_intercept_alone() -> None:
    Z, y = np.array([[1.0, 1.0, 7.0], [2.0, 2.0, 7.0], [3.0, 3.0, 7.0]]), np.array([1.0, 3.0, 5.0])
    fit = fit_least_squares(Z, y, intercept=True)
    np.testing.assert_allclose(fit.coef, [1.0, 1.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(fit.intercept, -1.0, atol=1e-12)
    assert fit.rank == 1


def test_one_row_gives_its_own_value_as_intercept() -> None:
    fit = fit_least_squares(np.array([[2.0, 5.0]]), np.array([3.0]), intercept=True)
    np.testing.assert_allclose(fit.coef, 0.0, atol=1e-15)
    np.testing.assert_allclose(fit.intercept, 3.0)


def test_a_direction_within_the_noise_gets_no_coefficient() -> None:
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=50), rng.normal(size=50)
    Z = np.column_stack([z, z + 1e-7 * rng.normal(size=50)])
    fit = fit_least_squares(Z, y, intercept=True, noise=1e-5)
    single = fit_least_squares(z[:, None], y, intercept=True)
    assert fit.rank == 1
    np.testing.assert_allclose(Z @ fit.coef, z * single.coef, atol=1e-5)


@given(st.integers(0, 10**6))
def test_whitened_features_are_uncorrelated_and_span_the_same(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, 4)) @ rng.normal(size=(4, 4)) * 10.0 ** rng.integers(-6, 6, 4) + 3.0
    features = whiten(X, centred=True)
    np.testing.assert_allclose(features.Z.T @ features.Z, 20 * np.eye(4), atol=1e-6)
    np.testing.assert_allclose(features.Z, (X - features.means) @ features.T, atol=1e-6)
    np.testing.assert_allclose(features.means, X.mean(axis=0))


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e9 / 3])
def test_constant_and_collinear_columns_add_nothing(constant: float) -> None:
    x = np.random.default_rng(0).normal(size=(101, 2))
    X = np.column_stack([x, x @ [2.0, -3.0] + 5.0, np.full(101, constant), x[:, 0]])
    assert whiten(X, centred=True).Z.shape == (101, 2)
    assert whiten(X[:, 3:4], centred=True).Z.shape == (101, 0)


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e200, 1e306])
@pytest.mark.parametrize("centred", [True, False])
def test_features_whose_squares_over_or_underflow_are_kept(scale: float, centred: bool) -> None:
    X = np.random.default_rng(0).uniform(-1.0, 3.0, size=(101, 2))
    features, expected = whiten(X * np.array([scale, 1.0]), centred=centred), whiten(X, centred=centred)
    np.testing.assert_allclose(np.abs(features.Z), np.abs(expected.Z), atol=1e-9)
    np.testing.assert_allclose(features.means / [scale, 1.0], expected.means, rtol=1e-9)


def test_without_centring_a_constant_is_a_feature() -> None:
    features = whiten(np.full((5, 1), 3.0), centred=False)
    np.testing.assert_allclose(abs(features.Z), 1.0)
    np.testing.assert_array_equal(features.means, 0.0)

"""Effects of features in the general field."""

import numpy as np
import pytest

from graphmrf import Graph, GraphRegressor
from graphmrf._typing import Floats

N = 200
RING = Graph.from_edges(np.arange(N), (np.arange(N) + 1) % N)
X = np.random.default_rng(0).normal(size=(N, 2))
NOISE = np.random.default_rng(1).normal(size=N)


def fitted(y: Floats, features: Floats = X) -> GraphRegressor:
    return GraphRegressor().fit(RING, features, np.where(np.arange(N) % 3 > 0, y, np.nan))


def test_a_linear_effect_is_per_unit_of_the_feature() -> None:
    y = 3.0 * X[:, 0] - X[:, 1] + 0.1 * NOISE
    np.testing.assert_allclose(fitted(y).coef_, [3.0, -1.0], atol=0.1)
    np.testing.assert_allclose(fitted(y, X * [10.0, 0.01]).coef_, [0.3, -100.0], rtol=0.1)
    np.testing.assert_allclose(fitted(7.0 * y).coef_, [21.0, -7.0], atol=0.7)


def test_the_slope_of_a_curved_effect_is_its_mean() -> None:
    y = X[:, 0] + 0.5 * X[:, 0] ** 2
    curved = fitted(y + 0.1 * NOISE)
    design = np.column_stack([X, RING.adjacency @ X, np.ones(N)])
    np.testing.assert_allclose(curved.coef_, np.linalg.lstsq(design, y, rcond=None)[0][:2], atol=0.1)
    assert curved.shares_["nonlinear effects"] > 0.2


def test_the_effect_of_smoothed_features_is_that_of_the_own_feature_within() -> None:
    T = np.linalg.inv(np.eye(N) + 4 * RING.N.toarray())
    smoothed = fitted(3.0 * (T @ X)[:, 0] + 0.05 * NOISE)
    assert np.asarray(smoothed.coef_)[0] == pytest.approx(3 * T[0, 0], rel=0.2)


def test_an_effect_of_neighbours_is_none_of_the_own_feature() -> None:
    means = (RING.adjacency @ X) / 2.0
    found = fitted(2.0 * means[:, 0] + 0.1 * NOISE)
    np.testing.assert_allclose(found.coef_, [0.0, 0.0], atol=0.15)
    assert found.shares_["neighbours' features"] > 0.5


def test_columns_without_a_value_of_their_own_have_no_effect() -> None:
    found = fitted(X[:, 0] + 0.1 * NOISE, np.column_stack([np.full(N, 3.0), X]))
    assert np.asarray(found.coef_)[0] == 0.0
    assert np.asarray(found.coef_)[1] == pytest.approx(1.0, abs=0.1)


def test_terms_can_be_left_out() -> None:
    y = 2.0 * X[:, 0] + 0.1 * NOISE
    linear = GraphRegressor(terms=("own", "field")).fit(RING, X, np.where(np.arange(N) % 3 > 0, y, np.nan))
    assert set(linear.shares_.index) == {"own features", "graph field", "noise"}
    assert linear.shares_["own features"] > 0.9
    assert linear.shares_.sum() == pytest.approx(1.0)

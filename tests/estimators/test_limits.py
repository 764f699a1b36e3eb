"""Limit cases, each with the answer that the documentation promises."""

from typing import Any

import numpy as np
import pytest

import oracle
from cases import random_case
from graphmrf import Graph, LabelPropagation, LinearGraphConvolution, LinearRegression, ResidualPropagation

CASE = random_case(8, n=30, p=2, labelled=20)
L = CASE.known
EMPTY = Graph(np.zeros((30, 30)))


def convolution(alpha: float = 0.8) -> LinearGraphConvolution:
    return LinearGraphConvolution(alpha=alpha)


def convolution_and_residual(alpha: float = 0.8) -> ResidualPropagation:
    return ResidualPropagation(LinearGraphConvolution(alpha=alpha), alpha=alpha)


def predict(model: Any, graph: Graph = CASE.graph, X: Any = CASE.X, y: Any = CASE.y) -> Any:
    return model.fit(graph, X, y).predict()


@pytest.mark.parametrize("graph", [EMPTY, CASE.graph], ids=["no edges", "level 0"])
def test_without_edges_or_without_smoothing(graph: Graph) -> None:
    alpha = 0.8 if graph is EMPTY else 0.0
    regression = oracle.linear_regression(CASE.X, CASE.y)
    np.testing.assert_allclose(predict(convolution(alpha), graph), regression, rtol=1e-8)
    np.testing.assert_allclose(
        predict(convolution_and_residual(alpha), graph), np.where(L, CASE.y, regression), rtol=1e-8
    )
    mean, std = LabelPropagation(alpha=alpha).fit(graph, None, CASE.y).predict(return_std=True)
    np.testing.assert_allclose(mean[~L], CASE.y[L].mean())
    m = L.sum()
    student = np.sqrt((m - 1) / (m - 3))
    np.testing.assert_allclose(std[~L], student * CASE.y[L].std(ddof=1) * np.sqrt(1 + 1 / m))
    own = LinearRegression().fit(graph, CASE.X, CASE.y).predict(return_std=True)[1]
    convolved = convolution(alpha).fit(graph, CASE.X, CASE.y).predict(return_std=True)[1]
    np.testing.assert_allclose(convolved[~L], own[~L], rtol=1e-6)


def test_cross_validation_without_edges_takes_the_first_level() -> None:
    for model in (LabelPropagation(), LinearGraphConvolution(), ResidualPropagation(LinearGraphConvolution())):
        assert model.fit(EMPTY, CASE.X, CASE.y).alpha_ == 0.0


def test_isolated_nodes_count_as_having_average_neighbours() -> None:
    W = CASE.W.copy()
    alone = int(np.flatnonzero(~L)[0])
    W[alone] = W[:, alone] = 0.0
    graph = Graph(W)
    assert predict(LabelPropagation(alpha=0.9), graph)[alone] == pytest.approx(CASE.y[L].mean())
    model = convolution(0.9).fit(graph, CASE.X, CASE.y)
    own = 0.1 * (CASE.X[alone] - model.feature_means_) @ model.coef_ + model.intercept_
    assert model.predict()[alone] == pytest.approx(own, rel=1e-6)
    mean, std = convolution_and_residual(0.9).fit(graph, CASE.X, CASE.y).predict(return_std=True)
    assert mean[alone] == pytest.approx(own, rel=1e-6)
    assert std[alone] > convolution_and_residual(0.9).fit(graph, CASE.X, CASE.y).scale_


def test_a_component_without_labels_gets_what_the_trend_says() -> None:
    W = np.zeros((35, 35))
    W[:30, :30] = CASE.W
    W[np.arange(30, 34), np.arange(31, 35)] = W[np.arange(31, 35), np.arange(30, 34)] = 1.0
    X = np.vstack([CASE.X, CASE.X[:5]])
    y = np.append(CASE.y, np.full(5, np.nan))
    graph = Graph(W)
    np.testing.assert_allclose(predict(LabelPropagation(alpha=0.9), graph, X, y)[30:], CASE.y[L].mean())
    trend = predict(convolution(), graph, X, y)
    np.testing.assert_allclose(predict(convolution_and_residual(), graph, X, y)[30:], trend[30:], rtol=1e-6)
    _, std = LabelPropagation(alpha=0.9).fit(graph, X, y).predict(return_std=True)
    assert std[30:].min() > 0


def test_all_labelled() -> None:
    for model in (LabelPropagation(), convolution_and_residual(), ResidualPropagation(LinearRegression())):
        mean, std = model.fit(CASE.graph, CASE.X, CASE.truth).predict(return_std=True)
        np.testing.assert_array_equal(mean, CASE.truth)
        np.testing.assert_array_equal(std, 0.0)
    np.testing.assert_allclose(
        predict(convolution(), y=CASE.truth),
        oracle.linear_graph_convolution(CASE.W, CASE.X, CASE.truth, 0.8),
        rtol=1e-6,
    )


def test_one_label_is_everybodys_prediction_and_leaves_the_error_unknown() -> None:
    y = np.full(30, np.nan)
    y[4] = 7.0
    for model in (LinearRegression(), LabelPropagation(alpha=0.9), convolution(), convolution_and_residual()):
        mean, std = model.fit(CASE.graph, CASE.X, y).predict(return_std=True)
        np.testing.assert_allclose(mean, 7.0, rtol=1e-9)
        assert np.isnan(model.scale_)
        assert np.isnan(std[[0, 9]]).all()


def test_two_labels_are_enough_for_cross_validation() -> None:
    y = np.full(30, np.nan)
    y[[4, 7]] = 7.0, 8.0
    for model in (LabelPropagation(), LinearGraphConvolution(), ResidualPropagation(LinearGraphConvolution())):
        assert np.isfinite(model.fit(CASE.graph, CASE.X, y).predict()).all()


def test_fewer_labels_than_features_does_not_depend_on_units() -> None:
    case = random_case(3, n=20, p=9, labelled=5)
    scale = 10.0 ** np.arange(-4, 5)
    for model in (LinearRegression(), convolution()):
        mean = model.fit(case.graph, case.X, case.y).predict()
        np.testing.assert_allclose(mean[case.known], case.y[case.known], rtol=1e-5)  # it interpolates
        assert np.isnan(model.scale_)
        np.testing.assert_allclose(model.fit(case.graph, case.X * scale, case.y).predict(), mean, rtol=1e-4)


@pytest.mark.parametrize("make", [LinearRegression, convolution, convolution_and_residual, LinearGraphConvolution])
def test_constant_and_collinear_features_change_nothing(make: Any) -> None:
    redundant = np.column_stack([CASE.X, np.full(30, 0.1), CASE.X @ [2.0, -1.0] + 4.0, CASE.X[:, 0]])
    expected = make().fit(CASE.graph, CASE.X, CASE.y).predict(return_std=True)
    np.testing.assert_allclose(make().fit(CASE.graph, redundant, CASE.y).predict(return_std=True), expected, rtol=1e-6)


def test_redundant_features_share_their_coefficient() -> None:
    X = np.column_stack([CASE.X[:, 0], CASE.X[:, 0], np.full(30, 3.0)])
    model = LinearRegression().fit(CASE.graph, X, CASE.y)
    single = LinearRegression().fit(CASE.graph, CASE.X[:, :1], CASE.y)
    np.testing.assert_allclose(model.coef_, [single.coef_[0] / 2, single.coef_[0] / 2, 0.0], atol=1e-9)
    assert model.n_coefficients_ == 2


@pytest.mark.parametrize("make", [LinearRegression, convolution, LinearGraphConvolution])
def test_no_features_leave_the_mean(make: Any) -> None:
    np.testing.assert_allclose(predict(make(), X=np.empty((30, 0))), CASE.y[L].mean())


def test_no_features_make_residual_propagation_label_propagation() -> None:
    none = np.empty((30, 0))
    expected = LabelPropagation(alpha=0.8).fit(CASE.graph, None, CASE.y).predict(return_std=True)
    np.testing.assert_allclose(
        convolution_and_residual().fit(CASE.graph, none, CASE.y).predict(return_std=True), expected, rtol=1e-6
    )
    joint = ResidualPropagation(LinearGraphConvolution()).fit(CASE.graph, none, CASE.y)
    assert joint.alpha_ == LabelPropagation().fit(CASE.graph, None, CASE.y).alpha_


def test_a_constant_outcome_is_predicted_without_error() -> None:
    y = np.where(L, 2.0, np.nan)
    for model in (LinearRegression(), LabelPropagation(), convolution(), ResidualPropagation(LinearGraphConvolution())):
        mean, std = model.fit(CASE.graph, CASE.X, y).predict(return_std=True)
        np.testing.assert_allclose(mean, 2.0, rtol=1e-9)
        np.testing.assert_allclose(std, 0.0, atol=1e-9)


def test_features_far_from_zero_lose_no_digits() -> None:
    expected = predict(LinearRegression())
    np.testing.assert_allclose(predict(LinearRegression(), X=CASE.X + 1e8), expected, atol=1e-6)

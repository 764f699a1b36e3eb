"""Each estimator against dense algebra."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import t as student
from sklearn.linear_model import LinearRegression as ScikitRegression
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.tree import DecisionTreeRegressor

import oracle
from cases import Case, cases, random_case
from graphmrf import LabelPropagation, LinearGraphConvolution, LinearRegression, ResidualPropagation
from graphmrf._typing import Floats
from graphmrf.selection import ALPHAS, assign_folds

levels = st.sampled_from([0.0, 0.1, 0.5, 0.9, 0.99, 0.999])
Predictor = Callable[[Floats], Floats]


def as_matrix(predict: Predictor, case: Case) -> Floats:
    """The matrix (n, labels) of a predictor that is linear in the labels, column by column."""
    labelled, n = np.flatnonzero(case.known), len(case.y)
    units = (np.where(case.known, (np.arange(n) == i).astype(float), np.nan) for i in labelled)
    return np.column_stack([predict(y) for y in units])


def error_variance(case: Case, predict: Predictor, alpha: float) -> Floats:
    """The variance of outcome less prediction where outcomes are a field of variance 1 about a fitted trend."""
    covariance, L = np.linalg.inv(oracle.precision(case.W, alpha)), case.known
    errors = np.eye(len(L))
    errors[:, L] -= as_matrix(predict, case)
    return np.diag(errors @ covariance @ errors.T)


def student_factor(freedom: float) -> float:
    quantile = student.ppf(0.95, freedom) / 1.6448536269514722
    return float(np.sqrt(freedom / (freedom - 2.0))) if freedom >= 3 else float(max(quantile, np.sqrt(3.0)))


def conditional_scale(case: Case, trend: Predictor, alpha: float) -> float:
    """Leave-one-out residuals of a field, over what they are on average, the trend being fitted each time."""
    L = case.known
    covariance = np.linalg.inv(oracle.precision(case.W, alpha))[np.ix_(L, L)]
    P, left = np.linalg.inv(covariance), np.eye(L.sum()) - as_matrix(trend, case)[L]
    expected = np.diag(P @ left @ covariance @ left.T @ P)
    residuals = P @ (case.y - trend(case.y))[L]
    return float(np.sqrt(np.sum(residuals**2 / np.diag(P)) / np.sum(expected / np.diag(P))))


@given(cases(), levels)
def test_label_propagation(case: Case, alpha: float) -> None:
    mean, std = LabelPropagation(alpha=alpha).fit(case.graph, None, case.y).predict(return_std=True)
    np.testing.assert_allclose(mean, oracle.label_propagation(case.W, case.y, alpha), rtol=1e-6, atol=1e-6)
    scale = conditional_scale(case, lambda y: np.full(len(y), np.nanmean(y)), alpha)
    variance = error_variance(case, lambda y: oracle.label_propagation(case.W, y, alpha), alpha)
    expected = scale * student_factor(case.known.sum() - 1) * np.sqrt(np.where(case.known, 0.0, variance))
    np.testing.assert_allclose(std, expected, rtol=1e-5, atol=1e-7)


@given(cases())
def test_linear_regression(case: Case) -> None:
    model = LinearRegression().fit(case.graph, case.X, case.y)
    mean, std = model.predict(), model.model_std_
    np.testing.assert_allclose(mean, oracle.linear_regression(case.X, case.y), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(case.X @ model.coef_ + model.intercept_, mean, rtol=1e-8, atol=1e-8)
    M, L = np.column_stack([np.ones(len(case.X)), case.X]), case.known
    s2 = np.sum((case.y[L] - mean[L]) ** 2) / (L.sum() - 3)
    leverage = np.einsum("ij,jk,ik->i", M, np.linalg.inv(M[L].T @ M[L]), M)
    np.testing.assert_allclose(std, student_factor(L.sum() - 3) * np.sqrt(s2 * (1 + leverage)), rtol=1e-6)


@given(cases(), levels)
def test_linear_graph_convolution(case: Case, alpha: float) -> None:
    model = LinearGraphConvolution(alpha=alpha).fit(case.graph, case.X, case.y)
    mean, std = model.predict(), model.model_std_
    np.testing.assert_allclose(
        mean, oracle.linear_graph_convolution(case.W, case.X, case.y, alpha), rtol=1e-4, atol=1e-4
    )
    smoothed = oracle.smooth_features(case.W, case.X - model.feature_means_, alpha)
    np.testing.assert_allclose(smoothed @ model.coef_ + model.intercept_, mean, rtol=1e-4, atol=1e-4)
    marginal, L = np.diag(np.linalg.inv(oracle.precision(case.W, alpha))), case.known
    variance = error_variance(case, lambda y: oracle.linear_graph_convolution(case.W, case.X, y, alpha), alpha)
    scale = np.sqrt(np.sum((case.y[L] - mean[L]) ** 2 / marginal[L]) / np.sum(variance[L] / marginal[L]))
    assert model.scale_ == pytest.approx(scale, rel=1e-3)
    np.testing.assert_allclose(std, scale * student_factor(L.sum() - 3) * np.sqrt(variance), rtol=1e-3, atol=1e-3)


@given(cases(), levels)
def test_convolution_and_residual_propagation_is_one_solve(case: Case, alpha: float) -> None:
    model = ResidualPropagation(LinearGraphConvolution(alpha=alpha), alpha=alpha).fit(case.graph, case.X, case.y)
    mean, std = model.predict(return_std=True)
    expected = oracle.convolution_and_propagation(case.W, case.X, case.y, alpha)
    np.testing.assert_allclose(mean, expected, rtol=1e-4, atol=1e-4)
    scale = conditional_scale(case, lambda y: oracle.linear_graph_convolution(case.W, case.X, y, alpha), alpha)
    variance = error_variance(case, lambda y: oracle.convolution_and_propagation(case.W, case.X, y, alpha), alpha)
    hidden = np.where(case.known, 0.0, np.maximum(variance, 0.0))
    expected_std = scale * student_factor(case.known.sum() - 3) * np.sqrt(hidden)
    np.testing.assert_allclose(std, expected_std, rtol=1e-3, atol=1e-5)


@given(cases(), levels)
def test_residual_propagation_over_regression(case: Case, alpha: float) -> None:
    model = ResidualPropagation(LinearRegression(), alpha=alpha).fit(case.graph, case.X, case.y)
    trend = oracle.linear_regression(case.X, case.y)
    expected = oracle.residual_propagation(case.W, trend, case.y, alpha)
    np.testing.assert_allclose(model.predict(), expected, rtol=1e-6, atol=1e-6)


@given(cases(), levels)
def test_propagation_keeps_labels_exactly(case: Case, alpha: float) -> None:
    for model in (LabelPropagation(alpha=alpha), ResidualPropagation(LinearRegression(), alpha=alpha)):
        mean, std = model.fit(case.graph, case.X, case.y).predict(return_std=True)
        np.testing.assert_array_equal(mean[case.known], case.y[case.known])
        np.testing.assert_array_equal(std[case.known], 0.0)


@given(cases(), st.sampled_from([0.1, 0.5, 0.9]))
def test_omega_is_alpha_on_another_scale(case: Case, alpha: float) -> None:
    by_alpha = LinearGraphConvolution(alpha=alpha).fit(case.graph, case.X, case.y)
    by_omega = LinearGraphConvolution(omega=alpha / (1 - alpha)).fit(case.graph, case.X, case.y)
    assert by_omega.alpha_ == pytest.approx(alpha)
    assert by_alpha.omega_ == pytest.approx(alpha / (1 - alpha))
    np.testing.assert_allclose(by_omega.predict(), by_alpha.predict(), rtol=1e-6, atol=1e-6)


@given(cases(), levels)
def test_without_intercept_features_are_not_centred(case: Case, alpha: float) -> None:
    model = LinearGraphConvolution(alpha=alpha, fit_intercept=False).fit(case.graph, case.X, case.y)
    Z, L = oracle.smooth_features(case.W, case.X, alpha), case.known
    b = np.linalg.lstsq(Z[L], case.y[L], rcond=None)[0]
    np.testing.assert_allclose(model.predict(), Z @ b, rtol=1e-4, atol=1e-4)
    assert model.intercept_ == 0.0


@given(cases(), cases(), levels)
def test_inductive_prediction(case: Case, other: Case, alpha: float) -> None:
    assume(not np.array_equal(case.X, other.X))  # else it is the prediction of the fit
    model = LinearGraphConvolution(alpha=alpha).fit(case.graph, case.X, case.y)
    mean, std = model.predict(other.graph, other.X, return_std=True)
    smoothed = oracle.smooth_features(other.W, other.X - case.X.mean(axis=0), alpha)
    np.testing.assert_allclose(mean, smoothed @ model.coef_ + model.intercept_, rtol=1e-4, atol=1e-4)
    F, L = oracle.smooth_features(case.W, case.X - case.X.mean(axis=0), alpha), case.known
    F, there = (np.column_stack([np.ones(len(Z)), Z]) for Z in (F, smoothed))
    coefficients = there @ np.linalg.pinv(F[L])
    ours = np.linalg.inv(oracle.precision(case.W, alpha))[np.ix_(L, L)]
    variance = np.diag(np.linalg.inv(oracle.precision(other.W, alpha)) + coefficients @ ours @ coefficients.T)
    expected = model.scale_ * student_factor(L.sum() - 3) * np.sqrt(variance)
    np.testing.assert_allclose(std, expected, rtol=1e-3)
    regression = LinearRegression().fit(case.graph, case.X, case.y)
    np.testing.assert_allclose(
        regression.predict(other.graph, other.X),
        other.X @ regression.coef_ + regression.intercept_,
        rtol=1e-6,
        atol=1e-8,
    )


def test_predicting_the_fitted_graph_again_changes_nothing() -> None:
    case = random_case(4, n=30)
    for model in (LinearRegression(), LinearGraphConvolution(alpha=0.9)):
        mean, std = model.fit(case.graph, case.X, case.y).predict(return_std=True)
        again, std_again = model.predict(case.graph, case.X, return_std=True)
        np.testing.assert_allclose(again, mean, rtol=1e-6)
        if isinstance(model, LinearRegression):  # for a convolution it is a graph with a field of its own
            np.testing.assert_allclose(std_again, std, rtol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_one_level_is_chosen_for_convolution_and_propagation(seed: int) -> None:
    case = random_case(seed, n=40, p=2, labelled=24)
    folds, labelled = assign_folds(24, 5, random_state=3), np.flatnonzero(case.known)
    scores = []
    for alpha in ALPHAS:
        prediction = np.empty(24)
        for fold in range(5):
            held_out = labelled[folds == fold]
            y = oracle.hide(case.y, held_out)
            prediction[folds == fold] = oracle.convolution_and_propagation(case.W, case.X, y, alpha)[held_out]
        scores.append(r2_score(case.y[labelled], prediction))
    model = ResidualPropagation(LinearGraphConvolution(), random_state=3).fit(case.graph, case.X, case.y)
    assert model.alpha_ == model.base_.alpha_ == ALPHAS[int(np.argmax(scores))]
    assert model.cv_results_ is not None
    np.testing.assert_allclose(model.cv_results_["mean_r2"], scores, rtol=1e-3, atol=1e-3)
    expected = oracle.convolution_and_propagation(case.W, case.X, case.y, model.alpha_)
    np.testing.assert_allclose(model.predict(), expected, rtol=1e-4, atol=1e-4)


def test_the_choice_is_as_if_it_had_been_given() -> None:
    case = random_case(9, n=40, p=2, labelled=24)
    for chosen in (LinearGraphConvolution(), LinearGraphConvolution(fit_intercept=False)):
        given_level = chosen.fit(case.graph, case.X, case.y).fixed().fit(case.graph, case.X, case.y)
        np.testing.assert_array_equal(given_level.predict(), chosen.predict())
    propagation = LabelPropagation().fit(case.graph, None, case.y)
    same = LabelPropagation(alpha=propagation.alpha_).fit(case.graph, None, case.y)
    np.testing.assert_array_equal(same.predict(), propagation.predict())


def test_a_level_that_was_chosen_takes_two_degrees_of_freedom() -> None:
    case = random_case(9, n=40, p=2, labelled=24)
    chosen = LabelPropagation().fit(case.graph, None, case.y)
    given_level = LabelPropagation(alpha=chosen.alpha_).fit(case.graph, None, case.y)
    wider = np.sqrt(23 / 21) * student_factor(21) / student_factor(23)
    hidden = ~case.known
    expected = wider * given_level.predict(return_std=True)[1][hidden]
    np.testing.assert_allclose(chosen.predict(return_std=True)[1][hidden], expected, rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_a_base_of_ours_is_refitted_without_each_fold(seed: int) -> None:
    case = random_case(seed, n=40, p=2, labelled=24)
    folds, labelled = assign_folds(24, 5), np.flatnonzero(case.known)
    model = ResidualPropagation(LinearRegression()).fit(case.graph, case.X, case.y)
    assert model.cv_results_ is not None
    for a, alpha in enumerate(ALPHAS):
        prediction = np.empty(24)
        for fold in range(5):
            held_out = labelled[folds == fold]
            y = oracle.hide(case.y, held_out)
            trend = oracle.linear_regression(case.X, y)
            prediction[folds == fold] = oracle.residual_propagation(case.W, trend, y, alpha)[held_out]
        assert model.cv_results_["mean_r2"][a] == pytest.approx(r2_score(case.y[labelled], prediction), abs=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_a_scikit_base_is_cross_fitted(seed: int) -> None:
    case = random_case(seed, n=40, p=2, labelled=24)
    folds, L = assign_folds(24, 5), case.known
    X, y = case.X[L], case.y[L]
    left_out = np.empty(24)
    for fold in range(5):
        out = folds == fold
        left_out[out] = Ridge().fit(X[~out], y[~out]).predict(X[out])
    residual = np.full(40, np.nan)
    residual[L] = y - left_out
    scores = []
    for alpha in ALPHAS:
        prediction = left_out.copy()
        for fold in range(5):
            out = np.flatnonzero(L)[folds == fold]
            others = oracle.hide(residual, out)
            prediction[folds == fold] += oracle.propagate(case.W, others, ~np.isnan(others), alpha)[out]
        scores.append(r2_score(y, prediction))
    model = ResidualPropagation(Ridge()).fit(case.graph, case.X, case.y)
    assert model.cv_results_ is not None
    np.testing.assert_allclose(model.cv_results_["mean_r2"], scores, atol=1e-4)
    field = oracle.propagate(case.W, residual, L, model.alpha_)
    expected = np.where(L, case.y, Ridge().fit(X, y).predict(case.X) + field)
    np.testing.assert_allclose(model.predict(), expected, rtol=1e-6, atol=1e-6)


def test_a_base_that_overfits_still_leaves_residuals() -> None:
    case = random_case(6, n=60, p=2, labelled=40)
    tree = DecisionTreeRegressor(random_state=0)
    assert (
        np.ptp(tree.fit(case.X[case.known], case.y[case.known]).predict(case.X[case.known]) - case.y[case.known]) < 1e-9
    )
    model = ResidualPropagation(tree, alpha=0.9).fit(case.graph, case.X, case.y)
    assert model.scale_ > 0.1


def test_the_base_is_never_touched() -> None:
    case = random_case(6, n=30)
    for base in (LinearGraphConvolution(), ScikitRegression()):
        before = dict(vars(base))
        model = ResidualPropagation(base).fit(case.graph, case.X, case.y)
        assert vars(base) == before
        assert model.base is base
        assert model.base_ is not base

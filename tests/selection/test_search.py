"""The shared-Krylov searches against the plain loop over levels and folds, in dense algebra."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.linalg import block_diag
from sklearn.metrics import r2_score

import oracle
from cases import Case, cases, random_case
from graphmrf import LinearRegression
from graphmrf._typing import Floats, Ints
from graphmrf.graph import Graph
from graphmrf.selection import (
    ALPHAS,
    AlphaSearch,
    assign_folds,
    search_convolution,
    search_convolution_and_residual,
    search_propagation,
    search_residual,
    whiten,
)

EXACT = 1e-11  # so that what is compared is the algebra, not the solver
FEWER = settings(max_examples=12)  # a plain loop takes a quarter of a second


def naive(case: Case, folds: Ints, predict: Callable[[Floats, float], Floats]) -> Floats:
    """Out-of-fold predictions (n_alphas, n_labelled), level by level and fold by fold."""
    labelled = np.flatnonzero(case.known)
    out = np.empty((len(ALPHAS), labelled.size))
    for a, alpha in enumerate(ALPHAS):
        for fold in range(folds.max() + 1):
            held_out = folds == fold
            out[a, held_out] = predict(oracle.hide(case.y, labelled[held_out]), alpha)[labelled[held_out]]
    return out


def check(search: AlphaSearch, expected: Floats, case: Case, folds: Ints) -> None:
    y = case.y[case.known]
    np.testing.assert_allclose(search.predictions, expected, rtol=1e-6, atol=1e-6)
    scores = [r2_score(y, prediction) for prediction in expected]
    np.testing.assert_allclose(search.mean_r2, scores, rtol=1e-6, atol=1e-6)
    assert scores[search.best] > max(scores) - 1e-6
    assert search.alpha == ALPHAS[search.best]
    fold_scores = [
        [r2_score(y[folds == f], prediction[folds == f]) for f in range(folds.max() + 1)] for prediction in expected
    ]
    np.testing.assert_allclose(search.fold_r2, fold_scores, rtol=1e-5, atol=1e-5)


@FEWER
@given(cases())
def test_label_propagation_search_is_the_plain_loop(case: Case) -> None:
    folds = assign_folds(int(case.known.sum()), 3)
    expected = naive(case, folds, lambda y, alpha: oracle.label_propagation(case.W, y, alpha))
    check(search_propagation(case.graph, case.y, folds, tolerance=EXACT), expected, case, folds)


@FEWER
@given(cases())
def test_convolution_search_is_the_plain_loop(case: Case) -> None:
    folds = assign_folds(int(case.known.sum()), 2)
    expected = naive(case, folds, lambda y, alpha: oracle.linear_graph_convolution(case.W, case.X, y, alpha))
    search = search_convolution(case.graph, whiten(case.X, centred=True), case.y, folds, tolerance=EXACT)
    check(search, expected, case, folds)


@FEWER
@given(cases())
def test_convolution_and_residual_search_is_the_plain_loop(case: Case) -> None:
    folds = assign_folds(int(case.known.sum()), 2)
    expected = naive(case, folds, lambda y, alpha: oracle.convolution_and_propagation(case.W, case.X, y, alpha))
    search = search_convolution_and_residual(case.graph, whiten(case.X, centred=True), case.y, folds, tolerance=EXACT)
    check(search, expected, case, folds)


@FEWER
@given(cases())
def test_residual_search_is_the_plain_loop(case: Case) -> None:
    folds = assign_folds(int(case.known.sum()), 3)
    trends = np.random.default_rng(0).normal(size=(len(case.y), 3))  # as if a base had been fitted without each fold
    labelled = np.flatnonzero(case.known)

    def predict(y: Floats, alpha: float) -> Floats:
        fold = next(f for f in range(3) if np.isnan(y[labelled[folds == f]]).all())
        return oracle.residual_propagation(case.W, trends[:, fold], y, alpha)

    search = search_residual(case.graph, case.y, trends[labelled], folds, tolerance=EXACT)
    check(search, naive(case, folds, predict), case, folds)


@FEWER
@given(cases())
def test_out_of_fold_regression_is_the_first_level_of_the_convolution(case: Case) -> None:
    folds = assign_folds(int(case.known.sum()), 3)
    fitted = LinearRegression().fit(case.graph, case.X, case.y)
    regression = fitted.out_of_fold(case.graph, case.X, case.y, folds)
    convolution = search_convolution(case.graph, whiten(case.X, centred=True), case.y, folds, alphas=(0.0,))
    np.testing.assert_allclose(regression, convolution.predictions[0], rtol=1e-9)


def test_without_features_the_convolution_is_the_training_mean() -> None:
    case = random_case(1, p=0)
    folds = assign_folds(int(case.known.sum()), 3)
    search = search_convolution(case.graph, whiten(case.X, centred=True), case.y, folds)
    y = case.y[case.known]
    expected = [y[folds != fold].mean() for fold in folds]
    np.testing.assert_allclose(search.predictions, np.tile(expected, (len(ALPHAS), 1)), rtol=1e-12)
    assert search.best == 0


def test_fewer_labels_than_features_still_has_an_answer() -> None:
    case = random_case(3, n=12, p=8, labelled=4)
    folds = assign_folds(4, 5)
    search = search_convolution(case.graph, whiten(case.X, centred=True), case.y, folds)
    assert np.isfinite(search.predictions).all()
    assert np.isnan(search.fold_r2).all()  # one node in each fold


def test_a_direction_that_no_label_sees_is_not_fitted_to_the_error_of_the_solver() -> None:
    rng = np.random.default_rng(0)
    W = block_diag(*(random_case(seed, n=n).W for seed, n in ((0, 150), (2, 20), (4, 20))))
    component = np.repeat([0, 1, 2], [150, 20, 20])
    X = np.column_stack([rng.normal(size=190), component == 1, component == 2]).astype(float)
    y = np.where(component == 0, rng.normal(size=190), np.nan)  # the two flags are proportional on the labelled rows
    features, folds = whiten(X, centred=True), assign_folds(150, 5)
    search = search_convolution(Graph(W), features, y, folds)
    for a, alpha in enumerate(ALPHAS):
        Z, outcome = oracle.smooth(W, features.Z, alpha)[:150], y[:150]
        for fold in range(5):
            out = folds == fold
            means, mean = Z[~out].mean(axis=0), outcome[~out].mean()
            g = np.linalg.pinv(Z[~out] - means, rcond=1e-9) @ (outcome[~out] - mean)
            np.testing.assert_allclose(search.predictions[a, out], mean + (Z[out] - means) @ g, rtol=1e-3, atol=1e-3)


def test_equal_scores_go_to_the_first_level() -> None:
    y, folds = np.array([1.0, 2.0, 4.0]), np.array([0, 1, 2])
    search = AlphaSearch.score((0.1, 0.2, 0.3), np.array([[0.0, 0.0, 0.0], y, y]), y, folds)
    assert (search.best, search.alpha) == (1, 0.2)


def test_constant_outcomes_have_no_score_but_a_choice() -> None:
    case = random_case(0)
    y = np.where(case.known, 2.0, np.nan)
    search = search_propagation(case.graph, y, assign_folds(int(case.known.sum()), 3))
    assert np.isnan(search.mean_r2).all()
    np.testing.assert_allclose(search.predictions, 2.0, atol=1e-12)


def test_equal_outcomes_have_no_score_whatever_their_rounded_mean() -> None:
    y, folds = np.full(6, 0.1), np.array([0, 0, 0, 1, 1, 1])  # the mean of three is not 0.1 but the next number
    search = AlphaSearch.score((0.1, 0.2), np.array([y + 1e-3, y]), y, folds)
    assert np.isnan(search.mean_r2).all()
    assert np.isnan(search.fold_r2).all()
    assert search.alpha == 0.2


@pytest.mark.parametrize(("scale", "offset"), [(1e-200, 0.0), (1e200, 0.0), (1.0, 1e12)])
def test_scores_do_not_depend_on_the_unit_nor_on_the_origin_of_the_outcome(scale: float, offset: float) -> None:
    rng = np.random.default_rng(0)
    y, folds = rng.normal(size=20), np.arange(20) % 4
    guesses = y + np.array([[0.5], [0.4], [0.45]]) * rng.normal(size=20)
    expected = AlphaSearch.score((0.1, 0.2, 0.3), guesses, y, folds)
    search = AlphaSearch.score((0.1, 0.2, 0.3), guesses * scale + offset, y * scale + offset, folds)
    np.testing.assert_allclose(search.mean_r2, expected.mean_r2, rtol=1e-3)
    assert search.alpha == expected.alpha == 0.2


def test_an_outlier_does_not_blur_the_mean_of_the_folds_without_it() -> None:
    graph = Graph.from_edges([0, 1, 2, 3, 4], [1, 2, 3, 4, 5])
    y, folds = np.array([1.0, 2.0, 3.0, 4.0, 1e20, 5.0]), np.array([0, 0, 0, 0, 1, 0])
    search = search_propagation(graph, y, folds, alphas=(0.0,))
    np.testing.assert_allclose(search.predictions[0, 4], 3.0)


@pytest.mark.parametrize("seed", range(3))
def test_no_prediction_reads_its_own_fold(seed: int) -> None:
    case = random_case(seed, n=20)
    folds = assign_folds(int(case.known.sum()), 3, random_state=seed)
    features = whiten(case.X, centred=True)
    first = search_convolution_and_residual(case.graph, features, case.y, folds).predictions
    changed = case.y.copy()
    changed[np.flatnonzero(case.known)[folds == 0]] += 100.0
    second = search_convolution_and_residual(case.graph, features, changed, folds).predictions
    np.testing.assert_allclose(second[:, folds == 0], first[:, folds == 0], rtol=1e-9)


def test_the_default_tolerance_decides_as_the_plain_loop_does() -> None:
    case = random_case(7, n=120, p=3, labelled=60)
    folds = assign_folds(60, 5)
    expected = naive(case, folds, lambda y, alpha: oracle.convolution_and_propagation(case.W, case.X, y, alpha))
    search = search_convolution_and_residual(case.graph, whiten(case.X, centred=True), case.y, folds)
    np.testing.assert_allclose(search.predictions, expected, rtol=1e-4, atol=1e-4)
    assert search.best == np.argmax([r2_score(case.y[case.known], prediction) for prediction in expected])


def test_weights_are_repeated_labels() -> None:
    """A weight of 2 scores as a label listed twice, in the pooled score, in those of folds and in the choice."""
    rng = np.random.default_rng(0)
    y, predictions, folds = rng.normal(size=9), rng.normal(size=(4, 9)), np.arange(9) % 3
    weights = np.array([1, 2, 1, 3, 1, 1, 0, 1, 2])
    weighted = AlphaSearch.score(range(4), predictions, y, folds, weights.astype(float))
    rows = np.repeat(np.arange(9), weights)
    repeated = AlphaSearch.score(range(4), predictions[:, rows], y[rows], folds[rows])
    np.testing.assert_allclose(weighted.mean_r2, repeated.mean_r2)
    np.testing.assert_allclose(weighted.fold_r2, repeated.fold_r2)
    assert weighted.best == repeated.best

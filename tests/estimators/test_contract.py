"""What every estimator promises."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsRegressor

from cases import random_case
from graphmrf import (
    Graph,
    LabelPropagation,
    LinearGraphConvolution,
    LinearRegression,
    ResidualPropagation,
    SimpleGraphConvolution,
)
from graphmrf.errors import InvalidInputError

CASE = random_case(11, n=40, p=3, labelled=20)

AT_A_LEVEL: dict[str, Callable[[], Any]] = {
    "LR": LinearRegression,
    "LR without intercept": lambda: LinearRegression(fit_intercept=False),
    "LP": lambda: LabelPropagation(alpha=0.9),
    "LP omega": lambda: LabelPropagation(omega=3.0),
    "LGC": lambda: LinearGraphConvolution(alpha=0.7),
    "LGC without intercept": lambda: LinearGraphConvolution(alpha=0.7, fit_intercept=False),
    "LGC/RP": lambda: ResidualPropagation(LinearGraphConvolution(alpha=0.7), alpha=0.7),
    "LR/RP": lambda: ResidualPropagation(LinearRegression(), omega=2.0),
    "SGC": lambda: SimpleGraphConvolution(n_layers=2),
    "SGC without intercept": lambda: SimpleGraphConvolution(n_layers=2, fit_intercept=False),
    "SGC/RP": lambda: ResidualPropagation(SimpleGraphConvolution(n_layers=1), alpha=0.6),
}
SEARCHING: dict[str, Callable[[], Any]] = {
    "LP cv": LabelPropagation,
    "LGC cv": LinearGraphConvolution,
    "LGC/RP cv": lambda: ResidualPropagation(LinearGraphConvolution()),
    "LGC, then RP cv": lambda: ResidualPropagation(LinearGraphConvolution(alpha=0.5)),
    "LGC cv, then RP": lambda: ResidualPropagation(LinearGraphConvolution(), alpha=0.5),
    "LR/RP cv": lambda: ResidualPropagation(LinearRegression()),
    "SGC/RP cv": lambda: ResidualPropagation(SimpleGraphConvolution()),
    "neighbours/RP": lambda: ResidualPropagation(KNeighborsRegressor(2), alpha=0.5),
    "neighbours/RP cv": lambda: ResidualPropagation(KNeighborsRegressor(2)),
}
EVERY = AT_A_LEVEL | SEARCHING

every = pytest.mark.parametrize("make", EVERY.values(), ids=EVERY.keys())
at_a_level = pytest.mark.parametrize("make", AT_A_LEVEL.values(), ids=AT_A_LEVEL.keys())
searching = pytest.mark.parametrize("make", SEARCHING.values(), ids=SEARCHING.keys())


def fitted(make: Callable[[], Any], y: Any = CASE.y, X: Any = CASE.X) -> Any:
    return make().fit(CASE.graph, X, y)


@every
def test_fit_returns_self_and_predicts_every_node(make: Callable[[], Any]) -> None:
    model = make()
    assert model.fit(CASE.graph, CASE.X, CASE.y) is model
    mean, std = model.predict(return_std=True)
    assert mean.shape == std.shape == (40,)
    assert mean.dtype == std.dtype == np.float64
    assert np.isfinite(mean).all()
    assert (std[~CASE.known] > 0).all()
    np.testing.assert_array_equal(model.predict(), mean)


@every
def test_no_input_is_changed(make: Callable[[], Any]) -> None:
    X, y = CASE.X.copy(), CASE.y.copy()
    X.flags.writeable = y.flags.writeable = False
    fitted(make, y, X).predict(return_std=True)
    np.testing.assert_array_equal(X, CASE.X)
    np.testing.assert_array_equal(y, CASE.y)


@every
def test_an_answer_may_be_changed_without_harm(make: Callable[[], Any]) -> None:
    model = fitted(make)
    first = model.predict()
    model.predict()[:] = 0.0
    np.testing.assert_array_equal(model.predict(), first)


@every
def test_the_same_seed_gives_the_same_answer(make: Callable[[], Any]) -> None:
    first, second = fitted(make).predict(return_std=True), fitted(make).predict(return_std=True)
    np.testing.assert_array_equal(first, second)


@every
def test_a_refit_forgets_the_first_fit(make: Callable[[], Any]) -> None:
    other = random_case(5, n=30, p=3, labelled=15)
    model = make().fit(other.graph, other.X, other.y)
    model.predict(return_std=True)
    np.testing.assert_array_equal(
        model.fit(CASE.graph, CASE.X, CASE.y).predict(return_std=True), fitted(make).predict(return_std=True)
    )


@at_a_level
def test_predictions_follow_the_nodes_when_they_are_reordered(make: Callable[[], Any]) -> None:
    order = np.random.default_rng(0).permutation(40)
    shuffled = make().fit(Graph(CASE.W[order][:, order]), CASE.X[order], CASE.y[order])
    for expected, actual in zip(fitted(make).predict(return_std=True), shuffled.predict(return_std=True), strict=True):
        np.testing.assert_allclose(actual, expected[order], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("make", [make for name, make in EVERY.items() if "without intercept" not in name])
def test_predictions_follow_a_shift_and_a_scale_of_the_outcome(make: Callable[[], Any]) -> None:
    mean, std = fitted(make).predict(return_std=True)
    moved, stretched = fitted(make, 10.0 - 3.0 * CASE.y).predict(return_std=True)
    np.testing.assert_allclose(moved, 10.0 - 3.0 * mean, rtol=1e-6)
    np.testing.assert_allclose(stretched, 3.0 * std, rtol=1e-6)


@every
def test_only_labels_of_labelled_nodes_matter(make: Callable[[], Any]) -> None:
    """The outcomes that are hidden could be anything: masked arrays and NaN payloads carry them, and are not read."""
    masked = np.ma.array(CASE.truth, mask=~CASE.known)
    np.testing.assert_array_equal(fitted(make, masked).predict(return_std=True), fitted(make).predict(return_std=True))


@every
def test_clone_and_get_params(make: Callable[[], Any]) -> None:
    model = fitted(make)
    copy = clone(model)
    assert str(copy.get_params()) == str(make().get_params())
    with pytest.raises(NotFittedError, match=r"call fit\(graph, X, y\) first"):
        copy.predict()
    np.testing.assert_array_equal(copy.fit(CASE.graph, CASE.X, CASE.y).predict(), model.predict())


@every
def test_a_pickle_predicts_alike(make: Callable[[], Any]) -> None:
    model = fitted(make)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(return_std=True), model.predict(return_std=True))


@every
def test_a_frame_and_a_series_do_as_well(make: Callable[[], Any]) -> None:
    frame = pd.DataFrame(CASE.X, columns=["income", "age", "size"])
    named = fitted(make, pd.Series(CASE.y), frame)
    np.testing.assert_allclose(named.predict(), fitted(make).predict(), rtol=1e-12)


@every
def test_float32_gives_float32_with_the_accuracy_of_its_input(make: Callable[[], Any]) -> None:
    model = fitted(make, CASE.y.astype(np.float32), CASE.X.astype(np.float32))
    mean, std = model.predict(return_std=True)
    assert mean.dtype == std.dtype == np.float32
    exact, exact_std = fitted(make).predict(return_std=True)
    np.testing.assert_allclose(mean, exact, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(std, exact_std, rtol=1e-4, atol=1e-4)


@every
def test_predicting_before_fitting_is_an_error(make: Callable[[], Any]) -> None:
    with pytest.raises(NotFittedError, match="not fitted yet"):
        make().predict()
    assert not hasattr(make(), "scale_")


@searching
def test_the_search_is_reported(make: Callable[[], Any]) -> None:
    model = fitted(make)
    if model.cv_results_ is None:
        assert model.alpha == model.alpha_
        return
    table = model.cv_results_
    assert table["fold_r2"].shape == (14, 5)
    assert table["alpha"][np.argmax(table["mean_r2"])] == model.alpha_
    assert model.omega_ == pytest.approx(model.alpha_ / (1 - model.alpha_))


@searching
def test_cross_validation_of_one_label_is_refused(make: Callable[[], Any]) -> None:
    y = np.full(40, np.nan)
    y[3] = 1.0
    with pytest.raises(InvalidInputError, match="at least 2 labelled nodes, got 1"):
        fitted(make, y)


@at_a_level
def test_no_label_at_all_is_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(InvalidInputError, match="at least one known value, got NaN at all 40 nodes"):
        fitted(make, np.full(40, np.nan))

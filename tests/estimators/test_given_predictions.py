"""Residuals of predictions that are already there, and of regressors that know nothing of scikit-learn."""

from typing import Any, Self

import numpy as np
import pytest

from cases import random_case
from graphmrf import LinearGraphConvolution, LinearRegression, ResidualPropagation
from graphmrf.errors import InvalidInputError
from graphmrf.estimators.out_of_fold import out_of_fold
from graphmrf.selection import assign_folds

CASE = random_case(5, n=60, p=2, labelled=40)


class Mean:
    """A regressor with nothing but its two methods."""

    def fit(self, X: Any, y: Any) -> Self:  # noqa: ARG002
        self.mean = float(np.mean(y))
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.mean)


def test_given_predictions_are_corrected_like_those_of_a_base() -> None:
    base = LinearRegression().fit(CASE.graph, CASE.X, CASE.y)
    expected = ResidualPropagation(base, alpha=0.7).fit(CASE.graph, CASE.X, CASE.y)
    found = ResidualPropagation(predictions=base.predict(), alpha=0.7).fit(CASE.graph, None, CASE.y)
    np.testing.assert_allclose(found.predict(), expected.predict(), atol=1e-9)


def test_the_level_of_given_predictions_is_searched() -> None:
    model = ResidualPropagation(predictions=np.zeros(60)).fit(CASE.graph, None, CASE.y)
    assert model.cv_results_ is not None
    folds = assign_folds(40, 4)
    found = out_of_fold(model, CASE.graph, None, CASE.y, folds)
    labelled = np.flatnonzero(CASE.known)
    hidden = CASE.y.copy()
    hidden[labelled[folds == 1]] = np.nan
    again = model.fixed().fit(CASE.graph, None, hidden)
    np.testing.assert_allclose(found[folds == 1], again.predict()[labelled[folds == 1]], atol=1e-5)


def test_a_base_or_predictions_is_needed() -> None:
    for model in (ResidualPropagation(), ResidualPropagation(LinearRegression(), predictions=CASE.y)):
        with pytest.raises(InvalidInputError, match="a base or predictions"):
            model.fit(CASE.graph, CASE.X, CASE.y)
    with pytest.raises(InvalidInputError, match="not finite"):
        ResidualPropagation(predictions=CASE.y).fit(CASE.graph, None, CASE.y)


def test_a_base_needs_only_fit_and_predict() -> None:
    model = ResidualPropagation(Mean(), alpha=0.5).fit(CASE.graph, CASE.X, CASE.y)
    given = ResidualPropagation(predictions=np.full(60, np.nanmean(CASE.y)), alpha=0.5)
    away = model.predict() - given.fit(CASE.graph, None, CASE.y).predict()
    assert np.abs(away).max() < 0.2 * np.nanstd(CASE.y)


def test_the_graph_and_features_of_the_fit_give_its_predictions() -> None:
    model = ResidualPropagation(LinearGraphConvolution(alpha=0.5), alpha=0.5).fit(CASE.graph, CASE.X, CASE.y)
    np.testing.assert_array_equal(model.predict(CASE.graph, CASE.X.copy()), model.predict())
    with pytest.raises(InvalidInputError, match="only the nodes of the graph"):
        model.predict(CASE.graph, CASE.X + 1.0)

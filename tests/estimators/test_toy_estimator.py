"""A new estimator is its file and one row: a toy does everything that the others do."""

import numpy as np
import pytest

from cases import random_case
from graphmrf import GraphClassifier, ResidualPropagation
from graphmrf.estimators.methods import METHODS
from graphmrf.estimators.out_of_fold import out_of_fold
from graphmrf.selection import assign_folds
from toy_estimator import TOY

CASE = random_case(3, n=30, p=2, labelled=16)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, TOY.key, TOY)


def test_it_is_refitted_without_each_fold() -> None:
    labels, folds = CASE.y[CASE.known], assign_folds(16, 4)
    expected = [np.median(labels[folds != fold]) for fold in folds]
    fitted = TOY.make(seed=1).fit(CASE.graph, None, CASE.y)
    np.testing.assert_allclose(out_of_fold(fitted, CASE.graph, None, CASE.y, folds), expected)


def test_its_residuals_are_propagated() -> None:
    mean, std = ResidualPropagation(TOY.make(), alpha=0.5).fit(CASE.graph, CASE.X, CASE.y).predict(return_std=True)
    np.testing.assert_allclose(mean[CASE.known], CASE.y[CASE.known])
    assert (std[~CASE.known] > 0).all()


def test_it_classifies() -> None:
    classes = np.where(CASE.known, CASE.y > np.nanmedian(CASE.y), np.nan)
    assert GraphClassifier(TOY.make()).fit(CASE.graph, None, classes).predict().shape == (30,)

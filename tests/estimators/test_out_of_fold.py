"""Out-of-fold predictions of the field, against fits without the fold."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from graphmrf import Graph, GraphRegressor
from graphmrf.estimators.inputs import read_outcome
from graphmrf.selection import assign_folds

pytestmark = pytest.mark.slow

N = 100


def example(transform: str = "identity", solver: str = "auto") -> tuple[Graph, Any, Any, GraphRegressor]:
    rng = np.random.default_rng(7)
    graph = Graph.from_edges(np.arange(N), (np.arange(N) + 1) % N)
    X = rng.standard_normal((N, 2))
    y = np.exp(0.3 * X[:, 0] + 0.2 * np.sin(np.arange(N) / 4) + 0.1 * rng.standard_normal(N))
    y[::4] = np.nan
    return graph, X, y, GraphRegressor(transform=transform, solver=solver).fit(graph, X, y)


@pytest.mark.parametrize("transform", ["identity", "log"])
@pytest.mark.parametrize("solver", ["dense", "sparse"])
def test_labels_are_predicted_as_by_a_fit_without_their_fold(transform: str, solver: str) -> None:
    graph, X, y, fitted = example(transform, solver)
    outcome = read_outcome(y, N)
    folds = assign_folds(outcome.n_labelled, 4, random_state=0)
    labelled, expected = np.flatnonzero(outcome.known), np.empty((2, folds.size))
    for fold in range(4):
        hidden = y.copy()
        hidden[labelled[folds == fold]] = np.nan
        refitted = clone(fitted).fit(graph, X, hidden).predict(return_std=True)
        expected[:, folds == fold] = np.stack(refitted)[:, labelled[folds == fold]]
    found = np.stack(fitted.out_of_fold(graph, X, y, folds, return_std=True))
    scale = float(np.nanstd(y))
    assert np.sqrt(np.mean((found[0] - expected[0]) ** 2)) < 0.1 * scale  # the scale of y is that of all labels
    assert np.median(np.abs(np.log(found[1] / expected[1]))) < 0.15
    np.testing.assert_array_equal(fitted.out_of_fold(graph, X, y, folds), found[0])


def test_a_fold_is_not_read() -> None:
    graph, X, y, fitted = example()
    outcome = read_outcome(y, N)
    folds, labelled = assign_folds(outcome.n_labelled, 4, random_state=0), np.flatnonzero(outcome.known)
    moved = y.copy()
    moved[labelled[folds == 1][0]] *= 1.5
    again = GraphRegressor().fit(graph, X, moved).out_of_fold(graph, X, moved, folds)
    found = fitted.out_of_fold(graph, X, y, folds)
    np.testing.assert_allclose(again[folds == 1], found[folds == 1], atol=0.1 * float(np.nanstd(y)))


def test_one_fold_for_every_label_is_close_to_leaving_one_out() -> None:
    graph, X, y, fitted = example()
    expected = fitted.loo_
    mean, std = fitted.out_of_fold(graph, X, y, np.arange(len(expected)), return_std=True)
    assert np.sqrt(np.mean((mean - expected["prediction"]) ** 2)) < 0.15 * float(np.nanstd(y))
    assert np.median(np.abs(np.log(std / expected["std"]))) < 0.2


def test_two_labels_are_enough_for_two_folds() -> None:
    graph, X, y, _ = example()
    y[3:] = np.nan
    fitted = GraphRegressor().fit(graph, X, y)
    assert np.isfinite(fitted.out_of_fold(graph, X, y, np.array([0, 1]))).all()

"""Out-of-fold predictions of the field, against fits and dense algebra without the fold."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from graphmrf import Graph, GraphRegressor
from graphmrf.estimators.inputs import read_outcome
from graphmrf.field import averaged as averaging
from graphmrf.field.averaged import AveragedPosterior
from graphmrf.field.exact import ExactPosterior
from graphmrf.field.sparse import SparsePosterior

pytestmark = pytest.mark.usefixtures("few_draws")

N = 50


def example(transform: str = "identity") -> tuple[Graph, Any, Any, GraphRegressor]:
    rng = np.random.default_rng(7)
    graph = Graph.from_edges(np.arange(N), (np.arange(N) + 1) % N)
    X = rng.standard_normal((N, 2))
    y = np.exp(0.3 * X[:, 0] + 0.2 * np.sin(np.arange(N) / 4) + 0.1 * rng.standard_normal(N))
    y[::4] = np.nan
    return graph, X, y, GraphRegressor(transform=transform).fit(graph, X, y)


def test_few_labels_are_predicted_by_a_fit_without_their_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(averaging, "FOLD_STEPS", averaging.SLICES)
    graph, X, y, fitted = example()
    outcome = read_outcome(y, N)
    folds = outcome.folds(4, 0)
    labelled, expected = np.flatnonzero(outcome.known), np.empty(folds.size)
    for fold in range(4):
        hidden = y.copy()
        hidden[labelled[folds == fold]] = np.nan
        expected[folds == fold] = clone(fitted).fit(graph, X, hidden).predict()[labelled[folds == fold]]
    np.testing.assert_allclose(fitted.out_of_fold(graph, X, y, folds), expected, rtol=1e-6)


@pytest.mark.parametrize("transform", ["identity", "log"])
def test_many_labels_are_predicted_by_the_field_given_the_other_folds(transform: str) -> None:
    _, _, y, fitted = example(transform)
    outcome = read_outcome(y, N)
    folds = outcome.folds(4, 0)
    averaged, expected = fitted._field.posterior, np.empty(folds.size)
    assert isinstance(averaged, AveragedPosterior)
    whole = averaged.base
    for fold in range(4):
        own = folds == fold
        posterior = ExactPosterior(whole.covariance.part(~own), whole.h, whole.z[~own])
        mean, variance = posterior.moments(whole.covariance.rows[own])
        expected[own] = fitted.transform_.moments(mean, np.sqrt(variance))[0]
    likely = replace(fitted._field, posterior=whole)
    np.testing.assert_allclose(likely.out_of_fold(folds, refitted_up_to=10), expected, rtol=1e-8)


def test_one_fold_for_every_label_is_leaving_one_out() -> None:
    fitted = example()[-1]
    expected = fitted.left_out_["prediction"]
    actual = fitted._field.out_of_fold(np.arange(len(expected)), refitted_up_to=0)
    np.testing.assert_allclose(actual, expected, rtol=1e-8)


def test_two_labels_are_enough_for_two_folds() -> None:
    graph, X, y, _ = example()
    y[3:] = np.nan
    fitted = GraphRegressor().fit(graph, X, y)
    assert np.isfinite(fitted.out_of_fold(graph, X, y, np.array([0, 1]))).all()


def test_the_sparse_field_is_conditioned_on_the_other_folds() -> None:
    graph, X, y, _ = example()
    fitted = GraphRegressor(solver="sparse").fit(graph, X, y)
    outcome = read_outcome(y, N)
    folds = outcome.folds(4, 0)
    posterior, expected = fitted._field.posterior, np.empty(folds.size)
    assert isinstance(posterior, SparsePosterior)
    system, F = posterior.projected.system, posterior.projected.F[outcome.known].astype(np.float64)
    field = system.g[:, None] * np.linalg.inv(np.eye(N) + system.omega * graph.N.toarray()) * system.g
    noise = posterior.beta.noise
    K = (F * posterior.beta.variances) @ F.T + noise * system.rho * field[np.ix_(outcome.known, outcome.known)]
    for fold in range(4):
        own = folds == fold
        others = K[np.ix_(~own, ~own)] + noise * np.eye(int((~own).sum()))
        expected[own] = K[np.ix_(own, ~own)] @ np.linalg.solve(others, posterior.z[~own])
    actual = fitted.out_of_fold(graph, X, y, folds)
    np.testing.assert_allclose(actual, fitted.transform_.back(expected), rtol=1e-3)


def test_many_labels_keep_the_coefficients() -> None:
    graph, X, y, _ = example()
    fitted = GraphRegressor(solver="sparse").fit(graph, X, y)
    outcome = read_outcome(y, N)
    folds = outcome.folds(4, 0)
    anew = fitted.out_of_fold(graph, X, y, folds)
    posterior, kept = fitted._field.posterior, np.empty(folds.size)
    assert isinstance(posterior, SparsePosterior)
    for fold in range(4):
        kept[folds == fold] = fitted.transform_.back(posterior.kept(folds == fold))
    labels = outcome.y[outcome.known]
    assert np.mean((kept - labels) ** 2) < np.mean((anew - labels) ** 2)

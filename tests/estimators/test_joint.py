"""Draws, intervals and sums of methods that are linear in the labels agree with their standard deviations."""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import graphmrf as gm
import oracle
from graphmrf.errors import InvalidInputError
from graphmrf.estimators.error_bars import interval_width

N = 40
RNG = np.random.default_rng(4)
GRAPH = gm.Graph.from_knn(RNG.random((N, 2)), 4, ids=[f"n{i}" for i in range(N)])
X = pd.DataFrame(RNG.normal(size=(N, 2)), columns=["age", "size"], index=GRAPH.ids)
KNOWN = RNG.random(N) < 0.5
Y = (X["age"] + RNG.normal(scale=0.5, size=N) + 3.0).where(KNOWN).rename("rent")
GROUPS = pd.Series(np.arange(N) % 3, index=GRAPH.ids, name="ward")
WEIGHT = pd.Series(RNG.uniform(1.0, 9.0, size=N), index=GRAPH.ids)

MODELS = {
    "lp": gm.LabelPropagation(alpha=0.9),
    "lr": gm.LinearRegression(),
    "lgc": gm.LinearGraphConvolution(alpha=0.6),
    "shrunk": gm.LinearGraphConvolution(alpha=0.6, shrinkage=4.0),
    "sgc": gm.SimpleGraphConvolution(),
    "lgc-rp": gm.ResidualPropagation(gm.LinearGraphConvolution(alpha=0.6)),
    "field": gm.GraphRegressor(),
}


@cache
def fitted(name: str) -> Any:
    return MODELS[name].fit(GRAPH, X, Y)


@pytest.mark.parametrize("name", MODELS)
def test_draws_have_the_mean_and_the_standard_deviation_of_predictions(name: str) -> None:
    mean, std = fitted(name).predict(return_std=True)
    draws = fitted(name).sample(6000)
    assert draws.columns.equals(GRAPH.ids)
    np.testing.assert_allclose(draws.std(), std, rtol=0.07, atol=1e-9)
    np.testing.assert_allclose(draws.mean(), mean, atol=0.07 * float(std.max()))


@pytest.mark.parametrize("name", MODELS)
def test_totals_are_those_of_draws_with_labels_as_they_are(name: str) -> None:
    draws = fitted(name).sample(4000)
    draws.loc[:, KNOWN] = Y[KNOWN].to_numpy()
    sums = draws.T.groupby(GROUPS).sum().T
    total = fitted(name).predict_total(GROUPS)
    np.testing.assert_allclose(total["std"], sums.std(), rtol=0.1)
    np.testing.assert_allclose(total["prediction"], sums.mean(), atol=0.1 * float(total["std"].max()))
    assert total["n_observed"].tolist() == [int(KNOWN[ward == GROUPS].sum()) for ward in range(3)]
    weighted = fitted(name).predict_mean(GROUPS, weight=WEIGHT)
    means: Any = (draws * WEIGHT).T.groupby(GROUPS).sum().T / WEIGHT.groupby(GROUPS).sum()
    np.testing.assert_allclose(weighted["std"], means.std(), rtol=0.1)
    np.testing.assert_allclose(weighted["prediction"], means.mean(), atol=0.1 * float(weighted["std"].max()))
    plain = fitted(name).predict_mean(GROUPS)
    np.testing.assert_allclose(plain["upper"], total["upper"] / total["n_nodes"])


def test_draws_of_label_propagation_have_the_covariance_of_dense_algebra() -> None:
    model = fitted("lp")
    A = np.eye(N) + 9.0 * oracle.laplacian(GRAPH.adjacency.toarray())
    inverse = np.linalg.inv(A[~KNOWN][:, ~KNOWN])
    draws = model.sample(20000).loc[:, ~KNOWN]
    about = inverse / np.sqrt(np.outer(np.diag(inverse), np.diag(inverse)))
    np.testing.assert_allclose(np.corrcoef(draws.T), about, atol=0.15)


@pytest.mark.parametrize("name", [name for name in MODELS if name != "field"])
def test_intervals_are_those_of_students_distribution(name: str) -> None:
    mean, std = fitted(name).predict(return_std=True)
    low, high = fitted(name).predict_interval(0.99)
    width = interval_width(0.99, fitted(name).dof_) * std
    pd.testing.assert_series_equal(high - mean, width, check_names=False)
    pd.testing.assert_series_equal(mean - low, width, check_names=False)


def test_networks_have_independent_errors() -> None:
    model: Any = gm.GraphConvolutionalNetwork(n_layers=1, epochs=5).fit(GRAPH, X, Y)
    hidden, std = GROUPS.where(~KNOWN), model.predict(return_std=True)[1]
    expected = (std[~KNOWN] ** 2).groupby(GROUPS).sum() ** 0.5
    np.testing.assert_allclose(model.predict_total(hidden)["std"], expected, rtol=0.1)


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (np.ones(3), r"each of the 40 nodes, got shape \(3,\)"),
        (np.where(np.arange(N) == 2, -1.0, 1.0), "got -1 in row 2"),
        (np.where(GROUPS == 1, 0.0, 1.0), "a group of weight 0"),
    ],
)
def test_weights_that_cannot_be_are_refused(weight: Any, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        fitted("lp").predict_mean(GROUPS, weight=weight)


def test_means_of_counts_have_their_weights_already() -> None:
    model = gm.GraphRegressor(likelihood="poisson").fit(GRAPH, X, Y.round().clip(0))
    with pytest.raises(InvalidInputError, match="weighted by exposure"):
        model.predict_mean(GROUPS, weight=WEIGHT)

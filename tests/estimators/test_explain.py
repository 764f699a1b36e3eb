"""The explanation of a prediction is a sum, and its weights are what a change of a label does."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import norm

import graphmrf as gm
from graphmrf.errors import InvalidInputError

N = 60
RNG = np.random.default_rng(3)
GRAPH = gm.Graph.from_knn(RNG.random((N, 2)), 4, ids=[f"n{i}" for i in range(N)])
X = pd.DataFrame(RNG.normal(size=(N, 2)), columns=["age", "size"], index=GRAPH.ids)
Y = (X["age"] + GRAPH.adjacency @ RNG.normal(size=N) / 2 + RNG.normal(scale=0.3, size=N) + 7.0).where(
    np.arange(N) % 2 == 0
)


@pytest.mark.parametrize("options", [{}, {"solver": "sparse"}, {"likelihood": "student"}], ids=str)
@pytest.mark.parametrize("features", [X, X.mask(RNG.random(X.shape) < 0.1), None], ids=["whole", "holes", "none"])
def test_contributions_add_up_to_the_prediction(options: dict[str, Any], features: Any) -> None:
    model = gm.GraphRegressor(**options).fit(GRAPH, features, Y)
    found = model.explain("n5")
    assert found.prediction == pytest.approx(pd.Series(model.predict())["n5"])
    assert found.mean + found.labels["contribution"].sum() == pytest.approx(found.prediction, abs=1e-5)
    contribution = found.labels["weight"] * (found.labels["label"] - found.mean)
    np.testing.assert_allclose(found.labels["contribution"], contribution, atol=1e-6)
    assert sorted(found.labels.index) == sorted(Y.dropna().index)
    assert np.diff(found.labels["contribution"].abs()).max() <= 0


@pytest.mark.parametrize("solver", ["dense", "sparse"])
def test_the_strongest_labels_are_those_of_each_explanation(solver: Any) -> None:
    model = gm.GraphRegressor(solver=solver).fit(GRAPH, X, Y)
    found = model.strongest_labels(np.array([5, 31]))
    assert found["node"].tolist() == [5, 5, 5, 31, 31, 31]
    for node, own in found.groupby("node"):
        weights = model.explain(f"n{node}").labels.sort_values("weight", key=lambda each: -each.abs())
        assert own["labelled"].tolist() == weights["node"][:3].tolist()
        np.testing.assert_allclose(own["weight"], weights["weight"][:3], rtol=1e-5)


def test_effects_add_up_but_for_a_constant() -> None:
    found = gm.GraphRegressor(terms=["own", "field"]).fit(GRAPH, X, Y).explain("n5")
    assert set(found.effects.index) >= {"graph field"}
    constant = found.prediction - found.mean - found.effects.sum()
    assert abs(constant) < Y.std()
    text = str(found)
    assert text.startswith("n5: ")
    assert "(graph field)" in text
    assert text.count(" away, weight ") == 5


def test_weights_hold_the_predictions_of_a_learner_fixed() -> None:
    rng, n = np.random.default_rng(1), 300
    features, ring = rng.standard_normal((n, 8)), gm.Graph.from_edges(np.arange(n), (np.arange(n) + 1) % n)
    steps = 2.0 * (np.floor(4 * norm.cdf(features[:, 0])) % 2) + 0.3 * rng.standard_normal(n)
    y = np.where(rng.random(n) < 0.7, steps, np.nan)
    model = gm.GraphRegressor().fit(ring, features, y)
    assert model.shares_["learned effects"] > 0.3
    node = int(np.flatnonzero(np.isnan(y))[0])
    found = model.explain(node)
    assert found.mean + found.labels["contribution"].sum() == pytest.approx(found.prediction, abs=1e-5)
    assert str(found).endswith("weights hold the predictions of the learner fixed")
    plain = gm.GraphRegressor(learner=None).fit(ring, features, y).explain(node)
    assert "learner" not in str(plain)


@pytest.mark.parametrize(
    ("options", "node", "words"),
    [
        ({}, "n4", "whose value is known; see loo_"),
        ({}, "zz", "ids of the graph, got 'zz'"),
        ({"transform": "log"}, "n5", "without a transform only"),
    ],
)
def test_what_has_no_explanation_is_refused(options: dict[str, Any], node: str, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        gm.GraphRegressor(**options).fit(GRAPH, X, Y).explain(node)


def test_an_explanation_is_shown_as_its_text() -> None:
    found = gm.GraphRegressor(terms=["own", "field"]).fit(GRAPH, X, Y).explain("n5")
    assert repr(found) == str(found)
    assert "labels=" not in repr(found)


def test_summaries_show_small_and_large_numbers() -> None:
    incomes = gm.LinearGraphConvolution(alpha=0.5).fit(GRAPH, X * 1e6, Y).summary()
    assert "0.0000" not in incomes
    assert "e\N{MINUS SIGN}0" in incomes


def test_attributions_of_linear_effects_are_slopes_times_deviations() -> None:
    model = gm.GraphRegressor(terms=["own"]).fit(GRAPH, X, Y)
    found, std = model.feature_attributions(["n5", "n4"], n_permutations=N, return_std=True)
    scale = gm.GraphRegressor(terms=["own"]).fit(GRAPH, X * [3.0, 1.0], Y)
    np.testing.assert_allclose(scale.feature_attributions(["n5", "n4"], n_permutations=N), found, atol=1e-4)
    expected = pd.Series(model.coef_, index=X.columns) * (X.loc[["n5", "n4"]] - X.mean())
    pd.testing.assert_frame_equal(found, expected, check_names=False, atol=1e-8)
    spread = np.abs(model.coef_) * X.std() / np.sqrt(N)
    np.testing.assert_allclose(std.loc["n5"], spread, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"solver": "sparse"}, {"transform": "yeo-johnson"}], ids=str)
def test_attributions_add_up_to_predictions_by_features(options: dict[str, Any]) -> None:
    rng, n = np.random.default_rng(1), 240
    graph = gm.Graph.from_knn(rng.random((n, 2)), 4)
    table = pd.DataFrame(rng.standard_normal((n, 3)), columns=["a", "b", "c"]).assign(kind=rng.choice(["x", "y"], n))
    y = 2.0 * (np.floor(4 * norm.cdf(table["a"])) % 2) + (table["kind"] == "x") + 0.2 * rng.standard_normal(n) + 9.0
    model = gm.GraphRegressor(**options).fit(graph, table, y.where(rng.random(n) < 0.8))
    assert model.shares_["learned effects"] > 0.2
    found = model.feature_attributions([3, 8, 20], n_permutations=20)
    assert list(found.columns) == ["a", "b", "c", "kind", "degree"]
    assert (found["a"].abs() > found["b"].abs()).all()
    sums = found.attrs["mean"] + found.sum(axis=1)
    larger = gm.Graph(sparse.block_diag([graph.adjacency, sparse.csr_array((1, 1))]))
    by_features = np.asarray(model.predict(larger, table.iloc[[*range(n), 0]].reset_index(drop=True)))[[3, 8, 20]]
    if "transform" in options:
        assert np.corrcoef(sums, by_features)[0, 1] > 0.99
    else:
        np.testing.assert_allclose(sums, by_features, atol=1e-8)


def test_attributions_of_an_interaction_are_the_shapley_values() -> None:
    """Two symmetric features that act together only, and one that does nothing, against the sum over all orders."""
    rng, n = np.random.default_rng(2), 150
    values = rng.choice([-1.0, 0.0, 1.0], (n, 3)) + 0.1 * rng.standard_normal((n, 3))
    values[:2] = [[1.0, 1.0, 0.0], [1.0, -1.0, 0.0]]
    y = values[:, 0] * values[:, 1] + 0.05 * rng.standard_normal(n)
    lone = gm.Graph.from_edges([2], [3], n_nodes=n)
    model = gm.GraphRegressor(terms=["own", "nonlinear"]).fit(lone, values, y)
    found, std = model.feature_attributions([0, 1], n_permutations=n, return_std=True)
    mean = values.mean(axis=0)
    for row, (a, b) in enumerate([(1.0, 1.0), (1.0, -1.0)]):
        first = 0.5 * ((a - mean[0]) * mean[1] + (a - mean[0]) * b) - 0.5 * np.cov(values.T)[0, 1]
        second = 0.5 * ((b - mean[1]) * mean[0] + (b - mean[1]) * a) - 0.5 * np.cov(values.T)[0, 1]
        assert found.iloc[row].to_numpy() == pytest.approx([first, second, 0.0], abs=0.15)
    assert found.iloc[0, 0] == pytest.approx(found.iloc[0, 1], abs=0.15)
    assert (std < 0.12).all(axis=None)


def test_attributions_of_one_feature_are_its_effect() -> None:
    rng = np.random.default_rng(0)
    counts = np.where(rng.random(N) < 0.7, rng.poisson(np.exp(1.0 + X["age"].to_numpy())), np.nan)
    model = gm.GraphRegressor(likelihood="poisson", terms=["own"]).fit(GRAPH, X[["age"]], counts)
    found = model.feature_attributions(["n3"], n_permutations=N)
    assert found["age"].iloc[0] == pytest.approx(
        np.asarray(model.coef_)[0] * (X["age"]["n3"] - X["age"].mean()), abs=1e-8
    )

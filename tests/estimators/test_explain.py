"""The explanation of a prediction is a sum, and its weights are what a change of a label does."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

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


def test_effects_add_up_but_for_a_constant() -> None:
    found = gm.GraphRegressor(terms=["own", "field"]).fit(GRAPH, X, Y).explain("n5")
    assert set(found.effects.index) >= {"graph field"}
    constant = found.prediction - found.mean - found.effects.sum()
    assert abs(constant) < Y.std()
    text = str(found)
    assert text.startswith("n5: ")
    assert "(graph field)" in text
    assert text.count(" steps away, weight ") == 5


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

"""Further labels and further nodes: the same predictions as a fit of all of them, old labels and options retained."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import graphmrf as gm
from graphmrf.errors import InvalidInputError

N, OLD = 90, 70
RNG = np.random.default_rng(5)
WHOLE = gm.Graph.from_knn(RNG.random((N, 2)), 4, ids=[f"n{i}" for i in RNG.permutation(N)])
IDS: Any = WHOLE.ids
SMALL = gm.Graph(WHOLE.adjacency[:OLD][:, :OLD], ids=IDS[:OLD])
X = pd.DataFrame(RNG.normal(size=(N, 2)), columns=["age", "size"], index=IDS)
SMOOTH = WHOLE.adjacency @ RNG.normal(size=N) / 4
Y = (X["age"] + SMOOTH + RNG.normal(scale=0.3, size=N)).rename("rent")
COUNTS = pd.Series(RNG.poisson(np.exp(0.5 * X["age"] + 1)).astype(float), index=IDS)
COLOURS = pd.Series(np.where(Y > 0, "red", "blue"), index=IDS, dtype=object)
FIRST, LATER = np.arange(OLD) % 2 == 0, np.arange(OLD) % 6 == 1
SHUFFLED = RNG.permutation(N)

MODELS = {
    "lp": (gm.LabelPropagation(), Y),
    "lgc-rp": (gm.ResidualPropagation(gm.LinearGraphConvolution()), Y),
    "field": (gm.GraphRegressor(), Y),
    "skewed": (gm.GraphRegressor(transform="yeo-johnson"), Y),
    "counts": (gm.GraphRegressor(likelihood="poisson"), COUNTS),
    "classes": (gm.GraphClassifier(), COLOURS),
}


def answers(model: Any) -> np.ndarray:
    found = model.predict_proba() if isinstance(model, gm.GraphClassifier) else model.predict(return_std=True)
    return np.column_stack(found) if isinstance(found, tuple) else np.asarray(found)


def known(y: pd.Series, where: np.ndarray) -> pd.Series:
    return y.iloc[:OLD].where(where, None if y.dtype == object else np.nan)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_further_labels_are_learnt_like_in_a_new_fit(name: str) -> None:
    model, y = MODELS[name]
    model = clone(model).fit(SMALL, X.iloc[:OLD], known(y, FIRST))
    model.update(y.iloc[:OLD][LATER][::-1])
    fresh = clone(model).fit(SMALL, X.iloc[:OLD], known(y, FIRST | LATER))
    np.testing.assert_allclose(answers(model), answers(fresh), atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_further_nodes_are_predicted_as_by_a_new_fit(name: str) -> None:
    model, y = MODELS[name]
    model = clone(model).fit(SMALL, X.iloc[:OLD], known(y, FIRST))
    fresh = clone(model).fit(WHOLE, X, known(y, FIRST).reindex(IDS))
    model.extend(WHOLE, X.iloc[SHUFFLED])
    np.testing.assert_allclose(answers(model), answers(fresh), atol=1e-6)
    assert pd.Series(model.predict()).index.equals(IDS)


@pytest.mark.slow
def test_a_sparse_search_goes_on_from_where_it_was() -> None:
    rng = np.random.default_rng(2)
    graph, features = gm.Graph.from_knn(rng.random((1500, 2)), 5), rng.normal(size=(1500, 2))
    y = features[:, 0] + graph.adjacency @ rng.normal(size=1500) / 2 + rng.normal(scale=0.3, size=1500)
    y[600:] = np.nan
    earlier = np.where(np.arange(1500) < 540, y, np.nan)
    model = gm.GraphRegressor(solver="sparse", learner=None)
    fresh = clone(model).fit(graph, features, y).predict()
    for search, limit in (("near", 0.02 * np.nanstd(y)), ("anew", 1e-6)):
        found = clone(model).fit(graph, features, earlier).update(y, search=search).predict()
        assert np.sqrt(np.mean((found - fresh) ** 2)) < limit


def test_a_node_may_come_earlier_in_the_larger_graph_where_nodes_have_ids() -> None:
    turned = gm.Graph(WHOLE.adjacency[::-1][:, ::-1], ids=IDS[::-1])
    model = gm.LabelPropagation(alpha=0.9).fit(SMALL, None, known(Y, FIRST)).extend(turned)
    fresh = gm.LabelPropagation(alpha=0.9).fit(turned, None, known(Y, FIRST).reindex(turned.ids))
    expected: Any = fresh.predict()
    pd.testing.assert_series_equal(pd.Series(model.predict()), expected)


def test_without_ids_the_nodes_of_the_fit_come_first() -> None:
    y = known(Y, FIRST).to_numpy()
    model = gm.LabelPropagation(alpha=0.9).fit(gm.Graph(SMALL.adjacency), None, y).extend(gm.Graph(WHOLE.adjacency))
    fresh = gm.LabelPropagation(alpha=0.9).fit(gm.Graph(WHOLE.adjacency), None, np.append(y, np.full(N - OLD, np.nan)))
    np.testing.assert_array_equal(model.predict(), fresh.predict())


def test_a_label_can_be_corrected() -> None:
    model = gm.LabelPropagation(alpha=0.9).fit(SMALL, None, known(Y, FIRST))
    model.update(pd.Series([99.0], index=IDS[:1]))
    np.testing.assert_array_equal(np.asarray(model.predict())[[0, 2]], [99.0, Y.iloc[2]])


def test_exposure_of_new_counts_comes_with_them() -> None:
    exposure = np.where(FIRST, 3.0, np.nan)
    model = gm.GraphRegressor(likelihood="poisson").fit(SMALL, X.iloc[:OLD], known(COUNTS, FIRST), exposure=exposure)
    with pytest.raises(InvalidInputError, match="exposures of observed rows must be positive"):
        model.update(COUNTS.iloc[:OLD][LATER])
    model.update(COUNTS.iloc[:OLD][LATER], exposure=2.0)
    fresh = gm.GraphRegressor(likelihood="poisson").fit(
        SMALL, X.iloc[:OLD], known(COUNTS, FIRST | LATER), exposure=np.where(FIRST, 3.0, 2.0)
    )
    np.testing.assert_allclose(model.predict(), fresh.predict(), atol=1e-6)


def test_long_tables_are_extended_and_fitted_again_for_more_rows() -> None:
    rows, values = np.repeat(np.asarray(SMALL.ids)[FIRST], 2), np.repeat(Y.to_numpy()[:OLD][FIRST], 2)
    values = values + np.random.default_rng(1).normal(scale=0.2, size=values.size)
    model = gm.GraphRegressor().fit(SMALL, X.iloc[:OLD], values, nodes=rows)
    with pytest.raises(InvalidInputError, match="long table"):
        model.update(Y.iloc[:OLD])
    model.extend(WHOLE, X)
    fresh = gm.GraphRegressor().fit(WHOLE, X, values, nodes=rows)
    np.testing.assert_allclose(model.predict(), fresh.predict(), atol=1e-6)


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (gm.Graph(WHOLE.adjacency[:60][:, :60], ids=IDS[:60]), "without 10 of them"),
        (gm.Graph(WHOLE.adjacency), "must have ids"),
    ],
)
def test_a_graph_that_lacks_nodes_is_refused(graph: gm.Graph, words: str) -> None:
    model = gm.LabelPropagation(alpha=0.9).fit(SMALL, None, known(Y, FIRST))
    with pytest.raises(InvalidInputError, match=words):
        model.extend(graph)


@pytest.mark.parametrize(
    ("y", "words"),
    [(np.zeros(3), "one value for each of the 70 nodes"), (pd.Series({"zz": 1.0}), "unknown 'zz'")],
)
def test_labels_of_other_nodes_are_refused(y: Any, words: str) -> None:
    model = gm.LabelPropagation(alpha=0.9).fit(SMALL, None, known(Y, FIRST))
    with pytest.raises(InvalidInputError, match=words):
        model.update(y)


def test_an_unfitted_model_has_nothing_to_update() -> None:
    with pytest.raises(Exception, match="not fitted yet"):
        gm.LabelPropagation().update(Y)

"""Tables and ids: the order of rows does not matter, mismatches are told, pandas in is pandas out."""

import pickle
import sys
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from cases import random_case
from graphmrf import (
    GaussianMRF,
    Graph,
    GraphClassifier,
    GraphRegressor,
    LabelPropagation,
    LinearGraphConvolution,
    LinearRegression,
    ResidualPropagation,
    SimpleGraphConvolution,
)
from graphmrf.errors import InvalidInputError, MissingExtraError
from graphmrf.estimators.tables import takes_folds

CASE = random_case(3, n=14, p=2, labelled=9)
IDS = [f"n{i:02}" for i in range(14)]
GRAPH = CASE.graph.with_ids(IDS)
X = pd.DataFrame(CASE.X, index=IDS, columns=["age", "size"])
Y = pd.Series(CASE.y, index=IDS, name="rent")
MODELS: dict[str, Callable[[], Any]] = {
    "lp": lambda: LabelPropagation(alpha=0.5),
    "lr": LinearRegression,
    "lgc": lambda: LinearGraphConvolution(alpha=0.5),
    "sgc": lambda: SimpleGraphConvolution(n_layers=1),
    "rp": lambda: ResidualPropagation(LinearGraphConvolution(alpha=0.5), alpha=0.5),
    "field": GraphRegressor,
}
over = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)


@over
def test_reordered_rows_give_the_same_series(make: Callable[[], Any]) -> None:
    plain = make().fit(CASE.graph, CASE.X, CASE.y).predict(return_std=True)
    assert all(isinstance(each, np.ndarray) for each in plain)
    order = np.random.default_rng(1).permutation(14)
    model = make().fit(GRAPH, X.iloc[order], Y.iloc[order[::-1]])
    for given_back, expected in zip(model.predict(return_std=True), plain, strict=True):
        assert isinstance(given_back, pd.Series)
        assert given_back.index.tolist() == IDS
        assert given_back.name == "rent"
        np.testing.assert_allclose(given_back, expected, rtol=1e-9)


@given(st.permutations(range(14)), st.permutations(range(14)))
def test_any_permutation_of_rows_gives_the_same_answer(rows: list[int], labels: list[int]) -> None:
    expected = LinearGraphConvolution(alpha=0.5).fit(CASE.graph, CASE.X, CASE.y).predict()
    found = LinearGraphConvolution(alpha=0.5).fit(GRAPH, X.iloc[rows], Y.iloc[labels]).predict()
    np.testing.assert_array_equal(found, expected)


@over
def test_out_of_fold_predictions_are_matched_by_id(make: Callable[[], Any]) -> None:
    folds = pd.Series(np.arange(9) % 3, index=Y.dropna().index)
    model = make().fit(GRAPH, X, Y)
    expected = make().fit(CASE.graph, CASE.X, CASE.y).out_of_fold(CASE.graph, CASE.X, CASE.y, folds.to_numpy())
    found = model.out_of_fold(GRAPH, X.iloc[::-1], Y.iloc[::-1], folds.iloc[::-1])
    pd.testing.assert_series_equal(found, pd.Series(expected, index=folds.index, name="rent"))


def test_intervals_draws_and_left_out_labels_carry_ids() -> None:
    model: Any = GraphRegressor().fit(GRAPH, X, Y)
    assert [end.index.tolist() for end in model.predict_interval(0.9)] == [IDS, IDS]
    draws: Any = model.sample(3)
    assert (draws.shape, draws.columns.tolist()) == ((3, 14), IDS)
    assert model.loo_.index.tolist() == Y.dropna().index.tolist()
    assert list(pickle.loads(pickle.dumps(model)).predict().index) == IDS


def test_classes_and_probabilities_carry_ids() -> None:
    colours = pd.Series(np.where(CASE.y > np.nanmean(CASE.y), "red", "blue"), index=IDS, name="colour")
    colours = colours.where(Y.notna())
    plain = GraphClassifier(LabelPropagation(alpha=0.5), cv=2).fit(CASE.graph, None, colours.to_numpy())
    model = GraphClassifier(LabelPropagation(alpha=0.5), cv=2).fit(GRAPH, None, colours.iloc[::-1])
    assert model.predict().index.tolist() == IDS
    np.testing.assert_array_equal(model.predict(), plain.predict())
    probabilities: Any = model.predict_proba()
    assert probabilities.columns.tolist() == ["blue", "red"]
    truth = pd.Series("red", index=IDS)
    assert model.score(y=truth.iloc[::-1]) == plain.score(y=truth.to_numpy())


def test_another_graph_is_matched_by_its_own_ids() -> None:
    model = LinearGraphConvolution(alpha=0.5).fit(GRAPH, X, Y)
    others = [f"m{i}" for i in range(14)]
    there = model.predict(CASE.graph.with_ids(others), X.set_axis(others).iloc[::-1])
    assert isinstance(there, pd.Series)
    assert there.index.tolist() == others
    np.testing.assert_allclose(there, model.predict(), atol=1e-6)


def test_intervals_and_draws_of_another_graph_are_matched_by_its_ids() -> None:
    model: Any = GraphRegressor().fit(GRAPH, X, Y)
    others = [f"m{i}" for i in range(14)]
    there, table = CASE.graph.with_ids(others), X.set_axis(others)
    as_networkx = nx.relabel_nodes(nx.from_scipy_sparse_array(CASE.graph.adjacency), dict(enumerate(others)))
    low, _ = model.predict_interval(graph=there, X=table)
    draws = model.sample(3, graph=there, X=table)
    for other in (there, as_networkx):
        np.testing.assert_allclose(model.predict_interval(graph=other, X=table.iloc[::-1])[0][others], low[others])
        np.testing.assert_allclose(model.sample(3, graph=other, X=table.iloc[::-1]), draws)


def test_the_model_conditions_on_reordered_tables() -> None:
    table = X.assign(rent=Y)
    mrf = GaussianMRF.fit(GRAPH, table.iloc[::-1])
    np.testing.assert_allclose(mrf.H, GaussianMRF.fit(CASE.graph, table.to_numpy()).H)
    np.testing.assert_allclose(mrf.condition(GRAPH, table.iloc[::-1]).mean, mrf.condition(GRAPH, table).mean)


HALF_NAMED = r"X has its rows by id, in another order than the graph, and y has no ids.*pass X.loc\[graph.ids\]"
NUMBERS = CASE.graph.with_ids(np.roll(np.arange(14), 1))
BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "half named": (lambda: (GRAPH, X.iloc[::-1], CASE.y), HALF_NAMED),
    "rows 0 to n": (
        lambda: (GRAPH, X.iloc[::-1], Y.reset_index(drop=True)),
        r"y must have the ids of the graph as its index, got rows 0 to 13, .*set_index.* or y.set_axis\(graph.ids\)",
    ),
    "missing": (
        lambda: (GRAPH, X.drop("n03"), Y),
        r"index of X must contain the ids.*no row for 'n03'; pass X.reindex",
    ),
    "unknown": (
        lambda: (GRAPH, X, pd.concat([Y, pd.Series([1.0], index=["zz"])])),
        r"unknown 'zz'; pass y.loc\[graph.ids\]",
    ),
    "others": (lambda: (GRAPH, X.set_axis([f"k{i}" for i in range(14)]), Y), "no row for 'n00', 'n01', 'n02' and 11"),
    "twice": (lambda: (GRAPH, X.set_axis(["n00", *IDS[:-1]]), Y), "must name a node once, got 'n00' twice"),
    "text and numbers": (
        lambda: (CASE.graph.with_ids([str(i) for i in range(5, 19)]), X.set_axis(list(range(5, 19))), CASE.y),
        "ids are text in the graph, int64 in X: convert one",
    ),
    "numbers or places": (lambda: (NUMBERS, X.reset_index(drop=True), CASE.y), r"may be ids or only the order of rows"),
    "shuffled without ids": (
        lambda: (CASE.graph, X.reset_index(drop=True).iloc[::-1], CASE.y),
        r"rows 0 to 13 in another order, and the graph has no ids.*sort_index",
    ),
    "X and y differ": (lambda: (CASE.graph, X, Y.iloc[::-1]), r"same order.*pass y.loc\[X.index\]"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_mismatch_is_told_with_the_first_ids(name: str) -> None:
    make, message = BAD[name]
    with pytest.raises(InvalidInputError, match=message):
        LinearRegression().fit(*make())


def test_a_graph_without_ids_gives_back_the_index_of_the_outcome() -> None:
    assert LinearRegression().fit(CASE.graph, X, Y).predict().index.tolist() == IDS  # type: ignore[attr-defined]


def test_graphs_of_other_libraries_are_fitted() -> None:
    networkx, igraph = pytest.importorskip("networkx"), pytest.importorskip("igraph")
    W = CASE.graph.adjacency
    G = networkx.relabel_nodes(networkx.from_scipy_sparse_array(W), dict(enumerate(IDS)))
    weighted = igraph.Graph.Weighted_Adjacency(W.toarray().tolist(), mode="undirected")
    expected = LabelPropagation(alpha=0.5).fit(CASE.graph, None, CASE.y).predict()
    graphs: list[Any] = [W, sparse.coo_matrix(W), G, weighted]
    for graph in graphs:
        np.testing.assert_allclose(LabelPropagation(alpha=0.5).fit(graph, None, CASE.y).predict(), expected)
    shuffled: Any = LabelPropagation(alpha=0.5).fit(G, None, Y.iloc[::-1]).predict()
    np.testing.assert_allclose(shuffled[IDS], expected)
    with pytest.raises(InvalidInputError, match="must be undirected"):
        LabelPropagation().fit(networkx.DiGraph([(0, 1)]), None, [1.0, 2.0])


def test_tables_of_polars_and_arrow_are_read() -> None:
    class Frame:
        def to_pandas(self) -> pd.DataFrame:
            return X.reset_index(drop=True)

    found = LinearRegression().fit(GRAPH, Frame(), CASE.y)
    assert found.feature_names_in_.tolist() == ["age", "size"]
    np.testing.assert_array_equal(found.predict(), LinearRegression().fit(GRAPH, CASE.X, CASE.y).predict())


ROWS = polars.from_pandas(X.assign(rent=Y).rename_axis("town").reset_index())


@over
def test_polars_in_polars_out_by_position(make: Callable[[], Any]) -> None:
    found = make().fit(GRAPH, ROWS[["age", "size"]], ROWS["rent"])
    assert found.feature_names_in_.tolist() == ["age", "size"]
    plain = make().fit(GRAPH, X, Y).predict(return_std=True)
    for answer, expected in zip(found.predict(return_std=True), plain, strict=True):
        assert isinstance(answer, polars.Series)
        assert answer.name == "rent"
        np.testing.assert_array_equal(answer, expected)


@pytest.mark.slow
@over
def test_polars_with_a_column_of_ids_are_matched_by_it(make: Callable[[], Any]) -> None:
    shuffled = ROWS.sample(fraction=1.0, shuffle=True, seed=1)
    found = make().fit(GRAPH, shuffled[["age", "town", "size"]], ROWS[::-1][["town", "rent"]])
    answer = found.predict()
    assert answer.columns == ["town", "rent"]
    assert answer["town"].to_list() == IDS
    np.testing.assert_array_equal(answer["rent"], make().fit(GRAPH, X, Y).predict())
    assert found.score(y=polars.DataFrame({"town": IDS[::-1], "rent": np.arange(14.0)})) == pytest.approx(
        make().fit(GRAPH, X, Y).score(y=np.arange(14.0)[::-1])
    )
    folds = np.arange(9) % 3
    there = found.out_of_fold(GRAPH, shuffled[["age", "town", "size"]], ROWS[["town", "rent"]], folds)
    assert there["town"].to_list() == Y.dropna().index.tolist()


@pytest.mark.slow
def test_tables_of_the_field_are_those_of_polars() -> None:
    model: Any = GraphRegressor().fit(GRAPH, ROWS[["age", "size"]], ROWS[["town", "rent"]])
    expected: Any = GraphRegressor().fit(GRAPH, X, Y)
    assert all(end.columns == ["town", "rent"] for end in model.predict_interval(0.9))
    assert model.sample(3).columns == IDS
    assert model.loo_["town"].to_list() == expected.loo_.index.tolist()
    assert model.suggest(2)["town"].to_list() == expected.suggest(2).index.tolist()
    groups = polars.Series("side", ["left", "right"] * 7)
    np.testing.assert_allclose(model.predict_mean(groups)["prediction"], expected.predict_mean(groups)["prediction"])
    assert model.predict_total(groups)["side"].to_list() == ["left", "right"]
    assert pickle.loads(pickle.dumps(model)).predict().equals(model.predict())


def test_ids_in_a_column_named_node_do_not_clash_with_positions() -> None:
    model = GraphRegressor().fit(GRAPH, None, ROWS.select(polars.col("town").alias("node"), "rent"))
    assert model.suggest(1).columns[:2] == ["node_id", "node"]
    assert model.loo_.columns[:2] == ["node_id", "node"]


def test_probabilities_are_a_table_of_polars() -> None:
    colours = polars.Series("colour", [None if np.isnan(y) else ["blue", "red"][i % 2] for i, y in enumerate(Y)])
    model: Any = GraphClassifier(LabelPropagation(alpha=0.5), cv=2).fit(GRAPH, None, colours)
    assert isinstance(model.predict(), polars.Series)
    assert model.predict_proba().columns == ["blue", "red"]
    truth = polars.DataFrame({"town": IDS[::-1], "colour": ["red"] * 14})
    assert model.score(y=truth) == model.score(y=np.array(["red"] * 14, dtype=object))


@over
def test_scores_names_and_summary(make: Callable[[], Any]) -> None:
    model = make().fit(GRAPH, X, Y)
    truth = pd.Series(np.arange(14.0), index=IDS)
    predicted, hidden = model.predict(), Y.isna()
    expected = 1 - ((truth - predicted)[hidden] ** 2).sum() / ((truth[hidden] - truth[hidden].mean()) ** 2).sum()
    assert model.score(y=truth.iloc[::-1]) == pytest.approx(expected)
    assert model.n_features_in_ == 2
    assert model.feature_names_in_.tolist() == ["age", "size"]
    summary = model.summary()
    assert summary.startswith(type(model).__name__)
    assert "labelled 9" in " ".join(summary.split())
    assert "<div" in model._repr_html_()
    assert "labelled" in model._repr_mimebundle_()["text/html"]
    with pytest.raises(InvalidInputError, match="not labelled in the fit"):
        model.score(y=Y)
    with pytest.raises(InvalidInputError, match="needs the true outcomes"):
        model.score()


@pytest.mark.slow
def test_predictions_are_drawn_by_rank_or_on_a_map(monkeypatch: pytest.MonkeyPatch) -> None:
    geopandas, shapely = pytest.importorskip("geopandas"), pytest.importorskip("shapely")
    figure = pytest.importorskip("matplotlib.figure").Figure()
    model: Any = LinearGraphConvolution(alpha=0.5).fit(GRAPH, X, Y)
    ranks = model.plot(ax=figure.add_subplot())
    np.testing.assert_allclose(ranks.lines[0].get_ydata(), model.predict().sort_values())
    places = pd.DataFrame({"x": np.arange(14.0), "y": 1.0}, index=IDS)
    drawn = model.plot(places.iloc[::-1], ax=figure.add_subplot()).collections[0]
    np.testing.assert_allclose(drawn.get_offsets(), places)
    np.testing.assert_allclose(drawn.get_array(), model.predict())
    squares = geopandas.GeoSeries(shapely.box(places["x"], 0, places["x"] + 1, 1), index=IDS)
    areas = model.plot(squares.iloc[::-1], ax=figure.add_subplot()).collections[0]
    np.testing.assert_allclose(areas.get_array(), model.predict())
    with pytest.raises(InvalidInputError, match="LinearGraphConvolution has no probability of exceeding a value"):
        model.plot(ax=figure.add_subplot(), above=1.0)
    field = GraphRegressor(learner=None).fit(GRAPH, X, Y)
    for where, axes in ((places, figure.add_subplot()), (squares, figure.add_subplot())):
        drawn = field.plot(where.iloc[::-1], ax=axes, above=1.0).collections[0]
        np.testing.assert_allclose(drawn.get_array(), field.probability(above=1.0))
        np.testing.assert_allclose(drawn.norm.boundaries, [0.0, 0.05, 0.2, 0.8, 0.95, 1.0])
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r"graphmrf\[figures\]"):
        model.plot()


def test_an_unfitted_model_says_so() -> None:
    assert LinearRegression().summary() == "LinearRegression: not fitted yet"


def test_equal_graphs_have_equal_ids() -> None:
    assert CASE.graph.with_ids(IDS) == GRAPH == GRAPH.to("numba")
    assert hash(GRAPH) == hash(GRAPH.to("numba"))
    assert CASE.graph.with_ids(IDS[::-1]) != GRAPH != CASE.graph
    assert pickle.loads(pickle.dumps(GRAPH)) == GRAPH
    assert Graph.from_edges(["a"], ["b"]) != "a graph"


def test_several_answers_out_of_fold_are_series_of_the_labelled_nodes() -> None:
    class Pair:
        @takes_folds
        def out_of_fold(self, graph: Any, X: Any, y: Any, folds: Any, *, return_std: bool = False) -> Any:  # noqa: ARG002
            return (folds * 1.0, folds * 2.0) if return_std else folds * 1.0

    path = Graph.from_edges(["a", "b"], ["b", "c"])
    y = pd.Series([3.0, np.nan, 1.0], index=["c", "b", "a"], name="rent")
    mean, std = Pair().out_of_fold(path, None, y, np.array([1, 0]), return_std=True)
    assert mean.to_dict() == {"a": 1.0, "c": 0.0}
    assert std.to_dict() == {"a": 2.0, "c": 0.0}
    assert Pair().out_of_fold(path, None, y, np.array([1, 0])).name == "rent"

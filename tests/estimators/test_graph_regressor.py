"""GraphRegressor: what every estimator promises, limit cases, intervals, explanation."""

import pickle
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score

from cases import random_case
from graphmrf import Graph
from graphmrf._typing import Floats
from graphmrf.datasets import load
from graphmrf.errors import InvalidInputError
from graphmrf.estimators.graph_regressor import GraphRegressor
from graphmrf.estimators.storage import load as load_model
from graphmrf.metrics import coverage
from graphmrf.selection import distance_matched_folds

CASE = random_case(11, n=60, p=3, labelled=40)
GRAPH, U = CASE.graph, ~CASE.known


def fitted(**options: Any) -> GraphRegressor:
    return GraphRegressor(**options).fit(GRAPH, CASE.X, CASE.y)


@cache
def model() -> GraphRegressor:
    return fitted()


def ring(n: int) -> Graph:
    return Graph.from_edges(np.arange(n), (np.arange(n) + 1) % n)


def hide(y: Floats, *, share: float = 0.5, seed: int = 0) -> Floats:
    return np.where(np.random.default_rng(seed).random(y.size) < share, np.nan, y)


def test_fit_returns_self_and_predicts_every_node() -> None:
    estimator = GraphRegressor()
    assert estimator.fit(GRAPH, CASE.X, CASE.y) is estimator
    mean, std = estimator.predict(return_std=True)
    assert np.isfinite(mean).all()
    assert (std[U] > 0).all()
    np.testing.assert_array_equal(std[~U], 0.0)
    np.testing.assert_array_equal(mean[~U], CASE.y[~U])


@pytest.mark.slow
@pytest.mark.parametrize(("solver", "most"), [("dense", 1e-2), ("sparse", 1e-2)])
def test_the_numbers_of_londons_wards_have_no_part_in_predictions(
    raw_data: Path, tmp_path: Path, solver: str, most: float
) -> None:
    data = load("london-2016", data_dir=raw_data, cache_dir=tmp_path)
    X = data.frame[["edu", "age", "gender", "income", "populationsize"]].to_numpy(dtype=float)
    outcome, W = data.frame["election"].to_numpy(dtype=float), data.graph.adjacency
    y, order = hide(outcome, share=0.7), np.random.default_rng(1).permutation(outcome.size)
    first = GraphRegressor(solver=solver).fit(Graph(W), X, y)
    again = GraphRegressor(solver=solver).fit(Graph(W[order][:, order]), X[order], y[order])
    moved = np.abs(np.stack(again.predict(return_std=True)) - np.stack(first.predict(return_std=True))[:, order])
    assert moved.max() <= most * outcome.std()


def test_the_same_data_give_the_same_answer_and_are_not_changed() -> None:
    X, y = CASE.X.copy(), CASE.y.copy()
    X.flags.writeable = y.flags.writeable = False
    again = GraphRegressor().fit(GRAPH, X, y)
    np.testing.assert_array_equal(again.predict(return_std=True), model().predict(return_std=True))
    model().predict()[:] = 0.0
    np.testing.assert_array_equal(again.predict(), model().predict())


def test_it_can_be_cloned_and_pickled() -> None:
    copy = clone(GraphRegressor(transform="log", random_state=3, solver="dense", terms=("own", "field")))
    assert copy.get_params() == {
        "likelihood": "auto",
        "transform": "log",
        "terms": ("own", "field"),
        "priors": None,
        "solver": "dense",
        "learner": "auto",
        "members": 24,
        "random_state": 3,
    }
    loaded = pickle.loads(pickle.dumps(model()))
    np.testing.assert_array_equal(loaded.predict(), model().predict())


@pytest.mark.parametrize("solver", ["dense", "sparse"])
def test_a_term_that_is_not_believed_in_is_left_out(solver: str) -> None:
    terms = ("own", "neighbours", "field")
    doubted = GraphRegressor(solver=solver, terms=terms, priors={"field": 1e-6}).fit(GRAPH, CASE.X, CASE.y)
    without = GraphRegressor(solver=solver, terms=terms[:2]).fit(GRAPH, CASE.X, CASE.y)
    np.testing.assert_allclose(doubted.predict(), without.predict(), atol=0.02 * float(np.nanstd(CASE.y)))


@pytest.mark.parametrize(
    ("priors", "message"),
    [
        ({"fields": 1.0}, "priors must be one of own"),
        ({"own": -1}, "got -1 for own"),
        ({"own": None}, "got None"),
        (["own"], "a dict of scales"),
    ],
)
def test_priors_are_positive_scales_of_terms(priors: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        GraphRegressor(priors=priors).fit(GRAPH, CASE.X, CASE.y)


def test_nothing_before_the_fit() -> None:
    for question in ("predict", "predict_interval", "sample"):
        with pytest.raises(NotFittedError, match="call fit"):
            getattr(GraphRegressor(), question)()
    for name in ("shares_", "coef_", "loo_", "explanation_"):
        with pytest.raises(NotFittedError, match="call fit"):
            getattr(GraphRegressor(), name)


def test_nodes_in_another_order_get_the_same_predictions() -> None:
    order = np.random.default_rng(0).permutation(60)
    shuffled = GraphRegressor().fit(Graph(CASE.W[order][:, order]), CASE.X[order], CASE.y[order])
    np.testing.assert_allclose(shuffled.predict(), model().predict()[order], atol=1e-3)


def test_units_do_not_matter() -> None:
    other = GraphRegressor().fit(GRAPH, CASE.X * [1e3, 1e-3, 7.0] + 5.0, 100.0 * CASE.y - 3.0)
    np.testing.assert_allclose(other.predict(), 100.0 * model().predict() - 3.0, rtol=1e-4)
    np.testing.assert_allclose(np.asarray(other.coef_) * [10.0, 1e-5, 0.07], model().coef_, rtol=1e-2, atol=1e-4)


def test_single_precision_in_single_precision_out() -> None:
    single = GraphRegressor().fit(GRAPH, CASE.X.astype(np.float32), CASE.y.astype(np.float32))
    mean, std = single.predict(return_std=True)
    assert mean.dtype == std.dtype == np.float32
    np.testing.assert_allclose(mean, model().predict(), atol=1e-2)


def test_columns_keep_their_names() -> None:
    frame = pd.DataFrame(CASE.X, columns=["a", "b", "c"])
    named = GraphRegressor().fit(GRAPH, frame, pd.Series(CASE.y))
    assert list(pd.Series(named.coef_).index) == ["a", "b", "c"]
    np.testing.assert_allclose(named.predict(), model().predict(), rtol=1e-9)


def test_linear_effects_are_found() -> None:
    rng = np.random.default_rng(5)
    graph, X = ring(300), rng.normal(size=(300, 2)) * [1.0, 50.0]
    y = X @ [2.0, 0.1] + 0.3 * rng.normal(size=300) + 40.0
    linear = GraphRegressor().fit(graph, X, hide(y))
    np.testing.assert_allclose(np.asarray(linear.coef_), [2.0, 0.1], rtol=0.1)
    assert linear.shares_["own features"] > 0.9
    assert linear.explanation_.startswith("Own features explain")


def test_a_graph_field_is_found_without_features() -> None:
    angle = 2 * np.pi * np.arange(200) / 200
    y = np.sin(3 * angle)
    alone = GraphRegressor().fit(ring(200), None, hide(y))
    assert r2_score(y, alone.predict()) > 0.99
    assert alone.shares_["graph field"] > 0.95
    assert alone.explanation_.startswith("Graph field explains")
    assert len(alone.coef_) == 0


def test_a_nonlinear_effect_is_found() -> None:
    rng = np.random.default_rng(2)
    X = rng.uniform(-2, 2, size=(300, 1))
    y = np.cos(2 * X[:, 0])
    hidden = hide(y)
    curve = GraphRegressor().fit(ring(300), X, hidden)
    assert r2_score(y[np.isnan(hidden)], curve.predict()[np.isnan(hidden)]) > 0.98
    assert curve.shares_["nonlinear effects"] > 0.8


def test_noise_is_called_noise() -> None:
    rng = np.random.default_rng(4)
    noise = GraphRegressor().fit(ring(300), rng.normal(size=(300, 2)), hide(rng.normal(size=300)))
    assert noise.shares_["noise"] > 0.9
    std = noise.predict(return_std=True)[1]
    assert std[std > 0] == pytest.approx(1.0, abs=0.2)


def test_intervals_are_nested_and_cover() -> None:
    rng = np.random.default_rng(6)
    graph, X = ring(400), rng.normal(size=(400, 2))
    y = X[:, 0] + rng.normal(size=400)
    hidden = hide(y)
    new, estimator = np.isnan(hidden), GraphRegressor().fit(graph, X, hidden)
    for kind in ("field", "conformal"):
        widths = np.zeros(400)
        for level in (0.5, 0.8, 0.95):
            low, high = estimator.predict_interval(level, interval=kind)
            assert (high - low >= widths).all()
            assert coverage(y[new], low[new], high[new]) == pytest.approx(level, abs=0.08)
            np.testing.assert_array_equal(low[~new], y[~new])
            widths = high - low


def test_conformal_intervals_are_never_narrower_and_imitate_the_holes() -> None:
    side, rng = 16, np.random.default_rng(0)
    row, column = np.divmod(np.arange(side**2), side)
    right, below = np.flatnonzero(column < side - 1), np.flatnonzero(row < side - 1)
    grid = Graph.from_edges(np.append(right, below), np.append(right + 1, below + side))
    y = np.sin(row / 3) + np.cos(column / 4) + rng.normal(scale=0.05, size=side**2)
    fitted = GraphRegressor(members=1).fit(grid, None, np.where(row < 9, y, np.nan))
    matched, hidden = distance_matched_folds(grid, row < 9), row >= 9
    assert not matched.is_random
    held_out, error = fitted.out_of_fold(grid, None, np.where(hidden, np.nan, y), matched.folds, return_std=True)
    scores = np.sort(np.abs(y[~hidden] - held_out) / error)
    std = fitted.predict(return_std=True)[1][hidden]
    for level in (0.5, 0.9):
        width = max(scores[int(np.ceil((scores.size + 1) * level)) - 1], float(norm.ppf(0.5 + 0.5 * level)))
        low, high = fitted.predict_interval(level, interval="conformal")
        np.testing.assert_allclose((high - low)[hidden], 2.0 * width * std, rtol=1e-6)


def test_conformal_intervals_are_refused_for_another_graph() -> None:
    with pytest.raises(InvalidInputError, match="use interval='field'"):
        model().predict_interval(0.9, interval="conformal", graph=CASE.graph, X=CASE.X + 1.0)


def test_too_few_labels_for_a_conformal_level() -> None:
    low, high = model().predict_interval(0.99, interval="conformal")
    assert np.isinf(high[U]).all()
    assert np.isinf(low[U]).all()


def test_draws_keep_labels_and_agree_with_the_predictions() -> None:
    draws, (mean, std) = model().sample(4000, random_state=1), model().predict(return_std=True)
    np.testing.assert_array_equal(draws[:, ~U], np.tile(CASE.y[~U], (4000, 1)))
    np.testing.assert_allclose(draws.mean(axis=0)[U], mean[U], atol=5 * std.max() / np.sqrt(4000))
    np.testing.assert_array_equal(model().sample(2, random_state=3), model().sample(2, random_state=3))


def test_loo_predictions_come_with_their_labels() -> None:
    table = model().loo_
    np.testing.assert_array_equal(table["node"], np.flatnonzero(~U))
    np.testing.assert_array_equal(table["label"], CASE.y[~U])
    assert (table["std"] > 0).all()


@pytest.mark.parametrize("transform", ["log", "box-cox", "yeo-johnson", "auto"])
def test_transformed_outcomes_come_back_in_their_units(transform: str) -> None:
    X, y = skewed_case()
    hidden = hide(y)
    new, skewed = np.isnan(hidden), GraphRegressor(transform=transform).fit(ring(200), X, hidden)
    assert r2_score(np.log(y[new]), np.log(np.maximum(skewed.predict()[new], 1e-3))) > 0.8
    low, high = skewed.predict_interval(0.9)
    assert coverage(y[new], low[new], high[new]) > 0.75
    assert skewed.transform_.power is not None
    assert abs(skewed.transform_.power.exponent) < 0.3


def skewed_case() -> tuple[Floats, Floats]:
    rng = np.random.default_rng(8)
    X = rng.normal(size=(200, 1))
    return X, np.exp(1.5 * X[:, 0] + 0.2 * rng.normal(size=200) + 5.0)


def test_equal_labels_are_predicted_everywhere() -> None:
    y = np.where(U, np.nan, 0.3)
    mean, std = GraphRegressor().fit(GRAPH, CASE.X, y).predict(return_std=True)
    np.testing.assert_allclose(mean, 0.3)
    np.testing.assert_array_equal(std, 0.0)


def test_all_nodes_labelled() -> None:
    full = GraphRegressor().fit(GRAPH, CASE.X, CASE.truth)
    np.testing.assert_array_equal(full.predict(), CASE.truth)
    np.testing.assert_array_equal(full.sample(2), np.tile(CASE.truth, (2, 1)))
    np.testing.assert_array_equal(full.predict_interval()[0], CASE.truth)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_a_few_labels_are_enough_for_an_answer(count: int) -> None:
    y = np.full(60, np.nan)
    y[:count] = CASE.truth[:count]
    mean, std = GraphRegressor().fit(GRAPH, CASE.X, y).predict(return_std=True)
    assert np.isfinite(mean).all()
    assert (std[count:] > 0).all()


def test_constant_and_repeated_features_change_nothing() -> None:
    constant = GraphRegressor().fit(GRAPH, np.column_stack([CASE.X, np.full(60, 0.1)]), CASE.y)
    np.testing.assert_array_equal(constant.predict(), model().predict())
    assert np.asarray(constant.coef_)[-1] == 0.0
    twice = GraphRegressor().fit(GRAPH, np.hstack([CASE.X, CASE.X]), CASE.y)
    np.testing.assert_allclose(twice.predict()[U], model().predict()[U], atol=0.5 * float(np.nanstd(CASE.y)))


def test_without_edges_features_are_all_there_is() -> None:
    rng = np.random.default_rng(9)
    X = rng.normal(size=(100, 1))
    y = 3 * X[:, 0] + 1.0
    empty = GraphRegressor().fit(Graph(np.zeros((100, 100))), X, hide(y))
    np.testing.assert_allclose(empty.predict(), y, atol=0.2)


def test_isolated_nodes_and_other_components_get_a_finite_answer() -> None:
    W = CASE.W.copy()
    alone, cut = int(np.flatnonzero(U)[0]), np.flatnonzero(U)[1:4]
    W[alone] = W[:, alone] = 0.0
    inside = np.zeros((60, 60), dtype=bool)
    inside[np.ix_(cut, cut)] = True
    W[cut] = np.where(inside[cut], 1.0, 0.0)
    W[:, cut] = W[cut].T
    np.fill_diagonal(W, 0.0)
    mean, std = GraphRegressor().fit(Graph(W), CASE.X, CASE.y).predict(return_std=True)
    assert np.isfinite(mean).all()
    assert (std[[alone, *cut]] > 0).all()


@pytest.mark.parametrize(("solver", "labels"), [("dense", 20), ("dense", 130), ("sparse", 60)])
def test_error_bars_of_isolated_nodes_are_about_those_of_others(solver: str, labels: int) -> None:
    rng, n = np.random.default_rng(0), 200
    tree = Graph.from_edges(np.arange(1, 180), [int(rng.integers(0, k)) for k in range(1, 180)], n_nodes=n)
    X = rng.normal(size=(n, 6))
    truth = X[:, 0] + 0.5 * tree.S @ X[:, 1] + 0.5 * rng.normal(size=n)
    y, alone = np.full(n, np.nan), tree.isolated
    known = rng.choice(180, labels, replace=False)
    y[known] = truth[known]
    fitted = GraphRegressor(solver=solver).fit(tree, X, y)
    for mean, std in (fitted.predict(return_std=True), fitted.predict(tree, X, return_std=True)):
        others = np.isnan(y) & ~alone
        assert np.median(std[alone]) < 2.0 * np.median(std[others])
        assert np.sqrt(np.mean((mean - truth)[alone] ** 2)) < 1.5 * np.sqrt(np.mean((mean - truth)[others] ** 2))


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "one label": ({"y": np.append(1.0, np.full(59, np.nan))}, "at least 2 labelled"),
    "no label": ({"y": np.full(60, np.nan)}, "at least one known"),
    "infinite cell": ({"X": np.where(np.eye(60, 3) > 0, np.inf, CASE.X)}, "X must be finite, got inf"),
    "rows": ({"X": CASE.X[:5]}, "one row for each"),
    "graph": ({"graph": CASE.W}, "Graph"),
    "transform": ({"transform": "square"}, "transform must be one of"),
    "sign": ({"transform": "log", "y": CASE.y - 100.0}, "positive labels"),
}


@pytest.mark.parametrize(("change", "message"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_explained(change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"graph": GRAPH, "X": CASE.X, "y": CASE.y, "transform": "identity"} | change
    with pytest.raises(InvalidInputError, match=message):
        GraphRegressor(transform=given["transform"]).fit(given["graph"], given["X"], given["y"])


def test_bad_questions_are_explained() -> None:
    with pytest.raises(InvalidInputError, match="level"):
        model().predict_interval(95)
    with pytest.raises(InvalidInputError, match="interval"):
        model().predict_interval(interval="guess")  # type: ignore[arg-type]  # on purpose


def test_categories_are_columns_of_their_levels_on_every_graph(tmp_path: Path) -> None:
    rng, n = np.random.default_rng(2), 150
    graph = Graph.from_edges(np.arange(n - 1), np.arange(1, n))
    dorm = pd.Series(rng.choice([f"hall {k}" for k in range(15)], n))
    effect = dorm.map({f"hall {k}": float(k) for k in range(15)})
    age = pd.Series(rng.standard_normal(n))
    y = (effect + age + 0.1 * rng.standard_normal(n)).where(rng.random(n) < 0.7)
    X = pd.DataFrame({"dorm": dorm.astype("category"), "age": age})
    model = GraphRegressor().fit(graph, X, y)
    by_hand = pd.get_dummies(X, prefix_sep="=", dtype=float)
    np.testing.assert_allclose(model.predict(), GraphRegressor().fit(graph, by_hand, y).predict(), atol=1e-6)
    other = pd.DataFrame({"age": [0.0, 0.0, 0.0], "dorm": ["hall 14", "hall 0", "no such hall"]})
    found = np.asarray(model.predict(Graph.from_edges([0, 1], [1, 2]), other))
    assert found[0] - found[1] == pytest.approx(14.0, abs=1.5)
    assert found[1] < found[2] < found[0]
    model.save(tmp_path / "model.gmrf")
    np.testing.assert_allclose(
        load_model(tmp_path / "model.gmrf").predict(Graph.from_edges([0, 1], [1, 2]), other), found
    )


def test_a_column_of_text_that_names_nodes_is_refused() -> None:
    X = pd.DataFrame({"name": [f"node {k}" for k in range(60)], "x": CASE.X[:, 0]})
    with pytest.raises(InvalidInputError, match="60 different values at 60 nodes in column 'name'"):
        GraphRegressor().fit(GRAPH, X, CASE.y)

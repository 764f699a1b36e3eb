"""Classification over any regressor: labels of any kind, cut-offs, probabilities, and clear errors."""

import pickle
from typing import Any

import networkx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression as ScikitRegression
from sklearn.metrics import accuracy_score, f1_score

import oracle
from cases import random_case
from graphmrf import (
    Graph,
    GraphClassifier,
    GraphRegressor,
    LabelPropagation,
    LinearGraphConvolution,
    LinearRegression,
    ResidualPropagation,
    SimpleGraphConvolution,
)
from graphmrf.errors import InvalidInputError
from graphmrf.estimators.graph_classifier import ClassProbability, best_cutoff, most_informative
from graphmrf.estimators.out_of_fold import out_of_fold
from graphmrf.selection import assign_folds, assign_strata


class _Mean:
    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        return {}

    def fit(self, graph: Graph, X: Any, y: Any) -> "_Mean":  # noqa: ARG002
        self.n_, self.mean_ = graph.n_nodes, np.nanmean(y)
        return self

    def predict(self, graph: Any = None, X: Any = None) -> Any:  # noqa: ARG002
        return np.full(self.n_, self.mean_)


CASE = random_case(11, n=80, p=3, labelled=60)
TRUTH = np.where(CASE.truth > np.median(CASE.truth), "yes", "no")


def hidden_labels(truth: Any) -> Any:
    labels = np.asarray(truth).astype(object)
    labels[~CASE.known] = None
    return labels


LABELS = hidden_labels(TRUTH)
THREE = np.array(["high", "low", "middle"])[np.digitize(CASE.truth, np.quantile(CASE.truth, [1 / 3, 2 / 3]))]

REGRESSORS: dict[str, Any] = {
    "LP": LabelPropagation(),
    "LR": LinearRegression(),
    "LGC": LinearGraphConvolution(),
    "SGC": SimpleGraphConvolution(),
    "LGC/RP": ResidualPropagation(LinearGraphConvolution()),
    "SGC/RP": ResidualPropagation(SimpleGraphConvolution()),
    "forest/RP": ResidualPropagation(RandomForestRegressor(5, random_state=0)),
}
every = pytest.mark.parametrize("regressor", REGRESSORS.values(), ids=REGRESSORS.keys())


@every
def test_it_learns_two_classes(regressor: Any) -> None:
    model = GraphClassifier(regressor).fit(CASE.graph, CASE.X, LABELS)
    assert model.classes_.tolist() == ["no", "yes"]
    predicted, probability = model.predict(), model.predict_proba()
    assert set(predicted) <= {"no", "yes"}
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    assert probability.shape == (80, 2)
    hidden = ~CASE.known
    assert model.score(None, None, TRUTH) == accuracy_score(TRUTH[hidden], predicted[hidden])
    assert model.held_out_score_ >= 0.5


@every
def test_it_learns_three_classes(regressor: Any) -> None:
    labels = hidden_labels(THREE)
    model = GraphClassifier(regressor, metric="f1").fit(CASE.graph, CASE.X, labels)
    assert model.cutoff_ is None
    hidden, predicted = ~CASE.known, model.predict()
    expected = f1_score(THREE[hidden], predicted[hidden], average="macro", labels=["high", "low", "middle"])
    assert model.score(None, None, THREE) == pytest.approx(expected)
    np.testing.assert_array_equal(model.classes_[model.predict_proba().argmax(axis=1)], predicted)


@every
def test_the_more_probable_of_two_classes_wins(regressor: Any) -> None:
    model = GraphClassifier(regressor).fit(CASE.graph, CASE.X, LABELS)
    np.testing.assert_array_equal(model.predict(), model.classes_[model.predict_proba().argmax(axis=1)])


@pytest.mark.slow
def test_without_a_regressor_the_field_is_used() -> None:
    X = CASE.X.copy()
    X[3:9, 1] = np.nan
    model = GraphClassifier(cv=2).fit(CASE.graph, X, LABELS)
    indicator = np.where(CASE.known, TRUTH == "yes", np.nan).astype(float)
    probability = GraphRegressor(likelihood="binomial").fit(CASE.graph, X, indicator).predict()
    np.testing.assert_allclose(model.predict_proba()[~CASE.known, 1], probability[~CASE.known])
    np.testing.assert_array_equal(model.predict_proba()[CASE.known, 1], TRUTH[CASE.known] == "yes")
    assert isinstance(model.regressors_[0], GraphRegressor)
    assert model.get_params()["regressor"] is None
    assert model.score(None, None, TRUTH) > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("colours", [["red", "blue"], ["red", "green", "blue"]])
def test_one_label_of_each_class_is_enough_for_the_field(colours: list[str]) -> None:
    n = 4 * len(colours)
    y = [colours[k // 4] if k % 4 == 1 else None for k in range(n)]
    path = Graph.from_edges(np.arange(n - 1), np.arange(1, n))
    model = GraphClassifier().fit(path, None, y)
    np.testing.assert_allclose(model.predict_proba().sum(axis=1), 1.0)
    assert model.predict()[1::4].tolist() == colours
    assert model.predict()[0] == colours[0]
    assert model.predict()[-1] == colours[-1]
    indicators = GraphClassifier(GraphRegressor()).fit(path, None, y)
    np.testing.assert_allclose(indicators.predict_proba().sum(axis=1), 1.0)
    assert np.isnan(indicators.held_out_score_)


def test_scores_that_say_nothing_leave_the_shares_of_the_classes() -> None:
    y = np.array(["a"] * 30 + ["b"] * 20 + [None] * 10, dtype=object)
    model = GraphClassifier(_Mean()).fit(Graph.from_edges([], [], n_nodes=60), None, y)
    np.testing.assert_allclose(model.predict_proba(), [[0.6, 0.4]] * 60)
    assert model.cutoff_ == np.inf
    assert (model.predict() == "a").all()
    assert model.held_out_score_ == 0.6


def test_two_classes_are_one_regression_and_a_cutoff() -> None:
    model = GraphClassifier(LinearRegression()).fit(CASE.graph, CASE.X, LABELS)
    y = np.where(CASE.known, TRUTH == "yes", np.nan)
    score = LinearRegression().fit(CASE.graph, CASE.X, y).predict()
    assert model.cutoff_ is not None
    np.testing.assert_array_equal(model.predict() == "yes", score >= model.cutoff_)
    order = np.argsort(score)
    assert (np.diff(model.predict_proba()[order, 1]) >= 0).all()


def test_the_cutoff_is_tuned_for_the_metric_on_held_out_folds() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 1))
    rare = rng.random(400) < 0.15 / (1 + np.exp(-2 * X[:, 0]))
    y = np.where(rng.random(400) < 0.7, rare.astype(float), np.nan)
    graph = Graph.from_edges([], [], n_nodes=400)
    by_f1 = GraphClassifier(LinearRegression(), metric="f1").fit(graph, X, y)
    by_accuracy = GraphClassifier(LinearRegression()).fit(graph, X, y)
    assert by_f1.cutoff_ is not None
    assert by_accuracy.cutoff_ is not None
    assert by_f1.cutoff_ < by_accuracy.cutoff_
    known = ~np.isnan(y)
    folds = assign_strata(y[known].astype(int), 5, random_state=0)
    labelled, scores = np.flatnonzero(known), np.empty(known.sum())
    for fold in range(5):
        scores[folds == fold] = oracle.linear_regression(X, oracle.hide(y, labelled[folds == fold]))[
            labelled[folds == fold]
        ]
    expected = max(f1_score(y[known], scores >= cutoff) for cutoff in scores)
    assert f1_score(y[known], scores >= by_f1.cutoff_) == pytest.approx(expected)
    assert by_f1.held_out_score_ < expected  # the cut-off of every fold is that of the others


def test_held_out_scores_promise_nothing_where_nothing_can_be_predicted() -> None:
    graph, scores, losses = Graph.from_edges([], [], n_nodes=80), [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        y = np.where(np.arange(80) < 60, rng.permutation(np.arange(80) % 3).astype(float), np.nan)
        model = GraphClassifier(LinearRegression()).fit(graph, rng.normal(size=(80, 3)), y)
        scores.append(model.held_out_score_)
        losses.append(-np.log(model.held_out_proba_[np.arange(60), y[:60].astype(int)]).mean())
    assert np.mean(losses) > np.log(3)
    assert np.mean(scores) == pytest.approx(1 / 3, abs=0.04)


@pytest.mark.parametrize(
    "labels",
    [
        np.where(CASE.known, (TRUTH == "yes").astype(float), np.nan),
        np.ma.array(TRUTH == "yes", mask=~CASE.known),
        pd.Series(LABELS, dtype="string"),
        pd.Series(LABELS).astype("category"),
        pd.Series(hidden_labels(TRUTH == "yes"), dtype="boolean"),
        [None if label is None else 3 * (label == "yes") for label in LABELS],
    ],
    ids=["floats", "masked", "strings", "categories", "booleans", "list"],
)
def test_labels_may_be_of_any_kind(labels: Any) -> None:
    expected = GraphClassifier(LinearRegression()).fit(CASE.graph, CASE.X, LABELS).predict()
    model = GraphClassifier(LinearRegression()).fit(CASE.graph, CASE.X, labels)
    np.testing.assert_array_equal(model.predict() == model.classes_[1], expected == "yes")


def test_propagation_keeps_labels_and_regression_does_not() -> None:
    for regressor in (LabelPropagation(alpha=0.5), ResidualPropagation(LinearRegression(), alpha=0.5)):
        model = GraphClassifier(regressor).fit(CASE.graph, CASE.X, LABELS)
        np.testing.assert_array_equal(model.predict()[CASE.known], TRUTH[CASE.known])
        sure = model.predict_proba()[CASE.known, 1]
        np.testing.assert_array_equal(sure, TRUTH[CASE.known] == "yes")
    proba = GraphClassifier(LinearRegression()).fit(CASE.graph, CASE.X, LABELS).predict_proba()
    assert ((proba > 0) & (proba < 1)).all()


def test_another_graph() -> None:
    other = random_case(3, n=30, p=3)
    model = GraphClassifier(SimpleGraphConvolution()).fit(CASE.graph, CASE.X, LABELS)
    truth = np.where(other.truth > 0, "yes", "no")
    assert model.predict_proba(other.graph, other.X).shape == (30, 2)
    predicted = model.predict(other.graph, other.X)
    assert model.score(other.graph, other.X, truth) == accuracy_score(truth, predicted)
    with pytest.raises(InvalidInputError, match="predicts only the nodes of the graph it was fitted on"):
        GraphClassifier(LabelPropagation()).fit(CASE.graph, None, LABELS).predict(other.graph, other.X)


def test_probabilities_are_calibrated() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(6000, 2))
    p = 1 / (1 + np.exp(-(X @ [1.5, -1.0] - 0.5)))
    truth = (rng.random(6000) < p).astype(float)
    y = np.where(np.arange(6000) < 3000, truth, np.nan)
    model = GraphClassifier(LinearRegression()).fit(Graph.from_edges([], [], n_nodes=6000), X, y)
    said = model.predict_proba()[3000:, 1]
    assert np.abs(said - p[3000:]).mean() < 0.03
    for low in np.arange(0, 1, 0.2):
        inside = (said >= low) & (said < low + 0.2)
        assert abs(said[inside].mean() - truth[3000:][inside].mean()) < 0.06


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from([0.1, 0.2, 0.3, 0.5, 0.9]), st.booleans()), min_size=2, max_size=12))
def test_the_cutoff_is_the_best_of_all(pairs: list[tuple[float, bool]]) -> None:
    scores, positive = np.array([s for s, _ in pairs]), np.array([p for _, p in pairs])
    cutoff, value = best_cutoff(scores, positive)
    tried = [f1_score(positive, scores >= c, zero_division=0.0) for c in [*np.unique(scores), 2.0]]
    assert value == pytest.approx(max(tried))
    assert f1_score(positive, scores >= cutoff, zero_division=0.0) == pytest.approx(value)


def test_several_classes_are_as_sure_as_they_are_right() -> None:
    differences = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        places = rng.random((1500, 2))
        truth = (3 * places[:, 0]).astype(int) + 3 * (2 * places[:, 1]).astype(int)
        labels = np.where(rng.random(1500) < 0.1, truth.astype(float), np.nan)
        model = GraphClassifier(LabelPropagation()).fit(Graph.from_knn(places, 6), None, labels)
        hidden, probability = np.isnan(labels), model.predict_proba()
        right = np.argmax(probability, axis=1) == truth
        differences.append(np.mean(probability.max(axis=1)[hidden] - right[hidden]))
    assert abs(np.mean(differences)) < 0.02  # -.04 without the common power


def test_separated_scores_get_no_certainty() -> None:
    scores, positive = np.array([0.0, 0.1, 0.2, 0.8, 0.9, 1.0]), np.arange(6) >= 3
    p = ClassProbability.fit(scores, positive)(scores)
    np.testing.assert_allclose(p[[0, -1]], [1 / 5, 4 / 5], atol=0.1)
    constant = ClassProbability.fit(np.ones(6), positive)(np.ones(1))
    np.testing.assert_allclose(constant, 0.5, atol=1e-3)


@pytest.mark.parametrize(
    "regressor",
    [
        LabelPropagation(alpha=0.7),
        ResidualPropagation(LinearGraphConvolution(alpha=0.5), alpha=0.7),
        SimpleGraphConvolution(n_layers=1),
        ResidualPropagation(ScikitRegression(), alpha=0.0),
    ],
    ids=["LP", "RP", "SGC", "scikit"],
)
def test_out_of_fold_predictions_are_refits_without_each_fold(regressor: Any) -> None:
    folds, labelled = assign_folds(60, 4, random_state=2), np.flatnonzero(CASE.known)
    fitted = clone(regressor).fit(CASE.graph, CASE.X, CASE.y)
    actual = fitted.out_of_fold(CASE.graph, CASE.X, CASE.y, folds)
    for fold in range(4):
        nodes = labelled[folds == fold]
        refit = clone(regressor).fit(CASE.graph, CASE.X, oracle.hide(CASE.y, nodes))
        np.testing.assert_allclose(actual[folds == fold], refit.predict()[nodes], rtol=1e-4, atol=1e-4)


def test_a_stranger_with_a_graph_is_searched_again() -> None:
    folds = assign_folds(60, 4, random_state=2)
    fitted = _Mean().fit(CASE.graph, CASE.X, CASE.y)
    values = out_of_fold(fitted, CASE.graph, CASE.X, CASE.y, folds)
    known = CASE.y[CASE.known]
    np.testing.assert_allclose(values[folds == 1], known[folds != 1].mean())
    assert GraphClassifier(_Mean()).fit(CASE.graph, CASE.X, LABELS).predict().shape == (80,)


def test_strata_have_their_share_of_every_class() -> None:
    codes = np.repeat([0, 1, 2], [50, 23, 7])
    folds = assign_strata(codes, 5, random_state=3)
    for code in range(3):
        counts = np.bincount(folds[codes == code], minlength=5)
        assert np.ptp(counts) <= 1
    assert np.ptp(np.bincount(folds)) <= 1


def test_a_pickle_and_the_same_seed_predict_alike() -> None:
    model = GraphClassifier(LinearGraphConvolution()).fit(CASE.graph, CASE.X, LABELS)
    again = GraphClassifier(LinearGraphConvolution()).fit(CASE.graph, CASE.X, LABELS)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(), model.predict_proba())
    np.testing.assert_array_equal(again.predict_proba(), model.predict_proba())
    with pytest.raises(NotFittedError):
        clone(model).predict()


def test_one_class_only() -> None:
    labels = hidden_labels(np.full(80, "yes"))
    with pytest.raises(InvalidInputError, match="at least two classes, got only 'yes'"):
        GraphClassifier(LinearRegression()).fit(CASE.graph, CASE.X, labels)


@pytest.mark.parametrize("codes", [[-1, 0, 1, -1, 1, 0], [-1.0, 0.0, 2.0, 2.0, 0.0, -1.0]])
def test_minus_one_for_unknown_is_refused_with_the_remedy(codes: list[float]) -> None:
    path = Graph.from_edges(range(5), range(1, 6))
    with pytest.raises(InvalidInputError, match=r"-1 at 2 nodes beside .*np\.where\(y == -1, np\.nan, y\)"):
        GraphClassifier(LabelPropagation(alpha=0.5), cv=2).fit(path, None, codes)


@pytest.mark.parametrize("codes", [[-1, 1, 1, -1, 1, -1], [-1, 0, 0, -1, np.nan, 0], list("abbaba")])
def test_minus_one_may_be_a_class(codes: list[Any]) -> None:
    path = Graph.from_edges(range(5), range(1, 6))
    model = GraphClassifier(LabelPropagation(alpha=0.5), cv=2).fit(path, None, codes)
    assert model.classes_.tolist() == sorted(pd.Series(codes).dropna().unique())


def test_a_class_with_fewer_members_than_folds() -> None:
    labels = LABELS.copy()
    labels[np.flatnonzero(CASE.known)[:3]] = "maybe"
    with pytest.raises(InvalidInputError, match="each of the 5 folds, got 'maybe' with 3; label more of them"):
        GraphClassifier(LinearRegression()).fit(CASE.graph, CASE.X, labels)


def test_one_label_of_each_class_is_enough_for_methods_with_a_smoothing_level() -> None:
    club = networkx.karate_club_graph()
    truth = np.array([club.nodes[node]["club"] for node in club])
    y = np.full(34, None, dtype=object)
    y[[0, 33]] = truth[[0, 33]]
    graph = Graph(networkx.to_scipy_sparse_array(club, weight=None))
    model = GraphClassifier(LabelPropagation()).fit(graph, None, y)
    assert model.score(None, None, truth) > 0.9
    assert np.isnan(model.held_out_score_)
    assert model.notes_ == ()
    score = LabelPropagation(alpha=0.99).fit(graph, None, pd.Series(y).eq(truth[33]).where(pd.notna(y)).astype(float))
    np.testing.assert_allclose(model.predict_proba()[:, 1], np.clip(score.predict(), 0.0, 1.0))
    given = GraphClassifier(LabelPropagation(omega=5.0)).fit(graph, None, y).regressors_[0]
    assert given.omega_ == pytest.approx(5.0)
    X = np.random.default_rng(0).standard_normal((34, 3))
    both = GraphClassifier(ResidualPropagation(LinearGraphConvolution())).fit(graph, X, y).regressors_[0]
    assert (both.alpha_, both.base_.alpha_) == (0.99, 0.99)
    with pytest.raises(InvalidInputError, match="cannot choose n_layers by cross-validation; give it a number"):
        GraphClassifier(SimpleGraphConvolution()).fit(graph, X, y)


def test_classes_unseen_in_the_fit_cannot_be_scored() -> None:
    model = GraphClassifier(LinearRegression()).fit(CASE.graph, CASE.X, LABELS)
    with pytest.raises(InvalidInputError, match=r"classes of the fit only, 'no', 'yes', got 'perhaps'"):
        model.score(None, None, np.where(CASE.known, TRUTH, "perhaps"))
    with pytest.raises(InvalidInputError, match="not labelled in the fit, got none"):
        model.score(None, None, LABELS)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (LABELS[:5], r"one label for each of the 80 nodes, got shape \(5,\)"),
        ([None] * 80, "at least one known label, got none at all 80 nodes"),
        (["a"] * 40 + [1] * 40, "must all have one type, got int and str"),
    ],
)
def test_strange_labels_are_refused(labels: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        GraphClassifier(LinearRegression()).fit(CASE.graph, CASE.X, labels)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (GraphClassifier(LinearRegression(), metric="auc"), "metric must be 'accuracy' or 'f1', got 'auc'"),  # type: ignore[arg-type]
        (GraphClassifier(ScikitRegression()), "regressor must be a predictor of graphmrf"),
        (GraphClassifier(LinearRegression), "pass an instance"),
        (GraphClassifier(LinearRegression(), cv=1), "folds must be at least 2, got 1"),
    ],
)
def test_strange_options_are_refused(model: GraphClassifier, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        model.fit(CASE.graph, CASE.X, LABELS)


@pytest.mark.slow
def test_suggestions_explain_most_of_the_others_by_the_exact_covariance() -> None:
    rng = np.random.default_rng(3)
    root = rng.normal(size=(12, 12)) * np.linspace(0.2, 2.0, 12)
    covariance = root @ root.T
    draws = rng.standard_normal((200_000, 12)) @ root.T
    expected: list[int] = []
    K = covariance.copy()
    for _ in range(3):
        gain = (np.sum(K**2, axis=1) - np.diag(K) ** 2) / np.maximum(np.diag(K), 1e-9)
        gain[expected] = -np.inf
        best = int(np.argmax(gain))
        expected.append(best)
        K -= np.outer(K[best], K[best]) / K[best, best]
    assert most_informative([draws], 3) == expected


def test_a_label_is_suggested_in_each_part_without_one() -> None:
    parts = [np.arange(start, start + 6) for start in (0, 6, 12)]
    pairs = np.concatenate([[(part[0], node) for node in part[1:]] for part in parts])  # three stars
    graph = Graph.from_edges(*pairs.T).with_ids([f"n{k}" for k in range(18)])
    y = pd.Series([None] * 18, index=graph.ids, dtype=object)
    y.iloc[[1, 2, 3, 4]] = ["red", "blue", "red", "blue"]
    found = GraphClassifier().fit(graph, None, y).suggest(2)
    assert sorted(found["node"] // 6) == [1, 2]
    assert found["node"].tolist() == [int(name[1:]) for name in found.index]
    assert set(found["prediction"]) <= {"red", "blue"}


def test_suggestions_need_the_field_and_unlabelled_nodes() -> None:
    path = Graph.from_edges(range(5), range(1, 6))
    labels = ["a", "b", None, None, "a", "b"]
    with pytest.raises(InvalidInputError, match="suggestions are by the field, got another regressor"):
        GraphClassifier(LabelPropagation(alpha=0.5), cv=2).fit(path, None, labels).suggest()
    with pytest.raises(InvalidInputError, match="k must be from 0 to the 2 unlabelled nodes, got 3"):
        GraphClassifier().fit(path, None, labels).suggest(3)
    with pytest.raises(InvalidInputError, match="2 unlabelled nodes, got "):
        GraphClassifier().fit(path, None, labels).suggest(1.5)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="at least 2 draws, got 0"):
        GraphClassifier().fit(path, None, labels).suggest(1, draws=0)


def test_single_labels_of_their_class_are_not_scored() -> None:
    path = Graph.from_edges(range(7), range(1, 8))
    assert np.isnan(GraphClassifier().fit(path, None, ["a", *[None] * 6, "b"]).held_out_score_)
    with_c = GraphClassifier(cv=2).fit(path, None, ["a", "a", "a", None, None, "b", "b", "c"])
    right = with_c.held_out_[:-1] == np.array(["a", "a", "a", "b", "b"])
    assert with_c.held_out_score_ == pytest.approx(right.mean())


@pytest.mark.slow
def test_ordered_classes_share_a_field() -> None:
    rng, n = np.random.default_rng(0), 240
    ring = Graph.from_edges(np.arange(n), (np.arange(n) + 1) % n)
    X = rng.standard_normal((n, 2))
    eta = 2.0 * X[:, 0] + np.sin(np.arange(n) / 10.0) + 0.3 * rng.logistic(size=n)
    truth = np.array(["low", "middle", "high", "top"])[np.searchsorted([-1.5, 0.0, 1.5], eta)]
    y = pd.Series(truth).where(rng.random(n) < 0.4, None).to_numpy(dtype=object)
    order = ["low", "middle", "high", "top"]
    model = GraphClassifier(ordered=order).fit(ring, X, y)
    hidden, probability = pd.isna(y), model.predict_proba()
    assert model.classes_.tolist() == sorted(order)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    assert (probability >= 0).all()
    place = np.searchsorted(model.classes_, truth)
    assert np.mean(np.argmax(probability, axis=1) == place, where=hidden) > 0.6
    plain = GraphClassifier().fit(ring, X, y).predict_proba()
    losses = [-np.log(p[hidden, place[hidden]]).mean() for p in (probability, plain)]
    assert losses[0] < losses[1]
    assert model.held_out_score_ == pytest.approx((model.predict() == truth)[hidden].mean(), abs=0.1)
    assert (model.predict()[~hidden] == truth[~hidden]).all()
    with pytest.raises(InvalidInputError, match="ordered must name every class"):
        GraphClassifier(ordered=order[:2]).fit(ring, X, y)
    with pytest.raises(InvalidInputError, match="got a regressor"):
        GraphClassifier(LinearRegression(), ordered=True).fit(ring, X, y)


@pytest.mark.slow
def test_ordered_numbers_and_two_classes() -> None:
    path = Graph.from_edges(np.arange(29), np.arange(1, 30))
    y = np.where(np.arange(30) % 2, np.arange(30) // 10, np.nan)
    assert np.mean(GraphClassifier(ordered=True).fit(path, None, y).predict() == np.arange(30) // 10) > 0.9
    two = np.where(y == 2, np.nan, y)
    expected = GraphClassifier().fit(path, None, two).predict_proba()
    np.testing.assert_array_equal(GraphClassifier(ordered=True).fit(path, None, two).predict_proba(), expected)


def test_an_order_may_mix_text_and_numbers_in_error() -> None:
    path = Graph.from_edges(np.arange(5), np.arange(1, 6))
    with pytest.raises(InvalidInputError, match="ordered must name every class of y once"):
        GraphClassifier(ordered=["low", 1, 2]).fit(path, None, [0.0, 1.0, 2.0, 0.0, 1.0, np.nan])

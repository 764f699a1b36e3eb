"""The tools of scikit-learn on nodes: its estimator checks, cross-validation, searches and pipelines."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline

from graphmrf import GraphSmoother, LinearGraphConvolution
from graphmrf.errors import InvalidInputError
from graphmrf.linalg import smooth
from scikit_checks import CASE, CHECKED, NOT_APPLICABLE, PASSED, adapter, results

IDS = [f"n{i}" for i in range(40)]
LABELLED = np.flatnonzero(~np.isnan(CASE.y))
Y = CASE.y[LABELLED]
FOLDS = KFold(5, shuffle=True, random_state=0)


@pytest.mark.parametrize("name", CHECKED)
def test_the_checks_of_scikit_learn_that_apply_pass(name: str) -> None:
    found = results(name)
    assert {each["check_name"] for each in found if each["status"] == "failed"} <= NOT_APPLICABLE.keys()
    assert sum(each["status"] == "passed" for each in found) >= PASSED[name]


@pytest.mark.parametrize("name", CHECKED)
def test_what_the_other_checks_ask_holds_for_rows_of_nodes(name: str) -> None:
    """Same fit, same answer; the order and the number of rows do not matter; fitting leaves the options alone."""

    def ask(model: Any, rows: Any) -> Any:
        return model.predict(rows) if name == "NodeAdapter" else model.transform(rows)

    model = clone(CHECKED[name]).fit(LABELLED, Y)
    options, rows = repr(model.get_params()), np.arange(40)
    before, everything = dict(vars(model)), ask(model, rows)
    np.testing.assert_array_equal(ask(model, rows[::-1]), everything[::-1])
    np.testing.assert_array_equal(np.concatenate([ask(model, [row]) for row in rows]), everything)
    np.testing.assert_array_equal(ask(pickle.loads(pickle.dumps(model)), rows), everything)
    assert vars(model) == before
    np.testing.assert_array_equal(ask(model.fit(LABELLED, Y), rows), everything)
    assert repr(model.get_params()) == options


def test_cross_validation_hides_labels_and_keeps_nodes() -> None:
    scores = cross_val_score(adapter(), LABELLED, Y, cv=FOLDS)
    folds = np.empty(LABELLED.size, dtype=int)
    for fold, (_, test) in enumerate(FOLDS.split(LABELLED)):
        folds[test] = fold
    fitted = LinearGraphConvolution(alpha=0.5).fit(CASE.graph, CASE.X, CASE.y)
    predictions = fitted.out_of_fold(CASE.graph, CASE.X, CASE.y, folds)
    for fold, score in enumerate(scores):
        truth = Y[folds == fold]
        residual = truth - predictions[folds == fold]
        assert score == pytest.approx(1 - (residual**2).sum() / ((truth - truth.mean()) ** 2).sum(), abs=1e-5)


def test_a_search_finds_the_best_level_by_ids_and_by_positions() -> None:
    grid = {"estimator__alpha": [0.0, 0.5, 0.9]}
    named = GridSearchCV(adapter(CASE.graph.with_ids(IDS)), grid, cv=FOLDS)
    named.fit(pd.DataFrame({"node": np.array(IDS)[LABELLED]}), Y)
    search = GridSearchCV(adapter(), grid, cv=FOLDS).fit(LABELLED[:, None], Y)
    assert named.best_params_ == search.best_params_
    np.testing.assert_allclose(named.predict(["n3", "n1"]), search.predict([3, 1]))


def test_a_pipeline_of_smoothing_and_ridge_is_graph_convolution() -> None:
    pipe = make_pipeline(GraphSmoother(CASE.graph, features=CASE.X, alpha=0.5), Ridge(alpha=1e-9))
    smoothed = smooth(CASE.graph, CASE.X - CASE.X.mean(axis=0), 0.5)
    by_hand = Ridge(alpha=1e-9).fit(smoothed[LABELLED], Y).predict(smoothed)
    np.testing.assert_allclose(pipe.fit(LABELLED, Y).predict(np.arange(40)), by_hand, rtol=1e-6)
    grid = GridSearchCV(pipe, {"graphsmoother__alpha": [0.1, 0.9], "ridge__alpha": [0.1, 10.0]}, cv=FOLDS)
    assert set(grid.fit(LABELLED, Y).best_params_) == {"graphsmoother__alpha", "ridge__alpha"}


def test_the_smoother_takes_tables_of_all_nodes_too() -> None:
    table = pd.DataFrame(CASE.X, index=IDS, columns=["a", "b", "c"])
    smoother = GraphSmoother(CASE.graph.with_ids(IDS), alpha=0.9)
    mean = CASE.X.mean(axis=0)
    smoothed = smoother.fit_transform(table.iloc[::-1])
    np.testing.assert_allclose(smoothed, smooth(CASE.graph, CASE.X - mean, 0.9) + mean)
    np.testing.assert_allclose(smoother.fit_transform(table + 1e6), smoothed + 1e6, rtol=1e-12)
    assert smoother.get_feature_names_out().tolist() == ["a", "b", "c"]


BAD: list[tuple[Any, str]] = [
    (lambda: adapter().fit(CASE.X, CASE.y), "one node a row, got shape"),
    (lambda: adapter().fit([0, 40], [1.0, 2.0]), "positions 0 to 39"),
    (lambda: adapter().fit([0.5, 1], [1.0, 2.0]), "positions 0 to 39"),
    (lambda: adapter().fit([1, 1], [1.0, 2.0]), "node 1 twice"),
    (lambda: adapter().fit([1, 2], [1.0]), "one outcome for each of the 2 nodes"),
    (lambda: adapter(CASE.graph.with_ids(IDS)).fit(["n1", "zz"], [1.0, 2.0]), "ids of the graph, got 'zz'"),
    (lambda: GraphSmoother(CASE.graph).fit(CASE.X[:5]), "one row for each of the 40 nodes, got 5"),
    (lambda: GraphSmoother(CASE.graph, alpha="cv").fit(CASE.X), "search it with GridSearchCV"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_rows_are_told(call: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()

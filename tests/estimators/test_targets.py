"""Several outcomes in one fit: the answers of a fit to each, side by side."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import graphmrf as gm
from graphmrf.errors import InvalidInputError
from graphmrf.estimators.tables import side_by_side

NAMES = [f"n{k}" for k in range(30)]
GRAPH = gm.Graph.from_edges(np.arange(30), (np.arange(30) + 1) % 30).with_ids(NAMES)
X = pd.DataFrame({"x": np.cos(np.arange(30.0))}, index=NAMES)


def outcomes() -> pd.DataFrame:
    """Two outcomes, known at other nodes each."""
    noise = np.random.default_rng(0).normal(size=(30, 2))
    Y = pd.DataFrame(noise + X.to_numpy() * [3.0, -1.0], index=NAMES, columns=["rent", "area"])
    Y.iloc[::3, 0] = np.nan
    Y.iloc[1::4, 1] = np.nan
    return Y


ESTIMATORS = [gm.LabelPropagation(alpha=0.8), gm.LinearGraphConvolution(alpha=0.5), gm.GraphRegressor(solver="dense")]


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda each: type(each).__name__)
def test_answers_are_those_of_a_fit_to_each(estimator: Any) -> None:
    Y, groups = outcomes(), pd.Series(np.arange(30) % 2, index=NAMES, name="half")
    both = clone(estimator).fit(GRAPH, X, Y.sample(frac=1.0, random_state=0))
    low, high = both.predict_interval(0.8)
    for name in Y:
        alone = clone(estimator).fit(GRAPH, X, Y[name])
        mean, std = alone.predict(return_std=True)
        pd.testing.assert_series_equal(both.predict()[name], mean)
        pd.testing.assert_series_equal(both.predict(return_std=True)[1][name], std)
        pd.testing.assert_frame_equal(both.predict_total(groups)[name], alone.predict_total(groups))
        for found, expected in zip((low, high), alone.predict_interval(0.8), strict=True):
            pd.testing.assert_series_equal(found[name], expected)
        assert alone.summary() in both.summary()


def test_columns_of_an_array_are_numbered() -> None:
    Y, model = outcomes().to_numpy(), gm.LabelPropagation(alpha=0.8)
    found = clone(model).fit(GRAPH, None, Y).predict()
    alone = [clone(model).fit(GRAPH, None, Y[:, k]).predict() for k in range(2)]
    np.testing.assert_array_equal(found, np.column_stack(alone))


def test_classes_of_several_columns() -> None:
    colours = outcomes().map(lambda value: "high" if value > 0 else "low", na_action="ignore")
    model: Any = gm.GraphClassifier(gm.LabelPropagation(alpha=0.8)).fit(GRAPH, None, colours)
    assert model.predict()["rent"].equals(model.targets_["rent"].predict())
    pd.testing.assert_frame_equal(model.predict_proba()["area"], model.targets_["area"].predict_proba())


def test_a_model_of_several_targets_is_saved(tmp_path: Path) -> None:
    model: Any = gm.LabelPropagation(alpha=0.8).fit(GRAPH, None, outcomes())
    model.save(tmp_path / "model.gmrf")
    pd.testing.assert_frame_equal(gm.load(tmp_path / "model.gmrf").predict(), model.predict())


@pytest.mark.parametrize("ask", [lambda m: m.score(y=outcomes()), lambda m: m.sample(), lambda m: m.plot()])
def test_what_is_for_one_target_names_the_fit_of_each(ask: Any) -> None:
    model: Any = gm.LabelPropagation(alpha=0.8).fit(GRAPH, None, outcomes())
    with pytest.raises(NotFittedError, match=r"a fit for each of 2 targets; .* model\.targets_\['rent'\]"):
        ask(model)


def test_a_fit_to_one_target_forgets_the_others() -> None:
    Y = outcomes()
    model: Any = gm.LabelPropagation(alpha=0.8)
    expected: Any = clone(model).fit(GRAPH, None, Y["area"]).predict()
    assert model.fit(GRAPH, None, Y).fit(GRAPH, None, Y["area"]).predict().equals(expected)
    assert not hasattr(model.fit(GRAPH, None, Y), "alpha_")


def test_targets_of_the_same_name_are_refused() -> None:
    Y = outcomes().set_axis(["rent", "rent"], axis=1)
    with pytest.raises(InvalidInputError, match="targets must have different names, got 'rent' twice"):
        gm.LabelPropagation().fit(GRAPH, None, Y)


@pytest.mark.parametrize("call", [(X, outcomes()["rent"]), (X.to_numpy(), outcomes()["rent"].to_numpy())])
def test_a_fit_without_a_graph_says_how_to_make_one(call: tuple[Any, Any]) -> None:
    with pytest.raises(InvalidInputError, match=r"the graph first.*call fit\(graph, X, y\).*Graph\.from_edges"):
        gm.GraphRegressor().fit(*call)


def test_a_fit_without_an_outcome_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"needs an outcome y, got None; call fit\(graph, X, y\)"):
        gm.LinearGraphConvolution().fit(GRAPH, X)


def test_answers_about_several_targets_stand_side_by_side() -> None:
    found = side_by_side({"rent": np.array([1.0, 2.0]), "area": np.array([3.0, 4.0])})
    np.testing.assert_array_equal(found, [[1.0, 3.0], [2.0, 4.0]])

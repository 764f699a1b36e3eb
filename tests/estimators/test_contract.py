"""What every estimator promises: all of the registry, with their variants, and the classifier."""

import pickle
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsRegressor

from cases import random_case
from graphmrf import (
    Graph,
    GraphClassifier,
    GraphConvolutionalNetwork,
    GraphRegressor,
    LabelPropagation,
    LinearGraphConvolution,
    LinearRegression,
    ResidualPropagation,
    SimpleGraphConvolution,
)
from graphmrf.engines import ENGINES
from graphmrf.errors import InvalidInputError
from graphmrf.estimators.methods import METHODS
from graphmrf.estimators.out_of_fold import out_of_fold
from graphmrf.selection import assign_folds
from toy_estimator import Median

Make = Callable[[], Any]

CASE = random_case(11, n=40, p=3, labelled=20)
FEW = np.where(np.cumsum(CASE.known) <= 9, CASE.y, np.nan)
SMALL_NETWORK: dict[str, Any] = {"n_layers": 1, "epochs": 20, "hidden": 8, "device": "cpu"}


def quick(key: str, **options: Any) -> Make:
    """A method of the registry; networks are small and trained for a few steps."""

    def make() -> Any:
        model = METHODS[key].make(**options)
        base = model.base if METHODS[key].residuals else model
        if isinstance(base, GraphConvolutionalNetwork):
            base.set_params(**SMALL_NETWORK)
        return model

    return make


REGISTERED: dict[str, Make] = {key: quick(key, alpha=0.7) for key in METHODS if find_spec("torch") or "gcn" not in key}
AT_A_LEVEL: dict[str, Make] = REGISTERED | {
    "LR without intercept": lambda: LinearRegression(fit_intercept=False),
    "LP omega": lambda: LabelPropagation(omega=3.0),
    "LGC without intercept": lambda: LinearGraphConvolution(alpha=0.7, fit_intercept=False),
    "LR/RP omega": lambda: ResidualPropagation(LinearRegression(), omega=2.0),
    "SGC": lambda: SimpleGraphConvolution(n_layers=2),
    "SGC without intercept": lambda: SimpleGraphConvolution(n_layers=2, fit_intercept=False),
    "SGC/RP": lambda: ResidualPropagation(SimpleGraphConvolution(n_layers=1), alpha=0.6),
    "toy": Median,
    "field sparse": lambda: GraphRegressor(solver="sparse"),
}
SEARCHING: dict[str, Make] = {
    "LP cv": LabelPropagation,
    "LGC cv": LinearGraphConvolution,
    "LGC/RP cv": lambda: ResidualPropagation(LinearGraphConvolution()),
    "LGC, then RP cv": lambda: ResidualPropagation(LinearGraphConvolution(alpha=0.5)),
    "LGC cv, then RP": lambda: ResidualPropagation(LinearGraphConvolution(), alpha=0.5),
    "LR/RP cv": lambda: ResidualPropagation(LinearRegression()),
    "SGC/RP cv": lambda: ResidualPropagation(SimpleGraphConvolution()),
    "neighbours/RP": lambda: ResidualPropagation(KNeighborsRegressor(2), alpha=0.5),
    "neighbours/RP cv": lambda: ResidualPropagation(KNeighborsRegressor(2)),
}
if find_spec("torch"):
    SEARCHING["GCN cv, then RP cv"] = lambda: ResidualPropagation(
        GraphConvolutionalNetwork(**SMALL_NETWORK | {"n_layers": "cv"})
    )
REGRESSORS = AT_A_LEVEL | SEARCHING
CLASSIFIERS: dict[str, Make] = {
    "classes by LP": lambda: GraphClassifier(LabelPropagation(), cv=3),
    "classes by LGC": lambda: GraphClassifier(LinearGraphConvolution(alpha=0.7), metric="f1", cv=3),
    "classes by the field": lambda: GraphClassifier(cv=3),
}
EVERY = REGRESSORS | CLASSIFIERS


def over(makes: dict[str, Make]) -> pytest.MarkDecorator:
    marks = {"field sparse": pytest.mark.slow}
    made = [pytest.param(make, id=name, marks=marks.get(name, ())) for name, make in makes.items()]
    return pytest.mark.parametrize("make", made)


def outcome(model: Any) -> Any:
    """The labels a model is fitted to."""
    if isinstance(model, GraphClassifier):
        return halves(FEW if model.regressor is None else CASE.y)
    return FEW if isinstance(model, GraphRegressor) else CASE.y


def halves(y: Any) -> Any:
    return np.where(np.isnan(y), np.nan, y > np.nanmedian(y))


def fitted(make: Make, y: Any = None, X: Any = CASE.X) -> Any:
    model = make()
    return model.fit(CASE.graph, X, outcome(model) if y is None else y)


first = cache(fitted)


def answers(model: Any) -> Any:
    """Predictions and standard deviations, or the probabilities of both classes."""
    return model.predict_proba().T if isinstance(model, GraphClassifier) else np.stack(model.predict(return_std=True))


def accuracy(make: Make) -> float:
    """How far equal problems may differ, relative or for outcomes of some units: PyTorch trains in float32, fields end
    their search within a tolerance.
    """
    model = make()
    inner = getattr(model, "base", getattr(model, "regressor", model))
    return 1e-3 if inner is None or isinstance(inner, GraphConvolutionalNetwork | GraphRegressor) else 1e-6


@over(REGRESSORS)
def test_fit_returns_self_and_predicts_every_node(make: Make) -> None:
    model = make()
    y = outcome(model)
    assert model.fit(CASE.graph, CASE.X, y) is model
    mean, std = model.predict(return_std=True)
    assert mean.shape == std.shape == (40,)
    assert mean.dtype == std.dtype == np.float64
    assert np.isfinite(mean).all()
    assert (std[np.isnan(y)] > 0).all()
    np.testing.assert_array_equal(model.predict(), mean)


@over(REGRESSORS)
def test_labels_are_kept_where_it_is_said(make: Make) -> None:
    model = first(make)
    y = outcome(model)
    kept = np.isclose(model.predict(), y, rtol=1e-12)[~np.isnan(y)]
    assert kept.all() if getattr(model, "keeps_labels", False) else not kept.all()


@over(REGRESSORS)
def test_out_of_fold_predictions_do_not_read_the_fold(make: Make) -> None:
    model = first(make)
    y = outcome(model)
    labelled = np.flatnonzero(~np.isnan(y))
    folds = assign_folds(labelled.size, 3, random_state=1)
    predictions = out_of_fold(model, CASE.graph, CASE.X, y, folds)
    assert predictions.shape == folds.shape
    assert np.isfinite(predictions).all()
    if not is_given(model):
        return
    moved = y.copy()
    moved[labelled[folds == 1]] += 5.0
    again = out_of_fold(fitted(make, moved), CASE.graph, CASE.X, moved, folds)
    np.testing.assert_allclose(again[folds == 1], predictions[folds == 1], rtol=1e-6)


def is_even(model: Any) -> bool:
    """Whether a change of sign changes nothing else: relu has a sign."""
    return not isinstance(getattr(model, "base", model), GraphConvolutionalNetwork)


def is_given(model: Any) -> bool:
    """Whether nothing is learnt from all labels at once.

    A search is, the scale of a network's outcomes, and the cross-fitted residuals of a scikit-learn regressor.
    """
    linear = LinearRegression | LinearGraphConvolution | SimpleGraphConvolution | LabelPropagation | Median
    return "cv" not in model.get_params().values() and isinstance(getattr(model, "base", model), linear)


@over(EVERY)
def test_no_input_is_changed(make: Make) -> None:
    X, y = CASE.X.copy(), outcome(make()).copy()
    X.flags.writeable = y.flags.writeable = False
    answers(fitted(make, y, X))
    np.testing.assert_array_equal(X, CASE.X)
    np.testing.assert_array_equal(y, outcome(make()))


@over(EVERY)
def test_an_answer_may_be_changed_without_harm(make: Make) -> None:
    model = first(make)
    before = model.predict()
    model.predict()[:] = 0.0
    np.testing.assert_array_equal(model.predict(), before)


@over(EVERY)
def test_the_same_seed_gives_the_same_answer(make: Make) -> None:
    np.testing.assert_array_equal(answers(fitted(make)), answers(first(make)))


@over(EVERY)
def test_a_refit_forgets_the_first_fit(make: Make) -> None:
    other = random_case(5, n=30, p=3, labelled=9)
    model = make()
    answers(model.fit(other.graph, other.X, halves(other.y) if isinstance(model, GraphClassifier) else other.y))
    np.testing.assert_array_equal(answers(model.fit(CASE.graph, CASE.X, outcome(model))), answers(first(make)))


@pytest.mark.parametrize("engine", ENGINES)
@over(AT_A_LEVEL | CLASSIFIERS)
def test_every_engine_gives_the_same_answer(make: Make, engine: str) -> None:
    model = make()
    elsewhere = model.fit(CASE.graph.to(engine), CASE.X, outcome(model))
    np.testing.assert_allclose(answers(elsewhere), answers(first(make)), rtol=accuracy(make), atol=accuracy(make))


@over(AT_A_LEVEL)
def test_predictions_follow_the_nodes_when_they_are_reordered(make: Make) -> None:
    order = np.random.default_rng(0).permutation(40)
    model = make()
    shuffled = model.fit(Graph(CASE.W[order][:, order]), CASE.X[order], outcome(model)[order])
    np.testing.assert_allclose(
        answers(shuffled), answers(first(make))[:, order], rtol=accuracy(make), atol=accuracy(make)
    )


LINEAR = {name: make for name, make in AT_A_LEVEL.items() if "field" not in name and "gcn" not in name}
WITH_INTERCEPT = {name: make for name, make in REGRESSORS.items() if "without intercept" not in name}


@pytest.mark.parametrize("engine", ENGINES)
@over(LINEAR)
def test_the_numbering_and_the_unit_of_weights_change_nothing_on_any_engine(make: Make, engine: str) -> None:
    order, model = np.random.default_rng(1).permutation(40), make()
    unit = (
        1.0 if isinstance(getattr(model, "base", model), SimpleGraphConvolution) else 7.0
    )  # it adds loops of weight 1
    moved = model.fit(Graph(unit * CASE.W[order][:, order], engine=engine), CASE.X[order], CASE.y[order])
    np.testing.assert_allclose(answers(moved), answers(first(make))[:, order], rtol=1e-6, atol=1e-8)


@over({name: make for name, make in (AT_A_LEVEL | CLASSIFIERS).items() if "field" in name or name in CLASSIFIERS})
def test_the_unit_of_weights_changes_nothing(make: Make) -> None:
    model = make()
    model.fit(Graph(7.0 * CASE.W), CASE.X, outcome(model))
    np.testing.assert_allclose(answers(model), answers(first(make)), rtol=accuracy(make), atol=accuracy(make))


@over({name: make for name, make in WITH_INTERCEPT.items() if "neighbours" not in name})
def test_shift_and_unit_of_features_change_nothing(make: Make) -> None:
    units = np.array([100.0, -0.01 if is_even(make()) else 0.01, 3.0])
    moved = fitted(make, X=CASE.X * units + [5.0, -70.0, 0.1])
    np.testing.assert_allclose(answers(moved), answers(first(make)), rtol=10 * accuracy(make), atol=10 * accuracy(make))


@pytest.mark.parametrize("engine", ENGINES)
@over(LINEAR)
def test_an_isolated_node_changes_no_prediction_elsewhere(make: Make, engine: str) -> None:
    W = np.pad(CASE.W, (0, 1))
    X, y = np.vstack([CASE.X, CASE.X.mean(axis=0)]), np.append(CASE.y, np.nan)
    mean = make().fit(Graph(W, engine=engine), X, y).predict()
    np.testing.assert_allclose(mean[:-1], first(make).predict(), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("engine", ENGINES)
@over(LINEAR)
def test_a_copy_of_the_whole_graph_changes_no_prediction(make: Make, engine: str) -> None:
    W = np.kron(np.eye(2), CASE.W)
    mean = make().fit(Graph(W, engine=engine), np.tile(CASE.X, (2, 1)), np.tile(CASE.y, 2)).predict()
    np.testing.assert_allclose(mean, np.tile(first(make).predict(), 2), rtol=1e-6, atol=1e-8)


@over({name: make for name, make in LINEAR.items() if name != "toy"})
def test_a_column_in_two_halves_is_the_column(make: Make) -> None:
    halved = fitted(make, X=np.column_stack([CASE.X, CASE.X[:, 1] / 2, CASE.X[:, 1] / 2])[:, [0, 2, 3, 4]])
    np.testing.assert_allclose(halved.predict(), first(make).predict(), rtol=1e-6, atol=1e-8)


@over(WITH_INTERCEPT)
def test_predictions_follow_a_shift_and_a_scale_of_the_outcome(make: Make) -> None:
    mean, std = answers(first(make))
    stretch = -3.0 if is_even(make()) else 3.0
    moved, stretched = answers(fitted(make, 10.0 + stretch * outcome(make())))
    np.testing.assert_allclose(moved, 10.0 + stretch * mean, rtol=accuracy(make))
    np.testing.assert_allclose(stretched, 3.0 * std, rtol=accuracy(make))


@over(EVERY)
def test_only_labels_of_labelled_nodes_matter(make: Make) -> None:
    """The outcomes that are hidden could be anything: masked arrays and NaN payloads carry them, and are not read."""
    y = outcome(make())
    masked = np.ma.array(np.where(np.isnan(y), 1.0, y), mask=np.isnan(y))
    np.testing.assert_array_equal(answers(fitted(make, masked)), answers(first(make)))


@over(EVERY)
def test_clone_and_get_params(make: Make) -> None:
    model = first(make)
    copy = clone(model)
    assert str(copy.get_params()) == str(make().get_params())
    with pytest.raises(NotFittedError, match=r"call fit\(graph, X, y\) first"):
        copy.predict()
    np.testing.assert_array_equal(copy.fit(CASE.graph, CASE.X, outcome(copy)).predict(), model.predict())


@over(EVERY)
def test_a_pickle_predicts_alike(make: Make) -> None:
    np.testing.assert_array_equal(answers(pickle.loads(pickle.dumps(first(make)))), answers(first(make)))


@over(EVERY)
def test_a_frame_and_a_series_do_as_well(make: Make) -> None:
    frame = pd.DataFrame(CASE.X, columns=["income", "age", "size"])
    named = fitted(make, pd.Series(outcome(make())), frame)
    np.testing.assert_allclose(answers(named), answers(first(make)), rtol=1e-9)


@over(REGRESSORS)
def test_float32_gives_float32_with_the_accuracy_of_its_input(make: Make) -> None:
    model = fitted(make, outcome(make()).astype(np.float32), CASE.X.astype(np.float32))
    mean, std = model.predict(return_std=True)
    assert mean.dtype == std.dtype == np.float32
    tolerance = max(1e-4, accuracy(make))
    np.testing.assert_allclose(np.stack([mean, std]), answers(first(make)), rtol=tolerance, atol=tolerance)


@over(EVERY)
def test_predicting_before_fitting_is_an_error(make: Make) -> None:
    with pytest.raises(NotFittedError, match="not fitted yet"):
        make().predict()
    assert not hasattr(make(), "scale_")


@over(SEARCHING)
def test_the_search_is_reported(make: Make) -> None:
    model = first(make)
    if model.cv_results_ is None:
        assert model.alpha == model.alpha_
        return
    table = model.cv_results_
    assert table["fold_r2"].shape == (14, 5)
    assert table["alpha"][np.argmax(table["mean_r2"])] == model.alpha_
    assert model.omega_ == pytest.approx(model.alpha_ / (1 - model.alpha_))


@over(SEARCHING)
def test_cross_validation_of_one_label_is_refused(make: Make) -> None:
    y = np.full(40, np.nan)
    y[3] = 1.0
    with pytest.raises(InvalidInputError, match="at least 2 labelled nodes, got 1"):
        fitted(make, y)


@over(AT_A_LEVEL)
def test_no_label_at_all_is_refused(make: Make) -> None:
    with pytest.raises(InvalidInputError, match="at least one known value, got NaN at all 40 nodes"):
        fitted(make, np.full(40, np.nan))

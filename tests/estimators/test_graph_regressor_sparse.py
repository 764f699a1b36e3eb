"""GraphRegressor's sparse solver: agreement with the dense one, limit cases, and what every answer promises."""

import logging
import pickle
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import r2_score

from cases import random_case
from graphmrf import GaussianMRF, Graph, LinearGraphConvolution, ResidualPropagation, datasets
from graphmrf._typing import Bools, Floats
from graphmrf.errors import InvalidInputError
from graphmrf.estimators.graph_regressor import GraphRegressor
from graphmrf.estimators.inputs import read_outcome
from graphmrf.linalg import smooth
from graphmrf.metrics import coverage
from graphmrf.selection import assign_folds, split

pytestmark = pytest.mark.slow

CASE = random_case(11, n=60, p=3, labelled=40)
GRAPH, U = CASE.graph, ~CASE.known
N = 800


def sparse(**options: Any) -> GraphRegressor:
    return GraphRegressor(solver="sparse", **options)


@cache
def model() -> GraphRegressor:
    return sparse().fit(GRAPH, CASE.X, CASE.y)


def ring(n: int) -> Graph:
    return Graph.from_edges(np.arange(n), (np.arange(n) + 1) % n)


def hide(y: Floats, *, share: float = 0.5, seed: int = 0) -> Floats:
    return np.where(np.random.default_rng(seed).random(y.size) < share, np.nan, y)


@cache
def synthetic(n: int) -> tuple[Graph, Floats, Floats, Floats]:
    """Linear, nonlinear and graph effects, and noise; 40 % labelled."""
    rng = np.random.default_rng(1)
    u = rng.integers(0, n, 3 * n)
    graph = Graph.from_edges(u, (u + rng.integers(1, 6, 3 * n)) % n, n_nodes=n)
    X, sources = rng.standard_normal((n, 3)), rng.standard_normal((n, 1))
    field = smooth(graph, sources, 0.9)[:, 0]
    y = X @ [1.0, 0.5, 0.0] + np.sin(2 * X[:, 0]) + field / field.std() + 0.3 * rng.standard_normal(n)
    return graph, X, y, hide(y, share=0.6)


@cache
def large() -> GraphRegressor:
    graph, X, _, given = synthetic(N)
    return sparse().fit(graph, X, given)


def correlation(a: Floats, b: Floats) -> float:
    return float(np.corrcoef(a, b)[0, 1])


def test_both_solvers_agree() -> None:
    graph, X, y, given = synthetic(N)
    new = np.isnan(given)
    dense, other = GraphRegressor(solver="dense").fit(graph, X, given), large()
    (mean, std), (mean2, std2) = (fitted.predict(return_std=True) for fitted in (dense, other))
    assert abs(r2_score(y[new], mean[new]) - r2_score(y[new], mean2[new])) < 0.02
    assert correlation(mean[new], mean2[new]) > 0.98
    assert np.median(std2[new] / std[new]) == pytest.approx(1.0, abs=0.1)
    np.testing.assert_allclose(other.shares_, dense.shares_, atol=0.15)
    np.testing.assert_allclose(other.loo_["prediction"], dense.loo_["prediction"], atol=4 * float(std[new].mean()))
    assert (dense.solver_, other.solver_) == ("dense", "sparse")


def test_both_solvers_agree_on_published_data(raw_data: Path, tmp_path: Path) -> None:
    data = datasets.load("london-2016", data_dir=raw_data, cache_dir=tmp_path)
    columns = data.frame[list(data.info.columns)]
    X, y = columns.drop(columns="income").to_numpy(), columns["income"].to_numpy(dtype=np.float64)
    new = ~split(y.size, 0.3, random_state=0)
    means = [
        GraphRegressor(solver=k).fit(data.graph, X, np.where(new, np.nan, y)).predict() for k in ("dense", "sparse")
    ]
    assert abs(r2_score(y[new], means[0][new]) - r2_score(y[new], means[1][new])) < 0.02
    assert correlation(means[0][new], means[1][new]) > 0.98


def test_an_unknown_solver_is_explained() -> None:
    with pytest.raises(InvalidInputError, match="solver must be one of auto, dense, sparse, got 'exact'"):
        GraphRegressor(solver="exact").fit(GRAPH, CASE.X, CASE.y)


def test_labels_are_kept_and_the_same_data_give_the_same_answer() -> None:
    mean, std = model().predict(return_std=True)
    np.testing.assert_array_equal(mean[~U], CASE.y[~U])
    np.testing.assert_array_equal(std[~U], 0.0)
    assert (std[U] > 0).all()
    np.testing.assert_array_equal(sparse().fit(GRAPH, CASE.X, CASE.y).predict(return_std=True), (mean, std))


def test_it_can_be_cloned_and_pickled() -> None:
    assert clone(sparse()).solver == "sparse"
    loaded = pickle.loads(pickle.dumps(model()))
    np.testing.assert_array_equal(loaded.predict(), model().predict())


def test_units_do_not_matter() -> None:
    other = sparse().fit(GRAPH, CASE.X * [1e3, 1e-3, 7.0] + 5.0, 100.0 * CASE.y - 3.0)
    np.testing.assert_allclose(other.predict(), 100.0 * model().predict() - 3.0, rtol=1e-3)


def test_single_precision_in_single_precision_out() -> None:
    mean, std = sparse().fit(GRAPH, CASE.X.astype(np.float32), CASE.y.astype(np.float32)).predict(return_std=True)
    assert mean.dtype == std.dtype == np.float32
    np.testing.assert_allclose(mean, model().predict(), atol=0.1)


def test_the_answers_have_names_and_meanings() -> None:
    frame = pd.DataFrame(CASE.X, columns=["a", "b", "c"])
    named = sparse().fit(GRAPH, frame, pd.Series(CASE.y))
    assert list(pd.Series(named.coef_).index) == ["a", "b", "c"]
    assert named.shares_.sum() == pytest.approx(1.0)
    assert named.explanation_.endswith(".")
    assert {"own", "field", "noise", "field.range", "field.order"} <= set(named.hyperparameters_)
    np.testing.assert_array_equal(named.loo_["label"], CASE.y[~U])


def test_linear_effects_are_found() -> None:
    rng = np.random.default_rng(5)
    graph, X = ring(300), rng.normal(size=(300, 2)) * [1.0, 50.0]
    y = X @ [2.0, 0.1] + 0.3 * rng.normal(size=300) + 40.0
    linear = sparse().fit(graph, X, hide(y))
    np.testing.assert_allclose(np.asarray(linear.coef_), [2.0, 0.1], rtol=0.1)
    assert linear.shares_["own features"] > 0.8


def test_a_graph_field_is_found_without_features() -> None:
    y = np.sin(6 * np.pi * np.arange(200) / 200)
    alone = sparse().fit(ring(200), None, hide(y))
    assert r2_score(y, alone.predict()) > 0.98
    assert alone.shares_["graph field"] > 0.9


def test_noise_is_called_noise() -> None:
    rng = np.random.default_rng(4)
    noise = sparse().fit(ring(300), rng.normal(size=(300, 2)), hide(rng.normal(size=300)))
    assert noise.shares_["noise"] > 0.9
    std = noise.predict(return_std=True)[1]
    assert std[std > 0] == pytest.approx(1.0, abs=0.2)


def test_graph_convolution_with_residual_propagation_is_never_far_ahead() -> None:
    graph, X, _, given = synthetic(N)
    smoothed = smooth(graph, X @ np.array([[1.0], [2.0], [-1.0]]), 0.8)[:, 0]
    field = smooth(graph, np.random.default_rng(3).standard_normal((N, 1)), 0.8)[:, 0]
    outcome = np.where(np.isnan(given), np.nan, smoothed + field)
    new = np.isnan(given)
    peer = ResidualPropagation(LinearGraphConvolution()).fit(graph, X, outcome).predict()
    own = sparse().fit(graph, X, outcome).predict()
    truth = smoothed + field
    assert r2_score(truth[new], own[new]) > r2_score(truth[new], peer[new]) - 0.01


def test_a_draw_from_the_paper_model_is_recognised() -> None:
    graph, X, *_ = synthetic(N)
    b = np.array([1.0, -1.0, 0.5])
    H = np.block([[np.eye(3) + 2.0 * np.outer(b, b), -2.0 * b[:, None]], [-2.0 * b, 2.0]])
    model = GaussianMRF(H, np.array([1.0, 1.0, 1.0, 10.0]))
    drawn = model.sample(graph, 1, 0)[0]
    X, y = drawn[:, :3], drawn[:, 3]
    given = hide(y, share=0.6)
    new, fitted = np.isnan(given), sparse().fit(graph, X, given)
    best = model.condition(graph, np.column_stack([X, given])).mean[:, 3]
    assert r2_score(y[new], fitted.predict()[new]) > r2_score(y[new], best[new]) - 0.02
    assert correlation(fitted.predict()[new], best[new]) > 0.97


def test_the_stages_of_a_fit_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="graphmrf.progress"):
        sparse().fit(GRAPH, CASE.X, CASE.y)
    logged = [record.getMessage() for record in caplog.records if record.name == "graphmrf.progress"]
    assert "field: sparse precision of 60 nodes" in logged
    assert any(message.startswith("field: step 2, log posterior") for message in logged)


def changed(kind: str) -> tuple[Graph, Floats | None, Floats]:
    """Return a limit case."""
    features = {
        "constant and repeated features": np.column_stack([CASE.X, np.full(60, 3.0), CASE.X[:, 0]]),
        "one feature": CASE.X[:, :1],
        "no features": None,
    }
    labels = {"two labels": 2, "five labels": 5}
    y = CASE.truth if kind == "all labels" else CASE.y.copy()
    if kind in labels:
        y[np.flatnonzero(~U)[labels[kind] :]] = np.nan
    return Graph(rewired(kind)), features.get(kind, CASE.X), y


def rewired(kind: str) -> Floats:
    """Return the weights of a limit case."""
    W, hidden = CASE.W.copy(), np.flatnonzero(U)
    if kind == "isolated nodes":
        W[hidden[:3]] = W[:, hidden[:3]] = 0.0
    elif kind == "component without labels":
        apart: Bools = np.isin(np.arange(60), hidden[:4])
        W[apart[:, None] != apart[None]] = 0.0
        W[hidden[0], hidden[1:4]] = W[hidden[1:4], hidden[0]] = 1.0
    elif kind == "no edges":
        W[:] = 0.0
    return W


KINDS = (
    *("isolated nodes", "component without labels", "no edges", "constant and repeated features", "one feature"),
    *("two labels", "five labels", "all labels", "no features"),
)


@pytest.mark.parametrize("kind", KINDS)
def test_limit_cases_have_a_finite_answer(kind: str) -> None:
    graph, X, y = changed(kind)
    fitted, new = sparse().fit(graph, X, y), np.isnan(y)
    mean, std = fitted.predict(return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert (std[new] > 0).all()
    assert np.isfinite(fitted.loo_.to_numpy()).all()
    assert fitted.shares_.sum() == pytest.approx(1.0)
    assert fitted.sample(2).shape == (2, 60)


def test_equal_labels_are_predicted_everywhere() -> None:
    mean, std = sparse().fit(GRAPH, CASE.X, np.where(U, np.nan, 0.3)).predict(return_std=True)
    np.testing.assert_allclose(mean, 0.3)
    np.testing.assert_array_equal(std, 0.0)


@pytest.mark.parametrize("transform", ["log", "box-cox", "yeo-johnson", "auto"])
def test_transformed_outcomes_come_back_in_their_units(transform: str) -> None:
    rng = np.random.default_rng(8)
    X = rng.normal(size=(200, 1))
    y = np.exp(1.5 * X[:, 0] + 0.2 * rng.normal(size=200) + 5.0)
    hidden = hide(y)
    new, skewed = np.isnan(hidden), sparse(transform=transform).fit(ring(200), X, hidden)
    assert correlation(np.log(y[new]), np.log(np.maximum(skewed.predict()[new], 1e-3))) > 0.85
    assert coverage(y[new], *(end[new] for end in skewed.predict_interval(0.9))) > 0.75


def test_out_of_fold_predictions_do_not_use_the_fold() -> None:
    graph, X, y, given = synthetic(N)
    fitted, outcome = large(), read_outcome(given, N)
    folds = assign_folds(outcome.n_labelled, 5, random_state=0)
    predictions, labels = fitted.out_of_fold(graph, X, given, folds), given[outcome.known]
    new = np.isnan(given)
    assert r2_score(labels, predictions) == pytest.approx(r2_score(y[new], fitted.predict()[new]), abs=0.06)


def test_few_labels_of_many_nodes_are_split_as_asked() -> None:
    labelled = split(60, 0.3, random_state=0)
    y = np.where(labelled, CASE.truth, np.nan)
    low, high = sparse().fit(GRAPH, CASE.X, y).predict_interval(0.8, interval="conformal")
    assert (high[~labelled] > low[~labelled]).all()

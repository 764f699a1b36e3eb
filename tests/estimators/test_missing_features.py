"""Missing cells of the features: imputed, and carried into the error bars."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import r2_score

from cases import Case, random_case
from graphmrf import (
    GaussianMRF,
    Graph,
    LinearGraphConvolution,
    LinearRegression,
    ResidualPropagation,
    SimpleGraphConvolution,
)
from graphmrf._typing import Floats
from graphmrf.errors import InvalidInputError
from graphmrf.estimators.graph_regressor import GraphRegressor
from graphmrf.field import impute


def with_holes(X: Floats, share: float = 0.2, seed: int = 0) -> Floats:
    """At least three cells of every column stay."""
    hole = np.random.default_rng(seed).random(X.shape) < share
    hole[:3] = False
    return np.where(hole, np.nan, X)


def field_case(seed: int, n: int = 150) -> tuple[Graph, Floats, Floats]:
    """Features of a smooth joint field, and an outcome that is linear in them but for little noise."""
    rng, i = np.random.default_rng(seed), np.arange(n)
    graph = Graph.from_edges(np.tile(i, 2), np.concatenate([(i + 1) % n, (i + 2) % n]))
    H = [[5.0, -4.7, 0.0], [-4.7, 5.0, 0.0], [0.0, 0.0, 1.0]]
    X = GaussianMRF(H, C=[[0.5, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 8.0]]).sample(graph, random_state=seed)[0]
    return graph, X, X @ [1.0, 1.0, 2.0] + 0.05 * rng.normal(size=n)


def labelled(y: Floats, seed: int = 1, share: float = 0.5) -> Floats:
    return np.where(np.random.default_rng(seed).random(y.size) < share, y, np.nan)


@pytest.mark.slow
def test_one_missing_cell_widens_the_error_bar_of_its_node() -> None:
    graph, X, y = field_case(0)
    node = np.flatnonzero(np.isnan(labelled(y)))[0]
    known = GraphRegressor().fit(graph, X, labelled(y)).predict(return_std=True)[1]
    X[node, 1] = np.nan
    filled = GraphRegressor().fit(graph, impute(graph, X).X, labelled(y)).predict(return_std=True)[1]
    std = GraphRegressor().fit(graph, X, labelled(y)).predict(return_std=True)[1]
    assert std[node] > 1.1 * max(known[node], filled[node])
    far = np.setdiff1d(np.flatnonzero(np.isnan(labelled(y))), [node])
    assert np.median(np.abs(std[far] / known[far] - 1)) < 0.05


def test_an_empty_column_is_an_error_that_names_it() -> None:
    case = random_case(3)
    table = pd.DataFrame(case.X, columns=["rent", "age"]).assign(age=np.nan)
    with pytest.raises(InvalidInputError, match="a known cell, got none in column 'age'; drop it"):
        GraphRegressor().fit(case.graph, table, case.y)
    with pytest.raises(InvalidInputError, match="got none in column 1"):
        GraphRegressor().fit(case.graph, table.to_numpy(), case.y)


def test_infinite_cells_stay_an_error() -> None:
    case = random_case(3)
    case.X[4, 1] = np.inf
    with pytest.raises(InvalidInputError, match="X must be finite, got inf in column 1 at node 4"):
        GraphRegressor().fit(case.graph, case.X, case.y)


def test_too_many_columns_for_the_joint_field_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphmrf.estimators.graph_regressor.MOST_PATTERNS", 10)
    case = random_case(3)
    with pytest.raises(InvalidInputError, match=r"2 columns and \d patterns"):
        GraphRegressor().fit(case.graph, with_holes(case.X, 0.5), case.y)


@pytest.mark.parametrize(
    "estimator",
    [
        LinearRegression(),
        LinearGraphConvolution(),
        SimpleGraphConvolution(),
        ResidualPropagation(LinearGraphConvolution()),
    ],
)
def test_other_estimators_refuse_and_name_the_one_that_does_not(estimator: Any) -> None:
    case = random_case(3)
    with pytest.raises(InvalidInputError, match=r"got nan in column .* or use GraphRegressor"):
        estimator.fit(case.graph, with_holes(case.X, 0.5), case.y)


@pytest.mark.parametrize("seed", range(3))
def test_the_joint_field_predicts_better_than_column_means(seed: int) -> None:
    graph, X, y = field_case(seed)
    holes, hidden = with_holes(X, 0.3, seed), labelled(y, seed)
    new = np.isnan(hidden)
    means = np.where(np.isnan(holes), np.nanmean(holes, axis=0), holes)
    joint, plain = (r2_score(y[new], GraphRegressor().fit(graph, F, hidden).predict()[new]) for F in (holes, means))
    assert joint > plain + 0.01


def test_error_bars_are_wider_where_cells_are_missing() -> None:
    graph, X, y = field_case(1)
    holes, hidden = with_holes(X, 0.2, 1), labelled(y)
    model = GraphRegressor().fit(graph, holes, hidden)
    mean, std = model.predict(return_std=True)
    new, uncertain = np.isnan(hidden), np.isnan(holes).any(axis=1)
    assert np.median(std[new & uncertain]) > 1.25 * np.median(std[new & ~uncertain])
    low, high = model.predict_interval(0.9)
    inside = (low <= y) & (y <= high)
    assert 0.8 < inside[new].mean() <= 1.0
    np.testing.assert_array_equal(mean[~new], y[~new])
    np.testing.assert_array_equal(std[~new], 0.0)


def decisive(seed: int, n: int = 150) -> tuple[Graph, Floats, Floats]:
    """An outcome that is a feature but for little noise, and half of the feature missing."""
    rng, i = np.random.default_rng(seed), np.arange(n)
    X = rng.standard_normal((n, 2))
    y = 2.0 * X[:, 0] + 0.4 * rng.standard_normal(n)
    X[::2, 0] = np.nan
    return Graph.from_edges(i, (i + 1) % n), X, y


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["dense", "sparse"])
def test_where_the_decisive_feature_is_missing_error_bars_are_those_of_the_outcome(solver: str) -> None:
    inside, known, unknown = [], [], []
    for seed in range(2):
        graph, X, y = decisive(seed)
        hidden = np.where(np.arange(150) % 4 < 2, y, np.nan)
        model = GraphRegressor(solver=solver).fit(graph, X, hidden)
        std, (low, high) = model.predict(return_std=True)[1], model.predict_interval(0.9)
        new, missing = np.isnan(hidden), np.isnan(X[:, 0])
        inside.append(((low <= y) & (y <= high))[new & missing].mean())
        known.append(std[new & ~missing].mean())
        unknown.append(std[new & missing].mean())
    assert 0.78 < np.mean(inside) < 0.97
    assert np.mean(known) < 1.6
    assert 1.5 < np.mean(unknown) < 3.0


def test_fewer_draws_than_members_are_drawn_from_as_many_members() -> None:
    graph, X, y = field_case(2, n=60)
    model = GraphRegressor().fit(graph, with_holes(X), labelled(y))
    assert model.sample(3, random_state=1).shape == (3, 60)
    np.testing.assert_array_equal(model.sample(3, random_state=1), model.sample(3, random_state=1))


def test_names_float32_and_seeds_are_kept() -> None:
    graph, X, y = field_case(3, n=60)
    table = pd.DataFrame(with_holes(X), columns=["rent", "age", "green"]).astype(np.float32)
    hidden = labelled(y).astype(np.float32)
    model, again = (GraphRegressor(random_state=4).fit(graph, table, hidden) for _ in range(2))
    assert model.predict().dtype == np.float32
    assert isinstance(model.coef_, pd.Series)
    assert list(model.coef_.index) == ["rent", "age", "green"]
    assert np.isfinite(model.coef_).all()
    assert model.shares_.sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(model.predict(return_std=True), again.predict(return_std=True))
    assert table.isna().to_numpy().any()  # the table of the caller keeps its holes


def isolated(case: Case) -> Graph:
    W = case.W.copy()
    W[:, :4] = W[:4] = 0.0
    return Graph(W)


@pytest.mark.parametrize("shape", ["no edges", "isolated nodes", "weighted", "one feature", "nodes without any"])
def test_limit_cases_have_answers(shape: str) -> None:
    case = random_case(5, n=40, p=3)
    graph = {"no edges": Graph.from_edges([], [], n_nodes=40), "isolated nodes": isolated(case)}.get(shape, case.graph)
    X = with_holes(case.X[:, :1] if shape == "one feature" else case.X, 0.2)
    if shape == "nodes without any":
        X[10:14] = np.nan
    model = GraphRegressor().fit(graph, X, case.y)
    mean, std = model.predict(return_std=True)
    assert np.isfinite(mean).all()
    assert (std[~case.known] > 0).all()
    assert np.isfinite(model.coef_).all()


def test_neighbours_that_are_all_alike_have_no_effect() -> None:
    """Two columns of nodes, all of one linked to all of the other; the feature is alike on both sides."""
    side = np.arange(8)
    graph = Graph.from_edges(np.repeat(side, 8), np.tile(side + 8, 8))
    X = np.tile([1.0, -1.0, 2.0, -2.0, 1.0, -1.0, 2.0, -2.0], 2)[:, None]
    X[[3, 11], 0] = np.nan
    X[[2, 10], 0] = 0.0
    y = np.where(np.arange(16) % 3 == 0, np.nan, np.nan_to_num(X[:, 0]))
    model = GraphRegressor().fit(graph, X, y)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.predict()).all()


@pytest.mark.slow
def test_folds_of_many_labels_run_with_missing_features() -> None:
    rng = np.random.default_rng(0)
    graph = Graph.from_edges(np.arange(699), np.arange(1, 700))
    X = rng.normal(size=(700, 2))
    y = X @ [1.0, -1.0] + 0.1 * rng.normal(size=700)
    y[650:], X[::9, 0] = np.nan, np.nan
    model = GraphRegressor().fit(graph, X, y)
    found = np.asarray(model.out_of_fold(graph, X, y, np.arange(650) % 2))
    assert np.corrcoef(found, y[:650])[0, 1] ** 2 > 0.8

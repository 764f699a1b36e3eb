"""Missing cells of the features: filled as dense algebra fills them, and carried into the error bars."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import r2_score

import oracle
from cases import Case, random_case
from graphmrf import (
    GaussianMRF,
    Graph,
    LinearGraphConvolution,
    LinearRegression,
    ResidualPropagation,
    SimpleGraphConvolution,
)
from graphmrf._typing import Bools, Floats
from graphmrf.errors import InvalidInputError
from graphmrf.estimators.graph_regressor import GraphRegressor
from graphmrf.field import COMPONENTS, Covariance, IntervalCalibration
from graphmrf.field.averaged import AveragedPosterior, with_imputed_variance
from graphmrf.field.design import make_design
from graphmrf.field.matern import eigen
from graphmrf.field.multiple_imputation import PAIRS, Imputation, impute
from graphmrf.field.sparse import SparsePosterior
from graphmrf.model.fit import fit_for_imputation

pytestmark = pytest.mark.usefixtures("few_draws")

seeds = st.integers(0, 10**6)


def with_holes(X: Floats, share: float = 0.2, seed: int = 0) -> Floats:
    """At least three cells of every column stay."""
    hole = np.random.default_rng(seed).random(X.shape) < share
    hole[:3] = False
    return np.where(hole, np.nan, X)


def fill(graph: Graph, X: Floats) -> Imputation:
    return impute(graph, X)


def field_case(seed: int, n: int = 150) -> tuple[Graph, Floats, Floats]:
    """Features of a smooth joint field, and an outcome that is linear in them but for little noise."""
    rng, i = np.random.default_rng(seed), np.arange(n)
    graph = Graph.from_edges(np.tile(i, 2), np.concatenate([(i + 1) % n, (i + 2) % n]))
    H = [[5.0, -4.7, 0.0], [-4.7, 5.0, 0.0], [0.0, 0.0, 1.0]]
    X = GaussianMRF(H, C=[[0.5, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 8.0]]).sample(graph, seed=seed)[0]
    return graph, X, X @ [1.0, 1.0, 2.0] + 0.05 * rng.normal(size=n)


def labelled(y: Floats, seed: int = 1, share: float = 0.5) -> Floats:
    return np.where(np.random.default_rng(seed).random(y.size) < share, y, np.nan)


@given(seeds)
def test_cells_are_filled_as_dense_algebra_fills_them(seed: int) -> None:
    case = random_case(seed, p=3)
    X = with_holes(case.X, 0.3, seed)
    mrf = fit_for_imputation(case.graph, X, prior=3.0)
    expected, _ = oracle.field_given(case.W, mrf.H, mrf.C, X - mrf.mean)
    np.testing.assert_allclose(fill(case.graph, X).X, expected + mrf.mean, atol=1e-6, rtol=1e-6)


@given(seeds)
@settings(max_examples=20)
def test_draws_keep_what_is_known_and_come_in_pairs(seed: int) -> None:
    case = random_case(seed, p=3)
    X = with_holes(case.X, 0.3, seed)
    X[5, 0] = np.nan
    found, missing = fill(case.graph, X), np.isnan(X)
    assert found.draws.shape == (2 * PAIRS, *X.shape)
    np.testing.assert_array_equal(found.X[~missing], X[~missing])
    for draw in found.draws:
        np.testing.assert_allclose(draw[~missing], X[~missing], rtol=1e-12)
        assert (draw[missing] != found.X[missing]).all()
    np.testing.assert_allclose(found.draws.mean(axis=0), found.X, atol=1e-9)


def test_draws_have_the_dense_spread() -> None:
    case = random_case(4, n=40, p=3)
    X = with_holes(case.X, 0.3)
    mrf = fit_for_imputation(case.graph, X, prior=3.0)
    _, covariance = oracle.field_given(case.W, mrf.H, mrf.C, X - mrf.mean)
    scale = np.zeros(X.T.size)
    scale[np.isnan(X.T.ravel())] = np.sqrt(np.diag(covariance))
    found = fill(case.graph, X)
    missing = np.isnan(X)
    z = (found.draws - found.X)[:, missing] / scale.reshape(X.T.shape).T[missing]
    assert 0.7 < np.mean(z**2) < 1.4


def test_nothing_missing_changes_nothing() -> None:
    case = random_case(2)
    found = impute(case.graph, case.X)
    assert found.X is case.X
    assert not len(found.draws)


def test_one_missing_cell_widens_the_error_bar_of_its_node() -> None:
    graph, X, y = field_case(0)
    node = np.flatnonzero(np.isnan(labelled(y)))[0]
    known = GraphRegressor().fit(graph, X, labelled(y)).predict(return_std=True)[1]
    X[node, 1] = np.nan
    filled = GraphRegressor().fit(graph, fill(graph, X).X, labelled(y)).predict(return_std=True)[1]
    std = GraphRegressor().fit(graph, X, labelled(y)).predict(return_std=True)[1]
    assert std[node] > 1.1 * max(known[node], filled[node])
    far = np.setdiff1d(np.flatnonzero(np.isnan(labelled(y))), [node])
    assert np.median(np.abs(std[far] / known[far] - 1)) < 0.05


def test_a_column_that_is_the_same_wherever_it_is_known_is_so_everywhere() -> None:
    case = random_case(3)
    X = np.column_stack([case.X, np.full(14, 7.0)])
    X[[1, 4], 2] = np.nan
    found = fill(case.graph, X)
    np.testing.assert_array_equal(found.X[:, 2], 7.0)
    assert not len(found.draws)


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
    assert joint > plain + 0.02


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


def test_a_label_has_the_variance_of_its_imputed_features() -> None:
    graph, X, y = decisive(0)
    rows, imputed = np.flatnonzero(np.arange(150) % 3 > 0), impute(graph, X)
    covariance = Covariance.of(make_design(graph, imputed.X), eigen(graph), rows, COMPONENTS)
    found, _ = with_imputed_variance(graph, covariance, y[rows] / 2.0, imputed)
    assert found.imputed is not None
    missing = np.isnan(X[rows, 0])
    assert found.imputed[~missing].mean() < 0.1  # neighbours' features count little
    assert 0.7 < found.imputed[missing].mean() < 1.3


@pytest.mark.parametrize("solver", ["exact", "sparse"])
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
    assert 0.82 < np.mean(inside) < 0.96
    assert np.mean(known) < 1.3  # it was 1.6 when labels without the feature made the noise of all
    assert 1.5 < np.mean(unknown) < 3.0


def test_what_features_say_of_their_own_graph_is_what_they_say_of_another() -> None:
    graph, X, y = field_case(1, n=60)
    posterior = GraphRegressor(solver="sparse").fit(graph, X, labelled(y))._field.posterior
    assert isinstance(posterior, SparsePosterior)
    np.testing.assert_array_equal(posterior.effects(graph, X), posterior.elsewhere(graph, X)[0])


def test_variance_of_missing_features_moves_to_where_they_are_missing() -> None:
    graph, X, y = decisive(1)
    hidden = np.where(np.arange(150) % 4 < 2, y, np.nan)
    field = GraphRegressor(solver="sparse").fit(graph, X, hidden)._field
    (share, own), missing, rows = field.unstated, np.isnan(X[:, 0]), np.flatnonzero(~np.isnan(hidden))
    assert own[missing].mean() > 2 * own[~missing].mean()
    stated = field.posterior.left_out[1]
    assert share == pytest.approx(max(0.05, 1.0 - own[rows].mean() / stated.mean()))
    factor = field.calibration.scale
    std = field.left_out[1] / (field.scale.unit * np.sqrt(share * stated + own[rows]))
    assert factor <= std.min() + 1e-9  # beyond what labels show, widths are not narrowed


def members(model: GraphRegressor) -> AveragedPosterior:
    posterior = model._field.posterior
    assert isinstance(posterior, AveragedPosterior)
    return posterior


def test_answers_are_pooled_over_the_draws_by_rubins_rule() -> None:
    graph, X, y = field_case(2, n=60)
    hidden = labelled(y)
    posterior = members(GraphRegressor().fit(graph, with_holes(X), hidden))
    new = np.flatnonzero(np.isnan(hidden))
    means, variances = map(np.array, zip(*(member.moments(new) for member in posterior.members), strict=True))
    mean, variance = posterior.moments(new)
    np.testing.assert_allclose(mean, posterior.weights @ means)
    between = posterior.weights @ (means - mean) ** 2
    which, weights = posterior._draws, posterior.weights
    told = [
        (weights[which == k].sum(), np.average(means[which == k], axis=0, weights=weights[which == k]))
        for k in range(10)
    ]
    shares, each = (np.array(part) for part in zip(*told, strict=True))
    by_features = shares @ (each - np.average(each, axis=0, weights=shares)) ** 2
    more = (PAIRS / (PAIRS - 2) - 1) * by_features
    np.testing.assert_allclose(variance, weights @ variances + between + more)
    residual, spread = posterior.left_out
    assert np.isfinite(IntervalCalibration(residual / np.sqrt(spread)).scale)
    draws = posterior.draw(new, 4000, np.random.default_rng(0))
    assert np.abs(draws.mean(axis=0) - mean).max() < 5 * np.sqrt(variance.max() / 4000)
    np.testing.assert_allclose(draws.var(axis=0), variance, rtol=0.15)


def test_fewer_draws_than_members_are_drawn_from_as_many_members() -> None:
    graph, X, y = field_case(2, n=60)
    model = GraphRegressor().fit(graph, with_holes(X), labelled(y))
    assert model.sample(3, seed=1).shape == (3, 60)
    np.testing.assert_array_equal(model.sample(3, seed=1), model.sample(3, seed=1))


def test_names_float32_and_seeds_are_kept() -> None:
    graph, X, y = field_case(3, n=60)
    table = pd.DataFrame(with_holes(X), columns=["rent", "age", "green"]).astype(np.float32)
    hidden = labelled(y).astype(np.float32)
    model, again = (GraphRegressor(seed=4).fit(graph, table, hidden) for _ in range(2))
    assert model.predict().dtype == np.float32
    assert list(model.coefficients_.index) == ["rent", "age", "green"]
    assert isinstance(model.coef_, pd.Series)
    assert np.isfinite(model.coefficients_.to_numpy()).all()
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
    assert np.isfinite(model.coefficients_.to_numpy()).all()


def test_neighbours_that_are_all_alike_have_no_effect() -> None:
    """Two columns of nodes, all of one linked to all of the other; the feature is alike on both sides."""
    side = np.arange(8)
    graph = Graph.from_edges(np.repeat(side, 8), np.tile(side + 8, 8))
    X = np.tile([1.0, -1.0, 2.0, -2.0, 1.0, -1.0, 2.0, -2.0], 2)[:, None]
    X[[3, 11], 0] = np.nan
    X[[2, 10], 0] = 0.0
    y = np.where(np.arange(16) % 3 == 0, np.nan, np.nan_to_num(X[:, 0]))
    model = GraphRegressor().fit(graph, X, y)
    assert np.isfinite(model.coefficients_.to_numpy()).all()
    assert np.isfinite(model.predict()).all()


def test_labels_are_not_read_by_the_filling() -> None:
    graph, X, y = field_case(4, n=60)
    holes, known = with_holes(X), ~np.isnan(labelled(y))
    one, other = (GraphRegressor().fit(graph, holes, np.where(known, v, np.nan)) for v in (y, -3.0 * y))
    first, second = (members(model).base.covariance.design.groups for model in (one, other))
    np.testing.assert_array_equal(first, second)


def test_the_sparse_solver_takes_expected_features() -> None:
    graph, X, y = field_case(5, n=40)
    holes, hidden = with_holes(X), labelled(y)
    sparse = GraphRegressor(solver="sparse").fit(graph, holes, hidden)
    filled = GraphRegressor(solver="sparse").fit(graph, fill(graph, holes).X, hidden)
    np.testing.assert_array_equal(sparse.predict(), filled.predict())


def copies(X: Floats) -> tuple[Floats, Bools]:
    doubled = np.column_stack([X, 2.0 * X[:, 0]])
    hole = np.zeros(doubled.shape, dtype=bool)
    hole[10:30, 3] = True
    return np.where(hole, np.nan, doubled), hole


def test_a_copy_of_a_column_is_filled_from_it() -> None:
    graph, X, _ = field_case(6)
    holes, hole = copies(X)
    np.testing.assert_allclose(fill(graph, holes).X[hole], 2.0 * X[10:30, 0], atol=0.4)


def test_draws_of_features_come_in_opposite_pairs_and_independent_ones_by_any_number() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    X[::3, 1] = np.nan
    found = impute(Graph.from_edges(np.arange(29), np.arange(1, 30)), X, seed=5)
    half = len(found.draws) // 2
    assert half == PAIRS
    np.testing.assert_allclose(found.draws[:half] + found.draws[half:], np.tile(2.0 * found.X, (half, 1, 1)))
    np.testing.assert_array_equal(found.draws[:, :, 0], np.tile(X[:, 0], (2 * half, 1)))
    several = np.array(list(found.sample(10)))
    assert several.shape == (10, 30, 2)
    assert len(np.unique(several[:, 0, 1])) == 10
    assert not list(found.sample(0))

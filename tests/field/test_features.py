"""Features on a robust scale."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kurtosis

from cases import random_case
from graphmrf import Graph, GraphRegressor, graph_features, load
from graphmrf.field.features import ColumnScale, Design, neighbour_means

seeds = st.integers(0, 10**6)
RNG = np.random.default_rng(0)
NORMAL = RNG.standard_normal((400, 3))


@given(seeds, st.floats(-6, 6), st.floats(-100, 100))
def test_shift_and_unit_of_columns_change_nothing(seed: int, log_unit: float, shift: float) -> None:
    X, unit = np.random.default_rng(seed).standard_normal((40, 2)) ** 3, 10.0**log_unit
    moved = unit * (X + shift)
    np.testing.assert_allclose(ColumnScale.of(moved)(moved), ColumnScale.of(X)(X), atol=1e-9)
    np.testing.assert_allclose(ColumnScale.of(-X)(-X), -ColumnScale.of(X)(X), atol=1e-12)


def test_columns_have_mean_0_and_variance_1() -> None:
    found = ColumnScale.of(NORMAL)(NORMAL)
    np.testing.assert_allclose(found.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(found.std(axis=0), 1.0)


def test_one_wild_cell_moves_the_others_little() -> None:
    wild = NORMAL.copy()
    wild[5, 0] *= 1000.0
    before, after = ColumnScale.of(NORMAL)(NORMAL), ColumnScale.of(wild)(wild)
    others = np.arange(400) != 5
    slope, shift = np.polyfit(before[others, 0], after[others, 0], 1)
    assert 0.8 < slope < 1.1
    assert abs(shift) < 0.1
    assert abs(after[5, 0]) < 10.0
    np.testing.assert_array_equal(after[:, 1:], before[:, 1:])


def test_order_is_kept() -> None:
    X = np.sort(RNG.standard_t(1.5, (200, 1)), axis=0)
    assert (np.diff(ColumnScale.of(X)(X)[:, 0]) >= 0).all()


def test_skewed_columns_have_normal_scores_whatever_their_exponent() -> None:
    z = NORMAL[:, :1]
    log_normal, steeper = ColumnScale.of(np.exp(2.0 * z)), ColumnScale.of(np.exp(4.0 * z))
    np.testing.assert_allclose(log_normal(np.exp(2.0 * z)), steeper(np.exp(4.0 * z)), atol=1e-9)
    assert abs(float(kurtosis(log_normal(np.exp(2.0 * z))[:, 0]))) < 0.2
    assert np.corrcoef(log_normal(np.exp(2.0 * z))[:, 0], z[:, 0])[0, 1] > 0.99
    assert not ColumnScale.of(z).scores


def test_one_over_the_unit_of_a_skewed_column_is_its_mean_slope() -> None:
    x = np.exp(2.0 * NORMAL[:, :1])
    scale = ColumnScale.of(x)
    assert 1.0 / (scale.unit * scale.std)[0] == pytest.approx(np.polyfit(x[:, 0], scale(x)[:, 0], 1)[0])


def test_a_cell_that_moves_out_of_the_middle_moves_no_other_at_once() -> None:
    x, steps = RNG.standard_normal(100), np.linspace(2.6, 6.9, 431)  # past none of the cells that are far out
    x[:5] = 8.0, 9.0, 10.0, -8.0, 7.0
    tables = [np.append(x[:-1], step)[:, None] for step in steps]
    scales = [ColumnScale.of(table) for table in tables]
    far = np.array([scale(tables[0][:5])[:, 0] for scale in scales])
    slopes = np.array([1.0 / (scale.unit * scale.std)[0] for scale in scales])
    assert scales[0].skewness[0] == 0.0
    assert scales[-1].skewness[0] > 0.3
    assert np.abs(np.diff(far, axis=0)).max() < 0.02
    assert np.abs(np.diff(slopes)).max() < 0.02


@pytest.mark.parametrize("share", [0.055, 0.065])
def test_a_column_between_plain_and_skewed_keeps_its_order(share: float) -> None:
    x = np.sort(NORMAL[:, 0])
    x[-int(400 * share) :] *= 20.0
    scale = ColumnScale.of(x[:, None])
    assert 0.0 < scale.skewness[0] < 1.0
    everywhere = np.linspace(-5.0, 80.0, 2000)[:, None]  # beyond the column, too
    assert (np.diff(scale(everywhere)[:, 0]) >= 0).all()


def test_constant_columns_are_dropped() -> None:
    X = np.column_stack([NORMAL[:, 0], np.full(400, 0.1), np.full(400, 1e9 / 3)])
    scale = ColumnScale.of(X)
    assert scale.varies.tolist() == [True, False, False]
    assert scale(X).shape == (400, 1)


@pytest.mark.parametrize("share", [0.02, 0.3])
def test_columns_of_two_values_keep_both(share: float) -> None:
    X = (RNG.random((400, 1)) < share).astype(float)
    found = ColumnScale.of(X)(X)
    assert len(np.unique(found.round(9))) == 2
    assert found.std() == pytest.approx(1.0)


def test_a_table_without_columns_has_a_scale() -> None:
    assert ColumnScale.of(np.zeros((5, 0)))(np.zeros((5, 0))).shape == (5, 0)


@given(seeds)
def test_neighbours_have_the_weighted_means(seed: int) -> None:
    case = random_case(seed)
    found, degrees = neighbour_means(case.graph, case.X), case.W.sum(axis=1)
    linked = degrees > 0
    np.testing.assert_allclose(found[linked], (case.W @ case.X)[linked] / degrees[linked, None])
    np.testing.assert_array_equal(found[~linked], 0.0)


@given(seeds)
def test_designs_are_standardised(seed: int) -> None:
    case = random_case(seed, n=20)
    design = Design.of(case.graph, case.X)
    np.testing.assert_allclose(design.own.std(axis=0), 1.0)
    linked = case.W.sum(axis=1) > 0
    np.testing.assert_allclose(design.neighbours[linked].mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(design.neighbours[linked].std(axis=0), 1.0, atol=1e-9)
    np.testing.assert_allclose(design.neighbours[~linked], 0.0, atol=1e-9)
    np.testing.assert_array_equal(design.both, np.hstack([design.own, design.neighbours]))


def test_without_edges_neighbours_say_nothing() -> None:
    design = Design.of(Graph.from_edges([], [], n_nodes=400), NORMAL)
    np.testing.assert_array_equal(design.neighbours, 0.0)


@given(seeds)
def test_the_same_graph_and_features_have_the_same_design(seed: int) -> None:
    case = random_case(seed, n=20)
    design = Design.of(case.graph, case.X)
    again = design.on(case.graph, case.X)
    np.testing.assert_allclose(again.own, design.own)
    linked = ~case.graph.isolated
    np.testing.assert_allclose(again.neighbours[linked], design.neighbours[linked])


def test_another_graph_is_on_the_scale_of_the_fit() -> None:
    case, other = random_case(1, n=30), random_case(2, n=12)
    design = Design.of(case.graph, case.X)
    there = design.on(other.graph, other.X)
    scale = ColumnScale.of(case.X)
    np.testing.assert_allclose(there.own, scale(other.X))
    means = neighbour_means(case.graph, scale(case.X))[~case.graph.isolated]
    expected = (neighbour_means(other.graph, scale(other.X)) - means.mean(axis=0)) / means.std(axis=0)
    linked = ~other.graph.isolated
    np.testing.assert_allclose(there.neighbours[linked], expected[linked])


def test_isolated_nodes_of_another_graph_have_mean_neighbours() -> None:
    case = random_case(1, n=30)
    there = Design.of(case.graph, case.X).on(Graph.from_edges([], [], n_nodes=30), case.X)
    np.testing.assert_allclose(there.neighbours, 0.0, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_isolated_nodes_of_the_fitted_graph_have_mean_neighbours(seed: int) -> None:
    case = random_case(seed, n=30)
    W = case.W.copy()
    W[:3] = W[:, :3] = 0.0
    design = Design.of(Graph(W), case.X)
    np.testing.assert_allclose(design.neighbours[:3], 0.0, atol=1e-9)


@given(seeds)
def test_roles_are_those_of_networkx(seed: int) -> None:
    networkx = pytest.importorskip("networkx")
    A = np.triu(np.random.default_rng(seed).random((15, 15)) < 0.25, 1)
    G, found = networkx.from_numpy_array(A | A.T), graph_features(Graph((A | A.T).astype(float)))
    degrees = np.array([np.log1p(G.degree[i]) for i in range(15)])
    around = [degrees[list(G[i])] if len(G[i]) else np.zeros(1) for i in range(15)]
    np.testing.assert_allclose(found["log_degree"], degrees)
    np.testing.assert_allclose(found["clustering"], list(networkx.clustering(G).values()))
    np.testing.assert_allclose(np.expm1(found["log_core"]), list(networkx.core_number(G).values()), atol=1e-12)
    np.testing.assert_allclose(found["neighbours_log_degree"], [each.mean() for each in around], atol=1e-12)
    np.testing.assert_allclose(found["neighbours_spread"], [each.std() for each in around], atol=1e-7)


def test_roles_carry_ids_and_ignore_weights() -> None:
    graph = Graph.from_edges(["a", "b"], ["b", "c"], [2.0, 0.5])
    found = graph_features(graph)
    assert found.index.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(found["log_degree"], np.log([2, 3, 2]))


def dummies(count: int, levels: int, seed: int = 0) -> np.ndarray:
    return np.eye(levels)[np.random.default_rng(seed).integers(0, levels, count)]


def test_many_columns_of_two_values_are_levels_on_one_scale() -> None:
    few = np.column_stack([NORMAL, dummies(400, 8)])
    many = np.column_stack([NORMAL, -1.5 + 4.0 * dummies(400, 30)])
    assert not ColumnScale.of(few).levels.any()
    scale = ColumnScale.of(many)
    assert scale.levels.tolist() == [False] * 3 + [True] * 30
    found = scale.of_levels(many)
    np.testing.assert_allclose(found, dummies(400, 30) * np.sqrt(30))
    np.testing.assert_allclose(scale(many), ColumnScale.of(NORMAL)(NORMAL))


def test_effects_of_levels_are_those_of_a_random_effect() -> None:
    rng, n = np.random.default_rng(1), 300
    graph, L = Graph.from_edges(np.arange(n - 1), np.arange(1, n)), dummies(n, 20)
    effects = rng.standard_normal(20)
    y = L @ effects + 0.3 * rng.standard_normal(n)
    model = GraphRegressor(terms=("levels", "field")).fit(graph, L, np.where(rng.random(n) < 0.7, y, np.nan))
    found = np.asarray(model.coef_)
    np.testing.assert_allclose(found - found.mean(), effects - effects.mean(), atol=0.3)
    other = model.predict(Graph.from_edges([0], [1]), np.eye(20)[:2])
    assert other[0] - other[1] == pytest.approx(effects[0] - effects[1], abs=0.3)


@pytest.mark.parametrize("solver", ["dense", "sparse"])
def test_each_category_has_a_variance_of_its_own(solver: str) -> None:
    """One category of large effects, one without any: the second has no say, and the evidence is greater for it."""
    rng, n = np.random.default_rng(3), 400
    graph = Graph.from_edges(np.arange(n - 1), np.arange(1, n))
    kinds = {"dorm": rng.integers(0, 40, n), "major": rng.integers(0, 60, n)}
    table = pd.DataFrame({name: [f"{name[0]}{code}" for code in codes] for name, codes in kinds.items()})
    effects = rng.standard_normal(40)
    y = effects[kinds["dorm"]] + 0.3 * rng.standard_normal(n)
    labels = np.where(rng.random(n) < 0.5, y, np.nan)
    options: dict[str, Any] = {"terms": ("levels", "field"), "solver": solver}
    grouped = GraphRegressor(**options).fit(graph, table, labels)
    one = GraphRegressor(**options).fit(graph, pd.get_dummies(table, dtype=float), labels)
    variances = grouped.hyperparameters_
    assert variances["levels:dorm"] > 20 * variances["levels:major"]
    assert grouped.log_evidence_ > one.log_evidence_ + 2.0
    hidden = np.isnan(labels)
    errors = [np.mean((model.predict() - y)[hidden] ** 2) for model in (grouped, one)]
    assert errors[0] < errors[1]
    assert grouped.shares_["levels of categories"] > 0.7
    assert grouped.shares_.sum() == pytest.approx(1.0)
    found = pd.Series(grouped.coef_).filter(like="dorm=")
    expected = effects[[int(name.removeprefix("dorm=d")) for name in found.index]]
    assert np.corrcoef(found, expected)[0, 1] > 0.9


def test_categories_of_several_columns_are_stored_and_hold_on_another_graph(tmp_path: Path) -> None:
    rng, n = np.random.default_rng(4), 120
    graph = Graph.from_edges(np.arange(n - 1), np.arange(1, n))
    table = pd.DataFrame({name: rng.choice(list("abcdefgh"), n) for name in ("one", "two")})
    y = 1.0 * (table["one"] < "d") + 0.1 * rng.standard_normal(n)
    model = GraphRegressor().fit(graph, table, y.where(rng.random(n) < 0.7))
    model.save(tmp_path / "model.gmrf")
    again = load(tmp_path / "model.gmrf")
    np.testing.assert_allclose(again.predict(), model.predict())
    other, small = table.iloc[:30].reset_index(drop=True), Graph.from_edges(np.arange(29), np.arange(1, 30))
    np.testing.assert_allclose(again.predict(small, other), model.predict(small, other))
    assert np.corrcoef(model.predict(small, other), other["one"] < "d")[0, 1] > 0.9
    assert model.feature_attributions([3], n_permutations=5).columns.to_list() == ["one", "two"]

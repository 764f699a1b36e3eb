"""GraphRegressor with few labels: intervals that hold where labels are all in one place, odd, or copied."""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.metrics import r2_score

from graphmrf import Graph, GraphRegressor, datasets
from graphmrf._typing import Bools, Floats

pytestmark = pytest.mark.slow

SIDE = 14


@cache
def field(seed: int = 3) -> tuple[Graph, Floats, Floats]:
    """A grid, a smooth and a rough feature, and an outcome of both, of a smooth field, and of noise."""
    place, rng = np.arange(SIDE**2).reshape(SIDE, SIDE), np.random.default_rng(seed)
    u = np.concatenate([place[:, 1:].ravel(), place[1:].ravel()])
    v = np.concatenate([place[:, :-1].ravel(), place[:-1].ravel()])
    graph = Graph.from_edges(u, v)
    smooth = np.linalg.solve(np.eye(SIDE**2) + 20.0 * graph.N.toarray(), rng.standard_normal((SIDE**2, 2)))
    smooth /= smooth.std(axis=0)
    X = np.column_stack([smooth[:, 0], rng.standard_normal(SIDE**2)])
    return graph, X, X @ [1.0, 0.7] + smooth[:, 1] + 0.4 * rng.standard_normal(SIDE**2)


def hidden_but(known: Bools, y: Floats) -> Floats:
    return np.where(known, y, np.nan)


def random_nodes(count: int, seed: int = 0) -> Bools:
    return np.isin(np.arange(SIDE**2), np.random.default_rng(seed).permutation(SIDE**2)[:count])


def held(model: GraphRegressor, y: Floats, nodes: Bools) -> float:
    low, high = model.predict_interval(0.9)
    return float(np.mean((low <= y)[nodes] & (y <= high)[nodes]))


def test_a_handful_of_labels_is_predicted_with_honest_intervals() -> None:
    graph, X, y = field()
    covers = []
    for seed in range(4):
        known = random_nodes(6, seed)
        covers.append(held(GraphRegressor().fit(graph, X, hidden_but(known, y)), y, ~known))
    assert 0.8 < np.mean(covers) < 0.99


def test_intervals_and_standard_deviations_agree() -> None:
    graph, X, y = field()
    known = random_nodes(8)
    model = GraphRegressor().fit(graph, X, hidden_but(known, y))
    std, (low, high) = model.predict(return_std=True)[1], model.predict_interval(0.9)
    ratio = (high - low)[~known] / std[~known]
    assert 2.5 < ratio.min() <= ratio.max() < 4.5  # of a normal distribution 3.29
    draws = model.sample(3000, random_state=1)
    np.testing.assert_allclose(draws.std(axis=0)[~known], std[~known], rtol=0.15)


def parted(graph: Graph, left: Bools) -> Graph:
    """The graph without the edges between two sets of nodes."""
    S = graph.S.tocoo()
    kept = (left[S.row] == left[S.col]) & (S.row < S.col)
    return Graph.from_edges(S.row[kept], S.col[kept], n_nodes=graph.n_nodes)


def test_a_component_without_labels_has_wider_intervals_that_cover() -> None:
    left, covers, ratios = np.arange(SIDE**2) % SIDE < SIDE // 2, [], []
    for seed in range(4):
        graph, X, y = field(seed)
        known = left & random_nodes(70, seed)
        model = GraphRegressor().fit(parted(graph, left), X, hidden_but(known, y))
        std = model.predict(return_std=True)[1]
        ratios.append(np.median(std[~left]) / np.median(std[left & ~known]))
        covers.append(held(model, y, ~left))
    assert np.mean(ratios) > 1.1
    assert np.mean(covers) > 0.8


@pytest.mark.xfail(strict=True, reason="90 % intervals cover 55 %: two labels that agree say nothing of the variance")
def test_intervals_from_two_labels_cover() -> None:
    covers = []
    for seed in range(8):
        graph, X, y = field(seed)
        known = random_nodes(2, seed)
        covers.append(held(GraphRegressor().fit(graph, X, hidden_but(known, y)), y, ~known))
    assert np.mean(covers) > 0.8


def test_intervals_from_three_labels_cover() -> None:
    covers = []
    for seed in range(8):
        graph, X, y = field(seed)
        known = random_nodes(3, seed)
        covers.append(held(GraphRegressor().fit(graph, X, hidden_but(known, y)), y, ~known))
    assert np.mean(covers) > 0.8


def test_wards_of_london_from_labels_of_its_west_alone(raw_data: Path) -> None:
    data = datasets.load("london-2016", data_dir=raw_data)
    values, west = datasets.paper(data), np.argsort(data.frame["x"].to_numpy())[:60]
    known = np.isin(np.arange(data.graph.n_nodes), west)
    covers = []
    for outcome in data.info.outcomes:
        y = values[outcome].to_numpy()
        model = GraphRegressor().fit(data.graph, values.drop(columns=outcome), hidden_but(known, y))
        covers.append(held(model, y, ~known))
    assert np.mean(covers) >= 0.7


def apart(together: int, solver: str) -> float:
    """Share that 90 % intervals cover on a grid when all labels are isolated nodes, or in pairs."""
    m, covers = 130, []
    pairs = np.kron(np.eye(m // together), np.ones((together, together)) - np.eye(together))
    graph = Graph(sparse.block_diag([field()[0].adjacency, pairs], format="csr"))
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((graph.n_nodes, 2))
        y = (X + 1.5 * graph.S @ X) @ [1.0, 0.3] + 0.3 * rng.standard_normal(len(X))
        known = np.arange(len(X)) >= SIDE**2
        model = GraphRegressor(solver=solver).fit(graph, X, hidden_but(known, y))
        covers.append(held(model, y, ~known))
        assert r2_score(y[~known], model.predict()[~known]) > 0.2
    return float(np.mean(covers))


@pytest.mark.parametrize("solver", ["dense", "sparse"])
def test_labels_that_are_all_isolated_leave_a_grid_uncertain(solver: str) -> None:
    assert apart(1, solver) > 0.65


@pytest.mark.xfail(strict=True, reason="90 % intervals cover 54 to 59 %; pairs have other means than a grid")
@pytest.mark.parametrize("solver", ["dense", "sparse"])
def test_labels_that_are_all_in_pairs_leave_a_grid_uncertain(solver: str) -> None:
    assert apart(2, solver) > 0.75


def test_one_far_label_is_noise_and_leaves_the_others_predictable() -> None:
    covers, scores = [], []
    for seed in range(4):
        graph, X, y = field(seed)
        known = random_nodes(30, seed)
        odd = hidden_but(known, y)
        odd[np.flatnonzero(known)[0]] += 40.0
        model = GraphRegressor().fit(graph, X, odd)
        covers.append(held(model, y, ~known))
        scores.append(r2_score(y[~known], model.predict()[~known]))
        low, high = model.predict_interval(0.9)
        assert np.mean(high - low) < 12.0  # beside a distance of 40
    assert np.mean(covers) > 0.85
    assert np.mean(scores) > 0.4


@pytest.mark.parametrize("labels", [20, 130])
def test_a_column_without_a_value_at_nodes_to_predict_is_left_out(labels: int) -> None:
    graph, X, y = field()
    shown = hidden_but(random_nodes(labels), y)
    table = pd.DataFrame({"rain": X[:, 0], "height": X[:, 1], "copy": shown})
    model, without = GraphRegressor().fit(graph, table, shown), GraphRegressor().fit(graph, X, shown)
    assert model.notes_[0] == "column 'copy' is left out: it has no value at the nodes to predict"
    np.testing.assert_allclose(model.predict(), without.predict(), atol=1e-9)
    assert model.expected_r2() == pytest.approx(without.expected_r2())
    assert np.asarray(model.coef_)[2] == 0.0


def test_a_column_known_with_the_outcome_is_left_out_and_named() -> None:
    graph, X, y = field()
    known = random_nodes(130)
    shown = hidden_but(known, y)
    copy = shown.copy()
    copy[np.flatnonzero(~known)[0]] = 0.0
    model = GraphRegressor().fit(graph, pd.DataFrame({"rain": X[:, 0], "height": X[:, 1], "copy": copy}), shown)
    assert model.notes_[0] == "column 'copy' is left out: it has hardly any value at the nodes to predict"
    np.testing.assert_allclose(model.predict(), GraphRegressor().fit(graph, X, shown).predict(), atol=1e-9)
    assert GraphRegressor().fit(graph, X, hidden_but(random_nodes(8), y)).notes_ == ()

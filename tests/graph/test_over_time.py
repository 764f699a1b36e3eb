"""Panels: the product of a graph with its times."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from graphmrf import Graph, GraphRegressor, LabelPropagation, search_time_weight
from graphmrf._typing import Floats
from graphmrf.errors import InvalidInputError
from graphmrf.graph import Laplacian
from graphmrf.linalg.spectrum import density_of_states

RNG = np.random.default_rng(3)
UPPER = np.triu(RNG.uniform(0.5, 2.0, (12, 12)) * (RNG.random((12, 12)) < 0.4), 1)
W = UPPER + UPPER.T
SPACE = Graph(W)
TIMES = [2001, 2002, 2004, 2005]


@pytest.mark.parametrize("laplacian", ["normalised", "combinatorial"])
@pytest.mark.parametrize("ring", [False, True])
def test_it_joins_neighbours_at_a_time_and_a_node_to_itself_next(laplacian: Laplacian, ring: bool) -> None:
    space = SPACE.with_laplacian(laplacian)
    panel = space.over_time(TIMES, weight=3.0, ring=ring)
    mass = W.sum(axis=1) if laplacian == "normalised" else np.full(12, W.sum(axis=1).max())
    expected = np.zeros((12, 4, 12, 4))
    for t in range(4):
        expected[:, t, :, t] = W
    steps = {(0, 1): 1.0, (1, 2): 0.5, (2, 3): 1.0} | ({(0, 3): 1.0} if ring else {})
    for (t, s), weight in steps.items():
        for i in range(12):
            expected[i, t, i, s] = expected[i, s, i, t] = 3.0 * weight * mass[i]
    np.testing.assert_allclose(panel.adjacency.toarray(), expected.reshape(48, 48), atol=1e-12)
    assert panel.laplacian == laplacian


@pytest.mark.parametrize("laplacian", ["normalised", "combinatorial"])
@pytest.mark.parametrize("ring", [False, True])
def test_its_spectrum_follows_from_that_of_its_factors(laplacian: Laplacian, ring: bool) -> None:
    panel = SPACE.with_laplacian(laplacian).over_time(TIMES, weight=0.7, ring=ring)
    N = panel.N.toarray()
    values, vectors = panel.eigenpairs
    np.testing.assert_allclose(values, np.linalg.eigvalsh(N), atol=1e-12)
    np.testing.assert_allclose(vectors @ np.diag(values) @ vectors.T, N, atol=1e-12)
    states = density_of_states(panel)
    assert states.is_exact
    assert states.sum(np.log1p) == pytest.approx(np.linalg.slogdet(np.eye(48) + N)[1])


def test_isolated_nodes_are_joined_to_themselves_over_time() -> None:
    panel = Graph.from_edges([0], [1], n_nodes=3).over_time([1, 2, 3])
    assert panel.components.tolist() == [0, 0, 0, 0, 0, 0, 1, 1, 1]
    np.testing.assert_allclose(panel.eigenpairs[0], np.linalg.eigvalsh(panel.N.toarray()), atol=1e-12)


def test_a_panel_with_another_laplacian_is_that_of_its_graph() -> None:
    kinds: tuple[Laplacian, Laplacian] = ("normalised", "combinatorial")
    for laplacian, other in (kinds, kinds[::-1]):
        first, second = (SPACE.with_laplacian(each) for each in (laplacian, other))
        panel = first.over_time(TIMES, weight=3.0, ring=True).with_ids(range(48))
        expected = second.over_time(TIMES, weight=3.0, ring=True)
        found = panel.with_laplacian(other)
        np.testing.assert_allclose(found.N.toarray(), expected.N.toarray())
        assert found.product is not None
        assert found.product.space == second
        assert found.ids is not None
        assert found.ids.tolist() == list(range(48))
        assert panel.with_laplacian(laplacian).product is panel.product


def test_panels_go_there_and_back_by_position_or_by_ids() -> None:
    places = pd.Index([f"p{i:02}" for i in range(12)], name="place")
    panel = SPACE.with_ids(places).over_time(pd.Index(TIMES, name="year"))
    values = RNG.normal(size=(12, 4))
    y = np.where(RNG.random((12, 4)) < 0.6, values, np.nan)
    long = pd.DataFrame(y, places, pd.Index(TIMES, name="year")).stack(future_stack=True).sample(frac=1, random_state=0)
    by_ids: Any = LabelPropagation(alpha=0.8).fit(panel, None, long).predict()
    by_place = LabelPropagation(alpha=0.8).fit(panel.with_ids(None), None, y.ravel()).predict()
    np.testing.assert_allclose(by_ids.to_numpy(), by_place)
    np.testing.assert_allclose(by_ids.unstack().to_numpy()[~np.isnan(y)], y[~np.isnan(y)])
    assert by_place.reshape(-1, 4).shape == (12, 4)


def test_forecasts_have_growing_error_bars() -> None:
    space = Graph.from_edges(np.arange(39), np.arange(1, 40))
    drift = RNG.normal(size=(40, 12)).cumsum(axis=1) * 0.3 + np.sin(np.arange(40) / 4)[:, None]
    y = drift + 0.02 * RNG.normal(size=drift.shape)
    y[:, 8:] = np.nan
    _, std = GraphRegressor().fit(space.over_time(range(12)), None, y.ravel()).predict(return_std=True)
    by_time = std.reshape(-1, 12).mean(axis=0)
    assert (np.diff(by_time[8:]) > 0).all()


@pytest.mark.parametrize("ring", [False, True])
def test_the_effect_of_a_time_is_a_walk_with_noise(ring: bool) -> None:
    product = SPACE.over_time(TIMES, ring=ring).product
    assert product is not None
    covariance = product.walk @ product.walk.T / 4
    assert np.trace(covariance) == pytest.approx(4.0)
    found = covariance.diagonal()[:, None] + covariance.diagonal() - 2 * covariance
    place, around = np.array([0.0, 1.0, 3.0, 4.0]), 5.0  # length of the ring
    apart = np.abs(place[:, None] - place)
    expected = (apart * (around - apart) / around if ring else apart) + 2.0 * (apart > 0)
    np.testing.assert_allclose(found / found[0, 1], expected / expected[0, 1])


def common_levels(levels: Floats) -> tuple[Graph, Floats]:
    """A panel whose nodes move together, and its values."""
    nodes = np.sin(np.arange(60) / 4) + 0.3 * RNG.normal(size=60)
    return Graph.from_edges(np.arange(59), np.arange(1, 60)), nodes[:, None] + levels + 0.1 * RNG.normal(
        size=(60, levels.size)
    )


@pytest.mark.parametrize("solver", ["dense", "sparse"])
def test_a_level_common_to_all_nodes_is_learned_and_widens_forecasts(solver: str) -> None:
    space, truth = common_levels(np.array([0.0, 1.0, 0.2, -0.7, 0.5, 1.4, 0.3, -0.4, -1.0, 0.1]))
    y = truth.copy()
    y[10:, 4] = y[:, 8:] = np.nan
    panel = space.over_time(range(10), weight=16.0)
    model = GraphRegressor(solver=solver).fit(panel, None, y.ravel())
    mean, std = (each.reshape(y.shape) for each in model.predict(return_std=True))
    assert model.hyperparameters_["time"] > 0.1
    assert np.abs(mean - truth)[10:, 4].mean() < 0.35  # ten labels show the level of all others
    assert std[10:, 4].max() < 0.5
    assert std[:, 8].min() > 0.7
    assert (std[:, 9] > std[:, 8]).all()
    assert (np.abs(truth - mean) < 1.645 * std)[:, 8:].mean() > 0.9


def test_other_graphs_and_single_times_have_no_effects_of_time() -> None:
    space, truth = common_levels(np.zeros(3))
    names = [
        set(GraphRegressor().fit(graph, None, np.where(np.arange(y.size) % 3, y, np.nan)).shares_.index)
        for graph, y in ((space, truth[:, 0]), (space.over_time([1.0, 2.0, 3.0]), truth.ravel()))
    ]
    assert "effects of time" not in names[0]
    assert "effects of time" in names[1]
    GraphRegressor().fit(space.over_time([1.0]), None, np.where(np.arange(60) % 3, truth[:, 0], np.nan)).predict()


@pytest.mark.parametrize(
    ("times", "ring", "message"),
    [
        ([2001, 2001], False, "2001 before 2001"),
        ([2002, 2001], False, "ascending"),
        (["a", "b"], False, "numbers or dates"),
        ([1.0, np.nan], False, "numbers or dates"),
        ([], False, "at least one"),
        ([1, 2], True, "at least 3"),
    ],
)
def test_times_that_are_none_are_refused(times: list[object], ring: bool, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        SPACE.over_time(times, ring=ring)


def test_dates_are_times() -> None:
    panel = SPACE.over_time(pd.date_range("2020-01-01", periods=4, freq="D"))
    assert panel == SPACE.over_time([1, 2, 3, 4])
    with pytest.raises(InvalidInputError, match="weight"):
        SPACE.over_time([1, 2], weight=0.0)


def test_the_weight_of_time_is_that_which_predicts_held_out_labels() -> None:
    space = Graph.from_edges(np.arange(29), np.arange(1, 30))
    still = np.repeat(RNG.normal(size=(30, 1)), 8, axis=1) + 0.1 * RNG.normal(size=(30, 8))
    restless = np.repeat(np.sin(np.arange(30) / 4)[:, None], 8, axis=1) * RNG.choice([-1.0, 1.0], 8)
    hidden = RNG.random((30, 8)) < 0.4
    strong, weak = (
        search_time_weight(space.over_time(range(8)), None, np.where(hidden, y, np.nan).ravel()).product
        for y in (still, restless)
    )
    assert strong is not None
    assert weak is not None
    assert strong.weight >= 16
    assert weak.weight <= 1
    with pytest.raises(InvalidInputError, match="over_time"):
        search_time_weight(space, None, still[:, 0])


def test_the_weight_of_time_of_counts_is_that_of_their_log_rates() -> None:
    panel = Graph.from_edges(np.arange(29), np.arange(1, 30)).over_time(range(8))
    people = 10.0 ** RNG.uniform(1.0, 5.0, (30, 8))
    y = RNG.poisson(people * np.exp(np.sin(np.arange(30) / 4))[:, None]).astype(float)
    y[RNG.random((30, 8)) < 0.4] = np.nan
    found = search_time_weight(panel, None, y.ravel(), exposure=people.ravel()).product
    rates = search_time_weight(panel, None, np.log((y + 0.5) / people).ravel()).product
    assert found is not None
    assert rates is not None
    assert found.weight == rates.weight > 1
    y[2, 1] = -1.0
    with pytest.raises(InvalidInputError, match=r"got -1 with an exposure of .* at node 17"):
        search_time_weight(panel, None, y.ravel(), exposure=people.ravel())


def test_where_the_last_times_are_missing_the_weight_is_that_which_forecasts_the_past() -> None:
    space = Graph.from_edges(np.arange(39), np.arange(1, 40))
    shape = np.sin(np.arange(40) / 6)[:, None]
    y = np.hstack([np.repeat(RNG.normal(size=(40, 1)), 6, axis=1), shape, shape, np.full((40, 1), np.nan)])
    y[::2, 6:] = np.where(np.arange(20)[:, None] % 2 == 0, shape[::2], y[::2, 6:])
    product = search_time_weight(space.over_time(range(9)), None, (y + 0.1 * RNG.normal(size=y.shape)).ravel()).product
    assert product is not None
    assert product.weight > 1  # the last labelled time is like the one before, and unlike most earlier ones

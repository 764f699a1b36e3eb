"""What results say of known values and of features, against plain computations."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from graphmrf.cli.comparison import Fit, fit_numbers
from graphmrf.cli.results import _coverage, _dependence, _effects, _learning, _not_foreseen, neighbourhood
from graphmrf.datasets import Features
from graphmrf.estimators import GraphRegressor
from graphmrf.estimators.methods import METHODS
from graphmrf.graph import Graph

N = 120


@pytest.fixture(scope="module")
def bent() -> tuple[Fit, pd.DataFrame]:
    """The field fitted to a parabola of a node's own feature, on a ring."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=N), "z": rng.normal(size=N)})
    y = X["x"].to_numpy() ** 2 + 0.1 * rng.normal(size=N)
    y[rng.random(N) < 0.3] = np.nan
    ring = Graph.from_edges(np.arange(N), (np.arange(N) + 1) % N)
    options = {"alpha": "cv", "folds": 3, "seed": 0, "transform": "identity"}
    return fit_numbers(METHODS["field"], ring, Features(X, (), X, ("x", "z")), y, **options), X


def test_a_parabola_is_drawn_as_one(bent: tuple[Fit, pd.DataFrame]) -> None:
    rows = _dependence(bent[0])
    assert rows is not None
    assert set(rows["feature"]) == {"x", "z"}
    x, mean = rows[rows["feature"] == "x"][["x", "mean"]].to_numpy().T
    assert x[[0, -1]] == pytest.approx(np.quantile(bent[1]["x"], [0.02, 0.98]))
    np.testing.assert_allclose(mean - mean.min(), x**2 - (x**2).min(), atol=0.7)
    flat = rows[rows["feature"] == "z"]["mean"]
    assert np.ptp(flat) < 0.4 * np.ptp(mean)


def test_effects_have_the_spread_of_what_they_are_of(bent: tuple[Fit, pd.DataFrame]) -> None:
    fit, X = bent
    rows = _effects(fit, X)
    assert rows is not None
    around = (np.roll(X, 1, axis=0) + np.roll(X, -1, axis=0)) / 2
    np.testing.assert_allclose(rows.scales[:, list(rows.groups).index("own")], X.std(ddof=0))
    np.testing.assert_allclose(rows.scales[:, list(rows.groups).index("neighbours")], around.std(axis=0))


def test_coverage_rises_with_the_level(bent: tuple[Fit, pd.DataFrame]) -> None:
    rows = _coverage(bent[0], np.zeros(1), 0.85)
    assert rows is not None
    assert 0.85 in rows["level"].to_numpy()
    assert (np.diff(rows["inside"]) >= 0).all()
    assert abs(rows["inside"] - rows["level"]).max() < 0.25


def test_more_labels_bring_no_less(bent: tuple[Fit, pd.DataFrame]) -> None:
    rows = _learning(bent[0])
    assert rows is not None
    assert rows["n_labels"].is_monotonic_increasing
    assert (rows["upper"] <= 1).all()


def test_the_sparse_solver_foresees_too_and_others_say_who_does() -> None:
    rng = np.random.default_rng(0)
    ring = Graph.from_edges(np.arange(60), (np.arange(60) + 1) % 60)
    y = np.where(np.arange(60) % 4 == 0, np.sin(np.arange(60) / 5) + 0.1 * rng.normal(size=60), np.nan)
    model = GraphRegressor(solver="sparse").fit(ring, None, y)
    fit = Fit(METHODS["field"], model, 0.5, np.zeros(4), 0.1, None, scores={})
    rows = _learning(fit)
    assert rows is not None
    assert rows["n_labels"].tolist() == [15, 22, 30, 45]
    assert _not_foreseen(fit, "rent") == ()
    other = Fit(METHODS["lp"], object(), 0.5, np.zeros(4), 0.1, 0.9, scores={})
    assert _learning(other) is None
    assert _not_foreseen(other, "my rent")[0].about.endswith("graphmrf foresee NODES EDGES --target 'my rent'")


def test_coverage_of_other_methods_counts_normal_intervals() -> None:
    fit = Fit(METHODS["lp"], SimpleNamespace(freedom_=1e6), 0.5, np.zeros(4), 0.1, 0.9, scores={})
    rows = _coverage(fit, np.array([0.1, -1.0, 2.0, np.nan]), 0.9)
    assert rows is not None
    inside = rows.set_index("level")["inside"]
    assert inside[0.5] == pytest.approx(1 / 3)
    assert inside[0.9] == pytest.approx(2 / 3)
    assert _coverage(fit, np.full(3, np.nan), 0.9) is None


def test_a_neighbourhood_is_two_steps_wide() -> None:
    ring = Graph.from_edges(np.arange(9), (np.arange(9) + 1) % 9)
    around = neighbourhood(ring).toarray()
    assert around.shape == (5, 5)
    assert around[0].sum() == 2
    alone = neighbourhood(Graph.from_edges([], [], n_nodes=3)).toarray()
    np.testing.assert_array_equal(alone, [[0.0]])

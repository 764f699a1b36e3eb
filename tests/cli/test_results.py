"""What results say of known values and of features, against plain computations."""

from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from graphmrf._typing import Floats
from graphmrf.cli.comparison import Fit, fit_numbers
from graphmrf.cli.results import coverage_table, dependence_table, effects_of, learning_curve, without_learning
from graphmrf.datasets import Features
from graphmrf.estimators.methods import METHODS
from graphmrf.graph import Graph

Data: TypeAlias = tuple[Graph, Features, Floats]

N = 120
OPTIONS: dict[str, Any] = {"alpha": "cv", "cv": 3, "random_state": 0, "transform": "identity"}


@pytest.fixture(scope="module")
def data() -> Data:
    """A parabola of a node's own feature, on a ring."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=N), "z": rng.normal(size=N)})
    y = X["x"].to_numpy() ** 2 + 0.1 * rng.normal(size=N)
    y[rng.random(N) < 0.3] = np.nan
    ring = Graph.from_edges(np.arange(N), (np.arange(N) + 1) % N)
    return ring, Features(X, (), X, ("x", "z")), y


@pytest.fixture(scope="module")
def bent(data: Data) -> Fit:
    return fit_numbers(METHODS["field"], *data, **OPTIONS)


@pytest.fixture(scope="module")
def linear(data: Data) -> Fit:
    return fit_numbers(METHODS["lr"], *data, **OPTIONS)


def test_a_parabola_is_drawn_as_one(bent: Fit, data: Data) -> None:
    rows = dependence_table(bent, data[1].X)
    assert rows is not None
    assert set(rows["feature"]) == {"x", "z"}
    x, mean = rows[rows["feature"] == "x"][["x", "mean"]].to_numpy().T
    assert x[[0, -1]] == pytest.approx(np.quantile(data[1].X["x"], [0.02, 0.98]))
    np.testing.assert_allclose(mean - mean.min(), x**2 - (x**2).min(), atol=0.7)
    flat = rows[rows["feature"] == "z"]["mean"]
    assert np.ptp(flat) < 0.4 * np.ptp(mean)


def test_a_column_of_two_values_has_no_curve(bent: Fit) -> None:
    assert dependence_table(bent, pd.DataFrame({"x": [0.0, 1.0], "z": [0.0, 1.0]})) is None


def test_methods_without_nonlinear_effects_have_no_curves(linear: Fit, data: Data) -> None:
    assert dependence_table(linear, data[1].X) is None


@pytest.mark.parametrize("kind", ["bent", "linear"])
def test_effects_are_the_coefficients(kind: str, data: Data, request: pytest.FixtureRequest) -> None:
    fit = request.getfixturevalue(kind)
    rows = effects_of(fit, data[1].X)
    assert rows is not None
    assert rows.names == ("x", "z")
    np.testing.assert_allclose(rows.values, fit.estimator.coef_)
    np.testing.assert_allclose(rows.scales, data[1].X.std(ddof=0))


def test_coverage_counts_normal_out_of_fold_intervals(bent: Fit, data: Data) -> None:
    rows = coverage_table(bent, 0.85)
    assert rows is not None
    assert bent.held_out is not None
    graph, features, y = data
    mean, std = bent.estimator.out_of_fold(graph, features.X, y, bent.held_out.folds.folds, return_std=True)
    error = np.abs(y[~np.isnan(y)] - mean) / std
    inside = rows.set_index("level")["inside"]
    for level in (0.5, 0.85, 0.9):
        assert inside[level] == pytest.approx(np.mean(error <= norm.ppf(0.5 + 0.5 * level)))
    assert (np.diff(rows["inside"]) >= 0).all()
    assert abs(rows["inside"] - rows["level"]).max() < 0.25


def test_the_score_and_the_coverage_are_of_the_same_predictions(bent: Fit) -> None:
    assert bent.held_out is not None
    np.testing.assert_array_equal(bent.out_of_fold, bent.held_out.predictions[0])


def test_coverage_of_other_methods_is_that_of_their_check(linear: Fit) -> None:
    rows = coverage_table(linear, 0.9)
    assert rows is not None
    inside = rows.set_index("level")["inside"]
    assert inside[0.9] == pytest.approx(np.mean(linear.estimator.interval_check_.covered(0.9)))


def test_nothing_held_out_has_no_coverage(bent: Fit) -> None:
    assert coverage_table(replace(bent, held_out=None), 0.9) is None


def test_more_labels_bring_no_less(bent: Fit, linear: Fit) -> None:
    rows = learning_curve(bent)
    assert rows is not None
    assert rows["n_labels"].is_monotonic_increasing
    assert (rows["upper"] <= 1).all()
    assert without_learning(bent, "rent") == ()
    assert learning_curve(linear) is None
    assert without_learning(linear, "my rent")[0].about.endswith("graphmrf foresee NODES EDGES --target 'my rent'")

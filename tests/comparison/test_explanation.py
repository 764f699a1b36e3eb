"""What results say of known values and of features, against plain computations."""

from typing import TypeAlias

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from graphmrf._typing import Floats
from graphmrf.comparison import FittedMethod, Settings, explain, learning_curve
from graphmrf.comparison.candidates import compare_methods
from graphmrf.comparison.explanation import anchored, dependence_curves
from graphmrf.errors import InvalidInputError
from graphmrf.estimators import GraphRegressor
from graphmrf.graph import Graph

Data: TypeAlias = tuple[Graph, pd.DataFrame, Floats]

N = 120


@pytest.fixture(scope="module")
def data() -> Data:
    """A parabola of a node's own feature, on a ring."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=N), "z": rng.normal(size=N)})
    y = X["x"].to_numpy() ** 2 + 0.1 * rng.normal(size=N)
    y[rng.random(N) < 0.3] = np.nan
    ring = Graph.from_edges(np.arange(N), (np.arange(N) + 1) % N)
    return ring, X, y


@pytest.fixture(scope="module")
def bent(data: Data) -> FittedMethod:
    return compare_methods(*data, Settings(("field",), cv=3)).chosen


@pytest.fixture(scope="module")
def linear(data: Data) -> FittedMethod:
    return compare_methods(*data, Settings(("lr",), cv=3)).chosen


def test_a_parabola_is_drawn_as_one(bent: FittedMethod, data: Data) -> None:
    rows = explain(bent.model, data[1]).dependence
    assert rows is not None
    assert set(rows["feature"]) == {"x", "z"}
    x, mean = rows[rows["feature"] == "x"][["x", "mean"]].to_numpy().T
    assert x[[0, -1]] == pytest.approx(np.quantile(data[1]["x"], [0.02, 0.98]))
    np.testing.assert_allclose(mean - mean.min(), x**2 - (x**2).min(), atol=0.7)
    flat = rows[rows["feature"] == "z"]["mean"]
    assert np.ptp(flat) < 0.4 * np.ptp(mean)


def test_a_column_of_two_values_has_no_curve(bent: FittedMethod) -> None:
    assert dependence_curves(bent.model, pd.DataFrame({"x": [0.0, 1.0], "z": [0.0, 1.0]}), {}) is None


def test_learned_effects_have_curves() -> None:
    rng, n = np.random.default_rng(1), 300
    X = pd.DataFrame(rng.standard_normal((n, 3)), columns=["x", "z", "w"]).assign(kind=rng.choice(["a", "b", "c"], n))
    y = 2.0 * (np.floor(4 * norm.cdf(X["x"].to_numpy())) % 2) + 0.3 * rng.standard_normal(n)
    y[rng.random(n) < 0.3] = np.nan
    ring = Graph.from_edges(np.arange(n), (np.arange(n) + 1) % n)
    found = explain(GraphRegressor(terms=["own", "learned", "field"]).fit(ring, X, y), X)
    assert found.shares["learned effects"] > 0.3
    assert found.dependence is not None
    assert set(found.dependence["feature"]) == {"x", "z", "w"}
    at = found.dependence[found.dependence["feature"] == "x"]
    about, stairs = at["mean"] - at["mean"].mean(), 2.0 * (np.floor(4 * norm.cdf(at["x"])) % 2)
    assert np.corrcoef(about, stairs)[0, 1] > 0.8


def test_methods_without_nonlinear_effects_have_no_curves(linear: FittedMethod, data: Data) -> None:
    assert explain(linear.model, data[1]).dependence is None


def test_features_to_explain_are_a_table(linear: FittedMethod) -> None:
    with pytest.raises(InvalidInputError, match=r"X must be a DataFrame.*got int; for one node use model.explain"):
        explain(linear.model, 5)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["bent", "linear"])
def test_effects_are_the_coefficients(kind: str, data: Data, request: pytest.FixtureRequest) -> None:
    fit = request.getfixturevalue(kind)
    rows = explain(fit.model, data[1]).effects
    assert rows is not None
    assert rows.names == ("x", "z")
    np.testing.assert_allclose(rows.values, fit.model.coef_)
    np.testing.assert_allclose(rows.scales, data[1].std(ddof=0))


def test_coverage_counts_normal_out_of_fold_intervals(bent: FittedMethod, data: Data) -> None:
    assert bent.held_out is not None
    rows = bent.held_out.coverage(0.85)
    assert rows is not None
    graph, features, y = data
    mean, std = bent.model.out_of_fold(graph, features, y, bent.held_out.folds.folds, return_std=True)
    error = np.abs(y[~np.isnan(y)] - mean) / std
    inside = rows.set_index("level")["inside"]
    for level in (0.5, 0.85, 0.9):
        assert inside[level] == pytest.approx(np.mean(error <= norm.ppf(0.5 + 0.5 * level)))
    assert (np.diff(rows["inside"]) >= 0).all()
    assert abs(rows["inside"] - rows["level"]).max() < 0.25


def test_the_score_and_the_coverage_are_of_the_same_predictions(bent: FittedMethod) -> None:
    assert bent.held_out is not None
    np.testing.assert_array_equal(bent.out_of_fold, bent.held_out.predictions[0])


def test_coverage_of_other_methods_is_that_of_their_check(linear: FittedMethod) -> None:
    assert linear.held_out is not None
    rows = linear.held_out.coverage(0.9)
    assert rows is not None
    inside = rows.set_index("level")["inside"]
    assert inside[0.9] == pytest.approx(np.mean(linear.model.interval_check_.covered(0.9)))


def test_more_labels_bring_no_less(bent: FittedMethod, linear: FittedMethod) -> None:
    rows = learning_curve(bent)
    assert rows is not None
    assert rows["n_labels"].is_monotonic_increasing
    assert (rows["lower"] <= rows["expected_r2"]).all()
    assert (rows["expected_r2"] <= rows["upper"]).all()
    assert (rows["upper"] <= 1).all()
    assert learning_curve(linear) is None


def test_a_learning_curve_starts_at_the_accuracy_that_was_measured(bent: FittedMethod) -> None:
    rows, expected = learning_curve(bent), bent.model.expected_learning_curve()["expected_r2"].to_numpy()
    assert rows is not None
    assert rows["expected_r2"].iloc[0] == pytest.approx(bent.score)
    ratio = (1 - rows["expected_r2"]) / (1 - expected)
    np.testing.assert_allclose(ratio, ratio.iloc[0])
    np.testing.assert_array_equal(anchored(expected, expected[0], np.nan), expected)

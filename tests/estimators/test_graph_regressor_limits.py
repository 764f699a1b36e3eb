"""GraphRegressor at the limits of its numbers: units, ranges, ties and few labels, with both solvers."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from cases import random_case
from graphmrf import Graph
from graphmrf._typing import Floats
from graphmrf.errors import InvalidInputError
from graphmrf.estimators.graph_regressor import GraphRegressor

pytestmark = pytest.mark.slow

CASE = random_case(11, n=60, p=3, labelled=40)
GRAPH, U = CASE.graph, ~CASE.known
LINEAR = np.where(U, np.nan, CASE.X @ [1.0, 2.0, 3.0])
SOLVERS = ("dense", "sparse")

both = pytest.mark.parametrize("solver", SOLVERS)


def fitted(y: Any, solver: str, *, X: Any = CASE.X, transform: str = "identity") -> GraphRegressor:
    return GraphRegressor(solver=solver, transform=transform).fit(GRAPH, X, y)


@cache
def skewed() -> tuple[Graph, Floats, Floats]:
    """A graph, features and the logarithm of an outcome that is nearly linear in them; half of it is known."""
    rng = np.random.default_rng(1)
    u = rng.integers(0, 120, 360)
    graph = Graph.from_edges(u, (u + rng.integers(1, 6, 360)) % 120, n_nodes=120)
    X = rng.normal(size=(120, 5))
    wave, noise = 2.0 * np.sin(2 * np.pi * np.arange(120) / 120), 0.3 * rng.normal(size=120)
    log_y = (X @ np.arange(1.0, 6.0) + wave + noise) / 3.0
    log_y[rng.permutation(120)[60:]] = np.nan
    return graph, X, log_y


@cache
def model(solver: str) -> GraphRegressor:
    return fitted(CASE.y, solver)


@both
def test_the_shares_of_all_effects_add_up(solver: str) -> None:
    smoothed = GRAPH.N @ CASE.X
    for y in (CASE.y, LINEAR, np.where(U, np.nan, CASE.X[:, 0] - smoothed[:, 0])):
        assert fitted(y, solver).shares_.sum() == pytest.approx(1.0)


@both
def test_draws_scatter_as_the_error_bars_say(solver: str) -> None:
    for y in (CASE.y, LINEAR):  # noise between what is assumed and less than the least
        field = fitted(y, solver)
        draws, std = field.sample(2000, random_state=1), field.predict(return_std=True)[1]
        assert np.median(draws.std(axis=0)[U] / std[U]) == pytest.approx(1.0, abs=0.03)


@both
@pytest.mark.parametrize("unit", [1e-70, 1e-12, 1e12, 1e70])
def test_no_unit_is_too_large_or_too_small(solver: str, unit: float) -> None:
    mean, std = model(solver).predict(return_std=True)
    for X, y, back in ((CASE.X, unit * CASE.y, unit), (unit * CASE.X, CASE.y, 1.0)):
        other = fitted(y, solver, X=X)
        for given, expected in zip(other.predict(return_std=True), (mean, std), strict=True):
            np.testing.assert_allclose(given / back, expected, rtol=1e-3, atol=1e-3 * float(std.max()))
        assert np.isfinite(other.coef_).all()
        assert np.isfinite(other.log_evidence_)


def test_error_bars_do_not_depend_on_the_level() -> None:
    far = fitted(CASE.y + 2.0**40, "dense").predict(return_std=True)[1]
    np.testing.assert_allclose(far, model("dense").predict(return_std=True)[1], rtol=1e-3)


@both
def test_means_beyond_all_numbers_are_refused(solver: str) -> None:
    y = np.exp(200.0 * (CASE.y - np.nanmean(CASE.y)) / np.nanstd(CASE.y))
    with pytest.raises(InvalidInputError, match=r"use 'identity', or fit the logarithm|give them in another unit"):
        fitted(y, solver, X=None, transform="log").predict()


@both
def test_the_transform_does_not_depend_on_rounding(solver: str) -> None:
    graph, X, log_y = skewed()
    y = np.exp(log_y)
    plain = GraphRegressor(transform="auto", solver=solver).fit(graph, X, y)
    W = graph.adjacency.toarray()
    for given, unit in ((Graph(7.0 * W), 1.0), (graph, 1e6)):
        other = GraphRegressor(transform="auto", solver=solver).fit(given, X, unit * y)
        assert other.transform_.power == plain.transform_.power
        np.testing.assert_allclose(other.predict() / unit, plain.predict(), rtol=0.03)


def test_the_exponent_of_a_transform_is_found() -> None:
    graph, X, log_y = skewed()
    as_power = GraphRegressor(transform="box-cox").fit(graph, X, np.exp(log_y)).transform_.power
    assert as_power is not None
    assert as_power.exponent == pytest.approx(0.0, abs=0.05)
    root = log_y - np.nanmin(log_y) + 0.5
    found = GraphRegressor(transform="box-cox").fit(graph, X, root**2).transform_.power
    assert found is not None
    assert found.exponent == pytest.approx(0.5, abs=0.05)


@both
def test_labels_that_are_nearly_equal_hide_no_others(solver: str) -> None:
    rng = np.random.default_rng(0)
    X, known = rng.standard_normal((200, 1)), rng.random(200) < 0.6
    path = Graph.from_edges(np.arange(199), np.arange(1, 200))
    equal = np.where(X[:, 0] > 1.1, 3.0, 0.0)
    nearly = equal + 1e-6 * rng.standard_normal(200)
    means = [
        GraphRegressor(solver=solver, learner=None).fit(path, X, np.where(known, y, np.nan)).predict()
        for y in (equal, nearly)
    ]
    assert np.sqrt(np.mean((means[1] - means[0]) ** 2)) < 0.05
    assert np.mean((means[1] - equal)[~known] ** 2) < 0.5 * equal[~known].var()


@both
def test_one_wild_label_does_not_widen_all_error_bars(solver: str) -> None:
    wild = CASE.y.copy()
    wild[int(np.flatnonzero(~U)[0])] = 1e9
    std = fitted(wild, solver).predict(return_std=True)[1]
    assert std.max() < 1.5 * float(np.nanstd(wild))
    low = -np.exp(3.0 * (CASE.y - np.nanmean(CASE.y)) / np.nanstd(CASE.y))
    mean = fitted(low, solver, transform="yeo-johnson").predict()
    assert np.nanmin(low) * 10 < mean.min()
    assert mean.max() < 10 * abs(float(np.nanmin(low)))


def test_numbers_of_draws_are_whole() -> None:
    for count in (-1, 1.5, True):
        with pytest.raises(InvalidInputError, match="n_samples must be a whole number"):
            model("dense").sample(count)  # type: ignore[arg-type]  # on purpose


def test_no_draws_are_an_empty_table() -> None:
    assert model("dense").sample(0).shape == (0, 60)


def test_without_edges_features_of_neighbours_explain_nothing() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    y = np.where(np.arange(120) < 80, X @ [1.0, 2.0] + 0.3 * rng.normal(size=120), np.nan)
    model = GraphRegressor().fit(Graph.from_edges([], [], n_nodes=120), X, y)
    assert model.shares_["neighbours' features"] == pytest.approx(0.0, abs=1e-9)
    assert model.shares_["own features"] > 0.8


def test_three_labels_and_three_features_are_enough() -> None:
    rng = np.random.default_rng(1)
    graph = Graph.from_edges(np.arange(99), np.arange(1, 100))
    y = np.full(100, np.nan)
    y[[3, 40, 80]] = [1.0, 3.0, 2.0]
    model = GraphRegressor().fit(graph, rng.normal(size=(100, 3)), y)
    assert np.isfinite(model.predict()).all()


@both
def test_a_rare_level_that_no_label_has_is_uncertain(solver: str) -> None:
    case = random_case(5, n=300, p=2)
    rng = np.random.default_rng(0)
    y = case.X @ [1.0, 0.5] + 0.3 * rng.standard_normal(300)
    rare, known = np.isin(np.arange(300), [280, 290]).astype(float), np.arange(300) < 90
    X = np.column_stack([case.X, rare])
    model = GraphRegressor(solver=solver).fit(case.graph, X, np.where(known, y, np.nan))
    std = model.predict(return_std=True)[1]
    assert (std[[280, 290]] > std[90:280].max()).all()
    assert (std[[280, 290]] < 8.0 * y.std()).all()


def test_one_member_is_the_most_probable_field_alone_and_narrower() -> None:
    case = random_case(3, n=80, p=2)
    y = np.where(np.arange(80) < 12, case.X @ [1.0, 0.5] + np.sin(np.arange(80)), np.nan)
    whole, single = (GraphRegressor(members=members).fit(case.graph, case.X, y) for members in (24, 1))
    assert single.hyperparameters_["noise"] == whole.hyperparameters_["noise"]
    widths = [model.predict(return_std=True)[1][12:].mean() for model in (whole, single)]
    assert widths[1] < widths[0]


@pytest.mark.parametrize("members", [0, 2.5, True])
def test_members_are_counted_from_one(members: Any) -> None:
    with pytest.raises(InvalidInputError, match="members must be a whole number >= 1"):
        GraphRegressor(members=members).fit(Graph.from_edges([0], [1]), None, [1.0, np.nan])

"""Holes in blocks: promised accuracy, chosen levels and intervals, on folds that imitate the holes."""

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import r2_score

import families
from graphmrf import (
    GraphClassifier,
    LabelPropagation,
    LinearGraphConvolution,
    LinearRegression,
    ResidualPropagation,
    SimpleGraphConvolution,
)
from graphmrf._typing import Bools, Floats
from graphmrf.graph import Graph
from graphmrf.linalg import smooth
from graphmrf.selection import assign_folds, distance_matched_folds, split

pytestmark = pytest.mark.slow

SIDE = 40
GRAPH = families.grid(SIDE)
LINEAR = [
    LabelPropagation(),
    LinearRegression(),
    LinearGraphConvolution(),
    SimpleGraphConvolution(),
    ResidualPropagation(LinearGraphConvolution()),
    ResidualPropagation(LinearRegression()),
]


def smooth_field(graph: Graph, seed: int, alpha: float = 0.9) -> Floats:
    """A smooth field: noise, smoothed twice, in units of its standard deviation."""
    noise = np.random.default_rng(seed).normal(size=(graph.n_nodes, 1))
    field = smooth(graph, smooth(graph, noise, alpha), alpha)[:, 0]
    return np.asarray((field - field.mean()) / field.std())


def block_holes(graph: Graph, side: int, seed: int) -> Bools:
    """Labels outside of square holes of side 9 that cover a good part of a lattice."""
    known, rng = np.ones((side, side), dtype=bool), np.random.default_rng(seed)
    for x, y in rng.integers(0, side - 8, (8, 2)):
        known[x : x + 9, y : y + 9] = False
    assert graph.n_nodes == known.size
    return known.ravel()


def hidden(truth: Floats, known: Bools) -> Floats:
    return np.where(known, truth, np.nan)


def test_promised_accuracy_is_near_the_truth_where_random_folds_promise_too_much() -> None:
    promised, random, true = [], [], []
    for seed in range(6):
        truth, known = smooth_field(GRAPH, seed), block_holes(GRAPH, SIDE, seed)
        y = hidden(truth, known)
        model = LabelPropagation().fit(GRAPH, None, y)
        table = model.cv_results_
        assert table is not None
        promised.append(float(table["mean_r2"].max()))
        folds = assign_folds(int(known.sum()), 5)
        random.append(r2_score(truth[known], model.out_of_fold(GRAPH, None, y, folds)))
        true.append(model.score(y=truth))
    assert np.mean(promised) == pytest.approx(np.mean(true), abs=0.1)
    assert np.mean(random) > np.mean(true) + 0.2


@pytest.mark.parametrize("model", LINEAR)
def test_random_holes_are_searched_on_random_folds(model: Any) -> None:
    truth, known = smooth_field(GRAPH, 1), split(SIDE**2, 0.3, random_state=1)
    X, y = np.random.default_rng(0).normal(size=(SIDE**2, 2)), hidden(truth, known)
    model.fit(GRAPH, X, y)
    np.testing.assert_array_equal(model.interval_check_.folds.folds, assign_folds(int(known.sum()), 5))
    np.testing.assert_array_equal(model.interval_check_.factors, 1.0)
    np.testing.assert_array_equal(model.predict(return_std=True)[1], model.model_std_)
    assert model.notes_ == ()


@pytest.mark.parametrize("model", LINEAR)
def test_intervals_are_widened_and_never_narrowed(model: Any) -> None:
    truth, known = smooth_field(GRAPH, 3), block_holes(GRAPH, SIDE, 3)
    X, y = np.random.default_rng(0).normal(size=(SIDE**2, 2)), hidden(truth, known)
    _, std = model.fit(GRAPH, X, y).predict(return_std=True)
    assert not model.interval_check_.folds.is_random
    assert (std >= model.model_std_ * (1 - 1e-12)).all()


def test_widened_intervals_cover_in_the_holes() -> None:
    raw, widened = [], []
    for seed in range(6):
        truth, known = smooth_field(GRAPH, seed), block_holes(GRAPH, SIDE, seed)
        model = LabelPropagation().fit(GRAPH, None, hidden(truth, known))
        mean, std = model.predict(return_std=True)
        error = np.abs(truth - mean)[~known]
        raw.append(np.mean(error <= 1.645 * model.model_std_[~known]))
        widened.append(np.mean(error <= 1.645 * std[~known]))
    assert np.mean(raw) < 0.8
    assert 0.8 < np.mean(widened) < 0.97


def test_notes_say_that_intervals_were_widened() -> None:
    truth, known = smooth_field(GRAPH, 0), block_holes(GRAPH, SIDE, 0)
    model = LabelPropagation().fit(GRAPH, None, hidden(truth, known))
    assert model.interval_check_.coverage < 0.8
    assert "widened by a factor of up to" in model.notes_[0]


def test_out_of_fold_error_bars_are_those_of_plain_refits() -> None:
    truth, known = smooth_field(GRAPH, 2), block_holes(GRAPH, SIDE, 2)
    y, labelled = hidden(truth, known), np.flatnonzero(known)
    model = LabelPropagation().fit(GRAPH, None, y)
    mean, std = model.interval_check_.predictions
    folds = model.interval_check_.folds.folds
    without = y.copy()
    without[labelled[folds == 1]] = np.nan
    refitted = LabelPropagation(alpha=model.alpha_).fit(GRAPH, None, without)
    np.testing.assert_allclose(mean[folds == 1], refitted.predict()[labelled[folds == 1]])
    np.testing.assert_allclose(std[folds == 1], refitted.model_std_[labelled[folds == 1]])


def test_a_classifier_holds_out_regions_where_holes_are_regions() -> None:
    promised, true, random = [], [], []
    for seed in range(4):
        field, known = smooth_field(GRAPH, seed), block_holes(GRAPH, SIDE, seed)
        classes = (field > np.median(field)).astype(float)
        model = GraphClassifier(LabelPropagation(alpha=0.99)).fit(GRAPH, None, hidden(classes, known))
        promised.append(model.held_out_score_)
        true.append(model.score(y=classes))
        everywhere = split(SIDE**2, float(known.mean()), random_state=seed)
        plain = GraphClassifier(LabelPropagation(alpha=0.99)).fit(GRAPH, None, hidden(classes, everywhere))
        random.append(plain.held_out_score_)
        assert not distance_matched_folds(GRAPH, known).is_random
    assert np.mean(promised) == pytest.approx(np.mean(true), abs=0.1)
    assert np.mean(random) > np.mean(promised) + 0.05

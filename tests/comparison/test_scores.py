"""Scores of out-of-fold predictions against scikit-learn, and their standard error against samples."""

import numpy as np
import pytest
from sklearn.metrics import log_loss, mean_poisson_deviance, r2_score

from graphmrf.comparison import compare
from graphmrf.comparison.held_out import R2, Score, standard_error
from graphmrf.field.likelihoods import LIKELIHOODS
from graphmrf.graph import Graph
from graphmrf.selection import MatchedFolds, distance_matched_folds

N = 60


def folds() -> MatchedFolds:
    ring = Graph.from_edges(np.arange(N), (np.arange(N) + 1) % N)
    return distance_matched_folds(ring, np.ones(N, dtype=bool), 5, random_state=0)


def test_numbers_are_scored_by_r2() -> None:
    rng = np.random.default_rng(0)
    y, predicted = rng.standard_normal((2, N))
    assert 1.0 - R2.losses(predicted, y, np.ones(N)).mean() == pytest.approx(r2_score(y, predicted))
    assert R2.search(predicted, y, folds(), 0.5)["mean_r2"][0] == pytest.approx(r2_score(y, predicted))
    assert R2.key == "r2"


@pytest.mark.parametrize("name", ["poisson", "negative-binomial"])
def test_counts_are_scored_by_the_poisson_deviance(name: str) -> None:
    rng = np.random.default_rng(1)
    exposure = rng.uniform(1.0, 50.0, N)
    cases = rng.poisson(0.2 * exposure).astype(float)
    predicted = exposure * rng.uniform(0.1, 0.4, N)
    score = Score("explained deviance", LIKELIHOODS[name], exposure)
    alone = exposure * cases.sum() / exposure.sum()
    expected = 1.0 - mean_poisson_deviance(cases, predicted) / mean_poisson_deviance(cases, alone)
    assert 1.0 - score.losses(predicted, cases, np.ones(N)).mean() == pytest.approx(expected)
    found, used = score.search(predicted, cases, folds(), 0.0), folds().folds == 1
    assert found["mean_r2"][0] == pytest.approx(expected)
    own = exposure[used] * cases[used].sum() / exposure[used].sum()
    expected = 1.0 - mean_poisson_deviance(cases[used], predicted[used]) / mean_poisson_deviance(cases[used], own)
    assert found["fold_r2"][0, 1] == pytest.approx(expected)
    assert score.key == "explained_deviance"


def test_likelihoods_of_counts_are_compared_by_explained_deviance() -> None:
    rng, nodes = np.random.default_rng(4), np.arange(40)
    ring = Graph.from_edges(nodes, (nodes + 1) % 40)
    people = rng.uniform(20.0, 200.0, 40)
    cases = np.where(nodes % 4 > 0, rng.poisson(0.2 * people * np.exp(np.sin(nodes / 6.0))), np.nan)
    found = compare(ring, None, cases, likelihood="poisson", known={"exposure": people})
    chosen, known = found.chosen, ~np.isnan(cases)
    mean = np.asarray(chosen.model.out_of_fold(ring, None, cases, chosen.folds.folds))  # type: ignore[union-attr]
    alone = people[known] * cases[known].sum() / people[known].sum()
    expected = 1.0 - mean_poisson_deviance(cases[known], mean) / mean_poisson_deviance(cases[known], alone)
    assert found.metric == "explained_deviance"
    assert found.table["explained_deviance"].tolist() == pytest.approx([expected])
    assert expected > 0.5


def test_a_yes_or_no_is_scored_by_its_log_loss() -> None:
    rng = np.random.default_rng(2)
    share = rng.uniform(0.1, 0.9, N)
    y = (rng.random(N) < share).astype(float)
    score = Score("explained deviance", LIKELIHOODS["bernoulli"], np.ones(N))
    expected = 1.0 - log_loss(y, share) / log_loss(y, np.full(N, y.mean()))
    assert 1.0 - score.losses(share, y, np.ones(N)).mean() == pytest.approx(expected)


def test_an_impossible_count_costs_a_finite_loss() -> None:
    score = Score("explained deviance", LIKELIHOODS["poisson"], np.ones(2))
    assert np.isfinite(score.losses(np.zeros(2), np.array([0.0, 3.0]), np.ones(2))).all()


def test_the_error_of_explained_deviance_is_its_spread_over_samples() -> None:
    rng, found = np.random.default_rng(3), []
    for _ in range(200):
        rate = np.exp(0.7 * rng.standard_normal(N))
        cases = rng.poisson(5.0 * rate).astype(float)
        score = Score("explained deviance", LIKELIHOODS["poisson"], np.full(N, 5.0))
        losses = score.losses(5.0 * rate**0.7, cases, np.ones(N))
        found.append((1.0 - losses.mean(), score.error(losses, cases, folds())))
    scores, errors = np.array(found).T
    assert np.mean(errors) == pytest.approx(1.5 * np.std(scores), rel=0.2)  # 1.5: folds share training data


def test_outcomes_that_are_all_equal_have_no_score() -> None:
    score = Score("explained deviance", LIKELIHOODS["poisson"], np.ones(N))
    assert np.isnan(score.losses(np.ones(N), np.zeros(N), np.ones(N))).all()
    assert np.isnan(standard_error(np.ones(1), 1))

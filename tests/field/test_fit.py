"""The fitted field in the units of the outcome, from the posterior and the scores of its labels."""

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from cases import random_case
from graphmrf._typing import Bools, Floats
from graphmrf.field import Hyperparameters
from graphmrf.field.fit import (
    CALIBRATED,
    FOLDS,
    SOLVERS,
    FittedField,
    calibrate,
    choose_solver,
    exact_cost,
    sparse_cost,
)
from graphmrf.graph import Graph

LEAST, MOST = CALIBRATED


def stub(m: int, refitted_up_to: int = 10**6) -> Any:
    """A posterior that says 1 +- 2 of labels left out, and 3 +- 4 of those that a refit did not see."""
    z = np.random.default_rng(m).normal(size=m)

    def refitted(own: Bools, others: Floats, seed: int) -> tuple[Floats, Floats]:
        np.testing.assert_array_equal(others, z[~own])
        assert seed == 7
        assert m // FOLDS <= own.sum() <= m // FOLDS + 1
        return np.full(own.sum(), 3.0), np.full(own.sum(), 16.0)

    left_out = (z - 1.0, np.full(m, 4.0))
    return SimpleNamespace(z=z, left_out=left_out, refitted_up_to=refitted_up_to, refitted=refitted)


@pytest.mark.parametrize(
    ("m", "up_to", "trust", "refits"),
    [
        (LEAST - 1, 10**6, 1.0, False),
        (LEAST, 10**6, 1.0, True),
        (MOST, 10**6, 0.5, True),
        (MOST + 1, 10**6, 1.0, False),
        (50, 50, 1.0, True),
        (51, 50, 1.0, False),
        (50, 10**6, 0.0, False),
    ],
)
def test_scores_of_few_labels_are_those_of_refits(m: int, up_to: int, trust: float, refits: bool) -> None:
    posterior = stub(m, up_to)
    found = calibrate(posterior, np.arange(m), 7, trust=trust)
    expected, std = (posterior.z - 3.0, 4.0) if refits else (posterior.z - 1.0, 2.0)
    np.testing.assert_allclose(found.scores, expected / std)
    assert (found.seen, found.trust) == (std, trust)


@pytest.mark.parametrize(
    ("nodes", "labels", "expected"),
    [
        (1000, 300, "exact"),
        (9000, 2500, "exact"),
        (9000, 8000, "sparse"),
        (30_000, 40, "exact"),
        (30_000, 9000, "sparse"),
    ],
)
def test_the_solver_follows_from_foreseen_cost(nodes: int, labels: int, expected: str) -> None:
    u = np.random.default_rng(0).permuted(np.tile(np.arange(nodes), (4, 1)), axis=1).ravel()
    graph = Graph.from_edges(np.tile(np.arange(nodes), 4), u, n_nodes=nodes)
    chosen, reason = choose_solver(graph, labels, 5)
    assert chosen == expected
    assert reason.startswith("takes ")
    assert (chosen == "exact") == ("the exact one would take" not in reason)


def test_foreseen_costs_grow_with_the_task() -> None:
    small, large = (Graph.from_edges(np.arange(n), np.roll(np.arange(n), 1)) for n in (500, 5000))
    for cost in (exact_cost, sparse_cost):
        for more in (cost(large, 250, 5), cost(small, 400, 5), cost(small, 250, 50)):
            assert all(a >= b for a, b in zip(more, cost(small, 250, 5), strict=True))


CASE = random_case(4, n=70, p=2, labelled=50)
U = np.flatnonzero(~CASE.known)


@cache
def made(solver: str) -> FittedField:
    return SOLVERS[solver](CASE.graph, CASE.X, CASE.y)


@pytest.fixture(params=SOLVERS)
def fitted(request: pytest.FixtureRequest, few_draws: None) -> FittedField:  # noqa: ARG001 - for the first use
    return made(request.param)


def test_predictions_are_the_calibrated_mixture_in_units(fitted: FittedField) -> None:
    labels = CASE.y[CASE.known]
    mean, variance = fitted.standardised.moments
    factor = fitted.calibration.factor(np.sqrt(variance), fitted.calibration.scale)
    found, std = fitted.predictions
    np.testing.assert_allclose(found[U], labels.mean() + labels.std() * mean, rtol=1e-9)
    np.testing.assert_allclose(std[U], labels.std() * factor * np.sqrt(variance), rtol=1e-9)
    np.testing.assert_array_equal(found[CASE.known], labels)
    np.testing.assert_array_equal(std[CASE.known], 0.0)


def test_conformal_intervals_are_the_ranked_scores_about_the_mean(fitted: FittedField) -> None:
    low, high = fitted.interval(0.8, "conformal")
    _, variance = fitted.standardised.moments
    half = CASE.y[CASE.known].std() * fitted.calibration.conformal(0.8) * np.sqrt(variance)
    np.testing.assert_allclose(high[U] - low[U], 2 * half, rtol=1e-9)
    np.testing.assert_allclose((high + low)[U] / 2, fitted.predictions[0][U], rtol=1e-9)
    np.testing.assert_array_equal(low[CASE.known], CASE.y[CASE.known])


def test_intervals_of_the_field_are_quantiles_as_wide_as_scores_ask(fitted: FittedField) -> None:
    low, high = fitted.interval(0.8, "field")
    found = fitted.standardised
    std = np.sqrt(found.moments[1])
    factor = fitted.calibration.factor(std, fitted.calibration.student(0.8) / norm.ppf(0.9))
    expected = factor * (found.quantile(0.9) - found.quantile(0.1)) * CASE.y[CASE.known].std()
    np.testing.assert_allclose(high[U] - low[U], expected, rtol=1e-9)
    assert (low[U] < fitted.predictions[0][U]).all()
    assert (fitted.predictions[0][U] < high[U]).all()


def test_draws_have_the_moments_of_the_predictions(fitted: FittedField) -> None:
    draws = fitted.draw(4000, 0)
    mean, std = fitted.predictions
    np.testing.assert_array_equal(draws[:, CASE.known], np.tile(CASE.y[CASE.known], (4000, 1)))
    np.testing.assert_allclose(draws.mean(axis=0)[U], mean[U], atol=5 * std.max() / np.sqrt(4000))
    np.testing.assert_allclose(draws.std(axis=0)[U], std[U], rtol=0.08)


def test_labels_given_the_others_are_told_in_units(fitted: FittedField) -> None:
    labels, (residual, variance) = CASE.y[CASE.known], fitted.posterior.left_out
    mean, std = fitted.left_out
    factor = fitted.calibration.factor(np.sqrt(variance), fitted.calibration.scale)
    np.testing.assert_allclose(mean, labels - labels.std() * residual, atol=1e-9)
    np.testing.assert_allclose(std, labels.std() * factor * np.sqrt(variance), rtol=1e-9)


def test_evidence_and_coefficients_are_in_units_of_the_labels(fitted: FittedField) -> None:
    spread = CASE.y[CASE.known].std()
    assert fitted.log_evidence == pytest.approx(fitted.standardised_log_evidence - 50 * np.log(spread))
    for title, (value, error) in fitted.posterior.coefficients.items():
        np.testing.assert_allclose(fitted.coefficients[title][0], spread * value)
        np.testing.assert_allclose(fitted.coefficients[title][1], spread * error)
    np.testing.assert_allclose(fitted.own_effects(0.1), spread * fitted.posterior.own_effects(0.1))
    assert sum(fitted.shares.values()) == pytest.approx(1.0)


def test_hyperparameters_are_attributes_and_others_are_not() -> None:
    h = Hyperparameters({"omega": 2.0})
    assert (h.omega, h["omega"], len(h), list(h)) == (2.0, 2.0, 1, ["omega"])
    assert getattr(h, "nu", None) is None

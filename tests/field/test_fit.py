"""The fitted field in the units of the outcome, from the posterior and the scores of its labels."""

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from cases import random_case
from graphmrf._typing import Bools, Floats
from graphmrf.field import Hyperparameters, Scale, fit
from graphmrf.field.averaged import BLENDED
from graphmrf.field.fit import (
    CALIBRATED,
    FOLDS,
    FUNCTIONS,
    SOLVERS,
    SPEEDS,
    FittedField,
    calibrate,
    choose_solver,
    exact_cost,
    sparse_cost,
)
from graphmrf.field.posterior import Mixture
from graphmrf.field.transform import Power
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
        (12_000, 40, "exact"),
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


def ring(n: int) -> Graph:
    return Graph.from_edges(np.arange(n), np.roll(np.arange(n), 1))


CPU = SPEEDS["cpu"]


def test_a_likelihood_takes_squares_and_cubes_of_the_labels() -> None:
    assert [fit._likelihood(m) for m in (0, 1000, 10_000)] == pytest.approx([0.002, 0.207, 43.002])


@pytest.mark.parametrize(
    ("n", "labels", "effects", "probes"),
    [(1000, 300, 256 + 150, 32), (1000, 5000, 256 + 400, 32), (100_000, 5000, 256 + 100, 12), (200_000, 40, 276, 8)],
)
def test_the_sparse_solver_is_foreseen_to_take_25_products_a_column(
    n: int, labels: int, effects: int, probes: int
) -> None:
    columns = 30 * (8 + probes) + 700 + effects
    seconds, needed = sparse_cost(ring(n), labels, 0)
    assert seconds == pytest.approx(25 * columns * CPU["product"] * (2 * n + 4 * n))
    assert needed == pytest.approx(8 * n * (2 * effects + 200))


@pytest.mark.parametrize(
    ("labels", "sizes"), [(100, (100, 100, 100)), (1500, (300, 1200, 1500)), (9000, (300, 1200, 2000))]
)
def test_features_ask_the_sparse_solver_for_four_columns_each_and_length_scales(
    labels: int, sizes: tuple[int, ...]
) -> None:
    scales = sum(count * fit._likelihood(size) for count, size in zip((60, 10, 20), sizes, strict=True))
    (without, less), (seconds, more) = (sparse_cost(ring(1000), labels, p) for p in (0, 5))
    assert seconds - without == pytest.approx(scales + 25 * 20 * CPU["product"] * 6000)
    assert more - less == 8 * 1000 * 2 * 20


@pytest.mark.parametrize(
    ("labels", "steps", "draws"),
    [
        (40, {40: 1660}, 31),
        (61, {61: 1860}, 31),
        (200, {200: 260}, 1),
        (201, {201: 60}, 1),
        (400, {400: 60}, 1),
        (900, {300: 60, 900: 30}, 1),
        (1500, {300: 60, 1200: 10, 1500: 20}, 1),
    ],
)
def test_the_exact_solver_is_foreseen_to_take_likelihoods_eigenvectors_and_predictions(
    labels: int, steps: dict[int, int], draws: int
) -> None:
    likelihoods = sum(count * fit._likelihood(size) for size, count in steps.items())
    seconds, needed = exact_cost(ring(2000), labels, 5)
    assert seconds == pytest.approx(likelihoods + CPU["eigenvectors"] * 2000**3 + CPU["entry"] * draws * 2000 * labels)
    assert needed == pytest.approx(24 * 2000**2 + 4 * FUNCTIONS * labels**2)


@pytest.mark.parametrize(("n", "labels", "passes"), [(12_000, 40, 1), (12_000, 90, 1), (150_000, 90, 3)])
def test_few_labels_of_a_large_graph_are_foreseen_to_take_products(
    n: int, labels: int, passes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit, "probed_series", lambda _: SimpleNamespace(degree=50))
    product = CPU["product"] * (2 * n + 4 * n) + CPU["step"] * n * FUNCTIONS
    columns = (2 + passes) * labels + 2 * 3 + 96
    likelihoods = (1660 + 200 * (labels > 60)) * fit._likelihood(labels)
    expected = likelihoods + CPU["entry"] * 31 * n * labels + 50 * columns * product
    seconds, needed = exact_cost(ring(n), labels, 3)
    assert seconds == pytest.approx(expected)
    blocks = 250 + 3 * labels * (labels > BLENDED[0]) + 3 * FUNCTIONS
    assert needed == pytest.approx(8 * n * blocks + 4 * FUNCTIONS * labels**2)
    monkeypatch.setattr(fit, "_MOST_BYTES", needed - 1)
    assert exact_cost(ring(n), labels, 3)[0] == pytest.approx(expected - 30 * columns * product)  # degree 20 at least


def test_no_eigenvalues_are_looked_for_where_products_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, worth = ring(150_000), (1.0, 100.0)
    monkeypatch.setattr(fit, "probed_series", lambda _: SimpleNamespace(degree=50))
    found = []
    for times in worth:
        monkeypatch.setattr(fit, "WORTH", (times, times))
        found.append(exact_cost(graph, 90, 3)[0])
    least, most = (times * sparse_cost(graph, 90, 3)[0] for times in worth)
    assert max(60.0, least) < found[0] < found[1] < most  # degree 20 at least, and 50


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (9.9, "some seconds"),
        (10.0, "about 10 seconds"),
        (119.0, "about 119 seconds"),
        (120.0, "about 2 minutes"),
        (7199.0, "about 120 minutes"),
        (7200.0, "about 2 hours"),
    ],
)
def test_a_time_is_told_in_the_largest_unit_that_it_has_twice(seconds: float, words: str) -> None:
    assert fit._in_words(seconds) == words


def test_a_mixture_under_a_transform_has_the_moments_of_its_members() -> None:
    y = np.exp(np.random.default_rng(0).normal(size=50))
    scale, found = (
        Scale(y, Power(0.0, signed=False)),
        Mixture(np.array([0.3, 0.7]), np.array([[-1.0], [2.0]]), np.ones((2, 1))),
    )
    logs = np.log(y).mean() + np.log(y).std() * found.means
    variances = np.log(y).var() * found.variances
    means = np.exp(logs + variances / 2)
    squares = np.exp(2 * logs + 2 * variances)
    mean, std = FittedField._in_units(SimpleNamespace(scale=scale), found)  # type: ignore[arg-type]
    np.testing.assert_allclose(mean, found.weights @ means, rtol=1e-6)
    np.testing.assert_allclose(std**2, found.weights @ squares - mean**2, rtol=1e-6)


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

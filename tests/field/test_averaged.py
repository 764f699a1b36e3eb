"""The field averaged over hyper-parameters: draws of their posterior, weighted members, wide where labels are few."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import halfnorm, norm

from cases import random_case
from graphmrf.field import COMPONENTS, Covariance, Space
from graphmrf.field import averaged as averaged_module
from graphmrf.field.averaged import (
    BLENDED,
    CONTAMINATED,
    DOUBT,
    AveragedPosterior,
    _begin,
    mean_alone,
    median,
    noise_ratios,
    point_weight,
    sample_hyperparameters,
)
from graphmrf.field.correlations import Correlations, Smoothings
from graphmrf.field.design import make_design
from graphmrf.field.exact import ExactPosterior
from graphmrf.field.fit import IntervalCalibration, fit_exact
from graphmrf.field.hyperparameters import PRIOR_TOTAL, Hyperparameters
from graphmrf.field.matern import eigen
from graphmrf.field.posterior import Mixture
from graphmrf.linalg.dense import Factor

CASE = random_case(9, n=40, p=2, labelled=12)
ROWS, REST = np.flatnonzero(CASE.known), np.flatnonzero(~CASE.known)
Z = (CASE.y[ROWS] - CASE.y[ROWS].mean()) / CASE.y[ROWS].std()
STEPS = (20, 6, 3)


@cache
def covariance() -> Covariance:
    return Covariance.of(make_design(CASE.graph, CASE.X), eigen(CASE.graph), ROWS, COMPONENTS)


@cache
def averaged(weight: float = 0.0) -> AveragedPosterior:
    points, _ = sample_hyperparameters(covariance(), Z, steps=STEPS)
    return AveragedPosterior(ExactPosterior(covariance(), median(points), Z), [], points, weight)


def test_standard_deviations_are_half_normal_and_add_up_to_the_total() -> None:
    space, rng = Space(COMPONENTS, 2), np.random.default_rng(0)
    x = rng.standard_normal((4000, len(space.names) + 1))
    x[:, -1] = 0.0
    thetas = np.array([space.from_normal(row, (2.0, 1.0)) for row in x])
    names = [c.name for c in COMPONENTS if c.parameters]
    places = [space.names.index(name) for name in names]
    assert np.exp(thetas[:, places]).sum(axis=1).mean() == pytest.approx(2.0, rel=0.05)
    scale = np.sqrt(2.0 / len(names))
    for level in (0.25, 0.5, 0.9):
        expected = scale * halfnorm.ppf(level)
        assert np.quantile(np.exp(0.5 * thetas[:, places[0]]), level) == pytest.approx(expected, rel=0.1)
    assert thetas[:, space.names.index("omega")].std() == pytest.approx(2.0, rel=0.1)


@given(st.lists(st.floats(-60.0, 60.0), min_size=18, max_size=18))
def test_every_coordinate_leads_to_a_point_within_the_bounds(coordinates: list[float]) -> None:
    space = Space(COMPONENTS, 2)
    x = np.resize(np.array(coordinates), len(space.names) + 1)
    theta = space.from_normal(x)
    low, high = np.array(space.bounds).T
    assert ((low <= theta) & (theta <= high)).all()


def test_draws_are_from_the_posterior() -> None:
    """Against importance sampling from the prior, of the log variance of the noise."""
    few = covariance().part(np.arange(5))
    z, space, rng = Z[:5], Space(COMPONENTS, 2), np.random.default_rng(1)
    prior = [
        Hyperparameters({**space.read(space.from_normal(x[5:])), "ratios": noise_ratios(x[:5])})
        for x in rng.standard_normal((1500, 5 + len(space.names) + 1))
    ]
    logs = np.array([ExactPosterior(few, h, z).log_likelihood for h in prior])
    weights = np.exp(logs - logs.max())
    values = np.sqrt([h["noise"] for h in prior])
    expected = float(weights @ values / weights.sum())
    spread = float(np.sqrt(weights @ (values - expected) ** 2 / weights.sum()))
    draws, evaluations = sample_hyperparameters(few, z, steps=(40, 200, 2))
    assert evaluations >= 440
    assert np.mean(np.sqrt([h["noise"] for h in draws])) == pytest.approx(expected, abs=0.35 * spread)


def test_the_same_seed_draws_the_same() -> None:
    one, other, another = (sample_hyperparameters(covariance(), Z, steps=STEPS, seed=seed)[0] for seed in (3, 3, 4))
    assert [h.table() for h in one] == [h.table() for h in other]
    assert one[0].table() != another[0].table()


def test_members_are_exact_posteriors_weighted() -> None:
    posterior = averaged(0.25)
    alone = mean_alone(covariance(), Z, posterior.points)
    plain = [ExactPosterior(covariance(), h, Z) for h in (*posterior.points, alone, posterior.base.h)]
    weights = [0.75 * posterior.belief / 6] * 6 + [0.75 * (1.0 - posterior.belief), 0.25]
    np.testing.assert_allclose(posterior.weights, weights)
    means, variances = (np.array(each) for each in zip(*(member.moments(REST) for member in plain), strict=True))
    mean = weights @ means
    np.testing.assert_allclose(posterior.moments(REST)[0], mean, atol=1e-6)
    np.testing.assert_allclose(posterior.moments(REST)[1], weights @ (variances + (means - mean) ** 2), rtol=1e-5)
    own = posterior.coefficients["own"][0]
    np.testing.assert_allclose(own, weights @ np.array([each.coefficients["own"][0] for each in plain]), atol=1e-6)
    assert sum(posterior.shares.values()) == pytest.approx(1.0)
    draws = posterior.draw(REST, 6000, np.random.default_rng(0))
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=6 * np.sqrt(posterior.moments(REST)[1].max() / 6000))
    image = posterior.times_covariance(REST, np.ones((REST.size, 1)))[:, 0]
    noise = np.dot(weights, [member.h["noise"] for member in plain])
    assert posterior.h["noise"] == pytest.approx(noise)
    assert image.sum() + noise * REST.size == pytest.approx(draws.sum(axis=1).var(), rel=0.12)


def test_joint_covariances_of_many_nodes_are_of_members_chosen_by_their_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    posterior = averaged(0.25)
    for most, count in ((REST.size, 6), (REST.size - 1, 6), (REST.size - 1, 40)):
        monkeypatch.setattr(averaged_module, "_JOINT", (most, count))
        weights, members = posterior._joint(REST)
        share = [sum(w for w, one in zip(weights, members, strict=True) if one is each) for each in posterior.members]
        np.testing.assert_allclose(share, posterior.weights, atol=1e-12 if most == REST.size else 1.0 / count)
        assert sum(share) == pytest.approx(1.0)


def test_missing_features_are_averaged_over_together_with_hyperparameters() -> None:
    rng, base = np.random.default_rng(0), averaged().base
    made = base.covariance.design
    designs = [made.elsewhere(CASE.graph, CASE.X + 0.3 * rng.standard_normal((40, 2))) for _ in range(2)]
    posterior = AveragedPosterior(base, designs, averaged().points, 0.5)
    assert len(posterior.members) == 6 + 1 + 2
    for design in designs:
        design.groups[:, ROWS] = made.groups[:, ROWS]  # labels keep to the expected features
    wholes = [Covariance.of(design, eigen(CASE.graph), ROWS, COMPONENTS) for design in designs]
    alone, belief = mean_alone(covariance(), Z, posterior.points), posterior.belief
    of_all = [(k % 2, h) for k, h in enumerate(posterior.points)] + [(0, alone), (0, base.h), (1, base.h)]
    means = np.array([ExactPosterior(wholes[k], h, Z).moments(REST)[0] for k, h in of_all])
    weights = np.repeat([0.5 * belief / 6, 0.5 * (1.0 - belief), 0.25], [6, 1, 2])
    np.testing.assert_allclose(posterior.moments(REST)[0], weights @ means, atol=1e-6)


def test_only_what_features_change_is_uncertain_by_their_few_draws() -> None:
    base, points = averaged().base, averaged().points
    made = base.covariance.design
    alike = AveragedPosterior(base, [made, made], points, 0.5)  # hyper-parameters differ, features do not
    found = alike._of_members(REST)
    Z3 = np.random.default_rng(0).standard_normal((REST.size, 3))
    drawn, about = found.about_draws(alike._draws)
    assert drawn.sum() == pytest.approx(1.0 - alike.weights[6])
    members = [[0, 2, 4, 7], [1, 3, 5, 8]]
    each = np.array([np.average(found.means[own], axis=0, weights=alike.weights[own]) for own in members])
    np.testing.assert_allclose(about, each - np.average(each, axis=0, weights=drawn), atol=1e-9)
    between = 2.0 / 3.0 * drawn @ about**2  # 5 pairs: 5 / 3 of what draws of features show
    np.testing.assert_allclose(alike.moments(REST)[1] - found.moments[1], between, atol=1e-9)
    image = AveragedPosterior(base, [], points, 0.5).times_covariance(REST, Z3)
    more = alike.times_covariance(REST, Z3) - image
    spread = found.means - alike.weights @ found.means
    assert np.linalg.norm(more) < 0.5 * np.linalg.norm(2.0 / 3.0 * spread.T @ (alike.weights[:, None] * (spread @ Z3)))


def test_the_mean_of_the_labels_counts_where_the_field_expects_little() -> None:
    posterior = averaged()
    means, variances = zip(*(ExactPosterior(covariance(), h, Z).moments(REST) for h in posterior.points), strict=True)
    mean, total = np.mean(means, axis=0), np.mean(variances, axis=0) + np.var(means, axis=0)
    expected = mean.var() / (mean.var() + total.mean())
    assert posterior.belief == pytest.approx(expected / (expected + DOUBT / Z.size), rel=1e-4)
    alone = ExactPosterior(covariance(), mean_alone(covariance(), Z, posterior.points), Z)
    told, spread = alone.moments(REST)
    assert np.ptp(told) < 1e-9
    assert abs(told[0]) < 0.5
    assert (spread > 1.0).all()


def test_a_field_that_predicts_nothing_leaves_the_mean() -> None:
    point = mean_alone(covariance(), Z, averaged().points)
    posterior = AveragedPosterior(ExactPosterior(covariance(), point, Z), [], [point], 0.0)
    assert posterior.belief == pytest.approx(0.0, abs=1e-9)
    assert posterior.shares["noise"] == pytest.approx(1.0)


def test_few_labels_have_more_than_the_usual_noise() -> None:
    usual, growth = CONTAMINATED
    ratios = noise_ratios(np.random.default_rng(0).standard_normal(100_000))
    assert np.mean(ratios > 1.0) == pytest.approx(norm.sf(usual), rel=0.1)
    assert np.mean(ratios > np.exp(growth)) == pytest.approx(norm.sf(usual + 1.0), rel=0.6)
    assert np.isfinite(noise_ratios(np.array([-60.0, 60.0]))).all()


@pytest.mark.parametrize("unit", [1.0, 0.01])
def test_draws_begin_where_far_labels_have_noise_as_large_as_their_distance(unit: float) -> None:
    z = unit * np.append(norm.ppf((np.arange(41) + 0.5) / 41), [30.0, -300.0])
    x = _begin(z, 5, np.arange(43))
    np.testing.assert_allclose(noise_ratios(x[5:]), [*np.ones(41), 30.0**2, 300.0**2], rtol=0.2)
    assert np.exp(0.5 * PRIOR_TOTAL[1] * x[4]) == pytest.approx(unit, rel=0.1)
    assert not x[:4].any()


def test_draws_know_labels_by_their_values_and_features_alone() -> None:
    order = np.random.default_rng(2).permutation(ROWS.size)
    shuffled, mirrored = covariance().part(order), -Z[order]
    expected, found = (
        sample_hyperparameters(*pair, steps=STEPS)[0] for pair in ((covariance(), Z), (shuffled, mirrored))
    )
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_allclose(other["ratios"], one["ratios"][order], rtol=1e-6)
        assert other["noise"] == pytest.approx(one["noise"], rel=1e-6)


def test_a_label_left_out_has_no_part_in_the_weights_of_hyperparameters() -> None:
    """Importance weights bring the answer nearer to that of hyper-parameters drawn without the label."""
    points, _ = sample_hyperparameters(covariance(), Z, steps=(40, 120, 2))
    posterior = AveragedPosterior(ExactPosterior(covariance(), median(points), Z), [], points, 0.0)
    own = np.arange(Z.size) == int(np.argmax(np.abs(posterior.left_out[0])))
    others = covariance().part(~own)
    drawn, _ = sample_hyperparameters(others, Z[~own], steps=(40, 120, 2), seed=1)
    mean, variance = AveragedPosterior(ExactPosterior(others, drawn[0], Z[~own]), [], drawn, 0.0).moments(ROWS[own])
    told, spread = posterior.without(own)
    assert told[0] == pytest.approx(mean[0], abs=0.5 * np.sqrt(variance[0]))
    assert spread[0] == pytest.approx(variance[0], rel=1.0)
    np.testing.assert_allclose(posterior.left_out[0][own], Z[own] - told, atol=1e-8)


def test_shared_blocks_of_the_basis_are_those_of_every_level() -> None:
    plain, spanned = Correlations(eigen(CASE.graph), ROWS), Correlations(eigen(CASE.graph), ROWS, spanned=True)
    smooth = [Smoothings(eigen(CASE.graph), ROWS, CASE.X, spanned) for spanned in (False, True)]
    for omega, nu in ((3.0, 0.7), (500.0, 2.0)):
        for unit in (True, False):
            expected = plain.across(omega, nu, REST, unit_variance=unit)
            np.testing.assert_allclose(spanned.across(omega, nu, REST, unit_variance=unit), expected, atol=1e-7)
        np.testing.assert_allclose(smooth[1].at(omega, nu, REST), smooth[0].at(omega, nu, REST), atol=1e-7)


def test_the_point_estimate_takes_over_without_a_jump() -> None:
    first, last = BLENDED
    weights = [point_weight(labels) for labels in range(first - 2, last + 3)]
    assert weights[:3] == [0.0] * 3
    assert weights[-3:] == [1.0] * 3
    assert max(np.diff(weights)) <= 1.0 / (last - first) + 1e-12


@given(st.integers(0, 1000), st.floats(0.01, 0.99))
def test_quantiles_of_a_mixture_have_their_probability(seed: int, level: float) -> None:
    rng = np.random.default_rng(seed)
    mixture = Mixture(rng.dirichlet(np.ones(4)), rng.normal(size=(4, 3)), rng.exponential(size=(4, 3)) + 1e-3)
    found = mixture.quantile(level)
    below = mixture.weights @ norm.cdf((found - mixture.means) / np.sqrt(mixture.variances))
    np.testing.assert_allclose(below, level, atol=1e-6)


def test_calibration_narrows_only_what_labels_show() -> None:
    calibration = IntervalCalibration(np.full(100, 0.01), seen=1.0)
    factor = calibration.factor(np.array([0.5, 1.0, 2.0, 1e6]), 0.2)
    np.testing.assert_allclose(factor[:2], 0.2)
    assert factor[2] == pytest.approx(0.6)
    assert factor[3] == pytest.approx(1.0, abs=1e-5)
    assert (calibration.factor(np.array([0.5, 5.0]), 1.5) == 1.5).all()
    trusted = IntervalCalibration(np.full(100, 3.0), 1.0, 0.0)
    assert (trusted.factor(np.array([0.5, 5.0]), trusted.scale) == 1.0).all()


def test_two_labels_and_constant_labels_have_answers() -> None:
    y = np.full(40, np.nan)
    y[[3, 20]] = 1.0, 2.0
    mean, std = fit_exact(CASE.graph, CASE.X, y).predictions
    assert np.isfinite(mean).all()
    assert (std[np.isnan(y)] > 0.1).all()
    y[[3, 20]] = 2.0
    np.testing.assert_allclose(fit_exact(CASE.graph, CASE.X, y).predictions[0], 2.0)


def test_the_median_point_has_the_mean_noise_of_the_draws() -> None:
    points = averaged().points
    found = median(points)
    assert found["noise"] == pytest.approx(np.mean([h["noise"] for h in points]))
    assert "ratios" not in found
    for name in ("omega", "field", "own"):
        assert found[name] == pytest.approx(np.median([h[name] for h in points]))
    np.testing.assert_allclose(found["lengths"], np.median([h["lengths"] for h in points], axis=0))


def test_a_singular_covariance_is_impossible(monkeypatch: pytest.MonkeyPatch) -> None:
    assert np.isfinite(averaged_module._log_likelihood(covariance(), Z, averaged().points[0]))
    monkeypatch.setattr(Factor, "of", lambda *_: None)
    assert averaged_module._log_likelihood(covariance(), Z, averaged().points[0]) == -np.inf

"""Every posterior of the field keeps one contract, exact, sparse or averaged over features: against dense algebra."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import random_case
from graphmrf import Graph
from graphmrf._typing import Floats, Ints
from graphmrf.field import (
    COMPONENTS,
    Covariance,
    FittedField,
    Hyperparameters,
    Posterior,
    Space,
    fit_exact,
    fit_sparse,
)
from graphmrf.field.averaged import AveragedPosterior
from graphmrf.field.design import Design, LabelledGraph, make_design, with_distant
from graphmrf.field.exact import ExactPosterior
from graphmrf.field.foresight import Foresight
from graphmrf.field.matern import eigen
from graphmrf.field.multiple_imputation import PAIRS
from graphmrf.field.posterior import Mixture
from graphmrf.field.sparse import SparsePosterior
from graphmrf.field.sparse_system import EffectColumns, FieldSystem

CASE = random_case(9, n=40, p=2, labelled=24)
ROWS, REST = np.flatnonzero(CASE.known), np.flatnonzero(~CASE.known)
Z = (CASE.y[ROWS] - CASE.y[ROWS].mean()) / CASE.y[ROWS].std()
OWN = np.arange(ROWS.size) % 4 == 0


@cache
def exact() -> tuple[ExactPosterior, list[Floats]]:
    """The field, and the covariances of all nodes, noise left out, of which the labels' is a part."""
    space = Space(COMPONENTS, 2)
    h, made = space.read(space.start), make_design(CASE.graph, CASE.X)
    whole = Covariance.of(made, eigen(CASE.graph), np.arange(40), COMPONENTS)
    K = h.constant + sum(whole.across(h, np.arange(40)).values())
    return ExactPosterior(Covariance.of(made, eigen(CASE.graph), ROWS, COMPONENTS), h, Z), [np.asarray(K)]


@cache
def sparse() -> tuple[SparsePosterior, list[Floats]]:
    made = with_distant(CASE.graph, make_design(CASE.graph, CASE.X), 0.6)
    names = ("own", "neighbours", "second", "distant")
    columns = EffectColumns.of(40, dict(zip(names, made.groups, strict=True)), dict.fromkeys(names, 0.5))
    projected = FieldSystem(LabelledGraph(CASE.graph, ROWS), 7.0, 4.0, 1e-10).project(columns.F, Z)
    beta = projected.equations.given(columns.variances(dict.fromkeys(names, 0.3)), 0.15)
    h = Hyperparameters({"field": 0.6, "omega": 7.0, "nu": 1.0, "noise": 0.15})
    R = np.linalg.inv(np.eye(40) + 7.0 * CASE.graph.N.toarray())
    R /= np.sqrt(np.outer(np.diag(R), np.diag(R)))
    K = (columns.F * beta.variances) @ columns.F.T + 0.6 * R
    return SparsePosterior(columns, projected, beta, h, made, COMPONENTS), [np.asarray(K)]


@cache
def averaged() -> tuple[AveragedPosterior, list[Floats]]:
    rng, (base, _) = np.random.default_rng(0), exact()
    made = base.covariance.design
    designs = [made.elsewhere(CASE.graph, CASE.X + 0.2 * rng.standard_normal((40, 2))) for _ in range(3)]
    wholes = [Covariance.of(at_labels(each, made), eigen(CASE.graph), np.arange(40), COMPONENTS) for each in designs]
    blocks = [base.h.constant + sum(whole.across(base.h, np.arange(40)).values()) for whole in wholes]
    return AveragedPosterior(base, designs), [np.asarray(K) for K in blocks]


def at_labels(design: Design, expected: Design) -> Design:
    """The features of a draw, but of labelled nodes the expected ones."""
    return replace(design, groups=np.where(CASE.known[:, None], expected.groups, design.groups))


every = pytest.mark.parametrize("make", [exact, sparse, averaged])
Make = Callable[[], tuple[Posterior, list[Floats]]]


def conditional(K: Floats, noise: float, target: Ints, given: Ints, z: Floats) -> tuple[Floats, Floats]:
    """Mean and covariance, noise included, of some nodes given the labels of others."""
    gain = np.linalg.solve(K[np.ix_(given, given)] + noise * np.eye(given.size), K[np.ix_(given, target)]).T
    return gain @ z, K[np.ix_(target, target)] - gain @ K[np.ix_(given, target)] + noise * np.eye(target.size)


def pooled(
    blocks: list[Floats], noise: float, target: Ints, given: Ints, z: Floats, between: float = 1.0
) -> tuple[Floats, Floats]:
    """Mean and variance by Rubin's rule, which of one covariance are its own."""
    means, spreads = zip(*(conditional(K, noise, target, given, z) for K in blocks), strict=True)
    return np.mean(means, axis=0), np.mean([np.diag(S) for S in spreads], axis=0) + between * np.var(means, axis=0)


STUDENT = PAIRS / (PAIRS - 2.0)


@every
def test_moments_are_those_of_dense_algebra(make: Make) -> None:
    posterior, blocks = make()
    mean, variance = pooled(blocks, posterior.h.noise, REST, ROWS, Z, STUDENT)
    np.testing.assert_allclose(posterior.moments(REST)[0], mean, atol=1e-6)
    np.testing.assert_allclose(posterior.moments(REST)[1], variance, rtol=1e-5)
    assert posterior.moments(REST[:0])[0].shape == (0,)


def test_variance_of_imputed_features_is_noise_of_the_label() -> None:
    base, (K,) = exact()
    own = np.random.default_rng(3).uniform(0.0, 2.0, ROWS.size)
    covariance = replace(base.covariance, imputed=own)
    posterior, noisy = ExactPosterior(covariance, base.h, Z), K.copy()
    noisy[ROWS, ROWS] += own
    mean, variance = pooled([noisy], base.h.noise, REST, ROWS, Z)
    np.testing.assert_allclose(posterior.moments(REST)[0], mean, atol=1e-6)
    np.testing.assert_allclose(posterior.moments(REST)[1], variance, rtol=1e-5)
    found, spread = pooled([noisy], base.h.noise, ROWS[OWN], ROWS[~OWN], Z[~OWN])
    np.testing.assert_allclose(posterior.without(OWN), (found, spread), atol=1e-6)
    np.testing.assert_array_equal(covariance.part(OWN).imputed, own[OWN])


@every
def test_draws_have_the_moments(make: Make) -> None:
    posterior, _ = make()
    mean, variance = posterior.moments(REST)
    draws = posterior.draw(REST, 6000, np.random.default_rng(0))
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=5 * np.sqrt(variance.max() / 6000))
    np.testing.assert_allclose(draws.var(axis=0), variance, rtol=0.12)


@every
def test_left_out_is_what_the_field_without_the_label_says(make: Make) -> None:
    posterior, blocks = make()
    residual, variance = posterior.left_out
    for i in range(ROWS.size):
        others = np.delete(np.arange(ROWS.size), i)
        mean, spread = pooled(blocks, posterior.h.noise, ROWS[[i]], ROWS[others], Z[others])
        assert residual[i] == pytest.approx(Z[i] - mean[0], abs=1e-5)
        assert variance[i] == pytest.approx(spread[0], rel=1e-4)


@every
def test_without_a_fold_it_is_conditioned_on_the_others(make: Make) -> None:
    posterior, blocks = make()
    expected, spread = pooled(blocks, posterior.h.noise, ROWS[OWN], ROWS[~OWN], Z[~OWN])
    mean, variance = posterior.without(OWN)
    np.testing.assert_allclose(mean, expected, atol=2e-3 if make is sparse else 1e-6)
    if make is sparse:  # its variances are those given all other labels, those of the fold included
        assert (variance <= spread * 1.0001).all()
    else:
        np.testing.assert_allclose(variance, spread, rtol=1e-5)


@every
def test_shares_add_up_and_coefficients_are_those_of_the_features(make: Make) -> None:
    posterior, _ = make()
    assert sum(posterior.shares.values()) == pytest.approx(1.0)
    assert min(posterior.shares.values()) >= 0.0
    assert set(posterior.shares) <= {component.name for component in COMPONENTS}
    assert all(mean.shape == std.shape == (2,) for mean, std in posterior.coefficients.values())
    assert "own" in posterior.coefficients


@every
def test_times_covariance_is_that_of_dense_algebra(make: Make) -> None:
    posterior, blocks = make()
    noisy = [_given(K, posterior.h.noise, REST, ROWS) for K in blocks]
    means = np.array([conditional(K, posterior.h.noise, REST, ROWS, Z)[0] for K in blocks])
    apart = means - means.mean(axis=0)
    expected = np.mean(noisy, axis=0) + STUDENT * apart.T @ apart / len(means)
    np.testing.assert_allclose(posterior.times_covariance(REST, np.eye(REST.size)), expected, atol=1e-6)


def _given(K: Floats, noise: float, target: Ints, given: Ints) -> Floats:
    """Covariance of some nodes given the labels of others, noise left out."""
    return conditional(K, noise, target, given, np.zeros(given.size))[1] - noise * np.eye(target.size)


@every
def test_variances_given_other_labels_are_those_of_dense_algebra(make: Make) -> None:
    posterior, blocks = make()
    rows, nodes = np.arange(0, 40, 3), np.arange(1, 40, 3)
    K = exact()[1][0] if make is averaged else blocks[0]
    expected = np.diag(_given(K, posterior.h.noise, nodes, rows)) + posterior.h.noise
    if make is averaged:
        expected = expected * (posterior.moments(REST)[1].mean() / exact()[0].moments(REST)[1].mean())
    np.testing.assert_allclose(posterior.variances_given(rows, nodes), expected, rtol=1e-3)


@every
def test_joint_covariance_of_labels_held_out_is_that_of_dense_algebra(make: Make) -> None:
    posterior, blocks = make()
    found = [conditional(K, posterior.h.noise, ROWS[OWN], ROWS[~OWN], Z[~OWN]) for K in blocks]
    residuals = np.array([Z[OWN] - mean for mean, _ in found])
    expected = np.mean([S for _, S in found], axis=0) + np.cov(residuals.T, bias=True)
    residual, spread = posterior.held_out(OWN)
    np.testing.assert_allclose(residual, residuals.mean(axis=0), atol=5e-3)
    np.testing.assert_allclose(spread, expected, atol=1e-3)


@every
def test_the_same_graph_elsewhere_is_known_by_its_features_only(make: Make) -> None:
    posterior, _ = make()
    mean, variance = posterior.elsewhere(CASE.graph, CASE.X)
    expected = np.mean([_by_features(member) for member in _members(posterior)], axis=0)
    np.testing.assert_allclose(mean, expected, atol=1e-6)
    assert (variance > posterior.h.field + posterior.h.noise).all()


def _members(posterior: Posterior) -> list[ExactPosterior | SparsePosterior]:
    if isinstance(posterior, AveragedPosterior):  # every draw has centres of its own, so the expected features differ
        here = posterior.base.covariance.design.elsewhere(CASE.graph, CASE.X)
        assert np.allclose(here.groups, posterior.base.covariance.design.groups)
        return [_moved(member) for member in posterior.members]
    assert isinstance(posterior, ExactPosterior | SparsePosterior)
    return [posterior]


def _moved(member: ExactPosterior) -> ExactPosterior:
    """The member, with the expected features in its own units at all nodes that are not labelled ones."""
    object.__setattr__(member, "_asked", member.covariance.design.elsewhere(CASE.graph, CASE.X))
    return member


def _by_features(member: ExactPosterior | SparsePosterior) -> Floats:
    """Mean of all nodes by the components that transfer, from dense algebra."""
    if isinstance(member, SparsePosterior):
        return np.asarray(member.projected.F @ member.beta.mean)
    field, h = member.covariance, member.h
    asked = getattr(member, "_asked", field.design)
    p, rows = field.design.p, field.rows
    K = np.full((40, rows.size), h.constant)
    for k, name in enumerate(("own", "neighbours", "second")):
        K += h[name] / p * asked.groups[k] @ field.design.groups[k][rows].T
    values, V = np.linalg.eigh(CASE.graph.N.toarray())
    spectrum = (1.0 + h.omega * values) ** -h.nu
    T = (V * (spectrum / spectrum.mean())) @ V.T
    damped = (V * np.where(values < 1e-9, 1.0, spectrum / spectrum.mean())) @ V.T  # levels count as others do
    K += h.smoothed / p * (damped @ asked.groups[0]) @ (T @ field.design.groups[0])[rows].T
    gaps = (asked.Z[:, None] - field.design.Z[rows][None]) / h.lengths
    K += h.nonlinear * np.exp(-0.5 * np.sum(gaps**2, axis=2))
    labels = field.triangle.square(field.among(h)[0])
    return np.asarray(K @ np.linalg.solve(labels, Z))


@every
def test_held_out_regions_are_told_by_features_of_the_others(make: Make) -> None:
    posterior, _ = make()
    mean, variance = posterior.by_features(OWN)
    if isinstance(posterior, ExactPosterior):
        units = np.eye(Z.size)[~OWN]
        W = np.array([replace(posterior, z=unit).by_features(OWN)[0] for unit in units])
        np.testing.assert_allclose(mean, W.T @ Z[~OWN], atol=1e-8)
        K = posterior.covariance.triangle.square(posterior.covariance.among(posterior.h)[0])
        told, both = W.T @ K[np.ix_(~OWN, OWN)], W.T @ K[np.ix_(~OWN, ~OWN)] @ W
        np.testing.assert_allclose(variance, np.diag(K[np.ix_(OWN, OWN)] - told - told.T + both), rtol=1e-6)
    assert (variance > posterior.h.noise).all()


def test_suggested_nodes_take_most_variance_from_the_others_one_by_one() -> None:
    posterior, labels = exact()[0], np.where(CASE.known, CASE.y, np.nan)
    field: Any = SimpleNamespace(posterior=posterior, standardised=posterior.mixture(REST), y=labels, rows=ROWS, seed=0)
    chosen = list(Foresight(field)._greedy(3, None))
    places = [place for place, _, _ in chosen]
    for step, (place, gain, _) in enumerate(chosen):
        rows, others = np.append(ROWS, REST[places[:step]]), np.delete(REST, places[:step])
        asked = set(range(REST.size)) - set(places[:step])
        gains = {i: _gain(posterior, rows, others[others != REST[i]], int(REST[i])) for i in asked}
        assert max(gains, key=gains.__getitem__) == place
        assert gain == pytest.approx(gains[place], rel=1e-6)


def _gain(posterior: ExactPosterior, rows: Ints, nodes: Ints, label: int) -> float:
    before, after = (posterior.variances_given(np.sort(given), nodes) for given in (rows, np.append(rows, label)))
    return float((before - after).sum())


RENUMBERED = [(fit_exact, 150, 1e-6), (fit_exact, 420, 1e-6), (fit_sparse, 150, 2e-3)]


@pytest.mark.parametrize(("fit", "labelled", "most"), RENUMBERED)
def test_numbers_of_nodes_do_not_matter(fit: Callable[..., FittedField], labelled: int, most: float) -> None:
    case, rng = random_case(4, n=labelled + 40, p=2, labelled=labelled), np.random.default_rng(0)
    y = np.where(case.known, case.X @ [1.0, -1.0] + 0.3 * case.y, np.nan)
    order = rng.permutation(y.size)
    found, again = fit(case.graph, case.X, y), fit(Graph(case.W[np.ix_(order, order)]), case.X[order], y[order])
    for one, other in zip(found.predictions, again.predictions, strict=True):
        np.testing.assert_allclose(other, one[order], atol=most * found.scale.unit)


@pytest.mark.parametrize("p", [0, 1])
def test_numbers_of_nodes_do_not_matter_where_features_do_not_tell_nodes_apart(
    p: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphmrf.field.averaged.SLICES", (5, 4, 1))
    monkeypatch.setattr("graphmrf.field.averaged.FOLD_STEPS", (3, 2, 1))
    case, rng, n = random_case(4, n=350, p=1, labelled=12), np.random.default_rng(0), 350
    X, y = np.ones((n, p)) * (np.arange(n) % 2)[:, None], np.where(case.known, np.round(2.0 * case.y), np.nan)
    order = rng.permutation(n)
    found, again = fit_exact(case.graph, X, y), fit_exact(Graph(case.W[np.ix_(order, order)]), X[order], y[order])
    for one, other in zip(found.predictions, again.predictions, strict=True):
        np.testing.assert_allclose(other, one[order], atol=1e-6 * found.scale.unit)


def test_certain_means_within_the_range_of_the_labels_are_not_hedged() -> None:
    z = np.random.default_rng(0).normal(size=50)
    inside = Mixture(np.array([0.4, 0.6]), np.array([[-1.0, 0.5], [0.5, 0.2]]), np.full((2, 2), 0.1))
    for before, after in zip(inside.moments, inside.hedged(z).moments, strict=True):
        np.testing.assert_array_equal(after, before)


@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e6), st.integers(2, 40))
def test_hedged_means_stay_between_the_mean_of_the_labels_and_what_was_stated(m: float, v: float, labels: int) -> None:
    z = np.linspace(-1.5, 1.5, labels)
    mean, variance = Mixture(np.ones(1), np.array([[m]]), np.array([[v]])).hedged(z).moments
    assert min(0.0, m) - 1e-9 <= mean[0] <= max(0.0, m) + 1e-9
    np.testing.assert_allclose(variance, v + (mean - m) ** 2, rtol=1e-6)  # what is taken from the mean is uncertainty
    if v > labels:
        assert abs(mean[0]) <= 1.5 + 1e-9


def test_an_isolated_node_with_features_beyond_all_labels_is_predicted_near_them_and_widely() -> None:
    rng, n = np.random.default_rng(3), 150
    u, v = rng.integers(0, n - 1, (2, 4 * n))
    graph, X = Graph.from_edges(u[u != v], v[u != v], n_nodes=n), 0.05 * rng.normal(size=(n, 2))
    y = X @ [1.0, -0.5] + 0.03 * rng.normal(size=n)
    X[-1] = 3.0  # 60 standard deviations
    field = fit_exact(graph, X, np.where((rng.random(n) < 0.6) & (np.arange(n) < n - 1), y, np.nan))
    mean, std = field.predictions
    labels = field.scale.y
    assert labels.min() - 1e-9 <= mean[-1] <= labels.max() + 1e-9
    assert std[-1] > 3 * np.median(std[std > 0])


@given(st.floats(-30.0, 30.0), st.floats(0.1, 900.0), st.floats(-2.0, 2.0), st.floats(0.1, 9.0), st.integers(4, 40))
def test_hedging_is_the_formula_for_any_origin_and_usual_variance(
    m: float, v: float, origin: float, usual: float, labels: int
) -> None:
    z = np.random.default_rng(labels).normal(size=labels)
    wide = max(usual, 1.0) ** 0.5
    doubt = (v / (labels / (labels - 3))) ** 0.5 / wide
    low, high = origin + wide * (z.min() - origin), origin + wide * (z.max() - origin)
    kept = m - min(doubt, 1.0) * (m - min(max(m, low), high))
    expected = origin + min(1.0, 1.0 / doubt) * (kept - origin)
    means, within = np.array([[m - 0.3], [m + 0.1]]), np.full((2, 1), v - 0.03)  # of mean m and variance v
    mean, variance = Mixture(np.array([0.25, 0.75]), means, within).hedged(z, origin, usual).moments
    assert mean[0] == pytest.approx(expected, abs=1e-9)
    assert variance[0] == pytest.approx(v + (expected - m) ** 2, rel=1e-9)

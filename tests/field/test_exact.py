"""The general field against dense algebra: covariance, likelihood, posterior."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import fractional_matrix_power
from scipy.stats import multivariate_normal

from cases import random_case
from families import pieces
from graphmrf._typing import Floats, Ints
from graphmrf.field import COMPONENTS, Covariance, Hyperparameters, Space, exact
from graphmrf.field.averaged import AveragedPosterior
from graphmrf.field.components import kernels
from graphmrf.field.components.features import Smoothed
from graphmrf.field.covariance import OtherGraph
from graphmrf.field.design import Design, make_design, with_distant
from graphmrf.field.exact import Evidence, ExactPosterior, maximise
from graphmrf.field.fit import cross_fit
from graphmrf.field.hyperparameters import _SMALL, LEAST_NOISE, Expansion, family_wins, trust_region_newton
from graphmrf.field.matern import eigen
from graphmrf.field.multiple_imputation import PAIRS
from graphmrf.field.posterior import student_variance
from graphmrf.graph import Graph
from graphmrf.selection import assign_folds

CASE = random_case(7, n=24, p=2, labelled=15)
GRAPH = CASE.graph
VALUES = np.linalg.eigvalsh(GRAPH.N.toarray())
ROWS, REST = np.flatnonzero(CASE.known), np.flatnonzero(~CASE.known)
Z = (CASE.y[ROWS] - CASE.y[ROWS].mean()) / CASE.y[ROWS].std()


def covariance(p: int = 2) -> Covariance:
    return covariance_of(make_design(GRAPH, CASE.X[:, :p]))


def covariance_of(made: Design, rows: Ints = ROWS) -> Covariance:
    return Covariance.of(made, eigen(GRAPH), rows, COMPONENTS)


def somewhere(p: int) -> Floats:
    start = Space(COMPONENTS, p).start
    return np.asarray(start + 0.3 * np.random.default_rng(p).normal(size=start.size))


def standardised(F: Floats) -> Floats:
    return np.asarray((F - F.mean(axis=0)) / F.std(axis=0))


def dense_correlation(omega: float, nu: float) -> Floats:
    K = fractional_matrix_power(np.eye(24) + omega * GRAPH.N.toarray(), -nu).real
    return np.asarray(K / np.sqrt(np.outer(np.diag(K), np.diag(K))))


def dense_kernel(F: Floats) -> Floats:
    return np.asarray(np.exp(-0.5 * ((F[:, None] - F[None]) ** 2).sum(axis=-1)))


@cache
def dense(p: int) -> Floats:
    """The covariance of all nodes, noise left out, written from the formula."""
    h = Space(COMPONENTS, p).read(somewhere(p))
    K = 1.0 + h.field * dense_correlation(h.omega, h.nu)
    if not p:
        return np.asarray(K)
    smoother = np.eye(24) - GRAPH.N.toarray()
    X = standardised(CASE.X[:, :p])
    groups = [X, standardised(smoother @ X), standardised(smoother @ smoother @ X)]
    for variance, F in zip((h.own, h.neighbours, h.second), groups, strict=True):
        K = K + variance / p * F @ F.T
    T = fractional_matrix_power(np.eye(24) + h.omega * GRAPH.N.toarray(), -h.nu).real
    smoothed = 24 * T @ X / np.trace(T)
    K = K + h.smoothed / p * smoothed @ smoothed.T
    features = np.hstack(groups[:2])
    K = K + h.nonlinear * dense_kernel(features / h.lengths)
    local = dense_kernel(features / h.local_length) * dense_correlation(h.local_omega, h.local_nu)
    return np.asarray(K + h.local * local)


def labels_covariance(p: int, h: Hyperparameters) -> Floats:
    return np.asarray(dense(p)[np.ix_(ROWS, ROWS)] + h.noise * np.eye(ROWS.size))


@cache
def posterior(p: int) -> ExactPosterior:
    return ExactPosterior(covariance(p), Space(COMPONENTS, p).read(somewhere(p)), Z)


@pytest.mark.parametrize("p", [0, 2])
def test_the_covariance_is_the_formula(p: int) -> None:
    field, h = covariance(p), Space(COMPONENTS, p).read(somewhere(p))
    expected = labels_covariance(p, h)
    np.testing.assert_allclose(field.triangle.square(field.among(h)[0]), expected, atol=1e-6)
    np.testing.assert_allclose(sum(field.across(h, REST).values()) + 1.0, dense(p)[np.ix_(REST, ROWS)], atol=1e-6)
    np.testing.assert_allclose(field.variances(h, REST), np.diag(dense(p))[REST] + h.noise, atol=1e-6)


@pytest.mark.parametrize("p", [0, 2])
def test_the_evidence_is_the_normal_log_density(p: int) -> None:
    theta = somewhere(p)
    K = labels_covariance(p, Space(COMPONENTS, p).read(theta))
    expected = multivariate_normal(np.zeros(Z.size), K).logpdf(Z)
    assert Evidence(covariance(p), Z).log_evidence(theta) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("p", [0, 1, 2])
def test_the_gradient_is_finite_differences(p: int) -> None:
    evidence, theta, step = Evidence(covariance(p), Z), somewhere(p), 1e-5
    expected = [
        (evidence(theta + step * e)[0] - evidence(theta - step * e)[0]) / (2 * step) for e in np.eye(theta.size)
    ]
    np.testing.assert_allclose(evidence(theta)[1], expected, atol=1e-6)


def test_smoothed_features_of_isolated_nodes_are_predicted_by_own_but_in_the_papers_own_model() -> None:
    graph, rng = pieces(), np.random.default_rng(1)
    field = Covariance.of(make_design(graph, rng.normal(size=(27, 2))), eigen(graph), np.arange(0, 27, 2), COMPONENTS)
    h, everywhere, X = Space(COMPONENTS, 2).read(somewhere(2)), np.arange(27), field.design.groups[0]
    T = fractional_matrix_power(np.eye(27) + h.omega * graph.N.toarray(), -h.nu).real
    smoothed = 27 * T @ X / np.trace(T)
    paper = Hyperparameters({**h, "paper_model": True})
    np.testing.assert_allclose(Smoothed().features(field, paper, everywhere), smoothed, atol=1e-6)
    linked = np.where(graph.isolated[:, None], 0.0, X)
    predicted = np.diag(linked.T @ smoothed) / np.diag(linked.T @ linked) * X
    expected = np.where(graph.isolated[:, None], predicted, smoothed)
    for own in (h.own, 0.0):  # a search may end without effects of own features
        found = Smoothed().features(field, Hyperparameters({**h, "own": own}), everywhere)
        np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(Smoothed().labelled(field, h)[0], expected[field.rows], atol=1e-6)
    there = OtherGraph(graph, field.design)
    elsewhere = Smoothed().features_elsewhere(field, h, there, everywhere)
    np.testing.assert_allclose(elsewhere[graph.isolated], expected[graph.isolated], atol=1e-6)


def test_the_gradient_is_finite_differences_where_an_isolated_node_has_a_label() -> None:
    graph, rng = pieces(), np.random.default_rng(1)
    rows = np.union1d(np.flatnonzero(graph.isolated), np.arange(0, 27, 2))
    field = Covariance.of(make_design(graph, rng.normal(size=(27, 2))), eigen(graph), rows, COMPONENTS)
    evidence, theta, step = Evidence(field, rng.normal(size=rows.size)), somewhere(2), 1e-5
    expected = [
        (evidence(theta + step * e)[0] - evidence(theta - step * e)[0]) / (2 * step) for e in np.eye(theta.size)
    ]
    np.testing.assert_allclose(evidence(theta)[1], expected, atol=1e-6)


@pytest.mark.parametrize("p", [0, 1, 2])
def test_the_curvature_is_the_average_information(p: int) -> None:
    evidence, theta, step, triangle = Evidence(covariance(p), Z), somewhere(p), 1e-5, covariance(p).triangle

    def at(point: Floats) -> Floats:
        return triangle.square(covariance(p).among(evidence.space.read(point))[0])

    slopes = np.array([(at(theta + step * e) - at(theta - step * e)) / (2 * step) for e in np.eye(theta.size)])
    P = np.linalg.inv(at(theta))
    U = slopes @ (P @ Z)
    expected = 0.5 * U @ P @ U.T + np.diag(evidence.space.penalty(theta)[2])
    np.testing.assert_allclose(evidence.expanded(theta)[1]()[1], expected, atol=1e-5)


@pytest.mark.parametrize("p", [0, 2])
def test_moments_are_the_conditional_ones(p: int) -> None:
    h = posterior(p).h
    gain = dense(p)[np.ix_(REST, ROWS)] @ np.linalg.inv(labels_covariance(p, h))
    mean, variance = posterior(p).moments(REST)
    np.testing.assert_allclose(mean, gain @ Z, atol=1e-5)
    spread = dense(p)[np.ix_(REST, REST)] - gain @ dense(p)[np.ix_(ROWS, REST)]
    np.testing.assert_allclose(variance, np.diag(spread) + h.noise, atol=1e-5)


def test_draws_have_the_conditional_moments() -> None:
    draws = posterior(2).draw(REST, 20_000, np.random.default_rng(0))
    gain = dense(2)[np.ix_(REST, ROWS)] @ np.linalg.inv(labels_covariance(2, posterior(2).h))
    spread = dense(2)[np.ix_(REST, REST)] - gain @ dense(2)[np.ix_(ROWS, REST)]
    spread += posterior(2).h.noise * np.eye(REST.size)
    np.testing.assert_allclose(draws.mean(axis=0), gain @ Z, atol=0.03)
    np.testing.assert_allclose(np.cov(draws.T), spread, atol=0.06)


@pytest.mark.parametrize("p", [0, 2])
def test_many_nodes_have_the_joint_covariance_of_few(p: int, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = np.random.default_rng(1).normal(size=(REST.size, 3))
    expected = posterior(p).times_covariance(REST, columns)
    monkeypatch.setattr(exact, "_JOINT", 0)
    monkeypatch.setattr(kernels, "_DRIFTING", 24)  # as many columns as nodes
    np.testing.assert_allclose(posterior(p).times_covariance(REST, columns), expected, atol=1e-5)
    draws = posterior(p).draw(REST, 20_000, np.random.default_rng(0))
    mean, variance = posterior(p).moments(REST)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.04)
    noise = posterior(p).h.noise * columns
    np.testing.assert_allclose(np.cov(draws.T) @ columns, expected + noise, atol=0.2)
    np.testing.assert_allclose(draws.var(axis=0), variance, rtol=0.06)


def test_left_out_is_what_a_field_without_the_label_says() -> None:
    residual, variance = posterior(2).left_out
    for i in range(ROWS.size):
        others = np.delete(ROWS, i)
        field = covariance_of(covariance(2).design, others)
        mean, spread = ExactPosterior(field, posterior(2).h, np.delete(Z, i)).moments(ROWS[[i]])
        assert residual[i] == pytest.approx(Z[i] - mean[0], abs=1e-5)
        assert variance[i] == pytest.approx(spread[0], abs=1e-5)


def test_out_of_fold_labels_have_no_part_in_the_hyperparameters() -> None:
    folds = assign_folds(Z.size, 5, seed=3)
    told, variance = cross_fit(posterior(2), folds, lambda own: Z[~own], 3)
    for fold in range(5):
        own = folds == fold
        others = covariance_of(covariance(2).design, ROWS[~own])
        altered = np.where(own, 100.0, Z)  # whatever the labels of the fold are
        h = maximise(others, altered[~own], seed=3)[0]
        mean, spread = ExactPosterior(others, h, altered[~own]).moments(ROWS[own])
        np.testing.assert_allclose(told[own], mean, atol=1e-8)
        np.testing.assert_allclose(variance[own], spread, atol=1e-8)


def test_out_of_fold_labels_of_uncertain_features_are_told_by_all_draws_of_these() -> None:
    folds, rng = assign_folds(Z.size, 5, seed=3), np.random.default_rng(0)
    designs = tuple(make_design(GRAPH, CASE.X[:, :2] + 0.3 * rng.normal(size=(24, 2))) for _ in range(3))
    told, variance = cross_fit(AveragedPosterior(posterior(2), designs), folds, lambda own: Z[~own], 3)
    own, expected = folds == 0, covariance(2).design
    h = maximise(covariance_of(expected, ROWS[~own]), Z[~own], seed=3)[0]
    means, spreads = [], []
    for made in designs:
        made.groups[:, ROWS[~own]] = expected.groups[:, ROWS[~own]]  # of labelled nodes none is drawn
        mean, spread = ExactPosterior(covariance_of(made, ROWS[~own]), h, Z[~own]).moments(ROWS[own])
        means.append(mean)
        spreads.append(spread)
    between = student_variance(PAIRS) * np.var(means, axis=0)
    np.testing.assert_allclose(told[own], np.mean(means, axis=0), atol=1e-8)
    np.testing.assert_allclose(variance[own], np.mean(spreads, axis=0) + between, atol=1e-8)


def test_coefficients_are_the_conditional_ones() -> None:
    p, h = 2, posterior(2).h
    P = np.linalg.inv(labels_covariance(p, h))
    groups = (*covariance(p).design.groups, covariance(p).smoothings.at(h.omega, h.nu, np.arange(len(CASE.y))))
    scales = [*covariance(p).design.scales, covariance(p).design.scales[0] * np.mean((1 + h.omega * VALUES) ** -h.nu)]
    names = {"own": "own", "neighbours": "neighbours", "second": "second neighbours", "smoothed": "smoothed"}
    for (name, title), group, scale in zip(names.items(), groups, scales, strict=True):
        F, weight = group[ROWS], h[name] / p
        mean, std = posterior(p).coefficients[title]
        np.testing.assert_allclose(mean * scale, weight * F.T @ P @ Z, atol=1e-5)
        np.testing.assert_allclose((std * scale) ** 2, np.diag(weight * np.eye(p) - weight**2 * F.T @ P @ F), atol=1e-5)


@pytest.mark.parametrize("p", [0, 2])
def test_labels_by_features_alone_are_those_of_dense_algebra(p: int) -> None:
    h, own = posterior(p).h, np.arange(Z.size) % 4 == 0
    features = dense(p) - h.field * dense_correlation(h.omega, h.nu)
    if p:
        groups = np.hstack(list(covariance(p).design.groups[:2]))
        features = features - h.local * dense_kernel(groups / h.local_length) * dense_correlation(
            h.local_omega, h.local_nu
        )
    A, B, K = ROWS[~own], ROWS[own], dense(p)
    W = np.linalg.solve(labels_covariance(p, h)[np.ix_(~own, ~own)], features[np.ix_(A, B)])
    spread = np.diag(
        K[np.ix_(B, B)] + h.noise * np.eye(B.size) - 2.0 * K[np.ix_(B, A)] @ W + features[np.ix_(B, A)] @ W
    )
    mean, variance = posterior(p).by_features(own)
    np.testing.assert_allclose(mean, W.T @ Z[~own], atol=1e-5)
    np.testing.assert_allclose(variance, np.maximum(spread, h.noise), atol=1e-5)


def test_effects_known_beforehand_are_told_again_by_the_labels_that_are_not_held_out() -> None:
    """They have a unit-information prior, in the covariance as in the part of it that features make."""
    h, own, offset = posterior(2).h, np.arange(Z.size) % 4 == 0, np.linspace(0.0, 1.0, 24)
    found = ExactPosterior(covariance(), h, Z, offset=offset, beta=np.array([0.3, -0.2]))
    _, features, _ = posterior(2)._feature_part
    T = fractional_matrix_power(np.eye(24) + h.omega * GRAPH.N.toarray(), -h.nu).real
    smoothed, K = (24 * T @ (CASE.X / CASE.X.std(axis=0)) / np.trace(T))[ROWS], labels_covariance(2, h)
    known = Z.size * smoothed @ np.linalg.inv(smoothed.T @ np.linalg.solve(K, smoothed)) @ smoothed.T
    K, features = K + known, features + known
    W = np.linalg.solve(K[np.ix_(~own, ~own)], features[np.ix_(~own, own)])
    mean, variance = found.by_features(own)
    np.testing.assert_allclose(mean, offset[ROWS[own]] + W.T @ (Z - offset[ROWS])[~own], atol=1e-4)
    spread = K[np.ix_(own, own)] - (2.0 * K - features)[np.ix_(own, ~own)] @ W
    np.testing.assert_allclose(variance, np.maximum(np.diag(spread), h.noise), atol=1e-4)


def test_shares_are_left_out_predictions_of_the_components() -> None:
    field, h = posterior(2), posterior(2).h
    P = np.linalg.inv(labels_covariance(2, h))
    residual = P @ Z / np.diag(P)
    blocks = field.covariance.across(h, ROWS)
    said = {name: block @ P @ Z - np.diag(block @ P) * residual for name, block in blocks.items()}
    T = fractional_matrix_power(np.eye(24) + h.omega * GRAPH.N.toarray(), -h.nu).real
    T *= 24 / np.trace(T)
    beta = h.smoothed / 2 * (T @ standardised(CASE.X))[ROWS].T @ P @ Z
    parts = {name: max(float(np.mean(each * Z)), 0.0) for name, each in said.items()}
    of_itself = float(np.mean(np.diag(T)[ROWS] * (standardised(CASE.X)[ROWS] @ beta) * Z))
    moved = min(of_itself, parts["smoothed"])
    parts |= {"own": parts["own"] + moved, "smoothed": parts["smoothed"] - moved}
    noise = float(np.mean(residual * Z))
    expected = {name: (1.0 - noise) * part / sum(parts.values()) for name, part in parts.items()}
    assert field.shares == pytest.approx(expected | {"noise": noise}, abs=1e-5)


@pytest.mark.parametrize("p", [0, 2])
def test_shares_add_up(p: int) -> None:
    shares = posterior(p).shares
    assert sum(shares.values()) == pytest.approx(1.0)
    assert min(shares.values()) >= 0.0


@pytest.mark.parametrize("p", [0, 2])
def test_components_that_the_field_has_not_have_no_share(p: int) -> None:
    space = Space(COMPONENTS, p, ("field", "noise"))
    field = ExactPosterior(covariance(p), space.read(space.start), Z)
    found = field.shares
    assert set(found) == {component.name for component in field.covariance.components}
    assert {name for name, share in found.items() if share} <= {"field", "noise"}


def test_levels_elsewhere_are_damped_by_component_or_isolated_node() -> None:
    other = pieces()
    there = OtherGraph(other, covariance().design.elsewhere(other, np.random.default_rng(0).normal(2.0, 1.0, (27, 2))))
    X = np.column_stack([np.ones(27), there.design.groups[0]])
    expected = np.linalg.solve(np.eye(27) + 3.0 * other.N.toarray(), X)
    for component in range(other.n_components):
        own = other.components == component
        level = np.sqrt(other.degrees * own) if own.sum() > 1 else own.astype(float)
        damping = 0.2 if own.sum() > 1 else 0.7
        expected -= (1.0 - damping) * np.outer(level, level @ X) / (level @ level)
    np.testing.assert_allclose(there.smoothed_levels(3.0, 1.0, (0.2, 0.7)), expected, atol=1e-6)


@pytest.mark.parametrize("paper", [False, True])
def test_the_search_ends_where_the_gradient_vanishes_or_a_bound_holds(paper: bool) -> None:
    evidence = Evidence(covariance(), Z, paper=paper)
    found = evidence.climb(evidence.space.start, 100)
    low, high = np.array(evidence.space.bounds).T
    value, derivatives = evidence.expanded(found.point)
    gradient, curvature = derivatives()
    inside = (found.point > low + 1e-9) & (found.point < high - 1e-9)
    step = np.linalg.solve(curvature[np.ix_(inside, inside)] + 1e-4 * np.eye(inside.sum()), gradient[inside])
    assert gradient[inside] @ step < 0.1  # twice what another Newton step would gain, were its model right
    assert value < evidence(evidence.space.start)[0]
    assert found.log_evidence == pytest.approx(evidence.log_evidence(found.point))
    assert found.log_posterior == pytest.approx(found.log_evidence - evidence.space.penalty(found.point)[0])


@given(st.floats(-16.0, 3.0), st.floats(0.05, 4.0))
def test_steps_in_softened_logarithms_bring_back_a_variance_that_has_no_slope(start: float, best: float) -> None:
    def misfit(x: Floats) -> tuple[float, Expansion]:
        v = float(np.exp(x[0]))
        return (v - best) ** 2, lambda: (np.array([2.0 * v * (v - best)]), np.array([[2.0 * v * v]]))

    point, value, _ = trust_region_newton(
        misfit, np.array([start]), [(-16.0, 4.0)], steps=100, least_gain=1e-9, softening=0.02
    )
    assert np.exp(point[0]) == pytest.approx(best, abs=1e-3)
    assert value == pytest.approx(misfit(point)[0], abs=1e-12)


def test_the_box_of_a_search_follows_what_steps_gain() -> None:
    """With a slope of -1 and no curvature every step goes to the end of the box, and is foreseen to gain its length."""
    shares, steps, here = iter((0.1, -1.0, 1.0, 0.5, 1.0, 1.0, 1.0, 1.0)), list[float](), [0.0, 0.0]

    def function(x: Floats) -> tuple[float, Expansion]:
        steps.append(float(x[0]) - here[0])
        value = here[1] - steps[-1] * next(shares) if steps[-1] else 0.0
        if value < here[1]:
            here[:] = [float(x[0]), value]
        return value, lambda: (-np.ones(1), np.zeros((1, 1)))

    point, value, evaluations = trust_region_newton(function, np.zeros(1), [(-9.0, 9.0)], steps=8, least_gain=1e-9)
    assert steps == pytest.approx([0.0, 1.0, 0.5, 0.125, 0.25, 0.25, 0.5, 1.0, 2.0])
    assert (point[0], value, evaluations) == (pytest.approx(here[0]), here[1], 9)


@pytest.mark.parametrize(("share", "least_gain", "evaluations"), [(0.1, 0.4, 2), (0.5, 0.4, 5), (0.1, 0.3, 5)])
def test_a_search_ends_where_a_step_gained_little_and_was_to_gain_little(
    share: float, least_gain: float, evaluations: int
) -> None:
    """Steps of length 1 are foreseen to gain 1: less than thrice a least gain of 0.4, more than thrice one of 0.3."""

    def function(x: Floats) -> tuple[float, Expansion]:
        return -share * float(x[0]), lambda: (-np.ones(1), np.zeros((1, 1)))

    found = trust_region_newton(function, np.zeros(1), [(-9.0, 9.0)], steps=4, least_gain=least_gain)
    assert found[2] == evaluations


def test_points_that_are_worse_need_no_derivatives() -> None:
    asked: list[float] = []

    def steep(x: Floats) -> tuple[float, Expansion]:
        def derivatives() -> tuple[Floats, Floats]:
            asked.append(float(x[0]))
            return np.array([4.0 * x[0] ** 3 - 4.0]), np.array([[0.1]])  # far too flat: steps go too far

        return float(x[0] ** 4 - 4.0 * x[0]), derivatives

    point, value, evaluations = trust_region_newton(steep, np.full(1, 0.7), [(-9.0, 9.0)], steps=100, least_gain=1e-9)
    assert point[0] == pytest.approx(1.0, abs=1e-3)
    assert value == pytest.approx(-3.0, abs=1e-6)
    assert len(asked) < evaluations
    values = [steep(np.array([x]))[0] for x in asked]
    assert values == sorted(values, reverse=True)


def test_a_variance_without_support_is_gone_in_a_few_steps() -> None:
    def misfit(x: Floats) -> tuple[float, Expansion]:
        v = float(np.exp(x[0]))
        return 5.0 * v + v * v, lambda: (np.array([5.0 * v + 2.0 * v * v]), np.array([[2.0 * v * v]]))

    point, _, evaluations = trust_region_newton(
        misfit, np.log([0.2]), [(-16.0, 4.0)], steps=100, least_gain=0.01, softening=0.02
    )
    assert point[0] == pytest.approx(-16.0)
    assert evaluations <= 5


def test_only_variances_of_components_are_softened() -> None:
    space = Space(COMPONENTS, 2)
    softened = {name for name, c in zip(space.names, space.softening, strict=True) if c}
    assert softened == {"own", "neighbours", "second", "smoothed", "nonlinear", "local", "field"}


def test_a_component_at_the_end_of_its_range_is_left_out() -> None:
    space = Space(COMPONENTS, 2)
    low = np.array(space.bounds)[:, 0]
    h, read = space.settled(np.where(np.array(space.names) == "local", low, space.start)), space.read(space.start)
    assert h.local == 0.0
    assert {name for name in h if name != "local" and not np.array_equal(h[name], read[name])} == set()
    nothing = space.settled(low)
    assert (nothing.own, nothing.field) == (0.0, 0.0)
    assert nothing.noise > 0.0


def test_the_paper_model_wins_where_the_outcome_is_drawn_from_it() -> None:
    rng, n = np.random.default_rng(3), 400
    u = rng.integers(0, n, 1200)
    graph = Graph.from_edges(u, (u + rng.integers(1, 4, 1200)) % n, n_nodes=n)
    X = rng.normal(size=(n, 2))
    M = np.eye(n) + 3.0 * graph.N.toarray()
    y = np.linalg.solve(M, X @ [1.0, -2.0]) + 0.5 * np.linalg.solve(np.linalg.cholesky(M).T, rng.normal(size=n))
    rows = np.sort(rng.permutation(n)[:150])
    z = (y[rows] - y[rows].mean()) / y[rows].std()
    h, _ = maximise(Covariance.of(make_design(graph, X), eigen(graph), rows, COMPONENTS), z)
    assert (h.own, h.nonlinear, h.local, h.nu) == (0.0, 0.0, 0.0, 1.0)
    assert 1.0 < h.omega < 9.0


def test_the_family_wins_where_an_effect_is_not_linear() -> None:
    rng = np.random.default_rng(5)
    case = random_case(5, n=200, p=1, labelled=150)
    rows = np.flatnonzero(case.known)
    y = np.cos(3.0 * case.X[rows, 0]) + 0.05 * rng.normal(size=rows.size)
    z = (y - y.mean()) / y.std()
    h, _ = maximise(Covariance.of(make_design(case.graph, case.X), eigen(case.graph), rows, COMPONENTS), z)
    assert h.nonlinear > 0.1


def test_a_function_that_few_labels_did_not_show_is_found_with_more() -> None:
    rng, n = np.random.default_rng(0), 300
    graph, X = Graph.from_edges(np.arange(n), (np.arange(n) + 1) % n), rng.standard_normal((n, 10))
    z = np.cos(1.5 * X[:, 0]) * X[:, 1] + 0.3 * rng.standard_normal(n)
    evidence = Evidence(Covariance.of(make_design(graph, X), eigen(graph), np.arange(n), COMPONENTS), z / z.std())
    space = evidence.space
    lost = space.start
    lost[space.slices["nonlinear"]] = space.bounds[space.slices["nonlinear"].start][0]
    assert space.has_lost(lost)
    assert not space.has_lost(space.start)
    precise = np.where(np.array(space.names) == "noise", -17.0, lost)
    assert not space.has_lost(precise)  # a hundredth of the variance is much where there is hardly any noise
    stuck, found = evidence.climb(lost, 40), evidence.climb_on(lost, 40)
    assert found.log_posterior > stuck.log_posterior + 30.0
    assert space.read(found.point).nonlinear > 0.3


def test_without_features_no_function_of_them_is_lost() -> None:
    space = Space(COMPONENTS, 0)
    assert not space.has_lost(space.start)


def test_a_constant_feature_is_left_out() -> None:
    made = make_design(GRAPH, np.column_stack([CASE.X, np.full(24, 5.0), np.zeros(24)]))
    assert made.kept.tolist() == [True, True, False, False]
    assert made.p == 2


def test_many_labels_are_searched_from_a_part_of_them() -> None:
    case = random_case(4, n=520, p=1, labelled=430)
    rows = np.flatnonzero(case.known)
    z = (case.y[rows] - case.y[rows].mean()) / case.y[rows].std()
    field = Covariance.of(make_design(case.graph, case.X), eigen(case.graph), rows, COMPONENTS)
    (_, found), plain = maximise(field, z), Evidence(field, z).climb(Space(COMPONENTS, 1).start, 60)
    assert found.log_evidence == pytest.approx(plain.log_evidence, abs=2.0)
    assert found.evaluations < 60


def test_variances_over_those_of_labelled_nodes_are_told_for_any_graph() -> None:
    h = Hyperparameters({**posterior(2).h, "nu": 1.0, "unit_variance": False})
    found, other = ExactPosterior(covariance(), h, Z), pieces()
    here, there = (np.diag(np.linalg.inv(np.eye(g.n_nodes) + h.omega * g.N.toarray())) for g in (GRAPH, other))
    np.testing.assert_allclose(found.relative_variance(), here / here[ROWS].mean(), rtol=1e-6)
    np.testing.assert_allclose(found.relative_variance(other), there / here[ROWS].mean(), rtol=1e-6)
    for graph in (None, other):
        np.testing.assert_array_equal(posterior(2).relative_variance(graph), np.ones(24 if graph is None else 27))


def test_columns_are_multiplied_in_strips(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "_AT_ONCE", 6)
    monkeypatch.setattr(exact, "_BLOCK", 3)
    columns = np.arange(14.0).reshape(2, 7)
    for count, widths in ((2, [3, 3, 1]), (4, [1] * 7), (9, [1] * 7)):
        strips = list(exact._together(columns, count))
        assert [strip.shape[1] for strip in strips] == widths
        np.testing.assert_array_equal(np.hstack(strips), columns)
    assert [part.tolist() for part in exact.blocks(np.arange(7))] == [[0, 1, 2], [3, 4, 5], [6]]


def test_distant_features_have_no_part_in_the_shares() -> None:
    made = covariance_of(with_distant(GRAPH, covariance().design, 0.6))
    assert ExactPosterior(made, posterior(2).h, Z).shares == pytest.approx(posterior(2).shares)


def test_priors_are_those_that_are_documented() -> None:
    """Medians, and the factors within which two thirds lie; variances have none."""
    every = {p.name: p for component in COMPONENTS for p in component.parameters}
    omega, nu, length = (np.log(20.0), 2.0), (0.0, 0.7), (0.0, 1.0)
    documented = {"omega": omega, "local_omega": omega, "nu": nu, "local_nu": nu, "length": length}
    documented |= {"local_length": length, "groups": (0.0, 0.5), "features": (0.0, 0.3)}
    normal = {name: (p.start, p.spread) for name, p in every.items() if np.isfinite(p.spread)}
    assert normal == {name: pytest.approx(both) for name, both in documented.items()}
    assert {name: p.size for name, p in every.items()} == dict.fromkeys(every, 1) | {"groups": 2, "features": 0}
    for name, p in every.items():
        assert p.lower < p.start < p.upper
        assert p.absent == (1.0 if name in normal else LEAST_NOISE if name == "noise" else 0.0)
        assert name not in normal or p.lower <= p.start - 1.9 * p.spread < p.start + 1.9 * p.spread <= p.upper
        assert name in normal or 0.05 <= np.exp(p.start) <= 0.5  # shares of the variance of the labels


def test_an_average_over_no_draws_is_its_base() -> None:
    h = Hyperparameters({**posterior(2).h, "nu": 1.0, "unit_variance": False})
    base = ExactPosterior(covariance(), h, Z, offset=np.linspace(0.0, 1.0, 24), beta=np.array([0.3, -0.2]))
    averaged = AveragedPosterior(base, ())
    assert averaged.origin == base.origin != 0.0
    np.testing.assert_array_equal(averaged.relative_variance(), base.relative_variance())
    for one, other in zip(averaged.moments(REST), base.moments(REST), strict=True):
        np.testing.assert_allclose(one, other)


def test_a_search_that_goes_on_keeps_some_values_and_begins_with_small_variances() -> None:
    space = Space(COMPONENTS, 2)
    h = space.read(space.start + 0.7)
    point = dict(zip(space.names, space.grown(h, ("omega", "noise", "field")), strict=True))
    for name in ("omega", "noise", "field"):
        assert point[name] == pytest.approx(np.log(h[name]))
    for name in ("own", "neighbours", "second", "smoothed", "nonlinear", "local"):
        assert np.exp(point[name]) == pytest.approx(_SMALL)
    start = dict(zip(space.names, space.start, strict=True))
    assert (point["nu"], point["length"]) == (start["nu"], start["length"])


@pytest.mark.parametrize(("gain", "wins"), [(4.7, True), (4.5, False), (-1.0, False)])
def test_the_family_must_gain_the_logarithm_of_the_labels(gain: float, wins: bool) -> None:
    assert family_wins(-50.0 + gain, -50.0, 100) == wins  # log 100 is 4.605

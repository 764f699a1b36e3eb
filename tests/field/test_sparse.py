"""The sparse form of the general field against dense algebra: evidence, posterior, solves, determinants."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal, norm

from cases import Case, random_case
from graphmrf import GaussianMRF
from graphmrf._typing import Bools, Floats
from graphmrf.errors import ConvergenceError
from graphmrf.field import COMPONENTS, Hyperparameters, sparse, sparse_system
from graphmrf.field.components import kernels
from graphmrf.field.components.kernels import DRIFT, local_columns, nonlinear_columns, squared_exponential
from graphmrf.field.components.kernels import OMEGA as OMEGA_PRIOR
from graphmrf.field.covariance import unequal_variance_unseen
from graphmrf.field.design import LabelledGraph, make_design, with_distant
from graphmrf.field.fit import fit_sparse
from graphmrf.field.paper_model import PaperSearch
from graphmrf.field.sparse import SparsePosterior, SparseSearch
from graphmrf.field.sparse_system import EffectColumns, FieldSystem, fit_variances
from graphmrf.graph import Graph
from graphmrf.linalg import precision
from graphmrf.linalg.precision import NodePrecision, lanczos_quadrature, rademacher

OMEGA, RHO, NOISE, ALPHA = 7.0, 4.0, 0.15, 0.6
GROUPS = ("own", "neighbours", "second", "distant", "nonlinear")
BY_GROUP = dict(zip((*GROUPS, "smoothed"), (0.5, 0.3, 0.2, 0.4, 0.6, 0.4), strict=True))


def labels(case: Case) -> Floats:
    y = case.y[case.known]
    return np.asarray((y - y.mean()) / y.std())


def posterior(case: Case, *, omega: float = OMEGA, rho: float = RHO) -> SparsePosterior:
    graph, rows = case.graph, np.flatnonzero(case.known)
    made = with_distant(graph, make_design(graph, case.X), ALPHA)
    lengths = np.full(2 * made.p, 2.0)
    blocks = dict(zip(GROUPS, (*made.groups, nonlinear_columns(made, lengths, 12, 0)), strict=True))
    weights = dict.fromkeys(GROUPS, 1.0 / max(made.p, 1)) | {"nonlinear": 1.0}
    columns = EffectColumns.of(graph.n_nodes, blocks, weights)
    projected = FieldSystem(LabelledGraph(graph, rows), omega, rho, 1e-10).project(columns.F, labels(case))
    beta = projected.equations.given(columns.variances(BY_GROUP), NOISE)
    h = Hyperparameters({"field": rho * NOISE, "omega": omega, "nu": 1.0, "noise": NOISE})
    return SparsePosterior(columns, projected, beta, h, made, COMPONENTS)


HYPER = Hyperparameters({"field": 1.0, "omega": 3.0, "nu": 1.0, "noise": 1e-3})


def dense(case: Case, columns: EffectColumns, *, omega: float = OMEGA, rho: float = RHO) -> Floats:
    """The covariance of all nodes, noise left out, from the formula."""
    K = np.linalg.inv(np.eye(len(case.W)) + omega * case.graph.N.toarray())
    R = K / np.sqrt(np.outer(np.diag(K), np.diag(K)))
    return np.asarray((columns.F * columns.variances(BY_GROUP)) @ columns.F.T + rho * NOISE * R)


def labels_covariance(K: Floats, known: Bools) -> Floats:
    return np.asarray(K[np.ix_(known, known)] + NOISE * np.eye(int(known.sum())))


def moments(K: Floats, known: Bools, z: Floats) -> tuple[Floats, Floats]:
    """Conditional mean and covariance, noise included, of the unknown nodes."""
    gain = np.linalg.solve(labels_covariance(K, known), K[np.ix_(known, ~known)]).T
    spread = K[np.ix_(~known, ~known)] - gain @ K[np.ix_(known, ~known)] + NOISE * np.eye(int((~known).sum()))
    return gain @ z, spread


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.integers(0, 3), st.floats(0.1, 300.0), st.floats(0.01, 1000.0))
def test_evidence_and_moments_are_those_of_dense_algebra(seed: int, p: int, omega: float, rho: float) -> None:
    case = random_case(seed, n=30, p=p)
    field = posterior(case, omega=omega, rho=rho)
    K = dense(case, field.columns, omega=omega, rho=rho)
    z = labels(case)
    expected = multivariate_normal(np.zeros(z.size), labels_covariance(K, case.known)).logpdf(z)
    assert field.beta.log_evidence == pytest.approx(expected, abs=1e-6, rel=1e-6)
    mean, spread = moments(K, case.known, z)
    found, variance = field.moments(np.flatnonzero(~case.known))
    np.testing.assert_allclose(found, mean, atol=1e-6)
    np.testing.assert_allclose(variance, np.diag(spread), rtol=1e-6)


CASE = random_case(9, n=60, p=2, labelled=35)


@pytest.fixture(scope="module")
def field() -> SparsePosterior:
    return posterior(CASE)


def test_iterating_gives_what_the_dense_factor_does(monkeypatch: pytest.MonkeyPatch, field: SparsePosterior) -> None:
    nodes = np.flatnonzero(~CASE.known)
    mean, variance = field.moments(nodes)
    g = field.projected.system.g
    monkeypatch.setattr(precision, "DENSE_LIMIT", 0)
    monkeypatch.setattr(LabelledGraph, "variance", lambda *_: g**-2.0)
    again = posterior(CASE)
    np.testing.assert_allclose(again.beta.mean, field.beta.mean, atol=1e-6)
    np.testing.assert_allclose(again.moments(nodes)[0], mean, atol=1e-6)
    np.testing.assert_allclose(again.moments(nodes)[1], variance, rtol=0.15)
    np.testing.assert_allclose(again.left_out[1], field.left_out[1], rtol=0.3)


def test_without_a_field_the_labels_have_independent_noise() -> None:
    field, z = posterior(CASE, rho=0.0), labels(CASE)
    K = dense(CASE, field.columns, rho=0.0)
    expected = multivariate_normal(np.zeros(z.size), labels_covariance(K, CASE.known)).logpdf(z)
    assert field.beta.log_evidence == pytest.approx(expected, rel=1e-9)
    assert not field.projected.carried.any()


def test_a_search_of_many_labels_finds_the_same_field(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, n = np.random.default_rng(0), 500
    graph = Graph.from_edges(np.arange(n), (np.arange(n) + 1) % n)
    X = rng.standard_normal((n, 2))
    y = X @ [1.0, -1.0] + GaussianMRF(np.eye(1), np.array([20.0])).sample(graph, 1, 0)[0, :, 0]
    y[rng.random(n) < 0.4] = np.nan
    few = fit_sparse(graph, X, y)
    monkeypatch.setattr(sparse, "COEFFICIENTS_KEPT", 100)
    many = fit_sparse(graph, X, y)
    assert many.evaluations < few.evaluations
    assert many.log_evidence == pytest.approx(few.log_evidence, abs=3.0)


@pytest.mark.parametrize(("kept", "rho"), [(100, sparse._START_RHO), (10, 0.0)])
def test_many_labels_first_tell_coefficients_without_a_field(
    kept: int, rho: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(_: SparseSearch, __: EffectColumns, point: Floats) -> None:
        np.testing.assert_allclose(np.exp(point), [np.exp(SEARCH._start()[0]), rho])
        raise StopIteration

    monkeypatch.setattr(sparse, "COEFFICIENTS_KEPT", kept)
    monkeypatch.setattr(SparseSearch, "_left", stop)
    with pytest.raises(StopIteration):
        SEARCH.run()


def test_columns_of_large_graphs_are_the_same_in_single_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_design(CASE.graph, CASE.X)
    double = nonlinear_columns(made, np.full(4, 2.0), 12, 0)
    monkeypatch.setattr(kernels, "_SINGLE_CELLS", 0)
    single = nonlinear_columns(made, np.full(4, 2.0), 12, 0)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, double, atol=1e-4)


def test_left_out_is_what_a_field_without_the_label_says(field: SparsePosterior) -> None:
    K, z = dense(CASE, field.columns), labels(CASE)
    P = np.linalg.inv(labels_covariance(K, CASE.known))
    residual, variance = field.left_out
    np.testing.assert_allclose(variance, 1.0 / np.diag(P), rtol=1e-6)
    np.testing.assert_allclose(residual, P @ z / np.diag(P), atol=1e-6)


def test_coefficients_are_the_conditional_ones(field: SparsePosterior) -> None:
    K, F = dense(CASE, field.columns), field.columns.F[CASE.known]
    P = np.linalg.inv(labels_covariance(K, CASE.known))
    V = np.diag(field.columns.variances(BY_GROUP))
    mean, covariance = V @ F.T @ P @ labels(CASE), V - V @ F.T @ P @ F @ V
    at = slice(1, 1 + 4 * 2)
    found, std = (np.array(part) * field.design.scales for part in zip(*field.coefficients.values(), strict=True))
    np.testing.assert_allclose(found.ravel(), mean[at], atol=1e-6)
    np.testing.assert_allclose(std.ravel(), np.sqrt(np.diag(covariance)[at]), rtol=1e-5)


def test_the_precision_of_a_label_lies_between_bounds_that_need_no_probes(field: SparsePosterior) -> None:
    rows = np.flatnonzero(CASE.known)
    C = np.eye(35) + RHO * correlations(OMEGA)[np.ix_(rows, rows)]
    np.testing.assert_allclose(field._most, np.diag(C))
    np.testing.assert_allclose(field._own_precision, np.diag(np.linalg.inv(C)), rtol=1e-6)


def test_shares_are_left_out_predictions_of_the_components(field: SparsePosterior) -> None:
    K, z, known = dense(CASE, field.columns), labels(CASE), CASE.known
    P = np.linalg.inv(labels_covariance(K, known))
    dual, residual = P @ z, P @ z / np.diag(P)
    F, variances = field.columns.F[known], field.columns.variances(BY_GROUP)
    blocks = [(F[:, at] * variances[at]) @ F[:, at].T for at in field.columns.slices.values()]
    blocks.append(K[np.ix_(known, known)] - 1.0 - np.sum(blocks, axis=0))
    covariances = [np.mean((block @ dual - np.diag(block @ P) * residual) * z) for block in blocks]
    parts = np.maximum(covariances, 0.0)
    noise = np.clip(np.mean(residual * z), 0.0, 1.0)
    expected = np.append((1.0 - noise) * parts / parts.sum(), noise)
    names = (*field.columns.slices, "field", "noise")
    np.testing.assert_allclose([field.shares[name] for name in names], expected, atol=1e-5)


def test_draws_have_the_conditional_moments(field: SparsePosterior) -> None:
    mean, spread = moments(dense(CASE, field.columns), CASE.known, labels(CASE))
    draws = field.draw(np.flatnonzero(~CASE.known), 8000, np.random.default_rng(0))
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.08)
    np.testing.assert_allclose(np.cov(draws.T), spread, atol=0.1)


def test_with_coefficients_kept_the_field_is_that_of_the_other_labels(field: SparsePosterior) -> None:
    own = np.arange(35) % 5 == 0
    rows = np.flatnonzero(CASE.known)
    K = dense(CASE, field.columns) - (field.columns.F * field.beta.variances) @ field.columns.F.T
    effects = field.columns.F[rows] @ field.beta.mean
    left = (labels(CASE) - effects)[~own]
    among = K[np.ix_(rows[~own], rows[~own])] + NOISE * np.eye(left.size)
    expected = effects[own] + K[np.ix_(rows[own], rows[~own])] @ np.linalg.solve(among, left)
    np.testing.assert_allclose(field.kept(own), expected, atol=1e-6)


def test_slopes_of_the_evidence_are_finite_differences(field: SparsePosterior) -> None:
    equations, variances, step = field.projected.equations, field.beta.variances, 1e-5

    def at(logs: Floats) -> float:
        return equations.given(np.exp(logs[:-1]), float(np.exp(logs[-1]))).log_evidence

    logs = np.log(np.append(variances, NOISE))
    expected = [(at(logs + step * e) - at(logs - step * e)) / (2 * step) for e in np.eye(logs.size)]
    np.testing.assert_allclose(field.beta.slopes, expected, atol=1e-5)


def test_the_information_is_that_of_dense_algebra(field: SparsePosterior) -> None:
    K = labels_covariance(dense(CASE, field.columns), CASE.known)
    F, V, P = field.columns.F[CASE.known], field.beta.variances, np.linalg.inv(K)
    places = list(field.columns.slices.values())
    groups = [(F[:, at] * V[at]) @ F[:, at].T for at in places]
    U = np.array([slope @ P @ labels(CASE) for slope in (*groups, K - (F * V) @ F.T)])
    np.testing.assert_allclose(field.beta.information(places), 0.5 * U @ P @ U.T, atol=1e-6)


def test_no_other_variances_make_the_labels_likelier(field: SparsePosterior) -> None:
    equations = field.projected.equations
    by_group, best = fit_variances(field.columns, equations)
    for name in GROUPS:
        for factor in (0.8, 1.25):
            changed = by_group | {name: by_group[name] * factor}
            other = equations.given(field.columns.variances(changed), best.noise)
            assert other.log_evidence <= best.log_evidence + 1e-3


PRIORS = (OMEGA_PRIOR, sparse.RHO)
SEARCH = SparseSearch(
    LabelledGraph(CASE.graph, np.flatnonzero(CASE.known)),
    with_distant(CASE.graph, make_design(CASE.graph, CASE.X), ALPHA),
    labels(CASE),
    ALPHA,
    COMPONENTS,
)


def correlations(omega: float) -> Floats:
    K = np.linalg.inv(np.eye(60) + omega * CASE.graph.N.toarray())
    return np.asarray(K / np.sqrt(np.outer(np.diag(K), np.diag(K))))


def test_length_scales_are_told_what_the_field_of_other_folds_leaves() -> None:
    rows, z, part = SEARCH.labelled.rows, SEARCH.z, np.random.default_rng(0).permutation(35)[:23]
    effects = np.random.default_rng(1).standard_normal(35)
    R = correlations(OMEGA)
    found = SEARCH._field_of_others(effects, np.log([OMEGA, RHO]), part)
    for k in range(sparse._FOLDS):
        own = part[k :: sparse._FOLDS]
        others = np.setdiff1d(np.arange(35), own)
        among = np.eye(others.size) + RHO * R[np.ix_(rows[others], rows[others])]
        gain = RHO * R[np.ix_(rows[own], rows[others])]
        expected = gain @ np.linalg.solve(among, (z - effects)[others])
        np.testing.assert_allclose(found[k :: sparse._FOLDS], expected, atol=1e-3)


def test_the_search_starts_at_the_level_of_cross_validation_within_bounds() -> None:
    for alpha, omega in ((ALPHA, 1.5), (0.1, 1.0), (0.999, 100.0)):
        np.testing.assert_allclose(np.exp(replace(SEARCH, alpha=alpha)._start()), [omega, sparse._START_RHO])


def test_the_prior_of_the_search_is_normal_in_logarithms() -> None:
    point = np.array([1.3, -2.0])
    densities = [norm(each.start, each.spread) for each in PRIORS]
    expected = [each.logpdf(x) - each.logpdf(each.mean()) for each, x in zip(densities, point, strict=True)]
    assert SEARCH._penalty(point) == pytest.approx(-sum(expected))


def test_what_draws_of_coefficients_leave_lies_opposite_about_expected_effects() -> None:
    columns = SEARCH._columns(np.full(4, 2.0), 12).at(SEARCH.labelled.rows)
    left, effects, by_component = SEARCH._left(columns, np.log([OMEGA, RHO]))
    half = left.shape[1] // 2
    assert half == sparse._PAIRS
    opposite = np.tile(SEARCH.z - effects, (half, 1)).T
    np.testing.assert_allclose((left[:, :half] + left[:, half:]) / 2, opposite, atol=1e-9)
    assert np.abs(left[:, :half] - left[:, half:]).max() > 0.01
    assert set(by_component) == set(columns.slices)


def test_hyperparameters_of_the_sparse_solver_are_told_as_those_of_the_exact_one() -> None:
    lengths = np.full(4, 2.0)
    columns = SEARCH._columns(lengths, 12)
    projected = SEARCH._system(np.log([OMEGA, RHO]), 1e-10).project(columns.F, SEARCH.z)
    found, log_evidence = SEARCH._posterior(columns, projected, lengths)
    h, by_component = found.h, fit_variances(columns, projected.equations)[0]
    assert (h["omega"], h["nu"], h["unit_variance"]) == (pytest.approx(OMEGA), 1.0, True)
    assert (h["distant_omega"], h["noise"]) == (pytest.approx(1.5), found.beta.noise)
    assert h["field"] == pytest.approx(RHO * found.beta.noise)
    assert {name: h[name] for name in by_component} == by_component
    assert (h["smoothed"], log_evidence) == (0.0, found.beta.log_evidence)
    K = found.beta.noise * (np.eye(35) + RHO * correlations(OMEGA)[np.ix_(SEARCH.labelled.rows, SEARCH.labelled.rows)])
    F = columns.F[SEARCH.labelled.rows].astype(np.float64)
    expected = multivariate_normal(np.zeros(35), K + (F * found.beta.variances) @ F.T).logpdf(SEARCH.z)
    assert log_evidence == pytest.approx(expected, abs=1e-4)


def test_the_search_ends_near_the_likeliest_smoothness_and_strength() -> None:
    rows = SEARCH.labelled.rows

    def covariance(point: Floats) -> Floats:
        R = correlations(float(np.exp(point[0])))[np.ix_(rows, rows)]
        return np.asarray(np.eye(35) + np.exp(point[1]) * R)

    def value(point: Floats) -> float:
        C = covariance(point)
        form = float(np.mean(np.sum(left * np.linalg.solve(C, left), axis=0)))
        prior = sum(((x - each.start) / each.spread) ** 2 for x, each in zip(point, PRIORS, strict=True))
        return float(0.5 * (35 * np.log(form / 35) + np.linalg.slogdet(C)[1] + prior))

    left = np.linalg.cholesky(covariance(np.log([40.0, 40.0]))) @ np.random.default_rng(0).standard_normal((35, 8))
    found, evaluations = SEARCH._improved(SEARCH._start(), left, (1.0, 1e-3))
    grid = [value(np.array([u, v])) for u in np.arange(0.0, 6.0, 0.5) for v in np.arange(-3.0, 6.0, 0.5)]
    assert 5 < evaluations < 100
    assert value(found) < min(grid) + 0.5 < max(grid) - 5.0


def test_the_search_does_not_depend_on_units() -> None:
    left = np.random.default_rng(0).standard_normal((35, 8)).cumsum(axis=0)
    found, evaluations = SEARCH._improved(SEARCH._start(), left, (1.0, 1e-3))
    for unit in (1e-2, 1e2):  # where the objective is below 0, and above
        point, count = SEARCH._improved(SEARCH._start(), unit * left, (1.0, 1e-3))
        np.testing.assert_allclose(point, found, atol=1e-6)
        assert count == evaluations


ISOLATED = np.pad(CASE.W, (0, 2))


@pytest.mark.parametrize("unit_variance", [True, False])
def test_the_paper_model_is_that_of_dense_algebra(unit_variance: bool) -> None:
    graph, rng = Graph(ISOLATED), np.random.default_rng(2)
    X, rows, omega = rng.standard_normal((62, 2)), np.arange(0, 62, 2), 3.0
    z = rng.standard_normal(rows.size)
    made = with_distant(graph, make_design(graph, X), ALPHA)
    labelled = LabelledGraph(graph, rows, unit_variance=unit_variance)
    columns, projected = PaperSearch(labelled, made, z, omega).at(omega, 1e-10)
    variances = columns.variances(BY_GROUP)
    beta = projected.equations.given(variances, 1e-3)
    K = np.linalg.inv(np.eye(62) + omega * graph.N.toarray())
    scale = np.sqrt(np.diag(K)) if unit_variance else np.full(62, np.sqrt(np.trace(K) / 62))
    whole = (columns.F * variances) @ columns.F.T + K / np.outer(scale, scale)
    known = np.isin(np.arange(62), rows)
    among = whole[np.ix_(known, known)] + 1e-3 * np.eye(rows.size)
    expected = multivariate_normal(np.zeros(rows.size), among).logpdf(z)
    assert beta.log_evidence == pytest.approx(expected, abs=1e-5)
    raw = K @ made.groups[0]
    if not unit_variance and columns.smoothing is not None:
        np.testing.assert_allclose(columns.F[:, 1:] * columns.smoothing[1], raw - raw.mean(axis=0), atol=1e-7)
    found = SparsePosterior(columns, projected, beta, HYPER, made, COMPONENTS).moments(np.flatnonzero(~known))
    gain = np.linalg.solve(among, whole[np.ix_(known, ~known)]).T
    np.testing.assert_allclose(found[0], gain @ z, atol=1e-5)
    spread = np.diag(whole[np.ix_(~known, ~known)] - gain @ whole[np.ix_(known, ~known)]) + 1e-3
    np.testing.assert_allclose(found[1], spread, rtol=1e-5)


@pytest.mark.parametrize("unit_variance", [True, False])
def test_the_paper_model_says_of_its_own_graph_what_features_say(unit_variance: bool) -> None:
    graph, rng, omega = Graph(ISOLATED), np.random.default_rng(2), 3.0
    X, rows = rng.standard_normal((62, 2)), np.arange(0, 62, 2)
    made = with_distant(graph, make_design(graph, X), ALPHA)
    labelled = LabelledGraph(graph, rows, unit_variance=unit_variance)
    columns, projected = PaperSearch(labelled, made, rng.standard_normal(31), omega).at(omega, 1e-10)
    beta = projected.equations.given(columns.variances(BY_GROUP), 1e-3)
    found = SparsePosterior(columns, projected, beta, HYPER, made, COMPONENTS)
    K = np.diag(np.linalg.inv(np.eye(62) + omega * graph.N.toarray()))
    prior = np.ones(62) if unit_variance else K / K.mean()
    mean, variance = found.elsewhere(graph, X)
    np.testing.assert_allclose(mean, columns.F @ beta.mean, atol=1e-4)
    told = np.einsum("ij,jk,ik->i", columns.F, beta.covariance, columns.F)
    np.testing.assert_allclose(variance, told + prior + 1e-3, rtol=1e-4)
    np.testing.assert_allclose(found.relative_variance(graph), prior / prior[rows].mean(), rtol=1e-6)
    np.testing.assert_allclose(found.relative_variance(), found.relative_variance(graph), rtol=1e-6)


def test_the_prior_of_a_level_of_smoothing_is_normal_in_its_logarithm() -> None:
    search = PaperSearch(SEARCH.labelled, SEARCH.design, SEARCH.z, 1.5)
    penalties = [search.log_posterior(omega) - search.log_evidence(omega) for omega in (1.5, 30.0)]
    density = norm(OMEGA_PRIOR.start, OMEGA_PRIOR.spread).logpdf(np.log([1.5, 30.0, np.exp(OMEGA_PRIOR.start)]))
    assert penalties == pytest.approx(density[:2] - density[2])


def test_the_paper_model_tells_its_coefficients_by_distance() -> None:
    graph, rng = CASE.graph, np.random.default_rng(2)
    made, z = with_distant(graph, make_design(graph, CASE.X), ALPHA), rng.standard_normal(60)
    search = PaperSearch(LabelledGraph(graph, np.arange(60), unit_variance=False), made, z, 1.5)
    columns, projected = search.at(ALPHA / (1 - ALPHA), 1e-10)
    beta = projected.equations.given(columns.variances(BY_GROUP), 1e-3)
    by_distance = SparsePosterior(columns, projected, beta, HYPER, made, COMPONENTS).coefficients
    standardised = np.array([mean for mean, _ in by_distance.values()]) * made.scales
    effects = np.einsum("knp,kp->n", made.groups, standardised)
    expected = columns.F[:, 1:] @ beta.mean[1:]
    np.testing.assert_allclose(effects - effects.mean(), expected - expected.mean(), atol=1e-6)


def test_labels_of_isolated_nodes_tell_whether_these_are_like_others() -> None:
    rng = np.random.default_rng(0)
    graph = Graph.from_edges(rng.integers(0, 600, 4000), rng.integers(0, 600, 4000), n_nodes=640)
    X = rng.standard_normal((640, 2))
    K = np.linalg.inv(np.eye(640) + 9.0 * graph.N.toarray())
    y = K @ X @ [2.0, 1.0] + np.linalg.cholesky(K) @ rng.standard_normal(640)
    made, few, many = with_distant(graph, make_design(graph, X), 0.9), np.arange(300), np.arange(200, 620)
    z = y / y.std()
    variances = LabelledGraph(graph, few).variance(20.0)
    lonely = np.arange(600, 640)
    assert [unequal_variance_unseen(variances, rows) for rows in (few, many, lonely)] == [True, False, True]
    found = PaperSearch(LabelledGraph(graph, many, unit_variance=False), made, z[many], 20.0).run()
    assert found.point[0] == pytest.approx(9.0, rel=0.5)


def test_local_columns_are_0_where_no_node_of_their_basis_is() -> None:
    n = 900
    first = np.arange(n)[np.arange(n) % 3 < 2]
    graph = Graph.from_edges(first, first + 1, n_nodes=n)
    made = make_design(graph, np.random.default_rng(0).standard_normal((n, 2)))
    L = local_columns(graph, made, 80, 0)
    assert np.isfinite(L).all()
    reached = (L != 0).any(axis=1)
    assert 0 < np.count_nonzero(reached) < 0.6 * n
    np.testing.assert_array_equal(reached, np.repeat(reached[::3], 3))


def test_local_columns_give_the_product_of_kernels() -> None:
    made = make_design(CASE.graph, CASE.X)
    L = local_columns(CASE.graph, made, 60 * 60, 0)
    K = np.linalg.inv(np.eye(60) + DRIFT * CASE.graph.N.toarray())
    R = K / np.sqrt(np.outer(np.diag(K), np.diag(K)))
    Z = made.Z / np.sqrt(8.0)
    np.testing.assert_allclose(L @ L.T, R * squared_exponential(Z, Z), atol=0.02)


def test_columns_of_the_nonlinear_function_give_its_kernel() -> None:
    made = with_distant(CASE.graph, make_design(CASE.graph, CASE.X), 0.5)
    lengths = np.array([1.0, 2.0, 3.0, 4.0])
    Phi = nonlinear_columns(made, lengths, 60, 0)
    np.testing.assert_allclose(Phi @ Phi.T, squared_exponential(made.Z / lengths, made.Z / lengths), atol=1e-5)


def test_distant_features_complete_the_convolution() -> None:
    made = with_distant(CASE.graph, make_design(CASE.graph, CASE.X), 0.5)
    own = (CASE.X - CASE.X.mean(axis=0)) / CASE.X.std(axis=0)
    N = CASE.graph.N.toarray()
    smoothed = np.linalg.solve(np.eye(60) + N, own)
    raw = np.linalg.matrix_power(np.eye(60) - N, 3) @ smoothed
    np.testing.assert_allclose(made.groups[3], (raw - raw.mean(axis=0)) / raw.std(axis=0), atol=1e-7)
    np.testing.assert_allclose(made.scales[3], CASE.X.std(axis=0) * raw.std(axis=0), rtol=1e-7)
    span = np.column_stack([np.ones(60), *made.groups])
    np.testing.assert_allclose(span @ np.linalg.lstsq(span, smoothed)[0], smoothed, atol=1e-7)


def test_lonely_pairs_and_isolated_nodes_do_not_stand_out_in_the_groups_of_neighbours() -> None:
    rng = np.random.default_rng(0)
    u, v = rng.integers(0, 2000, (2, 20_000))
    graph = Graph.from_edges([*u, 2000, 2002], [*v, 2001, 2003], n_nodes=2005)
    plain = make_design(graph, rng.standard_normal((2005, 3)))
    made = with_distant(graph, plain, 0.9)
    far, usual = np.abs(plain.groups[2, 2000:2004]).max(), np.abs(plain.groups[2, :2000]).max()
    assert far > 2 * usual
    assert np.abs(made.groups[1:, 2000:2004]).max() < 2.5 * usual
    for each in (plain, made):  # independent features predict nothing of the neighbours'
        np.testing.assert_allclose(each.groups[1, 2004], 0.0, atol=0.1)
    ordinary = np.corrcoef(plain.groups[1, :2000, 0], made.groups[1, :2000, 0])[0, 1]
    assert ordinary == pytest.approx(1.0, abs=1e-6)


def grid(side: int) -> Graph:
    place = np.arange(side * side).reshape(side, side)
    u = np.append(place[:, :-1].ravel(), place[:-1].ravel())
    v = np.append(place[:, 1:].ravel(), place[1:].ravel())
    return Graph.from_edges(u, v, n_nodes=side * side + 1)  # one isolated node


@pytest.mark.parametrize("omega", [0.5, 20.0, 500.0])
def test_systems_determinants_and_variances_by_iterating(monkeypatch: pytest.MonkeyPatch, omega: float) -> None:
    graph, rng = grid(15), np.random.default_rng(0)
    d = np.where(rng.random(graph.n_nodes) < 0.3, 30.0 * rng.random(graph.n_nodes), 0.0)
    B, Z = rng.standard_normal((graph.n_nodes, 20)), rademacher(graph.n_nodes, 100, 0)
    exact = NodePrecision(graph, omega, d)
    x, variance = exact.solve(B, tolerance=1e-9), exact.inverse_diagonal(probes=1, seed=0)
    rows = np.flatnonzero(d)
    at_rows = np.zeros_like(B)
    at_rows[rows] = B[rows]
    forms, determinant = exact.quadratic_forms(B[rows], rows, Z, tolerance=1.0)
    np.testing.assert_allclose(forms, np.einsum("ij,ij->j", at_rows, exact.solve(at_rows)))
    rest = lanczos_quadrature(graph, Z).log_determinant(omega)
    mean = lanczos_quadrature(graph, Z).mean_variance(omega)
    assert mean == pytest.approx(np.trace(np.linalg.inv(np.eye(226) + omega * graph.N.toarray())) / 226)
    monkeypatch.setattr(precision, "DENSE_LIMIT", 0)
    found = NodePrecision(graph, omega, d)
    np.testing.assert_allclose(found.solve(B, tolerance=1e-10), x, atol=1e-8)
    np.testing.assert_allclose(found.inverse_diagonal(probes=400, seed=0), variance, rtol=0.3)
    for A in (exact, found):  # from some nodes to others
        there = A.solve(B[rows], tolerance=1e-10, rows=(rows, rows[::2]))
        np.testing.assert_allclose(there, exact.solve(at_rows)[rows[::2]], atol=1e-8)
    assert found.solve(B[:, :0]).shape == (graph.n_nodes, 0)
    quick, estimate = found.quadratic_forms(B[rows], rows, Z, tolerance=1e-3)
    np.testing.assert_allclose(quick, forms, rtol=1e-4)
    assert estimate - lanczos_quadrature(graph, Z).log_determinant(omega) == pytest.approx(
        determinant - rest, rel=0.03, abs=0.5
    )
    assert lanczos_quadrature(graph, Z).mean_variance(omega) == pytest.approx(mean, rel=0.1)


def test_draws_from_the_precision_have_its_inverse_as_covariance() -> None:
    graph, d = CASE.graph, np.linspace(0.0, 3.0, 60)
    A = NodePrecision(graph, 2.0, d)
    x = A.solve(A.noise(20_000, np.random.default_rng(0)), tolerance=1e-9)
    expected = np.linalg.inv(np.eye(60) + 2.0 * graph.N.toarray() + np.diag(d))
    np.testing.assert_allclose(np.cov(x), expected, atol=0.03)


def test_a_tolerance_out_of_reach_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "DENSE_LIMIT", 0)
    A = NodePrecision(CASE.graph, 5.0, np.zeros(60))
    with pytest.raises(ConvergenceError, match="residual"):
        A.solve(np.ones((60, 1)) + CASE.X[:, :1], tolerance=1e-40)


def test_variances_between_knots(monkeypatch: pytest.MonkeyPatch) -> None:
    ground = LabelledGraph(grid(12), np.arange(5))
    exact = [ground.variance(omega) for omega in (3.0, 16.0, 50.0)]
    monkeypatch.setattr(precision, "DENSE_LIMIT", 0)
    again = replace(ground)
    for omega, expected in zip((3.0, 16.0, 50.0), exact, strict=True):
        np.testing.assert_allclose(again.variance(omega), expected, rtol=0.1)


def test_columns_of_a_component_may_be_fewer() -> None:
    blocks = {"own": np.ones((5, 2)), "nonlinear": np.arange(20.0).reshape(5, 4)}
    columns = EffectColumns.of(5, blocks, {"own": 0.5, "nonlinear": 1.0})
    assert columns.first(4, "nonlinear") is columns
    assert columns.first(9, "distant") is columns
    fewer = columns.first(3, "nonlinear")
    np.testing.assert_array_equal(fewer.F, np.column_stack([np.ones((5, 3)), blocks["nonlinear"][:, :3]]))
    assert (fewer.slices, fewer.weights) == ({"own": slice(1, 3), "nonlinear": slice(3, 6)}, columns.weights)
    np.testing.assert_array_equal(columns.first(0, "own").F, np.column_stack([np.ones(5), blocks["nonlinear"]]))
    np.testing.assert_array_equal(fewer.at(np.array([4])).F, fewer.F[[4]])
    np.testing.assert_array_equal(fewer.variances({"own": 2.0, "nonlinear": 3.0})[1:], [1.0, 1.0, 3.0, 3.0, 3.0])


@pytest.mark.parametrize(("limit", "dtype"), [(34, np.float32), (35, np.float64)])
def test_very_many_cells_are_kept_in_single_precision(limit: int, dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_system, "_SINGLE_CELLS", limit)
    assert EffectColumns.of(5, {"own": np.ones((5, 6))}, {}).F.dtype == dtype


def test_solves_are_the_tighter_the_stronger_the_field() -> None:
    for rho, tolerance, expected in ((0.0, 1e-4, 1e-4), (3.0, 1e-4, 2.5e-5), (1e9, 1e-4, 1e-11)):
        assert FieldSystem(SEARCH.labelled, 1.0, rho, tolerance)._tolerance == pytest.approx(expected)


def test_inner_products_below_zero_are_rounding() -> None:
    half = np.random.default_rng(0).normal(size=(4, 3))
    right = half @ half.T
    np.testing.assert_allclose(sparse_system._semidefinite(right), right, atol=1e-12)
    units = np.array([1e-3, 1.0, 5.0, 1e3])
    wrong = right / np.sqrt(np.outer(np.diag(right), np.diag(right))) - 0.05 * np.eye(4)
    found = sparse_system._semidefinite(np.outer(units, units) * wrong) / np.outer(units, units)
    unit = np.sqrt(np.diag(wrong))
    values, vectors = np.linalg.eigh(wrong / np.outer(unit, unit))
    assert values[0] < 0
    np.testing.assert_allclose(
        found, np.outer(unit, unit) * ((vectors * np.maximum(values, 0.0)) @ vectors.T), atol=1e-9
    )


@pytest.mark.parametrize(
    ("n", "labels", "nonlinear", "local"),
    [
        (1000, 100, 256, None),
        (1000, 131, 256, 65),
        (1000, 1000, 500, 400),
        (1000, 9000, 1000, 400),
        (200_000, 9000, 256, None),
    ],
)
def test_functions_have_more_columns_where_graph_and_labels_are_small(
    n: int, labels: int, nonlinear: int, local: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[int]()
    monkeypatch.setattr(kernels, "nonlinear_columns", lambda _design, _lengths, size, *_, **__: asked.append(size))
    monkeypatch.setattr(kernels, "local_columns", lambda _graph, _design, size, _seed: asked.append(size))
    labelled: Any = SimpleNamespace(graph=SimpleNamespace(n_nodes=n, engine=None), rows=np.zeros(labels), seed=0)
    for component, expected in ((kernels.Nonlinear(), nonlinear), (kernels.Local(), local)):
        for most in (10**6, 70):
            component.columns(labelled, SEARCH.design, {"lengths": None}, most)
            if expected is not None:
                assert asked.pop() == min(expected, most)
        assert not asked

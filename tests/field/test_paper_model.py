"""The paper's own model with parameters of labels and features together, against the conditional joint field."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from sklearn.metrics import r2_score

from graphmrf import GaussianMRF, Graph, GraphRegressor
from graphmrf._typing import Floats
from graphmrf.field import COMPONENTS, Covariance
from graphmrf.field.design import make_design
from graphmrf.field.matern import eigen
from graphmrf.field.paper_model import JointModel

pytestmark = pytest.mark.usefixtures("few_draws")

N = 300
H = np.array([[2.0, 0.3, -1.0], [0.3, 1.5, 0.8], [-1.0, 0.8, 2.0]])


@cache
def graph() -> Graph:
    rng = np.random.default_rng(0)
    u = rng.integers(0, N, 900)
    return Graph.from_edges(u, (u + rng.integers(1, 5, 900)) % N, n_nodes=N)


def drawn(seed: int = 0) -> Floats:
    return np.asarray(GaussianMRF(H, [1.0, 2.0, 6.0]).sample(graph(), 1, seed)[0])


def joint_model(A: Floats, seed: int = 0, labels: int = 120) -> JointModel:
    rows = np.sort(np.random.default_rng(seed).permutation(len(A))[:labels])
    X, y = A[:, :-1], A[rows, -1]
    made = make_design(graph(), X)
    covariance = Covariance.of(made, eigen(graph()), rows, COMPONENTS)
    return JointModel(graph(), covariance, X[:, made.kept] / made.scales[0], y / y.std())


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 99))
def test_given_the_labels_it_is_the_conditional_of_the_joint_field(seed: int) -> None:
    case = joint_model(drawn(seed), seed)
    mrf, rows = case.mrf, case.covariance.rows
    assert mrf is not None
    posterior = case.given(mrf)
    outcome = np.full(N, np.nan)
    outcome[rows] = case.y
    joint = mrf.condition(graph(), np.column_stack([case.X, outcome]))
    rest = np.setdiff1d(np.arange(N), rows)
    mean, variance = posterior.moments(rest)
    np.testing.assert_allclose(mean + case.y.mean(), joint.mean[rest, -1], atol=2e-4)
    np.testing.assert_allclose(np.sqrt(variance), joint.std[rest, -1], atol=2e-4)


def test_on_another_graph_it_is_the_conditional_given_features_as_far_as_that_is_certain() -> None:
    case, rng = joint_model(drawn(1), 1), np.random.default_rng(2)
    mrf, other = case.mrf, Graph.from_edges(np.arange(30), (np.arange(30) + 1) % 30)
    assert mrf is not None
    posterior, made = case.given(mrf), case.covariance.design
    X = rng.normal(3.0, 1.0, (30, 2))  # on another level
    mean, variance = posterior.elsewhere(other, X * made.scales[0])
    there = mrf.condition(other, np.column_stack([X, np.full(30, np.nan)]))
    here, rows = np.linalg.inv(np.eye(N) + mrf.omega() * graph().N.toarray()), case.covariance.rows
    told = np.linalg.inv((here @ case.X)[rows].T @ posterior.factor.solve((here @ case.X)[rows]))
    F = np.linalg.solve(np.eye(30) + mrf.omega() * other.N.toarray(), X)
    effect, error = there.mean[:, -1], np.diag(F @ told @ F.T)
    np.testing.assert_allclose(mean + case.y.mean(), effect**3 / (effect**2 + error), atol=1e-5)
    np.testing.assert_allclose(variance, there.std[:, -1] ** 2 + posterior.noise + error, rtol=1e-4)


def test_the_likelihood_is_that_of_the_labels_given_the_features() -> None:
    case = joint_model(drawn())
    mrf, rows = case.mrf, case.covariance.rows
    assert mrf is not None
    precision = np.eye(N) + mrf.omega() * graph().N.toarray()
    spread = np.linalg.inv(precision) / mrf.H[-1, -1]
    mean = np.linalg.solve(precision, case.X @ mrf.beta())
    expected = multivariate_normal(mean[rows], spread[np.ix_(rows, rows)]).logpdf(case.y)
    assert case.given(mrf).log_likelihood == pytest.approx(expected, abs=1e-2)


def test_draws_and_leaving_out_agree_with_the_moments() -> None:
    case = joint_model(drawn())
    assert case.mrf is not None
    posterior = case.given(case.mrf)
    rest = np.setdiff1d(np.arange(N), case.covariance.rows)[:5]
    draws = posterior.draw(rest, 4000, np.random.default_rng(0))
    mean, variance = posterior.moments(rest)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.06)
    np.testing.assert_allclose(draws.var(axis=0), variance, rtol=0.1)
    residual, spread = posterior.left_out
    assert np.mean(residual**2 / spread) == pytest.approx(1.0, abs=0.3)


def test_shares_and_coefficients_are_told() -> None:
    case = joint_model(drawn())
    assert case.mrf is not None
    posterior = case.given(case.mrf)
    assert sum(posterior.shares.values()) == pytest.approx(1.0)
    assert posterior.shares["own"] > posterior.shares["smoothed"] > 0.0
    assert set(posterior.coefficients) == {"own", "neighbours", "second neighbours", "smoothed"}
    assert not any(mean.any() for title, (mean, _) in posterior.coefficients.items() if title != "smoothed")
    assert (posterior.coefficients["smoothed"][1] > 0).all()


def shifted(A: Floats) -> Floats:
    return np.asarray(A + np.array([0.0, 0.0, 5.0]))


def not_centred(A: Floats) -> Floats:
    return np.asarray(A + np.array([1.0, 0.0, 0.0]))


def alike(A: Floats) -> Floats:
    return np.asarray(A[:, [0, 0, 2]])


@pytest.mark.parametrize("spoil", [shifted, not_centred, alike])
def test_a_mean_or_features_that_determine_each_other_contradict_the_joint_model(spoil: Any) -> None:
    assert joint_model(spoil(drawn())).posterior(3.0) is None


def test_what_means_would_gain_is_the_difference_of_likelihoods() -> None:
    case, A = joint_model(drawn()), not_centred(drawn())
    mrf, one = GaussianMRF(H, [1.0, 2.0, 6.0]), np.ones((N, 1))
    Gamma = np.kron(H, np.eye(N)) + np.kron(np.diag(mrf.h), graph().N.toarray())
    F, a = np.kron(np.eye(3), one), A.ravel(order="F")
    mean = np.linalg.solve(F.T @ Gamma @ F, F.T @ Gamma @ a)
    moved = GaussianMRF(H, [1.0, 2.0, 6.0], mean=mean)
    expected = moved.log_likelihood(graph(), A) - mrf.log_likelihood(graph(), A)
    assert case._gain_of_means(mrf, A) == pytest.approx(expected, rel=1e-6)


def test_draws_of_the_joint_model_do_not_contradict_it() -> None:
    case = joint_model(drawn())
    assert case.mrf is not None
    found = case.posterior(case.mrf.omega())
    assert found is not None
    posterior, level = found
    assert level == posterior.log_likelihood == case.given(case.mrf).log_likelihood
    F = np.linalg.solve(np.eye(N) + case.mrf.omega() * graph().N.toarray(), np.column_stack([np.ones(N), case.X]))
    assert case._highest(case.mrf.omega()) == pytest.approx(best_likelihood(case, F), abs=0.05)


def best_likelihood(case: JointModel, F: Floats) -> float:
    """Log density of the labels at the best constant, coefficients of smoothed features and variance, densely."""
    assert case.mrf is not None
    rows, m = case.covariance.rows, case.y.size
    R = np.linalg.inv(np.eye(N) + case.mrf.omega() * graph().N.toarray())[np.ix_(rows, rows)]
    columns = np.column_stack([np.ones(m), F[rows, 1:]])
    L = np.linalg.cholesky(R)
    inside, target = np.linalg.solve(L, columns), np.linalg.solve(L, case.y)
    left = target - inside @ np.linalg.lstsq(inside, target)[0]
    variance = float(left @ left) / m
    return float(-0.5 * m * (np.log(2 * np.pi * variance) + 1.0) - np.log(np.diag(L)).sum())


def test_features_that_nearly_determine_the_outcome_have_no_joint_model() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 2)) + 20.0
    y = np.linalg.solve(np.eye(N) + 1e4 * graph().N.toarray(), X.sum(axis=1) + rng.standard_normal(N))
    A = np.column_stack([X, y])
    hidden = np.where(rng.random(N) < 0.4, y, np.nan)
    assert joint_model(A).mrf is None
    assert np.isfinite(GraphRegressor().fit(graph(), X, hidden).predict()).all()


def test_more_features_than_the_nodes_can_tell_have_no_joint_model() -> None:
    A = np.random.default_rng(0).normal(size=(N, 20))
    assert joint_model(A).mrf is None


def test_draws_of_the_model_are_predicted_by_it_nearly_as_well_as_by_the_truth() -> None:
    losses, joint = [], []
    for seed in range(4):
        A = drawn(seed)
        hidden = np.random.default_rng(seed).permutation(N) >= 125
        B = A.copy()
        B[hidden, -1] = np.nan
        best = GaussianMRF(H, [1.0, 2.0, 6.0]).condition(graph(), B).mean[hidden, -1]
        model = GraphRegressor().fit(graph(), B[:, :-1], B[:, -1])
        joint.append(getattr(model._field.posterior.central, "offset", None) is not None)
        losses.append(r2_score(A[hidden, -1], best) - r2_score(A[hidden, -1], model.predict()[hidden]))
    assert np.mean(losses) < 0.03
    assert any(joint)  # features and outcome explained together


@pytest.mark.parametrize("told", [False, True])
def test_the_variance_of_isolated_nodes_is_that_of_others_unless_a_label_shows_it(told: bool) -> None:
    rng = np.random.default_rng(1)
    u = np.concatenate([np.arange(200), rng.integers(0, 200, 400)])
    lonely = Graph.from_edges(u, (u + 1 + rng.integers(0, 4, u.size)) % 200, n_nodes=210)
    A = GaussianMRF(H, [1.0, 2.0, 20.0]).sample(lonely, 1, 0)[0]
    known = np.isin(np.arange(210), rng.permutation(200)[:120])
    known[205:] = told
    y = np.where(known, A[:, 2], np.nan)
    model = GraphRegressor().fit(lonely, A[:, :2], y)
    std = model.predict(return_std=True)[1]
    assert model.hyperparameters_.unit_variance == (not told)
    assert (std[200] > 2.0 * np.nanstd(y[:200])) == told


def test_means_and_labels_may_contradict_by_as_many_units_as_they_have_parameters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = joint_model(drawn())  # of two features
    found = case.mrf
    assert found is not None
    level = case.given(found).log_likelihood
    monkeypatch.setattr(GaussianMRF, "fit", lambda *_, **__: found)
    for gained, lacking, taken in ((2.5, 4.5, True), (3.5, 4.5, False), (2.5, 5.5, False)):
        monkeypatch.setattr(JointModel, "_gain_of_means", lambda *_, gained=gained: gained)
        monkeypatch.setattr(JointModel, "_highest", lambda *_, lacking=lacking: level + lacking)
        assert (replace(case).posterior(3.0) is not None) == taken

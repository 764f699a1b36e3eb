"""Leave-one-out, WAIC, evidence, effects with their errors, and Moran's I."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

import latent
from graphmrf import Graph, GraphRegressor
from graphmrf._typing import Floats
from graphmrf.field import TERMS, FieldOptions, Responses
from graphmrf.field.criteria import Criteria, fit_pareto, morans_i, smoothed_density
from graphmrf.field.dense import DenseField
from graphmrf.field.likelihoods import LIKELIHOODS
from graphmrf.field.outcome import FieldOutcome
from graphmrf.field.sparse import SparseField

N = 60
RING = Graph.from_edges(np.arange(N), (np.arange(N) + 1) % N)
ETA = np.sin(np.arange(N) / 6.0)
X = np.random.default_rng(0).standard_normal((N, 2))
KNOWN = np.arange(N) % 4 > 0


def numbers(seed: int) -> Floats:
    y = 10.0 + 3.0 * (ETA + X[:, 0] + 0.5 * np.random.default_rng(seed).standard_normal(N))
    return np.where(KNOWN, y, np.nan)


def single(y: Floats, terms: tuple[str, ...] = ("own", "field")) -> FieldOutcome:
    return FieldOutcome.fit(RING, X, y, options=FieldOptions(terms, "gaussian", members=1))


def test_leaving_one_out_and_waic_of_numbers() -> None:
    y = numbers(0)
    outcome = single(y)
    found, h = Criteria(outcome), outcome.posterior.h
    expected = []
    field: Any = outcome.fitted.field
    for i in range(outcome.rows.size):
        rest = outcome.posterior.members[0].given(field.normal.part(np.arange(outcome.rows.size) != i))
        mean, variance = rest.moments(outcome.rows[i : i + 1])
        std = np.sqrt(variance[0] + h["noise"])
        expected.append(stats.norm(mean[0], std).logpdf(field.normal.z[i]) - np.log(outcome.scale.unit))
    assert found.leave_one_out[0] == pytest.approx(np.sum(expected), abs=1e-4)
    assert found.leave_one_out[1] == pytest.approx(np.std(expected) * np.sqrt(len(expected)))
    assert found.waic[0] == pytest.approx(found.leave_one_out[0], abs=0.1 * abs(found.leave_one_out[0]))
    assert 3 < found.waic[2] < outcome.rows.size
    smoothed, error, k = found.psis
    assert smoothed == pytest.approx(found.leave_one_out[0], abs=0.01 * abs(found.leave_one_out[0]))
    assert error == pytest.approx(found.leave_one_out[1], rel=0.1)
    assert np.median(k) < 0.7


def test_smoothed_importance_sampling_is_the_closed_form() -> None:
    rng = np.random.default_rng(0)
    y = rng.standard_normal(20)
    mean = y.mean() + rng.standard_normal(4000) / np.sqrt(y.size)  # normal values of variance 1, a flat prior
    for value in y:
        exact = stats.norm((y.sum() - value) / 19, np.sqrt(1.0 + 1.0 / 19)).logpdf(value)
        density, k = smoothed_density(stats.norm(mean).logpdf(value))
        assert density == pytest.approx(exact, abs=0.01)
        assert k < 0.5
    assert smoothed_density(np.full(100, -2.0)) == pytest.approx((-2.0, 0.0))


def test_an_outlier_is_where_importance_weights_fail() -> None:
    y = numbers(0)
    y[1] += 60.0
    outcome = FieldOutcome.fit(RING, X, y, options=FieldOptions(("own", "field"), "gaussian", members=1))
    k = Criteria(outcome).psis[2]
    assert outcome.rows[np.argmax(k)] == 1
    assert k.max() > 0.5 > np.median(k)


@pytest.mark.parametrize("shape", [-0.2, 0.3, 0.8])
def test_pareto_tails_are_found(shape: float) -> None:
    draws = np.sort(stats.genpareto(shape, scale=2.0).rvs((50, 200), random_state=0), axis=1)
    found = np.array([fit_pareto(each) for each in draws])
    expected = (200 * shape + 5.0) / 210  # the prior counts as ten values of .5
    assert found[:, 0].mean() == pytest.approx(expected, abs=0.05)
    assert found[:, 1].mean() == pytest.approx(2.0, rel=0.1)


def test_leaving_one_out_of_counts_is_that_of_refits() -> None:
    y = np.random.default_rng(0).poisson(np.exp(1.0 + ETA)).astype(float)
    rows = np.flatnonzero(KNOWN)
    labels = Responses.of(LIKELIHOODS["poisson"], rows, y[rows], np.ones(rows.size))
    options = FieldOptions(("field",), "poisson", members=1)
    [outcome] = FieldOutcome.fit_responses(RING, X, [labels], np.ones(N), options=options)
    field: Any = outcome.fitted.field
    expected = 0.0
    for i in range(rows.size):
        rest = field.observed(labels.part(np.arange(rows.size) != i)).posterior(outcome.fitted.points[0])
        mean, variance = rest.moments(rows[i : i + 1])
        v = mean + np.sqrt(variance + rest.h["noise"]) * np.random.default_rng(i).standard_normal(20_000)
        expected += np.log(stats.poisson(np.exp(labels.origin + labels.unit * v)).pmf(y[rows[i]]).mean())
    assert Criteria(outcome).leave_one_out[0] == pytest.approx(expected, abs=1.0)
    assert Criteria(outcome).waic[0] > expected


def test_evidence_is_in_units_of_the_labels() -> None:
    y = numbers(0)
    once, tenfold = Criteria(single(y)).log_evidence, Criteria(single(10.0 * y)).log_evidence
    assert tenfold == pytest.approx(once - KNOWN.sum() * np.log(10.0), abs=1e-3)


def test_effects_and_their_errors_are_those_of_bayesian_regression() -> None:
    y = numbers(0)
    outcome = single(y, ("own",))
    effects, h = Criteria(outcome).effects, outcome.posterior.h
    F, field = outcome.fitted.field.design.own, outcome.fitted.field
    A = np.column_stack([F, np.ones(N)])[KNOWN]
    prior = np.diag([2.0 / h["own"], 2.0 / h["own"], 1.0 / 10.0])
    covariance = np.linalg.inv(A.T @ A / h["noise"] + prior)
    mean = covariance @ A.T @ field.normal.z / h["noise"]
    unit = outcome.scale.unit / (field.design.scale.unit * field.design.scale.std)
    np.testing.assert_allclose(effects[:, 0], mean[:2] * unit, rtol=1e-4)
    np.testing.assert_allclose(effects[:, 1], np.sqrt(np.diag(covariance)[:2]) * unit, rtol=1e-4)


@pytest.mark.parametrize("names", [("own", "neighbours"), ("own", "field")], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_both_representations_have_mean_and_covariance_of_the_sum_of_some_terms(
    seed: int, names: tuple[str, ...]
) -> None:
    W, design, observations = latent.problem(seed)
    terms = tuple(TERMS[name] for name in ("own", "neighbours", "field"))
    nodes = np.array([1, 5, 7])
    sparse = SparseField.of(design, terms, observations, {})
    x = latent.with_one_range(sparse.space, 0.3 * np.random.default_rng(seed).standard_normal(sparse.size))
    h = latent.hyperparameters(2) | sparse.space.read(x)
    K, part = latent.prior(("own", "neighbours", "field"), W, design, h), latent.prior(names, W, design, h) - 10.0
    rows = observations.nodes
    gain = part[np.ix_(nodes, rows)] @ np.linalg.inv(K[np.ix_(rows, rows)] + np.diag(h["noise"] / observations.weights))
    expected = gain @ observations.z, part[np.ix_(nodes, nodes)] - gain @ part[np.ix_(rows, nodes)]
    dense = DenseField.of(design, terms, observations)
    for posterior in (sparse.posterior(x), dense.posterior(dense.space.taken_from(sparse.space, x))):
        parts = posterior.parts(nodes)
        np.testing.assert_allclose(sum(parts[name] for name in names), expected[0], atol=1e-5)
        np.testing.assert_allclose(posterior.covariance_times(nodes, np.eye(3), names), expected[1], atol=1e-5)


def test_morans_i_is_its_formula() -> None:
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3], n_nodes=5)
    values = np.array([1.0, 2.0, 4.0, 3.0])
    r = values - 2.5
    expected = 4 / 6 * 2 * (r[0] * r[1] + r[1] * r[2] + r[2] * r[3]) / (r @ r)
    assert morans_i(graph, np.arange(4), values)[0] == pytest.approx(expected)
    assert np.isnan(morans_i(graph, np.array([0, 4]), np.array([1.0, 2.0]))[0])
    noises = np.random.default_rng(0).standard_normal((40, N))
    assert np.mean([morans_i(RING, np.arange(N), noise)[1] for noise in noises]) == pytest.approx(0.5, abs=0.15)


def test_summaries_name_everything() -> None:
    text = GraphRegressor().fit(RING, X, numbers(0)).summary()
    for words in ("log evidence", "leave-one-out", "PSIS", "WAIC", "Moran", "std err", "97.5 %", "phi"):
        assert words in text
    assert repr(text) == str(text)
    counts = np.random.default_rng(0).poisson(np.exp(1.0 + ETA)).astype(float)
    assert "negative-binomial" in GraphRegressor(likelihood="negative-binomial").fit(RING, X, counts).summary()

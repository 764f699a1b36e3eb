"""Expected accuracy against dense algebra and simulation; suggestions against trying every node."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import r2_score

import oracle
from fields import Field, fields, parameters, random_field
from graphmrf._typing import Bools, Floats, Ints
from graphmrf.errors import InvalidInputError
from graphmrf.graph import Graph
from graphmrf.model import GaussianMRF
from graphmrf.model.expected_accuracy import (
    KnownData,
    TargetCovariance,
    estimate_r2,
    probed_r2,
    probed_suggestions,
    ratio_of_means,
    suggest,
    target_covariance,
)

KINDS: tuple[KnownData, ...] = ("labels", "features", "both")
seeds = st.integers(0, 10**6)


def last(graph: Graph, mrf: GaussianMRF, labelled: Bools) -> TargetCovariance:
    return target_covariance(mrf.parameters, graph, mrf.q - 1, labelled)


def dense_covariance(field: Field, U: Bools, given: str) -> Floats:
    """Covariance of the last attribute on U, by inverting the precision of all that is unknown."""
    A = np.zeros_like(field.truth) if given in ("features", "both") else np.full_like(field.truth, np.nan)
    A[:, -1] = np.where(U, np.nan, 0.0) if given in ("labels", "both") else np.nan
    _, covariance = oracle.field_given(field.W, field.mrf.H, field.mrf.C, A)
    which = np.zeros(A.shape, dtype=bool)
    which[U, -1] = True
    kept = which.T.ravel()[np.isnan(A).T.ravel()]
    return np.asarray(covariance[np.ix_(kept, kept)])


def some_labelled(seed: int, n: int) -> Bools:
    labelled = np.random.default_rng(seed).random(n) < 0.4
    labelled[:2] = False
    return labelled


@given(fields(), seeds)
def test_expected_r2_is_the_ratio_of_dense_traces(field: Field, seed: int) -> None:
    labelled = some_labelled(seed, len(field.W))
    prior = dense_covariance(field, ~labelled, "nothing")
    spread = np.trace(prior) - prior.sum() / len(prior)
    for kind in KINDS:
        expected = 1 - np.trace(dense_covariance(field, ~labelled, kind)) / spread
        actual = field.mrf.expected_r2(field.graph, -1, labelled, kind)
        np.testing.assert_allclose(actual, expected, atol=1e-8, rtol=1e-8)


def middling(seed: int, n: int = 300) -> tuple[Graph, GaussianMRF, Bools]:
    """A weighted graph with isolated nodes, a model and labels."""
    rng = np.random.default_rng(seed)
    u, v = rng.integers(0, n - 5, (2, 3 * n))
    graph = Graph.from_edges(u, v, rng.uniform(0.5, 2.0, u.size), n_nodes=n)
    H, C = parameters(rng, 3)
    return graph, GaussianMRF(H, C=C), rng.random(n) < 0.3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_probed_r2_lies_within_its_error_bar(seed: int, kind: KnownData) -> None:
    graph, mrf, labelled = middling(seed)
    problem = last(graph, mrf, labelled)
    exact, no_error = estimate_r2(problem, kind)
    assert no_error == 0
    runs = [probed_r2(problem, kind, probes=32, random_state=s) for s in range(8)]
    distances = np.array([(value - exact) / (error + 1e-9) for value, error in runs])
    assert np.abs(distances).max() < 4.5
    assert (distances**2).mean() < 4
    assert max(error for _, error in runs) < 0.2 * (1 - exact) + 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_expected_r2_is_the_mean_over_simulated_data(kind: KnownData) -> None:
    n = 400
    node, rng = np.arange(n), np.random.default_rng(0)
    graph = Graph.from_edges(np.tile(node, 3), (node + rng.integers(1, 20, (3, n))).ravel() % n)
    mrf = GaussianMRF([[1.0, -0.9, 0.1], [-0.9, 2.0, -0.4], [0.1, -0.4, 0.8]], [10.0, 20.0, 5.0])
    labelled = rng.random(n) < 0.3
    scores = []
    for truth in mrf.sample(graph, 50, random_state=1):
        A = truth.copy()
        if kind == "labels":
            A[:, :-1] = np.nan
        A[:, -1] = np.nan if kind == "features" else np.where(labelled, A[:, -1], np.nan)
        mean = mrf.condition(graph, A).mean[:, -1]
        scores.append(r2_score(truth[~labelled, -1], mean[~labelled]))
    assert abs(np.mean(scores) - mrf.expected_r2(graph, -1, labelled, kind)) < 0.02


def remaining_variance(field: Field, U: Bools, labels: Ints, given: str) -> float:
    left = U.copy()
    left[labels] = False
    return float(np.trace(dense_covariance(field, left, given)))


@given(seeds, st.sampled_from(["both", "labels"]))
def test_suggestions_are_the_best_next_labels(seed: int, kind: str) -> None:
    field = random_field(seed)
    labelled = some_labelled(seed, len(field.W))
    chosen = suggest(last(field.graph, field.mrf, labelled), 3 if (~labelled).sum() > 3 else 1, given=kind)
    assert not labelled[chosen].any()
    for step in range(len(chosen)):
        before = list(chosen[:step])
        others = [i for i in np.flatnonzero(~labelled) if i not in before]
        left = [remaining_variance(field, ~labelled, np.array([*before, i]), kind) for i in others]
        best = remaining_variance(field, ~labelled, chosen[: step + 1], kind)
        assert best <= min(left) * (1 + 1e-8)


def test_fewer_suggestions_are_the_first_of_more() -> None:
    graph, mrf, labelled = middling(1)
    many = mrf.suggest(graph, -1, labelled, 6)
    assert len(set(many.tolist())) == 6
    np.testing.assert_array_equal(mrf.suggest(graph, -1, labelled, 3), many[:3])
    assert mrf.suggest(graph, -1, labelled, 0).size == 0


@pytest.mark.parametrize("kind", ["both", "labels"])
def test_probed_suggestions_are_nearly_as_good(kind: KnownData) -> None:
    graph, mrf, labelled = middling(2)
    problem = last(graph, mrf, labelled)
    chosen, best = probed_suggestions(problem, kind, 5), suggest(problem, 5, given=kind)
    before = np.trace(problem.covariance(kind))
    gains = [before - _left(problem.covariance(kind), np.flatnonzero(~labelled), nodes) for nodes in (chosen, best)]
    assert len(set(chosen.tolist())) == 5
    assert gains[0] >= 0.95 * gains[1]


def _left(Sigma: Floats, nodes: Ints, labels: Ints) -> float:
    known = np.isin(nodes, labels)
    cross = Sigma[known][:, ~known]
    gained = np.einsum("ij,ij->", cross, np.linalg.solve(Sigma[known][:, known], cross))
    return float(np.trace(Sigma[~known][:, ~known]) - gained)


def test_large_graphs_are_probed() -> None:
    graph, mrf, labelled = middling(0)
    problem = last(graph, mrf, labelled)
    assert estimate_r2(problem, "labels", exact_nodes=0)[1] > 0
    assert suggest(problem, 2, exact_nodes=0).shape == (2,)


def test_more_information_raises_the_expected_r2() -> None:
    graph, mrf, labelled = middling(4)
    by = {kind: mrf.expected_r2(graph, -1, labelled, kind) for kind in KINDS}
    assert by["both"] >= max(by["labels"], by["features"]) - 1e-12


def test_bad_questions_are_refused() -> None:
    graph, mrf, labelled = middling(0)
    with pytest.raises(InvalidInputError, match="given must be one of labels, features, both"):
        mrf.expected_r2(graph, -1, labelled, "everything")  # type: ignore[arg-type]  # what a user may try
    with pytest.raises(InvalidInputError, match="given must be one of both, labels"):
        suggest(last(graph, mrf, labelled), given="features")
    with pytest.raises(InvalidInputError, match="labelled must be True or False"):
        mrf.expected_r2(graph, -1, np.flatnonzero(labelled))  # type: ignore[arg-type]  # what a user may try
    with pytest.raises(InvalidInputError, match="at least 2 nodes must be unlabelled"):
        mrf.expected_r2(graph, -1, np.ones_like(labelled))
    with pytest.raises(InvalidInputError, match="k must be a whole number"):
        mrf.suggest(graph, -1, labelled, 10**6)
    with pytest.raises(InvalidInputError, match="target must be one of"):
        mrf.expected_r2(graph, "rent", labelled)


def test_the_target_is_the_last_attribute_and_one_node_is_suggested_unless_others_are_asked_for() -> None:
    field = random_field(5)
    names, mrf = field.mrf.names, field.mrf
    assert mrf.expected_r2(field.graph) == mrf.expected_r2(field.graph, names[-1])
    assert mrf.expected_r2(field.graph) != mrf.expected_r2(field.graph, names[-2])
    chosen = mrf.suggest(field.graph)
    assert chosen.tolist() == mrf.suggest(field.graph, names[-1], k=3)[:1].tolist()
    for quantity in (mrf.omega, mrf.alpha, mrf.beta, mrf.edge_beta):
        np.testing.assert_array_equal(quantity(), quantity(names[-1]))


def test_the_error_of_a_ratio_is_that_of_its_residuals_with_controls_regressed_out() -> None:
    rng, k = np.random.default_rng(0), 40
    controls = rng.normal(size=(2, k))
    spread = 5.0 + 0.3 * rng.normal(size=k) + controls[0]
    remaining = 2.0 + 0.1 * rng.normal(size=k) - 0.5 * controls[1]
    plain, error = ratio_of_means(remaining, spread, np.zeros((0, k)))
    ratio = remaining.mean() / spread.mean()
    assert plain == pytest.approx(1.0 - ratio)
    assert error == pytest.approx(np.std(remaining - ratio * spread, ddof=1) / spread.mean() / np.sqrt(k))
    design = np.column_stack([np.ones(k), controls.T])
    both = np.column_stack([remaining, spread])
    fit = np.linalg.lstsq(design, both)[0]
    (above, below), left = fit[0], both - design @ fit
    noise = (left[:, 0] - above / below * left[:, 1]) / below
    found = ratio_of_means(remaining, spread, controls)
    assert found == pytest.approx((1.0 - above / below, np.sqrt(noise @ noise / (k - 3) / k)))
    assert found[1] < 0.6 * error

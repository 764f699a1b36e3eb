"""Expected accuracy of counts and shares against simulation, and suggestions against dense algebra."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats

import latent
from families import grid
from graphmrf import GraphRegressor
from graphmrf._typing import Floats, Ints
from graphmrf.errors import InvalidInputError
from graphmrf.field import TERMS, AveragedPosterior, Design, ExpectedAccuracy, Observations, Responses
from graphmrf.field.dense import DenseField
from graphmrf.field.likelihoods import LIKELIHOODS
from graphmrf.field.posterior import Mixture
from graphmrf.field.reading import AtNodes, Link, Observed
from graphmrf.graph import Graph

SIDE = 7
N = SIDE**2
GRAPH = grid(SIDE)
DESIGN = Design.of(GRAPH, np.random.default_rng(0).standard_normal((N, 1)))
UNIT = 0.6
COORDINATES = {"field": 0.5, "noise": -1.5, "field.range": -1.5, "field.order": 0.5}
COUNTED = ("poisson", "negative-binomial", "binomial", "bernoulli")


@dataclass
class Drawn:
    """Observations of values that are drawn from a field, and their accuracy once some are known."""

    name: str
    seed: int
    least: float = 5.0

    def __post_init__(self) -> None:
        rng, likelihood = np.random.default_rng(self.seed), LIKELIHOODS[self.name]
        self.size = np.ones(N) if self.name == "bernoulli" else np.where(rng.random(N) < 0.5, self.least, 40.0)
        self.link = Link(likelihood, 0.0, UNIT)
        field = self.field(np.arange(N), np.zeros(N))
        self.x = np.array([COORDINATES.get(name, 0.0) for name in (*field.space.names, "total")])
        self.h: dict[str, Any] = latent.hyperparameters(1) | field.space.read(self.x)
        self.K = latent.prior(("field",), GRAPH.adjacency.toarray(), DESIGN, self.h)
        v = rng.multivariate_normal(np.zeros(N), self.K + self.h["noise"] * np.eye(N))
        self.y = likelihood.draw(UNIT * v, self.size, self.h, rng)
        self.order = rng.permutation(N)

    def field(self, rows: Ints, y: Floats) -> DenseField:
        labels = Responses(self.link.likelihood, rows, np.arange(rows.size), y, self.size[rows], 0.0, UNIT)
        return DenseField.of(DESIGN, (TERMS["field"],), labels)

    def accuracy(self, m: int) -> ExpectedAccuracy:
        rows = np.sort(self.order[:m])
        field = self.field(rows, self.y[rows])
        posterior = AveragedPosterior([field.posterior(self.x)])
        reading = Observed(self.link, self.size, self.size[rows])
        return ExpectedAccuracy(posterior, posterior.members[0].field.normal, reading, N, 0)

    def explained(self, m: int = 20, *, first: int = 20) -> float:
        """Explained deviance of what is not among the first m, over one rate of what is not among some first ones."""
        found = self.accuracy(m)
        U, among, likelihood = found.unknown, self.order[first:], self.link.likelihood
        predicted = self.size[U] * self.link.moments(AtNodes(found.posterior, U).values)[0]
        alone = self.size[among] * self.y[among].sum() / self.size[among].sum()
        left, total = (
            likelihood.deviance(self.y[rows], mean, self.size[rows]).mean()
            for rows, mean in ((U, predicted), (among, alone))
        )
        return float(1.0 - left / total) if total > 0 else np.nan


def assert_no_bias(expected: Floats, actual: Floats) -> None:
    """The median difference over draws, the first axis, is 0 but for .02 and its standard error."""
    gap = (expected - actual)[np.isfinite(actual).reshape(len(actual), -1).all(axis=1)]
    error = 1.25 * stats.median_abs_deviation(gap, scale="normal") / np.sqrt(len(gap))
    assert (np.abs(np.median(gap, axis=0)) < 0.02 + 2.5 * error).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", COUNTED)
def test_the_expected_accuracy_is_that_of_fields_drawn_from_the_model(name: str) -> None:
    draws = [Drawn(name, seed) for seed in range(60)]
    expected, actual = (
        [f(each) for each in draws] for f in (lambda d: d.accuracy(20).expected_r2()[0], Drawn.explained)
    )
    assert_no_bias(np.array(expected), np.array(actual))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["poisson", "binomial"])
def test_the_learning_curve_is_that_of_fields_drawn_from_the_model(name: str) -> None:
    draws = [Drawn(name, seed) for seed in range(60)]
    curves = np.array([each.accuracy(12).learning_curve([12, 24, 36], 1)[0] for each in draws])
    assert (np.diff(np.median(curves, axis=0)) > 0).all()
    assert_no_bias(curves, np.array([[each.explained(m, first=12) for m in (12, 24, 36)] for each in draws]))


@pytest.mark.slow
def test_other_labels_have_an_expected_accuracy_too() -> None:
    draws = [Drawn("poisson", seed) for seed in range(60)]
    actual = np.array([each.explained(24, first=24) for each in draws])
    for m in (12, 36):
        expected = [each.accuracy(m).expected_r2(np.isin(np.arange(N), each.order[:24]))[0] for each in draws]
        assert_no_bias(np.array(expected), actual)


@pytest.mark.parametrize(("mean", "variance", "size"), [(0.0, 0.5, 3.0), (1.0, 1.5, 10.0), (-1.0, 0.2, 0.5)])
def test_the_error_of_a_count_leaves_the_variance_that_counts_leave(mean: float, variance: float, size: float) -> None:
    """Against the exact posteriors of a Poisson rate given every count."""
    case = Drawn("poisson", 0)
    link = Link(LIKELIHOODS["poisson"], 0.0, 1.0)
    known = Mixture(np.ones(1), np.array([[mean]]), np.array([[variance]]))

    class One(AveragedPosterior):
        def values(self, nodes: Ints) -> Mixture:  # noqa: ARG002
            return known

    posterior = One(case.accuracy(5).posterior.members)
    reading = Observed(link, np.array([size]), np.array([size]))
    nothing = Observations.of(np.zeros(0, dtype=np.int64), np.zeros(0))
    found = ExpectedAccuracy(posterior, nothing, reading, 1, 0)
    (error,) = found.label_errors
    v = mean + np.sqrt(variance) * np.linspace(-7.0, 7.0, 2001)
    prior = stats.norm.pdf(v, mean, np.sqrt(variance))
    joint = stats.poisson.pmf(np.arange(2000)[:, None], size * np.exp(v)) * prior / prior.sum()
    share = joint.sum(axis=1)
    given = joint[share > 1e-12] / share[share > 1e-12, None]
    left = np.average(given @ v**2 - (given @ v) ** 2, weights=share[share > 1e-12])
    assert 1.0 / (1.0 / variance + 1.0 / error) == pytest.approx(left, rel=0.1)


def test_suggestions_are_the_greedy_choice_of_dense_algebra() -> None:
    case = Drawn("poisson", 3)
    found = case.accuracy(15)
    nodes, r2, reason = found.suggest(3)
    assert reason == ""
    given, errors = found.observations, found.label_errors
    rows, variances = given.nodes.tolist(), np.asarray(given.error).tolist()
    for node in nodes.tolist():
        left = {}
        for i in np.setdiff1d(found.unknown, rows).tolist():
            labels = [*rows, i]
            noise = np.diag([*variances, errors[i]]) + case.h["noise"] * np.eye(len(labels))
            gain = np.linalg.solve(case.K[np.ix_(labels, labels)] + noise, case.K[labels]).T
            variance = np.diag(case.K - gain @ case.K[labels])
            rest = np.setdiff1d(found.unknown, [*nodes[: len(labels) - 16].tolist(), i])
            now = np.diag(found.posterior.members[0].covariance_times(np.arange(N), np.eye(N)))
            left[i] = float(((variance - now) / errors)[rest].sum())
        assert left[node] == pytest.approx(min(left.values()), rel=0.05)
        rows, variances = [*rows, node], [*variances, float(errors[node])]
    assert (np.diff(r2) > 0).all()
    assert r2[0] > found.expected_r2()[0]


def test_counts_with_much_exposure_are_suggested_first() -> None:
    case = Drawn("poisson", 5, least=0.05)
    found = case.accuracy(15)
    assert (case.size[found.suggest(4)[0]] == 40.0).all()


def test_regressors_of_counts_expect_an_accuracy() -> None:
    rng, n = np.random.default_rng(0), 60
    ring = Graph.from_edges(np.arange(n), (np.arange(n) + 1) % n)
    people = rng.uniform(20.0, 200.0, n)
    cases = rng.poisson(0.2 * people * np.exp(np.sin(np.arange(n) / 6.0))).astype(float)
    cases[::3] = np.nan
    model = GraphRegressor(likelihood="poisson").fit(ring, None, cases, exposure=people)
    r2, error = model.expected_r2(return_std=True)
    assert 0.5 < r2 < 1.0
    assert 0.0 < error < 0.5
    curve = model.expected_learning_curve()
    assert curve["expected_r2"].iloc[0] == r2
    assert set(model.suggest(2)["node"]) <= set(np.flatnonzero(np.isnan(cases)))
    partly = GraphRegressor(likelihood="poisson").fit(
        ring, None, cases, exposure=np.where(np.isnan(cases), np.nan, people)
    )
    assert np.isfinite(partly.expected_r2())
    known = GraphRegressor().fit(ring, None, cases, std=np.where(np.isnan(cases), np.nan, 2.0))
    assert 0.0 < known.expected_r2() < 1.0
    ordered = GraphRegressor(likelihood="ordinal").fit(ring, None, np.minimum(cases // 20, 3))
    with pytest.raises(InvalidInputError, match="for classes use GraphClassifier"):
        ordered.expected_r2()

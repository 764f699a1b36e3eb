"""Several classes under a softmax: against a sampler, between representations, and derivatives."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax, softmax

import latent
import oracle
from graphmrf._typing import Floats, Ints
from graphmrf.field import TERMS, AveragedPosterior, Design, Responses
from graphmrf.field.classes import ClassFields, Sides, coupled, log_shares, probabilities
from graphmrf.field.dense import DenseField
from graphmrf.field.likelihoods import LIKELIHOODS
from graphmrf.field.sparse import SparseField
from graphmrf.graph import Graph

seeds = st.integers(0, 10**6)
NAMES = ("own", "field")


def sides(nodes: Ints, codes: Ints, classes: int) -> list[Responses]:
    return [
        Responses.of(LIKELIHOODS["bernoulli"], nodes, (codes == k).astype(float), np.ones(nodes.size))
        for k in range(classes)
    ]


def ring(n: int = 20, classes: int = 3) -> tuple[Graph, Design, Ints, Ints]:
    graph, rng = Graph.from_edges(np.arange(n), (np.arange(n) + 1) % n), np.random.default_rng(0)
    nodes = np.arange(0, n, 2)
    return graph, Design.of(graph, rng.standard_normal((n, 1))), nodes, rng.integers(0, classes, nodes.size)


def fields(design: Design, labels: list[Responses], names: tuple[str, ...] = NAMES) -> ClassFields:
    def make(side: Any) -> DenseField:
        return DenseField.of(design, tuple(TERMS[name] for name in names), side)

    return ClassFields.of(make, Sides(tuple(labels)))


def averages(found: ClassFields, x: Floats) -> list[AveragedPosterior]:
    return [AveragedPosterior([each.posterior(x)]) for each in found.each]


def test_probabilities_are_those_of_a_long_run_of_a_sampler() -> None:
    graph, design, nodes, codes = ring()
    labels, n = sides(nodes, codes, 3), 20
    found = fields(design, labels)
    x = np.zeros(found.size)
    h = latent.hyperparameters(1) | found.space.read(x)
    K = latent.prior(NAMES, graph.adjacency.toarray(), design, h) + h["noise"] * np.eye(n)
    among, means, rng = K[np.ix_(nodes, nodes)], log_shares(labels), np.random.default_rng(0)

    def log_density(v: Floats) -> Floats:
        logs = log_softmax(means[:, None] + v.reshape(-1, 3, nodes.size), axis=1)
        return np.asarray(logs[:, codes, np.arange(nodes.size)].sum(axis=1))

    drawn = oracle.elliptical_slice(log_density, np.kron(np.eye(3), among), chains=200, steps=1500, rng=rng)[300:]
    v = drawn.reshape(-1, 3, nodes.size)
    gain = K[:, nodes] @ np.linalg.inv(among)
    rest = np.linalg.cholesky(K - gain @ K[nodes] + 1e-9 * np.eye(n))
    everywhere = v @ gain.T + rng.standard_normal((*v.shape[:2], n)) @ rest.T
    expected = softmax(means[:, None] + everywhere, axis=1).mean(axis=0).T
    actual = probabilities(averages(found, x), labels, np.arange(n))
    np.testing.assert_allclose(actual.sum(axis=1), 1.0)
    np.testing.assert_allclose(actual, expected, atol=0.04)


@pytest.mark.parametrize("alike", [True, False])
def test_values_are_at_the_mode_of_the_softmax(*, alike: bool) -> None:
    graph, design, nodes, codes = ring(12)
    labels, rng = sides(nodes, codes, 3), np.random.default_rng(1)
    found = fields(design, labels, (*NAMES, "learned"))
    columns = [rng.standard_normal((12, 1)) for _ in range(1 if alike else 3)]
    designs = [
        replace(design, learned=each, learner=None if alike else lambda design: design.learned) for each in columns
    ]
    found = ClassFields(tuple(each.on(designs[k % len(designs)]) for k, each in enumerate(found.each)))
    x = np.zeros(found.size)
    h = latent.hyperparameters(1) | found.space.read(x)
    W, means = graph.adjacency.toarray(), log_shares(labels)
    Ks = [latent.prior((*NAMES, "learned"), W, designs[k % len(designs)], h) for k in range(3)]
    Ks = [K[np.ix_(nodes, nodes)] + h["noise"] * np.eye(nodes.size) for K in Ks]
    f, truth = np.tile(means[:, None], nodes.size), (codes == np.arange(3)[:, None]).astype(float)
    for _ in range(20_000):  # damped fixed-point steps of f = m + K (y - p)
        target = means[:, None] + np.array([K @ each for K, each in zip(Ks, truth - softmax(f, axis=0), strict=True)])
        f += 0.02 * (target - f)
    np.testing.assert_allclose(f, target, atol=1e-6)
    expected = []
    for k, each in enumerate(found.each):
        offset = means[k] - np.log(np.exp(np.delete(f, k, 0)).sum(0)) - labels[k].origin
        expected.append(each.observed(labels[k].moved(offset, f[k])).posterior(x).moments(np.arange(12)))
    actual = np.array(
        [each.moments(np.arange(12)) for each in coupled([each.posterior(x) for each in found.each], labels)]
    )
    gap = actual - np.array(expected)
    gap[:, 0] -= gap[:, 0].mean(axis=0)  # what all classes have in common changes no probability
    np.testing.assert_allclose(gap, 0.0, atol=2e-3)


def test_the_sparse_representation_agrees() -> None:
    n = 16
    graph = Graph.from_edges(np.arange(n - 1), np.arange(1, n))
    design = Design.of(graph, np.random.default_rng(2).standard_normal((n, 2)))
    nodes = np.arange(0, n, 2)
    labels = sides(nodes, np.array([0, 0, 1, 1, 2, 2, 0, 1]), 3)
    terms = tuple(TERMS[name] for name in NAMES)
    sparse = ClassFields.of(lambda side: SparseField.of(design, terms, side, {}), Sides(tuple(labels)))
    dense = fields(design, labels)
    x = latent.with_one_range(sparse.space, 0.5 * np.random.default_rng(3).standard_normal(sparse.size))
    z = dense.space.taken_from(sparse.space, x)
    one, other = (probabilities(averages(*each), labels, np.arange(n)) for each in ((sparse, x), (dense, z)))
    np.testing.assert_allclose(one, other, atol=1e-4)


@given(seeds)
@settings(max_examples=5)
def test_gradients_of_the_evidence_of_all_classes(seed: int) -> None:
    _, design, observations = latent.problem(seed)
    codes = np.random.default_rng(seed).integers(0, 3, observations.nodes.size)
    found = fields(design, sides(observations.nodes, codes, 3), ("own", "field", "nonlinear"))
    x = 0.5 * np.random.default_rng(seed).standard_normal(found.size)
    value, gradient, _ = found.expand(x)
    np.testing.assert_allclose(gradient, latent.slopes(found.value, x), atol=3e-4)
    parts = sum(each.value(x) - 0.5 * float(x @ x) for each in found.each)
    assert value == pytest.approx(parts + 0.5 * float(x @ x))


def test_a_row_that_counts_twice_is_two_rows() -> None:
    _, design, nodes, codes = ring(20, 2)
    y, once = codes.astype(float), np.ones(nodes.size)
    weight = np.where(y == 1, 2.0, 1.0)
    weighted = Responses.of(LIKELIHOODS["bernoulli"], nodes, y, once, weight)
    twice = np.concatenate([np.arange(nodes.size), np.flatnonzero(y == 1)])
    repeated = Responses.of(LIKELIHOODS["bernoulli"], nodes[twice], y[twice], once[twice])
    first, second = (DenseField.of(design, tuple(TERMS[name] for name in NAMES), each) for each in (weighted, repeated))
    x = 0.3 * np.random.default_rng(0).standard_normal(first.size)
    assert first.value(x) == pytest.approx(second.value(x), abs=1e-6)
    for one, other in zip(*(each.posterior(x).moments(np.arange(20)) for each in (first, second)), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)

"""The density of states against dense eigenvalues and against graphs whose spectrum is known in closed form."""

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import oracle
from cases import Case, cases
from graphmrf._typing import Floats
from graphmrf.graph import Graph
from graphmrf.linalg import spectrum
from graphmrf.linalg.limits import Limits, part_sizes
from graphmrf.linalg.spectrum import Spectrum, density_of_states


def ring(n: int) -> tuple[Graph, Floats]:
    i = np.arange(n)
    return Graph.from_edges(i, (i + 1) % n), 1 - np.cos(2 * np.pi * i / n)


def torus(rows: int, columns: int) -> tuple[Graph, Floats]:
    i, j = np.divmod(np.arange(rows * columns), columns)
    ends = np.concatenate([((i + 1) % rows) * columns + j, i * columns + (j + 1) % columns])
    waves = [np.cos(2 * np.pi * np.arange(k) / k) for k in (rows, columns)]
    return Graph.from_edges(np.tile(np.arange(i.size), 2), ends), 1 - np.add.outer(*waves).ravel() / 2


def star(n: int) -> tuple[Graph, Floats]:
    return Graph.from_edges(np.zeros(n - 1, dtype=int), np.arange(1, n)), np.array([0.0, *np.ones(n - 2), 2.0])


def complete(n: int) -> tuple[Graph, Floats]:
    return Graph.from_edges(*np.triu_indices(n, 1)), np.array([0.0, *np.full(n - 1, n / (n - 1))])


KNOWN = {"ring": ring(1500), "torus": torus(40, 50), "star": star(400), "complete": complete(150)}


@cache
def probed(name: str, seed: int) -> Spectrum:
    return density_of_states(KNOWN[name][0], probes=16, random_state=seed)


def log_det(strength: float, x: Floats) -> Floats:
    return np.asarray(np.log1p(strength * x))


@given(cases())
def test_exact_nodes_are_the_eigenvalues(case: Case) -> None:
    expected = np.linalg.eigvalsh(oracle.laplacian(case.W))
    states = density_of_states(case.graph)
    np.testing.assert_allclose(np.repeat(states.nodes, states.weights.astype(int)), expected, atol=1e-12)
    assert states.weights[0] == case.graph.n_components
    assert states.is_exact
    assert states.error(np.exp) == 0.0


@given(cases())
def test_probed_weights_reproduce_the_first_traces_exactly(case: Case) -> None:
    N = oracle.laplacian(case.W)
    states = density_of_states(case.graph, probes=8, steps=14)
    total = states.weights @ states.nodes[:, None] ** np.arange(3)
    if (states.weights > 0).all():
        np.testing.assert_allclose(total, [len(N), np.trace(N), np.trace(N @ N)], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", KNOWN)
def test_nodes_of_both_rules_are_eigenvalues_that_can_be(name: str) -> None:
    rules = probed(name, 0).rules
    assert rules is not None
    for nodes in (rules.nodes, rules.radau_nodes):
        assert nodes.min() >= 0.0
        assert nodes.max() <= 2.0


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("strength", [1.0, 30.0, 1000.0])
def test_error_bar_covers_the_truth(name: str, strength: float) -> None:
    _, eigenvalues = KNOWN[name]

    def f(x: Floats) -> Floats:
        return log_det(strength, x)

    truth = float(f(eigenvalues).sum())
    misses = []
    for seed in range(12):
        states = probed(name, seed)
        misses.append((states.sum(f) - truth) / (states.error(f) + 1e-10 * truth))
    assert np.abs(misses).max() < 4.0
    assert np.sqrt(np.mean(np.square(misses))) < 1.6
    assert probed(name, 0).error(f) < 0.01 * truth


def test_error_bar_grows_when_lanczos_is_cut_short() -> None:
    graph, eigenvalues = KNOWN["ring"]

    def f(x: Floats) -> Floats:
        return log_det(1e4, x)

    short = density_of_states(graph, probes=16, steps=6)
    assert short.error(f) > 2 * density_of_states(graph, probes=16, steps=100).error(f)
    assert abs(short.sum(f) - f(eigenvalues).sum()) < 3 * short.error(f)


def test_few_distinct_eigenvalues_need_no_luck() -> None:
    for name in ("star", "complete"):
        graph, eigenvalues = KNOWN[name]
        states = density_of_states(graph, probes=4)
        np.testing.assert_allclose(states.sum(np.sqrt), np.sqrt(eigenvalues).sum(), rtol=1e-7)


def test_zero_eigenvalues_of_every_component_are_exact_when_probed() -> None:
    graph = Graph.from_edges([0, 1, 3, 4], [1, 2, 4, 5], n_nodes=9)
    states = density_of_states(graph, probes=6)
    assert graph.n_components == 5
    assert states.nodes[0] == 0.0
    assert states.weights[0] == 5.0
    np.testing.assert_allclose(states.sum(np.log1p), density_of_states(graph).sum(np.log1p), rtol=0.2)


def test_graph_without_edges_has_only_zeros() -> None:
    for probes in (None, 4):
        states = density_of_states(Graph(np.zeros((5, 5))), probes=probes)
        np.testing.assert_allclose(states.sum(lambda x: x + 1.0), 5.0)


def test_same_seed_same_quadrature() -> None:
    graph, _ = KNOWN["torus"]
    first, again, other = (density_of_states(graph, probes=4, steps=20, random_state=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(first.nodes, again.nodes)
    assert not np.array_equal(first.nodes, other.nodes)


@pytest.mark.parametrize(("probes", "taken"), [(None, 128), (1, 4), (7, 7)])
def test_as_many_probes_are_taken_as_were_asked_for_and_four_at_least(probes: int | None, taken: int) -> None:
    found = density_of_states(Graph.from_edges([0], [1], n_nodes=500), probes=probes, limits=Limits(dense_spectrum=0))
    assert found.rules is not None
    assert len(found.rules.nodes) == taken


@pytest.mark.parametrize(
    ("truncation", "noise", "settled"),
    [(0.09, 1.0, True), (0.11, 1.0, False), (0.0, 0.0, True), (5.999e-12, 0.0, True), (6.001e-12, 0.0, False)],
)
def test_rules_are_settled_where_truncation_is_small_beside_noise_or_rounding(
    truncation: float, noise: float, settled: bool
) -> None:
    rules: Any = SimpleNamespace(
        truncation=lambda f: truncation * f(np.expm1(1.0) / 1000.0),
        noise=lambda f: noise * f(np.expm1(1.0) / 1000.0),
        weights=np.array([[2.0, 4.0], [0.0, 0.0]]),
    )
    assert spectrum.has_converged(rules) == settled


def test_large_graphs_need_fewer_probes_and_parts_are_full() -> None:
    assert [spectrum.probe_count(n) for n in (500, 40_000, 10**6)] == [128, 100, 16]
    assert part_sizes(40, 16) == [16, 16, 8]

"""Correlations of the graph field against dense powers of the Laplacian."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import random_case
from families import FAMILIES
from graphmrf import Graph
from graphmrf._typing import Floats
from graphmrf.field.spectrum import Correlations, FieldSpectrum, diameter, range_prior
from latent import correlations, filtered

seeds, ranges, orders = st.integers(0, 10**6), st.floats(-2.5, 2.5), st.floats(-1.3, 1.3)
GRAPHS = {name: graph for name, graph in FAMILIES.items() if graph.n_nodes > 3}


@given(seeds, ranges, orders)
def test_correlations_and_derivatives_are_those_of_dense_powers(seed: int, u: float, v: float) -> None:
    case, rng = random_case(seed), np.random.default_rng(seed)
    rows, prior = np.sort(rng.permutation(14)[:9]), range_prior(case.graph, "")
    kappa2, order, step = prior.median * math.exp(prior.spread * u), math.exp(v), 1e-4
    R, slopes = Correlations(FieldSpectrum(case.graph), rows).among(kappa2, order)
    by_range, by_order = slopes()
    among = np.ix_(rows, rows)
    np.testing.assert_allclose(R, correlations(case.W, kappa2, order)[among], atol=1e-6)
    up, down = math.exp(step), math.exp(-step)
    wider = correlations(case.W, kappa2 * up, order) - correlations(case.W, kappa2 * down, order)
    np.testing.assert_allclose(by_range, wider[among] / (2 * step), atol=1e-5)
    smoother = correlations(case.W, kappa2, order * up) - correlations(case.W, kappa2, order * down)
    np.testing.assert_allclose(by_order, smoother[among] / (2 * step), atol=1e-5)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS.keys())
@pytest.mark.parametrize("order", [0.3, 1.0, 2.0, 3.7])
def test_correlations_between_any_nodes(graph: Graph, order: float) -> None:
    W, nodes, others = graph.adjacency.toarray(), np.arange(graph.n_nodes), np.arange(graph.n_nodes)[::-2]
    for kappa2 in (0.01, 0.3, 3.0):
        found = FieldSpectrum(graph).between(kappa2, order, nodes, others)
        np.testing.assert_allclose(found, correlations(W, kappa2, order)[:, others], atol=1e-6)
        K = filtered(W, kappa2, order)
        expected = np.sqrt(np.diag(K) / np.diag(K).mean())
        np.testing.assert_allclose(FieldSpectrum(graph).deviations(kappa2, order), expected, atol=1e-6)


@given(seeds, ranges, orders)
def test_smoothed_columns_and_their_derivatives(seed: int, u: float, v: float) -> None:
    case = random_case(seed)
    prior = range_prior(case.graph, "")
    kappa2, order, step = prior.median * math.exp(prior.spread * u), math.exp(v), 1e-4
    fields = FieldSpectrum(case.graph)
    found = fields.combine(kappa2, order, fields.smoothed(case.X))

    def smoothed(kappa2: float, order: float) -> Floats:
        T = filtered(case.W, kappa2, order)
        return np.asarray(T / np.diag(T).mean() @ case.X)

    scale = np.abs(case.X).max()
    np.testing.assert_allclose(found[0], smoothed(kappa2, order), atol=1e-6 * scale)
    up, down = math.exp(step), math.exp(-step)
    wider = (smoothed(kappa2 * up, order) - smoothed(kappa2 * down, order)) / (2 * step)
    np.testing.assert_allclose(found[1], wider, atol=1e-4 * scale)
    smoother = (smoothed(kappa2, order * up) - smoothed(kappa2, order * down)) / (2 * step)
    np.testing.assert_allclose(found[2], smoother, atol=1e-4 * scale)


def test_the_range_of_a_path_reaches_its_smallest_eigenvalue() -> None:
    path = FAMILIES["path"]
    assert diameter(path) == 39
    assert diameter(FAMILIES["star"]) == 2
    assert diameter(FAMILIES["edgeless"]) == 0
    prior = range_prior(path, "field.range")
    lowest = float(path.eigenpairs[0][1])
    assert prior.median * math.exp(-2 * prior.spread) == pytest.approx(lowest, rel=0.1)
    assert prior.median * math.exp(2 * prior.spread) == pytest.approx(2.0)


@given(seeds)
def test_the_range_of_a_tree_does_not_depend_on_the_order_of_nodes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parents, order = [int(rng.integers(i)) for i in range(1, 30)], rng.permutation(30)
    tree = Graph.from_edges(np.arange(1, 30), parents)
    moved = Graph.from_edges(order[np.arange(1, 30)], order[parents])
    assert range_prior(moved, "") == range_prior(tree, "")

"""Averages over neighbours: against dense algebra and PyTorch Geometric, their draws, and their gradients."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import random_case
from graphmrf import Graph
from graphmrf._typing import Floats

torch = pytest.importorskip("torch")
neighbours = pytest.importorskip("graphmrf.networks.training")

CASE = random_case(11, n=40, p=3, labelled=20)
STAR = Graph.from_edges(np.zeros(50, dtype=int), np.arange(1, 51))


def dense(hop: Any, n: int) -> Floats:
    A = np.zeros((hop.pointers.size - 1, n))
    for i in range(len(A)):
        entries = slice(hop.pointers[i], hop.pointers[i + 1])
        A[i, hop.sources[hop.columns[entries]]] += hop.weights[entries]
    return A


def test_means_over_all_neighbours_are_those_of_the_matrix() -> None:
    rows, average = np.array([7, 3, 20]), neighbours.Average.mean(CASE.graph, 39)
    hop = average.hop(rows)
    A = ((CASE.W + np.eye(40)) / (CASE.W.sum(axis=1, keepdims=True) + 1.0))[rows]
    assert not average.random
    np.testing.assert_array_equal(hop.sources[:3], rows)
    np.testing.assert_allclose(dense(hop, 40), A, rtol=1e-6)


@pytest.mark.parametrize("limit", [1, 3, 30, 50])
def test_products_and_gradients_are_those_of_the_same_draw(limit: int) -> None:
    hop = neighbours.Average.mean(STAR, limit).hop(np.arange(20), 5)
    A = torch.tensor(dense(hop, 51)[:, hop.sources], dtype=torch.float32)
    H = torch.randn(len(hop.sources), 4, generator=torch.Generator().manual_seed(1), requires_grad=True)
    product = hop(H)
    torch.testing.assert_close(product, A @ H.detach(), rtol=1e-4, atol=1e-5)
    product.square().sum().backward()
    torch.testing.assert_close(H.grad, 2 * A.T @ (A @ H.detach()), rtol=1e-4, atol=1e-5)


def test_a_layer_agrees_with_pytorch_geometric() -> None:
    nn = pytest.importorskip("torch_geometric.nn")
    W = CASE.graph.adjacency.tocoo()
    layer = nn.GCNConv(3, 8)
    H = torch.tensor(CASE.X, dtype=torch.float32)
    edges, weights = torch.tensor(np.vstack(W.coords), dtype=torch.long), torch.tensor(W.data, dtype=torch.float32)
    expected = layer(H, edges, weights)
    hop = neighbours.Average.convolution(CASE.graph).hop(np.arange(40))
    torch.testing.assert_close(hop(H @ layer.lin.weight.T) + layer.bias, expected, rtol=1e-4, atol=1e-5)
    expected.sum().backward()
    gradient = layer.lin.weight.grad.clone()
    layer.zero_grad()
    (hop(H @ layer.lin.weight.T) + layer.bias).sum().backward()
    torch.testing.assert_close(layer.lin.weight.grad, gradient, rtol=1e-4, atol=1e-4)


def test_neighbours_are_drawn_without_replacement_and_fairly() -> None:
    star = neighbours.Average.mean(STAR, 10)
    draws = np.stack([dense(star.hop(np.array([0]), 4, step), 51)[0] for step in range(3000)])
    assert star.random
    assert (np.count_nonzero(draws, axis=1) == 11).all()
    np.testing.assert_allclose(draws[:, 0], 1 / 11, rtol=1e-6)
    np.testing.assert_allclose(draws[draws > 0], 1 / 11, rtol=1e-6)
    drawn = draws[:, 1:] > 0
    assert np.abs(drawn.mean(axis=0) - 0.2).max() < 0.035
    assert abs(np.mean(drawn[:, 0] & drawn[:, 1]) - 10 * 9 / (50 * 49)) < 0.015
    assert abs(np.mean(drawn[1:, 0] & drawn[:-1, 0]) - 0.04) < 0.015


def test_drawn_means_heed_weights() -> None:
    graph = Graph.from_edges([0, 0, 0], [1, 2, 3], [1.0, 2.0, 3.0])
    row = dense(neighbours.Average.mean(graph, 2).hop(np.array([0]), 1), 4)[0]
    drawn = np.flatnonzero(row[1:])
    weights = np.array([1.0, 2.0, 3.0])[drawn]
    assert drawn.size == 2
    np.testing.assert_allclose(row[1:][drawn], weights / (1 + weights.sum()), rtol=1e-6)


@given(seed=st.integers(0, 2**31), limit=st.integers(1, 6))
def test_a_node_draws_the_same_in_any_company(seed: int, limit: int) -> None:
    average = neighbours.Average.mean(CASE.graph, limit)
    together = dense(average.hop(np.arange(40), seed, 3), 40)
    some = np.random.default_rng(seed).permutation(40)[:7]
    np.testing.assert_array_equal(dense(average.hop(some, seed, 3), 40), together[some])
    np.testing.assert_allclose(together.sum(axis=1), 1.0, rtol=1e-5)

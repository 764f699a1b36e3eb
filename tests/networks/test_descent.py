"""Training on the CPU: means against dense algebra, gradients by hand against those of PyTorch."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import random_case
from graphmrf import Graph
from graphmrf._typing import Floats
from graphmrf.estimators import Training
from graphmrf.networks.choices import Shape
from graphmrf.networks.descent import Lesson, Stack, descend
from graphmrf.networks.nearby import Nearby, Reach
from graphmrf.networks.neighbourhood import Means, Neighbourhood

CASE = random_case(11, n=40, p=3, labelled=20)
STAR = Graph.from_edges(np.zeros(50, dtype=int), np.arange(1, 51))


def dense(means: Means, n: int) -> Floats:
    A = np.zeros((means.pointers.size - 1, n))
    for i in range(len(A)):
        entries = slice(means.pointers[i], means.pointers[i + 1])
        A[i, means.sources[means.places[entries]]] += means.weights[entries]
    return A


def stack(shape: Shape, n_models: int, *, seed: int = 0) -> Stack:
    rng = np.random.default_rng(seed)
    sizes = shape.sizes(3)
    weights = [rng.normal(size=(n_models, *size)).astype(np.float32) for size in sizes]
    biases = [rng.normal(size=(n_models, 1, size[1])).astype(np.float32) for size in sizes]
    return Stack(shape, weights, biases if shape.bias else [])


def test_means_over_all_neighbours_are_those_of_the_matrix() -> None:
    rows = np.array([7, 3, 20])
    means = Neighbourhood.of(CASE.graph, 39).draw(rows)
    A = ((CASE.W + np.eye(40)) / (CASE.W.sum(axis=1, keepdims=True) + 1.0))[rows]
    np.testing.assert_array_equal(means.sources[:3], rows)
    np.testing.assert_allclose(dense(means, 40), A, rtol=1e-6)
    H = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)
    np.testing.assert_allclose(means @ H[means.sources], A @ H, atol=1e-5)
    spread = np.zeros((40, 5))
    spread[means.sources] = means.transposed(H[:3])
    np.testing.assert_allclose(spread, A.T @ H[:3], atol=1e-5)


def test_neighbours_are_drawn_without_replacement_and_fairly() -> None:
    star = Neighbourhood.of(STAR, 10)
    draws = np.stack([dense(star.draw(np.array([0]), 4, step), 51)[0] for step in range(3000)])
    assert star.random
    assert (np.count_nonzero(draws, axis=1) == 11).all()
    np.testing.assert_allclose(draws[draws > 0], 1 / 11, rtol=1e-6)
    drawn = draws[:, 1:] > 0
    assert np.abs(drawn.mean(axis=0) - 0.2).max() < 0.035
    assert abs(np.mean(drawn[:, 0] & drawn[:, 1]) - 10 * 9 / (50 * 49)) < 0.015
    assert abs(np.mean(drawn[1:, 0] & drawn[:-1, 0]) - 0.04) < 0.015


def test_drawn_means_heed_weights() -> None:
    graph = Graph.from_edges([0, 0, 0], [1, 2, 3], [1.0, 2.0, 3.0])
    row = dense(Neighbourhood.of(graph, 2).draw(np.array([0]), 1), 4)[0]
    drawn = np.flatnonzero(row[1:])
    weights = np.array([1.0, 2.0, 3.0])[drawn]
    assert drawn.size == 2
    np.testing.assert_allclose(row[1:][drawn], weights / (1 + weights.sum()), rtol=1e-6)


@given(seed=st.integers(0, 2**31), limit=st.integers(1, 6))
def test_a_node_draws_the_same_in_any_company(seed: int, limit: int) -> None:
    neighbours = Neighbourhood.of(CASE.graph, limit)
    together = dense(neighbours.draw(np.arange(40), seed, 3), 40)
    some = np.random.default_rng(seed).permutation(40)[:7]
    np.testing.assert_array_equal(dense(neighbours.draw(some, seed, 3), 40), together[some])
    np.testing.assert_allclose(together.sum(axis=1), 1.0, rtol=1e-5)


@pytest.mark.parametrize("limit", [2, 39])
@pytest.mark.parametrize("shape", [Shape(K, 4, relu=relu, bias=True) for K in (1, 2, 3) for relu in (True, False)])
def test_outputs_are_the_formula(shape: Shape, limit: int) -> None:
    nearby, networks, rows = Nearby.of(CASE.graph, CASE.X, limit), stack(shape, 2), np.array([5, 30, 2])
    actual = networks.outputs(nearby.reach(rows, shape, 9))
    for model in range(2):
        H = CASE.X
        for layer in range(shape.n_layers):
            A = dense(nearby.neighbours.draw(np.arange(40), 9, layer + 1), 40)
            H = A @ H @ networks.weights[layer][model] + networks.biases[layer][model]
            H = np.maximum(H, 0.0) if shape.relu else H
        expected = (H @ networks.weights[-1][model] + networks.biases[-1][model])[rows, 0]
        np.testing.assert_allclose(actual[model], expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    "shape", [Shape(K, 4, relu=r, bias=b) for K in (1, 2, 3) for r, b in [(True, True), (True, False), (False, True)]]
)
def test_gradients_are_those_of_pytorch(shape: Shape) -> None:
    torch = pytest.importorskip("torch")
    networks, reach = stack(shape, 3), Nearby.of(CASE.graph, CASE.X, 2).reach(np.array([5, 30, 2, 8]), shape, 1)
    y, weights = np.random.default_rng(1).random((2, 3, 4), dtype=np.float32)
    parts = [torch.tensor(part, requires_grad=True) for part in (*networks.weights, *networks.biases)]
    tensors, biases = parts[: shape.n_layers + 1], parts[shape.n_layers + 1 :] or [0.0] * 4
    H = torch.tensor(reach.features).expand(3, -1, -1)
    for layer in range(shape.n_layers):
        if layer and reach.means:
            H = torch.tensor(_matrix(reach, layer - 1)) @ H
        H = H @ tensors[layer] + biases[layer]
        H = torch.relu(H) if shape.relu else H
    error = (H @ tensors[-1] + biases[shape.n_layers])[..., 0] - torch.tensor(y)
    (torch.tensor(weights) * error**2).sum().backward()
    for actual, part in zip(networks.gradients(reach, y, weights), parts, strict=True):
        np.testing.assert_allclose(actual, part.grad.numpy(), rtol=1e-3, atol=1e-3)


def _matrix(reach: Reach, layer: int) -> Floats:
    means = reach.means[layer]
    local = Means(np.arange(means.sources.size), means.pointers, means.places, means.weights)
    return dense(local, means.sources.size).astype(np.float32)


def test_batches_are_a_part_of_the_training_nodes() -> None:
    masks = np.zeros((2, 40), dtype=bool)
    masks[0, :20], masks[1, 10:15] = True, True
    lesson = Lesson(Nearby.of(CASE.graph, CASE.X, 2), np.zeros((2, 40)), masks, Training(batch=0.25), 3)
    counts = np.zeros((2, 40))
    for _, (rows, weights) in zip(range(400), lesson.batches(), strict=False):
        np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-6)
        assert (np.count_nonzero(weights, axis=1) == [5, 2]).all()
        assert np.unique(rows).size == rows.size
        counts[:, rows] += weights > 0
    assert not counts[~masks].any()
    assert np.abs(counts[0, :20] / 400 - 0.25).max() < 0.08
    assert np.abs(counts[1, 10:15] / 400 - 0.4).max() < 0.09


def test_steps_are_those_of_adamw() -> None:
    torch = pytest.importorskip("torch")
    shape, masks = Shape(2, 4, relu=True, bias=True), np.ones((2, 40), dtype=bool)
    training = Training(neighbours=39, decay=0.01)
    networks, nearby = stack(shape, 2), Nearby.of(CASE.graph, CASE.X, 39)
    parts = [torch.tensor(part, requires_grad=True) for part in (*networks.weights, *networks.biases)]
    optimiser = torch.optim.AdamW(parts, lr=1e-2, weight_decay=1.0)
    y = np.random.default_rng(2).normal(size=(2, 40)).astype(np.float32)
    for _ in descend(networks, Lesson(nearby, y, masks, training, 0), 5):
        twin = Stack(shape, *([part.detach().numpy() for part in some] for some in (parts[:3], parts[3:])))
        reach = nearby.reach(np.arange(40), shape)
        for part, gradient in zip(parts, twin.gradients(reach, y, np.full((2, 40), 1 / 40, np.float32)), strict=True):
            part.grad = torch.tensor(gradient)
        optimiser.step()
    for part, expected in zip((*networks.weights, *networks.biases), parts, strict=True):
        np.testing.assert_allclose(part, expected.detach().numpy(), rtol=1e-3, atol=1e-4)

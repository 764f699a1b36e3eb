"""Networks trained at once: outputs against the formula, batches, steps against one network trained by hand."""

from typing import Any

import numpy as np
import pytest

from cases import random_case
from graphmrf._typing import Bools, Floats
from graphmrf.estimators import Training
from graphmrf.networks.options import LayerShape

torch = pytest.importorskip("torch")
training = pytest.importorskip("graphmrf.networks.training")

CASE = random_case(11, n=40, p=3, labelled=20)


def dense(hop: Any) -> Floats:
    A = np.zeros((hop.pointers.size - 1, 40))
    for i in range(len(A)):
        entries = slice(hop.pointers[i], hop.pointers[i + 1])
        A[i, hop.sources[hop.columns[entries]]] += hop.weights[entries]
    return A


def inputs(limit: int | None) -> Any:
    return training.Inputs.of(CASE.graph, CASE.X, Training(neighbours=limit), "cpu")


def problem(masks: Bools, options: Training, y: Floats | None = None) -> Any:
    y = np.zeros(40) if y is None else y
    return training.LearningTask(inputs(options.neighbours), y, masks, options, [3] * len(masks))


def networks(shape: LayerShape, n_models: int) -> Any:
    rng = np.random.default_rng(0)
    drawn = training.Networks.glorot(shape, 3, [0] * n_models, "cpu")
    for part in drawn.parameters:
        part.data = torch.tensor(rng.normal(size=part.shape), dtype=torch.float32)
    return drawn


def by_formula(stack: Any, averages: list[Floats], model: int) -> Floats:
    H, K = CASE.X, stack.shape.n_layers
    parts = [part[model].detach().numpy() for part in stack.parameters]
    weights, biases = parts[: K + 1], parts[K + 1 :] or [0.0] * (K + 1)
    for layer, A in enumerate(averages):
        H = A @ H @ weights[layer] + biases[layer]
        H = np.maximum(H, 0.0) if stack.shape.relu else H
    return np.asarray((H @ weights[-1] + biases[-1])[:, 0])


@pytest.mark.parametrize("limit", [2, 39, None])
@pytest.mark.parametrize(
    "shape",
    [LayerShape(K, 4, relu=r, bias=b) for K in (1, 2, 3) for r, b in [(True, True), (False, True), (True, False)]],
)
def test_outputs_are_the_formula(shape: LayerShape, limit: int | None) -> None:
    given, stack, rows = inputs(limit), networks(shape, 2), np.array([5, 30, 2])
    deeper = LayerShape(3, 4, relu=shape.relu, bias=True)
    for shapes in ([shape], [shape, deeper]):
        actual = stack(given.reach(rows, shapes, 9)).detach().numpy()
        for model in range(2):
            averages = [dense(given.average.hop(np.arange(40), 9, hop)) for hop in range(shape.n_layers, 0, -1)]
            expected = by_formula(stack, averages, model)[rows]
            np.testing.assert_allclose(actual[:, model, 0], expected, rtol=1e-3, atol=1e-3)


def test_batches_are_drawn_without_replacement_from_the_training_nodes() -> None:
    masks = np.zeros((2, 40), dtype=bool)
    masks[0, :20], masks[1, 10:15] = True, True
    batches, counts = problem(masks, Training(batch=0.25)).batches(), np.zeros((2, 40))
    for _, (rows, weights) in zip(range(400), batches, strict=False):
        assert np.unique(rows).size == rows.size
        np.testing.assert_allclose(weights.sum(axis=0), 1.0, rtol=1e-6)
        np.testing.assert_array_equal((weights > 0).sum(axis=0)[:, 0], [5, 2])
        counts[:, rows] += weights[..., 0].T > 0
    assert not counts[~masks].any()
    assert np.abs(counts[0, :20] / 400 - 0.25).max() < 0.08
    assert np.abs(counts[1, 10:15] / 400 - 0.4).max() < 0.09


def trained_alone(task: Any, model: int, shape: LayerShape, A: Any) -> Any:
    start = training.Networks.glorot(shape, 3, [3], "cpu").parameters
    parts = [part[0].detach().clone().requires_grad_() for part in start]
    weights, biases = parts[: shape.n_layers + 1], parts[shape.n_layers + 1 :]
    adam = torch.optim.Adam(parts, lr=task.training.learning_rate)
    X, y = torch.tensor(CASE.X, dtype=torch.float32), torch.tensor(task.y[model], dtype=torch.float32)
    for _, (rows, shares) in zip(range(5), task.batches(), strict=False):
        H = X
        for W, b in zip(weights[:-1], biases[:-1], strict=True):
            H = A @ H @ W + b
            H = torch.relu(H) if shape.relu else H
        error = (H @ weights[-1] + biases[-1])[rows, 0] - y[rows]
        adam.zero_grad()
        (error**2)[torch.tensor(shares[:, model, 0] > 0)].mean().backward()
        with torch.no_grad():
            for part in parts:
                part.mul_(1.0 - task.training.decay)
        adam.step()
    return parts


@pytest.mark.parametrize("relu", [True, False])
def test_networks_trained_at_once_are_those_trained_one_by_one(relu: bool) -> None:
    """Every network and depth by a loop anyone would write: its own Adam, dense averages, decay apart."""
    options = Training(batch=0.5, neighbours=39, decay=0.01)
    masks = np.random.default_rng(1).random((2, 40)) < 0.6
    y = np.random.default_rng(2).normal(size=(2, 40))
    shapes = [LayerShape(K, 4, relu=relu, bias=True) for K in (1, 3)]
    task = problem(masks, options, y)
    (stacks,) = training.train(task, shapes, [5])
    A = torch.tensor((CASE.W + np.eye(40)) / (CASE.W.sum(axis=1, keepdims=True) + 1.0), dtype=torch.float32)
    for shape, stack in zip(shapes, stacks, strict=True):
        for model in range(2):
            expected = trained_alone(task, model, shape, A)
            for actual, part in zip(stack.parameters, expected, strict=True):
                np.testing.assert_allclose(actual[model].detach(), part.detach(), rtol=1e-3, atol=1e-4)


def test_decay_multiplies_every_weight() -> None:
    """With no error left to learn from, only the decay acts: every step takes the same part of each weight."""
    given = training.Inputs.of(CASE.graph, np.zeros((40, 3)), Training(), "cpu")
    task = training.LearningTask(given, np.zeros(40), np.ones((1, 40), dtype=bool), Training(decay=0.1), [0])
    shape = LayerShape(1, 4, relu=True, bias=True)
    first = training.Networks.glorot(shape, 3, [0], "cpu")
    ((last,),) = training.train(task, [shape], [5])
    torch.testing.assert_close(last.weights[0], first.weights[0] * 0.9**5)


def test_weights_start_uniform_within_the_bounds_of_glorot() -> None:
    drawn = training.Networks.glorot(LayerShape(2, 64, relu=True, bias=True), 10, [1, 2, 1], "cpu")
    for weight, bias, bound in zip(drawn.weights, drawn.biases, np.sqrt([6 / 74, 6 / 128, 6 / 65]), strict=True):
        assert 0.9 * bound < weight.abs().max() <= bound
        assert abs(weight.std() - bound / np.sqrt(3)) < 0.2 * bound
        torch.testing.assert_close(weight[0], weight[2])
        assert not torch.equal(weight[0], weight[1])
        assert not bias.any()

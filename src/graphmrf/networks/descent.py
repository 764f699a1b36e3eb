"""Gradient descent on the CPU: all networks at once, their gradients by hand, at the nodes that reach a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.networks.choices import Shape
    from graphmrf.networks.nearby import Nearby, Reach
    from graphmrf.networks.training import Training

_compiled: Any = njit(cache=True, error_model="numpy", fastmath={"contract", "nsz", "arcp"})
_FIRST, _SECOND, _EPSILON = 0.9, 0.999, 1e-8
"""Memory of the mean gradient and of its square, and what the root of the latter never falls below."""


@dataclass(frozen=True)
class Stack:
    """Weights (n_models, in, out) and biases (n_models, 1, out) of every layer, changed where they are.

    Values between layers have the shape (n_rows, n_models, width): one mean then serves all networks.
    """

    shape: Shape
    weights: Sequence[Floats]
    biases: Sequence[Floats]

    def outputs(self, reach: Reach) -> Floats:
        """Return the outputs (n_models, n_rows)."""
        return self._last(self._layers(reach)[-1][1])

    def gradients(self, reach: Reach, y: Floats, weights: Floats) -> list[Floats]:
        """Return the gradients of the weighted squares of the errors, for all weights and then all biases."""
        layers = self._layers(reach)
        H = layers[-1][1]
        g = 2.0 * weights * (self._last(H) - y)
        slopes: list[Floats] = [H.transpose(1, 2, 0) @ g[..., None]]
        shifts: list[Floats] = [g.sum(axis=1)[:, None, None]]
        G = np.multiply(g.T[..., None], self.weights[-1][..., 0], order="C")
        for layer in range(self.shape.n_layers - 1, -1, -1):
            A, H = layers[layer]
            shift: Floats = np.zeros(G.shape[1:], dtype=np.float32)
            _back(_flat(G), _flat(H), shift.reshape(-1), self.shape.relu)
            shifts.append(shift[:, None])
            slopes.append(_common(A, G) if layer == 0 else A.transpose(1, 2, 0) @ G.transpose(1, 0, 2))
            if layer:
                G = _product(G, self.weights[layer].transpose(0, 2, 1))
                G = reach.means[layer - 1].transposed(_flat(G)).reshape(-1, *G.shape[1:]) if reach.means else G
        return slopes[::-1] + (shifts[::-1] if self.biases else [])

    def _layers(self, reach: Reach) -> list[tuple[Floats, Floats]]:
        """Return what every layer but the last reads, (n_rows, p) or (n_rows, n_models, width), and what it gives."""
        layers: list[tuple[Floats, Floats]] = []
        for layer in range(self.shape.n_layers):
            A = layers[-1][1] if layers else reach.features
            if layers and reach.means:
                A = (reach.means[layer - 1] @ _flat(A)).reshape(-1, *A.shape[1:])
            Z = _product(A, self.weights[layer]) if layer else _first(A, self.weights[0])
            shift = self.biases[layer] if self.biases else np.zeros(Z.shape[1:], dtype=np.float32)
            _activate(_flat(Z), shift.reshape(-1), self.shape.relu)
            layers.append((A, Z))
        return layers

    def _last(self, H: Floats) -> Floats:
        out = (H.transpose(1, 0, 2) @ self.weights[-1])[..., 0]
        return out + self.biases[-1][..., 0] if self.biases else out


@dataclass(frozen=True)
class Lesson:
    """What networks learn from.

    Attributes
    ----------
    nearby : Nearby
        The graph with its features.
    y : array of shape (n_models, n)
        Outcomes; read at training nodes only.
    masks : bool array of shape (n_models, n)
        Training nodes.
    training : Training
        How it is done.
    seed : int
        Of the batches, and the neighbours drawn.
    """

    nearby: Nearby
    y: Floats
    masks: Bools
    training: Training
    seed: int

    def batches(self) -> Iterator[tuple[Ints, Floats]]:
        """Yield nodes of any network's batch, and their weights (n_models, n_nodes) in its error, for ever."""
        rng, nodes = np.random.default_rng(self.seed), np.flatnonzero(self.masks.any(axis=0))
        allowed, counts = self.masks[:, nodes], self.masks.sum(axis=1, keepdims=True)
        sizes = np.ceil(self.training.batch * counts - 1e-9).astype(np.int64)
        while True:
            order = np.argsort(rng.random(size=(self.masks.shape[1],))[nodes])
            ordered = allowed[:, order]
            chosen = ordered & (np.cumsum(ordered, axis=1) <= sizes)
            used = chosen.any(axis=0)
            yield nodes[order[used]], (chosen[:, used] / sizes).astype(np.float32)


def descend(stack: Stack, lesson: Lesson, n_steps: int) -> Iterator[int]:
    """Yield the number of every step, when it is done."""
    parameters = [*stack.weights, *stack.biases]
    moments = [(np.zeros_like(part), np.zeros_like(part)) for part in parameters]
    options = lesson.training
    for step, (rows, weights) in zip(range(1, n_steps + 1), lesson.batches(), strict=False):
        with np.errstate(all="ignore"):  # what goes to infinity is seen at the end
            reach = lesson.nearby.reach(rows, stack.shape, lesson.seed, step)
            gradients = stack.gradients(reach, lesson.y[:, rows], weights)
        rates = np.array([options.learning_rate, 1 - options.decay, 1 - _FIRST**step, 1 - _SECOND**step])
        for part, gradient, (mean, square) in zip(parameters, gradients, moments, strict=True):
            _adam(_line(part), _line(gradient), _line(mean), _line(square), rates.astype(np.float32))
        yield step


def _line(values: Floats) -> Floats:
    """Return all numbers in one row; a view, if they lie so."""
    return np.ascontiguousarray(values).reshape(-1)


def _flat(H: Floats) -> Floats:
    return H.reshape(len(H), -1)


def _first(A: Floats, W: Floats) -> Floats:
    """Return the products (n_rows, n_models, out) of what all networks have in common."""
    n_models, n_in, n_out = W.shape
    return (A @ W.transpose(1, 0, 2).reshape(n_in, -1)).reshape(-1, n_models, n_out)


def _common(A: Floats, G: Floats) -> Floats:
    """Return the gradient (n_models, in, out) where all networks read the same."""
    return (A.T @ _flat(G)).reshape(A.shape[1], *G.shape[1:]).transpose(1, 0, 2)


def _product(A: Floats, W: Floats) -> Floats:
    """Return (n_rows, n_models, out) from values (n_rows, n_models, in)."""
    out = np.empty((*A.shape[:2], W.shape[2]), dtype=np.float32)
    np.matmul(A.transpose(1, 0, 2), W, out=out.transpose(1, 0, 2))
    return out


@_compiled
def _activate(Z: Any, shift: Any, relu: Any) -> None:
    for i in range(Z.shape[0]):
        for c in range(Z.shape[1]):
            value = Z[i, c] + shift[c]
            Z[i, c] = max(value, np.float32(0.0)) if relu else value


@_compiled
def _back(G: Any, H: Any, shift: Any, relu: Any) -> None:
    """Take the gradient back through the activation, and sum it over the rows."""
    for i in range(G.shape[0]):
        for c in range(G.shape[1]):
            value = G[i, c] if H[i, c] > 0 or not relu else np.float32(0.0)
            G[i, c] = value
            shift[c] += value


@_compiled
def _adam(part: Any, gradient: Any, mean: Any, square: Any, rates: Any) -> None:
    rate, keep, first, second = rates
    for k in range(part.size):
        mean[k] += np.float32(1 - _FIRST) * (gradient[k] - mean[k])
        square[k] += np.float32(1 - _SECOND) * (gradient[k] * gradient[k] - square[k])
        root = np.sqrt(square[k] / second) + np.float32(_EPSILON)
        part[k] = part[k] * keep - rate * (mean[k] / first) / root

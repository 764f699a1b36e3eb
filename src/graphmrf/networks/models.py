"""Several networks of one shape at once: every weight has a leading axis for the network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Generator, Tensor

    from graphmrf._typing import Floats
    from graphmrf.networks.choices import Shape
    from graphmrf.networks.operators import Operator


@dataclass(frozen=True)
class Networks:
    """Weights (n_models, in, out) and biases (n_models, 1, out) of every layer; no biases is an empty list."""

    shape: Shape
    weights: list[Tensor]
    biases: list[Tensor]

    @classmethod
    def glorot(cls, shape: Shape, n_features: int, seeds: Sequence[int], device: str) -> Networks:
        """Return one network for every seed: uniform weights, biases 0. Equal seeds give equal weights."""
        drawn = {seed: _uniform(shape.sizes(n_features), seed) for seed in set(seeds)}
        layers = zip(*(drawn[seed] for seed in seeds), strict=True)
        weights = [torch.stack(layer).to(device).requires_grad_() for layer in layers]
        widths = [weight.shape[2] for weight in weights if shape.bias]
        biases = [torch.zeros(len(seeds), 1, width, device=device).requires_grad_() for width in widths]
        return cls(shape, weights, biases)

    @classmethod
    def of(cls, shape: Shape, arrays: Sequence[Floats], device: str) -> Networks:
        """Return the network with these numbers, as `arrays` gives them."""
        tensors = [torch.tensor(array, device=device)[None] for array in arrays]
        n = shape.n_layers + 1
        return cls(shape, tensors[:n], tensors[n:])

    def arrays(self, model: int) -> list[Floats]:
        """Return the weights and biases of one network."""
        return [part[model].detach().cpu().numpy().copy() for part in self.parameters]

    @property
    def parameters(self) -> list[Tensor]:
        """All weights and biases."""
        return [*self.weights, *self.biases]

    def __call__(self, inputs: Inputs, rows: Tensor | None, generator: Generator) -> Tensor:
        """Return the outputs (n_models, n_rows) at some nodes.

        Parameters
        ----------
        inputs : Inputs
            Features of all nodes, and the average over neighbours.
        rows : tensor of shape (n_models, n_rows) or None
            Nodes of every network; None for all.
        generator : Generator
            What random averages are drawn from.
        """
        n_layers, H = self.shape.n_layers, inputs.first(generator)
        for layer in range(n_layers):
            averaged = H if layer == 0 else inputs.operator(H.transpose(0, 1).reshape(H.shape[1], -1), generator)
            H = self._dense(layer, self._pick(layer, averaged, rows if layer == n_layers - 1 else None))
            H = torch.relu(H) if self.shape.relu else H
        return self._dense(n_layers, H)[..., 0]

    def _pick(self, layer: int, averaged: Tensor, rows: Tensor | None) -> Tensor:
        """Return (n_models or 1, n_rows, in) from the columns of all networks, or those that all have in common."""
        columns = averaged.reshape(len(averaged), -1, self.weights[layer].shape[1])
        if rows is None:
            return columns.transpose(0, 1)
        model = torch.arange(len(rows), device=rows.device)[:, None] if layer else 0
        return columns[rows, model]

    def _dense(self, layer: int, H: Tensor) -> Tensor:
        product = H @ self.weights[layer]
        return product + self.biases[layer] if self.biases else product


@dataclass(frozen=True)
class Inputs:
    """Features (n, p) of all nodes, the average over neighbours, and the averaged features if they never change."""

    X: Tensor
    operator: Operator
    averaged: Tensor | None

    @classmethod
    def of(cls, X: Tensor, operator: Operator) -> Inputs:
        """Average the features once, if the average is always the same."""
        once = None if operator.random else operator(X, torch.Generator())
        return cls(X, operator, once)

    def first(self, generator: Generator) -> Tensor:
        """Return the averaged features."""
        return self.operator(self.X, generator) if self.averaged is None else self.averaged


def _uniform(sizes: Sequence[tuple[int, int]], seed: int) -> list[Tensor]:
    """Return matrices uniform within Glorot's bounds, drawn on the CPU so that all devices start alike."""
    generator = torch.Generator().manual_seed(seed)
    return [(torch.rand(size, generator=generator) * 2.0 - 1.0) * float(np.sqrt(6.0 / sum(size))) for size in sizes]

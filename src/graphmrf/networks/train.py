"""Gradient descent on several networks at once, each with its own training nodes."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from graphmrf.networks.descent import Lesson, Stack, descend
from graphmrf.networks.models import Inputs, Networks
from graphmrf.networks.nearby import Nearby
from graphmrf.networks.operators import convolution, mean, tensor

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from torch import Tensor

    from graphmrf._typing import Bools, Floats
    from graphmrf.graph import Graph
    from graphmrf.networks.choices import Shape
    from graphmrf.networks.training import Training

_SMALL = 4_000_000
"""Numbers in a hidden layer up to which a second thread costs more than it gives."""


@dataclass(frozen=True)
class Problem:
    """What networks learn from.

    Attributes
    ----------
    inputs : Inputs or Nearby
        Features of all nodes, and the average over neighbours.
    y : tensor of shape (n,) or (n_models, n)
        Outcomes; read at training nodes only.
    masks : bool array of shape (n_models, n)
        Training nodes of every network.
    training : Training
        How it is done.
    seeds : sequence of n_models ints
        Seeds of the initial weights; the first also of the batches and the neighbours drawn, which all networks share.
        Nothing drawn depends on the masks or the number of networks: one learns the same alone and in company.
    """

    inputs: Inputs | Nearby
    y: Tensor
    masks: Bools
    training: Training
    seeds: Sequence[int]

    @property
    def device(self) -> str:
        """Where the numbers are."""
        return str(self.y.device)


def inputs_of(graph: Graph, X: Floats, training: Training, device: str) -> Inputs | Nearby:
    """Return features and the average that the training asks for, on a device.

    Few neighbours on the CPU are drawn where a batch needs them; a GPU is quicker with those of all nodes.
    """
    limit = training.neighbours
    if limit is not None and device == "cpu":
        return Nearby.of(graph, X, limit)
    operator = convolution(graph, device) if limit is None else mean(graph, limit, device)
    return Inputs.of(tensor(X, device), operator)


def train(problem: Problem, shape: Shape, stops: Sequence[int]) -> Iterator[Networks]:
    """Yield the networks after each number of steps in `stops`, which increase; they go on learning afterwards."""
    networks = Networks.glorot(shape, problem.inputs.X.shape[1], problem.seeds, problem.device)
    with _threads(problem, shape):
        for step in _steps(problem, networks, max(stops)):
            if step in stops:
                yield networks


def outputs(networks: Networks, inputs: Inputs | Nearby, *, seed: int) -> Floats:
    """Return the outputs (n_models, n) at all nodes."""
    if isinstance(inputs, Nearby):
        with np.errstate(all="ignore"):
            return _stack(networks).outputs(inputs.reach(np.arange(len(inputs.X)), networks.shape, seed)).astype(float)
    generator = torch.Generator(inputs.X.device).manual_seed(seed)
    with torch.no_grad():
        values: Floats = networks(inputs, None, generator).cpu().numpy().astype(np.float64)
    return values


def _steps(problem: Problem, networks: Networks, n_steps: int) -> Iterator[int]:
    """Yield the number of every step, when it is done."""
    if isinstance(problem.inputs, Nearby):
        y = np.broadcast_to(problem.y.numpy(), problem.masks.shape)
        lesson = Lesson(problem.inputs, y, problem.masks, problem.training, problem.seeds[0])
        yield from descend(_stack(networks), lesson, n_steps)
        return
    options = problem.training
    optimiser = torch.optim.AdamW(
        networks.parameters, lr=options.learning_rate, weight_decay=options.decay / options.learning_rate
    )
    batches, generator = _Batches.of(problem), _generator(problem)
    for step in range(1, n_steps + 1):
        rows, weights = batches.draw(generator)
        optimiser.zero_grad()
        error = networks(problem.inputs, rows, generator) - _at(problem.y, rows)
        (error**2 * weights).sum().backward()
        optimiser.step()
        yield step


def _stack(networks: Networks) -> Stack:
    """Return the same numbers for the CPU without PyTorch; what is learned there is learned here."""
    weights, biases = ([part.detach().numpy() for part in parts] for parts in (networks.weights, networks.biases))
    return Stack(networks.shape, weights, biases)


@dataclass(frozen=True)
class _Batches:
    """Training nodes of every network among the `nodes` that are any network's, and the sizes of the batches."""

    nodes: Tensor
    allowed: Tensor
    sizes: Tensor
    n: int
    everything: bool

    @classmethod
    def of(cls, problem: Problem) -> _Batches:
        nodes = np.flatnonzero(problem.masks.any(axis=0))
        counts = problem.masks.sum(axis=1)
        sizes = np.ceil(problem.training.batch * counts - 1e-9).astype(np.int64)
        return cls(
            nodes=torch.tensor(nodes, device=problem.device),
            allowed=torch.tensor(problem.masks[:, nodes], device=problem.device),
            sizes=torch.tensor(sizes, device=problem.device),
            n=problem.masks.shape[1],
            everything=bool((sizes == counts).all()),
        )

    def draw(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return nodes (n_models, size) and their weight in the error: 1 / size, 0 for what only fills a row."""
        keys = torch.ones(len(self.nodes), device=self.nodes.device)
        if not self.everything:
            keys = torch.rand(self.n, generator=generator, device=self.nodes.device)[self.nodes]
        longest = int(self.sizes.max())
        keys = keys.masked_fill(~self.allowed, 2.0)
        places = keys.topk(longest, dim=1, largest=False, sorted=True).indices
        filled = torch.arange(longest, device=self.nodes.device) < self.sizes[:, None]
        return self.nodes[places], filled / self.sizes[:, None]


def _at(y: Tensor, rows: Tensor) -> Tensor:
    return y[rows] if y.ndim == 1 else y.gather(1, rows)


def _generator(problem: Problem) -> torch.Generator:
    return torch.Generator(problem.device).manual_seed(problem.seeds[0])


def _threads(problem: Problem, shape: Shape) -> AbstractContextManager[object]:
    small = problem.masks.size * shape.hidden <= _SMALL
    return threadpool_limits(1) if small and problem.device == "cpu" else nullcontext()

"""Many small networks of PyTorch trained at once: every weight has a leading axis for the network.

Engines multiply all rows of a graph and are not differentiable. Networks need products at the few nodes that a batch
reaches, with neighbours drawn again at every step and gradients by the transpose. Neighbours are drawn on the CPU, so
that all devices draw the same, and averaged on the device of the networks.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numba import njit
from scipy import sparse
from threadpoolctl import threadpool_limits
from torch.nn.functional import embedding_bag

from graphmrf.caching import cached_property
from graphmrf.engines.kernels import Kernel
from graphmrf.selection import training_masks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from torch import Tensor

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.graph import Graph
    from graphmrf.networks.options import LayerShape, Scaling, Training

_serial = partial(Kernel, parallel=False)
_ODD = np.uint64(0xBF58476D1CE4E5B9)  # the first multiplier of SplitMix64


@dataclass(frozen=True)
class Hop:
    """Weighted averages at some nodes, over the nodes `sources`: a sparse matrix in compressed rows."""

    sources: Ints  # (n_sources,): nodes whose values are read, those of the rows first
    # pointers, columns, weights (n_rows + 1,), (n_entries,), (n_entries,): the matrix (n_rows, n_sources)
    pointers: Ints
    columns: Ints
    weights: Floats
    device: str  # where it multiplies

    def __call__(self, H: Tensor) -> Tensor:
        """Return the averages (n_rows, k) of values (n_sources, k); differentiable in `H`."""
        return _Product.apply(H, self)

    def multiply(self, H: Tensor) -> Tensor:
        """Return the product, without gradients."""
        pointers, columns, weights = self._tensors
        return embedding_bag(columns, H, pointers, mode="sum", per_sample_weights=weights, include_last_offset=True)

    @cached_property
    def transpose(self) -> Hop:
        """The transposed matrix; its `sources` are the places of the rows."""
        shape = self.pointers.size - 1, self.sources.size
        T = sparse.csr_array((self.weights, self.columns, self.pointers), shape=shape).tocsc()
        pointers, rows = T.indptr.astype(np.int64, copy=False), T.indices.astype(np.int64, copy=False)
        return Hop(np.arange(shape[0]), pointers, rows, np.asarray(T.data, dtype=np.float32), self.device)

    @cached_property
    def _tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        parts = (self.pointers, self.columns, self.weights)
        pointers, columns, weights = (torch.from_numpy(part).to(self.device) for part in parts)
        return pointers, columns, weights


class _Product(torch.autograd.Function):
    """Product by a sparse matrix; PyTorch's own gradient of a weighted sum of rows takes ten times as long."""

    @staticmethod
    def forward(ctx: Any, H: Tensor, hop: Hop) -> Tensor:
        ctx.hop = hop
        return hop.multiply(H)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return ctx.hop.transpose.multiply(gradients[0].contiguous()), None


@dataclass(frozen=True)
class Average:
    """Weighted averages over each node and at most `limit` of its neighbours."""

    # pointers, columns, weights (n + 1,), (n_entries,), (n_entries,): the matrix (n, n) over all neighbours in
    # compressed rows, of which each begins with the node itself
    pointers: Ints
    columns: Ints
    weights: Floats
    # how many neighbours count; where there are more, they are drawn without replacement, and their weights scaled to
    # add up to 1 with that of the node
    limit: int

    @classmethod
    def convolution(cls, graph: Graph) -> Average:
        r"""Return :math:`\tilde S = (D + I)^{-1/2} (W + I) (D + I)^{-1/2}`."""
        graph.require_normalised()
        pointers, columns, weights = _with_loops(graph)
        root = 1.0 / np.sqrt(graph.degrees + 1.0)
        weights *= root[columns] * np.repeat(root, np.diff(pointers))
        return cls(pointers, columns, weights.astype(np.float32), graph.n_nodes)

    @classmethod
    def mean(cls, graph: Graph, limit: int) -> Average:
        """Return the mean, weighted by the edges."""
        pointers, columns, weights = _with_loops(graph)
        weights /= np.repeat(graph.degrees + 1.0, np.diff(pointers))
        return cls(pointers, columns, weights.astype(np.float32), limit)

    @cached_property
    def random(self) -> bool:
        """Whether a node has more neighbours than count."""
        return bool((np.diff(self.pointers) > self.limit + 1).any())

    @cached_property
    def keeps_constants(self) -> bool:
        """Whether the average of a constant is that constant: weights of every node add up to 1."""
        return bool(np.allclose(np.add.reduceat(self.weights, self.pointers[:-1]), 1.0, atol=1e-5))

    def hop(self, rows: Ints, *key: int, device: str = "cpu") -> Hop:
        """Return the averages at some nodes; a node draws the same for the same key, whatever the other rows are."""
        sizes = np.minimum(self.pointers[rows + 1] - self.pointers[rows], self.limit + 1)
        pointers = np.zeros(rows.size + 1, dtype=np.int64)
        np.cumsum(sizes, out=pointers[1:])
        columns, weights = np.empty(pointers[-1], dtype=np.int64), np.empty(pointers[-1], dtype=np.float32)
        sources = np.empty(min(self.pointers.size - 1, int(pointers[-1])), dtype=np.int64)
        matrix = (self.pointers, self.columns, self.weights)
        count = _draw(matrix, rows, _hash(key), (pointers, columns, weights, sources))
        return Hop(sources[:count], pointers, columns, weights, device)


def _with_loops(graph: Graph) -> tuple[Ints, Ints, Floats]:
    """Return compressed rows of W + I, each beginning with the node itself."""
    n = graph.n_nodes
    pointers = graph.indptr.astype(np.int64) + np.arange(n + 1)
    columns = np.insert(graph.indices.astype(np.int64), graph.indptr[:-1], np.arange(n))
    return pointers, columns, np.insert(graph.adjacency.data.astype(np.float64), graph.indptr[:-1], 1.0)


def _hash(key: tuple[int, ...]) -> Any:
    """Return one word of 64 bits for some integers."""
    word = 0
    for part in key:
        word = ((word ^ part) * 0x9E3779B97F4A7C15 + 0xD1B54A32D192ED03) & 0xFFFFFFFFFFFFFFFF
        word ^= word >> 29
    return np.uint64(word)


@_serial
def _draw(matrix: Any, rows: Any, key: Any, out: Any) -> Any:
    """Fill the matrix of averages at some rows; return the number of sources."""
    all_pointers, all_columns, all_weights = matrix
    pointers, columns, weights, sources = out
    place = np.full(all_pointers.size - 1, -1, dtype=np.int64)
    count = rows.size
    for i in range(rows.size):
        sources[i] = rows[i]
        place[rows[i]] = i
    shuffled = np.empty(all_columns.size, dtype=np.int64)
    for i in range(rows.size):
        start, stop, first, last = all_pointers[rows[i]], all_pointers[rows[i] + 1], pointers[i], pointers[i + 1]
        few = last - first < stop - start
        if few:
            _shuffle(shuffled, start + 1, stop, last - first - 1, key + np.uint64(rows[i]) * _ODD)
        total = np.float32(0.0)
        for t in range(last - first):
            entry = shuffled[t - 1] if few and t else start + t
            node = all_columns[entry]
            if place[node] < 0:
                place[node] = count
                sources[count] = node
                count += 1
            columns[first + t], weights[first + t] = place[node], all_weights[entry]
            total += all_weights[entry]
        if few:
            for t in range(first, last):
                weights[t] /= total
    return count


@njit(error_model="numpy")  # part of `_draw`, and cached with it
def _shuffle(out: Any, start: Any, stop: Any, count: Any, state: Any) -> None:
    """Begin `out` with `count` different numbers from start to stop - 1 (SplitMix64, high halves of the words)."""
    for t in range(stop - start):
        out[t] = start + t
    for t in range(count):
        state += np.uint64(0x9E3779B97F4A7C15)
        word = (state ^ (state >> np.uint64(30))) * _ODD
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        word = (word ^ (word >> np.uint64(31))) >> np.uint64(32)
        jump = np.int64((word * np.uint64(stop - start - t)) >> np.uint64(32))
        out[t], out[t + jump] = out[t + jump], out[t]


@dataclass(frozen=True)
class Networks:
    """Weights (n_models, in, out) and biases (n_models, 1, out) of every layer; no biases is an empty list.

    Values between layers have the shape (n_rows, n_models, width): one average over neighbours serves all networks.
    """

    shape: LayerShape
    weights: list[Tensor]
    biases: list[Tensor]

    @classmethod
    def glorot(cls, shape: LayerShape, n_features: int, seeds: Sequence[int], device: str) -> Networks:
        """Return one network for every seed: uniform weights, biases 0. Equal seeds give equal weights."""
        drawn = {seed: _uniform(shape.sizes(n_features), seed) for seed in set(seeds)}
        layers = zip(*(drawn[seed] for seed in seeds), strict=True)
        weights = [torch.stack(layer).to(device).requires_grad_() for layer in layers]
        widths = [weight.shape[2] for weight in weights if shape.bias]
        biases = [torch.zeros(len(seeds), 1, width, device=device).requires_grad_() for width in widths]
        return cls(shape, weights, biases)

    @classmethod
    def of(cls, shape: LayerShape, arrays: Sequence[Floats], device: str) -> Networks:
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

    def __call__(self, reach: Reach) -> Tensor:
        """Return the outputs (n_rows, n_models, 1) at the rows of a reach."""
        H, n_layers = reach.features[self.shape.n_layers], self.shape.n_layers
        for layer in range(n_layers):
            if layer and reach.hops:
                H = reach.hops[n_layers - layer - 1](H.flatten(1)).unflatten(1, H.shape[1:])
            H = self._dense(layer, H)
            H = torch.relu(H) if self.shape.relu else H
        return self._dense(n_layers, H)

    def _dense(self, layer: int, H: Tensor) -> Tensor:
        """Return (n_rows, n_models, out) from (n_rows, n_models, in), or from (n_rows, in) that all networks share."""
        W = self.weights[layer]
        bias = self.biases[layer] if self.biases else W.new_zeros(len(W), 1, W.shape[2])
        if H.ndim == 2:
            return torch.addmm(bias.flatten(), H, W.transpose(0, 1).flatten(1)).unflatten(1, (len(W), -1))
        return torch.baddbmm(bias, H.transpose(0, 1), W).transpose(0, 1)


@dataclass(frozen=True)
class Reach:
    """What networks read for their outputs at some rows."""

    features: dict[int, Tensor]  # averaged features for the first layer, (n_nodes, p), by the number of layers
    # averages before the last layer, the one before it, ...: the first is at the rows, each other at the sources of the
    # one before. None if features are averaged once for every layer: in a linear network averages may come before all
    # layers, if they leave constants as they are or there are none.
    hops: list[Hop]


@dataclass(frozen=True)
class Inputs:
    """Features (n, p) of all nodes and the average over neighbours, with cached powers where nothing is drawn."""

    X: Tensor
    average: Average
    powers: list[Tensor] = field(default_factory=list, repr=False)

    @classmethod
    def of(cls, graph: Graph, X: Floats, training: Training, device: str) -> Inputs:
        """Return features and the average that the training asks for, on a device."""
        limit = training.neighbours
        average = Average.convolution(graph) if limit is None else Average.mean(graph, limit)
        return cls(tensor(X, device), average)

    @property
    def device(self) -> str:
        """Where the numbers are."""
        return str(self.X.device)

    def reach(self, rows: Ints, shapes: Sequence[LayerShape], *key: int) -> Reach:
        """Return what networks of these shapes, all with the same activation, read for outputs at some nodes.

        Neighbours are drawn by the key and the number of the hop, counted from the rows: the same for all shapes.
        """
        depths, random = sorted({shape.n_layers for shape in shapes}), self.average.random
        first = not any(shape.relu or (shape.bias and not self.average.keeps_constants) for shape in shapes)
        if first and not random:
            return Reach({depth: self._power(depth)[rows] for depth in depths}, [])
        hops: list[Hop] = []
        for number in range(1, depths[-1] + random):
            nodes = hops[-1].sources if hops else rows
            hops.append(self.average.hop(nodes, *key, number, device=self.device))
        if random:
            features = {
                depth: _averaged(self.X, hops[:depth] if first else hops[depth - 1 : depth]) for depth in depths
            }
            return Reach(features, [] if first else hops)
        reached = [rows, *(hop.sources for hop in hops)]
        return Reach({depth: self._power(1)[reached[depth - 1]] for depth in depths}, hops)

    def _power(self, times: int) -> Tensor:
        """Return the features of all nodes, averaged some times."""
        if not self.powers:
            self.powers.append(self.X)
        while len(self.powers) <= times:
            everywhere = self.average.hop(np.arange(len(self.X)), device=self.device)
            self.powers.append(everywhere.multiply(self.powers[-1]))  # all nodes are rows, so sources are in order
        return self.powers[times]


def _averaged(X: Tensor, hops: Sequence[Hop]) -> Tensor:
    """Return features averaged by the last hop, then by those before it."""
    H = X[hops[-1].sources]
    for hop in reversed(hops):
        H = hop.multiply(H)
    return H


@dataclass(frozen=True)
class LearningTask:
    """What networks learn from."""

    inputs: Inputs  # features of all nodes, and the average over neighbours
    y: Floats  # (n,) or (n_models, n): outcomes; read at training nodes only
    masks: Bools  # (n_models, n): training nodes of every network
    training: Training  # how it is done
    # seeds of the initial weights; the first also of the batches and the neighbours drawn, which all networks share.
    # Nothing drawn depends on the masks or the number of networks: one learns the same alone and in company.
    seeds: Sequence[int]

    def steps(self, shapes: Sequence[LayerShape]) -> Iterator[tuple[Tensor, Tensor, Reach]]:
        """Yield for every step outcomes and weights in the error, (n_rows, n_models, 1), and what the networks read."""
        y: Floats = np.atleast_2d(np.nan_to_num(self.y)).T[..., None]
        for step, (rows, weights) in enumerate(self.batches()):
            reach = self.inputs.reach(rows, shapes, self.seeds[0], step + 1)
            parts = tensor(y[rows], self.inputs.device), tensor(weights, self.inputs.device), reach
            if self._whole and not self.inputs.average.random:
                yield from repeat(parts)
            yield parts

    @cached_property
    def _sizes(self) -> Ints:
        """Sizes (n_models,) of the batches."""
        slack = 1e-9  # as 0.1 * 30 is 3 + 4e-16, and would be rounded up
        return np.asarray(np.ceil(self.training.batch * self.masks.sum(axis=1) - slack), dtype=np.int64)

    @cached_property
    def _whole(self) -> bool:
        """Whether every batch has all training nodes."""
        return bool((self._sizes == self.masks.sum(axis=1)).all())

    def batches(self) -> Iterator[tuple[Ints, Floats]]:
        """Yield nodes of any network's batch, and their weights (n_rows, n_models, 1) in its error, without end.

        A batch is drawn without replacement: the first training nodes in a random order that all networks share.
        """
        rng, nodes = np.random.default_rng(self.seeds[0]), np.flatnonzero(self.masks.any(axis=0))
        allowed = np.ascontiguousarray(self.masks[:, nodes].T)
        while True:
            order = np.argsort(rng.random(size=(self.masks.shape[1],))[nodes])
            chosen = allowed[order]
            chosen &= np.cumsum(chosen, axis=0) <= self._sizes
            used = chosen.any(axis=1)
            weights: Floats = chosen[used] / self._sizes
            yield nodes[order[used]], weights[..., None]


def train(problem: LearningTask, shapes: Sequence[LayerShape], stops: Sequence[int]) -> Iterator[list[Networks]]:
    """Yield networks of every shape after each number of steps in `stops`; they go on learning afterwards.

    `problem`: the training data. `shapes`: shapes with the same activation: batches and averages are drawn once for
    all of them. `stops`: numbers of steps, increasing.
    """
    n_features, options = problem.inputs.X.shape[1], problem.training
    stacks = [Networks.glorot(shape, n_features, problem.seeds, problem.inputs.device) for shape in shapes]
    optimiser = torch.optim.AdamW(
        [_joined([part for networks in stacks for part in networks.parameters])],
        lr=options.learning_rate,
        weight_decay=options.decay / options.learning_rate,  # AdamW takes rate * weight_decay off every weight
        fused=True,
    )
    with _threads(problem, shapes):
        for step, (y, weights, reach) in zip(range(1, max(stops) + 1), problem.steps(shapes), strict=False):
            optimiser.zero_grad(set_to_none=False)
            outcomes = torch.cat([networks(reach) for networks in stacks], dim=2)
            (weights * (outcomes - y) ** 2).sum().backward()
            optimiser.step()
            if step in stops:
                yield stacks


def _joined(parts: Sequence[Tensor]) -> Tensor:
    """Return one parameter of which all the parts, and their gradients, become views: one step updates them all."""
    whole = torch.cat([part.detach().flatten() for part in parts])
    whole.grad = torch.zeros_like(whole)
    sizes = [part.numel() for part in parts]
    for part, values, gradient in zip(parts, whole.split(sizes), whole.grad.split(sizes), strict=True):
        part.data, part.grad = values.view_as(part), gradient.view_as(part)
    return whole


def outputs(networks: Networks, inputs: Inputs, *, seed: int) -> Floats:
    """Return the outputs (n_models, n) at all nodes; the same seed draws the same neighbours."""
    with torch.no_grad():
        reach = inputs.reach(np.arange(len(inputs.X)), [networks.shape], seed)
        values: Floats = networks(reach)[..., 0].T.cpu().numpy().astype(np.float64)
    return values


@dataclass(frozen=True)
class Learner:
    """One graph with features to train networks on, in the units of the user."""

    # graph, X (n, p): the nodes
    graph: Graph
    X: Floats
    scaling: Scaling  # from and to the units of the user
    training: Training  # how it is done
    # seed, device: seed of everything random, and where to compute
    seed: int
    device: str

    @cached_property
    def inputs(self) -> Inputs:
        """Features and averages on the device."""
        return Inputs.of(self.graph, self.scaling.features(self.X), self.training, self.device)

    def learn(
        self, y: Floats, masks: Bools, shapes: Sequence[LayerShape], stops: Sequence[int]
    ) -> Iterator[list[Networks]]:
        """Yield networks of every shape, one for each row of `masks` (its training nodes), after each stop."""
        problem = LearningTask(self.inputs, self.scaling.outcome(y), masks, self.training, [self.seed] * len(masks))
        yield from train(problem, shapes, stops)

    def predict(self, networks: Networks) -> Floats:
        """Return the predictions (n_models, n) at all nodes."""
        return self.scaling.prediction(outputs(networks, self.inputs, seed=self.seed))

    def without_folds(
        self, y: Floats, folds: Ints, shapes: Sequence[LayerShape], stops: Sequence[int]
    ) -> Iterator[list[tuple[Floats, list[Floats]]]]:
        """Yield for each stop, shape by shape, out-of-fold predictions and the weights of the network of all labels.

        The predictions (n_labelled, n_folds) are those at the labelled nodes, by the networks that miss a fold.
        """
        labelled = np.flatnonzero(~np.isnan(y))
        masks = np.vstack([training_masks(self.graph.n_nodes, labelled, folds).T, ~np.isnan(y)])
        for stacks in self.learn(y, masks, shapes, stops):
            yield [(self.predict(networks)[:-1, labelled].T, networks.arrays(-1)) for networks in stacks]


def tensor(values: Floats, device: str) -> Tensor:
    """Return the values in single precision on the device."""
    return torch.from_numpy(np.array(values, dtype=np.float32, order="C")).to(device)


def _uniform(sizes: Sequence[tuple[int, int]], seed: int) -> list[Tensor]:
    """Return matrices uniform within Glorot's bounds, drawn on the CPU so that all devices start alike."""
    generator = torch.Generator().manual_seed(seed)
    return [(torch.rand(size, generator=generator) * 2.0 - 1.0) * float(np.sqrt(6.0 / sum(size))) for size in sizes]


def _threads(
    problem: LearningTask, shapes: Sequence[LayerShape], *, few: int = 4_000_000
) -> AbstractContextManager[object]:
    """Limit PyTorch to one thread for few numbers in a hidden layer of all networks: two would wait for each other."""
    small = problem.masks.size * shapes[0].hidden <= few
    return threadpool_limits(1) if small and problem.inputs.device == "cpu" else nullcontext()

"""What a layer does with the features of the neighbours: products by a sparse matrix, kept with its transpose."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from scipy import sparse

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from graphmrf._typing import Floats, Ints
    from graphmrf.graph import Graph


class Operator(Protocol):
    """An average over neighbours."""

    @property
    def random(self) -> bool:
        """Whether it is another one at every call."""

    def __call__(self, H: Tensor, generator: Generator) -> Tensor:
        """Return the average (n, k) of the columns of `H` (n, k)."""


class _Multiply(torch.autograd.Function):
    """Product by a sparse matrix; the gradient is a product by its transpose, which PyTorch would make every time."""

    @staticmethod
    def forward(ctx: Any, H: Tensor, A: Tensor, transpose: Tensor) -> Tensor:
        ctx.transpose = transpose
        return A @ H

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        return ctx.transpose @ gradients[0].contiguous(), None, None


@dataclass(frozen=True)
class Fixed:
    """A matrix that stays as it is."""

    A: Tensor
    transpose: Tensor
    random: bool = False

    def __call__(self, H: Tensor, generator: Generator) -> Tensor:  # noqa: ARG002 - nothing is drawn
        """Return A H."""
        return _Multiply.apply(H, self.A, self.transpose)


@dataclass(frozen=True)
class Sampled:
    """Means over the node and a few of its neighbours: `rest` for nodes that have no more, draws for the others.

    Attributes
    ----------
    rest : Fixed
        The rows of nodes whose neighbours all count.
    rows, starts, counts : tensors of shape (n_busy,)
        The other nodes, where their neighbours begin in `indices`, and how many they have.
    indices, weights : tensors of shape (n_entries,)
        Neighbours of all nodes, and the weights of the edges.
    limit : int
        How many neighbours are drawn.
    """

    rest: Fixed
    rows: Tensor
    starts: Tensor
    counts: Tensor
    indices: Tensor
    weights: Tensor
    limit: int
    random: bool = True

    def __call__(self, H: Tensor, generator: Generator) -> Tensor:
        """Return the means over one draw."""
        places = self._draw(generator)
        columns = torch.cat([self.rows[:, None], self.indices[places]], dim=1)
        weights = torch.cat([torch.ones_like(self.weights[:1]).expand(len(places), 1), self.weights[places]], dim=1)
        weights /= weights.sum(dim=1, keepdim=True)
        rows = self.rows[:, None].expand_as(columns)
        n = len(H)
        A = _compressed(rows.reshape(-1), columns.reshape(-1), weights.reshape(-1), n)
        transpose = A
        if H.requires_grad:
            columns, order = torch.sort(columns.reshape(-1), stable=True)
            transpose = _compressed(columns, rows.reshape(-1)[order], weights.reshape(-1)[order], n)
        return self.rest(H, generator) + _Multiply.apply(H, A, transpose)

    def _draw(self, generator: Generator) -> Tensor:
        """Return (n_busy, limit) places of neighbours, without replacement: a shuffle of every row, cut short."""
        shuffled = torch.arange(len(self.indices), device=self.indices.device)
        lengths = self.counts[:, None] - torch.arange(self.limit, device=self.counts.device)
        uniform = torch.rand(lengths.shape, generator=generator, device=lengths.device)
        jumps = torch.minimum((uniform * lengths).long(), lengths - 1)
        drawn = torch.empty_like(jumps)
        for t in range(self.limit):
            here, there = self.starts + t, self.starts + t + jumps[:, t]
            drawn[:, t] = shuffled[there]
            shuffled[there] = shuffled[here]
        return drawn


def convolution(graph: Graph, device: str) -> Fixed:
    r"""Return :math:`\tilde S = (D + I)^{-1/2} (W + I) (D + I)^{-1/2}`."""
    d = sparse.diags_array(1.0 / np.sqrt(graph.degrees + 1.0))
    A = _tensor(d @ _with_loops(graph) @ d, device)
    return Fixed(A, A)


def mean(graph: Graph, limit: int, device: str) -> Fixed | Sampled:
    """Return the mean over a node and at most `limit` of its neighbours."""
    counts = np.diff(graph.indptr)
    busy = np.flatnonzero(counts > limit)
    scale = 1.0 / (graph.degrees + 1.0)
    scale[busy] = 0.0
    A = sparse.diags_array(scale) @ _with_loops(graph)
    rest = Fixed(_tensor(A, device), _tensor(A.T, device))
    if not busy.size:
        return rest
    integers = (busy, graph.indptr[busy], counts[busy], graph.indices)
    rows, starts, lengths, indices = (_integers(values, device) for values in integers)
    return Sampled(rest, rows, starts, lengths, indices, tensor(graph.adjacency.data, device), limit)


def tensor(values: Floats, device: str) -> Tensor:
    """Return a copy in single precision on the device."""
    return torch.tensor(values, dtype=torch.float32, device=device)


def _with_loops(graph: Graph) -> sparse.csr_array:
    return sparse.csr_array(graph.adjacency + sparse.eye_array(graph.n_nodes))


def _tensor(A: Any, device: str) -> Tensor:
    A = sparse.csr_array(A)
    A.eliminate_zeros()
    pointers, columns = _integers(A.indptr, device), _integers(A.indices, device)
    return _csr(pointers, columns, tensor(A.data, device), len(A.indptr) - 1)


def _integers(values: Ints, device: str) -> Tensor:
    return torch.tensor(values, dtype=torch.int64, device=device)


def _compressed(rows: Tensor, columns: Tensor, values: Tensor, n: int) -> Tensor:
    """Return the matrix of entries that are sorted by row."""
    pointers = torch.zeros(n + 1, dtype=torch.int64, device=rows.device)
    torch.cumsum(torch.bincount(rows, minlength=n), 0, out=pointers[1:])
    return _csr(pointers, columns.contiguous(), values.contiguous(), n)


def _csr(pointers: Tensor, columns: Tensor, values: Tensor, n: int) -> Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse", UserWarning)  # PyTorch calls all its sparse layouts beta
        return torch.sparse_csr_tensor(pointers, columns, values, size=(n, n), check_invariants=False)

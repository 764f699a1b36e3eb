"""The engine for one GPU: PyTorch tensors, with Triton kernels for the passes over edges and blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch

from graphmrf.caching import cached_property
from graphmrf.engines.protocol import Engine
from graphmrf.errors import InvalidInputError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from graphmrf._typing import Bools, Floats, Ints

Tensor: TypeAlias = Any  # a tensor of PyTorch


class TorchEngine(Engine):
    """Products by :math:`I - N` on a GPU; blocks are tensors (n, width), zero columns as padding.

    As with numba a block holds :math:`D^{-1/2} V`, and an edge of an unweighted graph is one addition of rows. Sums are
    taken in float64, program by program, and added in a fixed order: a run gives the same digits again.

    `indptr`, `indices`, `weights`: compressed rows of the adjacency; `weights` is None for an unweighted graph.
    `degrees` (n,): row sums of the adjacency. `device`: where the tensors are. On "cpu" plain PyTorch operations stand
    in for the kernels. `heavy`: edges above which a row is cut into segments of this length: a program takes about a
    millisecond for such rows. `memory`: bytes to plan with; by default 80 % of what is free on the device, as the rest
    is for temporary arrays. `chunk`: rows of the passes that need temporary arrays: 64 columns of them are 128 MB.
    `triton`: whether to use the kernels; by default on a GPU, where Triton is installed.
    """

    on_host = False

    def __init__(  # noqa: PLR0913 - the graph, and how it is computed
        self,
        indptr: Ints,
        indices: Ints,
        weights: Floats | None,
        degrees: Floats,
        *,
        device: str = "cuda",
        heavy: int = 1024,
        memory: float | None = None,
        chunk: int = 1 << 18,
        triton: bool | None = None,
    ) -> None:
        self._memory, self._chunk, self._triton = memory, chunk, triton
        self.n, self._device, self._heavy = degrees.size, torch.device(device), heavy
        self._check_room(indices.nbytes + (0 if weights is None else weights.nbytes) + 40 * self.n, "the graph")
        self._indptr, self._indices = self._put(indptr.astype(np.int64, copy=False)), self._put(indices)
        self._weights = None if weights is None else self._put(weights.astype(np.float64, copy=False))
        self._degrees = self._put(np.where(degrees > 0, degrees, 1.0))
        self._roots = self._degrees.sqrt()[:, None]
        self._cached: list[tuple[Any, Tensor]] = []
        self._typed_weights: dict[Any, Tensor] = {}

    def load(self, X: Floats, rows: Ints | None = None) -> Tensor:
        X = np.asarray(X)
        block = self.zeros(X.shape[1], X.dtype)
        values, roots = self._put(X), self._roots
        if rows is None:
            torch.div(values, roots, out=block[:, : X.shape[1]])
        else:
            places = self._keep(rows)
            block[places, : X.shape[1]] = (values / roots[places]).to(block.dtype)
        return block

    def unload(self, V: Tensor, k: int, rows: Ints | None = None) -> Floats:
        if rows is None:
            return _host((V[:, :k] * self._roots).to(V.dtype))
        places = self._keep(rows)
        return _host((V[places, :k] * self._roots[places]).to(V.dtype))

    def zeros(self, k: int, dtype: DTypeLike = np.float64) -> Tensor:
        return torch.zeros((self.n, _width(k)), dtype=_torch_type(dtype), device=self._device)

    def mask(self, allowed: Bools | None, width: int, rows: Ints | None = None) -> Tensor:
        if allowed is None:
            return torch.ones((1, width), dtype=torch.bool, device=self._device)
        block = torch.zeros((self.n, width), dtype=torch.bool, device=self._device)
        k = allowed.shape[1]
        if rows is None:
            block[:, :k] = self._put(allowed)
        else:
            block[:, :k] = True
            block[self._keep(rows), :k] = self._put(allowed)
        return block

    def like(self, V: Tensor) -> Tensor:
        return torch.empty_like(V)

    def advance(self, V: Tensor, scale: Floats, previous: Tensor, back: Floats, mask: Tensor, out: Tensor) -> Floats:
        s, b = self._put(np.stack([scale, back])).to(V.dtype)
        if self._kernels is None or not V.numel():
            self._around(V, out)
            out.mul_(s).sub_(previous * b).mul_(mask)
            return _host(self._sums(V, out) * s.double())
        arrays = (self._degrees, V, s, previous, b, mask, out)
        weights, (light, heavy, parts) = self._weights_in(V.dtype), self._rows
        dots = self._kernels.advance_rows((self._indices, weights, *light[1:]), light[0], V, arrays).sum(dim=0)
        if len(heavy[0]):
            G = self._kernels.segments((self._indices, weights, *parts), V)
            dots += self._kernels.advance_rows((None, None, *heavy[1:]), heavy[0], G, arrays).sum(dim=0)
        return _host(dots)

    def subtract(self, out: Tensor, coefficient: Floats, V: Tensor) -> Floats:
        factors = self._put(coefficient).to(V.dtype)
        if self._kernels is None or not V.numel():
            out -= V * factors
            return _host(self._sums(out, out))
        return _host(self._kernels.subtract_block(out, factors, V, self._degrees).sum(dim=0))

    def mix(self, V: Tensor, tables: Floats, kinds: Ints, minus: Tensor | None, out: Tensor) -> None:
        (_, q, r), small = tables.shape, self._keep(tables).to(V.dtype)
        groups, places = min(V.shape[1] // q, out.shape[1] // r), self._keep(kinds)
        if q == r == 1:  # without temporary arrays
            torch.mul(V[:, :groups], small[places, 0], out=out[:, :groups])
        for first in range(0, 0 if q == r == 1 else self.n, self._chunk):
            rows = slice(first, first + self._chunk)
            own = small[0] if len(small) == 1 else small[places[rows]]
            mixed = V[rows, : groups * q].reshape(-1, groups, q) @ own
            out[rows, : groups * r] = mixed.reshape(-1, groups * r)
        if groups * r < out.shape[1]:
            out[:, groups * r :] = 0.0
        if minus is not None:
            out -= minus

    def window(self, k: int, slots: int, rows: Ints | None, dtype: DTypeLike = np.float64) -> Tensor:
        """Return a window of zeros: values of shape (k, slots, n_rows), and the rows."""
        places = None if rows is None else self._keep(rows)
        shape = (k, slots, self.n if rows is None else len(rows))
        return torch.zeros(shape, dtype=_torch_type(dtype), device=self._device), places

    def store(self, V: Tensor, window: Tensor, slot: int) -> None:
        values, rows = window
        held, roots = (V, self._roots) if rows is None else (V[rows], self._roots[rows])
        torch.mul(held[:, : len(values)].T, roots.to(V.dtype).T, out=values[:, slot])

    def restore(self, window: Tensor, slot: int, out: Tensor) -> None:
        k = len(window[0])
        torch.div(window[0][:, slot].T, self._roots.to(out.dtype), out=out[:, :k])
        out[:, k:] = 0.0

    def combine(self, window: Tensor, coefficients: Floats, out: Tensor, keep: Floats | None = None) -> None:
        values = out[0]
        if keep is not None:
            values *= self._put(keep).to(values.dtype)[:, :, None]
        weights = self._put(coefficients).to(values.dtype)
        if weights.shape[2]:
            values.baddbmm_(weights, window[0][:, : weights.shape[2]])

    def read(self, window: Tensor) -> Floats:
        return _host(window[0])

    def columns(self, n_bytes: int) -> int:
        """Return how many columns of `n_bytes` each fit in the device's memory, at most 64: wider rows are no faster.

        Raises InvalidInputError if not even one does.
        """
        self._check_room(n_bytes, "one column of the solve")
        return int(min(64, self._room() // max(n_bytes, 1)))

    def _room(self) -> float:
        """Return the bytes of memory to plan with; infinite where the tensors are in main memory."""
        if self._memory is not None or self._device.type != "cuda":
            return float("inf") if self._memory is None else self._memory
        free = torch.cuda.mem_get_info(self._device)[0]
        unused = torch.cuda.memory_reserved(self._device) - torch.cuda.memory_allocated(self._device)
        return float(0.8 * (free + unused))

    def _check_room(self, needed: int, what: str) -> None:
        room = self._room()
        if needed > room:
            raise InvalidInputError(
                f"{what} must fit in the memory of the GPU: it takes {needed / 1e9:.1f} GB and {room / 1e9:.1f} GB can "
                'be used; use engine="numba", or a GPU with more memory'
            )

    def _put(self, array: Floats | Ints | Bools) -> Tensor:
        """Return an array on the device."""
        whole = np.ascontiguousarray(array)
        return torch.from_numpy(whole if whole.flags.writeable else whole.copy()).to(self._device)

    def _keep(self, array: Floats | Ints, most: int = 8) -> Tensor:
        """Return an array on the device, where some are cached: the same ones come with every step of a solve."""
        for known, tensor in self._cached:
            if known is array:
                return tensor
        tensor = self._put(array.astype(np.int64, copy=False) if array.dtype.kind in "iu" else array)
        self._cached = [*self._cached[1 - most :], (array, tensor)]
        return tensor

    @cached_property
    def _kernels(self) -> Any:
        """The Triton kernels; None where plain operations are used."""
        if not (self._device.type == "cuda" if self._triton is None else self._triton):
            return None
        try:
            from graphmrf.engines import triton_kernels
        except ImportError:
            return None
        return triton_kernels

    @cached_property
    def _rows(self) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Light rows, longest first, and heavy ones, each with its first and last edge; and the segments of these."""
        starts, counts = self._indptr[:-1], self._indptr.diff()
        order = torch.argsort((counts + 7) // 8, descending=True, stable=True)
        light, heavy = order[counts[order] <= self._heavy], order[counts[order] > self._heavy]
        pieces = (counts[heavy] + self._heavy - 1) // self._heavy
        stops = pieces.cumsum(0)
        within = torch.arange(int(pieces.sum()), device=self._device) - torch.repeat_interleave(stops - pieces, pieces)
        first = torch.repeat_interleave(starts[heavy], pieces) + within * self._heavy
        last = torch.minimum(first + self._heavy, torch.repeat_interleave(self._indptr[1:][heavy], pieces))
        small = torch.int32 if self.n < 2**31 and self._indices.numel() < 2**31 else torch.int64
        light_rows = light, starts[light], self._indptr[1:][light]
        return (tuple(each.to(small) for each in light_rows), (heavy, stops - pieces, stops), (first, last))

    def _around(self, V: Tensor, out: Tensor) -> None:
        """Set `out` to the mean of V over the neighbours of every node, or V itself where there are none."""
        gathered = V[self._indices.long()]
        weights = self._weights_in(V.dtype)
        if weights is not None:
            gathered = gathered * weights[:, None]
        out.zero_().index_add_(0, self._owners, gathered)
        out.div_(self._degrees[:, None])
        isolated = self._indptr.diff() == 0
        out[isolated] = V[isolated]

    @cached_property
    def _owners(self) -> Tensor:
        """Row of every edge."""
        return torch.repeat_interleave(torch.arange(self.n, device=self._device), self._indptr.diff())

    def _sums(self, U: Tensor, V: Tensor) -> Tensor:
        """Return the inner products of each column with its own."""
        return (self._degrees[:, None] * U * V.double()).sum(dim=0)

    def _weights_in(self, dtype: Any) -> Tensor | None:
        if self._weights is not None and dtype not in self._typed_weights:
            self._typed_weights[dtype] = self._weights.to(dtype)
        return None if self._weights is None else self._typed_weights[dtype]


def _torch_type(dtype: DTypeLike) -> Any:
    return torch.float32 if np.dtype(dtype) == np.float32 else torch.float64


def _host(tensor: Tensor) -> Floats:
    """Return the values of a tensor in main memory."""
    return np.asarray(tensor.contiguous().cpu().numpy())


def _width(k: int) -> int:
    """Return the width of a block of `k` columns: rows begin where the memory is read at once."""
    return k if k <= 2 else -(-k // 4) * 4

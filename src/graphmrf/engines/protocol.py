"""The protocol of engines, with a default wherever there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

import numpy as np

from graphmrf.engines.probes import random_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import DTypeLike

    from graphmrf._typing import Bools, Floats, Ints

Block: TypeAlias = Any
"""Columns over the nodes, in the engine's own format; callers only pass them on and read ``shape[1]``, the width."""

Window: TypeAlias = Any  # some rows of several blocks, in the engine's own format; callers only pass it on

_Result = TypeVar("_Result")


class RemoteEdges(Protocol):
    """Edges of a graph that only workers have read."""

    def looped(self) -> Engine:
        """Return the engine of the same graph with every node its own neighbour."""

    def components(self) -> tuple[int, Ints]:
        """Return the number of components, and that of every node."""

    def over_rows(self, function: Callable[..., Any], state: Any, about: Any) -> Iterator[tuple[Any, Any]]:
        """Yield what a function makes of the rows, part by part, see `Graph.over_rows`."""


class Engine(Protocol):
    """The few operations every solver is written in; coefficients are float64 arrays with one entry per column.

    Blocks are float32 or float64; every sum over nodes is taken in float64. An operation with a parameter `out` writes
    to it and returns no block: `out` is one that the caller got from `zeros`, `like` or `window`, and is none of the
    other blocks.

    A class that extends this one inherits what has a default: how work is divided (`map_columns`, `compute`), how many
    columns go together (`columns`), and where other arrays and the edges are (`on_host`, `affine`, `remote_edges`).

    Attributes
    ----------
    n : int
        Number of nodes.
    on_host : bool
        Whether blocks are arrays of NumPy in the main memory of this process: then `affine` is as fast as a product,
        and formulas may use NumPy on blocks.
    """

    n: int
    on_host: bool = True

    def load(self, X: Floats, rows: Ints | None = None) -> Block:
        """Return a new block with the columns of `X` (n, k); it may be wider than k, the rest being zero.

        With `rows`, `X` is (n_rows, k), and all other rows are zero.
        """

    def unload(self, V: Block, k: int, rows: Ints | None = None) -> Floats:
        """Return some rows of the first `k` columns of a block as an array (n_rows, k); None asks for all rows."""

    def zeros(self, k: int, dtype: DTypeLike = np.float64) -> Block:
        """Return a block of `k` columns of zeros, as wide as that of `k` loaded columns."""

    def random(self, seed: int, k: int, kind: Literal["rademacher", "normal"] = "rademacher") -> Block:
        """Return a float64 block of `k` random columns, the values of `graphmrf.engines.probes.random_columns`.

        An entry depends on the seed, its row and its column alone, so that rows may lie on several machines.
        """
        return self.load(random_columns(seed, self.n, k, kind))

    def mask(self, allowed: Bools | None, width: int, rows: Ints | None = None) -> Block:
        """Return a mask block: True lets an entry through. None lets everything through, and so do rows not given."""

    def columns(self, n_bytes: int) -> int | None:  # noqa: ARG002 - the default decides nothing
        """Return how many columns of `n_bytes` each to solve for at once; None leaves that to the caller."""
        return None

    def like(self, V: Block) -> Block:
        """Return a block of the same shape and type, not initialised."""

    def advance(self, V: Block, scale: Floats, previous: Block, back: Floats, mask: Block, out: Block) -> Floats:
        """Set ``out = mask * ((I - N) V scale - previous back)`` and return the inner products of V scale with it."""

    def subtract(self, out: Block, coefficient: Floats, V: Block) -> Floats:
        """Set ``out -= V coefficient`` and return the sum of squares of every column of the result."""

    def mix(self, V: Block, tables: Floats, kinds: Ints, minus: Block | None, out: Block) -> None:
        """Set ``out = V tables - minus`` with the small matrix ``tables[kinds[i]]``, q x r, at row i.

        The columns of `V` are groups of q, those of `out` groups of r; None subtracts nothing.
        """

    def window(self, k: int, slots: int, rows: Ints | None, dtype: DTypeLike = np.float64) -> Window:
        """Return a window of zeros: room for some rows (None: all) of the first `k` columns of `slots` blocks."""

    def store(self, V: Block, window: Window, slot: int) -> None:
        """Copy the window's rows and columns of a block into one of its slots."""

    def restore(self, window: Window, slot: int, out: Block) -> None:
        """Copy one slot of a window of all rows back into a block; columns beyond the window's become zero."""

    def combine(self, window: Window, coefficients: Floats, out: Window, keep: Floats | None = None) -> None:
        """Set ``out[c] = keep[c] out[c] + coefficients[c] @ window[c]`` for every column c; None is all 1.

        The coefficients are (k, slots of `out`, the first slots of `window`), `keep` is (k, slots of `out`).
        """

    def read(self, window: Window) -> Floats:
        """Return the values of a window as an array (k, slots, n_rows)."""

    def affine(self, M: Any, V: Floats, B: Floats | None, numbers: tuple[float, float, float]) -> Floats:
        """Return ``a V + b B + c M V`` for a sparse matrix `M` of the same type, any arrays, and numbers (a, b, c)."""
        a, b, c = numbers
        out = c * (M @ V) if B is None else b * B + c * (M @ V)
        return np.asarray(out + a * V if a else out)

    def map_columns(
        self,
        function: Callable[..., _Result],
        parts: Iterable[tuple[Any, ...]],
        total: int = 0,  # noqa: ARG002
    ) -> Iterator[_Result]:
        """Yield ``function(engine, *part)`` of every part, in their order.

        Parts are independent, such as blocks of columns or probes. By default they are computed one after the other. A
        cluster has workers compute them, each with an engine of its own, and again if one is lost. Blocks and windows
        must therefore not leave the function. `total` is the number of parts where it is known, to report progress.
        """
        return (function(self, *part) for part in parts)

    def compute(self, function: Callable[..., _Result], *part: Any) -> _Result:
        """Return ``function(engine, *part)``, a few operations that are too small to divide.

        An engine whose rows may be lost with a worker computes it again if they are.
        """
        return function(self, *part)

    def remote_edges(self) -> RemoteEdges:
        """Return the edges that workers have in place of the graph."""
        raise AssertionError

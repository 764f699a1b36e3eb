r"""Engines: what multiplies a block of columns by one operator, on whatever holds the data.

The operator is :math:`I - N`, that is :math:`S` with a 1 on the diagonal of isolated nodes. With it
:math:`I + \omega N = (1 + \omega)(I - \alpha (I - N))` holds at every node: no formula treats isolated nodes apart.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from graphmrf.engines.plain import PlainEngine

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats, Ints

__all__ = ["Block", "Engine", "engine_for"]

Block: TypeAlias = Any
"""Columns over the nodes as the engine keeps them; callers only hand them back and read ``shape[1]``, the width."""

_PLAIN_LIMIT = 100_000
"""Edges up to which SciPy is quick enough that loading numba and its kernels would take longer than the work."""


class Engine(Protocol):
    """The few operations every solver is written in; coefficients are float64 arrays with one entry per column."""

    n: int

    def load(self, X: Floats) -> Block:
        """Return a new block with the columns of `X` (n, k); it may be wider than k, the rest being zero."""

    def unload(self, V: Block, k: int) -> Floats:
        """Return the first `k` columns of a block as an array (n, k)."""

    def mask(self, allowed: Bools | None, width: int) -> Block:
        """Return a mask block: True lets an entry through. None lets everything through."""

    def like(self, V: Block) -> Block:
        """Return a block of the same shape and type, not initialised."""

    def squares(self, V: Block) -> Floats:
        """Return the sum of squares of every column."""

    def advance(self, V: Block, scale: Floats, previous: Block, back: Floats, mask: Block, out: Block) -> Floats:
        """Set ``out = mask * ((I - N) V scale - previous back)`` and return the inner products of V scale with it."""

    def subtract(self, out: Block, coefficient: Floats, V: Block) -> Floats:
        """Set ``out -= V coefficient`` and return the sum of squares of every column of the result."""

    def mix(self, V: Block, tables: Floats, kinds: Ints, minus: Block | None, out: Block) -> None:
        """Set ``out = V tables - minus`` with the small matrix ``tables[kinds[i]]``, q x r, at row i.

        The columns of `V` are groups of q, those of `out` groups of r; None subtracts nothing.
        """

    def store(self, V: Block, rows: Ints | None, window: Floats, slot: int) -> None:
        """Set ``window[c, slot, r] = V[rows[r], c]``, for the first ``len(window)`` columns."""

    def combine(self, window: Floats, coefficients: Floats, out: Floats) -> None:
        """Add ``coefficients[c] @ window[c]`` to ``out[c]``, for the slots that there are coefficients for."""


def engine_for(indptr: Ints, indices: Ints, weights: Floats | None, degrees: Floats) -> Engine:
    """Return the engine for a graph of this size: SciPy for small ones, numba's parallel kernels beyond."""
    if indices.size // 2 <= _PLAIN_LIMIT:
        return PlainEngine(indptr, indices, weights, degrees)
    # Loading numba takes longer than a whole job on a small graph, so only a large one loads it.
    cpu = import_module("graphmrf.engines.cpu")
    engine: Engine = cpu.CpuEngine(indptr, indices, weights, degrees)
    return engine

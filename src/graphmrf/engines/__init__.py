r"""Engines: what multiplies a block of columns by one operator, on whatever holds the data.

The operator is :math:`I - N`, that is :math:`S` with a 1 on the diagonal of isolated nodes. With it
:math:`I + \omega N = (1 + \omega)(I - \alpha (I - N))` holds at every node: no formula treats isolated nodes apart.

Blocks and windows stay where the engine keeps them until somebody asks for their values (`unload`, `read`). A new
device is one file with a class of these methods and one row in `ENGINES`; ``graph.to(name)`` runs everything on it.
"""

from __future__ import annotations

import ctypes
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

import numpy as np

from graphmrf.engines.scipy import ScipyEngine
from graphmrf.errors import InvalidInputError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import DTypeLike

    from graphmrf._typing import Bools, Floats, Ints

__all__ = [
    "ENGINES",
    "Block",
    "Engine",
    "EngineMaker",
    "Window",
    "build_engine",
    "check_engine",
    "compute",
    "map_columns",
]

Block: TypeAlias = Any
"""Columns over the nodes as the engine keeps them; callers only hand them back and read ``shape[1]``, the width."""

Window: TypeAlias = Any
"""Some rows of several blocks as the engine keeps them; callers only hand it back."""

LARGE_GRAPH = 5_000_000
"""Edges from which "auto" takes a GPU that is there: loading PyTorch and the kernels takes some seconds, about as long
as a search on such a graph takes on 16 cores. Doubled, a search on 10 million edges takes these seconds more."""

_Result = TypeVar("_Result")

SMALL_GRAPH = 100_000
"""Edges up to which "auto" takes SciPy: loading numba and its kernels takes about a second, longer than most work on
such a graph. Doubled, a solve on 200,000 edges takes some tenths of a second more, a short script a second less."""


class Engine(Protocol):
    """The few operations every solver is written in; coefficients are float64 arrays with one entry per column.

    Blocks are float32 or float64; every sum over nodes is taken in float64.
    """

    n: int

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

    def mask(self, allowed: Bools | None, width: int, rows: Ints | None = None) -> Block:
        """Return a mask block: True lets an entry through. None lets everything through, and so do rows not given."""

    def columns(self, n_bytes: int) -> int | None:
        """Return how many columns to solve for at once when one takes so many bytes; None leaves that to the caller."""

    def like(self, V: Block) -> Block:
        """Return a block of the same shape and type, not initialised."""

    def gram(self, U: Block, V: Block) -> Floats:
        """Return the inner products ``U.T @ V`` of all columns as a float64 array, padding included."""

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
        """Set ``out[c] = keep[c] out[c] + coefficients[c] @ window[c]`` for every column c; None keeps all of it.

        The coefficients are (k, slots of `out`, the first slots of `window`), `keep` is (k, slots of `out`).
        """

    def read(self, window: Window) -> Floats:
        """Return what a window holds as an array (k, slots, n_rows)."""


def _numba(indptr: Ints, indices: Ints, weights: Floats | None, degrees: Floats) -> Engine:
    # Loading numba takes longer than a whole job on a small graph, so only a graph that asks for it loads it.
    engine: Engine = import_module("graphmrf.engines.numba").local_engine(indptr, indices, weights, degrees)
    return engine


def _cuda(indptr: Ints, indices: Ints, weights: Floats | None, degrees: Floats) -> Engine:
    if find_spec("torch") is None:
        raise MissingExtraError('engine="cuda" needs PyTorch; pip install "graphmrf[gpu]"')
    if not import_module("torch").cuda.is_available():
        raise InvalidInputError(
            'engine="cuda" needs an NVIDIA GPU and a PyTorch built for it, and PyTorch finds none; pip install '
            '"graphmrf[gpu]" on a machine with a GPU and its driver, or take engine="numba"'
        )
    engine: Engine = import_module("graphmrf.engines.torch").TorchEngine(indptr, indices, weights, degrees)
    return engine


def gpu_present() -> bool:
    """Whether there are PyTorch and a GPU, found out without loading PyTorch where there is no driver."""
    try:
        ctypes.CDLL("libcuda.so.1" if sys.platform == "linux" else "nvcuda.dll")
    except OSError:
        return False
    return find_spec("torch") is not None and bool(import_module("torch").cuda.is_available())


EngineMaker: TypeAlias = "Callable[[Ints, Ints, Floats | None, Floats], Engine]"
"""What makes an engine from the compressed rows of the adjacency (weights None: all are 1) and the degrees."""

ENGINES: dict[str, EngineMaker] = {"scipy": ScipyEngine, "numba": _numba, "cuda": _cuda}
"""Engines by name."""


def check_engine(name: Any) -> str | EngineMaker:
    """Return the name of an engine, "auto", or a cluster; a Dask client becomes one. Raise InvalidInputError else."""
    if not isinstance(name, str) and (callable(name) or hasattr(name, "scheduler_info")):
        made: EngineMaker = name if callable(name) else import_module("graphmrf.engines.dask").cluster(name)
        return made
    if name not in {"auto", *ENGINES}:
        choices = ", ".join(repr(choice) for choice in ("auto", *ENGINES))
        raise InvalidInputError(f"engine must be one of {choices}, got {name!r}")
    return str(name)


def build_engine(
    name: str | EngineMaker,
    indptr: Ints,
    indices: Ints,
    weights: Floats | None,
    degrees: Floats,
    *,
    small: int = SMALL_GRAPH,
) -> Engine:
    """Return an engine for a graph; "auto" takes SciPy up to `small` edges and numba's parallel kernels beyond.

    From 5 million edges on it takes a GPU, where there is one.

    Examples
    --------
    >>> one_edge = np.array([0, 1, 2]), np.array([1, 0]), None, np.ones(2)
    >>> engine = build_engine("auto", *one_edge)
    >>> V, out = engine.load(np.array([[3.0], [5.0]])), engine.zeros(1)
    >>> engine.advance(V, np.ones(1), V, np.zeros(1), engine.mask(None, 1), out)
    array([30.])
    >>> engine.unload(out, 1).ravel()
    array([5., 3.])
    """
    chosen = _automatic(indices.size // 2, small) if name == "auto" else check_engine(name)
    make = ENGINES[chosen] if isinstance(chosen, str) else chosen
    return make(indptr, indices, weights, degrees)


def _automatic(n_edges: int, small: int) -> str:
    if n_edges <= small:
        return "scipy"
    return "cuda" if n_edges >= LARGE_GRAPH and gpu_present() else "numba"


def map_columns(
    engine: Engine | None, function: Callable[..., _Result], parts: Iterable[tuple[Any, ...]], *, total: int = 0
) -> Iterator[_Result]:
    """Yield ``function(engine, *part)`` of every part, in their order.

    Parts are independent: blocks of columns, say, or probes. Here they are computed one after the other; an engine
    with a method of this name, a cluster, has workers compute them, each with an engine of its own, and again if one
    is lost. Blocks and windows of an engine must therefore not leave the function. None stands for this machine.
    `total` is the number of parts where it is known, for those who wait.

    Examples
    --------
    >>> engine = build_engine("scipy", np.array([0, 1, 2]), np.array([1, 0]), None, np.ones(2))
    >>> list(map_columns(engine, lambda engine, columns: engine.n * columns, [(1,), (2,)]))
    [2, 4]
    """
    elsewhere = getattr(engine, "map_columns", None)
    return (function(engine, *part) for part in parts) if elsewhere is None else elsewhere(function, parts, total)


def compute(engine: Engine, function: Callable[..., _Result], *part: Any) -> _Result:
    """Return ``function(engine, *part)``, a few operations that are not worth sharing out.

    An engine with a method of this name, one whose rows may be lost with a worker, computes it again if they are.

    Examples
    --------
    >>> engine = build_engine("scipy", np.array([0, 1, 2]), np.array([1, 0]), None, np.ones(2))
    >>> compute(engine, lambda engine, columns: engine.n * columns, 3)
    6
    """
    elsewhere = getattr(engine, "compute", None)
    return function(engine, *part) if elsewhere is None else elsewhere(function, *part)

r"""Engines: products of a sparse operator and a block of columns, on one core, all cores, a GPU or a cluster.

The operator is :math:`I - N`, that is :math:`S` with a 1 on the diagonal of isolated nodes. With it
:math:`I + \omega N = (1 + \omega)(I - \alpha (I - N))` holds at every node: no formula treats isolated nodes apart.

Blocks and windows stay on the engine until their values are requested (`unload`, `read`). A new
device is one file, a class that extends `Engine`, and one row in `ENGINES`; ``graph.to(name)`` runs everything on it.
"""

from __future__ import annotations

import ctypes
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

from graphmrf.engines.protocol import Block, Engine, RemoteEdges, Window
from graphmrf.engines.scipy import ScipyEngine
from graphmrf.errors import InvalidInputError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphmrf._typing import Floats, Ints

__all__ = ["ENGINES", "Block", "Engine", "EngineMaker", "RemoteEdges", "Window", "build_engine", "check_engine"]

# Edges up to which "auto" takes SciPy: loading numba takes about a second, longer than most work on such a graph.
SMALL_GRAPH = 100_000


def _numba(indptr: Ints, indices: Ints, weights: Floats | None, degrees: Floats) -> Engine:
    # Loading numba takes longer than a whole job on a small graph, so only a graph that asks for it loads it.
    engine: Engine = import_module("graphmrf.engines.numba").local_engine(indptr, indices, weights, degrees)
    return engine


def build_cuda(indptr: Ints, indices: Ints, weights: Floats | None, degrees: Floats) -> Engine:
    """Return the engine of a GPU, or raise an error that names what is missing."""
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
    """Whether there is a GPU that PyTorch can use; without a driver PyTorch is not loaded."""
    try:
        ctypes.CDLL("libcuda.so.1" if sys.platform == "linux" else "nvcuda.dll")
    except OSError:
        return False
    return find_spec("torch") is not None and bool(import_module("torch").cuda.is_available())


EngineMaker: TypeAlias = "Callable[[Ints, Ints, Floats | None, Floats], Engine]"
"""Makes an engine from the compressed rows of the adjacency (weights None: all are 1) and the degrees."""

ENGINES: dict[str, EngineMaker] = {"scipy": ScipyEngine, "numba": _numba, "cuda": build_cuda}  # engines by name


def check_engine(name: Any) -> str | EngineMaker:
    """Return the name of an engine, "auto", or a cluster; a Dask client becomes one."""
    if not isinstance(name, str) and (callable(name) or hasattr(name, "scheduler_info")):
        made: EngineMaker = name if callable(name) else import_module("graphmrf.engines.dask").cluster(name)
        return made
    if name not in {"auto", *ENGINES}:
        choices = ", ".join(repr(choice) for choice in ("auto", *ENGINES))
        raise InvalidInputError(f"engine must be one of {choices}, got {name!r}")
    return str(name)


def build_engine(  # noqa: PLR0913 - the graph, and how it is computed
    name: str | EngineMaker,
    indptr: Ints,
    indices: Ints,
    weights: Floats | None,
    degrees: Floats,
    *,
    small: int = SMALL_GRAPH,
    large: int = 5_000_000,
) -> Engine:
    """Return an engine for a graph.

    "auto" takes SciPy up to `small` edges, then numba, and from `large` on a GPU if there is one.
    """
    chosen = _automatic(indices.size // 2, small, large) if name == "auto" else check_engine(name)
    make = ENGINES[chosen] if isinstance(chosen, str) else chosen
    return make(indptr, indices, weights, degrees)


def _automatic(n_edges: int, small: int, large: int) -> str:
    if n_edges <= small:
        return "scipy"
    return "cuda" if n_edges >= large and gpu_present() else "numba"

r"""Powers of the normalised adjacency with self loops, :math:`\tilde S = (D + I)^{-1/2} (W + I) (D + I)^{-1/2}`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphmrf.engines import build_engine
from graphmrf.graph.checks import index_type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphmrf._typing import Floats, Ints
    from graphmrf.engines import Block, Engine
    from graphmrf.graph import Graph


def loop_engine(graph: Graph) -> Engine:
    r"""Return what multiplies by :math:`\tilde S`: the engine of the graph in which every node is its own neighbour.

    An isolated node is its only neighbour, so its row of :math:`\tilde S` is that of the identity.
    """
    n = graph.n_nodes
    places, index = graph.indptr[1:], index_type(graph.indices.size + n, n)
    indptr = np.add(graph.indptr, np.arange(n + 1), dtype=index)
    indices = np.insert(graph.indices.astype(index, copy=False), places, np.arange(n, dtype=index))
    weights = None if graph.weights is None else np.insert(graph.weights, places, 1.0)
    return build_engine(graph.engine_name, indptr, indices, weights, graph.degrees + 1.0)


def powers(engine: Engine, X: Floats, order: int, rows: Ints | None = None) -> Floats:
    r"""Return some rows of :math:`X, \tilde S X, \ldots, \tilde S^K X`, each product made once.

    Parameters
    ----------
    engine : Engine
        What multiplies by the operator, see `loop_engine`.
    X : array of shape (n, k)
        Signals; float32 is computed in float32.
    order : int
        The highest power `K`.
    rows : integer array, optional
        Rows to keep; by default all.

    Returns
    -------
    array of shape (K + 1, n_rows, k)

    Examples
    --------
    >>> import numpy as np
    >>> from graphmrf.graph import Graph
    >>> engine = loop_engine(Graph.from_edges([0], [1], n_nodes=3))
    >>> powers(engine, np.array([[1.0], [3.0], [5.0]]), 1)[..., 0]
    array([[1., 3., 5.],
           [2., 2., 5.]])
    """
    window = engine.window(X.shape[1], order + 1, rows, X.dtype)
    for K, V in enumerate(_products(engine, X, order)):
        engine.store(V, window, K)
    return engine.read(window).transpose(1, 2, 0)


def power(engine: Engine, X: Floats, order: int) -> Floats:
    r"""Return :math:`\tilde S^K X`.

    Examples
    --------
    >>> import numpy as np
    >>> from graphmrf.graph import Graph
    >>> power(loop_engine(Graph.from_edges([0], [1], n_nodes=3)), np.array([[1.0], [3.0], [5.0]]), 2).ravel()
    array([2., 2., 5.])
    """
    *_, V = _products(engine, X, order)
    return engine.unload(V, X.shape[1])


def _products(engine: Engine, X: Floats, order: int) -> Iterator[Block]:
    V = engine.load(X)
    out, mask = engine.like(V), engine.mask(None, V.shape[1])
    ones, zeros = np.ones(V.shape[1]), np.zeros(V.shape[1])
    yield V
    for _ in range(order):
        engine.advance(V, ones, V, zeros, mask, out)
        V, out = out, V
        yield V

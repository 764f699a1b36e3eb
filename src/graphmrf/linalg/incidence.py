r"""The incidence of a graph, signed and scaled by degree: the root of its Laplacian, :math:`N = B'B`."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from graphmrf.linalg.lanczos import inverse

if TYPE_CHECKING:
    from graphmrf._typing import Floats
    from graphmrf.graph import Graph

_ENTRIES = 2**22


def incidence(graph: Graph, first: int = 0, stop: int | None = None) -> sparse.csr_array:
    r"""Return the rows of `B` for the edges from the nodes ``first .. stop - 1`` to higher-numbered ones.

    The row of an edge of weight `w` from `u` to `v` has the entries :math:`\sqrt{w / d_u}` and :math:`-\sqrt{w / d_v}`.

    Parameters
    ----------
    graph : Graph
        The graph.
    first, stop : int
        Range of nodes; by default all, which gives all edges.

    Returns
    -------
    sparse array of shape (n_edges, n)

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> graph = Graph.from_edges([0, 1], [1, 2])
    >>> B = incidence(graph)
    >>> bool(abs(B.T @ B - graph.N).max() < 1e-15)
    True
    """
    stop = graph.n_nodes if stop is None else stop
    span = slice(int(graph.indptr[first]), int(graph.indptr[stop]))
    u, v = np.repeat(np.arange(first, stop), np.diff(graph.indptr[first : stop + 1])), graph.indices[span]
    once = v > u
    u, v = u[once], v[once]
    d = inverse(np.sqrt(graph.degrees))
    root = 1.0 if graph.weights is None else np.sqrt(graph.weights[span][once])
    data = np.column_stack([root * d[u], -root * d[v]]).ravel()
    ends = np.column_stack([u, v]).ravel()
    return sparse.csr_array((data, ends, np.arange(0, 2 * u.size + 1, 2)), shape=(u.size, graph.n_nodes))


def edge_noise(graph: Graph, k: int, rng: np.random.Generator) -> Floats:
    r"""Return `k` independent draws of :math:`B' e` with `e` standard normal: their covariance is `N`, shape (n, k).

    Edges are taken some at a time, in memory of the order of the result; how many does not change the draws.

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> noise = edge_noise(Graph.from_edges([0], [1], n_nodes=3), 2, np.random.default_rng(0))
    >>> bool(np.allclose(noise.sum(axis=0), 0.0)), noise[2]
    (True, array([0., 0.]))
    """
    noise = np.zeros((graph.n_nodes, k))
    half_edges = 2 * max(graph.n_nodes, _ENTRIES // max(k, 1), 1)
    cuts = np.searchsorted(graph.indptr, np.arange(half_edges, graph.indices.size, half_edges))
    bounds = np.unique([0, *cuts.tolist(), graph.n_nodes])
    for first, stop in pairwise(bounds.tolist()):
        B = incidence(graph, first, stop)
        noise += B.T @ rng.standard_normal((B.shape[0], k))
    return noise

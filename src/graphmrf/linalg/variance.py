r"""Diagonals of inverses: the variance of what is unknown, exactly on small graphs and by probes on large ones.

A probe is a vector `z` of random signs; the mean of :math:`z \circ A z` over probes estimates the diagonal of `A`
without bias. Its noise comes from the entries off the diagonal, so the part of `A` whose diagonal is known in closed
form, the paths of length up to two, is taken out before probing and put back afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve, lapack

from graphmrf.linalg.shifted import product, solve
from graphmrf.linalg.smoothing import check_alphas, multiply, propagate

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats
    from graphmrf.graph import Graph

_EXACT_LIMIT = 3000
_PROBES = 64
_TOLERANCE = 1e-5


def conditional_variance(graph: Graph, known: Bools, alpha: float, *, seed: int = 0, probes: int = _PROBES) -> Floats:
    r"""Return the diagonal of :math:`(I + \omega N)_{UU}^{-1}`, and 0 at the known nodes.

    Exact by a dense factorisation while there are at most 3000 unknown nodes, otherwise estimated with random probes:
    with the default 64 the standard deviations derived from it are good to a few per cent.

    Parameters
    ----------
    graph : Graph
        The graph.
    known : bool array of shape (n,)
        The nodes that are conditioned on; none of them gives the marginal variance.
    alpha : float
        Smoothing level in [0, 1).
    seed : int
        Seed of the probes.
    probes : int
        Number of probes.

    Examples
    --------
    >>> import numpy as np
    >>> from graphmrf.graph import Graph
    >>> conditional_variance(Graph.from_edges([0, 1], [1, 2]), np.array([True, False, True]), 0.5)
    array([0. , 0.5, 0. ])
    """
    level = float(check_alphas(alpha))
    unknown = ~known
    variance = np.zeros(graph.n_nodes)
    if level == 0 or not unknown.any():
        variance[unknown] = 1.0
    elif np.count_nonzero(unknown) <= _EXACT_LIMIT:
        variance[unknown] = np.diag(_dense_inverse(_precision(graph, level)[unknown][:, unknown].toarray()))
    else:
        variance[unknown] = _probed_variance(graph, unknown, level, _signs(graph.n_nodes, probes, seed))[unknown]
    return variance


def loo_precision(graph: Graph, known: Bools, alpha: float, *, seed: int = 0, probes: int = _PROBES) -> Floats:
    r"""Return the diagonal of :math:`P = ([(I + \omega N)^{-1}]_{LL})^{-1}`, one entry per known node.

    The value at a known node, given those at the other known nodes, has variance :math:`1 / P_{ii}` and, for values
    `r`, lies :math:`(P r)_i / P_{ii}` away from its mean. `P` is also the Schur complement
    :math:`M_{LL} - M_{LU} M_{UU}^{-1} M_{UL}` of :math:`M = I + \omega N`: dense on small graphs, probed on large ones.

    Examples
    --------
    >>> import numpy as np
    >>> from graphmrf.graph import Graph
    >>> loo_precision(Graph.from_edges([0, 1], [1, 2]), np.array([True, False, True]), 0.5)
    array([1.75, 1.75])
    """
    level = float(check_alphas(alpha))
    unknown = ~known
    M = _precision(graph, level)
    if level == 0 or not unknown.any():
        return np.asarray(M.diagonal()[known])
    if np.count_nonzero(unknown) <= _EXACT_LIMIT:
        cross = M[unknown][:, known].toarray()
        factor = cho_factor(M[unknown][:, unknown].toarray(), lower=True, overwrite_a=True)
        return np.asarray(M.diagonal()[known] - np.einsum("ij,ij->j", cross, cho_solve(factor, cross)))
    return _probed_precision(graph, known, level, _signs(graph.n_nodes, probes, seed))[known]


def _precision(graph: Graph, alpha: float) -> sparse.csr_array:
    return sparse.csr_array(sparse.eye_array(graph.n_nodes) + alpha / (1.0 - alpha) * graph.N)


def _dense_inverse(A: Floats) -> Floats:
    """Return the inverse of a positive definite matrix; only its lower triangle and diagonal are meaningful."""
    factor, failed = lapack.dpotrf(A, lower=True, overwrite_a=True)
    assert not failed
    inverse, failed = lapack.dpotri(factor, lower=True, overwrite_c=True)
    assert not failed
    return np.asarray(inverse)


def _signs(n: int, probes: int, seed: int) -> Floats:
    return np.random.default_rng(seed).choice([-1.0, 1.0], size=(n, probes))


def _squared_paths(graph: Graph, end: Bools) -> Floats:
    """Return the diagonal of S E S for the 0/1 mask E: the sum of S_ij^2 over the ends j."""
    squares = graph.S
    squares = sparse.csr_array((squares.data**2, squares.indices, squares.indptr), shape=squares.shape)
    return np.asarray(squares @ end.astype(np.float64)) + (graph.isolated & end)


def _probed_variance(graph: Graph, unknown: Bools, alpha: float, Z: Floats) -> Floats:
    """(1 - alpha) (I - alpha S_UU)^-1, less what has a known diagonal: I + alpha S + alpha^2 S^2, constant parts."""
    allowed = np.broadcast_to(unknown[:, None], Z.shape)
    Z = Z * unknown[:, None]
    SZ = product(graph.engine, Z, allowed)
    solution = solve(graph.engine, Z, np.array([[1.0 / alpha]]), allowed=allowed, tolerance=_TOLERANCE)
    rest = solution.or_raise(_TOLERANCE)[0] / alpha - Z - alpha * SZ - alpha**2 * product(graph.engine, SZ, allowed)
    u, weight = _constant_vectors(graph, unknown), alpha**3 / (1.0 - alpha)
    rest -= weight * u[:, None] * _component_sums(graph, u[:, None] * Z)
    known_part = 1.0 + alpha * graph.isolated + alpha**2 * _squared_paths(graph, unknown) + weight * u**2
    return np.asarray((1.0 - alpha) * np.maximum((Z * rest).mean(axis=1) + known_part, 1.0))


def _constant_vectors(graph: Graph, unknown: Bools) -> Floats:
    """Return, side by side, the unit eigenvectors of I - N for eigenvalue 1 on the components without a known node."""
    weight = graph.degrees + graph.isolated
    total = np.bincount(graph.components, weight)
    free = np.bincount(graph.components, ~unknown) == 0
    return np.asarray(np.sqrt(weight / total[graph.components]) * free[graph.components])


def _component_sums(graph: Graph, X: Floats) -> Floats:
    """Return, at every node, the column sums of `X` over its component."""
    members = sparse.csr_array(
        (np.ones(graph.n_nodes), (graph.components, np.arange(graph.n_nodes))),
        shape=(graph.n_components, graph.n_nodes),
    )
    return np.asarray((members @ X)[graph.components])


def _probed_precision(graph: Graph, known: Bools, alpha: float, Z: Floats) -> Floats:
    """(P z)_L = (M [z_L; propagated z])_L, less M_LL z - M_LU M_UL z / (1 + omega), whose diagonal is known."""
    omega = alpha / (1.0 - alpha)
    Z = Z * known[:, None]
    filled = propagate(graph, Z, known, alpha, tolerance=_TOLERANCE)
    one_step = alpha * (multiply(graph, Z) * ~known[:, None])
    rest = -omega * multiply(graph, filled - Z - one_step)
    diagonal = (Z * rest).mean(axis=1)
    diagonal += 1.0 + omega * ~graph.isolated - omega * alpha * _squared_paths(graph, ~known)
    return np.asarray(np.clip(diagonal, 1.0, 1.0 + omega))

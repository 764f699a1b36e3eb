r"""Diagonals of inverses: the variance of what is unknown, exactly on small graphs and by probes on large ones.

A probe is a vector `z` of random signs; the mean of :math:`z \circ A z` over probes estimates the diagonal of `A`
without bias. Its noise comes from the entries off the diagonal, so the part of `A` whose diagonal is known in closed
form, the paths of length up to two, is taken out before probing and put back afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from graphmrf.linalg.cholesky import Dense
from graphmrf.linalg.shifted import product, solve
from graphmrf.linalg.smoothing import check_alphas, check_known, multiply, propagate

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphmrf._typing import Bools, Floats
    from graphmrf.graph import Graph

_EXACT_LIMIT = 3000
_PROBES = 64
_PROBES_AT_ONCE = 16
_ROWS_AT_ONCE = 1024
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
    level, unknown = float(check_alphas(alpha)), ~check_known(graph, known)
    variance = np.zeros(graph.n_nodes)
    if level == 0:
        variance[unknown] = 1.0
    elif np.count_nonzero(unknown) <= _EXACT_LIMIT:
        variance[unknown] = Dense(_precision(graph, level)[unknown][:, unknown].toarray()).variance
    else:
        rest = _mean(graph.n_nodes, probes, seed, lambda Z: _variance_rest(graph, unknown, level, Z))
        longer = level**3 / (1.0 - level) * _constant_vectors(graph, unknown) ** 2
        paths = 1.0 + level * graph.isolated + level**2 * _squared_paths(graph, unknown) + longer
        variance[unknown] = (1.0 - level) * np.maximum(rest + paths, 1.0)[unknown]
    return variance


def loo_precision(graph: Graph, known: Bools, alpha: float, *, seed: int = 0, probes: int = _PROBES) -> Floats:
    r"""Return the diagonal of :math:`P = ([(I + \omega N)^{-1}]_{LL})^{-1}`, one entry per known node.

    The value at a known node, given those at the other known nodes, has variance :math:`1 / P_{ii}` and, for values
    `r`, lies :math:`(P r)_i / P_{ii}` away from its mean. `P` is also the Schur complement
    :math:`M_{LL} - M_{LU} M_{UU}^{-1} M_{UL}` of :math:`M = I + \omega N`: dense on small graphs, probed on large ones.
    The parameters are those of `conditional_variance`.

    Examples
    --------
    >>> import numpy as np
    >>> from graphmrf.graph import Graph
    >>> loo_precision(Graph.from_edges([0, 1], [1, 2]), np.array([True, False, True]), 0.5)
    array([1.75, 1.75])
    """
    level, known = float(check_alphas(alpha)), check_known(graph, known)
    omega = level / (1.0 - level)
    diagonal = 1.0 + omega * ~graph.isolated
    if level == 0 or known.all():
        return np.asarray(diagonal[known])
    if np.count_nonzero(~known) <= _EXACT_LIMIT:
        return np.asarray(diagonal[known] - _explained(_precision(graph, level), known))
    rest = _mean(graph.n_nodes, probes, seed, lambda Z: _precision_rest(graph, known, level, Z))
    estimate = diagonal + rest - omega * level * _squared_paths(graph, ~known)
    return np.asarray(np.clip(estimate, 1.0, 1.0 + omega)[known])


def _precision(graph: Graph, alpha: float) -> sparse.csr_array:
    return sparse.csr_array(sparse.eye_array(graph.n_nodes) + alpha / (1.0 - alpha) * graph.N)


def _explained(M: sparse.csr_array, known: Bools) -> Floats:
    """Return the diagonal of M_LU M_UU^-1 M_UL; the known nodes may be many, so they are taken some at a time."""
    covariance = Dense(M[~known][:, ~known].toarray()).inverse
    cross = sparse.csr_array(M[known][:, ~known])
    explained = np.empty(cross.shape[0])
    for start in range(0, explained.size, _ROWS_AT_ONCE):
        part = cross[start : start + _ROWS_AT_ONCE]
        explained[start : start + _ROWS_AT_ONCE] = part.multiply(part @ covariance).sum(axis=1)
    return explained


def _mean(n: int, probes: int, seed: int, rest: Callable[[Floats], Floats]) -> Floats:
    """Return the mean of ``z * rest(z)`` over probes, which are taken some at a time to save memory."""
    rng, total = np.random.default_rng(seed), np.zeros(n)
    for start in range(0, probes, _PROBES_AT_ONCE):
        Z = 2.0 * rng.integers(0, 2, size=(n, min(_PROBES_AT_ONCE, probes - start)), dtype=np.int8) - 1.0
        total += (Z * rest(Z)).sum(axis=1)
    return total / probes


def _squared_paths(graph: Graph, end: Bools) -> Floats:
    """Return the diagonal of S E S for the 0/1 mask E: the sum of S_ij^2 over the ends j."""
    squares = graph.S
    squares = sparse.csr_array((squares.data**2, squares.indices, squares.indptr), shape=squares.shape)
    return np.asarray(squares @ end.astype(np.float64)) + (graph.isolated & end)


def _variance_rest(graph: Graph, unknown: Bools, alpha: float, Z: Floats) -> Floats:
    """(I - alpha S_UU)^-1 Z, less what has a known diagonal: I + alpha S + alpha^2 S^2, and constants."""
    allowed = np.broadcast_to(unknown[:, None], Z.shape)
    Z = Z * unknown[:, None]
    SZ = product(graph.engine, Z, allowed)
    solution = solve(graph.engine, Z, np.array([[1.0 / alpha]]), allowed=allowed, tolerance=_TOLERANCE)
    rest = solution.or_raise(_TOLERANCE)[0] / alpha - Z - alpha * SZ - alpha**2 * product(graph.engine, SZ, allowed)
    u = _constant_vectors(graph, unknown)[:, None]
    return np.asarray(rest - alpha**3 / (1.0 - alpha) * u * _component_sums(graph, u * Z))


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


def _precision_rest(graph: Graph, known: Bools, alpha: float, Z: Floats) -> Floats:
    """(M [z_L; propagated z])_L, less M_LL z - M_LU M_UL z / (1 + omega), whose diagonal is known."""
    Z = Z * known[:, None]
    filled = propagate(graph, Z, known, alpha, tolerance=_TOLERANCE)
    one_step = alpha * (multiply(graph, Z) * ~known[:, None])
    return np.asarray(-alpha / (1.0 - alpha) * multiply(graph, filled - Z - one_step))

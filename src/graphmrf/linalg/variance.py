r"""Diagonals of inverses: the variance of what is unknown, exactly on small graphs and from random draws on large ones.

The variance of a node is its variance given its neighbours, known in closed form, plus the variance of its mean given
them, estimated from draws `x` of the field:
:math:`\mathrm{var}(x_i) = (1 - \alpha)(1 + \alpha P_{ii}) + \alpha^2 \, \mathrm{var}((P x)_i)` with :math:`P = I - N`.

The diagonal of a precision `P` is estimated from Rademacher probes `z`, as the mean of :math:`z \circ P z`. Its
noise comes from the entries off the diagonal, so the part with a diagonal in closed form is taken out beforehand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from graphmrf.linalg.dense import Dense
from graphmrf.linalg.limits import LIMITS, Limits, part_sizes
from graphmrf.linalg.multishift import ShiftedSystems
from graphmrf.linalg.operator import edge_noise, rademacher_block, rademacher_edge_noise
from graphmrf.linalg.smoothing import check_alphas, check_known, multiply, propagate, smooth
from graphmrf.linalg.spectrum import null_vectors

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.engines import Engine
    from graphmrf.graph import Graph

# Draws or probes by default: the root mean square error of standard deviations is then 2 to 6 per cent on most
# graphs (`benchmarks/foresee.py`).
_PROBES = 64
# Level up to which draws are solved for in float32, in half the time: rounding is then a quarter of the tolerance
# below. At .99 it is as large as the tolerance, and a solve may not get there.
_SINGLE_ALPHA = 0.95


def conditional_variance(  # noqa: PLR0913 - the field, and how its variance is estimated
    graph: Graph,
    known: Bools,
    alpha: float,
    *,
    random_state: int = 0,
    probes: int = _PROBES,
    tolerance: float = LIMITS.draw_tolerance,
    limits: Limits = LIMITS,
) -> Floats:
    r"""Return the diagonal of :math:`(I + \omega N)_{UU}^{-1}`, and 0 at the nodes that are conditioned on.

    Exact up to `limits.dense_variance` unknown nodes, otherwise estimated from `probes` random draws: with the default
    64 the standard deviations derived from it have a root mean square error of 2 to 6 per cent on most graphs and of 9
    at most; single nodes err by up to 29.
    """
    known, level = check_known(graph, known), float(check_alphas(alpha))
    if level == 0:
        return np.where(known, 0.0, 1.0)
    if np.count_nonzero(~known) > limits.dense_variance:
        explained = level**2 * _drawn_squares(graph, known, level, random_state, probes, (tolerance, limits))
        return np.asarray(((1.0 - level) * (1.0 + level * graph.loops) + explained) * ~known)
    variance = np.zeros(graph.n_nodes)
    variance[~known] = Dense(_unknown_rows(graph, known, level)[:, ~known].toarray()).inverse_diagonal()
    return variance


def draw_conditional(graph: Graph, known: Bools, alpha: float, k: int, rng: np.random.Generator) -> Floats:
    r"""Return `k` columns with the covariance :math:`(I + \omega N)_{UU}^{-1}`, and 0 at the known nodes."""
    noise = rng.standard_normal((graph.n_nodes, k)) + np.sqrt(alpha / (1.0 - alpha)) * edge_noise(graph, k, rng)
    return smooth(graph, noise, alpha, unknown=~known, tolerance=LIMITS.draw_tolerance)


def _unknown_rows(graph: Graph, known: Bools, alpha: float) -> sparse.csr_array:
    r"""Return the rows of :math:`I + \omega N` at the unknown nodes."""
    nodes, omega = np.flatnonzero(~known), alpha / (1.0 - alpha)
    own = 1.0 + omega * (1.0 - graph.loops[nodes]), (np.arange(nodes.size), nodes)
    return sparse.csr_array(sparse.csr_array(own, shape=(nodes.size, graph.n_nodes)) - omega * graph.links(nodes))


def _drawn_squares(
    graph: Graph, known: Bools, alpha: float, random_state: int, probes: int, how: tuple[float, Limits]
) -> Floats:
    """Return the mean of (S x)^2 over draws x, with the exact share of constants."""
    free = np.bincount(graph.components, known) == 0  # components without a known node
    U, root, rng = null_vectors(graph)[:, free], np.sqrt(alpha / (1.0 - alpha)), np.random.default_rng(random_state)
    sizes = part_sizes(probes, how[1].columns)
    noise = (rademacher_block(graph.n_nodes, k, rng) + root * rademacher_edge_noise(graph, k, rng) for k in sizes)
    parts = ((_rounded(columns, alpha), (known, alpha), how, U) for columns in noise)
    return np.asarray(sum(graph.engine.map_columns(_squared_draws, parts)) / probes + (U**2).sum(axis=1))


def marginal_variance(graph: Graph, alpha: float, *, random_state: int = 0) -> Floats:
    r"""Return the diagonal of :math:`(I + \omega N)^{-1}`, `conditional_variance` where nothing is known."""
    return conditional_variance(graph, np.zeros(graph.n_nodes, dtype=np.bool_), alpha, random_state=random_state)


def loo_precision(
    graph: Graph, known: Bools, alpha: float, *, random_state: int = 0, probes: int = _PROBES, limits: Limits = LIMITS
) -> Floats:
    r"""Return the diagonal of :math:`P = ([(I + \omega N)^{-1}]_{LL})^{-1}`, one entry per known node.

    The value at a known node, given those at the other known nodes, has variance :math:`1 / P_{ii}` and, for values
    `r`, lies :math:`(P r)_i / P_{ii}` away from its mean. `P` is also the Schur complement :math:`M_{LL} - M_{LU}
    M_{UU}^{-1} M_{UL}` of :math:`M = I + \omega N`: dense on small graphs, probed on large ones.
    """
    level, known = float(check_alphas(alpha)), check_known(graph, known)
    omega = level / (1.0 - level)
    diagonal = 1.0 + omega * (1.0 - graph.loops)
    if level == 0 or known.all():
        return np.asarray(diagonal[known])
    if np.count_nonzero(~known) <= limits.dense_variance:
        return np.asarray(diagonal[known] - _explained(_unknown_rows(graph, known, level), known))
    rest = _probed_rest(graph, known, level, np.random.default_rng(random_state), probes)
    # the sum of N_ij^2 over the unknown neighbours j of every node i
    sums = [each for _, each in graph.over_rows(_row_squares, None, ~known / graph.mass)]
    estimate = diagonal + rest - omega * level * (np.concatenate(sums) / graph.mass)
    return np.asarray(np.clip(estimate, 1.0, 1.0 + omega)[known])


def _explained(M_U: sparse.csr_array, known: Bools, *, at_once: int = 1024) -> Floats:
    """Return the diagonal of M_LU M_UU^-1 M_UL; the known nodes may be many, so they are taken some at a time."""
    cross, inverse = sparse.csr_array(M_U[:, known].T), Dense(M_U[:, ~known].toarray()).inverse
    explained = np.empty(cross.shape[0])
    for start in range(0, explained.size, at_once):
        part = cross[start : start + at_once]
        explained[start : start + at_once] = part.multiply(part @ inverse).sum(axis=1)
    return explained


def _rounded(columns: Floats, alpha: float) -> Floats:
    """Return columns of draws in the precision they are solved for in."""
    return columns.astype(np.float32) if alpha <= _SINGLE_ALPHA else columns


def _squared_draws(
    engine: Engine, B: Floats, which: tuple[Bools, float], how: tuple[float, Limits], constants: sparse.csr_array
) -> Floats:
    """Return the sum of (S x)^2 over the draws x that solve for columns of noise, less their share of constants.

    The system itself gives S x at the unknown nodes, (1 + omega) x less the noise over omega.
    """
    (known, alpha), (tolerance, limits) = which, how
    allowed = np.broadcast_to(~known[:, None], B.shape) if known.any() else None
    inside = B if allowed is None else B * allowed
    systems = ShiftedSystems(engine, np.array([[1.0 / alpha]]), allowed, limits)
    x = systems.solve_rows(inside, tolerance=tolerance).or_raise(tolerance)[0]
    around = x * B.dtype.type(1.0 / alpha) - inside
    around -= constants @ (constants.T @ around)
    return np.asarray(((1.0 - alpha) / alpha) ** 2 * np.einsum("ij,ij->i", around, around, dtype=np.float64))


def _probed_rest(graph: Graph, known: Bools, alpha: float, rng: np.random.Generator, probes: int) -> Floats:
    """Return the mean of z * (P z), less M_LL - M_LU M_UL / (1 + omega), whose diagonal is known, over probes z."""
    total, column = np.zeros(graph.n_nodes), known[:, None]
    for k in part_sizes(probes, LIMITS.columns):
        Z = _rounded(column * rng.choice([-1.0, 1.0], size=(graph.n_nodes, k)), alpha)
        filled = propagate(graph, Z, known, alpha, tolerance=LIMITS.draw_tolerance)
        filled -= Z
        filled -= Z.dtype.type(alpha) * (multiply(graph, Z) * ~column)
        beyond = multiply(graph, filled)
        total -= alpha / (1.0 - alpha) * np.einsum("ij,ij->i", Z, beyond, dtype=np.float64)
    return total / probes


def _row_squares(rows: tuple[Ints, Ints, Floats | None], _first: int, _: None, values: Floats) -> tuple[None, Floats]:
    """Return the sum of W_ij^2 times the value of j over the neighbours j of every row i, see `Graph.over_rows`."""
    indptr, indices, weights = rows
    squares = np.ones(indices.size) if weights is None else weights**2
    return None, np.asarray(sparse.csr_array((squares, indices, indptr), (indptr.size - 1, values.size)) @ values)

r"""Diagonals of inverses: the variance of what is unknown, exactly on small graphs and from random draws on large ones.

The variance of a node is its variance given its neighbours, known in closed form, plus the variance of its mean given
them, estimated from draws `x` of the field:
:math:`\mathrm{var}(x_i) = (1 - \alpha)(1 + \alpha P_{ii}) + \alpha^2 \, \mathrm{var}((P x)_i)` with :math:`P = I - N`.

The diagonal of a precision `P` is estimated from Rademacher probes `z`, as the mean of :math:`z \circ P z`. Its
noise comes from the entries off the diagonal, so the part with a diagonal in closed form is taken out beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy import sparse

from graphmrf.engines.probes import random_columns
from graphmrf.kept import cached_property
from graphmrf.linalg.dense import Dense
from graphmrf.linalg.limits import LIMITS, Limits
from graphmrf.linalg.multigrid import solve_hard
from graphmrf.linalg.multishift import ShiftedSystems
from graphmrf.linalg.operator import edge_noise, edge_signs, random_signs
from graphmrf.linalg.smoothing import check_alphas, check_known, multiply, propagate
from graphmrf.linalg.spectrum import quadrature

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.engines import Engine
    from graphmrf.graph import Graph

NoiseBlocks: TypeAlias = "Iterable[tuple[Floats, Floats]]"
"""Blocks of draws at the nodes and by the edges, see `precision_noise`."""

# Draws or probes by default: the root mean square error of standard deviations is then 2 to 6 per cent on most
# graphs (`benchmarks/foresee.py`).
_PROBES = 64
_TOGETHER = 16  # draws solved for at once, a multiple of what the kernels take in one go
_ROWS_AT_ONCE = 1024  # rows of a cross-covariance made dense at once, 25 MB at 3000 unknown nodes
# Level up to which draws are solved for in float32, in half the time: rounding is then a quarter of the tolerance
# below. At .99 it is as large as the tolerance, and a solve may not get there.
_SINGLE_ALPHA = 0.95
_TOLERANCE = 1e-5  # relative residual of solves behind draws: far below their scatter


@dataclass(frozen=True, eq=False)
class ConditionalPrecision:
    r"""The precision :math:`(I + \omega N)_{UU}` of the unknown nodes `U` of a field, given the others.

    Its columns have shape (n, k); they are not read at known nodes, and are 0 there in what it returns.

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> A = ConditionalPrecision(Graph.from_edges([0, 1], [1, 2]), np.array([True, False, True]), 0.5)
    >>> A.solve(np.ones((3, 1))).ravel(), round(float(np.exp(A.log_determinant())), 6)
    (array([0. , 0.5, 0. ]), 2.0)
    """

    graph: Graph
    known: Bools  # (n,): the nodes that are conditioned on
    alpha: float  # smoothing level in [0, 1); `\omega = \alpha / (1 - \alpha)`
    # up to `dense_variance` unknown nodes a dense factor gives diagonal and determinant exactly
    limits: Limits = LIMITS

    @property
    def omega(self) -> float:
        """Strength of the edges."""
        return self.alpha / (1.0 - self.alpha)

    @cached_property
    def dense(self) -> Dense | None:
        """The matrix on the unknown nodes where they are few, None otherwise."""
        if np.count_nonzero(~self.known) > self.limits.dense_variance:
            return None
        return Dense(self.unknown_rows[:, ~self.known].toarray())

    @cached_property
    def unknown_rows(self) -> sparse.csr_array:
        r"""The rows of :math:`I + \omega N` at the unknown nodes."""
        nodes = np.flatnonzero(~self.known)
        own = 1.0 + self.omega * (1.0 - self.graph.loops[nodes]), (np.arange(nodes.size), nodes)
        diagonal = sparse.csr_array(own, shape=(nodes.size, self.graph.n_nodes))
        return sparse.csr_array(diagonal - self.omega * self.graph.links(nodes))

    def apply(self, X: Floats) -> Floats:
        """Return the matrix times `X`."""
        inside = np.where(self.known[:, None], 0.0, X)
        return np.asarray(
            ((1.0 + self.omega) * inside - self.omega * multiply(self.graph, inside)) * ~self.known[:, None]
        )

    def solve(self, B: Floats, *, tolerance: float = 1e-8) -> Floats:
        """Return the inverse times `B` to a relative residual, recomputed at the end; or raise ConvergenceError."""
        if self.alpha == 0:
            return np.asarray(B * ~self.known[:, None])
        allowed = np.broadcast_to(~self.known[:, None], B.shape)
        systems = ShiftedSystems(self.graph.engine, np.full((1, B.shape[1]), 1.0 / self.alpha), allowed, self.limits)
        found = solve_hard(self.graph, systems, B * allowed, tolerance)
        if found is not None:
            return np.asarray(found.x[0] * (1.0 - self.alpha) / self.alpha)
        return _solve(self.graph.engine, B, (self.known, self.alpha), (tolerance, self.limits))

    def draw(self, k: int, rng: np.random.Generator, *, tolerance: float = _TOLERANCE) -> Floats:
        """Return `k` columns drawn with the inverse as their covariance."""
        noise = rng.standard_normal((self.graph.n_nodes, k)) + np.sqrt(self.omega) * edge_noise(self.graph, k, rng)
        return self.solve(noise, tolerance=tolerance)

    def inverse_diagonal(
        self,
        *,
        probes: int = _PROBES,
        random_state: int = 0,
        tolerance: float = _TOLERANCE,
        noise: NoiseBlocks | None = None,
    ) -> Floats:
        """Return the diagonal of the inverse, exactly or from so many draws; see `conditional_variance`.

        With `noise` the draws are made of that, so that several levels share the work of drawing it.
        """
        variance = np.zeros(self.graph.n_nodes)
        if self.alpha == 0:
            variance[~self.known] = 1.0
        elif self.dense is not None:
            variance[~self.known] = self.dense.inverse_diagonal()
        else:
            drawn = precision_noise(self.graph, probes, random_state) if noise is None else noise
            explained = self.alpha**2 * self._drawn_squares(drawn, probes, tolerance)
            alone = (1.0 - self.alpha) * (1.0 + self.alpha * self.graph.loops)
            variance = (alone + explained) * ~self.known
        return variance

    def log_determinant(self, *, probes: int = 16, random_state: int = 0) -> float:
        """Return the logarithm of the determinant, exactly or by quadrature from so many Rademacher probes."""
        if self.dense is not None:
            return self.dense.log_determinant()
        Z, inside = random_columns(random_state, self.graph.n_nodes, probes), ~self.known[:, None]
        rules = quadrature(self.graph.engine, Z * inside, np.broadcast_to(inside, Z.shape), steps=80)
        return rules.log_determinant(self.omega)

    def _drawn_squares(self, noise: NoiseBlocks, probes: int, tolerance: float) -> Floats:
        """Return the mean of (S x)^2 over draws x, with the exact share of constants."""
        U, root = _constant_vectors(self.graph, ~self.known), np.sqrt(self.omega)
        about = (self.known, self.alpha), (tolerance, self.limits), U
        parts = ((_rounded(nodes + root * edges, self.alpha), *about) for nodes, edges in noise)
        return np.asarray(sum(self.graph.engine.map_columns(_squared_draws, parts)) / probes + (U**2).sum(axis=1))


def _rounded(columns: Floats, alpha: float) -> Floats:
    """Return columns of draws in the precision they are solved for in."""
    return columns.astype(np.float32) if alpha <= _SINGLE_ALPHA else columns


def _solve(engine: Engine, B: Floats, which: tuple[Bools, float], how: tuple[float, Limits]) -> Floats:
    """Solve for the unknown nodes of a field, given which nodes are known and the smoothing level."""
    (known, alpha), (tolerance, limits) = which, how
    allowed = np.broadcast_to(~known[:, None], B.shape)
    systems = ShiftedSystems(engine, np.array([[1.0 / alpha]]), allowed, limits)
    x = systems.solve(B * allowed, tolerance=tolerance).or_raise(tolerance)[0]
    return np.asarray(x * B.dtype.type((1.0 - alpha) / alpha))


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


def precision_noise(graph: Graph, probes: int, random_state: int) -> Iterator[tuple[Floats, Floats]]:
    r"""Yield blocks of columns :math:`e_1` of covariance `I` and :math:`e_2`, by the edges, of covariance `N`.

    At any level :math:`e_1 + \sqrt\omega e_2` has the covariance :math:`I + \omega N`.
    """
    rng = np.random.default_rng(random_state)
    for start in range(0, probes, _TOGETHER):
        k = min(_TOGETHER, probes - start)
        yield random_signs(graph.n_nodes, k, rng), edge_signs(graph, k, rng)


def conditional_variance(
    graph: Graph,
    known: Bools,
    alpha: float,
    *,
    random_state: int = 0,
    probes: int = _PROBES,
    tolerance: float = _TOLERANCE,
) -> Floats:
    r"""Return the diagonal of :math:`(I + \omega N)_{UU}^{-1}`, and 0 at the known nodes.

    Exact by a dense factorisation while there are at most 3000 unknown nodes, otherwise estimated from random draws:
    with the default 64 the standard deviations derived from it have a root mean square error of 2 to 6 per cent on most
    graphs and of 9 at most; single nodes err by up to 29.

    `known` (n,): the nodes that are conditioned on; none of them gives the marginal variance. `alpha`: smoothing level
    in [0, 1). `random_state`: seed of the draws. `probes`: number of draws. `tolerance`: relative residual of the
    solves behind them.

    Examples
    --------
    >>> import numpy as np
    >>> from graphmrf.graph import Graph
    >>> conditional_variance(Graph.from_edges([0, 1], [1, 2]), np.array([True, False, True]), 0.5)
    array([0. , 0.5, 0. ])
    """
    precision = ConditionalPrecision(graph, check_known(graph, known), float(check_alphas(alpha)))
    return precision.inverse_diagonal(probes=probes, random_state=random_state, tolerance=tolerance)


def marginal_variance(graph: Graph, alpha: float, *, random_state: int = 0) -> Floats:
    r"""Return the diagonal of :math:`(I + \omega N)^{-1}`, `conditional_variance` where nothing is known."""
    return conditional_variance(graph, np.zeros(graph.n_nodes, dtype=np.bool_), alpha, random_state=random_state)


def loo_precision(
    graph: Graph, known: Bools, alpha: float, *, random_state: int = 0, probes: int = _PROBES, limits: Limits = LIMITS
) -> Floats:
    r"""Return the diagonal of :math:`P = ([(I + \omega N)^{-1}]_{LL})^{-1}`, one entry per known node.

    The value at a known node, given those at the other known nodes, has variance :math:`1 / P_{ii}` and, for values
    `r`, lies :math:`(P r)_i / P_{ii}` away from its mean. `P` is also the Schur complement
    :math:`M_{LL} - M_{LU} M_{UU}^{-1} M_{UL}` of :math:`M = I + \omega N`: dense on small graphs, probed on large ones.
    The parameters are those of `conditional_variance`, and the limits up to which it is dense.

    Examples
    --------
    >>> import numpy as np
    >>> from graphmrf.graph import Graph
    >>> loo_precision(Graph.from_edges([0, 1], [1, 2]), np.array([True, False, True]), 0.5)
    array([1.75, 1.75])
    """
    level, known = float(check_alphas(alpha)), check_known(graph, known)
    omega = level / (1.0 - level)
    diagonal = 1.0 + omega * (1.0 - graph.loops)
    if level == 0 or known.all():
        return np.asarray(diagonal[known])
    conditional = ConditionalPrecision(graph, known, level, limits)
    if conditional.dense is not None:
        return np.asarray(diagonal[known] - _explained(conditional.unknown_rows, conditional.dense, known))
    rest = _probed_rest(graph, known, level, np.random.default_rng(random_state), probes)
    estimate = diagonal + rest - omega * level * _squared_paths(graph, ~known)
    return np.asarray(np.clip(estimate, 1.0, 1.0 + omega)[known])


def _explained(M_U: sparse.csr_array, unknown: Dense, known: Bools) -> Floats:
    """Return the diagonal of M_LU M_UU^-1 M_UL; the known nodes may be many, so they are taken some at a time."""
    cross = sparse.csr_array(M_U[:, known].T)
    explained = np.empty(cross.shape[0])
    for start in range(0, explained.size, _ROWS_AT_ONCE):
        part = cross[start : start + _ROWS_AT_ONCE]
        explained[start : start + _ROWS_AT_ONCE] = part.multiply(part @ unknown.inverse).sum(axis=1)
    return explained


def _constant_vectors(graph: Graph, unknown: Bools) -> sparse.csr_array:
    """Return the unit eigenvectors of I - N for eigenvalue 1 on the components without a known node, as columns."""
    total = np.bincount(graph.components, graph.mass)
    free = np.bincount(graph.components, ~unknown) == 0
    nodes = np.flatnonzero(free[graph.components])
    of = graph.components[nodes]
    return sparse.csr_array((np.sqrt(graph.mass[nodes] / total[of]), (nodes, of)), shape=(graph.n_nodes, total.size))


def _probed_rest(graph: Graph, known: Bools, alpha: float, rng: np.random.Generator, probes: int) -> Floats:
    """Return the mean of z * (P z), less M_LL - M_LU M_UL / (1 + omega), whose diagonal is known, over probes z."""
    total, column = np.zeros(graph.n_nodes), known[:, None]
    for start in range(0, probes, _TOGETHER):
        k = min(_TOGETHER, probes - start)
        Z = _rounded(column * rng.choice([-1.0, 1.0], size=(graph.n_nodes, k)), alpha)
        filled = propagate(graph, Z, known, alpha, tolerance=_TOLERANCE)
        filled -= Z
        filled -= Z.dtype.type(alpha) * (multiply(graph, Z) * ~column)
        beyond = multiply(graph, filled)
        total -= alpha / (1.0 - alpha) * np.einsum("ij,ij->i", Z, beyond, dtype=np.float64)
    return total / probes


def _squared_paths(graph: Graph, end: Bools) -> Floats:
    """Return the sum of N_ij^2 over the neighbours j of every node i that a mask lets through."""
    sums = [each for _, each in graph.over_rows(_row_squares, None, end / graph.mass)]
    return np.asarray(np.concatenate(sums) / graph.mass)


def _row_squares(rows: tuple[Ints, Ints, Floats | None], _first: int, _: None, values: Floats) -> tuple[None, Floats]:
    """Return the sum of W_ij^2 times the value of j over the neighbours j of every row i, see `Graph.over_rows`."""
    indptr, indices, weights = rows
    squares = np.ones(indices.size) if weights is None else weights**2
    return None, np.asarray(sparse.csr_array((squares, indices, indptr), (indptr.size - 1, values.size)) @ values)

r"""Conjugate gradients and noise for precision matrices on a graph.

An iterative operator has the form :math:`A = D - C \otimes (I - N)`, with small blocks :math:`D_i = L_i L_i'` of every
node on the diagonal of `D`, and :math:`C = G G'`. Then

.. math:: A = L\,(I - K)\,L', \qquad K = E\,(I - N)\,E', \qquad E_i = L_i^{-1} G,

and conjugate gradients run on :math:`I - K`, whose condition does not depend on that of `D`. The system couples the
attributes of a node: there is one step length per right-hand side, from inner products over nodes and attributes. The
coefficients of the iterations are also those of a Lanczos recurrence, so the same iterations that solve for a
Rademacher probe estimate :math:`\log\det(I - K)` by quadrature.

Noise of covariance `N` comes from the edges, by the root :math:`N = B'B`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy import sparse

from graphmrf.engines import SMALL_GRAPH
from graphmrf.engines.probes import WORD_BITS, edge_sums, rademacher_from_bits
from graphmrf.linalg.limits import LIMITS, Limits
from graphmrf.linalg.multishift import Solution, gauss, inverse, iteration_bound, squares

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import DTypeLike

    from graphmrf._typing import Floats, Ints
    from graphmrf.engines import Block, Engine
    from graphmrf.graph import Graph

_Rows: TypeAlias = "tuple[Ints, Ints, Floats | None]"  # compressed rows of an adjacency, see `Graph.over_rows`

Places: TypeAlias = "tuple[Ints | None, Ints | None]"
"""The nodes that rows of right-hand sides are of, 0 at all others, and those whose solution is wanted; None: all."""


@dataclass(frozen=True, eq=False)
class WhitenedSystem:
    """Systems in :math:`A = L (I - K) L'` on an engine; their right-hand sides are groups of q columns."""

    engine: Engine  # what multiplies by `I - N`
    kinds: Ints  # (n,): which of the small matrices below a node has
    D: Floats  # (n_kinds, q, q): its block of `D`
    C: Floats  # (q, q): the part of the edges
    whiten: Floats  # (n_kinds, q, q): `L_i^{-T}`, with zeros for entries that are no part of the system
    onto_edges: Floats  # (n_kinds, q, r): `E_i`
    sigma: float  # one over a bound on the largest eigenvalue of `K`, > 1
    limits: Limits = LIMITS  # bound on the iterations

    @property
    def q(self) -> int:
        """Columns per right-hand side."""
        return len(self.C)

    @property
    def tables(self) -> tuple[Any, ...]:
        """Constructor arguments other than the engine."""
        return self.kinds, self.D, self.C, self.whiten, self.onto_edges, self.sigma, self.limits

    def solve(self, B: Floats, *, tolerance: float, together: int, rows: Places = (None, None)) -> Solution:
        r"""Solve :math:`A x = b` by conjugate gradients with iterative refinement.

        `together`: right-hand sides in a block. `rows`: the nodes that rows of `B` (n, k q) belong to, and those whose
        solution is wanted. The tolerance is in the norm :math:`\lVert L^{-1} r \rVert`, which does not depend on units.
        """
        width = together * self.q
        blocks = [B[:, first : first + width] for first in range(0, B.shape[1], width)]
        parts = ((self.tables, block, tolerance, rows) for block in blocks)
        none = np.empty((self.engine.n if rows[1] is None else rows[1].size, 0)), 0, 0.0
        values, counts, left = zip(none, *self.engine.map_columns(_solve, parts, total=len(blocks)), strict=True)
        x = values[-1] if len(values) <= 2 else np.hstack(values)
        return Solution(x, max(counts), max(left), max(left) <= tolerance)

    def solve_block(self, B: Floats, tolerance: float, rows: Places = (None, None)) -> tuple[Floats, int, float]:
        """Return the solutions of one block, the iterations, and the largest residual."""
        engine, k, kind = self.engine, B.shape[1] // self.q, np.float32 if B.dtype == np.float32 else np.float64
        V = engine.load(B, rows[0])
        R, X, iterations = engine.like(V), engine.zeros(B.shape[1]), 0
        engine.mix(V, self.whiten, self.kinds, None, R)
        norms = np.sqrt(_sums(squares(engine, R), k, self.q))
        residual = float((norms > 0).any())
        for attempt in range(self.limits.refinements + 1):
            if residual <= tolerance:
                break
            # two passes in float32 reach 1e-9 where the system is well conditioned
            if attempt < 2 and engine.on_host and self.kinds.size >= self.limits.single_nodes:
                iterations += self._improve_in_single(R, 0.5 * tolerance * norms, X)
            else:
                iterations += len(self.iterate(R, 0.5 * tolerance * norms, X, kind)[0])
            R = self._remainder(V, X)
            residual = float((np.sqrt(_sums(squares(engine, R), k, self.q)) * inverse(norms)).max(initial=0.0))
        engine.mix(X, _transposed(self.whiten), self.kinds, None, V)
        return engine.unload(V, B.shape[1], rows[1]), iterations, residual

    def _improve_in_single(self, R: Block, wanted: Floats, X: Block) -> int:
        """Add the solution of (I - K) X = R to `X`, computed in float32 with columns in units of their norms."""
        norms = np.sqrt(_sums(squares(self.engine, R), wanted.size, self.q))
        unit = _spread(np.where(norms > 0, norms, 1.0), R.shape[1], self.q, rest=1.0)
        left, found = np.empty(R.shape, dtype=np.float32), np.zeros(R.shape, dtype=np.float32)
        np.divide(R, unit, out=left, casting="same_kind")
        goal = np.clip(wanted * inverse(norms), self.limits.single_residual, 1.0)
        steps = len(self.iterate(left, goal, found, np.float32)[0])
        X += found * unit
        return steps

    def _remainder(self, V: Block, X: Block) -> Block:
        r"""Return :math:`L^{-1} (b - A x)` for the block `V` of b and the block `X` of L'x."""
        engine = self.engine
        x, behind, moved = engine.like(X), engine.like(X), engine.like(X)
        engine.mix(X, _transposed(self.whiten), self.kinds, None, x)
        engine.mix(x, self.D, self.kinds, V, behind)
        ones = np.ones(X.shape[1])
        engine.advance(x, ones, x, 0.0 * ones, engine.mask(None, X.shape[1]), moved)
        engine.mix(moved, self.C[None], np.zeros_like(self.kinds), behind, x)
        engine.mix(x, self.whiten, self.kinds, None, behind)
        return behind

    def quadrature(self, Z: Floats, *, tolerance: float) -> tuple[Floats, Floats]:
        r"""Return :math:`z'(I - K)^{-1} z` and :math:`z' \log(I - K) z / z'z` of columns `Z` (n, k q).

        Both are Gauss rules of the iterations for z; no solution is stored.
        """
        kind, k = self.type_for(tolerance), Z.shape[1] // self.q
        start = self.engine.load(Z.astype(kind, copy=False))
        norms = np.sqrt(_sums(squares(self.engine, start), k, self.q))
        a, rho = self.iterate(start, tolerance * norms, None, kind)
        ratios = rho[1:] * inverse(rho[:-1])
        logs = [_log_quadratic_form(a[:, c], ratios[:, c]) for c in range(a.shape[1])]
        return np.asarray((a * rho[:-1]).sum(axis=0)), np.array(logs)

    def type_for(self, tolerance: float) -> type[np.floating[Any]]:
        """Return the type in which iterations to a tolerance are computed where no solution is stored."""
        return (
            np.float32
            if self.kinds.size >= self.limits.single_nodes and tolerance > self.limits.single_residual
            else np.float64
        )

    def iterate(self, R: Block, wanted: Floats, X: Block | None, dtype: DTypeLike) -> tuple[Floats, Floats]:
        """Add the solution of (I - K) X = R to `X` if there is one, and leave its residual in `R`.

        P is the search direction over the squared residual: P += R / |R|^2. `wanted` (k,): norms of the residuals to
        reach. Returns step lengths and squared residuals, (steps, k) and (steps + 1, k).
        """
        engine, k, q, E = self.engine, wanted.size, self.q, self.onto_edges
        E_transposed, width = _transposed(E), R.shape[1]
        P, Q, U = engine.zeros(k * q, dtype), engine.like(R), engine.zeros(k * E.shape[2], dtype)
        SU, everywhere = engine.like(U), engine.mask(None, U.shape[1])
        ones, zeros = np.ones(U.shape[1]), np.zeros(U.shape[1])
        rho = _sums(squares(engine, R), k, q)
        goal, exhausted = wanted**2, (500.0 * np.finfo(np.float64).eps) ** 2 * rho
        lengths, history = [np.zeros((0, k))], [rho]
        bound = self._bound(goal, rho)
        while (rho > goal).any() and len(history) <= bound:
            active = rho > exhausted
            P_squared = engine.subtract(P, _spread(-inverse(rho) * active, width, q), R)
            engine.mix(P, E, self.kinds, None, U)
            PKP = engine.advance(U, ones, U, zeros, everywhere, SU)
            engine.mix(SU, E_transposed, self.kinds, P, Q)  # (K - I) P
            curvature = _sums(P_squared, k, q) - _sums(PKP, k, E.shape[2])
            step = inverse(curvature) * active
            if X is not None:
                engine.subtract(X, _spread(-step, width, q), P)
            lengths.append((step * inverse(rho))[None])
            rho = _sums(engine.subtract(R, _spread(-step, width, q), Q), k, q)
            history.append(rho)
        return np.concatenate(lengths), np.array(history)

    def _bound(self, goal: Floats, rho: Floats) -> int:
        reduction = float(np.sqrt(np.where(rho > 0, goal * inverse(rho), 1.0).min(initial=1.0)))
        return min(iteration_bound(np.array([self.sigma]), reduction), self.limits.max_iterations)


def _solve(
    engine: Engine, tables: tuple[Any, ...], B: Floats, tolerance: float, rows: Places
) -> tuple[Floats, int, float]:
    return WhitenedSystem(engine, *tables).solve_block(B, tolerance, rows)


def conjugate_gradients(
    times: Callable[[Floats], Floats], B: Floats, *, tolerance: float, most: int = 10_000
) -> tuple[Solution, Floats]:
    r"""Return the solutions of :math:`A x = b` and :math:`b' \log(A)\, b / b'b` of every column.

    `times` returns a positive definite `A` times columns (n, k).
    """
    X, R, P = np.zeros_like(B), B.copy(), np.zeros_like(B)
    lengths, history = [np.zeros((0, B.shape[1]))], [np.einsum("ij,ij->j", R, R)]
    goal, exhausted = tolerance**2 * history[0], (500.0 * np.finfo(np.float64).eps) ** 2 * history[0]
    while (history[-1] > goal).any() and len(history) <= most:
        P *= history[-1] * inverse(history[-2] if len(history) > 1 else np.zeros(goal.size))
        P += R
        Q = times(P)
        step = history[-1] * (history[-1] > exhausted) * inverse(np.einsum("ij,ij->j", P, Q))
        X += step * P
        R -= step * Q
        lengths.append(step[None])
        history.append(np.einsum("ij,ij->j", R, R))
    a, rho = np.concatenate(lengths), np.array(history)
    ratios = rho[1:] * inverse(rho[:-1])
    residual = float(np.sqrt(rho[-1] * inverse(rho[0])).max(initial=0.0))
    logs = np.array([_log_quadratic_form(a[:, c], ratios[:, c]) for c in range(B.shape[1])])
    return Solution(X, len(lengths) - 1, residual, residual <= tolerance), logs


def _log_quadratic_form(a: Floats, ratios: Floats) -> float:
    """Return z' log(I - K) z / z'z from step lengths and ratios of squared residuals of conjugate gradients for z."""
    count = int(np.argmax(np.append(a == 0, True)))
    a, b = a[:count], ratios[:count]
    if not count:
        return 0.0
    nodes, weights = gauss(1.0 / a + np.append(0.0, b[:-1] / a[:-1]), np.sqrt(b[:-1]) / a[:-1])
    return float(weights @ np.log(np.maximum(nodes, np.finfo(np.float64).tiny)))


def _transposed(tables: Floats) -> Floats:
    return np.ascontiguousarray(tables.transpose(0, 2, 1))


def _sums(per_column: Floats, k: int, width: int) -> Floats:
    """Return the sums over the columns of each right-hand side."""
    return np.asarray(per_column[: k * width].reshape(k, width).sum(axis=1))


def _spread(values: Floats, width: int, q: int, rest: float = 0.0) -> Floats:
    """Return one value per right-hand side repeated for each of its columns, and `rest` on padding."""
    columns = np.full(width, rest)
    columns[: values.size * q] = np.repeat(values, q)
    return columns


def incidence(graph: Graph, first: int = 0, stop: int | None = None) -> sparse.csr_array:
    r"""Return the rows of `B` for the edges from the nodes ``first .. stop - 1`` to higher-numbered ones, (n_edges, n).

    An edge of weight `w` from `u` to `v` has the entries :math:`\sqrt{w / m_u}` and :math:`-\sqrt{w / m_v}`, with the
    masses `m` of `N`, see `Graph.mass`.
    """
    rows = graph.indptr, graph.indices, graph.weights
    return _row_incidence(rows, slice(first, graph.n_nodes if stop is None else stop), 0, graph.mass)


def _row_incidence(rows: _Rows, some: slice, first: int, mass: Floats) -> sparse.csr_array:
    """Return the incidence of the edges in some of the compressed rows, whose first is that of node `first`."""
    (indptr, indices, weights), (start, stop) = rows, (some.start, some.stop)
    span = slice(int(indptr[start]), int(indptr[stop]))
    u, v = np.repeat(np.arange(first + start, first + stop), np.diff(indptr[start : stop + 1])), indices[span]
    once = v > u
    u, v = u[once], v[once]
    d = 1.0 / np.sqrt(mass)
    root = 1.0 if weights is None else np.sqrt(weights[span][once])
    data = np.column_stack([root * d[u], -root * d[v]]).ravel()
    ends = np.column_stack([u, v]).ravel()
    return sparse.csr_array((data, ends, np.arange(0, 2 * u.size + 1, 2)), shape=(u.size, mass.size))


def edge_noise(graph: Graph, k: int, rng: np.random.Generator, *, at_once: int = 2**22) -> Floats:
    """Return `k` independent draws of :math:`B' e` with `e` standard normal: their covariance is `N`, shape (n, k).

    Edges are processed in blocks of `at_once` numbers; the size of the blocks does not change the draws.
    """
    noise: Floats | None = None
    for after, (nodes, values) in graph.over_rows(_row_noise, rng, (graph.mass, k, at_once)):
        rng.bit_generator.state = after.bit_generator.state
        if len(values) == graph.n_nodes and noise is None:
            noise = values
        else:
            noise = np.zeros((graph.n_nodes, k)) if noise is None else noise
            noise[nodes] += values
    return np.zeros((graph.n_nodes, k)) if noise is None else noise


def _row_noise(
    rows: _Rows, first: int, rng: np.random.Generator, about: tuple[Floats, int, int]
) -> tuple[np.random.Generator, tuple[Ints, Floats]]:
    """Return the new state of the generator, and the noise from the edges of some rows at the nodes they join."""
    (indptr, indices, weights), (mass, k, at_once) = rows, about
    own = np.arange(first, first + indptr.size - 1)
    nodes = own
    if own.size < mass.size:
        nodes = np.union1d(own, indices)
        indices, first = np.searchsorted(nodes, indices), int(np.searchsorted(nodes, first))
    noise = np.zeros((nodes.size, k))
    half_edges = 2 * max(nodes.size, at_once // max(k, 1), 1)
    cuts = np.searchsorted(indptr, np.arange(half_edges, indices.size, half_edges))
    for start, stop in pairwise(np.unique([0, *cuts.tolist(), own.size]).tolist()):
        B = _row_incidence((indptr, indices, weights), slice(start, stop), first, mass[nodes])
        noise += B.T @ rng.standard_normal((B.shape[0], k))
    return rng, (nodes, noise)


def rademacher_edge_noise(graph: Graph, k: int, rng: np.random.Generator, *, small: int = SMALL_GRAPH) -> Floats:
    """Return `k` draws of :math:`B' e` with Rademacher `e`, in float32: enough where only the covariance `N` counts.

    The variables of an edge depend on its two ends alone, so that every node can sum up its own row.
    """
    keys = rng.integers(2**64, size=-(-k // WORD_BITS), dtype=np.uint64, endpoint=False)
    about = (graph.mass, k, keys, small)
    return np.concatenate([values for _, values in graph.over_rows(_row_rademacher_noise, None, about)])


def _row_rademacher_noise(
    rows: _Rows, first: int, _: None, about: tuple[Floats, int, Ints, int]
) -> tuple[None, Floats]:
    """Return the draws of `rademacher_edge_noise` at the nodes of some rows."""
    (indptr, indices, weights), (mass, k, keys, small) = rows, about
    given, compiled = (indptr, indices, np.sqrt(np.empty(0) if weights is None else weights)), indices.size // 2 > small
    widths = (min(WORD_BITS, k - start) for start in range(0, k, WORD_BITS))
    sums = [edge_sums(given, first, key, width, compiled=compiled) for key, width in zip(keys, widths, strict=True)]
    roots = np.sqrt(mass[first : first + indptr.size - 1])[:, None].astype(np.float32)
    return None, np.asarray(np.hstack([np.empty((len(roots), 0), np.float32), *sums]) / roots)


def rademacher_block(n: int, k: int, rng: np.random.Generator) -> Floats:
    """Return `k` Rademacher probes in float32, from one bit of a word each; successive calls give successive rows."""
    return rademacher_from_bits(rng.integers(2**64, size=(n, -(-k // WORD_BITS)), dtype=np.uint64, endpoint=False), k)

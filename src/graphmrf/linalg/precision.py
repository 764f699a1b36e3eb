r"""Precision matrices on a graph: with a diagonal of every node's own, and for some attributes of some nodes.

Both are systems of `graphmrf.linalg.operator`. In :math:`A = I + \omega N + \mathrm{diag}(d)`, the precision of a field
that is tied to some nodes, there is one attribute and :math:`D = (1 + \omega) I + \mathrm{diag}(d)`. In a block of
:math:`\Gamma = H \otimes I + C \otimes N` the :math:`D_i` are those of :math:`H + C` for the attributes that are there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigh

from graphmrf.caching import cached_property
from graphmrf.engines.probes import random_columns
from graphmrf.linalg.dense import Dense
from graphmrf.linalg.limits import LIMITS, Limits, part_sizes
from graphmrf.linalg.multishift import Solution, product
from graphmrf.linalg.operator import WhitenedSystem, edge_noise, rademacher_block, rademacher_edge_noise

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.engines import Engine
    from graphmrf.graph import Graph
    from graphmrf.linalg.operator import Places

__all__ = ["NodePrecision", "PrecisionBlock", "rademacher"]


@dataclass(frozen=True, eq=False)
class NodePrecision:
    r"""The matrix :math:`A = I + \omega N + \mathrm{diag}(d)`; its columns have shape (n, k)."""

    graph: Graph  # the graph of `N`
    omega: float  # strength of the edges, >= 0
    d: Floats  # (n,): strength with which every node is tied to its value, >= 0
    limits: Limits = LIMITS  # up to `dense_precision` nodes a dense factor gives everything exactly

    @cached_property
    def diagonal(self) -> Floats:
        """Diagonal of `A`."""
        return np.asarray(1.0 + self.omega * (1.0 - self.graph.loops) + self.d)

    @cached_property
    def dense(self) -> Dense | None:
        """A factor of `A` where the graph is small, None otherwise."""
        if self.graph.n_nodes > self.limits.dense_precision:
            return None
        return Dense((self.omega * self.graph.N + sparse.diags_array(1.0 + self.d)).toarray())

    @cached_property
    def _scale(self) -> Floats:
        """Diagonal of D."""
        return np.asarray(1.0 + self.omega + self.d)

    @cached_property
    def system(self) -> WhitenedSystem:
        """The system scaled to a unit diagonal, for iterations."""
        blocks, root = self._scale[:, None, None], np.sqrt(self._scale)[:, None, None]
        tables = (blocks, np.full((1, 1), self.omega), 1.0 / root, np.sqrt(self.omega) / root)
        nearest = 1.0 + 1.0 / max(self.omega, 1e-12)
        return WhitenedSystem(self.graph.engine, np.arange(self.graph.n_nodes), *tables, nearest, self.limits)

    def apply(self, X: Floats) -> Floats:
        """Return :math:`A X`."""
        return np.asarray(self._scale[:, None] * X - self.omega * product(self.graph.engine, X))

    def solve(self, B: Floats, *, tolerance: float = 1e-8, rows: Places = (None, None)) -> Floats:
        """Return :math:`A^{-1} B`, or raise ConvergenceError; the tolerance is in the norm of :math:`D^{-1/2}`.

        `rows`: the nodes that rows of `B` belong to, and those whose solution is wanted.
        """
        if self.dense is not None:
            given, wanted = (slice(None) if nodes is None else nodes for nodes in rows)
            everywhere = np.zeros((self.graph.n_nodes, B.shape[1]))
            everywhere[given] = B
            return self.dense.solve(everywhere)[wanted]
        return self.system.solve(B, tolerance=tolerance, together=self.together, rows=rows).or_raise(tolerance)

    @property
    def together(self) -> int:
        """Columns solved for at once: what the engine has room for in eight blocks, or 16."""
        return self.graph.engine.columns(8 * 8 * self.graph.n_nodes) or self.limits.columns

    def quadratic_forms(self, B: Floats, rows: Ints, Z: Floats, *, tolerance: float) -> tuple[Floats, float]:
        r"""Return :math:`b'A^{-1}b` of every column of `B`, and :math:`\log\det A` by quadrature from the probes `Z`.

        `B` is given at the nodes `rows`, and 0 at all others. Exact on small graphs, where `Z` is not used.
        """
        if self.dense is not None:
            return np.einsum("ij,ij->j", B, self.solve(B, rows=(rows, rows))), self.dense.log_determinant()
        start = np.zeros((len(Z), B.shape[1] + Z.shape[1]), dtype=self.system.type_for(tolerance))
        start[:, B.shape[1] :] = Z
        start[rows, : B.shape[1]] = B / np.sqrt(self._scale[rows])[:, None]
        forms, logs = self.system.quadrature(start, tolerance=tolerance)
        return forms[: B.shape[1]], float(np.log(self._scale).sum() + len(Z) * logs[B.shape[1] :].mean())

    def log_determinant(self, *, probes: int = 16, random_state: int = 0) -> float:
        r"""Return :math:`\log\det A`: exact on small graphs, otherwise by quadrature from Rademacher probes."""
        n = self.graph.n_nodes
        none = np.zeros(0, dtype=np.int64)
        return self.quadratic_forms(np.zeros((0, 0)), none, rademacher(n, probes, random_state), tolerance=1e-3)[1]

    def noise(self, k: int, rng: np.random.Generator, *, rademacher: bool = False) -> Floats:
        """Return `k` independent columns of covariance `A`, so that solving for them draws from its inverse.

        `rademacher`: from Rademacher variables, which is faster if only the covariance matters.
        """
        n = self.graph.n_nodes
        E = rademacher_block(n, k, rng) if rademacher else rng.standard_normal((n, k))
        edges = (rademacher_edge_noise if rademacher else edge_noise)(self.graph, k, rng)
        return np.asarray(E * np.sqrt(1.0 + self.d)[:, None] + np.sqrt(self.omega) * edges)

    def draw(self, k: int, rng: np.random.Generator, *, tolerance: float = LIMITS.draw_tolerance) -> Floats:
        """Return `k` columns drawn with covariance :math:`A^{-1}`."""
        return self.solve(self.noise(k, rng), tolerance=tolerance)

    def inverse_diagonal(self, *, probes: int = 64, random_state: int = 0) -> Floats:
        r"""Return the diagonal of :math:`A^{-1}`; exact on small graphs, otherwise from random draws `x`.

        The variance of a node given its neighbours is known, :math:`1 / A_{ii}`; drawn is that of its mean given them,
        :math:`-\omega \sum_{j \ne i} N_{ij} x_j / A_{ii}`.
        """
        if self.dense is not None:
            return self.dense.inverse_diagonal()
        rng, about = np.random.default_rng(random_state), (self.system.tables, self.graph.loops)
        parts = ((*about, self.noise(k, rng, rademacher=True)) for k in part_sizes(probes, self.limits.columns))
        means = self.omega**2 * sum(self.graph.engine.map_columns(_squares, parts)) / probes
        return np.asarray((1.0 + means / self.diagonal) / self.diagonal)


def _squares(engine: Engine, tables: tuple[Any, ...], loops: Floats, noise: Floats) -> Floats:
    """Return the sum of squares, over draws x that solve for columns of noise, of N x off the diagonal, shape (n,)."""
    x, iterations, residual = WhitenedSystem(engine, *tables).solve_block(noise, LIMITS.draw_tolerance)
    Solution(x, iterations, residual, residual <= LIMITS.draw_tolerance).or_raise(LIMITS.draw_tolerance)
    return np.asarray(((product(engine, x) - loops[:, None] * x) ** 2).sum(axis=1))


@dataclass(frozen=True, eq=False)
class PrecisionBlock:
    r"""The block :math:`\Gamma_{MM}` of the precision :math:`\Gamma = H \otimes I + C \otimes N`.

    It acts on stacks of attribute matrices of shape (k, n, q).
    """

    graph: Graph  # the graph of `N`
    H: Floats  # (q, q): symmetric positive definite
    C: Floats  # (q, q): symmetric positive semidefinite
    missing: Bools  # (n, q): the entries `M`
    limits: Limits = LIMITS  # size of a block of right-hand sides

    @property
    def size(self) -> int:
        """Number of entries of `M`."""
        return int(np.count_nonzero(self.missing))

    def apply(self, X: Floats) -> Floats:
        r"""Return :math:`(\Gamma x)_M` for `X` (k, n, q), which may have entries outside `M`; 0 outside `M`."""
        k, n, q = X.shape
        SX = product(self.graph.engine, _columns(X)).reshape(n, k, q).transpose(1, 0, 2)
        return np.asarray((X @ (self.H + self.C) - SX @ self.C) * self.missing)

    def precondition(self, R: Floats) -> Floats:
        r"""Return :math:`(L L')^{-1} r` for `R` (k, n, q): every node's entries by themselves; 0 outside `M`."""
        engine, V = self.graph.engine, self.graph.engine.load(_columns(R))
        out = engine.like(V)
        tables = self._whiten @ self._whiten.transpose(0, 2, 1)
        engine.mix(V, tables, self._kinds, None, out)
        return _stack(engine.unload(out, R.shape[0] * R.shape[2]), R.shape)

    @cached_property
    def node_variance(self) -> Floats:
        r"""What :math:`\mathrm{var}(x_i)` has beyond that of ``x - precondition(apply(x))``, shape (n, q).

        It is the variance of an entry of `M` given all other nodes, the diagonal of :math:`B = (L L')^{-1}`; where `N`
        is combinatorial the diagonal :math:`P_{ii}` of :math:`I - N` adds :math:`P_{ii} (B C B)_{ii}`.
        """
        B = self._whiten @ self._whiten.transpose(0, 2, 1)
        own = np.diagonal(B, axis1=1, axis2=2)[self._kinds]
        again = np.einsum("kij,jl,kli->ki", B, self.C, B)[self._kinds]
        return np.asarray(own + (self.graph.loops * ~self.graph.isolated)[:, None] * again)

    def solve(self, B: Floats, *, tolerance: float = 1e-8) -> Floats:
        r"""Return :math:`\Gamma_{MM}^{-1} b`, 0 outside `M`, for `B` (k, n, q), of which only `M` is read.

        The tolerance is in the norm :math:`\lVert L^{-1} r \rVert`, which does not depend on units.
        """
        solution = self.system.solve(_columns(B), tolerance=tolerance, together=self.together)
        return _stack(solution.or_raise(tolerance), B.shape)

    @property
    def together(self) -> int:
        """How many right-hand sides go in one block."""
        return max(1, self.limits.block_bytes // (8 * max(self.missing.size, 1)))

    @cached_property
    def dense(self) -> Dense:
        """The block as a dense matrix, entries of `M` node by node."""
        return Dense(self.matrix.toarray())

    @property
    def matrix(self) -> sparse.csc_array:
        """The block as a sparse matrix, entries of `M` node by node."""
        nodes = np.flatnonzero(self.missing.any(axis=1))
        N = self.graph.N[nodes][:, nodes]
        gamma = sparse.kron(sparse.eye_array(nodes.size), self.H) + sparse.kron(N, self.C)
        kept = np.flatnonzero(self.missing[nodes])
        return sparse.csc_array(sparse.csr_array(gamma)[kept][:, kept])

    @cached_property
    def _patterns(self) -> tuple[Bools, Ints]:
        """Distinct rows of [missing, isolated], and which of them every node has."""
        rows = np.column_stack([self.missing, self.graph.isolated])
        packed = np.ascontiguousarray(np.packbits(rows, axis=1))
        keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
        _, first, kinds = np.unique(keys, return_index=True, return_inverse=True)
        return rows[first], kinds

    @property
    def _kinds(self) -> Ints:
        return self._patterns[1]

    @cached_property
    def _whiten(self) -> Floats:
        """L^-T of every pattern in `_patterns`, zero outside `M`: rows r become r L^-T."""
        patterns, q = self._patterns[0], len(self.H)
        tables = np.zeros((len(patterns), q, q))
        for first in range(0, len(patterns), self.limits.patterns):
            some = patterns[first : first + self.limits.patterns]
            inside = some[:, :-1, None] & some[:, None, :-1]
            blocks = np.where(some[:, -1:, None], self.H, self.H + self.C)  # no edges, no C
            L = np.linalg.cholesky(np.where(inside, blocks, np.eye(q)))
            tables[first : first + len(some)] = np.linalg.inv(L).transpose(0, 2, 1) * inside
        return tables

    @cached_property
    def _root_of_C(self) -> Floats:
        """G with C = G G', with as many columns as C has rank, or one of zeros."""
        values, vectors = eigh(self.C)
        kept = values > 1e-14 * np.abs(values).max(initial=0.0)
        return vectors[:, kept] * np.sqrt(values[kept]) if kept.any() else np.zeros((len(self.C), 1))

    @cached_property
    def system(self) -> WhitenedSystem:
        """The block with white entries at every node, for iterations."""
        connected = ~self._patterns[0][:, -1]
        E = (self._whiten.transpose(0, 2, 1) @ self._root_of_C) * connected[:, None, None]
        D = np.tile(self.H + self.C, (len(connected), 1, 1))
        strength = float(eigh(self.C, self.H, eigvals_only=True)[-1])  # K has no eigenvalue above that of C (H + C)^-1
        sigma = 1.0 + 1.0 / max(strength, 1e-12)
        return WhitenedSystem(self.graph.engine, self._kinds, D, self.C, self._whiten, E, sigma, self.limits)


def rademacher(n: int, k: int, random_state: int) -> Floats:
    """Return `k` Rademacher probes: columns of independent random signs, shape (n, k), the same on every engine."""
    return random_columns(random_state, n, k)


def _columns(X: Floats) -> Floats:
    """Return a stack (k, n, q) as columns (n, k q)."""
    k, n, q = X.shape
    return np.ascontiguousarray(X.transpose(1, 0, 2)).reshape(n, k * q)


def _stack(V: Floats, shape: tuple[int, ...]) -> Floats:
    """Return columns (n, k q) as a stack (k, n, q)."""
    k, n, q = shape
    return np.ascontiguousarray(V.reshape(n, k, q).transpose(1, 0, 2))

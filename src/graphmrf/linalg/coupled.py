r"""Systems in any block of the precision :math:`\Gamma = H \otimes I + C \otimes N`: some attributes at some nodes.

Let :math:`L_i L_i'` be the small block of node i on the diagonal of :math:`\Gamma_{MM}`, and :math:`C = G G'`. Then

.. math:: \Gamma_{MM} = L\,(I - K)\,L', \qquad K = E\,(I - N)\,E', \qquad E_i = L_i^{-1} G,

and conjugate gradients run on :math:`I - K`, whose condition does not depend on that of `H`. The system couples the
attributes of a node: there is one step length per right-hand side, from inner products over nodes and attributes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.linalg import eigh

from graphmrf.linalg.lanczos import inverse, squares
from graphmrf.linalg.multishift import Solution, iteration_bound, product

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.engines import Block
    from graphmrf.graph import Graph

_BLOCK_BYTES = 64 * 2**20
_REFINEMENTS = 3
_TABLES = 4096


@dataclass(frozen=True, eq=False)
class PrecisionBlock:
    r"""The block :math:`\Gamma_{MM}` of the precision :math:`\Gamma = H \otimes I + C \otimes N`.

    It acts on stacks of attribute matrices of shape (k, n, q).

    Parameters
    ----------
    graph : Graph
        The graph of `N`.
    H : array of shape (q, q)
        Symmetric positive definite.
    C : array of shape (q, q)
        Symmetric positive semidefinite.
    missing : bool array of shape (n, q)
        The entries `M`.

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> missing = np.array([[True, True], [False, True]])
    >>> block = PrecisionBlock(Graph.from_edges([0], [1]), np.array([[2.0, 1.0], [1.0, 2.0]]), np.eye(2), missing)
    >>> block.matrix.toarray()
    array([[ 3.,  1.,  0.],
           [ 1.,  3., -1.],
           [ 0., -1.,  3.]])
    >>> block.solve(np.ones((1, 2, 2))).or_raise(1e-8).round(4)
    array([[[0.1905, 0.4286],
            [0.    , 0.4762]]])
    """

    graph: Graph
    H: Floats
    C: Floats
    missing: Bools

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
        r"""Variance of every entry of `M` given all other nodes, shape (n, q): the diagonal of :math:`(L L')^{-1}`."""
        return np.asarray((self._whiten**2).sum(axis=2)[self._kinds])

    def solve(self, B: Floats, *, tolerance: float = 1e-8) -> Solution:
        r"""Solve :math:`\Gamma_{MM} x = b` by preconditioned conjugate gradients.

        Parameters
        ----------
        B : array of shape (k, n, q)
            Right-hand sides; only their entries on `M` are read.
        tolerance : float
            Wanted relative residual in the norm :math:`\lVert L^{-1} r \rVert`, which does not depend on units.

        Returns
        -------
        Solution
            With `x` (k, n, q), 0 outside `M`, and the largest residual, recomputed from :math:`b - \Gamma_{MM} x`.
        """
        B = np.where(self.missing, B, 0.0)
        x, R, iterations, norms = np.zeros_like(B), B, 0, self._norms(B)
        residual = float((norms > 0).any())
        for _ in range(_REFINEMENTS):
            if residual <= tolerance:
                break
            for part in np.array_split(np.arange(len(B)), -(-len(B) // self._together)):
                step, count = self._iterate(R[part], 0.5 * tolerance * norms[part])
                x[part] += step
                iterations = max(iterations, count)
            R = B - self.apply(x)
            residual = float((self._norms(R) * inverse(norms)).max(initial=0.0))
        return Solution(x, iterations, residual, residual <= tolerance)

    @property
    def matrix(self) -> sparse.csc_array:
        """The block as a sparse matrix, entries of `M` node by node."""
        nodes = np.flatnonzero(self.missing.any(axis=1))
        d = sparse.diags_array(inverse(np.sqrt(self.graph.degrees[nodes])))
        S = d @ self.graph.adjacency[nodes][:, nodes] @ d
        N = sparse.diags_array((d.diagonal() > 0).astype(np.float64)) - S
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
        for first in range(0, len(patterns), _TABLES):
            some = patterns[first : first + _TABLES]
            inside = some[:, :-1, None] & some[:, None, :-1]
            blocks = np.where(some[:, -1:, None], self.H, self.H + self.C)  # no edges, no C
            L = np.linalg.cholesky(np.where(inside, blocks, np.eye(q)))
            tables[first : first + _TABLES] = np.linalg.inv(L).transpose(0, 2, 1) * inside
        return tables

    @cached_property
    def _onto_edges(self) -> Floats:
        """E' = (L^-1 G)' acting on rows: v becomes v E; zero where there are no edges."""
        values, vectors = eigh(self.C)
        kept = values > 1e-14 * np.abs(values).max(initial=0.0)
        G = vectors[:, kept] * np.sqrt(values[kept]) if kept.any() else np.zeros((len(self.C), 1))
        connected = ~self._patterns[0][:, -1]
        return np.asarray((self._whiten.transpose(0, 2, 1) @ G) * connected[:, None, None])

    @cached_property
    def _bound_shift(self) -> float:
        """The largest eigenvalue of K is at most 1 / this: of C (H + C)^-1."""
        strength = float(eigh(self.C, self.H, eigvals_only=True)[-1])
        return 1.0 + 1.0 / max(strength, 1e-12)

    @property
    def _together(self) -> int:
        """How many right-hand sides go in one block."""
        n, q = self.missing.shape
        return max(1, _BLOCK_BYTES // (8 * int(n * q)))

    def _norms(self, R: Floats) -> Floats:
        return np.asarray(np.sqrt(np.einsum("kiq,kiq->k", R, self.precondition(R))))

    def _iterate(self, B: Floats, wanted: Floats) -> tuple[Floats, int]:
        """Run conjugate gradients on (I - K) L'x = L^-1 b until the norms of the residuals are below `wanted`."""
        engine, shape = self.graph.engine, B.shape
        V = engine.load(_columns(B))
        R, X = engine.like(V), engine.zeros(V.shape[1])
        engine.mix(V, self._whiten, self._kinds, None, R)
        count = self._descend(X, R, wanted)
        engine.mix(X, self._whiten.transpose(0, 2, 1).copy(), self._kinds, None, V)
        return _stack(engine.unload(V, shape[0] * shape[2]), shape), count

    def _descend(self, X: Block, R: Block, wanted: Floats) -> int:
        """Add the solution of (I - K) X = R to X. P is the direction over the squared residual: P += R / |R|^2."""
        engine, k, E = self.graph.engine, wanted.size, self._onto_edges
        E_transposed = E.transpose(0, 2, 1).copy()
        P, Q = engine.zeros(X.shape[1]), engine.like(X)
        U = engine.zeros(k * E.shape[2])
        SU, everywhere = engine.like(U), engine.mask(None, U.shape[1])
        ones, zeros = np.ones(U.shape[1]), np.zeros(U.shape[1])
        rho = _sums(squares(engine, R), k, len(self.H))
        reduction = np.where(rho > 0, wanted * inverse(np.sqrt(rho)), 1.0).min()
        bound = iteration_bound(np.array([self._bound_shift]), float(reduction))
        for iteration in range(bound):
            active = rho > wanted**2
            if not active.any():
                return iteration
            P_squared = engine.subtract(P, _spread(-inverse(rho) * active, X.shape[1], len(self.H)), R)
            engine.mix(P, E, self._kinds, None, U)
            PKP = engine.advance(U, ones, U, zeros, everywhere, SU)
            engine.mix(SU, E_transposed, self._kinds, P, Q)  # (K - I) P
            curvature = _sums(P_squared, k, len(self.H)) - _sums(PKP, k, E.shape[2])
            step = _spread(-inverse(curvature) * active, X.shape[1], len(self.H))
            engine.subtract(X, step, P)
            rho = _sums(engine.subtract(R, step, Q), k, len(self.H))
        return bound


def _columns(X: Floats) -> Floats:
    """Return a stack (k, n, q) as columns (n, k q)."""
    k, n, q = X.shape
    return np.ascontiguousarray(X.transpose(1, 0, 2)).reshape(n, k * q)


def _stack(V: Floats, shape: tuple[int, ...]) -> Floats:
    """Return columns (n, k q) as a stack (k, n, q)."""
    k, n, q = shape
    return np.ascontiguousarray(V.reshape(n, k, q).transpose(1, 0, 2))


def _sums(per_column: Floats, k: int, width: int) -> Floats:
    """Return the sums over the columns of each right-hand side."""
    return np.asarray(per_column[: k * width].reshape(k, width).sum(axis=1))


def _spread(values: Floats, width: int, q: int) -> Floats:
    """Return one value per right-hand side repeated for each of its columns, 0 on padding."""
    columns = np.zeros(width)
    columns[: values.size * q] = np.repeat(values, q)
    return columns

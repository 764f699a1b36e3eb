r"""Systems in :math:`A = I + \omega N + \mathrm{diag}(d)`: the precision of a field that is tied to some nodes.

With :math:`D = (1 + \omega) I + \mathrm{diag}(d)` conjugate gradients run on :math:`D^{-1/2} A D^{-1/2} = I - H`,
:math:`H = \omega D^{-1/2} (I - N) D^{-1/2}`. Their coefficients are also those of a Lanczos recurrence, so the same
iterations that solve for a Rademacher probe `z` estimate :math:`\log\det A` by quadrature.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.linalg import eigh_tridiagonal

from graphmrf.linalg.dense import Dense
from graphmrf.linalg.incidence import edge_noise
from graphmrf.linalg.lanczos import inverse, lanczos
from graphmrf.linalg.multishift import Solution, product

if TYPE_CHECKING:
    from graphmrf._typing import Floats
    from graphmrf.graph import Graph

DENSE_LIMIT = 1500
"""Nodes up to which a dense factor gives everything exactly."""

_BLOCK = 16
_ROWS = 8192
_REFINEMENTS = 3
_EXHAUSTED = 1e-13
_DRAW_TOLERANCE = 1e-5


@dataclass(frozen=True, eq=False)
class NodePrecision:
    r"""The matrix :math:`A = I + \omega N + \mathrm{diag}(d)`.

    Attributes
    ----------
    graph : Graph
        The graph of `N`.
    omega : float
        Strength of the edges, >= 0.
    d : array of shape (n,)
        How strongly every node is held, >= 0.

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> A = NodePrecision(Graph.from_edges([0], [1]), 1.0, np.array([0.0, 1.0]))
    >>> A.solve(np.array([[0.0], [5.0]]), tolerance=1e-8).round(6).ravel()
    array([1., 2.])
    >>> round(float(np.exp(A.log_determinant())), 6)
    5.0
    """

    graph: Graph
    omega: float
    d: Floats

    @cached_property
    def diagonal(self) -> Floats:
        """Diagonal of `A`."""
        return np.asarray(1.0 + self.omega * ~self.graph.isolated + self.d)

    @cached_property
    def dense(self) -> Dense | None:
        """A factor of `A` where the graph is small, None otherwise."""
        if self.graph.n_nodes > DENSE_LIMIT:
            return None
        return Dense((self.omega * self.graph.N + sparse.diags_array(1.0 + self.d)).toarray())

    @cached_property
    def _scale(self) -> Floats:
        """Diagonal of D, one column."""
        return np.asarray(1.0 + self.omega + self.d)[:, None]

    def solve(self, B: Floats, *, tolerance: float) -> Floats:
        r"""Return :math:`A^{-1} B` for columns `B` of shape (n, k).

        Parameters
        ----------
        B : array of shape (n, k)
            Right-hand sides.
        tolerance : float
            Wanted relative residual of every column in the norm of :math:`D^{-1/2}`, recomputed at the end.

        Raises
        ------
        ConvergenceError
            If it is not reached.
        """
        if self.dense is not None:
            return self.dense.solve(B)
        root, x = np.sqrt(self._scale), np.empty(B.shape)
        for first in range(0, B.shape[1], _BLOCK):
            block = slice(first, first + _BLOCK)
            x[:, block] = self._solve(B[:, block] / root, tolerance).or_raise(tolerance) / root
        return x

    def _solve(self, B: Floats, tolerance: float) -> Solution:
        norms = np.sqrt(_dots(B, B))
        x, steps = self._iterate(B, tolerance)
        iterations = len(steps)
        for _ in range(_REFINEMENTS + 1):
            R = B - self._apply(x)
            residual = float((np.sqrt(_dots(R, R)) * inverse(norms)).max(initial=0.0))
            if residual <= tolerance:
                break
            more, steps = self._iterate(R, 0.5 * tolerance / residual)
            x += more
            iterations += len(steps)
        return Solution(x, iterations, residual, residual <= tolerance)

    def _apply(self, X: Floats) -> Floats:
        """Return (I - H) X."""
        h = np.sqrt(self.omega / self._scale)
        moved = product(self.graph.engine, h * X)
        moved *= h
        return np.subtract(X, moved, out=moved)

    def _iterate(self, B: Floats, tolerance: float) -> tuple[Floats, list[tuple[Floats, Floats]]]:
        """Return the solution of (I - H) x = b by its recurrence, and its coefficients a and b of every step."""
        x, r, p = np.zeros(B.shape), B.copy(), B.copy()
        squares = first = _dots(B, B)
        steps: list[tuple[Floats, Floats]] = []
        while (squares > tolerance**2 * first).any() and len(steps) < self._bound(tolerance):
            moved = self._apply(p)
            live = squares > _EXHAUSTED**2 * first
            a = np.where(live, squares * inverse(_dots(p, moved)), 0.0)
            after = _descend(x, r, p, moved, a)
            b = np.where(live, after * inverse(squares), 0.0)
            _turn(p, r, b)
            squares = after
            steps.append((a, b))
        return x, steps

    def _bound(self, tolerance: float) -> float:
        condition = 2.0 * float(self._scale.max())
        return 50.0 + 2.0 * math.sqrt(condition) * math.log(2.0 / tolerance)

    def quadratic_forms(self, B: Floats, Z: Floats, *, tolerance: float) -> tuple[Floats, float]:
        r"""Return :math:`b'A^{-1}b` of every column of `B`, and :math:`\log\det A` by quadrature from the probes `Z`.

        One block of iterations for both; exact on small graphs, where `Z` is not used.
        """
        if self.dense is not None:
            return np.einsum("ij,ij->j", B, self.dense.solve(B)), self.log_determinant()
        k = B.shape[1]
        start = np.hstack([B / np.sqrt(self._scale), Z])
        x, steps = self._iterate(start, tolerance)
        a, b = (np.array(part)[:, k:] for part in zip(*steps, strict=True))
        logs = [len(Z) * _log_form(a[:, j], b[:, j]) for j in range(Z.shape[1])]
        return _dots(start[:, :k], x[:, :k]), float(np.log(self._scale).sum() + np.mean(logs))

    def log_determinant(self) -> float:
        """Return the logarithm of the determinant of `A`, exactly; small graphs only."""
        assert self.dense is not None
        return self.dense.log_determinant()

    def noise(self, k: int, rng: np.random.Generator) -> Floats:
        """Return `k` independent columns of covariance `A`, so that solving for them draws from its inverse."""
        E = rng.standard_normal((self.graph.n_nodes, k)) * np.sqrt(1.0 + self.d)[:, None]
        return np.asarray(E + np.sqrt(self.omega) * edge_noise(self.graph, k, rng))

    def inverse_diagonal(self, *, probes: int, seed: int) -> Floats:
        r"""Return the diagonal of :math:`A^{-1}`; exact on small graphs, otherwise from random draws `x`.

        The variance of a node given its neighbours is known, :math:`1 / A_{ii}`; drawn is that of its mean given them,
        :math:`\omega (S x)_i / A_{ii}`.
        """
        if self.dense is not None:
            return self.dense.inverse_diagonal()
        rng, total = np.random.default_rng(seed), np.zeros(self.graph.n_nodes)
        for first in range(0, probes, _BLOCK):
            x = self.solve(self.noise(min(_BLOCK, probes - first), rng), tolerance=_DRAW_TOLERANCE)
            total += (product(self.graph.engine, x) ** 2).sum(axis=1)
        means = self.omega**2 * total / probes * ~self.graph.isolated
        return np.asarray((1.0 + means / self.diagonal) / self.diagonal)


def rademacher(n: int, k: int, seed: int) -> Floats:
    """Return `k` Rademacher probes: columns of independent random signs, shape (n, k)."""
    return np.random.default_rng(seed).integers(0, 2, (n, k)) * 2.0 - 1.0


@dataclass(frozen=True, eq=False)
class LanczosQuadrature:
    r"""Estimates of :math:`\log\det(I + \omega N)` for every omega at once, by stochastic Lanczos quadrature.

    With the probes of `NodePrecision.quadratic_forms` both err nearly alike, cancelling in a difference.

    Attributes
    ----------
    nodes, weights : arrays of shape (probes, steps)
        Gauss rules over the spectrum of N; eigenvalues with weight 1 where the graph is small.

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> round(float(np.exp(lanczos_quadrature(Graph.from_edges([0], [1]), np.ones((2, 1))).log_determinant(1.0))), 6)
    3.0
    """

    nodes: Floats
    weights: Floats

    def log_determinant(self, omega: float) -> float:
        """Return the estimate at one level."""
        return float((self.weights * np.log1p(omega * self.nodes)).sum() / len(self.nodes))

    def mean_variance(self, omega: float) -> float:
        r"""Return the mean of the diagonal of :math:`(I + \omega N)^{-1}`, likewise."""
        return float((self.weights / (1.0 + omega * self.nodes)).sum() / self.weights.sum())


def lanczos_quadrature(graph: Graph, Z: Floats, *, steps: int = 80) -> LanczosQuadrature:
    """Return the quadrature of the probes `Z` after so many steps of the Lanczos recurrence."""
    if graph.n_nodes <= DENSE_LIMIT:
        values = np.linalg.eigvalsh(graph.N.toarray())[None]
        return LanczosQuadrature(np.clip(values, 0.0, 2.0), np.ones(values.shape))
    engine, k = graph.engine, Z.shape[1]
    start = engine.load(Z)
    recurrence = lanczos(engine, start, engine.mask(None, start.shape[1]))
    taken = [(step.a[:k], step.b[:k]) for step, _ in zip(recurrence, range(steps), strict=False)]
    a, b = (np.array(part) for part in zip(*taken, strict=True))
    rules = [_gauss(a[:, j], b[:-1, j]) for j in range(k)]
    nodes = np.array([np.clip(1.0 - values, 0.0, 2.0) for values, _ in rules])
    return LanczosQuadrature(nodes, len(Z) * np.array([weights for _, weights in rules]))


def _gauss(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    values, vectors = eigh_tridiagonal(a, b)
    return values, vectors[0] ** 2


def _log_form(a: Floats, b: Floats) -> float:
    """Return z' log(I - H) z / z'z from the coefficients of conjugate gradients for z."""
    count = int(np.argmax(np.append(a == 0, True)))
    a, b = a[:count], b[:count]
    slope = np.append(0.0, b[:-1] / a[:-1])
    values, weights = _gauss(1.0 / a + slope, np.sqrt(b[:-1]) / a[:-1])
    return float(weights @ np.log(np.maximum(values, np.finfo(np.float64).tiny)))


def _dots(U: Floats, V: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->j", U, V))


def _descend(x: Floats, r: Floats, p: Floats, moved: Floats, a: Floats) -> Floats:  # rows at a time stay in the cache
    """Set ``x += p a`` and ``r -= moved a``; return the sums of squares of r."""
    squares = np.zeros(a.size)
    for first in range(0, len(x), _ROWS):
        rows = slice(first, first + _ROWS)
        x[rows] += p[rows] * a
        r[rows] -= moved[rows] * a
        squares += _dots(r[rows], r[rows])
    return squares


def _turn(p: Floats, r: Floats, b: Floats) -> None:
    """Set ``p = r + p b``."""
    for first in range(0, len(p), _ROWS):
        rows = slice(first, first + _ROWS)
        p[rows] *= b
        p[rows] += r[rows]

r"""The precision :math:`A = I + \omega N + \mathrm{diag}(d)` of a field that is tied to some nodes.

With :math:`D = (1 + \omega) I + \mathrm{diag}(d)` it is the system of `graphmrf.linalg.operator` with one attribute and
a block of its own at every node.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from graphmrf.engines.probes import random_columns
from graphmrf.linalg.dense import Dense
from graphmrf.linalg.limits import LIMITS, Limits
from graphmrf.linalg.multishift import product
from graphmrf.linalg.operator import WhitenedSystem, edge_noise
from graphmrf.linalg.spectrum import LanczosQuadrature, quadrature

if TYPE_CHECKING:
    from graphmrf._typing import Floats
    from graphmrf.graph import Graph

__all__ = ["DENSE_LIMIT", "LanczosQuadrature", "NodePrecision", "lanczos_quadrature", "rademacher"]

DENSE_LIMIT = LIMITS.dense_precision
"""Nodes up to which a dense factor gives everything exactly; see `Limits.dense_precision`."""

_TOGETHER = 16
"""Columns solved for at once: a multiple of what the kernels take in one go. Doubled, a block of a million nodes takes
256 MB and the products are no quicker."""

_DRAW_TOLERANCE = 1e-5
"""Relative residual of draws: far below the scatter of any number of them. Doubled, a solve is a few steps shorter."""


@dataclass(frozen=True, eq=False)
class NodePrecision:
    r"""The matrix :math:`A = I + \omega N + \mathrm{diag}(d)`; its columns have shape (n, k).

    Attributes
    ----------
    graph : Graph
        The graph of `N`.
    omega : float
        Strength of the edges, >= 0.
    d : array of shape (n,)
        How strongly every node is held, >= 0.
    limits : Limits
        Up to `dense_precision` nodes a dense factor gives everything exactly.

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
    limits: Limits = LIMITS

    @cached_property
    def diagonal(self) -> Floats:
        """Diagonal of `A`."""
        return np.asarray(1.0 + self.omega * ~self.graph.isolated + self.d)

    @cached_property
    def dense(self) -> Dense | None:
        """A factor of `A` where the graph is small, None otherwise."""
        if self.graph.n_nodes > min(self.limits.dense_precision, DENSE_LIMIT):
            return None
        return Dense((self.omega * self.graph.N + sparse.diags_array(1.0 + self.d)).toarray())

    @cached_property
    def _scale(self) -> Floats:
        """Diagonal of D."""
        return np.asarray(1.0 + self.omega + self.d)

    @cached_property
    def _system(self) -> WhitenedSystem:
        blocks, root = self._scale[:, None, None], np.sqrt(self._scale)[:, None, None]
        tables = (blocks, np.full((1, 1), self.omega), 1.0 / root, np.sqrt(self.omega) / root)
        nearest = 1.0 + 1.0 / max(self.omega, 1e-12)
        return WhitenedSystem(self.graph.engine, np.arange(self.graph.n_nodes), *tables, nearest, self.limits)

    def apply(self, X: Floats) -> Floats:
        """Return :math:`A X`."""
        return np.asarray(self._scale[:, None] * X - self.omega * product(self.graph.engine, X))

    def solve(self, B: Floats, *, tolerance: float = 1e-8) -> Floats:
        r"""Return :math:`A^{-1} B`.

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
        return self._system.solve(B, tolerance=tolerance, together=_TOGETHER).or_raise(tolerance)

    def quadratic_forms(self, B: Floats, Z: Floats, *, tolerance: float) -> tuple[Floats, float]:
        r"""Return :math:`b'A^{-1}b` of every column of `B`, and :math:`\log\det A` by quadrature from the probes `Z`.

        One block of iterations for both; exact on small graphs, where `Z` is not used.
        """
        if self.dense is not None:
            return np.einsum("ij,ij->j", B, self.dense.solve(B)), self.dense.log_determinant()
        start = np.hstack([B / np.sqrt(self._scale)[:, None], Z])
        forms, logs = self._system.quadrature(start, tolerance=tolerance)
        return forms[: B.shape[1]], float(np.log(self._scale).sum() + len(Z) * logs[B.shape[1] :].mean())

    def log_determinant(self, *, probes: int = 16, seed: int = 0) -> float:
        r"""Return :math:`\log\det A`: exact on small graphs, otherwise by quadrature from so many Rademacher probes."""
        n = self.graph.n_nodes
        return self.quadratic_forms(np.zeros((n, 0)), rademacher(n, probes, seed), tolerance=1e-3)[1]

    def noise(self, k: int, rng: np.random.Generator) -> Floats:
        """Return `k` independent columns of covariance `A`, so that solving for them draws from its inverse."""
        E = rng.standard_normal((self.graph.n_nodes, k)) * np.sqrt(1.0 + self.d)[:, None]
        return np.asarray(E + np.sqrt(self.omega) * edge_noise(self.graph, k, rng))

    def draw(self, k: int, rng: np.random.Generator, *, tolerance: float = _DRAW_TOLERANCE) -> Floats:
        """Return `k` columns drawn with covariance :math:`A^{-1}`."""
        return self.solve(self.noise(k, rng), tolerance=tolerance)

    def inverse_diagonal(self, *, probes: int = 64, seed: int = 0) -> Floats:
        r"""Return the diagonal of :math:`A^{-1}`; exact on small graphs, otherwise from random draws `x`.

        The variance of a node given its neighbours is known, :math:`1 / A_{ii}`; drawn is that of its mean given them,
        :math:`\omega (S x)_i / A_{ii}`.
        """
        if self.dense is not None:
            return self.dense.inverse_diagonal()
        rng, total = np.random.default_rng(seed), np.zeros(self.graph.n_nodes)
        for first in range(0, probes, _TOGETHER):
            x = self.draw(min(_TOGETHER, probes - first), rng)
            total += (product(self.graph.engine, x) ** 2).sum(axis=1)
        means = self.omega**2 * total / probes * ~self.graph.isolated
        return np.asarray((1.0 + means / self.diagonal) / self.diagonal)


def rademacher(n: int, k: int, seed: int) -> Floats:
    """Return `k` Rademacher probes: columns of independent random signs, shape (n, k), the same on every engine."""
    return random_columns(seed, n, k)


def lanczos_quadrature(graph: Graph, Z: Floats, *, steps: int = 80) -> LanczosQuadrature:
    r"""Return the quadrature of the probes `Z` after so many steps; that of the eigenvalues on small graphs.

    With the probes of `NodePrecision.quadratic_forms` both estimates of :math:`\log\det` err nearly alike, and the
    difference hardly at all.

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> round(float(np.exp(lanczos_quadrature(Graph.from_edges([0], [1]), np.ones((2, 1))).log_determinant(1.0))), 6)
    3.0
    """
    if graph.n_nodes <= DENSE_LIMIT:
        values = np.clip(np.linalg.eigvalsh(graph.N.toarray()), 0.0, 2.0)[None]
        return LanczosQuadrature(values, np.ones(values.shape), values, np.ones(values.shape))
    start = graph.engine.load(Z)
    return quadrature(graph.engine, start, graph.engine.mask(None, start.shape[1]), (Z.shape[1], steps))

r"""The graph field of the scalable form, at some smoothness and strength.

.. math:: u = \sqrt{f}\,g \circ v, \quad v \sim N(0, (I + \omega N)^{-1}), \quad g_i = \mathrm{Var}(v_i)^{-1/2}

or, where the variance of the field is not to be even, the same `g` at all nodes, by their mean variance.
With noise of variance `s` and :math:`\rho = f / s` the labels have covariance :math:`s C`,
:math:`C = I + \rho\,g\,[(I + \omega N)^{-1}]_{LL}\,g`, and with :math:`G = \sqrt\rho\,g_L`

.. math:: A = I + \omega N + G^2, \quad C^{-1} = I - G [A^{-1}]_{LL} G, \quad
          \log\det C = \log\det A - \log\det(I + \omega N).
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from graphmrf.field.sparse_weights import Equations
from graphmrf.linalg import conditional_variance, precision
from graphmrf.linalg.precision import NodePrecision, lanczos_quadrature, rademacher

if TYPE_CHECKING:
    from graphmrf._typing import Floats, Ints
    from graphmrf.graph import Graph
    from graphmrf.linalg.precision import LanczosQuadrature

_PROGRESS = logging.getLogger("graphmrf.progress")

_BLOCK = 16
_KNOT = float(np.log(4.0))
_KNOT_TOLERANCE = 1e-3
_VARIANCE_DRAWS = (10_000_000, 32, 64)
_PROBES = (1_200_000, 8, 32)


def _between(n: int, budget: tuple[int, int, int]) -> int:
    """Return a number of random vectors: fewer on larger graphs, where one says more."""
    total, least, most = budget
    return int(np.clip(total // max(n, 1), least, most))


@dataclass(frozen=True, eq=False)
class Ground:
    """A graph and its labelled nodes, with what does not depend on the strength of the field.

    Attributes
    ----------
    graph : Graph
        The graph.
    rows : integer array of shape (m,)
        The labelled nodes.
    seed : int
        Seed of random vectors.
    even : bool
        Whether the variance of the field is the same at all nodes.
    """

    graph: Graph
    rows: Ints
    seed: int = 0
    even: bool = True
    _knots: dict[int, Floats] = field(default_factory=dict, repr=False)

    @cached_property
    def probes(self) -> Floats:
        """Rademacher probes for determinants."""
        n = self.graph.n_nodes
        return rademacher(n, _between(n, _PROBES) if n > precision.DENSE_LIMIT else 0, self.seed)

    @cached_property
    def quadrature(self) -> LanczosQuadrature:
        r"""Estimates of functions of the spectrum of `N`."""
        return lanczos_quadrature(self.graph, self.probes)

    def variance(self, omega: float) -> Floats:
        r"""Return the diagonal of :math:`(I + \omega N)^{-1}`, shape (n,).

        Beyond small graphs it is drawn at powers of 4 of omega, with the same noise, and interpolated in between.
        """
        if self.graph.n_nodes <= precision.DENSE_LIMIT:
            return self._variance(omega)
        place = float(np.log(omega)) / _KNOT
        low = int(np.floor(place))
        share = place - low
        return np.asarray(np.exp((1.0 - share) * self._knot(low) + share * self._knot(low + 1)))

    def _knot(self, k: int) -> Floats:
        if k not in self._knots:
            self._knots[k] = np.log(self._variance(float(np.exp(k * _KNOT))))
        return self._knots[k]

    def _variance(self, omega: float) -> Floats:
        n = self.graph.n_nodes
        nothing, alpha = np.zeros(n, dtype=np.bool_), omega / (1.0 + omega)
        return conditional_variance(
            self.graph,
            nothing,
            alpha,
            seed=self.seed,
            probes=_between(n, _VARIANCE_DRAWS),
            tolerance=_KNOT_TOLERANCE,
        )


@dataclass(frozen=True, eq=False)
class System:
    """The field at a smoothness and a strength.

    Attributes
    ----------
    ground : Ground
        Graph and labelled nodes.
    omega, rho : float
        Smoothness of the field, and its variance over that of the noise.
    tolerance : float
        Relative accuracy wanted of the solves.
    """

    ground: Ground
    omega: float
    rho: float
    tolerance: float

    @cached_property
    def g(self) -> Floats:
        """What makes the variance of the field 1, at every node or on average."""
        if self.ground.even:
            return np.asarray(self.ground.variance(self.omega) ** -0.5)
        return np.full(self.ground.graph.n_nodes, self.ground.quadrature.mean_variance(self.omega) ** -0.5)

    @cached_property
    def prior(self) -> Floats:
        """Variance of the field before the labels, where that is 1 on average."""
        if self.ground.even:
            return np.ones(self.ground.graph.n_nodes)
        return np.asarray(self.g**2 * self.ground.variance(self.omega))

    @cached_property
    def G(self) -> Floats:
        """Scale of the field over that of the noise, at the labelled nodes."""
        return np.asarray(np.sqrt(self.rho) * self.g[self.ground.rows])

    @cached_property
    def A(self) -> NodePrecision:
        """Precision of the field given the labels, up to scale."""
        d = np.zeros(self.ground.graph.n_nodes)
        d[self.ground.rows] = self.G**2
        return NodePrecision(self.ground.graph, self.omega, d)

    @property
    def _tolerance(self) -> float:
        """A strong field takes nearly all of a label, so what it leaves must be computed more accurately."""
        return max(self.tolerance / (1.0 + self.rho), 1e-11)

    def spread(self, B: Floats) -> Floats:
        """Return, for columns `B` at the labelled nodes, the columns G B at these and 0 elsewhere."""
        out = np.zeros((self.ground.graph.n_nodes, B.shape[1]))
        out[self.ground.rows] = self.G[:, None] * B
        return out

    def carry(self, B: Floats) -> Floats:
        r"""Return :math:`A^{-1} G B` at all nodes: what the field makes of columns at the labelled nodes."""
        return self.solve(self.spread(B))

    def solve(self, B: Floats) -> Floats:
        r"""Return :math:`A^{-1} B`."""
        return self.A.solve(B, tolerance=self._tolerance)

    def forms(self, B: Floats) -> tuple[Floats, float]:
        r"""Return :math:`b'C^{-1}b` of every column, and :math:`\log\det C`; both err by the square of a residual."""
        forms, log_A = self.A.quadratic_forms(
            self.spread(B), self.ground.probes, tolerance=math.sqrt(0.1 * self._tolerance)
        )
        squares = np.einsum("ij,ij->j", B, B)
        return squares - forms, log_A - self.ground.quadrature.log_determinant(self.omega)

    def project(self, F: Floats, z: Floats) -> Projection:
        """Return what the labels `z` say of the coefficients of columns `F` of all nodes."""
        rows, width = self.ground.rows, F.shape[1]
        labelled = np.empty((rows.size, width + 1))
        labelled[:, 0], labelled[:, 1:] = z, F[rows]
        carried = np.empty((len(F), width + 1), dtype=F.dtype)
        products = np.empty((width + 1, width + 1))
        for first in range(0, width + 1, _BLOCK):
            _PROGRESS.info("solving for %d columns: %d of %d", width + 1, first, width + 1)
            block = slice(first, first + _BLOCK)
            W = self.carry(labelled[:, block])
            products[:, block] = labelled.T @ (labelled[:, block] - self.G[:, None] * W[rows])
            carried[:, block] = W
        return Projection(self, F, z, _semidefinite(products), carried)


@dataclass(frozen=True, eq=False)
class Projection:
    """Columns of all nodes seen through a field.

    Attributes
    ----------
    system : System
        The field.
    F : array of shape (n, P)
        The columns.
    z : array of shape (m,)
        The labels.
    products : array of shape (P + 1, P + 1)
        Inner products of labels and columns in the metric of the inverse of `C`.
    carried : array of shape (n, P + 1)
        What the field makes of labels and columns.
    """

    system: System
    F: Floats
    z: Floats
    products: Floats
    carried: Floats

    @cached_property
    def equations(self) -> Equations:
        """The small problem for the coefficients."""
        log_determinant = self.system.forms(self.z[:, None])[1]
        products = self.products
        return Equations(products[1:, 1:], products[1:, 0], float(products[0, 0]), self.z.size, log_determinant)


def _semidefinite(products: Floats) -> Floats:
    """Return the inner products with what the tolerance of the solves put below 0, in units of their diagonal, at 0."""
    symmetric = 0.5 * (products + products.T)
    unit = np.sqrt(np.maximum(np.diag(symmetric), 0.0))
    unit = np.where(unit > 0, unit, 1.0)
    values, vectors = np.linalg.eigh(symmetric / np.outer(unit, unit))
    root = unit[:, None] * vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(root @ root.T)

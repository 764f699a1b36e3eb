r"""The sparse solver at one smoothness and strength of the field: its system, the columns of effects, their variances.

.. math:: u = \sqrt{f}\,g \circ v, \quad v \sim N(0, (I + \omega N)^{-1}), \quad g_i = \mathrm{Var}(v_i)^{-1/2}

or, where the field is not to have unit variance, the same `g` at all nodes, by their mean variance.
With noise of variance `s` and :math:`\rho = f / s` the labels have covariance :math:`s C`,
:math:`C = I + \rho\,g\,[(I + \omega N)^{-1}]_{LL}\,g`, and with :math:`G = \sqrt\rho\,g_L`

.. math:: A = I + \omega N + G^2, \quad C^{-1} = I - G [A^{-1}]_{LL} G, \quad
          \log\det C = \log\det A - \log\det(I + \omega N).

For columns F of effects, :math:`z = F \beta + e`, :math:`\beta \sim N(0, T s)`, :math:`e \sim N(0, s C)` the likelihood
needs only :math:`Q = F'C^{-1}F`, :math:`q = F'C^{-1}z`, :math:`c = z'C^{-1}z` and :math:`\log\det C`: with
:math:`B = I + T^{1/2} Q T^{1/2}`

.. math:: -2 \log p(z) = m \log 2 \pi s + \log\det C + \log\det B
          + \tfrac1s (c - q'T^{1/2} B^{-1} T^{1/2} q)
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from graphmrf.field.hyperparameters import INTERCEPT, LEAST_NOISE, LOG_VARIANCES, START, trust_region_newton
from graphmrf.kept import cached_property
from graphmrf.linalg.dense import Dense, place
from graphmrf.linalg.precision import NodePrecision

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

    from graphmrf._typing import Floats, Ints
    from graphmrf.field.design import LabelledGraph
    from graphmrf.field.hyperparameters import Expansion

_PROGRESS = logging.getLogger("graphmrf.progress")

_SINGLE_CELLS = 20_000_000
"""Cells of the columns beyond which they are kept in float32: 80 MB, not 160; labels are noisier than rounding."""
_START_NOISE = 0.3
"""Variance of the noise at which the search starts."""
_STEPS = 100
"""Most steps of the search for the variances; a step costs one small factorisation."""
_LEAST_GAIN = 1e-4
"""Gain in log evidence below which it ends: far below the differences of 1 by which models are compared."""


@dataclass(frozen=True, eq=False)
class EffectColumns:
    """A constant and the columns of all effects, of all nodes.

    Attributes
    ----------
    F : array of shape (n, P)
        The constant, then the columns of every component; in float32 when there are very many cells.
    slices : dict of str to slice
        Place of every component's columns.
    weights : dict of str to float
        Prior variance of a coefficient over that of its component.
    smoothing : tuple of a float and two arrays of shape (p,), or None
        Where they are smoothed features, the level alpha, what these were divided by, and their means before that.
    """

    F: Floats
    slices: dict[str, slice]
    weights: dict[str, float]
    smoothing: tuple[float, Floats, Floats] | None = None

    @classmethod
    def of(cls, n: int, blocks: Mapping[str, Floats], weights: dict[str, float]) -> Self:
        """Return the columns of `n` nodes from those of every component."""
        ends = 1 + np.cumsum([0, *(block.shape[1] for block in blocks.values())])
        F = np.empty((n, int(ends[-1])), dtype=np.float32 if n * ends[-1] > _SINGLE_CELLS else np.float64)
        F[:, 0] = 1.0
        slices = {name: slice(int(a), int(b)) for name, a, b in zip(blocks, ends[:-1], ends[1:], strict=True)}
        for name, block in blocks.items():
            F[:, slices[name]] = block
        return cls(F, slices, weights)

    def at(self, nodes: Ints) -> Self:
        """Return the columns of some nodes."""
        return replace(self, F=self.F[nodes])

    def first(self, size: int, name: str) -> EffectColumns:
        """Return the columns with only so many, the first, of a component's; all when it has no more."""
        at = self.slices.get(name, slice(0, 0))
        if at.stop - at.start <= size:
            return self
        blocks = {other: self.F[:, place] for other, place in self.slices.items()}
        blocks[name] = blocks[name][:, :size]
        return EffectColumns.of(len(self.F), blocks, self.weights)

    def variances(self, by_component: Mapping[str, float]) -> Floats:
        """Return the prior variance of every coefficient from the variance of every component."""
        variances = np.full(self.F.shape[1], INTERCEPT)
        for name, at in self.slices.items():
            variances[at] = by_component[name] * self.weights[name]
        return variances


@dataclass(frozen=True, eq=False)
class FieldSystem:
    """The field at a smoothness and a strength.

    Attributes
    ----------
    labelled : LabelledGraph
        Graph and labelled nodes.
    omega, rho : float
        Smoothness of the field, and its variance over that of the noise.
    tolerance : float
        Relative accuracy wanted of the solves.
    """

    labelled: LabelledGraph
    omega: float
    rho: float
    tolerance: float

    @cached_property
    def g(self) -> Floats:
        """What makes the variance of the field 1, at every node or on average."""
        if self.labelled.unit_variance:
            return np.asarray(self.labelled.variance(self.omega) ** -0.5)
        return np.full(self.labelled.graph.n_nodes, self.labelled.quadrature.mean_variance(self.omega) ** -0.5)

    @cached_property
    def prior(self) -> Floats:
        """Variance of the field before the labels, where that is 1 on average."""
        if self.labelled.unit_variance:
            return np.ones(self.labelled.graph.n_nodes)
        return np.asarray(self.g**2 * self.labelled.variance(self.omega))

    @cached_property
    def G(self) -> Floats:
        """Scale of the field over that of the noise, at the labelled nodes."""
        return np.asarray(np.sqrt(self.rho) * self.g[self.labelled.rows])

    @cached_property
    def A(self) -> NodePrecision:
        """Precision of the field given the labels, up to scale."""
        d = np.zeros(self.labelled.graph.n_nodes)
        d[self.labelled.rows] = self.G**2
        return NodePrecision(self.labelled.graph, self.omega, d)

    @property
    def _tolerance(self) -> float:
        """A strong field takes nearly all of a label, so what it leaves must be computed more accurately."""
        return max(self.tolerance / (1.0 + self.rho), 1e-11)

    def solve_from_labels(self, B: Floats, at: Ints | None = None) -> Floats:
        r"""Return :math:`A^{-1} G B` at all nodes or some: what the field makes of columns at the labelled nodes."""
        return self.A.solve(self.G[:, None] * B, tolerance=self._tolerance, rows=(self.labelled.rows, at))

    def solve(self, B: Floats) -> Floats:
        r"""Return :math:`A^{-1} B`."""
        return self.A.solve(B, tolerance=self._tolerance)

    def quadratic_forms(self, B: Floats) -> tuple[Floats, float]:
        r"""Return :math:`b'C^{-1}b` of every column, and :math:`\log\det C`; both err by the square of a residual."""
        forms, log_A = self.A.quadratic_forms(
            self.G[:, None] * B, self.labelled.rows, self.labelled.probes, tolerance=math.sqrt(0.1 * self._tolerance)
        )
        squares = np.einsum("ij,ij->j", B, B)
        return squares - forms, log_A - self.labelled.quadrature.log_determinant(self.omega)

    def project(self, F: Floats, z: Floats) -> ProjectedColumns:
        """Return labels `z` and columns `F` of all nodes, and what the field makes of both."""
        carried = np.zeros((len(F), F.shape[1] + 1), dtype=F.dtype)
        products = self._products(np.column_stack([z, F[self.labelled.rows]]), carried)
        return ProjectedColumns(self, F, z, products, carried)

    def equations(self, F: Floats, z: Floats) -> Equations:
        """Return what the labels `z` say of the coefficients of columns `F` of the labelled nodes."""
        return self.equations_of(self._products(np.column_stack([z, F])), z)

    def equations_of(self, products: Floats, z: Floats) -> Equations:
        """Return what inner products of labels and columns say of the coefficients."""
        log_determinant = self.quadratic_forms(z[:, None])[1] if self.rho else 0.0
        return Equations(products[1:, 1:], products[1:, 0], float(products[0, 0]), z.size, log_determinant)

    def _products(self, there: Floats, carried: Floats | None = None) -> Floats:
        """Return inner products of columns at the labels; what the field makes of them everywhere goes to `carried`."""
        if not self.rho:  # without a field C is the identity
            return there.T @ there
        rows, width, together = self.labelled.rows, there.shape[1], self.A.together
        products, seen = np.empty((width, width)), place(self.labelled.graph.engine, there)
        for first in range(0, width, together):
            _PROGRESS.info("solving for %d columns: %d of %d", width, first, width)
            block = slice(first, first + together)
            W = self.solve_from_labels(there[:, block], rows if carried is None else None)
            if carried is not None:
                carried[:, block] = W
                W = W[rows]
            products[:, block] = seen.T @ (there[:, block] - self.G[:, None] * W)
        return _semidefinite(products)


@dataclass(frozen=True, eq=False)
class ProjectedColumns:
    """Columns of all nodes seen through a field.

    Attributes
    ----------
    system : FieldSystem
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

    system: FieldSystem
    F: Floats
    z: Floats
    products: Floats
    carried: Floats

    @cached_property
    def equations(self) -> Equations:
        """The small problem for the coefficients."""
        return self.system.equations_of(self.products, self.z)


def _semidefinite(products: Floats) -> Floats:
    """Return the inner products with what the tolerance of the solves put below 0, in units of their diagonal, at 0."""
    symmetric = 0.5 * (products + products.T)
    unit = np.sqrt(np.maximum(np.diag(symmetric), 0.0))
    unit = np.where(unit > 0, unit, 1.0)
    values, vectors = np.linalg.eigh(symmetric / np.outer(unit, unit))
    root = unit[:, None] * vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(root @ root.T)


@dataclass(frozen=True, eq=False)
class Equations:
    """What the labels say of the coefficients of some columns under one graph field.

    Attributes
    ----------
    Q : array of shape (P, P)
        :math:`F'C^{-1}F`.
    q : array of shape (P,)
        :math:`F'C^{-1}z`.
    c : float
        :math:`z'C^{-1}z`.
    m : int
        Number of labels.
    log_determinant : float
        Of `C`.
    """

    Q: Floats
    q: Floats
    c: float
    m: int
    log_determinant: float

    def given(self, variances: Floats, noise: float) -> Coefficients:
        """Return the coefficients at some prior variances and noise."""
        return Coefficients(self, variances, noise)


@dataclass(frozen=True, eq=False)
class Coefficients:
    """The coefficients given the labels.

    Attributes
    ----------
    equations : Equations
        What the labels say.
    variances : array of shape (P,)
        Prior variances.
    noise : float
        Variance of the noise.
    """

    equations: Equations
    variances: Floats
    noise: float

    @cached_property
    def _root(self) -> Floats:
        return np.asarray(np.sqrt(self.variances / self.noise))

    @cached_property
    def B(self) -> Dense:
        r"""The matrix :math:`I + T^{1/2} Q T^{1/2}`."""
        return Dense(np.eye(self._root.size) + self._root[:, None] * self.equations.Q * self._root)

    @cached_property
    def mean(self) -> Floats:
        """Posterior mean."""
        return np.asarray(self._root * self.B.solve(self._root * self.equations.q))

    @cached_property
    def covariance(self) -> Floats:
        """Posterior covariance."""
        return np.asarray(self.noise * self._root[:, None] * self.B.inverse * self._root)

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """Return draws as columns, shape (P, count)."""
        return np.asarray(self.mean[:, None] + np.sqrt(self.noise) * self._root[:, None] * self.B.draw(count, rng))

    @cached_property
    def misfit(self) -> float:
        r"""The quadratic form :math:`z'K^{-1}z` of the labels and their covariance."""
        return (self.equations.c - float(self.equations.q @ self.mean)) / self.noise

    @property
    def log_evidence(self) -> float:
        """Log marginal likelihood of the labels."""
        m, log_B = self.equations.m, self.B.log_determinant()
        logs = m * float(np.log(2.0 * np.pi * self.noise)) + self.equations.log_determinant + log_B
        return -0.5 * (logs + self.misfit)

    def information(self, places: Sequence[slice]) -> Floats:
        r"""Return the average information of the logarithms of groups' prior variances and, last, of the noise.

        With :math:`x = T^{-1/2} \hat\beta / \sqrt s`, of which group `i` has the part :math:`x_i`, it is
        :math:`\tfrac12 x_i'(I - B^{-1})x_j` of two groups, :math:`\tfrac12 x_i'B^{-1}x` of a group and the noise, and
        :math:`\tfrac12 (z'K^{-1}z - x'x - x'B^{-1}x)` of the noise; see `Evidence.expanded`.
        """
        x = np.divide(self.mean, np.sqrt(self.variances), out=np.zeros_like(self.mean), where=self.variances > 0)
        X = np.zeros((x.size, len(places) + 1))
        X[:, -1] = x
        for k, group in enumerate(places):
            X[group, k] = x[group]
        products, told = X.T @ X, X.T @ self.B.inverse @ X
        half = 0.5 * (products - told)
        half[:-1, -1] = half[-1, :-1] = 0.5 * told[:-1, -1]
        half[-1, -1] = 0.5 * (self.misfit - products[-1, -1] - told[-1, -1])
        return np.asarray(half)

    @property
    def slopes(self) -> Floats:
        """Derivatives of the log evidence by the logarithms of the prior variances and, last, of the noise."""
        surprise = np.divide(self.mean**2, self.variances, out=np.zeros_like(self.mean), where=self.variances > 0)
        by_variance = 0.5 * (surprise - (1.0 - np.diag(self.B.inverse)))
        by_noise = 0.5 * (self.misfit - self.equations.m) - by_variance.sum()
        return np.append(by_variance, by_noise)


def fit_variances(
    columns: EffectColumns, equations: Equations, *, least_noise: float = LEAST_NOISE
) -> tuple[dict[str, float], Coefficients]:
    """Return the variances of the components that make the labels most likely, and the coefficients there."""
    there = np.diag(equations.Q) > 0
    names = [name for name, place in columns.slices.items() if there[place].any()]

    def read(theta: Floats) -> tuple[dict[str, float], float]:
        found = dict(zip(names, np.exp(theta[:-1]).tolist(), strict=True))
        return dict.fromkeys(columns.slices, 0.0) | found, float(np.exp(theta[-1]))

    def negative(theta: Floats) -> tuple[float, Expansion]:
        by_component, noise = read(theta)
        at = equations.given(columns.variances(by_component), noise)
        places = [columns.slices[name] for name in names]

        def derivatives() -> tuple[Floats, Floats]:
            slopes = at.slopes
            return -np.append([slopes[group].sum() for group in places], slopes[-1]), at.information(places)

        return -at.log_evidence, derivatives

    start = np.log([START] * len(names) + [_START_NOISE])
    bounds = [LOG_VARIANCES] * len(names) + [(math.log(least_noise), 2.0)]
    point, _, _ = trust_region_newton(negative, start, bounds, steps=_STEPS, least_gain=_LEAST_GAIN)
    by_component, noise = read(point)
    return by_component, equations.given(columns.variances(by_component), noise)

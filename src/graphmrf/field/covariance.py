r"""The covariance of the outcome: a sum of components, each a formula of its own.

.. math:: t_0 + \tfrac{t_1}{p} XX' + \tfrac{t_2}{p} SX(SX)' + \tfrac{t_3}{p} S^2X(S^2X)'
          + \tfrac{t_4}{p} TX(TX)' + f R_{\omega\nu} + r\,k(Z, Z') + r_2\,k_2(Z, Z') \circ R_{\omega_2\nu_2} + s I

with standardised features, :math:`Z = [X, SX]`, squared-exponential `k`, the correlations `R` of a Matern field on the
graph, and `T` its kernel :math:`(I + \omega N)^{-\nu}`, scaled to a mean eigenvalue of 1. Every component but that of
`T` has variance 1 at the average node before it is multiplied by its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from graphmrf.field.design import GROUPS
from graphmrf.field.matern import Correlations, Smoothings

if TYPE_CHECKING:
    from graphmrf._typing import Floats, Ints
    from graphmrf.field.design import Design
    from graphmrf.field.hyperparameters import Hyperparameters
    from graphmrf.field.matern import Correlation, Eigen, Smoothing
    from graphmrf.linalg.dense import Triangle

_USUAL_OMEGA, _UNEVEN = 20.0, 2.0

COMPONENTS = ("own", "neighbours", "second", "smoothed", "nonlinear", "local", "field")
"""The parts a prediction is made of, besides the constant."""


@dataclass(frozen=True, eq=False)
class Covariance:
    """The covariance among some nodes, its derivatives, and its blocks with others.

    Attributes
    ----------
    design : Design
        Features of all nodes.
    eigen : Eigen
        Eigenvectors of the graph.
    rows : integer array of shape (m,)
        The nodes whose outcomes are known.
    """

    design: Design
    eigen: Eigen
    rows: Ints

    @cached_property
    def correlations(self) -> Correlations:
        """The graph's part."""
        return Correlations(self.eigen, self.rows)

    @property
    def triangle(self) -> Triangle:
        """Layout of the matrices among the rows."""
        return self.correlations.triangle

    @cached_property
    def shows_unevenness(self) -> bool:
        """Whether the rows could tell where a field of uneven variance varies most, as at isolated nodes."""
        variances = self.eigen.variances(_USUAL_OMEGA, 1.0)
        return bool(variances.max() <= _UNEVEN * variances[self.rows].max())

    @cached_property
    def F(self) -> Floats:
        """Linear features of the rows."""
        return self.design.linear[self.rows]

    @cached_property
    def Z(self) -> Floats:
        """Nonlinear features of the rows."""
        return self.design.Z[self.rows]

    @cached_property
    def smoothings(self) -> Smoothings:
        """The features smoothed as a field is."""
        return Smoothings(self.eigen, self.rows, self.design.groups[0])

    @cached_property
    def squares(self) -> Floats:
        """Squared distances of the rows in feature space, as a lower triangle."""
        return self.distances(np.ones(self.Z.shape[1]))

    def distances(self, weights: Floats) -> Floats:
        """Return weighted squared distances of the rows, as a lower triangle."""
        Z = self.Z * np.sqrt(weights)
        norms = np.einsum("ij,ij->i", Z, Z)
        square = norms[:, None] + norms - 2.0 * (Z @ Z.T)
        return np.maximum(self.triangle.pack(square), 0.0)

    def among(self, h: Hyperparameters) -> Terms:
        """Return the components among the rows."""
        field = self.correlations.among(h.omega, h.nu, even=h.even)
        smooth = self.smoothings.among(h.omega, h.nu) if self.design.p else None
        if not h.nonlinear and not h.local:
            return Terms(self, h, field, smooth)
        kernel = np.exp(-0.5 * self.distances(h.lengths**-2.0))
        local_kernel = np.exp(self.squares * (-0.5 * h.local_length**-2.0))
        local_field = self.correlations.among(h.local_omega, h.local_nu)
        return Terms(self, h, field, smooth, Drift(kernel, local_kernel, local_field))

    def across(self, h: Hyperparameters, nodes: Ints) -> dict[str, Floats]:
        """Return the components between other nodes and the rows, each of shape (len(nodes), m)."""
        blocks = {"field": h.field * self.correlations.across(h.omega, h.nu, nodes, even=h.even)}
        if not self.design.p:
            return blocks
        smooth = self.smoothings.everywhere(h.omega, h.nu)
        for name, group in zip((*GROUPS, "smoothed"), (*self.design.groups, smooth), strict=True):
            if getattr(h, name):
                blocks[name] = getattr(h, name) / self.design.p * (group[nodes] @ group[self.rows].T)
        if h.nonlinear or h.local:
            Z = self.design.Z
            blocks["nonlinear"] = h.nonlinear * squared_exponential(Z[nodes] / h.lengths, self.Z / h.lengths)
            local = squared_exponential(Z[nodes] / h.local_length, self.Z / h.local_length)
            blocks["local"] = h.local * local * self.correlations.across(h.local_omega, h.local_nu, nodes)
        return blocks

    def variances(self, h: Hyperparameters, nodes: Ints) -> Floats:
        """Return the prior variance of the outcome of some nodes, noise included."""
        F = self.design.linear[nodes]
        linear = np.einsum("ij,j,ij->i", F, self.weights(h), F)
        if self.design.p:
            smooth = self.smoothings.everywhere(h.omega, h.nu)[nodes]
            linear += h.smoothed / self.design.p * np.einsum("ij,ij->i", smooth, smooth)
        field = h.field * self.correlations.variances(h.omega, h.nu, nodes, even=h.even)
        return np.asarray(h.constant + linear + field + h.nonlinear + h.local + h.noise)

    def weights(self, h: Hyperparameters) -> Floats:
        """Return the prior variance of every linear coefficient, shape (3 p,)."""
        p = self.design.p
        return np.repeat([h.own, h.neighbours, h.second], p) / max(p, 1)


def squared_exponential(A: Floats, B: Floats) -> Floats:
    r"""Return :math:`\exp(-\lVert a_i - b_j \rVert^2 / 2)`."""
    squares = np.einsum("ij,ij->i", A, A)[:, None] + np.einsum("ij,ij->i", B, B) - 2.0 * (A @ B.T)
    return np.asarray(np.exp(-0.5 * np.maximum(squares, 0.0)))


@dataclass(frozen=True, eq=False)
class Drift:
    """The nonlinear kernel among the rows, and the two whose product drifts over the graph, as lower triangles."""

    kernel: Floats
    local_kernel: Floats
    local_field: Correlation


@dataclass(frozen=True, eq=False)
class Terms:
    """The components among the rows at some hyper-parameters, as lower triangles before their variances.

    Attributes
    ----------
    covariance : Covariance
        Where they come from.
    h : Hyperparameters
        The hyper-parameters.
    field : Correlation
        Graph correlations.
    smooth : Smoothing or None
        Smoothed features; None without features.
    drift : Drift or None
        Nonlinear kernels; None without nonlinear effects.
    """

    covariance: Covariance
    h: Hyperparameters
    field: Correlation
    smooth: Smoothing | None = None
    drift: Drift | None = None

    def total(self) -> Floats:
        """Return the covariance of the outcomes of the rows, as a lower triangle."""
        h, triangle = self.h, self.covariance.triangle
        K = h.field * self.field.R + h.constant
        if self.smooth is not None:
            F = self.covariance.F * np.sqrt(self.covariance.weights(h))
            T = self.smooth.X * np.sqrt(h.smoothed / self.covariance.design.p)
            both = np.hstack([F, T])
            K += triangle.pack(both @ both.T)
        if self.drift is not None:
            K += h.nonlinear * self.drift.kernel
            K += h.local * self.drift.local_kernel * self.drift.local_field.R
        K[triangle.diagonal] += h.noise
        return np.asarray(K)

    def pull(self, G: Floats) -> dict[str, float | Floats]:
        """Return the derivatives by the logarithm of every hyper-parameter of a function with gradient `G` by K."""
        h, triangle = self.h, self.covariance.triangle
        by_shape = h.field * self.field.pull(G)
        slopes: dict[str, float | Floats] = {
            "field": h.field * triangle.dot(G, self.field.R),
            "noise": h.noise * float(G[triangle.diagonal].sum()),
        }
        if self.smooth is not None:
            linear, by_smoothing = self._pull_linear(G, self.smooth)
            slopes |= linear
            by_shape += by_smoothing
        if self.drift is not None:
            slopes |= self._pull_nonlinear(h.nonlinear * self.drift.kernel * G) | self._pull_local(G, self.drift)
        return slopes | {"omega": float(by_shape[0]), "nu": float(by_shape[1])}

    def _pull_linear(self, G: Floats, smooth: Smoothing) -> tuple[dict[str, float | Floats], Floats]:
        """Return the derivatives by the variances of the groups, and by the shape of the smoothing."""
        F, share = self.covariance.F, self.h.smoothed / self.covariance.design.p
        G_both = self.covariance.triangle.times(G, np.hstack([F, smooth.X]))
        by_weight = np.einsum("ij,ij->j", F, G_both[:, : F.shape[1]]) * self.covariance.weights(self.h)
        slopes: dict[str, float | Floats] = dict(
            zip(GROUPS, by_weight.reshape(3, -1).sum(axis=1).tolist(), strict=True)
        )
        G_smooth = G_both[:, F.shape[1] :]
        by_shape = 2.0 * share * np.einsum("ij,kij->k", G_smooth, smooth.slopes)
        return slopes | {"smoothed": share * float(np.sum(G_smooth * smooth.X))}, by_shape

    def _pull_nonlinear(self, GK: Floats) -> dict[str, float | Floats]:
        triangle, Z = self.covariance.triangle, self.covariance.Z
        spread = triangle.sums(GK) @ Z**2 - np.einsum("ij,ij->j", Z, triangle.times(GK, Z))
        return {"nonlinear": float(triangle.double(GK).sum()), "lengths": 2.0 * spread * self.h.lengths**-2.0}

    def _pull_local(self, G: Floats, drift: Drift) -> dict[str, float | Floats]:
        h, triangle = self.h, self.covariance.triangle
        by_field = h.local * drift.local_kernel * G
        product = by_field * drift.local_field.R
        omega, nu = drift.local_field.pull(by_field)
        by_length = triangle.dot(product, self.covariance.squares) * h.local_length**-2.0
        by_variance = float(triangle.double(product).sum())
        return {"local": by_variance, "local_length": by_length, "local_omega": omega, "local_nu": nu}

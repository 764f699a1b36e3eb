r"""The columns of the scalable field: every effect of features as a linear one, also the nonlinear function.

A function with squared-exponential covariance `k` is nearly a sum of some columns with independent coefficients of one
variance: from the eigenvalues :math:`\Lambda` and eigenvectors `U` of `k` among a thousand random nodes `C` come the
columns :math:`\Phi = k(Z, C) U \Lambda^{-1/2}` of all nodes, with :math:`\Phi \Phi' \approx k(Z, Z)` (Nystrom); the
first few hundred are enough.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from graphmrf.linalg import multiply, smooth
from graphmrf.linalg.matern import Eigen
from graphmrf.model.field.covariance import Covariance, squared_exponential
from graphmrf.model.field.design import Design
from graphmrf.model.field.hyperparameters import INTERCEPT

if TYPE_CHECKING:
    from graphmrf._typing import Floats, Ints
    from graphmrf.graph import Graph

LINEAR = ("own", "neighbours", "second", "distant")
"""Groups of linear effects."""

GROUPS = (*LINEAR, "nonlinear")
"""Groups of columns whose coefficients share a variance."""

_CENTRES = 1500
_RANK = 1e-8
_ROWS = 8192

_SINGLE_CELLS = 20_000_000
"""Cells of the columns beyond which they are kept in float32."""


def with_distant(graph: Graph, made: Design, alpha: float) -> Design:
    r"""Return the design with a fourth group: features of nodes three and more steps away, fading with the distance.

    .. math:: (I + \omega N)^{-1} X = (1 - \alpha)(X + \alpha SX + \alpha^2 S^2X) + \alpha^3 S^3 (I + \omega N)^{-1} X

    so with the group :math:`S^3 (I + \omega N)^{-1} X` the four span the linear graph convolution at that level.
    """
    own = made.groups[0]
    raw = smooth(graph, own, alpha) if made.p else own
    for _ in range(3 if made.p else 0):
        raw = multiply(graph, raw)
    group = raw - raw.mean(axis=0)
    spread = np.sqrt(np.mean(group**2, axis=0))
    scale = np.where(spread <= 1e-12, np.inf, spread)
    scales = np.vstack([made.scales, made.scales[:1] * scale])
    return Design(np.concatenate([made.groups, (group / scale)[None]]), scales, made.kept)


@dataclass(frozen=True, eq=False)
class Basis:
    r"""Columns :math:`\Phi = k(Z, C) M` that span nonlinear functions of `Z`.

    Attributes
    ----------
    lengths : array of shape (2 p,)
        Length scales of `k`.
    centres : array of shape (c, 2 p)
        The points `C`, divided by them.
    mixing : array of shape (c, size)
        The matrix `M`.
    """

    lengths: Floats
    centres: Floats
    mixing: Floats

    @property
    def size(self) -> int:
        """Number of columns."""
        return int(self.mixing.shape[1])

    def at(self, Z: Floats) -> Floats:
        """Return the columns at some points."""
        return np.asarray(squared_exponential(Z / self.lengths, self.centres) @ self.mixing)


@dataclass(frozen=True, eq=False)
class Columns:
    """A constant, the linear features and the columns of the nonlinear function, of all nodes.

    Attributes
    ----------
    design : Design
        With the four groups of `with_distant`.
    basis : Basis
        The columns of the nonlinear function.
    """

    design: Design
    basis: Basis

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Number of columns of every group."""
        return dict.fromkeys(LINEAR, self.design.p) | {"nonlinear": self.basis.size}

    @cached_property
    def slices(self) -> dict[str, slice]:
        """Place of every group; the constant is column 0."""
        ends = 1 + np.cumsum(list(self.sizes.values()))
        return {name: slice(int(end) - self.sizes[name], int(end)) for name, end in zip(GROUPS, ends, strict=True)}

    @cached_property
    def F(self) -> Floats:
        """The columns, shape (n, 1 + 4 p + basis.size); in float32 when there are very many cells."""
        n, width = self.design.groups.shape[1], 1 + sum(self.sizes.values())
        F = np.empty((n, width), dtype=np.float32 if n * width > _SINGLE_CELLS else np.float64)
        F[:, 0] = 1.0
        for name, group in zip(LINEAR, self.design.groups, strict=True):
            F[:, self.slices[name]] = group
        for first in range(0, n, _ROWS):
            rows = slice(first, first + _ROWS)
            F[rows, self.slices["nonlinear"]] = self.basis.at(self.design.Z[rows])
        return F

    def first(self, size: int) -> Columns:
        """Return the columns with only the first of the nonlinear function's."""
        return Columns(self.design, replace(self.basis, mixing=self.basis.mixing[:, :size]))

    def variances(self, by_group: dict[str, float]) -> Floats:
        """Return the prior variance of every coefficient from the variance of every group's effect."""
        counts = dict.fromkeys(LINEAR, max(self.design.p, 1)) | {"nonlinear": 1}
        parts = [np.full(self.sizes[name], by_group[name] / counts[name]) for name in GROUPS]
        return np.concatenate([[INTERCEPT], *parts])


def features_alone(made: Design, nodes: Ints) -> Covariance:
    """Return the covariance of some nodes without their graph, for which the field is one more noise."""
    part = Design(made.groups[:3, nodes], made.scales[:3], made.kept)
    return Covariance(part, Eigen(np.zeros(nodes.size), np.eye(nodes.size)), np.arange(nodes.size))


def nonlinear_basis(made: Design, lengths: Floats, size: int, seed: int) -> Basis:
    """Return at most so many columns that span functions with some length scales best, over the nodes."""
    n = made.Z.shape[0] if made.p else 0
    nodes = np.sort(np.random.default_rng(seed).permutation(n)[:_CENTRES])
    centres = made.Z[nodes] / lengths
    values, vectors = np.linalg.eigh(squared_exponential(centres, centres)) if n else (np.zeros(0), np.zeros((0, 0)))
    values, vectors = values[::-1][:size], vectors[:, ::-1][:, :size]
    kept = values > _RANK * values.max(initial=0.0)
    return Basis(lengths, centres, vectors[:, kept] / np.sqrt(values[kept]))

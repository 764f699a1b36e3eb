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

from graphmrf.field.covariance import Covariance, squared_exponential
from graphmrf.field.design import Design
from graphmrf.field.hyperparameters import INTERCEPT
from graphmrf.field.matern import Eigen
from graphmrf.linalg import multiply, smooth
from graphmrf.linalg.precision import rademacher

if TYPE_CHECKING:
    from graphmrf._typing import Floats, Ints
    from graphmrf.graph import Graph

LINEAR = ("own", "neighbours", "second", "distant")
"""Groups of linear effects."""

GROUPS = (*LINEAR, "smoothed", "nonlinear", "local")
"""Groups of columns whose coefficients share a variance."""

_REACH_PROBES = 16
_MOST_REACH = 3.0
_CENTRES = 1500
_RANK = 1e-8
_ROWS = 8192

_SINGLE_CELLS = 20_000_000
"""Cells of the columns beyond which they are kept in float32."""


def with_distant(graph: Graph, made: Design, alpha: float) -> Design:
    r"""Return the design with a fourth group: features of nodes three and more steps away, fading with the distance.

    .. math:: (I + \omega N)^{-1} X = (1 - \alpha)(X + \alpha SX + \alpha^2 S^2X) + \alpha^3 S^3 (I + \omega N)^{-1} X

    so with the group :math:`S^3 (I + \omega N)^{-1} X` the four span the linear graph convolution at that level.

    On a large graph nearly all sums over neighbours are small, and in their units what comes to an isolated node or to
    one of a lonely pair is enormous. In the groups of neighbours such a node counts as one at the edge of what is
    usual, three times the median reach; no feature is looked at for that.
    """
    if not made.p:
        return Design(
            np.concatenate([made.groups, made.groups[:1]]), np.vstack([made.scales, made.scales[:1]]), made.kept
        )
    groups, scales = [made.groups[0]], [made.scales[0]]
    raw = [made.groups[1], made.groups[2], _far(graph, made.groups[0], alpha)]
    units = [made.scales[1], made.scales[2], made.scales[0]]
    for group, unit, damping in zip(raw, units, _damping(graph, alpha), strict=True):
        centred = group * damping
        centred -= centred.mean(axis=0)
        spread = np.sqrt(np.mean(centred**2, axis=0))
        scale = np.where(spread <= 1e-12, np.inf, spread)
        groups.append(centred / scale)
        scales.append(unit * scale)
    return Design(np.stack(groups), np.stack(scales), made.kept)


def _far(graph: Graph, X: Floats, alpha: float, *, tolerance: float | None = None) -> Floats:
    far = smooth(graph, X, alpha, tolerance=tolerance)
    for _ in range(3):
        far = multiply(graph, far)
    return far


def _damping(graph: Graph, alpha: float) -> list[Floats]:
    """Return, for the groups of neighbours, factors (n, 1) that bring nodes of unusual reach back to what is usual."""
    Z = rademacher(graph.n_nodes, _REACH_PROBES, 0)
    first = multiply(graph, Z)
    return [_damped(reach) for reach in (first, multiply(graph, first), _far(graph, Z, alpha, tolerance=1e-3))]


def _damped(reach: Floats) -> Floats:
    """Return the factors from what a map over the graph makes of Rademacher probes."""
    size = np.sqrt(np.mean((reach - reach.mean(axis=0)) ** 2, axis=1, keepdims=True))
    usual = _MOST_REACH * float(np.median(size))
    return np.minimum(1.0, usual / np.maximum(size, usual)) if usual > 0 else np.ones_like(size)


@dataclass(frozen=True, eq=False)
class Smoothed:
    r"""Features of all nodes as the paper's model sees them, :math:`(I + \omega N)^{-1} X`.

    Attributes
    ----------
    alpha : float
        The level of smoothing, :math:`\omega / (1 + \omega)`.
    scales : array of shape (p,)
        What the smoothed standardised features were divided by.
    X : array of shape (n, p)
        The columns.
    """

    alpha: float
    scales: Floats
    X: Floats

    @property
    def steps(self) -> Floats:
        r"""Weights of `X`, `SX`, `S²X` and :math:`S^3 (I + \omega N)^{-1} X` in the smoothed features."""
        alpha = self.alpha
        return np.array([1.0 - alpha, (1.0 - alpha) * alpha, (1.0 - alpha) * alpha**2, alpha**3])


def smoothed(graph: Graph, made: Design, alpha: float, *, even: bool, tolerance: float) -> Smoothed:
    """Return the smoothed features; if `even`, nodes of unusual reach count as in `with_distant`, else as they are."""
    own = made.groups[0]
    damping = _damped(smooth(graph, rademacher(graph.n_nodes, _REACH_PROBES, 0), alpha, tolerance=1e-3))
    X = smooth(graph, own, alpha, tolerance=tolerance)
    usual = X * damping
    scales = np.sqrt(np.mean((usual - usual.mean(axis=0)) ** 2, axis=0))
    X = usual if even else X
    return Smoothed(alpha, scales, (X - X.mean(axis=0)) / scales)


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
    """A constant, the linear features and the columns of the nonlinear functions, of all nodes.

    Attributes
    ----------
    design : Design
        With the four groups of `with_distant`.
    basis : Basis
        The columns of the nonlinear function.
    smoothed : Smoothed or None
        Smoothed features, in place of the four groups.
    local : array of shape (n, k) or None
        Columns of the function that drifts over the graph (see `sparse_local`).
    """

    design: Design
    basis: Basis
    smoothed: Smoothed | None = None
    local: Floats | None = None

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Number of columns of every group."""
        p = self.design.p
        several, single = (p, 0) if self.smoothed is None else (0, p)
        drifting = 0 if self.local is None else self.local.shape[1]
        return dict.fromkeys(LINEAR, several) | {
            "smoothed": single,
            "nonlinear": self.basis.size,
            "local": drifting,
        }

    @cached_property
    def slices(self) -> dict[str, slice]:
        """Place of every group; the constant is column 0."""
        ends = 1 + np.cumsum(list(self.sizes.values()))
        return {name: slice(int(end) - self.sizes[name], int(end)) for name, end in zip(GROUPS, ends, strict=True)}

    @cached_property
    def F(self) -> Floats:
        """The columns, one after another as in `slices`; in float32 when there are very many cells."""
        n, width = self.design.groups.shape[1], 1 + sum(self.sizes.values())
        F = np.empty((n, width), dtype=np.float32 if n * width > _SINGLE_CELLS else np.float64)
        F[:, 0] = 1.0
        if self.smoothed is None:
            for name, group in zip(LINEAR, self.design.groups, strict=True):
                F[:, self.slices[name]] = group
        else:
            F[:, self.slices["smoothed"]] = self.smoothed.X
        if self.local is not None:
            F[:, self.slices["local"]] = self.local
        for first in range(0, n, _ROWS):
            rows = slice(first, first + _ROWS)
            F[rows, self.slices["nonlinear"]] = self.basis.at(self.design.Z[rows])
        return F

    def first(self, size: int) -> Columns:
        """Return the columns with only the first of the nonlinear function's."""
        return replace(self, basis=replace(self.basis, mixing=self.basis.mixing[:, :size]))

    def variances(self, by_group: dict[str, float]) -> Floats:
        """Return the prior variance of every coefficient from the variance of every group's effect."""
        counts = dict.fromkeys(GROUPS, max(self.design.p, 1)) | {"nonlinear": 1, "local": 1}
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


def no_basis(made: Design) -> Basis:
    """Return a basis without columns."""
    width = 2 * made.p
    return Basis(np.full(width, np.sqrt(2.0 * width)), np.zeros((0, width)), np.zeros((0, 0)))

r"""The columns of the scalable field: every effect of features as a linear one, also the nonlinear function.

The squared-exponential kernel is the mean of :math:`\cos(w'(z - z'))` over normal frequencies `w` (Rahimi and Recht
2007), so a function with that covariance is nearly a sum of waves :math:`\cos w'z, \sin w'z` with independent
coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from graphmrf.linalg import smooth
from graphmrf.linalg.matern import Eigen
from graphmrf.model.field.covariance import Covariance
from graphmrf.model.field.design import Design
from graphmrf.model.field.hyperparameters import INTERCEPT

if TYPE_CHECKING:
    from graphmrf._typing import Floats, Ints
    from graphmrf.graph import Graph

LINEAR = ("own", "neighbours", "second", "smoothed")
"""Groups of linear effects."""

GROUPS = (*LINEAR, "nonlinear")
"""Groups of columns whose coefficients share a variance."""

_SINGLE_CELLS = 20_000_000
"""Cells of the columns beyond which they are kept in float32."""


def with_smoothed(graph: Graph, made: Design, alpha: float) -> Design:
    r"""Return the design with a fourth group, :math:`(I + \omega N)^{-1} X` at a level of smoothing.

    It is the linear graph convolution at that level; at level 0, where it repeats the features, it is all 0.
    """
    own = made.groups[0]
    raw = smooth(graph, own, alpha) if alpha > 0 and made.p else np.zeros_like(own)
    group = raw - raw.mean(axis=0)
    spread = np.sqrt(np.mean(group**2, axis=0))
    scale = np.where(spread <= 1e-12, np.inf, spread)
    scales = np.vstack([made.scales, made.scales[:1] * scale])
    return Design(np.concatenate([made.groups, (group / scale)[None]]), scales, made.kept)


@dataclass(frozen=True, eq=False)
class Columns:
    """A constant, the linear features and the waves of all nodes.

    Attributes
    ----------
    design : Design
        With the four groups of `with_smoothed`.
    frequencies : array of shape (2 p, waves)
        Frequencies of the waves of `[X, SX]`.
    """

    design: Design
    frequencies: Floats

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Number of columns of every group."""
        return dict.fromkeys(LINEAR, self.design.p) | {"nonlinear": 2 * self.waves}

    @property
    def waves(self) -> int:
        """Number of frequencies."""
        return int(self.frequencies.shape[1])

    @cached_property
    def slices(self) -> dict[str, slice]:
        """Place of every group; the constant is column 0."""
        ends = 1 + np.cumsum(list(self.sizes.values()))
        return {name: slice(int(end) - self.sizes[name], int(end)) for name, end in zip(GROUPS, ends, strict=True)}

    @cached_property
    def F(self) -> Floats:
        """The columns, shape (n, 1 + 4 p + 2 waves); in float32 when there are very many cells."""
        n, width = self.design.groups.shape[1], 1 + sum(self.sizes.values())
        F = np.empty((n, width), dtype=np.float32 if n * width > _SINGLE_CELLS else np.float64)
        F[:, 0] = 1.0
        for name, group in zip(LINEAR, self.design.groups, strict=True):
            F[:, self.slices[name]] = group
        phase = self.design.Z @ self.frequencies
        first = self.slices["nonlinear"].start
        F[:, first : first + self.waves], F[:, first + self.waves :] = np.cos(phase), np.sin(phase)
        return F

    def first(self, waves: int) -> Columns:
        """Return the columns with only the first of the waves."""
        return Columns(self.design, self.frequencies[:, :waves])

    def variances(self, by_group: dict[str, float]) -> Floats:
        """Return the prior variance of every coefficient from the variance of every group's effect."""
        counts = {name: max(self.design.p, 1) for name in LINEAR} | {"nonlinear": max(self.waves, 1)}
        parts = [np.full(self.sizes[name], by_group[name] / counts[name]) for name in GROUPS]
        return np.concatenate([[INTERCEPT], *parts])


def features_alone(made: Design, nodes: Ints) -> Covariance:
    """Return the covariance of some nodes without their graph, for which the field is one more noise."""
    part = Design(made.groups[:3, nodes], made.scales[:3], made.kept)
    return Covariance(part, Eigen(np.zeros(nodes.size), np.eye(nodes.size)), np.arange(nodes.size))


def draw_frequencies(lengths: Floats, waves: int, seed: int) -> Floats:
    """Return normal frequencies for a kernel of some length scales, shape (len(lengths), waves)."""
    rng = np.random.default_rng(seed)
    return np.asarray(rng.standard_normal((waves if lengths.size else 0, lengths.size)).T / lengths[:, None])

"""What follows from the labels under the scalable field: means, variances, draws, leave-one-out, shares."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from graphmrf.field.hyperparameters import Tabled
from graphmrf.field.shares import share_out
from graphmrf.field.sparse_columns import GROUPS, LINEAR

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.field.sparse_columns import Columns
    from graphmrf.field.sparse_system import Projection, System
    from graphmrf.field.sparse_weights import Coefficients

_PROGRESS = logging.getLogger("graphmrf.progress")

_ROWS = 8192
_DRAWS_AT_ONCE = 16
_VARIANCE_DRAWS = 64


@dataclass(frozen=True)
class SparseHyperparameters(Tabled):
    r"""The hyper-parameters of the scalable field; variances are shares of the variance of the labels.

    Attributes
    ----------
    own, neighbours, second, distant : float
        Prior variances of the linear effects of the features `X`, of `SX`, of `S²X`, and of :math:`S^3 (I + \omega_0
        N)^{-1} X`.
    distant_omega : float
        The level :math:`\omega_0`.
    smoothed : float
        Prior variance of those of the features smoothed as the field is, where the paper's own model is at work.
    field, omega, nu : float
        Variance and smoothness of the graph field; nu is always 1.
    even : bool
        Whether its variance is the same at all nodes; if not, it varies as :math:`(I + \omega N)^{-1}` says.
    nonlinear : float
        Variance of the smooth function of `[X, SX]`.
    lengths : array of shape (2 p,)
        Its length scale along every feature, in standard deviations.
    local : float
        Variance of the function of `[X, SX]` that drifts over the graph; 0 where the graph is too large for it.
    noise : float
        Variance of what no other node knows anything about.
    """

    own: float
    neighbours: float
    second: float
    distant: float
    distant_omega: float
    smoothed: float
    field: float
    omega: float
    nu: float
    even: bool
    nonlinear: float
    lengths: Floats
    local: float
    noise: float


@dataclass(frozen=True, eq=False)
class SparsePosterior:
    """The outcome of all nodes given standardised labels; it answers what `FieldPosterior` does.

    Attributes
    ----------
    columns : Columns
        Effects of features as columns of all nodes.
    projection : Projection
        The columns seen through the graph field.
    beta : Coefficients
        Their coefficients.
    h : SparseHyperparameters
        The hyper-parameters.
    """

    columns: Columns
    projection: Projection
    beta: Coefficients
    h: SparseHyperparameters

    @property
    def z(self) -> Floats:
        """The standardised labels."""
        return self.projection.z

    @property
    def _system(self) -> System:
        return self.projection.system

    @cached_property
    def _reach(self) -> Floats:
        """How much of what is carried to a node the field has there."""
        return np.asarray(np.sqrt(self._system.rho) * self._system.g)

    def _field(self, nodes: Ints) -> Floats:
        carried = self.projection.carried
        return np.asarray(self._reach[nodes] * (carried[nodes, 0] - carried[nodes, 1:] @ self.beta.mean))

    def moments(self, nodes: Ints) -> tuple[Floats, Floats]:
        """Return mean and variance of the outcome of unlabelled nodes, noise included."""
        mean, variance = np.empty(nodes.size), np.empty(nodes.size)
        for part in _parts(nodes.size):
            rows = nodes[part]
            F = self.projection.F[rows].astype(np.float64)
            mean[part] = F @ self.beta.mean + self._field(rows)
            F -= self._reach[rows, None] * self.projection.carried[rows, 1:]
            variance[part] = np.einsum("ij,ij->i", F @ self.beta.covariance, F)
        return mean, variance + self._field_variance[nodes] + self.beta.noise

    @cached_property
    def _spread(self) -> Floats:
        """Diagonal of the inverse of the precision of the field given the labels."""
        _PROGRESS.info("variances of the field")
        return self._system.A.inverse_diagonal(probes=_VARIANCE_DRAWS, seed=self._system.ground.seed)

    @property
    def _field_variance(self) -> Floats:
        """Variance of the field at every node, given labels and coefficients; no more than before the labels."""
        return np.asarray(self.h.field * np.minimum(self._system.g**2 * self._spread, self._system.prior))

    def draw(self, nodes: Ints, count: int, rng: np.random.Generator) -> Floats:
        """Return joint draws of the outcomes of unlabelled nodes, noise included, shape (count, len(nodes))."""
        blocks = [self._draw(nodes, min(_DRAWS_AT_ONCE, count - k), rng) for k in range(0, count, _DRAWS_AT_ONCE)]
        return np.concatenate([np.zeros((0, nodes.size)), *blocks])

    def _draw(self, nodes: Ints, count: int, rng: np.random.Generator) -> Floats:
        """Draw coefficients, then the field given them, then noise."""
        system, F, s = self._system, self.projection.F, self.beta.noise
        beta = self.beta.draw(count, rng)
        left = self.z[:, None] - F[system.ground.rows] @ beta
        v = system.solve(system.spread(left) / np.sqrt(s) + system.A.noise(count, rng))
        draws = F[nodes] @ beta + np.sqrt(s) * (self._reach[nodes, None] * v[nodes])
        return np.asarray((draws + np.sqrt(s) * rng.standard_normal(draws.shape)).T)

    def _seen(self, part: slice) -> Floats:
        r"""Return rows of :math:`C^{-1} [z, F]`."""
        rows = self._system.ground.rows[part]
        there = np.column_stack([self.z[part], self.projection.F[rows]])
        return np.asarray(there - self._system.G[part, None] * self.projection.carried[rows])

    @cached_property
    def _precision(self) -> tuple[Floats, Floats, Floats]:
        r"""Dual labels :math:`K^{-1} z`, diagonal of :math:`K^{-1}`, and of every group's covariance times it."""
        m, s, system = self.z.size, self.beta.noise, self._system
        rows, gain = system.ground.rows, self.beta.covariance / s
        dual, known, diagonals = np.empty(m), np.empty(m), np.empty((len(GROUPS), m))
        for part in _parts(m):
            seen, F = self._seen(part), self.projection.F[rows[part]]
            dual[part] = (seen[:, 0] - seen[:, 1:] @ self.beta.mean) / s
            moved = seen[:, 1:] @ gain
            known[part] = np.einsum("ij,ij->i", moved, seen[:, 1:])
            for k, name in enumerate(GROUPS):
                at = self.columns.slices[name]
                diagonals[k, part] = np.einsum("ij,ij->i", F[:, at], moved[:, at])
        prior = np.einsum("ij,j,ij->i", self.projection.F[rows], self.beta.variances, self.projection.F[rows])
        precision = (self._own_precision - known) / s
        return dual, np.maximum(precision, 1.0 / (prior + s * self._most)), diagonals

    @cached_property
    def _own_precision(self) -> Floats:
        """Diagonal of the inverse of `C`, within what it can be: probed values scatter."""
        system = self._system
        d, D = system.G**2, system.A.diagonal[system.ground.rows]
        most = (D - d) / D
        beyond = d * (self._spread[system.ground.rows] - 1.0 / D)
        return np.clip(most - beyond, 1.0 / self._most, most)

    @property
    def _most(self) -> Floats:
        """Diagonal of `C`."""
        return np.asarray(1.0 + self._system.rho * self._system.prior[self._system.ground.rows])

    @cached_property
    def left_out(self) -> tuple[Floats, Floats]:
        r"""Residual and variance of every label given the others: :math:`a_i / P_{ii}` and :math:`1 / P_{ii}`."""
        dual, precision, _ = self._precision
        return dual / precision, 1.0 / precision

    def without(self, own: Bools) -> Floats:
        """Return the mean of some labels given the others, at the coefficients that all of them give."""
        system, rows = self._system, self._system.ground.rows
        effects = self.projection.F[rows] @ self.beta.mean
        others = replace(system, ground=replace(system.ground, rows=rows[~own]))
        carried = others.carry((self.z - effects)[~own, None])[rows[own], 0]
        return np.asarray(effects[own] + self._reach[rows[own]] * carried)

    @cached_property
    def shares(self) -> dict[str, float]:
        """The part of the variance of the labels that every component predicts; see `FieldPosterior.shares`."""
        said = dict(zip((*GROUPS, "field"), self._left_out_parts(), strict=True))
        return share_out(self.z, self.left_out[0], said, itself=self._itself)

    @property
    def _itself(self) -> Floats:
        """What smoothed features say of the labels that comes from the nodes' own."""
        made, ground = self.columns.smoothed, self._system.ground
        if made is None:
            return np.zeros(self.z.size)
        weights = self.beta.mean[self.columns.slices["smoothed"]] / made.scales
        reach = ground.variance(self._system.omega)[ground.rows]
        return np.asarray(reach * (self.columns.design.groups[0][ground.rows] @ weights))

    def _left_out_parts(self) -> Iterator[Floats]:
        """Yield every component's prediction of every label from the others."""
        residual, rows = self.left_out[0], self._system.ground.rows
        _, precision, diagonals = self._precision
        for name, diagonal in zip(GROUPS, diagonals, strict=True):
            at = self.columns.slices[name]
            yield self.projection.F[rows, at] @ self.beta.mean[at] - diagonal * residual
        rest = 1.0 - self.beta.noise * precision - diagonals.sum(axis=0)
        yield self._field(rows) - np.maximum(rest, 0.0) * residual

    @cached_property
    def coefficients(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the linear coefficients of standardised features, shapes (4, p)."""
        std = np.sqrt(np.maximum(np.diag(self.beta.covariance), 0.0))
        smoothed, design = self.columns.smoothed, self.columns.design
        if smoothed is None:
            at = slice(self.columns.slices[LINEAR[0]].start, self.columns.slices[LINEAR[-1]].stop)
            return self.beta.mean[at].reshape(len(LINEAR), -1), std[at].reshape(len(LINEAR), -1)
        units = np.where(np.isfinite(design.scales), design.scales, 0.0) / design.scales[0]
        steps, at = smoothed.steps[:, None] * units / smoothed.scales, self.columns.slices["smoothed"]
        return steps * self.beta.mean[at], steps * std[at]


def _parts(count: int) -> Iterator[slice]:
    for first in range(0, count, _ROWS):
        yield slice(first, first + _ROWS)

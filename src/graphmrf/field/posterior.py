"""The field given its labels: means, variances, draws, what leaving each label out would say, and what carries it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from graphmrf.errors import ConvergenceError
from graphmrf.field.covariance import COMPONENTS, Covariance
from graphmrf.field.shares import share_out
from graphmrf.linalg.dense import Factor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphmrf._typing import Floats, Ints
    from graphmrf.field.hyperparameters import Hyperparameters

_BLOCK = 1024
_JITTER = 1e-10


@dataclass(frozen=True, eq=False)
class Known:
    """Effects of smoothed features that are known beforehand.

    Attributes
    ----------
    mean : array of shape (n,)
        Mean of the outcome at all nodes.
    coefficients : array of shape (p,)
        Those of the standardised smoothed features.
    """

    mean: Floats
    coefficients: Floats


@dataclass(frozen=True, eq=False)
class FieldPosterior:
    """The outcome of all nodes given standardised labels.

    Attributes
    ----------
    covariance : Covariance
        The covariance of the labelled nodes.
    h : Hyperparameters
        The hyper-parameters.
    z : array of shape (m,)
        The standardised labels.
    known : Known or None
        Effects of smoothed features that are known beforehand.
    """

    covariance: Covariance
    h: Hyperparameters
    z: Floats
    known: Known | None = None

    @cached_property
    def factor(self) -> Factor:
        """Factor of the covariance of the labels."""
        factor = Factor.of(self.covariance.triangle, self.covariance.among(self.h).total())
        if factor is None:
            raise ConvergenceError("the covariance of the labels is singular; check for columns of extreme values")
        return factor

    @cached_property
    def dual(self) -> Floats:
        """The labels times the inverse of their covariance."""
        return self.factor.solve(self.z - self._mean(self.covariance.rows))

    def _mean(self, nodes: Ints) -> Floats:
        return np.zeros(nodes.size) if self.known is None else self.known.mean[nodes]

    @property
    def log_likelihood(self) -> float:
        """Log density of the standardised labels."""
        misfit = float(self.dual @ (self.z - self._mean(self.covariance.rows)))
        return -0.5 * (misfit + self.factor.log_determinant + self.z.size * float(np.log(2.0 * np.pi)))

    def moments(self, nodes: Ints) -> tuple[Floats, Floats]:
        """Return mean and variance of the outcome of unlabelled nodes, noise included."""
        parts = [self._moments(block) for block in _blocks(nodes)]
        means, variances = zip(*parts, strict=True) if parts else ((), ())
        return np.concatenate([np.zeros(0), *means]), np.concatenate([np.zeros(0), *variances])

    def _moments(self, nodes: Ints) -> tuple[Floats, Floats]:
        across = self._across(nodes)
        whitened = solve_triangular(self.factor.R, across.T, trans="T", check_finite=False)
        known = np.einsum("ij,ij->j", whitened, whitened)
        variance = self.covariance.variances(self.h, nodes) - known
        return self._mean(nodes) + across @ self.dual, np.maximum(variance, self.h.noise)

    def _across(self, nodes: Ints) -> Floats:
        total = np.full((nodes.size, self.covariance.rows.size), self.h.constant)
        for block in self.covariance.across(self.h, nodes).values():
            total += block
        return total

    def draw(self, nodes: Ints, count: int, rng: np.random.Generator) -> Floats:
        """Return joint draws of the outcomes of unlabelled nodes, noise included, shape (count, len(nodes))."""
        there = Covariance(self.covariance.design, self.covariance.eigen, nodes)
        prior = np.full((nodes.size, nodes.size), self.h.constant) + sum(there.across(self.h, nodes).values())
        across = self._across(nodes)
        whitened = solve_triangular(self.factor.R, across.T, trans="T", check_finite=False)
        spread = prior - whitened.T @ whitened
        spread[np.diag_indices_from(spread)] += self.h.noise + _JITTER
        E = rng.standard_normal((count, nodes.size))
        return np.asarray(self._mean(nodes) + across @ self.dual + E @ cholesky(spread, check_finite=False))

    @cached_property
    def _inverse(self) -> Floats:
        return self.factor.inverse(self.covariance.triangle)

    @cached_property
    def left_out(self) -> tuple[Floats, Floats]:
        r"""Residual and variance of every label given the others: :math:`a_i / P_{ii}` and :math:`1 / P_{ii}`."""
        precision = self._inverse[self.covariance.triangle.diagonal]
        return self.dual / precision, 1.0 / precision

    @cached_property
    def shares(self) -> dict[str, float]:
        """The part of the variance of the labels that every component predicts, each label from the others."""
        residual, rows = self.left_out[0], self.covariance.rows
        inverse = self.covariance.triangle.square(self._inverse)
        said: dict[str, Floats] = dict.fromkeys(COMPONENTS, np.zeros(rows.size))
        for name, block in self.covariance.across(self.h, rows).items():
            said[name] = block @ self.dual - np.einsum("ij,ij->i", block, inverse) * residual
        if self.known is not None:
            said["smoothed"] = self.known.mean[rows]
        return share_out(self.z, residual, said, itself=self._itself)

    @property
    def _itself(self) -> Floats:
        """What smoothed features say of the labels that comes from the nodes' own."""
        field, rows = self.covariance, self.covariance.rows
        reach = field.eigen.variances(self.h.omega, self.h.nu)[rows]
        return np.asarray(reach * (field.design.groups[0][rows] @ self.coefficients[0][3]))

    @cached_property
    def coefficients(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the linear coefficients of standardised features, shapes (4, p).

        The last are those of smoothed features. Where these were known beforehand, the standard deviation is that
        which the labels alone would give.
        """
        p, field = self.covariance.design.p, self.covariance
        if not p:
            return np.zeros((4, 0)), np.zeros((4, 0))
        smooth = field.smoothings.among(self.h.omega, self.h.nu).X
        if self.known is not None:
            errors = np.sqrt(np.diag(np.linalg.inv(smooth.T @ self.factor.solve(smooth))))
            return np.vstack([np.zeros((3, p)), self.known.coefficients]), np.vstack([np.zeros((3, p)), errors])
        F = np.hstack([field.F, smooth])
        weights = np.append(field.weights(self.h), np.full(p, self.h.smoothed / p))
        mean = weights * (F.T @ self.dual)
        known = np.einsum("ij,ij->j", F, self.factor.solve(F))
        std = np.sqrt(np.maximum(weights - weights**2 * known, 0.0))
        return mean.reshape(4, -1), std.reshape(4, -1)


def _blocks(nodes: Ints) -> Iterator[Ints]:
    for first in range(0, nodes.size, _BLOCK):
        yield nodes[first : first + _BLOCK]

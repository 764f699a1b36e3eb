r"""The variances of the columns and of the noise, given the graph field: a small dense problem.

For :math:`z = F \beta + e`, :math:`\beta \sim N(0, T s)`, :math:`e \sim N(0, s C)` the likelihood needs only
:math:`Q = F'C^{-1}F`, :math:`q = F'C^{-1}z`, :math:`c = z'C^{-1}z` and :math:`\log\det C`: with
:math:`B = I + T^{1/2} Q T^{1/2}`

.. math:: -2 \log p(z) = m \log 2 \pi s + \log\det C + \log\det B
          + \tfrac1s (c - q'T^{1/2} B^{-1} T^{1/2} q)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from graphmrf.field.descent import descend
from graphmrf.field.sparse_columns import GROUPS
from graphmrf.linalg.dense import Dense

if TYPE_CHECKING:
    from graphmrf._typing import Floats
    from graphmrf.field.sparse_columns import Columns

_VARIANCE = (-16.0, 4.0)
_NOISE = (float(np.log(1e-9)), 2.0)
_START = (0.2, 0.3)
_STEPS = 1000
_NO_GAIN = 1e-8


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

    @property
    def slopes(self) -> Floats:
        """Derivatives of the log evidence by the logarithms of the prior variances and, last, of the noise."""
        surprise = np.divide(self.mean**2, self.variances, out=np.zeros_like(self.mean), where=self.variances > 0)
        by_variance = 0.5 * (surprise - (1.0 - np.diag(self.B.inverse)))
        by_noise = 0.5 * (self.misfit - self.equations.m) - by_variance.sum()
        return np.append(by_variance, by_noise)


def fit_weights(columns: Columns, equations: Equations) -> tuple[dict[str, float], Coefficients]:
    """Return the variances of the groups that make the labels most likely, and the coefficients there."""
    there = np.diag(equations.Q) > 0
    groups = [name for name in GROUPS if there[columns.slices[name]].any()]

    def read(theta: Floats) -> tuple[dict[str, float], float]:
        found = dict(zip(groups, np.exp(theta[:-1]).tolist(), strict=True))
        return dict.fromkeys(GROUPS, 0.0) | found, float(np.exp(theta[-1]))

    def negative(theta: Floats) -> tuple[float, Floats]:
        by_group, noise = read(theta)
        at = equations.given(columns.variances(by_group), noise)
        slopes = at.slopes
        by_name = [slopes[:-1][columns.slices[name]].sum() for name in groups]
        return -at.log_evidence / equations.m, -np.append(by_name, slopes[-1]) / equations.m

    start = np.log([_START[0]] * len(groups) + [_START[1]])
    bounds = [_VARIANCE] * len(groups) + [_NOISE]
    by_group, noise = read(descend(negative, start, bounds, steps=_STEPS, least_gain=_NO_GAIN, ftol=1e-10).point)
    return by_group, equations.given(columns.variances(by_group), noise)

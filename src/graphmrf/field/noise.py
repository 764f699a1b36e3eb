r"""Noise of numbers about the field: normal, or Student's t.

Student's t is a mixture of normal distributions whose precisions :math:`w_i` have a gamma distribution; the weight of
an observation is their expectation given how far it lies from what all other observations predict,

.. math:: w_i = \frac{\nu + 1}{\nu + r_i^2}, \qquad r_i^2 = \frac{(y_i - \mu_{-i})^2}{s + V_{-i}}.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import roots_genlaguerre
from scipy.stats import t as student

if TYPE_CHECKING:
    from graphmrf._typing import Floats

_NODES = 7  # normal distributions in the mixture that stands for Student's t in predictions
# degrees of freedom that are searched: below there is hardly a variance, above the tails are normal
_FREEDOMS = (2.5, 200.0)
# rate of the exponential prior of one over the degrees of freedom: they are above 14 with probability one half
_PRIOR = 10.0


@dataclass(frozen=True)
class Gaussian:
    """Normal noise."""

    inflation: float = 1.0

    @property
    def components(self) -> tuple[Floats, Floats]:
        """Weights and variances of the normal distributions that the noise is a mixture of: one."""
        return np.ones(1), np.ones(1)

    def weights(self, scores: Floats) -> Floats:
        """Return the precision of every observation from its standardised leave-one-out residual: 1."""
        return np.ones(scores.size)

    def draw_noise(self, shape: tuple[int, int], rng: np.random.Generator) -> Floats:
        """Return normal noise."""
        return rng.standard_normal(shape)


NORMAL = Gaussian()


@dataclass(frozen=True)
class StudentT:
    """Noise with the tails of Student's t.

    Examples
    --------
    >>> StudentT(4.0).weights(np.array([0.0, 1.0, 10.0])).round(3)
    array([1.25 , 1.   , 0.048])
    """

    dof: float

    @classmethod
    def fit(cls, scores: Floats) -> StudentT:
        """Return the most probable tails for standardised leave-one-out residuals."""

        def cost(log_dof: float) -> float:
            dof = np.exp(log_dof)
            return float(_PRIOR / dof - student.logpdf(scores, dof).sum())

        found = minimize_scalar(cost, bounds=tuple(np.log(_FREEDOMS)), method="bounded")
        return cls(float(np.exp(found.x)))

    @property
    def inflation(self) -> float:
        """Variance over that of a usual observation."""
        return self.dof / (self.dof - 2.0)

    @property
    def components(self) -> tuple[Floats, Floats]:
        """Normal distributions at the nodes of a Gauss rule of the gamma distribution of precisions."""
        x, w = roots_genlaguerre(_NODES, 0.5 * self.dof - 1.0)
        return w / w.sum(), 0.5 * self.dof / x

    def weights(self, scores: Floats) -> Floats:
        """Return the expected precision of every observation."""
        return np.asarray((self.dof + 1.0) / (self.dof + scores**2))

    def draw_noise(self, shape: tuple[int, int], rng: np.random.Generator) -> Floats:
        """Return noise with Student's distribution."""
        return rng.standard_t(self.dof, shape)


Noise: TypeAlias = Gaussian | StudentT
"""The distribution of a number about the latent field."""

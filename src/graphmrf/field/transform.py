r"""Monotone transforms of the outcome, so that skewed outcomes look normal to the field.

All work on :math:`u = (y - c) / s` and end in standardised values :math:`z = (T(u) - m) / d`; the Jacobian of the whole
is part of the likelihood, so transforms can be compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import norm

from graphmrf.errors import InvalidInputError

if TYPE_CHECKING:
    from graphmrf._typing import Floats

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(31)
_TINY = 1e-12


@dataclass(frozen=True)
class Power:
    r"""A power transform of parameter :math:`\lambda` in [0, 2]; 1 is (affinely) the identity, 0 a logarithm.

    ``signed=False`` is Box and Cox's :math:`(u^\lambda - 1) / \lambda` for :math:`u > 0`, ``signed=True`` Yeo and
    Johnson's, which is that of :math:`1 + u` on the right and its mirror image with :math:`2 - \lambda` on the left.

    Examples
    --------
    >>> u = np.array([-1.0, 0.0, 3.0])
    >>> Power(0.0, signed=True).forward(u).round(4)
    array([-1.5   ,  0.    ,  1.3863])
    >>> Power(0.0, signed=True).backward(Power(0.0, signed=True).forward(u)).round(4)
    array([-1.,  0.,  3.])
    """

    exponent: float
    signed: bool

    def forward(self, u: Floats) -> Floats:
        """Return the transformed values."""
        if not self.signed:
            return _box_cox(u, self.exponent)
        right, left = _box_cox(1.0 + np.maximum(u, 0.0), self.exponent), 1.0 + np.maximum(-u, 0.0)
        return np.where(u >= 0, right, -_box_cox(left, 2.0 - self.exponent))

    def backward(self, t: Floats) -> Floats:
        """Return the values that are transformed to these."""
        if not self.signed:
            return _inverse_box_cox(t, self.exponent)
        right = _inverse_box_cox(np.maximum(t, 0.0), self.exponent) - 1.0
        return np.where(t >= 0, right, 1.0 - _inverse_box_cox(np.maximum(-t, 0.0), 2.0 - self.exponent))

    def log_slope(self, u: Floats) -> Floats:
        """Return the logarithm of the derivative."""
        if not self.signed:
            return np.asarray((self.exponent - 1.0) * np.log(u))
        return np.asarray((self.exponent - 1.0) * np.sign(u) * np.log1p(np.abs(u)))


def _box_cox(u: Floats, exponent: float) -> Floats:
    return np.log(u) if exponent < _TINY else np.asarray(np.expm1(exponent * np.log(u)) / exponent)


def _inverse_box_cox(t: Floats, exponent: float) -> Floats:
    if exponent < _TINY:
        return np.exp(t)
    return np.asarray(np.maximum(1.0 + exponent * t, 0.0) ** (1.0 / exponent))


@dataclass(frozen=True, eq=False)
class Scale:
    """From the units of the outcome to standardised values and back.

    Attributes
    ----------
    y : array of shape (m,)
        The labels.
    power : Power or None
        The transform between; None is the identity.
    """

    y: Floats
    power: Power | None = None

    @cached_property
    def _unit(self) -> tuple[float, float]:
        """Origin and unit of what is transformed: 0 where the outcome has a natural origin."""
        if self.power is None or self.power.signed:
            return _mean_and_deviation(self.y)
        return 0.0, float(np.exp(np.mean(np.log(self.y))))

    def _transformed(self, y: Floats) -> Floats:
        origin, unit = self._unit
        u = (y - origin) / (unit or 1.0)
        return u if self.power is None else self.power.forward(u)

    @cached_property
    def _moments(self) -> tuple[float, float]:
        return _mean_and_deviation(self._transformed(self.y))

    @property
    def unit(self) -> float:
        """What one standardised unit is in units of the outcome; with a transform, of the transformed outcome."""
        if self.is_constant:
            return 0.0
        return self._moments[1] * (self._unit[1] if self.power is None else 1.0)

    @property
    def is_constant(self) -> bool:
        """Whether all labels are equal, up to rounding."""
        return float(np.ptp(self.y)) <= 16 * float(np.finfo(np.float64).eps) * float(np.abs(self.y).max())

    @cached_property
    def z(self) -> Floats:
        """The labels as the field sees them: mean 0, variance 1 (all 0 when they are equal)."""
        if self.is_constant:
            return np.zeros(self.y.size)
        mean, deviation = self._moments
        return np.asarray((self._transformed(self.y) - mean) / deviation)

    @cached_property
    def log_jacobian(self) -> float:
        """Logarithm of the derivative of `z` by the labels, summed."""
        origin, unit = self._unit
        slope = 0.0 if self.power is None else float(self.power.log_slope((self.y - origin) / unit).sum())
        return slope - self.y.size * float(np.log(unit * self._moments[1]))

    def back(self, z: Floats) -> Floats:
        """Return standardised values in the units of the outcome; infinite ones are at the ends of its range.

        Raises
        ------
        InvalidInputError
            If the transform leads from finite values beyond all numbers.
        """
        if self.is_constant:
            return np.full(z.shape, self.y.mean())
        (origin, unit), (mean, deviation) = self._unit, self._moments
        t = mean + deviation * z
        with np.errstate(over="ignore"):
            values = np.asarray(origin + unit * (t if self.power is None else self.power.backward(t)))
        if (np.isinf(values) & np.isfinite(z)).any():
            raise InvalidInputError(
                f"outcomes must stay below 1e308, got more from labels between {self.y.min():.3g} and "
                f"{self.y.max():.3g} under their transform; use 'identity', or fit the logarithm of the labels"
            )
        return values

    def moments(self, mean: Floats, std: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation, in the units of the outcome, of normal standardised values."""
        if self.is_constant or self.power is None:
            return self.back(mean), np.asarray(self.unit * std)
        values = self.back(mean + std * _NODES[:, None])
        weights = _WEIGHTS / _WEIGHTS.sum()
        first = weights @ values
        largest = np.abs(values - first).max(axis=0)  # no square overflows
        shares = (values - first) / np.where(largest > 0, largest, 1.0)
        return first, largest * np.sqrt(weights @ shares**2)


def _mean_and_deviation(values: Floats) -> tuple[float, float]:
    """Return mean and standard deviation, computed in a power of 2: nothing is rounded, and no square overflows."""
    unit = float(np.ldexp(1.0, np.frexp(np.abs(values).max())[1] - 1))
    shares = values / unit
    return unit * float(shares.mean()), unit * float(shares.std())


def normal_quantile(level: float) -> float:
    """Return how many standard deviations a central interval of a normal variable reaches."""
    return float(norm.ppf(0.5 + 0.5 * level))

r"""Monotone transforms of the outcome, so that skewed outcomes look normal to the field, chosen by likelihood.

All work on :math:`u = (y - c) / s` and end in standardised values :math:`z = (T(u) - m) / d`; the Jacobian of the whole
is part of the likelihood, so transforms can be compared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import boxcox, boxcox1p, inv_boxcox

from graphmrf.caching import cached_property
from graphmrf.errors import InvalidInputError
from graphmrf.field.dense import DenseField
from graphmrf.field.observations import Observations
from graphmrf.field.search import find_mode
from graphmrf.field.terms import TERMS, Prior

if TYPE_CHECKING:
    from graphmrf._typing import Floats, Ints
    from graphmrf.field.features import Design

Kind: TypeAlias = Literal["identity", "log", "box-cox", "yeo-johnson"]

POSITIVE = ("log", "box-cox")
"""Transforms of positive outcomes."""

FITTED = ("box-cox", "yeo-johnson")
"""Transforms with an exponent."""

_PART = 300
"""Labels that decide on a transform."""
_IMPOSSIBLE = 1e10
"""Misfit of an exponent whose values overflow."""
_FENCE = 3.0
"""Interquartile ranges beyond the quartiles where Tukey's outer fences are."""
_OUTSIDE = 0.05
"""Largest share of the labels that are outliers: more are a part of the distribution, which intervals must cover."""
_EXPONENTS = (0.0, 2.0)
"""Range of the exponents, from the logarithm to the square."""
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(31)
"""Gauss rule for moments under a transform: lognormal ones of a deviation of .5 to 1e-8."""


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
            return np.asarray(boxcox(u, self.exponent))
        right, left = boxcox1p(np.maximum(u, 0.0), self.exponent), np.maximum(-u, 0.0)
        return np.where(u >= 0, right, -boxcox1p(left, 2.0 - self.exponent))

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


def _inverse_box_cox(t: Floats, exponent: float) -> Floats:
    """Return the values that are transformed to these, 0 beyond the end of the range."""
    if not exponent:
        return np.exp(t)
    with np.errstate(divide="ignore"):  # the end itself is exp(-inf)
        return np.asarray(inv_boxcox(np.maximum(t, -1.0 / exponent), exponent))


@dataclass(frozen=True, eq=False)
class Scale:
    """From the units of the outcome to standardised values and back."""

    y: Floats  # (m,): the labels
    power: Power | None = None  # the transform between; None is the identity

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
    def origin(self) -> float:
        """What a standardised 0 is, in the same units."""
        origin, unit = self._unit
        return origin + unit * self._moments[0] if self.power is None else self._moments[0]

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

    def standardised(self, value: float) -> float:
        """Return one value as the field sees it; minus infinity below the range of the transform."""
        if self.is_constant:
            return math.inf if value >= self.y[0] else -math.inf
        if self.power is not None and not self.power.signed and value <= 0:
            return -math.inf
        mean, deviation = self._moments
        return float((self._transformed(np.array([value]))[0] - mean) / deviation)

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


def fences(values: Floats) -> tuple[float, float]:
    """Return the middle of the quartiles, and how far from it Tukey's outer fences are.

    They are farther where more than one label in twenty would lie beyond them, as where most labels are nearly equal.

    Examples
    --------
    >>> fences(np.array([0.0, 1.0, 2.0, 3.0, 100.0]))
    (2.0, 7.0)
    >>> fences(np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.1, 5.0, 6.0]))[1] > 4.0
    True
    """
    low, high = np.percentile(values, [25, 75])
    middle = 0.5 * (low + high)
    usual = np.quantile(np.abs(values - middle), 1.0 - _OUTSIDE, method="lower")
    return float(middle), float(max((0.5 + _FENCE) * (high - low), usual))


def _mean_and_deviation(values: Floats) -> tuple[float, float]:
    """Return mean and standard deviation of values drawn in to the fences: one wild label has no say in them.

    Computed in a power of 2: nothing is rounded, and no square overflows.
    """
    unit = float(np.ldexp(1.0, np.frexp(np.abs(values).max())[1] - 1))
    shares = values / unit
    middle, reach = fences(shares)
    if reach > 0:
        shares = np.clip(shares, middle - reach, middle + reach)
    return unit * float(shares.mean()), unit * float(shares.std())


def choose_transform(design: Design, nodes: Ints, y: Floats, kinds: tuple[Kind, ...], *, seed: int = 0) -> Scale:
    """Return the transform, of the kinds given, under which the labels are most likely.

    Exponents are found at the hyper-parameters of the untransformed outcome; then the field is fitted under every
    transform. Of many labels a random part decides. A fitted exponent costs half the logarithm of the number of labels
    (the Bayesian information criterion). Outcomes `y` (m,) of the nodes must be positive for "log" and "box-cox".
    """
    if kinds == ("identity",):
        return Scale(y)
    part = np.sort(np.random.default_rng(seed).permutation(y.size)[:_PART])
    terms = tuple(term for term in Prior.of(tuple(TERMS), design).terms if term.transfers)
    field = DenseField.of(design, terms, Observations.of(nodes[part], Scale(y[part]).z))
    plain = find_mode(field, np.zeros(field.size))
    powers = {kind: _power(field, plain.x, y[part], kind) for kind in kinds}
    costs = {kind: _cost(field, plain.x, y[part], power) for kind, power in powers.items()}
    costs |= {kind: costs[kind] + 0.5 * math.log(part.size) for kind in kinds if kind in FITTED}
    return Scale(y, powers[min(kinds, key=lambda kind: costs[kind])])


def _cost(field: DenseField, x: Floats, y: Floats, power: Power | None) -> float:
    """Return the negative log posterior density of labels in their own units under a transform, refitted."""
    scale = Scale(y, power)
    return find_mode(_observed(field, scale), x).value - scale.log_jacobian


def _observed(field: DenseField, scale: Scale) -> DenseField:
    return field.observed(Observations.of(field.rows, scale.z))


def _power(field: DenseField, x: Floats, y: Floats, kind: Kind) -> Power | None:
    """Return the transform of a kind, its exponent by likelihood at some hyper-parameters."""
    if kind not in FITTED:
        return None if kind == "identity" else Power(0.0, signed=False)
    signed = kind == "yeo-johnson"

    def misfit(exponent: float) -> float:
        scale = Scale(y, Power(exponent, signed=signed))
        with np.errstate(over="ignore", invalid="ignore"):
            value = _observed(field, scale).value(x) - scale.log_jacobian
        return value if np.isfinite(value) else _IMPOSSIBLE

    found = minimize_scalar(misfit, bounds=_EXPONENTS, method="bounded")
    return Power(float(found.x), signed=signed)

r"""Hyper-parameters: names, priors, and coordinates in which these priors are independent standard normal.

- The standard deviation of each of the `k` terms, noise among them, is half-normal, with most mass near 0: a term that
  the labels do not ask for shrinks to nothing. Expected squares add up to a total that is log-normal itself,
  in units of the variance of the labels.
- All others (ranges, orders, length scales) are log-normal.

In these coordinates `x` the negative log posterior is the negative log likelihood plus :math:`x'x / 2`, its curvature
is at least 1 in every direction, and a search needs no bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import digamma, erfinv, ndtr, polygamma

from graphmrf.caching import cached_property

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphmrf._typing import Floats

# median of the expected sum of the variances of all terms, over that of the outcome, and its log spread
TOTAL = (2.0, 0.7)
_FARTHEST = 8.0  # largest coordinate whose normal probability differs from 1 in double precision
NOISE = "noise"
# least variance of the noise over that of the labels: it keeps covariances of smooth fields positive definite
LEAST_NOISE = 1e-5


@dataclass(frozen=True)
class Shape:
    """A positive hyper-parameter with a log-normal prior."""

    name: str  # "term.quantity"
    median: float
    spread: float  # standard deviation of the logarithm
    size: int = 1  # number of independent values


@dataclass(frozen=True, eq=False)
class Space:
    """Coordinates of the variances of some terms and of shapes.

    Examples
    --------
    >>> space = Space(("field",), (Shape("field.range", 0.1, 2.0),))
    >>> h = space.read(np.zeros(space.size))
    >>> sorted(h), round(float(h["field.range"][0]), 6)
    (['field', 'field.range', 'noise'], 0.1)
    """

    terms: tuple[str, ...]  # terms with a variance; noise comes on top
    shapes: tuple[Shape, ...]  # all other hyper-parameters
    fixed: Mapping[str, Any] | None = None  # shapes that are not searched
    # number of labels whose variance is the unit: of few it is an uncertain estimate of that of the outcome
    labels: int = 10**9
    has_noise: bool = True  # whether the noise has a variance of its own; else it is the least
    spread: float = TOTAL[1]  # log spread of the total, that of the unit apart
    # scales of the standard deviations of some terms a priori, over those of all others
    scales: Mapping[str, float] | None = None

    @cached_property
    def _total(self) -> tuple[float, float]:
        """Median and log spread of the total: the variance of `m` normal labels is chi-squared of `m - 1` over them."""
        half = 0.5 * max(self.labels - 1, 1)
        shift = math.log(half) - float(digamma(half))
        return TOTAL[0] * math.exp(shift), math.hypot(self.spread, math.sqrt(float(polygamma(1, half))))

    @property
    def variances(self) -> tuple[str, ...]:
        """Names of all variances."""
        return (*self.terms, NOISE) if self.has_noise else self.terms

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Name of the hyper-parameter of every row of the Jacobian."""
        return (*self.variances, *(shape.name for shape in self.shapes for _ in range(shape.size)))

    @property
    def size(self) -> int:
        """Number of coordinates: one for every hyper-parameter, and one for the total of the variances."""
        return len(self.names) + 1

    @cached_property
    def _medians(self) -> Floats:
        return np.array([math.log(s.median) for s in self.shapes for _ in range(s.size)])

    @cached_property
    def _spreads(self) -> Floats:
        return np.array([s.spread for s in self.shapes for _ in range(s.size)])

    @cached_property
    def _squared_scales(self) -> Floats:
        return np.array([(self.scales or {}).get(name, 1.0) ** 2 for name in self.variances])

    def read(self, x: Floats) -> dict[str, Any]:
        """Return the hyper-parameters at a point; those of variances are numbers, shapes are arrays."""
        k, squares = len(self.variances), self._squared_scales
        scale = self._total[0] * math.exp(self._total[1] * x[-1]) * squares / squares.sum()
        h: dict[str, Any] = dict(zip(self.variances, scale * _half_normal(x[:k]) ** 2, strict=True))
        h[NOISE] = h.get(NOISE, 0.0) + LEAST_NOISE
        logs, first = self._medians + self._spreads * x[k:-1], 0
        for shape in self.shapes:
            h[shape.name] = np.exp(logs[first : first + shape.size])
            first += shape.size
        return h | dict(self.fixed or {})

    def taken_from(self, other: Space, x: Floats) -> Floats:
        """Return the coordinates of the hyper-parameters that another space has at a point, 0 of others."""
        names, theirs, found = np.array(self.names), np.array(other.names), np.zeros(self.size)
        values = np.append(x[: len(other.variances)], other._medians + other._spreads * x[len(other.variances) : -1])
        medians = np.append(np.zeros(len(self.variances)), self._medians)
        spreads = np.append(np.ones(len(self.variances)), self._spreads)
        for name in set(self.names) & set(other.names):
            mine = names == name
            found[:-1][mine] = (values[theirs == name] - medians[mine]) / spreads[mine]
        found[-1] = x[-1]
        return found

    def placed(self, x: Floats, values: Mapping[str, float]) -> Floats:
        """Return a point with some shapes of given values."""
        k, names = len(self.variances), np.array(self.names)
        found = x.copy()
        for name, value in values.items():
            mine = names[k:] == name
            found[k:-1][mine] = (math.log(value) - self._medians[mine]) / self._spreads[mine]
        return found

    def jacobian(self, x: Floats) -> Floats:
        """Return the derivatives (len(names), size) of the logarithms of the hyper-parameters by the coordinates."""
        k, J = len(self.variances), np.zeros((len(self.names), self.size))
        u = _half_normal(x[:k])
        density = 0.5 * np.exp(0.5 * (u**2 - np.minimum(x[:k], _FARTHEST) ** 2))
        J[np.arange(k), np.arange(k)] = 2.0 * density / np.maximum(u, 1e-300)
        J[:k, -1] = self._total[1]
        free = np.arange(k, len(self.names))
        J[free, free] = self._spreads
        if self.has_noise:
            J[k - 1] *= 1.0 - LEAST_NOISE / self.read(x)[NOISE]
        return J

    def gather(self, slopes: Mapping[str, Any]) -> Floats:
        """Return derivatives by the logarithms of all hyper-parameters, 0 where none is given."""
        sizes = dict.fromkeys(self.variances, 1) | {shape.name: shape.size for shape in self.shapes}
        return np.concatenate([np.broadcast_to(slopes.get(name, 0.0), (size,)) for name, size in sizes.items()])

    def stack(self, products: Mapping[str, Floats], m: int) -> Floats:
        """Return columns (m, len(names)) of products with derivatives, 0 where none is given."""
        sizes = dict.fromkeys(self.variances, 1) | {shape.name: shape.size for shape in self.shapes}
        return np.hstack([products.get(name, np.zeros((m, size))).reshape(m, size) for name, size in sizes.items()])


def _half_normal(x: Floats) -> Floats:
    """Return the half-normal variable at the quantile of a standard normal one."""
    return np.asarray(math.sqrt(2.0) * erfinv(ndtr(np.minimum(x, _FARTHEST))))

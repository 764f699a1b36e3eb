"""What the field learns: variances, smoothness and length scales, and the space in which they are searched."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from graphmrf.field.matern import NUS, OMEGAS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphmrf._typing import Bools, Floats

INTERCEPT = 1.0
"""Prior variance of the constant, in units of the variance of the labels about their mean."""


@dataclass(frozen=True)
class Tabled:
    """Numbers and arrays by name."""

    def table(self) -> dict[str, float | list[float]]:
        """Return the values by name, as plain numbers."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}


@dataclass(frozen=True)
class Hyperparameters(Tabled):
    r"""The hyper-parameters of the field; variances are shares of the variance of the labels.

    Attributes
    ----------
    constant : float
        Prior variance of the constant.
    own, neighbours, second : float
        Prior variances of the linear effects of the features `X`, of `SX` and of `S²X`.
    smoothed : float
        Prior variance of those of the features smoothed as the field is, :math:`(I + \omega N)^{-\nu} X`.
    field, omega, nu : float
        Variance and smoothness of the graph field, with correlations from :math:`(I + \omega N)^{-\nu}`.
    even : bool
        Whether its variance is the same at all nodes; if not, it varies as that matrix says, and `field` is its mean.
    nonlinear : float
        Variance of the smooth function of `[X, SX]`.
    lengths : array of shape (2 p,)
        Its length scale along every feature, in standard deviations.
    local, local_omega, local_nu, local_length : float
        Variance, smoothness and length scale of the function of `[X, SX]` that drifts over the graph.
    noise : float
        Variance of what no other node knows anything about.
    """

    constant: float
    own: float
    neighbours: float
    second: float
    smoothed: float
    field: float
    omega: float
    nu: float
    even: bool
    nonlinear: float
    lengths: Floats
    local: float
    local_omega: float
    local_nu: float
    local_length: float
    noise: float


class Range(NamedTuple):
    """How a coordinate, the logarithm of a quantity, is searched: start and bounds, and a normal prior about the start.

    A `spread` of infinity is a flat prior: a variance that the labels do not support runs to its lower bound.
    """

    start: float
    lower: float
    upper: float
    spread: float = np.inf


_FLOOR, _CEILING = -16.0, 4.0
_LEAST_NOISE = 1e-5
_SMALL = 0.02


def _variance(start: float) -> Range:
    return Range(math.log(start), _FLOOR, _CEILING)


_OMEGA = Range(math.log(20.0), math.log(OMEGAS[0]), math.log(OMEGAS[1]), 2.0)
_NU = Range(0.0, math.log(NUS[0]), math.log(NUS[1]), 0.7)
_LENGTH = Range(0.0, -2.5, 4.0, 1.0)
_GROUP = Range(0.0, -4.0, 4.0, 0.5)
_FEATURE = Range(0.0, -4.0, 4.0, 0.3)
_RANGES = {
    "own": _variance(0.2),
    "neighbours": _variance(0.2),
    "second": _variance(0.2),
    "smoothed": _variance(0.2),
    "field": _variance(0.3),
    "omega": _OMEGA,
    "nu": _NU,
    "nonlinear": _variance(0.2),
    "length": _LENGTH,
    "groups": _GROUP,
    "features": _FEATURE,
    "local": _variance(0.1),
    "local_omega": _OMEGA,
    "local_nu": _NU,
    "local_length": _LENGTH,
    "noise": Range(math.log(0.1), math.log(_LEAST_NOISE), 2.0),
}
_FEATURELESS = ("field", "omega", "nu", "noise")
_SIMPLE = ("smoothed", "field", "omega")
_VARIANCES = ("own", "neighbours", "second", "smoothed", "field", "nonlinear", "local")
_ABSENT = {"constant": INTERCEPT, "omega": 1.0, "nu": 1.0, "local_omega": 1.0, "local_nu": 1.0, "noise": _LEAST_NOISE}


@dataclass(frozen=True)
class Space:
    r"""The search space for `p` features: a vector of logarithms.

    A length scale is a common one times one for the group (own or neighbours' features) times one for the feature,
    and starts at :math:`\sqrt{4p}`, the typical distance of two nodes. Priors are weak, the same for all data:
    omega within a factor :math:`e^2` of 20, nu within :math:`e^{0.7}` of 1, length scales within :math:`e` of the
    start, of a group within :math:`e^{0.5}` and of a feature within :math:`e^{0.3}` of the others.

    With ``simple=True`` it is that of the paper's own model, in which features act through the field only and labels
    have no noise: :math:`y \sim N(c + (I + \omega N)^{-1} X b, f (I + \omega N)^{-1})`. With ``even=True`` the field
    has the same variance at all nodes there, too; so it is taken where no label shows how uneven it is, as where all
    isolated nodes are unlabelled.

    Examples
    --------
    >>> space = Space(0)
    >>> space.names
    ('field', 'omega', 'nu', 'noise')
    >>> h = space.read(space.start)
    >>> round(h.omega), h.nu, h.nonlinear
    (20, 1.0, 0.0)
    >>> Space(3, simple=True).names
    ('smoothed', 'field', 'omega')
    """

    p: int
    simple: bool = False
    even: bool = True

    @cached_property
    def slices(self) -> dict[str, slice]:
        """Place of every quantity in the vector."""
        sizes = {name: {"groups": 2, "features": self.p}.get(name, 1) for name in self._kept}
        ends = np.cumsum(list(sizes.values()))
        return {name: slice(int(end) - size, int(end)) for (name, size), end in zip(sizes.items(), ends, strict=True)}

    @property
    def _kept(self) -> tuple[str, ...]:
        kept = set(_RANGES if self.p else _FEATURELESS) & set(_SIMPLE if self.simple else _RANGES)
        return tuple(name for name in _RANGES if name in kept)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Name of every coordinate."""
        return tuple(name for name, place in self.slices.items() for _ in range(place.stop - place.start))

    @cached_property
    def _ranges(self) -> Floats:
        return np.array([_RANGES[name] for name in self.names])

    @property
    def start(self) -> Floats:
        """Where the search starts."""
        return self._ranges[:, 0].copy()

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """Lower and upper bound of every coordinate."""
        return [(float(low), float(high)) for low, high in self._ranges[:, 1:3]]

    def grown(self, simple: Hyperparameters) -> Floats:
        """Return where the search starts that goes on from the simple model: all else is small there."""
        theta = np.where(self._are((*_VARIANCES, "noise")), math.log(_SMALL), self.start)
        for name in set(_SIMPLE) & set(self.slices):
            theta[self.slices[name]] = math.log(getattr(simple, name))
        return theta

    def revived(self, theta: Floats) -> Floats:
        """Return a point with no variance so small that it has no slope, for a search that goes on from there."""
        return np.where(self._are(_VARIANCES), np.maximum(theta, math.log(_SMALL)), theta)

    def _are(self, names: tuple[str, ...]) -> Bools:
        return np.array([name in names for name in self.names])

    def penalty(self, theta: Floats) -> tuple[float, Floats]:
        """Return the negative log prior, up to a constant, and its gradient."""
        start, spread = self._ranges[:, 0], self._ranges[:, 3]
        z = (theta - start) / spread
        return 0.5 * float(z @ z), z / spread

    def read(self, theta: Floats) -> Hyperparameters:
        """Return the hyper-parameters at a point of the space."""
        values = {name: float(np.exp(theta[place][0])) for name, place in self.slices.items()}
        kept = {f.name: values.get(f.name, _ABSENT.get(f.name, 0.0)) for f in fields(Hyperparameters)}
        base = np.sqrt(4.0 * self.p)
        lengths = self._lengths(theta) if "length" in values else np.full(2 * self.p, base)
        local_length = float(kept["local_length"] * base)
        others = {"lengths": lengths, "local_length": local_length, "even": self.even}
        return Hyperparameters(**kept | others)  # type: ignore[arg-type]  # mypy: mixed values

    def _lengths(self, theta: Floats) -> Floats:
        at = self.slices
        logs = theta[at["length"]] + theta[at["groups"]][:, None] + theta[at["features"]]
        return np.asarray(np.sqrt(4.0 * self.p) * np.exp(logs).ravel())

    def gather(self, slopes: Mapping[str, float | Floats]) -> Floats:
        """Return the gradient by the vector from the derivatives by the logarithm of every quantity."""
        gradient = np.zeros(len(self.names))
        for name, place in self.slices.items():
            if name in slopes:
                gradient[place] = slopes[name]
        if "length" in self.slices:
            by_length = np.asarray(slopes["lengths"]).reshape(2, self.p)
            gradient[self.slices["length"]] = by_length.sum()
            gradient[self.slices["groups"]] = by_length.sum(axis=1)
            gradient[self.slices["features"]] = by_length.sum(axis=0)
        return gradient

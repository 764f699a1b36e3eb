"""Hyper-parameters of the field: ranges and priors, the space of their search, and the rules it goes by."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from scipy.special import ndtr, ndtri

from graphmrf.kept import cached_property

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats

INTERCEPT = 1.0
"""Prior variance of the constant, in units of the variance of the labels, which are centred; wider is flatter."""

LOG_VARIANCES = (-16.0, 4.0)
"""Bounds of the logarithm of a variance: 1e-7 of that of the labels is nothing, 55 of them more than all."""

LEAST_NOISE = 1e-5
"""Least variance of the noise, which keeps covariances of smooth fields positive definite to working accuracy."""

START = 0.2
"""Variance at which a search starts; the labels' is 1, and half a dozen components share it."""

_SMALL = 0.02
"""Variance from which a component that was absent is tried: large enough for a slope, small enough to change little.
Below, steps of a search are in the variance itself: searches take as many evaluations with a third or twice of it."""

_FARTHEST = 8.0
"""Largest standard normal coordinate that is told from infinity in working accuracy."""

PRIOR_TOTAL = (5.0, 1.0)
"""Median of the expected sum of all variances before the labels are seen, in units of that of the labels, and the
standard deviation of its logarithm. Components overlap, most are absent, and a handful of labels may by chance have a
fraction of the variance of all nodes: with 1, 2 and 4 the 90 % intervals of 5 labels hold 82, 85 and 88 % on London's
wards and Twitch (4 splits), with 20 and more labels it makes no difference. Doubled, the former are a
little wider."""

_RADII = (1.0, 2.0)
"""First and largest half width of the box of a Newton step, in logarithms: beyond a factor of 7 in a variance the
quadratic model says little. Doubled, more steps are tried in vain, and more searches end in a lesser optimum."""

_RIDGE = 1e-4
"""Least curvature: far below that of a weak prior, 1, and above rounding."""

_FLATTEST = 0.25
"""Least curvature along the last step, in shares of what average information says. Over 7 tasks of 300 labels searches
take 353 evaluations in place of 448; a tenth takes 420, and halved steps of one search went astray."""

_NARROWEST = 0.25
"""Half width of the box below which a search no longer asks for less gain: otherwise it creeps on where the model of
the function is bad. Without it, one of 300 labels takes 52 evaluations in place of 12, for nothing."""

_AT_BOUND = 1e-6
"""Distance in logarithms at which a variance counts as at its bound: above rounding, far below a step."""

_ACTIVE_SETS = 20
"""Guesses of the coordinates that a step leaves at its bounds; a handful of them settles it."""

PAPER = ("smoothed", "field", "omega")
"""What is searched in the paper's own model, in which features act through the field only; see `paper_model`."""

Values: TypeAlias = "Mapping[str, Any]"
Expansion: TypeAlias = "Callable[[], tuple[Floats, Floats]]"
"""What computes gradient and curvature at a point whose value is known."""


class Parameter(NamedTuple):
    """One coordinate, the logarithm of a hyper-parameter: start, bounds, and a normal prior about the start.

    A `spread` of infinity is a flat prior: a variance that the labels do not support runs to its lower bound. `absent`
    is the value where it is not searched; `size` the number of such coordinates, 0 for one of every feature.
    """

    name: str
    start: float
    lower: float
    upper: float
    spread: float = np.inf
    absent: float = 0.0
    size: int = 1


def variance(name: str, start: float = START) -> Parameter:
    """Return the variance of a component, with a flat prior."""
    return Parameter(name, math.log(start), *LOG_VARIANCES)


class Searched(Protocol):
    """What the search sees of a component; see `graphmrf.field.covariance.Component`."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def parameters(self) -> tuple[Parameter, ...]: ...  # noqa: D102
    @property
    def of_features(self) -> bool: ...  # noqa: D102
    def read(self, values: Mapping[str, Floats], p: int) -> dict[str, Any]: ...  # noqa: D102


@dataclass(frozen=True, eq=False)
class Hyperparameters(Mapping[str, Any]):
    r"""The hyper-parameters of a field, by name and as attributes; variances are shares of that of the labels.

    The names are those of the components' variances (`own`, `neighbours`, `second`, `distant`, `smoothed`, `field`,
    `nonlinear`, `local`, `noise`) with `constant`, and of their shapes:

    - `omega`, `nu`: smoothness of the graph field, with correlations from :math:`(I + \omega N)^{-\nu}`;
      `unit_variance`: whether its variance is the same at all nodes; if not, `field` is the mean;
    - `paper_model`: whether smoothed features and the graph field are all there is, as in the paper's own model;
    - `lengths` (2 p,): length scales of the nonlinear function of `[X, SX]`, in standard deviations;
    - `local_omega`, `local_nu`, `local_length`: those of the function that drifts over the graph;
    - `distant_omega`: the level at which the sparse solver's distant features fade.
    """

    values_: dict[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.values_[name]

    def __iter__(self) -> Any:
        return iter(self.values_)

    def __len__(self) -> int:
        return len(self.values_)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "values_" or name not in self.values_:
            raise AttributeError(name)
        return self.values_[name]

    def table(self) -> dict[str, float | list[float]]:
        """Return the values by name, as plain numbers."""
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in self.items()}


@dataclass(frozen=True)
class Space:
    r"""The search space of the components' hyper-parameters for `p` features: a vector of logarithms.

    Attributes
    ----------
    components : sequence of Component
        The terms of the field.
    p : int
        Number of features.
    only : tuple of str, optional
        The parameters to search, all others being absent; by default all.
    unit_variance : bool
        Whether the graph field has the same variance at all nodes.

    Examples
    --------
    >>> from graphmrf.field.components import COMPONENTS
    >>> space = Space(COMPONENTS, 0)
    >>> space.names
    ('field', 'omega', 'nu', 'noise')
    >>> h = space.read(space.start)
    >>> round(h.omega), h.nu, h.nonlinear
    (20, 1.0, 0.0)
    """

    components: Sequence[Searched]
    p: int
    only: tuple[str, ...] | None = None
    unit_variance: bool = True

    @cached_property
    def _all(self) -> dict[str, Parameter]:
        return {parameter.name: parameter for component in self.components for parameter in component.parameters}

    @cached_property
    def _searched(self) -> tuple[Parameter, ...]:
        present = [c for c in self.components if self.p or not c.of_features]
        found = [parameter for component in present for parameter in component.parameters]
        return tuple(parameter for parameter in found if self.only is None or parameter.name in self.only)

    @cached_property
    def slices(self) -> dict[str, slice]:
        """Place of every parameter in the vector."""
        ends = np.cumsum([parameter.size or self.p for parameter in self._searched])
        return {
            parameter.name: slice(int(end) - (parameter.size or self.p), int(end))
            for parameter, end in zip(self._searched, ends, strict=True)
        }

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Name of every coordinate."""
        return tuple(name for name, place in self.slices.items() for _ in range(place.stop - place.start))

    @cached_property
    def _ranges(self) -> Floats:
        return np.array([self._all[name][1:5] for name in self.names])

    @property
    def start(self) -> Floats:
        """Where the search starts."""
        return self._ranges[:, 0].copy()

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """Lower and upper bound of every coordinate."""
        return [(float(low), float(high)) for low, high in self._ranges[:, 1:3]]

    def grown(self, h: Values, names: Sequence[str]) -> Floats:
        """Return where the search starts that goes on from some values: all other variances are small there."""
        theta = np.where(self._are_variances(noise=True), math.log(_SMALL), self.start)
        for name in set(names) & set(self.slices):
            theta[self.slices[name]] = math.log(h[name])
        return theta

    @cached_property
    def softening(self) -> Floats:
        """What is added to variances in the coordinates of a search, and to nothing else: see `trust_region_newton`.

        Where noise is not searched none is: its place is taken by the others, of which small ones then tell.
        """
        return np.where(self._are_variances(noise=False) & ("noise" in self.slices), _SMALL, 0.0)

    def has_lost(self, theta: Floats) -> bool:
        """Return whether a function of features with a length scale for each has hardly any variance, less than noise.

        Its length scales may not have been found yet: that takes many labels, and without variance none are.
        """
        shaped = {c.name for c in self.components if any(not parameter.size for parameter in c.parameters)}
        places = [self.slices[name].start for name in shaped & set(self.slices)]
        return bool((theta[places] < min(math.log(_SMALL), *theta[self.slices["noise"]])).any())

    def _are_variances(self, *, noise: bool) -> Bools:
        variances = {component.name for component in self.components if noise or component.name != "noise"}
        return np.array([name in variances for name in self.names])

    def from_normal(self, x: Floats, total: tuple[float, float] = PRIOR_TOTAL) -> Floats:
        r"""Return the point at coordinates that are independent and standard normal under the weak priors.

        Standard deviations of the `k` components, noise among them, are half-normal with a common scale: most mass
        near 0, as many components are absent, and none far beyond the others. The scale is log-normal, the last
        coordinate; the expectations of the squares add up to :math:`t = t_0 e^{s x_0}`, with `total` :math:`(t_0, s)`,

        .. math:: \sigma_c = \sqrt{t / k}\; \Phi^{-1}\big(\tfrac12 + \tfrac12 \Phi(x_c)\big).

        All others are normal in the logarithm, with the `spread` of their `Parameter`.

        Parameters
        ----------
        x : array of shape (len(names) + 1,)
            The coordinates.
        total : pair of float
            Median and logarithmic spread of the sum of the variances.
        """
        variances, (low, high) = self._are_variances(noise=True), self._ranges[:, 1:3].T
        each = total[0] * math.exp(total[1] * x[-1]) / max(int(variances.sum()), 1)
        squares = each * ndtri(0.5 + 0.5 * ndtr(np.minimum(x[:-1], _FARTHEST))) ** 2
        plain = self._ranges[:, 0] + np.where(variances, 0.0, self._ranges[:, 3]) * x[:-1]
        return np.asarray(np.clip(np.where(variances, np.log(np.maximum(squares, np.exp(low))), plain), low, high))

    def penalty(self, theta: Floats) -> tuple[float, Floats, Floats]:
        """Return the negative log prior, up to a constant, its gradient, and the diagonal of its curvature."""
        start, spread = self._ranges[:, 0], self._ranges[:, 3]
        z = (theta - start) / spread
        return 0.5 * float(z @ z), z / spread, spread**-2.0

    def read(self, theta: Floats) -> Hyperparameters:
        """Return the hyper-parameters at a point of the space."""
        found = {name: np.exp(theta[place]) for name, place in self.slices.items()}
        absent = {name: np.full(each.size or self.p, each.absent) for name, each in self._all.items()}
        values: dict[str, Any] = {"constant": INTERCEPT, "unit_variance": self.unit_variance}
        values["paper_model"] = self.only == PAPER
        for component in self.components:
            values |= component.read(absent | found, self.p)
        return Hyperparameters(values)

    def settled(self, theta: Floats) -> Hyperparameters:
        """Return the same with components whose variance is at the end of its range left out: nothing is computed."""
        gone = theta < self._ranges[:, 1] + _AT_BOUND
        names = {name for name, absent in zip(self.names, gone & (self.softening > 0), strict=True) if absent}
        return Hyperparameters({**self.read(theta), **dict.fromkeys(names, 0.0)})

    def gather(self, slopes: Mapping[str, float | Floats]) -> Floats:
        """Return the gradient by the vector from the derivatives by every coordinate."""
        gradient = np.zeros(len(self.names))
        for name, place in self.slices.items():
            gradient[place] = slopes.get(name, 0.0)
        return gradient

    def stack(self, products: Mapping[str, Floats]) -> Floats:
        """Return the columns (m, len(names)) of products by every coordinate."""
        return np.column_stack([products[name] for name in self.slices])


class Optimum(NamedTuple):
    """Where a search ended: the point, its log evidence, the same with the log prior, and the likelihoods computed.

    `ends` are the points where the searches of the family and of the paper's own model ended, whichever won.
    """

    point: Floats
    log_evidence: float
    log_posterior: float
    evaluations: int
    ends: tuple[Floats, Floats] | None = None


def family_wins(family: float, paper: float, labels: int) -> bool:
    """Return whether the whole family is to be taken rather than the paper's own model, by their log posteriors.

    Few labels can tell the few parameters of that model better: the family must gain more than the logarithm of the
    number of labels, as if it had two hyper-parameters more.
    """
    return family - paper > math.log(labels)


def trust_region_newton(
    function: Callable[[Floats], tuple[float, Expansion]],
    start: Floats,
    bounds: Sequence[tuple[float, float]],
    *,
    steps: int,
    least_gain: float,
    softening: Floats | float = 0.0,
) -> tuple[Floats, float, int]:
    r"""Return where a function of logarithms is lowest, its value there, and how often it was computed.

    Every step minimises the quadratic model within a box about the point, wider after good steps, narrower after bad.
    Where the gradient changed less along the last step :math:`s` than the curvature `C` said, as that of average
    information often does, the model is flatter in that direction, with :math:`\rho = s'\Delta g / s'Cs` between 1/4
    and 1,

    .. math:: C - (1 - \rho) \frac{C s s' C}{s'Cs}.

    Parameters
    ----------
    function : callable
        Returns the value at a point, and what computes gradient and a positive semidefinite curvature there: points
        that are worse than the last need none.
    start : array of shape (k,)
        Where to begin.
    bounds : sequence of k pairs
        Lower and upper bounds.
    steps : int
        Most steps to take.
    least_gain : float
        A step that would gain less than this ends the search; in a box narrower than 1, less than such a part of it.
    softening : array of shape (k,) or float
        Steps are in :math:`\log(e^x + c)` with these c: far below c a variance moves as itself, and not as its
        logarithm, so that one that the data do not support is gone in a step or two, and comes back from there.

    Examples
    --------
    >>> def function(x):
    ...     return float(x @ x), lambda: (2 * x, 2 * np.eye(2))
    >>> trust_region_newton(function, np.ones(2), [(0.5, 2.0), (-1.0, 1.0)], steps=10, least_gain=1e-9)[0].round(6)
    array([0.5, 0. ])
    """
    soft = np.broadcast_to(np.asarray(softening, dtype=np.float64), start.shape)
    low, high = (_softened(np.array(ends), soft) for ends in zip(*bounds, strict=True))
    point, radius, evaluations = _softened(start, soft), _RADII[0], 1
    value, derivatives = function(_hardened(point, soft))
    gradient, curvature = _softly(derivatives(), point, soft)
    del derivatives
    for _ in range(steps):
        step = _minimum_in_box(curvature, gradient, np.maximum(low - point, -radius), np.minimum(high - point, radius))
        foreseen = -float(gradient @ step + 0.5 * step @ curvature @ step)
        little = least_gain * min(max(radius, _NARROWEST), 1.0)
        if foreseen < 0.0:  # no active set was found
            radius *= 0.25
            continue
        if foreseen < little:
            break
        (found, derivatives), evaluations = function(_hardened(point + step, soft)), evaluations + 1
        gain, radius = value - found, _next_radius(radius, (value - found) / foreseen, float(np.abs(step).max()))
        if gain > 0:
            point, value, before = point + step, found, gradient
        if 0 <= gain < little and foreseen < 3.0 * little:
            break
        if gain > 0:
            gradient, curvature = _softly(derivatives(), point, soft)
            curvature = _flattened(curvature, step, gradient - before)
        del derivatives  # and the matrices it holds
    return _hardened(point, soft), value, evaluations


def _next_radius(radius: float, share: float, length: float) -> float:
    """Return the half width of the next box, by the length of a step and the share of what it was to gain."""
    if share < 0.25:
        return (0.25 if share < 0 else 0.5) * length
    return min(max(radius, 2.0 * length), _RADII[1]) if share > 0.75 else radius


def _softened(x: Floats, soft: Floats) -> Floats:
    return np.logaddexp(x, np.log(soft, out=np.full(x.shape, -np.inf), where=soft > 0))


def _hardened(u: Floats, soft: Floats) -> Floats:
    return np.asarray(u + np.log1p(-np.minimum(soft * np.exp(-u), 1.0 - np.finfo(np.float64).eps)))


def _softly(derivatives: tuple[Floats, Floats], u: Floats, soft: Floats) -> tuple[Floats, Floats]:
    """Return gradient and curvature in softened coordinates."""
    slope = 1.0 + soft * np.exp(-_hardened(u, soft))
    return derivatives[0] * slope, derivatives[1] * np.outer(slope, slope) + _RIDGE * np.eye(u.size)


def _flattened(C: Floats, step: Floats, change: Floats) -> Floats:
    """Return a curvature with less of it along a step, where the gradient changed less than it says."""
    image = C @ step
    along = float(step @ image)
    ratio = min(max(float(step @ change) / along, _FLATTEST), 1.0)
    return np.asarray(C - (1.0 - ratio) / along * np.outer(image, image))


def _minimum_in_box(A: Floats, g: Floats, low: Floats, high: Floats) -> Floats:
    """Return where :math:`g's + s'As / 2` is lowest in a box, by the primal-dual active set method."""
    s, curvature = np.zeros(g.size), np.diag(A)
    fixed, before = np.ones(g.size, dtype=np.bool_), np.zeros(g.size, dtype=np.bool_)
    for _ in range(_ACTIVE_SETS):
        wanted = s - (g + A @ s) / curvature
        s = np.clip(wanted, low, high)
        before, fixed = fixed, s != wanted
        if np.array_equal(before, fixed):
            break
        free = ~fixed
        s[free] = np.linalg.solve(A[np.ix_(free, free)], -(g + A[:, fixed] @ s[fixed])[free])
    return np.clip(s, low, high)

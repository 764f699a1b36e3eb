"""How a posterior is read: in the units of the outcome, as a latent value or as a new observation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from scipy.special import ndtr

from graphmrf.errors import InvalidInputError
from graphmrf.kept import cached_property

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from scipy import sparse

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.field.likelihoods import Likelihood
    from graphmrf.field.posterior import AveragedPosterior, Mixture
    from graphmrf.field.transform import Scale

Of: TypeAlias = Literal["latent", "observation"]

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(21)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()

_ONE_STD = float(ndtr(1.0))
"""Probability of less than one standard deviation above the centre of a normal distribution."""


@dataclass(frozen=True, eq=False)
class Link:
    r"""Latent values :math:`\eta = o + u v` and what is observed of them.

    Examples
    --------
    >>> from graphmrf.field import Mixture
    >>> from graphmrf.field.likelihoods import LIKELIHOODS
    >>> link, certain = Link(LIKELIHOODS["poisson"], 0.0, 1.0), Mixture(np.ones(1), np.zeros((1, 1)), np.zeros((1, 1)))
    >>> [round(float(each[0]), 3) for each in link.observed(certain, [{}], np.array([4.0]))]
    [4.0, 2.0]
    >>> link.quantile(certain, [{}], np.array([4.0]), 0.95)
    array([8.])
    """

    likelihood: Likelihood  # distribution of an observation given the latent value
    # origin, unit: origin and unit of the latent values
    origin: float
    unit: float

    def back(self, v: Floats) -> Floats:
        """Return rates, shares or values from latent values."""
        return self.likelihood.link(self.origin + self.unit * v)

    def _nodes(self, mixture: Mixture) -> Iterator[tuple[int, Floats]]:
        """Yield the number of every member and latent values (k, n) at the nodes of a Gauss rule."""
        for k, (mean, variance) in enumerate(zip(mixture.means, mixture.variances, strict=True)):
            yield k, self.origin + self.unit * (mean + np.sqrt(variance) * _NODES[:, None])

    def expectation(self, mixture: Mixture, function: Callable[[int, Floats], Floats]) -> Floats:
        """Return the expectation of a function of the number of the member and latent values."""
        parts = (mixture.weights[k] * (_WEIGHTS @ function(k, eta)) for k, eta in self._nodes(mixture))
        return np.asarray(sum(parts, start=np.zeros(mixture.means.shape[1])))

    def moments(self, mixture: Mixture) -> tuple[Floats, Floats]:
        """Return centre and spread of the rate, share or value at every node: mean and standard deviation.

        Where there need not be a mean, the median, and half the width of the central 68 %.
        """
        if not self.likelihood.has_mean:
            low, centre, high = (self.back(mixture.quantile(each)) for each in (1.0 - _ONE_STD, 0.5, _ONE_STD))
            return centre, 0.5 * (high - low)
        mean = self.expectation(mixture, lambda _, eta: self.likelihood.link(eta))
        about = self.expectation(mixture, lambda _, eta: (self.likelihood.link(eta) - mean) ** 2)
        return mean, np.sqrt(about)

    def observed(self, mixture: Mixture, members: Sequence[Mapping[str, Any]], size: Floats) -> tuple[Floats, Floats]:
        """Return centre and spread of a new observation at every node: as of `moments`, with its own variance.

        Parameters
        ----------
        mixture : Mixture
            Latent values.
        members : sequence of mapping
            Hyper-parameters of every member.
        size : array of shape (n,)
            Exposure, trials or standard error of every new observation.
        """

        def part(k: int, eta: Floats, place: int) -> Floats:
            return self.likelihood.moments(eta, size, members[k])[place]

        if not self.likelihood.has_mean:
            eta, (centre, spread) = self.origin + self.unit * mixture.quantile(0.5), self.moments(mixture)
            within = sum(w * part(k, eta, 1) for k, w in enumerate(mixture.weights))
            return size * centre, np.sqrt(within + (size * spread) ** 2)
        mean = self.expectation(mixture, lambda k, eta: part(k, eta, 0))
        within = self.expectation(mixture, lambda k, eta: part(k, eta, 1))
        between = self.expectation(mixture, lambda k, eta: (part(k, eta, 0) - mean) ** 2)
        return mean, np.sqrt(within + between)

    def of_draws(self, expected: Floats, within: Floats) -> tuple[Floats, Floats]:
        """Return centre and spread from draws (count, k) of expected observations and of their variances."""
        if self.likelihood.has_mean:
            return expected.mean(axis=0), np.sqrt(within.mean(axis=0) + expected.var(axis=0))
        low, centre, high = np.quantile(expected, [1.0 - _ONE_STD, 0.5, _ONE_STD], axis=0)
        return centre, np.sqrt(np.median(within, axis=0) + (0.5 * (high - low)) ** 2)

    def below(self, mixture: Mixture, members: Sequence[Mapping[str, Any]], size: Floats, value: Floats) -> Floats:
        """Return the probability that a new observation at every node is at most a value."""
        return self.expectation(mixture, lambda k, eta: self.likelihood.below(value, eta, size, members[k]))

    def quantile(self, mixture: Mixture, members: Sequence[Mapping[str, Any]], size: Floats, level: float) -> Floats:
        """Return the value that a new observation at every node is at most with some probability, by bisection."""
        mean, std = self.observed(mixture, members, size)
        if self.likelihood.is_whole:
            mean, std = np.floor(mean), np.floor(std) + 1.0
        below = partial(self.below, mixture, members, size)
        low, high = _beyond(below, level, mean, -std), _beyond(below, level, mean, std)
        precision = 1.0 if self.likelihood.is_whole else 1e-6 * float(std.max())
        while (high - low).max() > precision:
            middle = 0.5 * (low + high)
            middle = np.floor(middle) if self.likelihood.is_whole else middle
            if ((middle <= low) | (middle >= high)).all():  # no number lies between them
                break
            under = self.below(mixture, members, size, middle) < level
            low, high = np.where(under, middle, low), np.where(under, high, middle)
        return np.asarray(high)

    def expected(
        self, values: Floats, members: Ints, h: Sequence[Mapping[str, Any]], size: Floats
    ) -> tuple[Floats, Floats]:
        """Return mean and variance of a new observation given joint draws of latent values and their members."""
        eta, mean, variance = self.origin + self.unit * values, np.empty(values.shape), np.empty(values.shape)
        for k in np.unique(members).tolist():
            mean[members == k], variance[members == k] = self.likelihood.moments(eta[members == k], size, h[k])
        return mean, variance

    def draw(
        self, values: Floats, members: Ints, h: Sequence[Mapping[str, Any]], size: Floats, rng: np.random.Generator
    ) -> Floats:
        """Return a new observation for every one of joint draws of latent values and the members that drew them."""
        eta, drawn = self.origin + self.unit * values, np.empty(values.shape)
        for k in np.unique(members).tolist():
            drawn[members == k] = self.likelihood.draw(eta[members == k], size, h[k], rng)
        return drawn


def _beyond(below: Callable[[Floats], Floats], level: float, start: Floats, step: Floats) -> Floats:
    """Return values on the other side of a quantile, by steps that double."""
    end = start + step
    while (short := ((below(end) < level) == (step > 0)) & (step != 0)).any():
        step = 2.0 * step
        end = np.where(short, end + step, end)
    return end


@dataclass(frozen=True, eq=False)
class AtNodes:
    """A posterior at some nodes."""

    posterior: AveragedPosterior
    nodes: Ints

    @cached_property
    def latent(self) -> Mixture:
        """Distribution of the field."""
        return self.posterior.latent(self.nodes)

    @cached_property
    def outcome(self) -> Mixture:
        """Distribution of the field with noise."""
        return self.posterior.outcome(self.nodes)

    @cached_property
    def values(self) -> Mixture:
        """Distribution of the field with the node's own part, which observations of the node determine."""
        return self.posterior.values(self.nodes)

    @property
    def members(self) -> list[Mapping[str, Any]]:
        """Hyper-parameters of every member."""
        return [each.h for each in self.posterior.members]


@dataclass(frozen=True, eq=False)
class Numbers:
    """Numbers with noise: a new observation is the outcome itself, which labelled nodes keep."""

    scale: Scale
    default: Of = "observation"

    @property
    def unit(self) -> float:
        """What one unit of the field is in the units of the outcome."""
        return self.scale.unit

    @property
    def origin(self) -> float:
        """What the field is at 0, in the same units."""
        return self.scale.origin

    @staticmethod
    def _mixture(at: AtNodes, of: Of) -> Mixture:
        return at.outcome if of == "observation" else at.latent

    def _moments(self, mixture: Mixture) -> tuple[Floats, Floats]:
        mean, variance = mixture.moments
        mean, std = self.scale.moments(mean, np.sqrt(variance))
        if self.scale.power is None:
            return mean, std
        levels = (0.25, 0.5, 0.75, 1.0 - _ONE_STD, _ONE_STD)
        low, centre, high, *ends = (self.scale.back(mixture.quantile(level)) for level in levels)
        likely = (low <= mean) & (mean <= high)
        return np.where(likely, mean, centre), np.where(likely, std, 0.5 * (ends[1] - ends[0]))

    def moments(self, at: AtNodes, of: Of) -> tuple[Floats, Floats]:
        """Return mean and standard deviation.

        Where under a transform the mean is outside the central half of the distribution it is carried by a few extreme
        values, which labels do not determine: there the median, and half the width of the central 68 %.
        """
        return self._moments(self._mixture(at, of))

    def quantile(self, at: AtNodes, of: Of, level: float) -> Floats:
        """Return the value below which every node lies with some probability."""
        return self.scale.back(self._mixture(at, of).quantile(level))

    def above(self, at: AtNodes, of: Of, value: float) -> Floats:
        """Return the probability of more than a value."""
        return 1.0 - self._mixture(at, of).below(self.scale.standardised(value))

    def draw(self, at: AtNodes, of: Of, count: int, rng: np.random.Generator) -> Floats:
        """Return joint draws, shape (count, len(nodes))."""
        draw = at.posterior.draw_outcome if of == "observation" else at.posterior.draw
        return self.scale.back(draw(at.nodes, count, rng))

    def leave_one_out(self, posterior: AveragedPosterior) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of every label given all others."""
        return self._moments(posterior.leave_one_out())


@dataclass(frozen=True, eq=False)
class Observed:
    """Counts, shares and measurements: the value of a node lies behind its observations."""

    link: Link  # from latent values to observations
    size: Floats  # (n,): exposure, trials or standard error of a new observation at every node, NaN where unknown
    seen: Floats  # (m,): the same of all rows of every labelled node together
    default: Of = "latent"

    @property
    def unit(self) -> float:
        """What one unit of the field is on the scale of the link."""
        return self.link.unit

    @property
    def origin(self) -> float:
        """What the field is at 0, on the scale of the link."""
        return self.link.origin

    def _sizes(self, nodes: Ints) -> Floats:
        known = nodes[nodes < self.size.size]
        found = self.size[known]
        if known.size < nodes.size or np.isnan(found).any():
            raise InvalidInputError(
                "a new observation needs its exposure, trials or standard error, which is unknown at some nodes; pass "
                "one for every node to fit, or ask for of='latent'"
            )
        return found

    def moments(self, at: AtNodes, of: Of) -> tuple[Floats, Floats]:
        """Return mean and standard deviation."""
        if of == "latent":
            return self.link.moments(at.values)
        return self.link.observed(at.values, at.members, self._sizes(at.nodes))

    def quantile(self, at: AtNodes, of: Of, level: float) -> Floats:
        """Return the value below which every node lies with some probability."""
        if of == "latent":
            return self.link.back(at.values.quantile(level))
        return self.link.quantile(at.values, at.members, self._sizes(at.nodes), level)

    def above(self, at: AtNodes, of: Of, value: float) -> Floats:
        """Return the probability of more than a value."""
        if of == "latent":
            eta = self.link.likelihood.inverse_link(value)
            return 1.0 - at.values.below((eta - self.link.origin) / self.link.unit)
        sizes = self._sizes(at.nodes)
        return 1.0 - self.link.below(at.values, at.members, sizes, np.full(at.nodes.size, value))

    def draw(self, at: AtNodes, of: Of, count: int, rng: np.random.Generator) -> Floats:
        """Return joint draws, shape (count, len(nodes))."""
        values, members = at.posterior.draw_values(at.nodes, count, rng)
        if of == "latent":
            return self.link.back(values)
        return self.link.draw(values, members, at.members, self._sizes(at.nodes), rng)

    def sums(self, at: AtNodes, groups: sparse.csr_array, ends: Floats, count: int, rng: np.random.Generator) -> Floats:
        """Return centre, spread and quantiles of sums over groups (k, len(nodes)), shape (2 + len(ends), k).

        Of counts and successes new observations, of measurements the values that are measured.
        """
        values, members = at.posterior.draw_values(at.nodes, count, rng)
        if not self.link.likelihood.is_whole:
            expected, within = self.link.back(values), 0.0 * values
            drawn = expected
        else:
            sizes = self._sizes(at.nodes)
            expected, within = self.link.expected(values, members, at.members, sizes)
            drawn = self.link.draw(values, members, at.members, sizes, rng)
        found = self.link.of_draws(expected @ groups.T, within @ groups.T)
        return np.array([*found, *np.quantile(drawn @ groups.T, ends, axis=0)])

    def leave_one_out(self, posterior: AveragedPosterior) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of all rows of every labelled node together given all other nodes."""
        members = [each.h for each in posterior.members]
        return self.link.observed(posterior.values_without_own(), members, self.seen)

    def of_others(self, at: AtNodes, own: Bools) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of the rows of some labelled nodes by a posterior without them."""
        return self.link.observed(at.values, at.members, self.seen[own])


Reading: TypeAlias = Numbers | Observed
"""From the field to the outcome: `of` is "latent" for the field of numbers, or the rate, share or value behind
observations, and "observation" for a new observation."""

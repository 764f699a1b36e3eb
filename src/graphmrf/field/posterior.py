"""Posteriors: the protocol of both representations, their average over hyper-parameters, and normal mixtures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from scipy.special import logsumexp, ndtr, ndtri

from graphmrf.caching import cached_property
from graphmrf.field.noise import NORMAL
from graphmrf.field.space import NOISE

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.field.noise import Noise
    from graphmrf.field.observations import Observations

_BISECTIONS = 40
CONSTANT = "constant"  # name of the constant among the parts of a mean


class Dual(NamedTuple):
    """Products with the inverse covariance of the observations."""

    times: Floats
    """It times the values, shape (m,)."""
    diagonal: Floats
    """Its diagonal, shape (m,)."""
    unshared: Floats
    """Variance of every observation that none shares with another: noise, and what no column explains, (m,)."""


class Posterior(Protocol):
    """The latent field given observations; callers do not ask which representation it is.

    Dense (`DensePosterior`), sparse (`SparsePosterior`), or an average of them (`AveragedPosterior`).
    """

    @property
    def field(self) -> Any:
        """The field in its representation; its `normal` are what is given, or working observations of that."""

    @property
    def h(self) -> Mapping[str, Any]:
        """The hyper-parameters."""

    def moments(self, nodes: Ints) -> tuple[Floats, Floats]:
        """Return mean and variance of the latent field at some nodes."""

    def parts(self, nodes: Ints) -> Mapping[str, Floats]:
        """Return the means of the constant and of every term at some nodes, which add up to that of the field."""

    def covariance_times(self, nodes: Ints, Z: Floats, terms: Collection[str] | None = None) -> Floats:
        """Return the joint covariance of some nodes, or of the sum of some terms, times columns (len(nodes), k)."""

    def draw(self, nodes: Ints, count: int, rng: np.random.Generator) -> Floats:
        """Return joint draws, shape (count, len(nodes))."""

    def dual(self) -> Dual:
        """Return what the inverse covariance of the observations says of each."""

    def given(self, observations: Observations) -> Posterior:
        """Return the posterior given other observations, at the same hyper-parameters."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture of normal distributions for every one of some nodes.

    Examples
    --------
    >>> mixture = Mixture(np.array([0.5, 0.5]), np.array([[-3.0], [3.0]]), np.ones((2, 1)))
    >>> mean, variance = mixture.moments
    >>> float(mean[0]), float(variance[0]), round(float(mixture.quantile(0.75)[0]), 3)
    (0.0, 10.0, 3.0)
    """

    weights: Floats  # (k,): weight of every member; they add up to 1
    means: Floats  # (k, n): mean of every member
    variances: Floats  # (k, n): its variance

    @property
    def moments(self) -> tuple[Floats, Floats]:
        """Mean, and variance: the mean variance and the variance of the means."""
        mean = self.weights @ self.means
        return mean, self.weights @ (self.variances + (self.means - mean) ** 2)

    def log_density(self, values: Floats) -> Floats:
        """Return the log density of one value at every node."""
        logs = -0.5 * ((values - self.means) ** 2 / self.variances + np.log(2.0 * np.pi * self.variances))
        return np.asarray(logsumexp(logs, axis=0, b=self.weights[:, None]))

    def below(self, values: Floats | float) -> Floats:
        """Return the probability that every node is at most a value."""
        stds = np.sqrt(np.maximum(self.variances, 1e-300))
        return np.asarray(self.weights @ ndtr((values - self.means) / stds))

    def quantile(self, level: float) -> Floats:
        """Return the value below which every node lies with some probability."""
        stds = np.sqrt(self.variances)
        each = self.means + float(ndtri(level)) * stds
        low, high = each.min(axis=0), each.max(axis=0)
        for _ in range(_BISECTIONS if len(self.weights) > 1 else 0):
            middle = 0.5 * (low + high)
            below = self.weights @ ndtr((middle - self.means) / stds) < level
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(0.5 * (low + high))


@dataclass(frozen=True, eq=False)
class AveragedPosterior:
    """A list of posteriors, one for every member of the average over hyper-parameters and imputed features."""

    members: Sequence[Posterior]  # the first is the mode
    likelihood: Noise = NORMAL  # distribution of an observation about the latent field
    shares: Floats | None = None  # (k,): weights of the members up to a factor; the same for all if None

    @cached_property
    def weights(self) -> Floats:
        """Weight of every member."""
        shares = np.ones(len(self.members)) if self.shares is None else self.shares
        return np.asarray(shares / shares.sum())

    @property
    def h(self) -> Mapping[str, Any]:
        """Hyper-parameters of the mode."""
        return self.members[0].h

    @property
    def noises(self) -> Floats:
        """Variance of the noise of a usual observation, of every member."""
        return np.array([each.h[NOISE] for each in self.members])

    @property
    def noise(self) -> float:
        """Mean variance of the noise, tails included."""
        return float(self.weights @ self.noises) * self.likelihood.inflation

    def latent(self, nodes: Ints) -> Mixture:
        """Return the distribution of the latent field at some nodes."""
        means, variances = zip(*(each.moments(nodes) for each in self.members), strict=True)
        return Mixture(self.weights, np.array(means), np.array(variances))

    def outcome(self, nodes: Ints) -> Mixture:
        """Return the distribution of a new observation at some nodes."""
        return self._with_noise(self.latent(nodes))

    def values(self, nodes: Ints) -> Mixture:
        """Return the distribution of the value of some nodes, that is of the field and the node's own part.

        At observed nodes it is known up to the error of their observations, each node observed at most once.
        """
        found = self.latent(nodes)
        variances = found.variances + self.noises[:, None]
        place = np.searchsorted(self.members[0].field.normal.nodes, nodes)
        seen = self._observed(nodes)
        for k, each in enumerate(self.members):
            mean, variance = _values_at_observations(each)
            found.means[k, seen], variances[k, seen] = mean[place[seen]], variance[place[seen]]
        return Mixture(self.weights, found.means, np.maximum(variances, 0.0))

    def _observed(self, nodes: Ints) -> Bools:
        return np.isin(nodes, self.members[0].field.normal.nodes)

    def draw_values(self, nodes: Ints, count: int, rng: np.random.Generator) -> tuple[Floats, Ints]:
        """Return joint draws of the values of some nodes, shape (count, len(nodes)), and the member of each."""
        members = np.repeat(np.arange(len(self.members)), rng.multinomial(count, self.weights))
        drawn, seen = np.empty((count, nodes.size)), self._observed(nodes)
        for k in np.unique(members).tolist():
            each, mine, noise = self.members[k], members == k, self.noises[k]
            given = each.field.normal
            place = np.searchsorted(given.nodes, nodes[seen])
            field = each.draw(nodes, int(mine.sum()), rng)
            gain, variance = np.zeros(nodes.size), np.full(nodes.size, noise)
            own, error = noise / given.weights[place], np.broadcast_to(given.error, given.z.shape)[place]
            gain[seen], variance[seen] = own / (own + error), own * error / (own + error)
            target = np.zeros(nodes.size)
            target[seen] = given.z[place]
            drawn[mine] = field + gain * (target - field) + np.sqrt(variance) * rng.standard_normal(field.shape)
        order = rng.permutation(count)
        return drawn[order], members[order]

    def values_without_own(self) -> Mixture:
        """Return the distribution of the value of every observed node given the observations of all others."""
        means, variances = [], []
        for each in self.members:
            mean, variance = _cavity(each)
            means.append(mean)
            variances.append(variance - each.field.normal.error)
        return Mixture(self.weights, np.array(means), np.maximum(variances, 0.0))

    def _with_noise(self, latent: Mixture) -> Mixture:
        shares, ratios = self.likelihood.components
        weights = np.outer(shares, self.weights).ravel()
        variances = np.concatenate([latent.variances + ratio * self.noises[:, None] for ratio in ratios])
        return Mixture(weights, np.tile(latent.means, (len(shares), 1)), np.maximum(variances, 1e-300))

    def moments(self, nodes: Ints) -> tuple[Floats, Floats]:
        """Return mean and variance of the latent field at some nodes."""
        return self.latent(nodes).moments

    def parts(self, nodes: Ints) -> dict[str, Floats]:
        """Return the mean of every term at some nodes."""
        found = [each.parts(nodes) for each in self.members]
        return {name: self.weights @ [each[name] for each in found] for name in found[0] if name != CONSTANT}

    def covariance_times(self, nodes: Ints, Z: Floats) -> Floats:
        """Return the joint covariance of some nodes times columns, that between the members' means included."""
        means = np.array([each.moments(nodes)[0] for each in self.members])
        about = means - self.weights @ means
        within = [w * each.covariance_times(nodes, Z) for w, each in zip(self.weights, self.members, strict=True)]
        return np.asarray(np.sum(within, axis=0) + (about.T * self.weights) @ (about @ Z))

    def draw(self, nodes: Ints, count: int, rng: np.random.Generator) -> Floats:
        """Return joint draws, shape (count, len(nodes)), in random order of the members."""
        counts = rng.multinomial(count, self.weights)
        drawn = [each.draw(nodes, int(k), rng) for each, k in zip(self.members, counts, strict=True) if k]
        return rng.permutation(np.concatenate(drawn))

    def draw_outcome(self, nodes: Ints, count: int, rng: np.random.Generator) -> Floats:
        """Return joint draws of new observations, one at each of some nodes."""
        counts, drawn = rng.multinomial(count, self.weights), [np.empty((0, nodes.size))]
        for each, noise, k in zip(self.members, self.noises, counts.tolist(), strict=True):
            if k:
                errors = self.likelihood.draw_noise((k, nodes.size), rng) * np.sqrt(noise)
                drawn.append(each.draw(nodes, k, rng) + errors)
        return rng.permutation(np.concatenate(drawn))

    def given(self, observations: Observations) -> AveragedPosterior:
        """Return the posterior given other observations, with the same members."""
        return AveragedPosterior([each.given(observations) for each in self.members], self.likelihood, self.shares)

    def leave_one_out(self) -> Mixture:
        r"""Return the distribution of every observation given all others, at the same hyper-parameters.

        With the covariance `K` of the observations `z`, mean and variance are
        :math:`z_i - (K^{-1} z)_i / (K^{-1})_{ii}` and :math:`1 / (K^{-1})_{ii}`, noise included.
        """
        means, variances = [], []
        for each in self.members:
            mean, variance = _cavity(each)
            means.append(mean)
            variances.append(variance - each.h[NOISE] / each.field.normal.weights)
        return self._with_noise(Mixture(self.weights, np.array(means), np.array(variances)))


def _cavity(posterior: Posterior) -> tuple[Floats, Floats]:
    """Return mean and variance, noise included, of every observation given all others."""
    a, precision, _ = posterior.dual()
    return posterior.field.normal.z - a / precision, 1.0 / precision


def _values_at_observations(posterior: Posterior) -> tuple[Floats, Floats]:
    """Return mean and variance of the observed values: the observations without their errors."""
    a, precision, _ = posterior.dual()
    given = posterior.field.normal
    return given.z - given.error * a, given.error - given.error**2 * precision

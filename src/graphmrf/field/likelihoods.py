r"""Likelihoods: the distribution of an observation given the latent value :math:`\eta` of its node.

=====================  =====================  =======================================  ===================
name                   size of a row          distribution                             predicted
=====================  =====================  =======================================  ===================
`poisson`              exposure :math:`E`     Poisson of mean :math:`E e^\eta`         rate :math:`e^\eta`
`negative-binomial`    exposure :math:`E`     the same, variance :math:`\mu+\mu^2/r`   rate :math:`e^\eta`
`binomial`             trials :math:`m`       binomial, share :math:`1/(1+e^{-\eta})`  share
`bernoulli`            1                      the same of one trial                    probability
`ordinal`              1                      class above cut `k` of :math:`\eta`     :math:`\eta`
                                              plus logistic noise
`measured`             standard error         normal, mean :math:`\eta`                value :math:`\eta`
`repeated`             relative error         the same, times an unknown error         value :math:`\eta`
=====================  =====================  =======================================  ===================

A likelihood is one class with no data of its own: every method takes latent values, values, sizes and hyper-parameters
as arrays that broadcast. A new one is one class and one row in `LIKELIHOODS`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import betainc, betaln, expit, gammaincc, gammaln, kl_div, log_expit, logit, ndtr

from graphmrf.field.space import TOTAL, Shape

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphmrf._typing import Floats, Ints

    Values = Mapping[str, Any]

_UNKNOWN = 2.0
"""Log spread of a variance of which nothing is known: within a factor of 50 in two cases of three."""

_LARGEST = 300.0
"""Largest latent value that is exponentiated."""

_MOST = 9e18
"""Largest mean of a count that NumPy draws: the largest whole number of 64 bits is little more."""

_SMALLEST = math.exp(-_LARGEST)
"""Least predicted count of a deviance, which is infinite where none is expected and some are counted."""


def _deviance(y: Floats, mean: Floats) -> Floats:
    return np.asarray(2.0 * kl_div(y, np.where(y > 0, np.maximum(mean, _SMALLEST), mean)))


class Expansion(NamedTuple):
    r"""Log density of every row and its derivatives in :math:`\eta`; `curvature` is minus the second."""

    log_density: Floats
    slope: Floats
    curvature: Floats
    third: Floats


class Likelihood:
    """The distribution of an observation given a latent value."""

    name = ""
    takes = ""  # option of `fit` with the size of every row, `exposure` or `trials`; empty where users cannot name it
    shapes: tuple[Shape, ...] = ()  # its own hyper-parameters
    has_own = True  # whether a node has a part of its own, which neighbours and features do not predict
    is_whole = True  # whether observations are whole numbers
    # whether the predicted quantity has a mean however uncertain the latent value is; that of a rate is infinite where
    # the variance of its logarithm is uncertain, and depends on the most extreme draws where it is finite
    has_mean = True
    unit = 1.0  # largest standard deviation of latent values that is assumed where observations determine none
    has_unit = True  # whether observations determine the spread of latent values; 0 and 1, or classes, do not

    @property
    def title(self) -> str:
        """Its name in a summary."""
        return self.name

    @property
    def spread(self) -> float:
        """Log spread of the prior of the total variance: wide where nothing shows how far latent values spread."""
        return TOTAL[1] if self.has_unit else _UNKNOWN

    def expand(self, eta: Floats, y: Floats, size: Floats, h: Values) -> Expansion:
        """Return the log density of every row and its derivatives."""
        raise NotImplementedError

    def start(self, y: Floats, size: Floats) -> Floats:
        """Return a latent value near that of greatest density of every row."""
        raise NotImplementedError

    def pooled(self, y: Floats, size: Floats) -> float:
        """Return the latent value of all rows were they alike."""
        raise NotImplementedError

    def shape_estimates(self, y: Floats, size: Floats) -> dict[str, float]:  # noqa: ARG002 - none of its own
        """Return estimates of its own hyper-parameters, by name, where a search from their prior medians may fail."""
        return {}

    def link(self, eta: Floats) -> Floats:
        """Return the quantity that is predicted, an increasing function of the latent value."""
        raise NotImplementedError

    def inverse_link(self, value: float) -> float:
        """Return the latent value of a quantity that is predicted, infinite at the ends of its range and beyond."""
        raise NotImplementedError

    def total(self, place: Ints, y: Floats, size: Floats) -> tuple[Floats, Floats]:
        """Return value and size of the rows of every place taken together: their sums."""
        return np.bincount(place, y).astype(np.float64), np.bincount(place, size).astype(np.float64)

    def moments(self, eta: Floats, size: Floats, h: Values) -> tuple[Floats, Floats]:
        """Return mean and variance of a new observation."""
        raise NotImplementedError

    def deviance(self, y: Floats, mean: Floats, size: Floats) -> Floats:  # noqa: ARG002 - of numbers a squared error
        """Return the deviance of every observation from a predicted mean: the loss that predictions are scored by."""
        return np.asarray((y - mean) ** 2)

    def information(self, eta: Floats, size: Floats, h: Values) -> Floats:
        """Return the expected information of a new observation about its latent value."""
        return self.expand(eta, self.moments(eta, size, h)[0], size, h).curvature  # linear in y

    def below(self, value: Floats, eta: Floats, size: Floats, h: Values) -> Floats:
        """Return the probability that a new observation is at most a value."""
        raise NotImplementedError

    def draw(self, eta: Floats, size: Floats, h: Values, rng: np.random.Generator) -> Floats:
        """Return new observations."""
        raise NotImplementedError


class _Counts(Likelihood):
    """Counts with a logarithmic link."""

    takes = "exposure"
    has_mean = False

    def start(self, y: Floats, size: Floats) -> Floats:
        """Return the logarithm of the rate, of half a case more."""
        return np.asarray(np.log((y + 0.5) / size))

    def pooled(self, y: Floats, size: Floats) -> float:
        """Return the logarithm of the overall rate."""
        return float(np.log(max(y.sum(), 0.5) / size.sum()))

    def link(self, eta: Floats) -> Floats:
        """Return the rate."""
        return np.exp(np.minimum(eta, _LARGEST))

    def deviance(self, y: Floats, mean: Floats, size: Floats) -> Floats:  # noqa: ARG002 - it is in the mean
        """Return the Poisson deviance, for all counts, so that likelihoods can be compared."""
        return _deviance(y, mean)

    def inverse_link(self, value: float) -> float:
        """Return the logarithm."""
        return math.log(value) if value > 0 else -math.inf


class Poisson(_Counts):
    """Counts of independent events."""

    name = "poisson"

    def expand(self, eta: Floats, y: Floats, size: Floats, h: Values) -> Expansion:  # noqa: ARG002 - none of its own
        """Return the log density of every row and its derivatives."""
        mean = size * self.link(eta)
        return Expansion(y * (eta + np.log(size)) - mean - gammaln(y + 1.0), y - mean, mean, -mean)

    def moments(self, eta: Floats, size: Floats, h: Values) -> tuple[Floats, Floats]:  # noqa: ARG002
        """Return mean and variance of a new count."""
        mean = size * self.link(eta)
        return mean, mean

    def below(self, value: Floats, eta: Floats, size: Floats, h: Values) -> Floats:  # noqa: ARG002
        """Return the probability of at most so many."""
        found = gammaincc(np.floor(np.maximum(value, 0.0)) + 1.0, size * self.link(eta))
        return np.where(value < 0, 0.0, found)

    def draw(self, eta: Floats, size: Floats, h: Values, rng: np.random.Generator) -> Floats:  # noqa: ARG002
        """Return new counts."""
        return rng.poisson(np.minimum(size * self.link(eta), _MOST)).astype(np.float64)


class NegativeBinomial(_Counts):
    """Counts whose variance exceeds their mean: Poisson with gamma rates of shape `negative-binomial.size`."""

    name = "negative-binomial"
    shapes = (Shape("negative-binomial.size", 10.0, 1.5),)
    has_own = False

    def shape_estimates(self, y: Floats, size: Floats) -> dict[str, float]:
        """Return the size by moments about the pooled rate, where that is below its prior median.

        There a search from the median may end where a rough graph field stands for what differs from node to node.
        """
        (shape,) = self.shapes
        mean = size * self.link(np.array(self.pooled(y, size)))
        excess = float((np.square(y - mean) - mean).sum() / np.square(mean).sum())
        return {shape.name: 1.0 / excess} if excess * shape.median > 1.0 else {}

    @staticmethod
    def _size(h: Values) -> float:
        return float(h["negative-binomial.size"][0])

    def expand(self, eta: Floats, y: Floats, size: Floats, h: Values) -> Expansion:
        """Return the log density of every row and its derivatives."""
        mean, r = size * self.link(eta), self._size(h)
        share, total = mean / (r + mean), y + r
        constant = -betaln(r, y + 1.0) - np.log(total)
        log_density = constant + y * np.log(np.maximum(share, 1e-300)) - r * np.log1p(mean / r)
        curvature = total * share * (1.0 - share)
        return Expansion(log_density, y - total * share, curvature, -curvature * (1.0 - 2.0 * share))

    def moments(self, eta: Floats, size: Floats, h: Values) -> tuple[Floats, Floats]:
        """Return mean and variance of a new count."""
        mean = size * self.link(eta)
        return mean, mean + mean**2 / self._size(h)

    def below(self, value: Floats, eta: Floats, size: Floats, h: Values) -> Floats:
        """Return the probability of at most so many."""
        r, mean = self._size(h), size * self.link(eta)
        found = betainc(r, np.floor(np.maximum(value, 0.0)) + 1.0, r / (r + mean))
        return np.where(value < 0, 0.0, found)

    def draw(self, eta: Floats, size: Floats, h: Values, rng: np.random.Generator) -> Floats:
        """Return new counts."""
        r = self._size(h)
        return rng.poisson(np.minimum(rng.gamma(r, size * self.link(eta) / r), _MOST)).astype(np.float64)


@dataclass(frozen=True)
class Binomial(Likelihood):
    """Successes among trials with a logistic link; of one trial a part of each node's own cannot be seen."""

    name: str = "binomial"
    takes: str = "trials"
    has_own: bool = True
    has_unit: bool = True

    def expand(self, eta: Floats, y: Floats, size: Floats, h: Values) -> Expansion:  # noqa: ARG002 - none of its own
        """Return the log density of every row and its derivatives."""
        share = expit(eta)
        constant = -betaln(y + 1.0, size - y + 1.0) - np.log1p(size)
        log_density = constant + y * eta - size * np.logaddexp(0.0, eta)
        curvature = size * share * (1.0 - share)
        return Expansion(log_density, y - size * share, curvature, -curvature * (1.0 - 2.0 * share))

    def start(self, y: Floats, size: Floats) -> Floats:
        """Return the logit of the share, of half a success and half a failure more."""
        return np.asarray(np.log((y + 0.5) / (size - y + 0.5)))

    def pooled(self, y: Floats, size: Floats) -> float:
        """Return the logit of the overall share."""
        return float(logit((y.sum() + 0.5) / (size.sum() + 1.0)))

    def link(self, eta: Floats) -> Floats:
        """Return the share."""
        return np.asarray(expit(eta))

    def inverse_link(self, value: float) -> float:
        """Return the logit."""
        return float(logit(min(max(value, 0.0), 1.0)))

    def moments(self, eta: Floats, size: Floats, h: Values) -> tuple[Floats, Floats]:  # noqa: ARG002
        """Return mean and variance of new successes."""
        share = expit(eta)
        return size * share, size * share * (1.0 - share)

    def deviance(self, y: Floats, mean: Floats, size: Floats) -> Floats:
        """Return the binomial deviance."""
        return _deviance(y, mean) + _deviance(size - y, size - mean)

    def below(self, value: Floats, eta: Floats, size: Floats, h: Values) -> Floats:  # noqa: ARG002
        """Return the probability of at most so many."""
        k = np.clip(np.floor(value), 0.0, None)
        found = betainc(np.maximum(size - k, 1e-9), k + 1.0, expit(-eta))
        return np.where(value < 0, 0.0, np.where(k >= size, 1.0, found))

    def draw(self, eta: Floats, size: Floats, h: Values, rng: np.random.Generator) -> Floats:  # noqa: ARG002
        """Return new successes."""
        return rng.binomial(np.round(size).astype(np.int64), expit(eta)).astype(np.float64)


@dataclass(frozen=True)
class Ordinal(Likelihood):
    r"""Ordered classes 0, 1, ...: from `k` on with probability :math:`1 / (1 + e^{c_k - \eta})`, cuts `c` rising."""

    first: float = 0.0  # the first cut
    gaps: tuple[float, ...] = ()  # prior medians of the distances between further cuts, which are hyper-parameters
    name: str = "ordinal"
    has_own: bool = False
    has_unit: bool = False

    @classmethod
    def of(cls, y: Floats, weight: Floats | None = None) -> Ordinal:
        """Return the likelihood whose cuts have the shares of the classes where the latent value is 0."""
        counts = np.bincount(y.astype(np.int64), weight, minlength=2) + 0.5
        cuts = -logit(np.cumsum(counts[::-1])[::-1][1:] / counts.sum())
        return cls(float(cuts[0]), tuple(np.diff(cuts).tolist()))

    @property
    def shapes(self) -> tuple[Shape, ...]:  # type: ignore[override]  # of the instance
        """Return the distances between cuts."""
        return tuple(Shape(f"ordinal.gap {k}", gap, 1.0) for k, gap in enumerate(self.gaps, 2))

    def _cuts(self, h: Values) -> Floats:
        """Return minus infinity, the cuts, infinity."""
        gaps = [float(h[shape.name][0]) for shape in self.shapes]
        return np.array([-np.inf, *np.cumsum([self.first, *gaps]), np.inf])

    def expand(self, eta: Floats, y: Floats, size: Floats, h: Values) -> Expansion:  # noqa: ARG002 - always 1
        """Return the log density of every row and its derivatives."""
        cuts, k = self._cuts(h), y.astype(np.int64)
        low, high = cuts[k], cuts[k + 1]
        log_density = log_expit(eta - low) + log_expit(high - eta) + np.log(-np.expm1(low - high))
        a, b = expit(eta - low), expit(eta - high)
        p, q = a * (1.0 - a), b * (1.0 - b)
        return Expansion(log_density, 1.0 - a - b, p + q, -p * (1.0 - 2.0 * a) - q * (1.0 - 2.0 * b))

    def start(self, y: Floats, size: Floats) -> Floats:  # noqa: ARG002
        """Return the middle between the cuts of a class, one beyond the last."""
        cuts = np.cumsum([self.first, *self.gaps])
        ends = np.array([cuts[0] - 1.0, *cuts, cuts[-1] + 1.0])
        return np.asarray(0.5 * (ends[y.astype(np.int64)] + ends[y.astype(np.int64) + 1]))

    def pooled(self, y: Floats, size: Floats) -> float:  # noqa: ARG002
        """Return 0, where the cuts have the shares of the classes."""
        return 0.0

    def total(self, place: Ints, y: Floats, size: Floats) -> tuple[Floats, Floats]:  # noqa: ARG002
        """Return the class of the rows of every place: the one nearest to their mean."""
        count = np.bincount(place).astype(np.float64)
        return np.round(np.bincount(place, y) / count), np.ones(count.size)

    def link(self, eta: Floats) -> Floats:
        """Return the latent value itself."""
        return np.asarray(eta)

    def inverse_link(self, value: float) -> float:
        """Return the latent value itself."""
        return value

    def moments(self, eta: Floats, size: Floats, h: Values) -> tuple[Floats, Floats]:  # noqa: ARG002
        """Return mean and variance of the number of the class."""
        above = [expit(eta - cut) for cut in self._cuts(h)[1:-1]]
        mean = np.sum(above, axis=0)
        return mean, np.sum([(2 * k + 1) * each for k, each in enumerate(above)], axis=0) - mean**2

    def information(self, eta: Floats, size: Floats, h: Values) -> Floats:
        """Return the expected information of a new class about its latent value."""
        found = [self.expand(eta, np.full(eta.shape, float(k)), size, h) for k in range(len(self.gaps) + 2)]
        return np.asarray(sum(np.exp(each.log_density) * each.curvature for each in found))

    def below(self, value: Floats, eta: Floats, size: Floats, h: Values) -> Floats:  # noqa: ARG002
        """Return the probability of a class of at most some number."""
        cuts = self._cuts(h)
        return np.asarray(expit(cuts[np.clip(np.floor(value).astype(np.int64) + 1, 0, cuts.size - 1)] - eta))

    def draw(self, eta: Floats, size: Floats, h: Values, rng: np.random.Generator) -> Floats:  # noqa: ARG002
        """Return numbers of classes."""
        noisy = eta + rng.logistic(size=eta.shape)
        return np.searchsorted(self._cuts(h)[1:-1], noisy).astype(np.float64)


@dataclass(frozen=True)
class Measured(Likelihood):
    """Numbers with known standard errors, or with errors known up to a factor of about `typical`."""

    name: str = "measured"
    typical: float | None = None
    is_whole: bool = False
    unit: float = np.inf

    @property
    def title(self) -> str:
        """Its name in a summary."""
        return f"gaussian, {'known standard errors' if self.typical is None else 'several values of a node'}"

    @property
    def shapes(self) -> tuple[Shape, ...]:  # type: ignore[override]  # of the instance
        """Return the factor, where it is unknown."""
        return () if self.typical is None else (Shape("repeated.error", self.typical, 1.0),)

    def _std(self, size: Floats, h: Values) -> Floats:
        return size if self.typical is None else np.asarray(size * h["repeated.error"][0])

    def expand(self, eta: Floats, y: Floats, size: Floats, h: Values) -> Expansion:
        """Return the log density of every row and its derivatives."""
        variance = self._std(size, h) ** 2
        log_density = -0.5 * ((y - eta) ** 2 / variance + np.log(2.0 * np.pi * variance))
        return Expansion(log_density, (y - eta) / variance, 1.0 / variance + 0.0 * eta, 0.0 * eta)

    def start(self, y: Floats, size: Floats) -> Floats:  # noqa: ARG002 - the value whatever its error
        """Return the values."""
        return y

    def pooled(self, y: Floats, size: Floats) -> float:
        """Return the mean weighted by precision."""
        return float(np.average(y, weights=(size.min() / size) ** 2))

    def link(self, eta: Floats) -> Floats:
        """Return the value itself."""
        return np.asarray(eta)

    def inverse_link(self, value: float) -> float:
        """Return the value itself."""
        return value

    def total(self, place: Ints, y: Floats, size: Floats) -> tuple[Floats, Floats]:
        """Return the mean of every place, weighted by precision, and its standard error."""
        precision = np.bincount(place, size**-2.0)
        return np.bincount(place, y * size**-2.0) / precision, precision**-0.5

    def moments(self, eta: Floats, size: Floats, h: Values) -> tuple[Floats, Floats]:
        """Return mean and variance of a new measurement."""
        return eta, self._std(size, h) ** 2 + 0.0 * eta

    def below(self, value: Floats, eta: Floats, size: Floats, h: Values) -> Floats:
        """Return the probability of at most a value."""
        return np.asarray(ndtr((value - eta) / self._std(size, h)))

    def draw(self, eta: Floats, size: Floats, h: Values, rng: np.random.Generator) -> Floats:
        """Return new measurements."""
        return np.asarray(eta + self._std(size, h) * rng.standard_normal(np.broadcast(eta, size).shape))


LIKELIHOODS: dict[str, Likelihood] = {
    each.name: each
    for each in (
        Poisson(),
        NegativeBinomial(),
        Binomial(),
        Binomial("bernoulli", takes="", has_own=False, has_unit=False),
        Measured(),
    )
}
"""All likelihoods by name."""

r"""Observations: rows that point to nodes. A node may have none, one or several.

Inference sees observations through working observations: a value and the variance of its error for every labelled
node. Numbers with normal noise are their own. All others are replaced by those whose Gaussian posterior is Laplace's
approximation around the mode: with :math:`\ell_i` the log density of the rows of a node, latent value `v`,
:math:`W_i = -\ell_i''(v_i)`,

.. math:: z_i = v_i + \ell_i'(v_i) / W_i, \quad \text{variance } 1 / W_i, \qquad
          \log p(y) \approx \log N(z; 0, \Sigma) + \textstyle\sum_i [\ell_i(v_i) - \log N(z_i; v_i, 1 / W_i)]

with :math:`\Sigma` the prior covariance plus :math:`1 / W`. The mode moves with hyper-parameters: their derivative has
the further part :math:`u' (\partial K) a` with :math:`a = \Sigma^{-1} z`, :math:`u = \Sigma^{-1} (s / W)`,
:math:`s_i = -\tfrac12 V_i W_i'` and posterior variances `V`. For normal errors one step is exact and `s` is 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from graphmrf.caching import cached_property
from graphmrf.errors import ConvergenceError
from graphmrf.field.likelihoods import Expansion
from graphmrf.field.space import TOTAL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.field.likelihoods import Likelihood
    from graphmrf.field.space import Shape

    Values: TypeAlias = Mapping[str, Any]
    DualAt: TypeAlias = Callable[["Observations"], Floats | None]

STEPS = 100
"""Most Newton steps towards the mode."""

_NEAR = 1e-6
"""Gain in log posterior for every node of a Newton step that ends the search: convergence is quadratic."""

_LEAST = 1e-10
"""Least precision of a working observation, in units of the latent value."""

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(11)

_STEP = 1e-4
"""Step of derivatives by the logarithm of a likelihood's own hyper-parameter."""


@dataclass(frozen=True, eq=False)
class Observations:
    """Standardised values at nodes."""

    nodes: Ints  # (m,): node of every observation
    z: Floats  # (m,): its value, standardised
    weights: Floats  # (m,): precision of its noise over that of a usual observation
    error: Floats | float = 0.0  # (m,): variance of an error of known size on top of the noise

    @classmethod
    def of(cls, nodes: Ints, z: Floats) -> Observations:
        """Return observations with the same noise."""
        return cls(nodes, z, np.ones(nodes.size))

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """Hyper-parameters of the likelihood: none besides the noise."""
        return ()

    @property
    def has_own(self) -> bool:
        """Whether there is noise of unknown size: always."""
        return True

    @property
    def spread(self) -> float:
        """Log spread of the prior of the total variance."""
        return TOTAL[1]

    def part(self, chosen: Ints | Bools) -> Observations:
        """Return some of the observations."""
        error = np.broadcast_to(self.error, self.nodes.shape)[chosen]
        return Observations(self.nodes[chosen], self.z[chosen], self.weights[chosen], error)

    def at(self, nodes: Ints) -> Observations:
        """Return the same observations at other nodes."""
        return replace(self, nodes=nodes)

    def weighted(self, weights: Floats) -> Observations:
        """Return the same with other weights."""
        return replace(self, weights=weights)

    def variance(self, noise: float) -> Floats:
        """Return the variance of every observation about the field, where a usual one has some variance."""
        return np.asarray(noise / self.weights + self.error)

    def working(self, h: Values, dual: DualAt) -> Working:  # noqa: ARG002 - as for responses
        """Return the observations themselves."""
        return Working(self)


@dataclass(frozen=True, eq=False)
class Working:
    """Working observations, and what they lack of the observations that they stand for."""

    observations: Observations  # values with normal noise and errors
    misfit: float = 0.0  # negative log evidence, less that of the working observations
    # (m,): third derivatives of the log density by the latent values; None where they are 0
    third: Floats | None = None
    # derivatives of log density, slope and curvature by the logarithms of the likelihood's own hyper-parameters
    changes: Mapping[str, Expansion] | None = None
    mode: Floats | None = None  # (m,): the most probable latent values
    # returns the expected log density of normal latent values of some means and variances, and working observations
    # averaged over them
    averaged: Callable[[Floats, Floats], tuple[float, Observations]] | None = None

    def variances(self, precision: Floats) -> Floats:
        r"""Return the posterior variances of the latent values from the diagonal of :math:`\Sigma^{-1}`."""
        error = self.observations.error
        return np.maximum(error - error**2 * precision, 0.0)

    def skew(self, precision: Floats) -> Floats:
        """Return `s / W`: by so much more must working values be for the posterior mean instead of the mode."""
        assert self.third is not None
        return np.asarray(0.5 * self.variances(precision) * self.third * self.observations.error)

    def at_means(self, precision: Floats, dual: DualAt) -> Observations:
        """Return working observations of the posterior mean and variance, not those of the mode.

        To first order the mean is where working values are greater by the skew. Slopes and precisions of the log
        density are then averaged over the posterior there: one step towards the normal distribution of least
        Kullback-Leibler divergence. Both steps are halved until they gain, as expansions are of little use where the
        prior is wide and observations hardly bound the latent values.
        """
        assert self.averaged is not None
        assert self.mode is not None
        usual, variances = self.observations, self.variances(precision)
        given = replace(usual, z=usual.z + self.skew(precision))
        mean, a = self._ahead((self.mode, (usual.z - self.mode) / usual.error), given, variances, dual)
        given = self.averaged(mean, variances)[1]
        mean, a = self._ahead((mean, a), given, variances, dual)
        return replace(given, z=mean + given.error * a)

    def _ahead(
        self, start: tuple[Floats, Floats], given: Observations, variances: Floats, dual: DualAt
    ) -> tuple[Floats, Floats]:
        """Return means, and the inverse of the covariance times them, from a start towards those of observations.

        All the way, or half of it and so on, until the expected log density gains more than the prior of means loses.
        """
        averaged, found = self.averaged, dual(given)
        assert averaged is not None
        assert found is not None
        steps = given.z - given.error * found - start[0], found - start[1]

        def point(share: float) -> tuple[float, Floats, Floats]:
            mean, a = start[0] + share * steps[0], start[1] + share * steps[1]
            return averaged(mean, variances)[0] - 0.5 * float(a @ mean), mean, a

        least = point(0.0)[0] - _NEAR * found.size
        tried = (point(0.5**halvings) for halvings in range(30))
        return next(((mean, a) for value, mean, a in tried if value >= least), start)

    def moved(
        self, slopes: dict[str, Any], products: dict[str, Floats], push: Floats, precision: Floats, dual: Floats
    ) -> tuple[dict[str, Any], dict[str, Floats]]:
        r"""Return slopes with the part that moves the mode, and those of the likelihood's own hyper-parameters.

        Parameters
        ----------
        slopes, products : mapping of str to array
            Derivatives of the misfit at a fixed mode, and of the covariance times `dual`.
        push, precision, dual : arrays of shape (m,)
            :math:`u`, the diagonal of :math:`\Sigma^{-1}`, and `a`.
        """
        whole = {name: slope - push @ products.get(name, np.zeros(push.size)) for name, slope in slopes.items()}
        whole |= self._own_slopes(precision, push)
        return whole, products | self._own_products(dual)

    def _own_slopes(self, precision: Floats, push: Floats) -> dict[str, float]:
        """Return the derivatives of the misfit by the logarithms of the likelihood's own hyper-parameters."""
        V = self.variances(precision)
        moved = self.skew(precision) - self.observations.error * push
        return {
            name: -float((each.log_density - 0.5 * V * each.curvature + moved * each.slope).sum())
            for name, each in (self.changes or {}).items()
        }

    def _own_products(self, dual: Floats) -> dict[str, Floats]:
        """Return the derivatives of the working covariance by the same times a vector."""
        error = self.observations.error
        return {name: -(error**2) * each.curvature * dual for name, each in (self.changes or {}).items()}


@dataclass(frozen=True, eq=False)
class Responses:
    r"""Observations with a likelihood of their own, several rows of a node gathered.

    Latent values in units of the link are :math:`\eta = o + u v` with `v` as the field has them.
    """

    likelihood: Likelihood  # distribution of a row given the latent value of its node
    nodes: Ints  # (m,): the labelled nodes, each once
    place: Ints  # (k,): where in `nodes` the node of every row is
    # y, size: (k,): value of every row, and its exposure, trials or standard error
    y: Floats
    size: Floats
    # origin, unit: origin and unit of the latent values
    origin: float
    unit: float
    weight: Floats | None = None  # (k,): so many times a row counts; 1 by default
    offset: Floats | float = 0.0  # (m,): what is added to the origin at every node

    @classmethod
    def of(
        cls, likelihood: Likelihood, nodes: Ints, y: Floats, size: Floats, weight: Floats | None = None
    ) -> Responses:
        """Return the observations of rows at nodes, in units of their own spread."""
        labelled, place = np.unique(nodes, return_inverse=True)
        raw = cls(likelihood, labelled, place, y, size, 0.0, 1.0, weight)
        raw = replace(raw, origin=likelihood.pooled(raw.times(y), raw.times(size)))
        return replace(raw, unit=raw._spread())

    def times(self, values: Floats) -> Floats:
        """Return values of rows, each as many times as its row counts."""
        return values if self.weight is None else values * self.weight

    @property
    def counts(self) -> Floats:
        """Return how many times the rows of every node count, on average."""
        return np.asarray(np.bincount(self.place, self.times(np.ones(self.y.size))) / np.bincount(self.place))

    def moved(self, offset: Floats, v: Floats) -> Responses:
        """Return the same with offsets, and latent values with which the search for the mode begins."""
        found = replace(self, offset=offset)
        vars(found)["_latest"] = v.copy()
        return found

    def _spread(self) -> float:
        """Return the standard deviation of latent values by moments (DerSimonian and Laird, 1986).

        At most that of the rows' own latent values: moments are about the pooled value, where the slope of a link is
        meaningless for rates that differ by orders of magnitude. Where it is below its own standard error, that error,
        and at most the unit of the likelihood.
        """
        if not self.likelihood.has_unit:
            return self.likelihood.unit
        h = {shape.name: np.full(shape.size, shape.median) for shape in self.likelihood.shapes}
        found = self.expand(np.zeros(self.nodes.size), h)
        W, m = np.maximum(found.curvature, np.finfo(float).tiny), self.nodes.size
        z = found.slope / W
        scale = W.sum() - (W**2).sum() / W.sum()
        if not scale > 0:
            return min(math.sqrt(1.0 / W.sum()), self.likelihood.unit)
        heterogeneity = float(W @ (z - np.average(z, weights=W)) ** 2)
        variance, error = (heterogeneity - (m - 1)) / scale, math.sqrt(2.0 * m) / scale
        if variance > error:
            return min(math.sqrt(variance), float(self._near().std()))
        return min(math.sqrt(error), self.likelihood.unit)

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """Hyper-parameters of the likelihood."""
        return self.likelihood.shapes

    @property
    def has_own(self) -> bool:
        """Whether a node has a part of its own beyond the field."""
        return self.likelihood.has_own

    @property
    def spread(self) -> float:
        """Log spread of the prior of the total variance."""
        return self.likelihood.spread

    @property
    def weights(self) -> Floats:
        """Precision of every node's own part over that of a usual node: all alike."""
        return np.ones(self.nodes.size)

    def part(self, chosen: Ints | Bools) -> Responses:
        """Return the rows of some of the nodes."""
        kept = np.arange(self.nodes.size)[chosen]
        position = np.full(self.nodes.size, -1)
        position[kept] = np.arange(kept.size)
        rows = position[self.place] >= 0
        offset = np.broadcast_to(self.offset, self.nodes.shape)[kept]
        weight = None if self.weight is None else self.weight[rows]
        found = replace(self, nodes=self.nodes[kept], place=position[self.place][rows], offset=offset, weight=weight)
        return replace(found, y=self.y[rows], size=self.size[rows])

    def at(self, nodes: Ints) -> Responses:
        """Return the same rows at other nodes."""
        return replace(self, nodes=nodes)

    def expand(self, v: Floats, h: Values) -> Expansion:
        """Return the log density of every node's rows and its derivatives by the latent value."""
        eta = (self.origin + self.offset + self.unit * v)[self.place]
        found = self.likelihood.expand(eta, self.y, self.size, h)
        scaled = [self.unit**k * self.times(each) for k, each in enumerate(found)]
        return Expansion(*(_sums(self.place, each, self.nodes.size) for each in scaled))

    def _at(self, v: Floats, h: Values) -> Observations:
        """Return working observations from latent values."""
        found = self.expand(v, h)
        W = np.maximum(found.curvature, _LEAST)
        return Observations(self.nodes, v + found.slope / W, np.ones(v.size), 1.0 / W)

    @cached_property
    def _latest(self) -> Floats:
        """Latent values where the last search for the mode ended; first those near its rows."""
        return self._near()

    @property
    def shape_estimates(self) -> dict[str, float]:
        """Estimates of the likelihood's own hyper-parameters where a search from their medians may fail."""
        return self.likelihood.shape_estimates(self.y, self.size)

    def _near(self) -> Floats:
        """Return latent values near the rows of every node."""
        found = self.likelihood.start(*self.likelihood.total(self.place, self.y, self.size))
        return np.asarray((found - self.origin - self.offset) / self.unit)

    def as_numbers(self) -> Observations:
        """Return standardised values near the observations, as numbers with noise: a search begins with them."""
        v = self._near()
        return Observations.of(self.nodes, (v - v.mean()) / (v.std() or 1.0))

    def mode(self, h: Values, dual: DualAt) -> Floats | None:
        """Return the most probable latent values by Newton steps; None where the covariance is not positive definite.

        Steps are halved until they gain, from the prior mean on; the first begins where the last search ended.
        """
        v, a, point = np.zeros(self.nodes.size), np.zeros(self.nodes.size), self._latest.copy()
        value = float(self.expand(v, h).log_density.sum())
        for _ in range(STEPS):
            working = self._at(point, h)
            found = dual(working)
            if found is None:
                return None
            ahead = working.z - working.error * found
            gap = float(((ahead - point) ** 2 / working.error).sum())
            share, best = 1.0, -math.inf
            while share > 1e-9:
                new_v, new_a = v + share * (ahead - v), a + share * (found - a)
                best = float(self.expand(new_v, h).log_density.sum()) - 0.5 * float(new_a @ new_v)
                if best >= value - _NEAR * max(v.size, 1):
                    break
                share *= 0.5
            settled = share == 1.0 and gap < _NEAR * max(v.size, 1)
            v, a, value, point = new_v, new_a, best, new_v
            if settled:
                self._latest[:] = v
                return v
        raise ConvergenceError(f"latent values did not settle in {STEPS} Newton steps; check for extreme observations")

    def working(self, h: Values, dual: DualAt) -> Working | None:
        """Return the working observations at the mode; None where the covariance is not positive definite."""
        v = self.mode(h, dual)
        if v is None:
            return None
        found, working = self.expand(v, h), self._at(v, h)
        normal = -0.5 * ((working.z - v) ** 2 / working.error + np.log(2.0 * np.pi * working.error))
        changes = {shape.name: self._change(v, h, shape.name) for shape in self.shapes}
        misfit = float((normal - found.log_density).sum())
        return Working(working, misfit, found.third, changes, v, partial(self._averaged, h=h))

    def _averaged(self, mean: Floats, variance: Floats, h: Values) -> tuple[float, Observations]:
        """Return the expected log density of normal latent values, and working observations averaged over them."""
        density, slope, curvature = 0.0, np.zeros(mean.size), np.zeros(mean.size)
        for node, weight in zip(_NODES, _WEIGHTS / _WEIGHTS.sum(), strict=True):
            found = self.expand(mean + np.sqrt(variance) * node, h)
            density += weight * float(found.log_density.sum())
            slope, curvature = slope + weight * found.slope, curvature + weight * found.curvature
        W = np.maximum(curvature, _LEAST)
        return density, Observations(self.nodes, mean + slope / W, np.ones(mean.size), 1.0 / W)

    def _change(self, v: Floats, h: Values, name: str) -> Expansion:
        """Return derivatives of the expansion by the logarithm of a hyper-parameter, by central differences."""
        high, low = (self.expand(v, {**h, name: h[name] * math.exp(side * _STEP)}) for side in (1.0, -1.0))
        return Expansion(*((a - b) / (2.0 * _STEP) for a, b in zip(high, low, strict=True)))


def _sums(place: Ints, values: Floats, size: int) -> Floats:
    """Return the sum of the values of every place."""
    return np.bincount(place, values, size).astype(np.float64)

r"""Derived quantities of a posterior: expected accuracy, learning curve, what to label next, sums over groups.

Posterior variances do not depend on the values of labels, so they are known for labels that nobody has yet. The
R2 to expect for numbers on the unlabelled nodes `U` is

.. math:: 1 - \frac{\mathrm{tr}\,\Sigma_{UU}}{\mathrm E \sum_U (y_i - \bar y)^2}

with :math:`\Sigma` the posterior covariance, noise included, and the expectation below given the labels there are.

Counts and shares are seen through working observations, of variance 1 / W. A count that nobody has yet has the expected
information W of its exposure or trials; the score is the explained deviance of outcomes that are drawn from the
posterior. Less variance, :math:`s'^2` instead of :math:`s^2` about `m`, predicts a latent value v by

.. math:: m' = m + \rho (v - m) + \sqrt{\rho (1 - \rho)}\, s\, \varepsilon , \qquad \rho = 1 - s'^2 / s^2 ,

whose errors have that variance and do not depend on m'.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from graphmrf.caching import cached_property
from graphmrf.errors import InvalidInputError
from graphmrf.field.observations import Observations
from graphmrf.field.posterior import Mixture
from graphmrf.field.reading import AtNodes, Numbers, Observed
from graphmrf.model.expected_accuracy import greedy_labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.field.posterior import AveragedPosterior
    from graphmrf.field.reading import Reading
    from graphmrf.field.transform import Scale

# unlabelled nodes that stand for all of them where columns of the covariance, or joint draws, are needed
_TARGETS = 400
_HELPS = 0.02  # what a suggested label must explain of all other nodes together, over the variance of one node
_DRAWS = 1000  # joint draws for sums of a transformed outcome, and of counts and shares


@dataclass(frozen=True, eq=False)
class _Squares:
    """Squared errors of numbers with noise."""

    posterior: AveragedPosterior
    observations: Observations
    scale: Scale
    n: int

    @property
    def errors(self) -> Floats:
        """Variance of the error of one more observation on top of the noise: none."""
        return np.zeros(self.n)

    @cached_property
    def _moments(self) -> tuple[Floats, Floats]:
        """Mean and variance of a new observation at all nodes; at labelled ones the label."""
        mean, variance = self.posterior.outcome(np.arange(self.n)).moments
        mean[self.observations.nodes], variance[self.observations.nodes] = self.observations.z, 0.0
        return mean, variance

    @cached_property
    def _shared(self) -> float:
        """Variance of the mean of all unlabelled nodes over their mean variance: what does not vary among them."""
        unknown = np.setdiff1d(np.arange(self.n), self.observations.nodes)
        if not unknown.size:
            return 0.0
        whole = self.posterior.covariance_times(unknown, np.full((unknown.size, 1), 1.0 / unknown.size)).mean()
        return min(float(whole) / max(float(self._moments[1][unknown].mean()), 1e-300), 1.0)

    def order(self, nodes: Ints) -> Ints:
        """Return nodes in the order in which they become labelled: as they are."""
        return nodes

    def unexplained(self, nodes: Ints, variance: Floats, among: Ints) -> float:
        """Return the mean squared error over the expected variance among nodes."""
        if self.scale.is_constant:
            return 1.0
        error = np.mean(self.scale.moments(self._moments[0][nodes], np.sqrt(variance))[1] ** 2)
        centre, spread = self.scale.moments(self._moments[0][among], np.sqrt(self._moments[1][among]))
        variation = np.mean((centre - centre.mean()) ** 2) + (1.0 - self._shared) * np.mean(spread**2)
        return float(error / variation)


@dataclass(frozen=True, eq=False)
class _Deviances:
    """Deviances of counts, shares and measurements, by outcomes drawn from the posterior."""

    posterior: AveragedPosterior
    reading: Observed
    n: int
    seed: int

    @cached_property
    def _at(self) -> AtNodes:
        return AtNodes(self.posterior, np.arange(self.n))

    @cached_property
    def _size(self) -> Floats:
        """Exposure, trials or standard error everywhere; where it is unknown the median of those observed."""
        typical = np.median(self.reading.seen)
        typical = np.round(typical) if self.reading.link.likelihood.is_whole and typical > 1.0 else typical
        return np.where(np.isnan(self.reading.size), typical, self.reading.size)

    @cached_property
    def errors(self) -> Floats:
        """Variance of the error of one more observation, which leaves the expected variance of its node's value.

        With information W(v) and variance V of the value that is the expectation P of V / (1 + V W), and the error
        has the variance 1 / (1 / P - 1 / V).
        """
        link, values = self.reading.link, self._at.values
        variance = values.moments[1]

        def remaining(k: int, eta: Floats) -> Floats:
            return 1.0 / (
                1.0 + variance * link.unit**2 * link.likelihood.information(eta, self._size, self._at.members[k])
            )

        left = link.expectation(values, remaining)
        return np.asarray(variance * left / np.maximum(1.0 - left, np.finfo(float).tiny))

    @cached_property
    def _places(self) -> Ints:
        """Place of every node among those whose outcomes are drawn, -1 of others: some labelled ones, and some not."""
        labelled, rng = np.isin(np.arange(self.n), self.posterior.members[0].field.normal.nodes), np.random.default_rng
        parts = [rng(self.seed).permutation(np.flatnonzero(part))[:_TARGETS] for part in (labelled, ~labelled)]
        places, chosen = np.full(self.n, -1), np.sort(np.concatenate(parts))
        places[chosen] = np.arange(chosen.size)
        return places

    @cached_property
    def _drawn(self) -> tuple[Floats, Floats, Floats]:
        """Joint draws of latent values and outcomes, and what predictions miss in normal numbers, (draws, nodes)."""
        rng, nodes = np.random.default_rng(self.seed), np.flatnonzero(self._places >= 0)
        v, members = self.posterior.draw_values(nodes, _DRAWS, rng)
        y = self.reading.link.draw(v, members, self._at.members, self._size[nodes], rng)
        return v, y, rng.standard_normal(v.shape)

    def order(self, nodes: Ints) -> Ints:
        """Return nodes in the order in which they become labelled: those whose outcomes are drawn last."""
        return nodes[np.argsort(self._places[nodes] >= 0, kind="stable")]

    def unexplained(self, nodes: Ints, variance: Floats, among: Ints) -> float:
        """Return the median over draws of the deviance that is left: few rates have a mean deviance."""
        among, drawn = among[self._places[among] >= 0], self._places[nodes] >= 0
        nodes, variance = nodes[drawn], variance[drawn]
        own, others = self._places[nodes], self._places[among]
        link, size, (v, y, normal) = self.reading.link, self._size, self._drawn
        mean, now = (each[nodes] for each in self._at.values.moments)
        gained = np.clip(1.0 - variance / now, 0.0, 1.0)
        missed = np.sqrt(np.where(variance < now, gained * variance, variance - now))
        m = mean + gained * (v[:, own] - mean) + missed * normal[:, own]
        mixture = Mixture(np.ones(1), m.reshape(1, -1), np.tile(variance, len(v))[None])
        times = size if link.likelihood.is_whole else np.ones(self.n)
        predicted = times[nodes] * link.moments(mixture)[0].reshape(m.shape)
        left = np.where(variance > 0, link.likelihood.deviance(y[:, own], predicted, size[nodes]), 0.0).mean(axis=1)
        rate = y[:, others].sum(axis=1, keepdims=True) / times[among].sum()
        alone = link.likelihood.deviance(y[:, others], times[among] * rate, size[among]).mean(axis=1)
        return float(np.median(left[alone > 0] / alone[alone > 0])) if (alone > 0).any() else 1.0


@dataclass(frozen=True, eq=False)
class ExpectedAccuracy:
    """Accuracy to expect on unlabelled nodes, with the labels there are or with more: R2 or explained deviance."""

    posterior: AveragedPosterior  # the field given its labels
    observations: Observations  # the labels, or the working observations that stand for them
    reading: Reading  # from the field to the outcome
    n: int  # number of nodes
    seed: int  # of random orders and draws

    @cached_property
    def unknown(self) -> Ints:
        """The unlabelled nodes."""
        return np.setdiff1d(np.arange(self.n), self.observations.nodes)

    @cached_property
    def _loss(self) -> _Squares | _Deviances:
        if isinstance(self.reading, Observed):
            return _Deviances(self.posterior, self.reading, self.n, self.seed)
        return _Squares(self.posterior, self.observations, self._scale, self.n)

    @property
    def _scale(self) -> Scale:
        assert isinstance(self.reading, Numbers)
        return self.reading.scale

    @cached_property
    def _variance(self) -> Floats:
        """Variance of the unlabelled values, noise included."""
        return self.posterior.outcome(self.unknown).moments[1]

    @cached_property
    def label_errors(self) -> Floats:
        """Variance of the error of a label at every node, on top of the noise."""
        found = self._loss.errors.copy()
        found[self.observations.nodes] = self.observations.error
        return found

    def _given(self, rows: Ints, nodes: Ints) -> Floats:
        """Return the variance at some nodes, noise included, were the labels those of other nodes."""
        labels = Observations(rows, np.zeros(rows.size), np.ones(rows.size), self.label_errors[rows])
        return self.posterior.members[0].given(labels).moments(nodes)[1] + self.posterior.noise

    def expected_r2(self, labelled: Bools | None = None) -> tuple[float, float]:
        """Return the R2 or explained deviance to expect on the unlabelled nodes, and its standard error."""
        U = self.unknown if labelled is None else np.flatnonzero(~labelled)
        if U.size < 2:
            raise InvalidInputError(f"R2 needs at least 2 unlabelled nodes, got {U.size}; leave some without a label")
        if labelled is not None and not labelled.any():
            raise InvalidInputError("labelled must have at least one node, got none; set some entries to True")
        same = np.array_equal(U, self.unknown)
        variance = self._variance if same else self._given(np.setdiff1d(np.arange(self.n), U), U)
        share = self._loss.unexplained(U, variance, U)
        return 1.0 - share, share * math.sqrt(2.0 / self.observations.nodes.size + 2.0 / U.size)

    def learning_curve(self, sizes: Sequence[int], draws: int) -> Floats:
        """Return the expected score and its standard error, shape (2, len(sizes)), with labels at random nodes."""
        rng, rows, U = np.random.default_rng(self.seed), self.observations.nodes, self.unknown
        orders = [self._loss.order(rng.permutation(U)) for _ in range(draws)]
        now, error = self.expected_r2()
        averaged, found = float(self._variance.sum() / self._given(rows, U).sum()), np.empty((2, len(sizes)))
        for k, more in enumerate(np.asarray(sizes) - rows.size):
            parts = [(np.append(rows, order[:more]), np.sort(order[more:])) for order in orders]
            left = [self._loss.unexplained(rest, averaged * self._given(known, rest), U) for known, rest in parts]
            share, relative = float(np.mean(left)), error / max(1.0 - now, 1e-12)
            found[:, k] = (now if not more else 1.0 - share), math.hypot(share * relative, float(np.std(left)))
        return found

    def suggest(self, k: int, among: Bools | None = None) -> tuple[Ints, Floats, str]:
        r"""Return the nodes whose labels leave the least loss on the rest, the score after each, and why if none helps.

        One after the other: the label of node i takes :math:`\Sigma_{ji}^2 / (\Sigma_{ii} + s_i)` from the variance of
        every other node j, with :math:`\Sigma` the latent covariance at the mode and `s` the variance of the noise and
        error of a label. The variance of a count or share weighs as much as its information.
        """
        U, noise, central = self.unknown, self.posterior.noise, self.posterior.members[0]
        errors = self.label_errors[U]
        weight = 1.0 / errors if errors.all() else np.ones(U.size)
        targets = np.sort(np.random.default_rng(self.seed).permutation(U.size)[:_TARGETS])
        units = np.zeros((U.size, targets.size))
        units[targets, np.arange(targets.size)] = np.sqrt(weight[targets])
        left, variance = self._variance.copy(), np.maximum(self._variance - noise, 0.0)
        chosen, scores = list[int](), list[float]()
        times, allowed = partial(central.covariance_times, U), None if among is None else among[U]
        for node, column in islice(
            greedy_labels(times, units, variance=variance, noise=noise + errors, own=False, allowed=allowed), k
        ):
            left = np.maximum(left - column**2, noise)
            chosen.append(node)
            left[chosen] = 0.0
            scores.append(1.0 - self._loss.unexplained(U, left, U))
        before, others = weight * self._variance, np.setdiff1d(np.arange(U.size), chosen)
        if chosen and (before - weight * left)[others].sum() < _HELPS * len(chosen) * before.mean():
            return U[:0], np.zeros(0), "no label helps other nodes: neither neighbours nor features carry it further"
        return U[chosen], np.array(scores), ""

    def sums(self, members: Sequence[Ints], level: float, weight: Floats | None = None) -> Floats:
        """Return weighted sum, its standard deviation and ends of its interval for every group of nodes (4, groups).

        By joint draws. Of a transformed outcome the median, and half the width of the central 68 %: it need not have a
        mean.
        """
        y, weight = np.zeros(self.n), np.ones(self.n) if weight is None else weight
        y[self.observations.nodes] = self._scale.back(self.observations.z) * weight[self.observations.nodes]
        unknown = [np.setdiff1d(nodes, self.observations.nodes) for nodes in members]
        known = np.array([y[np.intersect1d(nodes, self.observations.nodes)].sum() for nodes in members])
        nodes = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *unknown]))
        if not nodes.size:
            return np.array([known, np.zeros(known.size), known, known])
        rng = np.random.default_rng(self.seed)
        draws = self._scale.back(self.posterior.draw_outcome(nodes, _DRAWS, rng)) * weight[nodes]
        sums = np.array([draws[:, np.searchsorted(nodes, own)].sum(axis=1) for own in unknown])
        low, high = known + np.quantile(sums, [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=1)
        if self._scale.power is not None:
            below, total, above = known + np.quantile(sums, ndtr([-1.0, 0.0, 1.0]), axis=1)
            return np.array([total, 0.5 * (above - below), low, high])
        total = known + [weight[own] @ self._scale.back(self.posterior.outcome(own).moments[0]) for own in unknown]
        shift = total - known - sums.mean(axis=1)  # of the draws from their expectation
        return np.array([total, sums.std(axis=1), low + shift, high + shift])

r"""Derived quantities of a posterior: expected accuracy, learning curve, what to label next, sums over groups.

Posterior variances do not depend on the values of labels, so they are known for labels that nobody has yet. The
R2 to expect on the unlabelled nodes `U` is

.. math:: 1 - \frac{\mathrm{tr}\,\Sigma_{UU}}{\mathrm E \sum_U (y_i - \bar y)^2}

with :math:`\Sigma` the posterior covariance, noise included, and the expectation below given the labels there are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from graphmrf.errors import InvalidInputError
from graphmrf.field.observations import Observations
from graphmrf.kept import cached_property
from graphmrf.model.expected_accuracy import greedy_labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.field.posterior import AveragedPosterior
    from graphmrf.field.transform import Scale

_TARGETS = 400
"""Unlabelled nodes that stand for all of them where columns of the covariance are needed."""

_HELPS = 0.02
"""What a suggested label must explain of all other nodes together, over the variance of one node."""

_DRAWS = 1000
"""Joint draws for sums of a transformed outcome."""


@dataclass(frozen=True, eq=False)
class ExpectedAccuracy:
    """Accuracy to expect on unlabelled nodes, with the labels there are or with more.

    Attributes
    ----------
    posterior : AveragedPosterior
        The field given its labels.
    observations : Observations
        The labels.
    scale : Scale
        From the outcome to standardised values.
    n : int
        Number of nodes.
    seed : int
        Seed of random orders.
    """

    posterior: AveragedPosterior
    observations: Observations
    scale: Scale
    n: int
    seed: int

    @cached_property
    def unknown(self) -> Ints:
        """The unlabelled nodes."""
        return np.setdiff1d(np.arange(self.n), self.observations.nodes)

    @cached_property
    def _moments(self) -> tuple[Floats, Floats]:
        """Mean and variance of a new observation at all nodes; at labelled ones the label."""
        mean, variance = self.posterior.outcome(np.arange(self.n)).moments
        mean[self.observations.nodes], variance[self.observations.nodes] = self.observations.z, 0.0
        return mean, variance

    def _error(self, U: Ints, variance: Floats) -> float:
        """Return the mean squared error at some nodes in units of the outcome, from standardised variances."""
        return float(np.mean(self.scale.moments(self._moments[0][U], np.sqrt(variance))[1] ** 2))

    def _variation(self, U: Ints) -> float:
        """Return the expected variance of the outcome among some nodes, given the labels there are."""
        mean, variance = (values[U] for values in self._moments)
        centre, spread = self.scale.moments(mean, np.sqrt(variance))
        return float(np.mean((centre - centre.mean()) ** 2) + (1.0 - self._shared) * np.mean(spread**2))

    @cached_property
    def _shared(self) -> float:
        """Variance of the mean of all unlabelled nodes over their mean variance: what does not vary among them."""
        if not self.unknown.size:
            return 0.0
        mean = np.full((self.unknown.size, 1), 1.0 / self.unknown.size)
        whole = float(self.posterior.covariance_times(self.unknown, mean).mean())
        return min(whole / max(float(self._moments[1][self.unknown].mean()), 1e-300), 1.0)

    def _given(self, rows: Ints, nodes: Ints) -> Floats:
        """Return the variance of new observations at some nodes were the labels those of other nodes."""
        labels = Observations.of(rows, np.zeros(rows.size))
        return self.posterior.members[0].given(labels).moments(nodes)[1] + self.posterior.noise

    def expected_r2(self, labelled: Bools | None = None) -> tuple[float, float]:
        """Return the R2 to expect on the unlabelled nodes, and its standard error."""
        U = self.unknown if labelled is None else np.flatnonzero(~labelled)
        if U.size < 2:
            raise InvalidInputError(f"R2 needs at least 2 unlabelled nodes, got {U.size}; leave some without a label")
        if labelled is not None and not labelled.any():
            raise InvalidInputError("labelled must have at least one node, got none; set some entries to True")
        if self.scale.is_constant:
            return 0.0, 0.0
        same = labelled is None or np.array_equal(U, self.unknown)
        variance = self._moments[1][U] if same else self._given(np.flatnonzero(~np.isin(np.arange(self.n), U)), U)
        share = self._error(U, variance) / self._variation(U)
        return 1.0 - share, share * math.sqrt(2.0 / self.observations.z.size + 2.0 / U.size)

    def learning_curve(self, sizes: Sequence[int], draws: int) -> Floats:
        """Return expected R2 and its standard error, shape (2, len(sizes)), with further labels at random nodes."""
        rng, rows = np.random.default_rng(self.seed), np.unique(self.observations.nodes)
        orders = [rng.permutation(self.unknown) for _ in range(draws)]
        now, error = self.expected_r2()
        total, found = self._variation(self.unknown), np.empty((2, len(sizes)))
        averaged = float(self._moments[1][self.unknown].sum() / self._given(rows, self.unknown).sum())
        for k, size in enumerate(sizes):
            more = size - rows.size
            left = [
                self._error(order[more:], averaged * self._given(np.append(rows, order[:more]), order[more:])) / total
                for order in orders
            ]
            share, relative = float(np.mean(left)), error / max(1.0 - now, 1e-12)
            found[:, k] = (now if not more else 1.0 - share), math.hypot(share * relative, float(np.std(left)))
        return found

    def suggest(self, k: int, among: Bools | None = None) -> tuple[Ints, Floats, str]:
        r"""Return the nodes whose labels leave the least variance on the rest, R2 after each, and why if none helps.

        One after the other: the label of node i takes :math:`\Sigma_{ji}^2 / (\Sigma_{ii} + s)` from the variance of
        every other node j, with :math:`\Sigma` the latent covariance at the mode and `s` the noise.
        """
        U, noise, central = self.unknown, self.posterior.noise, self.posterior.members[0]
        targets = np.sort(np.random.default_rng(self.seed).permutation(U.size)[:_TARGETS])
        units = np.zeros((U.size, targets.size))
        units[targets, np.arange(targets.size)] = 1.0
        variance = np.maximum(self._moments[1][U] - noise, 0.0)
        left, total = self._moments[1][U].copy(), self._variation(U) if k else 1.0
        chosen, scores = list[int](), list[float]()
        times, allowed = partial(central.covariance_times, U), None if among is None else among[U]
        for node, column in islice(
            greedy_labels(times, units, variance=variance, noise=noise, own=False, allowed=allowed), k
        ):
            left = np.maximum(left - column**2, noise)
            chosen.append(node)
            left[chosen] = 0.0
            scores.append(1.0 - self._error(U, left) / total)
        before, others = self._moments[1][U], np.setdiff1d(np.arange(U.size), chosen)
        if chosen and (before - left)[others].sum() < _HELPS * len(chosen) * before.mean():
            return U[:0], np.zeros(0), "no label helps other nodes: neither neighbours nor features carry it further"
        return U[chosen], np.array(scores), ""

    def sums(self, members: Sequence[Ints], level: float, weight: Floats | None = None) -> Floats:
        """Return weighted sum, its standard deviation and ends of its interval for every group of nodes (4, groups).

        By joint draws. Of a transformed outcome the median, and half the width of the central 68 %: it need not have a
        mean.
        """
        y, weight = np.zeros(self.n), np.ones(self.n) if weight is None else weight
        y[self.observations.nodes] = self.scale.back(self.observations.z) * weight[self.observations.nodes]
        unknown = [np.setdiff1d(nodes, self.observations.nodes) for nodes in members]
        known = np.array([y[np.intersect1d(nodes, self.observations.nodes)].sum() for nodes in members])
        nodes = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *unknown]))
        if not nodes.size:
            return np.array([known, np.zeros(known.size), known, known])
        rng = np.random.default_rng(self.seed)
        draws = self.scale.back(self.posterior.draw_outcome(nodes, _DRAWS, rng)) * weight[nodes]
        sums = np.array([draws[:, np.searchsorted(nodes, own)].sum(axis=1) for own in unknown])
        low, high = known + np.quantile(sums, [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=1)
        if self.scale.power is not None:
            below, total, above = known + np.quantile(sums, ndtr([-1.0, 0.0, 1.0]), axis=1)
            return np.array([total, 0.5 * (above - below), low, high])
        total = known + [weight[own] @ self.scale.back(self._moments[0][own]) for own in unknown]
        shift = total - known - sums.mean(axis=1)  # of the draws from their expectation
        return np.array([total, sums.std(axis=1), low + shift, high + shift])

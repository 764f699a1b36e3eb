"""The field averaged: over draws of missing features, over draws of hyper-parameters, or over both."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from graphmrf.field.covariance import Covariance
from graphmrf.field.exact import ExactPosterior, blocks
from graphmrf.field.matern import Correlations
from graphmrf.field.posterior import Mixture

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.field.design import Design
    from graphmrf.field.hyperparameters import Hyperparameters

_REMEMBERED = 2
"""Blocks of graph correlations kept for the members: those of the field and of local effects."""


@dataclass(frozen=True, eq=False)
class AveragedPosterior:
    r"""The field of some hyper-parameters, conditioned on the labels once for every draw of the features.

    Means are means over the draws; variances, by Rubin's rule, the mean variance and the variance of the means,
    :math:`\bar v + \overline{(m_i - \bar m)^2}`. Draws come in pairs that lie opposite each other about the expected
    features: so the mean of anything linear in the features is that at the expected ones, and free of chance.

    Attributes
    ----------
    base : ExactPosterior
        The field at the expected features.
    designs : sequence of Design
        The features of every draw.
    """

    base: ExactPosterior
    designs: Sequence[Design]

    @property
    def h(self) -> Hyperparameters:
        """The hyper-parameters."""
        return self.base.h

    @property
    def z(self) -> Floats:
        """The standardised labels."""
        return self.base.z

    @property
    def refitted_up_to(self) -> int:
        """Number of labels up to which hyper-parameters are refitted without some of them."""
        return self.base.refitted_up_to

    @cached_property
    def members(self) -> tuple[ExactPosterior, ...]:
        """The posterior of every draw; what the graph says is the same for all."""
        field = self.base.covariance
        graph_part = Correlations(field.eigen, field.rows, _REMEMBERED)
        fields = [Covariance(design, graph_part, field.components) for design in self.designs]
        return tuple(ExactPosterior(field, self.h, self.z) for field in fields)

    @cached_property
    def weights(self) -> Floats:
        """The weight of every member; they add up to 1."""
        return np.full(len(self.members), 1.0 / len(self.members))

    def mixture(self, nodes: Ints) -> Mixture:
        """Return the distribution of the outcome of every node: a normal one of every member."""
        k = len(self.members)
        parts = [self._mixture([member.moments(block) for member in self.members]) for block in blocks(nodes)]
        means, variances = ([getattr(part, name) for part in parts] for name in ("means", "variances"))
        empty = np.zeros((k, 0))
        return Mixture(self.weights, np.hstack([empty, *means]), np.hstack([empty, *variances]))

    def _mixture(self, found: Sequence[tuple[Floats, Floats]]) -> Mixture:
        return Mixture.of(found, self.weights)

    def moments(self, nodes: Ints) -> tuple[Floats, Floats]:
        """Return mean and variance of the outcome of unlabelled nodes, noise included."""
        return self.mixture(nodes).moments

    def draw(self, nodes: Ints, count: int, rng: np.random.Generator) -> Floats:
        """Return joint draws of the outcomes of unlabelled nodes, each of one member, shape (count, len(nodes))."""
        result = np.empty((count, nodes.size))
        whose = np.searchsorted(np.cumsum(self.weights), (rng.permutation(count) + 0.5) / max(count, 1))
        for k, member in enumerate(self.members):
            which = np.flatnonzero(whose == k)
            if which.size:
                result[which] = member.draw(nodes, which.size, rng)
        return result

    def times_covariance(self, nodes: Ints, Z: Floats) -> Floats:
        """Return the joint covariance of unlabelled nodes, noise left out, times columns `Z` (len(nodes), k)."""
        means = self.mixture(nodes).means
        means -= self.weights @ means
        within = sum(
            w * member.times_covariance(nodes, Z) for w, member in zip(self.weights, self.members, strict=True)
        )
        return np.asarray(within + means.T @ (self.weights[:, None] * (means @ Z)))

    def variances_given(self, rows: Ints, nodes: Ints) -> Floats:
        """Return the variance of nodes, noise included, were the labels those of others.

        What the average adds counts as much as it does with the labels there are.
        """
        here = np.setdiff1d(np.arange(len(self.base.covariance.design.Z)), self.base.covariance.rows)
        more = self.moments(here)[1].sum() / self.base.moments(here)[1].sum() if here.size else 1.0
        return more * self.base.variances_given(rows, nodes)

    @cached_property
    def left_out(self) -> tuple[Floats, Floats]:
        """Residual and variance of every label given the others."""
        return self._mixture([member.left_out for member in self.members]).moments

    def held_out(self, own: Bools) -> tuple[Floats, Floats]:
        """Return residuals and joint covariance, noise included, of some labels given the others."""
        residuals, spreads = (np.array(found) for found in zip(*(m.held_out(own) for m in self.members), strict=True))
        mean = self.weights @ residuals
        between = (self.weights * (residuals - mean).T) @ (residuals - mean)
        return mean, np.tensordot(self.weights, spreads, axes=1) + between

    def without(self, own: Bools) -> tuple[Floats, Floats]:
        """Return mean and variance of some labels given the others, at the same hyper-parameters."""
        return self._mixture([member.without(own) for member in self.members]).moments

    def refitted(self, own: Bools, z: Floats, seed: int) -> tuple[Floats, Floats]:
        """Return mean and variance of some labels by a field fitted to the others, at the expected features."""
        return self.fitted_without(own, z, seed).moments(self.base.covariance.rows[own])

    def fitted_without(self, own: Bools, z: Floats, seed: int) -> AveragedPosterior:
        """Return the field with hyper-parameters of the other labels alone, at the expected features."""
        return AveragedPosterior(self.base.fitted_without(own, z, seed), self.designs)

    @property
    def shares(self) -> dict[str, float]:
        """The part of the variance of the labels that every component predicts, at the expected features."""
        return self.base.shares

    @cached_property
    def coefficients(self) -> dict[str, tuple[Floats, Floats]]:
        """Mean and standard deviation of linear coefficients per unit of the feature, by the effect's title."""
        found = [member.coefficients for member in self.members]
        pools: dict[str, tuple[Floats, Floats]] = {}
        for title in found[0]:
            mean, variance = self._mixture([(each[title][0], each[title][1] ** 2) for each in found]).moments
            pools[title] = mean, np.sqrt(variance)
        return pools

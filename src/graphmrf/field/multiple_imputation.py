"""Missing features by multiple imputation: draws from their joint Gaussian field, and the field averaged over them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from graphmrf.field.covariance import Covariance
from graphmrf.field.exact import ExactPosterior, blocks
from graphmrf.field.matern import Correlations
from graphmrf.model.conditional import condition
from graphmrf.model.fit import fit_for_imputation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.field.design import Design
    from graphmrf.field.hyperparameters import Hyperparameters
    from graphmrf.graph import Graph
    from graphmrf.model import AttributePosterior

NEGLIGIBLE = 0.01
"""Share of missing cells up to which they count as known once they are filled; averaging takes ten posteriors."""

PAIRS = 5
"""Pairs of draws of the missing cells beyond that, the usual number of imputations; time grows with them."""

LARGEST = 2**26
"""Entries of the largest table: patterns of missing cells by squared number of columns; half a gigabyte."""

_REMEMBERED = 2
"""Blocks of graph correlations kept for the members: those of the field and of local effects."""


@dataclass(frozen=True, eq=False)
class Imputation:
    """Features whose missing cells are imputed.

    Attributes
    ----------
    X : array of shape (n, p)
        Missing cells at their expected value given all others.
    posterior : AttributePosterior or None
        The columns that vary, given all cells that are known; None when few cells are missing, which then count as
        known.
    varies : bool array of shape (p,)
        Those columns.
    seed : int
        Seed of the draws.
    """

    X: Floats
    posterior: AttributePosterior | None
    varies: Bools
    seed: int

    @cached_property
    def draws(self) -> Floats:
        """Draws of the features, in pairs opposite each other about `X`, shape (k, n, p); k = 0 when few miss."""
        if self.posterior is None:
            return np.empty((0, *self.X.shape))
        deviations = self.posterior.sample(PAIRS, self.seed) - self.posterior.mean
        draws = np.tile(self.X, (2 * PAIRS, 1, 1))
        draws[:, :, self.varies] += np.concatenate([deviations, -deviations])
        return draws


def impute(graph: Graph, X: Floats, *, seed: int = 0) -> Imputation:
    """Return features whose missing cells are imputed by a coupled Gaussian field of all features.

    A cell is filled by its expectation given the other features of its node, and the features of the nodes around. No
    label is read, so that what labels say of a prediction stays honest. A column that is the same wherever it is
    known is the same everywhere.

    Parameters
    ----------
    graph : Graph
        The graph.
    X : array of shape (n, p)
        Features, NaN where missing, at least one cell of every column known.
    seed : int
        Seed of the draws.

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> path = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4])
    >>> imputed = impute(path, np.array([[1.0, 1.1], [2.0, 2.2], [3.0, np.nan], [4.0, 4.4], [5.0, 5.5]]))
    >>> imputed.X[2].round(1), imputed.draws.shape
    (array([3. , 3.3]), (10, 5, 2))
    """
    missing = np.isnan(X)
    if not missing.any():
        return Imputation(X, None, np.ones(X.shape[1], dtype=bool), seed)
    varies, whole = _varies(X), np.where(missing, np.nanmean(X, axis=0), X)
    if not (missing & varies).any():
        return Imputation(whole, None, varies, seed)
    posterior = _posterior(graph, X[:, varies])
    whole[:, varies] = posterior.mean
    few = np.count_nonzero(missing) <= NEGLIGIBLE * X.size
    return Imputation(whole, None if few else posterior, varies, seed)


def _varies(X: Floats) -> Bools:
    low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    return np.asarray(high - low > 16 * np.finfo(np.float64).eps * np.maximum(np.abs(low), np.abs(high)))


def _posterior(graph: Graph, X: Floats) -> AttributePosterior:
    return condition(fit_for_imputation(graph, X, prior=float(X.shape[1])), graph, X)


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

    def moments(self, nodes: Ints) -> tuple[Floats, Floats]:
        """Return mean and variance of the outcome of unlabelled nodes, noise included."""
        parts = [pooled([member.moments(block) for member in self.members]) for block in blocks(nodes)]
        means, variances = zip(*parts, strict=True) if parts else ((), ())
        return np.concatenate([np.zeros(0), *means]), np.concatenate([np.zeros(0), *variances])

    def draw(self, nodes: Ints, count: int, rng: np.random.Generator) -> Floats:
        """Return joint draws of the outcomes of unlabelled nodes, the features drawn as well, (count, len(nodes))."""
        result, k = np.empty((count, nodes.size)), len(self.members)
        for first, member in enumerate(self.members[:count]):
            which = np.arange(first, count, k)
            result[which] = member.draw(nodes, which.size, rng)
        return result

    def times_covariance(self, nodes: Ints, Z: Floats) -> Floats:
        """Return the joint covariance of unlabelled nodes, noise left out, times columns `Z` (len(nodes), k)."""
        means = np.array([member.moments(nodes)[0] for member in self.members])
        means -= means.mean(axis=0)
        within = np.mean([member.times_covariance(nodes, Z) for member in self.members], axis=0)
        return np.asarray(within + means.T @ (means @ Z) / len(means))

    def variances_given(self, rows: Ints, nodes: Ints) -> Floats:
        """Return the variance of nodes, noise included, were the labels those of others; at the expected features."""
        return self.base.variances_given(rows, nodes)

    @cached_property
    def left_out(self) -> tuple[Floats, Floats]:
        """Residual and variance of every label given the others."""
        return pooled([member.left_out for member in self.members])

    def held_out(self, own: Bools, W: Floats) -> tuple[Floats, Floats]:
        """Return residual and variance of weighted sums `W` (own.sum(), g) of some labels given the others."""
        return pooled([member.held_out(own, W) for member in self.members])

    def without(self, own: Bools) -> tuple[Floats, Floats]:
        """Return mean and variance of some labels given the others, at the same hyper-parameters."""
        return pooled([member.without(own) for member in self.members])

    def refitted(self, own: Bools, z: Floats, seed: int) -> tuple[Floats, Floats]:
        """Return mean and variance of some labels by a field fitted to the others, at the expected features."""
        others = AveragedPosterior(self.base.fitted_without(own, z, seed), self.designs)
        return others.moments(self.base.covariance.rows[own])

    @property
    def shares(self) -> dict[str, float]:
        """The part of the variance of the labels that every component predicts, at the expected features."""
        return self.base.shares

    @cached_property
    def coefficients(self) -> dict[str, tuple[Floats, Floats]]:
        """Mean and standard deviation of linear coefficients per unit of the feature, by the effect's title."""
        found = [member.coefficients for member in self.members]
        pools = {title: pooled([(each[title][0], each[title][1] ** 2) for each in found]) for title in found[0]}
        return {title: (mean, np.sqrt(variance)) for title, (mean, variance) in pools.items()}


def pooled(found: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """Return mean and variance by Rubin's rule from those of every draw."""
    means, variances = zip(*found, strict=True)
    return np.mean(means, axis=0), np.mean(variances, axis=0) + np.var(means, axis=0)

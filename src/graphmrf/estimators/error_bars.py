r"""Error bars of predictors that are linear in the labels: one rule for all of them.

Outcomes are :math:`y = F b + f`: columns `F` with coefficients `b` that were fitted to the labelled nodes `L` by least
squares, and a Gaussian field `f` of covariance :math:`\tau^2 \Sigma`, :math:`\Sigma = (I + \omega N)^{-1}`. Let `G` be
the columns turned so that they are orthonormal over the labelled nodes (see `LeastSquares.directions`). Fitted values
then are :math:`G G_L' y_L`, and coefficients of `G` err with the covariance :math:`\tau^2 K`,

.. math:: K = G_L' \Sigma_{LL} G_L + \bar v (I - G_L' G_L),

where the second term, 0 in least squares, is the uncertainty under a prior on the coefficients, and :math:`\bar v` the
mean variance of a label. The noise scale :math:`\tau` comes from the squared residuals at the labelled nodes, divided
by their expectation under the model.

Errors over an estimated scale have a Student distribution, here with as many degrees of freedom :math:`\nu` as labels
are left by coefficients, and by a level that was chosen (`degrees_of_freedom`). Standard deviations are those of that
distribution, :math:`\sqrt{\nu / (\nu - 2)}` times the scale, with which normal quantiles are right at 90 %; see
`interval_width` for others. They are NaN when no label is left.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from graphmrf.caching import cached_property
from graphmrf.linalg import (
    conditional_variance,
    draw_conditional,
    loo_precision,
    marginal_variance,
    multiply,
    propagate,
    smooth,
)

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats
    from graphmrf.graph import Graph

_PROGRESS = logging.getLogger("graphmrf.progress")

_ROUNDING = 1e-6  # degrees of freedom that count as 0: rounding


def as_omega(alpha: float) -> float:
    """Return omega = alpha / (1 - alpha)."""
    return alpha / (1.0 - alpha)


def precision_times(graph: Graph, filled: Floats, known: Bools, alpha: float) -> Floats:
    r"""Return :math:`[(I + \omega N)^{-1}]_{LL}^{-1}` times the known rows of columns propagated from them."""
    return np.asarray((filled + as_omega(alpha) * (filled - multiply(graph, filled)))[known])


def degrees_of_freedom(labels: int, spent: float, *, chosen: bool = False, counted: float = 2.0) -> float:
    """Return how many labels are left by coefficients, and by a level that cross-validation chose.

    Such a level counts as two coefficients, but takes no more than a third of what is left: with 13 to 61 labels of
    London's wards, 90 % intervals then cover as many outcomes as those of linear regression.
    """
    left = labels - spent if labels - spent > _ROUNDING else 0.0
    return float(left - min(counted, left / 3.0) if chosen else left)


def student_std(scale: float, variance: Floats, dof: float) -> Floats:
    r"""Return standard deviations of a Student distribution, :math:`\tau \sqrt{v\,\nu / (\nu - 2)}`.

    Where it has none, below 3 degrees of freedom, they are such that intervals of 90 % by normal quantiles are right.
    """
    if dof <= 0:
        return np.full(variance.shape, np.nan)
    return np.asarray(scale * np.sqrt(variance * _student_variance(dof)))


def _student_variance(dof: float, *, upper: float = 0.95, least: float = 3.0) -> float:
    """Return the variance of a Student distribution, or what stands in for it below 3 degrees of freedom.

    It is infinite at 2; there the interval that ends at the `upper` quantile is right.
    """
    ratio = float(student.ppf(upper, dof) / norm.ppf(upper)) ** 2
    nu = max(dof, least)
    return max(nu / (nu - 2.0), ratio)


def interval_width(level: float, dof: float) -> float:
    """Return half the width of an interval of Student's distribution, in the standard deviations of `student_std`.

    It is no less than that of a normal distribution.
    """
    end = 0.5 + 0.5 * level
    normal = float(norm.ppf(end))
    return max(normal, float(student.ppf(end, dof)) / _student_variance(dof) ** 0.5) if dof > 0 else normal


def root_mean(squares: Floats, left: float) -> float:
    """Return the root of a sum of squares over the degrees of freedom left; NaN when none is left."""
    return float(np.sqrt(squares.sum() / left)) if left > 0 else float("nan")


def _quadratic_forms(A: Floats, K: Floats) -> Floats:
    """Return the quadratic forms :math:`a_i' K a_i` of the rows of `A`."""
    return np.asarray(np.einsum("ij,ij->i", A @ K, A))


def _drawn(K: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Return `count` columns with a covariance, which may be singular."""
    values, V = np.linalg.eigh(K)
    return np.asarray((V * np.sqrt(np.maximum(values, 0.0))) @ rng.standard_normal((len(K), count)))


@dataclass(frozen=True)
class ResidualField:
    r"""The residuals of a fit as a field over the graph: error bars where it is propagated, and where it is not."""

    graph: Graph
    known: Bools  # (n,): the labelled nodes `L`
    residuals: Floats  # (n_labelled,): their residuals `r`
    alpha: float  # smoothing level of the field
    directions: Floats  # (n, k): the columns `G` of the fit; none where that is not linear in the labels
    dof: float  # degrees of freedom left
    random_state: int  # seed of the probes that estimate variances on large graphs

    @cached_property
    def propagated(self) -> Floats:
        """The residuals at the labelled nodes, propagated to the others, shape (n,)."""
        column = np.zeros((self.known.size, 1))
        column[self.known, 0] = self.residuals
        return np.asarray(propagate(self.graph, column, self.known, self.alpha)[:, 0])

    @cached_property
    def _marginal(self) -> Floats:
        r"""Diagonal of :math:`\Sigma`."""
        return marginal_variance(self.graph, self.alpha, random_state=self.random_state)

    @cached_property
    def _smoothed(self) -> Floats:
        r"""The smoothed directions :math:`\Sigma_{\cdot L} G_L`."""
        G = np.where(self.known[:, None], self.directions, 0.0)
        return smooth(self.graph, G, self.alpha) if G.shape[1] else G

    @cached_property
    def _filled(self) -> Floats:
        """The directions, propagated from the labelled nodes."""
        G = self.directions
        return propagate(self.graph, G, self.known, self.alpha) if G.shape[1] else G

    @cached_property
    def _covariance(self) -> Floats:
        """The covariance `K` of errors of the coefficients."""
        G = self.directions[self.known]
        K, prior = G.T @ self._smoothed[self.known], np.eye(G.shape[1]) - G.T @ G
        return K + self._marginal[self.known].mean() * prior if np.trace(prior) > _ROUNDING else K

    def _left(self, shares: Floats) -> float:
        """Return the expected sum of squares from that of every label, less by what a chosen level took of it."""
        left = shares.size - float(np.sum(self.directions[self.known] ** 2))
        if not self.directions.shape[1] or left <= 0:
            return self.dof
        return float(shares.sum()) * self.dof / left

    @cached_property
    def conditional_scale(self) -> float:
        r"""Noise scale :math:`\tau` from leave-one-out residuals.

        .. math:: \tau^2 = \sum_{i \in L} \frac{(P r)_i^2}{P_{ii}} \Big/ \sum_{i \in L} \frac{[P - 2 P G G' + P G K G'
                  P]_{ii}}{P_{ii}}, \qquad P = \Sigma_{LL}^{-1}

        Given the other labels, label i lies :math:`(P r)_i / P_{ii}` from its mean with variance
        :math:`\tau^2 / P_{ii}`; the loss of degrees of freedom to the coefficients is in the other terms.
        """
        _PROGRESS.info("scale of the noise")
        # Of large graphs by one block of probes: it averages over all labels and is off by .0001 on power-law graphs,
        # by .002 on grids and roads at level .99 with a label at 3 % of 14,000 nodes.
        P = loo_precision(self.graph, self.known, self.alpha, random_state=self.random_state, probes=16)
        G = self.directions[self.known]
        Pr, PG = (
            precision_times(self.graph, filled, self.known, self.alpha)
            for filled in (self.propagated[:, None], self._filled)
        )
        taken = 2.0 * np.einsum("ij,ij->i", PG, G) - _quadratic_forms(PG, self._covariance)
        return root_mean(Pr[:, 0] ** 2 / P, self._left(1.0 - taken / P))

    @cached_property
    def conditional_std(self) -> Floats:
        r"""Standard deviation of outcomes given the labels, residuals being propagated: 0 at the labelled nodes.

        .. math:: \tau^2 \big([(I + \omega N)_{UU}^{-1}]_{uu} + g_u' K g_u\big)

        with `g` the directions less those propagated from the labelled nodes, and times :math:`\nu / (\nu - 2)`.
        """
        if self.known.all():
            return np.zeros(self.known.size)
        _PROGRESS.info("standard deviations")
        variance = conditional_variance(self.graph, self.known, self.alpha, random_state=self.random_state)
        variance += _quadratic_forms(self.directions - self._filled, self._covariance)
        return np.where(self.known, 0.0, student_std(self.conditional_scale, variance, self.dof))

    def conditional_errors(self, count: int, rng: np.random.Generator) -> Floats:
        """Return joint draws (n, count) of outcomes less predictions, residuals being propagated; 0 at the labels."""
        drawn = draw_conditional(self.graph, self.known, self.alpha, count, rng)
        drawn += (self.directions - self._filled) @ _drawn(self._covariance, count, rng)
        return np.where(self.known[:, None], 0.0, self._student(self.conditional_scale) * drawn)

    def marginal_errors(self, count: int, rng: np.random.Generator) -> Floats:
        """Return joint draws (n, count) of outcomes less the fit, residuals not being propagated."""
        drawn = draw_conditional(self.graph, np.zeros_like(self.known), self.alpha, count, rng)
        G = self.directions[self.known]
        left = self._covariance - G.T @ self._smoothed[self.known]  # what a prior leaves open
        drawn -= self.directions @ (G.T @ drawn[self.known] + _drawn(left, count, rng))
        return self._student(self.marginal_scale) * drawn

    def _student(self, scale: float) -> float:
        return float(student_std(scale, np.ones(1), self.dof)[0])

    @cached_property
    def _variance(self) -> Floats:
        r"""Variance of outcome less fit, in noise: :math:`\Sigma_{uu} - 2 \Sigma_{uL} G_L g_u + g_u' K g_u`."""
        G = self.directions
        variance = (
            self._marginal - 2.0 * np.einsum("ij,ij->i", self._smoothed, G) + _quadratic_forms(G, self._covariance)
        )
        return np.asarray(np.maximum(variance, 0.0))

    @cached_property
    def marginal_scale(self) -> float:
        r"""Noise scale: :math:`\tau^2` is the sum of :math:`r_i^2 / \Sigma_{ii}` over what is expected of it."""
        each = self._marginal[self.known]
        return root_mean(self.residuals**2 / each, self._left(self._variance[self.known] / each))

    @property
    def marginal_std(self) -> Floats:
        """Standard deviation of outcomes about the fit, residuals not being propagated; shape (n,)."""
        return student_std(self.marginal_scale, self._variance, self.dof)

    def std_on_other_graph(self, graph: Graph, directions: Floats) -> Floats:
        """Return the same at the nodes of another graph, on which the directions are given."""
        variance = marginal_variance(graph, self.alpha, random_state=self.random_state) + _quadratic_forms(
            directions, self._covariance
        )
        return student_std(self.marginal_scale, variance, self.dof)

r"""Error bars: the residuals of a prediction are Gaussian with covariance :math:`\tau^2 (I + \omega N)^{-1}`.

The noise scale :math:`\tau` is estimated from the residuals at the labelled nodes. It is NaN, and so are the standard
deviations, when there are no more labels than fitted coefficients: then nothing is left to estimate it from.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from graphmrf.estimators.choices import as_omega
from graphmrf.linalg import conditional_variance, loo_precision, marginal_variance, multiply

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats
    from graphmrf.graph import Graph


_PROGRESS = logging.getLogger("graphmrf.progress")


@dataclass(frozen=True)
class ConditionalErrorBars:
    r"""Error bars of residuals that are observed at the labelled nodes and propagated to the others.

    Attributes
    ----------
    graph : Graph
        The graph.
    known : bool array of shape (n,)
        The labelled nodes `L`.
    values : array of shape (n,)
        Residuals `r` at `L`, propagated ones elsewhere.
    alpha : float
        Smoothing level.
    spent : int
        Coefficients that were fitted before the residuals were taken.
    seed : int
        Seed of the probes that estimate variances on large graphs.
    """

    graph: Graph
    known: Bools
    values: Floats
    alpha: float
    spent: int
    seed: int

    @cached_property
    def scale(self) -> float:
        r"""Noise scale from leave-one-out residuals.

        .. math:: \tau^2 = \frac{1}{|L| - k} \sum_{i \in L} \frac{(P r)_i^2}{P_{ii}}, \qquad
                  P = ([(I + \omega N)^{-1}]_{LL})^{-1}

        Given the other labels, label i lies :math:`(P r)_i / P_{ii}` from its mean with variance
        :math:`\tau^2 / P_{ii}`; `k` coefficients were fitted.
        """
        _PROGRESS.info("scale of the noise")
        column = self.values[:, None]
        Pr = column + as_omega(self.alpha) * (column - multiply(self.graph, column))
        P = loo_precision(self.graph, self.known, self.alpha, seed=self.seed)
        return root_mean(Pr[self.known, 0] ** 2 / P, self.spent)

    @cached_property
    def std(self) -> Floats:
        """Standard deviation given the labels, 0 at the labelled nodes, shape (n,)."""
        if self.known.all():
            return np.zeros(self.known.size)
        _PROGRESS.info("standard deviations")
        variance = conditional_variance(self.graph, self.known, self.alpha, seed=self.seed)
        return np.where(self.known, 0.0, self.scale * np.sqrt(variance))


@dataclass(frozen=True)
class MarginalErrorBars:
    """Error bars of residuals that are not conditioned on: every node has the marginal standard deviation.

    Attributes
    ----------
    graph : Graph
        The graph.
    known : bool array of shape (n,)
        The labelled nodes.
    residuals : array of shape (n_labelled,)
        Labels less predictions.
    alpha, spent, seed
        As in `ConditionalErrorBars`.
    """

    graph: Graph
    known: Bools
    residuals: Floats
    alpha: float
    spent: int
    seed: int

    @cached_property
    def variance(self) -> Floats:
        r"""Diagonal of :math:`(I + \omega N)^{-1}`."""
        return marginal_variance(self.graph, self.alpha, seed=self.seed)

    @cached_property
    def scale(self) -> float:
        r"""Noise scale :math:`\tau^2 = \sum_{i \in L} r_i^2 / v_i / (|L| - k)`, with `v` the variance."""
        return root_mean(self.residuals**2 / self.variance[self.known], self.spent)

    @property
    def std(self) -> Floats:
        """Standard deviation of every node, shape (n,)."""
        return np.asarray(self.scale * np.sqrt(self.variance))


def root_mean(squares: Floats, spent: int) -> float:
    """Return the root mean square with the degrees of freedom spent taken off the count; NaN when none is left."""
    left = squares.size - spent
    return float(np.sqrt(squares.sum() / left)) if left > 0 else float("nan")

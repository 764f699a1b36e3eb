r"""The paper's own model of features and outcome together.

Where it holds, the features of all nodes, labelled or not, say something of its parameters, too: the labels alone give
:math:`y | X \sim N((I + \omega N)^{-1} X b, f (I + \omega N)^{-1})` with larger errors. Whether it holds the labels
say: the likelihood of y given X at the joint parameters must not be far below the highest.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from graphmrf.errors import ConvergenceError, InvalidInputError
from graphmrf.field.hyperparameters import Space
from graphmrf.field.matern import OMEGAS
from graphmrf.field.posterior import FieldPosterior, Known
from graphmrf.linalg.dense import Factor
from graphmrf.model.mrf import GaussianMRF

if TYPE_CHECKING:
    from graphmrf._typing import Floats
    from graphmrf.field.covariance import Covariance
    from graphmrf.graph import Graph

_PROGRESS = logging.getLogger("graphmrf.progress")

_PER_PARAMETER = 10
"""Nodes for each parameter of the joint model, and labels for each of the outcome's own, that it takes."""


@dataclass(frozen=True, eq=False)
class Markov:
    """Features and labels of some nodes, for the joint model.

    Attributes
    ----------
    graph : Graph
        The graph.
    covariance : Covariance
        The standardised features, and the labelled nodes.
    X : array of shape (n, p)
        The features that vary, in units of their standard deviations, not centred.
    y : array of shape (m,)
        The labels, in units of their standard deviation, not centred.
    """

    graph: Graph
    covariance: Covariance
    X: Floats
    y: Floats

    @cached_property
    def mrf(self) -> GaussianMRF | None:
        """The joint model of maximum likelihood; None where features are too many or (nearly) determine each other."""
        n, p = self.X.shape
        if (p + 1) * (p + 4) * _PER_PARAMETER > 2 * n or (p + 2) * _PER_PARAMETER > self.y.size:
            return None
        outcome = np.full(n, np.nan)
        outcome[self.covariance.rows] = self.y
        try:
            return GaussianMRF.fit(self.graph, np.column_stack([self.X, outcome]), center=False)
        except (InvalidInputError, ConvergenceError) as error:  # features determine each other, or the outcome
            _PROGRESS.info("no joint model of features and outcome: %s", error)
            return None

    def posterior(self, omega: float) -> tuple[FieldPosterior, float] | None:
        """Return the outcome given labels and features, with their log likelihood; None where the labels contradict.

        The likelihood of the labels may lie below the highest, at the level `omega` that the labels alone suggest, by
        no more than the number of parameters they would have determined (Akaike's criterion).
        """
        p = self.X.shape[1]
        if not p or self.mrf is None or not OMEGAS[0] <= self.mrf.omega() <= OMEGAS[1]:
            return None
        found = self._given(self.mrf)
        level = found.log_likelihood
        return (found, level) if level > self._highest(omega) - (p + 3) else None

    def _given(self, mrf: GaussianMRF) -> FieldPosterior:
        omega, beta, eigen = mrf.omega(), mrf.beta(), self.covariance.eigen
        spectrum = 1.0 / (1.0 + omega * eigen.values)
        mean = eigen.vectors @ (spectrum * (eigen.vectors.T @ (self.X @ beta)))
        field = float(spectrum.mean() / mrf.H[-1, -1])
        simple = Space(self.X.shape[1], simple=True, even=False).read(np.log([1.0, field, omega]))
        h, centre = replace(simple, constant=0.0, smoothed=0.0), float(self.y.mean())
        known = Known(mean - centre, beta * spectrum.mean())
        return FieldPosterior(self.covariance, h, self.y - centre, known)

    def _highest(self, omega: float) -> float:
        """Return the log likelihood of the labels at the best constant, coefficients and variance."""
        covariance, m = self.covariance, self.y.size
        factor = Factor.of(covariance.triangle, covariance.correlations.among(omega, 1.0, even=False).R)
        assert factor is not None  # the search ended there
        F = np.column_stack([np.ones(m), covariance.smoothings.among(omega, 1.0).X])
        z = self.y - self.y.mean()
        weights = np.linalg.lstsq(F.T @ factor.solve(F), F.T @ factor.solve(z), rcond=None)[0]
        left = z - F @ weights
        variance = float(left @ factor.solve(left)) / m
        return -0.5 * (m * float(np.log(2.0 * np.pi * variance)) + factor.log_determinant + m)

r"""The paper's own model, in which features act through the field only and labels have no noise.

.. math:: y \sim N(c + (I + \omega N)^{-1} X b,\; f (I + \omega N)^{-1})

Where it wins (see `family_wins`) with the exact solver, the features of all nodes, labelled or not, say something of
its parameters, too, through the joint model of features and outcome: the labels alone give them with larger errors.
Whether that holds the labels say: the likelihood of y given X at the joint parameters must be near the highest.

In the sparse form it has as many coefficients as there are features, and one hyper-parameter that is not linear.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize

from graphmrf.errors import ConvergenceError, InvalidInputError
from graphmrf.field.components.kernels import OMEGA
from graphmrf.field.design import damped, norm_probes
from graphmrf.field.exact import ExactPosterior
from graphmrf.field.hyperparameters import LEAST_NOISE, PAPER, Hyperparameters, Optimum, Space
from graphmrf.field.matern import OMEGAS
from graphmrf.field.sparse_system import EffectColumns, FieldSystem, fit_variances
from graphmrf.kept import cached_property
from graphmrf.linalg import smooth
from graphmrf.linalg.dense import Factor
from graphmrf.model.mrf import GaussianMRF

if TYPE_CHECKING:
    from graphmrf._typing import Floats
    from graphmrf.field.covariance import Covariance
    from graphmrf.field.design import Design, LabelledGraph
    from graphmrf.field.sparse_system import ProjectedColumns
    from graphmrf.graph import Graph

_PROGRESS = logging.getLogger("graphmrf.progress")

PAPER_RHO = 1e3
"""Variance of the field over that of the noise in the sparse form: next to none, but solves still converge."""

NOISE = LEAST_NOISE / PAPER_RHO
"""Least noise of the sparse form, which has none of its own: it is a fixed share of the field, whose floor this is."""

_PER_PARAMETER = 10
"""Nodes for each parameter of the joint model, and labels for each of the outcome's own; a rule of thumb."""
_RADII = (1.0, 0.1)
"""First and last trust region of log omega."""
_MOST_EVALUATIONS = 15
"""Levels tried at most, each with a solve for every feature."""
_LOOSE = 1e-3
"""Relative residual of the solves of the search."""
_HOPELESS = 0.05
"""Log evidence per label that no other level of smoothing gains."""


@dataclass(frozen=True, eq=False)
class JointModel:
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
        """The joint model of maximum likelihood, of mean 0.

        None where features are too many, (nearly) determine each other, or have means: they would gain more log
        likelihood than their number (Akaike's criterion).
        """
        n, p = self.X.shape
        if (p + 1) * (p + 4) * _PER_PARAMETER > 2 * n or (p + 2) * _PER_PARAMETER > self.y.size:
            return None
        A = np.column_stack([self.X, np.full(n, np.nan)])
        A[self.covariance.rows, -1] = self.y
        try:
            found = GaussianMRF.fit(self.graph, A, center=False)
        except (InvalidInputError, ConvergenceError) as error:  # features determine each other, or the outcome
            _PROGRESS.info("no joint model of features and outcome: %s", error)
            return None
        return found if self._gain_of_means(found, A) <= p + 1 else None

    def _gain_of_means(self, mrf: GaussianMRF, A: Floats) -> float:
        r"""Return the log likelihood that means of the attributes would gain, by the score test: less than they would.

        .. math:: \tfrac12 g'(n H + 1'N1\,C)^{-1} g, \qquad g = H A'1 + C A'N1,

        with missing entries of `A` at their expectation. Smooth attributes have a mean by chance; that of features that
        are not centred, coefficients would have to explain.
        """
        whole, constant = mrf.condition(self.graph, A).mean, self.graph.N @ np.ones(len(A))
        slope = mrf.H @ whole.sum(axis=0) + mrf.C @ (whole.T @ constant)
        return 0.5 * float(slope @ np.linalg.solve(len(A) * mrf.H + constant.sum() * mrf.C, slope))

    def posterior(self, omega: float) -> tuple[ExactPosterior, float] | None:
        """Return the outcome given labels and features, with their log likelihood; None where the labels contradict.

        The likelihood of the labels may lie below the highest, at the level `omega` that the labels alone suggest, by
        no more than the number of parameters they would have determined (Akaike's criterion).
        """
        p = self.X.shape[1]
        if not p or self.mrf is None or not OMEGAS[0] <= self.mrf.omega() <= OMEGAS[1]:
            return None
        found = self.given(self.mrf)
        level = found.log_likelihood
        return (found, level) if level > self._highest(omega) - (p + 3) else None

    def given(self, mrf: GaussianMRF) -> ExactPosterior:
        """Return the outcome given labels and features under a joint model."""
        omega, beta, eigen = mrf.omega(), mrf.beta(), self.covariance.eigen
        spectrum, level = 1.0 / (1.0 + omega * eigen.values), eigen.mean(omega, 1.0)
        mean = eigen.apply(spectrum[:, None], (self.X @ beta)[:, None])[0, :, 0]
        variance, centre = level / float(mrf.H[-1, -1]), float(self.y.mean())
        space = Space(self.covariance.components, self.X.shape[1], PAPER, unit_variance=False)
        known = {"constant": 0.0, "smoothed": 0.0, "field": variance, "omega": omega}
        h = Hyperparameters({**space.read(space.start), **known})
        return ExactPosterior(self.covariance, h, self.y - centre, mean - centre, beta * level)

    def _highest(self, omega: float) -> float:
        """Return the log likelihood of the labels at the best constant, coefficients and variance."""
        covariance, m = self.covariance, self.y.size
        factor = Factor.of(covariance.triangle, covariance.correlations.among(omega, 1.0, unit_variance=False).R)
        assert factor is not None  # the search ended there
        F = np.column_stack([np.ones(m), covariance.smoothings.among(omega, 1.0)])
        z = self.y - self.y.mean()
        weights = np.linalg.lstsq(F.T @ factor.solve(F), F.T @ factor.solve(z), rcond=None)[0]
        left = z - F @ weights
        variance = float(left @ factor.solve(left)) / m
        return -0.5 * (m * float(np.log(2.0 * np.pi * variance)) + factor.log_determinant + m)


@dataclass(frozen=True, eq=False)
class PaperSearch:
    """The search for the level of smoothing of the sparse form.

    Attributes
    ----------
    labelled : LabelledGraph
        Graph and labelled nodes; `unit_variance` says how nodes of unusual row norm count.
    design : Design
        Features.
    z : array of shape (m,)
        Standardised labels.
    start : float
        The omega where the search starts.
    """

    labelled: LabelledGraph
    design: Design
    z: Floats
    start: float
    _found: dict[float, float] = field(default_factory=dict, repr=False)

    def at(self, omega: float, tolerance: float) -> tuple[EffectColumns, ProjectedColumns]:
        """Return the smoothed features at one level, and seen through the field."""
        columns = self._smoothed(omega, 0.1 * tolerance)
        return columns, self._system(omega, tolerance).project(columns.F, self.z)

    def _system(self, omega: float, tolerance: float) -> FieldSystem:
        return FieldSystem(self.labelled, omega, PAPER_RHO, tolerance)

    def _smoothed(self, omega: float, tolerance: float) -> EffectColumns:
        """Return the smoothed features; with unit variance nodes of unusual row norm count as in `with_distant`."""
        graph, alpha = self.labelled.graph, omega / (1.0 + omega)
        X, usual = smoothed_features(graph, self.design, alpha, tolerance)
        scales = np.sqrt(np.mean((usual - usual.mean(axis=0)) ** 2, axis=0))
        X = usual if self.labelled.unit_variance else X
        centres = X.mean(axis=0)
        blocks = {"smoothed": (X - centres) / scales}
        columns = EffectColumns.of(graph.n_nodes, blocks, {"smoothed": 1.0 / self.design.p})
        return replace(columns, smoothing=(alpha, scales, centres))

    def log_evidence(self, omega: float) -> float:
        """Return the log marginal likelihood at one level, the best variances given."""
        if omega not in self._found:
            _PROGRESS.info("the paper's own model: evaluation %d", len(self._found) + 1)
            columns = self._smoothed(omega, 0.1 * _LOOSE).at(self.labelled.rows)
            equations = self._system(omega, _LOOSE).equations(columns.F, self.z)
            self._found[omega] = fit_variances(columns, equations, least_noise=NOISE)[1].log_evidence
        return self._found[omega]

    def log_posterior(self, omega: float) -> float:
        """Return the same with the prior of omega."""
        return self.log_evidence(omega) - 0.5 * ((math.log(omega) - OMEGA.start) / OMEGA.spread) ** 2

    def is_hopeless(self, reached: float) -> bool:
        """Return whether another log posterior is so far ahead already of the start that no search can catch up."""
        m = self.z.size
        return reached - self.log_posterior(self.start) > _HOPELESS * m + 10.0 * math.log(m)

    def run(self) -> Optimum:
        """Return the most likely level, a point of one omega."""

        def negative(point: Floats) -> float:
            return -self.log_posterior(self.start * math.exp(point[0]))

        options: Any = {"initial_tr_radius": _RADII[0], "final_tr_radius": _RADII[1], "maxfev": _MOST_EVALUATIONS}
        end = minimize(
            negative,
            np.zeros(1),
            method="COBYQA",
            bounds=[(OMEGA.lower - math.log(self.start), OMEGA.upper - math.log(self.start))],
            options=options,
        )
        omega = self.start * math.exp(end.x[0])
        return Optimum(np.array([omega]), self.log_evidence(omega), self.log_posterior(omega), len(self._found))


def smoothed_features(
    graph: Graph, design: Design, alpha: float, tolerance: float | None = None
) -> tuple[Floats, Floats]:
    """Return smoothed features, and the same with unusual row norms brought back to what is usual."""
    damping = damped(smooth(graph, norm_probes(design), alpha, tolerance=1e-3))
    smoothed = smooth(graph, design.groups[0], alpha, tolerance=tolerance)
    return smoothed, smoothed * damping

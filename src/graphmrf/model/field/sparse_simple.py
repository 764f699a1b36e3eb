r"""The paper's own model in the scalable form, in which features act through the field only and labels have no noise.

.. math:: y \sim N(c + (I + \omega N)^{-1} X b,\; f (I + \omega N)^{-1})

It has as many coefficients as there are features, and one hyper-parameter that is not linear. Its field and smoothed
features are large at nodes that few others reach, most of all at isolated ones. Whether they are, only labels of such
nodes can tell; unless they do, the same model is taken with these nodes like all others.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize

from graphmrf.model.field.sparse_columns import Columns, no_basis, smoothed
from graphmrf.model.field.sparse_system import System
from graphmrf.model.field.sparse_weights import fit_weights

if TYPE_CHECKING:
    from graphmrf._typing import Floats
    from graphmrf.model.field.design import Design
    from graphmrf.model.field.sparse_system import Ground, Projection

_PROGRESS = logging.getLogger("graphmrf.progress")

RHO = 1e3
"""Variance of the field over that of the noise: next to none."""

_OMEGAS = (0.05, 1e3)
_PRIOR = (20.0, 2.0)
_RADII = (1.0, 0.1)
_MOST_EVALUATIONS = 15
_LOOSE = 1e-3
_HOPELESS = 0.05
"""Log evidence per label that no other level of smoothing gains."""


@dataclass(frozen=True)
class SimpleOptimum:
    """Where its search ended.

    Attributes
    ----------
    search : SimpleSearch
        Which variant it is of.
    omega, log_evidence : float
        The most likely level of smoothing, and the log evidence there.
    evaluations : int
        Likelihoods computed.
    """

    search: SimpleSearch
    omega: float
    log_evidence: float
    evaluations: int


@dataclass(frozen=True, eq=False)
class SimpleSearch:
    """The search for the level of smoothing.

    Attributes
    ----------
    ground : Ground
        Graph and labelled nodes; `even` says how nodes of unusual reach count.
    design : Design
        Features.
    z : array of shape (m,)
        Standardised labels.
    start : float
        The omega where the search starts.
    """

    ground: Ground
    design: Design
    z: Floats
    start: float

    def at(self, omega: float, tolerance: float) -> tuple[Columns, Projection]:
        """Return the smoothed features at one level, and seen through the field."""
        graph, alpha = self.ground.graph, omega / (1.0 + omega)
        made = smoothed(graph, self.design, alpha, even=self.ground.even, tolerance=0.1 * tolerance)
        columns = Columns(self.design, no_basis(self.design), made)
        return columns, System(self.ground, omega, RHO, tolerance).project(columns.F, self.z)

    def log_evidence(self, omega: float) -> float:
        """Return the log marginal likelihood at one level, the best variances given."""
        columns, projection = self.at(omega, _LOOSE)
        return fit_weights(columns, projection.equations)[1].log_evidence

    def run(self) -> SimpleOptimum:
        """Return the most likely level."""
        found: dict[float, tuple[float, float]] = {}

        def negative(point: Floats) -> float:
            _PROGRESS.info("the paper's own model: evaluation %d", len(found) + 1)
            place = float(point[0])
            log_evidence = self.log_evidence(math.exp(place))
            prior = -0.5 * ((place - math.log(_PRIOR[0])) / _PRIOR[1]) ** 2
            found[place] = log_evidence + prior, log_evidence
            return -found[place][0]

        low, high = math.log(_OMEGAS[0]), math.log(_OMEGAS[1])
        minimize(
            negative,
            np.clip(np.log([self.start]), low, high),
            method="COBYQA",
            bounds=[(low, high)],
            options={
                "initial_tr_radius": _RADII[0],
                "final_tr_radius": _RADII[1],
                "maxfev": _MOST_EVALUATIONS,
            },
        )
        best = max(found, key=found.__getitem__)
        return SimpleOptimum(self, math.exp(best), found[best][1], len(found))


def paper_model(ground: Ground, design: Design, z: Floats, start: float) -> SimpleOptimum:
    """Return the paper's model at its most likely level.

    That nodes of unusual reach count for more than others must gain more than the logarithm of the number of labels.
    """
    even = SimpleSearch(ground, design, z, start).run()
    raw = SimpleSearch(replace(ground, even=False), design, z, even.omega).run()
    best = raw if raw.log_evidence - even.log_evidence > math.log(z.size) else even
    return replace(best, evaluations=even.evaluations + raw.evaluations)


def hopeless(ground: Ground, design: Design, z: Floats, start: float, *, reached: float) -> bool:
    """Return whether another model's log evidence is so far ahead already at the start that no search can catch up."""
    there = (SimpleSearch(replace(ground, even=kind), design, z, start).log_evidence(start) for kind in (True, False))
    return all(reached - log_evidence > _HOPELESS * z.size + 10.0 * math.log(z.size) for log_evidence in there)

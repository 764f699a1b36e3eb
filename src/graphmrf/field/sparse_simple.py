r"""The paper's own model in the scalable form, in which features act through the field only and labels have no noise.

.. math:: y \sim N(c + (I + \omega N)^{-1} X b,\; f (I + \omega N)^{-1})

It has as many coefficients as there are features, and one hyper-parameter that is not linear. Its field and smoothed
features are large at nodes that few others reach, most of all at isolated ones. Whether they are, only labels of such
nodes can tell; unless they do, the same model is taken with these nodes like all others.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize

from graphmrf.field.sparse_columns import Columns, no_basis, smoothed
from graphmrf.field.sparse_system import System
from graphmrf.field.sparse_weights import fit_weights

if TYPE_CHECKING:
    from typing import Self

    from graphmrf._typing import Floats
    from graphmrf.field.design import Design
    from graphmrf.field.sparse_system import Ground, Projection

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
    _found: dict[float, float] = field(default_factory=dict, repr=False)

    def at(self, omega: float, tolerance: float) -> tuple[Columns, Projection]:
        """Return the smoothed features at one level, and seen through the field."""
        graph, alpha = self.ground.graph, omega / (1.0 + omega)
        made = smoothed(graph, self.design, alpha, even=self.ground.even, tolerance=0.1 * tolerance)
        columns = Columns(self.design, no_basis(self.design), made)
        return columns, System(self.ground, omega, RHO, tolerance).project(columns.F, self.z)

    def log_evidence(self, omega: float) -> float:
        """Return the log marginal likelihood at one level, the best variances given."""
        if omega not in self._found:
            _PROGRESS.info("the paper's own model: evaluation %d", len(self._found) + 1)
            columns, projection = self.at(omega, _LOOSE)
            self._found[omega] = fit_weights(columns, projection.equations)[1].log_evidence
        return self._found[omega]

    def run(self) -> SimpleOptimum:
        """Return the most likely level."""

        def negative(point: Floats) -> float:
            omega = self.start * math.exp(point[0])
            return 0.5 * (math.log(omega / _PRIOR[0]) / _PRIOR[1]) ** 2 - self.log_evidence(omega)

        end = minimize(
            negative,
            np.zeros(1),
            method="COBYQA",
            bounds=[(math.log(_OMEGAS[0] / self.start), math.log(_OMEGAS[1] / self.start))],
            options={
                "initial_tr_radius": _RADII[0],
                "final_tr_radius": _RADII[1],
                "maxfev": _MOST_EVALUATIONS,
            },
        )
        omega = self.start * math.exp(end.x[0])
        return SimpleOptimum(self, omega, self.log_evidence(omega), len(self._found))


@dataclass(frozen=True, eq=False)
class PaperModel:
    """Both variants of the paper's model.

    Attributes
    ----------
    even, uneven : SimpleSearch
        With nodes of unusual reach like all others, and as they are.
    """

    even: SimpleSearch
    uneven: SimpleSearch

    @classmethod
    def of(cls, ground: Ground, design: Design, z: Floats, start: float) -> Self:
        """Return the searches from one start."""
        grounds = (ground, replace(ground, even=False))
        return cls(*(SimpleSearch(kind, design, z, start) for kind in grounds))

    def is_hopeless(self, reached: float) -> bool:
        """Return whether another log evidence is so far ahead already of the start that no search can catch up."""
        m, start = self.even.z.size, self.even.start
        ahead = reached - max(self.even.log_evidence(start), self.uneven.log_evidence(start))
        return ahead > _HOPELESS * m + 10.0 * math.log(m)

    def best(self) -> SimpleOptimum:
        """Return the most likely one.

        That nodes of unusual reach are not like others must gain more than the logarithm of the number of labels.
        """
        even, uneven = self.even.run(), self.uneven.run()
        best = uneven if uneven.log_evidence - even.log_evidence > math.log(self.even.z.size) else even
        return replace(best, evaluations=even.evaluations + uneven.evaluations)

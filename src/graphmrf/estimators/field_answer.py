"""What a fitted general field says of the nodes of its graph, in the units of the outcome."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from graphmrf.field import Calibration, unseen
from graphmrf.field.sparse_posterior import SparsePosterior

if TYPE_CHECKING:
    from graphmrf._typing import Floats, Ints
    from graphmrf.estimators.field_solvers import Posterior
    from graphmrf.estimators.inputs import Outcome, Table
    from graphmrf.field import Design, Scale

FEW = 200
"""Labels up to which error bars are calibrated on labels that had no part in the hyper-parameters."""

_FEWEST, _FOLDS = 10, 5
_EFFECTS = ("own", "neighbours", "second neighbours")


@dataclass(frozen=True, eq=False)
class FieldAnswer:
    """Everything is computed when first asked for.

    Attributes
    ----------
    posterior : FieldPosterior or SparsePosterior
        The standardised field given its labels.
    design : Design
        The features as the field sees them.
    scale : Scale
        From standardised values to the units of the outcome.
    outcome : Outcome
        The labels.
    table : Table
        The features.
    seed : int
        Seed of the folds by which a few labels are calibrated.
    """

    posterior: Posterior
    design: Design
    scale: Scale
    outcome: Outcome
    table: Table
    seed: int = 0

    @property
    def single(self) -> bool:
        """Whether everything was given in float32."""
        return self.outcome.single and (self.table.single or not self.table.columns.count)

    @cached_property
    def _unknown(self) -> Ints:
        return np.flatnonzero(~self.outcome.known)

    @cached_property
    def calibration(self) -> Calibration:
        """Standardised residuals of labels given the others; of few labels, by fields fitted without their fold."""
        if not isinstance(self.posterior, SparsePosterior) and _FEWEST <= self.outcome.n_labelled <= FEW:
            residual, variance = unseen(self.posterior, self.outcome.folds(_FOLDS, self.seed), seed=self.seed)
        else:
            residual, variance = self.posterior.left_out
        return Calibration(residual / np.sqrt(variance))

    @cached_property
    def _standardised(self) -> tuple[Floats, Floats]:
        mean, variance = self.posterior.moments(self._unknown)
        return mean, np.sqrt(variance)

    @cached_property
    def predictions(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of every node."""
        mean, std = self._standardised
        centre, spread = self.scale.moments(mean, self.calibration.scale * std)
        return self._filled(centre, self.outcome.y), self._filled(spread, np.zeros(self.outcome.y.size))

    def end(self, reach: float) -> Floats:
        """Return the point that lies some standard deviations from the centre, for every node."""
        mean, std = self._standardised
        return self._filled(self.scale.back(mean + reach * std), self.outcome.y)

    def draw(self, count: int, seed: int) -> Floats:
        """Return joint draws of all nodes, as far about their mean as the standard deviations of `predictions` say."""
        draws, mean = self.posterior.draw(self._unknown, count, np.random.default_rng(seed)), self._standardised[0]
        whole = np.tile(self.outcome.y, (count, 1))
        whole[:, self._unknown] = self.scale.back(mean + self.calibration.scale * (draws - mean))
        return whole

    def _filled(self, values: Floats, known: Floats) -> Floats:
        whole = known.copy()
        whole[self._unknown] = values
        return whole

    @cached_property
    def coefficients(self) -> pd.DataFrame:
        """Linear coefficients and their standard errors, per unit of the feature."""
        mean, std = self.posterior.coefficients
        unit, scales = self.scale.unit, self._scales
        names = self.table.columns.names
        frame = pd.DataFrame(index=pd.RangeIndex(self.table.columns.count) if names is None else names, dtype=float)
        last = "distant" if isinstance(self.posterior, SparsePosterior) else "smoothed"
        for k, name in enumerate((*_EFFECTS, last)):
            for title, values in ((name, mean[k]), (f"{name} (standard error)", std[k])):
                column = np.zeros(self.table.columns.count)
                column[self.design.kept] = unit * values / scales[k]
                frame[title] = column
        return frame

    @property
    def _scales(self) -> Floats:
        r"""Scales of all groups; the exact solver smooths by :math:`(I + \omega N)^{-\nu}` over its mean eigenvalue."""
        scales = self.design.scales
        if isinstance(self.posterior, SparsePosterior):
            return scales
        h, eigenvalues = self.posterior.h, self.posterior.covariance.eigen.values
        return np.vstack([scales, scales[:1] * np.mean((1.0 + h.omega * eigenvalues) ** -h.nu)])

    @cached_property
    def left_out(self) -> pd.DataFrame:
        """What the others say of every label."""
        residual, variance = self.posterior.left_out
        mean, std = self.scale.moments(self.posterior.z - residual, self.calibration.scale * np.sqrt(variance))
        rows = np.flatnonzero(self.outcome.known)
        return pd.DataFrame({"node": rows, "label": self.outcome.y[rows], "prediction": mean, "std": std})

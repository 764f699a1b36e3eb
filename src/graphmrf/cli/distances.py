"""Accuracy and coverage by distance to the nearest known value, from out-of-fold predictions."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from graphmrf._typing import Bools, Floats
from graphmrf.estimators.base import CheckedEstimator
from graphmrf.estimators.calibration import has_std_out_of_fold, predicted_with_std
from graphmrf.estimators.error_bars import interval_width
from graphmrf.estimators.inputs import Outcome
from graphmrf.estimators.out_of_fold import out_of_fold
from graphmrf.graph import Graph
from graphmrf.kept import cached_property
from graphmrf.report import FurtherTable
from graphmrf.selection import MatchedFolds
from graphmrf.text import DASH, number

BANDS = ((1, 1, "1"), (2, 3, "2 to 3"), (4, 9, "4 to 9"), (10, np.inf, "10 and more"))
"""Bands of steps to the nearest known value, ends included, and their names."""
NOT_CONNECTED = "not connected"
TITLE = "Accuracy by distance to the nearest known value"


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Known values predicted without their fold, and how far they then are from known values.

    Parameters
    ----------
    estimator : estimator
        The fit.
    graph, X, outcome : Graph, features, Outcome
        What it was fitted on.
    folds : MatchedFolds
        Folds that imitate the holes.
    """

    estimator: Any
    graph: Graph
    X: pd.DataFrame | None
    outcome: Outcome
    folds: MatchedFolds

    @cached_property
    def predictions(self) -> tuple[Floats, Floats]:
        """Out-of-fold means and standard deviations (n_labelled,)."""
        return predicted_with_std(self.estimator, self.graph, self.X, self.outcome, self.folds.folds)

    @property
    def mean(self) -> Floats:
        """Out-of-fold means (n_labelled,)."""
        if has_std_out_of_fold(self.estimator):
            return self.predictions[0]
        return out_of_fold(self.estimator, self.graph, self.X, self.outcome.y, self.folds.folds)

    @property
    def has_error_bars(self) -> bool:
        """Whether the estimator has standard deviations out of fold."""
        return isinstance(self.estimator, CheckedEstimator) or has_std_out_of_fold(self.estimator)

    def covered(self, level: float) -> Bools:
        """Return whether each known value (n_labelled,) lies inside its out-of-fold interval, widened as others are."""
        if isinstance(self.estimator, CheckedEstimator):
            return self.estimator.interval_check_.covered(level)
        mean, std = self.predictions
        width = interval_width(level, getattr(self.estimator, "dof_", 0.0)) * std
        return np.asarray(np.abs(self.outcome.y[self.outcome.known] - mean) <= width)

    def by_distance(self, predictions: Floats, level: float) -> pd.DataFrame:
        """Return a row for each band of distances that has nodes.

        Parameters
        ----------
        predictions : array of shape (n_labelled,)
            Out-of-fold predictions.
        level : float
            Probability of the intervals.

        Returns
        -------
        DataFrame
            `steps` (the band), `to_predict` and `held_out` (numbers of nodes), `error` (root mean square of held-out
            values, NaN for none) and `covered` (share of them inside their interval, NaN where there are none).
        """
        errors = predictions - self.outcome.y[self.outcome.known]
        inside = self.covered(level).astype(float) if self.has_error_bars else np.full(errors.size, np.nan)
        rows = []
        for low, high, name in (*BANDS, (np.inf, np.inf, NOT_CONNECTED)):
            target, held = (_within(each, low, high) for each in (self.folds.target, self.folds.distances))
            error = float(np.sqrt(np.mean(errors[held] ** 2))) if held.any() else np.nan
            covered = float(inside[held].mean()) if held.any() else np.nan
            rows.append((name, int(target.sum()), int(held.sum()), error, covered))
        frame = pd.DataFrame(rows, columns=["steps", "to_predict", "held_out", "error", "covered"])
        return frame[(frame["to_predict"] > 0) | (frame["held_out"] > 0)].reset_index(drop=True)


def _within(distances: Floats, low: float, high: float) -> Bools:
    """Return which distances lie in a band; infinite ones in the last only."""
    finite = np.isfinite(distances)
    return ~finite & ~np.isnan(distances) if np.isinf(low) else finite & (distances >= low) & (distances <= high)


def heads(level: float) -> tuple[str, ...]:
    """Return the heads of the columns."""
    return ("steps", "nodes to predict", "held-out values", "typical error", f"inside {100 * level:g} % interval")


def cells(rows: pd.DataFrame) -> list[tuple[str, ...]]:
    """Return the rows as text.

    Examples
    --------
    >>> cells(pd.DataFrame({"steps": ["1"], "to_predict": 1200, "held_out": 30, "error": 0.5, "covered": 0.9}))
    [('1', '1,200', '30', '0.500', '90 %')]
    """
    numbers = [[f"{n:,}" for n in rows[name].tolist()] for name in ("to_predict", "held_out")]
    errors, shares = map(_shown, rows["error"].tolist()), map(_percent, rows["covered"].tolist())
    return list(zip(rows["steps"].tolist(), *numbers, errors, shares, strict=True))


def _shown(value: float) -> str:
    return number(value) if np.isfinite(value) else DASH


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if np.isfinite(share) else DASH


def page_table(rows: pd.DataFrame, level: float) -> FurtherTable:
    """Return the table of the page."""
    first, *others = heads(level)
    about = (
        "Steps along edges from a node to the nearest known value; of a held-out value, to the nearest one that was "
        "not held out with it. The typical error is the root mean square of out-of-fold errors."
    )
    return FurtherTable(TITLE, about, (first, *(f"#{name}" for name in others)), cells(rows))

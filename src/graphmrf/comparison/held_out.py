"""Out-of-fold predictions of known values: scores, errors and coverage of intervals, also by distance to a label."""

from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd

from graphmrf._typing import Bools, Floats, Ints
from graphmrf.caching import cached_property
from graphmrf.estimators.error_bars import interval_width
from graphmrf.estimators.inputs import Outcome
from graphmrf.estimators.out_of_fold import has_std_out_of_fold, out_of_fold, refits
from graphmrf.field.likelihoods import Likelihood
from graphmrf.graph import Graph
from graphmrf.selection import AlphaSearch, MatchedFolds


@dataclass(frozen=True, eq=False)
class Score:
    """The share of a loss that out-of-fold predictions explain, over that of one value or rate for all nodes.

    For numbers the loss is the squared error and the score R². For counts and shares it is the Poisson or binomial
    deviance, in which a large count does not outweigh all others.

    Examples
    --------
    >>> from graphmrf.field.likelihoods import LIKELIHOODS
    >>> deviance = Score("explained deviance", LIKELIHOODS["poisson"], np.array([10.0, 100.0, 10.0, 100.0]))
    >>> cases, predicted = np.array([1.0, 10.0, 4.0, 20.0]), np.array([2.0, 14.0, 3.0, 16.0])
    >>> round(1.0 - float(deviance.losses(predicted, cases, np.ones(4)).mean()), 2)
    0.51
    """

    name: str = "R²"
    likelihood: Likelihood | None = None
    size: Floats | None = None  # (n_labelled,): exposure or trials

    @property
    def key(self) -> str:
        """Name of the score in JSON and as a column."""
        return self.name.replace("²", "2").replace(" ", "_").lower()

    def _loss(self, y: Floats, predictions: Floats) -> Floats:
        if self.likelihood is None or self.size is None:
            return np.asarray((y - predictions) ** 2)
        return self.likelihood.deviance(y, predictions, self.size)

    def alone(self, y: Floats, weights: Floats) -> Floats:
        """Return the weighted losses (n_labelled,) of one value or rate for all."""
        size = np.ones(y.size) if self.size is None else self.size
        return weights * self._loss(y, size * (weights @ y) / (weights @ size))

    def losses(self, predictions: Floats, y: Floats, weights: Floats) -> Floats:
        """Return weighted losses of predictions (..., n_labelled), in units of the mean loss of one value or rate."""
        return np.asarray(weights * self._loss(y, predictions) / (self.alone(y, weights).mean() or np.nan))

    def search(self, predictions: Floats, y: Floats, folds: MatchedFolds, alpha: float) -> dict[str, Floats]:
        """Return the scores of one prediction (n_labelled,), of all labels and of every fold, as in ``cv_results_``."""
        if self.likelihood is None:
            return AlphaSearch.score((alpha,), predictions[None], y, folds.folds, folds.weights).table()

        def explained(part: Bools) -> float:
            own = self if self.size is None else replace(self, size=self.size[part])
            return 1.0 - float(own.losses(predictions[part], y[part], folds.weights[part]).mean())

        parts = [explained(folds.folds == fold) for fold in range(folds.n_folds)]
        whole = np.array([explained(np.ones(y.size, dtype=bool))])
        return {
            "alpha": np.full(1, alpha),
            "mean_r2": whole,
            "fold_r2": np.array([parts]),
            "out_of_fold": predictions[None],
        }

    def error(self, losses: Floats, y: Floats, folds: MatchedFolds) -> float:
        """Return the standard error of the score from the losses (n_labelled,) of a prediction."""
        alone = self.alone(y, folds.weights)
        return standard_error(losses - losses.mean() * alone / (alone.mean() or np.nan), folds.n_folds, folds.regions)


R2 = Score()


def standard_error(differences: Floats, n_folds: int, regions: Ints | None = None) -> float:
    r"""Return the standard error of the mean of cross-validated differences (n,), which share training data.

    It is the corrected resampled one of Nadeau and Bengio (2003): with a variance :math:`s^2` of the differences

    .. math:: \frac{s^2 K}{n} \left(\frac{1}{K} + \frac{1}{K - 1}\right).

    Where folds are regions, labels of a region count as one observation: :math:`s^2` is n times the variance of the
    mean by the sums over regions.

    Examples
    --------
    >>> round(standard_error(np.array([1.0, -1.0, 1.0, -1.0]), n_folds=2), 6)
    1.0
    """
    if differences.size < 2:
        return float("nan")
    n = differences.size
    regions = np.arange(n) if regions is None else regions
    sums = np.bincount(regions, weights=differences - differences.mean())
    if sums.size < 2:
        return float("nan")
    variance = np.sum(sums**2) / n * sums.size / (sums.size - 1)
    return float(np.sqrt(variance * (1 + n_folds / (n_folds - 1)) / n))


# Bands of steps to the nearest known value, ends included, and their names.
BANDS = ((1, 1, "1"), (2, 3, "2 to 3"), (4, 9, "4 to 9"), (10, np.inf, "10 and more"))
THIRDS = ("smallest", "middle", "largest")  # of known values by their out-of-fold standard deviation
NOT_CONNECTED = "not connected"
LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)  # levels of the intervals whose coverage is measured


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Known values predicted by a fit without their fold.

    Examples
    --------
    >>> from graphmrf.estimators import LabelPropagation
    >>> from graphmrf.estimators.inputs import read_outcome
    >>> path = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4])
    >>> y = np.array([1.0, 2.0, np.nan, 4.0, 5.0])
    >>> outcome = read_outcome(y, 5)
    >>> model = LabelPropagation(alpha=0.9).fit(path, None, y)
    >>> held = HeldOut(model, path, None, outcome, outcome.matched_folds(path, 2, 0))
    >>> held.mean.shape, held.has_error_bars
    ((4,), True)
    """

    model: Any
    # graph, X, outcome: what it was fitted on
    graph: Graph
    X: pd.DataFrame | None
    outcome: Outcome
    folds: MatchedFolds  # folds that imitate the holes

    @cached_property
    def predictions(self) -> tuple[Floats, Floats]:
        """Out-of-fold means and standard deviations (n_labelled,)."""
        if has_std_out_of_fold(self.model):
            data = self.graph, self.X, self.outcome.y, self.folds.folds
            mean, std = self.model.out_of_fold(*data, return_std=True)
            return np.asarray(mean), np.asarray(std)
        if hasattr(self.model, "interval_check_"):
            mean, std = self.model.interval_check_.predictions
            return mean, std
        return self._refitted()

    def _refitted(self) -> tuple[Floats, Floats]:
        """Return means and standard deviations by plain refits without each fold."""
        known, folds = self.outcome.known, self.folds.folds
        mean, std = np.empty(folds.size), np.empty(folds.size)
        for own, found in refits(self.model, self.graph, self.X, self.outcome, folds):
            mean[own], std[own] = (np.asarray(each)[known][own] for each in found.predict(return_std=True))
        return mean, std

    @cached_property
    def mean(self) -> Floats:
        """Out-of-fold means (n_labelled,)."""
        if has_std_out_of_fold(self.model):
            return self.predictions[0]
        return out_of_fold(self.model, self.graph, self.X, self.outcome.y, self.folds.folds)

    @property
    def has_error_bars(self) -> bool:
        """Whether the model has standard deviations."""
        return "return_std" in signature(self.model.predict).parameters

    def covered(self, level: float) -> Bools:
        """Return whether each known value (n_labelled,) lies inside its out-of-fold interval, widened as others are."""
        if hasattr(self.model, "interval_check_"):
            return np.asarray(self.model.interval_check_.covered(level))
        mean, std = self.predictions
        width = interval_width(level, getattr(self.model, "dof_", 0.0)) * std
        return np.asarray(np.abs(self.outcome.y[self.outcome.known] - mean) <= width)

    def standardised(self, predictions: Floats) -> Floats:
        """Return residuals (n_labelled,) of out-of-fold predictions, in standard deviations; NaN where there are none.

        Each is over its own standard deviation where the model has an out-of-fold one, else over the root mean square
        of all.
        """
        errors = self.outcome.y[self.outcome.known] - predictions
        own = has_std_out_of_fold(self.model)
        std = self.predictions[1] if own else np.full(errors.size, np.sqrt(np.mean(errors**2)))
        with np.errstate(invalid="ignore", divide="ignore"):
            residual = errors / std
        return np.where(np.isfinite(residual), residual, np.nan)

    def coverage(self, level: float) -> pd.DataFrame | None:
        """Return the share of known values `inside` their intervals of each `level`, the one given among them."""
        if not self.has_error_bars:
            return None
        levels = np.unique([*LEVELS, level])
        inside = [float(np.average(self.covered(each), weights=self.folds.weights)) for each in levels]
        return pd.DataFrame({"level": levels, "inside": inside})

    def by_distance(self, predictions: Floats, level: float) -> pd.DataFrame:
        """Return a row for each band of distances that has nodes.

        `predictions` (n_labelled,): out-of-fold predictions. `level`: probability of the intervals. Returns DataFrame:
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

    def by_spread(self, predictions: Floats, level: float) -> pd.DataFrame | None:
        """Return a row for each third of the known values by their out-of-fold standard deviation, smallest first.

        None where they are fewer than three, or their standard deviations are all the same. The parameters are those
        of `by_distance`.

        Returns DataFrame: `third`, `held_out` (number of values), `std` (mean), `error` (root mean square) and
        `covered`.
        """
        std = self.predictions[1] if self.has_error_bars else np.zeros(0)
        if std.size < len(THIRDS) or not np.ptp(std) > 1e-6 * std.max():
            return None
        squares, inside = (predictions - self.outcome.y[self.outcome.known]) ** 2, self.covered(level)
        rows = [
            (name, part.size, float(std[part].mean()), float(np.sqrt(squares[part].mean())), float(inside[part].mean()))
            for name, part in zip(THIRDS, np.array_split(np.argsort(std, kind="stable"), len(THIRDS)), strict=True)
        ]
        return pd.DataFrame(rows, columns=["third", "held_out", "std", "error", "covered"])


def _within(distances: Floats, low: float, high: float) -> Bools:
    """Return which distances lie in a band; infinite ones in the last only."""
    finite = np.isfinite(distances)
    return ~finite & ~np.isnan(distances) if np.isinf(low) else finite & (distances >= low) & (distances <= high)

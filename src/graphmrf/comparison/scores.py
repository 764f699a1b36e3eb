"""Scores of out-of-fold predictions: R², or the explained deviance of counts and shares, and their standard errors."""

from dataclasses import dataclass, replace

import numpy as np

from graphmrf._typing import Bools, Floats, Ints
from graphmrf.field.likelihoods import Likelihood
from graphmrf.selection import AlphaSearch, MatchedFolds


@dataclass(frozen=True, eq=False)
class Score:
    """The share of a loss that out-of-fold predictions explain, over that of one value or rate for all nodes.

    For numbers the loss is the squared error and the score R². For counts and shares it is the Poisson or binomial
    deviance, by which a large count does not outweigh all others.

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

"""What a search over smoothing levels found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphmrf._typing import Floats, Ints

ALPHAS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99, 0.999)
"""The grid of the paper."""


@dataclass(frozen=True)
class AlphaSearch:
    r"""Cross-validated predictions at every smoothing level, and the level that predicts best.

    The score that decides is the pooled :math:`R^2`: of all labelled nodes at once, each predicted by the fit that did
    not see it. (The paper sums the :math:`R^2` of the folds; the two differ only by how folds are weighted.)
    Of equal scores (squared errors within a relative 1e-9, or nothing but rounding) the first wins.

    Attributes
    ----------
    alphas : array of shape (n_alphas,)
        The levels tried.
    predictions : array of shape (n_alphas, n_labelled)
        Out-of-fold predictions of the labelled nodes, in node order.
    fold_r2 : array of shape (n_alphas, n_folds)
        :math:`R^2` of each fold about its own mean; NaN in a fold whose outcomes are all equal.
    mean_r2 : array of shape (n_alphas,)
        Pooled :math:`R^2`; NaN when all labelled outcomes are equal.
    best : int
        Position of the smallest squared error, which is that of the largest pooled :math:`R^2`.
    """

    alphas: Floats
    predictions: Floats
    fold_r2: Floats
    mean_r2: Floats
    best: int

    @classmethod
    def score(cls, alphas: Sequence[float] | Floats, predictions: Floats, y: Floats, folds: Ints) -> AlphaSearch:
        """Score out-of-fold predictions.

        Parameters
        ----------
        alphas : sequence of n_alphas floats
            The levels.
        predictions : array of shape (n_alphas, n_labelled)
            Prediction of each labelled node by the fit that did not see it.
        y : array of shape (n_labelled,)
            The outcomes.
        folds : integer array of shape (n_labelled,)
            Fold of each labelled node.

        Examples
        --------
        >>> import numpy as np
        >>> y, folds = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0, 0, 1, 1])
        >>> search = AlphaSearch.score([0.0, 0.5], np.array([[2.0, 2.0, 3.0, 3.0], y]), y, folds)
        >>> search.alpha, search.mean_r2
        (0.5, array([0.6, 1. ]))
        """
        unit = np.abs(y).max(initial=0.0) or 1.0  # without it squares of outcomes like 1e-200 would be 0
        squared, y = ((predictions - y) / unit) ** 2, y / unit
        groups = [folds == fold for fold in range(int(folds.max()) + 1)]
        fold_r2 = np.stack([_explained(squared[:, group], y[group]) for group in groups], axis=1)
        levels = np.asarray(alphas, dtype=np.float64)
        return cls(levels, predictions, fold_r2, _explained(squared, y), _first_least(squared.sum(axis=1), y))

    @property
    def alpha(self) -> float:
        """The level chosen."""
        return float(self.alphas[self.best])

    def table(self) -> dict[str, Floats]:
        """Return the scores under the names of an estimator's ``cv_results_``."""
        return {"alpha": self.alphas, "mean_r2": self.mean_r2, "fold_r2": self.fold_r2}


def _first_least(errors: Floats, y: Floats) -> int:
    """Return the first position whose error equals the least, up to rounding."""
    rounding = 1e-24 * np.sum((y - y.mean()) ** 2) + (32.0 * np.finfo(np.float64).eps) ** 2 * np.sum(y**2)
    return int(np.argmax(errors <= errors.min() * (1.0 + 1e-9) + rounding))


def _explained(squared: Floats, y: Floats) -> Floats:
    """R2 of every row of squared errors, NaN when y has no variance."""
    if (y == y[:1]).all():  # their mean may be rounded, and their variance then not 0
        return np.full(len(squared), np.nan)
    return np.asarray(1.0 - squared.sum(axis=1) / np.sum((y - y.mean()) ** 2))

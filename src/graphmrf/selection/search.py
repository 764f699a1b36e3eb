"""Search of the smoothing level by cross-validation, all folds and levels from one shared Krylov space.

Label propagation, linear graph convolution, and a base with its residuals propagated have one search each; all end in
an `AlphaSearch`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from graphmrf.linalg import propagate_labels, smooth_grid
from graphmrf.selection.least_squares import augmented_design, fit_from_factor, triangular

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.engines import Engine
    from graphmrf.graph import Graph
    from graphmrf.selection.folds import MatchedFolds
    from graphmrf.selection.least_squares import Whitened

_PROGRESS = logging.getLogger("graphmrf.progress")

# The grid of the paper, see its experiments; twice as fine it costs next to nothing, as levels share a Krylov
# space, but choices are noisier than its steps.
ALPHAS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99, 0.999)


@dataclass(frozen=True)
class AlphaSearch:
    r"""Cross-validated predictions at every smoothing level, and the level that predicts best.

    The score that decides is the pooled :math:`R^2`: of all labelled nodes at once, each predicted by the fit that did
    not see it. (The paper sums the :math:`R^2` of the folds; the two differ only by how folds are weighted.) Of equal
    scores (squared errors within a relative 1e-9, or rounding error) the first is taken.
    """

    alphas: Floats  # (n_alphas,): the levels tried
    predictions: Floats  # (n_alphas, n_labelled): out-of-fold predictions of the labelled nodes, in node order
    # (n_alphas, n_folds): `R^2` of each fold about its own mean; NaN in a fold whose outcomes are all equal
    fold_r2: Floats
    mean_r2: Floats  # (n_alphas,): pooled `R^2`; NaN when all labelled outcomes are equal
    best: int  # position of the smallest squared error, which is that of the largest pooled `R^2`

    @classmethod
    def score(
        cls,
        alphas: Sequence[float] | Floats,
        predictions: Floats,
        y: Floats,
        folds: Ints,
        weights: Floats | None = None,
    ) -> AlphaSearch:
        """Score out-of-fold predictions (n_alphas, n_labelled); `weights`: see `MatchedFolds.weights`."""
        unit = np.abs(y).max(initial=0.0) or 1.0  # without it squares of outcomes like 1e-200 would be 0
        squared, y = ((predictions - y) / unit) ** 2, y / unit
        weights = np.ones(y.size) if weights is None else weights
        groups = [folds == fold for fold in range(int(folds.max()) + 1)]
        fold_r2 = np.stack([_explained(squared[:, each], y[each], weights[each]) for each in groups], axis=1)
        # the first level with the least error up to rounding: to 1e-9 of it, or where predictions are exact to 1e-12
        # of the spread of the outcomes or to their last bits
        errors = (squared * weights).sum(axis=1)
        rounding = 1e-24 * np.sum((y - y.mean()) ** 2) + (32.0 * np.finfo(np.float64).eps) ** 2 * np.sum(y**2)
        best = int(np.argmax(errors <= errors.min() * (1.0 + 1e-9) + rounding))
        levels = np.asarray(alphas, dtype=np.float64)
        return cls(levels, predictions, fold_r2, _explained(squared, y, weights), best)

    def matched(self, y: Floats, folds: MatchedFolds) -> AlphaSearch:
        """Return the same predictions, scored with the weights of folds that imitate the holes."""
        return AlphaSearch.score(self.alphas, self.predictions, y, folds.folds, folds.weights)

    @property
    def alpha(self) -> float:
        """The level chosen."""
        return float(self.alphas[self.best])

    def table(self) -> dict[str, Floats]:
        """Return the scores under the names of an estimator's ``cv_results_``."""
        return {"alpha": self.alphas, "mean_r2": self.mean_r2, "fold_r2": self.fold_r2, "out_of_fold": self.predictions}


def _explained(squared: Floats, y: Floats, weights: Floats) -> Floats:
    """R2 of every row of squared errors, NaN when y has no variance."""
    if (y[weights > 0] == y[weights > 0][:1]).all():  # their mean may be rounded, and their variance then not 0
        return np.full(len(squared), np.nan)
    mean = np.sum(weights * y) / weights.sum()
    return np.asarray(1.0 - (squared * weights).sum(axis=1) / np.sum(weights * (y - mean) ** 2))


def search_propagation(
    graph: Graph, y: Floats, folds: Ints, *, alphas: Sequence[float] = ALPHAS, tolerance: float = 1e-6
) -> AlphaSearch:
    """Cross-validate label propagation at every level, given the fold of every labelled node in node order.

    Each fold is hidden in turn and predicted by the mean of the other labels plus their propagated deviations from it.
    `y` is NaN where it is unknown.
    """
    values = y[~np.isnan(y)]
    means = np.array([values[folds != fold].mean() for fold in range(int(folds.max()) + 1)])
    return search_residual(
        graph, y, np.broadcast_to(means, (values.size, means.size)), folds, alphas=alphas, tolerance=tolerance
    )


def search_residual(
    graph: Graph, y: Floats, base: Floats, folds: Ints, *, alphas: Sequence[float] = ALPHAS, tolerance: float = 1e-6
) -> AlphaSearch:
    """Cross-validate the propagation of a base predictor's residuals at every level.

    `base` (n_labelled, n_folds): predictions at the labelled nodes, column f by the base that did not see fold f. The
    other parameters are those of `search_propagation`.
    """
    labelled = np.flatnonzero(~np.isnan(y))
    known, levels = training_masks(labelled.size, np.arange(labelled.size), folds), np.asarray(alphas)
    grid = propagate_labels(graph, y[labelled, None] - base, known, levels, labelled, tolerance=tolerance)
    return AlphaSearch.score(alphas, own_fold(grid, folds) + own_fold(base, folds), y[labelled], folds)


def search_spreading(graph: Graph, y: Floats, folds: Ints, *, alphas: Sequence[float] = ALPHAS) -> AlphaSearch:
    """Cross-validate label spreading at every level: labels without their fold, smoothed about their mean."""
    labelled = np.flatnonzero(~np.isnan(y))
    known = training_masks(y.size, labelled, folds)
    deviations = np.where(known, y[:, None], 0.0)
    means = deviations.sum(axis=0) / known.sum(axis=0)
    grid = smooth_grid(graph, np.where(known, deviations - means, 0.0), np.asarray(alphas), rows=labelled)
    return AlphaSearch.score(alphas, own_fold(grid + means, folds), y[labelled], folds)


def training_masks(n: int, labelled: Ints, folds: Ints) -> Bools:
    """Return the mask (n, n_folds) of the nodes whose label fold f may use."""
    known = np.zeros((n, int(folds.max()) + 1), dtype=bool)
    known[labelled] = folds[:, None] != np.arange(known.shape[1])
    return known


def own_fold(values: Floats, folds: Ints) -> Floats:
    """Pick from (..., n_labelled, n_folds) the entry of every node's own fold."""
    return np.asarray(values[..., np.arange(folds.size), folds])


def search_convolution(
    graph: Graph,
    features: Whitened,
    y: Floats,
    folds: Ints,
    *,
    alphas: Sequence[float] = ALPHAS,
    tolerance: float = 1e-6,
) -> AlphaSearch:
    """Cross-validate linear graph convolution at every level.

    The features are smoothed at all levels by one shared Krylov space, and stored on the labelled rows only. Least
    squares needs the triangular factor of each fold once: those of the others, stacked, have the factor of a training
    set.
    """
    fits = fold_predictions(graph, features, y, folds, alphas=alphas, tolerance=tolerance)
    return AlphaSearch.score(alphas, own_fold(fits, folds), y[~np.isnan(y)], folds)


def search_convolution_and_residual(
    graph: Graph,
    features: Whitened,
    y: Floats,
    folds: Ints,
    *,
    alphas: Sequence[float] = ALPHAS,
    tolerance: float = 1e-6,
) -> AlphaSearch:
    """Cross-validate linear graph convolution followed by residual propagation, one level for both.

    The parameters are those of `search_convolution`. The residuals differ from level to level, so here every pair of
    level and fold is a column of its own; columns of similar levels, which converge together, are solved together.
    """
    known = training_masks(folds.size, np.arange(folds.size), folds)
    fits = fold_predictions(graph, features, y, folds, alphas=alphas, tolerance=tolerance)
    _PROGRESS.info("residuals at %d levels by cross-validation", len(alphas))
    predictions, levels = own_fold(fits, folds), np.asarray(alphas, dtype=np.float64)
    flowing = np.argsort(levels)[np.count_nonzero(levels == 0) :]  # nothing flows at level 0
    filled = _propagated(graph, y, fits[flowing], known, levels=levels[flowing], tolerance=tolerance)
    predictions[flowing] += own_fold(filled, folds)
    return AlphaSearch.score(alphas, predictions, y[~np.isnan(y)], folds)


def fold_predictions(
    graph: Graph,
    features: Whitened,
    y: Floats,
    folds: Ints,
    *,
    alphas: Sequence[float] = ALPHAS,
    tolerance: float = 1e-6,
) -> Floats:
    """Return (n_alphas, n_labelled, n_folds): predictions at the labelled nodes of the fit without fold f."""
    _PROGRESS.info("smoothed features at %d levels", len(alphas))
    labelled = np.flatnonzero(~np.isnan(y))
    grid: Floats = np.empty((len(alphas), labelled.size, 0))
    if features.Z.shape[1]:
        grid = smooth_grid(graph, features.Z, alphas, labelled, tolerance=tolerance)
        grid[:, graph.isolated[labelled]] *= 1.0 - np.asarray(alphas)[:, None, None]  # as in `smooth_features`
    options = {"intercept": features.centred, "noise": features.noise(tolerance), "shrinkage": features.shrinkage}
    parts = ((Z.T, y[labelled], folds, options) for Z in grid)
    return np.stack(list(graph.engine.map_columns(_fold_fits, parts, total=len(grid))))


def _fold_fits(_: Engine, columns: Floats, y: Floats, folds: Ints, options: dict[str, Any]) -> Floats:
    """Return `fold_fits` of one level, given its columns one below the other: work for one of many machines."""
    with threadpool_limits(1, "blas"):  # threads slow down matrices this small
        return fold_fits(columns.T, y, folds, **options)


def fold_fits(Z: Floats, y: Floats, folds: Ints, *, intercept: bool, noise: float, shrinkage: float = 0.0) -> Floats:
    """Return (n_labelled, n_folds): predictions at all rows of the fit without each fold."""
    groups = [np.flatnonzero(folds == fold) for fold in range(int(folds.max()) + 1)]
    factors = [triangular(augmented_design(Z, y, group, intercept=intercept)) for group in groups]
    others = [triangular(np.vstack(factors[:fold] + factors[fold + 1 :])) for fold in range(len(groups))]
    fits = [
        fit_from_factor(R, rows=y.size - group.size, intercept=intercept, noise=noise, shrinkage=shrinkage)
        for R, group in zip(others, groups, strict=True)
    ]
    return np.asarray(Z @ np.column_stack([fit.coef for fit in fits]) + [fit.intercept for fit in fits])


def _propagated(graph: Graph, y: Floats, fits: Floats, known: Bools, *, levels: Floats, tolerance: float) -> Floats:
    """Return (n_levels, n_labelled, n_folds): the residuals of the fits, each propagated at its level."""
    labelled, n_folds = np.flatnonzero(~np.isnan(y)), known.shape[1]
    columns = (y[labelled, None, None] - fits.transpose(1, 0, 2)).reshape(labelled.size, -1)
    masks, per_column = np.tile(known, (1, len(levels))), np.repeat(levels, n_folds)[None]
    filled = propagate_labels(graph, columns, masks, per_column, labelled, tolerance=tolerance)
    return np.asarray(filled.reshape(labelled.size, len(levels), n_folds).transpose(1, 0, 2))

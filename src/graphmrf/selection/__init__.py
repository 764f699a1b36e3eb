"""Node splits, folds, least squares over folds, and the smoothing level by cross-validation on one graph."""

from graphmrf.selection.least_squares import (
    SHRINKAGE,
    LeastSquares,
    Whitened,
    fit_least_squares,
    triangular,
    whiten,
)
from graphmrf.selection.search import (
    ALPHAS,
    AlphaSearch,
    fold_fits,
    own_fold,
    search_convolution,
    search_convolution_and_residual,
    search_propagation,
    search_residual,
    training_masks,
)
from graphmrf.selection.splits import assign_folds, assign_strata, split

__all__ = [
    "ALPHAS",
    "SHRINKAGE",
    "AlphaSearch",
    "LeastSquares",
    "Whitened",
    "assign_folds",
    "assign_strata",
    "fit_least_squares",
    "fold_fits",
    "own_fold",
    "search_convolution",
    "search_convolution_and_residual",
    "search_propagation",
    "search_residual",
    "split",
    "training_masks",
    "triangular",
    "whiten",
]

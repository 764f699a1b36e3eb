"""Node splits, folds, least squares over folds, and the smoothing level by cross-validation on one graph."""

from graphmrf.selection.folds import (
    MatchedFolds,
    assign_folds,
    assign_strata,
    distance_matched_folds,
    split,
    steps_to_label,
)
from graphmrf.selection.least_squares import SHRINKAGE, LeastSquares, Whitened, fit_least_squares, triangular, whiten
from graphmrf.selection.search import (
    ALPHAS,
    AlphaSearch,
    fold_fits,
    own_fold,
    search_convolution,
    search_convolution_and_residual,
    search_propagation,
    search_residual,
    search_spreading,
    training_masks,
)
from graphmrf.selection.time import TIME_WEIGHTS, search_time_weight

__all__ = [
    "ALPHAS",
    "SHRINKAGE",
    "TIME_WEIGHTS",
    "AlphaSearch",
    "LeastSquares",
    "MatchedFolds",
    "Whitened",
    "assign_folds",
    "assign_strata",
    "distance_matched_folds",
    "fit_least_squares",
    "fold_fits",
    "own_fold",
    "search_convolution",
    "search_convolution_and_residual",
    "search_propagation",
    "search_residual",
    "search_spreading",
    "search_time_weight",
    "split",
    "steps_to_label",
    "training_masks",
    "triangular",
    "whiten",
]

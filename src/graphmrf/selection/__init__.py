"""Choosing: node splits, folds, and the smoothing level by cross-validation on one graph."""

from graphmrf.selection.convolution import (
    search_convolution,
    search_convolution_and_residual,
    search_regression,
)
from graphmrf.selection.least_squares import LeastSquares, fit_least_squares, triangular
from graphmrf.selection.propagation import search_propagation, search_residual
from graphmrf.selection.results import ALPHAS, AlphaSearch
from graphmrf.selection.splits import assign_folds, split
from graphmrf.selection.whitening import Whitened, whiten

__all__ = [
    "ALPHAS",
    "AlphaSearch",
    "LeastSquares",
    "Whitened",
    "assign_folds",
    "fit_least_squares",
    "search_convolution",
    "search_convolution_and_residual",
    "search_propagation",
    "search_regression",
    "search_residual",
    "split",
    "triangular",
    "whiten",
]

"""Linear algebra over a graph: smoothing, propagation, and the variances that go with them."""

from graphmrf.linalg.smoothing import (
    check_alphas,
    multiply,
    propagate,
    propagate_labels,
    smooth,
    smooth_features,
    smooth_grid,
)
from graphmrf.linalg.variance import conditional_variance, draw_conditional, loo_precision, marginal_variance

__all__ = [
    "check_alphas",
    "conditional_variance",
    "draw_conditional",
    "loo_precision",
    "marginal_variance",
    "multiply",
    "propagate",
    "propagate_labels",
    "smooth",
    "smooth_features",
    "smooth_grid",
]

"""Smoothing level of linear graph convolution, alone and with residual propagation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from graphmrf.linalg import propagate_grid, smooth_grid
from graphmrf.selection.least_squares import design, solve_factor, triangular
from graphmrf.selection.propagation import own_fold, training_masks
from graphmrf.selection.results import ALPHAS, AlphaSearch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.graph import Graph
    from graphmrf.selection.whitening import Whitened

_COLUMNS = 32


def search_regression(features: Whitened, y: Floats, folds: Ints) -> AlphaSearch:
    """Cross-validate linear regression: the level 0 of `search_convolution`, which needs no graph.

    Examples
    --------
    >>> import numpy as np
    >>> from graphmrf.selection import whiten
    >>> features = whiten(np.arange(5.0)[:, None], centred=True)
    >>> search_regression(features, np.array([1.0, 3.0, np.nan, 7.0, 9.0]), np.array([0, 1, 1, 0])).mean_r2.round(6)
    array([1.])
    """
    labelled = np.flatnonzero(~np.isnan(y))
    fits = fold_fits(features.Z[labelled], y[labelled], folds, intercept=features.centred, noise=0.0)
    return AlphaSearch.score((0.0,), own_fold(fits, folds)[None], y[labelled], folds)


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

    The features are smoothed at all levels by one shared Krylov space, kept on the labelled rows only. Least squares
    needs the triangular factor of each fold once: those of the others, stacked, have the factor of a training set.

    Parameters
    ----------
    graph : Graph
        The graph.
    features : Whitened
        Features of all nodes.
    y : array of shape (n,)
        Outcomes, NaN where unknown.
    folds : integer array of shape (n_labelled,)
        Fold of every labelled node, in node order.
    alphas : sequence of floats
        Levels in [0, 1).
    tolerance : float
        Relative residual of the solves.

    Examples
    --------
    >>> import numpy as np
    >>> from graphmrf.graph import Graph
    >>> from graphmrf.selection import whiten
    >>> path, features = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4]), whiten(np.arange(5.0)[:, None], centred=True)
    >>> y = np.array([1.0, 3.0, np.nan, 7.0, 9.0])
    >>> search_convolution(path, features, y, np.array([0, 1, 1, 0])).alpha
    0.0
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

    Examples
    --------
    >>> import numpy as np
    >>> from graphmrf.graph import Graph
    >>> from graphmrf.selection import whiten
    >>> path, features = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4]), whiten(np.arange(5.0)[:, None], centred=True)
    >>> y = np.array([1.0, 3.0, np.nan, 7.0, 9.0])
    >>> search_convolution_and_residual(path, features, y, np.array([0, 1, 1, 0])).alpha
    0.0
    """
    known = training_masks(graph.n_nodes, np.flatnonzero(~np.isnan(y)), folds)
    fits = fold_predictions(graph, features, y, folds, alphas=alphas, tolerance=tolerance)
    predictions, levels = own_fold(fits, folds), np.asarray(alphas, dtype=np.float64)
    flowing = np.argsort(levels)[np.count_nonzero(levels == 0) :]  # nothing flows at level 0
    for chunk in np.array_split(flowing, -(-flowing.size * known.shape[1] // _COLUMNS) or 1):
        filled = _propagated(graph, y, fits[chunk], known, levels=levels[chunk], tolerance=tolerance)
        predictions[chunk] += own_fold(filled, folds)
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
    labelled = np.flatnonzero(~np.isnan(y))
    grid: Floats = np.empty((len(alphas), labelled.size, 0))
    if features.Z.shape[1]:
        grid = smooth_grid(graph, features.Z, alphas, labelled, tolerance=tolerance)
    noise = features.noise(tolerance)
    with threadpool_limits(1, "blas"):  # matrices this small only lose by being shared between threads
        fits = [fold_fits(Z, y[labelled], folds, intercept=features.centred, noise=noise) for Z in grid]
    return np.stack(fits)


def fold_fits(Z: Floats, y: Floats, folds: Ints, *, intercept: bool, noise: float) -> Floats:
    """Return (n_labelled, n_folds): predictions at all rows of the fit without each fold."""
    groups = [np.flatnonzero(folds == fold) for fold in range(int(folds.max()) + 1)]
    factors = [triangular(design(Z, y, group, intercept=intercept)) for group in groups]
    others = [triangular(np.vstack(factors[:fold] + factors[fold + 1 :])) for fold in range(len(groups))]
    fits = [solve_factor(factor, intercept=intercept, noise=noise) for factor in others]
    return np.asarray(Z @ np.column_stack([fit.coef for fit in fits]) + [fit.intercept for fit in fits])


def _propagated(graph: Graph, y: Floats, fits: Floats, known: Bools, *, levels: Floats, tolerance: float) -> Floats:
    """Return (n_levels, n_labelled, n_folds): the residuals of the fits, each propagated at its level."""
    labelled, (n, n_folds) = np.flatnonzero(~np.isnan(y)), known.shape
    residuals = np.zeros((n, len(levels), n_folds))
    residuals[labelled] = y[labelled, None, None] - fits.transpose(1, 0, 2)
    columns, masks = residuals.reshape(n, -1), np.tile(known, (1, len(levels)))
    per_column = np.repeat(levels, n_folds)[None]
    filled = propagate_grid(graph, columns, masks, per_column, labelled, tolerance=tolerance)
    return np.asarray(filled.reshape(labelled.size, len(levels), n_folds).transpose(1, 0, 2))

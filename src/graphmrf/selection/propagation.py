"""Smoothing level of label and residual propagation: all folds and levels from one Krylov space."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphmrf.linalg import propagate_grid
from graphmrf.selection.results import ALPHAS, AlphaSearch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.graph import Graph


def search_propagation(
    graph: Graph, y: Floats, folds: Ints, *, alphas: Sequence[float] = ALPHAS, tolerance: float = 1e-6
) -> AlphaSearch:
    """Cross-validate label propagation at every level.

    Each fold is hidden in turn and predicted by the mean of the other labels plus their propagated deviations from it.

    Parameters
    ----------
    graph : Graph
        The graph.
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
    >>> path = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4])
    >>> search = search_propagation(path, np.array([1.0, 1.0, np.nan, 4.0, 4.0]), np.array([0, 1, 1, 0]))
    >>> search.alpha
    0.999
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

    Parameters
    ----------
    graph : Graph
        The graph.
    y : array of shape (n,)
        Outcomes, NaN where unknown.
    base : array of shape (n_labelled, n_folds)
        Predictions at the labelled nodes, column f by the base that did not see fold f.
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
    >>> path = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4])
    >>> y, folds = np.array([1.0, 1.0, np.nan, 4.0, 4.0]), np.array([0, 1, 1, 0])
    >>> search_residual(path, y, np.full((4, 2), 2.0), folds, alphas=(0.0, 0.9)).predictions.round(2)
    array([[2.  , 2.  , 2.  , 2.  ],
           [1.36, 1.58, 3.49, 3.27]])
    """
    labelled = np.flatnonzero(~np.isnan(y))
    known = training_masks(graph.n_nodes, labelled, folds)
    residuals = np.zeros(known.shape)
    residuals[labelled] = y[labelled, None] - base
    grid = propagate_grid(graph, residuals, known, alphas, labelled, tolerance=tolerance)
    return AlphaSearch.score(alphas, own_fold(grid, folds) + own_fold(base, folds), y[labelled], folds)


def training_masks(n: int, labelled: Ints, folds: Ints) -> Bools:
    """Return the mask (n, n_folds) of the nodes whose label fold f may use."""
    known = np.zeros((n, int(folds.max()) + 1), dtype=bool)
    known[labelled] = folds[:, None] != np.arange(known.shape[1])
    return known


def own_fold(values: Floats, folds: Ints) -> Floats:
    """Pick from (..., n_labelled, n_folds) the entry of every node's own fold."""
    return np.asarray(values[..., np.arange(folds.size), folds])

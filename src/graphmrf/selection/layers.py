"""Number of layers of simple graph convolution: each product with the graph is made once for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from graphmrf.selection.convolution import fold_fits
from graphmrf.selection.propagation import own_fold
from graphmrf.selection.results import AlphaSearch

if TYPE_CHECKING:
    from graphmrf._typing import Floats, Ints

LAYERS = (0, 1, 2, 3)
"""Numbers of layers tried; 0 is linear regression."""


def search_layers(powers: Floats, y: Floats, folds: Ints, *, intercept: bool, noise: float = 0.0) -> AlphaSearch:
    """Cross-validate least squares on the features after every number of layers.

    Parameters
    ----------
    powers : array of shape (n_powers, n_labelled, p)
        The features of the labelled nodes after 0, 1, ... layers, see `linalg.powers.powers`.
    y : array of shape (n_labelled,)
        Their outcomes.
    folds : integer array of shape (n_labelled,)
        Their folds.
    intercept : bool
        Whether to fit a constant.
    noise : float
        Norm of the error in the powers, see `selection.fit_least_squares`.

    Returns
    -------
    AlphaSearch
        The number of layers stands in the place of the level.

    Examples
    --------
    >>> import numpy as np
    >>> X, y, folds = np.arange(4.0)[:, None], np.array([0.0, 1.0, 2.0, 3.0]), np.array([0, 1, 0, 1])
    >>> search_layers(np.stack([X % 2, X]), y, folds, intercept=True).alpha
    1.0
    """
    with threadpool_limits(1, "blas"):
        fits = [fold_fits(Z, y, folds, intercept=intercept, noise=noise) for Z in powers]
    return AlphaSearch.score(range(len(powers)), own_fold(np.stack(fits), folds), y, folds)

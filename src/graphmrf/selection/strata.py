"""Folds in which every class has its share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphmrf.errors import InvalidInputError

if TYPE_CHECKING:
    from graphmrf._typing import Ints


def assign_strata(codes: Ints, n_folds: int, *, seed: int = 0) -> Ints:
    """Fold of every labelled node, at random, such that classes and folds are spread evenly (give or take one).

    Parameters
    ----------
    codes : integer array of shape (n_labelled,)
        Class of every labelled node; each has at least `n_folds` members.
    n_folds : int
        Number of folds, at least 2.
    seed : int
        Seed of the assignment.

    Returns
    -------
    integer array of shape (n_labelled,)

    Examples
    --------
    >>> import numpy as np
    >>> assign_strata(np.array([0, 0, 1, 1, 1, 1]), 2)
    array([0, 1, 1, 0, 1, 0])
    """
    if n_folds < 2:
        raise InvalidInputError(f"folds must be at least 2, got {n_folds}")
    shuffled = np.random.default_rng(seed).permutation(codes.size)
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    folds = np.empty(codes.size, dtype=np.int64)
    folds[by_class] = np.arange(codes.size) % n_folds
    return folds

"""Random subsets of nodes: training splits, and the folds of a cross-validation, stratified or not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from graphmrf.errors import InvalidInputError

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Ints


def split(nodes: int | Bools, fraction: float, *, random_state: int = 0) -> Bools:
    """Mask of a random part of the nodes, ``ceil(fraction * count)`` of them.

    Parameters
    ----------
    nodes : int or bool array of shape (n,)
        The number of nodes, or the mask of the nodes to draw from.
    fraction : float
        Part of them to draw, in [0, 1].
    random_state : int
        Seed of the draw.

    Returns
    -------
    bool array of shape (n,)

    Raises
    ------
    InvalidInputError
        If `fraction` is outside [0, 1] or the mask is not a one-dimensional bool array.

    Examples
    --------
    >>> split(10, 0.3).sum()
    np.int64(3)
    """
    if not 0 <= fraction <= 1:
        raise InvalidInputError(f"fraction must be in [0, 1], got {fraction}")
    mask = np.ones(nodes, dtype=bool) if isinstance(nodes, int) else np.asarray(nodes)
    if mask.dtype != bool or mask.ndim != 1:
        raise InvalidInputError(f"nodes must be a number or a bool array (n,), got {mask.dtype} {mask.shape}")
    candidates = np.flatnonzero(mask)
    count = math.ceil(fraction * candidates.size - 1e-9)  # 0.07 * 100 is 7.000000000000001
    drawn = np.zeros(mask.size, dtype=bool)
    drawn[np.random.default_rng(random_state).permutation(candidates)[:count]] = True
    return drawn


def assign_folds(n_labelled: int, n_folds: int, *, random_state: int = 0) -> Ints:
    """Fold of every labelled node, 0 to ``n_folds - 1``, at random and of equal sizes (give or take one).

    One permutation of fold numbers. scikit-learn's ``KFold`` gives pairs of index arrays, which would have to be turned
    into this, and other folds for a seed than all published numbers have.

    With fewer labelled nodes than folds there is one fold for each of them.

    Parameters
    ----------
    n_labelled : int
        Number of labelled nodes, at least 2.
    n_folds : int
        Wanted number of folds, at least 2.
    random_state : int
        Seed of the assignment.

    Returns
    -------
    integer array of shape (n_labelled,)

    Raises
    ------
    InvalidInputError
        If there are fewer than 2 labelled nodes or folds.

    Examples
    --------
    >>> assign_folds(6, 3)
    array([0, 2, 2, 1, 0, 1])
    """
    if n_folds < 2:
        raise InvalidInputError(f"folds must be at least 2, got {n_folds}")
    if n_labelled < 2:
        raise InvalidInputError(
            f"cross-validation needs at least 2 labelled nodes, got {n_labelled}; label more, or give alpha a number"
        )
    return np.random.default_rng(random_state).permutation(np.arange(n_labelled) % min(n_folds, n_labelled))


def assign_strata(codes: Ints, n_folds: int, *, random_state: int = 0) -> Ints:
    """Fold of every labelled node, at random, such that classes and folds are spread evenly (give or take one).

    As scikit-learn's ``StratifiedKFold``; see `assign_folds` for why it is not that.

    Parameters
    ----------
    codes : integer array of shape (n_labelled,)
        Class of every labelled node; each has at least `n_folds` members.
    n_folds : int
        Number of folds, at least 2.
    random_state : int
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
    shuffled = np.random.default_rng(random_state).permutation(codes.size)
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    folds = np.empty(codes.size, dtype=np.int64)
    folds[by_class] = np.arange(codes.size) % n_folds
    return folds

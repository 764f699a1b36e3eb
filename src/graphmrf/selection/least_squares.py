"""Least squares from triangular factors: stable, cheap to recombine over folds, explicit about rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from graphmrf._typing import Floats, Ints

RANK_TOLERANCE = 1e-10
"""Singular values below this part of the largest count as zero."""

_BLOCK_SIZE = 8192  # entries; from 9216 on OpenBLAS starts threads, which cost more than they give here


@dataclass(frozen=True)
class LeastSquares:
    r"""The coefficients of least norm among those that minimise :math:`\lVert Z g + c - y \rVert^2`.

    The intercept `c` is not part of the norm: a column that does not vary leaves it alone and gets coefficient 0.

    Attributes
    ----------
    coef : array of shape (p,)
        The coefficients `g`.
    intercept : float
        The constant `c`; 0 when none was fitted.
    rank : int
        Number of directions in which the rows of `Z` vary.
    root : array of shape (p + 1, rank + 1) or (p, rank)
        `Q` with :math:`Q Q' = ([1\ Z]'[1\ Z])^+`, the first row and column for the intercept when there is one.
    """

    coef: Floats
    intercept: float
    rank: int
    root: Floats

    @property
    def n_coefficients(self) -> int:
        """Degrees of freedom spent, the intercept included."""
        return int(self.root.shape[1])

    def leverage(self, Z: Floats) -> Floats:
        r"""Return :math:`z' (Z'Z)^+ z` for every row z of `Z`, with the intercept in both."""
        with_intercept = self.root.shape[0] > Z.shape[1]
        rotated = Z @ self.root[int(with_intercept) :]
        rotated += self.root[0] if with_intercept else 0.0
        return np.asarray(np.einsum("ij,ij->i", rotated, rotated))


def triangular(M: Floats) -> Floats:
    """Return `R` of ``M = Q R``, at most as many rows as columns; by blocks of rows, so that each stays in cache.

    Stacked factors of parts of a matrix have the same factor as the matrix itself, up to signs.

    Examples
    --------
    >>> import numpy as np
    >>> abs(triangular(np.array([[3.0, 1.0], [4.0, 1.0], [0.0, 0.0]]))).round(1)
    array([[5. , 1.4],
           [0. , 0.2]])
    """
    rows = max(_BLOCK_SIZE // max(M.shape[1], 1), 4 * M.shape[1])
    while len(M) > rows:
        M = np.vstack([np.linalg.qr(M[i : i + rows], mode="r") for i in range(0, len(M), rows)])
    return np.asarray(np.linalg.qr(M, mode="r")) if M.size else M[: M.shape[1]]


def design(Z: Floats, y: Floats, rows: Ints | None = None, *, intercept: bool) -> Floats:
    """Return the matrix ``[1 Z y]``, or ``[Z y]``, of some rows, columns one after the other in memory."""
    rows, first = np.arange(len(Z)) if rows is None else rows, int(intercept)
    M = np.empty((Z.shape[1] + 1 + first, rows.size))
    M[:first], M[first:-1], M[-1] = 1.0, np.take(Z.T, rows, axis=1), y[rows]
    return M.T


def solve_factor(R: Floats, *, intercept: bool, noise: float = 0.0) -> LeastSquares:
    """Return the least squares fit from the triangular factor of `design`.

    Parameters
    ----------
    R : array of shape (<= p + 2, p + 2) or (<= p + 1, p + 1)
        Factor of ``[1 Z y]`` or, without an intercept, of ``[Z y]``.
    intercept : bool
        Whether the first column is the constant.
    noise : float
        Norm of the error in `Z`; directions with a singular value up to that cannot be told from 0: coefficient 0.
    """
    first = int(intercept)
    U, s, Vt = np.linalg.svd(R[first:, first:-1], full_matrices=False)
    keep = s > max(RANK_TOLERANCE * s.max(initial=0.0), noise)
    root = Vt[keep].T / s[keep]
    coef = root @ (U[:, keep].T @ R[first:, -1])
    if not intercept:
        return LeastSquares(coef, 0.0, int(keep.sum()), root)
    constant = float((R[0, -1] - R[0, 1:-1] @ coef) / R[0, 0])
    return LeastSquares(coef, constant, int(keep.sum()), _with_intercept(root, R[0, :-1]))


def fit_least_squares(Z: Floats, y: Floats, *, intercept: bool, noise: float = 0.0) -> LeastSquares:
    """Fit y on the columns of `Z`.

    Examples
    --------
    >>> import numpy as np
    >>> fit = fit_least_squares(np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 3.0, 5.0]), intercept=True)
    >>> fit.coef.round(6), round(fit.intercept, 6)
    (array([2.]), 1.0)
    """
    return solve_factor(triangular(design(Z, y, intercept=intercept)), intercept=intercept, noise=noise)


def _with_intercept(root: Floats, top: Floats) -> Floats:
    """Extend the root of the centred problem: [1 Z] has the factor [[t, t m'], [0, R]] with m the column means."""
    extended = np.zeros((len(root) + 1, root.shape[1] + 1))
    extended[0, 0] = 1.0 / top[0]
    extended[0, 1:] = -(top[1:] / top[0]) @ root
    extended[1:, 1:] = root
    return extended

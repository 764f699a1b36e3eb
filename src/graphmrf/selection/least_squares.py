"""Least squares from triangular factors, and whitened features.

Factors are stable, cheap to recombine over folds and explicit about rank. Whitening deals with units, scales and exact
collinearity once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from graphmrf._typing import Floats, Ints

# Singular values below this part of the largest count as zero. A million roundings of float64 (2e-16), so exact
# collinearity is found whatever the units.
RANK_TOLERANCE = 1e-10
# Default strength of the prior on coefficients of smoothed features. Measured: a quarter of it leaves R2 of -5 on
# other samples of strongly smooth models.
SHRINKAGE = 4.0


@dataclass(frozen=True)
class LeastSquares:
    r"""The coefficients of least norm among those that minimise :math:`\lVert Z g + c - y \rVert^2`.

    The intercept `c` is not part of the norm: a column that does not vary leaves it alone and gets coefficient 0.
    """

    coef: Floats  # (p,): the coefficients `g`
    intercept: float  # the constant `c`; 0 when none was fitted
    rank: int  # number of directions in which the rows of `Z` vary
    # (p + 1, rank + 1) or (p, rank): `Q` with `Q Q' = ([1\ Z]'[1\ Z])^+`, the first row and column for the intercept
    # when there is one
    root: Floats

    @property
    def n_coefficients(self) -> int:
        """Degrees of freedom spent, the intercept included."""
        return int(self.root.shape[1])

    def directions(self, Z: Floats) -> Floats:
        r"""Return :math:`G = [1\ Z] Q`: columns that span the fit, orthonormal over its rows.

        Fitted values are :math:`G_L G_L' y`. Where coefficients are shrunk, columns are the shorter.
        """
        with_intercept = self.root.shape[0] > Z.shape[1]
        rotated = Z @ self.root[int(with_intercept) :]
        rotated += self.root[0] if with_intercept else 0.0
        return np.asarray(rotated)

    def leverage(self, Z: Floats) -> Floats:
        r"""Return :math:`z' (Z'Z)^+ z` for every row z of `Z`, with the intercept in both."""
        rotated = self.directions(Z)
        return np.asarray(np.einsum("ij,ij->i", rotated, rotated))


def triangular(M: Floats, *, block: int = 8192) -> Floats:
    """Return `R` of ``M = Q R``, at most as many rows as columns.

    Stacked factors of parts of a matrix have the factor of the whole, up to signs. It is computed by blocks of rows:
    from 9216 entries on OpenBLAS starts threads, which cost more than they save here.
    """
    rows = max(block // max(M.shape[1], 1), 4 * M.shape[1])
    while len(M) > rows:
        M = np.vstack([np.linalg.qr(M[i : i + rows], mode="r") for i in range(0, len(M), rows)])
    return np.asarray(np.linalg.qr(M, mode="r")) if M.size else M[: M.shape[1]]


def augmented_design(Z: Floats, y: Floats, rows: Ints | None = None, *, intercept: bool) -> Floats:
    """Return the matrix ``[1 Z y]``, or ``[Z y]``, of some rows, columns one after the other in memory."""
    rows, first = np.arange(len(Z)) if rows is None else rows, int(intercept)
    M = np.empty((Z.shape[1] + 1 + first, rows.size))
    M[:first], M[first:-1], M[-1] = 1.0, np.take(Z.T, rows, axis=1), y[rows]
    return M.T


def fit_from_factor(
    R: Floats, *, rows: int, intercept: bool, noise: float = 0.0, shrinkage: float = 0.0
) -> LeastSquares:
    """Return the least squares fit from the triangular factor of `augmented_design`.

    `noise`: norm of the error in `Z`; directions with a singular value up to that get coefficient 0. `shrinkage`:
    strength of a Gaussian prior on the coefficients, see `Whitened`; 0 is ordinary least squares.
    """
    first = int(intercept)
    U, s, Vt = np.linalg.svd(R[first:, first:-1], full_matrices=False)
    keep = s > max(RANK_TOLERANCE * s.max(initial=0.0), noise)
    s, projected = s[keep], U[:, keep].T @ R[first:, -1]
    penalty = shrinkage * _unexplained(R[first:, -1], projected, rows - first) if shrinkage else 0.0
    root = Vt[keep].T / np.sqrt(s**2 + penalty)
    coef = root @ (projected * s / np.sqrt(s**2 + penalty))
    if not intercept:
        return LeastSquares(coef, 0.0, int(keep.sum()), root)
    constant = float((R[0, -1] - R[0, 1:-1] @ coef) / R[0, 0])
    return LeastSquares(coef, constant, int(keep.sum()), _with_intercept(root, R[0, :-1]))


def _unexplained(outcome: Floats, projected: Floats, dof: int) -> float:
    """Return the share of the outcome's variance that is noise; as if one more label were pure noise."""
    total = float(outcome @ outcome)
    left = max(total - float(projected @ projected), 0.0) / total if total > 0 else 0.0
    return (left * dof + 1.0) / (max(dof - projected.size, 0) + 1.0)


def fit_least_squares(
    Z: Floats, y: Floats, *, intercept: bool, noise: float = 0.0, shrinkage: float = 0.0
) -> LeastSquares:
    """Fit y on the columns of `Z`; the parameters are those of `fit_from_factor`."""
    R = triangular(augmented_design(Z, y, intercept=intercept))
    return fit_from_factor(R, rows=len(Z), intercept=intercept, noise=noise, shrinkage=shrinkage)


def _with_intercept(root: Floats, top: Floats) -> Floats:
    """Extend the root of the centred problem: [1 Z] has the factor [[t, t m'], [0, R]] with m the column means."""
    extended = np.zeros((len(root) + 1, root.shape[1] + 1))
    extended[0, 0] = 1.0 / top[0]
    extended[0, 1:] = -(top[1:] / top[0]) @ root
    extended[1:, 1:] = root
    return extended


@dataclass(frozen=True)
class Whitened:
    r"""Features :math:`Z = (X - 1 m') T` with :math:`Z'Z = n I`.

    Smoothing is linear, so regression on the smoothed `Z` and on the smoothed `X` give the same predictions, but `Z`
    has exactly the rank of `X`: a direction in which the features do not vary is removed before a solver can blur it.
    Predictions therefore do not depend on the units of the features, nor on duplicated or collinear ones.
    """

    Z: Floats  # (n, r): uncorrelated features, mean square 1 over all nodes
    means: Floats  # (p,): means `m` over all nodes; 0 when the features were not centred
    T: Floats  # (p, r): the map from centred features; a coefficient g of `Z` is ``T @ g`` of the features
    centred: bool  # whether the means were subtracted, as an intercept requires
    # strength of a Gaussian prior on the coefficients of `Z`, each of variance `\mathrm{var}(y) / \text{shrinkage}`; 0
    # for none. What is smoothed has a smaller variance than `Z`, so that a strongly smoothed feature explains little
    # unless many labels support it.
    shrinkage: float = 0.0

    def noise(self, tolerance: float) -> float:
        r"""Return a bound on the error of the smoothed `Z` when each column was solved to a relative residual.

        The inverse of :math:`I + \omega N` has norm at most 1, so errors are at most the tolerance times that of `Z`.
        """
        return tolerance * float(np.sqrt(self.Z.size))


def whiten(X: Floats, *, centred: bool, shrinkage: float = 0.0) -> Whitened:
    """Return uncorrelated features of unit mean square over all nodes, with their means subtracted if `centred`.

    A column that is constant to rounding, or a linear combination of others to a relative 1e-10, adds no column.
    """
    n, p = X.shape
    magnitude = np.maximum(X.max(axis=0, initial=0.0), -X.min(axis=0, initial=0.0))
    unit = np.ldexp(1.0, np.frexp(magnitude)[1] - 1)  # powers of 2: nothing is rounded, and no square overflows
    deviations = X / unit
    means = deviations.mean(axis=0) if centred else np.zeros(p)
    deviations -= means
    R = triangular(deviations)
    spread = np.linalg.norm(R, axis=0) / np.sqrt(n)
    # The mean of equal numbers is off by last bits: by less than 16 for millions of nodes, as sums are pairwise.
    constant = spread <= 16 * np.finfo(np.float64).eps * (magnitude / unit)
    scale = np.where(constant, np.inf, spread)
    _, s, Vt = np.linalg.svd(R / scale, full_matrices=False)
    keep = s > RANK_TOLERANCE * s.max(initial=0.0)
    T = Vt[keep].T * (np.sqrt(n) / s[keep]) / scale[:, None]
    return Whitened(deviations @ T, means * unit, T / unit[:, None], centred, shrinkage)

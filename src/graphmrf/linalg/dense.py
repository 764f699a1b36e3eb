"""Small positive definite matrices, by one dense factor: solves, draws and variances."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_solve, cholesky, lapack, solve_triangular

if TYPE_CHECKING:
    from graphmrf._typing import Floats


@dataclass(frozen=True, eq=False)
class Dense:
    """A positive definite matrix `A` of a few thousand rows.

    Examples
    --------
    >>> A = Dense(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> A.solve(np.array([3.0, 3.0]))
    array([1., 1.])
    >>> A.variance.round(4)
    array([0.6667, 0.6667])
    """

    A: Floats

    @cached_property
    def factor(self) -> Floats:
        """Lower triangular `L` with :math:`L L' = A`."""
        return np.asarray(cholesky(self.A, lower=True, check_finite=False))

    def solve(self, B: Floats) -> Floats:
        """Return :math:`A^{-1} B`."""
        return np.asarray(cho_solve((self.factor, True), B, check_finite=False))

    def draw(self, E: Floats) -> Floats:
        """Return columns of covariance :math:`A^{-1}` from standard normal columns `E`."""
        return np.asarray(solve_triangular(self.factor, E, lower=True, trans="T", check_finite=False))

    @cached_property
    def inverse(self) -> Floats:
        """:math:`A^{-1}`, symmetric."""
        if not self.A.size:
            return self.A  # LAPACK refuses it
        lower, failed = lapack.dpotri(self.factor, lower=True)
        assert not failed
        return np.asarray(np.tril(lower) + np.tril(lower, -1).T)

    @property
    def variance(self) -> Floats:
        """Diagonal of :math:`A^{-1}`."""
        return np.diag(self.inverse)

"""Dense symmetric matrices: factor, solves, draws, inverse and log-determinant; half of one as a packed vector."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import blas, cho_solve, cholesky, lapack, solve_triangular

if TYPE_CHECKING:
    from graphmrf._typing import Floats, Ints


@dataclass(frozen=True, eq=False)
class Dense:
    """A positive definite matrix `A` of a few thousand rows, exactly: no tolerance, no probes.

    Examples
    --------
    >>> A = Dense(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> A.solve(np.array([3.0, 3.0]))
    array([1., 1.])
    >>> A.inverse_diagonal().round(4)
    array([0.6667, 0.6667])
    """

    A: Floats

    @cached_property
    def factor(self) -> Floats:
        """Lower triangular `L` with :math:`L L' = A`."""
        return np.asarray(cholesky(self.A, lower=True, check_finite=False))

    def apply(self, X: Floats) -> Floats:
        """Return :math:`A X`."""
        return np.asarray(self.A @ X)

    def solve(self, B: Floats, *, tolerance: float = 0.0) -> Floats:  # noqa: ARG002 - part of the contract
        """Return :math:`A^{-1} B`."""
        return np.asarray(cho_solve((self.factor, True), B, check_finite=False))

    def draw(self, k: int, rng: np.random.Generator, *, tolerance: float = 0.0) -> Floats:  # noqa: ARG002 - likewise
        """Return `k` columns drawn with covariance :math:`A^{-1}`."""
        E = rng.standard_normal((len(self.A), k))
        return np.asarray(solve_triangular(self.factor, E, lower=True, trans="T", check_finite=False))

    @cached_property
    def inverse(self) -> Floats:
        """:math:`A^{-1}`, symmetric."""
        if not self.A.size:
            return self.A  # LAPACK refuses it
        lower, failed = lapack.dpotri(self.factor, lower=True)
        assert not failed
        return np.asarray(np.tril(lower) + np.tril(lower, -1).T)

    def inverse_diagonal(self, *, probes: int = 0, seed: int = 0) -> Floats:  # noqa: ARG002 - part of the contract
        """Return the diagonal of :math:`A^{-1}`."""
        return np.diag(self.inverse)

    def log_determinant(self, *, probes: int = 0, seed: int = 0) -> float:  # noqa: ARG002 - part of the contract
        r"""Return :math:`\log\det A`."""
        return 2.0 * float(np.log(np.diag(self.factor)).sum())


@dataclass(frozen=True)
class Triangle:
    r"""The layout of symmetric matrices of `n` rows, stored row by row up to the diagonal.

    Examples
    --------
    >>> triangle = Triangle(2)
    >>> packed = triangle.pack(np.array([[4.0, 2.0], [2.0, 5.0]]))
    >>> packed
    array([4., 2., 5.])
    >>> triangle.dot(packed, packed)  # 4² + 2² + 2² + 5²
    49.0
    """

    n: int

    @cached_property
    def rows(self) -> Ints:
        """Row of every entry."""
        return np.repeat(np.arange(self.n), np.arange(1, self.n + 1))

    @cached_property
    def columns(self) -> Ints:
        """Column of every entry."""
        return np.arange(self.rows.size) - self.rows * (self.rows + 1) // 2

    @cached_property
    def flat(self) -> Ints:
        """Place of every entry in the flattened square."""
        return self.rows * self.n + self.columns

    @cached_property
    def diagonal(self) -> Ints:
        """Places of the diagonal in the vector."""
        return np.arange(self.n) * (np.arange(self.n) + 3) // 2

    def pack(self, A: Floats) -> Floats:
        """Return the lower triangle of a square."""
        return np.take(np.ascontiguousarray(A).reshape(-1), self.flat)

    def lower(self, packed: Floats) -> Floats:
        """Return the square that holds the lower triangle, and zeros above it."""
        A = np.zeros(self.n * self.n)
        A[self.flat] = packed
        return A.reshape(self.n, self.n)

    def square(self, packed: Floats) -> Floats:
        """Return the symmetric square."""
        A = self.lower(packed)
        A += np.tril(A, -1).T
        return A

    def outer(self, a: Floats) -> Floats:
        """Return the products :math:`a_i a_j`."""
        return np.asarray(a[self.rows] * a[self.columns])

    def sums(self, packed: Floats) -> Floats:
        """Return the sums of the rows of the symmetric matrix."""
        below = np.bincount(self.rows, packed, self.n) + np.bincount(self.columns, packed, self.n)
        return np.asarray(below - packed[self.diagonal])

    def double(self, packed: Floats) -> Floats:
        """Return the vector whose plain inner product with another vector is that of the symmetric matrices."""
        twice = 2.0 * packed
        twice[self.diagonal] -= packed[self.diagonal]
        return twice

    def dot(self, a: Floats, b: Floats) -> float:
        """Return the sum of the products of the entries of two symmetric matrices."""
        return float(2.0 * (a @ b) - a[self.diagonal] @ b[self.diagonal])

    def times(self, packed: Floats, B: Floats) -> Floats:
        """Return the symmetric matrix times a block of columns."""
        return np.asarray(blas.dsymm(1.0, self.lower(packed).T, B, lower=0))


@dataclass(frozen=True, eq=False)
class Factor:
    """A positive definite matrix by its factor :math:`R' R`.

    Attributes
    ----------
    R : array of shape (n, n)
        Upper triangular, in Fortran's order.
    """

    R: Floats

    @classmethod
    def of(cls, triangle: Triangle, packed: Floats) -> Factor | None:
        """Factor a matrix; None when it is not positive definite to working accuracy."""
        R, failed = lapack.dpotrf(triangle.lower(packed).T, lower=0, overwrite_a=1)
        return None if failed else cls(np.asarray(R))

    @property
    def log_determinant(self) -> float:
        """Logarithm of the determinant."""
        return 2.0 * float(np.log(np.diag(self.R)).sum())

    def solve(self, B: Floats) -> Floats:
        """Return the inverse times a vector or a block."""
        X, failed = lapack.dpotrs(self.R, B, lower=0)
        assert not failed
        return np.asarray(X)

    def inverse(self, triangle: Triangle) -> Floats:
        """Return the lower triangle of the inverse."""
        A, failed = lapack.dpotri(self.R, lower=0)
        assert not failed
        return triangle.pack(np.asarray(A).T)

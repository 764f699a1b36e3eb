"""Dense symmetric matrices: factor, solves, draws, inverse and log-determinant; half of one as a packed vector."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy.linalg import cho_solve, cholesky, lapack, solve_triangular
from threadpoolctl import ThreadpoolController

from graphmrf.kept import cached_property

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from graphmrf._typing import Floats, Ints
    from graphmrf.engines import Engine
    from graphmrf.engines.device import DeviceArray

_STRIP = 128
"""Rows of a strip of a packed matrix: blocks on the diagonal are stored twice, an eighth more at 1000 rows. Twice as
many double that; half as many are thin for matrix products."""


def one_blas_thread() -> AbstractContextManager[Any]:
    """Return what has BLAS use one thread for a while: small matrices gain little by more, and lose on busy cores."""
    return cast("AbstractContextManager[Any]", _libraries().limit(limits=1, user_api="blas"))


@cache
def _libraries() -> ThreadpoolController:
    """Find the libraries once: it takes as long as some likelihoods."""
    return ThreadpoolController()


def place(engine: Engine | None, A: Floats) -> Floats:
    """Return a matrix where an engine has its arrays; NumPy's functions, and what is below, work on it there."""
    return cast("Floats", cast("Any", engine).place(A)) if hasattr(engine, "place") else A


def beside(A: Floats) -> DeviceArray | None:
    """Return an empty array on the device of another, to place more there; None where that is in main memory."""
    return None if isinstance(A, np.ndarray) else cast("DeviceArray", A[:0])


def array(A: Any) -> Floats:
    """Return an array as it is, wherever it is; for the eyes of a type checker."""
    return A if hasattr(A, "tensor") else np.asarray(A)


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

    def inverse_diagonal(self, *, probes: int = 0, random_state: int = 0) -> Floats:  # noqa: ARG002 - part of the contract
        """Return the diagonal of :math:`A^{-1}`."""
        return np.diag(self.inverse)

    def log_determinant(self, *, probes: int = 0, random_state: int = 0) -> float:  # noqa: ARG002 - part of the contract
        r"""Return :math:`\log\det A`."""
        return 2.0 * float(np.log(np.diag(self.factor)).sum())


@dataclass(frozen=True)
class Triangle:
    r"""The layout of symmetric matrices of `n` rows: strips of rows, each up to the end of its block on the diagonal.

    A vector holds strip after strip, and every strip is a matrix without a copy; blocks on the diagonal are whole.

    Examples
    --------
    >>> triangle = Triangle(2)
    >>> packed = triangle.pack(np.array([[4.0, 2.0], [2.0, 5.0]]))
    >>> packed
    array([4., 2., 2., 5.])
    >>> triangle.dot(packed, packed)  # 4² + 2² + 2² + 5²
    49.0
    """

    n: int
    beside: DeviceArray | None = None

    @property
    def _device(self) -> DeviceArray | None:
        """What arrays are placed beside; what was there when it was pickled is now in main memory."""
        return None if isinstance(self.beside, np.ndarray) else self.beside

    @property
    def _strip(self) -> int:
        """Rows of a strip; on a device the matrix is one, as its memory is plenty and small products are slow."""
        return _STRIP if self.beside is None else max(self.n, 1)

    def place(self, A: Floats) -> Floats:
        """Return an array where the matrices are."""
        return A if self._device is None else cast("Floats", self._device.place(A))

    def empty(self, *count: int) -> Floats:
        """Return room for a vector, or for so many."""
        shape = (*count, self.size)
        return np.empty(shape) if self._device is None else cast("Floats", self._device.empty(*shape))

    def full(self, value: float) -> Floats:
        """Return the matrix whose entries all are a number."""
        packed = self.empty()
        packed[:] = value
        return packed

    @cached_property
    def _starts(self) -> Ints:
        return np.arange(0, max(self.n, 1), self._strip)

    @cached_property
    def _ends(self) -> Ints:
        return np.minimum(self._starts + self._strip, self.n)

    @cached_property
    def _offsets(self) -> Ints:
        return np.append(0, np.cumsum((self._ends - self._starts) * self._ends))

    @property
    def size(self) -> int:
        """Length of the vector."""
        return int(self._offsets[-1])

    def strips(self, packed: Floats) -> Iterator[tuple[slice, Floats]]:
        """Yield the rows of every strip, and the strip itself, a view of shape (rows, last row + 1)."""
        for k, (first, last) in enumerate(zip(self._starts.tolist(), self._ends.tolist(), strict=True)):
            place = slice(int(self._offsets[k]), int(self._offsets[k + 1]))
            yield slice(first, last), packed[place].reshape(last - first, last)

    def places(self, i: Ints, j: Ints) -> Ints:
        """Return the places in the vector of the entries (i, j)."""
        high, low = np.maximum(i, j), np.minimum(i, j)
        strip = high // self._strip
        return np.asarray(self._offsets[strip] + (high - self._starts[strip]) * self._ends[strip] + low)

    @cached_property
    def diagonal(self) -> Ints:
        """Places of the diagonal in the vector."""
        return self.places(np.arange(self.n), np.arange(self.n))

    def pack(self, A: Floats) -> Floats:
        """Return the strips of a symmetric square, of which only the lower triangle is read."""
        packed = self.empty()
        for rows, strip in self.strips(packed):
            strip[:] = A[rows, : rows.stop]
            block = np.tril(strip[:, rows])
            strip[:, rows] = block + np.tril(block, -1).T
        return packed

    def lower(self, packed: Floats) -> Floats:
        """Return a square that holds the lower triangle; above it there may be anything."""
        if self.beside is not None:
            return packed.reshape(self.n, self.n).copy()
        A = np.empty((self.n, self.n), dtype=packed.dtype)
        for rows, strip in self.strips(packed):
            A[rows, : rows.stop] = strip
        return A

    def square(self, packed: Floats) -> Floats:
        """Return the symmetric square."""
        A = self.lower(packed)
        for rows, strip in self.strips(packed):
            A[: rows.start, rows] = strip[:, : rows.start].T
        return A

    def gram(self, F: Floats) -> Floats:
        """Return the inner products of the rows of a matrix."""
        packed, F = self.empty(), self.place(F)
        for rows, strip in self.strips(packed):
            np.matmul(F[rows], F[: rows.stop].T, out=strip)
        return packed

    def outer(self, a: Floats) -> Floats:
        """Return the products :math:`a_i a_j`."""
        packed, a = self.empty(), self.place(a)
        for rows, strip in self.strips(packed):
            np.multiply.outer(a[rows], a[: rows.stop], out=strip)
        return packed

    def scale(self, packed: Floats, a: Floats) -> None:
        """Multiply every entry by :math:`a_i a_j`, in place."""
        a = self.place(a)
        for rows, strip in self.strips(packed):
            np.multiply(strip, np.multiply.outer(a[rows], a[: rows.stop]), out=strip)

    def sums(self, packed: Floats) -> Floats:
        """Return the sums of the rows of the symmetric matrix."""
        return self.times(packed, np.ones((self.n, 1)))[:, 0]

    def total(self, packed: Floats) -> float:
        """Return the sum of all entries of the symmetric matrix."""
        once = sum(float(strip[:, rows].sum()) for rows, strip in self.strips(packed))
        return 2.0 * float(packed.sum()) - once

    def dot(self, a: Floats, b: Floats) -> float:
        """Return the sum of the products of the entries of two symmetric matrices."""
        both = zip(self.strips(a), self.strips(b), strict=True)
        once = sum(float(np.vdot(A[:, rows], B[:, rows])) for (rows, A), (_, B) in both)
        return float(2.0 * (a @ b) - once)

    def times(self, packed: Floats, B: Floats) -> Floats:
        """Return the symmetric matrix times a block of columns."""
        out = np.zeros((self.n, B.shape[1]))
        for rows, strip in self.strips(packed):
            out[rows] += strip @ B[: rows.stop]
            out[: rows.start] += strip[:, : rows.start].T @ B[rows]
        return out


@dataclass(frozen=True, eq=False)
class Factor:
    """A positive definite matrix by its factor :math:`R' R`.

    What is given on the host comes back to the host, wherever the factor is.

    Attributes
    ----------
    R : array of shape (n, n)
        Upper triangular, in Fortran's order.
    """

    R: Floats

    @classmethod
    def of(cls, triangle: Triangle, packed: Floats) -> Factor | None:
        """Factor a matrix; None when it is not positive definite to working accuracy."""
        if not isinstance(packed, np.ndarray):
            found = cast("Any", triangle.lower(packed)).cholesky()
            return None if found is None else cls(found)
        R, failed = lapack.dpotrf(triangle.lower(packed).T, lower=0, overwrite_a=1)
        return None if failed else cls(np.asarray(R))

    @property
    def log_determinant(self) -> float:
        """Logarithm of the determinant."""
        return 2.0 * float(np.log(np.diag(self.R)).sum())

    def solve(self, B: Floats) -> Floats:
        """Return the inverse times a vector or a block."""
        if not isinstance(self.R, np.ndarray):
            return self._on_device(self.R.solve_factored, B)
        X, failed = lapack.dpotrs(self.R, np.asarray(B), lower=0)
        assert not failed
        return np.asarray(X)

    def whiten(self, B: Floats) -> Floats:
        """Return :math:`R^{-T} B` of a block, whose columns then have independent entries of variance 1."""
        if not isinstance(self.R, np.ndarray):
            return self._on_device(self.R.solve_triangular, B)
        return np.asarray(solve_triangular(self.R, np.asarray(B), trans="T", check_finite=False))

    def _on_device(self, solve: Any, B: Any) -> Floats:
        block = cast("Any", self.R).place(B if B.ndim == 2 else B[:, None])
        found = solve(block)
        found = found if B.ndim == 2 else found[:, 0]
        return np.asarray(found) if isinstance(B, np.ndarray) else cast("Floats", found)

    def inverse(self, triangle: Triangle) -> Floats:
        """Return the inverse, packed."""
        if not isinstance(self.R, np.ndarray):
            return cast("Floats", self.R.inverse_factored().ravel())
        A, failed = lapack.dpotri(self.R, lower=0)
        assert not failed
        return triangle.pack(np.asarray(A).T)

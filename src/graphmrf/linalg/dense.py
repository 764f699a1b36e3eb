"""Dense symmetric matrices: factor, solves, draws, inverse and log-determinant."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy.linalg import cho_solve, cholesky, lapack, solve_triangular
from threadpoolctl import ThreadpoolController

from graphmrf.caching import cached_property

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from graphmrf._typing import Floats


def one_blas_thread() -> AbstractContextManager[Any]:
    """Let BLAS use one thread for a while: more threads hardly help small matrices and hurt on busy cores."""
    return cast("AbstractContextManager[Any]", _libraries().limit(limits=1, user_api="blas"))


@cache
def _libraries() -> ThreadpoolController:
    """Find the libraries once: it takes as long as some likelihoods."""
    return ThreadpoolController()


def lower_factor(A: Floats) -> Floats | None:
    """Return the lower Cholesky factor of a matrix, 0 above the diagonal; None where it is not positive definite."""
    factor, failed = lapack.dpotrf(A, lower=True, clean=True)
    return None if failed else np.asarray(factor)


def symmetric_inverse(factor: Floats) -> Floats:
    """Return the inverse of the matrix that has a lower Cholesky factor, 0 above the diagonal."""
    inverse, failed = lapack.dpotri(factor, lower=True)
    assert not failed
    inverse += np.tril(inverse, -1).T
    return np.asarray(inverse)


@dataclass(frozen=True, eq=False)
class Dense:
    """A positive definite matrix `A` of a few thousand rows, exactly: no tolerance, no probes."""

    A: Floats

    @cached_property
    def factor(self) -> Floats:
        """Lower triangular `L` with :math:`L L' = A`."""
        return np.asarray(cholesky(self.A, lower=True, check_finite=False))

    def apply(self, X: Floats) -> Floats:
        """Return :math:`A X`."""
        return np.asarray(self.A @ X)

    def solve(self, B: Floats, *, tolerance: float = 0.0) -> Floats:  # noqa: ARG002 - as of iterative ones
        """Return :math:`A^{-1} B`."""
        return np.asarray(cho_solve((self.factor, True), B, check_finite=False))

    def draw(self, k: int, rng: np.random.Generator, *, tolerance: float = 0.0) -> Floats:  # noqa: ARG002
        """Return `k` columns drawn with covariance :math:`A^{-1}`."""
        E = rng.standard_normal((len(self.A), k))
        return np.asarray(solve_triangular(self.factor, E, lower=True, trans="T", check_finite=False))

    @cached_property
    def inverse(self) -> Floats:
        """:math:`A^{-1}`, symmetric."""
        return symmetric_inverse(self.factor) if self.A.size else self.A  # LAPACK refuses an empty one

    def inverse_diagonal(self, *, probes: int = 0, random_state: int = 0) -> Floats:  # noqa: ARG002 - as of iterative ones
        """Return the diagonal of :math:`A^{-1}`."""
        return np.diag(self.inverse)

    def log_determinant(self, *, probes: int = 0, random_state: int = 0) -> float:  # noqa: ARG002 - as of iterative ones
        r"""Return :math:`\log\det A`."""
        return 2.0 * float(np.log(np.diag(self.factor)).sum())

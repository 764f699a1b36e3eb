r"""Shifted systems :math:`(\sigma I - S) x = b` for many shifts and columns from one Krylov space per column.

The Lanczos vectors of `b` serve every shift (they do not depend on it): after j steps the solution is
:math:`x_j = V_j (\sigma I - T_j)^{-1} \lVert b \rVert e_1`, which is what conjugate gradients would give. The factors
of the tridiagonal matrix are updated step by step (:math:`d_j`, :math:`z_j` below), and only the wanted rows of the
vectors are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from graphmrf.errors import ConvergenceError, InvalidInputError
from graphmrf.linalg.lanczos import inverse, lanczos

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.engines import Engine
    from graphmrf.linalg.lanczos import LanczosStep

_WINDOW_BYTES = 512 * 2**20
_LONGEST_WINDOW = 64
_CACHED_BYTES = 16 * 2**20
_REFINEMENTS = 3


@dataclass(frozen=True)
class Solution:
    """What a solver found.

    Attributes
    ----------
    x : array of shape (n_shifts, n_rows, k)
        The solutions.
    iterations : int
        Products with the operator, the most over all columns.
    residual : float
        Largest ``norm(b - A x) / norm(b)``: recomputed from x by `solve`; by `solve_rows` taken from the recurrence,
        or what rounding leaves where that is more.
    converged : bool
        Whether `residual` met the tolerance.
    """

    x: Floats
    iterations: int
    residual: float
    converged: bool

    def or_raise(self, tolerance: float) -> Floats:
        """Return the solutions, or raise ConvergenceError."""
        if not self.converged:
            raise ConvergenceError(
                f"relative residual {self.residual:.1e} after {self.iterations} iterations, wanted {tolerance:.1e}; "
                "raise the tolerance, lower alpha, or use float64"
            )
        return self.x


def solve(engine: Engine, B: Floats, sigma: Floats, *, allowed: Bools | None = None, tolerance: float) -> Solution:
    r"""Solve :math:`(\sigma I - M (I - N) M) x = b` on all rows, with the true residual at the end.

    Parameters
    ----------
    engine : Engine
        What multiplies by :math:`I - N`.
    B : array of shape (n, k)
        Right-hand sides, zero where `allowed` is False.
    sigma : array that broadcasts to (n_shifts, k)
        Shifts > 1.
    allowed : bool array of shape (n, k), optional
        The mask `M` of every column.
    tolerance : float
        Wanted ``norm(b - A x) / norm(b)`` of every shift and column.
    """
    solution = solve_rows(engine, B, sigma, allowed=allowed, tolerance=tolerance)
    x, iterations = solution.x, solution.iterations
    shifts = np.broadcast_to(sigma, (len(x), B.shape[1]))
    residual = true_residual(engine, B, x, shifts, allowed)
    for _ in range(_REFINEMENTS):
        if residual <= tolerance:
            break
        for s, shift in enumerate(shifts):
            r = _remainder(engine, B, x[s], shift, allowed)
            correction = solve_rows(engine, r, shift[None], allowed=allowed, tolerance=tolerance / residual / 2)
            x[s] += correction.x[0]
            iterations += correction.iterations
        residual = true_residual(engine, B, x, shifts, allowed)
    return Solution(x, iterations, residual, residual <= tolerance)


def solve_rows(
    engine: Engine,
    B: Floats,
    sigma: Floats,
    *,
    rows: Ints | None = None,
    allowed: Bools | None = None,
    tolerance: float,
) -> Solution:
    """Solve as `solve` does, but keep only some rows of the solutions and take the residual from the recurrence.

    Wide right-hand sides are taken in blocks of columns with similar shifts, which converge together.

    Parameters
    ----------
    rows : integer array, optional
        Rows to keep; by default all.
    """
    k = B.shape[1]
    sigma = np.broadcast_to(np.asarray(sigma, dtype=np.float64), (len(sigma), k))
    order = np.argsort(-sigma.min(axis=0, initial=np.inf), kind="stable")
    blocks = np.array_split(order, max(1, -(-k // _block_width(engine.n * B.dtype.itemsize))))
    n_rows = engine.n if rows is None else len(rows)
    x = np.empty((k, len(sigma), n_rows), dtype=B.dtype)
    iterations, residual = 0, 0.0
    for columns in blocks:
        part = _as_slice(columns)
        mask = None if allowed is None else allowed[:, part]
        state = _Shifts(engine, B[:, part], sigma[:, part], mask, rows)
        if not np.isfinite(state.norms).all():
            raise InvalidInputError("values are too large, their squares overflow; divide them by their scale")
        state.run(tolerance)
        x[part] = state.x
        iterations, residual = max(iterations, state.iterations), max(residual, state.worst)
    return Solution(x.transpose(1, 2, 0), iterations, residual, residual <= tolerance)


def iteration_bound(sigma: Floats, tolerance: float) -> int:
    """Return how many steps conjugate gradients can need at these shifts, with room for rounding."""
    nearest = np.min(sigma, initial=1e16)
    root = np.sqrt((nearest + 1.0) / (nearest - 1.0))
    return int(root * np.log(2.0 * root / tolerance)) + 50


def _block_width(column_bytes: int) -> int:
    """Return how many columns go together: 8 while they stay in the cache, 16 if they come from memory anyway."""
    return 8 if 8 * column_bytes <= _CACHED_BYTES else 16


def _as_slice(columns: Ints) -> slice | Ints:
    """Return columns that follow each other as a slice, which takes no copy."""
    consecutive = columns.size > 0 and bool((np.diff(columns) == 1).all())
    return slice(int(columns[0]), int(columns[-1]) + 1) if consecutive else columns


class _Shifts:
    """The growing solutions of one block: scalars of every (shift, column), and the rows of x and p that are kept.

    Lanczos vectors are collected in a window; only when it is full do they enter
    x = sum_j (z_j / d_j) p_j and p_j = v_j + (b_{j-1} / d_{j-1}) p_{j-1}, as two small matrix products per column.
    `onto_x` and `onto_p` hold the coefficients of the collected vectors and, last, of the p before the window.
    """

    def __init__(self, engine: Engine, B: Floats, sigma: Floats, allowed: Bools | None, rows: Ints | None) -> None:
        self.engine, self.rows, self.sigma = engine, rows, sigma
        self.start = engine.load(B)
        self.mask = engine.mask(allowed, self.start.shape[1])
        (n_shifts, k), n_rows = sigma.shape, engine.n if rows is None else len(rows)
        per_vector = max(1, k * n_rows * B.dtype.itemsize)
        m = int(np.clip(_WINDOW_BYTES // per_vector, 4, _LONGEST_WINDOW))
        self.window = np.empty((k, m, n_rows), dtype=B.dtype)
        self.x: Floats = np.zeros((k, n_shifts, n_rows), dtype=B.dtype)
        self.p: Floats | None = None
        self.onto_x = np.zeros((k, n_shifts, m + 1))
        self.onto_p = np.zeros((k, n_shifts, m + 1))
        self.filled = self.iterations = 0
        self.norms = np.sqrt(engine.squares(self.start))[:k]
        self.d = np.ones((n_shifts, k))
        self.z = np.zeros((n_shifts, k))
        self.b: Floats = np.zeros(k)
        self.residual = np.broadcast_to(self.norms > 0, (n_shifts, k)).astype(np.float64)

    def run(self, tolerance: float) -> None:
        """Take steps until every shift of every column has met the tolerance or the bound is passed."""
        bound = iteration_bound(self.sigma, tolerance)
        if (self.residual > tolerance).any():
            for step in lanczos(self.engine, self.start, self.mask):
                self._take(step, tolerance)
                if not (self.residual > tolerance).any() or self.iterations >= bound:
                    break
        self._enter_x()

    @property
    def worst(self) -> float:
        """Largest relative residual; of a recurrence that went on falling, what rounding the solution leaves."""
        rounding = np.finfo(self.x.dtype).eps / 8.0 * (self.sigma + 1.0) / (self.sigma - 1.0)
        return float(np.where(self.norms > 0, np.maximum(self.residual, rounding), 0.0).max(initial=0.0))

    def _take(self, step: LanczosStep, tolerance: float) -> None:
        k = len(self.norms)
        a, b, scale = step.a[:k], step.b[:k], step.scale[:k]
        if self.filled == self.window.shape[1]:
            self._flush()
        ratio = self.b / self.d
        self.d = self.sigma - a - self.b * ratio
        self.z = ratio * self.z if self.iterations else np.broadcast_to(self.norms, self.d.shape)
        self.engine.store(step.vector, self.rows, self.window, self.filled)
        self.onto_p *= ratio.T[:, :, None]
        self.onto_p[:, :, self.filled] = scale[:, None]
        progress = np.where(self.residual > tolerance, self.z / self.d, 0.0)
        self.onto_x += progress.T[:, :, None] * self.onto_p
        self.residual = np.where(self.residual > tolerance, b * self.z / self.d * inverse(self.norms), self.residual)
        self.b = b
        self.filled += 1
        self.iterations += 1

    def _flush(self) -> None:
        """Let the collected vectors enter x and p, and start an empty window."""
        self._enter_x()
        t, onto_p = self.filled, self.onto_p.astype(self.x.dtype)
        if self.p is None:
            self.p = np.zeros_like(self.x)
        self.p *= onto_p[:, :, -1:]
        self.engine.combine(self.window, onto_p[:, :, :t], self.p)
        self.onto_x[:] = self.onto_p[:] = 0.0
        self.onto_p[:, :, -1] = 1.0
        self.filled = 0

    def _enter_x(self) -> None:
        t, onto_x = self.filled, self.onto_x.astype(self.x.dtype)
        self.engine.combine(self.window, onto_x[:, :, :t], self.x)
        if self.p is not None:
            self.x += onto_x[:, :, -1:] * self.p


def true_residual(engine: Engine, B: Floats, x: Floats, sigma: Floats, allowed: Bools | None) -> float:
    """Return the largest ``norm(b - A x) / norm(b)`` over shifts and columns, computed from `x` (n_shifts, n, k)."""
    norms = inverse(np.linalg.norm(B, axis=0))
    shifts = np.broadcast_to(sigma, (len(x), B.shape[1]))
    remainders = (_remainder(engine, B, x[s], shifts[s], allowed) for s in range(len(x)))
    return max((float((np.linalg.norm(r, axis=0) * norms).max(initial=0.0)) for r in remainders), default=0.0)


def _remainder(engine: Engine, B: Floats, x: Floats, shift: Floats, allowed: Bools | None) -> Floats:
    return np.asarray(B - shift * x + product(engine, x, allowed))


def product(engine: Engine, X: Floats, allowed: Bools | None = None) -> Floats:
    """Return :math:`M (I - N) X` for an array `X` of shape (n, k)."""
    V = engine.load(X)
    out = engine.like(V)
    ones, zeros = np.ones(V.shape[1]), np.zeros(V.shape[1])
    engine.advance(V, ones, V, zeros, engine.mask(allowed, V.shape[1]), out)
    return engine.unload(out, X.shape[1])

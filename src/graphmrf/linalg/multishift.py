r"""The Lanczos recurrence, and shifted systems :math:`(\sigma I - S) x = b` from one Krylov space per column.

The Lanczos vectors of `b` serve every shift (they do not depend on it): after j steps the solution is
:math:`x_j = V_j (\sigma I - T_j)^{-1} \lVert b \rVert e_1`, which is what conjugate gradients would give. The factors
of the tridiagonal matrix are updated step by step (:math:`d_j`, :math:`z_j` below), and only the wanted rows of the
vectors are stored.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy.linalg import eigh_tridiagonal

from graphmrf.errors import ConvergenceError, InvalidInputError
from graphmrf.linalg.limits import LIMITS, Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.engines import Block, Engine, Window


def lanczos(engine: Engine, start: Block, mask: Block) -> Iterator[tuple[Block, Floats, Floats, Floats]]:
    """Yield the steps of the Lanczos recurrence for :math:`M (I - N) M`, with `M` the 0/1 mask, column by column.

    .. math:: S v_j = b_{j-1} v_{j-1} + a_j v_j + b_j v_{j+1}

    Yields vector, scale, a, b: the unit vectors :math:`v_j` are ``vector * scale``, and the block `vector` is
    overwritten two steps later, as is `start`. A column whose Krylov space is exhausted continues with zero vectors.
    """
    current, previous, spare = start, start, engine.like(start)
    b = np.sqrt(squares(engine, start))
    scale, back = inverse(b), np.zeros_like(b)
    while True:
        a = engine.advance(current, scale, previous, back, mask, spare)
        b = np.sqrt(engine.subtract(spare, a * scale, current))
        yield current, scale, a, b
        reusable = engine.like(start) if previous is current else previous
        previous, current, spare = current, spare, reusable
        scale, back = inverse(b), b * scale


def squares(engine: Engine, V: Block) -> Floats:
    """Return the sum of squares of every column of a block, which is left as it is."""
    return engine.subtract(V, np.zeros(V.shape[1]), V)


def inverse(values: Floats) -> Floats:
    """Return ``1 / values``, and 0 where a value is 0."""
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)


def jacobi_eigen(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return eigenvalues and eigenvectors of a Jacobi matrix with diagonal `a` and off-diagonal `b`.

    The fast method of LAPACK fails on clusters of equal eigenvalues in some versions of OpenBLAS; the slow one cannot.
    """
    try:
        values, vectors = eigh_tridiagonal(a, b)
    except np.linalg.LinAlgError:
        values, vectors = eigh_tridiagonal(a, b, lapack_driver="stev")
    return values, vectors


def gauss(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return nodes and weights of the Gauss rule of a Jacobi matrix with diagonal `a` and off-diagonal `b`."""
    values, vectors = jacobi_eigen(a, b)
    return values, vectors[0] ** 2


@dataclass(frozen=True)
class Solution:
    """What a solver found."""

    x: Floats  # (n_shifts, n_rows, k): the solutions
    iterations: int  # products with the operator, the most over all columns
    # largest ``norm(b - A x) / norm(b)``: recomputed from x by `solve`; by `solve_rows` taken from the recurrence, or
    # or the rounding error if that is larger
    residual: float
    converged: bool  # whether `residual` met the tolerance

    def or_raise(self, tolerance: float) -> Floats:
        """Return the solutions, or raise ConvergenceError."""
        if not self.converged:
            raise ConvergenceError(
                f"relative residual {self.residual:.1e} after {self.iterations} iterations, wanted {tolerance:.1e}; "
                "raise the tolerance, lower alpha, or use float64"
            )
        return self.x


@dataclass(frozen=True, eq=False)
class ShiftedSystems:
    r"""The systems :math:`(\sigma I - M (I - N) M) x = b` for many shifts."""

    engine: Engine  # what multiplies by `I - N`
    sigma: Floats  # broadcasts to (n_shifts, k): shifts > 1
    allowed: Bools | None = None  # (n, k): the mask `M` of every column
    limits: Limits = LIMITS  # widths of blocks and windows

    def solve(self, B: Floats, *, tolerance: float) -> Solution:
        """Solve on all rows, with the residual recomputed, and refined where it misses the tolerance."""
        return self._gathered(_solve, B, None, tolerance)

    def solve_rows(self, B: Floats, rows: Ints | None = None, *, tolerance: float) -> Solution:
        """Solve, but store only some rows of the solutions (None: all) and take the residual from the recurrence."""
        return self._gathered(_solve_rows, B, rows, tolerance)

    def solve_labels(self, Y: Floats, known: Bools, rows: Ints, *, tolerance: float) -> Solution:
        """Do as `solve_rows` for the right-hand sides :math:`M (I - N) y` of values `y` at the nodes `rows`, else 0.

        `Y`, `known` (n_rows, k): the values, and where the mask `M` is 0; it is 1 at all other nodes.
        """
        return replace(self, allowed=~known)._gathered(_solve_labels, Y, rows, tolerance)

    def residual(self, B: Floats, x: Floats) -> float:
        """Return the largest ``norm(b - A x) / norm(b)`` over shifts and columns, from `x` (n_shifts, n, k)."""
        start = self.engine.load(B)
        mask, norms = self.engine.mask(self.allowed, start.shape[1]), np.sqrt(squares(self.engine, start))[: B.shape[1]]
        shifts = np.broadcast_to(self.sigma, (len(x), B.shape[1]))
        left = (remainder(self.engine, start, self.engine.load(x[s]), shifts[s], mask)[1] for s in range(len(x)))
        return max((float((np.sqrt(r) * inverse(norms)).max(initial=0.0)) for r in left), default=0.0)

    def _gathered(self, solve: Callable[..., _Solved], B: Floats, rows: Ints | None, tolerance: float) -> Solution:
        """Solve block by block."""
        n_rows = self.engine.n if rows is None else len(rows)
        x = np.empty((B.shape[1], len(self.sigma), n_rows), dtype=B.dtype)
        sigma = np.broadcast_to(np.asarray(self.sigma, dtype=np.float64), (len(self.sigma), B.shape[1]))
        blocks, allowed = self._blocks(sigma, self.together(B, rows)), self.allowed
        parts = ((B[:, c], sigma[:, c], None if allowed is None else allowed[:, c]) for c in blocks)
        how = rows, tolerance, self.limits
        iterations, residual = 0, 0.0
        solved = self.engine.map_columns(solve, ((*part, how) for part in parts), total=len(blocks))
        for columns, (values, count, left) in zip(blocks, solved, strict=True):
            if len(blocks) == 1 and isinstance(columns, slice) and values.flags.writeable:
                x = np.asarray(values, dtype=B.dtype)  # all of them, in their order: without a copy
            else:
                x[columns] = values
            iterations, residual = max(iterations, count), max(residual, left)
        return Solution(x.transpose(1, 2, 0), iterations, residual, residual <= tolerance)

    def _blocks(self, sigma: Floats, together: int) -> list[slice | Ints]:
        """Return blocks of columns with similar shifts, which converge together; first those that take longest.

        All but the last are full: engines pad blocks, so 65 columns are less work as 16, 16, 16, 16, 1 than as 13s.
        """
        order = np.argsort(sigma.min(axis=0, initial=np.inf), kind="stable")
        return [_as_slice(block) for block in np.split(order, range(together, order.size, together))]

    def together(self, B: Floats, rows: Ints | None) -> int:
        """Return how many columns are solved together: as many as fit in the engine's memory or the cache of a CPU.

        A column takes three Lanczos vectors, its right-hand side, a mask, and windows; two more vectors where it is
        refined.
        """
        limits, n, itemsize = self.limits, self.engine.n, B.dtype.itemsize
        n_rows, slots = n if rows is None else len(rows), 2 * len(self.sigma) + 4
        column = itemsize * ((6 if rows is None else 4) * n + slots * n_rows) + n
        chosen = self.engine.columns(column)
        if chosen is not None:
            return chosen
        if limits.cached_columns * n * itemsize <= limits.cached_bytes:
            return limits.cached_columns
        width = limits.columns
        while width > 4 and min(width, B.shape[1]) * column > limits.solve_bytes:
            width //= 2
        return width


def iteration_bound(sigma: Floats, tolerance: float) -> int:
    """Return how many steps conjugate gradients can need at these shifts, with room for rounding."""
    nearest = np.min(sigma, initial=1e16)
    root = np.sqrt((nearest + 1.0) / (nearest - 1.0))
    return int(root * np.log(2.0 * root / tolerance)) + 50


def product(engine: Engine, X: Floats, allowed: Bools | None = None) -> Floats:
    """Return :math:`M (I - N) X` for an array `X` of shape (n, k)."""
    return engine.compute(_product, X, allowed)


def _product(engine: Engine, X: Floats, allowed: Bools | None) -> Floats:
    V = engine.load(X)
    out = engine.like(V)
    ones, zeros = np.ones(V.shape[1]), np.zeros(V.shape[1])
    engine.advance(V, ones, V, zeros, engine.mask(allowed, V.shape[1]), out)
    return engine.unload(out, X.shape[1])


def _as_slice(columns: Ints) -> slice | Ints:
    """Return columns that follow each other as a slice, which takes no copy."""
    consecutive = columns.size > 0 and bool((np.diff(columns) == 1).all())
    return slice(int(columns[0]), int(columns[-1]) + 1) if consecutive else columns


_Solved: TypeAlias = "tuple[Floats, int, float]"
"""Solutions (k, n_shifts, n_rows), iterations, and the largest relative residual."""
_How: TypeAlias = "tuple[Ints | None, float, Limits]"  # rows to keep (None: all), tolerance and limits


def _solve(engine: Engine, B: Floats, sigma: Floats, allowed: Bools | None, how: _How) -> _Solved:
    """Solve one block on all rows, and refine it."""
    state = _run(engine, _loaded(engine, B, allowed), sigma, B.dtype, how)
    residual = state.refine(engine.load(B), how[1])
    return engine.read(state.x), state.iterations, residual


def _solve_rows(engine: Engine, B: Floats, sigma: Floats, allowed: Bools | None, how: _How) -> _Solved:
    """Solve one block on some rows, with the residual of the recurrence."""
    state = _run(engine, _loaded(engine, B, allowed), sigma, B.dtype, how)
    return engine.read(state.x), state.iterations, state.worst


def _solve_labels(engine: Engine, Y: Floats, sigma: Floats, allowed: Bools, how: _How) -> _Solved:
    """Solve one block for the products of values at the rows to keep."""
    V = engine.load(Y, how[0])
    B, mask = engine.like(V), engine.mask(allowed, V.shape[1], how[0])
    engine.advance(V, np.ones(V.shape[1]), V, np.zeros(V.shape[1]), mask, B)
    state = _run(engine, (B, mask), sigma, Y.dtype, how)
    return engine.read(state.x), state.iterations, state.worst


def _loaded(engine: Engine, B: Floats, allowed: Bools | None) -> tuple[Block, Block]:
    start = engine.load(B)
    return start, engine.mask(allowed, start.shape[1])


def _run(engine: Engine, start: tuple[Block, Block], sigma: Floats, dtype: Any, how: _How) -> _Shifts:
    rows, tolerance, limits = how
    state = _Shifts(engine, start, sigma, rows, (dtype, limits))
    state.run(tolerance)
    return state


class _Shifts:
    """The growing solutions of one block: scalars of every (shift, column), and the stored rows of x and p.

    Lanczos vectors are collected in a window; only when it is full do they enter
    x = sum_j (z_j / d_j) p_j and p_j = v_j + (b_{j-1} / d_{j-1}) p_{j-1}, as two small matrix products per column.
    `onto_x` and `onto_p` are the coefficients of the collected vectors and, last, of the p before the window.
    """

    def __init__(
        self, engine: Engine, start: tuple[Block, Block], sigma: Floats, rows: Ints | None, made: tuple[Any, Limits]
    ) -> None:
        (self.start, self.mask), self.engine, self.sigma, self.rows = start, engine, sigma, rows
        self.dtype, self.limits = made
        (n_shifts, k), n_rows = sigma.shape, engine.n if rows is None else len(rows)
        per_vector = max(1, k * n_rows * self.dtype.itemsize)
        m = int(np.clip(self.limits.window_bytes // per_vector, 4, self.limits.window_vectors))
        self.window = engine.window(k, m, rows, self.dtype)
        self.x = engine.window(k, n_shifts, rows, self.dtype)
        self.p: Window | None = None
        self.onto_x = np.zeros((k, n_shifts, m + 1))
        self.onto_p = np.zeros((k, n_shifts, m + 1))
        self.filled = self.iterations = 0
        self.norms = np.sqrt(squares(engine, self.start))[:k]
        if not np.isfinite(self.norms).all():
            raise InvalidInputError("values are too large, their squares overflow; divide them by their scale")
        self.d = np.ones((n_shifts, k))
        self.z = np.zeros((n_shifts, k))
        self.b: Floats = np.zeros(k)
        self.residual = np.broadcast_to(self.norms > 0, (n_shifts, k)).astype(np.float64)

    def run(self, tolerance: float) -> None:
        """Take steps until every shift of every column has met the tolerance or the bound is passed."""
        bound = min(iteration_bound(self.sigma, tolerance), self.limits.max_iterations)
        if (self.residual > tolerance).any():
            for vector, *coefficients in lanczos(self.engine, self.start, self.mask):
                self._take(vector, [each[: len(self.norms)] for each in coefficients], tolerance)
                if not (self.residual > tolerance).any() or self.iterations >= bound:
                    break
        self._enter_x()

    def refine(self, B: Block, tolerance: float) -> float:
        """Recompute the residuals, correct the solutions while they miss the tolerance, and return the largest."""
        residual = self._left(B)
        for _ in range(self.limits.refinements):
            if residual <= tolerance:
                break
            for s in range(len(self.sigma)):
                self._correct(B, s, tolerance / residual / 2)
            residual = self._left(B)
        return residual

    def _left(self, B: Block) -> float:
        """Return the largest relative residual of `x`, recomputed."""
        left = [self._remainder(B, s)[1] for s in range(len(self.sigma))]
        return max((float((np.sqrt(r) * inverse(self.norms)).max(initial=0.0)) for r in left), default=0.0)

    def _remainder(self, B: Block, s: int) -> tuple[Block, Floats]:
        x = self.engine.like(B)
        self.engine.restore(self.x, s, x)
        return remainder(self.engine, B, x, self.sigma[s], self.mask)

    def _correct(self, B: Block, s: int, tolerance: float) -> None:
        """Add to the solution of one shift that of what it left."""
        start = self._remainder(B, s)[0], self.mask
        correction = _Shifts(self.engine, start, self.sigma[s : s + 1], self.rows, (self.dtype, self.limits))
        correction.run(tolerance)
        onto = np.zeros((len(self.norms), len(self.sigma), 1))
        onto[:, s] = 1.0
        self.engine.combine(correction.x, onto, self.x)
        self.iterations += correction.iterations

    @property
    def worst(self) -> float:
        """Largest relative residual; of a recurrence that went on falling, what rounding the solution leaves."""
        rounding = np.finfo(self.dtype).eps / 8.0 * (self.sigma + 1.0) / (self.sigma - 1.0)
        return float(np.where(self.norms > 0, np.maximum(self.residual, rounding), 0.0).max(initial=0.0))

    def _take(self, vector: Block, coefficients: list[Floats], tolerance: float) -> None:
        scale, a, b = coefficients
        if self.filled == self.onto_x.shape[2] - 1:
            self._flush()
        ratio = self.b / self.d
        self.d = self.sigma - a - self.b * ratio
        self.z = ratio * self.z if self.iterations else np.broadcast_to(self.norms, self.d.shape)
        self.engine.store(vector, self.window, self.filled)
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
        (k, n_shifts, _), t = self.onto_p.shape, self.filled
        if self.p is None:
            self.p = self.engine.window(k, n_shifts, self.rows, self.dtype)
        self.engine.combine(self.window, self.onto_p[:, :, :t], self.p, keep=self.onto_p[:, :, -1])
        self.onto_x[:] = self.onto_p[:] = 0.0
        self.onto_p[:, :, -1] = 1.0
        self.filled = 0

    def _enter_x(self) -> None:
        self.engine.combine(self.window, self.onto_x[:, :, : self.filled], self.x)
        if self.p is not None:
            each_its_own = self.onto_x[:, :, -1:] * np.eye(len(self.sigma))
            self.engine.combine(self.p, each_its_own, self.x)


def remainder(engine: Engine, B: Block, x: Block, sigma: Floats, mask: Block) -> tuple[Block, Floats]:
    r"""Return the block :math:`b - (\sigma I - M (I - N) M) x` and the sums of squares of its columns."""
    out, ones, beyond = engine.like(x), np.ones(x.shape[1]), np.zeros(x.shape[1])
    beyond[: sigma.size] = sigma - 1.0  # apart from the 1, which float32 would round together with it
    engine.advance(x, ones, x, ones, mask, out)
    engine.subtract(out, beyond, x)
    return out, engine.subtract(out, -ones, B)[: sigma.size]

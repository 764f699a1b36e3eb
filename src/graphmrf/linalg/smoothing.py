r"""The two operators of the paper over a graph: smoothing a signal, and propagating known values.

Both are systems in :math:`I + \omega N = (1 + \omega)(I - \alpha S)`, so a grid of smoothing levels is a set of shifts
:math:`\sigma = 1 / \alpha` of one Krylov space, and folds of a cross-validation are columns with masks of their own.
Beside them are the powers of the normalised adjacency with self loops,
:math:`\tilde S = (D + I)^{-1/2} (W + I) (D + I)^{-1/2}`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from graphmrf.errors import InvalidInputError
from graphmrf.linalg.limits import LIMITS, Limits
from graphmrf.linalg.multigrid import solve_hard
from graphmrf.linalg.multishift import ShiftedSystems, Solution, product

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.engines import Block, Engine
    from graphmrf.graph import Graph

# Least and, by its inverse, greatest size of a column by the bytes of a number: sums of its squares keep their
# digits, for any number of nodes. Squared values of 1e-162 are 0 in float64, and the inverse of 1e-39 overflows in
# float32.
_SMALLEST = {4: 1e-30, 8: 1e-150}


def multiply(graph: Graph, X: Floats) -> Floats:
    r"""Return :math:`(I - N) X`: the normalised adjacency times `X`, and `X` itself at isolated nodes."""
    return product(graph.engine, _columns(graph, X))


def smooth(
    graph: Graph,
    X: Floats,
    alpha: ArrayLike,
    *,
    unknown: Bools | None = None,
    tolerance: float | None = None,
    limits: Limits = LIMITS,
) -> Floats:
    r"""Return :math:`(I + \omega N)^{-1} X` with :math:`\omega = \alpha / (1 - \alpha)`, shape (n, k).

    `X` (n, k): signals; float32 is computed in float32, and again in float64 where it misses the tolerance. `alpha`:
    smoothing level in [0, 1), for all columns or for each. `unknown` (n,): nodes `U` of the system :math:`(I + \omega
    N)_{UU}`; `X` is not read at the others, and the result is 0 there. `tolerance`: relative residual, recomputed from
    the result; by default 1e-8 for float64 and 1e-5 for float32. Raises ConvergenceError where it is missed.
    """
    X = _finite(_columns(graph, X) if unknown is None else np.where(unknown[:, None], _columns(graph, X), 0.0))
    levels = _levels(alpha, X.shape[1])
    active = levels > 0
    if not active.any():
        return X.copy()
    some = slice(None) if active.all() else active  # a slice copies nothing
    allowed = None if unknown is None else np.broadcast_to(unknown[:, None], X.shape)[:, some]
    solved = _solve(graph, X[:, some], levels[None, some], allowed, (tolerance, limits))
    factor = ((1.0 - levels[some]) / levels[some]).astype(X.dtype)
    if isinstance(some, slice):
        solved *= factor
        return solved
    result = X.copy()
    result[:, some] = solved * factor
    return result


def smooth_grid(
    graph: Graph,
    X: Floats,
    alphas: ArrayLike,
    rows: Ints | None = None,
    *,
    tolerance: float = 1e-6,
    limits: Limits = LIMITS,
) -> Floats:
    """Return some rows of `smooth` at every level of a grid, (n_alphas, n_rows, k), from one Krylov space per column.

    The tolerance is that of the recurrence: float32 reaches 3e-6 at level .99; a smaller one raises an error.
    """
    X, levels = _finite(_columns(graph, X)), check_alphas(alphas)
    systems = ShiftedSystems(graph.engine, _sigma(levels[:, None]), None, limits)
    solved = systems.solve_rows(X, rows, tolerance=tolerance).or_raise(tolerance)
    solved *= np.divide(1.0 - levels, levels, out=np.ones_like(levels), where=levels > 0).astype(X.dtype)[:, None, None]
    solved[levels == 0] = X if rows is None else X[rows]
    return solved


def smooth_features(graph: Graph, X: Floats, alpha: float, *, tolerance: float | None = None) -> Floats:
    r"""Return `smooth` of centred features, with isolated nodes shrunk by :math:`1 - \alpha`.

    That is smoothing among neighbours with average features. Otherwise features of isolated nodes would vary far more
    than the smoothed ones that coefficients are fitted to.
    """
    smoothed = smooth(graph, X, alpha, tolerance=tolerance)
    smoothed[graph.isolated] *= 1.0 - alpha
    return smoothed


def propagate(
    graph: Graph, Y: Floats, known: Bools, alpha: ArrayLike, *, tolerance: float | None = None, limits: Limits = LIMITS
) -> Floats:
    r"""Return `Y` with its unknown entries filled in by propagation from the known ones.

    .. math:: Y_U = -(I + \omega N)_{UU}^{-1} (I + \omega N)_{UL} Y_L

    `known` (n,) or (n, k): the entries `L`, for all columns or for each. The other parameters are those of `smooth`.
    """
    Y, known = _known(graph, Y, known)
    levels = _levels(alpha, Y.shape[1])
    active = levels > 0
    B = product(graph.engine, Y, ~known)
    if active.any():
        chosen = slice(None) if active.all() else active
        Y[:, chosen] += _solve(graph, B[:, chosen], levels[None, chosen], ~known[:, chosen], (tolerance, limits))
    return Y


def propagate_labels(
    graph: Graph, Y: Floats, known: Bools, alphas: Floats, labelled: Ints, *, tolerance: float = 1e-6
) -> Floats:
    """Return `propagate` at labelled nodes, at every level of a grid, loading the values of these nodes alone.

    `Y`, `known` (m, k): values of the labelled nodes, and those that a column may use: the folds of a cross-validation
    are columns with masks of their own. `alphas` (n_alphas,) or (n_alphas, k). The result has shape (n_alphas, m, k).
    """
    levels = check_alphas(alphas)
    levels = levels[:, None] if levels.ndim == 1 else levels
    Y = _finite(np.where(known, Y, Y.dtype.type(0)))
    systems = ShiftedSystems(graph.engine, _sigma(levels))
    solved = systems.solve_labels(Y, known, labelled, tolerance=tolerance).or_raise(tolerance)
    solved *= (levels > 0)[:, None, :]
    solved += Y
    return solved


def powers(engine: Engine, X: Floats, order: int, rows: Ints | None = None) -> Floats:
    r"""Return some rows of :math:`X, \tilde S X, \ldots, \tilde S^K X`, (K + 1, n_rows, k), by `Graph.loop_engine`."""
    return engine.compute(_powers, X, order, rows).transpose(1, 2, 0)


def _powers(engine: Engine, X: Floats, order: int, rows: Ints | None) -> Floats:
    window = engine.window(X.shape[1], order + 1, rows, X.dtype)
    for K, V in enumerate(_power_blocks(engine, X, order)):
        engine.store(V, window, K)
    return engine.read(window)


def power(engine: Engine, X: Floats, order: int) -> Floats:
    r"""Return :math:`\tilde S^K X`, by `Graph.loop_engine`."""
    return engine.compute(_last_power, X, order)


def isolated_weight(graph: Graph) -> float:
    r"""Return the weight :math:`1 / (d + 1)` of a node in its average with neighbours, at the mean degree d.

    The mean is over nodes with edges; without any it is 1. Times this weight, centred features of an isolated node
    count as if it had neighbours with average features.
    """
    degrees = graph.degrees[~graph.isolated]
    return float(1.0 / (1.0 + degrees.mean())) if degrees.size else 1.0


def _last_power(engine: Engine, X: Floats, order: int) -> Floats:
    *_, V = _power_blocks(engine, X, order)
    return engine.unload(V, X.shape[1])


def _power_blocks(engine: Engine, X: Floats, order: int) -> Iterator[Block]:
    V = engine.load(X)
    out, mask = engine.like(V), engine.mask(None, V.shape[1])
    ones, zeros = np.ones(V.shape[1]), np.zeros(V.shape[1])
    yield V
    for _ in range(order):
        engine.advance(V, ones, V, zeros, mask, out)
        V, out = out, V
        yield V


def check_alphas(alphas: ArrayLike) -> Floats:
    """Return smoothing levels as float64, all in [0, 1); one too small to change any digit becomes 0."""
    levels = np.asarray(alphas, dtype=np.float64)
    bad = ~((levels >= 0) & (levels < 1))
    if bad.any():
        raise InvalidInputError(f"alpha must be in [0, 1), got {np.atleast_1d(levels)[np.atleast_1d(bad)][0]}")
    return np.where(levels < np.finfo(np.float64).epsneg, 0.0, levels)


def prefers_factor(graph: Graph, levels: Floats, allowed: Bools | None, limits: Limits = LIMITS) -> bool:
    """Whether one sparse factorisation serves all columns and is faster than iterating (`benchmarks/factor.py`).

    It is when the graph is nearly a line, as paths, rings and small grids are: little bandwidth after reordering.
    """
    n = graph.n_nodes
    if not 0 < n <= limits.factor_nodes or n * graph.bandwidth**2 > limits.factor_fill:
        return False
    if levels.size == 0 or levels.flat[0] < limits.factor_alpha or (levels != levels.flat[0]).any():
        return False
    return allowed is None or bool((allowed == allowed[:, :1]).all())


def solve_factor(graph: Graph, B: Floats, alpha: float, allowed: Bools | None) -> Floats:
    r"""Solve :math:`(I / \alpha - (I - N))_{UU} x_U = b_U` by a sparse LU factorisation; x is 0 outside `U`."""
    rows = np.arange(graph.n_nodes) if allowed is None else np.flatnonzero(allowed)
    x = np.zeros_like(B)
    if rows.size:
        N, eye = graph.N[rows][:, rows], sparse.eye_array(rows.size)
        A = sparse.csc_array((1.0 / alpha - 1.0) * eye + N)
        factor = splu(A, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
        x[rows] = factor.solve(B[rows].astype(np.float64))
    return x


def _solve(graph: Graph, B: Floats, levels: Floats, allowed: Bools | None, how: tuple[float | None, Limits]) -> Floats:
    """Solve (1/alpha - S) x = b, all rows; the levels are (1, k), all > 0."""
    tolerance, limits = default_tolerance(B.dtype) if how[0] is None else how[0], how[1]
    systems = ShiftedSystems(graph.engine, 1.0 / levels, allowed, limits)
    if prefers_factor(graph, levels, allowed, limits):
        x = solve_factor(graph, B, float(levels.flat[0]), None if allowed is None else allowed[:, 0])
        residual = systems.residual(B, x[None])
        solution = Solution(x[None], 0, residual, residual <= tolerance)
    else:
        solution = solve_hard(graph, systems, B, tolerance) or systems.solve(B, tolerance=tolerance)
    if B.dtype == np.float32 and not solution.converged:  # rounding of float32, magnified by 1 / (1 - alpha)
        return _solve(graph, B.astype(np.float64), levels, allowed, (tolerance, limits)).astype(np.float32)
    return np.asarray(solution.or_raise(tolerance)[0])


def _sigma(levels: Floats) -> Floats:
    """Return the shifts of levels; level 0 gets one so large that its solution takes one step."""
    return np.divide(1.0, levels, out=np.full_like(levels, 1e16), where=levels > 0)


def default_tolerance(dtype: np.dtype[np.floating]) -> float:
    """Return the default relative residual."""
    return 1e-5 if dtype == np.float32 else 1e-8


def check_known(graph: Graph, known: Bools, width: int | None = None) -> Bools:
    """Return a mask of known nodes of shape (n,), or of known entries where a width is given."""
    known = np.asarray(known)
    shapes = [(graph.n_nodes,)] if width is None else [(graph.n_nodes,), (graph.n_nodes, width)]
    if known.dtype != np.bool_ or known.shape not in shapes:
        wanted = " or ".join(map(str, shapes))
        raise InvalidInputError(f"known must be a bool array of shape {wanted}, got {known.dtype} of {known.shape}")
    return known


def _known(graph: Graph, Y: Floats, known: Bools) -> tuple[Floats, Bools]:
    Y = _columns(graph, Y)
    known = check_known(graph, known, Y.shape[1])
    known = np.broadcast_to(known[:, None] if known.ndim == 1 else known, Y.shape)
    return _finite(np.where(known, Y, Y.dtype.type(0))), known


def _levels(alpha: ArrayLike, k: int) -> Floats:
    levels = check_alphas(alpha)
    if levels.shape not in ((), (k,)):
        raise InvalidInputError(f"alpha must be one number or one for each of {k} columns, got shape {levels.shape}")
    return np.broadcast_to(levels, k)


def _finite(X: Floats) -> Floats:
    """Return columns that are finite, and whose squares neither overflow nor vanish."""
    ends = X.max(axis=0, initial=0.0), -X.min(axis=0, initial=0.0)  # without a copy of X
    largest = np.maximum(*ends).astype(np.float64)
    if not np.isfinite(largest).all():
        row, column = np.argwhere(~np.isfinite(X))[0]
        raise InvalidInputError(f"values must be finite, got {X[row, column]} at row {row}, column {column}")
    least = _SMALLEST[X.dtype.itemsize]
    for column in np.flatnonzero((largest > 1.0 / least) | ((largest > 0) & (largest < least)))[:1]:
        raise InvalidInputError(
            f"values must be of a size that can be squared, got {largest[column]:g} at most in column {column}; "
            "divide them by their scale"
        )
    return X


def _columns(graph: Graph, X: Floats) -> Floats:
    X = np.asarray(X)
    if X.ndim != 2 or len(X) != graph.n_nodes:
        raise InvalidInputError(f"columns must have shape (n_nodes, k) = ({graph.n_nodes}, k), got {X.shape}")
    return X if X.dtype in (np.float32, np.float64) else np.asarray(X, dtype=np.float64)

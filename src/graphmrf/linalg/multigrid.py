r"""Algebraic multigrid by smoothed aggregation, for graphs on which iterations are many: grids, roads, long paths.

Conjugate gradients take some :math:`\sqrt{1 / (1 - \alpha)}` steps where eigenvalues lie densely near 0, because
information travels one edge a step. Here nodes are joined into aggregates, these again, and so on: a cycle relaxes
:math:`A x = b` on every level and solves the last one by a sparse factor. As a preconditioner it makes the number of
iterations nearly independent of the size of the graph and of :math:`\alpha` (Vanek, Mandel and Brezina, 1996).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from graphmrf.linalg.multishift import ShiftedSystems, Solution, iteration_bound

if TYPE_CHECKING:
    from graphmrf._typing import Floats, Ints
    from graphmrf.graph import Graph


@dataclass(frozen=True, eq=False)
class Multigrid:
    r"""A symmetric, diagonally dominant matrix of unit diagonal, and the levels of a cycle that nearly inverts it."""

    engine: Any  # a host's engine, whose `affine` multiplies sparse matrices by blocks
    A: sparse.csr_array  # (n, n): the matrix, float64
    # the matrix of every level but the last, those that lead to the next level and back, all in float32, and a bound on
    # its eigenvalues
    levels: tuple[tuple[Any, Any, Any, float], ...]
    last: Any  # sparse factor of the last level

    @classmethod
    def of(
        cls,
        engine: Any,
        A: sparse.csr_array,
        near: Floats,
        *,
        coarsest: int = 1000,
        densest: float = 3.0,
        shrinking: float = 0.7,
    ) -> Multigrid | None:
        """Return the levels; None where they would be dense, as on graphs with hubs.

        `A` has unit diagonal and its spectrum in (0, 2]; `near` is a vector that it nearly maps to 0. `coarsest`: most
        rows of the last level, which has a factor. `densest`: most entries of all levels over those of the first; grids
        have 1.4, roads 1.6. `shrinking`: most rows of a level over those of the one before; a grid has .15, a path .35.
        """
        coarse, entries, levels = A, A.nnz, list[tuple[Any, Any, Any, float]]()
        while coarse.shape[0] > coarsest:
            finer, largest = coarse, float((abs(coarse) @ near / near).max())
            up, coarse, near = _coarsened(finer, near, 4.0 / 3.0 / largest)
            entries += coarse.nnz
            if entries > densest * A.nnz or coarse.shape[0] > shrinking * finer.shape[0]:
                return None
            down, single = sparse.csr_array(up.T), np.float32
            levels.append((finer.astype(single), down.astype(single), up.astype(single), largest))
        last = splu(sparse.csc_array(coarse), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0)
        return cls(engine, A, tuple(levels), last)

    def cycle(self, B: Floats, level: int = 0) -> Floats:
        """Return approximate solutions on a level, in float32: relaxed, corrected by the next level, relaxed again."""
        if level == len(self.levels):
            return np.asarray(self.last.solve(B.astype(np.float64)).astype(np.float32))
        (A, down, up, largest), affine = self.levels[level], self.engine.affine
        first, second = relaxation_steps(largest)
        x = affine(A, np.float32(first) * B, B, (1.0, second, -second))
        beyond = self.cycle(affine(down, affine(A, x, B, (0.0, 1.0, -1.0)), None, (0.0, 0.0, 1.0)), level + 1)
        x = affine(up, beyond, x, (0.0, 1.0, 1.0))
        x = affine(A, x, B, (1.0, second, -second))
        return np.asarray(affine(A, x, B, (1.0, first, -first)))

    def solve(self, B: Floats, *, tolerance: float, most: int = 200) -> Solution:
        """Return the solutions (1, n, k) by conjugate gradients preconditioned with the cycle: some 20 iterations."""
        norms = np.sqrt(_products(B, B))
        norms = np.where(norms > 0, norms, 1.0)
        x, r, p, iterations = np.zeros_like(B), B.copy(), None, 0
        before: Floats = np.ones(B.shape[1])
        residual = float((np.sqrt(_products(r, r)) / norms).max(initial=0.0))
        while residual > tolerance and iterations < most:
            z = self.cycle((r / norms).astype(np.float32)) * norms
            now = _products(r, z)
            p = z if p is None else z + _ratio(now, before) * p
            q = self.engine.affine(self.A, p, None, (0.0, 0.0, 1.0))
            step, before, iterations = _ratio(now, _products(p, q)), now, iterations + 1
            x += step * p
            r -= step * q
            residual = float((np.sqrt(_products(r, r)) / norms).max(initial=0.0))
        left = self.engine.affine(self.A, x, B, (0.0, 1.0, -1.0))
        residual = float((np.sqrt(_products(left, left)) / norms).max(initial=0.0))
        return Solution(x[None], iterations, residual, residual <= tolerance)


def _products(U: Floats, V: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->j", U, V, dtype=np.float64))


def _ratio(a: Floats, b: Floats) -> Floats:
    return np.divide(a, b, out=np.zeros_like(a), where=b != 0)


def relaxation_steps(largest: float, rough: float = 1.0 / 6.0) -> tuple[float, float]:
    """Return the two steps of a relaxation: one over the roots of Chebyshev's polynomial on the rough eigenvalues.

    Rough are those from the share `rough` of the largest on, as many nodes as are joined to one: at 1 / 3 or 1 / 12 a
    tenth more iterations.
    """
    middle, half = 0.5 * largest * (1.0 + rough), 0.5 * largest * (1.0 - rough)
    return 1.0 / (middle + half * math.sqrt(0.5)), 1.0 / (middle - half * math.sqrt(0.5))


def _coarsened(A: sparse.csr_array, near: Floats, step: float) -> tuple[Any, sparse.csr_array, Floats]:
    """Return the prolongation from the next level, the next level's matrix of unit diagonal, and its `near`.

    Columns of the prolongation are pieces of `near` on the aggregates, relaxed once so that they overlap.
    """
    joined = aggregates(strong_entries(A))
    inside = np.flatnonzero(joined >= 0)
    lengths = np.sqrt(np.bincount(joined[inside], near[inside] ** 2))
    pieces = (near[inside] / lengths[joined[inside]], (inside, joined[inside]))
    T = sparse.csr_array(pieces, shape=(len(joined), lengths.size))
    up = sparse.csr_array(T - step * (A @ T))
    coarse = sparse.csr_array(up.T @ (A @ up))
    scale = np.sqrt(coarse.diagonal())
    units = sparse.diags_array(1.0 / scale)
    return sparse.csr_array(up @ units), sparse.csr_array(units @ coarse @ units), scale * lengths


def strong_entries(A: sparse.csr_array, strong: float = 0.25) -> sparse.csr_array:
    """Return the entries off the diagonal that are large in their row or their column, as a pattern."""
    size, rows = np.abs(A.data), np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    size[rows == A.indices] = 0.0
    largest = strong * np.maximum.reduceat(size, A.indptr[:-1])  # no row is empty: the diagonal is there
    kept = (size > 0) & ((size >= largest[rows]) | (size >= largest[A.indices]))
    ends = np.append(0, np.cumsum(kept))[A.indptr]
    return sparse.csr_array((np.ones(ends[-1], dtype=np.int8), A.indices[kept], ends), shape=A.shape)


def aggregates(strong: sparse.csr_array) -> Ints:
    """Return the aggregate of every node, -1 for one that is joined to none: roots and what lies around them.

    Roots are a random set, no two of them within two edges, that leaves no node more than two edges from one.
    """
    degrees = np.diff(strong.indptr)
    left = np.where(degrees > 0, np.random.default_rng(0).permutation(degrees.size), -1)
    roots = np.zeros(degrees.size, dtype=np.bool_)
    while (left >= 0).any():
        chosen = (left >= 0) & (left == _largest_around(strong, _largest_around(strong, left)))
        roots |= chosen
        left[_largest_around(strong, _largest_around(strong, chosen.astype(np.int64))) > 0] = -1
    joined = np.where(roots, np.cumsum(roots) - 1, -1)
    for _ in range(2):
        joined = np.where(joined < 0, _largest_around(strong, joined), joined)
    return joined


def _largest_around(pattern: sparse.csr_array, values: Ints) -> Ints:
    """Return the largest value at every node and its neighbours."""
    around = values.copy()
    some = np.flatnonzero(np.diff(pattern.indptr))
    if some.size:
        around[some] = np.maximum(around[some], np.maximum.reduceat(values[pattern.indices], pattern.indptr[some]))
    return around


def solve_hard(graph: Graph, systems: ShiftedSystems, B: Floats, tolerance: float) -> Solution | None:
    """Return the solutions by multigrid if it is expected to be faster and succeeds; None otherwise."""
    found = solve_multigrid(graph, systems, B, tolerance) if prefers_multigrid(systems, B, tolerance) else None
    return found if found is not None and found.converged else None


def prefers_multigrid(systems: ShiftedSystems, B: Floats, tolerance: float) -> bool:
    """Whether columns share level and mask, and the expected iterations make multigrid faster.

    Grids and roads reach the bound on iterations, most other graphs stay far below it: one column is tried.
    """
    sigma, allowed, limits = systems.sigma, systems.allowed, systems.limits
    if not B.size or not systems.engine.on_host or systems.engine.n < limits.multigrid_nodes:
        return False
    if (sigma != sigma.flat[0]).any() or (allowed is not None and (allowed != allowed[:, :1]).any()):
        return False
    # number of products that cost as much per column as set-up and a cycle
    cost = limits.multigrid_setup / B.shape[1] + limits.multigrid_products
    if iteration_bound(sigma, tolerance) < cost:
        return False
    first = int(np.argmax(np.abs(B).max(axis=0) > 0))
    one = slice(first, first + 1)
    trial = replace(limits, max_iterations=int(0.3 * cost))
    probe = replace(systems, sigma=sigma[:, :1], allowed=None if allowed is None else allowed[:, one], limits=trial)
    tried = probe.solve_rows(B[:, one], np.arange(1), tolerance=tolerance)
    expected = tried.iterations * np.log(tolerance) / min(np.log(max(tried.residual, tolerance)), -1e-3)
    return not tried.converged and expected > cost


def solve_multigrid(graph: Graph, systems: ShiftedSystems, B: Floats, tolerance: float) -> Solution | None:
    r"""Solve :math:`(I / \alpha - (I - N))_{UU} x_U = b_U` by multigrid; None where its levels would be dense."""
    sigma, allowed = float(systems.sigma.flat[0]), systems.allowed
    rows = np.arange(graph.n_nodes) if allowed is None else np.flatnonzero(allowed[:, 0])
    N, eye = graph.N[rows][:, rows], sparse.eye_array(rows.size)
    A = sparse.csr_array((1.0 - 1.0 / sigma) * eye + N / sigma)
    grids = Multigrid.of(graph.engine, A, np.sqrt(graph.mass)[rows], coarsest=systems.limits.multigrid_coarsest)
    if grids is None:
        return None
    x, together = np.zeros(B.shape), systems.limits.columns
    found = [Solution(x[None], 0, 0.0, converged=True)]
    for first in range(0, B.shape[1], together):
        columns = slice(first, first + together)
        right = np.ascontiguousarray(B[rows, columns], dtype=np.float64) / sigma
        found.append(grids.solve(right, tolerance=tolerance))
        x[rows, columns] = found[-1].x[0]
    iterations, residual = max(each.iterations for each in found), max(each.residual for each in found)
    return Solution(x[None].astype(B.dtype), iterations, residual, all(each.converged for each in found))

"""Sizes at which methods switch, in one table that can be passed on."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LIMITS", "Limits", "part_sizes"]


@dataclass(frozen=True)
class Limits:
    """Sizes at which the linear algebra changes its method; every function that switches takes one of these."""

    # nodes up to which `NodePrecision` has a dense factor: 1500 take .05 s and 18 MB, as long as iterating for 16
    # columns
    dense_precision: int = 1500
    # unknown nodes up to which variances come from a dense inverse: 3000 take 1 s and 70 MB, as long as 64 draws on a
    # hard graph
    dense_variance: int = 3000
    # nodes with edges up to which the eigenvalues of `N` are computed: 4000 take 3 s on one core
    # (`benchmarks/spectrum.py`)
    dense_spectrum: int = 4000
    # factor_nodes, factor_fill, factor_alpha: nodes, nodes times squared bandwidth, and smoothing level that bound the
    # use of a sparse factor: where `benchmarks/factor.py` found it faster than iterating
    factor_nodes: int = 20_000
    factor_fill: float = 5e7
    factor_alpha: float = 0.5
    # multigrid_nodes, multigrid_setup, multigrid_products: nodes from which multigrid is considered, and the iterations
    # that its set-up (of one column) and its cycles (of each column) are as expensive as
    multigrid_nodes: int = 10_000
    multigrid_setup: int = 400
    multigrid_products: int = 120
    multigrid_coarsest: int = 1000  # rows of the last level of multigrid, which has a factor
    # window_bytes, window_vectors: memory and length of the window of Lanczos vectors that enter the solutions
    # together; longer ones than 64 vectors are not faster
    window_bytes: int = 512 * 2**20
    window_vectors: int = 64
    # cached_columns, cached_bytes, columns: columns solved together up to a number of bytes, and beyond: 8 stay in the
    # last-level cache of a desktop; from memory 16 take as long as 8 (`benchmarks/search.py`)
    cached_columns: int = 8
    cached_bytes: int = 16 * 2**20
    columns: int = 16
    # memory of the vectors of one block on a CPU; from some 7 million nodes on, fewer columns are solved together
    solve_bytes: int = 8 * 2**30
    block_bytes: int = 64 * 2**20  # memory of one block of right-hand sides of a coupled system
    # nodes from which solves iterate in float32 and are refined in float64, in a third to a half of the time at 30,000
    # and 100,000 nodes; smaller blocks fit the cache
    single_nodes: int = 20_000
    max_iterations: int = 2**31  # bound on the iterations of any solve, besides the theoretical one
    # times a solution that missed its tolerance is corrected by solving for what it left. One is enough in float64, two
    # in float32; errors that remain after three are rounding.
    refinements: int = 3
    # relative residual that iterations in float32 reach before they are refined in float64: some hundred times its
    # rounding. At a tenth they stall on badly conditioned systems, at ten times as much one more refinement follows.
    single_residual: float = 2e-5

    patterns: int = 4096  # patterns of missing attributes factored at once; with 20 attributes 13 MB
    draw_tolerance: float = 1e-5  # relative residual of the solves behind random draws: far below their scatter


LIMITS = Limits()


def part_sizes(total: int, most: int) -> list[int]:
    """Return the sizes of parts of at most `most`, all but the last full."""
    return [min(most, total - first) for first in range(0, total, most)]

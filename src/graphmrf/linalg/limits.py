"""Sizes at which methods switch, in one table that can be passed on."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LIMITS", "Limits"]


@dataclass(frozen=True)
class Limits:
    """Sizes at which the linear algebra changes its method; every function that switches takes one of these.

    Attributes
    ----------
    dense_precision : int
        Nodes up to which `NodePrecision` has a dense factor. One of 1500 nodes takes .05 s and 18 MB, about as long as
        iterating for 16 columns; doubled, it takes 8 times as long for each of the hundred points of a search.
    dense_variance : int
        Unknown nodes up to which variances come from a dense inverse: 1 s and 70 MB at 3000, as long as 64 draws take
        on a graph where they are hard; doubled, 8 s and 280 MB.
    dense_spectrum : int
        Nodes with edges up to which the eigenvalues of `N` are computed: 3 s on one core at 4000
        (`benchmarks/spectrum.py`); doubled, 25 s, against some seconds by Lanczos quadrature.
    factor_nodes, factor_fill, factor_alpha : int, float, float
        Nodes, nodes times squared bandwidth, and smoothing level that bound the use of a sparse factor: where
        `benchmarks/factor.py` found it quicker than iterating. Doubled, grids lose up to half their speed.
    multigrid_nodes, multigrid_setup, multigrid_products : int
        Nodes from which multigrid is considered, and the iterations it is worth: so many of one column for its setting
        up, so many of every column for its cycles. Doubled, grids at level .999 iterate.
    multigrid_coarsest : int
        Rows of the last level of multigrid, which has a factor.
    window_bytes, window_vectors : int
        Memory and length of the window of Lanczos vectors that enter the solutions together. From 64 vectors on longer
        ones are not quicker, and 512 MB holds 64 vectors of a million entries; doubled, only the memory grows.
    cached_columns, cached_bytes, columns : int
        Columns that go together while they take up to so many bytes, and beyond: 8 stay in the last-level cache of a
        desktop, and from memory 16 take as long as 8 (`benchmarks/search.py`). Doubled, small graphs leave the cache
        and large ones gain nothing.
    solve_bytes : int
        Memory that the vectors of one block may take on a CPU; fewer columns go together where more would be needed,
        from some 7 million nodes on. 8 columns of 10 million nodes take 8 GB; doubled, 16 take 16 GB, in half as many
        passes over the edges.
    block_bytes : int
        Memory of one block of right-hand sides of a coupled system; doubled, the six blocks of a solve take 768 MB and
        the products are no quicker.
    single_nodes : int
        Nodes from which solves iterate in float32 and are refined in float64, in a third to a half of the time at
        30,000 and 100,000 nodes. Below, blocks are in the cache and a second is enough; doubled, such graphs lose that.
    max_iterations : int
        Bound on the iterations of any solve, over the one from theory. For tests, and for the impatient.
    """

    dense_precision: int = 1500
    dense_variance: int = 3000
    dense_spectrum: int = 4000
    factor_nodes: int = 20_000
    factor_fill: float = 5e7
    factor_alpha: float = 0.5
    multigrid_nodes: int = 10_000
    multigrid_setup: int = 400
    multigrid_products: int = 120
    multigrid_coarsest: int = 1000
    window_bytes: int = 512 * 2**20
    window_vectors: int = 64
    cached_columns: int = 8
    cached_bytes: int = 16 * 2**20
    columns: int = 16
    solve_bytes: int = 8 * 2**30
    block_bytes: int = 64 * 2**20
    single_nodes: int = 20_000
    max_iterations: int = 2**31


LIMITS = Limits()

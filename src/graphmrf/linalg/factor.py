"""Sparse factorisation, for the small graphs where it beats iterating: few edges per node and much smoothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats
    from graphmrf.graph import Graph

_LARGEST = 20_000
_MOST_FILL = 5e7
_LOWEST_ALPHA = 0.5


def prefers_factor(graph: Graph, levels: Floats, allowed: Bools | None) -> bool:
    """Whether one factorisation serves all columns and is quicker than iterating (measured in benchmarks/factor.py).

    It is when the graph is nearly a line, as paths, rings and small grids are: little bandwidth after reordering.
    """
    if not 0 < graph.n_nodes <= _LARGEST or graph.n_nodes * float(graph.bandwidth) ** 2 > _MOST_FILL:
        return False
    if levels.size == 0 or levels.flat[0] < _LOWEST_ALPHA or (levels != levels.flat[0]).any():
        return False
    return allowed is None or bool((allowed == allowed[:, :1]).all())


def solve_factor(graph: Graph, B: Floats, alpha: float, allowed: Bools | None) -> Floats:
    r"""Solve :math:`(I / \alpha - (I - N))_{UU} x_U = b_U` by a sparse LU factorisation; x is 0 outside `U`."""
    rows = np.arange(graph.n_nodes) if allowed is None else np.flatnonzero(allowed)
    x = np.zeros_like(B)
    if rows.size:
        S = graph.S + sparse.diags_array(graph.isolated.astype(np.float64))
        A = sparse.csc_array(sparse.eye_array(rows.size) / alpha - sparse.csr_array(S)[rows][:, rows])
        factor = splu(A, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
        x[rows] = factor.solve(B[rows].astype(np.float64))
    return x

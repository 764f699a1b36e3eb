"""Sparse factorisation, for the small graphs where it beats iterating: few edges per node and much smoothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats
    from graphmrf.graph import Graph

_LARGEST = 5000
_DENSEST = 8.0
_LOWEST_ALPHA = 0.95


def prefers_factor(graph: Graph, levels: Floats, allowed: Bools | None) -> bool:
    """Whether one factorisation serves all columns and is quicker than iterating (measured in benchmarks/factor.py)."""
    small = 0 < graph.n_nodes <= _LARGEST and graph.indices.size <= _DENSEST * graph.n_nodes
    same = levels.size > 0 and bool((levels == levels.flat[0]).all())
    if not (small and same and levels.flat[0] >= _LOWEST_ALPHA):
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

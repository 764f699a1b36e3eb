"""The features of every node as the field sees them: its own, its neighbours', and those of theirs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from graphmrf.linalg import multiply

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats
    from graphmrf.graph import Graph

GROUPS = ("own", "neighbours", "second")


@dataclass(frozen=True, eq=False)
class Design:
    r"""Standardised features of all nodes.

    Attributes
    ----------
    groups : array of shape (3, n, p)
        `X`, `SX` and `S²X`, each column of mean 0 and variance 1 over all nodes (or 0 if it is constant).
    scales : array of shape (3, p)
        What the columns were divided by: a coefficient of the standardised column over its scale is one per unit.
    kept : bool array
        The features of the caller that vary; the others have no effect to find.
    """

    groups: Floats
    scales: Floats
    kept: Bools

    @property
    def p(self) -> int:
        """Number of features that vary."""
        return int(self.groups.shape[2])

    @cached_property
    def linear(self) -> Floats:
        """The three groups side by side, shape (n, 3 p)."""
        return np.hstack(list(self.groups))

    @cached_property
    def Z(self) -> Floats:
        """Arguments of the nonlinear functions: own and neighbours' features, shape (n, 2 p)."""
        return np.hstack(list(self.groups[:2]))


def design(graph: Graph, X: Floats) -> Design:
    """Return the standardised features of a graph's nodes.

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> path = Graph.from_edges([0, 1], [1, 2])
    >>> made = design(path, np.array([[1.0, 7.0], [2.0, 7.0], [3.0, 7.0]]))
    >>> made.kept
    array([ True, False])
    >>> made.groups[0].round(4)
    array([[-1.2247],
           [ 0.    ],
           [ 1.2247]])
    """
    X = np.ascontiguousarray(X)  # so that rounding does not depend on the layout
    magnitude = np.abs(X).max(axis=0, initial=0.0)
    unit = np.ldexp(1.0, np.frexp(magnitude)[1] - 1)  # powers of 2: nothing is rounded, and no square overflows
    deviations = X / unit
    deviations -= deviations.mean(axis=0)
    spread = np.sqrt(np.mean(deviations**2, axis=0))
    kept = spread > 16 * np.finfo(np.float64).eps * (magnitude / unit)
    own = deviations[:, kept] / spread[kept]
    neighbours = multiply(graph, own) if own.shape[1] else own
    second = multiply(graph, neighbours) if own.shape[1] else own
    raw = np.stack([own, neighbours, second])
    groups = raw - raw.mean(axis=1, keepdims=True)
    scales = np.sqrt(np.mean(groups**2, axis=1))
    flat = scales <= 1e-12
    groups = groups / np.where(flat, np.inf, scales)[:, None, :]
    return Design(groups, np.where(flat, np.inf, scales) * (unit * spread)[kept], kept)

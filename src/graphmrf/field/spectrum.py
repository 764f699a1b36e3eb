r"""Correlations of the graph field :math:`(\kappa^2 + N)^{-\nu}` among some nodes, from the eigenvectors of `N`.

Every function of this family, over its mean eigenvalue, is nearly a combination of some two dozen functions of the
spectrum: the leading singular vectors `G` of a table of the family. So the matrices
:math:`B_k = U_L\,\mathrm{diag}(g_k)\,U_L'` are computed once, and a correlation matrix and its derivatives for any
range and order are combinations of them. Entries are divided by the standard deviations of both nodes, so that the
field has variance 1 at every node.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order

from graphmrf.caching import cached_property
from graphmrf.field.space import Shape

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphmrf._typing import Floats, Ints
    from graphmrf.graph import Graph

_ACCURACY = 1e-7  # singular value, over the largest, below which a function of the spectrum is left out
_GRID = (40, 12)  # ranges and orders of the table from which they are found
# prior of the order of smoothness: within a factor of 2 of 1 in two cases of three
ORDER = Shape("field.order", 1.0, 0.7)
_LEAST_VARIANCE = 1e-12


def range_prior(graph: Graph, name: str, shift: float = 0.0) -> Shape:
    r"""Return the prior of :math:`\kappa^2`: between the smallest eigenvalue of a graph so long, and the largest.

    A path of `d` steps has :math:`\lambda_2 \approx (\pi / d)^2 / 2`; with the diameter `d` of the largest component
    both ends are two standard deviations of the logarithm from their middle, from which the median is shifted by some.
    """
    lowest = min(0.5 * (math.pi / max(diameter(graph), 2)) ** 2, 1.0)
    spread = (math.log(2.0) - math.log(lowest)) / 4.0
    return Shape(name, math.sqrt(2.0 * lowest) * math.exp(shift * spread), spread)


def diameter(graph: Graph) -> int:
    """Return the longest shortest path that breadth-first searches find in the largest component.

    Each begins at the end of the last one, until the path grows no longer. Walks of five steps decide between nodes, so
    that their order plays no part.
    """
    walks = walks_of_five(graph)
    sizes = np.bincount(graph.components)[graph.components]
    largest = np.flatnonzero(sizes == sizes.max())
    start, steps, longest = int(largest[np.argmax(walks[largest])]), 0, -1
    while steps > longest:
        longest = steps
        start, steps = _farthest(graph, start, walks)
    return longest


def walks_of_five(graph: Graph) -> Floats:
    """Return the weight of all walks of five steps from every node: it hardly ever is that of another node."""
    found = np.ones((graph.n_nodes, 1))
    for _ in range(5):
        found = sparse.csr_array(graph.adjacency) @ found
    return np.asarray(found[:, 0])


def _farthest(graph: Graph, start: int, walks: Floats) -> tuple[int, int]:
    """Return the node farthest from another, that of the fewest walks among equals, and how many steps away it is."""
    order, before = breadth_first_order(graph.adjacency, start, directed=False)
    place = np.empty(graph.n_nodes, dtype=np.int64)
    place[order] = np.arange(order.size)
    parents, first, last, steps = place[before[order[1:]]], 0, 1, 0
    while last < order.size:
        first, last, steps = last, 1 + int(np.searchsorted(parents, last)), steps + 1
    ends = order[first:last]
    return int(ends[np.argmin(walks[ends])]), steps


@dataclass(frozen=True, eq=False)
class FieldSpectrum:
    """Functions of the spectrum of a graph that span all graph fields."""

    graph: Graph

    @cached_property
    def basis(self) -> Floats:
        """Orthonormal functions `G` of the eigenvalues, shape (n, k)."""
        values = self.graph.eigenpairs[0]
        prior = range_prior(self.graph, "")
        lowest = math.log(prior.median) - 6.0 * prior.spread
        ranges = np.exp(np.linspace(lowest, math.log(20.0), _GRID[0]))
        orders = np.exp(np.linspace(math.log(0.1), math.log(6.0), _GRID[1]))
        table = np.array([_filter(values, a, b)[0] for a in ranges for b in orders])
        table /= np.linalg.norm(table, axis=1, keepdims=True)
        _, sizes, functions = np.linalg.svd(table, full_matrices=False)
        return np.ascontiguousarray(functions[sizes > _ACCURACY * sizes[0]].T)

    @cached_property
    def diagonals(self) -> Floats:
        """Diagonals (n, k) of the functions of `N`."""
        return np.asarray(self.graph.eigenpairs[1] ** 2 @ self.basis)

    def weights(self, kappa2: float, order: float) -> Floats:
        """Return the weights (3, k) of the functions for a field and its derivatives by both logarithms."""
        return np.stack(_filter(self.graph.eigenpairs[0], kappa2, order)) @ self.basis

    def deviations(self, kappa2: float, order: float) -> Floats:
        """Return the standard deviations (n,) of the field of mean variance 1 at all nodes."""
        return np.asarray(np.sqrt(np.maximum(self.diagonals @ self.weights(kappa2, order)[0], _LEAST_VARIANCE)))

    def between(self, kappa2: float, order: float, nodes: Ints, others: Ints) -> Floats:
        """Return the correlations between two sets of nodes."""
        values, U = self.graph.eigenpairs
        unit = 1.0 / self.deviations(kappa2, order)
        block = U[nodes] @ (U[others] * _filter(values, kappa2, order)[0]).T
        return np.asarray(block * unit[nodes, None] * unit[others])

    def draw(self, kappa2: float, order: float, count: int, rng: np.random.Generator) -> Floats:
        """Return draws (count, n) of the field of variance 1."""
        values, U = self.graph.eigenpairs
        drawn = rng.standard_normal((count, values.size)) * np.sqrt(_filter(values, kappa2, order)[0])
        return np.asarray(drawn @ U.T / self.deviations(kappa2, order))

    def smoothed(self, columns: Floats) -> Floats:
        """Return the functions of `N` times columns (n, q) at all nodes, shape (k, n, q)."""
        U = self.graph.eigenpairs[1]
        images = self.basis.T[:, :, None] * (U.T @ columns)  # (k, n, q)
        found = U @ images.transpose(1, 0, 2).reshape(len(U), -1)
        return np.ascontiguousarray(found.reshape(len(U), *images.shape[::2]).transpose(1, 0, 2))

    def combine(self, kappa2: float, order: float, smoothed: Floats) -> Floats:
        """Return smoothed columns and their derivatives by both logarithms, shape (3, n, q)."""
        return np.asarray(np.tensordot(self.weights(kappa2, order), smoothed, 1))


@dataclass(frozen=True, eq=False)
class Correlations:
    """Correlations of graph fields among some nodes `rows`, which may be some of those of a `whole`."""

    spectrum: FieldSpectrum
    rows: Ints
    whole: Correlations | None = None

    @cached_property
    def _among(self) -> Floats:
        """Functions of `N` among the nodes, shape (k, m, m)."""
        if self.whole is not None:
            places = self.whole.places(self.rows)
            return np.ascontiguousarray(self.whole._among[:, places[:, None], places])
        U = self.spectrum.graph.eigenpairs[1][self.rows]
        return np.array([_weighted_gram(U, g) for g in self.spectrum.basis.T])

    def places(self, rows: Ints) -> Ints:
        """Return where some nodes are among these, or where they would be."""
        order = np.argsort(self.rows)
        return np.asarray(order[np.minimum(np.searchsorted(self.rows, rows, sorter=order), self.rows.size - 1)])

    def at(self, rows: Ints) -> Correlations:
        """Return the same among other nodes, a part of these where they are among them."""
        if np.array_equal(rows, self.rows):
            return self
        inside = np.array_equal(self.rows[self.places(rows)], rows)
        return Correlations(self.spectrum, rows, self if inside else None)

    def among(self, kappa2: float, order: float) -> tuple[Floats, Callable[[], tuple[Floats, Floats]]]:
        """Return the correlations, and a function for their derivatives by the logarithms of range and order."""
        C = self.spectrum.weights(kappa2, order)
        diagonals = self.spectrum.diagonals[self.rows] @ C.T
        variance = np.maximum(diagonals[:, 0], _LEAST_VARIANCE)
        scale = 1.0 / np.sqrt(variance)
        unit = scale[:, None] * scale
        R = np.tensordot(C[0], self._among, 1) * unit

        def slopes() -> tuple[Floats, Floats]:
            found = np.tensordot(C[1:], self._among, 1) * unit
            relative = 0.5 * diagonals[:, 1:].T / variance
            found -= (relative[:, :, None] + relative[:, None, :]) * R
            return found[0], found[1]

        return R, slopes


def _weighted_gram(U: Floats, g: Floats) -> Floats:
    r"""Return :math:`U \mathrm{diag}(g) U'`, whose parts of either sign are symmetric products of half the work."""
    V = U * np.sqrt(np.abs(g))
    above, below = V[:, g > 0], V[:, g <= 0]
    return np.asarray(above @ above.T - below @ below.T)


def _filter(values: Floats, kappa2: float, order: float) -> tuple[Floats, Floats, Floats]:
    """Return the eigenvalues of the covariance over their mean, and their derivatives by both logarithms."""
    logs = np.log(kappa2 + values)
    f = np.exp(-order * (logs - logs.min()))
    f /= f.mean()
    by_range = -order * kappa2 / (kappa2 + values) * f
    by_order = -order * logs * f
    return f, by_range - f * by_range.mean(), by_order - f * by_order.mean()

r"""Precision of a graph field, :math:`(\kappa^2 + N)^\nu + \mathrm{diag}(d)`, by factor or by iteration.

Where the factor is sparse (maps, roads, trees, many small components) everything is exact. On other graphs, where it
would be nearly dense, solves are iterative, determinants and diagonals come from random probes, and the order is 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary

import numpy as np
from scipy import sparse

from graphmrf.errors import ConvergenceError
from graphmrf.kept import cached_property
from graphmrf.linalg.factor import Ordering, Symbolic
from graphmrf.linalg.precision import NodePrecision

if TYPE_CHECKING:
    from graphmrf._typing import Floats, Ints
    from graphmrf.graph import Graph
    from graphmrf.linalg.factor import SparseFactor

MOST_FLOPS = 4e10
"""Operations of a factor up to which it is used: some ten seconds."""

ORDERS = (1, 2, 3)
"""Orders of smoothness that a sparse factor is tried for."""

_TOLERANCE = 1e-6
"""Relative residual of iterative solves."""

_KNOWN: WeakKeyDictionary[Graph, dict[int, GraphPrecisions]] = WeakKeyDictionary()
"""Orders of elimination of the graphs in use, which take longer than a factor."""


class Precision(Protocol):
    """A positive definite matrix on the nodes of a graph."""

    @property
    def log_determinant(self) -> float:
        """Logarithm of the determinant."""

    @property
    def inverse_diagonal(self) -> Floats:
        """Diagonal of the inverse, shape (n,)."""

    def solve(self, B: Floats) -> Floats:
        """Return the inverse times a block of columns (n, k)."""

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """Return columns (n, count) with the inverse as their covariance."""


@dataclass(frozen=True, eq=False)
class GraphPrecisions:
    """All precisions of a graph of one order, with the one ordering that their factors share.

    Attributes
    ----------
    graph : Graph
        The graph.
    order : int
        The order of smoothness.
    """

    graph: Graph
    order: int = 1

    @classmethod
    def of(cls, graph: Graph, order: int) -> GraphPrecisions:
        """Return the precisions of a graph, made once for every graph and order."""
        known = _KNOWN.setdefault(graph, {})
        if order not in known:
            known[order] = cls(graph, order)
        return known[order]

    @cached_property
    def _pattern(self) -> sparse.csc_array:
        base = sparse.csc_array(self.graph.N + sparse.eye_array(self.graph.n_nodes))
        found = base
        for _ in range(self.order - 1):
            found = sparse.csc_array(found @ base)
        found.sort_indices()
        return found

    @cached_property
    def _powers(self) -> list[Floats]:
        """Entries of the powers 0 to `order` of `N` on the pattern."""
        found: list[Floats] = []
        keys, power = _keys(self._pattern), sparse.csc_array(sparse.eye_array(self.graph.n_nodes))
        for _ in range(self.order + 1):
            found.append(np.bincount(np.searchsorted(keys, _keys(power)), power.data, keys.size).astype(np.float64))
            power = sparse.csc_array(power @ self.graph.N)
        return found

    @cached_property
    def ordering(self) -> Ordering | None:
        """Order of elimination; None where the factor would take too long."""
        if self.order > 1 and GraphPrecisions.of(self.graph, 1).ordering is None:
            return None
        found = Ordering.of(self._pattern, max_flops=MOST_FLOPS)
        return found if found.flops <= MOST_FLOPS else None

    @cached_property
    def _symbolic(self) -> Symbolic:
        assert self.ordering is not None
        return Symbolic.of(self._pattern, self.ordering)

    def at(self, kappa2: float, d: Floats | None = None) -> Precision:
        """Return the precision of a range, with a diagonal on top."""
        held = np.zeros(self.graph.n_nodes) if d is None else d
        if self.ordering is None:
            return IteratedPrecision(NodePrecision(self.graph, 1.0 / kappa2, held / kappa2), kappa2)
        pattern, entries = self._pattern, np.zeros(self._pattern.nnz)
        for k, power in enumerate(self._powers):
            entries += math.comb(self.order, k) * kappa2 ** (self.order - k) * power
        entries[self._powers[0] > 0] += held
        Q = sparse.csc_array((entries, pattern.indices, pattern.indptr), shape=pattern.shape)
        factor = self._symbolic.factor(Q)
        if factor is None:
            raise ConvergenceError("the precision of the graph field is singular; use a smaller order")
        return FactoredPrecision(factor)


def _keys(A: sparse.csc_array) -> Ints:
    """Return a number for every stored entry, in the order of columns."""
    columns = np.repeat(np.arange(A.shape[1]), np.diff(A.indptr))
    return np.asarray(columns * A.shape[0] + A.indices)


@dataclass(frozen=True, eq=False)
class FactoredPrecision:
    """A precision by its sparse factor."""

    factor: SparseFactor

    @property
    def log_determinant(self) -> float:
        """Logarithm of the determinant."""
        return self.factor.log_determinant

    @cached_property
    def inverse_diagonal(self) -> Floats:
        """Diagonal of the inverse, by selected inversion."""
        return self.factor.inverse_diagonal()

    def solve(self, B: Floats) -> Floats:
        """Return the inverse times a block of columns."""
        return self.factor.solve(B)

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """Return columns with the inverse as their covariance."""
        return self.factor.draw(rng.standard_normal((self.factor.permutation.size, count)))


@dataclass(frozen=True, eq=False)
class IteratedPrecision:
    r"""A precision :math:`\kappa^2 A` by conjugate gradients and random probes, `A` as in `NodePrecision`."""

    A: NodePrecision
    kappa2: float

    @cached_property
    def log_determinant(self) -> float:
        """Logarithm of the determinant."""
        return self.A.log_determinant() + self.A.graph.n_nodes * float(np.log(self.kappa2))

    @cached_property
    def inverse_diagonal(self) -> Floats:
        """Diagonal of the inverse, from random draws."""
        return np.asarray(self.A.inverse_diagonal() / self.kappa2)

    def solve(self, B: Floats) -> Floats:
        """Return the inverse times a block of columns."""
        return np.asarray(self.A.solve(B, tolerance=_TOLERANCE) / self.kappa2)

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """Return columns with the inverse as their covariance."""
        return np.asarray(self.A.draw(count, rng) / np.sqrt(self.kappa2))

r"""Precision of a graph field, that of :math:`(\kappa^2 + N)^{-1} (\tau + N)^{1 - \nu}` with a diagonal on top.

Where the factor is sparse (maps, roads, trees, many small components) the field is :math:`u = P x` with a sparse
precision :math:`Q` of :math:`x`, both polynomials of `N` (Bolin and Kirchner, 2020): on the spectrum
:math:`p(\lambda)^2 / q(\lambda)` approximates that function, exactly for the orders 1, 2 and 3. On other graphs, where
the factor would be nearly dense, solves are iterative, determinants and diagonals come from random probes, and the
order is 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy import sparse
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize_scalar

from graphmrf.caching import cached_property
from graphmrf.linalg.factor import Ordering, Symbolic
from graphmrf.linalg.multishift import product
from graphmrf.linalg.operator import conjugate_gradients
from graphmrf.linalg.precision import NodePrecision, rademacher

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphmrf._typing import Floats, Ints
    from graphmrf.graph import Graph
    from graphmrf.graph.product import TimeProduct
    from graphmrf.linalg.factor import SparseFactor

DENSE_NODES = 3500
"""Nodes up to which eigenvectors are computed: those of more take minutes."""

MOST_FLOPS = 4e10
"""Operations of a factor up to which it is used: some ten seconds."""

QUICK_FLOPS = 1e9
"""Operations of a factor that is quick, however dense."""

DEGREE = 3
"""Largest degree of `q`, and largest order."""

_POINTS = 40
"""Eigenvalues at which `q` is fitted."""

_SHARE = 1e-3
"""Part of a finite step that derivatives of `p` and `q` take, which are smooth to rounding."""

PROBES = 16
"""Random probes of a trace."""

_SINGULAR = "the precision of the graph field is singular; use a smaller order"

_TOLERANCE = 1e-6
"""Relative residual of iterative solves."""

_JOINT_TOLERANCE = 1e-5
"""Relative residual of those with all columns, of which a misfit takes quadratic forms: their error is its square."""


def rational(kappa2: float, order: float, degree: int, near_range: float | None = None) -> tuple[Floats, Floats]:
    r"""Return coefficients of `p`, `q` with :math:`p^2 / q \approx (\kappa^2 + \mu)^{-1} (\tau + \mu)^{1 - \nu}`.

    The relative error on the eigenvalues :math:`0 \le \mu \le 2` is least in squares over
    :math:`\log(\min(\kappa^2, \tau) + \mu)`; `q` is linear in its coefficients, and `p` has one, found by a search.

    Parameters
    ----------
    kappa2, order : float
        Range and order of smoothness, at most `degree`.
    degree : int
        Degree of `q`; `p` is constant for 1, and has degree 1 otherwise.
    near_range : float, optional
        Near range :math:`\tau`; that of :math:`\kappa^2` unless given, for :math:`(\kappa^2 + \mu)^{-\nu}`.

    Examples
    --------
    >>> p, q = rational(0.5, 2.0, 2)
    >>> p.round(6).tolist(), q.round(6).tolist()
    ([1.0, 0.0], [0.25, 1.0, 1.0])
    """
    found = Rational(kappa2, min(order, degree), degree, kappa2 if near_range is None else near_range)
    return found.p, found.q


@dataclass(frozen=True, eq=False)
class Rational:
    """Coefficients `p` and `q` of `rational`, and how they change with range, order and near range."""

    kappa2: float
    order: float
    degree: int
    near: float

    @property
    def _base(self) -> float:
        return min(self.kappa2, self.near)

    @cached_property
    def _logs(self) -> Floats:
        """Logarithms of eigenvalues over the smallest."""
        return np.linspace(0.0, math.log1p(2.0 / self._base), _POINTS)

    @cached_property
    def _table(self) -> Floats:
        values = self._base * np.expm1(self._logs)
        inverse = np.log1p(values / self.kappa2) + (self.order - 1.0) * np.log1p(values / self.near)
        return np.asarray(np.exp(np.arange(self.degree + 1) * self._logs[:, None] - inverse[:, None]))

    def _fit(self, zero: float) -> tuple[float, Floats]:
        columns = self._table / (1.0 + np.exp(self._logs - zero)[:, None]) ** 2
        sizes = np.linalg.norm(columns, axis=0)
        c = np.linalg.lstsq(columns / sizes, np.ones(self._logs.size))[0] / sizes
        return float(np.linalg.norm(columns @ c - 1.0)), c

    @property
    def is_exact(self) -> bool:
        """Whether `p` is constant and `q` exact, or as near as it is with that `p`."""
        return self.degree == 1 or self.order == round(self.order)

    @cached_property
    def _ends(self) -> tuple[float, float]:
        """Bounds of the zero of `p`."""
        grid = np.linspace(-1.0, self._logs[-1] + 8.0, 2 * _POINTS)
        best = int(np.argmin([self._fit(each)[0] for each in grid]))
        return float(grid[max(best - 1, 0)]), float(grid[min(best + 1, grid.size - 1)])

    def _zero_in(self, ends: tuple[float, float]) -> float:
        return float(minimize_scalar(lambda each: self._fit(each)[0], bounds=ends, method="bounded").x)

    @cached_property
    def zero(self) -> float:
        """Logarithm of the zero of `p`, less its sign, over the smallest eigenvalue; infinite if `p` is constant."""
        return math.inf if self.is_exact else self._zero_in(self._ends)

    @cached_property
    def _pair(self) -> tuple[Floats, Floats]:
        return self._at(self.zero)

    @property
    def p(self) -> Floats:
        """Coefficients of `p`."""
        return self._pair[0]

    @property
    def q(self) -> Floats:
        """Coefficients of `q`."""
        return self._pair[1]

    def _at(self, zero: float) -> tuple[Floats, Floats]:
        """Return the coefficients with another zero."""
        base, share, q = self._base, math.exp(-zero), np.zeros(self.degree + 1)
        for k, c in enumerate(self._fit(zero)[1] * self.kappa2 * self.near ** (self.order - 1.0)):
            q[: k + 1] += c * np.array([math.comb(k, j) for j in range(k + 1)]) / base ** np.arange(k + 1)
        return np.array([1.0 + share, share / base])[: min(self.degree, 2)], q

    def change(self, moved: Rational) -> tuple[Floats, Floats] | None:
        """Return the changes of `p` and `q` to first order; None where one zero is finite and the other is not.

        Many pairs are nearly the same function, so the zero moves much: finite differences of both would be nothing
        like derivatives.
        """
        if self.is_exact != moved.is_exact:
            return None
        zero = math.inf if self.is_exact else self.zero + _SHARE * (moved._zero_in(self._ends) - self.zero)
        kappa2, order, near = (
            a * (b / a) ** _SHARE
            for a, b in ((self.kappa2, moved.kappa2), (self.order, moved.order), (self.near, moved.near))
        )
        p, q = Rational(kappa2, order, self.degree, near)._at(zero)
        return (p - self.p) / _SHARE, (q - self.q) / _SHARE


def unit_probes(size: int) -> Floats:
    """Return columns whose outer products add up to the identity: unit vectors, or Rademacher probes if many."""
    return np.eye(size) if size <= PROBES else rademacher(size, PROBES, 0) / math.sqrt(PROBES)


class FieldPrecision(Protocol):
    """A positive definite matrix on the nodes of a graph."""

    @property
    def log_determinant(self) -> float:
        """Logarithm of the determinant, up to a number that only range and order determine."""

    @property
    def inverse_diagonal(self) -> Floats:
        """Diagonal of the inverse, shape (n,)."""

    def change(self, moved: FieldPrecision) -> float:
        """Return how much larger the log determinant of a nearby precision of the same kind is, to first order."""

    def half(self, B: Floats) -> Floats:
        """Return what `at` takes for the inverse times a block of columns (n, k)."""

    def at(self, half: Floats, nodes: Ints) -> Floats:
        """Return the rows of some nodes of the inverse times the columns of which this is the half."""

    def solve(self, B: Floats) -> Floats:
        """Return the inverse times a block of columns (n, k)."""

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """Return columns (n, count) with the inverse as their covariance."""


@dataclass(frozen=True, eq=False)
class GraphPrecisions:
    """All precisions of a graph, with the one ordering that their factors share.

    Attributes
    ----------
    graph : Graph
        The graph.
    degree : int
        The degree of `q`, and the largest order; 1 where solves are iterative.
    max_flops : float
        Operations of a factor beyond which they are.
    """

    graph: Graph
    degree: int = 1
    max_flops: float = MOST_FLOPS

    @classmethod
    def of(cls, graph: Graph, most: int = DEGREE) -> GraphPrecisions:
        """Return the precisions of the largest degree that has a sparse factor, made once for every graph."""
        known = graph.derived(_known)
        if most not in known:
            below = cls.of(graph, most - 1) if most > 1 else None
            larger = cls(graph, most)
            fits = below is None or (below.degree == most - 1 and below.ordering and larger.ordering)
            known[most] = larger if fits or below is None else below
        return known[most]

    @cached_property
    def _pattern(self) -> sparse.csc_array:
        base = sparse.csc_array(self.graph.N + sparse.eye_array(self.graph.n_nodes))
        found = base
        for _ in range(self.degree - 1):
            found = sparse.csc_array(found @ base)
        found.sort_indices()
        return found

    @cached_property
    def _powers(self) -> list[Floats]:
        """Entries of the powers of `N` on the pattern, those of the identity first."""
        found: list[Floats] = []
        keys, power = _keys(self._pattern), sparse.csc_array(sparse.eye_array(self.graph.n_nodes))
        for _ in range(self.degree + 1):
            found.append(np.bincount(np.searchsorted(keys, _keys(power)), power.data, keys.size).astype(np.float64))
            power = sparse.csc_array(power @ self.graph.N)
        return found

    @cached_property
    def _products(self) -> list[sparse.csr_array]:
        r"""Matrices from `d` to the entries of the coefficients of :math:`P\,\mathrm{diag}(d)\,P` in those of `p`."""
        keys, N = _keys(self._pattern), sparse.csc_array(self.graph.N)
        eye = sparse.csc_array(sparse.eye_array(self.graph.n_nodes))
        if self.degree == 1:
            return [_weighted(eye, eye, keys)]
        once = 0.5 * (_weighted(eye, N, keys) + _weighted(N, eye, keys))
        return [_weighted(eye, eye, keys), sparse.csr_array(once), _weighted(N, N, keys)]

    @cached_property
    def ordering(self) -> Ordering | None:
        """Order of elimination; None where the factor would take too long, or a tenth as long as a dense one."""
        walks = np.ones(self.graph.n_nodes)  # as many as the pattern has entries, or more
        for _ in range(self.degree if self.degree > 1 else 0):
            walks += self.graph.adjacency.astype(bool) @ walks
        if (0.5 * walks.sum()) ** 2 > walks.size * self.max_flops:
            return None
        found, nearly_dense = Ordering.of(self._pattern, max_flops=self.max_flops), self.graph.n_nodes**3 / 30
        if (panel := self.graph.product) is not None and (once := GraphPrecisions(panel.space, self.degree).ordering):
            grouped = once.by_groups(self._pattern, panel.times.size)
            found = min(found, grouped, key=lambda ordering: ordering.flops)
        return found if found.flops <= min(self.max_flops, max(nearly_dense, QUICK_FLOPS)) else None

    @cached_property
    def symbolic(self) -> Symbolic:
        """What all factors share."""
        assert self.ordering is not None
        return Symbolic.of(self._pattern, self.ordering)

    def at(
        self, kappa2: float, order: float = 1.0, near_range: float | None = None, d: Floats | None = None
    ) -> FieldPrecision:
        """Return the precision of a range, an order and a near range, with a diagonal on top."""
        if self.ordering is None:
            held = np.zeros(self.graph.n_nodes) if d is None else d
            A = NodePrecision(self.graph, 1.0 / kappa2, held / kappa2)
            return IteratedPrecision(A, kappa2, self._variances if d is None else None)
        shape = Rational(kappa2, min(order, self.degree), self.degree, kappa2 if near_range is None else near_range)
        if d is None and self._spectral is not None:
            return SpectralPrecision(self._spectral, shape)
        return FactoredPrecision(self, shape, d)

    def matrix(self, shape: Rational, d: Floats | None) -> sparse.csc_array:
        """Return the precision of `x` with a diagonal on top."""
        entries = np.asarray(sum(c * power for c, power in zip(shape.q, self._powers, strict=True)))
        if d is not None:
            entries += self._diagonal(np.convolve(shape.p, shape.p), d)
        return sparse.csc_array((entries, self._pattern.indices, self._pattern.indptr), self._pattern.shape)

    def _diagonal(self, squared: Floats, d: Floats) -> Floats:
        r"""Return the entries of :math:`P\,\mathrm{diag}(d)\,P`, with the coefficients of :math:`p^2`."""
        return np.asarray(sum(c * (product @ d) for c, product in zip(squared, self._products, strict=True)))

    def change(self, here: FactoredPrecision, moved: FactoredPrecision) -> Floats | None:
        """Return the change of all entries to first order; None where there is none."""
        found = here.shape.change(moved.shape)
        if found is None:
            return None
        entries = np.asarray(sum(c * power for c, power in zip(found[1], self._powers, strict=True)))
        if here.d is None or moved.d is None:
            return entries
        entries += self._diagonal(2.0 * np.convolve(here.shape.p, found[0]), here.d)
        return np.asarray(entries + self._diagonal(np.convolve(here.shape.p, here.shape.p), moved.d - here.d))

    @cached_property
    def _spectral(self) -> TimeProduct | None:
        """The product of a panel, where functions of `N` follow from the eigenvectors of its graph."""
        panel = self.graph.product
        if panel is None or not panel.is_separable:
            return None
        n, T = panel.space.n_nodes, panel.times.size
        return panel if n * max(n, T**2) <= DENSE_NODES**2 else None

    def _variances(self, kappa2: float) -> Floats:
        r"""Return the diagonal of the inverse of :math:`\kappa^2 + N`, log-linear between powers of 2 of the range."""
        low = math.floor(math.log2(kappa2))
        share = math.log2(kappa2) - low
        return np.asarray(self._variances_at(low) ** (1.0 - share) * self._variances_at(low + 1) ** share)

    def _variances_at(self, power: int) -> Floats:
        known: dict[int, Floats] = self._known_variances
        if power not in known:
            A = NodePrecision(self.graph, 2.0**-power, np.zeros(self.graph.n_nodes))
            known[power] = IteratedPrecision(A, 2.0**power).inverse_diagonal
        return known[power]

    @cached_property
    def _known_variances(self) -> dict[int, Floats]:
        return {}


def _known(_: Graph) -> dict[int, GraphPrecisions]:
    """Return the cache of a graph for its precisions by degree: orders of elimination take longer than a factor."""
    return {}


def _eye(graph: Graph) -> sparse.csr_array:
    return sparse.csr_array(sparse.eye_array(graph.n_nodes))


def _weighted(A: sparse.csc_array, B: sparse.csc_array, keys: Ints) -> sparse.csr_array:
    r"""Return the matrix from `d` to the entries of :math:`A\,\mathrm{diag}(d)\,B'` on a pattern."""
    n, width = A.shape[1], np.diff(B.indptr)
    column = np.repeat(np.arange(n), np.diff(A.indptr))
    repeats = width[column]
    ends = np.cumsum(repeats)
    inner = np.arange(repeats.sum()) + np.repeat(B.indptr[column] - ends + repeats, repeats)
    place = np.searchsorted(keys, B.indices[inner].astype(np.int64) * n + np.repeat(A.indices, repeats))
    values = np.repeat(A.data, repeats) * B.data[inner]
    return sparse.csr_array((values, (place, np.repeat(column, repeats))), shape=(keys.size, n))


def _keys(A: sparse.csc_array) -> Ints:
    """Return a number for every stored entry, in the order of columns."""
    columns = np.repeat(np.arange(A.shape[1]), np.diff(A.indptr))
    return np.asarray(columns * A.shape[0] + A.indices)


@dataclass(frozen=True, eq=False)
class FactoredPrecision:
    """The precision of :math:`u = P x` by the sparse factor of that of `x`; no `P` is the identity."""

    precisions: GraphPrecisions
    shape: Rational
    d: Floats | None = None

    @cached_property
    def P(self) -> sparse.csr_array | None:
        """The polynomial `P`."""
        p, graph = self.shape.p, self.precisions.graph
        return None if not p[1:].any() else p[0] * _eye(graph) + p[1] * graph.N

    @cached_property
    def factor(self) -> SparseFactor:
        """The factor of the precision of `x`; LinAlgError where it is not positive definite."""
        found = self.precisions.symbolic.factor(self.precisions.matrix(self.shape, self.d))
        if found is None:
            raise np.linalg.LinAlgError(_SINGULAR)
        return found

    def _times(self, B: Floats) -> Floats:
        return B if self.P is None else np.asarray(self.P @ B)

    @property
    def log_determinant(self) -> float:
        """Logarithm of the determinant of the precision of `x`."""
        return self.factor.log_determinant

    @cached_property
    def _inverse(self) -> sparse.csc_array:
        return self.factor.inverse_entries()

    @cached_property
    def inverse_diagonal(self) -> Floats:
        """Diagonal of the inverse, by selected inversion."""
        if self.P is None:
            return np.asarray(self._inverse.diagonal())
        return np.asarray((self.P @ self._inverse).multiply(self.P).sum(axis=1)).ravel()

    def change(self, moved: FieldPrecision) -> float:
        r"""Return :math:`\mathrm{tr}\,Q^{-1} dQ`, without a factor of the other precision."""
        assert isinstance(moved, FactoredPrecision)
        entries = self.precisions.change(self, moved)
        if entries is None:
            return moved.log_determinant - self.log_determinant
        return float(self._inverse.data @ entries)

    def half(self, B: Floats) -> Floats:
        """Return `x` of the inverse times a block of columns."""
        return self.factor.solve(self._times(B))

    def at(self, half: Floats, nodes: Ints) -> Floats:
        """Return the field at some nodes from columns of `x`."""
        return half[nodes] if self.P is None else np.asarray(self.P[nodes] @ half)

    def solve(self, B: Floats) -> Floats:
        """Return the inverse times a block of columns."""
        return self._times(self.half(B))

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """Return columns with the inverse as their covariance."""
        return self._times(self.factor.draw(rng.standard_normal((self.factor.permutation.size, count))))


@dataclass(frozen=True, eq=False)
class SpectralPrecision:
    r"""The precision of :math:`u = P x` on a panel, by the eigenvectors of its graph and a block of times for each.

    Attributes
    ----------
    panel : TimeProduct
        The product of the graph and the times.
    shape : Rational
        Functions of its eigenvalues.
    """

    panel: TimeProduct
    shape: Rational

    @cached_property
    def _values(self) -> Floats:
        """Eigenvalues (n, T) of the precision of `x`."""
        found = np.polyval(self.shape.q[::-1], self.panel.blocks[0])
        if found.min() <= 0.0:
            raise np.linalg.LinAlgError(_SINGULAR)
        return np.asarray(found)

    @cached_property
    def _variances(self) -> Floats:
        """Eigenvalues (n, T) of the inverse."""
        return np.asarray(np.polyval(self.shape.p[::-1], self.panel.blocks[0]) ** 2 / self._values)

    @property
    def log_determinant(self) -> float:
        """Logarithm of the determinant of the precision of `x`."""
        return float(np.log(self._values).sum())

    @cached_property
    def inverse_diagonal(self) -> Floats:
        """Diagonal of the inverse."""
        by_time = np.einsum("itk,ik->it", self.panel.blocks[1] ** 2, self._variances)
        return np.asarray(self.panel.space.eigenpairs[1] ** 2 @ by_time).ravel()

    def change(self, moved: FieldPrecision) -> float:
        """Return the sum of the relative changes of all eigenvalues of the precision of `x`."""
        assert isinstance(moved, SpectralPrecision)
        found = self.shape.change(moved.shape)
        if found is None:
            return moved.log_determinant - self.log_determinant
        return float((np.polyval(found[1][::-1], self.panel.blocks[0]) / self._values).sum())

    def half(self, B: Floats) -> Floats:
        """Return the inverse times a block of columns."""
        return self.solve(B)

    def at(self, half: Floats, nodes: Ints) -> Floats:
        """Return the rows of some nodes."""
        return half[nodes]

    def solve(self, B: Floats) -> Floats:
        """Return the inverse times a block of columns."""
        n, T = self._variances.shape
        U, V = self.panel.space.eigenpairs[1], self.panel.blocks[1]
        inner = V.transpose(0, 2, 1) @ (U.T @ B.reshape(n, -1)).reshape(n, T, -1)
        return self._outward(self._variances[:, :, None] * inner)

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """Return columns with the inverse as their covariance."""
        drawn = rng.standard_normal((*self._variances.shape, count))
        return self._outward(np.sqrt(self._variances)[:, :, None] * drawn)

    def _outward(self, inner: Floats) -> Floats:
        """Return columns at all nodes from coordinates (n, T, k) by eigenvectors."""
        n, T, k = inner.shape
        found = self.panel.space.eigenpairs[1] @ (self.panel.blocks[1] @ inner).reshape(n, -1)
        return np.asarray(found.reshape(n * T, k))


@dataclass(frozen=True, eq=False)
class IteratedPrecision:
    r"""A precision :math:`\kappa^2 A` by conjugate gradients and random probes, `A` as in `NodePrecision`."""

    A: NodePrecision
    kappa2: float
    variances: Callable[[float], Floats] | None = None

    @cached_property
    def log_determinant(self) -> float:
        """Logarithm of the determinant."""
        return self.A.log_determinant() + self.A.graph.n_nodes * float(np.log(self.kappa2))

    @cached_property
    def inverse_diagonal(self) -> Floats:
        """Diagonal of the inverse, from random draws."""
        if self.variances is not None:
            return self.variances(self.kappa2)
        return np.asarray(self.A.inverse_diagonal() / self.kappa2)

    def change(self, moved: FieldPrecision) -> float:
        """Return the difference of the log determinants, which have the same probes."""
        return moved.log_determinant - self.log_determinant

    def half(self, B: Floats) -> Floats:
        """Return the inverse times a block of columns."""
        return self.solve(B)

    def at(self, half: Floats, nodes: Ints) -> Floats:
        """Return the rows of some nodes."""
        return half[nodes]

    def solve(self, B: Floats) -> Floats:
        """Return the inverse times a block of columns."""
        return np.asarray(self.A.solve(B, tolerance=_TOLERANCE) / self.kappa2)

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """Return columns with the inverse as their covariance."""
        return np.asarray(self.A.draw(count, rng) / np.sqrt(self.kappa2))


@dataclass(frozen=True, eq=False)
class JointPrecision:
    r"""The matrix :math:`I + R Q^{-1} R' + F F'` with :math:`Q = \kappa^2 + N`.

    It is solved with by conjugate gradients on

    .. math:: J = \begin{pmatrix} Q + R'R & R'F \\ F'R & I + F'F \end{pmatrix}

    with the diagonal of its first block and the second as preconditioner.

    Attributes
    ----------
    graph : Graph
        The graph.
    kappa2 : float
        The range.
    R : sparse array of shape (m, n)
        One entry in a row.
    F : array of shape (m, q)
        Columns.
    """

    graph: Graph
    kappa2: float
    R: sparse.csr_array
    F: Floats

    @cached_property
    def _scale(self) -> Floats:
        """Inverse root of the diagonal of :math:`Q + R'R`, as a column."""
        d = self.R.power(2).sum(axis=0)
        return np.asarray(1.0 / np.sqrt(self.kappa2 + 1.0 - self.graph.loops + d))[:, None]

    @cached_property
    def _factor(self) -> Floats:
        return cholesky(np.eye(self.F.shape[1]) + self.F.T @ self.F, lower=True)

    @cached_property
    def _E(self) -> Floats:
        """Columns (m, q) in coordinates in which the second block is the identity."""
        return np.ascontiguousarray(solve_triangular(self._factor, self.F.T, lower=True).T)

    def _times(self, V: Floats) -> Floats:
        """Return `J` in whitened coordinates times columns (n + q, k)."""
        n = self.graph.n_nodes
        u, b = self._scale * V[:n], V[n:]
        Ru = self.R @ u
        first = (1.0 + self.kappa2) * u - product(self.graph.engine, u) + self.R.T @ (Ru + self._E @ b)
        return np.vstack([self._scale * first, b + self._E.T @ Ru])

    def solve(self, Y: Floats) -> Floats:
        """Return the inverse times columns (m, k)."""
        return self.split(Y)[0]

    def split(self, Y: Floats) -> tuple[Floats, Floats]:
        r"""Return the inverse times columns (m, k), and :math:`Q^{-1} R'` times that, shape (n, k).

        Given the first block of the solution the second is exact, so that products of `F` with the inverse, which are
        coefficients, are as accurate as that block. Its own iterate is not enough: many labels multiply its error.
        """
        n = self.graph.n_nodes
        right = np.vstack([self._scale * (self.R.T @ Y), self._E.T @ Y])
        x = conjugate_gradients(self._times, right, tolerance=_JOINT_TOLERANCE)[0].or_raise(_JOINT_TOLERANCE)
        field = self._scale * x[:n]
        left = Y - self.R @ field
        return np.asarray(left - self._E @ (self._E.T @ left)), field

    def energy(self, found: Floats, field: Floats) -> Floats:
        r"""Return :math:`Y'` times the inverse times `Y` from both parts of `split` of `Y`, shape (k, k).

        The least value of :math:`|Y - R u - F b|^2 + u'Qu + |b|^2`: its error is that of the solution squared, and
        positive semidefinite.
        """
        Q_field = (1.0 + self.kappa2) * field - product(self.graph.engine, field)
        b = self.F.T @ found
        return np.asarray(found.T @ found + field.T @ Q_field + b.T @ b)

    @cached_property
    def log_determinant(self) -> float:
        """Logarithm of the determinant of `J`, by quadrature from probes that are those of :math:`Q` at nodes."""
        n, q = self.graph.n_nodes, self.F.shape[1]
        Z = np.vstack([rademacher(n, PROBES, 0), rademacher(q, PROBES, 1)])
        logs = (n + q) * conjugate_gradients(self._times, Z, tolerance=1e-3)[1].mean()
        whitened = 2.0 * float(np.log(np.diag(self._factor)).sum() - np.log(self._scale).sum())
        return float(logs + whitened)

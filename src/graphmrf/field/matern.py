r"""The Matern family on a graph, :math:`K = (I + \omega N)^{-\nu}`, exactly, for any :math:`\omega` and :math:`\nu`.

The eigenvectors `V` of N are found once per graph. Functions :math:`(1 + \omega \lambda)^{-\nu}` of an eigenvalue
differ little from each other: two dozen of them, :math:`q_1, q_2, \dots`, span them all to a relative 1e-8. So

.. math:: K_{LL} = \sum_j c_j(\omega, \nu) B_j, \qquad B_j = [V \mathrm{diag}(q_j) V']_{LL},

and once the :math:`B_j` are known a kernel costs one pass over them, whatever the number of nodes.
"""

from __future__ import annotations

import logging
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.polynomial import Chebyshev
from scipy.linalg import lapack
from threadpoolctl import threadpool_limits

from graphmrf.errors import ConvergenceError
from graphmrf.linalg import multiply
from graphmrf.linalg.dense import Triangle, array, beside, place

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphmrf._typing import Floats, Ints
    from graphmrf.graph import Graph

OMEGAS = (0.005, 3e4)
"""Range of omega that the basis spans."""

NUS = (0.25, 5.0)
"""Range of nu that the basis spans."""

_PROGRESS = logging.getLogger("graphmrf.progress")
_UNSHARED = 5000
"""Nodes up to which one BLAS thread finds the eigenvectors: more gain little, and lose much where cores are busy."""
_SINGLE = 4000
"""Nodes beyond which eigenvectors are found in float32: half of 20 seconds at 5000, of three minutes at 10,000. Below,
the seconds saved are few."""
_ACCURACY = 1e-9
"""Relative singular value below which a function of the basis is dropped: kernels are then exact to 1e-8."""
_LAUNCHED = 400
"""Labels from which covariances are on a GPU with the eigenvectors: starting the many small operations of a likelihood
takes as long there as computing it for so many on a CPU. Doubled, a fit to 800 labels takes a second more."""
_SERIES = 1e-10
"""Last coefficient, relative to the largest, at which a Chebyshev series ends; its length grows with the digits."""
_MOST_TERMS = 4096
"""Terms of the longest series: 8 digits at the largest omega, and a second for 1000 nodes."""


@dataclass(frozen=True, eq=False)
class Eigen:
    r"""Eigenvalues and eigenvectors of N.

    Attributes
    ----------
    values : array of shape (n,)
        In [0, 2], ascending up to rounding.
    vectors : array of shape (n, n)
        Columns.
    """

    values: Floats
    vectors: Floats

    def matern(self, omega: float, nu: float) -> Floats:
        r"""Return the spectrum :math:`(1 + \omega \lambda)^{-\nu}`, divided by its mean."""
        spectrum = (1.0 + omega * self.values) ** -nu
        return np.asarray(spectrum / spectrum.mean())

    def mean(self, omega: float, nu: float) -> float:
        r"""Return the mean of :math:`(1 + \omega \lambda)^{-\nu}`, by which `matern` is divided."""
        return float(np.mean((1.0 + omega * self.values) ** -nu))

    def slopes(self, omega: float, nu: float) -> Floats:
        r"""Return (2, n): derivatives of `matern` by :math:`\log \omega` and :math:`\log \nu`."""
        spectrum, shift = self.matern(omega, nu), 1.0 + omega * self.values
        slopes = -nu * spectrum * np.array([omega * self.values / shift, np.log(shift)])
        return np.asarray(slopes - spectrum * slopes.mean(axis=1, keepdims=True))

    @cached_property
    def basis(self) -> Floats:
        """Orthonormal functions of the eigenvalue that span all of `matern`, shape (n, k)."""
        omegas = np.geomspace(*OMEGAS, 20)
        nus = np.geomspace(*NUS, 8)
        family = np.column_stack([self.matern(omega, nu) for omega in omegas for nu in nus])
        U, s, _ = np.linalg.svd(family, full_matrices=False)
        return np.asarray(U[:, s > _ACCURACY * s[0]])

    def variances(self, omega: float, nu: float) -> Floats:
        """Return the diagonal of the matrix with the spectrum `matern`, shape (n,)."""
        return np.asarray(self.diagonals @ (self.matern(omega, nu) @ self.basis))

    @cached_property
    def diagonals(self) -> Floats:
        """Diagonals of the matrices of the basis, shape (n, k)."""
        return np.asarray(self.vectors**2 @ self.basis)


def eigen(graph: Graph) -> Eigen:
    """Return the eigenvectors of N; found once, and kept for as long as the graph lives.

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> eigen(Graph.from_edges([0, 1, 2], [1, 2, 0])).values.round(6)
    array([0. , 1.5, 1.5])
    """
    return graph.derived(_eigen)


def _eigen(graph: Graph) -> Eigen:
    _PROGRESS.info("eigenvectors of %d nodes", graph.n_nodes)
    if graph.n_nodes > _SINGLE and not hasattr(graph.engine, "place"):
        return single_eigen(graph)
    # threads gain little on small graphs, and lose much where cores are busy
    with threadpool_limits(1, "blas") if graph.n_nodes <= _UNSHARED else nullcontext():
        values, vectors = np.linalg.eigh(place(graph.engine, graph.N.toarray()))
    return Eigen(np.clip(np.asarray(values), 0.0, 2.0), vectors)


def single_eigen(graph: Graph) -> Eigen:
    """Return eigenvectors in half the time, by float32: those of a graph whose weights differ by some millionths.

    Eigenvalues are Rayleigh quotients, which err by the square of that: near 0 a large omega multiplies them. Kernels
    made of them are positive semidefinite whatever the error.
    """
    N = graph.N
    _, single, failed = lapack.ssyevd(N.toarray().astype(np.float32, order="F"), overwrite_a=1)
    if failed:
        raise ConvergenceError("eigenvectors of the graph were not found; use solver='sparse'")
    V = np.ascontiguousarray(single, dtype=np.float64)
    V /= np.linalg.norm(V, axis=0)
    return Eigen(np.clip(np.einsum("ij,ij->j", V, N @ V), 0.0, 2.0), V)


def matern_smooth(graph: Graph, X: Floats, omega: float, nu: float) -> Floats:
    r"""Return :math:`(I + \omega N)^{-\nu} X` by a Chebyshev polynomial of N, for graphs without known eigenvectors.

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> matern_smooth(Graph.from_edges([0], [1]), np.array([[1.0], [0.0]]), 1.0, 1.0).round(4).tolist()
    [[0.6667], [0.3333]]
    """
    series = _chebyshev(omega, nu)
    older, newer = X, -multiply(graph, X)  # N - I = -S has its spectrum in [-1, 1]
    total = series[0] * older + series[1] * newer
    for coefficient in series[2:]:
        older, newer = newer, -2.0 * multiply(graph, newer) - older
        total += coefficient * newer
    lonely = np.asarray(graph.degrees == 0)  # N is 0 there, not 1
    total[lonely] = X[lonely]
    return np.asarray(total)


def _chebyshev(omega: float, nu: float) -> Floats:
    """Return the coefficients of the spectrum as a function on [-1, 1], so many that the last ones vanish."""
    degree = 32
    while True:
        series = Chebyshev.interpolate(lambda t: (1.0 + omega * (1.0 + t)) ** -nu, degree).coef.astype(np.float64)
        if np.abs(series[-4:]).max() < _SERIES * np.abs(series).max() or degree >= _MOST_TERMS:
            return series
        degree *= 2


@dataclass(frozen=True, eq=False)
class Correlations:
    r"""Correlation matrices of the Matern family among some nodes, with their derivatives.

    The variance of :math:`(I + \omega N)^{-\nu}` differs from node to node with the shape of the graph around it;
    dividing by it gives every node, also an isolated one, a field of variance 1:

    .. math:: R_{ij} = K_{ij} / \sqrt{K_{ii} K_{jj}}

    With ``unit_variance=False`` it is K itself, over its mean variance.

    Attributes
    ----------
    eigen : Eigen
        Eigenvectors of the graph.
    rows : integer array of shape (m,)
        The nodes.
    remembered : int
        How many blocks with other nodes are kept, for fields that differ in their features only.
    spanned : bool
        Whether these are of the matrices of the basis, which give those of any omega and nu at little cost.
    """

    eigen: Eigen
    rows: Ints
    remembered: int = 0
    spanned: bool = False
    _blocks: dict[Any, Floats] = field(default_factory=dict, repr=False)

    @cached_property
    def triangle(self) -> Triangle:
        """Layout of the matrices, and whether they are on the device of the eigenvectors."""
        return Triangle(self.rows.size, beside(self.eigen.vectors) if self.rows.size >= _LAUNCHED else None)

    @cached_property
    def basis(self) -> Floats:
        """Packed matrices of the basis, shape (k, size of the triangle)."""
        V, triangle = self.eigen.vectors[self.rows], self.triangle
        packed = triangle.empty(self.eigen.basis.shape[1])
        for each, q in zip(packed, self.eigen.basis.T, strict=True):
            weighted = V * q
            for rows, strip in triangle.strips(each):
                np.matmul(weighted[rows], V[: rows.stop].T, out=strip)
        return packed

    def among(self, omega: float, nu: float, *, unit_variance: bool = True) -> Correlation:
        """Return the correlations among the nodes."""
        coefficients = self.eigen.basis.T @ self.eigen.matern(omega, nu)
        R = coefficients @ self.basis
        if not unit_variance:
            return Correlation(self, R, None, (omega, nu))
        scale = (self.eigen.diagonals[self.rows] @ coefficients) ** -0.5
        self.triangle.scale(R, scale)
        return Correlation(self, R, scale, (omega, nu))

    def across(self, omega: float, nu: float, nodes: Ints, *, unit_variance: bool = True) -> Floats:
        """Return the correlations between other nodes and these, shape (len(nodes), m)."""
        if self.spanned:
            return self._combined(omega, nu, nodes, unit_variance=unit_variance)
        if not self.remembered:
            return self._across(omega, nu, nodes, unit_variance=unit_variance)
        key = (omega, nu, unit_variance, nodes.tobytes())
        return self._kept(key, lambda: self._across(omega, nu, nodes, unit_variance=unit_variance))

    def _kept(self, key: Any, made: Callable[[], Floats]) -> Floats:
        if key not in self._blocks:
            while len(self._blocks) >= max(self.remembered, 1):
                del self._blocks[next(iter(self._blocks))]
            self._blocks[key] = made()
        return self._blocks[key]

    def _combined(self, omega: float, nu: float, nodes: Ints, *, unit_variance: bool) -> Floats:
        V, basis = self.eigen.vectors, self.eigen.basis
        block = self._kept(nodes.tobytes(), lambda: np.stack([(V[nodes] * q) @ V[self.rows].T for q in basis.T]))
        coefficients = self.eigen.matern(omega, nu) @ basis
        K = np.tensordot(coefficients, block, axes=1)
        if unit_variance:
            K *= (self.eigen.diagonals[nodes] @ coefficients)[:, None] ** -0.5
            K *= (self.eigen.diagonals[self.rows] @ coefficients) ** -0.5
        return array(K)

    def _across(self, omega: float, nu: float, nodes: Ints, *, unit_variance: bool) -> Floats:
        spectrum, V = self.eigen.matern(omega, nu), self.eigen.vectors
        K = V[nodes] @ (V[self.rows] * spectrum).T
        if not unit_variance:
            return array(K)
        scale = self.eigen.variances(omega, nu) ** -0.5
        return array(K * scale[nodes, None] * scale[self.rows])

    def variances(self, omega: float, nu: float, nodes: Ints, *, unit_variance: bool = True) -> Floats:
        """Return the variance of every node of some; 1, or what K says."""
        return np.ones(nodes.size) if unit_variance else self.eigen.variances(omega, nu)[nodes]


@dataclass(frozen=True, eq=False)
class Correlation:
    """One correlation matrix.

    Attributes
    ----------
    family : Correlations
        Where it comes from.
    R : array
        Its lower triangle.
    scale : array of shape (m,) or None
        What its rows and columns were multiplied by; None where they were not.
    at : pair of float
        Its omega and nu.
    """

    family: Correlations
    R: Floats
    scale: Floats | None
    at: tuple[float, float]

    @cached_property
    def slopes(self) -> Floats:
        r"""Derivatives of R by :math:`\log \omega` and :math:`\log \nu`, packed, shape (2, size)."""
        triangle, eigen = self.family.triangle, self.family.eigen
        coefficients = eigen.slopes(*self.at) @ eigen.basis
        slopes = triangle.empty(2)
        for slope, c in zip(slopes, coefficients, strict=True):  # faster than one product of so few rows
            np.dot(c, self.family.basis, out=slope)
        if self.scale is None:
            return slopes
        variances = triangle.place((coefficients @ eigen.diagonals[self.family.rows].T) * (0.5 * self.scale**2))
        for slope, variance in zip(slopes, variances, strict=True):
            triangle.scale(slope, self.scale)
            for (rows, strip), (_, R) in zip(triangle.strips(slope), triangle.strips(self.R), strict=True):
                np.subtract(strip, (variance[rows, None] + variance[: rows.stop]) * R, out=strip)
        return slopes

    def vjp(self, G: Floats) -> Floats:
        r"""Return the derivatives by :math:`\log \omega` and :math:`\log \nu` of a function with gradient `G` by R."""
        return np.array([self.family.triangle.dot(G, slope) for slope in self.slopes])


@dataclass(frozen=True, eq=False)
class Smoothings:
    r"""Columns smoothed by the Matern family, :math:`(I + \omega N)^{-\nu} X`, with their derivatives.

    Attributes
    ----------
    eigen : Eigen
        Eigenvectors of the graph.
    rows : integer array of shape (m,)
        The nodes where the smoothed columns are wanted.
    X : array of shape (n, p)
        The columns, at all nodes.
    spanned : bool
        Whether columns smoothed by the functions of the basis are kept at all nodes, for many omega and nu.
    """

    eigen: Eigen
    rows: Ints
    X: Floats
    spanned: bool = False
    _last: dict[tuple[float, float], Floats] = field(default_factory=dict, repr=False)

    @cached_property
    def _projected(self) -> Floats:
        return np.asarray(self.eigen.vectors.T @ self.X)

    @cached_property
    def basis(self) -> Floats:
        """The columns smoothed by the functions of the basis, shape (k, m, p)."""
        return self._smoothed(self.eigen.vectors[self.rows])

    def _smoothed(self, V: Floats) -> Floats:
        return np.stack([V @ (q[:, None] * self._projected) for q in self.eigen.basis.T])

    @cached_property
    def _whole_basis(self) -> Floats:
        return self._smoothed(self.eigen.vectors)

    def among(self, omega: float, nu: float) -> Floats:
        """Return the columns smoothed, at the nodes, shape (m, p)."""
        return np.asarray(np.tensordot(self.eigen.matern(omega, nu) @ self.eigen.basis, self.basis, axes=1))

    def slopes(self, omega: float, nu: float) -> Floats:
        r"""Return the derivatives (2, m, p) of the same by :math:`\log \omega` and :math:`\log \nu`."""
        return np.asarray(np.tensordot(self.eigen.slopes(omega, nu) @ self.eigen.basis, self.basis, axes=1))

    def everywhere(self, omega: float, nu: float) -> Floats:
        """Return the columns smoothed, at all nodes, shape (n, p); kept for the next block of nodes."""
        if self.spanned:
            return np.asarray(np.tensordot(self.eigen.matern(omega, nu) @ self.eigen.basis, self._whole_basis, axes=1))
        if (omega, nu) not in self._last:
            self._last.clear()
            self._last[omega, nu] = self.eigen.vectors @ (self.eigen.matern(omega, nu)[:, None] * self._projected)
        return self._last[omega, nu]

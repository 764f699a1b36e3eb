"""Correlations of the Matern family among and between nodes, and columns smoothed by it, with their derivatives."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from graphmrf.field.design import regress_on_own
from graphmrf.field.matern import COLUMNS
from graphmrf.kept import cached_property
from graphmrf.linalg.dense import Triangle, array, beside

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.field.matern import Eigen

_PROGRESS = logging.getLogger("graphmrf.progress")

_LAUNCHED = 400
"""Labels from which covariances are on a GPU with the eigenvectors: starting the many small operations of a likelihood
takes as long there as computing it for so many on a CPU. Doubled, a fit to 800 labels takes a second more."""
_PASS = 8192
"""Entries of the matrices of the basis that are combined at once: with those of 22 functions 1.4 MB, which stay in a
core's cache. With half or twice as many, as quick; all at once take a third longer."""
_FIELDS = 64
"""Scales of fields kept: two of each of 30 draws of hyper-parameters, and of the most likely ones. Halved, they are
computed anew for every block of nodes."""
_MANY = 1024
"""Nodes from which blocks of them are taken from matrices between many nodes and the labelled ones, computed once: as
many as are predicted at once (`exact`). Doubled, a series is computed anew for every block of that size."""
_TILE = 10**9
"""Bytes of these; doubled, large graphs take half as many passes over their edges for predictions, and more memory."""


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
    within : pair of Correlations and integer array of shape (m,), optional
        Those of more nodes, and the places of these among them: their matrices are there already.
    """

    eigen: Eigen
    rows: Ints
    remembered: int = 0
    spanned: bool = False
    within: tuple[Correlations, Ints] | None = None
    _blocks: dict[Any, Floats] = field(default_factory=dict, repr=False)
    _whole: dict[tuple[float, float], Floats] = field(default_factory=dict, repr=False)
    _expected: list[tuple[float, float]] = field(default_factory=list, repr=False)
    _made: dict[tuple[float, float], Floats] = field(default_factory=dict, repr=False)
    _scales: dict[tuple[float, float], Floats] = field(default_factory=dict, repr=False)
    _tiles: dict[int, Floats] = field(default_factory=dict, repr=False)

    @cached_property
    def triangle(self) -> Triangle:
        """Layout of the matrices, and whether they are on the device of the eigenvectors."""
        return Triangle(self.rows.size, beside(self.eigen.vectors) if self.rows.size >= _LAUNCHED else None)

    @cached_property
    def basis(self) -> Floats:
        """Packed matrices of the basis, shape (k, size of the triangle)."""
        if self.within is None or self.within[0].triangle.beside is not None:
            return self.eigen.pack(self.eigen.basis, self.rows, self.triangle)
        (more, places), packed = self.within, self.triangle.empty(self.eigen.basis.shape[1])
        for each, known in zip(packed, more.basis, strict=True):
            for rows, strip in self.triangle.strips(each):
                strip[:] = known[more.triangle.places(places[rows, None], places[: rows.stop])]
        return packed

    @cached_property
    def diagonals(self) -> Floats:
        """Diagonals of the matrices of the basis, shape (m, k)."""
        return self.eigen.diagonals(self.rows)

    def part(self, places: Ints) -> Correlations:
        """Return the same among some of the nodes."""
        return Correlations(self.eigen, self.rows[places], within=(self, places))

    def among(self, omega: float, nu: float, *, unit_variance: bool = True) -> Correlation:
        """Return the correlations among the nodes."""
        matrices = self._taken(omega, nu)
        if unit_variance:
            self._divide(matrices, self._coefficients(omega, nu))
        return Correlation(self.triangle, matrices[0], matrices[1:])

    def _coefficients(self, omega: float, nu: float) -> Floats:
        r"""Return (3, k): the matrix and its derivatives by :math:`\log \omega` and :math:`\log \nu` in the basis."""
        eigen = self.eigen
        return np.asarray(np.vstack([eigen.matern(omega, nu), eigen.slopes(omega, nu)]) @ eigen.basis)

    def _taken(self, omega: float, nu: float) -> Floats:
        """Return a matrix and its derivatives, packed, (3, size): for the caller to keep, and computed once for all.

        The basis is far larger than a cache; one pass over it makes those of all fields that are expected.
        """
        if (omega, nu) not in self._made:
            fields = list(dict.fromkeys([(omega, nu), *self._expected]))
            coefficients = self.triangle.place(np.vstack([self._coefficients(*each) for each in fields]))
            found = self.triangle.empty(3 * len(fields))
            step = _PASS if self.triangle.beside is None else max(self.triangle.size, 1)
            for first in range(0, self.triangle.size, step):
                np.matmul(coefficients, self.basis[:, first : first + step], out=found[:, first : first + step])
            self._made.clear()
            self._made.update((each, found[3 * k : 3 * k + 3]) for k, each in enumerate(fields))
        return self._made.pop((omega, nu))

    def _divide(self, matrices: Floats, coefficients: Floats) -> None:
        """Make the variance of every node 1, in a matrix and its derivatives."""
        variance, *slopes = coefficients @ self.diagonals.T
        scale = self.triangle.place(variance**-0.5)
        relative = [self.triangle.place(0.5 * slope / variance) for slope in slopes]
        for strips in zip(*map(self.triangle.strips, matrices), strict=True):
            rows, R = strips[0]
            both = np.multiply.outer(scale[rows], scale[: rows.stop])
            for _, strip in strips:
                np.multiply(strip, both, out=strip)
            for change, (_, strip) in zip(relative, strips[1:], strict=True):
                np.subtract(strip, (change[rows, None] + change[: rows.stop]) * R, out=strip)

    def many(self) -> Correlations:
        """Return the same for many omega and nu: blocks with other nodes are kept for the matrices of the basis."""
        return Correlations(self.eigen, self.rows, spanned=True, within=(self, np.arange(self.rows.size)))

    def across(self, omega: float, nu: float, nodes: Ints, *, unit_variance: bool = True) -> Floats:
        """Return the correlations between other nodes and these, shape (len(nodes), m)."""
        for family, own in ((self, np.arange(self.rows.size)), *([self.within] if self.within else [])):
            places = family.places(nodes)
            if places is not None:
                return family.among(omega, nu, unit_variance=unit_variance).entries(places[:, None], own)
        if self.spanned:
            return self._combined(omega, nu, nodes, unit_variance=unit_variance)
        if not self.remembered:
            return self._across(omega, nu, nodes, unit_variance=unit_variance)
        key = (omega, nu, unit_variance, nodes.tobytes())
        return self._kept(key, lambda: self._across(omega, nu, nodes, unit_variance=unit_variance))

    def places(self, nodes: Ints) -> Ints | None:
        """Return the places of other nodes among these; None unless all are, and their matrices are there already."""
        known = "basis" in self.__dict__ and self.triangle.beside is None
        if not known or not 0 < nodes.size <= self.rows.size:
            return None
        found = np.minimum(np.searchsorted(self.rows, nodes), self.rows.size - 1)
        return found if np.array_equal(self.rows[found], nodes) else None

    def _kept(self, key: Any, made: Callable[[], Floats]) -> Floats:
        if key not in self._blocks:
            while len(self._blocks) >= max(self.remembered, 1):
                del self._blocks[next(iter(self._blocks))]
            self._blocks[key] = made()
        return self._blocks[key]

    def _combined(self, omega: float, nu: float, nodes: Ints, *, unit_variance: bool) -> Floats:
        coefficients = self.eigen.matern(omega, nu) @ self.eigen.basis
        K = self._basis_across(nodes, coefficients)
        if unit_variance:
            scale = self._scale(omega, nu)
            K *= scale[nodes, None]
            K *= scale[self.rows]
        return array(K)

    def _scale(self, omega: float, nu: float) -> Floats:
        """Return what makes the variance of every node 1, kept for the next block of nodes."""
        if (omega, nu) not in self._scales:
            while len(self._scales) >= _FIELDS:
                del self._scales[next(iter(self._scales))]
            self._scales[omega, nu] = self.eigen.variances(omega, nu) ** -0.5
        return self._scales[omega, nu]

    def _basis_across(self, nodes: Ints, coefficients: Floats) -> Floats:
        """Return a combination of the matrices of the basis between other nodes and these."""
        tile = self._tile(int(nodes.min()), int(nodes.max()), nodes.size) if nodes.size else None
        if tile is not None:
            first, blocks = tile
            return np.asarray((blocks[nodes - first] @ coefficients.astype(np.float32)).astype(np.float64))
        block = self._kept(nodes.tobytes(), lambda: self.eigen.blocks(self.eigen.basis, nodes, self.rows))
        return np.asarray(np.tensordot(coefficients, block, axes=1))

    def _tile(self, low: int, high: int, count: int) -> tuple[int, Floats] | None:
        """Return the first of many consecutive nodes, and the matrices of the basis between them and these.

        They are of shape (nodes, m, k), in float32, kept for the next block of nodes. None where these are few, and a
        series would be computed for many more.
        """
        for first, known in self._tiles.items():
            if first <= low and high < first + len(known):
                return first, known
        n, m, basis = len(self.eigen.vectors), self.rows.size, self.eigen.basis
        size = _TILE // (4 * basis.shape[1] * (m + 4 * COLUMNS))
        if self.eigen.series is None or count < _MANY or high - low >= size:
            return None
        self._tiles.clear()
        nodes = np.arange(low, min(low + size, n))
        found = np.empty((nodes.size, m, basis.shape[1]), dtype=np.float32)
        for first in range(0, m, COLUMNS):
            _PROGRESS.info("covariances of nodes from %d on with %d labels: %d", low, m, first)
            some = slice(first, first + COLUMNS)
            found[:, some] = self.eigen.series.columns(basis, self.rows[some], nodes).transpose(2, 1, 0)
        self._tiles[low] = found
        return low, found

    def _across(self, omega: float, nu: float, nodes: Ints, *, unit_variance: bool) -> Floats:
        K = self._everywhere(omega, nu)[nodes] if self.eigen.series else self._between(omega, nu, nodes)
        if not unit_variance:
            return array(K)
        scale = self._scale(omega, nu)
        return array(K * scale[nodes, None] * scale[self.rows])

    def _between(self, omega: float, nu: float, nodes: Ints) -> Floats:
        V = self.eigen.vectors
        return array(V[nodes] @ (V[self.rows] * self.eigen.matern(omega, nu)).T)

    def expect(self, fields: Sequence[tuple[float, float]]) -> None:
        """Take note of the omega and nu of fields that `among` or `across` will be asked for: one pass is for all."""
        self._expected[:] = fields

    def _everywhere(self, omega: float, nu: float) -> Floats:
        """Return the covariances between all nodes and these, kept for the next block of nodes."""
        if (omega, nu) not in self._whole:
            self._whole.clear()
            fields, every = list(dict.fromkeys([(omega, nu), *self._expected])), np.arange(len(self.eigen.vectors))
            spectra = np.column_stack([self.eigen.matern(*each) for each in fields])
            self._whole.update(zip(fields, self.eigen.blocks(spectra, every, self.rows), strict=True))
        return self._whole[omega, nu]

    def variances(self, omega: float, nu: float, nodes: Ints, *, unit_variance: bool = True) -> Floats:
        """Return the variance of every node of some; 1, or what K says."""
        return np.ones(nodes.size) if unit_variance else self.eigen.variances(omega, nu)[nodes]


@dataclass(frozen=True, eq=False)
class Correlation:
    r"""One correlation matrix.

    Attributes
    ----------
    triangle : Triangle
        Its layout.
    R : array
        Its lower triangle.
    slopes : array of shape (2, size)
        Its derivatives by :math:`\log \omega` and :math:`\log \nu`, packed alike.
    """

    triangle: Triangle
    R: Floats
    slopes: Floats

    def entries(self, rows: Ints, columns: Ints) -> Floats:
        """Return entries of the matrix, by index arrays that are broadcast."""
        return np.asarray(self.R[self.triangle.places(rows, columns)])

    def vjp(self, G: Floats) -> Floats:
        r"""Return the derivatives by :math:`\log \omega` and :math:`\log \nu` of a function with gradient `G` by R."""
        return np.array([self.triangle.dot(G, slope) for slope in self.slopes])


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
    isolated : bool array of shape (n,)
        Nodes without neighbours.
    """

    eigen: Eigen
    rows: Ints
    X: Floats
    spanned: bool = False
    isolated: Bools = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    _last: dict[tuple[float, float], Floats] = field(default_factory=dict, repr=False)

    @cached_property
    def basis(self) -> Floats:
        """The columns smoothed by the functions of the basis, shape (k, m, p)."""
        return self.eigen.apply(self.eigen.basis, self.X, self.rows)

    @cached_property
    def _whole_basis(self) -> Floats:
        return self.eigen.apply(self.eigen.basis, self.X)

    def among(self, omega: float, nu: float) -> Floats:
        """Return the columns smoothed, at the nodes, shape (m, p)."""
        return np.asarray(np.tensordot(self.eigen.matern(omega, nu) @ self.eigen.basis, self.basis, axes=1))

    def slopes(self, omega: float, nu: float) -> Floats:
        r"""Return the derivatives (2, m, p) of the same by :math:`\log \omega` and :math:`\log \nu`."""
        return np.asarray(np.tensordot(self.eigen.slopes(omega, nu) @ self.eigen.basis, self.basis, axes=1))

    def at(self, omega: float, nu: float, nodes: Ints) -> Floats:
        """Return the columns smoothed, at some nodes, shape (len(nodes), p); kept at all for the next block of them."""
        if self.spanned:
            coefficients = self.eigen.matern(omega, nu) @ self.eigen.basis
            return np.asarray(np.tensordot(coefficients, self._whole_basis[:, nodes], axes=1))
        if (omega, nu) not in self._last:
            self._last.clear()
            self._last[omega, nu] = self.eigen.apply(self.eigen.matern(omega, nu)[:, None], self.X)[0]
        return np.asarray(self._last[omega, nu][nodes])

    @cached_property
    def _regressions(self) -> Floats:
        """Coefficients (k, p) of columns smoothed by the functions of the basis on themselves, isolated nodes aside."""
        return regress_on_own(self.X, self.isolated, partial(self.eigen.forms, self.eigen.basis))

    def regressions(self, omega: float, nu: float) -> Floats:
        """Return the coefficients (3, p) of smoothed columns on themselves, isolated nodes aside, with derivatives.

        They are 1 if nodes are independent, since `Eigen.matern` has mean 1, and larger if neighbours are alike.
        """
        spectra = np.vstack([self.eigen.matern(omega, nu), self.eigen.slopes(omega, nu)])
        return np.asarray(spectra @ self.eigen.basis @ self._regressions)

r"""The Matern family on a graph, :math:`K = (I + \omega N)^{-\nu}`, exactly, for any :math:`\omega` and :math:`\nu`.

The eigenvectors `V` of N are found once per graph. Functions :math:`(1 + \omega \lambda)^{-\nu}` of an eigenvalue
differ little from each other: two dozen of them, :math:`q_1, q_2, \dots`, span them all to a relative 1e-8. So

.. math:: K_{LL} = \sum_j c_j(\omega, \nu) B_j, \qquad B_j = [V \mathrm{diag}(q_j) V']_{LL},

and once the :math:`B_j` are known a kernel costs one pass over them, whatever the number of nodes.
"""

from __future__ import annotations

import logging
import math
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.polynomial import Chebyshev
from scipy import sparse
from scipy.linalg import lapack
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh, splu

from graphmrf.engines.probes import random_columns
from graphmrf.errors import ConvergenceError
from graphmrf.kept import cached_property
from graphmrf.linalg import marginal_variance, multiply
from graphmrf.linalg.dense import Triangle, one_blas_thread, place
from graphmrf.linalg.lanczos import squares
from graphmrf.linalg.limits import LIMITS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphmrf._typing import Floats, Ints
    from graphmrf.engines import Block, Engine
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
_ACCURACY = 1e-10
"""Relative singular value below which a function of the basis is dropped: kernels are then exact to 1e-9. On U.S.
counties the logarithms of hyper-parameters by polynomials and by eigenvectors differ by 4e-7, with 1e-9 by 5e-6 and
two functions less."""
_SERIES_FROM = 2000
"""Nodes from which a series is considered in place of eigenvectors, which take about a second there."""
_SERIES_ERROR = 1e-8
"""Error of the series, as of the basis; the degree grows with its digits."""
_SERIES_GAIN = 0.3
"""Most products of a series over the :math:`n^3` of eigenvectors. U.S. counties have .18, 10,000
nodes of a power-law graph .05. Doubled, graphs that are nearly lines take up to twice as long."""
_ROUNDING = 1e-8
"""How far apart computed copies of an eigenvalue may lie: the square of the residual of `_smallest_left`, and more."""
_LOWEST = (16, 96)
"""Eigenvalues next to 0 that are set right one by one: few where the last is beyond `_GAP`, as on graphs without
borders; on a map the degree falls with their square root, and doubled they take as long as it saves."""
_GAP = 0.3
"""Eigenvalue from which a series of some 25 terms will do; doubled, graphs with a gap look for 96 eigenvalues, too."""
_EXACT_DIAGONALS = 10_000
"""Nodes up to which variances are exact: they take as many columns as nodes, at 10,000 half a minute. Doubled, four
times as long."""
_DEVICE_DENSE = 40_000
"""Nodes up to which a GPU finds all eigenvectors: half a minute and 40 GB. Doubled, eight and four times that."""
PROBED_LABELS = 120
"""Labels from which no variances are probed, for that is an error of 9 % of the prior variance, and what more labels
leave of that is smaller. With 400 on a map of 10,500 nodes standard deviations were off by factors."""
_SMALL_GAP = 0.02
"""Smallest eigenvalue above 0 below which eigenvectors are looked for: the degree would be above 94. Doubled, graphs
of weakly joined parts that are not maps ask for an order of their nodes in vain, which takes a second."""
_OUTLIERS = 8
"""Smallest eigenvalues above 0 that are looked at: as many weakly joined parts may lie below a gap. Doubled, the search
takes longer on graphs without a gap, for nothing."""
_GAP_ERROR, _SAFE = 1e-3, 0.8
"""Error of the smallest eigenvalue above 0, and the part of it that is relied on: the degree grows by an eighth."""
_NARROW = 8.0
"""Most distance of neighbours in an order of the nodes, in roots of their number: maps have 2 to 4, and a factor
of some million entries; graphs without a gap or a border have hundreds."""
_SHIFT, _BY_FACTOR = 1e-3, 64
"""Shift of the factor, and eigenvectors found by it: 5 s for 50,000 nodes. Doubled, the degree falls by a third."""
_MIDDLE = 1.0
"""Eigenvalue below which an eigenvector counts as one of the smallest: the middle of the spectrum."""
_RESTARTS = 40
"""Restarts of the search for the smallest eigenvalues; borders of counties take 20, and a second. Doubled, graphs
that are nearly lines lose some seconds before eigenvectors are taken."""
_TOLD = 16
"""Blocks of columns after which progress is told: every second, for 10,000 nodes. Doubled, every other second."""
COLUMNS = 16
"""Columns multiplied at once: three blocks of 4000 nodes are 1.5 MB, and stay in a core's cache."""
_FEW_SUMS = 4
"""Functions whose sums are added up term by term; those of more come from a window of terms, in one product. Doubled,
as quick."""
_TOGETHER = 64
"""Columns of a matrix multiplied at once: with 16 or 128, U.S. counties take a third longer."""
_SLIM = 200_000
"""Nodes from which 4 probes are multiplied at once: sums of 16 for all knots would take more than a gigabyte. Doubled,
probes of some more graphs are a third quicker."""
_DRAWN = 64
"""Probes of the variances of large graphs, a multiple of `COLUMNS`: standard deviations err by up to 9 % (root
mean square), as those of `marginal_variance`. Doubled, a draw of another graph takes twice as long, and so do variances
of a probed series."""
_OMEGA_KNOTS = (math.log(OMEGAS[0]), math.log(OMEGAS[1]), 12)
_NU_KNOTS = (math.log(NUS[0]), math.log(NUS[1]), 5)
"""Ranges of log omega and log nu, and the knots at which variances are probed: interpolation errs by less than probes.
Doubled, four times as many polynomials are summed."""
_WINDOW = 256 * 2**20
"""Bytes of the window of polynomials that enter sums together; doubled, sums of 100,000 nodes are little quicker."""
_SERIES = 1e-10
"""Last coefficient, relative to the largest, at which a Chebyshev series ends; its length grows with the digits."""
_MOST_TERMS = 4096
"""Terms of the longest series: 8 digits at the largest omega, and a second for 1000 nodes."""


@dataclass(frozen=True, eq=False)
class Eigen:
    r"""Functions of N, given by their values at its eigenvalues, and their matrices, made of its eigenvectors.

    Attributes
    ----------
    values : array of shape (g,)
        The n eigenvalues in [0, 2], ascending up to rounding; with a `series` its nodes.
    vectors : array of shape (n, n)
        Columns; with a `series` none, (n, 0).
    series : Polynomials, optional
        What makes the matrices without eigenvectors.
    """

    values: Floats
    vectors: Floats
    series: Polynomials | None = None

    @cached_property
    def _weights(self) -> Floats:
        """What the values of a function are multiplied by to give the mean of the diagonal of its matrix."""
        g = self.values.size
        return np.full(g, 1.0 / g) if self.series is None else self.series.weights

    def matern(self, omega: float, nu: float) -> Floats:
        r"""Return the spectrum :math:`(1 + \omega \lambda)^{-\nu}`, divided by its mean."""
        return np.asarray((1.0 + omega * self.values) ** -nu / self.mean(omega, nu))

    def mean(self, omega: float, nu: float) -> float:
        r"""Return the mean of :math:`(1 + \omega \lambda)^{-\nu}`, by which `matern` is divided."""
        return float((1.0 + omega * self.values) ** -nu @ self._weights)

    def slopes(self, omega: float, nu: float) -> Floats:
        r"""Return (2, g): derivatives of `matern` by :math:`\log \omega` and :math:`\log \nu`."""
        spectrum, shift = self.matern(omega, nu), 1.0 + omega * self.values
        slopes = -nu * spectrum * np.array([omega * self.values / shift, np.log(shift)])
        return np.asarray(slopes - spectrum * (slopes @ self._weights)[:, None])

    @cached_property
    def basis(self) -> Floats:
        """Orthonormal functions of the eigenvalue that span all of `matern`, shape (g, k)."""
        omegas = np.geomspace(*OMEGAS, 20)
        nus = np.geomspace(*NUS, 8)
        family = np.column_stack([self.matern(omega, nu) for omega in omegas for nu in nus])
        U, s, _ = np.linalg.svd(family, full_matrices=False)
        return np.asarray(U[:, s > _ACCURACY * s[0]])

    def variances(self, omega: float, nu: float) -> Floats:
        """Return the diagonal of the matrix with the spectrum `matern`, shape (n,); with a `series` perhaps probed."""
        spectrum = self.matern(omega, nu)
        if self.series is None or self.series.exact is None:
            return np.asarray(self._diagonals @ (spectrum @ self.basis))
        found = self.series.probed_variances(omega, nu)
        found[self.series.exact] = self._diagonals @ (spectrum @ self.basis)
        return found

    @cached_property
    def _diagonals(self) -> Floats:
        """Diagonals of the matrices of the basis at all nodes or, where others are probed, at those that are exact."""
        return np.asarray(self.vectors**2 @ self.basis) if self.series is None else self.series.diagonals(self.basis)

    def diagonals(self, nodes: Ints) -> Floats:
        """Return the diagonals of the matrices of the basis at some nodes where they are exact, (len(nodes), k)."""
        if self.series is not None and self.series.exact is not None:
            nodes = np.searchsorted(self.series.exact, nodes)
        return np.asarray(self._diagonals[nodes])

    def apply(self, spectra: Floats, X: Floats, rows: Ints | None = None) -> Floats:
        """Return the matrices with some spectra (g, k) times columns `X` (n, p), at some rows: shape (k, m, p)."""
        if self.series is not None:
            return self.series.apply(spectra, X, rows)
        V, projected = self.vectors if rows is None else self.vectors[rows], np.asarray(self.vectors.T @ X)
        return np.stack([np.asarray(V @ (q[:, None] * projected)) for q in spectra.T])

    def forms(self, spectra: Floats, X: Floats) -> Floats:
        """Return the quadratic forms (k, p) of columns `X` (n, p) by the matrices with some spectra (g, k)."""
        if self.series is None:
            return np.asarray(spectra.T @ np.asarray(self.vectors.T @ X) ** 2)
        found = [np.einsum("kij,ij->k", self.apply(spectra, x[:, None]), x[:, None]) for x in X.T]
        return np.column_stack(found)

    def blocks(self, spectra: Floats, nodes: Ints, rows: Ints) -> Floats:
        """Return the blocks (k, len(nodes), len(rows)) of the matrices with some spectra (g, k)."""
        if self.series is not None:
            if nodes.size < rows.size:
                return self.series.columns(spectra, nodes, rows)
            return self.series.columns(spectra, rows, nodes).transpose(0, 2, 1)
        V, W = self.vectors[nodes], self.vectors[rows]
        return np.stack([(V * q) @ W.T for q in spectra.T])

    def pack(self, spectra: Floats, rows: Ints, triangle: Triangle) -> Floats:
        """Return the matrices with some spectra (g, k) among some nodes, packed, shape (k, size of the triangle)."""
        packed = triangle.empty(spectra.shape[1])
        if self.series is not None:
            for together in zip(*map(triangle.strips, packed), strict=True):
                places = together[0][0]
                strips = self.series.columns(spectra, rows[places], rows[: places.stop])
                for (_, strip), found in zip(together, strips, strict=True):
                    strip[:] = found
            return packed
        V = self.vectors[rows]
        for each, q in zip(packed, spectra.T, strict=True):
            weighted = V * q
            for places, strip in triangle.strips(each):
                np.matmul(weighted[places], V[: places.stop].T, out=strip)
        return packed


@dataclass(frozen=True, eq=False)
class Polynomials:
    r"""Functions of N without its eigenvectors: polynomials of N, set right at its smallest eigenvalues.

    A function that is smooth from :math:`\lambda_r` on is a short series there. What that gets wrong below,
    :math:`\delta_i`, is known at the few eigenvalues there are, so that

    .. math:: f(N) = \sum_{k \le K} \gamma_k T_k(I - N) + \sum_{i \le r} \delta_i u_i u_i',

    and columns of it take K products with N. Both are linear in the values of f at the `nodes`.

    Attributes
    ----------
    engine : Engine
        What multiplies by I - N.
    constants : array of shape (n,)
        Eigenvectors of eigenvalue 0 side by side, one a connected component.
    components : integer array of shape (n,)
        The component of every node.
    low : array of shape (r,)
        The smallest eigenvalues above 0, ascending.
    vectors : array of shape (n, r)
        Their eigenvectors.
    gap : float, optional
        A bound from below of all other eigenvalues above 0; by default the last of `low`.
    exact : integer array, optional
        Nodes whose variances are exact; those of all others come from random probes. None: all are exact.
    """

    engine: Engine
    constants: Floats
    components: Ints
    low: Floats
    vectors: Floats
    gap: float | None = None
    exact: Ints | None = None

    @property
    def _first(self) -> float:
        """The eigenvalue from which on polynomials must be right."""
        if self.gap is not None:
            return self.gap
        return float(self.low[-1]) if self.low.size else _MIDDLE

    @cached_property
    def degree(self) -> int:
        """Degree of the polynomials: they err by less than `_SERIES_ERROR` where no smaller eigenvalue is left."""
        return series_degree(self._first)

    @cached_property
    def nodes(self) -> Floats:
        """Eigenvalues at which functions are given: 0, the smallest ones, and twice as many as the degree beyond."""
        first, count = self._first, 2 * self.degree
        beyond = 0.5 * (2.0 + first) - 0.5 * (2.0 - first) * np.cos(np.pi * (np.arange(count) + 0.5) / count)
        return np.concatenate([[0.0], self.low, beyond])

    def _coefficients(self, spectra: Floats) -> tuple[Floats, Floats]:
        """Return the coefficients (K + 1, k) of the polynomials of some spectra (g, k), and what they lack below."""
        below = 1 + self.low.size
        T = np.polynomial.chebyshev.chebvander(1.0 - self.nodes, self.degree)
        gamma = np.linalg.lstsq(T[below:], spectra[below:], rcond=1e-12)[0]
        return gamma, spectra[:below] - T[:below] @ gamma

    def _terms(self, V: Block) -> Iterator[tuple[Block, Floats]]:
        """Yield :math:`T_k(I - N) V` of k = 0, 1, ..., and the inner products of its columns with those of the next."""
        engine, width = self.engine, V.shape[1]
        mask, ones, zeros = engine.mask(None, width), np.ones(width), np.zeros(width)
        before, now, after = engine.like(V), V, engine.like(V)
        scale, back = ones, zeros
        while True:
            dots = engine.advance(now, scale, before if back.any() else now, back, mask, after)
            yield now, dots / scale
            before, now, after = now, after, before
            scale, back = 2.0 * ones, ones

    def _forms(self, V: Block, width: int) -> Floats:
        r"""Return :math:`v'T_k(I - N) v` of every column v, (width, K + 1), by polynomials of half the degree."""
        half = self.degree // 2 + 1
        found = np.empty((width, 2 * half + 2))
        for order, (term, dots) in zip(range(half + 1), self._terms(V), strict=False):
            found[:, 2 * order] = squares(self.engine, term)[:width]
            found[:, 2 * order + 1] = dots[:width]
        found[:, 2:] = 2.0 * found[:, 2:] - np.tile(found[:, :2], half)
        return found[:, : self.degree + 1]

    @cached_property
    def _moments(self) -> Floats:
        """Diagonals of :math:`T_k(I - N)` at the nodes where they are exact, shape (nodes, K + 1)."""
        nodes = np.arange(self.constants.size) if self.exact is None else self.exact
        found = np.empty((nodes.size, self.degree + 1))
        for k, places in enumerate(np.array_split(np.arange(nodes.size), max(-(-nodes.size // _TOGETHER), 1))):
            if k % _TOLD == 0:
                _PROGRESS.info("polynomials of the graph: %d of %d nodes", k * _TOGETHER, nodes.size)
            found[places] = self._forms(self.engine.load(np.eye(places.size), nodes[places]), places.size)
        return found

    def diagonals(self, spectra: Floats) -> Floats:
        """Return the diagonals (nodes, k) of the matrices with some spectra (g, k), where they are exact."""
        (gamma, delta), nodes = self._coefficients(spectra), slice(None) if self.exact is None else self.exact
        low = np.outer(self.constants[nodes] ** 2, delta[0]) + self.vectors[nodes] ** 2 @ delta[1:]
        return np.asarray(self._moments @ gamma + low)

    @cached_property
    def weights(self) -> Floats:
        """What the values of a function at the `nodes` are multiplied by to give the mean of its diagonal, (g,)."""
        units = np.eye(self.nodes.size)
        if self.exact is None:
            return np.asarray(self.diagonals(units).mean(axis=0))
        gamma, _ = self._coefficients(units)
        forms = np.mean([self._forms(V, width).mean(axis=0) for V, width in self._probes], axis=0)
        counts = np.zeros(len(units))
        counts[: 1 + self.low.size] = 1.0
        counts[0] = self.components.max() + 1
        return np.asarray((counts + forms @ gamma) / self.constants.size)

    @property
    def _probes(self) -> Iterator[tuple[Block, int]]:
        """Yield blocks of Rademacher probes without their part in the eigenvectors that are known, and their width."""
        width = COLUMNS if self.constants.size < _SLIM else 4
        for seed in range(_DRAWN // width):
            Z = random_columns(seed, self.constants.size, width)
            yield self.engine.load(Z - self._constant(Z) - self.vectors @ (self.vectors.T @ Z)), width

    def _constant(self, X: Floats) -> Floats:
        """Return the part of columns (n, p) in the eigenvectors of eigenvalue 0."""
        sums = np.zeros((int(self.components.max()) + 1, X.shape[1]))
        np.add.at(sums, self.components, self.constants[:, None] * X)
        return np.asarray(self.constants[:, None] * sums[self.components])

    @cached_property
    def _knots(self) -> Floats:
        r"""Logarithms of variances over their mean, at knots of omega and nu, shape (n, knots).

        The diagonal of K is the mean square of :math:`K^{1/2} z` over Rademacher probes `z`, but for the part of known
        eigenvectors, which is exact.
        """
        omegas, nus = (np.exp(_knots(*each)) for each in (_OMEGA_KNOTS, _NU_KNOTS))
        shift = 1.0 + np.outer(self.nodes, np.repeat(omegas, nus.size))
        powers = np.tile(nus, omegas.size)
        roots, below = shift ** (-0.5 * powers), shift[: 1 + self.low.size] ** -powers
        total = np.zeros((self.constants.size, powers.size))
        gamma, _ = self._coefficients(roots)
        for k, (V, width) in enumerate(self._probes):
            _PROGRESS.info("variances of the graph: %d of %d probes", k * width, _DRAWN)
            sums = self._sums(V, gamma, width, None)
            total += np.einsum("kcn,kcn->nk", sums, sums) / _DRAWN
        total += np.outer(self.constants**2, below[0]) + self.vectors**2 @ below[1:]
        return np.asarray(np.log(total / (self.weights @ shift**-powers)))

    def probed_variances(self, omega: float, nu: float) -> Floats:
        r"""Return the diagonal of :math:`(I + \omega N)^{-\nu}` over its mean, from probes, shape (n,).

        Its logarithm is interpolated by Chebyshev polynomials of :math:`\log \omega` and :math:`\log \nu`.
        """
        weights = [_interpolation(np.log(x), *each) for x, each in ((omega, _OMEGA_KNOTS), (nu, _NU_KNOTS))]
        return np.asarray(np.exp(self._knots @ np.outer(*weights).ravel()))

    def _sums(self, V: Block, gamma: Floats, width: int, rows: Ints | None) -> Floats:
        r"""Return some rows of :math:`\sum_k \gamma_k T_k(I - N) V` for every column of `gamma`, (k, width, rows)."""
        engine, terms = self.engine, zip(range(self.degree + 1), self._terms(V), strict=False)
        if gamma.shape[1] <= _FEW_SUMS:  # no need to keep the terms
            totals = [engine.zeros(width) for _ in gamma.T]
            for k, (term, _) in terms:
                for total, weight in zip(totals, gamma[k], strict=True):
                    engine.subtract(total, np.full(term.shape[1], -weight), term)
            return np.stack([engine.unload(total, width, rows).T for total in totals])
        count = self.constants.size if rows is None else rows.size
        slots = min(max(_WINDOW // max(8 * width * count, 1), 1), self.degree + 1)
        dtype = np.dtype(np.float64 if self.exact is None or rows is not None else np.float32)
        window, found = engine.window(width, slots, rows), np.zeros((gamma.shape[1], width, count), dtype=dtype)
        for k, (term, _) in terms:
            engine.store(term, window, k % slots)
            if k % slots == slots - 1 or k == self.degree:
                some = gamma[k - k % slots : k + 1]
                for column, values in enumerate(engine.read(window)):
                    found[:, column] += some.T @ values[: len(some)]
        return found

    def columns(self, spectra: Floats, columns: Ints, rows: Ints) -> Floats:
        """Return some rows of some columns of the matrices with some spectra (g, k), shape (k, columns, rows)."""
        gamma, delta = self._coefficients(spectra)
        found = np.empty((spectra.shape[1], columns.size, rows.size))
        for first in range(0, columns.size, _TOGETHER):
            some, block = columns[first : first + _TOGETHER], found[:, first : first + _TOGETHER]
            block[:] = self._sums(self.engine.load(np.eye(some.size), some), gamma, some.size, rows)
            self._set_right(block, delta, some, rows)
        return found

    def _set_right(self, block: Floats, delta: Floats, columns: Ints, rows: Ints) -> None:
        """Add to matrices (k, columns, rows) what polynomials lack at the smallest eigenvalues."""
        here, there = (np.column_stack([self.constants[nodes], self.vectors[nodes]]) for nodes in (columns, rows))
        for matrix, change in zip(block, delta.T, strict=True):
            np.add(matrix, (here * change) @ there.T, out=matrix)
        apart = self.components[columns][:, None] != self.components[rows]
        if apart.any():
            constant = apart * np.outer(here[:, 0], there[:, 0])
            for matrix, change in zip(block, delta[0], strict=True):
                np.subtract(matrix, change * constant, out=matrix)

    def apply(self, spectra: Floats, X: Floats, rows: Ints | None = None) -> Floats:
        """Return the matrices with some spectra (g, k) times columns `X` (n, p), at some rows: shape (k, m, p)."""
        gamma, delta = self._coefficients(spectra)
        chosen = slice(None) if rows is None else rows
        found = self._sums(self.engine.load(X), gamma, X.shape[1], rows).transpose(0, 2, 1)
        constant, projected = self._constant(X)[chosen], self.vectors.T @ X
        for k, change in enumerate(delta.T):
            found[k] += change[0] * constant + self.vectors[chosen] @ (change[1:, None] * projected)
        return np.ascontiguousarray(found)


def series_degree(first: float) -> int:
    r"""Return the degree of polynomials that are right from an eigenvalue on.

    They err by less than `_SERIES_ERROR`, as the functions have no pole above :math:`-1 / \omega`.

    Examples
    --------
    >>> series_degree(0.3), series_degree(0.003), series_degree(0.0)
    (27, 241, 2261)
    """
    x = (2.0 + first + 2.0 / OMEGAS[1]) / (2.0 - first)
    return 4 + int(np.ceil(-np.log(_SERIES_ERROR) / np.log(x + np.sqrt(x * x - 1.0))))


def _knots(low: float, high: float, count: int) -> Floats:
    """Return Chebyshev points between two numbers."""
    return np.asarray(0.5 * (low + high) - 0.5 * (high - low) * np.cos(np.pi * (np.arange(count) + 0.5) / count))


def _interpolation(x: float, low: float, high: float, count: int) -> Floats:
    """Return what values at `_knots` are multiplied by to give that of the polynomial through them at `x`."""
    at = (2.0 * np.append(_knots(low, high, count), x) - low - high) / (high - low)
    values = np.polynomial.chebyshev.chebvander(at, count - 1)
    return np.asarray(np.linalg.solve(values[:-1].T, values[-1]))


def eigen(graph: Graph, rows: Ints | None = None) -> Eigen:
    """Return the eigenvectors of N, or a series in their place; found once, and kept for as long as the graph lives.

    With the labelled nodes `rows`, variances of others may be probed on large graphs, see `is_probed`.

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> eigen(Graph.from_edges([0, 1, 2], [1, 2, 0])).values.round(6)
    array([0. , 1.5, 1.5])
    """
    if rows is None or not is_probed(graph, rows.size):
        return graph.derived(_eigen)
    known = graph.derived(probed_series)
    _PROGRESS.info("polynomials of degree %d of the graph of %d nodes", known.degree, graph.n_nodes)
    return Eigen(known.nodes, np.empty((graph.n_nodes, 0)), replace(known, exact=rows))


def is_probed(graph: Graph, labels: int) -> bool:
    """Return whether variances of unlabelled nodes come from random probes: on a large graph with few labels."""
    large = graph.n_nodes > (_DEVICE_DENSE if hasattr(graph.engine, "place") else _EXACT_DIAGONALS)
    return large and labels < PROBED_LABELS


def _eigen(graph: Graph) -> Eigen:
    series = None if graph.n_nodes < _SERIES_FROM or hasattr(graph.engine, "place") else short_series(graph)
    if series is not None:
        _PROGRESS.info("polynomials of degree %d of the graph of %d nodes", series.degree, graph.n_nodes)
        return Eigen(series.nodes, np.empty((graph.n_nodes, 0)), series)
    return dense_eigen(graph)


def probed_series(graph: Graph) -> Polynomials:
    """Return the series of a large graph, with the eigenvectors below a gap if there is one, or some of a map."""
    constants, members = _constants(graph)
    engine, none = graph.on("numba").engine, (np.zeros(0), np.empty((len(constants), 0)))
    first = _first_above_zero(graph, members)
    small = int(np.count_nonzero(first < _SMALL_GAP))
    if 0 < small < first.size:
        low = _below_gap(graph, members, small)
        if low is not None:
            return Polynomials(engine, constants, graph.components, *low, float(first[small]))
    found = _lowest_by_factor(graph, members) if small and _is_narrow(graph) else None
    if found is not None:
        return Polynomials(engine, constants, graph.components, *found)
    return Polynomials(engine, constants, graph.components, *none, float(first[0]))


def _without_constants(graph: Graph, members: sparse.csr_array) -> LinearOperator:
    """Return I - N with the eigenvectors of eigenvalue 0 at its lower end."""
    S = graph.S + sparse.diags_array(graph.isolated.astype(np.float64))
    return LinearOperator(S.shape, lambda x: S @ x - 2.0 * (members @ (members.T @ x)), dtype=np.float64)


def _first_above_zero(graph: Graph, members: sparse.csr_array) -> Floats:
    """Return bounds from below of the smallest eigenvalues above 0, ascending, by Lanczos; 0 where none is found."""
    operator, start = _without_constants(graph, members), np.random.default_rng(0).standard_normal(graph.n_nodes)
    count = min(_OUTLIERS, graph.n_nodes - 2)
    try:
        found = eigsh(operator, count, which="LA", v0=start, tol=_GAP_ERROR, ncv=40, maxiter=_RESTARTS)[0]
    except ArpackNoConvergence:
        return np.zeros(1)
    return np.asarray(_SAFE * np.maximum(1.0 - found[::-1] - _GAP_ERROR, 0.0))


def _below_gap(graph: Graph, members: sparse.csr_array, count: int) -> tuple[Floats, Floats] | None:
    """Return so many of the smallest eigenvalues above 0, and their eigenvectors; None where they are not found."""
    operator, start = _without_constants(graph, members), np.random.default_rng(0).standard_normal(graph.n_nodes)
    try:
        values, vectors = eigsh(operator, count, which="LA", v0=start, tol=1e-10, ncv=40, maxiter=_RESTARTS)
    except ArpackNoConvergence:
        return None
    vectors = np.ascontiguousarray(vectors[:, ::-1])
    return (1.0 - values[::-1], vectors) if _smallest_left(operator, vectors) > _SMALL_GAP else None


def _is_narrow(graph: Graph) -> bool:
    """Return whether nodes can be ordered so that neighbours are close, as on a map: a sparse factor is then cheap."""
    order = reverse_cuthill_mckee(sparse.csr_matrix(graph.S), symmetric_mode=True)
    place = np.empty(graph.n_nodes, dtype=np.int64)
    place[order] = np.arange(graph.n_nodes)
    rows = np.repeat(np.arange(graph.n_nodes), np.diff(graph.indptr))
    return bool(np.abs(place[rows] - place[graph.indices]).max(initial=0) <= _NARROW * math.sqrt(graph.n_nodes))


def _lowest_by_factor(graph: Graph, members: sparse.csr_array) -> tuple[Floats, Floats] | None:
    """Return the smallest eigenvalues above 0 and their eigenvectors, by a sparse factor of N and a small shift.

    As in `_lowest`, only those up to the smallest that was missed, of which others are copies, and None without.
    """
    n = graph.n_nodes
    shifted = sparse.csc_matrix(graph.N + _SHIFT * sparse.eye_array(n))
    factor = splu(shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})

    def inverse(x: Floats) -> Floats:
        y = factor.solve(x - members @ (members.T @ x))
        return np.asarray(y - members @ (members.T @ y))

    start = np.random.default_rng(0).standard_normal(n)
    operator = LinearOperator((n, n), inverse, dtype=np.float64)
    count = min(_BY_FACTOR, n // 3)
    try:
        values, vectors = eigsh(operator, count, which="LA", v0=start, tol=1e-10, ncv=min(2 * count, n))
        rest = LinearOperator((n, n), lambda x: operator @ x - vectors @ (values * (vectors.T @ x)), dtype=np.float64)
        again = np.random.default_rng(1).standard_normal(n)
        missed = 1.0 / float(eigsh(rest, 1, which="LA", v0=again, tol=1e-6)[0][0]) - _SHIFT
    except ArpackNoConvergence:
        return None
    low = 1.0 / values[::-1] - _SHIFT
    if missed < min(low[0], _MIDDLE) - _ROUNDING:
        return None
    kept = low < min(_MIDDLE, missed + _ROUNDING)
    return low[kept], np.ascontiguousarray(vectors[:, ::-1][:, kept])


def dense_eigen(graph: Graph) -> Eigen:
    """Return the eigenvectors of N by dense algebra."""
    _PROGRESS.info("eigenvectors of %d nodes", graph.n_nodes)
    if graph.n_nodes > _SINGLE and not hasattr(graph.engine, "place"):
        return single_eigen(graph)
    # threads gain little on small graphs, and lose much where cores are busy
    with one_blas_thread() if graph.n_nodes <= _UNSHARED else nullcontext():
        values, vectors = np.linalg.eigh(place(graph.engine, graph.N.toarray()))
    return Eigen(np.clip(np.asarray(values), 0.0, 2.0), vectors)


def short_series(graph: Graph) -> Polynomials | None:
    """Return the series in place of eigenvectors; None where it is foreseen to take longer, as on paths.

    Eigenvectors take :math:`n^3` steps. The series takes, for diagonals of all nodes by half its degree K and for
    columns of a third of the nodes, about :math:`K n` products of the edges, :math:`2 m`, and rows of a block, 4 n.
    """
    n = graph.n_nodes
    try:
        found = _lowest(graph)
    except ArpackNoConvergence:  # eigenvalues near 0 lie close together: the degree would be high
        return None
    if found is None:
        return None
    low, vectors, constants = found
    series = Polynomials(graph.on("numba").engine, constants, graph.components, low, vectors)
    products = float(series.degree) * n * (graph.indices.size + 4 * n)
    return series if products < _SERIES_GAIN * float(n) ** 3 else None


def _lowest(graph: Graph) -> tuple[Floats, Floats, Floats] | None:
    """Return the smallest eigenvalues above 0, their eigenvectors, and the eigenvectors of 0 side by side.

    Of a repeated eigenvalue, as copies of a component have, Lanczos finds some eigenvectors, not all: only those up to
    the smallest it has missed are returned, and None where that is below all of them.
    """
    (constants, members), S = _constants(graph), graph.S + sparse.diags_array(graph.isolated.astype(np.float64))

    def without_constants(x: Floats) -> Floats:
        return np.asarray(S @ x - 2.0 * (members @ (members.T @ x)))  # moves them from the upper end to the lower

    operator = LinearOperator(S.shape, without_constants, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(graph.n_nodes)
    for count in _LOWEST:
        found = eigsh(operator, count, which="LA", v0=start, tol=1e-10, ncv=3 * count, maxiter=_RESTARTS)
        if 1.0 - found[0][0] > _GAP:
            break
    low, vectors = 1.0 - found[0][::-1], np.ascontiguousarray(found[1][:, ::-1])
    missed = _smallest_left(operator, vectors)
    if missed < min(low[0], _MIDDLE) - _ROUNDING:
        return None
    kept = low < min(_MIDDLE, missed + _ROUNDING)  # beyond are also the constants, where there are many of them
    return low[kept], np.ascontiguousarray(vectors[:, kept]), constants


def _smallest_left(operator: LinearOperator, vectors: Floats) -> float:
    """Return the smallest eigenvalue of the rest of the space, from another start: the first one sees no more there."""
    rest = LinearOperator(operator.shape, lambda x: operator @ x - 2.0 * (vectors @ (vectors.T @ x)), dtype=np.float64)
    start = np.random.default_rng(1).standard_normal(len(vectors))
    return 1.0 - float(eigsh(rest, 1, which="LA", v0=start, tol=1e-5, ncv=40, maxiter=_RESTARTS)[0][0])


def _constants(graph: Graph) -> tuple[Floats, sparse.csr_array]:
    """Return the eigenvectors of N of eigenvalue 0, one a component: side by side, and as columns (n, components)."""
    weight = graph.degrees + graph.isolated
    side_by_side = np.sqrt(weight / np.bincount(graph.components, weight)[graph.components])
    return side_by_side, sparse.csr_array((side_by_side, (np.arange(graph.n_nodes), graph.components)))


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


def matern_variance(graph: Graph, omega: float, nu: float) -> Floats:
    r"""Return the diagonal of :math:`(I + \omega N)^{-\nu}`: exact on small graphs, by random draws on large ones.

    The share of the eigenvectors of eigenvalue 0, which is the largest, is exact there, too.

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> matern_variance(Graph.from_edges([0], [1]), 1.0, 2.0).round(4).tolist()
    [0.5556, 0.5556]
    """
    if nu == 1.0:
        return marginal_variance(graph, omega / (1.0 + omega))
    if graph.n_nodes <= LIMITS.dense_variance:
        known = eigen(graph)
        return np.asarray(known.mean(omega, nu) * known.variances(omega, nu))
    (constants, members), total = _constants(graph), np.zeros(graph.n_nodes)
    for seed in range(_DRAWN // COLUMNS):
        Z = random_columns(seed, graph.n_nodes, COLUMNS)
        total += (matern_smooth(graph, Z - members @ (members.T @ Z), omega, 0.5 * nu) ** 2).sum(axis=1)
    return np.asarray(total / _DRAWN + constants**2)


def _chebyshev(omega: float, nu: float) -> Floats:
    """Return the coefficients of the spectrum as a function on [-1, 1], so many that the last ones vanish."""
    degree = 32
    while True:
        series = Chebyshev.interpolate(lambda t: (1.0 + omega * (1.0 + t)) ** -nu, degree).coef.astype(np.float64)
        if np.abs(series[-4:]).max() < _SERIES * np.abs(series).max() or degree >= _MOST_TERMS:
            return series
        degree *= 2

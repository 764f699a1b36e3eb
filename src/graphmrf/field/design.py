"""The labelled graph, and the features of every node as the field sees them: own, neighbours', and farther ones."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from graphmrf.kept import cached_property
from graphmrf.linalg import multiply, precision, smooth
from graphmrf.linalg.precision import lanczos_quadrature, rademacher
from graphmrf.linalg.variance import ConditionalPrecision, precision_noise

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.graph import Graph
    from graphmrf.linalg.precision import LanczosQuadrature
    from graphmrf.linalg.variance import NoiseBlocks

_Made = TypeVar("_Made")

_FLAT = 1e-12
"""Standard deviation, of features of variance 1, below which a column of sums over neighbours is rounding."""
_SHOWN, _DIFFERENT = 0.1, 3.0
"""Standard deviation at the labels, over that of all nodes, from which labels show the effect of a column; and distance
from their mean, in that standard deviation, beyond which a node differs. By eye; with .2, heavy-tailed columns are
taken for rare levels where labels are few."""
_NORM_PROBES = 16
"""Rademacher probes for row norms: they err by about a sixth, and only nodes at three times the median matter."""
_MOST_NORM = 3.0
"""Row norms beyond so many medians count as these; chosen by eye, for lonely pairs."""
_DIGITS = 9
"""Digits to which labels are compared: those of mirrored or shifted ones differ in the last. Doubled, they would."""
_KNOT = float(np.log(4.0))
"""Steps of log omega at which variances are drawn and interpolated; chosen by eye, coarser ones save draws."""
_KNOT_TOLERANCE = 1e-3
"""Relative residual of these solves, far below the error of the draws."""
_VARIANCE_DRAWS = (10_000_000, 32, 64)
"""Nodes times draws, fewest and most draws for marginal variances: k draws err by sqrt(2 / k), 25 to 18 %."""
_DETERMINANT_PROBES = (1_200_000, 8, 32)
"""The same for log-determinants, whose error falls with nodes times probes; each is one more column to solve for."""


@dataclass(frozen=True, eq=False)
class Design:
    r"""Standardised features of all nodes.

    Attributes
    ----------
    groups : array of shape (3 or 4, n, p)
        `X`, `SX`, `S²X` and, with `with_distant`, features from farther away; each column of mean 0 and variance 1
        over all nodes (0 if it is constant, less if it is the same at all labelled nodes; see `_spread`).
    scales : array of shape (3 or 4, p)
        What the columns were divided by: a coefficient of the standardised column over its scale is one per unit.
    kept : bool array
        The features of the caller that vary; the others have no effect to find.
    means : array of shape (p,)
        Means of the features that vary, in their units.
    centres : array of shape (3 or more, p)
        What was subtracted from every group of features that are standardised themselves, in units of own features.
    levels : tuple of float
        Levels of smoothing of the groups after the first three.
    components : integer array of shape (n,)
        Connected component of every node.
    regressions : array of shape (2 or more, p)
        Regression of every group but the first, before it is centred, on own features, over the nodes that have
        neighbours. What it predicts is what an isolated node has: its own features themselves would be far from what
        sums over neighbours are.
    isolated : bool array of shape (n,)
        Nodes without neighbours.
    plain : Design or None
        With `with_distant`, the design it was made from, `levels` being that of the distant features.
    """

    groups: Floats
    scales: Floats
    kept: Bools
    means: Floats = field(default_factory=lambda: np.zeros(0))
    centres: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    levels: tuple[float, ...] = ()
    components: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    regressions: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    isolated: Bools = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    plain: Design | None = None

    @property
    def p(self) -> int:
        """Number of features that vary."""
        return int(self.groups.shape[2])

    @cached_property
    def Z(self) -> Floats:
        """Arguments of the nonlinear functions: own and neighbours' features, shape (n, 2 p)."""
        return np.hstack(list(self.groups[:2]))

    @cached_property
    def order(self) -> Ints:
        """All nodes in the order of their features: what is chosen at random follows it, not the numbers of nodes."""
        return _lexical_order(*self.groups[0].T) if self.p else np.arange(self.groups.shape[1])

    @cached_property
    def norm_signs(self) -> Ints:
        """Random signs in that order, shape (n, 16), in single bytes: every level looked at needs them."""
        signs = np.empty((self.order.size, _NORM_PROBES), dtype=np.int8)
        signs[self.order] = rademacher(self.order.size, _NORM_PROBES, 0)
        return signs

    def order_of_labels(self, rows: Ints, z: Floats) -> Ints:
        """Return the places of labelled nodes in an order that neither node numbers nor the sign of labels decide.

        It is that of their distance from the mean and, where this is equal, of features.
        """
        about = np.abs(z - z.mean())
        return _lexical_order((about / (about.max() or 1.0)).round(_DIGITS), *self.groups[0][rows].T)

    def at(self, nodes: Ints) -> Design:
        """Return the same of some nodes."""
        groups, components, isolated = self.groups[:, nodes], self.components[nodes], self.isolated[nodes]
        return replace(self, groups=groups, components=components, isolated=isolated)

    def elsewhere(self, graph: Graph, X: Floats) -> Design:
        """Return the features (n', all of the caller) of another graph, by the centres and scales of this one."""
        if self.plain is not None:
            return self._distant_elsewhere(graph, self.plain.elsewhere(graph, X))
        own = (X[:, self.kept] - self.means) / self.scales[0]
        raw = _groups(graph, own, self.levels)
        raw[1:] = predicted_by_own(raw[1:], own, self.regressions, graph.isolated)
        groups = (raw - self.centres[:, None, :]) * (self.scales[0] / self.scales)[:, None]
        return replace(self, groups=groups, isolated=graph.isolated)

    def _distant_elsewhere(self, graph: Graph, there: Design) -> Design:
        """Return the same with distant features, from the design of another graph without them."""
        if not self.p:
            return replace(self, groups=np.concatenate([there.groups, there.groups[:1]]), isolated=there.isolated)
        groups, units, found = [there.groups[0]], _units(there), _neighbourhoods(graph, there, self.levels[0])
        found = predicted_by_own(found, groups[0], self.regressions, graph.isolated)
        for k, raw in enumerate(found, start=1):
            known = np.isfinite(self.scales[k])
            spread = np.where(known, self.scales[k], np.inf) / np.where(known, units[k - 1], 1.0)
            groups.append((raw - self.centres[k]) / spread)
        return replace(self, groups=np.stack(groups), isolated=there.isolated)


def _lexical_order(first: Floats, *more: Floats) -> Ints:
    """Return the order by the first numbers and, among equal ones only, by the next: what `numpy.lexsort` returns.

    Examples
    --------
    >>> _lexical_order(np.array([2.0, 1.0, 2.0]), np.array([5.0, 6.0, 4.0]))
    array([1, 2, 0])
    """
    order = np.argsort(first, kind="stable")
    new = np.diff(first[order], prepend=np.nan) != 0
    tied = np.flatnonzero(~new | ~np.append(new[1:], True))
    nodes, run = order[tied], np.cumsum(new)[tied]
    order[tied] = nodes[np.lexsort((*(each[nodes] for each in more[::-1]), run))]
    return order


def make_design(graph: Graph, X: Floats, levels: tuple[float, ...] = (), *, rows: Ints | None = None) -> Design:
    """Return the standardised features of a graph's nodes, with a group of smoothed ones for every level.

    Where labelled nodes `rows` are given, columns that hardly differ between them may have another unit; see `_spread`.

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> path = Graph.from_edges([0, 1], [1, 2])
    >>> made = make_design(path, np.array([[1.0, 7.0], [2.0, 7.0], [3.0, 7.0]]))
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
    means = deviations.mean(axis=0)
    deviations -= means
    spread = np.sqrt(np.mean(deviations**2, axis=0))
    kept = spread > 16 * np.finfo(np.float64).eps * (magnitude / unit)
    own = deviations[:, kept] / spread[kept]
    raw = _groups(graph, own, levels)
    regressions = _regressions(raw[1:], own, graph.isolated)
    raw[1:] = predicted_by_own(raw[1:], own, regressions, graph.isolated)
    centres = raw.mean(axis=1)
    groups = raw - centres[:, None, :]
    scales = _spread(groups, rows)
    groups, centres = groups / scales[:, None, :], centres / scales[0]
    scales = scales * (unit * spread)[kept]
    parts = (groups, scales, kept, (unit * means)[kept], centres, levels)
    return Design(*parts, graph.components, regressions, graph.isolated)


def _groups(graph: Graph, own: Floats, levels: tuple[float, ...]) -> Floats:
    """Return own, neighbours' and second neighbours' features, and smoothed ones."""
    if not own.shape[1]:
        return np.stack([own] * (3 + len(levels)))
    neighbours = multiply(graph, own)
    return np.stack([own, neighbours, multiply(graph, neighbours), *(smooth(graph, own, alpha) for alpha in levels)])


def _regressions(raw: Floats, own: Floats, isolated: Bools) -> Floats:
    """Return the coefficients (k, p) of groups on own features, over the nodes that have neighbours."""
    return regress_on_own(
        own, isolated, lambda linked: np.array([np.einsum("ij,ij->j", group, linked) for group in raw])
    )


def regress_on_own(own: Floats, isolated: Bools, products: Callable[[Floats], Floats]) -> Floats:
    """Return coefficients (k, p) of sums over the graph on own features, each on its own, isolated nodes aside.

    Parameters
    ----------
    own : array of shape (n, p)
        Own features.
    isolated : bool array of shape (n,)
        Nodes without neighbours.
    products : callable
        Takes own features, 0 at isolated nodes, and returns their inner products (k, p) with the sums.
    """
    linked = np.where(isolated[:, None], 0.0, own) if isolated.any() else own
    squares = np.einsum("ij,ij->j", linked, linked)
    return np.asarray(products(linked) / np.where(squares > 0, squares, 1.0))


def predicted_by_own(sums: Floats, own: Floats, coefficients: Floats, isolated: Bools) -> Floats:
    """Return sums over the graph (k, n, p), at isolated nodes as predicted by own features; see `regress_on_own`."""
    return np.where(isolated[:, None], coefficients[:, None] * own, sums) if isolated.any() else sums


def _spread(centred: Floats, rows: Ints | None) -> Floats:
    r"""Return the units (k, p) of groups (k, n, p): standard deviations, infinite where they are rounding.

    No label tells the effect of a column that is constant over the labelled nodes `rows`. One node in 400 that differs
    would be twenty standard deviations `s` away, and its error bar as wide. So the unit is half the root mean square
    distance `d` of the nodes that differ, where that is more than `s`: where fewer than a quarter of the nodes do. Of
    a column with two equally frequent values it is `s` itself. With a small standard deviation :math:`s_L` at the
    labels the unit lies in between,

    .. math:: s + \max\Big(1 - \frac{s_L}{.1\,s},\,0\Big) \max\Big(\frac d2 - s,\,0\Big).

    Examples
    --------
    >>> rare = np.array([-0.1, -0.1, -0.1, -0.1, -0.1, -0.1, -0.1, -0.1, -0.1, 0.9])[None, :, None]
    >>> _spread(rare, None).round(3), _spread(rare, np.arange(5)).round(3)
    (array([[0.3]]), array([[0.5]]))
    """
    spread = np.sqrt(np.mean(centred**2, axis=1))
    for group, units in zip(centred, spread, strict=True) if rows is not None else ():
        known = group[rows]
        seen, usual = known.std(axis=0), known.mean(axis=0)
        for column in np.flatnonzero(seen < _SHOWN * units):
            distances = np.abs(group[:, column] - usual[column])
            far = distances[distances > _DIFFERENT * seen[column] + _FLAT]
            half = 0.5 * float(np.sqrt(np.mean(far**2))) if far.size else 0.0
            unshown = 1.0 - seen[column] / (_SHOWN * units[column])
            units[column] += unshown * max(half - units[column], 0.0)
    return np.where(spread <= _FLAT, np.inf, spread)


def with_distant(graph: Graph, made: Design, alpha: float, *, rows: Ints | None = None) -> Design:
    r"""Return the design with a fourth group: features of nodes three and more steps away, fading with the distance.

    .. math:: (I + \omega N)^{-1} X = (1 - \alpha)(X + \alpha SX + \alpha^2 S^2X) + \alpha^3 S^3 (I + \omega N)^{-1} X

    so with the group :math:`S^3 (I + \omega N)^{-1} X` the four span the linear graph convolution at that level.

    On a large graph nearly all sums over neighbours are small, and in their units what comes to one of a lonely pair is
    enormous. In the groups of neighbours such a node counts as one at the edge of what is usual, three times the median
    row norm; no feature is looked at for that. Isolated nodes have what own features predict; see `regressions`.
    Labelled nodes `rows` are as in `make_design`.
    """
    if not made.p:
        whole, units = np.concatenate([made.groups, made.groups[:1]]), np.vstack([made.scales, made.scales[:1]])
        return replace(made, groups=whole, scales=units, levels=(alpha,), plain=made)
    groups, scales, centres, own = [made.groups[0]], [made.scales[0]], [made.centres[0]], made.groups[0]
    raw = _neighbourhoods(graph, made, alpha)
    regressions = _regressions(raw, own, graph.isolated)
    raw = predicted_by_own(raw, own, regressions, graph.isolated)
    for group, unit in zip(raw, _units(made), strict=True):
        centres.append(group.mean(axis=0))
        centred = group - centres[-1]
        scale = _spread(centred[None], rows)[0]
        groups.append(centred / scale)
        scales.append(unit * scale)
    parts = (np.stack(groups), np.stack(scales), made.kept, made.means, np.stack(centres), (alpha,))
    return Design(*parts, made.components, regressions, made.isolated, made)


def _neighbourhoods(graph: Graph, made: Design, alpha: float) -> Floats:
    """Return the features of neighbours, of second neighbours and from farther away, unusual row norms damped."""
    raw = [made.groups[1], made.groups[2], _far(graph, made.groups[0], alpha)]
    return np.stack([group * damping for group, damping in zip(raw, _damping(graph, made, alpha), strict=True)])


def _units(made: Design) -> list[Floats]:
    """Return the scales of what `_neighbourhoods` starts from."""
    return [made.scales[1], made.scales[2], made.scales[0]]


def _far(graph: Graph, X: Floats, alpha: float, *, tolerance: float | None = None) -> Floats:
    far = smooth(graph, X, alpha, tolerance=tolerance)
    for _ in range(3):
        far = multiply(graph, far)
    return far


def norm_probes(made: Design) -> Floats:
    """Return Rademacher probes for row norms, in the order of the features."""
    return made.norm_signs.astype(np.float64)


def _damping(graph: Graph, made: Design, alpha: float) -> list[Floats]:
    """Return, for the groups of neighbours, factors (n, 1) that bring unusual row norms back to what is usual."""
    Z = norm_probes(made)
    first = multiply(graph, Z)
    return [damped(image) for image in (first, multiply(graph, first), _far(graph, Z, alpha, tolerance=1e-3))]


def damped(image: Floats) -> Floats:
    """Return factors (n, 1) for the rows of a map over the graph, from its image of Rademacher probes."""
    size = np.sqrt(np.mean((image - image.mean(axis=0)) ** 2, axis=1, keepdims=True))
    usual = _MOST_NORM * float(np.median(size))
    return np.minimum(1.0, usual / np.maximum(size, usual)) if usual > 0 else np.ones_like(size)


def component_sizes(graph: Graph) -> Ints:
    """Return the number of nodes (n,) of the connected component of every node."""
    return np.bincount(graph.components)[graph.components]


def _between(n: int, budget: tuple[int, int, int]) -> int:
    """Return a number of random vectors: fewer on larger graphs, where one says more."""
    total, least, most = budget
    return int(np.clip(total // max(n, 1), least, most))


@dataclass(frozen=True, eq=False)
class LabelledGraph:
    """A graph and its labelled nodes, with what does not depend on the strength of the field.

    Attributes
    ----------
    graph : Graph
        The graph.
    rows : integer array of shape (m,)
        The labelled nodes.
    seed : int
        Seed of random vectors.
    unit_variance : bool
        Whether the field has the same variance at all nodes.
    """

    graph: Graph
    rows: Ints
    seed: int = 0
    unit_variance: bool = True
    _kept: dict[Any, Any] = field(default_factory=dict, repr=False)
    """What depends on graph and seed alone: copies with other labels have it, too."""

    def _once(self, name: Any, make: Callable[[], _Made]) -> _Made:
        if name not in self._kept:
            self._kept[name] = make()
        return cast("_Made", self._kept[name])

    @property
    def probes(self) -> Floats:
        """Rademacher probes for determinants."""
        n = self.graph.n_nodes
        count = _between(n, _DETERMINANT_PROBES) if n > precision.DENSE_LIMIT else 0
        return self._once("probes", lambda: rademacher(n, count, self.seed))

    @property
    def quadrature(self) -> LanczosQuadrature:
        r"""Estimates of functions of the spectrum of `N`."""
        return self._once("quadrature", lambda: lanczos_quadrature(self.graph, self.probes))

    def variance(self, omega: float) -> Floats:
        r"""Return the diagonal of :math:`(I + \omega N)^{-1}`, shape (n,).

        Beyond small graphs it is drawn at powers of 4 of omega, with the same noise, and interpolated in between.
        """
        if self.graph.n_nodes <= precision.DENSE_LIMIT:
            return self._variance(omega)
        place = float(np.log(omega)) / _KNOT
        low = int(np.floor(place))
        share = place - low
        return np.asarray(np.exp((1.0 - share) * self._knot(low) + share * self._knot(low + 1)))

    def _knot(self, k: int) -> Floats:
        return self._once(k, lambda: np.log(self._variance(float(np.exp(k * _KNOT)))))

    def _variance(self, omega: float) -> Floats:
        n = self.graph.n_nodes
        A = ConditionalPrecision(self.graph, np.zeros(n, dtype=np.bool_), omega / (1.0 + omega))
        return A.inverse_diagonal(
            probes=_between(n, _VARIANCE_DRAWS), seed=self.seed, tolerance=_KNOT_TOLERANCE, noise=self._noise
        )

    @property
    def _noise(self) -> NoiseBlocks | None:
        """The noise of all draws, which every knot has the same; None where it is too much to keep, or not needed."""
        n, probes = self.graph.n_nodes, _between(self.graph.n_nodes, _VARIANCE_DRAWS)
        if n <= precision.DENSE_LIMIT or n * probes > _VARIANCE_DRAWS[0]:
            return None
        return self._once("noise", lambda: list(precision_noise(self.graph, probes, self.seed)))

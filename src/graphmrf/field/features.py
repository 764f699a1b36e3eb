r"""Features as the field sees them: own and neighbours' means, on one robust scale.

A column is centred at its median and divided by its interquartile range; what lies more than three such units from the
median is drawn in logarithmically, so that one wild cell moves its own prediction and no coefficient. With 5 % of its
cells out there a column begins to be skewed, and from 7.5 % on the normal scores of their ranks take the place of its
values; between, they are mixed, so that no cell that crosses a line moves all others at once. Then the column is
standardised, and its mean over the neighbours of a node, :math:`D^{-1} W X`, is standardised likewise. A
node without neighbours has the overall mean there.

More than a dozen columns of two values are levels of categories, words or tags. They stay 0 and 1, so that a rare level
has the same prior as a frequent one, and take part in terms of their own and in learned effects only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.special import ndtri

from graphmrf.caching import cached_property
from graphmrf.graph import Graph
from graphmrf.linalg.factor import core_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from graphmrf._typing import Bools, Floats, Ints

_TAIL = 3.0
"""Robust standard deviations beyond which a cell grows with its logarithm only."""

MOST_DUMMIES = 12
"""Columns of two values that are features like all others; more are levels of categories."""

_SKEWED = (0.05, 0.075)
"""Shares of cells beyond the tail where a column begins to be skewed, and is: of a Laplace distribution it is 4.8 %."""

_NORMAL_RANGE = 1.349
"""Interquartile range of a normal variable in standard deviations."""


@dataclass(frozen=True, eq=False)
class ColumnScale:
    """Location and scale of raw columns, and mean and standard deviation after their tails are drawn in.

    `scores` has the different values of a skewed column and their normal scores, in increasing order, and `skewness`
    their part, from 0 to 1. `spread` is what values are divided by; one over `unit` is the slope of the result, of
    normal scores that of a least-squares fit on the values. `levels` are the columns of 0 and 1 that are apart; their
    spread makes the mean row of squares their number.
    """

    middle: Floats
    spread: Floats
    unit: Floats
    mean: Floats
    std: Floats
    varies: Bools
    skewness: Floats
    scores: Mapping[int, tuple[Floats, Floats]]
    levels: Bools

    @classmethod
    def of(cls, X: Floats, groups: tuple[str, ...] = ()) -> ColumnScale:
        """Return the scale of the columns of a table without missing cells; `groups` are their categories."""
        low, middle, high = np.percentile(X, [25, 50, 75], axis=0) if X.size else np.zeros((3, X.shape[1]))
        rounding = 16 * np.finfo(np.float64).eps * np.abs(X).max(axis=0, initial=0.0)
        varies = np.ptp(X, axis=0) > rounding if X.size else np.zeros(X.shape[1], dtype=np.bool_)
        half = np.abs(X - middle).max(axis=0, initial=0.0)
        whole = half * np.sqrt(np.mean(((X - middle) / np.where(half > 0, half, 1.0)) ** 2, axis=0))
        spread = np.where(high - low > rounding, (high - low) / _NORMAL_RANGE, whole)
        spread = np.where(varies, spread, 1.0)
        levels = varies & ((X.min(axis=0, initial=np.inf) == X) | (X.max(axis=0, initial=-np.inf) == X)).all(axis=0)
        levels &= levels.sum() > MOST_DUMMIES
        varies &= ~levels
        skewness = np.where(varies, _skewness((X - middle) / spread), 0.0)
        middle, spread = _level_units(X, levels, middle, spread, _named(groups, levels))
        scores = {int(j): _normal_scores(X[:, j]) for j in np.flatnonzero(skewness)}
        zero, one = np.zeros(spread.size), np.ones(spread.size)
        plain = cls(middle, spread, spread, zero, one, varies, skewness, scores, levels)
        drawn, slope = plain._drawn(X), 1.0 / spread
        for j, (values, ranked) in scores.items():
            about = X[:, j] - X[:, j].mean()
            steep = float(about @ np.interp(X[:, j], values, ranked) / (about @ about))
            slope[j] = (1.0 - skewness[j]) / spread[j] + skewness[j] * steep
        std = drawn.std(axis=0)
        found = replace(plain, unit=1.0 / slope, mean=drawn.mean(axis=0), std=np.where(varies, std, 1.0))
        return replace(found, varies=varies & (std > 0))

    def _drawn(self, X: Floats) -> Floats:
        drawn = _draw_in((X - self.middle) / self.spread)
        for j, (values, scores) in self.scores.items():
            drawn[:, j] += self.skewness[j] * (np.interp(X[:, j], values, scores) - drawn[:, j])
        return drawn

    def __call__(self, X: Floats) -> Floats:
        """Return standardised columns of those that vary."""
        return np.ascontiguousarray(((self._drawn(X) - self.mean) / self.std)[:, self.varies])

    def of_levels(self, X: Floats) -> Floats:
        """Return the columns of levels: 0, or what makes the mean row of squares their number."""
        return np.ascontiguousarray(((X - self.middle) / self.spread)[:, self.levels])


def _named(groups: tuple[str, ...], levels: Bools) -> tuple[str, ...]:
    """Return the category of each column of levels, empty where it has none."""
    return tuple(name for name, own in zip(groups or [""] * levels.size, levels, strict=True) if own)


def _level_units(
    X: Floats, levels: Bools, middle: Floats, unit: Floats, groups: tuple[str, ...]
) -> tuple[Floats, Floats]:
    """Return origins and units with those of levels: a mean row of each category has as many squares as columns."""
    middle, unit, columns = middle.copy(), unit.copy(), np.flatnonzero(levels)
    for group in dict.fromkeys(groups):
        own = columns[[name == group for name in groups]]
        low, high = X[:, own].min(axis=0), X[:, own].max(axis=0)
        ones = float((X[:, own] == high).sum(axis=1).mean())
        middle[own], unit[own] = low, (high - low) * np.sqrt(ones / own.size)
    return middle, unit


def _skewness(z: Floats) -> Floats:
    """Return the part of normal scores in every column; a cell within half a unit of the tail counts in part."""
    low, high = _SKEWED
    beyond = np.clip(np.abs(z) - _TAIL + 0.5, 0.0, 1.0)
    return np.asarray(np.clip((beyond.mean(axis=0) - low) / (high - low), 0.0, 1.0)) if z.size else np.zeros(z.shape[1])


def _normal_scores(values: Floats) -> tuple[Floats, Floats]:
    """Return the different values, and the normal quantiles of their middle ranks."""
    different, counts = np.unique(values, return_counts=True)
    return different, np.asarray(ndtri((np.cumsum(counts) - 0.5 * counts) / values.size))


def _draw_in(z: Floats) -> Floats:
    far = np.maximum(np.abs(z) - _TAIL, 0.0)
    return np.asarray(np.clip(z, -_TAIL, _TAIL) + np.sign(z) * np.log1p(far))


def neighbour_means(graph: Graph, X: Floats) -> Floats:
    """Return the weighted mean of each column over the neighbours of every node; 0 for a node without neighbours.

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> neighbour_means(Graph.from_edges([0, 1], [1, 2], n_nodes=4), np.array([[1.0], [2.0], [5.0], [7.0]])).ravel()
    array([2., 3., 2., 0.])
    """
    degrees = np.where(graph.isolated, 1.0, graph.degrees)
    return np.asarray(sparse.csr_array(graph.adjacency) @ X) / degrees[:, None]


@dataclass(frozen=True, eq=False)
class Design:
    r"""Standardised features of all nodes of a graph.

    Attributes
    ----------
    graph : Graph
        The graph.
    scale : ColumnScale
        How raw features become standardised ones.
    own, neighbours : arrays of shape (n, p)
        A node's own features and the means of its neighbours; columns of the fitted graph have mean 0 and variance 1.
    centre, spread : arrays of shape (p,)
        Mean and standard deviation of neighbours' means before they were standardised.
    wider : array of shape (n, p + 2 + q)
        Means of second neighbours; log degree of a node, and its mean over neighbours; neighbours' means of levels.
    levels : array of shape (n, q)
        Columns of levels of categories.
    learned : array of shape (n, 1), or (n, 0) where there is no learner
        Column of learned effects, see `with_learned`.
    times : array of shape (n, T), or (n, 0) where there are no times
        Columns of the effects of the times of a panel, see `TimeProduct.walk`.
    learner : callable, optional
        What predicts that column at other nodes.
    groups : tuple of str
        The category of each column of levels; empty for other columns of two values.
    """

    graph: Graph
    scale: ColumnScale
    own: Floats
    neighbours: Floats
    centre: Floats
    spread: Floats
    wider: Floats
    levels: Floats
    learned: Floats
    times: Floats
    learner: Callable[[Design], Floats] | None = None
    groups: tuple[str, ...] = ()

    @classmethod
    def of(cls, graph: Graph, X: Floats, groups: tuple[str, ...] = ()) -> Design:
        """Return the design of the graph that the field is fitted on; `groups` are the categories of columns."""
        scale = ColumnScale.of(X, groups)
        own, levels = scale(X), scale.of_levels(X)
        means = neighbour_means(graph, own)
        linked = means[~graph.isolated] if not graph.isolated.all() else means
        centre, spread = linked.mean(axis=0), linked.std(axis=0)
        spread = np.where(spread > 1e-12, spread, np.inf)
        none, product = np.zeros((len(own), 0)), graph.product
        times = none if product is None else np.tile(product.walk, (product.space.n_nodes, 1))
        plain = cls(graph, scale, own, own, centre, spread, _wider(graph, means, levels), levels, none, times)
        named = _named(groups, scale.levels)
        return replace(plain, neighbours=plain._standardised(graph, means), groups=named)

    def on(self, graph: Graph, X: Floats) -> Design:
        """Return the design of another graph, or of other features, on the scale of this one."""
        own, levels = self.scale(X), self.scale.of_levels(X)
        means = neighbour_means(graph, own)
        found = replace(self, graph=graph, own=own, neighbours=self._standardised(graph, means))
        times = self.times if graph is self.graph else np.zeros((len(own), self.times.shape[1]))
        wider = _wider(graph, means, levels)
        found = replace(found, wider=wider, levels=levels, learned=np.zeros((len(own), 0)), times=times)
        return found if self.learner is None else replace(found, learned=self.learner(found))

    def at(self, nodes: Ints, graph: Graph) -> Design:
        """Return the rows of some nodes, which are those of a part of the graph."""
        rows: dict[str, Any] = {name: getattr(self, name)[nodes] for name in _BY_NODE}
        return replace(self, graph=graph, **rows)

    def above(self, other: Design) -> Design:
        """Return the features of two sets of nodes one below the other; the graph is the first's."""
        rows: dict[str, Any] = {name: np.vstack([getattr(self, name), getattr(other, name)]) for name in _BY_NODE}
        return replace(self, **rows)

    def _standardised(self, graph: Graph, means: Floats) -> Floats:
        """Return neighbours' means on the scale of the fitted graph, 0 at isolated nodes."""
        return np.asarray((np.where(graph.isolated[:, None], self.centre, means) - self.centre) / self.spread)

    @property
    def p(self) -> int:
        """Number of features that vary."""
        return int(self.own.shape[1])

    @cached_property
    def both(self) -> Floats:
        """Own and neighbours' features side by side, shape (n, 2 p): the arguments of nonlinear functions."""
        return np.hstack([self.own, self.neighbours])

    @property
    def learnable(self) -> Floats:
        """What a learner sees, shape (n, 3 p + 2 + 2 q)."""
        return np.hstack([self.both, self.wider, self.levels])


_BY_NODE = ("own", "neighbours", "wider", "levels", "learned", "times")


def _wider(graph: Graph, means: Floats, levels: Floats) -> Floats:
    """Return means of second neighbours, log degrees, and the means over neighbours of these and of levels."""
    degrees = np.log1p(graph.degrees)[:, None]
    return np.hstack([neighbour_means(graph, means), degrees, neighbour_means(graph, np.hstack([degrees, levels]))])


def graph_features(graph: Any) -> pd.DataFrame:
    """Return features that describe each node's role in the graph, for outcomes in which neighbours differ.

    Parameters
    ----------
    graph : Graph, or a graph of SciPy (sparse), NetworkX or igraph
        The graph; edge weights play no part.

    Returns
    -------
    DataFrame of shape (n, 5)
        Indexed by the ids of the nodes where there are some. `log_degree`: log of 1 plus the number of neighbours;
        `log_core`: the same of the core number; `clustering`: share of the pairs of neighbours that are joined;
        `neighbours_log_degree` and `neighbours_spread`: mean and standard deviation of the neighbours' `log_degree`.
        The last three are 0 for nodes without neighbours.

    Examples
    --------
    >>> triangle_and_tail = Graph.from_edges([0, 1, 0, 2], [1, 2, 2, 3])
    >>> graph_features(triangle_and_tail)[["log_degree", "clustering"]].round(2)
       log_degree  clustering
    0        1.10        1.00
    1        1.10        1.00
    2        1.39        0.33
    3        0.69        0.00
    """
    graph = Graph.wrap(graph)
    links = sparse.csr_array(graph.adjacency, copy=True)
    links.data = np.ones(links.nnz)
    counts = np.diff(links.indptr)
    each = np.maximum(counts, 1)
    degrees = np.log1p(counts)
    mean, square = (np.asarray(links @ values) / each for values in (degrees, degrees**2))
    found = {
        "log_degree": degrees,
        "log_core": np.log1p(core_numbers(links)),
        "clustering": _triangles(links, counts) / np.maximum(counts * (counts - 1) / 2, 1),
        "neighbours_log_degree": mean,
        "neighbours_spread": np.sqrt(np.maximum(square - mean**2, 0.0)),
    }
    return pd.DataFrame(found, index=pd.RangeIndex(graph.n_nodes) if graph.ids is None else graph.ids)


def order_by_content(graph: Graph, X: Floats) -> Ints:
    """Return the nodes in an order of what they are, not of where they stand: draws are the same in any order."""
    known = np.nan_to_num(X, nan=-np.inf)
    around = graph.adjacency @ np.nan_to_num(X)
    return np.lexsort(np.column_stack([graph.degrees, around, known]).T)


def _triangles(links: sparse.csr_array, counts: Ints) -> Floats:
    """Return the triangles at every node, by edges from fewer neighbours to more: hubs have few of these."""
    rank = np.empty(counts.size, dtype=np.int64)
    rank[np.lexsort((np.arange(counts.size), counts))] = np.arange(counts.size)
    u, v = links.nonzero()
    ahead = rank[u] < rank[v]
    L = sparse.csr_array((np.ones(int(ahead.sum())), (u[ahead], v[ahead])), shape=links.shape)
    ends, middles = (L @ L) * L, (L.T @ L) * L
    return np.asarray(ends.sum(axis=1) + ends.sum(axis=0) + middles.sum(axis=1))

r"""Random subsets of nodes, and cross-validation folds as far from labels as the nodes to predict (NNDM on a graph).

Folds at random hold out labels that lie among other labels. Where whole regions have no labels, as under clouds, they
overstate the accuracy of predictions in those regions. Here held-out sets are regions of the graph, of a
size such that the distances from held-out labels to the nearest label of another fold are distributed like the
distances from the nodes to predict to their nearest label (Mila and others, 2022; Linnenbrink and others, 2024: kNNDM).

Distances are steps along edges, compared on a logarithmic scale: :math:`\log_2 d`, and for a node that no label reaches
one doubling more than the largest distance. With F the distribution of held-out labels and G that of nodes to predict,
the Wasserstein distance is :math:`\int |F - G|`. Regions can only move F outwards, so they can reduce the distance by
at most the excess :math:`\int (F - G)_+`: the part by which nodes to predict lie farther out.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import t as student

from graphmrf.caching import cached_property
from graphmrf.errors import InvalidInputError, refuses_former_options
from graphmrf.text import count

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.graph import Graph

# Significance level of the tests for regions instead of random folds, and for the note on extrapolation.
_LEVEL = 0.001
_REGIONS = "accuracy is measured on held-out regions, because the values to predict lie in regions without labels"


@dataclass(frozen=True, eq=False)
class MatchedFolds:
    """Folds of the labelled nodes, with the distances that they imitate and those that they have.

    Attributes
    ----------
    folds : integer array of shape (n_labelled,)
        Fold of every labelled node, in node order.
    distances : array of shape (n_labelled,)
        Steps from each labelled node to the nearest label of another fold; infinite where none is connected, NaN where
        the edges are with the workers of a cluster.
    target : array of shape (n_unlabelled,)
        Steps from each node to predict to its nearest label, in node order; infinite where none is connected.
    regions : integer array of shape (n_labelled,), or None
        Region of every labelled node, of those that were merged into folds; None for random folds.
    """

    folds: Ints
    distances: Floats
    target: Floats
    regions: Ints | None = None

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return int(self.folds.max()) + 1

    @property
    def is_random(self) -> bool:
        """Whether the folds are those of `assign_folds`."""
        return self.regions is None

    @cached_property
    def weights(self) -> Floats:
        """Weights (n_labelled,) of mean 1 with which held-out labels are as far from labels as nodes to predict.

        All are 1 for random folds. Otherwise distances are grouped by doublings (1, 2 to 3, 4 to 7, ...), farther
        groups joined until each has a held-out label for every fold; a group weighs as much as it has nodes to predict.
        """
        if self.is_random:
            return np.ones(self.folds.size)
        edges = self.group_edges(self.n_folds)
        held, wanted = (np.searchsorted(edges, each, side="right") for each in (self.distances, self.target))
        counts, sizes = np.bincount(held, minlength=edges.size + 1), np.bincount(wanted, minlength=edges.size + 1)
        weights = (sizes / np.maximum(counts, 1))[held]
        return np.asarray(weights / weights.mean())

    def group_edges(self, least: int) -> Floats:
        """Return lower ends of groups of distances but the nearest: doublings, joined to have `least` labels each."""
        finite = self.distances[np.isfinite(self.distances)].max(initial=1.0)
        edges: list[float] = []
        above = 0
        for edge in np.append(2.0 ** np.arange(1, int(np.log2(finite)) + 1), np.inf)[::-1]:
            held = int(np.count_nonzero(self.distances >= edge))
            if held - above >= least and self.distances.size - held >= least:
                edges, above = [float(edge), *edges], held
        return np.array(edges)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on how accuracy was measured; none where holes are random and nothing lies far away."""
        return tuple(note for note in (None if self.is_random else _REGIONS, self.extrapolation) if note)

    @property
    def extrapolation(self) -> str | None:
        """Sentence on nodes to predict that lie farther from labels than any held-out label does; None if by chance.

        By chance: if nodes to predict and held-out labels had the same distribution, all of the farthest nodes would be
        nodes to predict with a probability above .001.
        """
        largest = float(self.distances.max(initial=0.0))
        beyond = int(np.count_nonzero(self.target > largest))
        places, ours = np.arange(beyond), self.target.size
        chance = np.exp(np.sum(np.log(ours - places) - np.log(ours + self.distances.size - places)))
        if not beyond or chance > _LEVEL:
            return None
        return _extrapolation(beyond, self.target, largest)


@refuses_former_options
def distance_matched_folds(graph: Graph, known: Bools, n_folds: int = 5, *, random_state: int = 0) -> MatchedFolds:
    """Folds whose held-out labels are as far from other labels as the nodes to predict are from labels.

    Candidates are connected regions of the graph, few large ones up to one for every label, merged at random into
    folds of similar size; the one whose distances are nearest to those of the nodes to predict is used. Random folds,
    those of `assign_folds`, are used unless nodes to predict lie farther from labels than chance explains: by more
    than the standard error, and by more than when as many labels are drawn at random.

    Parameters
    ----------
    graph : Graph
        The graph. Edge weights play no part; where the edges are with the workers of a cluster, folds are random.
    known : bool array of shape (n,)
        The labelled nodes, at least 2. All others are to be predicted.
    n_folds : int, default 5
        Wanted number of folds, at least 2; the number of labelled nodes if that is smaller.
    random_state : int, default 0
        Seed of all draws.

    Raises
    ------
    InvalidInputError
        If there are fewer than 2 labelled nodes or folds.

    Examples
    --------
    >>> import numpy as np
    >>> from graphmrf.graph import Graph
    >>> path = Graph.from_edges(np.arange(99), np.arange(1, 100))
    >>> half = np.arange(100) < 50                               # the other half is to be predicted
    >>> matched = distance_matched_folds(path, half, n_folds=2)
    >>> matched.is_random, int(matched.distances.max()), int(matched.target.max())
    (False, 33, 50)
    >>> alternate = np.arange(100) % 2 == 0
    >>> distance_matched_folds(path, alternate, n_folds=2).is_random
    True
    """
    latest, key = graph.derived(_latest), (np.packbits(known).tobytes(), n_folds, random_state)
    if key not in latest:
        found = _match(graph, known, n_folds, random_state)
        latest.clear()
        latest[key] = found
    return latest[key]


def _latest(_: Graph) -> dict[tuple[bytes, int, int], MatchedFolds]:
    """Return a graph's cache of its latest folds, which all methods of a comparison share."""
    return {}


def steps_to_label(graph: Graph, known: Bools) -> Floats:
    """Return the steps (n,) from every node to the nearest labelled one: 0 at these, infinite where none is connected.

    Examples
    --------
    >>> import numpy as np
    >>> from graphmrf.graph import Graph
    >>> steps_to_label(Graph.from_edges([0, 1], [1, 2], n_nodes=4), np.array([True, False, False, False]))
    array([ 0.,  1.,  2., inf])
    """
    labelled = np.flatnonzero(known)
    return np.asarray(_nearest_colours(graph, labelled, np.zeros_like(labelled), slots=1)[1][0])


def _match(graph: Graph, known: Bools, n_folds: int, random_state: int) -> MatchedFolds:
    labelled = np.flatnonzero(known)
    folds = assign_folds(labelled.size, n_folds, random_state=random_state)
    if graph.is_remote:
        return MatchedFolds(folds, np.full(folds.size, np.nan), np.empty(0))
    plain = MatchedFolds(folds, *_distances(graph, labelled, folds))
    rng = np.random.default_rng([random_state, 1])
    if not plain.target.size or _holes_are_random(graph, plain, rng):
        return plain
    return _nearest(graph, labelled, plain, rng)


def _nearest(graph: Graph, labelled: Ints, plain: MatchedFolds, rng: np.random.Generator) -> MatchedFolds:
    """Return the folds whose distances are nearest to those wanted, of random ones and of ever smaller regions.

    The first have a region for every fold, the next twice as many, until the distance has not improved twice in a row.
    """
    far, q = _far(plain.distances, plain.target), plain.n_folds
    tried: list[tuple[float, MatchedFolds]] = []
    while q < labelled.size and (len(tried) < 3 or tried[-1][0] < tried[-2][0] or tried[-2][0] < tried[-3][0]):
        folds, regions = _region_folds(graph, labelled, q, plain.n_folds, rng)
        matched = MatchedFolds(folds, *_distances(graph, labelled, folds), regions)
        tried.append((_wasserstein(matched, far), matched))
        q *= 2
    return min([(_wasserstein(plain, far), plain), *tried], key=lambda pair: pair[0])[1]


def _holes_are_random(graph: Graph, plain: MatchedFolds, rng: np.random.Generator, *, draws: int = 9) -> bool:
    """Whether nodes to predict lie farther out than labels of random folds by no more than chance explains.

    Student's distribution allows for so few draws.
    """
    far = _far(plain.distances, plain.target)
    gaps, widths = _gaps(plain, far)
    sampling = sum(_position(each, far).var() / each.size for each in (plain.distances, plain.target))
    if np.maximum(gaps, 0.0) @ widths <= np.sqrt(sampling):
        return True
    labels = (np.sort(rng.permutation(graph.n_nodes)[: plain.folds.size]) for _ in range(draws))
    random = (MatchedFolds(plain.folds, *_distances(graph, each, plain.folds)) for each in labels)
    drawn = np.array([_shift(each, far) for each in random])
    bound = student.ppf(1.0 - _LEVEL, draws - 1) * drawn.std(ddof=1) * np.sqrt(1.0 + 1.0 / draws)
    return bool(_shift(plain, far) <= drawn.mean() + bound)


def _region_folds(
    graph: Graph, labelled: Ints, q: int, n_folds: int, rng: np.random.Generator, *, draws: int = 5
) -> tuple[Ints, Ints]:
    """Return folds of `q` regions or more, and the regions; of some draws the first that is balanced.

    That is one in which no fold exceeds its share by half; otherwise the most balanced of them.
    """
    drawn: list[tuple[int, Ints, Ints]] = []
    for _ in range(draws):
        regions = _regions(graph, labelled, q, rng)
        folds = _merged(regions, n_folds, rng)
        drawn.append((int(np.bincount(folds).max()), folds, regions))
        if drawn[-1][0] <= 1.5 * labelled.size / n_folds:
            break
    return min(drawn, key=lambda each: each[0])[1:]


def _regions(graph: Graph, labelled: Ints, q: int, rng: np.random.Generator) -> Ints:
    """Return the region of every label: Voronoi cells of `q` labels, and components that have none of them."""
    seeds = rng.permutation(labelled)[:q]
    cells = _nearest_colours(graph, seeds, np.arange(q), slots=1)[0][0][labelled]
    regions = np.where(cells >= 0, cells, q + graph.components[labelled])
    return np.unique(regions, return_inverse=True)[1].reshape(-1)


def _merged(regions: Ints, n_folds: int, rng: np.random.Generator) -> Ints:
    """Return folds made of regions: the largest first, each to the fold with the fewest labels, ties at random."""
    sizes = np.bincount(regions)
    shuffled = rng.permutation(sizes.size)
    order = shuffled[np.argsort(-sizes[shuffled], kind="stable")]
    heap = [(0, float(draw), fold) for fold, draw in enumerate(rng.random(n_folds))]
    heapq.heapify(heap)
    fold_of = np.empty(sizes.size, dtype=np.int64)
    for region, draw in zip(order.tolist(), rng.random(order.size).tolist(), strict=True):
        size, _, fold = heap[0]
        fold_of[region] = fold
        heapq.heapreplace(heap, (size + int(sizes[region]), draw, fold))
    return fold_of[regions]


def _distances(graph: Graph, labelled: Ints, folds: Ints) -> tuple[Floats, Floats]:
    """Return steps from each label to the nearest of another fold, and from each other node to its nearest label."""
    _, (nearest, second) = _nearest_colours(graph, labelled, folds)
    hidden = np.ones(graph.n_nodes, dtype=bool)
    hidden[labelled] = False
    return second[labelled], nearest[hidden]


def _nearest_colours(graph: Graph, sources: Ints, colours: Ints, *, slots: int = 2) -> tuple[Ints, Floats]:
    """Return the one or two nearest colours of every node (slots, n), -1 for none, and the steps to them (slots, n).

    Breadth-first search from all sources at once, in which a node is visited by no more colours than that. A source
    has its own colour at 0 steps.
    """
    colour, steps = np.full((slots, graph.n_nodes), -1), np.full((slots, graph.n_nodes), np.inf)
    colour[0, sources], steps[0, sources] = colours, 0.0
    nodes, carried, step = sources, np.asarray(colours), 0
    arrival = np.empty(graph.n_nodes, dtype=np.int64)
    while nodes.size:
        step += 1
        nodes, carried = _neighbours(graph, nodes, carried)
        reached = []
        for slot in range(slots):
            new = (colour[slot, nodes] < 0) & (slot == 0 or colour[0, nodes] != carried)
            each = _last_arrivals(nodes[new], arrival)
            colour[slot, nodes[new][each]], steps[slot, nodes[new][each]] = carried[new][each], step
            reached.append((nodes[new][each], carried[new][each]))
        nodes, carried = (np.concatenate(both) for both in zip(*reached, strict=True))
    return colour, steps


def _last_arrivals(nodes: Ints, scratch: Ints) -> Bools:
    """Return a mask of the last place of every node in a list, given an array (n,) to write to."""
    places = np.arange(nodes.size)
    scratch[nodes] = places
    return np.asarray(scratch[nodes] == places)


def _neighbours(graph: Graph, nodes: Ints, carried: Ints) -> tuple[Ints, Ints]:
    """Return the neighbours of all nodes, one after the other, and the value that each node passes to them."""
    starts, counts = graph.indptr[nodes], np.diff(graph.indptr)[nodes]
    ends = np.cumsum(counts)
    places = np.repeat(starts - ends + counts, counts) + np.arange(ends[-1] if ends.size else 0)
    return graph.indices[places], np.repeat(carried, counts)


def _far(*distances: Floats) -> float:
    """Return the position of a node that is not connected: one doubling more than the largest distance."""
    pooled = np.concatenate(distances)
    return 1.0 + float(np.log2(pooled[np.isfinite(pooled)].max(initial=1.0)))


def _position(distances: Floats, far: float) -> Floats:
    return np.minimum(np.log2(distances), far)


def _gaps(matched: MatchedFolds, far: float) -> tuple[Floats, Floats]:
    """Return F - G on each step of the two distributions, and the widths of the steps."""
    held, target = (np.sort(_position(each, far)) for each in (matched.distances, matched.target))
    support = np.unique(np.concatenate([held, target]))
    F, G = (np.searchsorted(each, support[:-1], side="right") / each.size for each in (held, target))
    return F - G, np.diff(support)


def _wasserstein(matched: MatchedFolds, far: float) -> float:
    gaps, widths = _gaps(matched, far)
    return float(np.abs(gaps) @ widths)


def _shift(matched: MatchedFolds, far: float) -> float:
    """Return by how many doublings nodes to predict lie farther out than held-out labels, on average."""
    gaps, widths = _gaps(matched, far)
    return float(gaps @ widths)


def _extrapolation(beyond: int, target: Floats, largest: float) -> str:
    unreached, farthest = int(np.count_nonzero(np.isinf(target))), target[np.isfinite(target)].max(initial=0.0)
    nodes = f"{beyond:,} of {target.size:,} nodes to predict lie farther from the nearest label"
    parts = [f"up to {farthest:.0f} steps"] if farthest > largest else []
    parts += [f"{unreached:,} not connected to any"] if unreached else []
    held = f"any held-out label did from the others (at most {count(int(largest), 'step')})"
    return f"{nodes} ({', '.join(parts)}) than {held}; their accuracy and intervals are extrapolated"


@refuses_former_options
def split(nodes: int | Bools, fraction: float, *, random_state: int = 0) -> Bools:
    """Mask of a random part of the nodes, ``ceil(fraction * count)`` of them.

    Parameters
    ----------
    nodes : int or bool array of shape (n,)
        The number of nodes, or the mask of the nodes to draw from.
    fraction : float
        Part of them to draw, in [0, 1].
    random_state : int
        Seed of the draw.

    Examples
    --------
    >>> split(10, 0.3).sum()
    np.int64(3)
    """
    if not 0 <= fraction <= 1:
        raise InvalidInputError(f"fraction must be in [0, 1], got {fraction}")
    mask = np.ones(nodes, dtype=bool) if isinstance(nodes, int) else np.asarray(nodes)
    if mask.dtype != bool or mask.ndim != 1:
        raise InvalidInputError(f"nodes must be a number or a bool array (n,), got {mask.dtype} {mask.shape}")
    candidates = np.flatnonzero(mask)
    count = math.ceil(fraction * candidates.size - 1e-9)  # 0.07 * 100 is 7.000000000000001
    drawn = np.zeros(mask.size, dtype=bool)
    drawn[np.random.default_rng(random_state).permutation(candidates)[:count]] = True
    return drawn


@refuses_former_options
def assign_folds(n_labelled: int, n_folds: int, *, random_state: int = 0) -> Ints:
    """Fold of every labelled node, 0 to ``n_folds - 1``, at random and of equal sizes (give or take one).

    With fewer labelled nodes than folds there is one fold for each of them. Unlike the ``KFold`` of scikit-learn it is
    one array, and for a seed the folds of all published numbers.

    Parameters
    ----------
    n_labelled : int
        Number of labelled nodes, at least 2.
    n_folds : int
        Wanted number of folds, at least 2.
    random_state : int
        Seed of the assignment.

    Examples
    --------
    >>> assign_folds(6, 3)
    array([0, 2, 2, 1, 0, 1])
    """
    if n_folds < 2:
        raise InvalidInputError(f"folds must be at least 2, got {n_folds}")
    if n_labelled < 2:
        raise InvalidInputError(
            f"cross-validation needs at least 2 labelled nodes, got {n_labelled}; label more, or give alpha a number"
        )
    return np.random.default_rng(random_state).permutation(np.arange(n_labelled) % min(n_folds, n_labelled))


@refuses_former_options
def assign_strata(codes: Ints, n_folds: int, *, random_state: int = 0) -> Ints:
    """Fold of every labelled node, at random, such that classes and folds are spread evenly (give or take one).

    Parameters
    ----------
    codes : integer array of shape (n_labelled,)
        Class of every labelled node; each has at least `n_folds` members.
    n_folds, random_state : int
        As in `assign_folds`.

    Examples
    --------
    >>> import numpy as np
    >>> assign_strata(np.array([0, 0, 1, 1, 1, 1]), 2)
    array([0, 1, 1, 0, 1, 0])
    """
    if n_folds < 2:
        raise InvalidInputError(f"folds must be at least 2, got {n_folds}")
    shuffled = np.random.default_rng(random_state).permutation(codes.size)
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    folds = np.empty(codes.size, dtype=np.int64)
    folds[by_class] = np.arange(codes.size) % n_folds
    return folds

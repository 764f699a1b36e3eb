"""What a report shows, checked; and its drawings of a graph: nodes or cells, outlines, colours, arrays for the page."""

import itertools
import math
import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from graphmrf._typing import Floats, Ints
from graphmrf.comparison import Prediction
from graphmrf.errors import InvalidInputError
from graphmrf.estimators.base import PROBABILITIES
from graphmrf.graph import Graph
from graphmrf.report.layout import positions
from graphmrf.text import count, decimals, number

Packed: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class PredictionReport:
    """Everything on one page.

    Raises InvalidInputError if there is no target, lengths differ from the number of nodes n, or coordinates are not
    finite.
    """

    title: str
    graph: Graph
    node_ids: Sequence[object]  # n identifiers
    targets: Sequence[Prediction]  # at least one; each gets its own section
    coordinates: Floats | None = None  # (n, 2): where to draw the nodes; computed from the graph by default
    shapes: Sequence[Sequence[Floats]] | None = None  # n outlines, each some rings (k, 2): nodes are drawn as areas
    features: pd.DataFrame | None = None  # (n, p): columns to show beside a node
    notes: Sequence[str] = ()  # what was done to the data, one line each
    # how the page was made; left out when empty
    command: str = ""
    version: str = ""

    def __post_init__(self) -> None:
        for problem in self._problems():
            raise InvalidInputError(problem)

    def _problems(self) -> Iterator[str]:
        n, found = self.graph.n_nodes, len(self.node_ids)
        if not self.targets:
            yield "a report needs at least one target, got none; add a Prediction"
        if found != n:
            yield f"node_ids must name all {n} nodes, got {found}; pass one id for each node"
        for each in self.targets:
            if (shape := np.shape(each.observed)) != (n,):
                yield f"target {each.name!r} must cover all {n} nodes, got shape {shape}; use NaN for unknown outcomes"
        for rows, given in (("shapes", self.shapes), ("features", self.features)):
            if given is not None and len(given) != n:
                yield f"{rows} must be of all {n} nodes, got {len(given)}"
        if self.coordinates is not None:
            yield from _problems_of_coordinates(self.coordinates, n)


def _problems_of_coordinates(coordinates: Floats, n: int) -> Iterator[str]:
    shape = np.shape(coordinates)
    if shape != (n, 2):
        yield f"coordinates must have shape ({n}, 2), got {shape}; pass x and y of every node"
    elif bad := int(np.sum(~np.isfinite(coordinates).all(axis=1))):
        yield f"coordinates must be finite, got {bad} nodes without; leave them out to have a layout computed"


@dataclass(frozen=True)
class GraphDrawing:
    """The places of a drawing: each a node, or a cell with many of them."""

    place: Ints  # (n,): place of every node
    xy: Floats  # (m, 2): where the places are
    edges: Ints  # (k, 2): edges that are drawn, between places
    size: float  # width of a cell; 0 where every node has a place of its own
    said: tuple[str, ...]  # a line for each thing that is not drawn as it is
    titles: tuple[tuple[str, float, float], ...] = ()  # texts, each above a place: the times of a panel

    @property
    def counts(self) -> Ints:
        """Nodes of every place."""
        return np.bincount(self.place, minlength=len(self.xy))

    def mean(self, values: Any) -> Floats:
        """The mean of the values of every place that are known; NaN where none is."""
        values = np.asarray(values, dtype=float)
        if not self.size:
            return np.asarray(values)
        known = np.isfinite(values)
        total = np.bincount(self.place[known], values[known], minlength=len(self.xy))
        with np.errstate(invalid="ignore"):
            return np.asarray(total / np.bincount(self.place[known], minlength=len(self.xy)))


def draw_graph(report: PredictionReport, *, max_nodes: int = 20_000, max_edges: int = 30_000) -> GraphDrawing:
    """Where every node is drawn: by itself, or with its neighbours in the plane in a cell of a grid.

    More nodes than `max_nodes`, of some 100 bytes each in the page, cannot be distinguished on a screen. The nodes of a
    panel are drawn once for each time, the times side by side and row by row.
    """
    graph, product, given = report.graph, report.graph.product, report.coordinates
    if product is None or report.shapes is not None:
        return _drawn_once(graph, given, max_nodes, max_edges, areas=report.shapes is not None)
    T = product.times.size
    once = _drawn_once(product.space, None if given is None else given[::T], max_nodes // T, max_edges // T)
    row, column = np.divmod(np.arange(T), math.ceil(math.sqrt(T)))
    low, high = once.xy.min(axis=0), once.xy.max(axis=0)
    shifts = np.where(high > low, high - low, 1.0) * np.stack([1.2 * column, -1.35 * row], axis=1)  # room for titles
    above = shifts + np.array([0.5 * (low[0] + high[0]), high[1]])
    return GraphDrawing(
        (once.place[:, None] * T + np.arange(T)).ravel(),
        (once.xy[:, None] + shifts).reshape(-1, 2),
        (once.edges[:, None] * T + np.arange(T)[:, None]).reshape(-1, 2),
        once.size,
        once.said,
        tuple((str(time), float(x), float(y)) for time, (x, y) in zip(product.times.astype(str), above, strict=True)),
    )


def _drawn_once(graph: Graph, given: Any, max_nodes: int, max_edges: int, *, areas: bool = False) -> GraphDrawing:
    """The drawing of a graph at the places given, or at those of a layout."""
    xy = np.asarray(positions(graph.adjacency, graph.components) if given is None else given, dtype=float)
    if graph.n_nodes > max_nodes:
        return _in_cells(xy, graph.n_nodes, graph.n_edges)
    nodes = np.arange(graph.n_nodes)
    if areas:
        return GraphDrawing(nodes, xy, np.empty((0, 2), np.int64), 0.0, ())
    if graph.n_edges > max_edges:
        said = (f"Its {count(graph.n_edges, 'edge')} are too many to be drawn.",)
        return GraphDrawing(nodes, xy, np.empty((0, 2), np.int64), 0.0, said)
    rows = np.repeat(nodes, np.diff(graph.indptr))
    upper = rows < graph.indices
    return GraphDrawing(nodes, xy, np.stack([rows[upper], graph.indices[upper]], axis=1), 0.0, ())


def _in_cells(xy: Floats, n_nodes: int, n_edges: int, *, cells: int = 110) -> GraphDrawing:
    """Nodes by cells of a square grid, each some 5 pixels wide and drawn with the means of its nodes."""
    low = xy.min(axis=0)
    size = float(np.ptp(xy, axis=0).max() / cells) or 1.0
    column, row = np.floor((xy - low) / size).astype(np.int64).T
    found, place = np.unique(row * (cells + 1) + column, return_inverse=True)
    centres = low + size * (np.stack([found % (cells + 1), found // (cells + 1)], axis=1) + 0.5)
    said = (
        f"The drawing shows means over {count(len(found), 'cell')} of a grid, because {count(n_nodes, 'node')} and "
        f"{count(n_edges, 'edge')} are too many to be drawn.",
    )
    return GraphDrawing(place, centres, np.empty((0, 2), np.int64), size, said)


def packed(values: Any, dtype: str) -> Packed:
    """An array as base64, so that a hundred thousand numbers stay small and exact."""
    return {"dtype": dtype[-2:], "data": b64encode(np.asarray(values).astype(dtype).tobytes()).decode("ascii")}


def shared_arrays(report: PredictionReport, drawing: GraphDrawing) -> Packed:
    """Identifiers, places, edges and outlines, once for all drawings of the page."""
    found = {
        "x": packed(drawing.xy[:, 0], "<f8"),
        "y": packed(drawing.xy[:, 1], "<f8"),
        "from": packed(drawing.edges[:, 0], "<i4"),
        "to": packed(drawing.edges[:, 1], "<i4"),
        "titles": list(drawing.titles),
    }
    if drawing.size:
        half = drawing.size / 2 * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
        squares = [[centre + half] for centre in drawing.xy]
        ids = [count(int(each), "node") for each in drawing.counts]
        return found | {"id": ids, "count": packed(drawing.counts, "<i4")} | _outlines(squares)
    ids = [str(each) for each in report.node_ids]
    return found | {"id": ids} | ({} if report.shapes is None else _outlines(report.shapes))


def _outlines(shapes: Any, *, grid: int = 30_000, most_points: int = 200_000) -> Packed:
    """Rings on a grid of whole numbers, one list for all: points of ring r are from `ring[r]`, of node k `shape[k]`.

    Steps of the grid are a fortieth of a pixel, within 16 bits; it is coarser beyond so many points, of 4 bytes each.
    """
    rings = [np.asarray(ring, dtype=float) for rings in shapes for ring in rings]
    points = np.concatenate(rings) if rings else np.zeros((1, 2))
    low = points.min(axis=0)
    unit = float(np.ptp(points, axis=0).max() / grid) or 1.0
    coarse = max(1, round(len(points) / most_points)) ** 2
    on_grid = [_thinned(np.rint((ring - low) / unit), coarse) for ring in rings]
    return {
        "shape": packed(np.cumsum([0, *(len(each) for each in shapes)]), "<i4"),
        "ring": packed(np.cumsum([0, *(len(ring) for ring in on_grid)]), "<i4"),
        "vertex": packed(np.concatenate([ring.ravel() for ring in on_grid]) if on_grid else [], "<i2"),
        "frame": [float(low[0]), float(low[1]), unit],
    }


def _thinned(ring: Floats, coarse: int) -> Floats:
    """The points of a ring without those that follow in the same cell of a grid `coarse` times as wide."""
    cells = np.rint(ring / max(4 * coarse, 4))
    kept = np.append(True, np.any(np.diff(cells, axis=0) != 0, axis=1))
    return ring[kept] if kept.sum() >= 3 else ring


def feature_arrays(report: PredictionReport, drawing: GraphDrawing, *, most: int = 8) -> list[Packed]:
    """The first features of every place, as many as a tip has room for; none of cells but the means of numbers."""
    if report.features is None:
        return []
    return [
        _feature(str(name), column, drawing)
        for name, column in list(report.features.items())[:most]
        if not drawing.size or column.dtype.kind in "iufb"
    ]


def _feature(name: str, column: pd.Series, drawing: GraphDrawing) -> Packed:
    if column.dtype.kind in "iufb":
        values = drawing.mean(column.to_numpy(dtype=float))
        whole = not drawing.size and bool(np.all(np.isnan(values) | (values == np.rint(values))))
        return {"name": name, "values": packed(values, "<f8"), "decimals": 0 if whole else decimals(values)}
    codes, levels = pd.factorize(column)
    return {"name": name, "values": packed(codes, "<i4"), "levels": [str(level) for level in levels], "decimals": 0}


def target_arrays(target: Prediction, drawing: GraphDrawing) -> Packed:
    """What is known and predicted of every place, and how many decimals to show."""
    observed = drawing.mean(target.observed) > 0.5
    found: Packed = {"observed": packed(observed, "u1"), "file": re.sub(r"\W+", "-", target.name)[:40] or "target"}
    if target.classes is not None:
        return found | _class_arrays(target, drawing)
    hidden = target.predicted
    columns = {
        "value": target.values,
        "left_out": target.at_labels("out_of_fold"),
        "residual": target.at_labels("residual"),
    }
    columns |= {
        name: np.where(hidden, values, np.nan)
        for name in ("std", "lower", "upper")
        if (values := getattr(target, name)) is not None
    }
    arrays = {name: packed(drawing.mean(values), "<f8") for name, values in columns.items()}
    if target.held_out is None:
        del arrays["left_out"], arrays["residual"]
    if target.smoothed is not None:
        arrays |= {str(name): packed(drawing.mean(each.to_numpy()), "<f8") for name, each in target.smoothed.items()}
        found["smoothed_decimals"] = decimals(target.smoothed["smoothed"])
    if target.exceeding is not None:
        probability = drawing.mean(target.exceeding)
        arrays |= {
            "probability_above": packed(probability, "<f8"),
            "above_class": packed(_probability_class(probability), "<i4"),
        }
        found["above_text"] = f"probability of more than {target.above:g}"
    if target.explanation.strongest is not None and not drawing.size:
        found["strongest"] = _strongest(target.explanation.strongest, drawing)
    return found | arrays | {"decimals": decimals(target.values), "interval": f"{100 * target.level:g} % interval"}


def _strongest(labels: pd.DataFrame, drawing: GraphDrawing) -> dict[str, list[tuple[int, str]]]:
    """The places of the labels with most weight in each predicted place, and their weights."""
    found: dict[str, list[tuple[int, str]]] = {}
    for node, labelled, weight in labels.itertuples(index=False):
        found.setdefault(str(drawing.place[node]), []).append((int(drawing.place[labelled]), number(weight, 2)))
    return found


def _probability_class(probability: Floats) -> Ints:
    return np.digitize(probability, PROBABILITIES)


def _class_arrays(target: Prediction, drawing: GraphDrawing) -> Packed:
    """Of cells the class with the largest mean probability."""
    share = np.column_stack([drawing.mean(column) for column in target.probability.T])
    left_out = np.full(len(target.codes), np.nan)
    left_out[target.observed] = target.tested
    return {
        "classes": list(target.classes),
        "code": packed(share.argmax(axis=1) if drawing.size else target.codes, "<i4"),
        "probability": packed(share.ravel(), "<f8"),
        "sure": packed(drawing.mean(np.where(target.observed, np.nan, target.sure)), "<f8"),
        "right": packed(drawing.mean(np.where(np.isnan(left_out), np.nan, left_out == target.codes)), "<f8"),
        "left_out": packed(left_out if not drawing.size else np.full(len(share), np.nan), "<f8"),
        "decimals": 2,
    }


def maps(target: Prediction, *, extreme: float = 3.0) -> dict[str, Packed | None]:
    """The colours of every map, None for one without values.

    Of numbers: by value, observed where known; by standard deviation; by the standardised residual of labels that were
    held out, of which by chance 1 in 400 lies beyond the ends of the colours; by the smoothed rate or share; by the
    probability to exceed a value, in classes. Of classes: by class; by the probability of the predicted class, strong
    where it is low, as of large standard deviations.
    """
    if target.classes is not None:
        colours, sure = [f"--class-{k}" for k in range(8)], _scale(target.sure[~target.observed], "std", 5, 2)
        classes = {"values": "code", "only": "all", "classes": list(target.classes), "colors": colours}
        sure |= {"colors": sure["colors"][::-1], "values": "sure", "only": "predicted"}
        return {"class": classes | {"outlined": True}, "sure": sure}
    places, std, residual = decimals(target.values), None, None
    value = _scale(target.values, "value", 7, places) | {"values": "value", "only": "all", "outlined": True}
    if target.std is not None:
        only = "all" if (target.predicted & target.observed).any() else "predicted"
        std = _scale(target.std[target.predicted], "std", 5, places) | {"values": "std", "only": only}
    if target.held_out is not None:
        z = target.held_out["residual"].to_numpy()
        residual = _legend(z[np.isfinite(z)], -extreme, extreme, 1) | _colours("residual", 7)
        residual |= {"values": "residual", "only": "observed"}
    above = None if target.exceeding is None else _probability_map()
    return {"value": value, "std": std, "smoothed": _smoothed_map(target), "residual": residual, "above": above}


def _smoothed_map(target: Prediction) -> Packed | None:
    """The colours of smoothed rates or shares."""
    if target.smoothed is None:
        return None
    rates = target.smoothed["smoothed"].to_numpy()
    return _scale(rates, "value", 7, decimals(rates)) | {"values": "smoothed", "only": "all", "outlined": True}


def _probability_map() -> Packed:
    """The classes of probabilities to exceed a value, from unlikely to likely."""
    edges = [f"{100 * each:g}" for each in PROBABILITIES]
    between = [f"{low} to {high} %" for low, high in itertools.pairwise(edges)]
    names = [f"below {edges[0]} %", *between, f"above {edges[-1]} %"]
    colours = [f"--residual-{i}" for i in range(1, 6)]
    return {"values": "above_class", "only": "all", "classes": names, "colors": colours, "outlined": True}


def _colours(name: str, steps: int) -> Packed:
    return {"colors": [f"--{name}-{i}" for i in range(steps)]}


def _scale(values: Floats, name: str, steps: int, places: int | None) -> Packed:
    """Colours from the 1st to the 99th percentile, so that a few extremes do not wash out the rest."""
    low, high = np.percentile(values, [1, 99]) if values.size else (0.0, 1.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    return _legend(values, float(low), float(high), places) | _colours(name, steps)


def _legend(values: Floats, low: float, high: float, places: int | None) -> Packed:
    """The ends of a scale and its middle, in words; ends beyond which there are values say so."""
    least, most = (float(np.min(values)), float(np.max(values))) if values.size else (low, high)
    texts = [number(value, places) for value in (low, 0.5 * (low + high), high)]
    ends = [f"≤ {texts[0]}" if least < low else texts[0], texts[1], f"≥ {texts[2]}" if most > high else texts[2]]
    return {"low": low, "high": high, "legend": ends}

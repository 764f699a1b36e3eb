"""The part of a graph that is drawn: coordinates, a seeded sample of nodes, a seeded sample of edges."""

from dataclasses import dataclass

import numpy as np

from graphmrf._typing import Floats, Ints
from graphmrf.report.layout import positions
from graphmrf.report.rows import PredictionReport, TargetReport
from graphmrf.text import count

DRAWN_NODES = 20_000
"""Nodes in a drawing, by eye: 36 bytes each in the page, and as many as there are pixels to tell them apart by."""
DRAWN_EDGES = 30_000
"""Edges in a drawing, by eye; with twice as many the lines merge into one colour, and a phone takes seconds."""
LISTED_NODES = 25
"""Rows of the table of uncertain predictions, by eye: two screens; a file of all predictions has the rest."""


@dataclass(frozen=True)
class SampledDrawing:
    """The nodes and edges of a graph that are drawn, and where.

    Parameters
    ----------
    nodes : array of shape (m,)
        Drawn nodes, ascending.
    xy : array of shape (m, 2)
        Where they are.
    edges : array of shape (k, 2)
        Drawn edges, as positions in `nodes`.
    dropped : tuple of str
        A line for each thing that was left out.
    """

    nodes: Ints
    xy: Floats
    edges: Ints
    dropped: tuple[str, ...]


def sample_drawing(
    report: PredictionReport, *, max_nodes: int = DRAWN_NODES, max_edges: int = DRAWN_EDGES, seed: int = 0
) -> SampledDrawing:
    """Choose what to draw; the nodes of the table of uncertain nodes are always among them.

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> y = np.array([1.0, np.nan, np.nan])
    >>> target = TargetReport("income", y, np.ones(3), method="lp", std=np.ones(3))
    >>> graph = Graph.from_edges([0, 1], [1, 2])
    >>> sample_drawing(PredictionReport("wards", graph, "abc", (target,))).edges
    array([[0, 1],
           [1, 2]])
    """
    rng = np.random.default_rng(seed)
    graph = report.graph
    nodes = _sample_nodes(report, max_nodes, rng)
    xy = report.coordinates if report.coordinates is not None else positions(graph.adjacency, graph.components)
    edges = _edges_among(report, nodes)
    kept = edges if len(edges) <= max_edges else edges[np.sort(rng.choice(len(edges), max_edges, replace=False))]
    return SampledDrawing(nodes, np.asarray(xy, dtype=float)[nodes], kept, _dropped(report, len(nodes), len(kept)))


def most_uncertain(target: TargetReport, limit: int = LISTED_NODES) -> Ints:
    """Predicted nodes with the largest std, largest first; ties in node order.

    Examples
    --------
    >>> y = np.array([1.0, np.nan, np.nan])
    >>> most_uncertain(TargetReport("income", y, np.ones(3), method="lp", std=np.array([9.0, 1.0, 2.0])))
    array([2, 1])
    """
    if target.std is None:
        return np.empty(0, dtype=np.int64)
    hidden = np.flatnonzero(~target.observed)
    return hidden[np.argsort(-target.std[hidden], kind="stable")[:limit]]


def _sample_nodes(report: PredictionReport, limit: int, rng: np.random.Generator) -> Ints:
    n = report.graph.n_nodes
    if n <= limit:
        return np.arange(n)
    listed = np.unique(np.concatenate([most_uncertain(target) for target in report.targets]))
    others = np.setdiff1d(np.arange(n), listed)
    return np.sort(np.concatenate([listed, rng.choice(others, max(limit - len(listed), 0), replace=False)]))


def _edges_among(report: PredictionReport, nodes: Ints) -> Ints:
    graph = report.graph
    place = np.full(graph.n_nodes, -1)
    place[nodes] = np.arange(len(nodes))
    rows = np.repeat(np.arange(graph.n_nodes), np.diff(graph.indptr))
    upper = rows < graph.indices
    ends = np.stack([place[rows[upper]], place[graph.indices[upper]]], axis=1)
    return ends[(ends >= 0).all(axis=1)]


def _dropped(report: PredictionReport, n_nodes: int, n_edges: int) -> tuple[str, ...]:
    graph = report.graph
    lines = []
    if n_nodes < graph.n_nodes:
        lines.append(f"The drawing shows a random sample of {n_nodes:,} of {count(graph.n_nodes, 'node')}.")
    if n_edges < graph.n_edges:
        lines.append(f"The drawing shows {n_edges:,} of {count(graph.n_edges, 'edge')}.")
    return tuple(lines)

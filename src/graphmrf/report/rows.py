"""What a report shows: finished predictions of a graph, with what to draw them on; checked here."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from graphmrf._typing import Floats
from graphmrf.comparison import Prediction
from graphmrf.errors import InvalidInputError
from graphmrf.graph import Graph


def _reject(violations: int, message: str) -> None:
    """Raise an error with this message, if there is anything to reject."""
    if violations:
        raise InvalidInputError(message)


@dataclass(frozen=True)
class PredictionReport:
    """Everything on one page.

    Parameters
    ----------
    title : str
        Headline of the page.
    graph : Graph
        The graph with n nodes.
    node_ids : sequence of length n
        Identifiers, in node order.
    targets : sequence of Prediction
        At least one; each gets its own section.
    coordinates : array of shape (n, 2) or None
        Where to draw the nodes; computed from the graph when None.
    shapes : sequence of length n, or None
        Outlines of the nodes, each some rings of shape (k, 2); nodes are then drawn as areas.
    features : DataFrame of n rows, or None
        Columns to show beside a node.
    notes : sequence of str
        Lines about what was done to the data.
    command, version : str
        How the page was made; left out when empty.

    Raises
    ------
    InvalidInputError
        If there is no target, lengths differ from n or coordinates are not finite.

    Examples
    --------
    >>> graph = Graph(np.array([[0, 1], [1, 0]]))
    >>> target = Prediction("income", np.array([1.0, np.nan]), np.array([1.0, 2.0]), method="lp")
    >>> PredictionReport("Two wards", graph, ["a", "b"], (target,)).targets[0].name
    'income'
    """

    title: str
    graph: Graph
    node_ids: Sequence[object]
    targets: Sequence[Prediction]
    coordinates: Floats | None = None
    shapes: Sequence[Sequence[Floats]] | None = None
    features: pd.DataFrame | None = None
    notes: Sequence[str] = ()
    command: str = ""
    version: str = ""

    def __post_init__(self) -> None:
        n = self.graph.n_nodes
        _reject(not self.targets, "a report needs at least one target, got none; add a Prediction")
        found = len(self.node_ids)
        _reject(found != n, f"node_ids must name all {n} nodes, got {found}; pass one id for each node")
        for target in self.targets:
            shape = np.shape(target.observed)
            _reject(
                shape != (n,),
                f"target {target.name!r} must cover all {n} nodes, got shape {shape}; use NaN for unknown outcomes",
            )
        for rows, given in (("shapes", self.shapes), ("features", self.features)):
            length = n if given is None else len(given)
            _reject(length != n, f"{rows} must be of all {n} nodes, got {length}")
        if self.coordinates is not None:
            _check_coordinates(self.coordinates, n)


def _check_coordinates(coordinates: Floats, n: int) -> None:
    shape = np.shape(coordinates)
    _reject(shape != (n, 2), f"coordinates must have shape ({n}, 2), got {shape}; pass x and y of every node")
    bad = int(np.sum(~np.isfinite(coordinates).all(axis=1)))
    _reject(bad, f"coordinates must be finite, got {bad} nodes without; leave them out to have a layout computed")

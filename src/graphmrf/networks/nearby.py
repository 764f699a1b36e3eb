"""What networks read for their outputs at a few nodes: averaged features, and the means between their layers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from graphmrf.networks.neighbourhood import Neighbourhood

if TYPE_CHECKING:
    from graphmrf._typing import Floats, Ints
    from graphmrf.graph import Graph
    from graphmrf.networks.choices import Shape
    from graphmrf.networks.neighbourhood import Means


@dataclass(frozen=True)
class Reach:
    """Averaged features (n_rows, p) for the first layer, and the means before each of the others.

    Linear networks have no means: what is averaged is the same after a layer as before it, as means of constants
    are constants, so their features are averaged once for every layer.
    """

    features: Floats
    means: list[Means]


@dataclass(frozen=True)
class Nearby:
    """A graph with features, of which only what is near a batch is read.

    Attributes
    ----------
    X : array of shape (n, p)
        Features in single precision.
    neighbours : Neighbourhood
        The graph.
    averaged : list of arrays of shape (n, p)
        Features averaged 0, 1, ... times, if nothing is drawn; grows as they are asked for.
    """

    X: Floats
    neighbours: Neighbourhood
    averaged: list[Floats] = field(default_factory=list, repr=False)

    @classmethod
    def of(cls, graph: Graph, X: Floats, limit: int) -> Nearby:
        """Return a graph of which a mean takes at most `limit` neighbours."""
        X = np.ascontiguousarray(X, dtype=np.float32)
        return cls(X, Neighbourhood.of(graph, limit), [X])

    def reach(self, rows: Ints, shape: Shape, *key: int) -> Reach:
        """Return what the networks read for outputs at some nodes; the key decides which neighbours are drawn."""
        means: list[Means] = []
        for layer in range(shape.n_layers, 0, -1):
            if not self.neighbours.random and (layer == 1 or not shape.relu):
                return Reach(self._averaged(layer)[rows], means[::-1])
            means.append(self.neighbours.draw(rows, *key, layer))
            rows = means[-1].sources
        features = means.pop() @ self.X[rows]
        while means and not shape.relu:
            features = means.pop() @ features
        return Reach(features, means[::-1])

    def _averaged(self, times: int) -> Floats:
        while len(self.averaged) <= times:
            means = self.neighbours.draw(np.arange(len(self.X)))
            self.averaged.append(means @ self.averaged[-1])  # all nodes are rows, so sources are in their order
        return self.averaged[times]

"""Observations: rows that point to nodes. A node may have none, one or several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class Observations:
    """Standardised values at nodes.

    Attributes
    ----------
    nodes : integer array of shape (m,)
        Node of every observation.
    z : array of shape (m,)
        Its value, standardised.
    weights : array of shape (m,)
        Precision of its noise over that of a usual observation.
    """

    nodes: Ints
    z: Floats
    weights: Floats

    @classmethod
    def of(cls, nodes: Ints, z: Floats) -> Observations:
        """Return observations with the same noise."""
        return cls(nodes, z, np.ones(nodes.size))

    def part(self, chosen: Ints | Bools) -> Observations:
        """Return some of the observations."""
        return Observations(self.nodes[chosen], self.z[chosen], self.weights[chosen])

    def weighted(self, weights: Floats) -> Observations:
        """Return the same with other weights."""
        return Observations(self.nodes, self.z, weights)

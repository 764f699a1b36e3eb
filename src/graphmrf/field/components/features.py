r"""Linear effects of features: a node's own, its neighbours', those of theirs, distant and smoothed ones.

.. math:: \tfrac{t_1}{p} XX' + \tfrac{t_2}{p} SX(SX)' + \tfrac{t_3}{p} S^2X(S^2X)' + \tfrac{t_4}{p} TX(TX)'
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from graphmrf.field.covariance import LinearComponent
from graphmrf.field.hyperparameters import variance

if TYPE_CHECKING:
    from graphmrf._typing import Floats, Ints
    from graphmrf.field.covariance import Covariance, OtherGraph
    from graphmrf.field.design import Design, LabelledGraph
    from graphmrf.field.hyperparameters import Parameter, Values

_NEIGHBOURHOOD = ("neighbours' features", "linear effects of the features of the neighbourhood")


@dataclass(frozen=True)
class FeatureGroup(LinearComponent):
    r"""Linear effects of one group of standardised features, :math:`\tfrac tp FF'`: `F` is `X`, `SX` or `S²X`."""

    name: str
    place: int
    effect: str
    words: tuple[str, str]
    title: str
    searched: bool = True
    transfers: bool = True
    least_nodes: int = 1

    @property
    def parameters(self) -> tuple[Parameter, ...]:  # type: ignore[override]  # follows from the name
        """The variance; none where the exact solver has no such component."""
        return (variance(self.name),) if self.searched else ()

    def features(self, labels: Covariance, h: Values, nodes: Ints) -> Floats:  # noqa: ARG002 - the same for all h
        """Return the group at some nodes."""
        return np.asarray(labels.design.groups[self.place][nodes])

    def features_elsewhere(self, labels: Covariance, h: Values, there: OtherGraph, nodes: Ints) -> Floats:  # noqa: ARG002
        """Return the group at some nodes of another graph."""
        return np.asarray(there.design.groups[self.place][nodes])

    def scales(self, labels: Covariance, h: Values) -> Floats:  # noqa: ARG002 - the same for all h
        """Return the standard deviations of the columns."""
        return np.asarray(labels.design.scales[self.place])

    def step(self, alpha: float) -> float:
        r"""Return the weight of the group in smoothed features, :math:`(I + \omega N)^{-1} X`; see `with_distant`."""
        return alpha**3 if self.place == 3 else (1.0 - alpha) * alpha**self.place

    def columns(self, graph: LabelledGraph, design: Design, h: Values, most: int) -> Floats | None:  # noqa: ARG002
        """Return the group at all nodes."""
        return np.asarray(design.groups[self.place])

    def columns_elsewhere(self, there: OtherGraph, design: Design, h: Values, size: int, seed: int) -> Floats | None:  # noqa: ARG002
        """Return the group at all nodes of another graph."""
        return np.asarray(there.design.groups[self.place])


OWN = FeatureGroup("own", 0, "own features", ("own features", "linear effects of a node's own features"), "own")
NEIGHBOURS = FeatureGroup("neighbours", 1, "neighbours' features", _NEIGHBOURHOOD, "neighbours", least_nodes=2)
SECOND = FeatureGroup("second", 2, "neighbours' features", _NEIGHBOURHOOD, "second neighbours", least_nodes=3)
DISTANT = FeatureGroup("distant", 3, "neighbours' features", _NEIGHBOURHOOD, "distant", searched=False, least_nodes=3)
r"""Features three and more steps away, :math:`S^3 (I + \omega_0 N)^{-1} X`, of the sparse solver only.

The exact solver has `Smoothed` at the level it searches; there that would be a solve for every feature at every step of
the search, so the level is chosen beforehand, by cross-validation of linear graph convolution."""


class Smoothed(LinearComponent):
    r"""Linear effects of features smoothed as the field is, :math:`\tfrac{t_4}{p} TX(TX)'`.

    `T` is :math:`(I + \omega N)^{-\nu}` over its mean eigenvalue, with `omega` and `nu` of the graph field. In the
    sparse solver they are those of the paper's own model only, see `paper_model`.
    """

    name = "smoothed"
    title = "smoothed"
    effect = "neighbours' features"
    words = _NEIGHBOURHOOD
    parameters = (variance("smoothed"),)
    transfers = True
    least_nodes = 3

    def features(self, labels: Covariance, h: Values, nodes: Ints) -> Floats:
        """Return the smoothed features at some nodes."""
        smoothed = np.asarray(labels.smoothings.at(h["omega"], h["nu"], nodes))
        return np.asarray(labels.with_isolated(h, labels.design, nodes, smoothed[None])[0])

    def labelled(self, labels: Covariance, h: Values) -> tuple[Floats, dict[str, Floats]]:
        """Return the smoothed features at the labelled nodes, and their derivatives."""
        smoothed, slopes = labels.smoothings.among(h["omega"], h["nu"]), labels.smoothings.slopes(h["omega"], h["nu"])
        found = labels.with_isolated(h, labels.design, labels.rows, np.stack([smoothed, *slopes]))
        return found[0], {"omega": found[1], "nu": found[2]}

    def features_elsewhere(self, labels: Covariance, h: Values, there: OtherGraph, nodes: Ints) -> Floats:
        """Return the smoothed features at some nodes of another graph, over the mean eigenvalue of this one."""
        smoothed = there.smoothed_levels(h["omega"], h["nu"], labels.level_damping(h))[nodes, 1:]
        smoothed = smoothed / labels.eigen.mean(h["omega"], h["nu"])
        return np.asarray(labels.with_isolated(h, there.design, nodes, smoothed[None])[0])

    def scales(self, labels: Covariance, h: Values) -> Floats:
        """Return the standard deviations of the features over the mean eigenvalue."""
        return np.asarray(labels.design.scales[0] * labels.eigen.mean(h["omega"], h["nu"]))

r"""Attributions of features at some nodes: Shapley values of the effects of features, by sampling.

The value of a set of features at a node, beside a background node, is the posterior mean of the effects of features
were these features those of the neighbourhood of the node, and all others those of the neighbourhood of the background
node. A feature takes its means over neighbours and second neighbours with it; degrees, which learned effects see, are
one more feature. Features enter one after the other in random orders, each of which is also run through backwards.
What each changes, on average over orders and background nodes, is its attribution; attributions of a node add up to its
own value less the mean of the background.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from graphmrf._typing import Floats, Ints
    from graphmrf.field.features import Design


@dataclass(frozen=True, eq=False)
class Orders:
    """Random orders of features, every second one the reverse of that before, and a background node for each.

    Attributes
    ----------
    order : array of shape (2 k, g)
        Features in the order in which they enter.
    background : array of shape (2 k,)
        The same node for an order and its reverse; all nodes equally often if `k` is a multiple of their number.
    """

    order: Ints
    background: Ints

    @classmethod
    def draw(cls, count: int, features: int, nodes: int, seed: int) -> Orders:
        """Return `count` random orders and their reverses."""
        rng = np.random.default_rng(seed)
        order = rng.permuted(np.tile(np.arange(features), (count, 1)), axis=1)
        rounds = [rng.permutation(nodes) for _ in range(-(-count // nodes))]
        both = np.stack([order, order[:, ::-1]], axis=1).reshape(2 * count, features)
        return cls(both, np.repeat(np.concatenate(rounds)[:count], 2))

    def rows(self, design: Design, owner: Ints, nodes: Ints) -> Design:
        """Return the design of every node, order and step: a row for each number of features that have entered.

        `owner` (columns,) is the feature that each raw column belongs to; the last feature is that of degrees.
        """
        entered = np.argsort(self.order, axis=1)[:, None, :] < np.arange(self.order.shape[1] + 1)[:, None]
        plain, levels = owner[design.scale.varies], owner[design.scale.levels]
        degrees = np.full(2, self.order.shape[1] - 1)

        def mixed(values: Floats, owners: Ints) -> Floats:
            own, other = values[nodes][:, None, None, :], values[self.background][None, :, None, :]
            found = np.where(entered[..., owners], own, other)
            return found.reshape(nodes.size * entered[..., 0].size, owners.size)

        found = replace(
            design.at(np.repeat(nodes, entered[..., 0].size), design.graph),
            own=mixed(design.own, plain),
            neighbours=mixed(design.neighbours, plain),
            wider=mixed(design.wider, np.concatenate([plain, degrees, levels])),
            levels=mixed(design.levels, levels),
        )
        return found if design.learner is None else replace(found, learned=design.learner(found))

    def averaged(self, values: Floats) -> tuple[Floats, Floats, float]:
        """Return attributions and standard errors (nodes, g), and the mean of the background, from values of rows."""
        size, features = self.order.shape
        steps = values.reshape(-1, size, features + 1)
        changes = np.take_along_axis(np.diff(steps, axis=2), np.argsort(self.order, axis=1)[None], axis=2)
        pairs = changes.reshape(len(steps), -1, 2, features).mean(axis=2)
        count = pairs.shape[1]
        error = pairs.std(axis=1, ddof=1) / np.sqrt(count) if count > 1 else np.full(pairs[:, 0].shape, np.nan)
        return pairs.mean(axis=1), error, float(steps[0, :, 0].mean())

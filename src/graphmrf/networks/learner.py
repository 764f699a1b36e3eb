"""Networks learned from the labels of a graph, in the units of the user."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from graphmrf.networks.operators import tensor
from graphmrf.networks.train import Problem, inputs_of, outputs, train
from graphmrf.selection import training_masks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.graph import Graph
    from graphmrf.networks.choices import Shape
    from graphmrf.networks.models import Inputs, Networks
    from graphmrf.networks.nearby import Nearby
    from graphmrf.networks.scaling import Scaling
    from graphmrf.networks.training import Training


@dataclass(frozen=True)
class Learner:
    """One graph with features, ready to train networks on.

    Attributes
    ----------
    graph, X : Graph and array of shape (n, p)
        The nodes.
    scaling : Scaling
        From and to the units of the user.
    training : Training
        How it is done.
    seed, device : int, str
        Where chance begins, and where to compute.
    """

    graph: Graph
    X: Floats
    scaling: Scaling
    training: Training
    seed: int
    device: str

    @cached_property
    def inputs(self) -> Inputs | Nearby:
        """Features and averages on the device."""
        return inputs_of(self.graph, self.scaling.features(self.X), self.training, self.device)

    def learn(self, y: Floats, masks: Bools, shape: Shape, stops: Sequence[int]) -> Iterator[Networks]:
        """Yield networks, one for each row of `masks` (its training nodes), after each number of steps."""
        target = tensor(np.nan_to_num(self.scaling.outcome(y)), self.device)
        seeds = [self.seed] * len(masks)
        yield from train(Problem(self.inputs, target, masks, self.training, seeds), shape, stops)

    def predict(self, networks: Networks) -> Floats:
        """Return the predictions (n_models, n) at all nodes."""
        return self.scaling.prediction(outputs(networks, self.inputs, seed=self.seed))

    def without_folds(self, y: Floats, folds: Ints, shape: Shape, stops: Sequence[int]) -> list[Floats]:
        """Return, for every number of steps, predictions (n_labelled, n_folds) by networks that miss a fold."""
        labelled = np.flatnonzero(~np.isnan(y))
        masks = training_masks(self.graph.n_nodes, labelled, folds).T
        return [self.predict(nets)[:, labelled].T for nets in self.learn(y, masks, shape, stops)]

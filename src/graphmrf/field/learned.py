r"""Learned effects: out-of-fold predictions of a regressor as one more column of the field.

The labels are divided into folds that imitate the holes. The prediction at a labelled node comes from the regressor
fitted without its fold, that at any other node is the mean over the regressors of all folds; so the column is as wrong
at labels as it is at the nodes to predict, and the evidence finds how much it counts. The regressor sees own features,
the means of neighbours and of second neighbours, and degrees.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from graphmrf.selection import distance_matched_folds

if TYPE_CHECKING:
    from graphmrf._typing import Floats
    from graphmrf.field.features import Design
    from graphmrf.field.observations import Observations

_FOLDS = 5


@dataclass(frozen=True, eq=False)
class LearnedEffects:
    """The regressors of all folds, and the scale of their predictions.

    Attributes
    ----------
    regressors : tuple of regressor
        One for each fold, fitted without it.
    centre, spread : float
        Mean and standard deviation of the out-of-fold predictions at the labels.
    """

    regressors: tuple[Any, ...]
    centre: float
    spread: float

    def __call__(self, design: Design) -> Floats:
        """Return the mean prediction at all nodes of a design, standardised, shape (n, 1)."""
        found = np.mean([each.predict(design.learnable) for each in self.regressors], axis=0)
        return np.asarray(((found - self.centre) / self.spread)[:, None])


def with_learned(design: Design, observations: Observations, learner: Any, seed: int) -> Design:
    """Return a design with the column of a learner, cross-fitted to standardised labels.

    Parameters
    ----------
    design : Design
        Features of all nodes.
    observations : Observations
        Standardised labels.
    learner : regressor of scikit-learn
        It is cloned.
    seed : int
        Seed of the folds.
    """
    nodes, z, inputs = observations.nodes, observations.z, design.learnable
    known = np.zeros(design.own.shape[0], dtype=np.bool_)
    known[nodes] = True
    by_node = np.empty(known.size, dtype=np.int64)
    by_node[known] = distance_matched_folds(design.graph, known, _FOLDS, random_state=seed).folds
    folds, held_out, fitted = by_node[nodes], np.empty(z.size), []
    for fold in np.unique(folds):
        own = folds == fold
        fitted.append(clone(learner).fit(inputs[nodes[~own]], z[~own]))
        held_out[own] = fitted[-1].predict(inputs[nodes[own]])
    effects = LearnedEffects(tuple(fitted), float(held_out.mean()), float(held_out.std()) or 1.0)
    column = effects(design)
    column[nodes, 0] = (held_out - effects.centre) / effects.spread
    return replace(design, learner=effects, learned=column)

"""How a network is trained: all labels at once, or the mini-batches and sampled neighbours of the paper."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, TypeAlias

from graphmrf.errors import InvalidInputError


@dataclass(frozen=True)
class Training:
    r"""Options of the gradient descent.

    Attributes
    ----------
    batch : float in (0, 1]
        Part of the training nodes in one step, drawn without replacement for every step; 1 takes all of them.
    neighbours : int or None
        A layer takes the plain mean over the node and at most this many of its neighbours, drawn anew at every
        evaluation (weighted by the edges where they have weights). None takes all, by
        :math:`\tilde S = (D + I)^{-1/2} (W + I) (D + I)^{-1/2}`.
    learning_rate : float > 0
        Step length of AdamW.
    decay : float in [0, 1)
        Every step first multiplies each weight by ``1 - decay``, whatever the learning rate.
    standardise : bool
        Bring features and outcome to mean 0 and variance 1 first, and predictions back.

    Examples
    --------
    >>> Training(neighbours=10).batch
    1.0
    """

    batch: float = 1.0
    neighbours: int | None = None
    learning_rate: float = 1e-2
    decay: float = 5e-3
    standardise: bool = True

    def __post_init__(self) -> None:
        rules = {
            "batch": (0 < self.batch <= 1, "in (0, 1]"),
            "neighbours": (self.neighbours is None or self.neighbours >= 1, "None or at least 1"),
            "learning_rate": (self.learning_rate > 0, "positive"),
            "decay": (0 <= self.decay < 1, "in [0, 1)"),
        }
        for field in fields(self):
            holds, rule = rules.get(field.name, (True, ""))
            if not holds:
                raise InvalidInputError(f"{field.name} must be {rule}, got {getattr(self, field.name)!r}")


FULL = Training()
"""All labels at every step, all neighbours."""

PAPER = Training(batch=0.1, neighbours=30, learning_rate=1e-3, decay=2.5e-4, standardise=False)
"""The paper's: 10 % of the labels at every step, at most 30 neighbours, data as they are."""

Recipe: TypeAlias = Training | Literal["full", "paper"]


def read_recipe(recipe: Recipe) -> Training:
    """Return the options behind a name.

    Examples
    --------
    >>> read_recipe("paper").neighbours
    30
    """
    if isinstance(recipe, Training):
        return recipe
    named = {"full": FULL, "paper": PAPER}
    if recipe not in named:
        raise InvalidInputError(f"training must be 'full', 'paper' or a Training(...), got {recipe!r}")
    return named[recipe]

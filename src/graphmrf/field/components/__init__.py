"""The components of the field: the one list of them. A new component is one class, and its place in this list."""

from graphmrf.field.components.features import DISTANT, NEIGHBOURS, OWN, SECOND, Smoothed
from graphmrf.field.components.kernels import GraphField, Local, Noise, Nonlinear
from graphmrf.field.covariance import Component

COMPONENTS: tuple[Component, ...] = (
    OWN,
    NEIGHBOURS,
    SECOND,
    DISTANT,
    Smoothed(),
    Nonlinear(),
    Local(),
    GraphField(),
    Noise(),
)
"""The terms of the field."""

EFFECTS: dict[str, tuple[str, str]] = {component.effect: component.words for component in COMPONENTS}
"""Rows of the table of shares: the effect in a sentence, and what it means."""

__all__ = ["COMPONENTS", "EFFECTS"]

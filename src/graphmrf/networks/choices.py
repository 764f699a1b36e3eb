"""The shapes of network to choose from."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import TYPE_CHECKING, Any

from graphmrf.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Sequence

LAYERS = (1, 2, 3)
"""Numbers of layers tried."""

EPOCHS = (100, 200, 300, 400, 500)
"""Numbers of steps tried."""


@dataclass(frozen=True)
class Shape:
    """Layers of a network: `n_layers` of width `hidden` after an average over neighbours each, then one number."""

    n_layers: int
    hidden: int
    relu: bool
    bias: bool

    def sizes(self, n_features: int) -> list[tuple[int, int]]:
        """Return the shape of every weight matrix.

        Examples
        --------
        >>> Shape(2, 32, relu=True, bias=True).sizes(9)
        [(9, 32), (32, 32), (32, 1)]
        """
        widths = [n_features, *[self.hidden] * self.n_layers, 1]
        return list(pairwise(widths))


def read_choice(name: str, value: Any, grid: Sequence[int]) -> tuple[int, ...]:
    """Return the numbers to choose from: the grid for "cv", else the one given.

    Examples
    --------
    >>> read_choice("epochs", 50, EPOCHS)
    (50,)
    """
    if isinstance(value, str) and value == "cv":
        return tuple(grid)
    if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1:
        return (int(value),)
    raise InvalidInputError(f"{name} must be 'cv' or a whole number >= 1, got {value!r}")


def read_activation(activation: str) -> bool:
    """Return whether the activation is ReLU, and not the identity."""
    if activation not in ("relu", "identity"):
        raise InvalidInputError(f"activation must be 'relu' or 'identity', got {activation!r}")
    return activation == "relu"

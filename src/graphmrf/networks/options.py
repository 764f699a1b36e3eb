"""Options of graph convolutional networks: training, shape, standardisation and device; usable without PyTorch."""

from __future__ import annotations

from dataclasses import dataclass, fields
from importlib import import_module
from itertools import pairwise
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from graphmrf.errors import InvalidInputError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphmrf._typing import Floats

# Numbers of layers that a cross-validation compares: the paper's. 1 to 6 are 21 layers to train in place of 6.
DEPTHS = (1, 2, 3)
EPOCHS = (100, 200, 300, 400, 500)  # numbers of steps that it compares: the paper's


@dataclass(frozen=True)
class Training:
    """Options of the gradient descent."""

    # in (0, 1]: part of the training nodes in one step, drawn without replacement for every step; 1 takes all of them
    batch: float = 1.0
    # a layer takes the plain mean over the node and at most this many of its neighbours, drawn again at every
    # evaluation (weighted by the edges where they have weights). None takes all, by `\tilde S = (D + I)^{-1/2} (W + I)
    # (D + I)^{-1/2}`.
    neighbours: int | None = None
    learning_rate: float = 1e-2  # > 0: step length of AdamW
    # in [0, 1): every step first multiplies each weight by ``1 - decay``, whatever the learning rate
    decay: float = 5e-3
    standardise: bool = True  # standardise features and outcome first, and transform predictions back

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


FULL_TRAINING = Training()  # all labels and all neighbours at every step; rate and decay were not tuned
# The paper's code: 10 % of the labels at every step, at most 30 neighbours, data not standardised; its decay is not
# scaled by the learning rate.
PAPER_TRAINING = Training(batch=0.1, neighbours=30, learning_rate=1e-3, decay=2.5e-4, standardise=False)
TrainingRecipe: TypeAlias = Training | Literal["full", "paper"]


def read_recipe(recipe: TrainingRecipe) -> Training:
    """Return the options of a name."""
    if isinstance(recipe, Training):
        return recipe
    named = {"full": FULL_TRAINING, "paper": PAPER_TRAINING}
    if recipe not in named:
        raise InvalidInputError(f"training must be 'full', 'paper' or a Training(...), got {recipe!r}")
    return named[recipe]


@dataclass(frozen=True)
class LayerShape:
    """Layers of a network: `n_layers` of width `hidden`, each after an average over neighbours, then one number."""

    n_layers: int
    hidden: int
    relu: bool
    bias: bool

    def sizes(self, n_features: int) -> list[tuple[int, int]]:
        """Return the shape of every weight matrix."""
        widths = [n_features, *[self.hidden] * self.n_layers, 1]
        return list(pairwise(widths))


def read_choice(name: str, value: Any, grid: Sequence[int]) -> tuple[int, ...]:
    """Return the numbers to choose from: the grid for "cv", else the one given."""
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


@dataclass(frozen=True)
class Scaling:
    """Shifts and scales of the features (p,) and of the outcome: a network sees mean 0 and variance 1."""

    means: Floats
    scales: Floats
    mean: float
    scale: float

    @classmethod
    def of(cls, X: Floats, y: Floats, *, centred: bool) -> Scaling:
        """Return the scaling of features and known outcomes to mean square 1, and to mean 0 if `centred`."""
        means, mean = (X.mean(axis=0), float(y.mean())) if centred else (np.zeros(X.shape[1]), 0.0)
        scales, scale = np.sqrt(np.mean((X - means) ** 2, axis=0)), float(np.sqrt(np.mean((y - mean) ** 2)))
        return cls(means, np.where(scales > 0, scales, 1.0), mean, scale or 1.0)

    @classmethod
    def none(cls, n_features: int) -> Scaling:
        """Return the identity."""
        return cls(np.zeros(n_features), np.ones(n_features), 0.0, 1.0)

    def features(self, X: Floats) -> Floats:
        """Return features as the network sees them."""
        return np.asarray((X - self.means) / self.scales)

    def outcome(self, y: Floats) -> Floats:
        """Return outcomes as the network sees them."""
        return np.asarray((y - self.mean) / self.scale)

    def prediction(self, output: Floats) -> Floats:
        """Return outputs of the network in the units of the user."""
        return np.asarray(output * self.scale + self.mean)


def require_torch() -> Any:
    """Return PyTorch; MissingExtraError if it is not installed."""
    try:
        return import_module("torch")
    except ImportError as error:
        raise MissingExtraError(
            "GraphConvolutionalNetwork needs PyTorch, which is not installed; pip install 'graphmrf[gnn]'"
        ) from error


def pick_device(name: str) -> str:
    """Return the device to compute on: the one named, for "auto" a GPU if there is one.

    Raises InvalidInputError if PyTorch does not know the device, or it is not available.
    """
    torch = require_torch()
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InvalidInputError(
            f"device {name!r} is not available ({reason}); use device='auto' or 'cpu', or a PyTorch built for it"
        ) from error
    return str(device)

"""What made the prediction of one node: labels with their weights, and kinds of effects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphmrf.text import number

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 5


@dataclass(frozen=True, eq=False)
class NodeExplanation:
    r"""A prediction as a sum: the mean of the labels, and what each label adds, or each kind of effect.

    The field is linear in the labels at given hyper-parameters, so the sum is exact,
    :math:`\hat y_i = \bar y + \sum_j w_{ij} (y_j - \bar y)`.

    Attributes
    ----------
    node : hashable
        The node, by id where the graph has ids.
    prediction : float
        Its prediction.
    mean : float
        Mean of the labels, wild ones drawn in.
    labels : DataFrame
        A row for every label, the largest contribution first: `label`, `steps` along edges to the node (infinite where
        there is no path), `weight`, and `contribution`, the weight times the label less the mean.
    effects : Series
        What each kind of effect adds: own features, those of neighbours, the graph field. What is left to the
        prediction less the mean is a constant.
    """

    node: Any
    prediction: float
    mean: float
    labels: pd.DataFrame
    effects: pd.Series

    def __str__(self) -> str:
        """Return the sums, and the labels with the largest contributions."""
        about = f"{self.node}: {number(self.prediction)} = {number(self.mean)} (mean of the labels)"
        effects = "".join(f" {_signed(float(value))} ({name})" for name, value in self.effects.items())
        constant = self.prediction - self.mean - float(self.effects.sum())
        lines = [
            f"  {_signed(added)} from {name}: {number(label)}, {steps:g} steps away, weight {number(weight, 3)}"
            for name, _, label, steps, weight, added in self.labels.head(_SHOWN).itertuples()
        ]
        return "\n".join([f"{about}{effects} {_signed(constant)} (constant)", *lines])


def _signed(value: float) -> str:
    return f"{'-' if value < 0 else '+'} {number(abs(value))}"

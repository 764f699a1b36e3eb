"""What part of the variance of the labels each component of a field predicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphmrf._typing import Floats


def share_out(z: Floats, residual: Floats, predictions: Mapping[str, Floats], *, itself: Floats) -> dict[str, float]:
    r"""Return the share of every component, and that of "noise"; they add up to 1.

    "noise" is the covariance of the whole prediction's error with the label over the variance of the label; the rest
    is divided among the components by the covariance of their predictions with the label, those below 0 counting as 0.

    Parameters
    ----------
    z : array of shape (m,)
        The labels.
    residual : array of shape (m,)
        What the others leave of every label.
    predictions : mapping of str to array of shape (m,)
        What every component says of every label given the others, "own" and "smoothed" among them.
    itself : array of shape (m,)
        How much of "smoothed" a node has from its own features: it is counted as "own".

    Examples
    --------
    >>> z = np.array([-1.0, 1.0])
    >>> said = {"own": 0.2 * z, "smoothed": 0.6 * z, "field": 0.0 * z}
    >>> {name: round(share, 3) for name, share in share_out(z, 0.2 * z, said, itself=0.15 * z).items()}
    {'own': 0.35, 'smoothed': 0.45, 'field': 0.0, 'noise': 0.2}
    """
    deviations = z - z.mean()
    variance = float(np.mean(deviations**2))
    if variance == 0:
        return dict.fromkeys(predictions, 0.0) | {"noise": 1.0}

    def explained(prediction: Floats) -> float:
        return max(float(np.mean(prediction * deviations)) / variance, 0.0)

    parts = {name: explained(prediction) for name, prediction in predictions.items()}
    moved = min(explained(itself), parts["smoothed"])
    parts |= {"own": parts["own"] + moved, "smoothed": parts["smoothed"] - moved}
    noise, total = float(np.clip(np.mean(residual * deviations) / variance, 0.0, 1.0)), sum(parts.values())
    if total == 0:
        return parts | {"noise": 1.0}
    return {name: (1.0 - noise) * part / total for name, part in parts.items()} | {"noise": noise}

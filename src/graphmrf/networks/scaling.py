"""Units: what a network sees has mean 0 and variance 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from graphmrf._typing import Floats


@dataclass(frozen=True)
class Scaling:
    """Shifts and scales of the features (p,) and of the outcome."""

    means: Floats
    scales: Floats
    mean: float
    scale: float

    @classmethod
    def of(cls, X: Floats, y: Floats, *, centred: bool) -> Scaling:
        """Return what brings features and known outcomes to mean square 1, and to mean 0 if `centred`.

        Examples
        --------
        >>> import numpy as np
        >>> Scaling.of(np.array([[1.0], [3.0]]), np.array([2.0, 6.0]), centred=True).outcome(np.array([8.0]))
        array([2.])
        """
        means, mean = (X.mean(axis=0), float(y.mean())) if centred else (np.zeros(X.shape[1]), 0.0)
        scales, scale = np.sqrt(np.mean((X - means) ** 2, axis=0)), float(np.sqrt(np.mean((y - mean) ** 2)))
        return cls(means, np.where(scales > 0, scales, 1.0), mean, scale or 1.0)

    @classmethod
    def none(cls, n_features: int) -> Scaling:
        """Return what leaves everything as it is."""
        return cls(np.zeros(n_features), np.ones(n_features), 0.0, 1.0)

    def features(self, X: Floats) -> Floats:
        """Return features as the network sees them."""
        return np.asarray((X - self.means) / self.scales)

    def outcome(self, y: Floats) -> Floats:
        """Return outcomes as the network sees them."""
        return np.asarray((y - self.mean) / self.scale)

    def prediction(self, output: Floats) -> Floats:
        """Return what the network says in the units of the user."""
        return np.asarray(output * self.scale + self.mean)

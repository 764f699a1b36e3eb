"""Features as uncorrelated columns of unit variance: units, scales and exact collinearity are dealt with once, here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from graphmrf.selection.least_squares import RANK_TOLERANCE, triangular

if TYPE_CHECKING:
    from graphmrf._typing import Floats


@dataclass(frozen=True)
class Whitened:
    r"""Features :math:`Z = (X - 1 m') T` with :math:`Z'Z = n I`.

    Smoothing is linear, so regression on the smoothed `Z` and on the smoothed `X` give the same predictions, but `Z`
    has exactly the rank of `X`: a direction in which the features do not vary is gone before a solver can blur it.
    Predictions therefore do not depend on the units of the features, nor on duplicated or collinear ones.

    Attributes
    ----------
    Z : array of shape (n, r)
        Uncorrelated features, mean square 1 over all nodes.
    means : array of shape (p,)
        Means `m` over all nodes; 0 when the features were not centred.
    T : array of shape (p, r)
        The map from centred features; a coefficient g of `Z` is ``T @ g`` of the features.
    centred : bool
        Whether the means were subtracted, which goes with fitting an intercept.
    """

    Z: Floats
    means: Floats
    T: Floats
    centred: bool

    def noise(self, tolerance: float) -> float:
        r"""Return a bound on the error of the smoothed `Z` when each column was solved to a relative residual.

        The inverse of :math:`I + \omega N` has norm at most 1, so errors are at most the tolerance times that of `Z`.
        """
        return tolerance * float(np.sqrt(self.Z.size))


def whiten(X: Floats, *, centred: bool) -> Whitened:
    """Return uncorrelated features of unit mean square over all nodes.

    A column that is constant to rounding, or a linear combination of others to a relative 1e-10, adds no column.

    Parameters
    ----------
    X : array of shape (n, p)
        Features, finite.
    centred : bool
        Subtract the means over all nodes.

    Examples
    --------
    >>> import numpy as np
    >>> features = whiten(np.array([[1.0, 2.0, 5.0], [2.0, 4.0, 5.0], [3.0, 6.0, 5.0]]), centred=True)
    >>> abs(features.Z).round(4)
    array([[1.2247],
           [0.    ],
           [1.2247]])
    """
    n, p = X.shape
    magnitude = np.maximum(X.max(axis=0, initial=0.0), -X.min(axis=0, initial=0.0))
    unit = np.ldexp(1.0, np.frexp(magnitude)[1] - 1)  # powers of 2: nothing is rounded, and no square overflows
    deviations = X / unit
    means = deviations.mean(axis=0) if centred else np.zeros(p)
    deviations -= means
    R = triangular(deviations)
    spread = np.linalg.norm(R, axis=0) / np.sqrt(n)
    constant = spread <= 16 * np.finfo(np.float64).eps * (magnitude / unit)
    scale = np.where(constant, np.inf, spread)
    _, s, Vt = np.linalg.svd(R / scale, full_matrices=False)
    keep = s > RANK_TOLERANCE * s.max(initial=0.0)
    T = Vt[keep].T * (np.sqrt(n) / s[keep]) / scale[:, None]
    return Whitened(deviations @ T, means * unit, T / unit[:, None], centred)

"""L-BFGS, asked again: it takes one short step of its line search for the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import minimize

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from graphmrf._typing import Floats


class Lowest(NamedTuple):
    """Where a function is lowest, its value there, and how often it was computed."""

    point: Floats
    value: float
    evaluations: int


def descend(
    function: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    bounds: Sequence[tuple[float, float]],
    *,
    steps: int,
    least_gain: float,
    ftol: float,
) -> Lowest:
    """Return where a function with gradient is lowest.

    Parameters
    ----------
    function : callable
        Returns value and gradient at a point.
    start : array of shape (k,)
        Where to begin.
    bounds : sequence of k pairs
        Lower and upper bounds.
    steps : int
        Most steps to take.
    least_gain : float
        A search that gains less than this ends it; otherwise another one goes on from there.
    ftol : float
        Relative gain of a step that ends one search.

    Examples
    --------
    >>> bounds = [(0.5, 2.0), (-1.0, 1.0)]
    >>> descend(lambda x: (float(x @ x), 2 * x), np.ones(2), bounds, steps=10, least_gain=1e-9, ftol=1e-9).point
    array([0.5, 0. ])
    """
    point, value, taken, evaluations = start, np.inf, 0, 0
    while taken < steps:
        found = minimize(
            function,
            point,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": steps - taken, "maxcor": 20, "ftol": ftol},
        )
        point, gain, value = np.asarray(found.x), value - float(found.fun), float(found.fun)
        taken, evaluations = taken + max(int(found.nit), 1), evaluations + int(found.nfev)
        if gain < least_gain:
            break
    return Lowest(point, value, evaluations)

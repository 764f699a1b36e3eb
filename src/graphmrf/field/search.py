r"""The search for the most probable hyper-parameters, and the average around them.

The mode is found by Levenberg-Marquardt steps with average information (Gilmour, Thompson and Cullis, 1995), the mean
of observed and expected information. Around it the posterior of the coordinates `x` is approximated by a normal
distribution. Members are drawn from it, in pairs opposite each other, and weighted by their true posterior density over
that of the approximation (importance weights, truncated as Ionides, 2008, suggests). With more labels the posterior
narrows, and the members become one.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy.linalg import cho_factor, solve_triangular

if TYPE_CHECKING:
    from graphmrf._typing import Floats

_PROGRESS = logging.getLogger("graphmrf.progress")

MEMBERS = 24
"""Members of an average over hyper-parameters."""

WARM = 0.01
"""First damping of a search that begins near its mode."""

_NEGLIGIBLE = 0.1
"""Weight, over that of an equal share, below which a member is left out of the average."""

_LARGEST_STEP = 2.0
"""Largest change of a coordinate in one step, in prior standard deviations."""


class Evidence(Protocol):
    """The negative log posterior of hyper-parameters in standard normal coordinates."""

    @property
    def size(self) -> int:
        """Number of coordinates."""

    def value(self, x: Floats) -> float:
        """Return the negative log posterior, infinite where the covariance is not positive definite."""

    def expand(self, x: Floats) -> tuple[float, Floats, Floats]:
        """Return value, gradient and a positive definite curvature."""


@dataclass(frozen=True, eq=False)
class Mode:
    """Where a search ended: the coordinates, the negative log posterior, the curvature, and the number of steps."""

    x: Floats
    value: float
    curvature: Floats
    steps: int


def find_mode(
    evidence: Evidence, start: Floats, *, max_steps: int = 60, tolerance: float = 0.01, damping: float = 1.0
) -> Mode:
    """Return the mode of the posterior that is reached from a start.

    Parameters
    ----------
    evidence : Evidence
        The negative log posterior.
    start : array of shape (size,)
        Where to begin.
    max_steps : int
        Most steps.
    tolerance : float
        A step that gains less of the log posterior than this ends the search.
    damping : float
        First damping of the steps: 1 from anywhere, less from near the mode.

    Examples
    --------
    >>> class Bowl:
    ...     size = 2
    ...     def expand(self, x):
    ...         return float((x - 1) @ (x - 1)), 2 * (x - 1), 2 * np.eye(2)
    ...     def value(self, x):
    ...         return self.expand(x)[0]
    >>> find_mode(Bowl(), np.zeros(2), tolerance=1e-9).x.round(4)
    array([1., 1.])
    """
    x, steps = start, 0
    value, gradient, curvature = evidence.expand(x)
    while steps < max_steps:
        step = -np.linalg.solve(curvature + damping * np.diag(np.diag(curvature)), gradient)
        step *= min(1.0, _LARGEST_STEP / np.abs(step).max(initial=1e-300))
        promised = -float(gradient @ step + 0.5 * step @ curvature @ step)
        if promised < 0.1 * tolerance:
            break
        steps += 1
        found = evidence.expand(x + step)
        gain = value - found[0]
        if not gain > 0:
            damping = 4.0 * damping
            if damping > 1e6:
                break
            continue
        x, ratio = x + step, gain / promised
        damping = max(damping * (0.2 if ratio > 0.7 else 1.0 if ratio > 0.25 else 3.0), 1e-3)
        value, gradient, curvature = found
        _PROGRESS.info("field: step %d, log posterior %.1f", steps, -value)
        if gain < tolerance and ratio > 0.25:
            break
    return Mode(x, value, curvature, steps)


def around(mode: Mode, count: int, seed: int) -> tuple[Floats, Floats]:
    """Return points drawn around the mode in pairs opposite each other, and the standard normal draws behind them."""
    normal = np.random.default_rng(seed).standard_normal((count // 2, mode.x.size))
    normal = np.vstack([normal, -normal])
    factor = cho_factor(mode.curvature, lower=True)
    return mode.x + solve_triangular(factor[0], normal.T, lower=True, trans="T").T, normal


def average(evidence: Evidence, mode: Mode, *, count: int = MEMBERS, seed: int = 0) -> tuple[list[Floats], Floats]:
    """Return coordinates of members drawn around the mode, and their weights, which add up to 1.

    Parameters
    ----------
    evidence : Evidence
        The negative log posterior.
    mode : Mode
        Its mode.
    count : int
        Number of members, even.
    seed : int
        Seed of the draws.
    """
    points, normal = around(mode, count, seed)
    logs = np.array([-evidence.value(x) for x in points]) + 0.5 * np.einsum("ij,ij->i", normal, normal)
    weights = np.exp(logs - logs.max())
    weights = np.minimum(weights, weights.mean() * np.sqrt(count))
    weights /= weights.sum()
    present = weights > _NEGLIGIBLE / count
    return list(points[present]), weights[present] / weights[present].sum()

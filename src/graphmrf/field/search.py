r"""The search for the most probable hyper-parameters, and the average around them.

The mode is found by Levenberg-Marquardt steps with average information (Gilmour, Thompson and Cullis, 1995), the mean
of observed and expected information. Members of the average are drawn from the posterior by elliptical slice sampling
(Murray, Adams and MacKay, 2010) around the normal distribution at the mode. With more labels the posterior narrows, and
the members become one.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy.linalg import cho_factor, solve_triangular

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from graphmrf._typing import Floats

_PROGRESS = logging.getLogger("graphmrf.progress")
MEMBERS = 24  # members of an average over hyper-parameters
WARM = 0.01  # first damping of a search that begins near its mode
_STEPS = 2  # steps of a chain from one member to the next
_NARROW = 1e-6  # width of an arc that ends a step where it is
_LARGEST_STEP = 2.0  # largest change of a coordinate in one step, in prior standard deviations


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

    A step that gains less of the log posterior than `tolerance` ends the search; the first `damping` is 1 from
    anywhere, less from near the mode.

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
        length = min(1.0, _LARGEST_STEP / np.abs(step).max(initial=1e-300))
        step *= length
        promised = -float(gradient @ step + 0.5 * step @ curvature @ step)
        if promised < 0.1 * tolerance:
            break
        steps += 1
        found = evidence.expand(x + step)
        gain = value - found[0]
        if not gain > 0:
            share = _least_share(float(gradient @ step), -gain) * length
            damping = max((1.0 + damping) / share - 1.0, 4.0 * damping)
            if damping > 1e6 or -gain < tolerance:  # as good as where it began
                break
            continue
        x, ratio = x + step, gain / promised
        damping = max(damping * (0.2 if ratio > 0.7 else 1.0 if ratio > 0.25 else 3.0), 1e-3)
        value, gradient, curvature = found
        _PROGRESS.info("field: step %d, log posterior %.1f", steps, -value)
        if gain < tolerance and ratio > 0.25:
            break
    return Mode(x, value, curvature, steps)


def _least_share(slope: float, rise: float) -> float:
    """Return the share of a step at which the parabola through a slope and a rise is least, a tenth or more."""
    return max(0.1, -0.5 * slope / (rise - slope))


def first_draw(mode: Mode, seed: int) -> Floats:
    """Return a draw from the normal distribution at the mode."""
    normal = np.random.default_rng(seed).standard_normal(mode.x.size)
    return _place(mode, cho_factor(mode.curvature, lower=True)[0], normal)


def _place(mode: Mode, factor: Floats, normal: Floats) -> Floats:
    return np.asarray(mode.x + solve_triangular(factor, normal, lower=True, trans="T"))


def average(evidence: Evidence, mode: Mode, *, count: int = MEMBERS, seed: int = 0) -> Iterator[Floats]:
    """Yield coordinates of members drawn from the posterior by elliptical slice sampling (Murray and others, 2010).

    Two chains begin at the mode and move in opposite directions on ellipses of the normal distribution there; where
    that is not the posterior, steps are shorter. Every step has random numbers of its own, so that chains of nearly the
    same posteriors come together, and fewer members are the first of more. Their number `count` is even.
    """
    place = partial(_place, mode, cho_factor(mode.curvature, lower=True)[0])

    def excess(normal: Floats) -> float:
        return 0.5 * float(normal @ normal) - evidence.value(place(normal)) + mode.value

    states: list[tuple[Floats, float]] = [(np.zeros(mode.x.size), 0.0)] * 2
    for step in range(count // 2 * _STEPS):
        for k, side in enumerate((1.0, -1.0)):
            states[k] = _slice(excess, states[k], np.random.default_rng((seed, step)), side)
        if step % _STEPS == _STEPS - 1:
            yield from (place(state) for state, _ in states)


def _slice(
    excess: Callable[[Floats], float], now: tuple[Floats, float], rng: np.random.Generator, side: float
) -> tuple[Floats, float]:
    """Return the next state and its excess: a point of an ellipse with more of it than a random part of that now."""
    least, other = now[1] - rng.exponential(), side * rng.standard_normal(now[0].size)
    angle = rng.uniform(0.0, 2.0 * math.pi)
    low, high = angle - 2.0 * math.pi, angle
    while high - low > _NARROW:
        state = now[0] * math.cos(angle) + other * math.sin(angle)
        if (value := excess(state)) > least:
            return state, value
        low, high = (angle, high) if angle < 0.0 else (low, angle)
        angle = rng.uniform(low, high)
    return now

r"""Newton's method for the convex likelihood, with a barrier that keeps `H` and `C` inside their cones.

In channels the curvature does not mix pairs of channels, so a Newton step of the coupled field is a 2 by 2 system for
every pair, and that of the paper's field (`C` diagonal) one q by q system after `H` is eliminated: no Hessian of the
q (q + 1) / 2 parameters is ever formed. The barrier :math:`-2 \mu (\log\det H + \log\det C)` starts high and is taken
to zero (the likelihood alone guards against a singular `H` with a weight of 1 / n only), steps stop short of the
boundary and are halved until the objective falls: no start makes the search fail.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from graphmrf.errors import ConvergenceError
from graphmrf.model.channels import Channels, channels
from graphmrf.model.likelihood import derivatives

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats
    from graphmrf.linalg.spectrum import Spectrum
    from graphmrf.model.likelihood import Derivatives, Statistics

_BARRIERS = tuple(10.0**-k for k in range(12))
_MAX_STEPS = 500
_NEAR_STEPS = 12
_NEAR_BARRIER = 6
_PATIENCE = 6
_SETTLED = 1e-24
"""Squared Newton decrement, per node, below which rounding is all that is left."""
_SHORT_OF_BOUNDARY = 0.95
NEGLIGIBLE = 1e-6
"""Strength of a channel of a coupled field that counts as 0."""
_ZERO = 1e-12
"""Smoothing strength that counts as 0 once the barrier is gone."""


@dataclass(frozen=True)
class Point:
    """A pair (H, C), and how many steps led to it."""

    H: Floats
    C: Floats
    steps: int = 0

    @cached_property
    def parts(self) -> Channels:
        """The channels; LinAlgError if H is not positive definite."""
        return channels(self.H, self.C)


@dataclass(frozen=True)
class Step:
    """A Newton direction, its squared decrement, and how far it leads to the boundary of the cone."""

    dH: Floats
    dC: Floats
    decrement: float
    longest: float


class Direction(Protocol):
    """What turns derivatives into a step, that is, the shape of C."""

    def __call__(self, point: Point, d: Derivatives) -> Step:
        """Return the Newton step from a point."""


@dataclass(frozen=True)
class Problem:
    """The objective: ``-2 log p`` per node, less the constant, plus a barrier."""

    data: Statistics
    states: Spectrum

    def value(self, point: Point, barrier: float) -> float:
        """Return the objective; infinite where C is singular and there is a barrier."""
        parts, n = point.parts, self.data.n
        linear = float(np.vdot(point.H, self.data.M0) + np.vdot(point.C, self.data.M1)) / n
        terms = np.log1p(self.states.nodes[:, None] * parts.strength).sum(axis=1)
        smooth = linear - parts.log_det_H - float(self.states.weights @ terms) / n
        if barrier == 0:
            return smooth
        with np.errstate(divide="ignore"):
            return smooth - 2.0 * barrier * (2.0 * parts.log_det_H + float(np.log(parts.strength).sum()))

    def derivatives(self, point: Point, barrier: float) -> Derivatives:
        """Return gradient and curvature of the objective."""
        d, strength = derivatives(point.parts, self.data, self.states), point.parts.strength
        d = replace(d, **{name: values / self.data.n for name, values in vars(d).items()})
        if barrier == 0:
            return d
        push, pull = 2.0 * barrier * np.eye(len(strength)), 2.0 * barrier / np.multiply.outer(strength, strength)
        return replace(d, G0=d.G0 - push, s0=d.s0 + 2.0 * barrier, G1=d.G1 - push / strength, s2=d.s2 + pull)


def minimise_coupled(problem: Problem, start: Point, *, near: bool = False) -> Point:
    """Return the optimum over positive definite H and positive semidefinite C; what is nearly 0 in C is made 0.

    A start that is `near` the optimum goes on from a low barrier.
    """
    barriers = _BARRIERS[_NEAR_BARRIER:] if near else _BARRIERS
    point = inside(start, barriers[0])
    for barrier in barriers:
        point = descend(problem, point, barrier, coupled_step)
    parts = point.parts
    strength = np.where(parts.strength < NEGLIGIBLE, 0.0, parts.strength)
    C = (parts.U * strength) @ parts.U.T
    return Point(point.H, (C + C.T) / 2, point.steps)


def inside(start: Point, barrier: float) -> Point:
    """Return a start whose C is as far inside its cone as a barrier wants it."""
    return Point(start.H, start.C + 1e-3 * np.sqrt(barrier) * np.diag(np.diag(start.H)))


def minimise_diagonal(problem: Problem, start: Point, *, near: bool = False) -> Point:
    """Return the optimum over positive definite H and ``C = diag(h)``, h >= 0; an h at the boundary is exactly 0.

    A start that is `near` the optimum needs no barrier; if it turns out not to be near, the barriers are still there.
    """
    if near:
        try:
            return _settle(problem, start, np.diag(start.C) > 0, max_steps=_NEAR_STEPS)
        except ConvergenceError:
            pass
    point = inside(start, _BARRIERS[0])
    for barrier in _BARRIERS[:-3]:
        point = descend(problem, point, barrier, DiagonalStep(np.ones(len(start.H), dtype=bool)))
    free = np.diag(point.C) / np.diag(point.H) > slope(problem, point) * np.diag(point.H)
    return _settle(problem, point, free, max_steps=_MAX_STEPS)


def _settle(problem: Problem, point: Point, free: Bools, *, max_steps: int) -> Point:
    """Return the optimum without barrier: only free entries of h move, the others are 0 unless their slope is < 0."""
    for _ in range(4 * free.size + 4):
        point = Point(point.H, point.C * np.diag(free), point.steps)
        point = descend(problem, point, 0.0, DiagonalStep(free), max_steps=max_steps)
        blocked = free & (np.diag(point.C) == 0)
        released = ~free & (slope(problem, point) < -1e-9)
        if not (blocked | released).any():
            break
        free = (free & ~blocked) | released
    return point


def slope(problem: Problem, point: Point) -> Floats:
    """Return the derivative of the objective (without barrier) by every diagonal entry of C, shape (q,)."""
    inverse = point.parts.inverse
    return np.asarray(np.einsum("aj,ab,bj->j", inverse, problem.derivatives(point, 0.0).G1, inverse))


def descend(
    problem: Problem, point: Point, barrier: float, direction: Direction, *, max_steps: int = _MAX_STEPS
) -> Point:
    """Return the minimum with one barrier; while the barrier is still high, a point near enough to go on from."""
    target = _SETTLED if barrier <= _BARRIERS[-1] else 1e-3 * barrier
    best, patience = np.inf, _PATIENCE
    for _ in range(max_steps):
        step = direction(point, problem.derivatives(point, barrier))
        patience = _PATIENCE if step.decrement < best / 2 or step.decrement > 1e-9 else patience - 1
        best = min(best, step.decrement)
        if step.decrement <= target or step.longest <= 0 or patience == 0:
            return point
        reached = _search(problem, point, barrier, step)
        if reached is None:
            return point
        point = reached
    raise ConvergenceError(f"no optimum after {max_steps} Newton steps; standardise the attributes and fit again")


def _search(problem: Problem, point: Point, barrier: float, step: Step) -> Point | None:
    """Return the first point along a step at which the objective falls enough, or None if there is none."""
    length = min(1.0, step.longest if barrier == 0 else _SHORT_OF_BOUNDARY * step.longest)
    before = problem.value(point, barrier)
    rounding = 1e-14 * (1.0 + abs(before))
    for _ in range(60):
        C = point.C + length * step.dC
        if barrier == 0:
            C[np.abs(C) <= _ZERO * np.diag(point.H)] = 0.0
        reached = Point(point.H + length * step.dH, C, point.steps + 1)
        try:
            fall = before - problem.value(reached, barrier)
        except np.linalg.LinAlgError:
            fall = -np.inf
        if fall >= 1e-4 * length * step.decrement - rounding:
            return reached
        length /= 2
    return None


def coupled_step(point: Point, d: Derivatives) -> Step:
    """Return the Newton step for a full C: one 2 by 2 system for every pair of channels."""
    U = point.parts.U
    determinant = d.s0 * d.s2 - d.s1**2
    X = (d.s1 * d.G1 - d.s2 * d.G0) / determinant
    Y = (d.s1 * d.G0 - d.s0 * d.G1) / determinant
    root = np.sqrt(point.parts.strength)
    longest = min(_until_singular(X), _until_singular(Y / np.multiply.outer(root, root)))
    return Step(_symmetric(U @ X @ U.T), _symmetric(U @ Y @ U.T), _decrement(d, X, Y), longest)


@dataclass(frozen=True)
class DiagonalStep:
    """The Newton step for a diagonal C, of which only the `free` entries move: one system after H is eliminated."""

    free: Bools

    def __call__(self, point: Point, d: Derivatives) -> Step:
        """Return the Newton step from a point."""
        U, inverse, free = point.parts.U, point.parts.inverse, self.free
        S, gradient = reduced(inverse, d)
        dh = np.zeros(len(free))
        dh[free] = -_solve(S[np.ix_(free, free)], gradient[free])
        Y = (inverse * dh) @ inverse.T
        X = -(d.G0 + d.s1 * Y) / d.s0
        h, falling = np.diag(point.C), dh < 0
        to_zero = float((h[falling] / -dh[falling]).min(initial=np.inf))
        longest = min(to_zero, _SHORT_OF_BOUNDARY * _until_singular(X))
        return Step(_symmetric(U @ X @ U.T), np.diag(dh), _decrement(d, X, Y), longest)


def reduced(inverse: Floats, d: Derivatives) -> tuple[Floats, Floats]:
    """Return curvature (q, q) and gradient (q,) of the objective for h, with H at its best for every h."""
    q, ratio = len(inverse), d.s1 / d.s0
    K = (inverse[:, None, :] * inverse[None, :, :]).reshape(q * q, q)
    curvature = np.maximum(d.s2 - d.s1 * ratio, 0.0).reshape(q * q, 1)
    return K.T @ (curvature * K), K.T @ (d.G1 - ratio * d.G0).ravel()


def _decrement(d: Derivatives, X: Floats, Y: Floats) -> float:
    return -float(np.vdot(d.G0, X) + np.vdot(d.G1, Y))


def _symmetric(M: Floats) -> Floats:
    return (M + M.T) / 2


def _until_singular(X: Floats) -> float:
    """Return the largest t for which I + t X is positive semidefinite."""
    lowest = float(np.linalg.eigvalsh(X)[0])
    return -1.0 / lowest if lowest < 0 else np.inf


def _solve(S: Floats, b: Floats) -> Floats:
    """Solve a positive semidefinite system in the directions in which it is not singular to rounding."""
    scale = 1.0 / np.sqrt(np.maximum(np.diag(S), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(scale[:, None] * S * scale)
    kept = values > 1e-14
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=kept)
    return np.asarray(scale * (vectors @ (inverse * (vectors.T @ (scale * b)))))

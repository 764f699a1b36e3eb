r"""Newton's method for the paper's field, whose C is the diagonal of `h`, with a barrier that keeps H and h positive.

In channels the curvature does not mix pairs of channels. So `H` is eliminated entry by entry, and a Newton step is one
q by q system for `h`: no Hessian of the q (q + 1) / 2 entries of `H` is ever formed. The barrier
:math:`-2 \mu (\log\det H + \sum_j \log h_j)` starts high and is taken to zero (the likelihood alone guards against a
singular `H` with a weight of 1 / n only), steps stop short of the boundary and are halved until the objective falls:
no start makes the search fail. At the end the entries of `h` that the boundary holds are exactly 0. All of it happens
in whitened attributes, so attributes that are nearly combinations of each other do no harm.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from threadpoolctl import threadpool_limits

from graphmrf.errors import ConvergenceError
from graphmrf.model.channels import Channels, channels
from graphmrf.model.likelihood import Statistics, derivatives

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats
    from graphmrf.linalg.spectrum import Spectrum
    from graphmrf.model.likelihood import Derivatives

_BARRIERS = tuple(10.0**-k for k in range(9))
_MAX_STEPS = 500
_NEAR_STEPS = 12
_PATIENCE = 6
_SETTLED = 1e-24
"""Squared Newton decrement, per node, below which rounding is all that is left."""
_SHORT_OF_BOUNDARY = 0.95
_ZERO = 1e-12
"""Share of an h in the objective that counts as 0 once the barrier is gone."""


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


def minimise(data: Statistics, states: Spectrum, start: Point, *, near: bool = False) -> Point:
    """Return the optimum over positive definite H and ``C = diag(h)``, h >= 0.

    A start that is `near` the optimum needs no barrier; if it turns out not to be near, the barriers are still there.
    """
    L = cholesky(data.M0 / data.n, lower=True)
    half = solve_triangular(L, data.M1, lower=True)
    white = Statistics(data.n, data.n * np.eye(len(L)), solve_triangular(L, half.T, lower=True))
    problem = _Problem(white, states, L.T)
    with threadpool_limits(1, "blas"):  # matrices this small only lose by being shared between threads
        found = _minimise(problem, _Iterate(problem, L.T @ start.H @ L, np.diag(start.C).copy()), near=near)
    half = solve_triangular(L, found.H, lower=True, trans="T")
    H = solve_triangular(L, half.T, lower=True, trans="T")
    return Point((H + H.T) / 2, np.diag(found.h), found.steps)


@dataclass(frozen=True)
class _Problem:
    """The objective: ``-2 log p`` per node, less the constant, plus a barrier; C is ``B diag(h) B'``."""

    data: Statistics
    states: Spectrum
    B: Floats
    barrier: float = 0.0


@dataclass(frozen=True)
class _Iterate:
    """A pair (H, h) on the way, with what the problem says of it."""

    problem: _Problem
    H: Floats
    h: Floats
    steps: int = 0

    @cached_property
    def parts(self) -> Channels:
        C = (self.problem.B * self.h) @ self.problem.B.T
        return channels(self.H, (C + C.T) / 2)

    @cached_property
    def value(self) -> float:
        """The objective; LinAlgError if H is not positive definite."""
        parts, problem = self.parts, self.problem
        G0, G1 = (parts.U.T @ M @ parts.U / problem.data.n for M in (problem.data.M0, problem.data.M1))
        linear = float(np.trace(G0) + parts.strength @ np.diag(G1))
        terms = np.log1p(problem.states.nodes[:, None] * parts.strength).sum(axis=1)
        smooth = linear - parts.log_det_H - float(problem.states.weights @ terms) / problem.data.n
        if problem.barrier == 0:
            return smooth
        return smooth - 2.0 * problem.barrier * (parts.log_det_H + float(np.log(self.h).sum()))

    @cached_property
    def derivatives(self) -> Derivatives:
        """Gradient and curvature in channels; the barrier on H is in it, that on h is not."""
        d, push = derivatives(self.parts, self.problem.data, self.problem.states), 2.0 * self.problem.barrier
        d = replace(d, **{name: values / self.problem.data.n for name, values in vars(d).items()})
        return replace(d, G0=d.G0 - push * np.eye(len(d.G0)), s0=d.s0 + push)

    @cached_property
    def loadings(self) -> Floats:
        """How every entry of h enters the channels, one column each."""
        return self.parts.inverse @ self.problem.B

    @property
    def slope(self) -> Floats:
        """Derivative of the objective, without its barrier, by every entry of h."""
        return np.asarray(np.einsum("aj,ab,bj->j", self.loadings, self.derivatives.G1, self.loadings))

    def moved(self, step: _Step, length: float) -> _Iterate:
        """Return the point some way along a step."""
        h = self.h + length * step.dh
        if self.problem.barrier == 0:
            share = h * ((self.problem.B.T @ self.problem.data.M1) * self.problem.B.T).sum(axis=1)
            h = np.where(share <= _ZERO * self.problem.data.n, 0.0, h)
        return _Iterate(self.problem, self.H + length * step.dH, h, self.steps + 1)


@dataclass(frozen=True)
class _Step:
    """A Newton direction, its squared decrement, and how far it may be followed."""

    dH: Floats
    dh: Floats
    decrement: float
    longest: float


def _minimise(problem: _Problem, start: _Iterate, *, near: bool) -> _Iterate:
    if near:
        try:
            return _settle(start, start.h > 0, max_steps=_NEAR_STEPS)
        except ConvergenceError:
            pass
    point = replace(start, h=start.h + 1e-3 * problem.data.n / np.diag(problem.B.T @ problem.data.M1 @ problem.B))
    everything = np.ones(start.h.size, dtype=bool)
    for barrier in _BARRIERS:
        point = replace(point, problem=replace(problem, barrier=barrier))
        point = _descend(point, everything, max_steps=_MAX_STEPS)
    point = replace(point, problem=problem)
    S, _ = reduced(point.loadings, point.derivatives)
    # Where the barrier is all that holds h up, the way to the minimum without it is longer than the way to 0.
    return _settle(point, point.h * np.diag(S) > point.slope, max_steps=_MAX_STEPS)


def _settle(point: _Iterate, free: Bools, *, max_steps: int) -> _Iterate:
    """Return the optimum without barrier: only free entries of h move, the others are 0 unless their slope is < 0."""
    for _ in range(4 * free.size + 4):
        point = _descend(replace(point, h=point.h * free), free, max_steps=max_steps)
        blocked = free & (point.h == 0)
        released = ~free & (point.slope < -1e-9)
        if not (blocked | released).any():
            break
        free = (free & ~blocked) | released
    return point


def _descend(point: _Iterate, free: Bools, *, max_steps: int) -> _Iterate:
    """Return the minimum; while there is a barrier, a point near enough to go on from."""
    target = 1e-3 * point.problem.barrier or _SETTLED
    best, patience = np.inf, _PATIENCE
    for _ in range(max_steps):
        step = _newton_step(point, free)
        patience = _PATIENCE if step.decrement < best / 2 or step.decrement > 1e-9 else patience - 1
        best = min(best, step.decrement)
        if step.decrement <= target or step.longest <= 0 or patience == 0:
            return point
        reached = _search(point, step)
        if reached is None:
            return point
        point = reached
    raise ConvergenceError(f"no optimum after {max_steps} Newton steps; drop attributes that others nearly determine")


def _search(point: _Iterate, step: _Step) -> _Iterate | None:
    """Return the first point along a step at which the objective falls enough, or None if there is none."""
    length, rounding = min(1.0, step.longest), 1e-14 * (1.0 + abs(point.value))
    for _ in range(60):
        reached = point.moved(step, length)
        try:
            fall = point.value - reached.value
        except np.linalg.LinAlgError:
            fall = -np.inf
        if fall >= 1e-4 * length * step.decrement - rounding:
            return reached
        length /= 2
    return None


def _newton_step(point: _Iterate, free: Bools) -> _Step:
    """Return the Newton step for H and the free entries of h."""
    U, V, d, barrier = point.parts.U, point.loadings, point.derivatives, point.problem.barrier
    S, gradient = reduced(V, d)
    inverse_h = np.divide(1.0, point.h, out=np.zeros(free.size), where=point.h > 0)
    push = 2.0 * barrier * inverse_h
    S[np.diag_indices(free.size)] += push * inverse_h
    dh = np.zeros(free.size)
    dh[free] = -_solve(S[np.ix_(free, free)], (gradient - push)[free])
    Y = (V * dh) @ V.T
    X = -(d.G0 + d.s1 * Y) / d.s0
    decrement = -float(np.vdot(d.G0, X) + np.vdot(d.G1, Y) - push @ dh)
    falling = dh < 0
    to_zero = float((point.h[falling] / -dh[falling]).min(initial=np.inf))
    to_zero *= _SHORT_OF_BOUNDARY if barrier else 1.0
    dH = U @ X @ U.T
    return _Step((dH + dH.T) / 2, dh, decrement, min(to_zero, _SHORT_OF_BOUNDARY * _until_singular(X)))


def reduced(V: Floats, d: Derivatives) -> tuple[Floats, Floats]:
    """Return curvature (q, q) and gradient (q,) of the objective for h, with H at its best for every h.

    The columns of `V` say how the entries of h enter the channels.
    """
    q, ratio = len(V), d.s1 / d.s0
    K = (V[:, None, :] * V[None, :, :]).reshape(q * q, q)
    curvature = np.maximum(d.s2 - d.s1 * ratio, 0.0).reshape(q * q, 1)
    return K.T @ (curvature * K), K.T @ (d.G1 - ratio * d.G0).ravel()


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

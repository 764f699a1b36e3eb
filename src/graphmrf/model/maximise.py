r"""The maximum of the likelihood for given statistics: Newton's method for ``C = diag(h)``, closed form for a full C.

**The paper's field**, ``C = diag(h)``. In channels the curvature does not mix pairs of channels. So `H` is eliminated
entry by entry, and a Newton step is one q by q system for `h`: no Hessian of the q (q + 1) / 2 entries of `H` is ever
formed. The barrier :math:`-2 \mu (\log\det H + \sum_j \log h_j)` starts high and is taken to zero (the likelihood alone
guards against a singular `H` with a weight of 1 / n only), steps stop short of the boundary and are halved until the
objective falls: the search succeeds from any start. At the end entries of `h` on the boundary are exactly 0. Attributes
are whitened, so near-collinear ones do no harm.

**The coupled field.** Attributes can be recombined so that both :math:`A'A` and :math:`A'NA` become diagonal, to n and
:math:`n m_j`. The likelihood then does not change when a channel changes its sign, and as it has one maximum, that is
diagonal too: every channel is fitted by itself. With :math:`C_j = \lambda_j H_j` the best :math:`H_j` is
:math:`1 / (1 + \lambda_j m_j)`, and :math:`\lambda_j` is the root of

.. math:: \frac{\lambda m}{1 + \lambda m} = \frac{1}{n} \sum_i \frac{\lambda l_i}{1 + \lambda l_i},

or 0 where a channel is no smoother along the edges than white noise, :math:`m_j \ge \mathrm{tr} N / n`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cholesky, eigh, pinvh, solve_triangular
from scipy.optimize import brentq

from graphmrf.caching import cached_property
from graphmrf.errors import ConvergenceError
from graphmrf.linalg.dense import one_blas_thread
from graphmrf.linalg.multishift import inverse
from graphmrf.model.likelihood import Statistics, derivatives, log_likelihood, schur_complement
from graphmrf.model.parameters import Channels, Parameters, channels

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats
    from graphmrf.linalg.spectrum import Spectrum
    from graphmrf.model.likelihood import Derivatives


@dataclass(frozen=True)
class Newton:
    """Options of Newton's method with a barrier."""

    # weights of the barrier, per node. The last moves no parameter by more than 1e-8, from where Newton's method
    # without a barrier converges.
    barriers: tuple[float, ...] = tuple(10.0**-k for k in range(9))
    # max_steps, near_steps: steps for one barrier before it counts as a failure (a dozen are usual), and from a start
    # that should be near
    max_steps: int = 500
    near_steps: int = 12
    patience: int = 6  # steps without progress, close to the optimum, after which rounding is all that is left
    # squared Newton decrement, per node, at which the search ends: parameters are then exact to 1e-12
    tolerance: float = 1e-24
    # share of the way to the boundary that a step may go, usual for interior-point methods (0.9 to 0.995)
    short_of_boundary: float = 0.95
    # share of an h in the objective that counts as 0 once the barrier is gone: ten thousand roundings
    zero: float = 1e-12
    released: float = 1e-9  # slope per node, downhill, at which an h of 0 is released: well above its rounding
    halvings: int = 60  # halvings of a step before it is given up: beyond, its length is below rounding
    armijo: float = 1e-4  # share of the predicted decrease that a step must achieve, as in most line searches


@dataclass(frozen=True)
class FitProblem:
    """What is to be fitted to standardised attributes."""

    states: Spectrum  # density of states of the graph
    names: tuple[str, ...]  # names of the attributes
    # coupled, mean_is_free: whether C is full, and whether the mean is fitted
    coupled: bool
    mean_is_free: bool
    start: Parameters | None = None  # where to begin
    # number of nodes of white noise that count beside the data: a prior, under which there is a maximum whatever the
    # data
    prior: float = 0.0
    # turns, turned: most alternations between mean and (H, C), and the change of the mean, in standard deviations, that
    # ends them
    turns: int = 200
    turned: float = 1e-10

    def best(self, data: Statistics, start: Parameters | None, *, near: bool = False) -> tuple[Parameters, int]:
        """Return the parameters that maximise the likelihood, and the steps taken; `data` has a last column of ones.

        With the mean free, it and (H, C) are found in turns: for a given mean the problem is convex, and for given
        (H, C) the mean is one small system. Together they are not convex, so the search begins at the best mean of
        white noise and at that of a very smooth field, and the likelier end is taken.
        """
        zero: Floats = np.zeros(len(self.names))
        data = self.with_prior(data)
        if not self.mean_is_free:
            return self._at(zero, data, start, near=near)
        means = [zero] if near or data.M1[-1, -1] <= 0 else [zero, data.M1[:-1, -1] / data.M1[-1, -1]]
        ends = [self._in_turns(mean, data, start, near=near) for mean in means]
        return max(ends, key=lambda end: log_likelihood(end[0].channels, data.centred(end[0].mean), self.states))

    def with_prior(self, data: Statistics) -> Statistics:
        """Return the statistics with those of `prior` nodes of white noise, as means over the nodes of the graph."""
        if self.prior == 0:
            return data
        white = np.diag(np.append(np.full(len(self.names), self.prior), 0.0))
        roughness = self.states.sum(lambda x: x) / self.states.n_nodes
        share = data.n / (data.n + self.prior)
        return Statistics(data.n, share * (data.M0 + white), share * (data.M1 + roughness * white))

    def _at(self, mean: Floats, data: Statistics, start: Parameters | None, *, near: bool) -> tuple[Parameters, int]:
        H, C, steps = maximise_likelihood(data.centred(mean), self.states, coupled=self.coupled, start=start, near=near)
        return Parameters(H, C, mean), steps

    def _in_turns(
        self, mean: Floats, data: Statistics, start: Parameters | None, *, near: bool
    ) -> tuple[Parameters, int]:
        found, total = self._at(mean, data, start, near=near)
        for _ in range(self.turns):
            moved = best_mean(data, found)
            has_converged = np.abs(moved - found.mean).max() < self.turned
            found = replace(found, mean=moved)
            if has_converged:
                break
            found, steps = self._at(moved, data, found, near=True)
            total += steps
        return found, total


def maximise_likelihood(
    data: Statistics, states: Spectrum, *, coupled: bool, start: Parameters | None, near: bool
) -> tuple[Floats, Floats, int]:
    """Return the maximum-likelihood H and C for statistics of standardised attributes, and the steps taken.

    On a graph without edges C is 0. A start that is `near` the maximum saves steps.
    """
    if not has_edges(states):
        return np.linalg.inv(data.M0 / data.n), np.zeros_like(data.M0), 0
    if coupled:
        return maximise_coupled(data, states)
    if start is None:  # half the precision at the nodes, half along the edges
        return maximise_diagonal(
            data, states, np.linalg.inv(data.M0 / data.n) / 2, data.n / np.diag(data.M1) / 2, near=near
        )
    return maximise_diagonal(data, states, start.H, np.diag(start.C).copy(), near=near)


def best_mean(data: Statistics, parameters: Parameters) -> Floats:
    """Return the mean that maximises the likelihood for given (H, C): generalised least squares on a constant."""
    n, c = data.M0[-1, -1], data.M1[-1, -1]
    right = parameters.H @ data.M0[:-1, -1] + parameters.C @ data.M1[:-1, -1]
    return np.asarray(np.linalg.solve(n * parameters.H + c * parameters.C, right))


def has_edges(states: Spectrum) -> bool:
    """Whether some eigenvalue is not 0."""
    return bool((states.nodes * states.weights).max(initial=0.0) > 0)


def projected_gradient_norm(
    data: Statistics, states: Spectrum, parameters: Parameters, *, coupled: bool, zero: float = 1e-9
) -> float:
    """Return the largest entry of the gradient per node in the directions in which (H, C) may move.

    It is that of the negative log-likelihood, projected on the cone: eigenvalues of C up to the
    share `zero` of the largest are on it.
    """
    d, back = derivatives(parameters.channels, data, states), parameters.channels.inverse
    by_H, by_C = (back.T @ G @ back / (2.0 * data.n) for G in (d.G0, d.G1))
    if not has_edges(states):
        by_C = np.zeros_like(by_C)
    elif coupled:
        values, vectors = np.linalg.eigh(parameters.C)
        null = vectors[:, values <= zero * max(values[-1], 0.0)]
        held, axes = np.linalg.eigh(null.T @ by_C @ null)
        by_C = by_C - null @ (axes * np.maximum(held, 0.0)) @ axes.T @ null.T
    else:
        slope = np.diag(by_C)
        by_C = np.where(np.diag(parameters.C) > 0, slope, np.minimum(slope, 0.0))
    return float(max(np.abs(by_H).max(), np.abs(by_C).max()))


def maximise_coupled(data: Statistics, states: Spectrum) -> tuple[Floats, Floats, int]:
    """Return the maximum over positive definite H and positive semidefinite C, and the evaluations it took."""
    m, V = eigh(data.M1 / data.n, data.M0 / data.n)
    found = [channel_strength(float(roughness), states) for roughness in m]
    strength = np.array([value for value, _ in found])
    H = (V / (1.0 + strength * m)) @ V.T
    C = (V * (strength / (1.0 + strength * m))) @ V.T
    return (H + H.T) / 2, (C + C.T) / 2, sum(steps for _, steps in found)


def channel_strength(m: float, states: Spectrum) -> tuple[float, int]:
    """Return the strength of a channel of roughness `m`, and the number of evaluations it took."""
    x, w = states.nodes, states.weights / states.n_nodes

    def excess(strength: float) -> float:
        """The difference of the two sides, over a positive factor that would make it vanish at 0."""
        return float(w @ ((m - x) / (1.0 + strength * x)))

    if excess(0.0) >= 0:
        return 0.0, 0
    low, high = -1.0, 1.0
    while excess(np.exp(low)) >= 0:
        low -= 2.0 * (1.0 - low)
    while excess(np.exp(high)) <= 0:
        if high > np.log(np.finfo(np.float64).max) - 2.0:
            raise ConvergenceError("the smoothness of a column cannot be estimated; it has too few known cells")
        high += 2.0
    t, result = brentq(lambda t: excess(np.exp(t)), low, high, xtol=1e-14, full_output=True)
    return float(np.exp(t)), int(result.function_calls)


def maximise_diagonal(
    data: Statistics, states: Spectrum, H: Floats, h: Floats, *, near: bool
) -> tuple[Floats, Floats, int]:
    """Return the maximum over positive definite H and ``C = diag(h)``, h >= 0, and the Newton steps it took.

    A start (H, h) that is `near` the maximum needs no barrier; if it turns out not to be near, the barriers are still
    there.
    """
    L = cholesky(data.M0 / data.n, lower=True)
    half = solve_triangular(L, data.M1, lower=True)
    white = Statistics(data.n, data.n * np.eye(len(L)), solve_triangular(L, half.T, lower=True))
    with one_blas_thread():  # threads slow down matrices this small
        found = _minimise(Iterate(white, states, L.T, L.T @ H @ L, h), near=near)
    half = solve_triangular(L, found.H, lower=True, trans="T")
    H = solve_triangular(L, half.T, lower=True, trans="T")
    return (H + H.T) / 2, np.diag(found.h), found.steps


@dataclass(frozen=True)
class Iterate:
    """An iterate (H, h): ``-2 log p`` per node, less the constant, plus a barrier; C is ``B diag(h) B'``."""

    data: Statistics
    states: Spectrum
    B: Floats
    H: Floats
    h: Floats
    barrier: float = 0.0
    steps: int = 0
    newton: Newton = Newton()

    @cached_property
    def parts(self) -> Channels:
        """The channels of (H, C)."""
        C = (self.B * self.h) @ self.B.T
        return channels(self.H, (C + C.T) / 2)

    @cached_property
    def value(self) -> float:
        """The objective; LinAlgError if H is not positive definite."""
        parts, data = self.parts, self.data
        G0, G1 = (parts.U.T @ M @ parts.U / data.n for M in (data.M0, data.M1))
        linear = float(np.trace(G0) + parts.strength @ np.diag(G1))
        terms = np.log1p(self.states.nodes[:, None] * parts.strength).sum(axis=1)
        smooth = linear - parts.log_det_H - float(self.states.weights @ terms) / data.n
        if self.barrier == 0:
            return smooth
        return smooth - 2.0 * self.barrier * (parts.log_det_H + float(np.log(self.h).sum()))

    @cached_property
    def derivatives(self) -> Derivatives:
        """Gradient and curvature in channels; the barrier on H is in it, that on h is not."""
        d, push = derivatives(self.parts, self.data, self.states), 2.0 * self.barrier
        d = replace(d, **{name: values / self.data.n for name, values in vars(d).items()})
        return replace(d, G0=d.G0 - push * np.eye(len(d.G0)), s0=d.s0 + push)

    @cached_property
    def loadings(self) -> Floats:
        """How every entry of h enters the channels, one column each."""
        return self.parts.inverse @ self.B

    @property
    def roughness(self) -> Floats:
        """What every entry of h is multiplied by in the quadratic form: the diagonal of B' M1 B."""
        return np.asarray(np.einsum("aj,ab,bj->j", self.B, self.data.M1, self.B))

    @property
    def slope(self) -> Floats:
        """Derivative of the objective, without its barrier, by every entry of h."""
        return np.asarray(np.einsum("aj,ab,bj->j", self.loadings, self.derivatives.G1, self.loadings))

    def moved(self, step: Step, length: float) -> Iterate:
        """Return the point some way along a step."""
        h = self.h + length * step.dh
        if self.barrier == 0:
            h = np.where(h * self.roughness <= self.newton.zero * self.data.n, 0.0, h)
        return replace(self, H=self.H + length * step.dH, h=h, steps=self.steps + 1)


@dataclass(frozen=True)
class Step:
    """A Newton direction, its squared decrement, and how far it may be followed."""

    dH: Floats
    dh: Floats
    decrement: float
    longest: float


def _minimise(start: Iterate, *, near: bool) -> Iterate:
    if near:
        try:
            return _settle(start, start.h > 0, max_steps=start.newton.near_steps)
        except ConvergenceError:
            pass
    point = replace(start, h=start.h + 1e-3 * start.data.n / start.roughness)  # inside, at every scale
    everything = np.ones(start.h.size, dtype=bool)
    for barrier in start.newton.barriers:
        point = _descend(replace(point, barrier=barrier), everything, max_steps=start.newton.max_steps)
    point = replace(point, barrier=0.0)
    S, _ = schur_complement(point.loadings, point.derivatives)
    # If only the barrier keeps h from 0, the path to the minimum without it is longer than the path to 0.
    return _settle(point, point.h * np.diag(S) > point.slope, max_steps=start.newton.max_steps)


def _settle(point: Iterate, free: Bools, *, max_steps: int) -> Iterate:
    """Return the optimum without barrier: only free entries of h move, the others are 0 unless their slope is < 0."""
    for _ in range(4 * free.size + 4):  # every h is blocked and released a few times at most
        point = _descend(replace(point, h=point.h * free), free, max_steps=max_steps)
        blocked = free & (point.h == 0)
        released = ~free & (point.slope < -point.newton.released)
        if not (blocked | released).any():
            break
        free = (free & ~blocked) | released
    return point


def _descend(point: Iterate, free: Bools, *, max_steps: int) -> Iterate:
    """Return the minimum; while there is a barrier, a point near enough to go on from."""
    options = point.newton
    target = 1e-3 * point.barrier or options.tolerance
    best, patience = np.inf, options.patience
    for _ in range(max_steps):
        step = newton_step(point, free)
        patience = options.patience if step.decrement < best / 2 or step.decrement > 1e-9 else patience - 1
        best = min(best, step.decrement)
        if step.decrement <= target or step.longest <= 0 or patience == 0:
            return point
        reached = line_search(point, step)
        if reached is None:
            return point
        point = reached
    raise ConvergenceError(f"no optimum after {max_steps} Newton steps; drop attributes that others nearly determine")


def line_search(point: Iterate, step: Step) -> Iterate | None:
    """Return the first point along a step at which the objective falls enough, or None if there is none."""
    length, rounding = min(1.0, step.longest), 1e-14 * (1.0 + abs(point.value))
    for _ in range(point.newton.halvings):
        reached = point.moved(step, length)
        try:
            fall = point.value - reached.value
        except np.linalg.LinAlgError:
            fall = -np.inf
        if fall >= point.newton.armijo * length * step.decrement - rounding:
            return reached
        length /= 2
    return None


def newton_step(point: Iterate, free: Bools) -> Step:
    """Return the Newton step for H and the free entries of h."""
    U, V, d, barrier = point.parts.U, point.loadings, point.derivatives, point.barrier
    S, gradient = schur_complement(V, d)
    inverse_h = inverse(point.h)
    push = 2.0 * barrier * inverse_h
    S[np.diag_indices(free.size)] += push * inverse_h
    dh = np.zeros(free.size)
    dh[free] = -solve_semidefinite(S[np.ix_(free, free)], (gradient - push)[free])
    Y = (V * dh) @ V.T
    X = -(d.G0 + d.s1 * Y) / d.s0
    decrement = -float(np.vdot(d.G0, X) + np.vdot(d.G1, Y) - push @ dh)
    falling = dh < 0
    to_zero = float((point.h[falling] / -dh[falling]).min(initial=np.inf))
    short = point.newton.short_of_boundary
    to_zero *= short if barrier else 1.0
    dH = U @ X @ U.T
    return Step((dH + dH.T) / 2, dh, decrement, min(to_zero, short * until_singular(X)))


def until_singular(X: Floats) -> float:
    """Return the largest t for which I + t X is positive semidefinite."""
    lowest = float(np.linalg.eigvalsh(X)[0])
    return -1.0 / lowest if lowest < 0 else np.inf


def solve_semidefinite(S: Floats, b: Floats) -> Floats:
    """Solve a positive semidefinite system in the directions in which it is not singular to rounding."""
    if not b.size:
        return b
    scale = 1.0 / np.sqrt(np.maximum(np.diag(S), np.finfo(float).tiny))
    return np.asarray(scale * (pinvh(scale[:, None] * S * scale, atol=1e-14, rtol=0.0) @ (scale * b)))

"""The maximum of the likelihood for given statistics, with what there is to say about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from graphmrf.model.canonical import maximise_coupled
from graphmrf.model.likelihood import Statistics, derivatives, log_likelihood
from graphmrf.model.newton import Point, minimise

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats
    from graphmrf.linalg.spectrum import Spectrum

_MEAN_ROUNDS = 200


def maximise(
    data: Statistics, states: Spectrum, *, coupled: bool, start: Point | None = None, near: bool = False
) -> Point:
    """Return the maximum-likelihood (H, C) for statistics of standardised attributes.

    A graph without edges says nothing about C, which is then 0. A start that is `near` the maximum saves steps.
    """
    if not has_edges(states):
        return Point(np.linalg.inv(data.M0 / data.n), np.zeros_like(data.M0))
    if coupled:
        return maximise_coupled(data, states)
    return minimise(data, states, first_guess(data) if start is None else Point(start.H, start.C), near=near)


@dataclass(frozen=True)
class Plan:
    """What is to be fitted to standardised attributes.

    Attributes
    ----------
    states : Spectrum
        Density of states of the graph.
    names : tuple of str
        Names of the attributes.
    coupled, mean_is_free : bool
        Whether C is full, and whether the mean is fitted.
    start : Point or None
        Where to begin.
    prior : float
        Number of nodes of white noise that count beside the data: a prior, under which there is a maximum whatever
        the data.
    """

    states: Spectrum
    names: tuple[str, ...]
    coupled: bool
    mean_is_free: bool
    start: Point | None = None
    prior: float = 0.0

    def best(self, data: Statistics, start: Point | None, *, near: bool = False) -> tuple[Point, Floats]:
        """Return (H, C) and the shift of the mean that maximise the likelihood; `data` has a last column of ones.

        With the mean free, the two are found in turns: for a given mean the problem is convex, and for given (H, C) the
        mean is one small system. Together they are not convex, so the search begins at the best mean of white noise
        and at that of a very smooth field, and the likelier end is taken.
        """
        shift: Floats = np.zeros(len(self.names))
        data = self._with_prior(data)
        if not self.mean_is_free:
            return maximise(data.centred(shift), self.states, coupled=self.coupled, start=start, near=near), shift
        shifts = [shift] if near or data.M1[-1, -1] <= 0 else [shift, data.M1[:-1, -1] / data.M1[-1, -1]]
        ends = [self._in_turns(data, start, first, near=near) for first in shifts]
        return max(ends, key=lambda end: log_likelihood(end[0].parts, data.centred(end[1]), self.states))

    def _with_prior(self, data: Statistics) -> Statistics:
        if self.prior == 0:
            return data
        white = np.diag(np.append(np.full(len(self.names), self.prior), 0.0))
        roughness = self.states.sum(lambda x: x) / self.states.n_nodes
        share = data.n / (data.n + self.prior)
        return Statistics(data.n, share * (data.M0 + white), share * (data.M1 + roughness * white))

    def _in_turns(self, data: Statistics, start: Point | None, shift: Floats, *, near: bool) -> tuple[Point, Floats]:
        point = maximise(data.centred(shift), self.states, coupled=self.coupled, start=start, near=near)
        for _ in range(_MEAN_ROUNDS):
            moved = best_shift(data, point)
            settled, shift = np.abs(moved - shift).max() < 1e-10, moved
            if settled:
                break
            found = maximise(data.centred(shift), self.states, coupled=self.coupled, start=point, near=True)
            point = Point(found.H, found.C, point.steps + found.steps)
        return point, shift


@dataclass(frozen=True)
class Fitted:
    """A maximum, still in standardised units.

    Attributes
    ----------
    point : Point
        The parameters.
    shift : array of shape (q,)
        The mean.
    data : Statistics
        What they were fitted to (expected statistics, where entries are missing).
    log_likelihood, error : float
        Of the observed entries, and its standard error.
    observed : bool array of shape (n, q)
        The observed entries.
    flags : tuple of str
        Remarks.
    """

    point: Point
    shift: Floats
    data: Statistics
    log_likelihood: float
    error: float
    observed: Bools
    flags: tuple[str, ...] = ()


def best_shift(data: Statistics, point: Point) -> Floats:
    """Return the mean that maximises the likelihood for given (H, C): generalised least squares on a constant."""
    n, c = data.M0[-1, -1], data.M1[-1, -1]
    right = point.H @ data.M0[:-1, -1] + point.C @ data.M1[:-1, -1]
    return np.asarray(np.linalg.solve(n * point.H + c * point.C, right))


def has_edges(states: Spectrum) -> bool:
    """Whether some eigenvalue is not 0."""
    return bool((states.nodes * states.weights).max(initial=0.0) > 0)


def first_guess(data: Statistics) -> Point:
    """Return a start: half the precision at the nodes, half along the edges."""
    return Point(np.linalg.inv(data.M0 / data.n) / 2, np.diag(data.n / np.diag(data.M1)) / 2)


@dataclass(frozen=True)
class Gradient:
    """Gradient of the negative log-likelihood per node by H and C, less what the boundary of the cone holds back."""

    H: Floats
    C: Floats

    @property
    def norm(self) -> float:
        """Largest entry."""
        return float(max(np.abs(self.H).max(), np.abs(self.C).max()))


def projected_gradient(data: Statistics, states: Spectrum, point: Point, *, coupled: bool) -> Gradient:
    """Return the gradient in the directions in which (H, C) may move."""
    d, inverse = derivatives(point.parts, data, states), point.parts.inverse
    by_H, by_C = (inverse.T @ G @ inverse / (2.0 * data.n) for G in (d.G0, d.G1))
    if not has_edges(states):
        return Gradient(by_H, np.zeros_like(by_C))
    if not coupled:
        slope = np.diag(by_C)
        return Gradient(by_H, np.diag(np.where(np.diag(point.C) > 0, slope, np.minimum(slope, 0.0))))
    values, vectors = np.linalg.eigh(point.C)
    null = vectors[:, values <= 1e-9 * max(values[-1], 0.0)]
    held, axes = np.linalg.eigh(null.T @ by_C @ null)
    return Gradient(by_H, by_C - null @ (axes * np.maximum(held, 0.0)) @ axes.T @ null.T)

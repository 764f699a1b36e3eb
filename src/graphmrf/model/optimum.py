"""The maximum of the likelihood for given statistics, with what there is to say about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from graphmrf.model.newton import Point, Problem, minimise_coupled, minimise_diagonal

if TYPE_CHECKING:
    from graphmrf._typing import Floats
    from graphmrf.linalg.spectrum import Spectrum
    from graphmrf.model.likelihood import Statistics

_MEAN_ROUNDS = 200


def maximise(data: Statistics, states: Spectrum, *, coupled: bool, start: Point | None = None) -> Point:
    """Return the maximum-likelihood (H, C) for statistics of standardised attributes.

    A graph without edges says nothing about C, which is then 0.
    """
    if not has_edges(states):
        return Point(np.linalg.inv(data.M0 / data.n), np.zeros_like(data.M0))
    start = first_guess(data) if start is None else _inside(start)
    minimise = minimise_coupled if coupled else minimise_diagonal
    return minimise(Problem(data, states), start)


def maximise_with_mean(
    data: Statistics, states: Spectrum, *, coupled: bool, start: Point | None = None
) -> tuple[Point, Floats]:
    """Return the maximum-likelihood (H, C) and mean, in turns; the last attribute of `data` is a column of ones."""
    shift: Floats = np.zeros(len(data.M0) - 1)
    point = maximise(data.centred(shift), states, coupled=coupled, start=start)
    for _ in range(_MEAN_ROUNDS):
        moved = best_shift(data, point)
        settled, shift = np.abs(moved - shift).max() < 1e-12, moved
        if settled:
            break
        found = maximise(data.centred(shift), states, coupled=coupled, start=point)
        point = Point(found.H, found.C, point.steps + found.steps)
    return point, shift


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


def _inside(start: Point) -> Point:
    """Return a start whose C is safely inside its cone."""
    return Point(start.H, start.C + 1e-3 * np.diag(np.diag(start.H)))


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
    d, inverse = Problem(data, states).derivatives(point, 0.0), point.parts.inverse
    by_H, by_C = (inverse.T @ G @ inverse / 2 for G in (d.G0, d.G1))
    if not has_edges(states):
        return Gradient(by_H, np.zeros_like(by_C))
    if not coupled:
        slope = np.diag(by_C)
        return Gradient(by_H, np.diag(np.where(np.diag(point.C) > 0, slope, np.minimum(slope, 0.0))))
    values, vectors = np.linalg.eigh(point.C)
    null = vectors[:, values <= 1e-9 * max(values[-1], 0.0)]
    held, axes = np.linalg.eigh(null.T @ by_C @ null)
    return Gradient(by_H, by_C - null @ (axes * np.maximum(held, 0.0)) @ axes.T @ null.T)

r"""The marginal likelihood of the labels, and the hyper-parameters that maximise it.

.. math:: -\log p(z) = \tfrac12 z'K^{-1}z + \tfrac12 \log\det K + \tfrac n2 \log 2\pi, \qquad
          \frac{\partial}{\partial K} = \tfrac12 (K^{-1} - aa'), \quad a = K^{-1} z

One factorisation serves the value and the whole gradient.
"""

from __future__ import annotations

import logging
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from graphmrf.field.covariance import Covariance
from graphmrf.field.descent import descend
from graphmrf.field.hyperparameters import Space
from graphmrf.linalg.dense import Factor

if TYPE_CHECKING:
    from graphmrf._typing import Floats, Ints
    from graphmrf.field.hyperparameters import Hyperparameters

_PROGRESS = logging.getLogger("graphmrf.progress")

PART = 300
"""Labels on which a search begins when there are many more: near its end point at a fraction of the cost."""
_PARTS = {PART: 60, 1200: 40}
"""Labels of the parts on which it goes on, and the steps there."""
_STEPS = (100, 40, 20)
"""Steps on all labels, by the number of parts before."""
_UNSHARED = 1500
"""Labels up to which threads gain little, and lose much where cores are busy."""
_IMPOSSIBLE = 1e10
_LEAST_GAIN = 0.01
_PLAIN = 3.0
"""A gain on a part of the labels, in logarithms of their number, that settles it: the simple model is dropped."""


@dataclass(frozen=True)
class Optimum:
    """Where a search ended.

    Attributes
    ----------
    theta : array
        The point of the `Space`.
    h : Hyperparameters
        What it stands for.
    log_evidence : float
        Log marginal likelihood of the standardised labels there.
    log_posterior : float
        The same with the prior of the hyper-parameters, up to a constant.
    evaluations : int
        Likelihoods computed on all labels.
    """

    theta: Floats
    h: Hyperparameters
    log_evidence: float
    log_posterior: float
    evaluations: int


@dataclass(frozen=True, eq=False)
class Evidence:
    """The negative log posterior of the hyper-parameters given standardised labels `z` of the rows of a covariance."""

    covariance: Covariance
    z: Floats
    simple: bool = False

    def part(self, places: Ints) -> Evidence:
        """Return the same for some of the labels."""
        rows = self.covariance.rows[places]
        return Evidence(Covariance(self.covariance.design, self.covariance.eigen, rows), self.z[places], self.simple)

    @property
    def space(self) -> Space:
        """Where the hyper-parameters live."""
        even = not (self.simple and self.covariance.shows_unevenness)
        return Space(self.covariance.design.p, self.simple, even)

    def __call__(self, theta: Floats) -> tuple[float, Floats]:
        """Return the negative log posterior, up to a constant, and its gradient."""
        space, triangle = self.space, self.covariance.triangle
        terms = self.covariance.among(space.read(theta))
        factor = Factor.of(triangle, terms.total())
        if factor is None:  # the line search steps back
            return _IMPOSSIBLE, np.zeros(theta.size)
        a = factor.solve(self.z)
        G = factor.inverse(triangle)
        G -= triangle.outer(a)
        G *= 0.5
        penalty, slope = space.penalty(theta)
        value = 0.5 * (float(self.z @ a) + factor.log_determinant) + penalty
        return value, space.gather(terms.pull(G)) + slope

    def factor(self, theta: Floats) -> Factor | None:
        """Return the factor of the covariance of the labels; None where it is singular to working accuracy."""
        return Factor.of(self.covariance.triangle, self.covariance.among(self.space.read(theta)).total())

    def log_evidence(self, theta: Floats) -> float:
        """Return the log marginal likelihood, without the prior."""
        return self.space.penalty(theta)[0] - self(theta)[0] - self._constant

    @property
    def _constant(self) -> float:
        return 0.5 * self.z.size * float(np.log(2.0 * np.pi))

    def climb(self, start: Floats, steps: int) -> Optimum:
        """Return the optimum found from a start in at most so many steps."""
        _PROGRESS.info("field: searching hyper-parameters on %d labels", self.z.size)
        with threadpool_limits(1, "blas") if self.z.size <= _UNSHARED else nullcontext():
            theta, value, evaluations = descend(
                self, start, self.space.bounds, steps=steps, least_gain=_LEAST_GAIN, ftol=1e-7
            )
        log_evidence = self.space.penalty(theta)[0] - value - self._constant
        return Optimum(theta, self.space.read(theta), log_evidence, -value - self._constant, evaluations)


def maximise(covariance: Covariance, z: Floats, *, seed: int = 0) -> Optimum:
    """Return the hyper-parameters of maximum posterior density.

    The whole family competes with the paper's own model (`Space` with ``simple=True``), which few labels can tell
    better: the family must gain more than the logarithm of the number of labels in log density, as if it had two
    hyper-parameters more. With many labels the search begins on a random part of them; what that did not support is
    tried again on more.

    Parameters
    ----------
    covariance : Covariance
        The covariance of the labelled nodes.
    z : array of shape (m,)
        Their outcomes, standardised.
    seed : int
        Seed of the part.
    """
    whole, simple = Evidence(covariance, z), Evidence(covariance, z, simple=True)
    parts = [subset(z.size, size, seed) for size in _PARTS if 3 * z.size > 4 * size]
    steps = _STEPS[len(parts)]
    if not parts:
        return _simpler(*_compete(whole, simple, steps), z.size)
    first, plain = _compete(whole.part(parts[0]), simple.part(parts[0]), _PARTS[PART])
    settled = first.log_posterior - plain.log_posterior > _PLAIN * np.log(PART)
    theta = first.theta
    for part in parts[1:]:
        theta = whole.part(part).climb(whole.space.revived(theta), _PARTS[part.size]).theta
    found = whole.climb(whole.space.revived(theta), steps)
    return found if settled else _simpler(found, simple.climb(plain.theta, steps), z.size)


def _compete(whole: Evidence, simple: Evidence, steps: int) -> tuple[Optimum, Optimum]:
    """Return the best point of the family, from its start and from the simple model, and that of the simple model."""
    plain = simple.climb(simple.space.start, steps)
    ends = [whole.climb(start, steps) for start in (whole.space.start, whole.space.grown(plain.h))]
    return max(ends, key=lambda end: end.log_posterior), plain


def _simpler(found: Optimum, simple: Optimum, labels: int) -> Optimum:
    return found if found.log_posterior - simple.log_posterior > np.log(labels) else simple


def subset(count: int, size: int, seed: int) -> Ints:
    """Return the places of a random part of the labels, in order; a smaller part is contained in a larger one."""
    return np.sort(np.random.default_rng(seed).permutation(count)[:size])

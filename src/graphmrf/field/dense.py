r"""Dense representation: the covariance among the labelled nodes, factored.

.. math:: -\log p(z) = \tfrac12 z'K^{-1}z + \tfrac12 \log\det K + \tfrac m2 \log 2\pi, \qquad
          \frac{\partial}{\partial K} = \tfrac12 (K^{-1} - aa'), \quad a = K^{-1} z

One factor serves the value, the gradient and the average information
:math:`\tfrac12 a'K_i K^{-1} K_j a` of all hyper-parameters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import cho_solve, lapack, solve_triangular

from graphmrf.caching import cached_property
from graphmrf.errors import ConvergenceError
from graphmrf.field.observations import Observations
from graphmrf.field.posterior import CONSTANT, Dual
from graphmrf.field.space import NOISE, Space
from graphmrf.field.spectrum import Correlations, FieldSpectrum
from graphmrf.linalg.dense import lower_factor, symmetric_inverse

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from graphmrf._typing import Floats, Ints
    from graphmrf.field.features import Design
    from graphmrf.field.observations import DualAt, Responses, Working
    from graphmrf.field.terms import Among, Term

# prior variance of the constant, over the variance of the labels, which are centred: hardly any information
INTERCEPT = 10.0
_SINGULAR = "the covariance of the labels is singular; check for columns of extreme values"
_BLOCK = 2048  # nodes predicted at once


@dataclass(frozen=True, eq=False)
class SmoothedDesign:
    """Features of all nodes, and of these what is the same for all labels: the spectrum, smoothed features."""

    design: Design
    spectrum: FieldSpectrum

    @cached_property
    def smoothed(self) -> Floats:
        """Own features under the functions that span the graph's correlations, shape (k, n, p); 0 at isolated nodes."""
        found = self.spectrum.smoothed(self.design.own)
        found[:, self.design.graph.isolated] = 0.0
        return found


@dataclass(frozen=True, eq=False)
class DenseField:
    """The field on the labelled nodes as one dense covariance; an `Evidence` and a maker of posteriors."""

    data: SmoothedDesign  # features of all nodes
    terms: tuple[Term, ...]
    observations: Observations | Responses  # standardised labels
    correlations: Correlations  # correlations of the graph among the observations

    @classmethod
    def of(cls, design: Design, terms: tuple[Term, ...], observations: Observations | Responses) -> DenseField:
        """Return the field of some terms."""
        spectrum = FieldSpectrum(design.graph)
        correlations = Correlations(spectrum, observations.nodes)
        return cls(SmoothedDesign(design, spectrum), terms, observations, correlations)

    @property
    def design(self) -> Design:
        """Features of all nodes."""
        return self.data.design

    @property
    def spectrum(self) -> FieldSpectrum:
        """Functions of the graph's spectrum."""
        return self.data.spectrum

    @property
    def smoothed_features(self) -> Floats:
        """Own features under the functions that span the graph's correlations, shape (k, n, p)."""
        return self.data.smoothed

    @property
    def rows(self) -> Ints:
        """Node of every observation."""
        return self.observations.nodes

    @property
    def normal(self) -> Observations:
        """The observations, where they are normal: those that a posterior is given always are."""
        assert isinstance(self.observations, Observations)
        return self.observations

    @cached_property
    def space(self) -> Space:
        """The hyper-parameters and their priors."""
        shapes = {s.name: s for term in self.terms for s in term.shapes(self.design.graph, self.design.p)}
        own = self.observations.shapes
        given, scales = self.observations, {term.name: term.scale for term in self.terms}
        return Space(tuple(scales), (*shapes.values(), *own), None, self.rows.size, given.has_own, given.spread, scales)

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return self.space.size

    def value(self, x: Floats) -> float:
        """Return the negative log posterior of the hyper-parameters."""
        h = self.space.read(x)
        found = self._factored(h, (term.among(self, h) for term in self.terms))
        return math.inf if found is None else self._value(x, *found[1:])

    def _value(self, x: Floats, working: Working, factor: Floats) -> float:
        white = solve_triangular(factor, working.observations.z, lower=True, check_finite=False)
        log_det = float(np.log(np.diag(factor)).sum()) + working.misfit
        return 0.5 * float(white @ white + x @ x) + log_det + 0.5 * white.size * math.log(2.0 * math.pi)

    def latent(self, terms: Iterable[Among]) -> Floats:
        """Return the covariance of the field at the observations."""
        K = np.full((self.rows.size,) * 2, INTERCEPT)
        for each in terms:
            K += each.K
        return K

    def _factored(self, h: Mapping[str, Any], terms: Iterable[Among]) -> tuple[Floats, Working, Floats] | None:
        """Return the covariance of the field, working observations and the factor of theirs; None if it is singular."""
        K = self.latent(terms)
        working = self.observations.working(h, partial(_dual, K, h[NOISE]))
        factor = None if working is None else _with_diagonal(K, working.observations.variance(h[NOISE]))
        return None if working is None or factor is None else (K, working, factor)

    def expand(self, x: Floats) -> tuple[float, Floats, Floats]:
        """Return the negative log posterior, its gradient, and average information plus that of the prior."""
        h, m = self.space.read(x), self.rows.size
        noise = h[NOISE] / self.observations.weights
        terms = [term.among(self, h) for term in self.terms]
        found = self._factored(h, terms)
        if found is None:
            return math.inf, np.zeros(x.size), np.eye(x.size)
        _, working, factor = found
        a = cho_solve((factor, True), working.observations.z, check_finite=False)
        G = symmetric_inverse(factor)
        precision = np.diag(G).copy()
        G -= np.outer(a, a)
        G *= 0.5
        slopes: dict[str, Any] = {NOISE: float(np.diag(G) @ noise)}
        products: dict[str, Floats] = {NOISE: noise * a}
        for each in terms:
            for name, slope in each.vjp(G).items():
                slopes[name] = slopes.get(name, 0.0) + slope
            for name, product in each.jvp(a).items():
                products[name] = products.get(name, 0.0) + product
        if working.third is not None:
            push = cho_solve((factor, True), working.skew(precision), check_finite=False)
            slopes, products = working.moved(slopes, products, push, precision, a)
        J = self.space.jacobian(x)
        B = solve_triangular(factor, self.space.stack(products, m) @ J, lower=True, check_finite=False)
        return self._value(x, working, factor), self.space.gather(slopes) @ J + x, 0.5 * B.T @ B + np.eye(x.size)

    def part(self, chosen: Ints) -> DenseField:
        """Return the field of some of the observations."""
        return self.observed(self.observations.part(chosen))

    def observed(self, observations: Observations | Responses) -> DenseField:
        """Return the same field with other observations."""
        return replace(self, observations=observations, correlations=self.correlations.at(observations.nodes))

    def on(self, design: Design) -> DenseField:
        """Return the same field on another design."""
        return replace(self, data=SmoothedDesign(design, self.spectrum))

    def dual_at(self, h: Mapping[str, Any]) -> DualAt:
        """Return what makes the inverse of the covariance of observations times them of normal observations."""
        return partial(_dual, self.latent(term.among(self, h) for term in self.terms), h[NOISE])

    def posterior(self, x: Floats) -> DensePosterior:
        """Return the field given its observations at a point of the hyper-parameters."""
        return self.posterior_at(self.space.read(x))

    def posterior_at(self, h: Mapping[str, Any]) -> DensePosterior:
        """Return the field given its observations at hyper-parameters."""
        if isinstance(self.observations, Observations):
            return DensePosterior(self, h)
        found = self._factored(h, (term.among(self, h) for term in self.terms))
        if found is None:
            raise ConvergenceError(_SINGULAR)
        K, working, factor = found
        precision = np.square(lapack.dtrtri(factor, lower=True)[0]).sum(axis=0)
        return DensePosterior(replace(self, observations=working.at_means(precision, partial(_dual, K, h[NOISE]))), h)


def _dual(K: Floats, noise: float, given: Observations) -> Floats | None:
    """Return the inverse of the covariance of normal observations times them."""
    factor = _with_diagonal(K, given.variance(noise))
    return None if factor is None else np.asarray(cho_solve((factor, True), given.z, check_finite=False))


def _with_diagonal(K: Floats, diagonal: Floats) -> Floats | None:
    """Return the lower Cholesky factor of a covariance with some variances on top."""
    whole = K.copy()
    whole[np.diag_indices_from(whole)] += diagonal
    return lower_factor(whole)


@dataclass(frozen=True, eq=False)
class DensePosterior:
    """The latent field given observations, at one value of the hyper-parameters; see `Posterior`."""

    field: DenseField
    h: Mapping[str, Any]

    @cached_property
    def _factor(self) -> Floats:
        K = self.field.latent(term.among(self.field, self.h) for term in self.field.terms)
        factor = _with_diagonal(K, self.field.normal.variance(self.h[NOISE]))
        if factor is None:
            raise ConvergenceError(_SINGULAR)
        return factor

    @cached_property
    def _dual(self) -> Floats:
        return np.asarray(cho_solve((self._factor, True), self.field.normal.z, check_finite=False))

    def _between(self, nodes: Ints, others: Ints, terms: Collection[str] | None = None) -> Floats:
        """Return the prior covariance of nodes and others, of the whole field or of the sum of some terms."""
        start = np.full((nodes.size, others.size), INTERCEPT if terms is None else 0.0)
        chosen = (term for term in self.field.terms if terms is None or term.name in terms)
        return sum((term.between(self.field, self.h, nodes, others) for term in chosen), start=start)

    def parts(self, nodes: Ints) -> dict[str, Floats]:
        """Return the posterior means of the constant and of every term."""
        rows, dual = self.field.rows, self._dual
        found = {CONSTANT: np.full(nodes.size, INTERCEPT * dual.sum())}
        return found | {t.name: t.between(self.field, self.h, nodes, rows) @ dual for t in self.field.terms}

    def moments(self, nodes: Ints) -> tuple[Floats, Floats]:
        """Return mean and variance of the latent field."""
        means, variances = [np.zeros(0)], [np.zeros(0)]
        for block in blocks(nodes):
            across = self._between(block, self.field.rows)
            white = solve_triangular(self._factor, across.T, lower=True, check_finite=False)
            prior = sum((t.variance(self.field, self.h, block) for t in self.field.terms), start=INTERCEPT)
            means.append(across @ self._dual)
            variances.append(np.maximum(prior - np.einsum("ij,ij->j", white, white), 0.0))
        return np.concatenate(means), np.concatenate(variances)

    def covariance_times(self, nodes: Ints, Z: Floats, terms: Collection[str] | None = None) -> Floats:
        """Return the joint posterior covariance at some nodes, or of some terms there, times columns."""
        used, rows = nodes[Z.any(axis=1)], self.field.rows
        solved = cho_solve((self._factor, True), self._between(used, rows, terms).T, check_finite=False)
        explained = self._between(nodes, rows, terms) @ solved
        return np.asarray((self._between(nodes, used, terms) - explained) @ Z[Z.any(axis=1)])

    def draw(self, nodes: Ints, count: int, rng: np.random.Generator) -> Floats:
        """Return joint draws of the latent field, shape (count, len(nodes))."""
        across = self._between(nodes, self.field.rows)
        white = solve_triangular(self._factor, across.T, lower=True, check_finite=False)
        covariance = self._between(nodes, nodes) - white.T @ white
        factor, pivots, rank, _ = lapack.dpstrf(covariance, lower=True)  # it may be semidefinite
        drawn = np.empty((count, nodes.size))
        drawn[:, pivots - 1] = rng.standard_normal((count, rank)) @ np.tril(factor)[:, :rank].T
        return np.asarray(across @ self._dual + drawn)

    def dual(self) -> Dual:
        """Return what the inverse covariance of the observations says of each."""
        diagonal = np.diag(lapack.dpotri(self._factor, lower=True)[0]).copy()
        return Dual(self._dual, diagonal, self.field.normal.variance(self.h[NOISE]))

    def given(self, observations: Observations) -> DensePosterior:
        """Return the posterior given other observations, at the same hyper-parameters."""
        return DensePosterior(self.field.observed(observations), self.h)


def blocks(nodes: Ints) -> list[Ints]:
    """Return nodes in blocks."""
    return [nodes[first : first + _BLOCK] for first in range(0, nodes.size, _BLOCK)]

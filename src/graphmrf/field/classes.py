r"""Classes without an order: a field each, hyper-parameters in common, and a softmax of their values.

With :math:`f_k = m_k + v_k`, :math:`m_k` the logarithm of the share of class `k` and :math:`v_k` its field,

.. math:: p(y = k) = \frac{\exp f_k}{\sum_j \exp f_j}, \qquad
          p(y = k \mid f_{-k}) = \frac{1}{1 + \exp(\log \sum_{j \ne k} \exp f_j - f_k)}.

Given the values of all others, a class is a Bernoulli variable with an offset. The most probable values of all classes
are those where every field is at its mode given the others (the log density is concave), so that both representations
find them with what they have for one field, one class after the other. The common part of all classes has no influence
on the probabilities and is 0 at the mode where the fields have the same covariance. Every field is then normal, at
fixed values of the others.

The hyper-parameters are those of all fields. They maximise the composite likelihood of every class against the rest
(Varin, Reid and Firth, 2011), whose parts have the offsets of the shares: far from the mode it is concave where that of
the softmax has several modes, and no class needs the values of another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_expit, logsumexp, ndtri, softmax
from scipy.stats import qmc

from graphmrf.errors import ConvergenceError
from graphmrf.field.dense import blocks
from graphmrf.field.observations import STEPS, Observations, Responses

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.field.dense import DenseField
    from graphmrf.field.features import Design
    from graphmrf.field.posterior import AveragedPosterior, Posterior
    from graphmrf.field.space import Space
    from graphmrf.field.sparse import SparseField
    from graphmrf.field.terms import Term

    OneField: TypeAlias = DenseField | SparseField

_POINTS = 256
"""Points of the quasi-random rule for probabilities, a power of 2."""

_SETTLED = 1e-4
"""Root mean square change of latent values that ends the rounds: probabilities change by less."""


@dataclass(frozen=True, eq=False)
class Sides:
    """Labels of several classes at the same nodes: of every class those in it are 1, all others 0."""

    each: tuple[Observations | Responses, ...]

    @property
    def nodes(self) -> Ints:
        """The labelled nodes."""
        return self.each[0].nodes

    def part(self, chosen: Ints | Bools) -> Sides:
        """Return the labels of some of the nodes."""
        return Sides(tuple(each.part(chosen) for each in self.each))

    def at(self, nodes: Ints) -> Sides:
        """Return the same labels at other nodes."""
        return Sides(tuple(each.at(nodes) for each in self.each))

    def as_numbers(self) -> Sides:
        """Return standardised values near the labels, as numbers with noise: a search begins with them."""
        return Sides(tuple(each.as_numbers() for each in self.each if isinstance(each, Responses)))


@dataclass(frozen=True, eq=False)
class ClassFields:
    """Fields of several classes with the same hyper-parameters: an `Evidence`, the sum of theirs."""

    each: tuple[OneField, ...]

    @classmethod
    def of(cls, make: Callable[[Observations | Responses], OneField], labels: Sides) -> ClassFields:
        """Return fields of the same terms; `make` returns that of one class."""
        first = make(labels.each[0])
        return cls(tuple(first.observed(each) for each in labels.each))

    @property
    def design(self) -> Design:
        """Features of all nodes."""
        return self.each[0].design

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms of every field."""
        return self.each[0].terms

    @property
    def space(self) -> Space:
        """The hyper-parameters and their priors."""
        return self.each[0].space

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return self.space.size

    @property
    def rows(self) -> Ints:
        """The labelled nodes."""
        return self.each[0].rows

    @property
    def observations(self) -> Sides:
        """The labels."""
        return Sides(tuple(field.observations for field in self.each))

    def observed(self, labels: Sides) -> ClassFields:
        """Return the same fields with other labels."""
        return ClassFields(tuple(field.observed(each) for field, each in zip(self.each, labels.each, strict=True)))

    def part(self, chosen: Ints) -> ClassFields:
        """Return the fields of some of the labels."""
        return self.observed(self.observations.part(chosen))

    def value(self, x: Floats) -> float:
        """Return the negative log posterior of the hyper-parameters."""
        return sum(field.value(x) for field in self.each) - 0.5 * (len(self.each) - 1) * float(x @ x)

    def expand(self, x: Floats) -> tuple[float, Floats, Floats]:
        """Return the negative log posterior, its gradient and average information; the prior counts once."""
        more, found = len(self.each) - 1, [field.expand(x) for field in self.each]
        values, gradients, curvatures = (sum(parts[1:], start=parts[0]) for parts in zip(*found, strict=True))
        return values - 0.5 * more * float(x @ x), gradients - more * x, curvatures - more * np.eye(x.size)


def fields_of(field: OneField | ClassFields) -> tuple[OneField, ...]:
    """Return the field of every class, or the one that there is."""
    return field.each if isinstance(field, ClassFields) else (field,)


def combined(fields: Sequence[OneField]) -> OneField | ClassFields:
    """Return several fields as one."""
    return fields[0] if len(fields) == 1 else ClassFields(tuple(fields))


def coupled(posteriors: Sequence[Posterior], labels: Sequence[Responses]) -> list[Posterior]:
    """Return the posterior of the field of every class under the softmax, from those of every class against the rest.

    Parameters
    ----------
    posteriors : sequence of Posterior
        The field of every class at some hyper-parameters.
    labels : sequence of Responses
        Labels of every class at the same nodes: 1 for the class, 0 for another.
    """
    duals = [each.field.dual_at(each.h) for each in posteriors]
    alike = all(each.field.design.learner is None for each in posteriors)
    v = np.zeros((len(labels), labels[0].nodes.size))
    step = v
    for count in range(STEPS):
        before, last = v.copy(), step
        for k, (each, dual) in enumerate(zip(posteriors, duals, strict=True)):
            found = _given_others(labels, v, k).mode(each.h, dual)
            assert found is not None
            v[k] = found
        if alike:
            v -= v.mean(axis=0)
        step = v - before
        if np.mean((step - step.mean(axis=0)) ** 2) < _SETTLED**2:  # what is common to all moves no probability
            rows = [_given_others(labels, v, k) for k in range(len(labels))]
            return [each.field.observed(row).posterior_at(each.h) for each, row in zip(posteriors, rows, strict=True)]
        if count % 3 == 2:  # Aitken: without the same covariance the common part converges slowly
            v -= step * np.vdot(step, step - last) / np.vdot(step - last, step - last)
    raise ConvergenceError(f"values of classes did not settle in {STEPS} rounds; check for extreme features")


def _given_others(labels: Sequence[Responses], v: Floats, k: int) -> Responses:
    """Return the labels of a class given latent values (classes, m) of all others, where its own begin."""
    means = log_shares(labels)
    others = logsumexp(np.delete(means[:, None] + v, k, axis=0), axis=0)
    return labels[k].moved(means[k] - others - labels[k].origin, v[k])


def log_shares(labels: Sequence[Responses]) -> Floats:
    """Return the logarithm of the share of every class: that of its overall odds against the rest."""
    return np.asarray(log_expit(np.array([each.origin for each in labels])))


def probabilities(posteriors: Sequence[AveragedPosterior], labels: Sequence[Responses], nodes: Ints) -> Floats:
    """Return the probability (len(nodes), classes) of every class at some nodes.

    The expectation of the softmax over the posterior of the fields, by quasi-random numbers; it adds up to 1. Members
    of the averages of all classes are taken in turn.

    Parameters
    ----------
    posteriors : sequence of AveragedPosterior
        The field of every class against the rest.
    labels : sequence of Responses
        Labels of every class.
    nodes : integer array
        The nodes.
    """
    found = np.zeros((nodes.size, len(labels)))
    normal, means = _normal(len(labels)), log_shares(labels)
    count = max(len(each.members) for each in posteriors)
    for member in range(count):
        own = coupled([each.members[member % len(each.members)] for each in posteriors], labels)
        parts = (_expected_softmax(own, means[:, None], normal, block) for block in blocks(nodes))
        found += np.vstack([found[:0], *parts]) / count
    return found


def _expected_softmax(posteriors: Sequence[Posterior], means: Floats, normal: Floats, nodes: Ints) -> Floats:
    moments = [each.moments(nodes) for each in posteriors]
    centre, std = np.array([mean for mean, _ in moments]), np.sqrt([variance for _, variance in moments])
    return np.asarray(softmax(means + centre + std * normal[:, :, None], axis=1).mean(axis=0).T)


def _normal(classes: int) -> Floats:
    """Return quasi-random normal numbers (points, classes)."""
    uniform = qmc.Sobol(classes, seed=0).random(_POINTS)
    return np.asarray(ndtri(np.clip(uniform, 0.5 / _POINTS, 1.0 - 0.5 / _POINTS)))

"""The outcome given labels where features are uncertain: an average over draws of the features."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from graphmrf.field.covariance import Covariance
from graphmrf.field.posterior import FieldPosterior

if TYPE_CHECKING:
    from graphmrf._typing import Floats, Ints
    from graphmrf.field.design import Design
    from graphmrf.field.hyperparameters import Hyperparameters
    from graphmrf.field.matern import Correlation, Correlations
    from graphmrf.linalg.dense import Triangle

_BLOCK = 1024
_KEPT = 2


@dataclass(frozen=True, eq=False)
class MixedPosterior:
    r"""The field of some hyper-parameters, conditioned on the labels once for every draw of the features.

    Means are means over the draws; variances, by Rubin's rule, the mean variance and the variance of the means,
    :math:`\bar v + \overline{(m_i - \bar m)^2}`. Draws come in pairs that lie opposite each other about the expected
    features: so the mean of anything linear in the features is that at the expected ones, and free of chance.

    Attributes
    ----------
    base : FieldPosterior
        The field at the expected features.
    designs : tuple of Design
        The features of every draw.
    """

    base: FieldPosterior
    designs: tuple[Design, ...]

    @property
    def covariance(self) -> Covariance:
        """The covariance of the labelled nodes at the expected features."""
        return self.base.covariance

    @property
    def h(self) -> Hyperparameters:
        """The hyper-parameters."""
        return self.base.h

    @property
    def z(self) -> Floats:
        """The standardised labels."""
        return self.base.z

    @cached_property
    def members(self) -> tuple[FieldPosterior, ...]:
        """The posterior of every draw."""
        graph_part = _Remembered(self.covariance.correlations)
        return tuple(FieldPosterior(self._at(design, graph_part), self.h, self.z) for design in self.designs)

    def _at(self, design: Design, graph_part: _Remembered) -> Covariance:
        covariance = Covariance(design, self.covariance.eigen, self.covariance.rows)
        vars(covariance)["correlations"] = graph_part  # does not depend on features
        return covariance

    def moments(self, nodes: Ints) -> tuple[Floats, Floats]:
        """Return mean and variance of the outcome of unlabelled nodes, noise included."""
        blocks = [nodes[first : first + _BLOCK] for first in range(0, nodes.size, _BLOCK)]
        parts = [_pooled(*zip(*(member.moments(block) for member in self.members), strict=True)) for block in blocks]
        means, variances = zip(*parts, strict=True) if parts else ((), ())
        return np.concatenate([np.zeros(0), *means]), np.concatenate([np.zeros(0), *variances])

    def draw(self, nodes: Ints, count: int, rng: np.random.Generator) -> Floats:
        """Return joint draws of the outcomes of unlabelled nodes, the features drawn as well, (count, len(nodes))."""
        result, k = np.empty((count, nodes.size)), len(self.members)
        for first, member in enumerate(self.members[:count]):
            which = np.arange(first, count, k)
            result[which] = member.draw(nodes, which.size, rng)
        return result

    @cached_property
    def left_out(self) -> tuple[Floats, Floats]:
        """Residual and variance of every label given the others."""
        return _pooled(*zip(*(member.left_out for member in self.members), strict=True))

    @property
    def shares(self) -> dict[str, float]:
        """The part of the variance of the labels that every component predicts, at the expected features."""
        return self.base.shares

    @cached_property
    def coefficients(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the linear coefficients, for features in the scales of `base`, (4, p)."""
        scales = _scales(self.covariance.design)
        units = [_ratio(scales, _scales(member.covariance.design)) for member in self.members]
        found = [member.coefficients for member in self.members]
        means = tuple(unit * mean for unit, (mean, _) in zip(units, found, strict=True))
        variances = tuple((unit * std) ** 2 for unit, (_, std) in zip(units, found, strict=True))
        mean, variance = _pooled(means, variances)
        return mean, np.sqrt(variance)


def _scales(design: Design) -> Floats:
    """Scales of all groups; smoothed features are in those of a node's own."""
    return np.vstack([design.scales, design.scales[:1]])


def _ratio(scales: Floats, others: Floats) -> Floats:
    """Return the ratio of scales, 0 where a column is constant and its scale infinite."""
    return np.divide(scales, others, out=np.zeros_like(scales), where=np.isfinite(scales) & np.isfinite(others))


def _pooled(means: tuple[Floats, ...], variances: tuple[Floats, ...]) -> tuple[Floats, Floats]:
    """Return mean and variance by Rubin's rule."""
    return np.mean(means, axis=0), np.mean(variances, axis=0) + np.var(means, axis=0)


@dataclass(frozen=True, eq=False)
class _Remembered:
    """Correlations on the graph that keep the last blocks they gave."""

    family: Correlations
    kept: dict[Any, Floats] = field(default_factory=dict)

    @property
    def triangle(self) -> Triangle:
        return self.family.triangle

    def among(self, omega: float, nu: float, *, even: bool = True) -> Correlation:
        return self.family.among(omega, nu, even=even)

    def variances(self, omega: float, nu: float, nodes: Ints, *, even: bool = True) -> Floats:
        return self.family.variances(omega, nu, nodes, even=even)

    def across(self, omega: float, nu: float, nodes: Ints, *, even: bool = True) -> Floats:
        key = (omega, nu, even, nodes.tobytes())
        if key not in self.kept:
            while len(self.kept) >= _KEPT:
                del self.kept[next(iter(self.kept))]
            self.kept[key] = self.family.across(omega, nu, nodes, even=even)
        return self.kept[key]

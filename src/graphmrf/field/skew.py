"""The transform of the outcome, by likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from scipy.optimize import minimize_scalar

from graphmrf.field.covariance import Covariance
from graphmrf.field.evidence import PART, Evidence, subset
from graphmrf.field.transform import Power, Scale

if TYPE_CHECKING:
    from graphmrf._typing import Floats

Kind: TypeAlias = Literal["identity", "log", "box-cox", "yeo-johnson"]

POSITIVE = ("log", "box-cox")
"""Transforms of positive outcomes."""

FITTED = ("box-cox", "yeo-johnson")
"""Transforms with an exponent."""

_STEPS = 60
_ROUNDS = 2
_IMPOSSIBLE = 1e10
_EXPONENTS = (0.0, 2.0)


def choose_scale(covariance: Covariance, y: Floats, kinds: tuple[Kind, ...], *, seed: int = 0) -> Scale:
    """Return the transform, of the kinds given, under which the labels are most likely.

    Exponents are found on the covariance of the untransformed outcome, then the field is fitted under every
    transform, exponents once more on the covariance found there; of many labels a random part decides. A fitted
    exponent costs half the logarithm of the number of labels (the Bayesian information criterion).

    Parameters
    ----------
    covariance : Covariance
        The covariance of the labelled nodes.
    y : array of shape (m,)
        Their outcomes; positive for "log" and "box-cox".
    kinds : tuple of str
        The transforms to compare.
    seed : int
        Seed of the part.
    """
    if kinds == ("identity",):
        return Scale(y)
    part = subset(y.size, PART, seed)
    small, labels = Covariance(covariance.design, covariance.eigen, covariance.rows[part]), y[part]
    plain = _fitted(small, labels, None)
    fits = [_best(plain, kind) for kind in kinds]
    costs = [0.5 * np.log(labels.size) * (kind in FITTED) for kind in kinds]
    scores = np.array([fit.score for fit in fits]) - costs
    return Scale(y, fits[int(np.argmax(scores))].scale.power)


@dataclass(frozen=True, eq=False)
class _Fit:
    """The field under a transform, its log evidence in the units of the outcome, and the precision of the labels."""

    evidence: Evidence
    scale: Scale
    theta: Floats
    score: float

    @property
    def precision(self) -> Floats:
        factor = self.evidence.factor(self.theta)
        assert factor is not None  # the search ended here
        triangle = self.evidence.covariance.triangle
        return triangle.square(factor.inverse(triangle))


def _fitted(covariance: Covariance, y: Floats, power: Power | None) -> _Fit:
    """Return the fit under a transform; not from another's, whose variances at their floor have no slope any more."""
    scale = Scale(y, power)
    evidence = Evidence(covariance, scale.z)
    end = evidence.climb(evidence.space.start, _STEPS)
    return _Fit(evidence, scale, end.theta, end.log_evidence + scale.log_jacobian)


def _best(plain: _Fit, kind: Kind) -> _Fit:
    """Return the best fit of a kind, from that without a transform."""
    if kind == "identity":
        return plain
    covariance, y, fit = plain.evidence.covariance, plain.scale.y, plain
    fits = []
    for _ in range(_ROUNDS if kind in FITTED else 1):
        fit = _fitted(covariance, y, _power(y, fit.precision, kind))
        fits.append(fit)
    return max(fits, key=lambda fit: fit.score)


def _power(y: Floats, P: Floats, kind: Kind) -> Power | None:
    """Return the transform of a kind, its exponent by likelihood given the precision of the labels."""
    if kind not in FITTED:
        return None if kind == "identity" else Power(0.0, signed=False)
    signed = kind == "yeo-johnson"

    def misfit(exponent: float) -> float:
        scale = Scale(y, Power(exponent, signed=signed))
        with np.errstate(over="ignore", invalid="ignore"):
            value = 0.5 * y.size * float(np.log(scale.z @ P @ scale.z)) - scale.log_jacobian
        return value if np.isfinite(value) else _IMPOSSIBLE

    found = minimize_scalar(misfit, bounds=_EXPONENTS, method="bounded")
    return Power(float(found.x), signed=signed)

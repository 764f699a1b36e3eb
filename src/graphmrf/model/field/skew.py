"""The transform of the outcome, by likelihood."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from scipy.optimize import minimize_scalar

from graphmrf.model.field.covariance import Covariance
from graphmrf.model.field.evidence import Evidence, subset
from graphmrf.model.field.transform import Power, Scale

if TYPE_CHECKING:
    from graphmrf._typing import Floats
    from graphmrf.linalg.triangle import Triangle

Kind: TypeAlias = Literal["identity", "log", "box-cox", "yeo-johnson"]

POSITIVE = ("log", "box-cox")
"""Transforms of positive outcomes."""

_STEPS = 60
_EXPONENTS = (0.0, 2.0)


def choose_scale(covariance: Covariance, y: Floats, kinds: tuple[Kind, ...], *, seed: int = 0) -> Scale:
    """Return the transform, of the kinds given, under which the labels are most likely.

    Exponents are found on the covariance of the untransformed outcome, then the field is fitted under every
    transform; of many labels a random part decides. A fitted exponent costs half the logarithm of the number of
    labels (the Bayesian information criterion).

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
    part = subset(y.size, seed)
    small, labels = Covariance(covariance.design, covariance.eigen, covariance.rows[part]), y[part]
    plain = Evidence(small, Scale(labels).z)
    start = plain.climb(plain.space.start, _STEPS)
    P = small.triangle.square(_precision(plain, start.theta))
    powers = [_power(labels, P, kind) for kind in kinds]
    scores = [_score(small, labels, power, start.theta) for power in powers]
    costs = [0.5 * np.log(labels.size) * (kind in ("box-cox", "yeo-johnson")) for kind in kinds]
    return Scale(y, powers[int(np.argmax(np.array(scores) - np.array(costs)))])


def _precision(evidence: Evidence, theta: Floats) -> Floats:
    from_factor = evidence.factor(theta)
    assert from_factor is not None  # the search ended here
    triangle: Triangle = evidence.covariance.triangle
    return from_factor.inverse(triangle)


def _power(y: Floats, P: Floats, kind: Kind) -> Power | None:
    """Return the transform of a kind, its exponent by likelihood given the precision of the labels."""
    if kind in ("identity", "log"):
        return None if kind == "identity" else Power(0.0, signed=False)
    signed = kind == "yeo-johnson"

    def misfit(exponent: float) -> float:
        scale = Scale(y, Power(exponent, signed=signed))
        return 0.5 * y.size * float(np.log(scale.z @ P @ scale.z)) - scale.log_jacobian

    found = minimize_scalar(misfit, bounds=_EXPONENTS, method="bounded")
    return Power(float(found.x), signed=signed)


def _score(covariance: Covariance, y: Floats, power: Power | None, start: Floats) -> float:
    scale = Scale(y, power)
    return Evidence(covariance, scale.z).climb(start, _STEPS).log_evidence + scale.log_jacobian

r"""Channels: the change of attributes that makes the field independent columns, each with its own smoothing level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular

if TYPE_CHECKING:
    from graphmrf._typing import Floats


@dataclass(frozen=True)
class Channels:
    r"""Factors of :math:`H + l\,C = U (I + l\,\mathrm{diag}(\lambda))\,U'` for every `l`, with one matrix `U`.

    With them the precision of the whole field falls apart into q operators on the graph alone,

    .. math:: H \otimes I + C \otimes N = (U \otimes I)\,(I + \mathrm{diag}(\lambda) \otimes N)\,(U' \otimes I),

    so :math:`F = A U` has independent columns of precision :math:`I + \lambda_j N`, and :math:`A = F U^{-1}`.

    Attributes
    ----------
    strength : array of shape (q,)
        :math:`\lambda \ge 0`, ascending.
    U : array of shape (q, q)
        From attributes to channels: ``F = A @ U``.
    inverse : array of shape (q, q)
        From channels to attributes: ``A = F @ inverse``.
    log_det_H : float
        :math:`\log \det H`.

    Examples
    --------
    >>> parts = channels(np.array([[2.0, 1.0], [1.0, 2.0]]), np.diag([0.0, 3.0]))
    >>> parts.strength
    array([0., 2.])
    >>> parts.alpha.round(4)
    array([0.    , 0.6667])
    """

    strength: Floats
    U: Floats
    inverse: Floats
    log_det_H: float

    @property
    def alpha(self) -> Floats:
        r"""Smoothing level of every channel, :math:`\lambda / (1 + \lambda)`, shape (q,)."""
        return np.asarray(self.strength / (1.0 + self.strength))

    def separate(self, A: Floats) -> Floats:
        """Return the channels of attributes (..., q)."""
        return A @ self.U

    def combine(self, F: Floats) -> Floats:
        """Return the attributes of channels (..., q)."""
        return F @ self.inverse


def channels(H: Floats, C: Floats) -> Channels:
    r"""Return the channels of a field: :math:`H = R R'`, :math:`R^{-1} C R^{-T} = Q \Lambda Q'`, :math:`U = R Q`.

    Parameters
    ----------
    H : array of shape (q, q)
        Symmetric positive definite.
    C : array of shape (q, q)
        Symmetric positive semidefinite; ``diag(h)`` in the paper's model.

    Raises
    ------
    numpy.linalg.LinAlgError
        If `H` is not positive definite.
    """
    R = cholesky(H, lower=True, check_finite=False)
    half = solve_triangular(R, C, lower=True, check_finite=False)
    scaled = solve_triangular(R, half.T, lower=True, check_finite=False)
    strength, Q = eigh((scaled + scaled.T) / 2, check_finite=False)
    inverse = solve_triangular(R, Q, lower=True, trans="T", check_finite=False).T
    log_det_H = 2.0 * float(np.log(np.diag(R)).sum())
    return Channels(np.maximum(strength, 0.0), R @ Q, inverse, log_det_H)

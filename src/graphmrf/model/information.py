"""Standard errors from the Fisher information: the curvature, as the precision is linear in its parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphmrf.model.newton import reduced

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats
    from graphmrf.model.channels import Channels
    from graphmrf.model.likelihood import Derivatives


def coupled_errors(parts: Channels, d: Derivatives) -> tuple[Floats, Floats]:
    """Return the standard errors of H and of a full C; `d` holds the derivatives summed over nodes."""
    determinant = d.s0 * d.s2 - d.s1**2
    return np.sqrt(_spread(parts.U, d.s2 / determinant)), np.sqrt(_spread(parts.U, d.s0 / determinant))


def diagonal_errors(parts: Channels, d: Derivatives, free: Bools) -> tuple[Floats, Floats]:
    """Return the standard errors of H and of ``diag(h)``; entries of h that are not free are fixed, and get NaN."""
    q, U, inverse = len(free), parts.U, parts.inverse
    covariance = np.zeros((q, q))
    block = np.ix_(free, free)
    covariance[block] = 2.0 * np.linalg.inv(reduced(inverse, d)[0][block])
    V = inverse.T[:, :, None] * inverse.T[:, None, :]
    moved = U @ (V * (d.s1 / d.s0)) @ U.T
    through_h = np.einsum("kij,kl,lij->ij", moved, covariance, moved, optimize=True)
    variance = np.where(free, np.diag(covariance), np.nan)
    return np.sqrt(_spread(U, 1.0 / d.s0) + through_h), np.diag(np.sqrt(variance))


def _spread(U: Floats, V: Floats) -> Floats:
    """Return the variances of ``U X U'`` for independent X_ab = X_ba of variance V_ab, twice that on the diagonal."""
    q = len(U)
    products = (U[:, None, :] * U[None, :, :]).reshape(q * q, q)
    crossed = ((products @ V) * products).sum(axis=1).reshape(q, q)
    return np.asarray(U**2 @ V @ (U**2).T + crossed)

"""Checks of the parameters of a model, each with the rule, the finding and the remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphmrf.errors import InvalidInputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from graphmrf._typing import Floats


def positive_definite(H: ArrayLike) -> Floats:
    """Return `H` as a symmetric positive definite array."""
    H = _symmetric("H", H)
    smallest = float(np.linalg.eigvalsh(H)[0])
    try:
        np.linalg.cholesky(H)
    except np.linalg.LinAlgError:
        raise InvalidInputError(
            f"H must be positive definite, got a smallest eigenvalue of {smallest:.3g}; "
            "add a small multiple of the identity, or drop attributes that are combinations of others"
        ) from None
    return H


def edge_part(h: ArrayLike | None, C: ArrayLike | None, q: int) -> Floats:
    """Return `C`, or ``diag(h)``, as a symmetric positive semidefinite array."""
    if (h is None) == (C is None):
        raise InvalidInputError(f"give either h or C, got {'neither' if h is None else 'both'}")
    if C is None:
        strengths = vector("h", np.asarray(h), q)
        if (strengths < 0).any():
            raise InvalidInputError(
                f"h must be >= 0, got {strengths.min():.6g} at position {int(strengths.argmin())}; "
                "0 means that an attribute does not follow the edges"
            )
        return np.diag(strengths)
    C = _symmetric("C", C)
    if C.shape != (q, q):
        raise InvalidInputError(f"C must have the shape of H, {(q, q)}, got {C.shape}")
    eigenvalues = np.linalg.eigvalsh(C)
    if eigenvalues[0] < -1e-10 * max(eigenvalues[-1], 0.0) or eigenvalues[-1] < 0:
        raise InvalidInputError(
            f"C must be positive semidefinite, got a smallest eigenvalue of {eigenvalues[0]:.3g}; "
            "project it, or give h for a diagonal C"
        )
    return C


def _symmetric(name: str, values: ArrayLike) -> Floats:
    M = _finite(name, values)
    if M.ndim != 2 or M.shape[0] != M.shape[1] or not M.size:
        raise InvalidInputError(f"{name} must be a square matrix (q, q), got shape {M.shape}")
    gap = float(np.abs(M - M.T).max())
    if gap > 1e-8 * float(np.abs(M).max()):
        raise InvalidInputError(f"{name} must be symmetric, got entries that differ by {gap:.3g}; use (M + M.T) / 2")
    return (M + M.T) / 2


def vector(name: str, entries: ArrayLike, q: int) -> Floats:
    """Return `q` finite numbers."""
    values = _finite(name, entries)
    if values.shape != (q,):
        raise InvalidInputError(f"{name} must have one entry per attribute, shape ({q},), got shape {values.shape}")
    return values


def _finite(name: str, values: ArrayLike) -> Floats:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name} must hold real numbers ({error})") from None
    if not np.isfinite(array).all():
        raise InvalidInputError(f"{name} must be finite, got {array[~np.isfinite(array)].flat[0]}")
    return array

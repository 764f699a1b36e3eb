r"""The parameters of a field, checked: H and C, the channels and the precision matrix they define."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.linalg import cholesky, eigh, solve_triangular

from graphmrf.caching import cached_property
from graphmrf.errors import InvalidInputError
from graphmrf.graph.checks import LARGEST
from graphmrf.linalg import multiply

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from graphmrf._typing import Floats
    from graphmrf.graph import Graph

# Largest number of a field, and its inverse the smallest diagonal entry of H: precisions of the attributes that
# `check_magnitude` takes. Squares of them can be represented.
_LARGEST = LARGEST**2


@dataclass(frozen=True, eq=False)
class Parameters:
    r"""The numbers of a field: precision :math:`H \otimes I + C \otimes N`, and mean."""

    H: Floats  # (q, q): interactions between the attributes of one node; symmetric positive definite
    C: Floats  # (q, q): interactions along the edges; symmetric positive semidefinite, ``diag(h)`` in the paper's model
    mean: Floats  # (q,): mean of every attribute

    @property
    def q(self) -> int:
        """Number of attributes."""
        return len(self.H)

    @cached_property
    def channels(self) -> Channels:
        """The independent channels of the field; LinAlgError if `H` is not positive definite."""
        return channels(self.H, self.C)

    def scaled(self, scale: Floats, mean: Floats | float = 0.0) -> Parameters:
        """Return the parameters of the attributes times `scale` plus `mean`."""
        units = np.multiply.outer(scale, scale)
        return Parameters(self.H / units, self.C / units, mean + self.mean * scale)


@dataclass(frozen=True)
class Channels:
    r"""Factors of :math:`H + l\,C = U (I + l\,\mathrm{diag}(\lambda))\,U'` for every `l`, with one matrix `U`.

    With them the precision of the whole field falls apart into q operators on the graph alone,

    .. math:: H \otimes I + C \otimes N = (U \otimes I)\,(I + \mathrm{diag}(\lambda) \otimes N)\,(U' \otimes I),

    so :math:`F = A U` has independent columns of precision :math:`I + \lambda_j N`, and :math:`A = F U^{-1}`.
    """

    strength: Floats  # (q,): `\lambda \ge 0`, ascending
    U: Floats  # (q, q): from attributes to channels: ``F = A @ U``
    inverse: Floats  # (q, q): from channels to attributes: ``A = F @ inverse``
    log_det_H: float  # `\log \det H`

    @property
    def alpha(self) -> Floats:
        r"""Smoothing level of every channel, :math:`\lambda / (1 + \lambda)`, shape (q,)."""
        return np.asarray(self.strength / (1.0 + self.strength))


def channels(H: Floats, C: Floats) -> Channels:
    r"""Return the channels of a field: :math:`H = R R'`, :math:`R^{-1} C R^{-T} = Q \Lambda Q'`, :math:`U = R Q`.

    Libraries choose the signs of eigenvectors differently; here the largest entry of every row of the inverse is
    positive, so that a seed draws the same sample on every machine. LinAlgError if `H` is not positive definite.
    """
    R = cholesky(H, lower=True, check_finite=False)
    half = solve_triangular(R, C, lower=True, check_finite=False)
    scaled = solve_triangular(R, half.T, lower=True, check_finite=False)
    strength, Q = eigh((scaled + scaled.T) / 2, check_finite=False)
    inverse = solve_triangular(R, Q, lower=True, trans="T", check_finite=False).T
    log_det_H = 2.0 * float(np.log(np.diag(R)).sum())
    signs = np.where(inverse.max(axis=1, initial=0.0) < -inverse.min(axis=1, initial=0.0), -1.0, 1.0)
    return Channels(np.maximum(strength, 0.0), R @ Q * signs, inverse * signs[:, None], log_det_H)


@dataclass(frozen=True)
class Precision:
    r"""The precision matrix :math:`\Gamma = H \otimes I + C \otimes N`, never formed.

    It acts on attribute matrices instead of on their vectorisation, because

    .. math:: \Gamma\,\mathrm{vec}(A) = \mathrm{vec}(A H + N A\,C).
    """

    graph: Graph  # the graph of `N`
    # H, C (q, q): same-node interactions, and interactions along the edges
    H: Floats
    C: Floats

    def __matmul__(self, A: Floats) -> Floats:
        A = np.asarray(A, dtype=np.float64)
        if A.shape != (self.graph.n_nodes, len(self.H)):
            raise InvalidInputError(
                f"the operand must be a matrix of shape {(self.graph.n_nodes, len(self.H))}, got shape {A.shape}"
            )
        return A @ self.H + (A - multiply(self.graph, A)) @ self.C

    def quadratic(self, A: Floats) -> float:
        r"""Return the quadratic form :math:`\mathrm{vec}(A)' \Gamma\,\mathrm{vec}(A)`."""
        return float(np.vdot(A, self @ A))

    def to_sparse(self) -> sparse.csr_array:
        """Return the matrix itself as a SciPy sparse array; for small graphs."""
        on_node = sparse.kron(sparse.csr_array(self.H), sparse.eye_array(self.graph.n_nodes))
        return sparse.csr_array(on_node + sparse.kron(sparse.csr_array(self.C), self.graph.N))


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
    if H.diagonal().min() < 1 / _LARGEST:
        raise InvalidInputError(
            f"H must have a diagonal of {1 / _LARGEST:.0e} or more, got {H.diagonal().min():g}; give the attributes in "
            "another unit"
        )
    return H


def edge_part(h: ArrayLike | None, C: ArrayLike | None, q: int, *, rounding: float = 1e-10) -> Floats:
    """Return `C`, or ``diag(h)``, as a symmetric positive semidefinite array, up to `rounding` of its eigenvalues."""
    if (h is None) == (C is None):
        raise InvalidInputError(f"give either h or C, got {'neither' if h is None else 'both'}")
    if C is None:
        strengths = vector("h", np.asarray(h), q)
        if (strengths < 0).any():
            raise InvalidInputError(
                f"h must be >= 0, got {strengths.min():.6g} at position {int(strengths.argmin())}; "
                "0 means that an attribute is not smooth along the edges"
            )
        return np.diag(strengths)
    C = _symmetric("C", C)
    if C.shape != (q, q):
        raise InvalidInputError(f"C must have the shape of H, {(q, q)}, got {C.shape}")
    eigenvalues = np.linalg.eigvalsh(C)
    if eigenvalues[0] < -rounding * max(eigenvalues[-1], 0.0) or eigenvalues[-1] < 0:
        raise InvalidInputError(
            f"C must be positive semidefinite, got a smallest eigenvalue of {eigenvalues[0]:.3g}; "
            "project it, or give h for a diagonal C"
        )
    return C


def vector(name: str, entries: ArrayLike, q: int) -> Floats:
    """Return `q` finite numbers."""
    values = _finite(name, entries)
    if values.shape != (q,):
        raise InvalidInputError(f"{name} must have one entry per attribute, shape ({q},), got shape {values.shape}")
    return values


def _symmetric(name: str, values: ArrayLike, *, asymmetry: float = 1e-8) -> Floats:
    """Return the symmetric part of a matrix that differs from its transpose by half the digits of float64 at most."""
    M = _finite(name, values)
    if M.ndim != 2 or M.shape[0] != M.shape[1] or not M.size:
        raise InvalidInputError(f"{name} must be a square matrix (q, q), got shape {M.shape}")
    gap = float(np.abs(M - M.T).max())
    if gap > asymmetry * float(np.abs(M).max()):
        raise InvalidInputError(f"{name} must be symmetric, got entries that differ by {gap:.3g}; use (M + M.T) / 2")
    return (M + M.T) / 2


def _finite(name: str, values: ArrayLike) -> Floats:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name} must be numeric ({error})") from None
    if not np.isfinite(array).all():
        raise InvalidInputError(f"{name} must be finite, got {array[~np.isfinite(array)].flat[0]}")
    if array.size and np.abs(array).max() > _LARGEST:
        raise InvalidInputError(
            f"{name} must be within {_LARGEST:.0e}, got {np.abs(array).max():g}; give the attributes in another unit"
        )
    return array

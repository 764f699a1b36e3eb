r"""The likelihood of a field from sufficient statistics: its value, derivatives and Fisher information.

With the eigenvalues `l` of N (or a quadrature for their density), :math:`M_0 = A'A` and :math:`M_1 = A'NA`,

.. math:: -2 \log p(A) = \mathrm{tr}(H M_0) + \mathrm{tr}(C M_1) - \sum_i \log\det(H + l_i C) + nq \log 2\pi ,

which is convex in (H, C). In channels (:math:`H = UU'`, :math:`C = U \Lambda U'`) all sums over `l` are elementwise.
The precision is linear in (H, C), so the observed and the expected information are the same: the curvature.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from graphmrf.linalg import multiply

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats
    from graphmrf.graph import Graph
    from graphmrf.linalg.spectrum import Spectrum
    from graphmrf.model.parameters import Channels


@dataclass(frozen=True)
class Statistics:
    """Sufficient statistics of the attributes."""

    n: int  # number of nodes
    # M0, M1 (q, q): ``A.T @ A`` and ``A.T @ N @ A`` of the centred attributes
    M0: Floats
    M1: Floats

    def centred(self, shift: Floats) -> Statistics:
        """Return the statistics of the attributes less `shift`, without the last column here, which is all ones."""
        T = np.vstack([np.eye(len(shift)), -shift])
        return Statistics(self.n, T.T @ self.M0 @ T, T.T @ self.M1 @ T)


def statistics(graph: Graph, A: Floats) -> Statistics:
    """Return the sufficient statistics of attributes (n, q) without missing entries, in one pass over the edges."""
    M1 = A.T @ (A - multiply(graph, A))
    return Statistics(graph.n_nodes, A.T @ A, (M1 + M1.T) / 2)


def log_likelihood(parts: Channels, data: Statistics, states: Spectrum) -> float:
    """Return the log density of the attributes, with its constant."""
    energy = float(np.einsum("ja,jk,ka->", parts.U, data.M0, parts.U))
    energy += float(np.einsum("ja,jk,ka,a->", parts.U, data.M1, parts.U, parts.strength))
    constant = data.n * len(parts.U) * float(np.log(2.0 * np.pi))
    return 0.5 * (log_determinant(parts, states) - energy - constant)


def log_determinant(parts: Channels, states: Spectrum) -> float:
    r"""Return :math:`\log\det\Gamma`."""
    return states.n_nodes * parts.log_det_H + states.sum(lambda x: _log_terms(parts, x))


def log_likelihood_error(parts: Channels, states: Spectrum) -> float:
    """Return the standard error of `log_likelihood` that comes from the density of states; 0 when it is exact."""
    return 0.5 * states.error(lambda x: _log_terms(parts, x))


def _log_terms(parts: Channels, x: Floats) -> Floats:
    return np.asarray(np.log1p(x[..., None] * parts.strength).sum(axis=-1))


@dataclass(frozen=True)
class Derivatives:
    r"""Gradient and curvature of :math:`-2 \log p` in channels, where :math:`dH = U X U'` and :math:`dC = U Y U'`.

    .. math:: \mathrm{tr}(G_0 X) + \mathrm{tr}(G_1 Y)
              + \tfrac12 \sum_{ab} (s_{0,ab} X_{ab}^2 + 2 s_{1,ab} X_{ab} Y_{ab} + s_{2,ab} Y_{ab}^2)
    """

    # G0, G1 (q, q): gradient for `X` and for `Y`
    G0: Floats
    G1: Floats
    # s0, s1, s2 (q, q): curvature: it does not mix one pair (a, b) with another
    s0: Floats
    s1: Floats
    s2: Floats


def derivatives(parts: Channels, data: Statistics, states: Spectrum) -> Derivatives:
    """Return the gradient and the curvature of twice the negative log-likelihood."""
    U, x, w = parts.U, states.nodes, states.weights
    D = 1.0 / (1.0 + x[:, None] * parts.strength)
    s0, s1, s2 = ((D.T * (w * x**r)) @ D for r in range(3))
    G0 = U.T @ data.M0 @ U - np.diag(w @ D)
    G1 = U.T @ data.M1 @ U - np.diag((w * x) @ D)
    return Derivatives(G0, G1, s0, s1, s2)


def schur_complement(V: Floats, d: Derivatives) -> tuple[Floats, Floats]:
    """Return curvature (q, q) and gradient (q,) of the objective for h, with H eliminated: at its best for every h.

    The columns of `V` are the effects of the entries of h on the channels.
    """
    q, ratio = len(V), d.s1 / d.s0
    K = (V[:, None, :] * V[None, :, :]).reshape(q * q, q)
    curvature = np.maximum(d.s2 - d.s1 * ratio, 0.0).reshape(q * q, 1)
    return K.T @ (curvature * K), K.T @ (d.G1 - ratio * d.G0).ravel()


def coupled_standard_errors(parts: Channels, d: Derivatives) -> tuple[Floats, Floats]:
    """Return the standard errors of H and of a full C; `d`: derivatives summed over nodes."""
    determinant = d.s0 * d.s2 - d.s1**2
    return np.sqrt(_variances(parts.U, d.s2 / determinant)), np.sqrt(_variances(parts.U, d.s0 / determinant))


def diagonal_standard_errors(parts: Channels, d: Derivatives, free: Bools) -> tuple[Floats, Floats]:
    """Return the standard errors of H and of ``diag(h)``; entries of h that are not free are fixed, and get NaN."""
    q, U, inverse = len(free), parts.U, parts.inverse
    covariance = np.zeros((q, q))
    block = np.ix_(free, free)
    covariance[block] = 2.0 * np.linalg.inv(schur_complement(inverse, d)[0][block])
    V = inverse.T[:, :, None] * inverse.T[:, None, :]
    moved = U @ (V * (d.s1 / d.s0)) @ U.T
    through_h = np.einsum("kij,kl,lij->ij", moved, covariance, moved, optimize=True)
    variance = np.where(free, np.diag(covariance), np.nan)
    return np.sqrt(_variances(U, 1.0 / d.s0) + through_h), np.diag(np.sqrt(variance))


def _variances(U: Floats, V: Floats) -> Floats:
    """Return the variances of ``U X U'`` for independent X_ab = X_ba of variance V_ab, twice that on the diagonal."""
    q = len(U)
    products = (U[:, None, :] * U[None, :, :]).reshape(q * q, q)
    crossed = ((products @ V) * products).sum(axis=1).reshape(q, q)
    return np.asarray(U**2 @ V @ (U**2).T + crossed)

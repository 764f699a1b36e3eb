"""The paper's way to fit the field, for comparison only: stochastic gradients, many starts.

h = exp(phi) and H = R'R + 1e-5 I with R upper triangular, a softplus on its diagonal. Every step estimates the
log-determinant and its gradient with 128 random probes and 64 steps of conjugate gradients on all of Gamma (the same
steps give both), then moves by Adam with weight decay. The paper takes 3000 steps from each of 32 starts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy import sparse

    from graphmrf._typing import Floats

PROBES, KRYLOV_STEPS = 128, 64
STEPS, STARTS = 3000, 32
RATE, DECAY, BETA1, BETA2 = 1e-2, 2.5e-4, 0.9, 0.999


@dataclass
class StochasticFit:
    """One start of the procedure on centred attributes `A` (n, q) and the normalised Laplacian `N`."""

    N: sparse.csr_array
    A: Floats
    seed: int
    taken: int = 0
    phi: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.rng, q = np.random.default_rng(self.seed), self.A.shape[1]
        self.phi = self.rng.standard_normal(q + q * (q + 1) // 2)
        self.m1, self.m2 = np.zeros_like(self.phi), np.zeros_like(self.phi)

    def parameters(self) -> tuple[Floats, Floats, Floats]:
        """Return H, h and the factor R."""
        q = self.A.shape[1]
        R = np.zeros((q, q))
        R[np.triu_indices(q)] = self.phi[q:]
        np.fill_diagonal(R, np.logaddexp(0.0, np.diag(R)))
        return R.T @ R + 1e-5 * np.eye(q), np.exp(self.phi[:q]), R

    def step(self) -> float:
        """Take one step and return the estimated loss before it."""
        loss, gradient = self.gradient()
        self.taken += 1
        self.m1 = BETA1 * self.m1 + (1 - BETA1) * gradient
        self.m2 = BETA2 * self.m2 + (1 - BETA2) * gradient**2
        unbiased = self.m1 / (1 - BETA1**self.taken), self.m2 / (1 - BETA2**self.taken)
        self.phi = (1 - DECAY) * self.phi - RATE * unbiased[0] / (np.sqrt(unbiased[1]) + 1e-8)
        return loss

    def gradient(self) -> tuple[float, Floats]:
        """Return the negative log-likelihood per node, without its constant, and its gradient; both estimated."""
        (H, h, R), (n, q) = self.parameters(), self.A.shape
        Z = self.rng.choice([-1.0, 1.0], size=(n, q, PROBES))
        X, log_det = self._conjugate_gradients(H, h, Z)
        NA, NZ = self.N @ self.A, (self.N @ Z.reshape(n, -1)).reshape(Z.shape)
        by_H = self.A.T @ self.A - np.einsum("nip,njp->ij", X, Z, optimize=True) / PROBES
        by_h = (self.A * NA).sum(axis=0) - np.einsum("njp,njp->j", X, NZ) / PROBES
        by_R = 2.0 * R @ (by_H + by_H.T) / 2.0
        diagonal = np.diag_indices(q)
        by_R[diagonal] *= 1.0 - np.exp(-np.diag(R))
        energy = float(np.vdot(self.A, self.A @ H + NA * h))
        return (energy - log_det) / (2 * n), np.concatenate([by_h * h, by_R[np.triu_indices(q)]]) / (2 * n)

    def _conjugate_gradients(self, H: Floats, h: Floats, Z: Floats) -> tuple[Floats, float]:
        """Return Gamma^-1 Z, and the log determinant of Gamma from the coefficients of the same steps."""
        n, q, k = Z.shape
        X, residual, direction = np.zeros_like(Z), Z.copy(), Z.copy()
        rho = (residual**2).sum(axis=(0, 1))
        alphas, betas = [], []
        for _ in range(KRYLOV_STEPS):
            product = H @ direction
            product += (self.N @ direction.reshape(n, -1)).reshape(n, q, k) * h[:, None]
            alpha = rho / np.einsum("nip,nip->p", direction, product)
            X += alpha * direction
            residual -= alpha * product
            before, rho = rho, (residual**2).sum(axis=(0, 1))
            direction = residual + (rho / before) * direction
            alphas.append(alpha)
            betas.append(rho / before)
        return X, n * q * _mean_log(np.array(alphas), np.array(betas))


def _mean_log(alphas: Floats, betas: Floats) -> float:
    """Return the mean over probes of e1' log(T) e1, with T the Lanczos matrix behind steps of conjugate gradients."""
    total, k = 0.0, alphas.shape[1]
    for alpha, beta in zip(alphas.T, betas.T, strict=True):
        diagonal = 1.0 / alpha
        diagonal[1:] += beta[:-1] / alpha[:-1]
        off = np.sqrt(beta[:-1]) / alpha[:-1]
        values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(off, 1) + np.diag(off, -1))
        total += float(vectors[0] ** 2 @ np.log(np.maximum(values, 1e-300)))
    return float(total / k)

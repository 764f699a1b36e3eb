"""Dense algebra, written for the eye: every formula of the model as it stands in the paper, and nothing else.

Graphs are dense weight matrices `W`; a missing outcome is NaN.
"""

from collections.abc import Callable

import numpy as np

from graphmrf._typing import Bools, Floats, Ints


def normalised_adjacency(W: Floats) -> Floats:
    """S = D^-1/2 W D^-1/2, with an empty row for a node of degree 0."""
    degrees = W.sum(axis=1)
    S = np.zeros_like(W)
    for i, j in np.argwhere(W > 0):
        S[i, j] = W[i, j] / np.sqrt(degrees[i] * degrees[j])
    return S


def laplacian(W: Floats) -> Floats:
    """N = I - S, with an empty row for a node of degree 0."""
    return np.diag((W.sum(axis=1) > 0).astype(float)) - normalised_adjacency(W)


def precision(W: Floats, alpha: float) -> Floats:
    """I + omega N."""
    return np.eye(len(W)) + alpha / (1 - alpha) * laplacian(W)


def smooth(W: Floats, X: Floats, alpha: float) -> Floats:
    """(I + omega N)^-1 X."""
    return np.asarray(np.linalg.solve(precision(W, alpha), X))


def smooth_features(W: Floats, X: Floats, alpha: float) -> Floats:
    """(I + omega N)^-1 X, N = I - S to the letter: 1 at an isolated node."""
    return np.asarray(np.linalg.solve(_literal_precision(W, alpha), X))


def _literal_precision(W: Floats, alpha: float) -> Floats:
    return np.eye(len(W)) + alpha / (1 - alpha) * (np.eye(len(W)) - normalised_adjacency(W))


def propagate(W: Floats, y: Floats, known: Bools, alpha: float) -> Floats:
    """y_L on L, -(I + omega N)_UU^-1 (I + omega N)_UL y_L on U."""
    M, U, L = precision(W, alpha), ~known, known
    filled = np.where(known, y, 0.0)
    filled[U] = -np.linalg.solve(M[U][:, U], M[U][:, L] @ y[L])
    return np.asarray(filled)


def conditional_covariance(W: Floats, known: Bools, alpha: float) -> Floats:
    """(I + omega N)_UU^-1."""
    U = ~known
    return np.asarray(np.linalg.inv(precision(W, alpha)[U][:, U]))


def conditional_variance(W: Floats, known: Bools, alpha: float) -> Floats:
    """Diagonal of the conditional covariance on U, 0 on L."""
    variance = np.zeros(len(W))
    variance[~known] = np.diag(conditional_covariance(W, known, alpha))
    return variance


def known_precision(W: Floats, known: Bools, alpha: float) -> Floats:
    """P, the inverse of the covariance of the known nodes."""
    covariance = np.linalg.inv(precision(W, alpha))
    return np.asarray(np.linalg.inv(covariance[known][:, known]))


def leave_one_out(W: Floats, y: Floats, known: Bools, alpha: float) -> tuple[Floats, Floats]:
    """Residual and variance at every known node, given the other known nodes: each left out in turn."""
    residuals, variances = [], []
    for i in np.flatnonzero(known):
        others = known.copy()
        others[i] = False
        residuals.append(y[i] - propagate(W, y, others, alpha)[i])
        variances.append(conditional_variance(W, others, alpha)[i])
    return np.array(residuals), np.array(variances)


def least_squares(X: Floats, y: Floats) -> tuple[Floats, float]:
    """Coefficients and intercept; y has no NaN."""
    solution = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), y, rcond=None)[0]
    return np.asarray(solution[:-1]), float(solution[-1])


def linear_regression(X: Floats, y: Floats) -> Floats:
    """LR: X b + c at every node, b and c from the labelled ones."""
    known = ~np.isnan(y)
    b, c = least_squares(X[known], y[known])
    return np.asarray(X @ b + c)


def label_propagation(W: Floats, y: Floats, alpha: float) -> Floats:
    """LP: the labelled mean plus the propagated deviation from it."""
    known = ~np.isnan(y)
    mean = y[known].mean()
    return np.asarray(mean + propagate(W, y - mean, known, alpha))


def linear_graph_convolution(W: Floats, X: Floats, y: Floats, alpha: float) -> Floats:
    """LGC: regression on the smoothed features, centred over all nodes before smoothing."""
    return linear_regression(smooth_features(W, X - X.mean(axis=0), alpha), y)


def residual_propagation(W: Floats, trend: Floats, y: Floats, alpha: float) -> Floats:
    """Add to a trend its propagated residual; gives y itself where it is known."""
    return trend + propagate(W, y - trend, ~np.isnan(y), alpha)


def convolution_and_propagation(W: Floats, X: Floats, y: Floats, alpha: float) -> Floats:
    """LGC/RP in one solve: (I + omega N)_UU (y - c)_U = (X b)_U - (I + omega N)_UL (y - c)_L."""
    known = ~np.isnan(y)
    U, L, M, centred = ~known, known, _literal_precision(W, alpha), X - X.mean(axis=0)
    b, c = least_squares(smooth_features(W, centred, alpha)[L], y[L])
    filled = y.copy()
    filled[U] = c + np.linalg.solve(M[U][:, U], (centred @ b)[U] - M[U][:, L] @ (y[L] - c))
    return filled


def hide(y: Floats, nodes: Ints) -> Floats:
    """The outcome with some more of its entries missing."""
    hidden = y.copy()
    hidden[nodes] = np.nan
    return hidden


def draw(W: Floats, alpha: float, rng: np.random.Generator, size: int) -> Floats:
    """Fields of covariance (I + omega N)^-1, shape (size, n)."""
    root = np.linalg.cholesky(np.linalg.inv(precision(W, alpha)))
    return rng.standard_normal((size, len(W))) @ root.T


def field_precision(W: Floats, H: Floats, C: Floats) -> Floats:
    """Gamma = H (x) I + C (x) N, columns stacked."""
    return np.asarray(np.kron(H, np.eye(len(W))) + np.kron(C, laplacian(W)))


def field_given(W: Floats, H: Floats, C: Floats, A: Floats) -> tuple[Floats, Floats]:
    """Conditional mean (n, q) and covariance (of the NaN entries, columns stacked) of a field of mean 0 given A."""
    gamma, z = field_precision(W, H, C), A.T.ravel().copy()
    M = np.isnan(z)
    covariance = np.asarray(np.linalg.inv(gamma[M][:, M]))
    z[M] = -covariance @ gamma[M][:, ~M] @ z[~M]
    return z.reshape(A.T.shape).T, covariance


def field_log_density(W: Floats, H: Floats, C: Floats, A: Floats) -> float:
    """Log density of the entries of A that are not NaN, under a field of mean 0."""
    z = A.T.ravel()
    seen = ~np.isnan(z)
    covariance = np.linalg.inv(field_precision(W, H, C))[seen][:, seen]
    energy = z[seen] @ np.linalg.solve(covariance, z[seen])
    return float(-0.5 * (energy + np.linalg.slogdet(2 * np.pi * covariance)[1]))


def elliptical_slice(
    log_density: Callable[[Floats], Floats], K: Floats, *, chains: int, steps: int, rng: np.random.Generator
) -> Floats:
    """Draws (steps, chains, m) of v ~ N(0, K) times exp(log_density(v)): Murray, Adams and MacKay (2010)."""
    L, v = np.linalg.cholesky(K), np.zeros((chains, len(K)))
    current, drawn = log_density(v), np.empty((steps, chains, len(K)))
    for step in range(steps):
        other, level = rng.standard_normal(v.shape) @ L.T, current + np.log(rng.random(chains))
        angle = rng.uniform(0.0, 2.0 * np.pi, chains)
        low, high, waiting = angle - 2.0 * np.pi, angle.copy(), np.ones(chains, dtype=bool)
        while waiting.any():
            proposed = v * np.cos(angle)[:, None] + other * np.sin(angle)[:, None]
            found = log_density(proposed)
            taken = waiting & (found > level)
            drawn[step, taken], current[taken] = proposed[taken], found[taken]
            waiting &= ~taken
            low, high = np.where(angle < 0, angle, low), np.where(angle < 0, high, angle)
            angle = np.where(waiting, rng.uniform(low, high), angle)
        v = drawn[step].copy()
    return drawn

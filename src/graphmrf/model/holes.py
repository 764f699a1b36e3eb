r"""What is to be expected of missing attributes: their mean, and sums of their covariances given what is observed.

The covariance of the missing entries `M` given the others is :math:`\Gamma_{MM}^{-1}`. Its sums

.. math:: K_{0,jk} = \sum_u \mathrm{cov}(a_{uj}, a_{uk}),\; K_{1,jk} = \sum_{uv} N_{uv}\,\mathrm{cov}(a_{uj}, a_{vk})

are exact up to `EXACT_LIMIT` missing entries, and beyond are means over fixed random signs `z` of products of `z` with
:math:`\Gamma_{MM}^{-1} z`. The log determinant of :math:`\Gamma_{MM}` comes from the same products: along
:math:`H \otimes I + t\,C \otimes N` its derivative is :math:`\sum_{jk} C_{jk} K_{1,jk}(t)`, integrated from 0 to 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.linalg import cholesky, lapack

from graphmrf.linalg import multiply
from graphmrf.linalg.coupled import PrecisionBlock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphmrf._typing import Bools, Floats
    from graphmrf.graph import Graph
    from graphmrf.model.newton import Point

EXACT_LIMIT = 2000
_TOLERANCE = 1e-9
_NODES = 12
_BATCH_ENTRIES = 20_000_000


@dataclass(frozen=True)
class Holes:
    """Centred attributes (n, q) on a graph, NaN where missing.

    Parameters
    ----------
    graph : Graph
        The graph.
    B : array of shape (n, q)
        The attributes.
    most_probes : int
        Bound on the number of probes.
    """

    graph: Graph
    B: Floats
    most_probes: int = 32

    @cached_property
    def missing(self) -> Bools:
        """The missing entries, shape (n, q)."""
        return np.isnan(self.B)

    @property
    def count(self) -> int:
        """Number of missing entries."""
        return int(np.count_nonzero(self.missing))

    @property
    def is_exact(self) -> bool:
        """Whether covariances are computed and not probed."""
        return self.count <= EXACT_LIMIT

    @property
    def probes(self) -> int:
        """Number of probes: the fewer the more entries are missing, since each of them averages over entries."""
        return int(np.clip(300_000 // max(self.count, 1), min(8, self.most_probes), self.most_probes))

    def signs(self) -> Iterator[Floats]:
        """Yield random signs on the missing entries, in stacks (k, n, q) of at most 160 MB; the same every time."""
        together = max(1, _BATCH_ENTRIES // self.B.size)
        for first in range(0, self.probes, together):
            shape = (min(together, self.probes - first), *self.B.shape)
            drawn = np.random.default_rng(first).integers(0, 2, shape, dtype=np.int8)
            yield np.where(self.missing, drawn * 2.0 - 1.0, 0.0)


@dataclass(frozen=True)
class Expectation:
    """The missing entries given the observed ones: filled attributes (n, q), and sums of covariances (q, q)."""

    filled: Floats
    K0: Floats
    K1: Floats


def expect(holes: Holes, point: Point, shift: Floats, *, tolerance: float = _TOLERANCE) -> Expectation:
    """Return what is to be expected under a model of mean `shift`; solves have a relative residual `tolerance`."""
    block = PrecisionBlock(holes.graph, point.H, point.C, holes.missing)
    deviation = np.where(holes.missing, 0.0, holes.B - shift)
    right = -block.apply(deviation[None])
    if holes.is_exact:
        covariance = _inverse(block.matrix.toarray())
        deviation[holes.missing] = covariance @ right[0][holes.missing]
        return Expectation(deviation + shift, *_exact_sums(holes, covariance))
    deviation += block.solve(right, tolerance=tolerance).or_raise(tolerance)[0]
    K0, K1 = _probed_sums(holes, block, tolerance)
    return Expectation(deviation + shift, K0.mean(axis=0), K1.mean(axis=0))


def log_det_missing(holes: Holes, point: Point) -> tuple[float, float]:
    r"""Return :math:`\log\det\Gamma_{MM}` and its standard error, 0 where it is exact."""
    if holes.is_exact:
        lower = cholesky(PrecisionBlock(holes.graph, point.H, point.C, holes.missing).matrix.toarray(), lower=True)
        return 2.0 * float(np.log(np.diag(lower)).sum()), 0.0
    span = np.log1p(2.0 * point.parts.strength[-1])
    if span == 0:
        return _on_nodes(holes, point.H), 0.0
    places, weights = np.polynomial.legendre.leggauss(_NODES)
    total = np.zeros(holes.probes)
    for v, weight in zip((places + 1.0) / 2.0, weights / 2.0, strict=True):
        t = np.expm1(v * span) / np.expm1(span)  # evens out the integrand, which falls like 1 / t
        K1 = _probed_sums(holes, PrecisionBlock(holes.graph, point.H, t * point.C, holes.missing))[1]
        total += weight * span * np.exp(v * span) / np.expm1(span) * np.einsum("jk,pjk->p", point.C, K1)
    return _on_nodes(holes, point.H) + float(total.mean()), float(total.std(ddof=1) / np.sqrt(total.size))


def _on_nodes(holes: Holes, H: Floats) -> float:
    """Return the log determinant without edges: that of a block of H at every node."""
    patterns, counts = np.unique(holes.missing, axis=0, return_counts=True)
    blocks = (np.linalg.slogdet(H[np.ix_(pattern, pattern)])[1] for pattern in patterns)
    return float(sum(count * value for count, value in zip(counts, blocks, strict=True)))


def _inverse(A: Floats) -> Floats:
    if not A.size:
        return A
    lower = cholesky(A, lower=True, overwrite_a=True, check_finite=False)
    inverse, failed = lapack.dpotri(lower, lower=True, overwrite_c=True)
    assert not failed
    return np.asarray(np.tril(inverse) + np.tril(inverse, -1).T)


def _exact_sums(holes: Holes, covariance: Floats) -> tuple[Floats, Floats]:
    nodes, attributes = np.nonzero(holes.missing)
    q = holes.B.shape[1]

    def total(weights: sparse.csr_array) -> Floats:
        pairs = sparse.coo_array(weights[nodes][:, nodes])
        i, j = pairs.coords
        cells = attributes[i] * q + attributes[j]
        return np.bincount(cells, pairs.data * covariance[i, j], minlength=q * q).astype(np.float64).reshape(q, q)

    return total(sparse.csr_array(sparse.eye_array(holes.graph.n_nodes))), total(holes.graph.N)


def _probed_sums(holes: Holes, block: PrecisionBlock, tolerance: float = _TOLERANCE) -> tuple[Floats, Floats]:
    """Return both sums of covariances probe by probe, shapes (probes, q, q)."""
    K0, K1 = [], []
    for Z in holes.signs():
        X = block.solve(Z, tolerance=tolerance).or_raise(tolerance)
        k, n, q = X.shape
        flat = X.transpose(1, 0, 2).reshape(n, k * q)
        NX = (flat - multiply(holes.graph, flat)).reshape(n, k, q)
        K0.append(np.matmul(Z.transpose(0, 2, 1), X))
        K1.append(np.matmul(Z.transpose(0, 2, 1), NX.transpose(1, 0, 2)))
    return np.concatenate(K0), np.concatenate(K1)

r"""Expectation maximisation (EM): the maximum of the likelihood of attributes with missing entries.

The gradient of the observed-data likelihood is that of the complete one at the statistics *expected* given what is
observed (Fisher's identity): :math:`E[A'A] = \hat A'\hat A + K_0`, :math:`E[A'NA] = \hat A' N \hat A + K_1`. So the fit
is a fixed point of the statistics: every M-step is the complete, convex fit, and Anderson acceleration takes the place
of most rounds. Where the sums of covariances are probed, the probes stay the same from round to round: there is one
deterministic answer, whose noise is well below the sampling error of the parameters.

The covariance of the missing entries `M` given the others is :math:`\Gamma_{MM}^{-1}`. Its sums

.. math:: K_{0,jk} = \sum_u \mathrm{cov}(a_{uj}, a_{uk}),\; K_{1,jk} = \sum_{uv} N_{uv}\,\mathrm{cov}(a_{uj}, a_{vk})

are exact up to 2000 missing entries, and beyond are means over fixed Rademacher probes `z` of products of `z`
with :math:`\Gamma_{MM}^{-1} z`. The log determinant of :math:`\Gamma_{MM}` comes from the same products: along
:math:`H \otimes I + t\,C \otimes N` its derivative is :math:`\sum_{jk} C_{jk} K_{1,jk}(t)`, integrated from 0 to 1.

Where only attribute `j` has missing entries, as an outcome has, :math:`\Gamma_{MM} = H_{jj} I + C_{jj} N_{MM}` for
every `H` and `C`: one Lanczos quadrature of :math:`N_{MM}` then gives sums and log determinants of all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from graphmrf.caching import cached_property
from graphmrf.engines.probes import random_columns
from graphmrf.errors import ConvergenceError
from graphmrf.linalg import multiply
from graphmrf.linalg.precision import PrecisionBlock
from graphmrf.linalg.spectrum import quadrature
from graphmrf.model.attributes import check_independent
from graphmrf.model.likelihood import Statistics, log_determinant, log_likelihood_error, statistics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphmrf._typing import Bools, Floats
    from graphmrf.graph import Graph
    from graphmrf.linalg.spectrum import LanczosQuadrature, Spectrum
    from graphmrf.model.maximise import FitProblem
    from graphmrf.model.parameters import Parameters


@dataclass(frozen=True)
class Incomplete:
    """Centred attributes (n, q) on a graph, NaN where missing."""

    graph: Graph
    B: Floats  # (n, q): the attributes
    # most_probes, least_probes: bounds on the number of probes; 8 are enough for a standard error
    most_probes: int = 32
    least_probes: int = 8
    # missing entries that all probes cover together, as every probe averages over entries
    probed_entries: int = 300_000
    exact_entries: int = 2000  # missing entries up to which covariances are a dense inverse, 32 MB in every round
    batch_entries: int = 20_000_000  # entries of the probes that go together: 160 MB by default

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
        return self.count <= self.exact_entries

    @property
    def probes(self) -> int:
        """Number of probes: the fewer the more entries are missing, since each of them averages over entries."""
        least = min(self.least_probes, self.most_probes)
        return int(np.clip(self.probed_entries // max(self.count, 1), least, self.most_probes))

    def rademacher(self) -> Iterator[Floats]:
        """Yield Rademacher probes on the missing entries, in stacks (k, n, q) of `batch_entries`; always the same."""
        engine, (n, q) = self.graph.engine, self.B.shape
        together = max(1, self.batch_entries // self.B.size)
        for first in range(0, self.probes, together):
            k = min(together, self.probes - first)
            drawn = engine.unload(engine.random(first, k * q), k * q).reshape(n, k, q)
            yield drawn.transpose(1, 0, 2) * self.missing

    @cached_property
    def only(self) -> int | None:
        """The one attribute that has missing entries; None where several have."""
        found = np.flatnonzero(self.missing.any(axis=0))
        return int(found[0]) if found.size == 1 else None

    @cached_property
    def rules(self) -> LanczosQuadrature:
        """The spectrum of N among the missing entries of the only attribute that has any, probe by probe."""
        probes = max(self.probes, Incomplete.least_probes)
        allowed = np.broadcast_to(self.missing[:, self.only, None], (len(self.B), probes))
        return quadrature(self.graph.engine, random_columns(0, *allowed.shape) * allowed, allowed)

    def block(self, H: Floats, C: Floats) -> PrecisionBlock:
        """Return the precision of the missing entries given the others."""
        return PrecisionBlock(self.graph, H, C, self.missing)


def e_step(incomplete: Incomplete, parameters: Parameters, *, tolerance: float = 1e-9) -> tuple[Floats, Floats, Floats]:
    """Return the attributes with missing entries at their expectation (n, q), and the sums K0 and K1 (q, q)."""
    block = incomplete.block(parameters.H, parameters.C)
    deviation = np.where(incomplete.missing, 0.0, incomplete.B - parameters.mean)
    (right,) = -block.apply(deviation[None])
    if incomplete.is_exact:
        covariance = block.dense.inverse
        deviation[incomplete.missing] = covariance @ right[incomplete.missing]
        K0, K1 = _exact_sums(incomplete, covariance)
    else:
        (solved,) = block.solve(right[None], tolerance=tolerance)
        deviation += solved
        probed = _probed_sums if incomplete.only is None else _quadrature_sums
        K0, K1 = (K.mean(axis=0) for K in probed(incomplete, block, tolerance))
    return deviation + parameters.mean, K0, K1


def observed_log_likelihood(incomplete: Incomplete, parameters: Parameters, states: Spectrum) -> tuple[float, float]:
    """Return the log density of the observed entries, with its constant, and its standard error."""
    filled, _, _ = e_step(incomplete, parameters)
    data = statistics(incomplete.graph, filled - parameters.mean)
    quadratic_form = float(np.vdot(parameters.H, data.M0) + np.vdot(parameters.C, data.M1))
    hidden, hidden_error = missing_log_determinant(incomplete, parameters)
    constant = (incomplete.B.size - incomplete.count) * float(np.log(2.0 * np.pi))
    value = 0.5 * (log_determinant(parameters.channels, states) - hidden - quadratic_form - constant)
    return value, float(np.hypot(log_likelihood_error(parameters.channels, states), 0.5 * hidden_error))


def missing_log_determinant(
    incomplete: Incomplete, parameters: Parameters, *, quadrature_nodes: int = 12
) -> tuple[float, float]:
    r"""Return :math:`\log\det\Gamma_{MM}` and its standard error, 0 where it is exact."""
    H, C = parameters.H, parameters.C
    if incomplete.is_exact:
        return incomplete.block(H, C).dense.log_determinant(), 0.0
    span = np.log1p(2.0 * parameters.channels.strength.max())
    if span == 0:
        return _log_determinant_on_nodes(incomplete, H), 0.0
    if (j := incomplete.only) is not None:
        rules, precision = _scalar_precision(incomplete, H, C)
        each = (rules.weights * np.log(precision)).sum(axis=1)
        truncation = rules.truncation(lambda x: np.log(H[j, j] + C[j, j] * x))
        return float(each.mean()), float(np.hypot(each.std(ddof=1) / np.sqrt(each.size), truncation))
    places, weights = np.polynomial.legendre.leggauss(quadrature_nodes)
    total = np.zeros(incomplete.probes)
    for v, weight in zip((places + 1.0) / 2.0, weights / 2.0, strict=True):
        t = np.expm1(v * span) / np.expm1(span)  # evens out the integrand, which falls like 1 / t
        K1 = _probed_sums(incomplete, incomplete.block(H, t * C))[1]
        total += weight * span * np.exp(v * span) / np.expm1(span) * np.einsum("jk,pjk->p", C, K1)
    on_nodes, error = _log_determinant_on_nodes(incomplete, H), total.std(ddof=1) / np.sqrt(total.size)
    return on_nodes + float(total.mean()), float(error)


def _log_determinant_on_nodes(incomplete: Incomplete, H: Floats) -> float:
    """Return the log determinant without edges: that of a block of H at every node."""
    patterns, counts = np.unique(incomplete.missing, axis=0, return_counts=True)
    blocks = (np.linalg.slogdet(H[np.ix_(pattern, pattern)])[1] for pattern in patterns)
    return float(sum(count * value for count, value in zip(counts, blocks, strict=True)))


def _exact_sums(incomplete: Incomplete, covariance: Floats) -> tuple[Floats, Floats]:
    nodes, attributes = np.nonzero(incomplete.missing)
    q = incomplete.B.shape[1]

    def total(weights: sparse.csr_array) -> Floats:
        pairs = sparse.coo_array(weights[nodes][:, nodes])
        i, j = pairs.coords
        cells = attributes[i] * q + attributes[j]
        return np.bincount(cells, pairs.data * covariance[i, j], minlength=q * q).astype(np.float64).reshape(q, q)

    return total(sparse.csr_array(sparse.eye_array(incomplete.graph.n_nodes))), total(incomplete.graph.N)


def _quadrature_sums(incomplete: Incomplete, block: PrecisionBlock, _tolerance: float) -> tuple[Floats, Floats]:
    """Return what `_probed_sums` does where only one attribute has missing entries."""
    rules, precision = _scalar_precision(incomplete, block.H, block.C)
    K = np.zeros((2, len(rules.nodes), *block.H.shape))
    for each, f in zip(K, (1.0 / precision, rules.nodes / precision), strict=True):
        each[:, incomplete.only, incomplete.only] = (rules.weights * f).sum(axis=1)
    return K[0], K[1]


def _scalar_precision(incomplete: Incomplete, H: Floats, C: Floats) -> tuple[LanczosQuadrature, Floats]:
    """Return the rules of the only attribute with missing entries, and its precision at their nodes."""
    j, rules = incomplete.only, incomplete.rules
    return rules, np.asarray(H[j, j] + C[j, j] * rules.nodes)


def _probed_sums(incomplete: Incomplete, block: PrecisionBlock, tolerance: float = 1e-9) -> tuple[Floats, Floats]:
    """Return both sums of covariances probe by probe, shapes (probes, q, q)."""
    K0, K1 = [], []
    for Z in incomplete.rademacher():
        X = block.solve(Z, tolerance=tolerance)
        k, n, q = X.shape
        flat = X.transpose(1, 0, 2).reshape(n, k * q)
        NX = (flat - multiply(incomplete.graph, flat)).reshape(n, k, q)
        K0.append(np.matmul(Z.transpose(0, 2, 1), X))
        K1.append(np.matmul(Z.transpose(0, 2, 1), NX.transpose(1, 0, 2)))
    return np.concatenate(K0), np.concatenate(K1)


def fit_incomplete(
    incomplete: Incomplete, problem: FitProblem, *, change: float = 1e-7, tolerance: float = 1e-9, rounds: int = 500
) -> tuple[Parameters, int, Statistics]:
    """Return the maximum of the observed-data likelihood, the M-steps' steps, and the expected statistics there.

    `change`: change of the statistics per node below which they have converged. `rounds`: most rounds; a few dozen are
    usual, and ConvergenceError is raised beyond.
    """
    anderson, total = Anderson(), 0
    data, start = _first_statistics(incomplete), problem.start
    for _ in range(rounds):
        found, steps = problem.best(data, start, near=total > 0)
        total += steps
        expected = _statistics(incomplete.graph, *e_step(incomplete, found, tolerance=tolerance))
        if _distance(data, expected) < change:
            return found, total, expected
        data, start = anderson.next(data, expected), found
    raise ConvergenceError(
        f"the fit did not converge in {rounds} rounds; leave out attributes that are missing at most nodes"
    )


def check_complete_rows(B: Floats, names: tuple[str, ...], *, centre: bool) -> None:
    """Raise InvalidInputError if attributes are linear combinations of each other where all of them are observed."""
    rows = B[~np.isnan(B).any(axis=1)]
    if len(rows) > 2 * len(names):
        rows = rows - rows.mean(axis=0) if centre else rows
        M0 = rows.T @ rows
        check_independent(Statistics(len(rows), M0, M0), names)


def _first_statistics(incomplete: Incomplete) -> Statistics:
    """Return the statistics of the pairs of observed entries, on nodes and on edges, scaled up to all of them.

    That is an unbiased guess when entries are missing at random. Starting from entries at their mean instead would
    take the field for rough, and end in the local maximum h = 0.
    """
    seen = np.column_stack([~incomplete.missing, np.ones(incomplete.graph.n_nodes)]).astype(np.float64)
    B = np.where(seen[:, :-1] > 0, incomplete.B, 0.0)
    X = np.column_stack([B, np.ones(len(B))])
    M0 = _scaled_up(X.T @ X, seen.T @ seen / len(seen))
    M1 = _scaled_up(*edge_pairs(incomplete.graph, X, seen))
    # Never observed at both ends of an edge, as on one side of a bipartite graph: half as rough as white noise.
    alone = np.diag(M1) == 0
    M1[alone, alone] = 0.5 * float(1.0 - incomplete.graph.loops.mean()) * np.diag(M0)[alone]
    return Statistics(len(seen), nearest_valid(M0), nearest_valid(M1))


def edge_pairs(graph: Graph, X: Floats, observed: Floats, *, at_once: int = 1_000_000) -> tuple[Floats, Floats]:
    """Return X'NX over the edges with both ends observed, and the part of all weight that those edges have."""
    q = X.shape[1]
    found, seen = np.zeros((q, q)), np.zeros((q, q))
    scaled = X / np.sqrt(graph.mass)[:, None]
    W = sparse.coo_array(graph.adjacency)
    for first in range(0, W.nnz, at_once):
        (i, j), w = (ends[first : first + at_once] for ends in W.coords), W.data[first : first + at_once, None]
        both = observed[i] * observed[j]
        difference = (scaled[i] - scaled[j]) * both
        found += 0.5 * difference.T @ (w * difference)
        seen += both.T @ (w * both)
    return found, seen / max(float(W.data.sum()), 1e-300)


def _scaled_up(total: Floats, share: Floats) -> Floats:
    return np.divide(total, share, out=np.zeros_like(total), where=share > 0)


def nearest_valid(M: Floats) -> Floats:
    """Return M with its off-diagonal, taken from pairs that differ from cell to cell, shrunk until it can be one."""
    diagonal = np.diag(np.diag(M))
    for shrinkage in np.linspace(0.0, 1.0, 11):  # a start only: finer steps change the way, not the end
        mixed = (1.0 - shrinkage) * M + shrinkage * diagonal
        if np.linalg.eigvalsh(mixed[:-1, :-1])[0] > 1e-3 * np.diag(M)[:-1].min():
            break
    return np.asarray(mixed)


def _statistics(graph: Graph, filled: Floats, K0: Floats, K1: Floats) -> Statistics:
    """Return expected statistics, with a last column of ones."""
    data = statistics(graph, np.column_stack([filled, np.ones(graph.n_nodes)]))
    K0, K1 = (np.pad((K + K.T) / 2, (0, 1)) for K in (K0, K1))
    return Statistics(data.n, data.M0 + K0, data.M1 + K1)


def _distance(one: Statistics, other: Statistics) -> float:
    return float(max(np.abs(one.M0 - other.M0).max(), np.abs(one.M1 - other.M1).max()) / one.n)


@dataclass
class Anderson:
    """Anderson acceleration: the mixture of the last `memory` rounds whose changes cancel best.

    Directions of changes below the share `condition` of the largest are ignored: least squares lose half the digits.
    """

    memory: int = 8
    condition: float = 1e-8
    inputs: list[Floats] = field(default_factory=list)
    changes: list[Floats] = field(default_factory=list)

    def next(self, data: Statistics, expected: Statistics) -> Statistics:
        """Return the statistics to go on with: a mixture, or what was expected where that is no valid pair."""
        x, g = (np.stack([s.M0, s.M1]) for s in (data, expected))
        self.inputs, self.changes = [*self.inputs[-self.memory :], x], [*self.changes[-self.memory :], g - x]
        if len(self.changes) > 2 and np.linalg.norm(self.changes[-1]) > 2.0 * np.linalg.norm(self.changes[-2]):
            self.inputs, self.changes = self.inputs[-1:], self.changes[-1:]
        mixed = self._mixture()
        if not is_valid(mixed):
            self.inputs, self.changes, mixed = [], [], g
        return Statistics(data.n, mixed[0], mixed[1])

    def _mixture(self) -> Floats:
        last, steps = self.changes[-1], np.diff(np.array(self.changes), axis=0)
        if not len(steps):
            return self.inputs[-1] + last
        unit = np.sqrt(np.abs(np.einsum("rjj->rj", self.inputs[-1])))
        weight = 1.0 / (unit[:, :, None] * unit[:, None, :] + 1e-300)
        flat = (steps * weight).reshape(len(steps), -1)
        share = np.linalg.lstsq(flat.T, (last * weight).ravel(), rcond=self.condition)[0]
        moves = np.diff(np.array(self.inputs), axis=0) + steps
        return np.asarray(self.inputs[-1] + last - np.tensordot(share, moves, axes=1))


def is_valid(pair: Floats, *, smallest: float = 1e-12) -> bool:
    """Whether both matrices, less the column of ones, are those of some attributes."""
    return all(bool(np.linalg.eigvalsh(M[:-1, :-1])[0] > smallest * np.trace(M[:-1, :-1])) for M in pair)

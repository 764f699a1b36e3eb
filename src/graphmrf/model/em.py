r"""Expectation maximisation (EM): the maximum of the likelihood of attributes with missing entries.

The gradient of the observed-data likelihood is that of the complete one at the statistics *expected* given what is
observed (Fisher's identity): :math:`E[A'A] = \hat A'\hat A + K_0`, :math:`E[A'NA] = \hat A' N \hat A + K_1`. So the fit
is a fixed point of the statistics: every M-step is the complete, convex fit, and Anderson acceleration takes the place
of most rounds. Where the sums of covariances are probed, the probes stay the same from round to round: there is one
deterministic answer, whose noise is well below the sampling error of the parameters.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from graphmrf.errors import ConvergenceError
from graphmrf.model.attributes import check_independent
from graphmrf.model.e_step import Incomplete, e_step
from graphmrf.model.likelihood import Statistics, statistics

if TYPE_CHECKING:
    from graphmrf._typing import Floats
    from graphmrf.graph import Graph
    from graphmrf.model.maximise import FitProblem
    from graphmrf.model.parameters import Parameters


def fit_incomplete(
    incomplete: Incomplete, problem: FitProblem, *, change: float = 1e-7, tolerance: float = 1e-9, rounds: int = 500
) -> tuple[Parameters, int, Statistics]:
    """Return the maximum of the observed-data likelihood, the M-steps' steps, and the expected statistics there.

    Parameters
    ----------
    incomplete : Incomplete
        Standardised attributes.
    problem : FitProblem
        What is to be fitted.
    change : float
        Change of the statistics per node below which they have settled.
    tolerance : float
        Relative residual of the solves.
    rounds : int
        Most rounds; a few dozen are usual.

    Raises
    ------
    ConvergenceError
        If the statistics do not settle.
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
        f"the fit did not settle in {rounds} rounds; leave out attributes that are missing at most nodes"
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

    Directions of changes below the share `condition` of the largest are left out: least squares lose half the digits.
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

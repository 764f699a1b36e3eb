r"""What a fitted field says of accuracy, of further labels, and of sums over regions; all from its joint covariance.

Posterior variances do not depend on the values of labels, so the field knows them for labels nobody has yet. The
coefficient of determination to be expected on the unlabelled nodes `U` is

.. math:: 1 - \frac{c\,\mathrm{tr}\,\Sigma_{UU}}{\mathrm E \sum_U (y_i - \bar y)^2},

with :math:`\Sigma` the covariance given the labels, noise included, `c` the mean square of the out-of-fold residuals of
the labels over the variance foreseen for them, and the expectation below that given the labels there are.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import t as student

from graphmrf.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.field.fit import FittedField
    from graphmrf.graph import Graph

_FOLDS = 5
"""Neighbourhoods of labels that are held out to calibrate sums over regions; twice as many take twice as long."""

_PRIOR_SCORES = 10.0
"""Scores of the next smaller regions that count as if they were of these: they hold the scale where regions are few.
Doubled, a scale that grows with the size of regions is followed later."""
_FOLD_LABELS = 400
"""Most labels of a neighbourhood held out, whose joint covariance is dense; doubled, 4 times its memory, 1.3 MB."""
_FEWEST = 10
"""Fewest labels that are split into neighbourhoods, as for the calibration of nodes."""
_DENSE_NODES = 4000
"""Candidates up to which `suggest` has their joint covariance as a matrix: 128 MB. Doubled, 4 times as much; beyond it
probes find the most promising nodes."""
_PROBES = 64
"""Rademacher probes of `suggest` beyond that, as in `graphmrf.model.foresee`."""
_SHORTLIST = 16
"""Nodes whose gain is computed exactly at every step there: one block solve; doubled, twice the time of a step."""
_SPREAD_PROBES = 8
"""Probes of the trace of the squared covariance, for error bars: it errs by a third, they by a sixth."""
_HELPS = 0.05
"""Part of one node's variance that a label must take from all other nodes together to be worth naming. Chosen by eye;
without any effect of features or neighbours the common mean alone gives about n / m² of it."""
_DRAWS = 1000
"""Joint draws for sums of a transformed outcome: standard deviations err by 2 %; doubled, by 1.6 %."""


@dataclass(frozen=True, eq=False)
class Foresight:
    """Accuracy and further labels as a fitted field foresees them.

    Attributes
    ----------
    field : FittedField
        The field given its labels.
    """

    field: FittedField

    @cached_property
    def unknown(self) -> Ints:
        """The unlabelled nodes."""
        return np.flatnonzero(np.isnan(self.field.y))

    @cached_property
    def _errors(self) -> Floats:
        """Squared out-of-fold residuals over the mean variance, with ten of mean 1 added to them."""
        variance = self.field.posterior.left_out[1]
        return np.append(self.field.calibration.scores**2 * variance / variance.mean(), np.ones(int(_PRIOR_SCORES)))

    @property
    def error_scale(self) -> float:
        """Mean squared error of the labels over the variance that the others leave them, as far as it is trusted."""
        return trusted(self.field, math.sqrt(float(self._errors.mean()))) ** 2

    @cached_property
    def _moments(self) -> tuple[Floats, Floats]:
        """Standardised mean and variance of all nodes; labels are known."""
        mean, variance = np.zeros(self.field.y.size), np.zeros(self.field.y.size)
        mean[self.field.rows] = self.field.posterior.z
        mean[self.unknown], variance[self.unknown] = self.field.posterior.moments(self.unknown)
        return mean, variance

    @cached_property
    def _spread(self) -> tuple[float, float]:
        r"""The variance of the mean, :math:`1'\Sigma 1 / |U|`, and :math:`\mathrm{tr}\,\Sigma^2`, over the trace."""
        n, noise, trace = self.unknown.size, self.field.posterior.h["noise"], float(self._moments[1].sum())
        signs = np.random.default_rng(self.field.seed).choice([-1.0, 1.0], (n, _SPREAD_PROBES))
        Z = np.column_stack([np.ones(n), signs])
        image = self.field.posterior.times_covariance(self.unknown, Z) + noise * Z
        return float(image[:, 0].sum() / n / trace), float(np.sum(image[:, 1:] ** 2) / _SPREAD_PROBES / trace**2)

    def expected_r2(self, labelled: Bools | None = None) -> tuple[float, float]:
        """Return the R2 to be expected on the unlabelled nodes, and its standard error.

        Parameters
        ----------
        labelled : bool array of shape (n,), optional
            The nodes whose labels are known; by default those that are.
        """
        U = self.unknown if labelled is None else np.flatnonzero(~labelled)
        if U.size < 2:
            raise InvalidInputError(f"R2 needs at least 2 unlabelled nodes, got {U.size}; leave some without a label")
        if labelled is None or np.array_equal(U, self.unknown):
            variance, labels = self._moments[1][U], self.field.rows.size
        else:
            labels = int(labelled.sum())
            if not labels:
                raise InvalidInputError("labelled must have at least one node, got none; set some entries to True")
            variance = self.field.posterior.variances_given(np.flatnonzero(labelled), U)
        return self._r2(U, variance, labels)

    def _r2(self, U: Ints, variance: Floats, labels: int) -> tuple[float, float]:
        """Return expected R2 and its error from the variances that so many labels would leave."""
        errors = self._errors
        if self.field.scale.is_constant:
            return 0.0, 0.0
        share = self._left(U, variance, labels) / self._variation(U)
        tails = max(float(np.var(errors)) / float(errors.mean()) ** 2, 2.0)
        squares = self._spread[1] if self.unknown.size else 0.0
        error2 = tails / errors.size + tails * squares * self.unknown.size / U.size
        return 1.0 - share, share * math.sqrt(error2)

    def _left(self, U: Ints, variance: Floats, labels: int) -> float:
        """Return the mean squared error to be expected at some nodes, in units of the outcome."""
        spread = self.field.scale.moments(self._moments[0][U], np.sqrt(self._shrunk(labels) * variance))[1]
        return float(np.mean(spread**2))

    def _variation(self, U: Ints) -> float:
        """Return the expected variance of the outcome among some nodes, given the labels there are."""
        mean, variance = (values[U] for values in self._moments)
        centre, spread = self.field.scale.moments(mean, np.sqrt(variance))
        whole = self._spread[0] if self.unknown.size else 0.0
        return float(np.mean((centre - centre.mean()) ** 2) + (1.0 - whole) * np.mean(spread**2))

    def learning_curve(self, sizes: Sequence[int], draws: int) -> Floats:
        """Return expected R2 and its standard error, shape (2, len(sizes)), with further labels at random nodes.

        The outcome varies as it does among the nodes without a label now, whichever of them are left.

        Parameters
        ----------
        sizes : sequence of int
            Numbers of labels, those there are included.
        draws : int
            Random orders of the further labels, of which every size takes the first.
        """
        rng, m = np.random.default_rng(self.field.seed), self.field.rows.size
        orders = [rng.permutation(self.unknown) for _ in range(draws)]
        now, error = self.expected_r2()
        total, found = self._variation(self.unknown), np.empty((2, len(sizes)))
        for k, size in enumerate(sizes):
            shares = [self._share(order[: size - m], order[size - m :], total) for order in orders]
            mean, relative = float(np.mean(shares)), error / max(1.0 - now, 1e-12)
            found[:, k] = 1.0 - mean, math.hypot(mean * relative, float(np.std(shares)))
        return found

    def _share(self, added: Ints, rest: Ints, total: float) -> float:
        """Return the part of the variance that labels at further nodes leave at the others."""
        rows = np.sort(np.concatenate([self.field.rows, added]))
        variance = self.field.posterior.variances_given(rows, rest) if added.size else self._moments[1][rest]
        return self._left(rest, variance, rows.size) / total

    def _shrunk(self, labels: int) -> float:
        """Return the error scale of so many labels: what hyper-parameters err by falls with their number."""
        c = self.error_scale
        return 1.0 + (c - 1.0) * min(1.0, self.field.rows.size / labels) if c > 1 else c

    def suggest(self, k: int, among: Bools | None = None) -> tuple[Ints, Floats, str]:
        r"""Return the nodes whose labels leave the least variance on the rest, R2 after each, and why if none helps.

        One after the other: the label of node i takes :math:`\Sigma_{ji}^2 / (\Sigma_{ii} + s)` from the variance of
        every other node j, with :math:`\Sigma` the covariance noise left out and `s` the variance of the noise.

        Parameters
        ----------
        k : int
            Number of nodes.
        among : bool array of shape (n,), optional
            The nodes that can be asked; by default all.
        """
        allowed = np.ones(self.unknown.size, dtype=bool) if among is None else among[self.unknown]
        dense = self.unknown.size <= _DENSE_NODES
        columns = list(self._dense(k, allowed) if dense else self._probed(k, allowed))
        noise, least = self.field.posterior.h["noise"], _HELPS * float(self._moments[1][self.unknown].mean())
        gains = [column @ column - column[i] ** 2 for i, column in columns]
        if not k or max(gains, default=0.0) < least:
            return self.unknown[:0], np.zeros(0), "no label helps other nodes: neither neighbours nor features say more"
        left, scores, chosen = self._moments[1][self.unknown].copy(), [], np.zeros(self.unknown.size, dtype=bool)
        for i, column in columns:
            left, chosen[i] = np.maximum(left - column**2, noise), True
            rest, labels = np.flatnonzero(~chosen), self.field.rows.size + int(chosen.sum())
            error = self._left(self.unknown[rest], left[rest], labels) if rest.size else 0.0
            scores.append(1.0 - error / self._variation(self.unknown))
        return self.unknown[[i for i, _ in columns]], np.array(scores), ""

    def _dense(self, k: int, allowed: Bools) -> Iterator[tuple[int, Floats]]:
        """Yield the best nodes, each with its column of the covariance over its standard deviation."""
        Sigma = self.field.posterior.times_covariance(self.unknown, np.eye(self.unknown.size))
        noise, left = self.field.posterior.h["noise"], allowed.copy()
        for _ in range(k):
            gains = np.einsum("ij,ij->j", Sigma, Sigma) / (np.diag(Sigma) + noise)
            best = int(np.where(left, gains, -1.0).argmax())
            column = Sigma[:, best] / math.sqrt(Sigma[best, best] + noise)
            Sigma -= np.outer(column, column)
            left[best] = False
            yield best, column

    def _probed(self, k: int, allowed: Bools) -> Iterator[tuple[int, Floats]]:
        """Yield the same from Rademacher probes and, for a short list, exact columns of the covariance."""
        posterior, U, noise = self.field.posterior, self.unknown, self.field.posterior.h["noise"]
        Z = np.random.default_rng(self.field.seed).choice([-1.0, 1.0], (U.size, _PROBES))
        images, variance = posterior.times_covariance(U, Z), self._moments[1][U].copy()
        taken, left = np.zeros((U.size, 0)), allowed.copy()
        for _ in range(k):
            score = np.where(left, np.einsum("ij,ij->i", images, images) / variance, -1.0)
            short = np.argsort(-score, kind="stable")[: min(_SHORTLIST, int(left.sum()))]
            units = np.zeros((U.size, short.size))
            units[short, np.arange(short.size)] = 1.0
            columns = posterior.times_covariance(U, units) - taken @ taken[short].T
            columns /= np.sqrt(np.maximum(columns[short, np.arange(short.size)], 0.0) + noise)
            best = int(np.einsum("ij,ij->j", columns, columns).argmax())
            node, column = int(short[best]), columns[:, best]
            images -= np.outer(column, column @ Z)
            variance = np.maximum(variance - column**2, noise)
            taken, left[node] = np.column_stack([taken, column]), False
            yield node, column


@dataclass(frozen=True, eq=False)
class RegionSums:
    """Sums of the outcome over regions, with the joint covariance of the field, calibrated on labels held out.

    Attributes
    ----------
    field : FittedField
        The field given its labels.
    graph : Graph
        Its graph, which tells what is a neighbourhood.
    """

    field: FittedField
    graph: Graph

    @property
    def node_scale(self) -> float:
        """Factor for the standard deviations of single nodes."""
        return trusted(self.field, self.field.calibration.scale)

    @cached_property
    def scales(self) -> tuple[Floats, Floats]:
        """Sizes of regions in labels, and the factors for the standard deviations of sums over such regions.

        Neighbourhoods of a fifth of the labels are held out; sums over 1, 2, 4, ... neighbouring labels of them, less
        what the field fitted to the others says, are compared with their joint standard deviation. Every scale is
        shrunk to that of the size before, the first to that of the nodes.
        """
        field, m = self.field, self.field.rows.size
        if m < _FEWEST or field.scale.is_constant:
            return np.ones(1), np.array([self.node_scale])
        most, rng = min(-(-m // _FOLDS), _FOLD_LABELS), np.random.default_rng(field.seed)
        sizes = 2 ** np.arange(int(math.log2(most)) + 1)
        scores: dict[int, list[float]] = {int(size): [] for size in sizes}
        for fold in list(neighbourhoods(self.graph, field.rows, most, rng))[:_FOLDS]:
            residual, spread = self._held_out(np.isin(np.arange(m), fold))
            nodes = field.rows[np.sort(fold)]
            for size, found in scores.items():
                for part in neighbourhoods(self.graph, nodes, size, rng):
                    if 2 * part.size > size:
                        found.append(float(residual[part].sum() ** 2 / spread[np.ix_(part, part)].sum()))
        scale2, scales = self.node_scale**2, []
        for found in scores.values():
            scale2 = (sum(found) + _PRIOR_SCORES * scale2) / (len(found) + _PRIOR_SCORES)
            scales.append(math.sqrt(scale2))
        return sizes.astype(np.float64), np.array(scales)

    def _held_out(self, own: Bools) -> tuple[Floats, Floats]:
        """Return residuals and joint covariance of labels given the others, which alone tell few hyper-parameters."""
        posterior = self.field.posterior
        if posterior.z.size > posterior.refitted_up_to:
            return posterior.held_out(own)
        others = posterior.fitted_without(own, posterior.z[~own], self.field.seed)
        nodes, unit = self.field.rows[own], np.eye(int(own.sum()))
        spread = others.times_covariance(nodes, unit) + others.h["noise"] * unit
        return posterior.z[own] - others.moments(nodes)[0], spread

    def scale(self, nodes: int) -> float:
        """Return the factor for a sum over so many unlabelled nodes: that of as large a part of the labels.

        One node has the factor of all nodes.
        """
        if nodes < 2:
            return self.node_scale
        sizes, scales = self.scales
        size = max(nodes * self.field.rows.size / max(self.field.y.size - self.field.rows.size, 1), 1.0)
        return float(np.interp(math.log(size), np.log(sizes), scales))

    def sums(self, members: Sequence[Ints], level: float) -> Floats:
        """Return sum, standard deviation and ends of the interval of every region, shape (4, len(members)).

        Parameters
        ----------
        members : sequence of integer arrays
            The nodes of every region.
        level : float
            Probability inside the interval.
        """
        mean, y = self.field.predictions[0], self.field.y
        unknown = [nodes[np.isnan(y[nodes])] for nodes in members]
        totals = np.array([mean[nodes].sum() for nodes in members])
        deviations = self._drawn(unknown) if self.field.scale.power is not None else self._exact(unknown)
        scales = np.array([self.scale(nodes.size) for nodes in unknown]) / self.node_scale
        std = scales * deviations
        low, high = totals - self._width(level) * std, totals + self._width(level) * std
        alone = np.flatnonzero([nodes.size == 1 for nodes in unknown])
        ends = self.field.interval(level, "field") if alone.size else (mean, mean)
        for i in alone:
            node, rest = int(unknown[i][0]), totals[i] - mean[unknown[i][0]]
            low[i], high[i] = rest + ends[0][node], rest + ends[1][node]
        return np.array([totals, std, low, high])

    def _width(self, level: float) -> float:
        """Return the half width of an interval in standard deviations, which as many labels have told."""
        return float(student.ppf(0.5 + 0.5 * level, max(self.field.rows.size - 1, 2)))

    def _exact(self, unknown: Sequence[Ints]) -> Floats:
        """Return the standard deviations of sums over unlabelled nodes as calibrated for single ones."""
        posterior, n = self.field.posterior, self.field.y.size
        nodes = np.unique(np.concatenate([np.zeros(0, dtype=np.intp), *unknown]))
        W = np.zeros((n, len(unknown)))
        for i, own in enumerate(unknown):
            W[own, i] = 1.0
        shared = np.einsum("ij,ij->j", W[nodes], posterior.times_covariance(nodes, W[nodes]))
        variance = np.maximum(shared, 0.0) + posterior.h["noise"] * W.sum(axis=0)
        std = self.node_scale * self.field.scale.unit * np.sqrt(variance)
        return self._as_alone(std, unknown)

    def _as_alone(self, std: Floats, unknown: Sequence[Ints]) -> Floats:
        """Return the deviations with those of single unlabelled nodes as they are predicted."""
        alone = [i for i, nodes in enumerate(unknown) if nodes.size == 1]
        std[alone] = [self.field.predictions[1][unknown[i][0]] for i in alone]
        return std

    def _drawn(self, unknown: Sequence[Ints]) -> Floats:
        """Return the same from joint draws, for an outcome that was transformed."""
        draws = self.field.draw(_DRAWS, self.field.seed)
        return self._as_alone(np.array([draws[:, nodes].sum(axis=1).std() for nodes in unknown]), unknown)


def trusted(field: FittedField, ratio: float) -> float:
    """Return a ratio of calibrated to stated deviations as far as the field follows its scores."""
    return 1.0 + field.calibration.trust * (ratio - 1.0)


def neighbourhoods(graph: Graph, nodes: Ints, size: int, rng: np.random.Generator) -> Iterator[Ints]:
    """Yield disjoint sets of neighbouring nodes of some, as places among them: up to `size` each, all in one of them.

    Every set is the nearest nodes left, by breadth-first search over the whole graph, to one drawn at random.

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> path = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4])
    >>> found = list(neighbourhoods(path, np.array([0, 2, 4]), 2, np.random.default_rng(0)))
    >>> sorted(place for part in found for place in part.tolist()), [part.size for part in found]
    ([0, 1, 2], [2, 1])
    """
    place = {int(node): i for i, node in enumerate(nodes)}
    for start in rng.permutation(nodes).tolist():
        if start not in place:
            continue
        found: list[int] = []
        for node in breadth_first(graph, start):
            if node in place:
                found.append(place.pop(node))
            if len(found) == size:
                break
        yield np.sort(found)


def breadth_first(graph: Graph, start: int) -> Iterator[int]:
    """Yield the nodes that a node is connected to, itself first, the nearest before those farther away."""
    seen, queue = {start}, deque([start])
    while queue:
        node = queue.popleft()
        yield node
        for other in graph.indices[graph.indptr[node] : graph.indptr[node + 1]].tolist():
            if other not in seen:
                seen.add(other)
                queue.append(other)

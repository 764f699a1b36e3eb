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
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import t as student

from graphmrf.errors import InvalidInputError
from graphmrf.kept import cached_property

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
_TARGETS = (10_000, 500, 64, 16)
"""Unlabelled nodes up to which 500 drawn at random stand for all of them, the limit of the exact solver; beyond it 64
Rademacher probes do for `suggest`, as in `graphmrf.model.foresee`, and 16 nodes for the spread of a sum. Doubled, time
and memory double; the exact gains of the best few come on top."""
_SHORTLIST = (8, 128)
"""Best nodes by that estimate whose gains are computed exactly at every step, and columns of the covariance fetched at
once where one of theirs is missing. Chosen by eye; doubled, a step takes twice as long and errs less."""
_HELPS = (0.5, 0.002)
"""What a label must take from the variance of all others together to be worth naming: half of one node's variance, or
of few nodes a 500th of theirs. On London's wards labels of pure noise take .05 to .35 of one, those of income several.
Doubled, fields that hardly reach a neighbour name none."""
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
        mean[self.unknown], variance[self.unknown] = self.field.standardised.moments
        return mean, variance

    @cached_property
    def _averaged(self) -> float:
        """Variance of the unlabelled nodes over that at the central hyper-parameters."""
        central = self.field.posterior.central
        return float(self._moments[1].sum() / central.moments(self.unknown)[1].sum())

    @cached_property
    def _sample(self) -> tuple[Ints, Floats]:
        """Places of some unlabelled nodes drawn at random, and their columns of the covariance, noise left out."""
        n, (limit, most, _, few) = self.unknown.size, _TARGETS
        rng = np.random.default_rng(self.field.seed)
        places = np.sort(rng.permutation(n)[: most if n <= limit else few])
        return places, self._columns(places)

    def _columns(self, places: Ints) -> Floats:
        """Return columns of the joint covariance of the unlabelled nodes at the central hyper-parameters."""
        units = np.zeros((self.unknown.size, places.size))
        units[places, np.arange(places.size)] = 1.0
        return self._averaged * self.field.posterior.central.times_covariance(self.unknown, units)

    @property
    def _noise(self) -> float:
        return self._averaged * self.field.posterior.central.noise

    @cached_property
    def _spread(self) -> tuple[float, float]:
        r"""The variance of the mean, :math:`1'\Sigma 1 / |U|`, and :math:`\mathrm{tr}\,\Sigma^2`, over the trace.

        Columns drawn at random stand for all.
        """
        n, trace, (places, columns) = self.unknown.size, float(self._moments[1].sum()), self._sample
        noisy = columns.copy()
        noisy[places, np.arange(places.size)] += self._noise
        whole, squares = float(noisy.sum()) / places.size, float(np.sum(noisy**2)) * n / places.size
        return whole / trace, squares / trace**2

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
        every other node j, with :math:`\Sigma` the covariance noise left out and `s` the variance of the noise, both at
        the central hyper-parameters.

        Parameters
        ----------
        k : int
            Number of nodes.
        among : bool array of shape (n,), optional
            The nodes that can be asked; by default all.
        """
        U, chosen = self.unknown, list(self._greedy(k, among))
        left, gains = self._moments[1][U].copy(), [gain for _, gain, _ in chosen]
        if not chosen or max(gains) < min(_HELPS[0], _HELPS[1] * U.size) * float(left.mean()):
            return U[:0], np.zeros(0), "no label helps other nodes: neither neighbours nor features say more"
        total, scores = self._variation(U), []
        for labels, (_, _, column) in enumerate(chosen, start=self.field.rows.size + 1):
            left = np.maximum(left - column**2, np.minimum(left, self._noise))  # averages may be below that noise
            scores.append(1.0 - self._left(U, left, labels) / total)
        return U[[node for node, _, _ in chosen]], np.array(scores), ""

    def _greedy(self, k: int, among: Bools | None) -> Iterator[tuple[int, float, Floats]]:
        """Yield the best places, each with its gain, and its column of the covariance over its standard deviation.

        Gains are estimated from the covariance with a sample of nodes, or from its image of probes; for the most
        promising they are exact. Labels chosen change both by a matrix of rank one.
        """
        n, taken = self.unknown.size, np.zeros((self.unknown.size, 0))
        known: dict[int, Floats] = {}
        Z, images = self._targets() if k else (taken, taken)
        left, rest = np.ones(n, dtype=bool) if among is None else among[self.unknown], np.ones(n, dtype=bool)
        variance, own = np.maximum(self._moments[1][self.unknown] - self._noise, 0.0), np.einsum("ij,ij->i", Z, Z)
        for _ in range(k):
            gains = (np.einsum("ij,ij->i", images, images) - own * variance**2) / (variance + self._noise)
            ranked = np.argsort(-np.where(left, gains, -np.inf), kind="stable")[: int(left.sum())]
            short = ranked[: _SHORTLIST[0]]
            if not known.keys() >= set(short.tolist()):
                missing = np.array([i for i in ranked[: _SHORTLIST[1]].tolist() if i not in known])
                known |= dict(zip(missing.tolist(), self._columns(missing).T, strict=True))
            columns = np.column_stack([known[i] for i in short.tolist()]) - taken @ taken[short].T
            columns /= np.sqrt(np.maximum(columns[short, np.arange(short.size)], 0.0) + self._noise)
            exact = np.sum(columns[rest] ** 2, axis=0) - columns[short, np.arange(short.size)] ** 2
            best = int(exact.argmax())
            node, column = int(short[best]), columns[:, best]
            images, variance = images - np.outer(column, column @ Z), np.maximum(variance - column**2, 0.0)
            taken, left[node], rest[node] = np.column_stack([taken, column]), False, False
            yield node, float(exact[best]), column

    def _targets(self) -> tuple[Floats, Floats]:
        """Return unit columns of a sample of nodes, or Rademacher probes of many, and the covariance times them."""
        n, (limit, _, probes, _) = self.unknown.size, _TARGETS
        if n > limit:
            Z = np.random.default_rng(self.field.seed).choice([-1.0, 1.0], (n, probes))
            return Z, self._averaged * self.field.posterior.central.times_covariance(self.unknown, Z)
        places, columns = self._sample
        Z = np.zeros((n, places.size))
        Z[places, np.arange(places.size)] = 1.0
        return Z, columns


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
    def scales(self) -> tuple[Floats, Floats, Floats]:
        """Sizes of regions in labels, the factors for the standard deviations of such sums, and degrees of freedom.

        Neighbourhoods of a fifth of the labels are held out; sums over 1, 2, 4, ... neighbouring labels of them, less
        what the field fitted to the others says, are compared with their joint standard deviation. Every scale is
        shrunk to that of the size before, the first to that of the nodes. It is as uncertain as these sums are few.
        """
        field, m = self.field, self.field.rows.size
        if m < _FEWEST or field.scale.is_constant:
            return np.ones(1), np.array([self.node_scale]), np.array([max(m - 1.0, 2.0)])
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
        return sizes.astype(np.float64), np.array(scales), _PRIOR_SCORES + np.array([len(s) for s in scores.values()])

    def _held_out(self, own: Bools) -> tuple[Floats, Floats]:
        """Return residuals and joint covariance of labels given the others, which alone tell few hyper-parameters."""
        posterior = self.field.posterior
        if posterior.z.size > posterior.refitted_up_to:
            return posterior.held_out(own)
        others = posterior.fitted_without(own, posterior.z[~own], self.field.seed)
        nodes, unit = self.field.rows[own], np.eye(int(own.sum()))
        spread = others.times_covariance(nodes, unit) + others.noise * unit
        return posterior.z[own] - others.moments(nodes)[0], spread

    def scale(self, nodes: int) -> tuple[float, float]:
        """Return the factor for a sum over so many unlabelled nodes, that of as large a part of the labels.

        With it come its degrees of freedom. One node has the factor of all nodes.
        """
        if nodes < 2:
            return self.node_scale, max(self.field.rows.size - 1.0, 2.0)
        sizes, scales, freedoms = self.scales
        size = max(nodes * self.field.rows.size / max(self.field.y.size - self.field.rows.size, 1), 1.0)
        factor, freedom = (float(np.interp(math.log(size), np.log(sizes), values)) for values in (scales, freedoms))
        return factor, freedom

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
        scales, freedoms = np.array([self.scale(nodes.size) for nodes in unknown]).reshape(-1, 2).T
        std = scales / self.node_scale * deviations
        width = student.ppf(0.5 + 0.5 * level, freedoms) * std
        low, high = totals - width, totals + width
        alone = np.flatnonzero([nodes.size == 1 for nodes in unknown])
        ends = self.field.interval(level, "field") if alone.size else (mean, mean)
        for i in alone:
            node, rest = int(unknown[i][0]), totals[i] - mean[unknown[i][0]]
            low[i], high[i] = rest + ends[0][node], rest + ends[1][node]
        return np.array([totals, std, low, high])

    def _exact(self, unknown: Sequence[Ints]) -> Floats:
        """Return the standard deviations of sums over unlabelled nodes as calibrated for single ones."""
        posterior, n = self.field.posterior, self.field.y.size
        nodes = np.unique(np.concatenate([np.zeros(0, dtype=np.intp), *unknown]))
        W = np.zeros((n, len(unknown)))
        for i, own in enumerate(unknown):
            W[own, i] = self.field.widening[own]
        shared = np.einsum("ij,ij->j", W[nodes], posterior.times_covariance(nodes, W[nodes]))
        variance = np.maximum(shared, 0.0) + posterior.noise * np.sum(W**2, axis=0)
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

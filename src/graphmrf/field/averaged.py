r"""The field averaged: over draws of missing features, over draws of hyper-parameters, or over both.

A handful of labels determines the hyper-parameters so loosely that the best ones fit them by chance. So they are drawn
from their posterior, under weak priors (`Space.from_normal`), by elliptical slice sampling (Murray, Adams and MacKay,
2010): in coordinates `x` that are standard normal beforehand, from `x` along the ellipse through a random `u`,

.. math:: x' = x \cos\theta + u \sin\theta,

to a point whose likelihood is above a random fraction of the present one. No step length, no gradient, no rejection.
Noise is contaminated (Tukey, 1960): that of a label may have a larger variance, drawn together with the others, so
that one far label is noise of its own and does not bend the predictions of other nodes. Where the field itself
expects to predict little, the mean of the labels has a part in the average; see `AveragedPosterior.belief`.
With more labels the point of maximum posterior density takes over, its weight rising from 0 to 1 between `BLENDED`.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from graphmrf.field.correlations import Correlations
from graphmrf.field.covariance import Covariance, OtherGraph
from graphmrf.field.exact import ExactPosterior, blocks, maximise
from graphmrf.field.hyperparameters import LEAST_NOISE, PRIOR_TOTAL, Hyperparameters, Space
from graphmrf.field.multiple_imputation import PAIRS
from graphmrf.field.posterior import Mixture, new_outcome_variance, student_variance
from graphmrf.kept import cached_property
from graphmrf.linalg.dense import Factor, one_blas_thread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.field.design import Design
    from graphmrf.field.multiple_imputation import Imputation
    from graphmrf.graph import Graph

_PROGRESS = logging.getLogger("graphmrf.progress")

BLENDED = (60, 120)
"""Labels from which the most likely hyper-parameters have a part in predictions, and from which nothing else has: with
about 100 labels R2 was the same on one split of London's wards and Twitch. Doubled, a fit of 200 takes seconds more."""

SLICES = (100, 30, 8)
"""Steps before the first draw, draws, and steps to each; 30 are three for each draw of missing features. Chosen
by eye; doubled, a fit takes twice as long."""

FOLD_STEPS = (60, 15, 6)
"""The same where a fold of the labels is left out: five times for one answer."""

CONTAMINATED = (2.5, 6.0)
"""Standard normal coordinate up to which a label has the noise of all, and the logarithm of the ratio of variances for
each unit beyond: beforehand 1 label in 160 has more, 1 in 4,300 more than 20 times the deviation. Of 30 labels of a
grid, one of which is 40 deviations away, it makes R2 .5 and .7 from -41 and 0 on two splits. From 2 on, extreme but
true labels become noise: from labels of London's west alone intervals hold less of the incomes elsewhere."""

DOUBT = 0.25
"""Expected R2, times labels, at which the mean of the labels has as much weight as the field; see `belief`. Chosen
so that no mean R2 is lost: with 5, 8 and 13 labels (22 tasks, 3 splits) R2 is higher by .01, .02 and .01, and of 19
runs of small areas in which it was below -.1 where that of the mean was not, 5 are above. Doubled, these are 7, and
London's wards lose .03 with 5 labels."""

_LABEL_DRAWS = 32
"""Draws of the features that tell the variance of a label, to a quarter of itself: with 10, labels that seem too sure
or too uncertain by chance blur the calibration. Doubled, a fit with 300 labels takes a tenth longer."""

_NORMAL_MEDIAN = float(ndtri(0.75))
"""Median distance of normal values from their median, in standard deviations."""
_MOST_RATIO = 30.0
"""Logarithm of a ratio beyond which a label has no weight in working accuracy."""
_FAR = 5.0
"""Robust deviations from the median beyond which a label is noise where the draws begin, by convention; they forget."""
_NEARBY = (20.0, 1.0)
"""Usual omega and nu of a graph field, by which labels near nodes tell these apart; any would."""
_DIGITS = 9
"""Digits to which labels, and what is near nodes, are compared: rounding changes the last of twice as many."""
_ASKED = 300
"""Nodes of which the expected R2 is the mean: it is then known to a tenth of itself. Doubled, a fit takes longer."""
_REMEMBERED = 2
"""Blocks of graph correlations kept for the members: those of the field and of local effects."""
_JOINT = (1000, 6)
"""Nodes up to which joint covariances are those of all members, and members beyond: each factors a matrix of nodes."""


def point_weight(labels: int) -> float:
    """Return the weight of the most likely hyper-parameters.

    Examples
    --------
    >>> [point_weight(labels) for labels in (5, 60, 90, 120, 3000)]
    [0.0, 0.0, 0.5, 1.0, 1.0]
    """
    first, last = BLENDED
    return min(max((labels - first) / (last - first), 0.0), 1.0)


def sample_hyperparameters(
    covariance: Covariance, z: Floats, *, steps: tuple[int, int, int] | None = None, seed: int = 0
) -> tuple[list[Hyperparameters], int]:
    """Return draws of the hyper-parameters from their posterior, and how many likelihoods that took.

    Parameters
    ----------
    covariance : Covariance
        The covariance of the labelled nodes.
    z : array of shape (m,)
        Their outcomes, standardised.
    steps : triple of int, optional
        Steps before the first draw, draws, and steps to each; `SLICES` if None.
    seed : int
        Seed of the draws.
    """
    _PROGRESS.info("field: averaging over hyper-parameters given %d labels", z.size)
    space, rng = covariance.space, np.random.default_rng(seed)
    shared, places = len(space.names) + 1, _ranks(covariance, z)

    def read(x: Floats) -> Hyperparameters:
        h = space.read(space.from_normal(x[:shared]))
        return Hyperparameters({**h, "ratios": noise_ratios(x[shared:][places])})

    first, count, each = steps or SLICES
    x, evaluations, draws = _begin(z, shared, places), 1, []
    with one_blas_thread():
        level = _log_likelihood(covariance, z, read(x))
        for step in range(1, first + count * each + 1):
            u, floor = rng.standard_normal(x.size), level + math.log(rng.random())
            angle = rng.uniform(0.0, 2.0 * math.pi)
            low, high = angle - 2.0 * math.pi, angle
            while True:
                there = x * math.cos(angle) + u * math.sin(angle)
                level = _log_likelihood(covariance, z, read(there))
                evaluations += 1
                if level > floor:
                    break
                low, high = (angle, high) if angle < 0 else (low, angle)
                angle = rng.uniform(low, high)
            x = there
            if step > first and not (step - first) % each:
                draws.append(read(x))
    return draws, evaluations


def _ranks(covariance: Covariance, z: Floats) -> Ints:
    """Return the rank of every label, the same in any order of the nodes and with the outcome mirrored."""
    keys = (*covariance.design.groups[0][covariance.rows].T, np.abs(z).round(_DIGITS))
    return np.argsort(_ordered(covariance, z, covariance.rows, keys))


def _ordered(covariance: Covariance, z: Floats, nodes: Ints, keys: tuple[Floats, ...]) -> Ints:
    """Return the places of nodes by keys, the last one first, and those of equal keys by the labels near them.

    So the numbers of nodes decide nothing, unless no label tells nodes apart.
    """
    order = np.lexsort(keys) if keys else np.arange(nodes.size)
    tied = np.ones(max(nodes.size - 1, 0), dtype=np.bool_)
    for key in keys:
        tied &= np.diff(key[order]) == 0
    if not tied.any():
        return order
    labels = np.zeros((len(covariance.design.Z), 2))
    labels[covariance.rows] = np.column_stack([z, np.ones_like(z)])
    nearby = covariance.eigen.apply(covariance.eigen.matern(*_NEARBY)[:, None], labels)[0][nodes]
    return np.lexsort((*np.abs(nearby).round(_DIGITS).T, *keys))


def _begin(z: Floats, shared: int, places: Ints) -> Floats:
    """Return where the draws begin: at the centre of the priors, but for labels far from the others, and their scale.

    From the centre the draws would come slowly, or never, to where such a label is noise.
    """
    distances, x, (usual, growth) = np.abs(z - np.median(z)), np.zeros(shared + z.size), CONTAMINATED
    unit = float(np.median(distances)) / _NORMAL_MEDIAN
    far = distances > _FAR * unit
    if unit and far.any():
        x[shared + places[far]] = usual + 2.0 * np.log(distances[far] / unit) / growth
        x[shared - 1] = min(2.0 * math.log(unit) / PRIOR_TOTAL[1], 0.0)
    return x


def noise_ratios(x: Floats) -> Floats:
    r"""Return the variance of the noise of each label over the usual one, from standard normal coordinates.

    .. math:: r = \exp\big(b \max(x - a, 0)\big), \qquad (a, b) = \mathrm{CONTAMINATED}.

    Examples
    --------
    >>> noise_ratios(np.array([-1.0, 1.5, 3.0])).round(2)
    array([ 1.  ,  1.  , 20.09])
    """
    usual, growth = CONTAMINATED
    return np.asarray(np.exp(np.minimum(growth * np.maximum(x - usual, 0.0), _MOST_RATIO)))


def _log_likelihood(covariance: Covariance, z: Floats, h: Hyperparameters) -> float:
    """Return the log density of labels, up to a constant; minus infinity where their covariance is singular."""
    factor = Factor.of(covariance.triangle, covariance.among(h)[0])
    return -math.inf if factor is None else -0.5 * (float(z @ factor.solve(z)) + factor.log_determinant)


def median(points: Sequence[Hyperparameters]) -> Hyperparameters:
    """Return the median of every hyper-parameter; of the noise the mean, which is that of the mixture."""
    values = {name: np.median([h[name] for h in points], axis=0) for name in points[0] if name != "ratios"}
    plain = {name: value if value.ndim else float(value) for name, value in values.items()}
    noise = float(np.mean([h["noise"] for h in points]))
    kinds = {name: points[0][name] for name in ("unit_variance", "paper_model")}
    return Hyperparameters(plain | {"noise": noise} | kinds)


def mean_alone(covariance: Covariance, z: Floats, points: Sequence[Hyperparameters]) -> Hyperparameters:
    """Return the hyper-parameters of outcomes that are a constant and noise; labels count as in the draws.

    The variance of the noise is that of a new outcome given `m` normal ones, :math:`m / (m - 3)` of theirs: the fewer,
    the less they tell of it.
    """
    precisions = np.mean([1.0 / h["ratios"] for h in points], axis=0)
    mean = float(precisions @ z / precisions.sum())
    variance = float(precisions @ (z - mean) ** 2 / precisions.sum()) * new_outcome_variance(z.size)
    space = Space(covariance.components, covariance.design.p, ("noise",))
    return Hyperparameters({**space.read(np.log([max(variance, LEAST_NOISE)])), "ratios": 1.0 / precisions})


def with_imputed_variance(
    graph: Graph, covariance: Covariance, z: Floats, imputed: Imputation, *, seed: int = 0
) -> tuple[Covariance, tuple[Floats, Floats] | None]:
    r"""Return the covariance in which a label has the variance of its imputed features, and where a search ended.

    To a label whose features were imputed at their expectation, what these miss of the true ones is noise of its own,
    :math:`\mathrm{Var} f(x_i)` over the distribution of the missing cells, with `f` the effects of features. Without it
    the noise of all labels is estimated too large, and that of nodes whose features are known with it. So a first fit
    tells `f`, draws of the features its variance, and a second fit all else. No label has a part in the draws.

    Parameters
    ----------
    graph : Graph
        The graph.
    covariance : Covariance
        The covariance of the labelled nodes, at the expected features.
    z : array of shape (m,)
        Their outcomes, standardised.
    imputed : Imputation
        The features.
    seed : int
        Seed of the search, or of the draws of the hyper-parameters.
    """
    if point_weight(z.size):
        h, found = maximise(covariance, z, seed=seed)
        ends = found.ends
    else:
        h, ends = median(sample_hyperparameters(covariance, z, steps=FOLD_STEPS, seed=seed)[0]), None
    first, said = ExactPosterior(covariance, h, z), []
    for X in imputed.sample(_LABEL_DRAWS):
        there = OtherGraph(graph, covariance.design.elsewhere(graph, X))
        said.append(covariance.elsewhere(h, there, covariance.rows)[0] @ first.dual)
    return replace(covariance, imputed=np.var(said, axis=0, ddof=1)), ends


@dataclass(frozen=True, eq=False)
class AveragedPosterior:
    r"""The field conditioned on the labels once for every draw of the features, of the hyper-parameters, or of both.

    Means are means over the members; variances, by Rubin's rule, the mean variance and the variance of the means,
    :math:`\bar v + \overline{(m_i - \bar m)^2}`; see `Mixture.with_draws_to_come`, too. Draws of the features come in
    pairs that lie opposite each other about the expected ones: so the mean of anything linear in the features is that
    at the expected ones, and free of chance. Features of labelled nodes stay at the expected ones: labels beside
    features that were drawn without them would tell of effects that are too small.

    Attributes
    ----------
    base : ExactPosterior
        The field at the expected features and the most likely hyper-parameters, or at their median.
    designs : sequence of Design
        The features of every draw; none where no feature is missing.
    points : sequence of Hyperparameters
        Draws of the hyper-parameters; none where labels are many.
    weight : float
        Weight of the hyper-parameters of `base`.
    """

    base: ExactPosterior
    designs: Sequence[Design]
    points: Sequence[Hyperparameters] = ()
    weight: float = 1.0

    @cached_property
    def h(self) -> Hyperparameters:
        """The hyper-parameters of `base`, with the variance of the noise that the mixture has."""
        noise = float(self.weights @ [member.h["noise"] for member in self.members])
        return Hyperparameters({**self.base.h, "noise": noise}) if self.points else self.base.h

    @property
    def z(self) -> Floats:
        """The standardised labels."""
        return self.base.z

    @property
    def noise(self) -> float:
        """Mean variance of the independent noise of a node."""
        return float(self.weights @ [member.noise for member in self.members])

    @property
    def origin(self) -> float:
        """What is expected of an outcome of which nothing is known."""
        return self.weight * self.base.origin

    def relative_variance(self, graph: Graph | None = None) -> Floats:
        """Return the prior variance of the graph field at all nodes, over its mean at the labelled ones."""
        return (1.0 - self.weight) + self.weight * self.base.relative_variance(graph)

    @property
    def central(self) -> ExactPosterior:
        """The field at the expected features and the central hyper-parameters."""
        return self.base

    @property
    def refitted_up_to(self) -> int:
        """Number of labels up to which hyper-parameters are refitted without some of them."""
        return self.base.refitted_up_to

    def _fields(self, correlations: Correlations) -> list[Covariance]:
        """Return the covariance for every draw of the features of unlabelled nodes."""
        field, rows = self.base.covariance, self.base.covariance.rows
        fields = []
        for design in self.designs or (field.design,):
            groups = design.groups.copy()
            groups[:, rows] = field.design.groups[:, rows]
            fields.append(Covariance(replace(design, groups=groups), correlations, field.components, field.imputed))
        return fields

    @cached_property
    def members(self) -> tuple[ExactPosterior, ...]:
        """The posterior of every draw of hyper-parameters, with features in turn, of the mean alone, then of `base`."""
        field = self.base.covariance
        fields = self._fields(field.correlations.many()) if self.points else []
        drawn = [ExactPosterior(fields[k % len(fields)], h, self.z) for k, h in enumerate(self.points)]
        if drawn:
            drawn.append(ExactPosterior(fields[0], mean_alone(field, self.z, self.points), self.z))
        if not self.weight:
            return tuple(drawn)
        if not self.designs:
            return (*drawn, self.base)
        same = self._fields(Correlations(field.eigen, field.rows, _REMEMBERED))
        return (*drawn, *(ExactPosterior(each, self.base.h, self.z) for each in same))

    @property
    def _draws(self) -> Ints:
        """The draw of features of every member, -1 for that of the mean alone."""
        points, d = len(self.points), len(self.designs)
        if not points:
            return np.arange(d)
        return np.concatenate([np.arange(points) % d, [-1], np.arange(d if self.weight else 0)])

    @cached_property
    def belief(self) -> float:
        r"""Weight of the draws beside the mean of the labels alone, :math:`\rho / (\rho + d / m)` for `m` labels.

        :math:`\rho` is the R2 that the draws expect at unlabelled nodes, the variance of their mean over nodes beside
        that of the outcome, and `d` is `DOUBT`. A field that expects little loses little by it where it is right, and
        where a handful of labels misled it, it cannot be much worse than their mean.
        """
        field, own = self.base.covariance, self.base.covariance.design.groups[0]
        order = _ordered(field, self.z, np.arange(len(own)), tuple(own.T[::-1]))
        nodes = order[~np.isin(order, field.rows)]
        if not nodes.size:
            return 1.0
        some = nodes[np.linspace(0, nodes.size - 1, min(nodes.size, _ASKED)).astype(int)]
        mean, variance = Mixture.of([member.moments(some) for member in self.members[: len(self.points)]]).moments
        expected = float(mean.var() / (mean.var() + variance.mean()))
        return expected / (expected + DOUBT / self.z.size)

    @cached_property
    def weights(self) -> Floats:
        """The weight of every member; they add up to 1."""
        if not self.points:
            return np.full(len(self.members), 1.0 / len(self.members))
        drawn, likely = len(self.points), len(self.members) - len(self.points) - 1
        parts = np.array([self.belief / drawn, 1.0 - self.belief, self.weight / max(likely, 1)])
        parts[:2] *= 1.0 - self.weight
        return np.repeat(parts, [drawn, 1, likely])

    def mixture(self, nodes: Ints) -> Mixture:
        """Return the distribution of the outcome of every node: a normal one of every member."""
        found = self._of_members(nodes)
        return found.with_draws_to_come(PAIRS, self._draws) if self.designs else found

    def _of_members(self, nodes: Ints) -> Mixture:
        k = len(self.members)
        parts = [Mixture.of([member.moments(block) for member in self.members]) for block in blocks(nodes)]
        means, variances = (
            np.hstack([np.zeros((k, 0)), *(getattr(part, name) for part in parts)]) for name in ("means", "variances")
        )
        return Mixture(self.weights, means, variances)

    def moments(self, nodes: Ints) -> tuple[Floats, Floats]:
        """Return mean and variance of the outcome of unlabelled nodes, noise included."""
        return self.mixture(nodes).moments

    def _joint(self, nodes: Ints) -> tuple[Floats, list[ExactPosterior]]:
        """Return the members whose joint covariances are computed, with their weights."""
        most, count = _JOINT
        if nodes.size <= most or not self.points:
            return self.weights, list(self.members)
        chosen = np.searchsorted(np.cumsum(self.weights), (np.arange(count) + 0.5) / count)
        return np.full(count, 1.0 / count), [self.members[k] for k in chosen]

    def draw(self, nodes: Ints, count: int, rng: np.random.Generator) -> Floats:
        """Return joint draws of the outcomes of unlabelled nodes, each of one member, shape (count, len(nodes))."""
        result, (weights, members) = np.empty((count, nodes.size)), self._joint(nodes)
        whose = np.searchsorted(np.cumsum(weights), (rng.permutation(count) + 0.5) / max(count, 1))
        for k, member in enumerate(members):
            which = np.flatnonzero(whose == k)
            if which.size:
                result[which] = member.draw(nodes, which.size, rng)
        if not self.designs:
            return result
        found = self._of_members(nodes)
        (mean, drawn), (_, variance) = found.moments, found.with_draws_to_come(PAIRS, self._draws).moments
        return np.asarray(mean + np.sqrt(variance / drawn) * (result - mean))

    def times_covariance(self, nodes: Ints, Z: Floats) -> Floats:
        """Return the joint covariance of unlabelled nodes, noise left out, times columns `Z` (len(nodes), k)."""
        found, (weights, members) = self._of_members(nodes), self._joint(nodes)
        about = found.means - self.weights @ found.means
        within = sum(w * member.times_covariance(nodes, Z) for w, member in zip(weights, members, strict=True))
        between = about.T @ (self.weights[:, None] * (about @ Z))
        if self.designs:
            drawn, apart = found.about_draws(self._draws)
            between += (student_variance(PAIRS) - 1.0) * (apart.T @ (drawn[:, None] * (apart @ Z)))
        return np.asarray(within + between)

    def variances_given(self, rows: Ints, nodes: Ints) -> Floats:
        """Return the variance of nodes, noise included, were the labels those of others.

        What the average adds counts as much as it does with the labels there are.
        """
        return self._more * self.base.variances_given(rows, nodes)

    @cached_property
    def _more(self) -> float:
        """Variance of unlabelled nodes over that of `base`."""
        here = np.setdiff1d(np.arange(len(self.base.covariance.design.Z)), self.base.covariance.rows)
        return float(self.moments(here)[1].sum() / self.base.moments(here)[1].sum()) if here.size else 1.0

    def _weights_without(self, own: Bools) -> Floats:
        """Return the weights of the members as if hyper-parameters had been drawn without some labels.

        A member then counts the less, the better it predicts those labels; no more than the root of their number
        times its share, so that no single one decides (truncated importance sampling). The mean alone keeps its part.
        """
        if not self.points:
            return self.weights
        alone = np.arange(len(self.members)) == len(self.points)
        logs = np.array([-member.log_density(own) for member in self.members])
        ratios = np.where(alone, 0.0, np.exp(logs - logs[~alone].max()))
        ratios = np.minimum(ratios, math.sqrt(len(ratios)) * (self.weights @ ratios))
        found = self.weights * ratios
        return np.where(alone, self.weights, (1.0 - self.weights[alone]) * found / found.sum())

    @cached_property
    def left_out(self) -> tuple[Floats, Floats]:
        """Residual and variance of every label given the others."""
        places, each = np.arange(self.z.size), [member.left_out for member in self.members]
        weights = np.array([self._weights_without(places == i) for i in places]).T
        residuals, variances = (np.array(found) for found in zip(*each, strict=True))
        mean = np.sum(weights * residuals, axis=0)
        return mean, np.sum(weights * (variances + (residuals - mean) ** 2), axis=0)

    def held_out(self, own: Bools) -> tuple[Floats, Floats]:
        """Return residuals and joint covariance, noise included, of some labels given the others."""
        residuals, spreads = (np.array(found) for found in zip(*(m.held_out(own) for m in self.members), strict=True))
        weights = self._weights_without(own)
        mean = weights @ residuals
        between = (weights * (residuals - mean).T) @ (residuals - mean)
        return mean, np.tensordot(weights, spreads, axes=1) + between

    def without(self, own: Bools) -> tuple[Floats, Floats]:
        """Return mean and variance of some labels given the others, no hyper-parameter searched or drawn again."""
        residual, spread = self.held_out(own)
        return self.z[own] - residual, np.diag(spread)

    def refitted(self, own: Bools, z: Floats, seed: int) -> tuple[Floats, Floats]:
        """Return mean and variance of some labels by a field fitted to the others, at the expected features."""
        return self.fitted_without(own, z, seed).moments(self.base.covariance.rows[own])

    def fitted_without(self, own: Bools, z: Floats, seed: int) -> AveragedPosterior:
        """Return the field with hyper-parameters of the other labels alone, at the expected features."""
        if not self.points:
            return AveragedPosterior(self.base.fitted_without(own, z, seed), self.designs)
        others, weight = self.base.covariance.part(~own), point_weight(z.size)
        points, _ = sample_hyperparameters(others, z, steps=FOLD_STEPS, seed=seed)
        h = maximise(others, z, seed=seed, ends=self.base.ends)[0] if weight else median(points)
        return AveragedPosterior(ExactPosterior(others, h, z), self.designs, points, weight)

    def by_features(self, own: Bools) -> tuple[Floats, Floats]:
        """Return mean and variance of some labels by their features alone."""
        return Mixture.of([member.by_features(own) for member in self.members], self._weights_without(own)).moments

    def elsewhere(self, graph: Graph, X: Floats) -> tuple[Floats, Floats]:
        """Return mean and variance of the outcome of all nodes of another graph, noise included."""
        return Mixture.of([member.elsewhere(graph, X) for member in self.members], self.weights).moments

    @cached_property
    def shares(self) -> dict[str, float]:
        """The part of the variance of the labels that every component predicts; of draws of features, as expected."""
        if not self.points:
            return self.base.shares
        found = [member.shares for member in self.members]
        return {name: float(self.weights @ [each.get(name, 0.0) for each in found]) for name in found[0]}

    def own_effects(self, returning: float) -> Floats:
        """Return the mean change (p,) of a node's expected outcome per unit of its own feature, over the draws."""
        return np.asarray(self.weights @ np.array([member.own_effects(returning) for member in self.members]))

    @cached_property
    def coefficients(self) -> dict[str, tuple[Floats, Floats]]:
        """Mean and standard deviation of linear coefficients per unit of the feature, by the effect's title."""
        found = [member.coefficients for member in self.members]
        pools: dict[str, tuple[Floats, Floats]] = {}
        for title in found[0]:
            means, stds = (np.array([one[title][k] for one in found]) for k in (0, 1))
            largest = np.maximum(np.abs(means), stds).max(axis=0)
            unit = np.where(largest > 0, largest, 1.0)  # no square overflows
            mean, variance = Mixture(self.weights, means / unit, (stds / unit) ** 2).moments
            pools[title] = unit * mean, unit * np.sqrt(variance)
        return pools

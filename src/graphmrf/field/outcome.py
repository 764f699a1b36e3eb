"""The field in the units of the outcome: predictions, intervals, draws, held-out labels, another graph."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from graphmrf.caching import cached_property
from graphmrf.errors import InvalidInputError
from graphmrf.field.accuracy import ExpectedAccuracy
from graphmrf.field.attributions import Orders
from graphmrf.field.classes import Sides, probabilities
from graphmrf.field.features import Design
from graphmrf.field.fit import (
    REFITTED,
    FieldOptions,
    FittedField,
    Found,
    fit_field,
    fit_together,
    rebuild,
    refit,
    refit_together,
)
from graphmrf.field.imputation import impute
from graphmrf.field.learned import BOOSTED_TREES, with_learned
from graphmrf.field.observations import Observations, Responses
from graphmrf.field.posterior import AveragedPosterior
from graphmrf.field.precision import DENSE_NODES
from graphmrf.field.reading import AtNodes, Link, Numbers, Observed
from graphmrf.field.space import NOISE
from graphmrf.field.spectrum import FieldSpectrum
from graphmrf.field.terms import TERMS, family
from graphmrf.field.transform import choose_transform
from graphmrf.selection import distance_matched_folds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.field.imputation import Imputation
    from graphmrf.field.reading import Of, Reading
    from graphmrf.field.transform import Kind, Scale
    from graphmrf.graph import Graph

_DRAWS = 1000  # joint draws for sums
_DENSE_LABELS = 1500  # labels up to which effects of features alone have a dense covariance


@dataclass(frozen=True, eq=False)
class FieldOutcome:
    """A field fitted to the outcome of a graph's nodes."""

    graph: Graph
    X: Floats  # (n, p): features, NaN where missing
    y: Floats  # (n,): outcomes, NaN where they are to be predicted
    labels: Observations | Responses  # what is known of the outcome, as it was given
    reading: Reading  # from the field to the units of the outcome
    imputed: Imputation | None  # features with their missing cells filled; None where there are none
    fitted: FittedField  # the field given the labels
    options: FieldOptions  # how it was fitted

    @classmethod
    def fit(
        cls,
        graph: Graph,
        X: Floats,
        y: Floats,
        *,
        weight: Floats | None = None,
        kinds: tuple[Kind, ...] = ("identity",),
        options: FieldOptions,
    ) -> FieldOutcome:
        """Return the field fitted to the known outcomes, numbers with noise.

        Hyper-parameters are those of the features with missing cells at their expectation; predictions are averaged
        over draws of these cells.
        """
        rows = np.flatnonzero(~np.isnan(y))
        imputed, design = _imputed(graph, X, options)
        scale = choose_transform(design, rows, y[rows], kinds, seed=options.seed)
        labels = Observations.of(rows, scale.z)
        labels = labels if weight is None else labels.weighted(weight[rows] / weight[rows].mean())
        (fitted,) = _fitted(design, labels, imputed, options)
        return cls(graph, X, y, labels, Numbers(scale), imputed, fitted, options)

    @classmethod
    def fit_responses(
        cls, graph: Graph, X: Floats, labels: Sequence[Responses], size: Floats, *, options: FieldOptions
    ) -> list[FieldOutcome]:
        """Return the field fitted to counts, shares or measurements, or the fields of several classes.

        Labels of classes are at the same nodes, and their fields have the same hyper-parameters. `size` (n,) is that of
        new observations.
        """
        imputed, design = _imputed(graph, X, options)
        together = labels[0] if len(labels) == 1 else Sides(tuple(labels))
        found = []
        for own, fitted in zip(labels, _fitted(design, together, imputed, options), strict=True):
            totals, seen = own.likelihood.total(own.place, own.y, own.size)
            y = np.full(graph.n_nodes, np.nan)
            y[own.nodes] = totals
            reading = Observed(Link(own.likelihood, own.origin, own.unit), size, seen)
            found.append(cls(graph, X, y, own, reading, imputed, fitted, options))
        return found

    @classmethod
    def rebuilt(  # noqa: PLR0913 - what a file of a model has
        cls,
        graph: Graph,
        X: Floats,
        y: Floats,
        labels: Observations | Responses,
        reading: Reading,
        *,
        options: FieldOptions,
        found: Found,
    ) -> FieldOutcome:
        """Return the field given labels at the hyper-parameters of a search, see `stored`."""
        imputed, design = _imputed(graph, X, options)
        fitted = _over_imputed(rebuild(design, labels, options, found), imputed)
        return cls(graph, X, y, labels, reading, imputed, fitted, options)

    def stored(self) -> dict[str, Any]:
        """Return the arguments of `rebuilt`: the data, and what the search found.

        Raises
        ------
        InvalidInputError
            If a learner was passed, whose regressors only code could bring back.
        """
        learner = None if self.fitted.field.design.learner is None else self.options.learner
        if learner not in (None, BOOSTED_TREES):
            raise InvalidInputError(
                "a model with a learner cannot be saved, as its regressors could only be read by running code; fit "
                "with learner='auto', or pass out-of-fold predictions as a column of X"
            )
        data = {"graph": self.graph, "X": self.X, "y": self.y, "labels": self.labels, "reading": self.reading}
        return data | {"options": replace(self.options, start=None, learner=learner), "found": self.fitted.found}

    @property
    def rows(self) -> Ints:
        """The labelled nodes."""
        return self.labels.nodes

    @property
    def posterior(self) -> AveragedPosterior:
        """The latent field given the labels."""
        return self.fitted.posterior

    def _kept(self, of: Of) -> Bools:
        """Return the nodes whose outcome is known: labels are new observations of numbers."""
        return ~np.isnan(self.y) & (isinstance(self.reading, Numbers) and of == "observation")

    @cached_property
    def _unknown(self) -> AtNodes:
        return AtNodes(self.posterior, np.flatnonzero(~self._kept("observation")))

    @cached_property
    def _everywhere(self) -> AtNodes:
        return AtNodes(self.posterior, np.arange(self.y.size))

    def _filled(self, of: Of, known: Floats, function: Callable[[AtNodes], Floats]) -> Floats:
        """Return values of a function at all nodes whose outcome is not kept, and known ones at the others."""
        kept = self._kept(of)
        found = np.where(kept, known, np.nan)
        if not kept.all():
            found[..., ~kept] = function(self._unknown if kept.any() else self._everywhere)
        return found

    @property
    def predictions(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the outcome of every node; labels are kept, with 0."""
        return self.moments(self.reading.default)

    def moments(self, of: Of) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of every node; labels of numbers are kept, with 0."""
        known = np.array([self.y, np.zeros(self.y.size)])
        mean, std = self._filled(of, known, lambda at: np.array(self.reading.moments(at, of)))
        return mean, std

    def interval(self, level: float, of: Of) -> tuple[Floats, Floats]:
        """Return the ends of central intervals; labelled nodes have width 0 where labels are kept."""
        low, high = (
            self._filled(of, self.y, partial(self.reading.quantile, of=of, level=each))
            for each in (0.5 - 0.5 * level, 0.5 + 0.5 * level)
        )
        return low, high

    def above(self, value: float, of: Of) -> Floats:
        """Return the probability of more than a value at every node."""
        return self._filled(of, (self.y > value).astype(np.float64), lambda at: self.reading.above(at, of, value))

    def conformal(self, level: float) -> tuple[Floats, Floats]:
        """Return the intervals of the model, wider where held-out labels ask for more standard deviations.

        Labels are held out on folds that imitate the holes, or one by one where holes are random.
        """
        scale, scores = self.scale, np.sort(self._held_out_scores)
        place = int(np.ceil((scores.size + 1) * level)) - 1
        width = scores[place] if place < scores.size else np.inf
        centre, variance = self._everywhere.outcome.moments
        known = ~np.isnan(self.y)
        with np.errstate(invalid="ignore"):
            ends = (scale.back(centre + side * width * np.sqrt(variance)) for side in (-1.0, 1.0))
            low, high = (np.where(known, self.y, end) for end in ends)
        own = self.interval(level, "observation")
        return np.minimum(low, own[0]), np.maximum(high, own[1])

    @property
    def _held_out_scores(self) -> Floats:
        """Distance of every label from its prediction without it, in standard deviations of that prediction."""
        mean, variance = (each.copy() for each in self.posterior.leave_one_out().moments)
        if self.rows.size > 1:
            matched = distance_matched_folds(self.graph, ~np.isnan(self.y), random_state=self.options.seed)
            for own, others in () if matched.is_random else self._without_folds(matched.folds):
                mean[own], variance[own] = others.outcome(self.rows[own]).moments
        return np.asarray(np.abs(self.scale.z - mean) / np.sqrt(variance))

    @property
    def scale(self) -> Scale:
        """From numbers to standardised values."""
        assert isinstance(self.reading, Numbers)
        return self.reading.scale

    def draw(self, count: int, seed: int, of: Of) -> Floats:
        """Return joint draws of the outcome of all nodes, which keep their labels, shape (count, n)."""
        rng = np.random.default_rng(seed)
        known = np.tile(self.y, (count, 1))
        return self._filled(of, known, lambda at: self.reading.draw(at, of, count, rng))

    @property
    def sizes(self) -> Floats:
        """By what the outcome of every node is divided in a mean: exposure or trials, 1 for numbers, shape (n,)."""
        if isinstance(self.reading, Observed) and self.reading.link.likelihood.is_whole:
            sizes = self.reading.size.copy()
            sizes[self.labels.nodes] = self.reading.seen
            return sizes
        return np.ones(self.y.size)

    def sums(self, members: Sequence[Ints], level: float, weight: Floats | None = None) -> Floats:
        """Return weighted sum, its standard deviation and ends of its interval for every group of nodes (4, groups).

        From the joint posterior; what was counted at observed nodes is known. Of counts the median of the expected sum.
        """
        if not isinstance(self.reading, Observed):
            return self.accuracy.sums(members, level, weight)
        if weight is not None and self.reading.link.likelihood.is_whole:
            raise InvalidInputError("means of counts and shares are weighted by exposure or trials; leave weight out")
        nodes = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *members]))
        known = ~np.isnan(self.y[nodes]) & self.reading.link.likelihood.is_whole
        places = [np.searchsorted(nodes, own) for own in members]
        group = np.repeat(np.arange(len(members)), [own.size for own in members])
        own = np.ones(nodes.size) if weight is None else weight[nodes]
        entries = (
            own[np.concatenate([np.zeros(0, dtype=np.int64), *places])],
            (group, np.concatenate([np.zeros(0, dtype=np.int64), *places])),
        )
        groups = sparse.csr_array(entries, shape=(len(members), nodes.size))
        found = np.zeros((4, len(members)))
        if not known.all():
            at, ends = AtNodes(self.posterior, nodes[~known]), np.array([0.5 - 0.5 * level, 0.5 + 0.5 * level])
            rng = np.random.default_rng(self.options.seed)
            found += self.reading.sums(at, groups[:, ~known], ends, _DRAWS, rng)
        found[[0, 2, 3]] += groups[:, known] @ self.y[nodes[known]]
        return found

    @cached_property
    def accuracy(self) -> ExpectedAccuracy:
        """Expected accuracy, further labels, sums over groups."""
        given = self.posterior.members[0].field.normal
        return ExpectedAccuracy(self.posterior, given, self.reading, self.y.size, self.options.seed)

    @cached_property
    def leave_one_out(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of every label given all others."""
        return self.reading.leave_one_out(self.posterior)

    def out_of_fold(self, folds: Ints) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of every label by a field fitted without its fold."""
        mean, std = np.empty(folds.size), np.empty(folds.size)
        for own, others in self._without_folds(folds):
            mean[own], std[own] = self._held_out(others, own)
        return mean, std

    def above_out_of_fold(self, values: Sequence[float], folds: Ints) -> Floats:
        """Return the probability (m, len(values)) that every label exceeds some values, without its fold."""
        found = np.empty((folds.size, len(values)))
        for own, others in self._without_folds(folds):
            at = AtNodes(others, self.rows[own])
            found[own] = np.column_stack([self.reading.above(at, "observation", value) for value in values])
        return found

    def _without_folds(self, folds: Ints) -> Iterator[tuple[Bools, AveragedPosterior]]:
        """Yield the labels of every fold, and the posterior given all others."""
        for fold in np.unique(folds):
            own = folds == fold
            others = self.fitted.field.observations.part(~own)
            yield own, refit(self.learned_from(~own), others, seed=self.options.seed)

    def learned_from(self, chosen: Bools) -> FittedField:
        """Return the field with a learner that sees some of the labels only; of many it is the same."""
        field = self.fitted.field
        if field.design.learner is None or self.rows.size > REFITTED:
            return self.fitted
        labels = field.observations.part(chosen)
        design = with_learned(field.design, labels, self.options.learner, self.options.seed)
        return replace(self.fitted, field=field.on(design))

    def _held_out(self, others: AveragedPosterior, own: Bools) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of some labels by a posterior without them."""
        at = AtNodes(others, self.rows[own])
        if isinstance(self.reading, Observed):
            return self.reading.of_others(at, own)
        return self.reading.moments(at, "observation")

    def label_weights(self, places: Ints) -> Floats:
        r"""Return the weight (k, m) of every label in the mean of some nodes, :math:`\Sigma_{ij} / s_j`.

        With posterior covariances of the field and the variance of each label's noise.
        """
        nodes = np.unique(np.append(self.rows, places))
        unit, found = (nodes[:, None] == places).astype(np.float64), np.zeros((places.size, self.rows.size))
        for share, each in zip(self.posterior.weights, self.posterior.members, strict=True):
            shared = each.covariance_times(nodes, unit)[np.searchsorted(nodes, self.rows)]
            found += share * shared.T / each.dual().unshared
        return found

    def effects_at(self, node: int) -> dict[str, float]:
        """Return what each kind of effect adds to the mean of a node, in units of the field."""
        effects: dict[str, float] = {}
        for name, part in self.posterior.parts(np.array([node])).items():
            effect = TERMS[family(name)].effect
            effects[effect] = effects.get(effect, 0.0) + float(part[0])
        return effects

    @cached_property
    def shares(self) -> dict[str, float]:
        """Share of the variance that each effect predicts, and that of noise; they add up to 1.

        Predictions at unlabelled nodes, or at all nodes where there is none, are divided among the terms by their
        covariance with the whole; the variance about predictions is noise.
        """
        unknown = np.flatnonzero(np.isnan(self.y))
        nodes = unknown if unknown.size > 1 else np.arange(self.y.size)
        mean, variance = self.posterior.outcome(nodes).moments
        about, error = mean - mean.mean(), float(variance.mean())
        explained = float(np.mean(about**2))
        design = self.fitted.field.design
        names = [name for name in self.options.terms if TERMS[name].applies(design)]
        shares = dict.fromkeys((TERMS[name].effect for name in names), 0.0)
        parts = {name: max(float(np.mean(each * about)), 0.0) for name, each in self.posterior.parts(nodes).items()}
        total = sum(parts.values())
        for name, part in parts.items():
            shares[TERMS[family(name)].effect] += part / max(total, 1e-300) * explained / (explained + error)
        return shares | {"noise": 1.0 - sum(shares.values())}

    @cached_property
    def own_effects(self) -> Floats:
        """Slopes (p,) of the effects of features on own features, neighbours' held fixed, per unit of the feature."""
        design, slopes = self.fitted.field.design, np.zeros(self.X.shape[1])
        scale, parts = design.scale, self.posterior.parts(np.arange(self.y.size))
        if design.p:
            effects = (part for name, part in parts.items() if TERMS[family(name)].needs_features)
            effect = sum(effects, start=np.zeros(self.y.size))
            found = np.linalg.lstsq(np.column_stack([design.both, np.ones(self.y.size)]), effect, rcond=None)[0]
            slopes[scale.varies] = found[: design.p]
        levels = [part for name, part in parts.items() if family(name) == "levels"]
        if levels:
            slopes[scale.levels] = np.linalg.lstsq(design.levels, np.sum(levels, axis=0), rcond=None)[0]
        return slopes * self.reading.unit / (scale.unit * scale.std)

    def dependence(self, column: int, values: Floats, *, nodes: int = 200) -> Floats:
        """Return the mean prediction, over some nodes, were a feature of theirs to have each of some values.

        By the effects of features alone; all other features, and those of neighbours, stay as they are.
        """
        design = self.features_alone.field.design
        rng = np.random.default_rng(self.options.seed)
        chosen = np.sort(rng.permutation(self.y.size)[:nodes])
        X = np.repeat((self.X if self.imputed is None else self.imputed.X)[chosen][None], values.size, axis=0)
        X[:, :, column] = values[:, None]
        table = X.reshape(-1, X.shape[2])
        rows = design.at(np.tile(chosen, values.size), design.graph)
        other = replace(rows, own=design.scale(table), levels=design.scale.of_levels(table))
        if design.learner is not None:
            other = replace(other, learned=design.learner(other))
        posterior = _over_designs(self.features_alone, [design.above(other)])
        others = np.arange(self.y.size, self.y.size + len(table))
        mean, _ = self.reading.moments(AtNodes(posterior, others), self.reading.default)
        return np.asarray(mean.reshape(values.size, -1).mean(axis=1))

    @property
    def has_learner(self) -> bool:
        """Whether there are learned effects."""
        return self.fitted.field.design.learner is not None

    def attributions(self, nodes: Ints, owner: Ints, count: int) -> tuple[Floats, Floats, float]:
        """Return attributions and standard errors (nodes, g) of features, and the mean of the background.

        On the scale of the link, of transformed numbers on that of the transform; `owner` is the feature of each
        column, and degrees are the last one. See `attributions`.
        """
        alone, n = self.features_alone, self.y.size
        design = alone.field.design
        orders = Orders.draw(count, int(owner.max(initial=-1)) + 2, n, self.options.seed)
        rows = orders.rows(design, owner, nodes)
        posterior = _over_designs(alone, [design.above(rows)])
        others = np.arange(n, n + len(rows.own))
        values = posterior.weights @ np.array([each.moments(others)[0] for each in posterior.members])
        found, error, mean = orders.averaged(self.reading.unit * values)
        return found, error, self.reading.origin + mean

    @cached_property
    def features_alone(self) -> FittedField:
        """The field of effects that hold on another graph: those of features, fitted without the graph."""
        design = self.fitted.field.design
        if design.learner is not None:
            labels = self.fitted.field.observations
            design = with_learned(design, labels, self.options.learner, self.options.seed, transfers=True)
        terms = tuple(name for name in self.options.terms if TERMS[name].transfers)
        representation = "dense" if self.rows.size <= _DENSE_LABELS else "sparse"
        options = replace(self.options, terms=terms, representation=representation, start=None, learner=None)
        return fit_field(design, self.labels, options)

    def on(self, graph: Graph, X: Floats) -> OtherGraph:
        """Return predictions for the nodes of another graph."""
        design = self.features_alone.field.design
        imputed = impute(graph, X, like=(self.graph, self.X), seed=self.options.seed) if np.isnan(X).any() else None
        tables = [X] if imputed is None else [imputed.X] if imputed.posterior is None else list(imputed.draws)
        stacked = [design.above(design.on(graph, table)) for table in tables]
        posterior = _over_designs(self.features_alone, stacked)
        return OtherGraph(self, posterior, np.arange(self.y.size, self.y.size + graph.n_nodes), graph)


@dataclass(frozen=True, eq=False)
class OtherGraph:
    """Predictions for another graph by effects of features: `nodes` are its nodes in a design of both graphs."""

    outcome: FieldOutcome
    posterior: AveragedPosterior
    nodes: Ints
    graph: Graph

    @cached_property
    def _at(self) -> AtNodes:
        return AtNodes(self.posterior, self.nodes)

    def moments(self, of: Of) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of every node."""
        return self.outcome.reading.moments(self._at, of)

    def interval(self, level: float, of: Of) -> tuple[Floats, Floats]:
        """Return the ends of central intervals."""
        ends = (0.5 - 0.5 * level, 0.5 + 0.5 * level)
        low, high = (self.outcome.reading.quantile(self._at, of, each) for each in ends)
        return low, high

    def above(self, value: float, of: Of) -> Floats:
        """Return the probability of more than a value at every node."""
        return self.outcome.reading.above(self._at, of, value)

    def draw(self, count: int, seed: int, of: Of) -> Floats:
        """Return joint draws of the outcomes, shape (count, n).

        What the graph field explained is noise here, but noise that neighbours share. For numbers it is drawn from the
        field of each member on this graph, where the covariance is dense.
        """
        rng, whole = np.random.default_rng(seed), self.outcome.posterior
        numbers = isinstance(self.outcome.reading, Numbers) and of == "observation" and "field.order" in whole.h
        if not numbers or self.nodes.size > DENSE_NODES:
            return self.outcome.reading.draw(self._at, of, count, rng)
        tails, error = self.posterior.likelihood, np.empty((count, self.nodes.size))
        spectrum = FieldSpectrum(self.graph)
        members = np.sort(rng.choice(len(whole.members), size=count, p=whole.weights))
        for k in np.unique(members).tolist():
            h, mine = whole.members[k].h, members == k
            shape, part = (float(h["field.range"][0]), float(h["field.order"][0])), int(mine.sum())
            share = h["field"] / (h["field"] + h[NOISE])
            alone = tails.draw_noise((part, self.nodes.size), rng)
            error[mine] = np.sqrt(share) * spectrum.draw(*shape, part, rng) + np.sqrt(1.0 - share) * alone
        noise = np.sqrt(self.posterior.noise / tails.inflation)
        return self.outcome.scale.back(self.posterior.draw(self.nodes, count, rng) + noise * error)


@dataclass(frozen=True, eq=False)
class Softmax:
    """Probabilities of several classes from the fields of every class, see `classes`."""

    each: tuple[FieldOutcome, ...]

    @property
    def _labels(self) -> list[Responses]:
        return [each.labels for each in self.each if isinstance(each.labels, Responses)]

    @cached_property
    def here(self) -> Floats:
        """Probability (n, classes) of every class at every node, its own label aside."""
        return probabilities([each.posterior for each in self.each], self._labels, np.arange(self.each[0].y.size))

    def on(self, others: Sequence[OtherGraph]) -> Floats:
        """Return the probability of every class at the nodes of another graph, from the field of every class there."""
        return probabilities([each.posterior for each in others], self._labels, others[0].nodes)

    def out_of_fold(self, folds: Ints) -> Floats:
        """Return the probability (m, classes) of every class at every labelled node by fields without its fold."""
        rows, found = self.each[0].rows, np.empty((folds.size, len(self.each)))
        for own in (folds == fold for fold in np.unique(folds)):
            labels = [each.part(~own) for each in self._labels]
            fields = [each.learned_from(~own) for each in self.each]
            others = refit_together(fields, Sides(tuple(labels)), seed=self.each[0].options.seed)
            found[own] = probabilities(others, labels, rows[own])
        return found


def _imputed(graph: Graph, X: Floats, options: FieldOptions) -> tuple[Imputation | None, Design]:
    """Return the imputation of missing cells, None where there are none, and the design of the whole table."""
    imputed = impute(graph, X, seed=options.seed) if np.isnan(X).any() else None
    return imputed, Design.of(graph, X if imputed is None else imputed.X, options.groups)


def _fitted(
    design: Design, labels: Observations | Responses | Sides, imputed: Imputation | None, options: FieldOptions
) -> list[FittedField]:
    """Return the field fitted to labels, or that of every class, posteriors averaged over draws of missing cells."""
    return [_over_imputed(each, imputed) for each in fit_together(design, labels, options)]


def _over_imputed(fitted: FittedField, imputed: Imputation | None) -> FittedField:
    """Return a fitted field whose posterior is averaged over draws of missing cells."""
    if imputed is None or imputed.posterior is None:
        return fitted
    design = fitted.field.design
    bare = replace(design, learner=None)
    drawn = [bare.on(design.graph, draw) for draw in imputed.draws]
    designs = [replace(each, learner=design.learner, learned=design.learned) for each in drawn]
    return replace(fitted, posterior=_over_designs(fitted, designs))


def _over_designs(fitted: FittedField, designs: list[Design]) -> AveragedPosterior:
    """Return the average over features: every member of the hyper-parameters with a design in turn."""
    points = fitted.points
    count = max(len(designs), len(points))
    fields = [fitted.field.on(design) for design in designs]
    members = [fields[k % len(fields)].posterior(points[k % len(points)]) for k in range(count)]
    return AveragedPosterior(members, fitted.posterior.likelihood, np.resize(fitted.posterior.weights, count))

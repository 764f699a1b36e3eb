"""The field in the units of the outcome: predictions, intervals, draws, held-out labels, another graph."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from graphmrf.field.accuracy import ExpectedAccuracy
from graphmrf.field.features import Design
from graphmrf.field.fit import FieldOptions, FittedField, fit_field, refit
from graphmrf.field.imputation import impute
from graphmrf.field.observations import Observations
from graphmrf.field.posterior import AveragedPosterior
from graphmrf.field.terms import TERMS, Prior
from graphmrf.field.transform import choose_transform
from graphmrf.kept import cached_property

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.field.imputation import Imputation
    from graphmrf.field.posterior import Mixture
    from graphmrf.field.transform import Kind, Scale
    from graphmrf.graph import Graph

_DENSE_LABELS = 1500
"""Labels up to which effects of features alone have a dense covariance."""


@dataclass(frozen=True, eq=False)
class FieldOutcome:
    """A field fitted to the outcome of a graph's nodes.

    Attributes
    ----------
    graph : Graph
        The graph.
    X : array of shape (n, p)
        Features, NaN where missing.
    y : array of shape (n,)
        Outcomes, NaN where they are to be predicted.
    scale : Scale
        From the outcome to standardised values.
    imputed : Imputation or None
        Features with their missing cells filled; None where there are none.
    fitted : FittedField
        The field given the labels.
    options : FieldOptions
        How it was fitted.
    """

    graph: Graph
    X: Floats
    y: Floats
    scale: Scale
    imputed: Imputation | None
    fitted: FittedField
    options: FieldOptions

    @classmethod
    def fit(
        cls, graph: Graph, X: Floats, y: Floats, *, kinds: tuple[Kind, ...] = ("identity",), options: FieldOptions
    ) -> FieldOutcome:
        """Return the field fitted to the known outcomes.

        Hyper-parameters are those of the features with missing cells at their expectation; predictions are averaged
        over draws of these cells.
        """
        rows = np.flatnonzero(~np.isnan(y))
        imputed = impute(graph, X, seed=options.seed) if np.isnan(X).any() else None
        design = Design.of(graph, X if imputed is None else imputed.X)
        scale = choose_transform(design, rows, y[rows], kinds, seed=options.seed)
        fitted = fit_field(design, Observations.of(rows, scale.z), options)
        if imputed is not None and imputed.posterior is not None:
            designs = [design.on(graph, draw) for draw in imputed.draws]
            fitted = replace(fitted, posterior=_over_designs(fitted, designs))
        return cls(graph, X, y, scale, imputed, fitted, options)

    @property
    def rows(self) -> Ints:
        """The labelled nodes."""
        return self.observations.nodes

    @property
    def observations(self) -> Observations:
        """The labels."""
        return self.fitted.field.normal

    @property
    def posterior(self) -> AveragedPosterior:
        """The latent field given the labels."""
        return self.fitted.posterior

    @cached_property
    def _everywhere(self) -> Mixture:
        """Distribution of new observations at all nodes; at labelled nodes nobody asks, and it is standard normal."""
        unknown = np.flatnonzero(np.isnan(self.y))
        found = self.posterior.outcome(unknown)
        shape = found.weights.size, self.y.size
        means, variances = np.zeros(shape), np.ones(shape)
        means[:, unknown], variances[:, unknown] = found.means, found.variances
        return replace(found, means=means, variances=variances)

    @cached_property
    def predictions(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the outcome of every node; labelled nodes have their label and 0."""
        return self._keep(*self._moments(self._everywhere))

    def _moments(self, mixture: Mixture) -> tuple[Floats, Floats]:
        mean, variance = mixture.moments
        return self.scale.moments(mean, np.sqrt(variance))

    def _keep(self, mean: Floats, std: Floats) -> tuple[Floats, Floats]:
        known = ~np.isnan(self.y)
        return np.where(known, self.y, mean), np.where(known, 0.0, std)

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Return the ends of central intervals; labelled nodes have width 0."""
        return self._ends(self._everywhere, level, known=~np.isnan(self.y))

    def _ends(self, mixture: Mixture, level: float, known: Bools | None = None) -> tuple[Floats, Floats]:
        ends = (self.scale.back(mixture.quantile(0.5 + 0.5 * side * level)) for side in (-1.0, 1.0))
        if known is None:
            low, high = ends
        else:
            low, high = (np.where(known, self.y, end) for end in ends)
        return low, high

    def conformal(self, level: float) -> tuple[Floats, Floats]:
        """Return intervals as wide, in standard deviations, as the leave-one-out residuals of the labels ask for."""
        held_out = self.posterior.leave_one_out(self.observations)
        mean, variance = held_out.moments
        scores = np.sort(np.abs(self.observations.z - mean) / np.sqrt(variance))
        place = int(np.ceil((scores.size + 1) * level)) - 1
        width = scores[place] if place < scores.size else np.inf
        centre, variance = self._everywhere.moments
        known = ~np.isnan(self.y)
        with np.errstate(invalid="ignore"):
            ends = (self.scale.back(centre + side * width * np.sqrt(variance)) for side in (-1.0, 1.0))
            low, high = (np.where(known, self.y, end) for end in ends)
        return low, high

    def draw(self, count: int, seed: int) -> Floats:
        """Return joint draws of the outcome of all nodes, which keep their labels, shape (count, n)."""
        found = np.tile(self.y, (count, 1))
        unknown = np.flatnonzero(np.isnan(self.y))
        if unknown.size:
            rng = np.random.default_rng(seed)
            found[:, unknown] = self.scale.back(self.posterior.draw_outcome(unknown, count, rng))
        return found

    @cached_property
    def accuracy(self) -> ExpectedAccuracy:
        """Expected accuracy, further labels, sums over groups."""
        return ExpectedAccuracy(self.posterior, self.observations, self.scale, self.y.size, self.options.seed)

    @cached_property
    def leave_one_out(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of every label given all others."""
        return self._moments(self.posterior.leave_one_out(self.observations))

    def out_of_fold(self, folds: Ints) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of every label by a field fitted without its fold."""
        mean, std = np.empty(folds.size), np.empty(folds.size)
        for fold in np.unique(folds):
            own = folds == fold
            others = refit(self.fitted, self.observations.part(~own), seed=self.options.seed)
            mean[own], std[own] = self._moments(others.outcome(self.rows[own]))
        return mean, std

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
        shares = dict.fromkeys((TERMS[name].effect for name in self.options.terms), 0.0)
        parts = {name: max(float(np.mean(each * about)), 0.0) for name, each in self.posterior.parts(nodes).items()}
        total = sum(parts.values())
        for name, part in parts.items():
            shares[TERMS[name].effect] += part / max(total, 1e-300) * explained / (explained + error)
        return shares | {"noise": 1.0 - sum(shares.values())}

    @cached_property
    def own_effects(self) -> Floats:
        """Slopes (p,) of the effects of features on own features, neighbours' held fixed, per unit of the feature."""
        design, slopes = self.fitted.field.design, np.zeros(self.X.shape[1])
        if design.p:
            parts = self.posterior.parts(np.arange(self.y.size))
            effect = np.sum([part for name, part in parts.items() if TERMS[name].needs_features], axis=0)
            found = np.linalg.lstsq(np.column_stack([design.both, np.ones(self.y.size)]), effect, rcond=None)[0]
            varies = design.scale.varies
            slopes[varies] = found[: design.p] * self.scale.unit / (design.scale.unit * design.scale.std)[varies]
        return slopes

    def dependence(self, column: int, values: Floats, *, nodes: int = 200) -> Floats:
        """Return the mean prediction, over some nodes, were a feature of theirs to have each of some values.

        By the effects of features alone; all other features, and those of neighbours, stay as they are.
        """
        design = self.fitted.field.design
        rng = np.random.default_rng(self.options.seed)
        chosen = np.sort(rng.permutation(self.y.size)[:nodes])
        X = np.repeat((self.X if self.imputed is None else self.imputed.X)[chosen][None], values.size, axis=0)
        X[:, :, column] = values[:, None]
        own = design.scale(X.reshape(-1, X.shape[2]))
        other = replace(design, own=own, neighbours=np.tile(design.neighbours[chosen], (values.size, 1)))
        posterior = _over_designs(self.features_alone, [_stacked(design, other)])
        mean, _ = self._moments(posterior.outcome(np.arange(self.y.size, self.y.size + len(own))))
        return np.asarray(mean.reshape(values.size, -1).mean(axis=1))

    @cached_property
    def features_alone(self) -> FittedField:
        """The field of effects that hold on another graph: those of features, fitted without the graph."""
        terms = tuple(t.name for t in Prior.of(self.options.terms, self.fitted.field.design.p).terms if t.transfers)
        representation = "dense" if self.rows.size <= _DENSE_LABELS else "sparse"
        observations = Observations.of(self.rows, self.scale.z)
        return fit_field(
            self.fitted.field.design, observations, replace(self.options, terms=terms, representation=representation)
        )

    def on(self, graph: Graph, X: Floats) -> OtherGraph:
        """Return predictions for the nodes of another graph."""
        design = self.fitted.field.design
        imputed = impute(graph, X, like=(self.graph, self.X), seed=self.options.seed) if np.isnan(X).any() else None
        tables = [X] if imputed is None else [imputed.X] if imputed.posterior is None else list(imputed.draws)
        stacked = [_stacked(design, design.on(graph, table)) for table in tables]
        posterior = _over_designs(self.features_alone, stacked)
        return OtherGraph(self, posterior, np.arange(self.y.size, self.y.size + graph.n_nodes))


@dataclass(frozen=True, eq=False)
class OtherGraph:
    """Predictions for another graph by effects of features: `nodes` are its nodes in a design of both graphs."""

    outcome: FieldOutcome
    posterior: AveragedPosterior
    nodes: Ints

    @property
    def predictions(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the outcome of every node."""
        return self.outcome._moments(self.posterior.outcome(self.nodes))

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Return the ends of central intervals."""
        return self.outcome._ends(self.posterior.outcome(self.nodes), level)

    def draw(self, count: int, seed: int) -> Floats:
        """Return joint draws of the outcomes, shape (count, n)."""
        rng = np.random.default_rng(seed)
        return self.outcome.scale.back(self.posterior.draw_outcome(self.nodes, count, rng))


def _stacked(design: Design, other: Design) -> Design:
    """Return the features of two graphs one below the other; its graph is the first."""
    own, neighbours = np.vstack([design.own, other.own]), np.vstack([design.neighbours, other.neighbours])
    return replace(design, own=own, neighbours=neighbours)


def _over_designs(fitted: FittedField, designs: list[Design]) -> AveragedPosterior:
    """Return the average over features: every member of the hyper-parameters with a design in turn."""
    posterior, points = fitted.posterior, fitted.points
    count = max(len(designs), len(points))
    fields = [fitted.field.on(design) for design in designs]
    members = [fields[k % len(fields)].posterior(points[k % len(points)]) for k in range(count)]
    weights = np.array([posterior.weights[k % len(points)] for k in range(count)])
    return AveragedPosterior(members, weights / weights.sum(), posterior.likelihood)

r"""Prediction of other graphs: effects of features that were fitted to carry over, calibrated on held-out regions.

A field has two explanations of an outcome that is smooth over its graph: smoothed features, or the graph field. The
second does not carry over, so that the field's own effects of features may be too small for another graph. A field
without a graph field lets features explain all they can, and takes what is smooth by chance for their effect; its
curves may bend otherwise next year, where linear regression and linear graph convolution go straight on. All are
averaged with the weights that predict regions of the graph best whose labels are held out: the nearest thing to another
graph that one graph has. The residuals there calibrate the error bars.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from scipy.optimize import nnls
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.special import ndtri

from graphmrf.field.components import COMPONENTS
from graphmrf.field.components.features import NEIGHBOURS, OWN, SECOND, FeatureGroup
from graphmrf.field.components.kernels import Noise, Nonlinear
from graphmrf.field.covariance import Component, Covariance
from graphmrf.field.design import make_design
from graphmrf.field.exact import Evidence, ExactPosterior, subset
from graphmrf.field.fit import IntervalCalibration, unshown
from graphmrf.field.matern import Eigen, matern_smooth, matern_variance
from graphmrf.field.multiple_imputation import PAIRS, impute
from graphmrf.field.posterior import Mixture
from graphmrf.kept import cached_property
from graphmrf.linalg import smooth
from graphmrf.selection import SHRINKAGE, assign_folds, fit_least_squares, search_convolution, whiten

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.field.fit import FittedField
    from graphmrf.graph import Graph
    from graphmrf.selection import LeastSquares, Whitened

_PROGRESS = logging.getLogger("graphmrf.progress")

LEVELS = (0.5, 0.9)
"""Levels of the smoothed features, each with a variance of its own: near and middle. With a third, .99, R2 of CDC's
precipitation falls by .04 (2 splits): far features explain what is smooth by chance. Without .9 London's election loses
.02."""
REGIONS = (5, 10, 2, 3)
"""Into how many regions the graph is divided, each held out in turn. The first `WEIGHED` decide the weights; halves and
thirds are too few for that, and only say, with the others, how wrong predictions may be near and far."""
WEIGHED = 2
"""Divisions that decide the weights, once into large and once into small regions."""
_FOLDS = 5
"""Folds of the choice of a level: the usual number."""
_NEARBY, _DIGITS = 0.5, 9
"""Level of smoothing at which labels tell nodes of the same features apart, and digits: beyond, they are rounding."""
_TOLERANCE = 1e-6
"""Relative residual of smoothed features, that of the search of the level."""
_BUDGET = 1e3
"""Weight, for every label, of the condition that weights add up to 1 at most; ten times as much changes nothing."""
_PRIOR_SHARE = 0.2
"""Weight of the prior guess that all kinds of effects count the same, as a share of the labels: that of one region, for
labels of a region err alike. R2 is higher by .007 on U.S. counties than with 5 labels (2 splits); five times as much,
it falls by .008."""
_PRIOR_LABELS = 5.0
"""Labels added to the residuals that calibrate error bars, each as far off as the labels vary: they decide where labels
are a handful, and vanish in hundreds."""
_SEARCHES = {300: 60, 800: 15}
"""Labels that decide the variances of the field without a graph field, and most steps of the search on them: the first
come near, the others have the last word; twice as many labels take eight times as long."""
_MOST_LABELS = 3000
"""Labels that tell its effects, as many as the exact solver takes."""


def features_only(graph: Graph, X: Floats, rows: Ints, z: Floats, *, seed: int = 0) -> ExactPosterior:
    """Return a field of feature effects and noise alone: own, neighbours', second and smoothed features, and curves.

    Parameters
    ----------
    graph : Graph
        The graph.
    X : array of shape (n, p)
        Features of all nodes.
    rows : integer array of shape (m,)
        The labelled nodes.
    z : array of shape (m,)
        Their standardised labels.
    seed : int
        Seed of the part of many labels that is searched.
    """
    groups = [FeatureGroup(f"level {alpha}", 3 + k, "", ("", ""), "") for k, alpha in enumerate(LEVELS)]
    components: list[Component] = [OWN, NEIGHBOURS, SECOND, *groups, Nonlinear(), Noise()]
    no_edges = Eigen(np.zeros(rows.size), np.eye(rows.size))
    design = make_design(graph, X, LEVELS, rows=rows).at(rows)
    covariance = Covariance.of(design, no_edges, np.arange(rows.size), components)
    evidence = Evidence(covariance, z)
    point = evidence.space.start
    _PROGRESS.info("effects of features for other graphs")
    for size, steps in _SEARCHES.items():
        point = evidence.part(subset(z.size, size, seed)).climb(point, steps).point
    return ExactPosterior(covariance, evidence.space.read(point), z)


@dataclass(frozen=True, eq=False)
class LinearConvolution:
    """Features smoothed at the level that cross-validation chooses, their coefficients shrunk.

    What `LinearGraphConvolution` is by default.

    Attributes
    ----------
    alpha : float
        The level.
    features : Whitened
        Features of all nodes.
    F : array of shape (m, r)
        Smoothed features of the labelled nodes.
    z : array of shape (m,)
        Their standardised labels.
    """

    alpha: float
    features: Whitened
    F: Floats
    z: Floats

    @classmethod
    def of(cls, graph: Graph, X: Floats, rows: Ints, z: Floats, *, seed: int = 0) -> tuple[LinearConvolution, ...]:
        """Return the fits to the labels of some nodes: at the level found, and linear regression at level 0."""
        y, features = np.full(graph.n_nodes, np.nan), whiten(X, centred=True, shrinkage=SHRINKAGE)
        y[rows] = z
        folds = assign_folds(rows.size, _FOLDS, seed=seed)
        alpha = search_convolution(graph, features, y, folds, tolerance=_TOLERANCE).alpha
        smoothed = smooth(graph, features.Z, alpha, tolerance=_TOLERANCE)[rows]
        return cls(alpha, features, smoothed, z), cls(0.0, features, features.Z[rows], z)

    def _fit(self, used: Bools) -> LeastSquares:
        options = {"noise": self.features.noise(_TOLERANCE), "shrinkage": self.features.shrinkage}
        return fit_least_squares(self.F[used], self.z[used], intercept=True, **options)

    def by_features(self, own: Bools) -> tuple[Floats, Floats]:
        """Return the mean of some labels given the others, and the variance of the others' residuals."""
        fit = self._fit(~own)
        said = self.F @ fit.coef + fit.intercept
        return said[own], np.full(int(own.sum()), np.var((self.z - said)[~own]))

    def elsewhere(self, graph: Graph, X: Floats) -> tuple[Floats, Floats]:
        """Return the mean of the nodes of another graph, and the variance of the residuals."""
        fit = self._fit(np.ones(self.z.size, dtype=np.bool_))
        unsmoothed = (X - self.features.means) @ (self.features.T @ fit.coef)
        mean = smooth(graph, unsmoothed[:, None], self.alpha)[:, 0] + fit.intercept
        return mean, np.full(graph.n_nodes, np.var(self.z - self.F @ fit.coef - fit.intercept))


class _Candidate(Protocol):
    """What is asked of effects that may carry over; see `Posterior`."""

    def by_features(self, own: Bools) -> tuple[Floats, Floats]: ...
    def elsewhere(self, graph: Graph, X: Floats) -> tuple[Floats, Floats]: ...


def along(graph: Graph, order: Ints) -> Ints:
    """Return the place of every node in an order of all nodes in which neighbours are close.

    Parameters
    ----------
    graph : Graph
        The graph.
    order : integer array of shape (n,)
        All nodes, in an order that does not depend on their numbers: it decides where the places begin.

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> path = Graph.from_edges([0, 2, 1, 3], [2, 1, 3, 4])
    >>> along(path, np.arange(5)).tolist()
    [4, 2, 3, 1, 0]
    """
    place, W = np.empty(graph.n_nodes, dtype=np.int64), graph.adjacency.tocsr()[order][:, order]
    W.sort_indices()
    place[order[reverse_cuthill_mckee(W, symmetric_mode=True)]] = np.arange(graph.n_nodes)
    return place


def regions(place: Ints, count: int) -> Ints:
    """Return the region of every labelled node, equal parts of their places along the graph.

    Examples
    --------
    >>> regions(np.array([7, 0, 3, 9, 1, 2]), 3), regions(np.array([4, 2]), 3)
    (array([2, 0, 1, 2, 0, 1]), array([1, 0]))
    """
    found, count = np.empty(place.size, dtype=np.int64), min(count, place.size)
    found[np.argsort(place)] = np.arange(place.size) * count // place.size
    return found


@dataclass(frozen=True, eq=False)
class Transfer:
    """What a fitted field says of other graphs.

    Attributes
    ----------
    field : FittedField
        The field.
    graph, X : Graph and array of shape (n, p)
        What it was fitted on, NaN where features are missing.
    """

    field: FittedField
    graph: Graph
    X: Floats

    @cached_property
    def _whole(self) -> Floats:
        """The features of the fit, missing cells imputed."""
        return impute(self.graph, self.X, seed=self.field.seed).X

    @cached_property
    def _rows(self) -> Ints:
        """Places of the labels that take part, in an order that does not depend on the numbers of nodes."""
        rows, z = self.field.rows, self.field.posterior.z
        order = make_design(self.graph, self._whole).order_of_labels(rows, z)
        return order[subset(rows.size, _MOST_LABELS, self.field.seed)]

    @cached_property
    def _places(self) -> Ints:
        """Places of these labels along the graph; nodes of the same features are told apart by the labels nearby."""
        known = np.zeros((self.graph.n_nodes, 1))
        known[self.field.rows, 0] = self.field.posterior.z
        nearby = smooth(self.graph, known, _NEARBY)[:, 0].round(_DIGITS)
        order = np.lexsort((nearby, *self._whole.T[::-1]))
        return along(self.graph, order)[self.field.rows[self._rows]]

    @cached_property
    def candidates(self) -> tuple[_Candidate, ...]:
        """The fitted field, linear ones; and a field without a graph, unless the paper's own model won.

        Where that model explains features and outcome together, it has no constant that others could share.
        """
        whole, seed = self.field.posterior, self.field.seed
        if not self.field.kept.any() or self.field.scale.is_constant or whole.origin:
            return (whole,)
        X, rows, z = self._whole[:, self.field.kept], self.field.rows[self._rows], whole.z[self._rows]
        straight = LinearConvolution.of(self.graph, X, rows, z, seed=seed)
        if not whole.h["unit_variance"]:
            return whole, *straight
        return whole, *straight, features_only(self.graph, self._whole, rows, z, seed=seed)

    @cached_property
    def _held_out(self) -> tuple[Floats, Floats]:
        """Means (4 m, candidates) of labels by their features, given other regions, and variances by the field."""
        found = [self._without_regions(count) for count in REGIONS]
        means, variances = zip(*found, strict=True)
        return np.vstack(means), np.concatenate(variances)

    def _without_regions(self, count: int) -> tuple[Floats, Floats]:
        part, folds = self._rows, regions(self._places, count)
        means, variances = np.zeros((part.size, len(self.candidates))), np.ones(part.size)
        for region in range(int(folds.max()) + 1 if part.size > 2 else 0):
            own, whole = folds == region, np.zeros(self.field.rows.size, dtype=np.bool_)
            whole[part[own]] = True
            in_node_order = np.flatnonzero(own)[np.argsort(part[own])]
            means[in_node_order, 0], variances[in_node_order] = self.candidates[0].by_features(whole)
            for k, other in enumerate(self.candidates[1:], start=1):
                means[own, k] = other.by_features(own)[0]
        return means, variances

    @cached_property
    def _labels(self) -> Floats:
        return np.tile(self.field.posterior.z[self._rows], len(REGIONS))

    @cached_property
    def weights(self) -> Floats:
        """Weights of the candidates: least squares on held-out regions, and a prior guess that they are equal.

        They are not negative and add up to 1 at most: none is trusted beyond what it says.
        The level of the labels, which all regions of one graph share, is no part of what the paper's own model says.
        """
        k, decisive = len(self.candidates), WEIGHED * self._rows.size
        if not self.field.kept.any() or self.field.scale.is_constant:
            return np.ones(1)
        means, labels = self._held_out[0][:decisive], self._labels[:decisive]
        if self.field.posterior.origin:
            means, labels = means - means.mean(axis=0), labels - labels.mean()
        prior = np.sqrt(_PRIOR_SHARE * self._rows.size) * np.eye(k)
        budget = np.full((1, k), _BUDGET * np.sqrt(len(means)))
        A, rest = np.vstack([means, prior, budget]), np.zeros((len(means) + k + 1, 1))
        rest[-1] = budget[0, 0]  # what is not given to any
        return np.asarray(nnls(np.hstack([A, rest]), np.concatenate([labels, prior.sum(axis=0) / k, rest[-1]]))[0][:k])

    @cached_property
    def _residual(self) -> tuple[Floats, Floats]:
        """What the features leave of every label where its region is held out, and the field's variance there.

        It is the root mean square over the divisions into regions, and the mean: another graph may be near or far.
        """
        origin = self.field.posterior.origin
        said = origin + (self._held_out[0] - origin) @ self.weights
        residuals, variances = (each.reshape(len(REGIONS), -1) for each in (self._labels - said, self._held_out[1]))
        return np.sqrt(np.mean(residuals**2, axis=0)), variances.mean(axis=0)

    @cached_property
    def _unit(self) -> float:
        """What the field's standard deviations are multiplied by to have the size of these residuals.

        The prior variance of a field that one graph determined is uncertain by factors; how nodes differ is not. Where
        labels are a handful, some more of them count that say as much as the labels vary.
        """
        residual, variance = self._residual
        squares = float(residual @ residual) + _PRIOR_LABELS
        return float(np.sqrt(squares / (residual.size + _PRIOR_LABELS) / variance.mean()))

    @cached_property
    def calibration(self) -> IntervalCalibration:
        """Residuals of held-out regions over their standard deviations."""
        residual, variance = self._residual
        std = self._unit * np.sqrt(variance)
        return IntervalCalibration(residual / std, float(std.max()))

    def standardised(self, graph: Graph, X: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of the standardised outcome of another graph, before calibration.

        Missing features are imputed by the joint field of those of the fit, and averaged over, as there. Features far
        beyond those of the labels are not followed beyond the labels' own range; see `Mixture.hedged`.
        """
        imputed = impute(graph, X, like=(self.graph, self.X), seed=self.field.seed)
        tables = list(imputed.draws) or [imputed.X]
        whole, posterior = Mixture.of([self._moments(graph, table) for table in tables]), self.field.posterior
        whole = whole.with_draws_to_come(PAIRS) if len(tables) > 1 else whole
        hedged = whole.hedged(posterior.z, posterior.origin, posterior.relative_variance(graph))
        mean, variance = hedged.moments
        return mean, np.sqrt(variance)

    def _moments(self, graph: Graph, X: Floats) -> tuple[Floats, Floats]:
        """Return mean and variance of the standardised outcome of another graph whose features are all known.

        By how much more the candidates disagree there than on held-out regions is uncertainty, too, and so are effects
        that no label shows.
        """
        linear, origin = X[:, self.field.kept], self.field.posterior.origin
        tables = [X, linear, linear, X]
        found = [each.elsewhere(graph, table) for each, table in zip(self.candidates, tables, strict=False)]
        means, variance = np.array([mean for mean, _ in found]), self._unit**2 * found[0][1]
        more = self._disagreement(means) - self._disagreement(self._held_out[0].T).mean()
        _, beyond = unshown(self.graph, self.field.rows, COMPONENTS, int(self.field.kept.sum()), graph)
        return origin + self.weights @ (means - origin), variance + np.maximum(more, 0.0) + beyond

    def _disagreement(self, means: Floats) -> Floats:
        """Return the weighted variance of what candidates (k, nodes) say of every node; the rest says the origin."""
        about = means - self.field.posterior.origin
        mean = self.weights @ about
        return np.asarray(self.weights @ (about - mean) ** 2 + max(1.0 - float(self.weights.sum()), 0.0) * mean**2)

    def predict(self, graph: Graph, X: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of the outcome of all nodes of another graph."""
        mean, std = self.standardised(graph, X)
        return self.field.scale.moments(mean, self.calibration.factor(std, self.calibration.scale) * std)

    def interval(
        self, level: float, kind: Literal["field", "conformal"], graph: Graph, X: Floats
    ) -> tuple[Floats, Floats]:
        """Return the ends of an interval for every node of another graph, by Student's distribution or by ranks."""
        mean, std = self.standardised(graph, X)
        normal = float(ndtri(0.5 + 0.5 * level))
        width = self.calibration.conformal(level) * std
        if kind == "field":
            width = normal * self.calibration.factor(std, self.calibration.student(level) / normal) * std
        low, high = (self.field.scale.back(mean + side * width) for side in (-1.0, 1.0))
        return low, high

    def draw(self, count: int, seed: int, graph: Graph, X: Floats) -> Floats:
        r"""Return joint draws of the outcome of all nodes of another graph, as far about their mean as `predict` says.

        What features leave is correlated as far as the graph field has a part in it, of which a draw on the other graph
        is :math:`(I + \omega N)^{-\nu / 2} e` with independent normal `e`, brought to variance 1 at every node. Errors
        of coefficients, which all nodes share, count as noise.
        """
        mean, std = self.standardised(graph, X)
        h, rng = self.field.posterior.central.h, np.random.default_rng(seed)
        share = h["field"] / (h["field"] + h["local"] + h["noise"])
        smooth_part, noise = (rng.standard_normal((graph.n_nodes, count)) for _ in range(2))
        field = matern_smooth(graph, smooth_part, h["omega"], 0.5 * h["nu"])
        field /= np.sqrt(matern_variance(graph, h["omega"], h["nu"]))[:, None]
        E = np.sqrt(share) * field + np.sqrt(1.0 - share) * noise
        spread = self.calibration.factor(std, self.calibration.scale) * std
        return np.asarray(self.field.scale.back(mean + spread * E.T))

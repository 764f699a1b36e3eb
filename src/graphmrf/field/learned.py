r"""Learned effects: out-of-fold predictions of a regressor as one more column of the field.

The labels are divided into folds that imitate the holes. The prediction at a labelled node comes from the regressor
fitted without its fold, that at any other node is the mean over the regressors of all folds; so the column is as wrong
at labels as it is at the nodes to predict, and the evidence finds how much it counts. The regressor sees own features,
the means of neighbours and of second neighbours, degrees, and labels of neighbours and of second neighbours in other
folds, these not for other graphs. Of counts, shares and classes a regressor that is passed is fitted to latent values.

Boosted trees are the default, on trial: with :math:`f` the predictions of the field and :math:`c` those of the trees
without a fold, trees stay if :math:`f + w (c - f)`, with `w` fitted to the other folds, has smaller squared errors than
:math:`f` by more than the standard error of the difference. Of counts, shares and classes the errors are those of
working observations (see `observations`), weighted by their precision, and trees have the loss of the likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

from graphmrf.field.features import order_by_content
from graphmrf.field.likelihoods import Binomial
from graphmrf.field.observations import Observations, Responses
from graphmrf.field.space import NOISE
from graphmrf.graph import Graph
from graphmrf.selection import distance_matched_folds
from graphmrf.text import minus_signs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphmrf._typing import Floats, Ints
    from graphmrf.field.features import Design
    from graphmrf.field.posterior import Posterior

BOOSTED_TREES = "auto"
"""Boosted trees, where held-out labels show that they help."""

_FOLDS = 5

_LEAF = 20
"""Least labels of a leaf, scikit-learn's default."""

_STOPPING = 0.1
"""Part of the labels that decide when boosting stops."""

_BINS = 255
"""Most bins of a column, scikit-learn's default."""

LEAST_LABELS = int(np.ceil(2 * _LEAF / (1.0 - _STOPPING) / (1.0 - 1.0 / _FOLDS)))
"""Labels below which no tree of any fold has a split."""


_SHAPE = {"learning_rate": 0.05, "max_leaf_nodes": 15, "min_samples_leaf": _LEAF}
_STOP = {"early_stopping": True, "max_iter": 500, "n_iter_no_change": 20, "validation_fraction": _STOPPING}


def boosted_trees(seed: int, loss: str = "squared_error") -> HistGradientBoostingRegressor:
    """Return the regressor on trial: small trees, as many as held-out labels ask for."""
    return HistGradientBoostingRegressor(loss=loss, **_SHAPE, **_STOP, random_state=seed)


@dataclass(frozen=True, eq=False)
class Trees:
    """Boosted trees of the loss of a likelihood, which predict latent values.

    Inputs and labels are rounded to single precision, so that rounding errors, which differ with the units of data,
    move no split.

    Attributes
    ----------
    labels : Observations or Responses
        What they were fitted to.
    edges : tuple of arrays
        For every column of the inputs the ends of its bins, see `_bin_edges`.
    trees : regressor or classifier, or None
        Predicts rates, probabilities or values from bins; None where all labels are alike, which are pooled.
    """

    labels: Observations | Responses
    edges: tuple[Floats, ...]
    trees: Any

    @classmethod
    def fit(cls, labels: Observations | Responses, inputs: Floats, seed: int) -> Trees:
        """Return trees of numbers, counts over exposure, successes among trials, or values with errors."""
        edges = tuple(_bin_edges(column) for column in _rounded(inputs).T)
        return cls(labels, edges, cls._trees(labels, _binned(inputs, edges), seed))

    @staticmethod
    def _trees(labels: Observations | Responses, bins: Ints, seed: int) -> Any:
        if isinstance(labels, Observations):
            weights = _rounded(labels.weights)
            return boosted_trees(seed).fit(bins, _rounded(labels.z), sample_weight=weights)
        totals, sizes = labels.likelihood.total(labels.place, labels.y, labels.size)
        values = totals / sizes if labels.likelihood.is_whole else totals
        if np.ptp(values) == 0:
            return None
        if not labels.likelihood.is_whole:
            return boosted_trees(seed).fit(bins, values, sample_weight=sizes**-2.0)
        if not isinstance(labels.likelihood, Binomial):
            weights = sizes * labels.counts
            return boosted_trees(seed, "poisson").fit(bins, values, sample_weight=weights)
        trees = HistGradientBoostingClassifier(**_SHAPE, **_STOP, random_state=seed)
        sides, outcomes = np.vstack([bins, bins]), np.repeat([1, 0], sizes.size)
        counts = np.tile(labels.counts, 2) * np.concatenate([totals, sizes - totals])
        return trees.fit(sides[counts > 0], outcomes[counts > 0], sample_weight=counts[counts > 0])

    def predict(self, inputs: Floats) -> Floats:
        """Return latent values."""
        labels, bins = self.labels, _binned(inputs, self.edges)
        if isinstance(labels, Observations):
            return np.asarray(self.trees.predict(bins))
        if self.trees is None:
            eta = np.full(len(bins), labels.likelihood.pooled(labels.y, labels.size))
        elif isinstance(self.trees, HistGradientBoostingClassifier):
            eta = self.trees.decision_function(bins)
        else:
            eta = self.trees.predict(bins)
            eta = np.log(np.maximum(eta, np.finfo(float).tiny)) if labels.likelihood.is_whole else eta
        return np.asarray((eta - labels.origin) / labels.unit)


def _bin_edges(column: Floats) -> Floats:
    """Return what separates the bins of a column: all its values, or groups of about the same number of labels.

    scikit-learn takes ten times as long for quantiles of weighted labels as for the trees; of bins it takes none.
    """
    values, counts = np.unique(column, return_counts=True)
    between = 0.5 * (values[1:] + values[:-1])
    if between.size < _BINS:
        return between
    below = np.cumsum(counts)[:-1] / column.size
    return between[np.unique(np.searchsorted(below[:-1], np.arange(1, _BINS) / _BINS))]


def _binned(inputs: Floats, edges: Sequence[Floats]) -> Ints:
    """Return the bin of every value."""
    columns = zip(edges, _rounded(inputs).T, strict=True)
    return np.column_stack([np.searchsorted(ends, column) for ends, column in columns])


def _rounded(values: Floats) -> Floats:
    return np.asarray(values, dtype=np.float32).astype(np.float64)


def _trained(learner: Any, labels: Observations | Responses, inputs: Floats, seed: int) -> Any:
    """Return a learner fitted to labels, which predicts latent values."""
    if learner == BOOSTED_TREES:
        return Trees.fit(labels, inputs, seed)
    return clone(learner).fit(inputs, _latent(labels))


@dataclass(frozen=True, eq=False)
class LearnedEffects:
    """The regressors of all folds, and the scale of their predictions.

    Attributes
    ----------
    regressors : tuple of regressor
        One for each fold, fitted without it.
    centre, spread : float
        Mean and standard deviation of the out-of-fold predictions at the labels.
    folds : array of shape (m,)
        Fold of every label.
    """

    regressors: tuple[Any, ...]
    centre: float
    spread: float
    folds: Ints

    def __call__(self, design: Design) -> Floats:
        """Return the mean prediction at all nodes of another graph, standardised, shape (n, 1)."""
        found = np.mean([each.predict(design.learnable) for each in self.regressors], axis=0)
        return np.asarray(((found - self.centre) / self.spread)[:, None])

    def raw(self, column: Floats) -> Floats:
        """Return predictions in the units of the labels."""
        return np.asarray(self.centre + self.spread * column)


def with_learned(
    design: Design, observations: Observations | Responses, learner: Any, seed: int, *, transfers: bool = False
) -> Design:
    """Return a design with the column of a learner, cross-fitted to labels.

    Parameters
    ----------
    design : Design
        Features of all nodes.
    observations : Observations or Responses
        Standardised labels, or others; of these trees have the loss of their likelihood.
    learner : regressor of scikit-learn, or "auto"
        It is cloned; "auto" are boosted trees, of weighted labels.
    seed : int
        Seed of the folds.
    transfers : bool
        Whether the learner is for other graphs, where neighbours have no labels.
    """
    inputs, graph = design.learnable, design.graph
    order = order_by_content(graph, np.hstack([design.own, design.levels]))
    given = np.argsort(np.argsort(order)[observations.nodes], kind="stable")
    observations = observations.part(given)  # the same folds in any order of the nodes
    nodes, known = observations.nodes, np.zeros(order.size, dtype=np.bool_)
    known[nodes] = True
    ordered = Graph(graph.adjacency[order][:, order])
    by_node = np.empty(known.size, dtype=np.int64)
    by_node[order[known[order]]] = distance_matched_folds(ordered, known[order], _FOLDS, random_state=seed).folds
    folds, held_out = by_node[nodes], np.empty(nodes.size)
    predicted: list[Floats] = []
    fitted: list[Any] = []
    with threadpool_limits(limits=1, user_api="openmp"):  # its threads overwrite each other's warning filters
        for own in (folds == fold for fold in np.unique(folds)):
            others = observations.part(~own)
            around = [] if transfers else [label_means(graph, others.nodes, _rounded(_latent(others)))]
            seen = np.hstack([inputs, *around])
            fitted.append(_trained(learner, others, seen[others.nodes], seed))
            predicted.append(fitted[-1].predict(seen))
            held_out[own] = predicted[-1][nodes[own]]
    varies = np.ptp(held_out) > 1e-9 * np.abs(held_out).max()
    centre, spread = float(held_out.mean()), float(held_out.std()) if varies else 1.0
    column = np.mean(predicted, axis=0)
    column[nodes] = held_out
    effects = LearnedEffects(tuple(fitted), centre, spread, folds[np.argsort(given)])
    return replace(design, learner=effects, learned=((column - centre) / spread)[:, None])


def _latent(labels: Observations | Responses) -> Floats:
    """Return labels as latent values."""
    if isinstance(labels, Observations):
        return labels.z
    totals, sizes = labels.likelihood.total(labels.place, labels.y, labels.size)
    return np.asarray((labels.likelihood.start(totals, sizes) - labels.origin) / labels.unit)


def label_means(graph: Graph, nodes: Ints, values: Floats) -> Floats:
    """Return means of the labels of other nodes around every node, shape (n, 3).

    The mean over labelled neighbours and 0, as if one neighbour more had it; the number of labelled neighbours, by
    weight; and the mean over second neighbours, which of nodes with the same neighbours are all of them.

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> star = Graph.from_edges([0, 0, 0], [1, 2, 3])
    >>> label_means(star, np.array([1, 2]), np.array([4.0, 6.0])).round(2)
    array([[3.33, 2.  , 0.  ],
           [0.  , 0.  , 1.5 ],
           [0.  , 0.  , 1.  ],
           [0.  , 0.  , 2.  ]])
    """
    A: Any = sparse.csr_array(graph.adjacency)
    counts = np.maximum(np.diff(A.indptr), 1)
    P = sparse.diags_array(1.0 / np.where(graph.isolated, 1.0, graph.degrees)) @ A
    returns = np.asarray(P.multiply(P.T).sum(axis=1)).ravel()
    here = np.zeros((graph.n_nodes, 2))
    here[nodes] = np.column_stack([values, np.ones(nodes.size)])
    first = np.asarray(P @ here)
    second = P @ first - returns[:, None] * here
    near, far = (each[:, 0] / (each[:, 1] + 1.0 / counts) for each in (first, second))
    return np.column_stack([near, first[:, 1] * counts, far])


@dataclass(frozen=True)
class Trial:
    """Share of the variance of held-out labels that is predicted by the field, and by the field with a learner.

    `gain` is their difference, and `error` its standard error.
    """

    field: float
    gain: float
    error: float

    @property
    def helps(self) -> bool:
        """Whether the gain exceeds its standard error."""
        return self.gain > self.error

    @property
    def note(self) -> str:
        """The decision in a sentence."""
        by = f"they change R² at held-out labels by {minus_signs(f'{self.gain:+.3f}')} ± {self.error:.3f}"
        if self.helps:
            return f"boosted trees are among the effects: {by}"
        return f"boosted trees were tried and left out, as they do not clearly help: {by}"


def tried(posteriors: Sequence[Posterior], designs: Sequence[Design]) -> Trial:
    """Return what the columns of designs add to the predictions of fields that were fitted without them.

    Of several classes the means over them: their labels are at the same nodes, so that errors are those of nodes.
    """
    found = [_losses(*each) for each in zip(posteriors, designs, strict=True)]
    losses, gains = (np.mean(each, axis=0) for each in zip(*found, strict=True))
    return Trial(1.0 - float(losses.sum()), float(gains.sum()), float(gains.std() * np.sqrt(gains.size)))


def _losses(posterior: Posterior, design: Design) -> tuple[Floats, Floats]:
    """Return the squared error of the field for every label, over their total, and by how much a column reduces it."""
    given, effects = posterior.field.normal, design.learner
    assert isinstance(effects, LearnedEffects)
    column = effects.raw(design.learned[given.nodes, 0])
    field, stacked = np.empty(given.z.size), np.empty(given.z.size)
    for own in (effects.folds == fold for fold in np.unique(effects.folds)):
        others = posterior.given(given.part(~own))
        field[own] = np.sum(list(others.parts(given.nodes[own]).values()), axis=0)
    precision = 1.0 / given.variance(posterior.h[NOISE])
    error, more, weights = given.z - field, column - field, precision / precision.sum()
    for own in (effects.folds == fold for fold in np.unique(effects.folds)):
        others = (weights * more)[~own]
        share = float(np.clip(others @ error[~own] / max(others @ more[~own], 1e-300), 0.0, 1.0))
        stacked[own] = error[own] - share * more[own]
    total = float(weights @ (given.z - weights @ given.z) ** 2) or 1.0
    return weights * error**2 / total, weights * (error**2 - stacked**2) / total

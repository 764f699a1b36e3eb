"""The two solvers of the general field: exact by dense algebra, and sparse for any number of nodes and labels."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from graphmrf.field import Covariance, FieldPosterior, Scale, choose_scale, design, maximise
from graphmrf.field.markov import Markov
from graphmrf.field.matern import eigen
from graphmrf.field.sparse_columns import features_alone, with_distant
from graphmrf.field.sparse_search import SparseSearch, kernel_part
from graphmrf.field.sparse_system import Ground
from graphmrf.selection import assign_folds, search_convolution_and_residual, whiten

if TYPE_CHECKING:
    from graphmrf._typing import Floats, Ints
    from graphmrf.field import Design, Hyperparameters, Kind, Optimum
    from graphmrf.field.mixture import MixedPosterior
    from graphmrf.field.sparse_posterior import SparseHyperparameters, SparsePosterior
    from graphmrf.graph import Graph

Posterior: TypeAlias = "FieldPosterior | SparsePosterior | MixedPosterior"

_PROGRESS = logging.getLogger("graphmrf.progress")

_FOLDS = 5


@dataclass(frozen=True, eq=False)
class Solved:
    """A field given its labels.

    Attributes
    ----------
    posterior : FieldPosterior or SparsePosterior
        The standardised field.
    design : Design
        The features as the field sees them.
    scale : Scale
        From standardised values to the units of the outcome.
    log_evidence : float
        Log marginal likelihood of the standardised labels.
    evaluations : int
        Likelihoods computed.
    """

    posterior: Posterior
    design: Design
    scale: Scale
    log_evidence: float
    evaluations: int

    @property
    def h(self) -> Hyperparameters | SparseHyperparameters:
        """The hyper-parameters."""
        return self.posterior.h


@dataclass(frozen=True, eq=False)
class Question:
    """What a solver is given: a graph, features of its nodes, labels of some, and transforms to choose from.

    Attributes
    ----------
    graph : Graph
        The graph.
    X : array of shape (n, p)
        Features of all nodes.
    y : array of shape (n,)
        Outcomes, NaN where unknown.
    rows : integer array of shape (m,)
        The labelled nodes.
    kinds : tuple of str
        Transforms of the outcome.
    seed : int
        Seed of everything random.
    complete : bool
        Whether no feature had to be filled in.
    """

    graph: Graph
    X: Floats
    y: Floats
    rows: Ints
    kinds: tuple[Kind, ...]
    seed: int
    complete: bool = True

    @property
    def labels(self) -> Floats:
        """The labels."""
        return self.y[self.rows]


def solve_exactly(asked: Question) -> Solved:
    """Fit by dense algebra on the labelled nodes; where the paper's own model wins, features tell it, too."""
    made = design(asked.graph, asked.X)
    covariance = Covariance(made, eigen(asked.graph), asked.rows)
    scale = choose_scale(covariance, asked.labels, asked.kinds, seed=asked.seed)
    found = maximise(covariance, scale.z, seed=asked.seed)
    posterior, log_evidence = _told_by_features(asked, covariance, scale, found) or (
        FieldPosterior(covariance, found.h, scale.z),
        found.log_evidence,
    )
    return Solved(posterior, made, scale, log_evidence, found.evaluations)


def _told_by_features(
    asked: Question, covariance: Covariance, scale: Scale, found: Optimum
) -> tuple[FieldPosterior, float] | None:
    """Return the paper's own model with parameters of labels and features together, where that model won."""
    if found.h.even or not asked.complete or scale.power is not None or scale.is_constant:
        return None
    made = covariance.design
    X, y = asked.X[:, made.kept] / made.scales[0], asked.labels / scale.unit
    return Markov(asked.graph, covariance, X, y).posterior(found.h.omega)


def solve_sparsely(asked: Question) -> Solved:
    """Fit by block solves over the graph; of what needs dense algebra a part of the labels decides."""
    plain, part = design(asked.graph, asked.X), kernel_part(asked.rows.size, asked.seed)
    alone = features_alone(plain, asked.rows[part])
    scale = Scale(asked.labels, choose_scale(alone, asked.labels[part], asked.kinds, seed=asked.seed).power)
    alpha = _level(asked, scale)
    made = with_distant(asked.graph, plain, alpha)
    found = SparseSearch(Ground(asked.graph, asked.rows, asked.seed), made, scale.z, alpha).run()
    return Solved(found.posterior, made, scale, found.log_evidence, found.evaluations)


def _level(asked: Question, scale: Scale) -> float:
    """Return the level that cross-validation chooses for linear graph convolution with residual propagation."""
    _PROGRESS.info("level of smoothing by cross-validation")
    y = asked.y.copy()
    y[asked.rows] = scale.z
    folds = assign_folds(asked.rows.size, _FOLDS, seed=asked.seed)
    return search_convolution_and_residual(asked.graph, whiten(asked.X, centred=True), y, folds).alpha

r"""Out-of-fold predictions, and the check of intervals by them.

Every labelled node is predicted by a fit without the labels of its fold. Estimators have this as a method
``out_of_fold(graph, X, y, folds)``; ``keeps_labels`` says whether their ``predict`` returns the known outcome of a
labelled node (False where there is no such attribute).

Where holes are random the noise scale already comes from held-out labels, and there is nothing to check. Where folds
are regions (see `selection.distance_matched_folds`), each label is predicted by a fit without its region. With z its
error in standard deviations and c those of a 90 % interval, intervals of nodes at the same distance from labels are
widened by

.. math:: \max(1, z_{90 \%} / c),

with the quantile of held-out labels at this distance (split conformal prediction); they are never narrowed. Quantiles
from other folds show whether that is enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from sklearn.base import clone

from graphmrf.caching import cached_property
from graphmrf.estimators.error_bars import interval_width
from graphmrf.estimators.inputs import read_outcome
from graphmrf.selection import own_fold, steps_to_label

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.estimators.inputs import Outcome
    from graphmrf.graph import Graph
    from graphmrf.selection import MatchedFolds

LEVEL = 0.9  # probability of the intervals that are checked
_ENOUGH = 36  # labels in a group of distances: a coverage of 90 % then has a standard error of 5 %


class NodeRegressor(Protocol):
    """A predictor that uses the graph and whose residuals can be propagated.

    One that is linear in the labels may give ``directions_``, columns (n, k) that span its fit and are orthonormal over
    the labelled nodes (see `LeastSquares.directions`), from which the uncertainty of its coefficients follows.
    """

    n_coefficients_: int
    """Degrees of freedom spent by the fit, for the noise scale."""

    def fit(self, graph: Graph, X: Any, y: Any) -> Self:
        """Learn from the labelled nodes."""
        ...

    def predict(self) -> Floats:
        """Return the prediction of every node; at the labelled ones that of the model, not the label."""
        ...

    def fixed(self) -> NodeRegressor:
        """Return an unfitted copy whose hyper-parameters are those that fit chose."""
        ...


def out_of_fold(fitted: Any, graph: Graph, X: Any, y: Any, folds: Ints) -> Floats:
    """Return the out-of-fold prediction (n_labelled,) of each labelled node, in the estimator's own way if it has one.

    `graph`, `X`, `y` (n,): what it was fitted on. `folds` (n_labelled,): fold of every labelled node, in node order.
    """
    if hasattr(fitted, "out_of_fold"):
        predictions: Floats = fitted.out_of_fold(graph, X, y, folds)
        return predictions
    return own_fold(refit_folds(fitted, graph, X, read_outcome(y, graph.n_nodes), folds), folds)


def refit_folds(fitted: Any, graph: Graph, X: Any, outcome: Outcome, folds: Ints) -> Floats:
    """Return (n_labelled, n_folds): predictions at the labelled nodes of the fit without each fold.

    An estimator may have a faster way, as a method ``refit_folds``.
    """
    if hasattr(fitted, "refit_folds"):
        predictions: Floats = fitted.refit_folds(graph, X, outcome, folds)
        return predictions
    return np.column_stack([found.predict()[outcome.known] for _, found in refits(fitted, graph, X, outcome, folds)])


def refits(fitted: Any, graph: Graph, X: Any, outcome: Outcome, folds: Ints) -> Iterator[tuple[Bools, Any]]:
    """Yield each fold (n_labelled,) and the fit without it: with the hyper-parameters chosen, if it has ``fixed``."""
    unfitted = fitted.fixed() if hasattr(fitted, "fixed") else clone(fitted)
    labelled = np.flatnonzero(outcome.known)
    for fold in range(int(folds.max()) + 1):
        own, hidden = folds == fold, outcome.y.copy()
        hidden[labelled[own]] = np.nan
        yield own, clone(unfitted).fit(graph, X, hidden)


def has_std_out_of_fold(fitted: Any) -> bool:
    """Whether an estimator's own ``out_of_fold`` can return standard deviations."""
    own = getattr(fitted, "out_of_fold", None)
    return own is not None and "return_std" in signature(own).parameters


@dataclass(frozen=True, eq=False)
class IntervalCheck:
    """Coverage of the intervals of a fit at held-out labels, and the factors that correct it."""

    fitted: Any  # the fit: its ``model_std_`` are the standard deviations (n,) to check
    # graph, X, outcome: what it was fitted on
    graph: Graph
    X: Any
    outcome: Outcome

    @cached_property
    def folds(self) -> MatchedFolds:
        """The folds of the check, those of the search."""
        random_state, n_folds = getattr(self.fitted, "random_state", 0), getattr(self.fitted, "cv", 5)
        return self.outcome.matched_folds(self.graph, n_folds, random_state)

    @cached_property
    def applies(self) -> bool:
        """Whether holes are in regions, and error bars finite."""
        return self.outcome.n_labelled > 1 and not self.folds.is_random and bool(np.isfinite(self.scores).all())

    @cached_property
    def predictions(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation (n_labelled,) at every label by the fit without its fold."""
        known, folds = self.outcome.known, self.folds.folds
        mean, std = np.empty(folds.size), np.empty(folds.size)
        for own, found in refits(self.fitted, self.graph, self.X, self.outcome, folds):
            mean[own], std[own] = found.predict()[known][own], found.model_std_[known][own]
        return mean, std

    @cached_property
    def scores(self) -> Floats:
        """Errors (n_labelled,) in half-widths of an interval: those up to 1 are covered."""
        mean, std = self.predictions
        width = interval_width(LEVEL, self.fitted.dof_) * std
        error = np.abs(self.outcome.y[self.outcome.known] - mean)
        return np.asarray(np.divide(error, width, out=np.where(error > 0, np.inf, 0.0), where=width > 0))

    @property
    def coverage(self) -> float:
        """Share of held-out labels inside their interval, at the distances of the nodes to predict."""
        return float(np.average(self.scores <= 1.0, weights=self.folds.weights))

    @cached_property
    def _edges(self) -> Floats:
        return self.folds.group_edges(_ENOUGH)

    @cached_property
    def _groups(self) -> Ints:
        """Group of distances (n_labelled,) of each label."""
        return np.searchsorted(self._edges, self.folds.distances, side="right")

    def _factors(self, used: Bools) -> Floats:
        """Return the factor of each group of distances by some of the labels."""
        return np.array([_widening(self.scores[used & (self._groups == k)]) for k in range(self._edges.size + 1)])

    @cached_property
    def factors(self) -> Floats:
        """Factor (n,) of the standard deviation of every node; 1 where there is nothing to correct."""
        if not self.applies:
            return np.ones(self.graph.n_nodes)
        steps = steps_to_label(self.graph, self.outcome.known)
        by_group = self._factors(np.ones(self.scores.size, dtype=bool))
        return by_group[np.searchsorted(self._edges, steps, side="right")]

    @cached_property
    def widened_scores(self) -> Floats:
        """The scores with intervals widened by the factors of other folds."""
        found = self.scores.copy()
        for fold in range(self.folds.n_folds):
            own = self.folds.folds == fold
            found[own] /= self._factors(~own)[self._groups[own]]
        return found

    def covered(self, level: float) -> Bools:
        """Return whether each label (n_labelled,) lies inside its out-of-fold interval, widened by other folds."""
        scores = self.widened_scores if self.applies else self.scores
        width = interval_width(level, self.fitted.dof_) / interval_width(LEVEL, self.fitted.dof_)
        return np.asarray(scores <= width)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what was found and done."""
        if not self.applies:
            return ()
        widest, notes = float(self.factors.max()), []
        percent, measured = f"{100 * LEVEL:.0f} %", f"{100 * self.coverage:.0f} %"
        if widest > 1.0:
            notes.append(
                f"in held-out regions the model's {percent} intervals cover only {measured} of the labels; intervals "
                f"are widened by a factor of up to {widest:.2g}"
            )
        covered, error = self._widened_coverage
        if covered + 2.0 * error < LEVEL:
            notes.append(f"widened intervals still cover only {100 * covered:.0f} % there, so expect them to be narrow")
        return tuple(notes)

    @property
    def _widened_coverage(self) -> tuple[float, float]:
        """Coverage of widened intervals, and its standard error, labels of a region being one observation."""
        assert self.folds.regions is not None
        weights, inside = self.folds.weights, self.widened_scores <= 1.0
        covered = float(np.average(inside, weights=weights))
        sums = np.bincount(self.folds.regions, weights=weights * (inside - covered))
        return covered, float(np.sqrt(np.sum(sums**2)) / weights.sum())


def _widening(scores: Floats) -> float:
    """Return the factor that makes intervals cover: the quantile of split conformal prediction, at least 1."""
    rank = int(np.ceil((scores.size + 1) * LEVEL))
    return max(1.0, float(np.sort(scores)[min(rank, scores.size) - 1])) if scores.size else 1.0

r"""Check of the intervals of linear methods on held-out labels that lie as far from others as the nodes to predict.

Where holes are random the noise scale already comes from labels that were left out, and nothing is to be checked. Where
folds are regions (see `selection.distance_matched_folds`), every label is predicted by a fit without its region. With z
its error in standard deviations and c those of a 90 % interval, intervals of nodes at the same distance from labels are
widened by

.. math:: \max(1, z_{90 \%} / c),

the quantile being that of held-out labels at this distance (split conformal prediction); they are never narrowed.
Whether that is enough is checked by quantiles from other folds.
"""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from graphmrf.estimators.error_bars import interval_width
from graphmrf.kept import cached_property
from graphmrf.selection import steps_to_label

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.estimators.inputs import Outcome
    from graphmrf.graph import Graph
    from graphmrf.selection import MatchedFolds

LEVEL = 0.9
"""Probability of the intervals that are checked."""

_ENOUGH = 36
"""Labels of a group of distances: the share that is covered, if 90 %, then has a standard error of 5 %."""


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
        return refitted_with_std(self.fitted, self.graph, self.X, self.outcome, self.folds.folds)

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

    def _factors(self, used: Bools) -> Floats:
        """Return the factor of each group of distances by some of the labels."""
        group = np.searchsorted(self._edges, self.folds.distances, side="right")
        return np.array([_widening(self.scores[used & (group == each)]) for each in range(self._edges.size + 1)])

    @cached_property
    def factors(self) -> Floats:
        """Factor (n,) of the standard deviation of every node; 1 where nothing is to be corrected."""
        if not self.applies:
            return np.ones(self.graph.n_nodes)
        by_group = self._factors(np.ones(self.scores.size, dtype=bool))
        steps = steps_to_label(self.graph, self.outcome.known)
        return by_group[np.searchsorted(self._edges, steps, side="right")]

    @cached_property
    def widened_scores(self) -> Floats:
        """The scores once intervals are widened by what labels of other folds show."""
        group, found = np.searchsorted(self._edges, self.folds.distances, side="right"), self.scores.copy()
        for fold in range(self.folds.n_folds):
            own = self.folds.folds == fold
            found[own] /= self._factors(~own)[group[own]]
        return found

    def covered(self, level: float) -> Bools:
        """Return whether each label (n_labelled,) lies inside its out-of-fold interval, widened as other folds show."""
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
                f"{percent} intervals of the model cover {measured} of the labels of held-out regions, so they are "
                f"widened, by a factor of up to {widest:.2g}"
            )
        covered, error = self._widened_coverage
        if covered + 2.0 * error < LEVEL:
            notes.append(f"even so, they cover {100 * covered:.0f} % there: expect intervals to be too narrow")
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
    """Return the factor that makes intervals cover: the quantile of split conformal prediction, at least 1.

    Examples
    --------
    >>> _widening(np.linspace(0.1, 2.0, 20)), _widening(np.linspace(0.01, 0.5, 50)), _widening(np.empty(0))
    (1.9, 1.0, 1.0)
    """
    rank = int(np.ceil((scores.size + 1) * LEVEL))
    return max(1.0, float(np.sort(scores)[min(rank, scores.size) - 1])) if scores.size else 1.0


def has_std_out_of_fold(fitted: Any) -> bool:
    """Whether an estimator's own ``out_of_fold`` can return standard deviations."""
    own = getattr(fitted, "out_of_fold", None)
    return own is not None and "return_std" in signature(own).parameters


def predicted_with_std(fitted: Any, graph: Graph, X: Any, outcome: Outcome, folds: Ints) -> tuple[Floats, Floats]:
    """Return out-of-fold means and standard deviations (n_labelled,), by the estimator's own way where it has one."""
    if has_std_out_of_fold(fitted):
        mean, std = fitted.out_of_fold(graph, X, outcome.y, folds, return_std=True)
        return np.asarray(mean), np.asarray(std)
    return refitted_with_std(fitted, graph, X, outcome, folds)


def refitted_with_std(fitted: Any, graph: Graph, X: Any, outcome: Outcome, folds: Ints) -> tuple[Floats, Floats]:
    """Return out-of-fold means and standard deviations (n_labelled,) by plain refits, hyper-parameters retained."""
    unfitted = fitted.fixed() if hasattr(fitted, "fixed") else clone(fitted)
    labelled = np.flatnonzero(outcome.known)
    mean, std = np.empty(labelled.size), np.empty(labelled.size)
    for fold in range(int(folds.max()) + 1):
        own, hidden = folds == fold, outcome.y.copy()
        hidden[labelled[own]] = np.nan
        refitted = clone(unfitted).fit(graph, X, hidden)
        mean[own], std[own] = refitted.predict()[labelled[own]], refitted.model_std_[labelled[own]]
    return mean, std

"""The weight of steps in time on a panel, by cross-validation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from graphmrf.errors import InvalidInputError
from graphmrf.linalg.limits import LIMITS
from graphmrf.linalg.precision import NodePrecision
from graphmrf.selection.folds import distance_matched_folds
from graphmrf.selection.least_squares import SHRINKAGE, whiten
from graphmrf.selection.search import fold_fits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.graph import Graph

TIME_WEIGHTS = tuple(4.0**k for k in range(-2, 6))
"""The grid of the search: between the limits of no steps in time and of one value for all times."""

_FIELDS = tuple((omega, ratio) for omega in (10.0, 100.0, 1000.0) for ratio in (1.0, 30.0))
"""Strengths of the edges and precisions of a label tried at each weight, from rough to smooth and noisy to exact."""

_TOLERANCE = 1e-3
"""Relative residual of the solves, far below the noise of an error that is compared."""


def search_time_weight(  # noqa: PLR0913 - one parameter for each option
    panel: Graph,
    X: Any,
    y: Any,
    *,
    exposure: Any = None,
    weights: Sequence[float] = TIME_WEIGHTS,
    cv: int = 5,
    random_state: int = 0,
) -> Graph:
    """Return a panel with the weight of its steps in time that predicts held-out labels best.

    They are predicted by linear regression on their features and the times, and a smooth field of the residuals of the
    other labels, with noise: the best of a few smoothness levels and noise levels at each weight.

    Parameters
    ----------
    panel : Graph
        A graph of `Graph.over_time`.
    X : array of shape (n, p), or None
        Features; missing ones count as the mean of their column.
    y : array of shape (n,)
        Outcomes, NaN where they are to be predicted, in the order of the nodes of the panel.
    exposure : array of shape (n,), optional
        Exposure of counts, which are compared as the logarithms of the rates ``(y + 0.5) / exposure``.
    weights : sequence of floats > 0
        Weights to try.
    cv, random_state : int
        Folds, which imitate the holes, and their seed. Where the last times have no labels, as many times before them
        are held out instead.

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> panel = Graph.from_edges([0, 1], [1, 2]).over_time(range(8))
    >>> y = np.repeat([0.0, 5.0, 1.0], 8)
    >>> y[::3] = np.nan
    >>> search_time_weight(panel, None, y).product.weight
    1024.0
    """
    if panel.product is None:
        raise InvalidInputError("a weight of time needs a panel, got a graph without times; use graph.over_time(times)")
    product, y = panel.product, _numbers(y, exposure)
    labelled = np.flatnonzero(~np.isnan(y))
    folds, importance = _held_out(panel, ~np.isnan(y), cv, random_state)
    times = np.tile(product.walk, (product.space.n_nodes, 1))
    features = _design(times if X is None else np.hstack([np.asarray(X, dtype=np.float64), times]))[labelled]
    base = fold_fits(features, y[labelled], folds, intercept=True, noise=0.0, shrinkage=SHRINKAGE)
    over_time = product.space.over_time
    tried: list[Graph] = [over_time(product.times, weight=each, ring=product.ring) for each in weights]
    errors = [min(_errors(graph, y, base, (folds, importance))) for graph in tried]
    best = int(np.argmin(errors))
    return tried[best].with_ids(panel.ids)


def _numbers(y: Any, exposure: Any) -> Floats:
    """Return outcomes as they are compared: counts as log rates."""
    values = np.asarray(y, dtype=np.float64)
    if exposure is None:
        return values
    people = np.asarray(exposure, dtype=np.float64)
    wrong = ~np.isnan(values) & ~((values >= 0) & (people > 0))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InvalidInputError(
            "counts must be at least 0 and their exposure above 0, got "
            f"{values[at]:g} with an exposure of {people[at]:g} at node {at}; leave out exposure for other outcomes"
        )
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(np.isnan(values), np.nan, np.log((values + 0.5) / people))


def _held_out(panel: Graph, known: Bools, cv: int, random_state: int) -> tuple[Ints, Floats]:
    """Return the fold of every label, and its weight in the error: folds that imitate the holes.

    Where the last times have no label, as many labelled times before them are held out: a forecast of the past.
    """
    assert panel.product is not None
    by_time = known.reshape(-1, panel.product.times.size)
    times = np.flatnonzero(by_time.any(axis=0))
    ahead = by_time.shape[1] - 1 - times.max(initial=-1)
    if 0 < ahead < times.size:
        late = np.nonzero(by_time)[1] >= times[-ahead]
        return late.astype(np.int64), late.astype(np.float64)
    matched = distance_matched_folds(panel, known, cv, random_state=random_state)
    return matched.folds, matched.weights


def _errors(panel: Graph, y: Floats, base: Floats, held_out: tuple[Ints, Floats]) -> list[float]:
    """Return the weighted squared error on held-out labels of each field in `_FIELDS`, fitted without each fold."""
    (folds, importance), limits = held_out, replace(LIMITS, dense_precision=0)
    labelled = np.flatnonzero(~np.isnan(y))
    sums = np.zeros(len(_FIELDS))
    for fold in np.unique(folds[importance > 0]):
        own = folds == fold
        left = np.zeros((y.size, 1))
        left[labelled, 0] = np.where(own, 0.0, y[labelled] - base[:, fold])
        known = np.zeros(y.size)
        known[labelled[~own]] = 1.0
        truth, weights = (y[labelled] - base[:, fold])[own], importance[own]
        for k, (omega, ratio) in enumerate(_FIELDS):
            precision = NodePrecision(panel, omega, ratio * known, limits)
            smooth = precision.solve(ratio * left, tolerance=_TOLERANCE)[labelled[own], 0]
            sums[k] += float(weights @ (truth - smooth) ** 2)
    return [float(total) for total in sums]


def _design(values: Floats) -> Floats:
    """Return uncorrelated features without missing cells."""
    present = ~np.isnan(values)
    means = np.where(present, values, 0.0).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
    return whiten(np.where(present, values, means), centred=True).Z

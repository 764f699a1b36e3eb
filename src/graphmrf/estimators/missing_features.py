"""Missing cells of the features, filled by the joint Gaussian field of all features."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from graphmrf.errors import InvalidInputError
from graphmrf.field import FieldPosterior, design
from graphmrf.field.mixture import MixedPosterior
from graphmrf.model.conditional import condition
from graphmrf.model.fit import fit_for_imputation

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats
    from graphmrf.estimators.field_solvers import Posterior as FieldSolution
    from graphmrf.estimators.inputs import Table
    from graphmrf.graph import Graph
    from graphmrf.model import AttributePosterior

NEGLIGIBLE = 0.01
"""Share of missing cells up to which they count as known once they are filled."""

PAIRS = 5
"""Pairs of draws of the missing cells beyond that."""

_LARGEST = 2**26
"""Entries of the largest table: patterns of missing cells by squared number of columns."""


@dataclass(frozen=True, eq=False)
class Filled:
    """Features without holes.

    Attributes
    ----------
    table : Table
        Missing cells at their expected value given all others.
    posterior : AttributePosterior or None
        The columns that vary, given all cells that are known; None when few cells are missing, which then count as
        known.
    varies : bool array of shape (p,)
        Those columns.
    seed : int
        Seed of the draws.
    """

    table: Table
    posterior: AttributePosterior | None
    varies: Bools
    seed: int

    @cached_property
    def draws(self) -> Floats:
        """Draws of the features, in pairs opposite each other about `table`, shape (k, n, p); k = 0 when few miss."""
        if self.posterior is None:
            return np.empty((0, *self.table.X.shape))
        deviations = self.posterior.sample(PAIRS, self.seed) - self.posterior.mean
        draws = np.tile(self.table.X, (2 * PAIRS, 1, 1))
        draws[:, :, self.varies] += np.concatenate([deviations, -deviations])
        return draws

    def mixed(self, graph: Graph, field: FieldSolution) -> FieldSolution:
        """Return a field that was fitted to `table`: averaged over the draws where there are any, if it is exact."""
        if self.posterior is None or not isinstance(field, FieldPosterior):
            return field
        return MixedPosterior(field, tuple(design(graph, X) for X in self.draws))


def fill_features(graph: Graph, table: Table, *, seed: int = 0) -> Filled:
    """Return features whose missing cells are filled by a coupled Gaussian field of all features.

    A cell is filled by its expectation given the other features of its node, and the features of the nodes around. No
    label is read, so that what labels say of a prediction stays honest. A column that is the same wherever it is
    known is the same everywhere.

    Parameters
    ----------
    graph : Graph
        The graph.
    table : Table
        Features, NaN where missing.
    seed : int
        Seed of the draws.

    Raises
    ------
    InvalidInputError
        If no cell of a column is known, or there are too many columns for the joint field.

    Examples
    --------
    >>> from graphmrf.estimators.inputs import read_features
    >>> from graphmrf.graph import Graph
    >>> path = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4])
    >>> X = np.array([[1.0, 1.1], [2.0, 2.2], [3.0, np.nan], [4.0, 4.4], [5.0, 5.5]])
    >>> filled = fill_features(path, read_features(X, 5, "GraphRegressor", holes=True))
    >>> filled.table.X[2].round(1), filled.draws.shape
    (array([3. , 3.3]), (10, 5, 2))
    """
    X, missing = table.X, np.isnan(table.X)
    if not missing.any():
        return Filled(table, None, np.ones(X.shape[1], dtype=bool), seed)
    _check(missing, table)
    varies, whole = _varies(X), np.where(missing, np.nanmean(X, axis=0), X)
    if not (missing & varies).any():
        return Filled(replace(table, X=whole), None, varies, seed)
    posterior = _posterior(graph, X[:, varies])
    whole[:, varies] = posterior.mean
    few = np.count_nonzero(missing) <= NEGLIGIBLE * X.size
    return Filled(replace(table, X=whole), None if few else posterior, varies, seed)


def _varies(X: Floats) -> Bools:
    low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    return np.asarray(high - low > 16 * np.finfo(np.float64).eps * np.maximum(np.abs(low), np.abs(high)))


def _posterior(graph: Graph, X: Floats) -> AttributePosterior:
    return condition(fit_for_imputation(graph, X, prior=float(X.shape[1])), graph, X)


def _check(missing: Bools, table: Table) -> None:
    for column in np.flatnonzero(missing.all(axis=0))[:1]:
        names = table.columns.names
        place = f"column {names[column]!r}" if names is not None else f"column {column}"
        raise InvalidInputError(f"every column of X must have a known cell, got none in {place}; drop it")
    patterns = len(np.unique(np.packbits(missing, axis=1), axis=0))
    if patterns * missing.shape[1] ** 2 > _LARGEST:
        raise InvalidInputError(
            f"missing cells of X are filled by a joint field of its columns, got {missing.shape[1]} columns and "
            f"{patterns} patterns of missing cells, more than it can take; fill them first, or drop columns"
        )

"""Missing cells of the features, filled by the joint Gaussian field of all features."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from graphmrf.errors import InvalidInputError
from graphmrf.model.joint import fit_joint

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats
    from graphmrf.estimators.inputs import Table
    from graphmrf.graph import Graph
    from graphmrf.model import Posterior

NEGLIGIBLE = 0.01
"""Share of missing cells up to which they count as known once they are filled."""

PAIRS = 5
"""Pairs of draws of the missing cells beyond that."""

_LARGEST = 2**28
"""Entries of the largest table: patterns of missing cells by squared number of columns."""


@dataclass(frozen=True, eq=False)
class Filled:
    """Features without holes.

    Attributes
    ----------
    table : Table
        Missing cells at their expected value given all others.
    draws : array of shape (k, n, p)
        Draws of the features given the cells that are not missing, in pairs opposite each other about `table`; none
        when few cells are missing.
    """

    table: Table
    draws: Floats


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
        return Filled(table, np.empty((0, *X.shape)))
    _check(missing, table)
    varies = _varies(X)
    mean = np.where(missing, np.nanmean(X, axis=0), X)
    if not (missing & varies).any():
        return Filled(replace(table, X=mean), np.empty((0, *X.shape)))
    posterior = _posterior(graph, X[:, varies])
    few = np.count_nonzero(missing) <= NEGLIGIBLE * X.size
    mean[:, varies] = posterior.mean
    draws = np.tile(mean, (0 if few else 2 * PAIRS, 1, 1))
    if not few:
        deviations = posterior.sample(PAIRS, seed) - posterior.mean
        draws[:, :, varies] += np.concatenate([deviations, -deviations])
    return Filled(replace(table, X=mean), draws)


def _varies(X: Floats) -> Bools:
    low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    return np.asarray(high - low > 16 * np.finfo(np.float64).eps * np.maximum(np.abs(low), np.abs(high)))


def _posterior(graph: Graph, X: Floats) -> Posterior:
    return fit_joint(graph, X, prior=float(X.shape[1])).condition(graph, X)


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

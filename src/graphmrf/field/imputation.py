"""Missing features by multiple imputation: their expectation, and draws from their joint Gaussian field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from graphmrf.caching import cached_property
from graphmrf.field.features import order_by_content
from graphmrf.field.search import MEMBERS
from graphmrf.graph import Graph
from graphmrf.model.conditional import condition
from graphmrf.model.fit import fit_for_imputation

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.model import AttributePosterior

PAIRS = MEMBERS // 2
"""Pairs of draws of the missing cells: a draw for every member of the average over hyper-parameters."""

MOST_PATTERNS = 2**26
"""Entries of the largest table: patterns of missing cells by squared number of columns; half a gigabyte."""


@dataclass(frozen=True, eq=False)
class Imputation:
    """Features whose missing cells are imputed.

    Attributes
    ----------
    X : array of shape (n, p)
        Missing cells at their expected value given all others.
    posterior : AttributePosterior or None
        The columns that vary, given all cells that are known; None when nothing is missing in them.
    varies : bool array of shape (p,)
        Those columns.
    seed : int
        Seed of the draws.
    order : integer array of shape (n,)
        The nodes in the order of the posterior.
    """

    X: Floats
    posterior: AttributePosterior | None
    varies: Bools
    seed: int
    order: Ints

    @cached_property
    def draws(self) -> Floats:
        """Draws of the features, in pairs opposite each other about `X`, shape (k, n, p); k = 0 when none miss."""
        if self.posterior is None:
            return np.empty((0, *self.X.shape))
        drawn = np.tile(self.X, (PAIRS, 1, 1))
        around = self.posterior.sample(PAIRS, self.seed) - self.posterior.mean
        drawn[:, self.order, np.flatnonzero(self.varies)[:, None]] += around.transpose(0, 2, 1)
        return np.concatenate([drawn, 2.0 * self.X - drawn])


def impute(graph: Graph, X: Floats, *, like: tuple[Graph, Floats] | None = None, seed: int = 0) -> Imputation:
    """Return features whose missing cells are imputed by a coupled Gaussian field of all features.

    A cell is filled by its expectation given the other features of its node, and the features of the nodes around. No
    label is read, so that what labels say of a prediction stays honest. A column that is the same wherever it is
    known is the same everywhere.

    Parameters
    ----------
    graph : Graph
        The graph.
    X : array of shape (n, p)
        Features, NaN where missing.
    like : Graph and array of shape (n', p), optional
        The graph and features that the field is fitted to, at least one cell of every column known; by default those
        to impute.
    seed : int
        Seed of the draws.

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> path = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4])
    >>> imputed = impute(path, np.array([[1.0, 1.1], [2.0, 2.2], [3.0, np.nan], [4.0, 4.4], [5.0, 5.5]]))
    >>> imputed.X[2].round(1), imputed.draws.shape
    (array([3. , 3.3]), (24, 5, 2))
    """
    missing, (fitted, known) = np.isnan(X), like or (graph, X)
    order = order_by_content(graph, X)
    if not missing.any():
        return Imputation(X, None, np.ones(X.shape[1], dtype=bool), seed, order)
    varies, whole = _varies(known), np.where(missing, np.nanmean(known, axis=0), X)
    if not (missing & varies).any():
        return Imputation(whole, None, varies, seed, order)
    mrf = fit_for_imputation(fitted, known[:, varies], prior=float(np.count_nonzero(varies)))
    posterior = condition(mrf, Graph(graph.adjacency[order][:, order]), X[order][:, varies])
    whole[np.ix_(order, varies)] = posterior.mean
    return Imputation(whole, posterior, varies, seed, order)


def _varies(X: Floats) -> Bools:
    low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    return np.asarray(high - low > 16 * np.finfo(np.float64).eps * np.maximum(np.abs(low), np.abs(high)))

"""A coupled field quickly fitted to any attributes, to fill their holes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphmrf.linalg.spectrum import density_of_states
from graphmrf.model.holes import Holes
from graphmrf.model.missing import settle
from graphmrf.model.mrf import GaussianMRF
from graphmrf.model.optimum import Plan

if TYPE_CHECKING:
    from graphmrf._typing import Floats
    from graphmrf.graph import Graph

PRIOR = 1.0
"""Nodes of white noise that count beside the data."""

_PROBED = 100_000
"""Entries that probes of their covariances cover together: two of them at least, eight at most."""

_CHANGE = 1e-3
_TOLERANCE = 1e-4
_EXACT_SPECTRUM = 1000


def fit_joint(graph: Graph, A: Floats, *, prior: float = PRIOR) -> GaussianMRF:
    """Return the coupled field for attributes with holes, to the accuracy that filling them needs.

    It is that of maximum likelihood, as ``GaussianMRF.fit(graph, A, coupled=True)``, but under a prior: `prior` nodes
    of white noise count beside those of the graph. So there may be fewer nodes than attributes, and attributes may
    be combinations of others. The fit ends when another round would change variances by less than a thousandth.

    Parameters
    ----------
    graph : Graph
        The graph.
    A : array of shape (n, q)
        Attributes, NaN where missing; every column must vary.
    prior : float
        Weight of the prior, in nodes, > 0.

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> path = Graph.from_edges([0, 1, 2], [1, 2, 3])
    >>> A = np.array([[1.0, 2.0], [2.0, 4.0], [3.0, np.nan], [4.0, 8.0]])  # the second is twice the first
    >>> round(float(fit_joint(path, A, prior=1e-3).condition(path, A).mean[2, 1]), 1)
    6.1
    """
    mean = np.nanmean(A, axis=0)
    scale = np.sqrt(np.nanmean((A - mean) ** 2, axis=0))
    n, q = A.shape
    states = density_of_states(graph, probes=None if n <= _EXACT_SPECTRUM else 16)
    plan = Plan(states, tuple(map(str, range(q))), coupled=True, mean_is_free=False, prior=prior)
    probes = int(np.clip(_PROBED // max(int(np.isnan(A).sum()), 1), 2, 8))
    point, _, _ = settle(Holes(graph, (A - mean) / scale, probes), plan, change=_CHANGE, tolerance=_TOLERANCE)
    units = np.multiply.outer(scale, scale)
    return GaussianMRF(point.H / units, C=point.C / units, mean=mean)

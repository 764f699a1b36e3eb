r"""Draws from the field, exact up to the tolerance of one block solve."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphmrf.errors import InvalidInputError
from graphmrf.linalg import smooth
from graphmrf.linalg.dense import Dense
from graphmrf.linalg.incidence import edge_noise

if TYPE_CHECKING:
    from graphmrf._typing import Floats
    from graphmrf.graph import Graph
    from graphmrf.model.mrf import GaussianMRF

_DENSE_NODES = 1000
_BATCH_BYTES = 2**29


def sample(mrf: GaussianMRF, graph: Graph, n_samples: int = 1, seed: int = 0, *, tolerance: float = 1e-8) -> Floats:
    r"""Return independent draws of the attributes of all nodes.

    The channels of the field are independent. One of strength :math:`\lambda` is drawn by perturbing and solving,

    .. math:: (I + \lambda N) f = e_1 + \sqrt{\lambda}\,B' e_2, \qquad N = B'B,

    with standard normal :math:`e_1` (nodes) and :math:`e_2` (edges): the right side has covariance
    :math:`I + \lambda N`, so `f` has the inverse of it. All channels of all draws are columns of one block solve;
    up to 1000 nodes, dense factors draw them.

    Parameters
    ----------
    mrf : GaussianMRF
        The model.
    graph : Graph
        Any graph, not only the one the model was fitted on.
    n_samples : int
        Number of draws.
    seed : int
        Seed; the same seed gives the same draws.
    tolerance : float
        Relative residual of the solve.

    Returns
    -------
    array of shape (n_samples, n, q)

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> from graphmrf.model import GaussianMRF
    >>> sample(GaussianMRF([[1.0]], [9.0], mean=[5.0]), Graph.from_edges([0], [1]), 2).shape
    (2, 2, 1)
    """
    parts, rng, q = mrf.channels, np.random.default_rng(seed), mrf.q
    draws = np.empty((check_count(n_samples), graph.n_nodes, q))
    batch = max(1, _BATCH_BYTES // (8 * q * max(graph.n_nodes, 1)))
    for first in range(0, n_samples, batch):
        part = draws[first : first + batch]
        if graph.n_nodes <= _DENSE_NODES:
            F = _factored(graph, parts.strength, len(part), rng)
        else:
            levels = np.tile(parts.alpha, len(part))
            noise = field_noise(graph, parts.strength, len(part), rng)
            F = smooth(graph, noise.reshape(graph.n_nodes, -1), levels, tolerance=tolerance).reshape(noise.shape)
        part[:] = mrf.mean + parts.combine(F.transpose(1, 0, 2))
    return draws


def field_noise(graph: Graph, strength: Floats, k: int, rng: np.random.Generator) -> Floats:
    r"""Return `k` draws of independent columns of covariance :math:`I + \lambda_j N`, shape (n, k, q)."""
    shape = (graph.n_nodes, k, strength.size)
    noise = rng.standard_normal(shape)
    noise += np.sqrt(strength) * edge_noise(graph, k * strength.size, rng).reshape(shape)
    return noise


def check_count(n_samples: int) -> int:
    """Return a number of samples >= 0."""
    if isinstance(n_samples, bool) or not isinstance(n_samples, int | np.integer) or n_samples < 0:
        raise InvalidInputError(f"n_samples must be a whole number >= 0, got {n_samples!r}")
    return int(n_samples)


def _factored(graph: Graph, strength: Floats, k: int, rng: np.random.Generator) -> Floats:
    """Draw the channels from the Cholesky factors of their precisions, shape (n, k, q)."""
    N, eye = graph.N.toarray(), np.eye(graph.n_nodes)
    columns = [Dense(eye + level * N).draw(k, rng) for level in strength]
    return np.stack(columns, axis=2)

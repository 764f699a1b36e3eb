r"""The columns of the scalable field's function of features that drifts over the graph.

Its covariance is a product, of one in features and one over the graph, so its columns are products of columns: of those
that span smooth functions of features best, and of those that span smooth functions over the graph best. For the latter
:math:`K = (I + \omega N)^{-1}` among random nodes `C`, with eigenvalues :math:`\Lambda` and eigenvectors `U`, gives
:math:`K_{\cdot C} U \Lambda^{-1/2}` (Nystrom).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphmrf.field.sparse_columns import no_basis, nonlinear_basis
from graphmrf.linalg import smooth

if TYPE_CHECKING:
    from graphmrf._typing import Floats
    from graphmrf.field.design import Design
    from graphmrf.graph import Graph

OMEGA = 1000.0
"""Smoothness of the drift."""

_LANDMARKS = 200
_FACTORS = 64
_TOLERANCE = 1e-4
_LEAST_REACH = 0.1


def local_columns(graph: Graph, made: Design, size: int, seed: int) -> Floats:
    """Return the leading columns of the function that drifts, at all nodes, shape (n, size) or less.

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> from graphmrf.field.design import design
    >>> ring = Graph.from_edges(np.arange(40), (np.arange(40) + 1) % 40)
    >>> local_columns(ring, design(ring, np.cos(np.arange(40.0))[:, None]), 10, 0).shape
    (40, 10)
    """
    features = nonlinear_basis(made, no_basis(made).lengths, _FACTORS, seed).at(made.Z)
    places = _graph_functions(graph, seed)
    sizes = np.outer(np.mean(places**2, axis=0), np.mean(features**2, axis=0))
    place, feature = np.unravel_index(np.argsort(-sizes, axis=None)[:size], sizes.shape)
    return np.asarray(places[:, place] * features[:, feature])


def _graph_functions(graph: Graph, seed: int) -> Floats:
    """Return columns that span smooth functions over the graph, of about the same size at all nodes."""
    n = graph.n_nodes
    landmarks = np.sort(np.random.default_rng(seed).permutation(n)[:_LANDMARKS])
    ones = np.zeros((n, landmarks.size))
    ones[landmarks, np.arange(landmarks.size)] = 1.0
    K = smooth(graph, ones, OMEGA / (1.0 + OMEGA), tolerance=_TOLERANCE)
    values, vectors = np.linalg.eigh(0.5 * (K[landmarks] + K[landmarks].T))
    values, vectors = values[::-1][:_FACTORS], vectors[:, ::-1][:, :_FACTORS]
    kept = values > _TOLERANCE * values[0]
    functions = K @ (vectors[:, kept] / np.sqrt(values[kept]))
    reach = np.sqrt(np.einsum("ij,ij->i", functions, functions))
    usual = float(np.median(reach[reach > 0]))  # components without a node of C have none
    return np.asarray(functions / np.maximum(reach, _LEAST_REACH * usual)[:, None])

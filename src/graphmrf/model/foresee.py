r"""Accuracy foreseen from the model alone, and the labels that would raise it most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from graphmrf.errors import InvalidInputError
from graphmrf.linalg import multiply, smooth_grid
from graphmrf.model.target import Given, Target, check_given, target_of

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.graph import Graph
    from graphmrf.model.mrf import GaussianMRF

_EXACT_NODES = 4000
_PROBES = 64
_BATCH = 8
_TOLERANCE = 1e-5
_SHORTLIST = 16
_ENOUGH = 5e-4


@dataclass(frozen=True)
class Estimate:
    """A number and its standard error, 0 when it is exact."""

    value: float
    standard_error: float


def expected_r2(mrf: GaussianMRF, graph: Graph, target: int | str, labelled: Bools, given: str = "both") -> float:
    r"""Return the coefficient of determination to be expected on the unlabelled nodes.

    .. math:: 1 - \frac{\mathrm{tr}\,\Sigma}{\mathrm{tr}\,\Sigma_0 - 1'\Sigma_0 1 / |U|},

    with :math:`\Sigma` the covariance of the target on `U` given what is known, and :math:`\Sigma_0` given nothing.

    Parameters
    ----------
    mrf : GaussianMRF
        The model.
    graph : Graph
        The graph.
    target : int or str
        The attribute to predict, by position or name.
    labelled : bool array of shape (n,)
        Nodes where the target would be known.
    given : {"labels", "features", "both"}
        What the prediction may use: the known labels with the features unknown (LP), the other attributes of all nodes
        (LGC), or both (LGC/RP).

    See Also
    --------
    estimate_r2 : the same with its standard error.

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> from graphmrf.model import GaussianMRF
    >>> mrf, node = GaussianMRF([[1.0, -0.9], [-0.9, 1.0]], [20.0, 20.0]), np.arange(60)
    >>> ring = Graph.from_edges(node, (node + 1) % 60)
    >>> [round(expected_r2(mrf, ring, -1, node % 2 == 0, given), 3) for given in ("labels", "features", "both")]
    [0.781, 0.286, 0.782]
    """
    return estimate_r2(mrf, graph, target, labelled, given).value


def estimate_r2(mrf: GaussianMRF, graph: Graph, target: int | str, labelled: Bools, given: str = "both") -> Estimate:
    """Return `expected_r2` with its standard error.

    Exact up to 4000 nodes, by dense factors. Beyond, both traces come from 16 to 64 random signs per node, the same for
    both, until the standard error is below 0.0005; noise that two products by the graph explain is taken out.
    """
    problem, known = target_of(mrf, graph, target, labelled), check_given(given)
    if np.count_nonzero(problem.unlabelled) < 2:
        raise InvalidInputError(
            f"at least 2 nodes must be unlabelled for a coefficient of determination, got "
            f"{np.count_nonzero(problem.unlabelled)}; set some entries of labelled to False"
        )
    if graph.n_nodes <= _EXACT_NODES:
        return Estimate(exact_r2(problem, known), 0.0)
    return probed_r2(problem, known, probes=_PROBES, seed=0)


def exact_r2(problem: Target, given: Given) -> float:
    """Return the expected R2 by dense factors."""
    prior = problem.covariance("nothing")
    spread = np.trace(prior) - prior.sum() / len(prior)
    return float(1.0 - np.trace(problem.covariance(given)) / spread)


def probed_r2(problem: Target, given: Given, *, probes: int, seed: int) -> Estimate:
    """Return the expected R2 by random signs, at most `probes` per node and fewer where they are enough."""
    rng, U = np.random.default_rng(seed), problem.unlabelled[:, None]
    values, traces = [], _known_traces(problem)
    for first in range(0, probes, _BATCH):
        Z = rng.choice([-1.0, 1.0], size=(U.size, min(_BATCH, probes - first))) * U
        solved = problem.times_covariance(given, Z, tolerance=_TOLERANCE)
        SZ = multiply(problem.graph, Z) * U
        values.append([_dots(Z, solved), _spread(problem, Z), _dots(Z, SZ), _dots(SZ, SZ)])
        remaining, spread, *paths = np.concatenate(values, axis=1)
        estimate = _ratio(remaining, spread, np.array(paths) - traces[:, None])
        if first > 0 and estimate.standard_error <= _ENOUGH:
            break
    return estimate


def suggest(
    mrf: GaussianMRF, graph: Graph, target: int | str, labelled: Bools, k: int = 1, *, given: str = "both"
) -> Ints:
    r"""Return the `k` unlabelled nodes whose labels would leave the least variance on the rest, best first.

    They are chosen one after the other (so fewer are the first of more): the label of node i takes
    :math:`\lVert \Sigma e_i \rVert^2 / \Sigma_{ii}` from the sum of the variances on `U`, and
    :math:`\Sigma e_i e_i' \Sigma / \Sigma_{ii}` from the covariance. Exact up to 4000 nodes; beyond, random signs find
    the 16 most promising nodes of every step, and the best of these is found exactly.

    Parameters
    ----------
    mrf, graph, target, labelled
        As in `expected_r2`.
    k : int
        Number of nodes.
    given : {"both", "labels"}
        Whether the features of all nodes are known besides the labels.

    Returns
    -------
    integer array of shape (k,)

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> from graphmrf.model import GaussianMRF
    >>> star = Graph.from_edges([0, 0, 0], [1, 2, 3])
    >>> suggest(GaussianMRF([[1.0]], [9.0]), star, 0, np.zeros(4, dtype=bool))
    array([0])
    """
    problem, known = target_of(mrf, graph, target, labelled), check_given(given, allowed=("both", "labels"))
    n_candidates = np.count_nonzero(problem.unlabelled)
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 0 <= k <= n_candidates:
        raise InvalidInputError(f"k must be a whole number from 0 to the {n_candidates} unlabelled nodes, got {k!r}")
    if graph.n_nodes <= _EXACT_NODES:
        return exact_suggestions(problem, known, k)
    return probed_suggestions(problem, known, k, seed=0)


def exact_suggestions(problem: Target, given: Given, k: int) -> Ints:
    """Return the suggested nodes by the dense covariance and rank-one updates of it."""
    nodes, Sigma = np.flatnonzero(problem.unlabelled), problem.covariance(given)
    chosen: list[int] = []
    for _ in range(k):
        left = np.setdiff1d(np.arange(nodes.size), chosen)
        gains = np.einsum("ij,ij->j", Sigma[:, left], Sigma[:, left]) / Sigma[left, left]
        best = int(left[gains.argmax()])
        column = Sigma[:, best] / np.sqrt(Sigma[best, best])
        Sigma -= np.outer(column, column)
        chosen.append(best)
    return nodes[chosen]


def probed_suggestions(problem: Target, given: Given, k: int, *, seed: int) -> Ints:
    """Return the suggested nodes by random signs and, for a short list, exact columns of the covariance."""
    Z = np.random.default_rng(seed).choice([-1.0, 1.0], size=(problem.graph.n_nodes, _PROBES))
    Z *= problem.unlabelled[:, None]
    least = problem.unknowns(given).block.node_variance[:, problem.position]
    images = problem.times_covariance(given, Z, tolerance=_TOLERANCE)
    variance = np.maximum(np.einsum("ij,ij->i", Z, images) / _PROBES, least)
    left, chosen, taken = problem.unlabelled.copy(), [], np.zeros((len(Z), 0))
    for _ in range(k):
        score = np.where(left, np.einsum("ij,ij->i", images, images) / np.where(left, variance, 1.0), -1.0)
        short = np.argsort(-score, kind="stable")[: min(_SHORTLIST, np.count_nonzero(left))]
        node, column = _best(problem, given, short, taken)
        images -= np.outer(column, column @ Z)
        variance = np.maximum(variance - column**2, least)
        taken, left[node] = np.column_stack([taken, column]), False
        chosen.append(node)
    return np.array(chosen, dtype=np.intp)


def _best(problem: Target, given: Given, nodes: Ints, taken: Floats) -> tuple[int, Floats]:
    """Return the node with the largest exact gain, and its column of the covariance over its standard deviation."""
    units = np.zeros((problem.graph.n_nodes, nodes.size))
    units[nodes, np.arange(nodes.size)] = 1.0
    columns = problem.times_covariance(given, units, tolerance=_TOLERANCE) - taken @ taken[nodes].T
    columns /= np.sqrt(columns[nodes, np.arange(nodes.size)])
    best = int(np.einsum("ij,ij->j", columns, columns).argmax())
    return int(nodes[best]), columns[:, best]


def _spread(problem: Target, Z: Floats) -> Floats:
    """Return z' Sigma_0 z for the columns of Z, each less its mean over U: all channels from one Krylov space."""
    parts, U = problem.mrf.channels, problem.unlabelled[:, None]
    centred = (Z - Z.sum(axis=0) / np.count_nonzero(U)) * U
    smoothed = smooth_grid(problem.graph, centred, parts.alpha, tolerance=_TOLERANCE)
    share = parts.inverse[:, problem.position] ** 2
    return np.asarray(np.einsum("c,cik,ik->k", share, smoothed, centred, optimize=True))


def _known_traces(problem: Target) -> Floats:
    """Return the traces of P and P^2, with P the operator I - N between unlabelled nodes."""
    U, S = problem.unlabelled.astype(np.float64), problem.graph.S
    loops = float((problem.graph.isolated & problem.unlabelled).sum())
    return np.array([loops, loops + float(U @ (S.power(2) @ U))])


def _ratio(remaining: Floats, spread: Floats, controls: Floats) -> Estimate:
    """Return 1 - E[remaining] / E[spread]; what controls of mean 0 explain of either is noise."""
    design = np.column_stack([np.ones(len(spread)), controls.T])
    both = np.column_stack([remaining, spread])
    fit = np.linalg.lstsq(design, both, rcond=None)[0]
    above, below = fit[0]
    noise = (both - design @ fit) @ np.array([1.0, -above / below]) / below
    freedom = max(1, len(noise) - design.shape[1])
    return Estimate(float(1.0 - above / below), float(np.sqrt(noise @ noise / freedom / len(noise))))


def _dots(U: Floats, V: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->j", U, V))

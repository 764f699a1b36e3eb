r"""Expected accuracy from the model alone, and the labels that would raise it most.

Both are functions of the covariance of one attribute, the target, at the unlabelled nodes: given labels, features, both
or nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
from scipy import sparse

from graphmrf.errors import InvalidInputError
from graphmrf.linalg import multiply, smooth_grid
from graphmrf.linalg.dense import Dense
from graphmrf.linalg.precision import PrecisionBlock
from graphmrf.model.conditional import Conditional

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.graph import Graph
    from graphmrf.model.parameters import Parameters

KnownData: TypeAlias = Literal["nothing", "labels", "features", "both"]


@dataclass(frozen=True, eq=False)
class TargetCovariance:
    """One attribute of a field at the unlabelled nodes, and its covariance there given labels, features or both."""

    parameters: Parameters
    graph: Graph
    position: int  # which attribute
    unlabelled: Bools  # (n,): the nodes `U`; at all others the attribute counts as known where labels are given

    def conditional(self, given: KnownData) -> Conditional:
        """Return the precision of all missing entries: the target, and the features where they are not given."""
        missing = np.ones((self.graph.n_nodes, self.parameters.q), dtype=bool)
        if given in ("features", "both"):
            missing[:, np.arange(self.parameters.q) != self.position] = False
        if given in ("labels", "both"):
            missing[~self.unlabelled, self.position] = False
        return Conditional(self.graph, self.parameters.H, self.parameters.C, missing)

    def times_covariance(self, given: KnownData, Z: Floats, *, tolerance: float = 1e-5) -> Floats:
        r"""Return :math:`\Sigma Z` for `Z` (n, k), 0 outside `U`, with :math:`\Sigma` the covariance on `U`."""
        B = np.zeros((Z.shape[1], self.graph.n_nodes, self.parameters.q))
        B[:, self.unlabelled, self.position] = Z[self.unlabelled].T
        solved = self.conditional(given).solve(B, tolerance=tolerance)[:, :, self.position].T
        return np.asarray(solved * self.unlabelled[:, None])

    def covariance(self, given: KnownData) -> Floats:
        r"""Return the covariance :math:`\Sigma` on `U`, dense: for some thousands of nodes."""
        U, t = self.unlabelled, self.position
        if given in ("features", "both"):
            unknown = U if given == "both" else np.ones_like(U)
            H, C = (np.full((1, 1), M[t, t]) for M in (self.parameters.H, self.parameters.C))
            known_features = PrecisionBlock(self.graph, H, C, unknown[:, None])
            return _within(known_features.dense.inverse, U[unknown])
        K = self._marginal()
        if given == "nothing" or U.all():
            return _within(K, U)
        cross = K[~U][:, U]
        return np.asarray(_within(K, U) - cross.T @ Dense(_within(K, ~U)).solve(cross))

    def _marginal(self) -> Floats:
        """Return the covariance of the target at all nodes, everything else unknown: a sum over channels."""
        parts, N = self.parameters.channels, self.graph.N.toarray()
        share = parts.inverse[:, self.position] ** 2
        K = np.zeros_like(N)
        for weight, strength in zip(share, parts.strength, strict=True):
            K += weight * Dense(np.eye(len(N)) + strength * N).inverse
        return K


def target_covariance(parameters: Parameters, graph: Graph, position: int, labelled: Bools | None) -> TargetCovariance:
    """Return the attribute at a position as a target, labelled where `labelled` is True; nowhere if it is None."""
    known = np.zeros(graph.n_nodes, dtype=bool) if labelled is None else np.asarray(labelled)
    if known.dtype != np.bool_ or known.shape != (graph.n_nodes,):
        raise InvalidInputError(
            f"labelled must be True or False for each of the {graph.n_nodes} nodes, got {known.dtype} of shape "
            f"{known.shape}; for a list of nodes use np.isin(np.arange(n), nodes)"
        )
    return TargetCovariance(parameters, graph, position, ~known)


def check_given(given: str, *, allowed: tuple[str, ...] = get_args(KnownData)[1:]) -> KnownData:
    """Return `given`, one of the allowed words."""
    for choice in get_args(KnownData):
        if given == choice and given in allowed:
            return choice  # type: ignore[no-any-return]  # an element of get_args has no type
    raise InvalidInputError(f"given must be one of {', '.join(allowed)}, got {given!r}")


def estimate_r2(target: TargetCovariance, given: str = "both", *, exact_nodes: int = 4000) -> tuple[float, float]:
    r"""Return the coefficient of determination to be expected on the unlabelled nodes, and its standard error.

    .. math:: 1 - \frac{\mathrm{tr}\,\Sigma}{\mathrm{tr}\,\Sigma_0 - 1'\Sigma_0 1 / |U|},

    with :math:`\Sigma` the covariance of the target on `U` given the labels with the features missing (LP), the
    features of all nodes (LGC), or both (LGC/RP), and :math:`\Sigma_0` given nothing.

    Exact, with error 0, up to `exact_nodes` nodes. Beyond, both traces are estimated from 16 to 64 Rademacher probes,
    the same for both, until the standard error is below 0.0005; the traces of the graph's first two powers, which are
    known, are control variates.
    """
    known, n_unlabelled = check_given(given), np.count_nonzero(target.unlabelled)
    if n_unlabelled < 2:
        raise InvalidInputError(
            f"at least 2 nodes must be unlabelled for a coefficient of determination, got "
            f"{n_unlabelled}; set some entries of labelled to False"
        )
    if target.graph.n_nodes <= exact_nodes:
        return exact_r2(target, known), 0.0
    return probed_r2(target, known)


def exact_r2(target: TargetCovariance, given: KnownData) -> float:
    """Return the expected R2 by dense factors."""
    prior = target.covariance("nothing")
    spread = np.trace(prior) - prior.sum() / len(prior)
    return float(1.0 - np.trace(target.covariance(given)) / spread)


def probed_r2(
    target: TargetCovariance,
    given: KnownData,
    *,
    probes: int = 64,
    batch: int = 8,
    accuracy: float = 5e-4,
    random_state: int = 0,
) -> tuple[float, float]:
    """Return the expected R2 and its error from at most `probes` probes, `batch` at a time, to an `accuracy`."""
    U, values, P = target.unlabelled.astype(np.float64), [], sparse.eye_array(target.graph.n_nodes) - target.graph.N
    traces = np.array([U @ target.graph.loops, U @ (P.power(2) @ U)])  # of P and P^2 between unlabelled nodes
    for first in range(0, probes, batch):
        Z = _rademacher(target, min(batch, probes - first), random_state + first)
        solved = target.times_covariance(given, Z)
        SZ = multiply(target.graph, Z) * U[:, None]
        values.append([_dots(Z, solved), _spread(target, Z), _dots(Z, SZ), _dots(SZ, SZ)])
        remaining, spread, *paths = np.concatenate(values, axis=1)
        estimate = ratio_of_means(remaining, spread, np.array(paths) - traces[:, None])
        if first > 0 and estimate[1] <= accuracy:
            break
    return estimate


def suggest(target: TargetCovariance, k: int = 1, *, given: str = "both", exact_nodes: int = 4000) -> Ints:
    r"""Return the `k` unlabelled nodes whose labels would leave the least variance on the rest, best first.

    They are chosen one after the other (so fewer are the first of more): the label of node i takes :math:`\lVert \Sigma
    e_i \rVert^2 / \Sigma_{ii}` from the sum of the variances on `U`, and :math:`\Sigma e_i e_i' \Sigma / \Sigma_{ii}`
    from the covariance. Exact up to `exact_nodes` nodes; beyond, probes find the 16 most promising nodes of every step,
    and the best of these is found exactly.
    """
    known, n_candidates = check_given(given, allowed=("both", "labels")), np.count_nonzero(target.unlabelled)
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 0 <= k <= n_candidates:
        raise InvalidInputError(f"k must be a whole number from 0 to the {n_candidates} unlabelled nodes, got {k!r}")
    if target.graph.n_nodes <= exact_nodes:
        return exact_suggestions(target, known, k)
    return probed_suggestions(target, known, k)


def exact_suggestions(target: TargetCovariance, given: KnownData, k: int) -> Ints:
    """Return the suggested nodes by the dense covariance."""
    nodes, Sigma = np.flatnonzero(target.unlabelled), target.covariance(given)
    found = greedy_labels(lambda B: Sigma @ B, np.eye(nodes.size))
    return nodes[[node for node, _ in islice(found, k)]]


def probed_suggestions(
    target: TargetCovariance, given: KnownData, k: int, *, probes: int = 64, random_state: int = 0
) -> Ints:
    """Return the suggested nodes by Rademacher probes and, for a short list, exact columns of the covariance."""
    Z, U = _rademacher(target, probes, random_state), target.unlabelled
    times = partial(target.times_covariance, given)
    least = target.conditional(given).block.node_variance[:, target.position]
    found = greedy_labels(times, Z, allowed=U, shortlist=16, least=least)
    return np.array([node for node, _ in islice(found, k)], dtype=np.intp)


def greedy_labels(  # noqa: PLR0913 - the covariance, and what counts
    times: Callable[[Floats], Floats],
    B: Floats,
    *,
    variance: Floats | None = None,
    noise: Floats | float = 0.0,
    own: bool = True,
    allowed: Bools | None = None,
    shortlist: int = 1,
    least: Floats | float = 0.0,
) -> Iterator[tuple[int, Floats]]:
    r"""Yield nodes whose labels take most from the variances, one after the other, and the roots of what each takes.

    A label of node i with noise s takes :math:`\Sigma_{ji}^2 / (\Sigma_{ii} + s)` from the variance of node j. The sums
    over j come from :math:`\Sigma B`, with `times` the product: where `B` has random signs they are estimates for all
    nodes, where it has unit vectors they are exact for these.

    `variance` (n,): diagonal of :math:`\Sigma`. `noise`: of labels, or (n,). `own`: whether what a label takes from
    the variance of its own node counts; `B` has multiples of unit vectors where it does not. `allowed` (n,): nodes to
    choose among. `shortlist`: nodes of every step whose gain is computed exactly. `least` (n,): bound on the remaining
    variances.
    """
    images, counted, noise = times(B), np.ones_like(B) if own else B == 0, np.broadcast_to(noise, len(B))
    if variance is None:
        variance = np.maximum(np.einsum("ij,ij->i", B, images) / np.maximum((B**2).sum(axis=1), 1.0), least)
    left = np.ones(len(B), dtype=bool) if allowed is None else allowed.copy()
    columns = np.zeros((len(B), 0))
    while left.any():
        gains = np.einsum("ij,ij,ij->i", images, images, counted) / np.where(left, variance + noise, 1.0)
        short = np.argsort(-np.where(left, gains, -np.inf), kind="stable")[: min(shortlist, np.count_nonzero(left))]
        units = np.zeros((len(B), short.size))
        units[short, np.arange(short.size)] = 1.0
        tried = times(units) - columns @ columns[short].T
        tried /= np.sqrt(np.maximum(tried[short, np.arange(short.size)], 0.0) + noise[short])
        best = int(np.einsum("ij,ij->j", tried, tried).argmax())
        node, column = int(short[best]), tried[:, best]
        images = images - np.outer(column, column @ B)
        variance = np.maximum(variance - column**2, least)
        columns, left[node] = np.column_stack([columns, column]), False
        yield node, column


def _spread(target: TargetCovariance, Z: Floats) -> Floats:
    """Return z' Sigma_0 z for the columns of Z, each less its mean over U: all channels from one Krylov space."""
    parts, U = target.parameters.channels, target.unlabelled[:, None]
    centred = (Z - Z.sum(axis=0) / np.count_nonzero(U)) * U
    smoothed = smooth_grid(target.graph, centred, parts.alpha, tolerance=1e-5)
    share = parts.inverse[:, target.position] ** 2
    return np.asarray(np.einsum("c,cik,ik->k", share, smoothed, centred, optimize=True))


def ratio_of_means(remaining: Floats, spread: Floats, controls: Floats) -> tuple[float, float]:
    """Return 1 - E[remaining] / E[spread] and its standard error, with control variates of mean 0 regressed out."""
    design = np.column_stack([np.ones(len(spread)), controls.T])
    both = np.column_stack([remaining, spread])
    fit = np.linalg.lstsq(design, both, rcond=None)[0]
    above, below = fit[0]
    noise = (both - design @ fit) @ np.array([1.0, -above / below]) / below
    dof = max(1, len(noise) - design.shape[1])
    return float(1.0 - above / below), float(np.sqrt(noise @ noise / dof / len(noise)))


def _dots(U: Floats, V: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->j", U, V))


def _rademacher(target: TargetCovariance, k: int, random_state: int) -> Floats:
    """Return `k` Rademacher probes, shape (n, k), 0 at labelled nodes."""
    engine = target.graph.engine
    return engine.unload(engine.random(random_state, k), k) * target.unlabelled[:, None]


def _within(M: Floats, kept: Bools) -> Floats:
    return np.asarray(M[np.ix_(kept, kept)])

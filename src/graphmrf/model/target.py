r"""One attribute at the unlabelled nodes: its covariance given labels, features, both or nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from graphmrf.errors import InvalidInputError
from graphmrf.linalg.coupled import PrecisionBlock
from graphmrf.linalg.dense import Dense
from graphmrf.model.unknowns import Unknowns

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats
    from graphmrf.graph import Graph
    from graphmrf.model.mrf import GaussianMRF

Given: TypeAlias = Literal["nothing", "labels", "features", "both"]


@dataclass(frozen=True, eq=False)
class Target:
    """An attribute of a field, to be predicted at some nodes.

    Parameters
    ----------
    mrf : GaussianMRF
        The model.
    graph : Graph
        The graph.
    position : int
        Which attribute.
    unlabelled : bool array of shape (n,)
        The nodes `U`; at all others the attribute counts as known where labels are given.
    """

    mrf: GaussianMRF
    graph: Graph
    position: int
    unlabelled: Bools

    def unknowns(self, given: Given) -> Unknowns:
        """Return all that is not known: the target, and with it the features where they are not given."""
        missing = np.ones((self.graph.n_nodes, self.mrf.q), dtype=bool)
        if given in ("features", "both"):
            missing[:, np.arange(self.mrf.q) != self.position] = False
        if given in ("labels", "both"):
            missing[~self.unlabelled, self.position] = False
        return Unknowns(self.graph, self.mrf.H, self.mrf.C, missing)

    def times_covariance(self, given: Given, Z: Floats, *, tolerance: float) -> Floats:
        r"""Return :math:`\Sigma Z` for `Z` (n, k), 0 outside `U`, with :math:`\Sigma` the covariance on `U`."""
        B = np.zeros((Z.shape[1], self.graph.n_nodes, self.mrf.q))
        B[:, self.unlabelled, self.position] = Z[self.unlabelled].T
        solved = self.unknowns(given).solve(B, tolerance=tolerance)[:, :, self.position].T
        return np.asarray(solved * self.unlabelled[:, None])

    def covariance(self, given: Given) -> Floats:
        r"""Return the covariance :math:`\Sigma` on `U`, dense: for some thousands of nodes."""
        U, t = self.unlabelled, self.position
        if given in ("features", "both"):
            unknown = U if given == "both" else np.ones_like(U)
            H, C = (np.full((1, 1), M[t, t]) for M in (self.mrf.H, self.mrf.C))
            known_features = PrecisionBlock(self.graph, H, C, unknown[:, None])
            return _within(Dense(known_features.matrix.toarray()).inverse, U[unknown])
        K = self._marginal()
        if given == "nothing" or U.all():
            return _within(K, U)
        cross = K[~U][:, U]
        return np.asarray(_within(K, U) - cross.T @ Dense(_within(K, ~U)).solve(cross))

    def _marginal(self) -> Floats:
        """Return the covariance of the target at all nodes, everything else unknown: a sum over channels."""
        parts, N = self.mrf.channels, self.graph.N.toarray()
        share = parts.inverse[:, self.position] ** 2
        K = np.zeros_like(N)
        for weight, strength in zip(share, parts.strength, strict=True):
            K += weight * Dense(np.eye(len(N)) + strength * N).inverse
        return K


def target_of(mrf: GaussianMRF, graph: Graph, target: int | str, labelled: Bools) -> Target:
    """Return a checked target: an attribute by name or position, labelled where `labelled` is True."""
    known = np.asarray(labelled)
    if known.dtype != np.bool_ or known.shape != (graph.n_nodes,):
        raise InvalidInputError(
            f"labelled must be True or False for each of the {graph.n_nodes} nodes, got {known.dtype} of shape "
            f"{known.shape}; for a list of nodes use np.isin(np.arange(n), nodes)"
        )
    return Target(mrf, graph, mrf.index(target), ~known)


def check_given(given: str, *, allowed: tuple[str, ...] = get_args(Given)[1:]) -> Given:
    """Return `given`, one of the allowed words."""
    for choice in get_args(Given):
        if given == choice and given in allowed:
            return choice  # type: ignore[no-any-return]  # an element of get_args has no type
    raise InvalidInputError(f"given must be one of {', '.join(allowed)}, got {given!r}")


def _within(M: Floats, kept: Bools) -> Floats:
    return np.asarray(M[np.ix_(kept, kept)])

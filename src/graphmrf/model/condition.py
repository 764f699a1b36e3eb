r"""The field given whatever is known of it: any pattern of known and unknown entries."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from graphmrf.errors import InvalidInputError
from graphmrf.linalg.lanczos import inverse
from graphmrf.model.attributes import aligned
from graphmrf.model.sample import check_count
from graphmrf.model.unknowns import Unknowns

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats
    from graphmrf.graph import Graph
    from graphmrf.model.mrf import GaussianMRF


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    r"""The unknown entries of the attributes, given the known ones; everything is computed when first asked for.

    With `M` the unknown and `O` the known entries of :math:`z = \mathrm{vec}(A - \mathrm{mean})`,

    .. math:: z_M | z_O \sim N(-\Gamma_{MM}^{-1} \Gamma_{MO} z_O,\; \Gamma_{MM}^{-1}).

    Label propagation (features unknown everywhere, some labels known), linear graph convolution (all features, no
    label) and its residual propagation (all features, some labels) are this with three patterns of NaN.

    Attributes
    ----------
    mrf : GaussianMRF
        The model.
    graph : Graph
        The graph.
    A : array of shape (n, q)
        The attributes, NaN where unknown.
    tolerance : float
        Relative residual of the solves behind mean and samples.
    probes : int
        Number of draws behind `std` where it is not exact.
    """

    mrf: GaussianMRF
    graph: Graph
    A: Floats
    tolerance: float = 1e-8
    probes: int = 64

    def __repr__(self) -> str:
        n, q = self.A.shape
        return f"Posterior(n_nodes={n}, attributes={q}, unknown entries={np.count_nonzero(self.missing)})"

    @cached_property
    def missing(self) -> Bools:
        """The unknown entries, shape (n, q)."""
        return np.isnan(self.A)

    @cached_property
    def mean(self) -> Floats:
        """Expected values, shape (n, q); known entries keep their value."""
        deviation = np.where(self.missing, 0.0, self.A - self.mrf.mean)[None]
        unknown = self._unknowns.solve(-self._unknowns.block.apply(deviation), tolerance=self.tolerance)
        return np.asarray(np.where(self.missing, self.mrf.mean + unknown[0], self.A))

    @cached_property
    def std(self) -> Floats:
        """Standard deviations, shape (n, q); 0 where known.

        Exact up to 4000 unknown entries (or nodes, where whole attributes are unknown at them), estimated from `probes`
        draws beyond; `std_error` says how well.
        """
        return np.asarray(np.sqrt(self._variance[0]))

    @cached_property
    def std_error(self) -> Floats:
        """Standard error of `std`, shape (n, q); 0 where it is exact."""
        return np.asarray(0.5 * self._variance[1] * inverse(self.std))

    def sample(self, n_samples: int = 1, seed: int = 0) -> Floats:
        """Return independent draws of all attributes given the known ones, shape (n_samples, n, q)."""
        rng = np.random.default_rng(seed)
        draws = self._unknowns.draw(check_count(n_samples), rng, tolerance=self.tolerance)
        draws += self.mean
        return draws

    def condition(self, A: Any) -> Posterior:
        """Return the posterior given the entries of `A` that are not NaN, besides those known already.

        Raises
        ------
        InvalidInputError
            If `A` gives an entry that is known already another value.
        """
        more = aligned(A, self.graph.n_nodes, self.mrf.names)
        other = ~np.isnan(more) & ~self.missing & (more != self.A)
        if other.any():
            node, column = np.argwhere(other)[0]
            raise InvalidInputError(
                f"A must agree with what is known already, got {more[node, column]} for {self.mrf.names[column]} at "
                f"node {node}, which is {self.A[node, column]}; condition the model anew to change it"
            )
        both = np.where(self.missing, more, self.A)
        return Posterior(self.mrf, self.graph, both, self.tolerance, self.probes)

    @cached_property
    def _unknowns(self) -> Unknowns:
        return Unknowns(self.graph, self.mrf.H, self.mrf.C, self.missing)

    @cached_property
    def _variance(self) -> tuple[Floats, Floats]:
        return self._unknowns.variance(self.probes, seed=0)


def condition(mrf: GaussianMRF, graph: Graph, A: Any) -> Posterior:
    """Return the posterior of the entries of `A` that are NaN, given the others.

    Parameters
    ----------
    mrf : GaussianMRF
        The model.
    graph : Graph
        The graph.
    A : array of shape (n, q) or DataFrame
        Attributes in the order of the model, or named as there; NaN where unknown, in any pattern.

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> from graphmrf.model import GaussianMRF
    >>> mrf = GaussianMRF([[2.0, -1.0], [-1.0, 2.0]], [1.0, 2.0])
    >>> posterior = condition(mrf, Graph.from_edges([0], [1]), [[1.0, 1.0], [0.0, np.nan]])
    >>> posterior.mean
    array([[1. , 1. ],
           [0. , 0.5]])
    >>> posterior.std
    array([[0. , 0. ],
           [0. , 0.5]])
    """
    return Posterior(mrf, graph, aligned(A, graph.n_nodes, mrf.names))

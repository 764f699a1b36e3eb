"""Panels: the product of a graph with the path or ring of its times, and its spectrum from those of the factors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import sparse

from graphmrf.errors import InvalidInputError
from graphmrf.kept import cached_property

if TYPE_CHECKING:
    from graphmrf._typing import Floats


@dataclass(frozen=True, eq=False)
class TimeProduct:
    r"""A graph of nodes x times: node `i` at the `t`-th of `T` times has position ``i * T + t``.

    With the masses `M` of the graph (`Graph.mass`), its weights `W`, and weights `E` between times, the product has

    .. math:: W \otimes I + \tau \, M \otimes E,

    so that :math:`\tau = 1` makes one neighbouring time count as much as all neighbours at the same time. Whatever
    the Laplacian, that of the product falls into one matrix of the size of the times for each eigenvalue
    :math:`\lambda` of the graph, :math:`(\lambda I + \tau L_E)` between the inverse roots of the masses of times.

    Attributes
    ----------
    space : Graph
        The graph of the nodes at one time.
    times : Index
        The times, ascending.
    weight : float
        The weight :math:`\tau` of a step in time of the usual length; longer ones weigh less.
    ring : bool
        Whether the last time is next to the first.
    """

    space: Any
    times: pd.Index
    weight: float
    ring: bool = False

    @property
    def steps(self) -> Floats:
        """Weights `E` between times, shape (T, T)."""
        E = np.zeros((self.times.size, self.times.size))
        gaps = np.diff(time_numbers(self.times))
        first = np.arange(gaps.size)
        E[first, first + 1] = np.median(gaps) / gaps if gaps.size else gaps
        E[0, -1] += float(self.ring)
        return np.asarray(E + E.T)

    @property
    def walk(self) -> Floats:
        r"""Columns `F`, shape (T, T), with the covariance :math:`FF'/T` of a random walk with noise.

        Its steps have a variance in proportion to their length, and noise has that of a usual step; the mean variance
        of all times is 1.
        """
        E = self.steps
        covariance = np.linalg.pinv(np.diag(E.sum(axis=1)) - E, hermitian=True) + np.eye(len(E))
        return np.asarray(np.linalg.cholesky(covariance * len(E) ** 2 / np.trace(covariance)))

    @property
    def weights(self) -> sparse.coo_array:
        """The weights of the product."""
        eye, mass = sparse.eye_array(self.times.size), sparse.diags_array(self.weight * self.space.mass)
        return sparse.coo_array(
            sparse.kron(self.space.adjacency, eye) + sparse.kron(mass, sparse.csr_array(self.steps))
        )

    @property
    def ids(self) -> pd.MultiIndex | None:
        """Pairs of node and time, None where the graph has no ids."""
        own = self.space.ids
        return None if own is None else pd.MultiIndex.from_product([own, self.times], names=[own.name, self.times.name])

    @property
    def is_separable(self) -> bool:
        """Whether the spectrum follows from that of the graph: always, but for isolated nodes of a normalised one."""
        return self.space.laplacian == "combinatorial" or not bool(self.space.isolated.any())

    def eigenvalues(self) -> Floats:
        """Return the eigenvalues of `N` of the product, ascending, from those of the graph."""
        return np.sort(np.linalg.eigvalsh(self._blocks()).ravel())

    def eigenpairs(self) -> tuple[Floats, Floats]:
        """Return the eigenvalues of `N` of the product, ascending, and the eigenvectors, from those of the graph."""
        values, inner = self.blocks
        n, T = values.shape
        vectors = np.einsum("ai,itk->atik", self.space.eigenpairs[1], inner).reshape(n * T, n * T)
        order = np.argsort(values, axis=None)
        return values.ravel()[order], vectors[:, order]

    @cached_property
    def blocks(self) -> tuple[Floats, Floats]:
        """Eigenvalues (n, T) and eigenvectors (n, T, T) of the matrix over times of every eigenvalue of the graph."""
        values, vectors = np.linalg.eigh(self._blocks())
        return np.maximum(values, 0.0), vectors

    def _blocks(self) -> Floats:
        """Return the matrix over times of every eigenvalue of the graph, shape (n, T, T)."""
        E = self.steps
        degrees = E.sum(axis=1)
        mass = 1.0 + self.weight * (degrees if self.space.laplacian == "normalised" else degrees.max())
        root = np.sqrt(np.broadcast_to(mass, degrees.shape))
        path = self.weight * (np.diag(degrees) - E)
        blocks = self.space.eigenpairs[0][:, None, None] * np.eye(degrees.size) + path
        return np.asarray(blocks / np.outer(root, root))


def as_times(times: Any, *, ring: bool) -> pd.Index:
    """Return times as an index, after checking that they are numbers or dates, each later than the one before."""
    index = times if isinstance(times, pd.Index) else pd.Index(times)
    if not index.size:
        raise InvalidInputError("times must be at least one number or date, got none")
    numbers = time_numbers(index)
    late = np.flatnonzero(~(np.diff(numbers) > 0))
    if late.size:
        raise InvalidInputError(
            f"times must be ascending, each one once, got {index[late[0]]!s} before {index[late[0] + 1]!s}; sort them"
        )
    if ring and numbers.size < 3:
        raise InvalidInputError(f"a ring needs at least 3 times, got {numbers.size}; leave out ring=True")
    return index


def time_numbers(index: pd.Index) -> Floats:
    """Return times as numbers, dates as days.

    Examples
    --------
    >>> time_numbers(pd.to_datetime(["2020-01-01", "2020-01-03"])).tolist()
    [18262.0, 18264.0]
    """
    if isinstance(index, pd.PeriodIndex):
        index = index.to_timestamp()
    if isinstance(index, pd.DatetimeIndex):
        return np.asarray((index - pd.Timestamp(0, tz=index.tz)) / pd.Timedelta(days=1), dtype=np.float64)
    numbers = np.asarray(index)
    if numbers.dtype.kind not in "iuf" or not np.isfinite(numbers).all():
        raise InvalidInputError(
            f"times must be numbers or dates, got {list(index[:3])}; convert them, for example with pandas.to_datetime"
        )
    return numbers.astype(np.float64)

r"""The unknown entries of the attributes given the known ones: solves, draws and variances by the cheapest route."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from graphmrf.linalg import smooth
from graphmrf.linalg.coupled import PrecisionBlock
from graphmrf.linalg.dense import Dense
from graphmrf.linalg.multishift import ShiftedSystems
from graphmrf.model.channels import Channels, channels
from graphmrf.model.sample import field_noise

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats
    from graphmrf.graph import Graph

_DENSE_SOLVE = 500
"""Entries up to which one dense factor beats iterating."""

_DENSE_VARIANCE = 4000
"""Entries, or nodes of a channel, up to which variances come from a dense inverse."""

_BATCH_BYTES = 2**28
_PROBE_TOLERANCE = 1e-4


@dataclass(frozen=True, eq=False)
class Unknowns:
    r"""The field on the entries `M`, given all others: its precision is the block :math:`\Gamma_{MM}`.

    Three routes: few entries have a dense factor. Entries that are whole columns of some nodes (every attribute of all
    nodes, one attribute of some) fall apart into channels, each a system on the graph alone. Anything else is
    coupled and iterates.

    Parameters
    ----------
    graph : Graph
        The graph.
    H, C : arrays of shape (q, q)
        Parameters of the model.
    missing : bool array of shape (n, q)
        The entries `M`.
    """

    graph: Graph
    H: Floats
    C: Floats
    missing: Bools

    @cached_property
    def block(self) -> PrecisionBlock:
        """The block of the precision."""
        return PrecisionBlock(self.graph, self.H, self.C, self.missing)

    @cached_property
    def nodes(self) -> Bools:
        """Nodes with a missing entry, shape (n,)."""
        return np.asarray(self.missing.any(axis=1))

    @cached_property
    def attributes(self) -> Bools:
        """Attributes with a missing entry, shape (q,)."""
        return np.asarray(self.missing.any(axis=0))

    @property
    def separates(self) -> bool:
        """Whether `M` is some attributes at some nodes, all of them there."""
        return self.block.size == np.count_nonzero(self.nodes) * np.count_nonzero(self.attributes)

    def solve(self, B: Floats, *, tolerance: float) -> Floats:
        r"""Return :math:`\Gamma_{MM}^{-1} b`, 0 outside `M`, for `B` (k, n, q) of which only `M` is read."""
        if self.block.size <= _DENSE_SOLVE:
            x = np.zeros(B.shape)
            x[:, self.missing] = self._dense.solve(B[:, self.missing].T).T
            return x
        if self.separates:
            return self._solve_channels(B, tolerance)
        return self.block.solve(B, tolerance=tolerance).or_raise(tolerance)

    def draw(self, k: int, rng: np.random.Generator, *, tolerance: float) -> Floats:
        r"""Return `k` draws of mean 0 and covariance :math:`\Gamma_{MM}^{-1}`, shape (k, n, q), 0 outside `M`.

        They solve :math:`\Gamma_{MM} x = b_M` with a `b` of covariance :math:`\Gamma`.
        """
        draws = np.zeros((k, *self.missing.shape))
        if self.block.size <= _DENSE_SOLVE:
            draws[:, self.missing] = self._dense.draw(k, rng).T
            return draws
        parts = channels(self.H, self.C)
        batch = max(1, _BATCH_BYTES // (8 * self.missing.size))
        for first in range(0, k, batch):
            width = min(batch, k - first)
            b = field_noise(self.graph, parts.strength, width, rng).transpose(1, 0, 2) @ parts.U.T
            draws[first : first + width] = self.solve(b, tolerance=tolerance)
        return draws

    def variance(self, probes: int, seed: int) -> tuple[Floats, Floats]:
        r"""Return the diagonal of :math:`\Gamma_{MM}^{-1}` and its standard error, both (n, q) and 0 outside `M`.

        Exact, with error 0, for up to 4000 entries, or 4000 nodes where channels separate. Otherwise, with draws `x`,

        .. math:: \mathrm{var}(x_i) = (\Gamma_{ii})^{-1} + \mathrm{var}(E[x_i | x_{-i}])

        node by node: the first part is known, only the second is estimated, from `probes` draws.
        """
        if self.block.size <= _DENSE_VARIANCE:
            variance = np.zeros(self.missing.shape)
            variance[self.missing] = self._dense.inverse_diagonal()
            return variance, np.zeros_like(variance)
        if self.separates and np.count_nonzero(self.nodes) <= _DENSE_VARIANCE:
            return self._channel_variance(), np.zeros(self.missing.shape)
        return self._drawn_variance(probes, seed)

    @cached_property
    def _dense(self) -> Dense:
        return Dense(self.block.matrix.toarray())

    @cached_property
    def _channels(self) -> Channels:
        J = np.ix_(self.attributes, self.attributes)
        return channels(self.H[J], self.C[J])

    def _solve_channels(self, B: Floats, tolerance: float) -> Floats:
        (k, n, _), parts = B.shape, self._channels
        F = (B[:, :, self.attributes] * self.nodes[:, None]) @ parts.inverse.T
        columns = np.ascontiguousarray(F.transpose(1, 0, 2)).reshape(n, -1)
        solved = self._smooth(columns, np.tile(parts.alpha, k), tolerance).reshape(n, k, -1)
        x = np.zeros(B.shape)
        x[:, :, self.attributes] = parts.combine(solved.transpose(1, 0, 2))
        return x

    def _smooth(self, X: Floats, alpha: Floats, tolerance: float) -> Floats:
        r"""Solve :math:`(I + \omega N)_{UU} f = x` column by column, U the nodes with missing entries."""
        if self.nodes.all():
            return smooth(self.graph, X, alpha, tolerance=tolerance)
        active, result = alpha > 0, X.copy()
        if active.any():
            sigma, factor = 1.0 / alpha[active], (1.0 - alpha[active]) / alpha[active]
            allowed = np.broadcast_to(self.nodes[:, None], (len(X), sigma.size))
            systems = ShiftedSystems(self.graph.engine, sigma[None, :], allowed)
            result[:, active] = factor * systems.solve(X[:, active], tolerance=tolerance).or_raise(tolerance)[0]
        return result

    def _channel_variance(self) -> Floats:
        parts, column = self._channels, self.nodes[:, None]
        variances = np.zeros((len(column), parts.strength.size))
        for c, strength in enumerate(parts.strength):
            channel = PrecisionBlock(self.graph, np.eye(1), np.full((1, 1), strength), column)
            variances[self.nodes, c] = Dense(channel.matrix.toarray()).inverse_diagonal()
        result = np.zeros(self.missing.shape)
        result[:, self.attributes] = variances @ parts.inverse**2
        return result

    def _drawn_variance(self, probes: int, seed: int) -> tuple[Floats, Floats]:
        rng, explained = np.random.default_rng(seed), np.zeros(self.missing.shape)
        batch = max(1, _BATCH_BYTES // (8 * self.missing.size))
        for first in range(0, probes, batch):
            x = self.draw(min(batch, probes - first), rng, tolerance=_PROBE_TOLERANCE)
            x -= self.block.precondition(self.block.apply(x))  # given the other nodes
            explained += np.einsum("kiq,kiq->iq", x, x) / probes
        return self.block.node_variance + explained, explained * np.sqrt(2.0 / probes)

"""Search over 14 smoothing levels and 5 folds, against a plain loop of scipy's conjugate gradients.

The loop solves one system per level and column (LGC) or per level and fold (LP, residuals), each to the same relative
residual of 1e-6, and fits least squares per level and fold. Chosen level and predictions of both are compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import cg

from benchmarks.show import Row, best_of, peak_gigabytes, timed
from benchmarks.workload import Workload, workload
from graphmrf.selection import (
    ALPHAS,
    AlphaSearch,
    assign_folds,
    search_convolution,
    search_convolution_and_residual,
    search_propagation,
    whiten,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphmrf._typing import Floats, Ints

TOLERANCE = 1e-6
_Timed: TypeAlias = tuple[float, AlphaSearch]


def run(*, quick: bool) -> list[Row]:
    """Time the three searches, ours first so that the peak memory is ours."""
    n = 20_000 if quick else 200_000
    work = workload(n)
    folds = assign_folds(int((~np.isnan(work.y)).sum()), 5, seed=0)
    features = whiten(work.X, centred=True)
    ours: dict[str, Callable[[], AlphaSearch]] = {
        "LP": lambda: search_propagation(work.graph, work.y, folds, tolerance=TOLERANCE),
        "LGC": lambda: search_convolution(work.graph, features, work.y, folds, tolerance=TOLERANCE),
        "LGC/RP": lambda: search_convolution_and_residual(work.graph, features, work.y, folds, tolerance=TOLERANCE),
    }
    for search in ours.values():
        _ = search()  # compile
    found = {name: best_of(3, search) for name, search in ours.items()}
    memory = peak_gigabytes()
    loop = _Loop.over(work, folds)
    peers = {"LP": timed(loop.propagation), "LGC": timed(loop.convolution)}
    seconds, residual = timed(loop.residual)  # the loop keeps its convolution: their times add up
    peers["LGC/RP"] = (seconds + peers["LGC"][0], residual)
    return [_row(name, work, found[name], peers[name], memory) for name in ours]


def _row(name: str, work: Workload, ours: _Timed, peer: _Timed, memory: float) -> Row:
    (seconds, search), (peer_seconds, reference) = ours, peer
    best = int(np.argmax(reference.mean_r2))
    difference = np.abs(search.predictions[best] - reference.predictions[best])
    return {
        "search": name,
        "nodes": work.graph.n_nodes,
        "edges": work.graph.n_edges,
        "times faster": peer_seconds / seconds,
        "ours s": seconds,
        "loop s": peer_seconds,
        "alpha ours": search.alpha,
        "alpha loop": reference.alpha,
        "R2": float(search.mean_r2.max()),
        "relative difference": float(np.linalg.norm(difference) / np.linalg.norm(reference.predictions[best])),
        "largest": float(difference.max() / np.abs(reference.predictions[best]).max()),
        "peak GB": memory,
    }


@dataclass
class _Loop:
    """The peer: one call of scipy's cg after the other."""

    S: sparse.csr_array
    X: Floats
    y: Floats
    labelled: Ints
    folds: Ints
    fits: Floats | None = None

    @classmethod
    def over(cls, work: Workload, folds: Ints) -> _Loop:
        S = sparse.csr_array(work.graph.S + sparse.diags_array(work.graph.isolated.astype(float)))  # I - N
        return cls(S, work.X - work.X.mean(axis=0), work.y, np.flatnonzero(~np.isnan(work.y)), folds)

    def propagation(self) -> AlphaSearch:
        predictions = np.zeros((len(ALPHAS), self.labelled.size))
        for fold in range(5):
            train = self.labelled[self.folds != fold]
            mean = self.y[train].mean()
            for level in range(len(ALPHAS)):
                test = self._propagate(ALPHAS[level], train, self.y[train] - mean, fold)
                predictions[level, self.folds == fold] = mean + test
        return self._score(predictions)

    def convolution(self) -> AlphaSearch:
        self.fits = np.zeros((len(ALPHAS), self.labelled.size, 5))
        for level, alpha in enumerate(ALPHAS):
            A = sparse.eye_array(len(self.y), format="csr") - alpha * self.S
            columns = [(1 - alpha) * cg(A, x, rtol=TOLERANCE)[0] for x in self.X.T]
            Z = np.column_stack([np.ones(len(self.y)), *columns])[self.labelled]
            for fold in range(5):
                train = self.folds != fold
                b = np.linalg.lstsq(Z[train], self.y[self.labelled[train]], rcond=None)[0]
                self.fits[level, :, fold] = Z @ b
        return self._score(self.fits[:, np.arange(self.labelled.size), self.folds])

    def residual(self) -> AlphaSearch:
        assert self.fits is not None
        predictions = self.fits[:, np.arange(self.labelled.size), self.folds].copy()
        for fold in range(5):
            train = self.folds != fold
            for level, alpha in enumerate(ALPHAS):
                residual = self.y[self.labelled[train]] - self.fits[level, train, fold]
                predictions[level, ~train] += self._propagate(alpha, self.labelled[train], residual, fold)
        return self._score(predictions)

    def _propagate(self, alpha: float, train: Ints, values: Floats, fold: int) -> Floats:
        unknown = np.ones(len(self.y), dtype=bool)
        unknown[train] = False
        filled = np.zeros(len(self.y))
        filled[train] = values
        if alpha > 0:
            S_UU = self.S[unknown][:, unknown]
            A = sparse.eye_array(S_UU.shape[0], format="csr") - alpha * S_UU
            filled[unknown] = cg(A, alpha * (self.S @ filled)[unknown], rtol=TOLERANCE)[0]
        return np.asarray(filled[self.labelled[self.folds == fold]])

    def _score(self, predictions: Floats) -> AlphaSearch:
        return AlphaSearch.score(ALPHAS, predictions, self.y[self.labelled], self.folds)

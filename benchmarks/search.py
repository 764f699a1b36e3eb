"""Search over 14 smoothing levels and 5 folds, against a plain loop of scipy's conjugate gradients.

The loop solves one system per level and column (LGC) or per level and fold (LP, residuals), each to the same relative
residual of 1e-6, and fits least squares per level and fold. Chosen level and predictions of both are compared.
``python -m benchmarks.search --nodes 1000000 --part`` times a part of the loop, 1 of its 5 folds and 2 of its 16
columns at all 14 levels, and multiplies: folds and columns are alike. Its least squares are then left out.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import cg

from benchmarks.show import Row, best_of, peak_gigabytes, show, timed
from benchmarks.workload import Workload, workload
from graphmrf.linalg import smooth_grid
from graphmrf.selection import (
    ALPHAS,
    AlphaSearch,
    assign_folds,
    search_convolution,
    search_convolution_and_residual,
    search_propagation,
    whiten,
)
from graphmrf.selection.search import fold_predictions

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphmrf._typing import Floats, Ints

TOLERANCE = 1e-6
_COLUMNS = 2
"""Columns of the loop in part: doubled, it takes twice as long and their times differ as little."""
_Timed: TypeAlias = tuple[float, AlphaSearch]


def run(*, quick: bool) -> list[Row]:
    """Time the three searches beside the whole loop."""
    return measure(20_000 if quick else 200_000, part=False)


def measure(nodes: int, *, part: bool) -> list[Row]:
    """Return one row a search, ours first so that the peak memory is ours."""
    work = workload(nodes)
    folds = assign_folds(int((~np.isnan(work.y)).sum()), 5, random_state=0)
    features = whiten(work.X, centred=True)
    ours: dict[str, Callable[[], AlphaSearch]] = {
        "LP": lambda: search_propagation(work.graph, work.y, folds, tolerance=TOLERANCE),
        "LGC": lambda: search_convolution(work.graph, features, work.y, folds, tolerance=TOLERANCE),
        "LGC/RP": lambda: search_convolution_and_residual(work.graph, features, work.y, folds, tolerance=TOLERANCE),
    }
    for search in ours.values():
        _ = search()  # compile
    found = {name: best_of(3, search) for name, search in ours.items()}
    memory, loop = peak_gigabytes(), _Loop.over(work, folds)
    if part:
        loop.fits = fold_predictions(work.graph, features, work.y, folds, tolerance=TOLERANCE)
        rows = _part_rows(work, loop, found)
    else:
        peers = {"LP": timed(loop.propagation), "LGC": timed(loop.convolution)}
        seconds, residual = timed(loop.residual)  # the loop keeps its convolution: their times add up
        peers["LGC/RP"] = (seconds + peers["LGC"][0], residual)
        rows = [_row(name, work, found[name], peers[name]) for name in ours]
    return [row | {"peak GB": memory} for row in rows]


def _part_rows(work: Workload, loop: _Loop, found: dict[str, _Timed]) -> list[Row]:
    """Return the rows where the loop runs in part: as long as all of it would take, and how far apart its part is."""
    own = loop.folds == 0
    lp_seconds, lp = timed(lambda: loop.propagation(1))
    lgc_seconds, columns = timed(lambda: [loop.smoothed(alpha, _COLUMNS) for alpha in ALPHAS])
    rp_seconds, rp = timed(lambda: loop.residual(1))
    smoothed = smooth_grid(work.graph, loop.X[:, :_COLUMNS], ALPHAS, loop.labelled, tolerance=TOLERANCE)
    whole = work.X.shape[1] / _COLUMNS * lgc_seconds
    parts = {
        "LP": (5 * lp_seconds, found["LP"][1].predictions[:, own], lp.predictions[:, own]),
        "LGC": (whole, smoothed, np.stack(columns)[:, loop.labelled]),
        "LGC/RP": (whole + 5 * rp_seconds, found["LGC/RP"][1].predictions[:, own], rp.predictions[:, own]),
    }
    return [
        _about(name, work, found[name], seconds)
        | {"loop": f"1 of 5 folds, {_COLUMNS} of {work.X.shape[1]} columns, multiplied"}
        | _apart(values, expected)
        for name, (seconds, values, expected) in parts.items()
    ]


def _row(name: str, work: Workload, ours: _Timed, peer: _Timed) -> Row:
    seconds, reference = peer
    best = int(np.argmax(reference.mean_r2))
    apart = _apart(ours[1].predictions[best], reference.predictions[best])
    return _about(name, work, ours, seconds) | {"loop": "whole", "alpha loop": reference.alpha} | apart


def _about(name: str, work: Workload, ours: _Timed, peer_seconds: float) -> Row:
    seconds, search = ours
    return {
        "search": name,
        "nodes": work.graph.n_nodes,
        "edges": work.graph.n_edges,
        "times faster": peer_seconds / seconds,
        "ours s": seconds,
        "loop s": peer_seconds,
        "alpha ours": search.alpha,
        "R2": float(search.mean_r2.max()),
    }


def _apart(found: Floats, expected: Floats) -> Row:
    difference = np.abs(found - expected)
    return {
        "relative difference": float(np.linalg.norm(difference) / np.linalg.norm(expected)),
        "largest": float(difference.max() / np.abs(expected).max()),
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

    def propagation(self, n_folds: int = 5) -> AlphaSearch:
        predictions = np.zeros((len(ALPHAS), self.labelled.size))
        for fold in range(n_folds):
            train = self.labelled[self.folds != fold]
            mean = self.y[train].mean()
            for level in range(len(ALPHAS)):
                test = self._propagate(ALPHAS[level], train, self.y[train] - mean, fold)
                predictions[level, self.folds == fold] = mean + test
        return self._score(predictions)

    def convolution(self) -> AlphaSearch:
        self.fits = np.zeros((len(ALPHAS), self.labelled.size, 5))
        for level, alpha in enumerate(ALPHAS):
            Z = np.column_stack([np.ones(len(self.y)), self.smoothed(alpha, self.X.shape[1])])[self.labelled]
            for fold in range(5):
                train = self.folds != fold
                b = np.linalg.lstsq(Z[train], self.y[self.labelled[train]], rcond=None)[0]
                self.fits[level, :, fold] = Z @ b
        return self._score(self.fits[:, np.arange(self.labelled.size), self.folds])

    def smoothed(self, alpha: float, n_columns: int) -> Floats:
        A = sparse.eye_array(len(self.y), format="csr") - alpha * self.S
        return np.column_stack([(1 - alpha) * cg(A, x, rtol=TOLERANCE)[0] for x in self.X.T[:n_columns]])

    def residual(self, n_folds: int = 5) -> AlphaSearch:
        assert self.fits is not None
        predictions = self.fits[:, np.arange(self.labelled.size), self.folds].copy()
        for fold in range(n_folds):
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=__doc__)
    parser.add_argument("--nodes", type=int, default=200_000, help="nodes, each with 10.5 edges")
    parser.add_argument("--part", action="store_true", help="time a part of the loop and multiply")
    given = parser.parse_args()
    show("search", __doc__, measure(given.nodes, part=given.part))

"""The same bytes from one and from two threads: predictions of every solver in processes that differ in that alone."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from benchmarks.show import Row

THREADS = ("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
SOLVERS = {
    "LP": "lp, 50,000 nodes, 300,000 edges (compiled kernels)",
    "LGC/RP": "lgc-rp, the same, 4 features",
    "dense": "GraphRegressor, dense, 1000 nodes",
    "sparse": "GraphRegressor, sparse, 5000 nodes",
    "fit": "GaussianMRF.fit, 1000 nodes, 3 attributes",
}


def run(*, quick: bool) -> list[Row]:
    """Compare the predictions of every solver; quick leaves out the slow ones."""
    names = ("LP", "fit") if quick else tuple(SOLVERS)
    return [_compared(name) for name in names]


def _compared(name: str) -> Row:
    one, again, two = (_elsewhere(name, n) for n in (1, 1, 2))
    scale = float(np.abs(one).max())
    return {
        "solver": SOLVERS[name],
        "same bytes, run again": _digest(one) == _digest(again),
        "same bytes, 2 threads": _digest(one) == _digest(two),
        "largest difference": float(np.abs(one - two).max()) / scale,
    }


def _digest(values: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()


def _elsewhere(name: str, threads: int) -> Any:
    """Return what a solver predicts in a process with so many threads."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "found.npy")
        words = [sys.executable, "-m", "tools.threads", name, str(path)]
        subprocess.run(words, env=os.environ | dict.fromkeys(THREADS, str(threads)), check=True)
        return np.load(path)


def predictions(name: str) -> Any:
    """Return the predictions and standard deviations of a solver, or the parameters of a fit."""
    import graphmrf as gm
    from graphmrf_paper.synthetic import watts_strogatz

    n = {"LP": 50_000, "LGC/RP": 50_000, "sparse": 5000}.get(name, 1000)
    graph, rng = watts_strogatz(n, 12, 0.1), np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    drawn = gm.GaussianMRF(np.eye(3) + 0.3, np.array([1.0, 5.0, 20.0])).sample(graph, 1, random_state=0)[0]
    if name == "fit":
        found = gm.GaussianMRF.fit(graph, drawn)
        return np.concatenate([found.H.ravel(), found.h, found.mean])
    y = np.where(rng.random(n) < 0.3, X[:, 0] + drawn[:, 2], np.nan)
    models: dict[str, Any] = {
        "LP": gm.LabelPropagation(),
        "LGC/RP": gm.ResidualPropagation(gm.LinearGraphConvolution()),
        "dense": gm.GraphRegressor(solver="dense"),
        "sparse": gm.GraphRegressor(solver="sparse"),
    }
    return np.stack(models[name].fit(graph, X, y).predict(return_std=True))


if __name__ == "__main__":
    np.save(sys.argv[2], predictions(sys.argv[1]))

"""Size of a saved model, and the time to save, load, update and extend it, with differences from a fresh fit.

Houses as in `core_speed` with 30 % of the labels. An update adds a tenth of the labels, an extension a tenth of the
nodes. Differences are root mean squares over all nodes, in standard deviations of the labels; those after loading and
after an extension with ``search="anew"`` are the largest.
"""

from __future__ import annotations

import pickle
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import graphmrf as gm
from benchmarks.core_speed import houses

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.show import Row
    from graphmrf._typing import Floats


def run(*, quick: bool) -> list[Row]:
    """One row for every size."""
    return [measure(n) for n in ((500,) if quick else (1_000, 3_000, 10_000, 30_000))]


def measure(n: int) -> Row:
    """Return size, seconds and differences for one number of nodes."""
    task, rng = houses(n), np.random.default_rng(0)
    order = rng.permutation(n)
    labelled, later, new = order[: 3 * n // 10], order[: 3 * n // 100], order[-n // 10 :]
    y = np.full(n, np.nan)
    y[labelled] = task.y[labelled]
    earlier = y.copy()
    earlier[later] = np.nan
    graph = gm.Graph(task.graph.adjacency, ids=np.arange(n))
    unit = float(np.nanstd(y))

    model, fit_s = clocked(lambda: gm.GraphRegressor().fit(graph, task.X, earlier))
    size, save_s, load_s, loaded = saved(model)
    pickled = len(pickle.dumps(model))
    reloaded = difference(loaded, model)
    only_new = np.full(n, np.nan)
    only_new[later] = y[later]
    _, update_s = clocked(lambda: loaded.update(only_new))
    fresh, fresh_s = clocked(lambda: gm.GraphRegressor().fit(graph, task.X, y))
    updated = difference(loaded, fresh)

    kept = np.setdiff1d(np.arange(n), new)
    smaller = gm.Graph(graph.adjacency[kept][:, kept], ids=kept)
    small = gm.GraphRegressor().fit(smaller, task.X[kept], y[kept])
    _, extend_s = clocked(lambda: small.extend(graph, task.X))
    y[new] = np.nan
    whole, whole_s = clocked(lambda: gm.GraphRegressor().fit(graph, task.X, y))
    near = difference(small, whole)
    _, anew_s = clocked(lambda: small.extend(graph, task.X, search="anew"))
    return {
        "nodes": n,
        "labels": int(labelled.size),
        "file MB": size,
        "pickle MB": pickled / 1e6,
        "fit s": fit_s,
        "save s": save_s,
        "load s": load_s,
        "update s": update_s,
        "fresh fit s": fresh_s,
        "update / fit": update_s / fresh_s,
        "extend s": extend_s,
        "extend / fit": extend_s / whole_s,
        "loaded, max": float(reloaded.max() / unit),
        "update, rms": rms(updated) / unit,
        "update, max": float(updated.max() / unit),
        "extend, rms": rms(near) / unit,
        "anew, max": float(difference(small, whole).max() / unit),
        "anew s": anew_s,
    }


def clocked(call: Callable[[], Any]) -> tuple[Any, float]:
    """Return a model with its predictions computed, and the CPU seconds of both."""
    start = time.process_time()
    model = call()
    model.predict(return_std=True)
    return model, time.process_time() - start


def saved(model: Any) -> tuple[float, float, float, Any]:
    """Return megabytes of the file, CPU seconds to write and read it, and what was read."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.gmrf"
        start = time.process_time()
        model.save(path)
        written = time.process_time()
        loaded = gm.load(path)
        loaded.predict()
        return path.stat().st_size / 1e6, written - start, time.process_time() - written, loaded


def difference(model: Any, other: Any) -> Floats:
    """Return the absolute differences of predictions."""
    return np.asarray(np.abs(model.predict() - other.predict()))


def rms(values: Floats) -> float:
    """Return the root mean square."""
    return float(np.sqrt(np.mean(values**2)))

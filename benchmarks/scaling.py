"""The LP and LGC searches on graphs of growing size: the exponent of time in the number of edges."""

from __future__ import annotations

import numpy as np

from benchmarks.show import Row, best_of, peak_gigabytes
from benchmarks.workload import workload
from graphmrf.selection import assign_folds, search_convolution, search_propagation, whiten


def run(*, quick: bool) -> list[Row]:
    """Time both searches at three sizes and fit a line through the logarithms."""
    rows = [_measure(n) for n in ((5_000, 20_000, 80_000) if quick else (50_000, 200_000, 800_000))]
    edges = np.log([row["edges"] for row in rows])
    for name in ("LP s", "LGC s"):
        exponent = np.polyfit(edges, np.log([row[name] for row in rows]), 1)[0]
        rows[-1][f"{name[:-2]} exponent"] = float(exponent)
    return rows


def _measure(n: int) -> Row:
    work = workload(n)
    folds = assign_folds(int((~np.isnan(work.y)).sum()), 5, seed=0)
    features = whiten(work.X, centred=True)
    search_propagation(work.graph, work.y, folds)  # compile
    lp, found = best_of(2, lambda: search_propagation(work.graph, work.y, folds))
    lgc, found_lgc = best_of(2, lambda: search_convolution(work.graph, features, work.y, folds))
    return {
        "nodes": work.graph.n_nodes,
        "edges": work.graph.n_edges,
        "LP s": lp,
        "LGC s": lgc,
        "LP R2": float(found.mean_r2.max()),
        "LGC R2": float(found_lgc.mean_r2.max()),
        "peak GB": peak_gigabytes(),
    }

"""The LP and LGC searches on graphs of growing size: the exponent of time in the number of edges.

``python -m benchmarks.scaling [--nodes N ...]`` takes other sizes; every node has 10.5 edges.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.show import Row, best_of, peak_gigabytes, show
from benchmarks.workload import workload
from graphmrf.selection import assign_folds, search_convolution, search_propagation, whiten

SIZES = (50_000, 200_000, 800_000)
LONG = 2_000_000
"""Nodes from which a search takes so long that one is measured, not the better of two."""


def run(*, quick: bool) -> list[Row]:
    """Time both searches at three sizes."""
    return measure((5_000, 20_000, 80_000) if quick else SIZES)


def measure(sizes: tuple[int, ...]) -> list[Row]:
    """Return one row a size, the exponents of a line through all logarithms in the last."""
    _measure(5_000)  # compile
    rows = [_measure(n) for n in sizes]
    edges = np.log([row["edges"] for row in rows])
    for name in ("LP s", "LGC s"):
        exponent = np.polyfit(edges, np.log([row[name] for row in rows]), 1)[0]
        rows[-1][f"{name[:-2]} exponent"] = float(exponent)
    return rows


def _measure(n: int) -> Row:
    work = workload(n)
    folds = assign_folds(int((~np.isnan(work.y)).sum()), 5, seed=0)
    features = whiten(work.X, centred=True)
    repeats = 2 if n < LONG else 1
    lp, found = best_of(repeats, lambda: search_propagation(work.graph, work.y, folds))
    lgc, found_lgc = best_of(repeats, lambda: search_convolution(work.graph, features, work.y, folds))
    return {
        "nodes": work.graph.n_nodes,
        "edges": work.graph.n_edges,
        "LP s": lp,
        "LGC s": lgc,
        "LP R2": float(found.mean_r2.max()),
        "LGC R2": float(found_lgc.mean_r2.max()),
        "peak GB": peak_gigabytes(),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="*", default=SIZES, help="numbers of nodes")
    show("scaling", __doc__, measure(tuple(parser.parse_args().nodes)))

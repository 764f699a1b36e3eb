"""The LP and LGC searches on graphs of growing size: the exponent of time in the number of edges.

``python -m benchmarks.scaling [--nodes N ...]`` takes other sizes; every node has 10.5 edges.

``python -m benchmarks.scaling files --nodes N`` makes 64 Parquet files of nodes with 16 features in float32 and 64 of
edges, 10 for every node, runs ``graphmrf predict --method lgc-rp`` on them in a process of its own, and prints seconds
of every stage and the most memory that process held. A tenth of the nodes is labelled. ``--ids text`` has ids such as
user-17 in place of whole numbers; ``--folder DIR`` keeps the files there, and uses those that are there already.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
from sklearn.metrics import r2_score

from benchmarks.show import Row, best_of, peak_gigabytes, show, timed
from benchmarks.workload import workload
from graphmrf.metrics import coverage
from graphmrf.selection import assign_folds, search_convolution, search_propagation, whiten

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphmrf._typing import Ints

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
    folds = assign_folds(int((~np.isnan(work.y)).sum()), 5, random_state=0)
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


PARTS, EDGES, FEATURES, LABELLED = 64, 10, 16, 0.1
"""Files of a table; edges of a node; features; share of the nodes whose outcome is given."""


def files(nodes: int, folder: Path, ids: str) -> list[Row]:
    """Return what a prediction from files takes, and its accuracy at the nodes whose outcome it was not given."""
    if not (folder / "truth.npy").exists():
        make_files(nodes, folder, ids)
    output = folder / "predictions"
    output.mkdir(exist_ok=True)
    for old in output.iterdir():
        old.unlink()
    command = ["predict", "nodes", "edges", "--target", "y", "--method", "lgc-rp", "--quiet", "-o", "predictions"]
    seconds, done = timed(lambda: subprocess.run([sys.executable, "-c", _STAGED, *command], cwd=folder, check=False,
                                                 stdout=subprocess.PIPE, text=True))  # fmt: skip
    if done.returncode:
        raise SystemExit(done.returncode)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    took = {re.sub(r" *\d+", "", name): stop - start for (start, name, *_), (stop, *_) in itertools.pairwise(told)}
    *_, memory, processor = told[-1]
    found = pd.read_parquet(output, columns=["prediction", "lower", "upper", "observed"])
    truth, asked = np.load(folder / "truth.npy"), ~found["observed"].to_numpy()
    low, value, high = (found[name].to_numpy()[asked] for name in ("lower", "prediction", "upper"))
    about = {"ids": ids, "nodes": nodes, "edges": EDGES * nodes, "files": PARTS, "seconds": seconds}
    kinds = {"reading s": ("reading", "ids", "graph"), "search s": ("smoothed", "residuals"),
             "error bars s": ("standard", "scale")}  # fmt: skip
    parts = {kind: sum(s for name, s in took.items() if name.startswith(words)) for kind, words in kinds.items()}
    used = {"processor s": processor, "load": os.getloadavg()[0], "peak GB": memory}
    scores = {"R2": r2_score(truth[asked], value), "coverage of 90%": coverage(truth[asked], low, high)}
    return [about | used | parts | scores | took]


_STAGED = """
import json, logging, sys, time
from benchmarks.show import peak_gigabytes
def told(record):
    print(json.dumps([time.perf_counter(), record.getMessage(), peak_gigabytes(), time.process_time()]), flush=True)
logger, handler = logging.getLogger("graphmrf.progress"), logging.Handler()
handler.emit = told
logger.addHandler(handler)
logger.setLevel(logging.INFO)
logger.info("loading")
from graphmrf.cli import app
try:
    app(sys.argv[1:])
except SystemExit as done:
    logger.info("end")
    raise
"""
"""The command, which also prints when every stage began and how much memory was held at most until then."""


def make_files(nodes: int, folder: Path, ids: str) -> None:
    """Write the tables: a power-law graph, and an outcome of own and neighbours' features, a field and noise."""
    rng = np.random.default_rng(0)
    features = rng.standard_normal((nodes, FEATURES), dtype=np.float32)
    effect = features @ (rng.standard_normal(FEATURES) / 4)
    near, degree = np.zeros(nodes), np.zeros(nodes)
    for name in ("nodes", "edges"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for k, (u, v) in enumerate(_edge_parts(nodes, rng)):
        for here, there in ((u, v), (v, u)):
            near += np.bincount(here, effect[there], nodes)
            degree += np.bincount(here, minlength=nodes)
        _write(folder / "edges", k, {"source": _named(u, ids), "target": _named(v, ids)})
    y = effect + near / np.maximum(degree, 1) + 0.5 * rng.standard_normal(nodes)
    known = np.where(rng.random(nodes) < LABELLED, y, np.nan).astype(np.float32)
    for k, rows in enumerate(np.array_split(np.arange(nodes), PARTS)):
        columns = {f"x{j}": features[rows, j] for j in range(FEATURES)}
        _write(folder / "nodes", k, {"id": _named(rows, ids), **columns, "y": pa.array(known[rows], from_pandas=True)})
    np.save(folder / "truth.npy", y)


def _edge_parts(nodes: int, rng: np.random.Generator) -> Iterator[tuple[Ints, Ints]]:
    # Node i has the weight (i / n)^(-2/3), at most sqrt(n) times the mean; drawn by the inverse of the sum of weights.
    start, label = (3.0 * nodes**0.5) ** -0.5, rng.permutation(nodes)
    for _ in range(PARTS):
        sums = (3.0 - 2.0 * start) * rng.random((2, EDGES * nodes // PARTS))
        place = np.where(sums < start, sums * start**2, ((sums - start) / 3.0 + start) ** 3)
        u, v = label[np.minimum((nodes * place).astype(np.int64), nodes - 1)]
        yield u, v


def _named(numbers: Ints, ids: str) -> pa.Array:
    whole = pa.array(numbers.astype(np.int64))
    return whole if ids == "numbers" else pc.binary_join_element_wise("user", whole.cast(pa.string()), "-")


def _write(folder: Path, k: int, columns: dict[str, Any]) -> None:
    pa.parquet.write_table(pa.table(columns), folder / f"part-{k:03}.parquet")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("what", nargs="?", choices=("searches", "files"), default="searches", help="what to measure")
    parser.add_argument("--nodes", type=int, nargs="*", default=SIZES, help="numbers of nodes")
    parser.add_argument("--ids", choices=("numbers", "text"), default="numbers", help="ids of nodes in files")
    parser.add_argument("--folder", type=Path, help="where files are kept; by default in a temporary folder")
    given = parser.parse_args()
    if given.what == "searches":
        show("scaling", __doc__, measure(tuple(given.nodes)))
    for n in given.nodes if given.what == "files" else ():
        with tempfile.TemporaryDirectory() as temporary:
            show("scaling files", __doc__, files(n, given.folder or Path(temporary), given.ids))

"""Work on the workers of Dask against one process: time, memory, agreement; messages of rows; workers that are killed.

    export NUMBA_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
    python -m benchmarks.cluster columns [--nodes 1000000] [--features 32] [--workers 2]
    python -m benchmarks.cluster rows [--nodes 1000000] [--columns 16] [--workers 2]
    python -m benchmarks.cluster overhead [--nodes 100000]
    python -m benchmarks.cluster kills [--nodes 20000] [--runs 30]
    python -m benchmarks.cluster iterates [--nodes 200000]
    python -m benchmarks.cluster files [--nodes 2000000] [--columns 8] [--gigabytes 4]

With these variables all processes, this one included, use one thread each. Ratios are within one run.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import signal
import sys
import threading
import time
from functools import partial
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from benchmarks.show import Row, peak_gigabytes, show, timed
from benchmarks.workload import workload
from graphmrf.engines import dask_checkpoints
from graphmrf.engines.dask import Cluster, cluster
from graphmrf.graph import Graph
from graphmrf.linalg import multiply, smooth
from graphmrf.selection import assign_folds, search_convolution_and_residual, whiten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from graphmrf._typing import Floats

ALPHA = 0.9


def run(*, quick: bool) -> list[Row]:
    """Run every part at a small size."""
    options = argparse.Namespace(
        nodes=5_000 if quick else 50_000, features=32, columns=16, workers=2, runs=2, seed=0, gigabytes=2
    )
    return [row for part in PARTS.values() for row in part(options)]


def columns(options: argparse.Namespace) -> Iterator[Row]:
    """Search of LGC/RP, every worker with the whole graph."""
    work = workload(options.nodes, n_features=options.features)
    features, folds = whiten(work.X, centred=True), assign_folds(int((~np.isnan(work.y)).sum()), 5, random_state=0)

    def search(graph: Graph) -> Any:
        return search_convolution_and_residual(graph, features, work.y, folds)

    _warm(work.graph.to("numba"))
    _touch_memory(4000 * options.workers * options.nodes)
    before = time.process_time()
    alone, expected = timed(lambda: search(work.graph.to("numba")))
    one = time.process_time() - before
    floor = _crowded(partial(search, work.graph.to("numba")), options.workers) / options.workers / alone
    with _workers(options, partition="columns") as machines:
        graph = work.graph.to(machines)
        _warm(graph, options.workers)
        spent = _processor_time(machines)
        seconds, found = timed(lambda: search(graph))
        client, *workers = np.subtract(_processor_time(machines), spent)
        yield {
            **_about("columns", work.graph, options),
            "seconds": seconds,
            "ratio": seconds / alone,
            "ratio without Dask": floor,
            "one process CPU s": one,
            "client CPU s": float(client),
            "workers CPU s": [round(float(each), 1) for each in workers],
            "CPU ratio": float(client + max(workers)) / one,
            "same level": bool(found.alpha == expected.alpha),
            "difference": float(np.abs(found.predictions - expected.predictions).max()),
            "worker GB": _peak(machines),
        }


def rows(options: argparse.Namespace) -> Iterator[Row]:
    """Smoothing of some columns, every worker with some rows, against SciPy."""
    work = workload(options.nodes, n_features=options.columns)
    X = np.ascontiguousarray(work.X)
    _warm(work.graph.to("numba"))
    _touch_memory(2000 * options.workers * options.nodes)
    before = time.process_time()
    peers = {"scipy": timed(partial(smooth, work.graph.to("scipy"), X, ALPHA))}
    one = time.process_time() - before
    peers["numba"] = timed(partial(smooth, work.graph.to("numba"), X, ALPHA))
    with _workers(options, partition="rows") as machines:
        _warm(workload(2_000).graph.to(machines))
        rest, graph = _peak(machines), work.graph.to(machines)
        placing, _ = timed(partial(smooth, graph, X[:, :1], 0.1))
        engine: Any = graph.engine
        spent, before = _processor_time(machines), engine.messages
        seconds, found = timed(lambda: smooth(graph, X, ALPHA))
        client, *workers = np.subtract(_processor_time(machines), spent)
        steps = (engine.messages - before) // (2 * options.workers)  # a step is two messages to every worker
        peak, share = _peak(machines), _share(work.graph, X) / options.workers / 1e9
        yield {
            **_about("rows", work.graph, options),
            "seconds to place": placing,
            "seconds": seconds,
            "steps": steps,
            "numba seconds a step": peers["numba"][0] / steps,
            "ratio to scipy": seconds / peers["scipy"][0],
            "ratio to numba": seconds / peers["numba"][0],
            "scipy CPU s": one,
            "workers CPU s": [round(float(each), 1) for each in workers],
            "CPU ratio to scipy": float(client + max(workers)) / one,
            "difference": float(np.abs(found - peers["numba"][1]).max()),
            "worker GB": peak,
            "over share": (peak - rest) / share,
        }


def overhead(options: argparse.Namespace) -> Iterator[Row]:
    """Messages, bytes and seconds of one step on rows, for several numbers of parts and workers."""
    work = workload(options.nodes, n_features=16)
    for n_workers, parts in ((4, 4), (4, 16), (4, 64), (8, 8), (16, 16)):
        options.workers = n_workers
        with _workers(options, partition="rows", parts=parts) as machines:
            engine: Any = work.graph.to(machines).engine
            V = engine.load(work.X)
            out, mask, ones = engine.like(V), engine.mask(None, 16), np.ones(16)
            engine.advance(V, ones, V, 0 * ones, mask, out)
            messages, start, busy = engine.messages, time.perf_counter(), time.process_time()
            for _ in range(10):
                engine.advance(V, ones, V, 0 * ones, mask, out)
                engine.subtract(out, ones, V)
            yield {
                **_about("overhead", work.graph, options),
                "parts": parts,
                "messages a step": (engine.messages - messages) / 10,
                "halo MB a step": _halo_rows(work.graph, engine.bounds) * 16 * 8 / 1e6,
                "seconds a step": (time.perf_counter() - start) / 10,
                "CPU s of client and scheduler": (time.process_time() - busy) / 10,
            }


def kills(options: argparse.Namespace) -> Iterator[Row]:
    """One worker killed at a random moment of a smoothing, in new workers each time."""
    work, rng = workload(options.nodes, n_features=48), np.random.default_rng(options.seed)
    expected = smooth(work.graph.to("numba"), work.X, 0.99)
    for partition in ("columns", "rows"):
        lost, same = [], 0
        for k in range(options.runs):
            with _workers(options, partition=partition) as machines:
                graph = work.graph.to(machines)
                _warm(graph, options.workers)
                undisturbed, _ = timed(partial(smooth, graph, work.X, 0.99))
                seconds, found = _killed(machines, partial(smooth, graph, work.X, 0.99), rng, undisturbed)
            lost.append(seconds - undisturbed)
            same += bool(np.abs(found - expected).max() < 1e-8)
            line = {"partition": partition, "run": k, "same": same, "undisturbed": undisturbed, "lost": lost[-1]}
            print(json.dumps(line), file=sys.stderr, flush=True)
        yield {
            **_about(f"kills, {partition}", work.graph, options),
            "runs": options.runs,
            "same answer": same,
            "median s lost": float(np.median(lost)),
            "most s lost": float(np.max(lost)),
        }


def iterates(options: argparse.Namespace) -> Iterator[Row]:
    """Iterates of a smoothing on rows, kept several times: what it takes, and products made again after a kill."""
    work = workload(options.nodes, n_features=16)
    for blow in (False, True):
        with _workers(options, partition="rows") as machines:
            graph = work.graph.to(machines)
            _warm(graph)
            alone, expected = timed(partial(smooth, graph, work.X, 0.99))
            engine = _Kept(graph.engine, machines, kill=blow)
            machines.saving = dask_checkpoints.Saving(every=alone / 4, share=np.inf)
            seconds, found = timed(partial(smooth, graph, work.X, 0.99))
        yield {
            **_about(f"iterates, {'killed' if blow else 'undisturbed'}", work.graph, options),
            "seconds without": alone,
            "seconds": seconds,
            "times kept": len(engine.taken),
            "s to keep": float(np.mean(engine.taken)) if engine.taken else 0.0,
            "bytes a node": engine.n_bytes / options.nodes,
            "products": engine.products,
            "difference": float(np.abs(found - expected).max()),
        }


class _Kept:
    """What an engine on rows does with its iterates; a worker is killed after they were kept twice, if at all."""

    def __init__(self, engine: Any, machines: Cluster, *, kill: bool) -> None:
        self.products, self.taken, self.n_bytes, self._call = 0, list[float](), 0, engine.call
        self._engine, self._machines, self._kill = engine, machines, kill
        engine.call = self._watched

    def _watched(self, parts: Any, name: str, values: Any) -> Any:
        self.products += name == "run" and values[0][1][-1][0] == "advance"
        if name == "run" and self._kill and len(self.taken) == 2:
            self._kill = False
            os.kill(self._machines.ask(self._engine.homes()[0], os.getpid), signal.SIGKILL)
        seconds, found = timed(partial(self._call, parts, name, values))
        if name == "size":
            self.n_bytes = sum(found)
        if name == "save":
            self.taken.append(seconds)
        return found


def files(options: argparse.Namespace) -> Iterator[Row]:
    """Smoothing on a graph in Parquet files that only workers read, with a limit to their memory."""
    rng, distributed = np.random.default_rng(0), import_module("distributed")
    settings = {"n_workers": options.workers, "threads_per_worker": 1, "memory_limit": f"{options.gigabytes}GB"}
    with TemporaryDirectory() as folder, distributed.LocalCluster(**settings, dashboard_address=None) as machines:
        _write_edges(Path(folder), options.nodes, rng)
        with distributed.Client(machines) as client, cluster(client, partition="rows") as made:
            placing, graph = timed(lambda: Graph.from_parquet(folder, n_nodes=options.nodes, cluster=made))
            X = rng.standard_normal((options.nodes, options.columns))
            seconds, found = timed(lambda: smooth(graph, X, ALPHA))
            yield {
                **_about("files", graph, options),
                "columns": options.columns,
                "limit GB": options.gigabytes,
                "seconds to read": placing,
                "seconds": seconds,
                "worker GB": _peak(made),
                "client GB": peak_gigabytes(),
                "residual": _residual(graph, X, found),
            }


def _residual(graph: Graph, X: Floats, found: Floats) -> float:
    """Largest relative residual of the smoothed columns, from one more product on the workers."""
    left = (found - ALPHA * multiply(graph, found)) / (1 - ALPHA) - X
    return float((np.linalg.norm(left, axis=0) / np.linalg.norm(X, axis=0)).max())


def _write_edges(folder: Path, n_nodes: int, rng: np.random.Generator) -> None:
    """Write a random graph with 10 edges for every node, a million in a file: ends of which one is near the other."""
    for k, first in enumerate(range(0, 10 * n_nodes, 1_000_000)):
        u = rng.integers(0, n_nodes, min(1_000_000, 10 * n_nodes - first))
        v = np.where(
            rng.random(u.size) < 0.5, rng.integers(0, n_nodes, u.size), (u + rng.integers(1, 1000, u.size)) % n_nodes
        )
        pd.DataFrame({"source": u, "target": v}).to_parquet(folder / f"{k:05}.parquet")


def _killed(
    machines: Cluster, work: Callable[[], Floats], rng: np.random.Generator, undisturbed: float
) -> tuple[float, Floats]:
    """Do some work while a worker is killed at a moment when it would be under way; return its time and result."""
    machines.look_again()
    pid = machines.ask(str(rng.choice(machines.some_workers())), os.getpid)
    blow = threading.Timer(rng.random() * undisturbed, os.kill, (pid, signal.SIGKILL))
    blow.start()
    seconds, found = timed(work)
    blow.join()
    return seconds, found


PARTS: dict[str, Callable[[argparse.Namespace], Iterator[Row]]] = {
    "columns": columns,
    "rows": rows,
    "overhead": overhead,
    "kills": kills,
    "iterates": iterates,
    "files": files,
}


def _workers(options: argparse.Namespace, **settings: Any) -> Cluster:
    return cluster(f"local:{options.workers}", **settings)


def _crowded(work: Callable[[], Any], n_processes: int) -> float:
    """Return the seconds that several processes take for the same work at once: they share the memory's bandwidth.

    Divided by their number it is what sharing the work out cannot beat on this machine.
    """
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=work) for _ in range(n_processes)]

    def run_all() -> None:
        for process in processes:
            process.start()
        for process in processes:
            process.join()

    return timed(run_all)[0]


def _touch_memory(n_bytes: int) -> None:
    """Use some memory in a process of its own: virtual machines get theirs at first use, in up to 8 s a gigabyte here.

    It would be counted to whoever computes first, with workers the one that has new processes.
    """
    process = multiprocessing.get_context("fork").Process(target=np.ones, args=(n_bytes // 8,))
    process.start()
    process.join()


def _warm(graph: Graph, workers: int = 1) -> None:
    """Let workers load their kernels and their share of the graph: a block of columns for each."""
    smooth(graph, np.ones((graph.n_nodes, 16 * workers)), 0.1)


def _about(part: str, graph: Graph, options: argparse.Namespace) -> Row:
    return {"part": part, "nodes": graph.n_nodes, "edges": graph.n_edges, "workers": options.workers}


def _share(graph: Graph, X: Floats) -> int:
    """Bytes of the edges, and of the blocks of a solve: 10 of 16 columns, see `linalg.multishift`."""
    return int(graph.indptr.nbytes + graph.indices.nbytes + 10 * X.nbytes)


def _peak(machines: Cluster) -> float:
    """Gigabytes that a worker held at most, the files it has mapped included."""
    return max(float(machines.ask(worker, peak_gigabytes)) for worker in machines.some_workers())


def _processor_time(machines: Cluster) -> list[float]:
    """CPU seconds so far of this process, the scheduler in it, and of every worker.

    The client's and the busiest worker's, as if they took turns, say what the work takes on cores that nobody shares.
    """
    return [time.process_time(), *(machines.ask(worker, time.process_time) for worker in sorted(machines.workers()))]


def _halo_rows(graph: Graph, bounds: Floats) -> int:
    """Rows that parts fetch from others in one product."""
    total = 0
    for a, b in pairwise(bounds.tolist()):
        ends = np.unique(graph.indices[graph.indptr[a] : graph.indptr[b]])
        total += int(((ends < a) | (ends >= b)).sum())
    return total


def main() -> None:
    """Run one part, or all, and print a table and JSON lines; with --keep they are added to a file, too."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="default all")
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=32)
    parser.add_argument("--columns", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0, help="of the moments of kills")
    parser.add_argument("--gigabytes", type=float, default=4.0, help="memory of each worker, for files")
    parser.add_argument("--keep", type=Path, help="file that JSON lines are added to")
    options = parser.parse_args()
    for name in options.parts or PARTS:
        found = []
        for row in PARTS[name](options):
            found.append(row)
            if options.keep:
                with options.keep.open("a") as stream:
                    stream.write(json.dumps(row, default=float) + "\n")
        show(f"cluster {name}", PARTS[name].__doc__, found)


if __name__ == "__main__":
    main()

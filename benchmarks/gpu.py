"""What one GPU does: products, searches and fields on it beside their peers, each figure one sub-command.

``python -m benchmarks.gpu product|search|field [--nodes N] [--degree 20] [--labels 0.01] [--keep FILE]``.

Graphs are made on the GPU: "power law" is that of the other benchmarks, "uniform" has random end points. Without a GPU
the engine runs on CPU tensors, to see that all works at a small size; nothing is told of its speed then.
"""

from __future__ import annotations

import argparse
import json
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from benchmarks.paper_data import counties
from benchmarks.show import Row, show
from graphmrf import GraphRegressor
from graphmrf.engines.torch import TorchEngine
from graphmrf.graph import Graph
from graphmrf.linalg import smooth
from graphmrf.selection import assign_folds, search_convolution_and_residual, search_propagation, whiten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from graphmrf._typing import Floats, Ints
    from graphmrf.selection import AlphaSearch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
FEATURES = 16


def product(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the time of a step of the recurrence, fused, beside a product by torch.sparse, and the bandwidth."""
    copy = _copy_bandwidth()
    for kind in ("power law", "uniform"):
        graph = random_graph(options.nodes, options.nodes * options.degree // 2, kind)
        engine = TorchEngine(graph.indptr, graph.indices, graph.weights, graph.degrees, device=DEVICE)
        for k, dtype in ((16, torch.float32), (64, torch.float32), (16, torch.float64)):
            yield {"graph": kind, "nodes": graph.n_nodes, "nonzeros": graph.indices.size} | _product(
                graph, engine, (k, dtype), copy
            )


def _product(graph: Graph, engine: TorchEngine, size: tuple[int, Any], copy: float) -> Row:
    k, dtype = size
    roots = torch.from_numpy(np.sqrt(np.maximum(graph.degrees, 1.0))).to(DEVICE)[:, None]
    X = torch.randn((graph.n_nodes, k), dtype=dtype, device=DEVICE)
    V = (X / roots).to(dtype)
    out, mask, ones, zeros = engine.like(V), engine.mask(None, k), np.ones(k), np.zeros(k)
    seconds = _milliseconds(lambda: engine.advance(V, ones, V, zeros, mask, out))
    peer = _csr(graph, dtype)
    peer_seconds, expected = _milliseconds(lambda: peer @ X), peer @ X
    isolated = torch.from_numpy(graph.isolated.copy()).to(DEVICE)
    expected[isolated] = X[isolated]
    width, nnz = k * X.element_size(), graph.indices.size
    moved = nnz * (width + 4) + 2 * graph.n_nodes * width
    return {
        "type": str(dtype).removeprefix("torch."),
        "columns": k,
        "ours ms": seconds,
        "torch.sparse ms": peer_seconds,
        "times faster": peer_seconds / seconds,
        "GB/s with gathered bytes": moved / seconds / 1e6,
        "of copy": moved / seconds / 1e6 / copy,
        "copy GB/s": copy,
        "relative error": float((out * roots - expected).norm() / expected.norm()),
    }


def _csr(graph: Graph, dtype: Any) -> Any:
    """Return S as PyTorch's own sparse matrix."""
    indptr, indices = (torch.from_numpy(each.astype(np.int32)).to(DEVICE) for each in (graph.indptr, graph.indices))
    d = torch.from_numpy(np.maximum(graph.degrees, 1.0) ** -0.5).to(DEVICE)
    values = (torch.repeat_interleave(d, indptr.diff().long()) * d[indices.long()]).to(dtype)
    return torch.sparse_csr_tensor(indptr, indices, values, size=(graph.n_nodes, graph.n_nodes))


def _copy_bandwidth() -> float:
    """Return the GB/s of a copy on the device, bytes read and bytes written."""
    source = torch.randn(1 << (29 if DEVICE == "cuda" else 22), device=DEVICE)
    target = torch.empty_like(source)
    return float(8 * source.numel() / _milliseconds(lambda: target.copy_(source)) / 1e6)


def _milliseconds(work: Callable[[], Any], repeats: int = 10) -> float:
    """Return the median time of some work on the device, after two runs to warm up."""
    times = []
    for _ in range(repeats + 2):
        _synchronise()
        start = time.perf_counter()
        work()
        _synchronise()
        times.append(1e3 * (time.perf_counter() - start))
    return float(np.median(times[2:]))


def _synchronise() -> None:
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def random_graph(n: int, n_edges: int, kind: str, seed: int = 0) -> Graph:
    """Return a random graph whose compressed rows are made on the device."""
    generator = torch.Generator(DEVICE).manual_seed(seed)
    ends = torch.rand((2, n_edges), dtype=torch.float64, device=DEVICE, generator=generator)
    if kind == "power law":
        weight = (torch.arange(1, n + 1, device=DEVICE, dtype=torch.float64) / n) ** (-1 / 1.5)
        cumulative = torch.cumsum(torch.minimum(weight, weight.mean() * n**0.5), 0)
        label = torch.randperm(n, device=DEVICE, generator=generator)
        u, v = (label[torch.searchsorted(cumulative, end * cumulative[-1]).clamp(max=n - 1)] for end in ends)
    else:
        u, v = (ends * n).long().clamp(max=n - 1)
    del ends
    apart = u != v
    u, v = u[apart], v[apart]
    keys = torch.unique(torch.cat([u * n + v, v * n + u]))
    indptr = torch.searchsorted(keys, torch.arange(n + 1, device=DEVICE) * n)
    graph = object.__new__(Graph)
    arrays = {"indptr": indptr, "indices": keys % n}
    stored = {name: each.to(torch.int32).cpu().numpy() for name, each in arrays.items()}
    graph.__setstate__({**stored, "weights": None, "notes": (), "ids": None})
    return graph


def search(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the time of the searches of 14 levels and 5 folds; at a small size, how far SciPy's engine is from them."""
    yield from _searches(min(options.nodes, 100_000), options.degree, 0.3, "scipy")
    yield from _searches(options.nodes, options.degree, options.labels, None)


def _searches(n: int, degree: int, share: float, peer: str | None) -> Iterator[Row]:
    graph, rng = random_graph(n, n * degree // 2, "power law"), np.random.default_rng(0)
    upload, on_device = _timed(partial(_on_device, graph))
    X, y = _outcome(on_device, rng)
    y[rng.random(n) >= share] = np.nan
    whitening, features = _timed(partial(whiten, X, centred=True))
    folds = assign_folds(int(np.count_nonzero(~np.isnan(y))), 5, random_state=0)
    searches: dict[str, Callable[[Graph], AlphaSearch]] = {
        "LP": lambda on: search_propagation(on, y, folds),
        "LGC/RP": lambda on: search_convolution_and_residual(on, features, y, folds),
    }
    for name, run in searches.items():
        first, _ = _timed(partial(run, on_device))
        again, found = _timed(partial(run, on_device))
        row = {"search": name, "nodes": n, "nonzeros": graph.indices.size, "labels": folds.size, "s": again}
        row |= {"first s": first, "graph to the GPU s": upload, "whitening s": whitening, "alpha": found.alpha}
        yield row | (_compared(run(graph.to(peer)), found) if peer else {})


def _outcome(graph: Graph, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return features, and an outcome made of smoothed features, a smooth field and noise."""
    X = rng.standard_normal((graph.n_nodes, FEATURES), dtype=np.float32).astype(np.float64)
    sources = np.column_stack([X @ rng.standard_normal(FEATURES), rng.standard_normal(graph.n_nodes)])
    parts = smooth(graph, sources, [0.8, 0.95], tolerance=1e-4)
    return X, (parts / parts.std(axis=0)).sum(axis=1) + 0.3 * rng.standard_normal(graph.n_nodes)


def field(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the time of `GraphRegressor`, fit and predict, on the GPU and beside it on the CPU, and how they differ."""
    graph, X, y, labelled = _labelled(options)
    known = np.full(y.size, np.nan)
    known[labelled] = y[labelled]
    reference: GraphRegressor | None = None
    for name in (*(() if options.once else ("first",)), "cuda", *options.peers):
        on = graph.to(name) if name in options.peers else _on_device(graph)
        model = GraphRegressor(solver=options.solver)
        fitting, _ = _timed(partial(model.fit, on, X, known))
        predicting, (mean, std) = _timed(partial(model.predict, return_std=True))
        reference = reference or model
        row = {"engine": name, "solver": model.solver_, "nodes": y.size, "edges": graph.n_edges}
        row |= {"labels": labelled.size, "fit s": fitting, "predict s": predicting}
        yield row | _scores(y, known, mean, std) | _apart(reference, model)


def _labelled(options: argparse.Namespace) -> tuple[Graph, Floats, Floats, Ints]:
    graph, X, y = _data(options)
    return graph, X, y, np.random.default_rng(1).permutation(y.size)[: round(options.labels * y.size)]


def _data(options: argparse.Namespace) -> tuple[Graph, Floats, Floats]:
    if options.counties:
        task = counties()["election"]
        return task.graph, task.X, task.y
    graph = random_graph(options.nodes, options.nodes * options.degree // 2, "power law")
    return graph, *_outcome(_on_device(graph), np.random.default_rng(0))


def _scores(y: Floats, known: Floats, mean: Floats, std: Floats) -> Row:
    hidden = np.isnan(known)
    miss = np.abs(mean - y)[hidden]
    return {"R2": 1.0 - float(np.mean(miss**2) / y[hidden].var()), "90 %": float(np.mean(miss <= 1.645 * std[hidden]))}


def _apart(expected: GraphRegressor, found: GraphRegressor) -> Row:
    """Return the largest difference of predictions, in deviations of the outcome, and of hyper-parameters, relative."""
    means = [np.asarray(model.predict()) for model in (expected, found)]
    shapes = [np.hstack([np.ravel(value) for value in dict(m.hyperparameters_).values()]) for m in (expected, found)]
    return {
        "predictions apart": float(np.abs(means[0] - means[1]).max() / means[0].std()),
        "hyper-parameters apart": float((np.abs(shapes[0] - shapes[1]) / np.maximum(np.abs(shapes[0]), 1e-3)).max()),
        "log evidence": found.log_evidence_,
    }


def _on_device(graph: Graph) -> Graph:
    moved = graph.to("cuda")
    engine = TorchEngine(graph.indptr, graph.indices, graph.weights, graph.degrees, device=DEVICE)
    moved.__dict__["engine"] = engine
    return moved


def _compared(expected: AlphaSearch, found: AlphaSearch) -> Row:
    scale = float(np.abs(expected.predictions).max())
    return {
        "same level as SciPy's": expected.alpha == found.alpha,
        "largest difference": float(np.abs(expected.predictions - found.predictions).max()) / scale,
    }


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    _synchronise()
    start = time.perf_counter()
    result = work()
    _synchronise()
    return time.perf_counter() - start, result


FIGURES: dict[str, Callable[[argparse.Namespace], Iterator[Row]]] = {
    "product": product,
    "search": search,
    "field": field,
}


def run(*, quick: bool) -> list[Row]:
    """Run all figures on a GPU; quick: products of a small graph, on CPU tensors where there is no GPU."""
    if quick:
        return list(product(_parser().parse_args(["product", "--nodes", "2000"])))
    if DEVICE == "cpu":
        return [{"skipped": "no GPU"}]
    return [
        {"benchmark": f"gpu {name}"} | row
        for name, figure in FIGURES.items()
        for row in figure(_parser().parse_args([name]))
    ]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("figure", choices=FIGURES)
    parser.add_argument("--nodes", type=int, default=10_000_000)
    parser.add_argument("--degree", type=int, default=20, help="mean degree, before repeated edges are counted once")
    parser.add_argument("--labels", type=float, default=0.01, help="share of the nodes that are labelled")
    parser.add_argument("--solver", default="auto", help="of the field: dense, sparse or auto")
    parser.add_argument("--once", action="store_true", help="of the field: no run before to compile kernels")
    parser.add_argument("--counties", action="store_true", help="of the field: U.S. counties, not a random graph")
    parser.add_argument("--peers", nargs="*", default=["scipy"], help="of the field: CPU engines to compare with")
    parser.add_argument("--keep", type=Path, help="file that JSON lines are added to")
    return parser


def main() -> None:
    """Run one figure; rows are printed, and kept if wanted, as they come."""
    options = _parser().parse_args()
    rows = []
    for row in FIGURES[options.figure](options):
        rows.append(row)
        print(json.dumps(row), flush=True)
        if options.keep:
            with options.keep.open("a") as file:
                file.write(json.dumps({"benchmark": f"gpu {options.figure}", **row}) + "\n")
    show(f"gpu {options.figure}", __doc__, rows)


if __name__ == "__main__":
    main()

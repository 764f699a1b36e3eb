"""Speed against PyTorch Geometric: simple graph convolution with all K, and a training step of the network.

SGC: "products" are the features after 0, 1, 2, 3 steps, "fit" is everything from the cross-validation to the
predictions; PyTorch Geometric runs its `SGConv` for K = 1, 2, 3, in single precision, without any fit. The error is
the largest difference of the features after 3 steps. GCN: full-batch steps (forward, backward, AdamW) of a network of
two layers; the plain script is `GCNConv` with cached normalisation, by edge list and by sparse matrix.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.show import best_of
from benchmarks.workload import workload
from graphmrf import SimpleGraphConvolution
from graphmrf.errors import MissingExtraError
from graphmrf.linalg.smoothing import powers
from graphmrf.networks.options import FULL_TRAINING, LayerShape, require_torch

if TYPE_CHECKING:
    from benchmarks.show import Row
    from benchmarks.workload import Workload
    from graphmrf._typing import Floats

STEPS = 3


def run(*, quick: bool) -> list[Row]:
    """Time both on the same graph: 200,000 nodes, 2,000,000 edges, 16 features."""
    try:
        require_torch()
    except MissingExtraError as error:
        return [{"skipped": str(error)}]
    work = workload(20_000 if quick else 200_000)
    size = {"nodes": work.graph.n_nodes, "edges": work.graph.n_edges, "features": work.X.shape[1]}
    return [{**size, **_convolution(work, 3)}, {**size, **_step(work, 2)}]


def _convolution(work: Workload, repeats: int) -> Row:
    def products() -> Floats:
        return powers(work.graph.loop_engine, work.X, 3)

    SimpleGraphConvolution().fit(work.graph, work.X, work.y)  # compiles the kernels, once for all installations
    ours, features = best_of(repeats, products)
    fit, _ = best_of(repeats, lambda: SimpleGraphConvolution().fit(work.graph, work.X, work.y).predict())
    theirs, expected = best_of(repeats, lambda: _sgconv(work))
    return {
        "what": "SGC, K = 0, 1, 2, 3",
        "products s": ours,
        "fit s": fit,
        "PyG s": theirs,
        "products ratio": theirs / ours,
        "fit ratio": theirs / fit,
        "error": float(np.abs(features[3] - expected).max()),
    }


def _sgconv(work: Workload) -> Floats:
    """Run SGConv for every K, with the identity in place of its weights; return what the last gives."""
    torch, nn = require_torch(), _pyg()
    edges, X = _edges(work), torch.tensor(work.X, dtype=torch.float32)
    p = work.X.shape[1]
    with torch.no_grad():
        for K in (1, 2, 3):
            layer = nn.SGConv(p, p, K=K, bias=False)
            layer.lin.weight.copy_(torch.eye(p))
            H = layer(X, edges)
    values: Floats = H.numpy()
    return values


def _step(work: Workload, repeats: int) -> Row:
    ours, _ = best_of(repeats, _our_steps(work))
    by_edges, _ = best_of(repeats, _plain_steps(work, _edges(work)))
    by_matrix, _ = best_of(repeats, _plain_steps(work, _matrix(work)))
    return {
        "what": f"GCN, {STEPS} steps",
        "fit s": ours,
        "PyG s": by_edges,
        "PyG sparse s": by_matrix,
        "fit ratio": by_edges / ours,
        "sparse ratio": by_matrix / ours,
    }


def _our_steps(work: Workload) -> Any:
    from graphmrf.networks.training import Inputs, LearningTask, train

    inputs, known = Inputs.of(work.graph, work.X, FULL_TRAINING, "cpu"), ~np.isnan(work.y)
    problem = LearningTask(inputs, work.y, known[None], FULL_TRAINING, [0])
    return lambda: list(train(problem, [LayerShape(2, 32, relu=True, bias=True)], [STEPS]))


def _plain_steps(work: Workload, edges: Any) -> Any:
    """Return the script anyone would write."""
    torch, nn = require_torch(), _pyg()
    X, known = torch.tensor(work.X, dtype=torch.float32), torch.tensor(~np.isnan(work.y))
    y = torch.tensor(np.nan_to_num(work.y), dtype=torch.float32)
    layers = [nn.GCNConv(X.shape[1], 32, cached=True), nn.GCNConv(32, 32, cached=True), torch.nn.Linear(32, 1)]
    optimiser = torch.optim.AdamW([p for layer in layers for p in layer.parameters()], lr=1e-2)

    def steps() -> None:
        for _ in range(STEPS):
            optimiser.zero_grad()
            H = torch.relu(layers[1](torch.relu(layers[0](X, edges)), edges))
            loss = ((layers[2](H)[:, 0] - y)[known] ** 2).mean()
            loss.backward()
            optimiser.step()

    steps()  # normalises the edges, which is then cached
    return steps


def _pyg() -> Any:
    from torch_geometric import nn

    return nn


def _edges(work: Workload) -> Any:
    torch, W = require_torch(), work.graph.adjacency.tocoo()
    return torch.tensor(np.vstack(W.coords), dtype=torch.long)


def _matrix(work: Workload) -> Any:
    torch, graph = require_torch(), work.graph
    parts = (torch.tensor(part, dtype=torch.long) for part in (graph.indptr, graph.indices))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch calls all its sparse layouts beta
        return torch.sparse_csr_tensor(*parts, torch.ones(graph.indices.size), size=(graph.n_nodes, graph.n_nodes))

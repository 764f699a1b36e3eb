"""The Triton kernels in Triton's interpreter, on tiny graphs, against the plain operations of the same engine."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

pytest.importorskip("triton")

SCRIPT = """
import numpy as np
from graphmrf.engines.torch import TorchEngine
from graphmrf.graph import Graph

def check(graph, k, dtype, heavy, allowed):
    rng, arrays = np.random.default_rng(k), (graph.indptr, graph.indices, graph.weights, graph.degrees)
    X, P = rng.normal(size=(2, graph.n_nodes, k)).astype(dtype)
    results = []
    for triton in (False, True):
        engine = TorchEngine(*arrays, device="cpu", heavy=heavy, triton=triton)
        V, previous = engine.load(X), engine.load(P)
        out, (scale, back) = engine.like(V).fill_(np.nan), np.linspace(0.5, 2.0, 2 * V.shape[1]).reshape(2, -1)
        mask = engine.mask(allowed and X > 0, V.shape[1])
        sums = [engine.advance(V, scale, previous, back, mask, out)]
        sums.append(engine.subtract(out, back, V))
        results.append([*sums, engine.unload(out, V.shape[1])])
    for plain, fast in zip(*results):
        np.testing.assert_allclose(fast, plain, rtol=0, atol=1e-4 if dtype == "f4" else 1e-11)

rng = np.random.default_rng(0)
u, v = (40 * rng.random((2, 120)) ** 3).astype(int)
hubs = Graph.from_edges(u, v, n_nodes=42)
weighted = Graph.from_edges(u, v, rng.random(120), n_nodes=42)
assert max(np.diff(hubs.indptr)) > 12 and hubs.isolated.any()
for options in [(1, "f8", 1024, None), (3, "f4", 9, True), (5, "f8", 4, True), (70, "f4", 7, None)]:
    check(hubs, *options)
    check(weighted, *options)
check(Graph.from_edges([], [], n_nodes=1), 2, "f8", 9, True)
print("all agree")
"""


def test_the_kernels_agree_with_plain_operations() -> None:
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    words = [sys.executable, "-W", "ignore", "-c", SCRIPT]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == "all agree\n", done.stderr

"""Synthetic data sets like the paper's, drawn here: six kinds of graph, three levels of smoothness."""

from collections.abc import Callable
from functools import partial

import numpy as np

from graphmrf.datasets import synthetic
from graphmrf.datasets.dataset import Files, Recipe, Tables, simple_edges
from graphmrf.datasets.synthetic_published import SHIFTS, describe, sample_tables
from graphmrf.graph import Graph
from graphmrf.model import GaussianMRF

# Sizes and degrees are those of the published files: blocks of 100 nodes, mean degree 20 inside, 0.01 to each other.
_N_SAMPLES = 10
_N = 1000
_SIZES = np.full(10, 100)
_MIXING = np.where(np.eye(10) == 1, 20 / 99, 0.01 / 100)
# How the graph is drawn, the edges it then has, words.
_KINDS: dict[str, tuple[Callable[[], Graph], int, str]] = {
    "ring": (lambda: synthetic.ring(_N, 6), 3000, "a ring"),
    "watts-strogatz": (lambda: synthetic.watts_strogatz(_N, 6, 0.01), 3000, "a Watts-Strogatz graph"),
    "erdos-renyi": (lambda: synthetic.erdos_renyi(_N, 6.0), 3068, "an Erdos-Renyi graph"),
    "barabasi-albert": (lambda: synthetic.barabasi_albert(_N, 10), 9551, "a Barabasi-Albert graph"),
    "block-model": (lambda: synthetic.block_model(_SIZES, _MIXING), 10065, "a block model"),
    "degree-corrected-block-model": (
        lambda: synthetic.degree_corrected_block_model(_SIZES, _MIXING),
        7987,
        "a degree-corrected block model",
    ),
}


def draw_samples(_: Files, *, kind: str, level: int) -> Tables:
    """Return ten samples on a graph of the kind; needs no file."""
    graph = _KINDS[kind][0]()
    H, h = synthetic.parameters(float(level))
    A = GaussianMRF(H, h).sample(graph, n_samples=_N_SAMPLES, seed=0)
    W = graph.adjacency.tocoo()
    return sample_tables(simple_edges(W.row, W.col), A, H, h)


def _recipe(kind: str, level: int) -> Recipe:
    _, n_edges, words = _KINDS[kind]
    info = describe(
        f"synthetic-{kind}-h{level}",
        f"Samples on {words}, h0 = {level}",
        n_edges,
        source="Drawn when it is loaded, always with the same seed, from the model and with the recipe of the paper.",
        licence="None needed.",
        remarks=(
            "the three levels share graph, H and seed: compare them as pairs, not as independent draws",
            "not the numbers of the paper, which are in synthetic-paper-h1, -h10 and -h100",
        ),
    )
    return Recipe(info, {}, partial(draw_samples, kind=kind, level=level))


DRAWN_RECIPES = tuple(_recipe(kind, level) for kind in _KINDS for level in SHIFTS)

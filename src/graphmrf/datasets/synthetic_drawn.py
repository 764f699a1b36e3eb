"""Synthetic data sets like the paper's, drawn here: six kinds of graph, three levels of smoothness."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from graphmrf.datasets import synthetic
from graphmrf.datasets.dataset import Files, Recipe, Tables, simple_edges
from graphmrf.datasets.synthetic_published import LEVELS, describe, sample_tables
from graphmrf.graph import Graph
from graphmrf.model import GaussianMRF

N_SAMPLES = 10
_N = 1000
_SIZES = np.full(10, 100)
_MIXING = np.where(np.eye(10) == 1, 20 / 99, 0.01 / 100)


@dataclass(frozen=True)
class _Kind:
    """How a graph is drawn, and how many edges it then has."""

    draw: Callable[[], Graph]
    n_edges: int
    title: str


_KINDS = {
    "ring": _Kind(lambda: synthetic.ring(_N, 6), 3000, "a ring"),
    "watts-strogatz": _Kind(lambda: synthetic.watts_strogatz(_N, 6, 0.01), 3000, "Watts-Strogatz"),
    "erdos-renyi": _Kind(lambda: synthetic.erdos_renyi(_N, 6.0), 3068, "Erdos-Renyi"),
    "barabasi-albert": _Kind(lambda: synthetic.barabasi_albert(_N, 10), 9551, "Barabasi-Albert"),
    "block-model": _Kind(lambda: synthetic.block_model(_SIZES, _MIXING), 10065, "a block model"),
    "degree-corrected-block-model": _Kind(
        lambda: synthetic.degree_corrected_block_model(_SIZES, _MIXING), 7987, "blocks with hubs"
    ),
}


def clean(_: Files, *, kind: str, level: int) -> Tables:
    """Return ten samples on a graph of the kind; needs no file."""
    graph = _KINDS[kind].draw()
    H, h = synthetic.parameters(float(level))
    A = GaussianMRF(H, h).sample(graph, n_samples=N_SAMPLES, seed=0)
    W = graph.adjacency.tocoo()
    return sample_tables(simple_edges(W.row, W.col), A, H, h)


def _recipe(kind: str, level: int) -> Recipe:
    info = describe(
        f"synthetic-{kind}-h{level}",
        f"Samples on {_KINDS[kind].title}, h0 = {level}",
        _KINDS[kind].n_edges,
        source="Drawn when it is loaded, always with the same seed, from the model and with the recipe of the paper.",
        licence="None needed.",
        remarks=(
            "the table has sample 0; all ten are in extra['samples'], H and h in extra['parameters']",
            "the three levels share graph, H and seed: compare them as pairs, not as independent draws",
            "not the numbers of the paper, which are in synthetic-paper-h1, -h10 and -h100",
        ),
    )
    return Recipe(info, (), partial(clean, kind=kind, level=level))


RECIPES = tuple(_recipe(kind, level) for kind in _KINDS for level in LEVELS)

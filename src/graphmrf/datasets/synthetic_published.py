"""The paper's own synthetic data: ten samples of five attributes on a graph, at three levels of smoothness."""

import json
from functools import partial

import numpy as np
import pandas as pd

from graphmrf._typing import Floats
from graphmrf.datasets.dataset import (
    Attribute,
    Files,
    Info,
    Recipe,
    Tables,
    number_nodes,
    published_files,
    simple_edges,
)

SHIFTS = {1: "+0.0", 10: "+1.0", 100: "+2.0"}
# Folder, title, edges; None where they follow neither from the kind of graph nor from a count.
_GRAPHS: dict[str, tuple[str, str, int | None]] = {
    "": ("WattsStrogatzOriginal", "The paper's own samples", 3000),
    "watts-strogatz-": ("WattsStrogatz", "Published samples on a second Watts-Strogatz graph", 3000),
    "ring-": ("Ring", "Published samples on a ring", 3000),
    "erdos-renyi-": ("ErdosRenyi", "Published samples on an Erdos-Renyi graph", 3000),
    "barabasi-albert-": ("BarabasiAlbert", "Published samples on a Barabasi-Albert graph", None),
    "block-model-": ("StochasticBlockModel", "Published samples on a block model", None),
    "degree-corrected-block-model-": (
        "DegreeCorrectedStochasticBlockModel",
        "Published samples on a degree-corrected block model",
        None,
    ),
}
_OWN = ("the three levels share their white noise: compare them as pairs, not as independent draws",)
_OTHERS = (
    "the six graphs beside the paper's own share their white noise at all levels: compare them as pairs",
    "published with the paper, which does not use it",
)


def clean_samples(files: Files, *, path: str) -> Tables:
    """Return nodes (the first sample), edges, all samples, and the parameters they were drawn with.

    The file has the samples `Y`, the dense adjacency matrix `A`, and the parameters in one vector `ξ0`.
    """
    content = json.loads(files[path].read_text(encoding="utf-8"))
    A = np.asarray(content["Y"], dtype=np.float64)
    H, h = _unpack(np.asarray(content["ξ0"], dtype=np.float64), A.shape[2])
    return sample_tables(simple_edges(*np.nonzero(content["A"])), A, H, h)


def sample_tables(edges: pd.DataFrame, A: Floats, H: Floats, h: Floats) -> Tables:
    """Return samples A (samples, n, q) of the Gaussian MRF with parameters H (q, q) and h (q,) as tables."""
    n_samples, n_nodes, q = A.shape
    names = attribute_names(q)
    samples = pd.DataFrame(A.reshape(n_samples * n_nodes, q), columns=names)
    samples.insert(0, "node", np.tile(np.arange(n_nodes), n_samples))
    samples.insert(0, "sample", np.repeat(np.arange(n_samples), n_nodes))
    return {
        "nodes": number_nodes(dict(zip(names, A[0].T, strict=True))),
        "edges": edges,
        "samples": samples,
        "parameters": pd.DataFrame({"h": h, **{f"H{k + 1}": H[:, k] for k in range(q)}}),
    }


def attribute_names(q: int) -> list[str]:
    """Return a1, a2, ..."""
    return [f"a{k + 1}" for k in range(q)]


def _unpack(xi: Floats, q: int) -> tuple[Floats, Floats]:
    """Return H and h from one vector: h, the diagonal of H, then its upper triangle row by row."""
    upper = np.zeros((q, q))
    upper[np.triu_indices(q, 1)] = xi[2 * q :]
    return upper + upper.T + np.diag(xi[q : 2 * q]), xi[:q]


def describe(
    name: str, title: str, n_edges: int | None, *, source: str, licence: str, remarks: tuple[str, ...]
) -> Info:
    """Return what is known of ten samples of five attributes on 1000 nodes."""
    names = attribute_names(5)
    attributes = tuple(Attribute(each, "", "drawn from the Gaussian MRF") for each in names)
    where = "the table has sample 0; all ten are in extra['samples'], H and h in extra['parameters']"
    return Info(name, title, 1000, n_edges, attributes, tuple(names), source, licence, (where, *remarks))


def _recipe(prefix: str, level: int) -> Recipe:
    folder, title, n_edges = _GRAPHS[prefix]
    info = describe(
        f"synthetic-paper-{prefix}h{level}",
        f"{title}, h0 = {level}",
        n_edges,
        source="Reference implementation of Jia & Benson, A Unifying Generative Model for Graph Learning Algorithms.",
        licence="Generated data; the repository has no licence file.",
        remarks=_OTHERS if prefix else _OWN,
    )
    path = f"synthetic/{folder}/shift_{SHIFTS[level]}.json"
    return Recipe(info, published_files(path), partial(clean_samples, path=path))


PUBLISHED_RECIPES = tuple(_recipe(prefix, level) for prefix in _GRAPHS for level in SHIFTS)

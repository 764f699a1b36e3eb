"""The paper's own synthetic data: ten samples of five attributes on one graph, at three levels of smoothness."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from graphmrf._typing import Floats
from graphmrf.datasets.dataset import Attribute, Info
from graphmrf.datasets.recipe import Files, RawFile, Recipe, Tables, number_nodes, simple_edges

LEVELS = (1, 10, 100)
_NAMES = tuple(f"a{k}" for k in range(1, 6))


def clean(files: Files, *, path: str) -> Tables:
    """Return nodes (the first sample), edges, all samples, and the parameters they were drawn with."""
    file = files[path]
    W, A, H, h = _read_archive(file) if file.suffix == ".npz" else _read_json(file)
    n_samples, n_nodes, _ = A.shape
    samples = pd.DataFrame(A.reshape(n_samples * n_nodes, -1), columns=list(_NAMES))
    samples.insert(0, "node", np.tile(np.arange(n_nodes), n_samples))
    samples.insert(0, "sample", np.repeat(np.arange(n_samples), n_nodes))
    parameters = pd.DataFrame({"h": h, **{f"H{k + 1}": H[:, k] for k in range(len(h))}})
    return {
        "nodes": number_nodes(dict(zip(_NAMES, A[0].T, strict=True))),
        "edges": simple_edges(*W),
        "samples": samples,
        "parameters": parameters,
    }


def _read_json(file: Path) -> tuple[Floats, Floats, Floats, Floats]:
    """Read the published form: samples, dense adjacency, then h and H as one vector, its diagonal first."""
    content = json.loads(file.read_text(encoding="utf-8"))
    A = np.asarray(content["Y"], dtype=np.float64)
    xi = np.asarray(content["ξ0"], dtype=np.float64)
    q = A.shape[2]
    H = np.zeros((q, q))
    H[np.triu_indices(q, 1)] = xi[2 * q :]
    H = H + H.T + np.diag(xi[q : 2 * q])
    return np.array(np.nonzero(content["A"])), A, H, xi[:q]


def _read_archive(file: Path) -> tuple[Floats, Floats, Floats, Floats]:
    with np.load(file) as content:
        return content["edges"].T, content["attributes"].astype(np.float64), content["H"], content["h"]


def _recipe(level: int) -> Recipe:
    shift = {1: "+0.0", 10: "+1.0", 100: "+2.0"}[level]
    path = f"synthetic/WattsStrogatzOriginal/shift_{shift}.json"
    info = Info(
        name=f"synthetic-paper-h{level}",
        title=f"The paper's own samples, h0 = {level}",
        n_nodes=1000,
        n_edges=3000,
        attributes=tuple(Attribute(name, "", "drawn from the Gaussian field") for name in _NAMES),
        outcomes=_NAMES,
        source="Reference implementation of Jia & Benson, A Unifying Generative Model for Graph Learning Algorithms.",
        licence="Generated data; the repository has no licence file.",
        remarks=(
            "the table has sample 0; all ten are in extra['samples'], H and h in extra['parameters']",
            "the three levels share their white noise: compare them as pairs, not as independent draws",
            "no checksum of its file is on record, so it is not downloaded: give it in a folder",
        ),
    )
    alternative = f"synthetic/WattsStrogatzOriginal_h{level}.npz"
    return Recipe(info, (RawFile(path, alternative=alternative),), partial(clean, path=path))


RECIPES = tuple(_recipe(level) for level in LEVELS)

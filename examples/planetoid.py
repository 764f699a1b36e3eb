"""Accuracy on Cora, CiteSeer and PubMed, on the public split: 20 labels a class, and 1,000 test nodes.

PyTorch Geometric fetches the data, which needs internet access the first time:

    pip install torch_geometric
    python examples/planetoid.py Cora CiteSeer PubMed
"""

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import TruncatedSVD

import graphmrf as gm

FOLDER = Path("planetoid")
METHODS = {
    "label propagation": gm.LabelPropagation(),
    "simple graph convolution": gm.SimpleGraphConvolution(),
    "graph convolution + residual propagation": gm.ResidualPropagation(gm.LinearGraphConvolution()),
    "field": None,  # the default of GraphClassifier
}


def load(name: str, folder: Path) -> Any:
    """Return a graph with features, classes and masks, fetched unless it is in the folder."""
    try:
        from torch_geometric.datasets import Planetoid
    except ImportError as error:
        raise SystemExit("torch_geometric is missing; install it with: pip install torch_geometric") from error
    try:
        return Planetoid(str(folder), name)[0]
    except (OSError, TimeoutError) as error:
        files, source = f"ind.{name.lower()}.*", "https://github.com/kimiyoung/planetoid/tree/master/data"
        raise SystemExit(
            f"{name} cannot be downloaded: {error}\n"
            f"On a computer with internet access, copy the files {files} of {source} to {folder / name / 'raw'}"
        ) from error


def accuracy(data: Any, regressor: Any, *, n_components: int = 50) -> float:
    """Return the share of test nodes whose class is right; features are principal components of the words."""
    truth, tested = data.y.numpy(), data.test_mask.numpy()
    y = np.where(data.train_mask.numpy(), truth.astype(float), np.nan)
    X = TruncatedSVD(n_components, random_state=0).fit_transform(data.x.numpy())
    found = gm.GraphClassifier(regressor).fit(gm.Graph.from_pyg(data), X, y).predict()
    return float(np.mean(found[tested] == truth[tested]))


def main(names: list[str], folder: Path = FOLDER) -> None:
    """Print the accuracy and the seconds of every method on every data set."""
    for name in names:
        data = load(name, folder)
        for method, regressor in METHODS.items():
            start = time.perf_counter()
            share = accuracy(data, regressor)
            print(f"{name}, {method}: {share:.1%} right, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:] or ["Cora", "CiteSeer", "PubMed"])

"""The paper's data sets in miniature, as cleaned files: same columns, a hundred nodes."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from graphmrf.datasets.synthetic import watts_strogatz
from graphmrf.graph import Graph
from graphmrf.model import GaussianMRF

COUNTY = (
    *("sh050m", "sh100m", "sh500m", "income", "migration"),
    *("birth", "death", "education", "unemployment", "election"),
)
CLIMATE = ("airT", "landT", "precipitation", "sunlight", "pm2.5")
WARD = ("edu", "age", "gender", "income", "populationsize", "election")
N_NODES = 100


def write_all(folder: Path) -> Path:
    """Write all real data sets of the experiments, and return the folder."""
    fips = [f"{1000 + k:05d}" for k in range(N_NODES)]
    for year in (2012, 2016):
        write_table(folder / "county_facebook", f"nodes_{year}", COUNTY, {"fips": fips}, seed=year)
    write_table(folder / "climate", "nodes_2008", CLIMATE, {"fips": fips}, seed=1)
    write_table(folder / "london", "nodes_2016", WARD, {"x": range(N_NODES), "y": range(N_NODES)}, seed=2)
    for seed, code in enumerate(("PTBR", "DE", "ENGB")):
        write_twitch(folder / "twitch" / code, seed=seed)
    return folder


def write_table(
    folder: Path, name: str, columns: Sequence[str], named: dict[str, Sequence[object]], *, seed: int
) -> None:
    """Write a sample of a smooth, correlated field; all values positive."""
    folder.mkdir(parents=True, exist_ok=True)
    graph, q = _write_edges(folder), len(columns)
    H = 2.0 * np.eye(q) - 1.5 / q
    A = GaussianMRF(H, np.full(q, 4.0)).sample(graph, 1, seed=seed)[0]
    frame = pd.DataFrame({"node": range(N_NODES), **named, **dict(zip(columns, np.exp(A.T), strict=True))})
    frame.to_csv(folder / f"{name}.csv.gz", index=False)


def write_twitch(folder: Path, *, seed: int) -> None:
    """Write channels with binary features, some of which go with the age of the channel."""
    folder.mkdir(parents=True, exist_ok=True)
    _write_edges(folder)
    rng = np.random.default_rng(seed)
    binary = rng.random((N_NODES, 120)) < 0.3
    days = 500 + 100 * binary[:, :5].sum(axis=1) + rng.normal(0, 20, N_NODES).round()
    nodes = {"node": range(N_NODES), "twitch_id": range(N_NODES), "days": days, "mature": binary[:, 0].astype(int)}
    pd.DataFrame({**nodes, "views": 1, "partner": 0}).to_csv(folder / "nodes.csv.gz", index=False)
    pd.DataFrame(np.argwhere(binary), columns=["node", "feature"]).to_csv(folder / "features.csv.gz", index=False)


def _write_edges(folder: Path) -> Graph:
    graph = watts_strogatz(N_NODES, 6, 0.1)
    W = graph.adjacency.tocoo()
    edges = pd.DataFrame({"u": W.row, "v": W.col}).query("u < v")
    edges.to_csv(folder / "edges.csv.gz", index=False)
    return graph

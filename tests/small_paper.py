"""The paper's data sets in miniature, same columns, a hundred nodes: a cache that `load` takes for its own."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from graphmrf.model import GaussianMRF
from graphmrf_paper import catalogue
from graphmrf_paper.synthetic import watts_strogatz

COUNTY = (
    *("sh050m", "sh100m", "sh500m", "income", "migration"),
    *("birth", "death", "education", "unemployment", "election"),
)
CLIMATE = ("airT", "landT", "precipitation", "sunlight", "pm2.5")
WARD = ("edu", "age", "gender", "income", "populationsize", "election")
N_NODES = 100
_GRAPH = watts_strogatz(N_NODES, 6, 0.1)
_NOWHERE = "http://127.0.0.1:9/"  # refuses every download


def use(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let data sets be those of a cache; what it lacks is not to be had."""
    monkeypatch.delenv("GRAPHMRF_DATA", raising=False)
    monkeypatch.setenv("GRAPHMRF_CACHE", str(cache))
    monkeypatch.setenv("GRAPHMRF_MIRROR", _NOWHERE)


def write_all(cache: Path) -> Path:
    """Write all real data sets of the experiments, and return the cache."""
    for name, nodes in county_tables().items():
        keep(cache, name, nodes)
    keep(cache, "cdc-2008", drawn(CLIMATE, {"fips": fips()}, seed=1))
    keep(cache, "london-2016", drawn(WARD, {"x": range(N_NODES), "y": range(N_NODES)}, seed=2))
    for seed, code in enumerate(("ptbr", "de", "engb")):
        keep(cache, f"twitch-{code}", *channels(seed=seed))
    return cache


def keep_synthetic(cache: Path) -> None:
    """Put the paper's first synthetic data set into a cache."""
    keep(cache, "synthetic-paper-h1", drawn(("a1", "a2", "a3", "a4", "a5"), {}, seed=3))


def county_tables() -> dict[str, pd.DataFrame]:
    """Return the counties of both years."""
    return {f"us-{year}": drawn(COUNTY, {"fips": fips()}, seed=year) for year in (2012, 2016)}


def fips() -> list[str]:
    return [f"{1000 + k:05d}" for k in range(N_NODES)]


def drawn(columns: Sequence[str], named: dict[str, Sequence[object]], *, seed: int) -> pd.DataFrame:
    """Return a sample of a smooth, correlated field; all values positive."""
    q = len(columns)
    H = 2.0 * np.eye(q) - 1.5 / q
    A = GaussianMRF(H, np.full(q, 4.0)).sample(_GRAPH, 1, random_state=seed)[0]
    return pd.DataFrame({"node": range(N_NODES), **named, **dict(zip(columns, np.exp(A.T), strict=True))})


def channels(*, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return channels and their binary features, some of which go with the age of the channel."""
    rng = np.random.default_rng(seed)
    binary = rng.random((N_NODES, 120)) < 0.3
    days = 500 + 100 * binary[:, :5].sum(axis=1) + rng.normal(0, 20, N_NODES).round()
    nodes = {"node": range(N_NODES), "twitch_id": range(N_NODES), "days": days, "mature": binary[:, 0].astype(int)}
    features = pd.DataFrame(np.argwhere(binary), columns=["node", "feature"])
    return pd.DataFrame({**nodes, "views": 1, "partner": 0}), features


def keep(cache: Path, name: str, nodes: pd.DataFrame, features: pd.DataFrame | None = None) -> None:
    """Put a data set into the cache, as if it came from the published files."""
    made, W = catalogue.recipe(name), _GRAPH.adjacency.tocoo()
    edges = pd.DataFrame({"u": W.row, "v": W.col}).query("u < v")
    tables = {"nodes": nodes, "edges": edges} | ({} if features is None else {"features": features})
    catalogue.cached_tables(made, catalogue.published_checksums(made), cache, lambda: tables)

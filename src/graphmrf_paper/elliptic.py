"""Bitcoin transactions (Elliptic): 49 time steps, 166 numbers each, some known to be licit or illicit."""

import numpy as np
import pandas as pd

from graphmrf.errors import InvalidInputError
from graphmrf_paper.dataset import Attribute, Files, Info, Recipe, Tables, locate, number_nodes, simple_edges

_FEATURES, _EDGES, _CLASSES = (f"elliptic_txs_{part}.csv" for part in ("features", "edgelist", "classes"))
_LOCAL = tuple(f"local_{k}" for k in range(1, 94))
_AGGREGATED = tuple(f"aggregated_{k}" for k in range(1, 73))
_COLUMNS = ("tx_id", "time_step", *_LOCAL, *_AGGREGATED)
CLASS_COUNTS = {"illicit": 4545, "licit": 42019, "unknown": 157205}
"""Transactions of every class, as published."""
_ILLICIT = {"1": 1.0, "2": 0.0, "unknown": np.nan}
_URL = "https://data.pyg.org/datasets/elliptic/"  # the mirror that PyTorch Geometric downloads from
_ARCHIVES = {
    _FEATURES: "d33d62159e64b5e889f1a7ea880227c612775b58d409598855e0c4400fa52b3e",
    _EDGES: "a2f9f6b67a39da2d8cf87fe77b9db89571ba6d880e5dd5b5991dc45c80fa34ec",
    _CLASSES: "4ca957f0ceffd5dd164e255c7d5ad9ee69a6fa64ae1dd94d6f113e5ebf3b07ba",
}
_TERMS = (
    "CC BY-NC-ND 4.0, as reported by others: name the source, no commercial use, pass on no changed copy "
    "(terms: kaggle.com/datasets/ellipticco/elliptic-data-set)"
)


def clean_transactions(files: Files) -> Tables:
    """Return nodes and edges: transactions in the order of the feature file; `illicit` is 1, 0, or missing."""
    features = _read_features(files)
    known = pd.read_csv(files[_CLASSES], dtype="str").set_index("txId")["class"]
    ids = features["tx_id"].astype("str")
    _check_ids(features["tx_id"], known, files)
    classes = known.reindex(ids)
    strange = sorted(set(classes.dropna()) - set(_ILLICIT))
    if strange:
        raise InvalidInputError(f"{files[_CLASSES]}: class '{strange[0]}' is none of {', '.join(_ILLICIT)}; correct it")
    flows = pd.read_csv(files[_EDGES])
    u, v = (locate(flows[end], features["tx_id"]) for end in ("txId1", "txId2"))
    if (u < 0).any() or (v < 0).any():
        raise InvalidInputError(f"{files[_EDGES]} names a transaction that {files[_FEATURES].name} lacks; remove it")
    illicit = classes.map(_ILLICIT).to_numpy(dtype=np.float64)
    nodes = number_nodes({**{name: features[name].to_numpy() for name in _COLUMNS}, "illicit": illicit})
    return {"nodes": nodes, "edges": simple_edges(u, v)}


def _read_features(files: Files) -> pd.DataFrame:
    frame = pd.read_csv(files[_FEATURES], header=None, engine="pyarrow")
    if frame.shape[1] != len(_COLUMNS):
        raise InvalidInputError(
            f"{files[_FEATURES]} must have {len(_COLUMNS)} columns and no header, got {frame.shape[1]} columns; "
            "take the file as it is published"
        )
    frame.columns = pd.Index(_COLUMNS)
    types = {name: "int64" if name in ("tx_id", "time_step") else "float64" for name in _COLUMNS}
    return frame.astype(types)


def _check_ids(ids: pd.Series, known: pd.Series, files: Files) -> None:
    if ids.duplicated().any() or known.index.duplicated().any():
        raise InvalidInputError(f"a transaction is listed twice in {files[_FEATURES]} or {files[_CLASSES]}; keep one")
    missing = ids[~ids.astype("str").isin(known.index)]
    if len(missing):
        raise InvalidInputError(
            f"{files[_CLASSES]} has no row for transaction {missing.iloc[0]} ({len(missing)} such); "
            "give every transaction a class, or unknown"
        )


_INFO = Info(
    name="elliptic",
    title="Bitcoin transactions (Elliptic)",
    n_nodes=sum(CLASS_COUNTS.values()),
    n_edges=234355,
    attributes=(
        Attribute("time_step", "1-49", "about two weeks each"),
        *(Attribute(name, "", "about the transaction; not disclosed") for name in _LOCAL),
        *(Attribute(name, "", "about its neighbours; not disclosed") for name in _AGGREGATED),
        Attribute("illicit", "0/1", "1 illicit, 0 licit, missing unknown"),
    ),
    outcomes=("illicit",),
    source="Weber et al., Anti-Money Laundering in Bitcoin, arXiv:1908.02591; distributed by Elliptic on Kaggle.",
    licence=f"{_TERMS}. Not redistributed here.",
    remarks=(
        "further column: tx_id",
        "read from a folder that you name, or downloaded (153 MB) by graphmrf datasets fetch elliptic --accept-licence",
        "transactions: " + ", ".join(f"{count:,} {name}" for name, count in CLASS_COUNTS.items()),
    ),
)
ELLIPTIC_RECIPES = (
    Recipe(
        _INFO,
        dict.fromkeys((_FEATURES, _EDGES, _CLASSES)),
        clean_transactions,
        folders=("", "elliptic", "elliptic_bitcoin_dataset"),
        archives=_ARCHIVES,
        url=_URL,
        terms=_TERMS,
    ),
)

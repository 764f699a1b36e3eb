"""Twitch streamers of six languages: mutual friendships, channels, and thousands of binary features."""

import json
from functools import partial

import numpy as np
import pandas as pd

from graphmrf_paper.dataset import Attribute, Files, Info, Recipe, Tables, number_nodes, published_files, simple_edges

N_FEATURES = 3170
"""Width of the binary feature matrix, the same in all six countries, most of which lack some of its columns."""
_PARTS = ("edges.csv", "features.json", "target.csv")
_ATTRIBUTES = (
    Attribute("days", "days", "age of the channel"),
    Attribute("mature", "0/1", "explicit language"),
    Attribute("views", "count", "channel views"),
    Attribute("partner", "0/1", "Twitch partner"),
)
_SOURCE = (
    "Rozemberczki, Allen & Sarkar, Multi-scale Attributed Node Embedding, arXiv:1909.13021; "
    "github.com/benedekrozemberczki/MUSAE; also at SNAP."
)
_LICENCE = (
    "The MUSAE repository carries an MIT licence (software; data not mentioned separately); please cite the paper."
)


# Language spoken, nodes, edges.
_COUNTRIES = {
    "DE": ("German", 9498, 153138),
    "ENGB": ("English", 7126, 35324),
    "ES": ("Spanish", 4648, 59382),
    "FR": ("French", 6549, 112666),
    "PTBR": ("Portuguese", 1912, 31299),
    "RU": ("Russian", 4385, 37304),
}


def _path(code: str, part: str) -> str:
    return f"twitch/{code}/musae_{code}_{part}"


def clean_streamers(files: Files, *, code: str) -> Tables:
    """Return nodes, edges and the ones of the binary feature matrix.

    Of a node listed twice the last row is used (two nodes of FR); a feature listed twice counts once.
    """
    target = pd.read_csv(files[_path(code, "target.csv")]).drop_duplicates("new_id", keep="last").set_index("new_id")
    target = target.loc[np.arange(len(target))]
    nodes = number_nodes(
        {
            "twitch_id": target["id"].to_numpy(),
            **{name: target[name].to_numpy(dtype=np.int64) for name in ("days", "mature", "views", "partner")},
        }
    )
    friends = pd.read_csv(files[_path(code, "edges.csv")])
    listed = json.loads(files[_path(code, "features.json")].read_text(encoding="utf-8"))
    ones = sorted({(int(node), feature) for node, features in listed.items() for feature in features})
    return {
        "nodes": nodes,
        "edges": simple_edges(friends["from"], friends["to"]),
        "features": pd.DataFrame(ones, columns=["node", "feature"], dtype="int64"),
    }


def _recipe(code: str) -> Recipe:
    language, n_nodes, n_edges = _COUNTRIES[code]
    info = Info(
        name=f"twitch-{code.lower()}",
        title=f"Twitch friendships: {language}",
        n_nodes=n_nodes,
        n_edges=n_edges,
        attributes=_ATTRIBUTES,
        outcomes=("days",),
        source=_SOURCE,
        licence=_LICENCE,
        remarks=(
            "further column: twitch_id",
            f"{N_FEATURES} binary features, shared by the six languages, are in extra['features']",
            *(("the set of the paper, which says Portugal",) if code == "PTBR" else ()),
        ),
    )
    return Recipe(info, published_files(*(_path(code, part) for part in _PARTS)), partial(clean_streamers, code=code))


TWITCH_RECIPES = tuple(_recipe(code) for code in _COUNTRIES)

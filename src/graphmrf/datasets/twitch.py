"""Twitch streamers of six languages: mutual friendships, channels, and thousands of binary features."""

import json
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from graphmrf.datasets.dataset import Attribute, Info
from graphmrf.datasets.recipe import Files, RawFile, Recipe, Tables, number_nodes, simple_edges

N_FEATURES = 3170
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


@dataclass(frozen=True)
class _Language:
    """Counts, and the SHA-256 of the three files where it is on record."""

    n_nodes: int
    n_edges: int
    spoken: str
    sha256: tuple[str | None, str | None, str | None] = (None, None, None)


_LANGUAGES = {
    "DE": _Language(
        9498,
        153138,
        "German",
        (
            "54feaf3e3e70a485fe07f8611e4d2677841b97f77b8358204bcf4a48cc884d86",
            "7b39c42570f05cd46017c765df8d8a1bc03f19787c3eb0f9684f50a52476ae3a",
            "2188f58a093bb9db363d3eaf7c3a52c2adc8ff6b23cbcb4f53875f87061c0321",
        ),
    ),
    "ENGB": _Language(
        7126,
        35324,
        "English",
        (
            "5ea4d7f7267454e9523577eb2a9b4dcb7a22dd660a548240f01b815d08e0e3cc",
            "efcd846f7b687d299c9c674f3cda43cd70de8307d2558895bddd3645eb38d500",
            "e9d51399878216d2dd662b0a152b602cccde7b5cbb8452cb91d9379f64114443",
        ),
    ),
    "ES": _Language(4648, 59382, "Spanish"),
    "FR": _Language(6549, 112666, "French"),
    "PTBR": _Language(
        1912,
        31299,
        "Portuguese",
        (
            "b72d93a3c8a82883771a2f3822fce229885fa0d40367fb105c0535fb36c773b9",
            "12ba6c60ce009b1bec8fd5ad110539775d14a2b96011df19ba9f72ad1393a406",
            "ecba7d1287e72ae7c3f42c922be475283288c0c67346245c72109690460444bd",
        ),
    ),
    "RU": _Language(4385, 37304, "Russian"),
}


def _path(code: str, part: str) -> str:
    return f"twitch/{code}/musae_{code}_{part}"


def clean(files: Files, *, code: str) -> Tables:
    """Return nodes, edges and the ones of the binary feature matrix.

    A node listed twice keeps its last row (two nodes of FR); a feature listed twice counts once.
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


def _recipe(code: str, language: _Language) -> Recipe:
    unverified = "no checksum of its files is on record, so they are not downloaded: give them in a folder"
    info = Info(
        name=f"twitch-{code.lower()}",
        title=f"Twitch friendships: {language.spoken}",
        n_nodes=language.n_nodes,
        n_edges=language.n_edges,
        attributes=_ATTRIBUTES,
        outcomes=("days",),
        source=_SOURCE,
        licence=_LICENCE,
        remarks=(
            "further column: twitch_id",
            f"{N_FEATURES} binary features, shared by the six languages, are in extra['features']",
            *(("the set of the paper, which says Portugal",) if code == "PTBR" else ()),
            *((unverified,) if None in language.sha256 else ()),
        ),
    )
    files = tuple(RawFile(_path(code, part), sha) for part, sha in zip(_PARTS, language.sha256, strict=True))
    return Recipe(info, files, partial(clean, code=code))


RECIPES = tuple(_recipe(code, language) for code, language in _LANGUAGES.items())

"""How a data set is made: the raw files it needs, and what turns them into tables."""

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from graphmrf._typing import Ints
from graphmrf.datasets.dataset import Info

Tables: TypeAlias = dict[str, pd.DataFrame]
Files: TypeAlias = Mapping[str, Path]

with Path(__file__).with_name("checksums.csv").open(encoding="utf-8") as _lines:
    _SHA256 = {row["path"]: row["sha256"] for row in csv.DictReader(_lines)}


@dataclass(frozen=True)
class RawFile:
    """A published file.

    Parameters
    ----------
    path : str
        Inside the folder of raw files, with slashes.
    sha256 : str or None
        None where no checksum is on record; such a file is never downloaded.
    alternative : str
        Another path under which a folder may hold the same content.
    """

    path: str
    sha256: str | None = None
    alternative: str = ""


@dataclass(frozen=True)
class Recipe:
    """A data set as a function of its raw files.

    Parameters
    ----------
    info : Info
        What is known without the files.
    files : tuple of RawFile
        What `clean` needs.
    clean : callable
        From a path for each of `files` to the tables `nodes`, `edges` and others.
    folders : tuple of str
        Folders below the user's in which the files may lie.
    where : str
        For files that only the user can get: from where.
    """

    info: Info
    files: tuple[RawFile, ...]
    clean: Callable[[Files], Tables]
    folders: tuple[str, ...] = ("", "datasets")
    where: str = ""


def published(*paths: str) -> tuple[RawFile, ...]:
    """Return files of the paper's reference repository, with the SHA-256 they have at its pinned commit.

    Examples
    --------
    >>> published("london/W.csv")[0].sha256[:8]
    '26611a5d'
    """
    return tuple(RawFile(path, _SHA256[path]) for path in paths)


def number_nodes(columns: Mapping[str, ArrayLike]) -> pd.DataFrame:
    """Return a node table: the column `node` counted from 0, then the columns given."""
    frame = pd.DataFrame(dict(columns))
    frame.insert(0, "node", np.arange(len(frame), dtype=np.int64))
    return frame


def simple_edges(u: ArrayLike, v: ArrayLike) -> pd.DataFrame:
    """Return each undirected edge once, as columns `u` < `v`, sorted; negative ends and self loops are left out.

    Examples
    --------
    >>> simple_edges([2, 0, 1, 1, -1], [0, 2, 1, 0, 2]).to_numpy().tolist()
    [[0, 1], [0, 2]]
    """
    ends = np.sort(np.column_stack([u, v]).astype(np.int64), axis=1)
    kept = ends[(ends[:, 0] >= 0) & (ends[:, 0] < ends[:, 1])]
    return pd.DataFrame(np.unique(kept, axis=0), columns=["u", "v"])


def positions(labels: pd.Series, order: pd.Series | pd.Index) -> Ints:
    """Return where each label stands in `order`, -1 where it does not."""
    return np.asarray(pd.Index(order).get_indexer(pd.Index(labels)))

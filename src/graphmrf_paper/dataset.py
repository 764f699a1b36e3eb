"""Data sets, and recipes that make them from raw files."""

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from graphmrf._typing import Ints
from graphmrf.datasets.attributed_graph import AttributedGraph
from graphmrf.graph import Graph
from graphmrf.text import count

ID = "node"
Tables: TypeAlias = dict[str, pd.DataFrame]
Files: TypeAlias = Mapping[str, Path]


@dataclass(frozen=True)
class Attribute:
    """A column of measurements: its name, its unit, and what it measures."""

    name: str
    unit: str
    meaning: str


@dataclass(frozen=True)
class Info:
    """What is known about a data set, without loading it.

    Parameters
    ----------
    name, title : str
        The name to load it by, and one line about it.
    n_nodes : int
        Of the published data, after cleaning.
    n_edges : int or None
        The same; None where only the files themselves say it.
    attributes : tuple of Attribute
        The measured columns; features and outcome of the paper's experiments are chosen among them.
    outcomes : tuple of str
        The attributes that the paper predicts.
    source, licence : str
        Where the numbers come from, and their licence as far as it is known.
    remarks : tuple of str
        What a user should know before trusting a number.

    Examples
    --------
    >>> Info("pair", "Two nodes", 2, 1, (Attribute("y", "m", "height"),), ("y",), "ours", "none").columns
    ['y']
    """

    name: str
    title: str
    n_nodes: int
    n_edges: int | None
    attributes: tuple[Attribute, ...]
    outcomes: tuple[str, ...]
    source: str
    licence: str
    remarks: tuple[str, ...] = ()

    @property
    def columns(self) -> list[str]:
        """Names of the attributes, in table order."""
        return [attribute.name for attribute in self.attributes]

    @property
    def counts(self) -> str:
        """Nodes, edges where their number is known, and attributes, as words."""
        edges = [] if self.n_edges is None else [count(self.n_edges, "edge")]
        return ", ".join([count(self.n_nodes, "node"), *edges, count(len(self.attributes), "attribute")])


@dataclass(frozen=True, eq=False)
class Dataset:
    """A published data set, cleaned: raw values, nothing filled or scaled.

    Parameters
    ----------
    graph : Graph
        Undirected, unweighted; node ``i`` is row ``i`` of `frame`. Its ids are the codes of counties or wards, where
        there are some.
    frame : DataFrame of shape (n, columns)
        The column `node` (0 to n - 1), what names the node, then the attributes; missing is NaN. Rows are indexed by
        the ids of the graph, so that columns can be handed to estimators beside it.
    info : Info
        Units, source, licence, outcomes.
    extra : mapping of str to DataFrame
        What does not fit one row per node: `features` of Twitch (`node`, `feature`: one row for each 1 of the binary
        matrix); `samples` (`sample`, `node`, attributes) and `parameters` (`h`, rows of `H`) of the synthetic sets.
    notes : tuple of str
        Where the files differ from the published ones.

    Examples
    --------
    >>> import pandas as pd
    >>> from graphmrf.graph import Graph
    >>> info = Info("pair", "Two nodes", 2, 1, (Attribute("y", "m", "height"),), ("y",), "ours", "none")
    >>> Dataset(Graph.from_edges([0], [1]), pd.DataFrame({"node": [0, 1], "y": [1.5, None]}), info)
    Dataset('pair': 2 nodes, 1 edge, 1 attribute)
    """

    graph: Graph
    frame: pd.DataFrame
    info: Info
    extra: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def table(self) -> AttributedGraph:
        """Graph and frame in the form that `read` gives, the id being the node number."""
        frame = self.frame.reset_index(drop=True)
        return AttributedGraph(self.graph.with_ids(frame[ID]), frame, ID, self.notes)

    @property
    def edges(self) -> pd.DataFrame:
        """Every edge once, as columns `u` < `v`, sorted."""
        W = self.graph.adjacency.tocoo()
        return simple_edges(W.row, W.col)

    def __repr__(self) -> str:
        found = replace(self.info, n_nodes=self.graph.n_nodes, n_edges=self.graph.n_edges)
        return f"Dataset({self.info.name!r}: {found.counts})"


@dataclass(frozen=True)
class Recipe:
    """A data set as a function of its raw files.

    `files` are paths inside the folder of raw files, with slashes, and the SHA-256 of each; None where only that of its
    archive is known. `clean` takes a path for each of them to the tables `nodes`, `edges` and others. The files may lie
    below `folders` of the user's folder. `archives` are the SHA-256 of ZIP archives, for files that are downloaded as
    such, from `url`; it is empty for the paper's reference repository. `terms` is a licence to accept before a
    download.
    """

    info: Info
    files: Mapping[str, str | None]
    clean: Callable[[Files], Tables]
    folders: tuple[str, ...] = ("", "datasets")
    archives: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    terms: str = ""

    def __post_init__(self) -> None:
        checked = self.archives.keys() == self.files.keys() or all(self.files.values())
        assert checked, f"{self.info.name} is downloaded, so each file needs a checksum"

    @property
    def downloads(self) -> dict[str, tuple[str, str]]:
        """For every raw file, the name under which it is downloaded and the SHA-256 of what arrives."""
        if self.archives:
            return {path: (f"{path}.zip", sha256) for path, sha256 in self.archives.items()}
        return {path: (path, sha256) for path, sha256 in self.files.items() if sha256 is not None}


@cache
def _checksums() -> dict[str, str]:
    with Path(__file__).with_name("checksums.csv").open(encoding="utf-8") as lines:
        return {row["path"]: row["sha256"] for row in csv.DictReader(lines)}


def published_files(*paths: str) -> dict[str, str]:
    """Return files of the paper's reference repository with the SHA-256 they have at its pinned commit.

    Examples
    --------
    >>> published_files("london/W.csv")["london/W.csv"][:8]
    '26611a5d'
    """
    return {path: _checksums()[path] for path in paths}


def number_nodes(columns: Mapping[str, ArrayLike]) -> pd.DataFrame:
    """Return a node table: the column `node` counted from 0, then the columns given."""
    frame = pd.DataFrame(dict(columns))
    frame.insert(0, "node", np.arange(len(frame), dtype=np.int64))
    return frame


def simple_edges(u: ArrayLike, v: ArrayLike) -> pd.DataFrame:
    """Return each undirected edge once, as columns `u` < `v`, sorted, without negative ends and self-loops.

    Examples
    --------
    >>> simple_edges([2, 0, 1, 1, -1], [0, 2, 1, 0, 2]).to_numpy().tolist()
    [[0, 1], [0, 2]]
    """
    ends = np.sort(np.column_stack([u, v]).astype(np.int64), axis=1)
    kept = ends[(ends[:, 0] >= 0) & (ends[:, 0] < ends[:, 1])]
    return pd.DataFrame(np.unique(kept, axis=0), columns=["u", "v"])


def locate(labels: pd.Series, order: pd.Series | pd.Index) -> Ints:
    """Return where each label stands in `order`, -1 where it does not."""
    return np.asarray(pd.Index(order).get_indexer(pd.Index(labels)))

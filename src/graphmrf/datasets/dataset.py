"""What a data set is: a graph, a table in node order, and what is known about both."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd

from graphmrf.datasets.tables import AttributedGraph
from graphmrf.graph import Graph

ID = "node"


@dataclass(frozen=True)
class Attribute:
    """A column of measurements: its name, its unit, and what it says about a node."""

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
        edges = "" if self.n_edges is None else f"{self.n_edges} edges, "
        return f"{self.n_nodes} nodes, {edges}{len(self.attributes)} attributes"


@dataclass(frozen=True, eq=False)
class Dataset:
    """A published data set, cleaned: raw values, nothing filled or scaled.

    Parameters
    ----------
    graph : Graph
        Undirected, unweighted; node ``i`` is row ``i`` of `frame`.
    frame : DataFrame of shape (n, columns)
        The column `node` (0 to n - 1), what names the node, then the attributes; missing is NaN.
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
    Dataset('pair': 2 nodes, 1 edges, 1 attributes)
    """

    graph: Graph
    frame: pd.DataFrame
    info: Info
    extra: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def table(self) -> AttributedGraph:
        """Graph and frame in the form that `read` gives, the id being the node number."""
        return AttributedGraph(self.graph, self.frame, ID, self.notes)

    @property
    def edges(self) -> pd.DataFrame:
        """Every edge once, as columns `u` < `v`, sorted."""
        return _edges(self.graph)

    def __repr__(self) -> str:
        counts = f"{self.graph.n_nodes} nodes, {self.graph.n_edges} edges, {len(self.info.attributes)} attributes"
        return f"Dataset({self.info.name!r}: {counts})"


def _edges(graph: Graph) -> pd.DataFrame:
    W = graph.adjacency.tocoo()
    upper = W.row < W.col
    edges = pd.DataFrame({"u": W.row[upper], "v": W.col[upper]}, dtype="int64")
    return edges.sort_values(["u", "v"], ignore_index=True)

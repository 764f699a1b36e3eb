"""The graph: checked once, immutable afterwards, sparse from end to end."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, get_args

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee
from threadpoolctl import threadpool_limits

from graphmrf.caching import cached_property
from graphmrf.engines import Engine, EngineMaker, build_engine, check_engine
from graphmrf.errors import InvalidInputError, RefusesFormerNames
from graphmrf.graph import checks, containers
from graphmrf.graph.checks import as_ids, distinct, in_node_order, numbered, shown
from graphmrf.graph.product import TimeProduct, as_times

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pandas as pd
    from numpy.typing import ArrayLike

    from graphmrf._typing import Bools, Floats, Ints

__all__ = ["Graph", "Laplacian"]

Laplacian: TypeAlias = Literal["normalised", "combinatorial"]  # kinds of `N`, see `Graph.with_laplacian`

_Array = TypeVar("_Array", bound=np.ndarray[Any, Any])
_Value = TypeVar("_Value")


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Graph(RefusesFormerNames):
    r"""An undirected graph with non-negative edge weights.

    It gives the two operators of every formula,

    .. math:: S = D^{-1/2} W D^{-1/2}, \qquad N = I - S,

    (or the combinatorial Laplacian, see `with_laplacian`)
    with an empty row for an isolated node in both, so that no edges means no smoothing.
    Self loops are dropped. `notes` lists what was changed; all arrays are read-only.

    A graph with the `ids` of its nodes matches them with the index of the tables of pandas it is used with, so
    that the order of their rows does not matter; see `align`.

    Parameters
    ----------
    W : sparse matrix, sparse array or dense array of shape (n, n)
        Symmetric weights, finite and >= 0; entries that a sparse matrix lists twice add up, as they do in SciPy.
        When all weights are equal to 1 no values are stored.
    symmetrize : bool, default False
        Accept a directed `W` and use ``(W + W.T) / 2``.
    engine : str, cluster or Dask client, default "auto"
        What computes on the graph, a name of `graphmrf.engines.ENGINES`, or a `graphmrf.cluster`. "auto" takes "scipy"
        up to 100,000 edges and "numba" (all cores) beyond, and from 5 million on "cuda" where there is a GPU; see
        also `on`.
    ids : sequence of length n, optional
        A name for every node, in node order, stored as the pandas index `ids`; by default None, or the index of `W`
        when it is a DataFrame with the same index and columns.
    laplacian : {"normalised", "combinatorial"}
        Which `N`, see `with_laplacian`.

    Raises
    ------
    InvalidInputError
        If `W` is not square, not symmetric, or contains NaN, infinite or negative weights; or if there is no such
        engine or Laplacian.

    Examples
    --------
    >>> graph = Graph([[0, 1, 0], [1, 0, 2], [0, 2, 0]])
    >>> graph
    Graph(n_nodes=3, n_edges=2, weighted)
    >>> graph.degrees
    array([1., 3., 2.])
    """

    indptr: Ints
    indices: Ints
    weights: Floats | None
    notes: tuple[str, ...]
    engine_name: str | EngineMaker = "auto"
    ids: pd.Index | None = None
    laplacian: Laplacian = "normalised"
    product: TimeProduct | None = None

    def __init__(
        self,
        W: Any,
        *,
        symmetrize: bool = False,
        engine: Any = "auto",
        ids: Any = None,
        laplacian: Laplacian = "normalised",
    ) -> None:
        object.__setattr__(self, "engine_name", check_engine(engine))
        object.__setattr__(self, "laplacian", _check_laplacian(laplacian))
        if ids is None:
            ids = containers.matrix_ids(W)
        self._store(*checks.symmetric_matrix(W, symmetrize=symmetrize), ids)

    @classmethod
    def wrap(cls, graph: Any) -> Graph:
        """Return a graph as it is, and one of SciPy, NetworkX or igraph as a `Graph`.

        Raises
        ------
        InvalidInputError
            If it is neither, or no undirected graph.

        Examples
        --------
        >>> import networkx
        >>> Graph.wrap(networkx.path_graph(["a", "b", "c"]))
        Graph(n_nodes=3, n_edges=2, unweighted, ids a, b, c)
        """
        if isinstance(graph, Graph):
            return graph
        if sparse.issparse(graph):
            return cls(graph)
        if hasattr(graph, "vcount") and hasattr(graph, "get_edgelist"):
            return cls.from_igraph(graph)
        if hasattr(graph, "is_directed") and hasattr(graph, "adj"):
            return cls.from_networkx(graph)
        raise InvalidInputError(
            f"graph must be a graphmrf.Graph, a SciPy sparse matrix or a graph of NetworkX or igraph, got "
            f"{type(graph).__module__}.{type(graph).__name__}; wrap a matrix as Graph(W), edge lists as "
            "Graph.from_edges(u, v), data of PyTorch Geometric as Graph.from_pyg(data)"
        )

    @classmethod
    def from_edges(
        cls, u: ArrayLike, v: ArrayLike, weight: ArrayLike | None = None, *, n_nodes: int | None = None, ids: Any = None
    ) -> Graph:
        """Graph of the undirected edges ``u[i] -- v[i]``.

        An edge listed again, in either direction, counts once when there are no weights; with weights they add up.

        Parameters
        ----------
        u, v : arrays of shape (m,)
            End points: integers from 0 to ``n_nodes - 1``, or, where `ids` are given, ids of nodes. Anything else but
            numbers, such as text, names nodes, too: without `ids` they are those named, in order of appearance, first
            all of `u`, then those that only `v` has.
        weight : array of shape (m,), optional
            Finite and >= 0; an edge of weight 0 is no edge.
        n_nodes : int, optional
            Number of nodes; by default one more than the largest end point.
        ids : sequence, optional
            Ids of all nodes, in node order.

        Examples
        --------
        >>> Graph.from_edges([0, 1, 2], [1, 2, 1]).notes
        ('1 repeated edge was counted once',)
        >>> Graph.from_edges(["b", "c"], ["c", "a"]).ids.tolist()
        ['b', 'c', 'a']
        """
        u, v, index = numbered(u, v, ids)
        if index is not None and n_nodes not in (None, len(index)):
            raise InvalidInputError(
                f"n_nodes must be the number of ids, {len(index)}, got {n_nodes}; name all nodes with ids="
            )
        W, notes = checks.edge_matrix(u, v, weight, n_nodes if index is None else len(index))
        return cls._of(W, notes, index)

    @classmethod
    def from_parquet(
        cls,
        path: str,
        *,
        n_nodes: int,
        cluster: Any,
        ends: tuple[str, str] = ("source", "target"),
        weight: str | None = None,
        ids: Any = None,
    ) -> Graph:
        """Graph of edges in Parquet files that the workers of a cluster read, each some rows of it.

        No single process holds all edges; the client holds none. Solves, searches, predictions and their error bars
        work; the general field, which needs the edges on this machine, is refused.

        Parameters
        ----------
        path : str
            A folder of .parquet files, a pattern, or a URL of fsspec such as s3://...; all workers must see it.
        n_nodes : int
            Number of nodes.
        cluster : Cluster
            A `graphmrf.cluster`.
        ends : pair of str
            Columns of the end points: whole numbers from 0 to ``n_nodes - 1``, or ids.
        weight : str, optional
            Column of weights; by default every edge counts the same.
        ids : sequence of n_nodes ids, optional
            Ids of the nodes as the files write them, in the order of nodes; every worker gets them.
        """
        known = as_ids(ids, n_nodes)
        engine, indptr, degrees = cluster.read_rows(path, n_nodes, ends if weight is None else (*ends, weight), known)
        graph, weights = object.__new__(cls), None if weight is None else np.empty(0)
        state = {"indptr": indptr, "indices": np.empty(0, np.int32), "weights": weights, "notes": (), "ids": known}
        graph.__setstate__(state | {"engine_name": cluster})
        graph.__dict__.update(engine=engine, degrees=_read_only(degrees))
        return graph

    @classmethod
    def from_knn(cls, points: Any, k: int = 8, *, metric: str = "euclidean", ids: Any = None) -> Graph:
        """Graph of the `k` nearest neighbours of every point; two are neighbours if either is near the other.

        Points at the same place are neighbours at distance 0; of more than `k` such points each is joined to an
        arbitrary `k` of them.

        Parameters
        ----------
        points : array of shape (n, d) or (n,), DataFrame, or GeoSeries of points
            Coordinates; NaN is not allowed. The index of a table is taken for `ids`.
        k : int, from 1 to n - 1
            Least number of neighbours of a point.
        metric : {"euclidean", "haversine"}
            "haversine" is the distance on a sphere of points in degrees, longitude first.
        ids : sequence, optional
            As in `Graph`.

        Examples
        --------
        >>> Graph.from_knn([[0.0, 0.0], [0.0, 1.0], [0.0, 3.0]], k=1).degrees
        array([1., 2., 1.])
        >>> Graph.from_knn([[179.0, 0.0], [-179.0, 0.0], [170.0, 0.0]], k=1, metric="haversine").degrees
        array([2., 1., 1.])
        """
        u, v, n = containers.nearest_neighbours(points, k, metric)
        W, _ = checks.edge_matrix(u, v, None, n)
        return cls._of(W, (), containers.index_of_table(points) if ids is None else ids)

    @classmethod
    def from_polygons(cls, geometry: Any, *, rook: bool = False, ids: Any = None) -> Graph:
        """Graph of polygons that touch, nodes in their order.

        Parameters
        ----------
        geometry : GeoDataFrame, GeoSeries, or sequence of shapely polygons
            The index of a table is taken for `ids`.
        rook : bool, default False
            Neighbours share a stretch of border; by default one point is enough (queen contiguity). A sliver of
            overlap, common along borders drawn by hand, does not part neighbours.
        ids : sequence, optional
            As in `Graph`.

        Examples
        --------
        >>> import shapely
        >>> squares = [shapely.box(x, y, x + 1, y + 1) for x, y in [(0, 0), (1, 0), (1, 1)]]
        >>> Graph.from_polygons(squares).degrees, Graph.from_polygons(squares, rook=True).degrees
        (array([2., 2., 2.]), array([1., 2., 1.]))
        """
        u, v, n = containers.polygon_edges(geometry, rook=rook)
        W, _ = checks.edge_matrix(u, v, None, n)
        return cls._of(W, (), containers.index_of_table(geometry) if ids is None else ids)

    @classmethod
    def _of(cls, W: sparse.csr_array, notes: tuple[str, ...], ids: Any) -> Graph:
        graph = object.__new__(cls)
        graph._store(W, notes, ids)
        return graph

    @classmethod
    def from_geopandas(cls, *_: Any, **_options: Any) -> Graph:
        """Refuse the former name of `from_polygons`."""
        raise InvalidInputError("Graph has no from_geopandas; it is now called from_polygons")

    @classmethod
    def from_networkx(cls, G: Any, weight: str | None = "weight") -> Graph:
        """Graph of an undirected NetworkX graph, nodes in the order of ``G.nodes``, which are its `ids`.

        Parameters
        ----------
        G : networkx.Graph or networkx.MultiGraph
            The weights of parallel edges add up.
        weight : str or None
            Edge attribute with the weight; an edge without it has weight 1. None ignores weights.

        Examples
        --------
        >>> import networkx
        >>> Graph.from_networkx(networkx.path_graph(["a", "b", "c"])).degrees
        array([1., 2., 1.])
        """
        W, notes = checks.edge_matrix(*containers.networkx_edges(G, weight), G.number_of_nodes())
        return cls._of(W, notes, list(G.nodes))

    @classmethod
    def from_igraph(cls, G: Any, weight: str | None = "weight") -> Graph:
        """Graph of an undirected igraph graph, nodes in the order of ``G.vs``; their attribute "name" are its `ids`.

        The parameters are those of `from_networkx`.

        Examples
        --------
        >>> import igraph
        >>> Graph.from_igraph(igraph.Graph([(0, 1), (1, 2)])).degrees
        array([1., 2., 1.])
        """
        W, notes = checks.edge_matrix(*containers.igraph_edges(G, weight), G.vcount())
        return cls._of(W, notes, distinct(G.vs["name"], G.vcount()) if "name" in G.vs.attributes() else None)

    @classmethod
    def from_pyg(cls, data: Any, weight: str | None = "auto", *, symmetrize: bool = False) -> Graph:
        """Graph of a PyTorch Geometric ``Data`` object, whose `edge_index` lists every edge in both directions.

        A node attribute `node_id` or `name` with one distinct entry per node gives the `ids`.

        Parameters
        ----------
        data : torch_geometric.data.Data
            Its `edge_index` and `num_nodes` are used; an edge listed again counts once, or adds up if weighted.
        weight : str or None
            Attribute with one weight per column of `edge_index`. "auto" takes `edge_weight` if there is one,
            otherwise `edge_attr` if it has one number per edge. None ignores weights.
        symmetrize : bool, default False
            Accept directed edges, as `Graph` does.

        Examples
        --------
        >>> from types import SimpleNamespace
        >>> Graph.from_pyg(SimpleNamespace(edge_index=[[0, 1, 1, 2], [1, 0, 2, 1]], num_nodes=4)).degrees
        array([1., 2., 1., 0.])
        """
        return cls(containers.pyg_matrix(data, weight), symmetrize=symmetrize, ids=containers.pyg_ids(data))

    @classmethod
    def from_pysal(cls, w: Any, *, symmetrize: bool = False) -> Graph:
        """Graph of PySAL spatial weights (``libpysal.weights.W`` or ``libpysal.graph.Graph``), nodes in their id order.

        Row-standardised weights have lost their symmetry and are refused; `symmetrize` is that of `Graph`.

        Examples
        --------
        >>> from libpysal.graph import Graph as SpatialGraph
        >>> Graph.from_pysal(SpatialGraph.from_arrays(["a", "a", "b", "c"], ["b", "c", "a", "a"], [1, 1, 1, 1])).degrees
        array([2., 1., 1.])
        """
        ids = w.unique_ids if hasattr(w, "unique_ids") else list(w.id_order)
        return cls(containers.pysal_matrix(w), symmetrize=symmetrize, ids=ids)

    def _store(self, W: sparse.csr_array, notes: tuple[str, ...], ids: Any = None) -> None:
        index = checks.index_type(W.nnz, W.shape[0])
        unweighted = bool((W.data == 1.0).all())
        self.__setstate__(
            {
                "indptr": np.asarray(W.indptr, dtype=index),
                "indices": np.asarray(W.indices, dtype=index),
                "weights": None if unweighted else W.data,
                "notes": notes,
                "ids": as_ids(ids, W.shape[0]),
            }
        )

    def __repr__(self) -> str:
        kind = "weighted" if self.is_weighted else "unweighted"
        ids = "" if self.ids is None else f", ids {shown(self.ids)}"
        laplacian = "" if self.laplacian == "normalised" else f", {self.laplacian} Laplacian"
        return f"Graph(n_nodes={self.n_nodes}, n_edges={self.n_edges}, {kind}{ids}{laplacian})"

    def __eq__(self, other: object) -> bool:
        """Whether the other has the same nodes, in the same order, edges, weights, ids and Laplacian, on any engine."""
        if not isinstance(other, Graph) or (self.ids is None) != (other.ids is None):
            return NotImplemented if not isinstance(other, Graph) else False
        if self.laplacian != other.laplacian:
            return False
        if self.ids is not None and not self.ids.equals(other.ids):
            return False
        arrays = ((getattr(self, name), getattr(other, name)) for name in ("indptr", "indices", "weights"))
        return all(np.array_equal(a, b) for a, b in arrays)

    def __hash__(self) -> int:
        return hash((self.n_nodes, self.n_edges))

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, _read_only(value) if isinstance(value, np.ndarray) else value)

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return self.indptr.size - 1

    @property
    def n_edges(self) -> int:
        """Number of undirected edges."""
        return int(self.indptr[-1]) // 2

    @property
    def is_weighted(self) -> bool:
        """Whether some edge has a weight other than 1."""
        return self.weights is not None

    @cached_property
    def degrees(self) -> Floats:
        """Sum of the weights at each node, shape (n,)."""
        if self.weights is None:
            return _read_only(np.diff(self.indptr).astype(np.float64))
        return _read_only(np.asarray(self.adjacency.sum(axis=1), dtype=np.float64))

    @cached_property
    def isolated(self) -> Bools:
        """Nodes without any edge, shape (n,)."""
        return _read_only(np.diff(self.indptr) == 0)

    @cached_property
    def _components(self) -> tuple[int, Ints]:
        if self.is_remote:
            count, labels = self.engine.remote_edges().components()
        else:
            count, labels = connected_components(self.adjacency, directed=False)
        return int(count), _read_only(labels)

    @property
    def components(self) -> Ints:
        """Number of the connected component of each node, from 0, shape (n,)."""
        return self._components[1]

    @property
    def n_components(self) -> int:
        """Number of connected components; an isolated node is one."""
        return self._components[0]

    @cached_property
    def bandwidth(self) -> float:
        """Largest distance between neighbours in reverse Cuthill-McKee order: small if the graph is nearly a line.

        Infinite where workers have the edges, so that no formula takes their matrix to be banded.
        """
        if self.is_remote:
            return np.inf
        if not self.indices.size:
            return 0.0
        order = reverse_cuthill_mckee(self.adjacency, symmetric_mode=True)
        place = np.empty(self.n_nodes, dtype=np.int64)
        place[order] = np.arange(self.n_nodes)
        rows = np.repeat(place, np.diff(self.indptr))
        return float(np.abs(rows - place[self.indices]).max())

    @property
    def adjacency(self) -> sparse.csr_array:
        """The weights `W` as a SciPy sparse array."""
        return self._matrix(np.ones(self.indices.size) if self.weights is None else self.weights)

    @cached_property
    def eigenpairs(self) -> tuple[Floats, Floats]:
        """Eigenvalues (n,) and eigenvectors (n, n) of `N`, dense: for up to some thousand nodes."""
        if self.product is not None and self.product.is_separable:
            values, vectors = self.product.eigenpairs()
            return _read_only(np.maximum(values, 0.0)), _read_only(vectors)
        with threadpool_limits(1, user_api="blas"):  # threads that wait for a busy core cost ten times the work
            values, vectors = np.linalg.eigh(self.N.toarray())
        return _read_only(np.maximum(values, 0.0)), _read_only(vectors)

    @cached_property
    def mass(self) -> Floats:
        r"""Diagonal of `M` in :math:`N = M^{-1/2} (D - W) M^{-1/2}`, shape (n,); see `with_laplacian`.

        The degrees, and 1 at isolated nodes; or, of the combinatorial Laplacian, the largest degree everywhere.
        """
        if self.laplacian == "normalised":
            return _read_only(np.where(self.isolated, 1.0, self.degrees))
        return _read_only(np.full(self.n_nodes, self.degrees.max(initial=0.0) or 1.0))

    @cached_property
    def loops(self) -> Floats:
        """Diagonal of :math:`I - N`, shape (n,): 1 at isolated nodes, 0 at others unless `N` is combinatorial."""
        return _read_only(1.0 - self.degrees / self.mass)

    @cached_property
    def S(self) -> sparse.csr_array:
        r"""Normalised adjacency :math:`M^{-1/2} W M^{-1/2}` as a SciPy sparse array, see `mass`."""
        d = 1.0 / np.sqrt(self.mass)
        return self._matrix(_read_only(self.adjacency.data * np.repeat(d, np.diff(self.indptr)) * d[self.indices]))

    @cached_property
    def N(self) -> sparse.csr_array:
        """Laplacian as a SciPy sparse array; the row of an isolated node is empty."""
        linked = np.flatnonzero(~self.isolated)
        own = 1.0 - self.loops[linked], (linked, linked)
        N = sparse.csr_array(sparse.csr_array(own, shape=(self.n_nodes, self.n_nodes)) - self.S)
        _read_only(N.data)
        return N

    def over_rows(self, function: Callable[..., tuple[Any, Any]], state: Any, about: Any) -> Iterator[tuple[Any, Any]]:
        """Yield ``function(rows, first, state, about)`` of some rows of `W` after the other: a new state, and a result.

        The rows are compressed (pointers, columns, and weights or None), from node `first` on. A graph on this machine
        has one such part; otherwise every worker computes the function of its own rows, in the order of nodes.
        """
        if self.is_remote:
            yield from self.engine.remote_edges().over_rows(function, state, about)
        else:
            yield function((self.indptr, self.indices, self.weights), 0, state, about)

    def links(self, nodes: Ints) -> sparse.csr_array:
        """Return a few rows of `S`, also of a graph whose edges are on workers; nodes in ascending order."""
        found = [rows for _, rows in self.over_rows(_chosen_rows, None, nodes)]
        lengths, indices, values = (np.concatenate(each) for each in zip(*found, strict=True))
        indptr, d = np.concatenate([[0], np.cumsum(lengths)]), 1.0 / np.sqrt(self.mass)
        data = values * np.repeat(d[nodes], lengths) * d[indices]
        return sparse.csr_array((data, indices, indptr), shape=(nodes.size, self.n_nodes))

    def align(self, table: Any, name: str = "table") -> Any:
        """Return a Series or DataFrame with its rows in node order; a table of Polars or Arrow becomes one of pandas.

        Estimators do this with all tables. The index of the table must contain the ids of the graph, in any order; the
        default index 0, 1, ... of pandas is refused. Without ids in the graph, rows are taken by position, like those
        of arrays, but an index 0 to n - 1 out of order is refused.

        Parameters
        ----------
        table : Series, DataFrame, or anything else
            Anything else is returned as it is.
        name : str
            What to call it in messages.

        Examples
        --------
        >>> import pandas as pd
        >>> graph = Graph.from_edges(["a"], ["b"])
        >>> graph.align(pd.Series([2.0, 1.0], index=["b", "a"])).tolist()
        [1.0, 2.0]
        """
        return in_node_order(table, self.ids, self.n_nodes, name)

    def with_ids(self, ids: Any) -> Graph:
        """Return the same graph with these ids of its nodes, in node order; None for none.

        Examples
        --------
        >>> Graph([[0, 1], [1, 0]]).with_ids(["a", "b"])
        Graph(n_nodes=2, n_edges=1, unweighted, ids a, b)
        """
        graph = object.__new__(type(self))
        graph.__dict__.update(self.__dict__ | {"ids": as_ids(ids, self.n_nodes)})
        return graph

    def with_laplacian(self, laplacian: Laplacian) -> Graph:
        r"""Return the same graph with another matrix :math:`N = M^{-1/2} (D - W) M^{-1/2}`.

        "normalised" has :math:`M = D`, as in the paper. "combinatorial" has :math:`M = d_{\max} I`: the Laplacian
        :math:`D - W` over the largest degree, so that eigenvalues stay in [0, 2] and every solver, estimator and
        `GaussianMRF` runs on it. Constants are then perfectly smooth, a propagated value is an average of the labels
        around it, and as :math:`\alpha \to 1` the field is an intrinsic CAR. Precisions :math:`I + \omega N` are
        :math:`I + \tau (D - W)` with :math:`\tau = \omega / d_{\max}`: where one node has many more edges than all
        others, they need larger levels for the same smoothness. A panel is made again from its graph: the weights of
        its steps in time are in proportion to the masses `M`.

        Parameters
        ----------
        laplacian : {"normalised", "combinatorial"}
            Which one.

        Examples
        --------
        >>> Graph.from_edges([0, 1], [1, 2]).with_laplacian("combinatorial").N.toarray()
        array([[ 0.5, -0.5,  0. ],
               [-0.5,  1. , -0.5],
               [ 0. , -0.5,  0.5]])
        """
        if _check_laplacian(laplacian) != self.laplacian and self.is_remote:
            raise InvalidInputError(
                "the combinatorial Laplacian needs the edges on this machine, and those of this graph are with the "
                "workers of a cluster; read the whole graph here, or use the normalised Laplacian"
            )
        if self.product is not None and laplacian != self.laplacian:
            given = self.product
            space: Graph = given.space.with_laplacian(laplacian)
            panel = space.over_time(given.times, weight=given.weight, ring=given.ring)
            return panel.with_ids(self.ids).to(self.engine_name)
        stored = {field.name: getattr(self, field.name) for field in fields(self)}
        graph = object.__new__(type(self))
        graph.__dict__.update(stored | {"laplacian": laplacian})
        return graph

    def over_time(self, times: Any, *, weight: float = 1.0, ring: bool = False) -> Graph:
        """Return the graph of all nodes at all times, for panels: every estimator runs on it.

        A node is joined to its neighbours at the same time, and to itself at the time before and after. Node `i` at
        the `t`-th of `T` times has position ``i * T + t``: an array (n, T) of values becomes an outcome by
        ``values.ravel()``, and predictions become such an array by ``predictions.reshape(-1, T)``. Where the graph has
        ids, those of the result are pairs of id and time, and tables with such an index are matched.
        `search_time_weight` finds the weight from labels.

        Parameters
        ----------
        times : sequence of T numbers or dates
            The times, ascending. A step longer than the usual one weighs less in proportion.
        weight : float > 0, default 1
            Weight of a usual step in time; 1 counts as much as all neighbours at the same time together.
        ring : bool, default False
            Whether the last time is next to the first: months of a year, hours of a day.

        Examples
        --------
        >>> panel = Graph.from_edges(["a"], ["b"]).over_time([2019, 2020, 2021], weight=2.0)
        >>> panel
        Graph(n_nodes=6, n_edges=7, weighted, ids ('a', 2019), ('a', 2020), ('a', 2021), ...)
        >>> panel.adjacency[[0], :].toarray()
        array([[0., 2., 0., 1., 0., 0.]])
        """
        if not np.isfinite(weight) or weight <= 0:
            raise InvalidInputError(f"weight must be a positive number, got {weight}; smaller ones separate the times")
        product = TimeProduct(self, as_times(times, ring=ring), float(weight), ring)
        both = product.weights
        panel = Graph.from_edges(both.row, both.col, 0.5 * both.data, n_nodes=both.shape[0])
        state = panel.__getstate__() | {"engine_name": self.engine_name, "laplacian": self.laplacian}
        panel.__setstate__(state | {"product": product, "notes": (), "ids": product.ids})
        return panel

    def require_normalised(self) -> None:
        """Raise InvalidInputError if `N` is combinatorial, for methods with a normalised matrix of their own."""
        if self.laplacian != "normalised":
            raise InvalidInputError(
                "SGC and GCN multiply by a normalised adjacency of their own, got a graph with the combinatorial "
                'Laplacian; fit them on graph.with_laplacian("normalised")'
            )

    def with_loops(self, loops: Floats) -> tuple[Ints, Ints, Floats | None]:
        """Return the compressed rows of the adjacency with these weights on the diagonal, None for weights of 1."""
        n, places = self.n_nodes, self.indptr[1:]
        index = checks.index_type(self.indices.size + n, n)
        indptr = np.add(self.indptr, np.arange(n + 1), dtype=index)
        indices = np.insert(self.indices.astype(index, copy=False), places, np.arange(n, dtype=index))
        if self.weights is None and (loops == 1.0).all():
            return indptr, indices, None
        return indptr, indices, np.insert(self.adjacency.data, places, loops)

    def to(self, engine: Any) -> Graph:
        """Return the same graph on another engine: everything computed from it runs there.

        Parameters
        ----------
        engine : str, cluster or Dask client
            As in the constructor.

        Examples
        --------
        >>> Graph.from_edges([0], [1]).to("numba").engine_name
        'numba'
        """
        graph = object.__new__(type(self))
        kept = {name: value for name, value in self.__dict__.items() if name not in ("engine", "_derived")}
        graph.__dict__.update(kept | {"engine_name": check_engine(engine)})
        return graph

    @cached_property
    def engine(self) -> Engine:
        """What multiplies by :math:`I - N`, see `graphmrf.engines`; chosen by name, or by the size of the graph.

        A combinatorial `N` is the normalised one of a graph with loops, which give every node the largest degree.
        """
        if self.laplacian == "normalised":
            return build_engine(self.engine_name, self.indptr, self.indices, self.weights, self.degrees)
        return build_engine(self.engine_name, *self.with_loops(self.mass - self.degrees), self.mass)

    @property
    def loop_engine(self) -> Engine:
        r"""What multiplies by :math:`\tilde S`: the engine of the graph in which every node is its own neighbour.

        An isolated node is its only neighbour, so its row of :math:`\tilde S` is that of the identity.
        """
        if self.is_remote:
            return self.engine.remote_edges().looped()
        self.require_normalised()
        return build_engine(self.engine_name, *self.with_loops(np.ones(self.n_nodes)), self.degrees + 1.0)

    @cached_property
    def _derived(self) -> dict[Any, Any]:
        return {}

    def derived(self, make: Callable[[Graph], _Value]) -> _Value:
        """Return ``make(self)``, computed once and cached with the graph; it is not pickled."""
        if make not in self._derived:
            self._derived[make] = make(self)
        value: _Value = self._derived[make]
        return value

    @property
    def is_remote(self) -> bool:
        """Whether the edges are on the workers of a cluster instead of this machine, see `from_parquet`."""
        return bool(self.indices.size < self.indptr[-1])

    def _matrix(self, data: Floats) -> sparse.csr_array:
        if self.is_remote:
            raise InvalidInputError(
                "the edges of this graph are with the workers of a cluster, and this operation (as the general field) "
                "needs them on this machine; read the whole graph here, or use a method of the paper (lgc-rp)"
            )
        shape = (self.n_nodes, self.n_nodes)
        matrix: sparse.csr_array = sparse.csr_array((data, self.indices, self.indptr), shape=shape, copy=False)
        return matrix


def _check_laplacian(laplacian: Laplacian) -> Laplacian:
    if laplacian not in get_args(Laplacian):
        raise InvalidInputError(f"laplacian must be one of {get_args(Laplacian)}, got {laplacian!r}")
    return laplacian


def _chosen_rows(rows: tuple[Any, ...], first: int, _: None, nodes: Ints) -> tuple[None, tuple[Ints, Ints, Floats]]:
    """Return how many entries each of the chosen nodes has, where they are, and their weights; see `over_rows`."""
    indptr, indices, weights = rows
    own = nodes[(nodes >= first) & (nodes < first + indptr.size - 1)] - first
    lengths = np.diff(indptr)[own]
    starts = np.cumsum(lengths) - lengths
    places = np.arange(lengths.sum()) - np.repeat(starts, lengths) + np.repeat(indptr[own], lengths)
    return None, (lengths, indices[places], np.ones(places.size) if weights is None else weights[places])


def _read_only(array: _Array) -> _Array:
    array.flags.writeable = False
    return array

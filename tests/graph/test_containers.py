from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given

import cases
from graphmrf._typing import Floats
from graphmrf.errors import InvalidInputError
from graphmrf.graph import Graph

PATH = np.array([[0.0, 1, 0], [1, 0, 2], [0, 2, 0]])


def dense(graph: Graph) -> Floats:
    return graph.adjacency.toarray()


def described(graph: Graph) -> tuple[Any, ...]:
    weights = None if graph.weights is None else graph.weights.tolist()
    return graph.indptr.tolist(), graph.indices.tolist(), weights, graph.notes


def test_networkx_nodes_keep_their_order_and_edges_their_weights() -> None:
    G = nx.Graph()
    G.add_nodes_from(["c", "a", "b"])
    G.add_edge("c", "a")
    G.add_edge("b", "a", weight=2.0)
    np.testing.assert_array_equal(dense(Graph.from_networkx(G)), PATH)
    assert Graph.from_networkx(G, weight=None).weights is None


def test_networkx_weights_may_have_another_name() -> None:
    G = nx.Graph()
    G.add_edge(0, 1, distance=3)
    assert dense(Graph.from_networkx(G, weight="distance"))[0, 1] == 3
    assert not Graph.from_networkx(G).is_weighted


def test_networkx_parallel_edges_add_up() -> None:
    G = nx.MultiGraph([(0, 1), (1, 2), (1, 2)])
    np.testing.assert_array_equal(dense(Graph.from_networkx(G)), PATH)
    assert Graph.from_networkx(G).notes == ("1 repeated edge was added to the first",)


@pytest.mark.parametrize("kind", [nx.DiGraph, nx.MultiDiGraph])
def test_networkx_directions_are_refused(kind: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"G must be undirected, .*; pass G.to_undirected\(\) if"):
        Graph.from_networkx(kind([(0, 1)]))


def test_networkx_weights_must_be_numbers() -> None:
    G = nx.Graph()
    G.add_edge(0, 1, weight="heavy")
    with pytest.raises(InvalidInputError, match="weight must be numeric"):
        Graph.from_networkx(G)


def test_networkx_graphs_may_be_empty() -> None:
    assert Graph.from_networkx(nx.empty_graph(3)).isolated.all()
    assert Graph.from_networkx(nx.Graph()).n_nodes == 0


@given(cases.cases())
def test_networkx_agrees_with_the_matrix(case: cases.Case) -> None:
    assert described(Graph.from_networkx(nx.from_numpy_array(case.W))) == described(case.graph)


def test_igraph_edges_keep_their_weights() -> None:
    igraph = pytest.importorskip("igraph")
    G = igraph.Graph(3, [(1, 0), (1, 2)])
    assert not Graph.from_igraph(G).is_weighted
    G.es["weight"] = [1.0, 2.0]
    np.testing.assert_array_equal(dense(Graph.from_igraph(G)), PATH)
    assert not Graph.from_igraph(G, weight=None).is_weighted
    assert Graph.from_igraph(igraph.Graph(2)).isolated.all()


def test_igraph_parallel_edges_add_up_and_directions_are_refused() -> None:
    igraph = pytest.importorskip("igraph")
    np.testing.assert_array_equal(dense(Graph.from_igraph(igraph.Graph([(0, 1), (1, 2), (2, 1)]))), PATH)
    with pytest.raises(InvalidInputError, match=r"pass G.as_undirected\(\)"):
        Graph.from_igraph(igraph.Graph([(0, 1)], directed=True))


class Tensor:
    """What we need of a tensor on some device."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def detach(self) -> "Tensor":
        return self

    def cpu(self) -> Floats:
        return self.values


BOTH_WAYS = Tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


@pytest.mark.parametrize("name", ["edge_weight", "edge_attr", "distance"])
@pytest.mark.parametrize("shape", [(4,), (4, 1)])
def test_pyg_weights_are_read_from_tensors(name: str, shape: tuple[int, ...]) -> None:
    data = SimpleNamespace(edge_index=BOTH_WAYS, num_nodes=3, **{name: Tensor(np.reshape([1, 1, 2, 2], shape))})
    graph = Graph.from_pyg(data, name) if name == "distance" else Graph.from_pyg(data)
    np.testing.assert_array_equal(dense(graph), PATH)
    assert not Graph.from_pyg(data, weight=None).is_weighted


@pytest.mark.slow
def test_pyg_data_of_the_library_itself_is_read() -> None:
    torch, pyg = pytest.importorskip("torch"), pytest.importorskip("torch_geometric.data")
    data = pyg.Data(edge_index=torch.tensor(BOTH_WAYS.values), num_nodes=3)
    assert not Graph.from_pyg(data).is_weighted
    data.edge_weight = torch.tensor([1.0, 1.0, 2.0, 2.0], requires_grad=True)
    np.testing.assert_array_equal(dense(Graph.from_pyg(data)), PATH)
    with pytest.raises(InvalidInputError, match="of a heterogeneous graph pass one edge type"):
        Graph.from_pyg(pyg.HeteroData())


def test_pyg_edge_features_are_no_weights_and_isolated_nodes_count() -> None:
    data = SimpleNamespace(edge_index=BOTH_WAYS, num_nodes=5, edge_attr=Tensor(np.ones((4, 3))), edge_weight=None)
    graph = Graph.from_pyg(data)
    assert not graph.is_weighted
    assert graph.isolated.tolist() == [False] * 3 + [True] * 2


def test_pyg_repeated_edges_count_once_without_weights_and_add_up_with() -> None:
    twice = SimpleNamespace(edge_index=np.tile(BOTH_WAYS.values, 2), num_nodes=3)
    assert not Graph.from_pyg(twice).is_weighted
    twice.edge_weight = np.ones(8)
    np.testing.assert_array_equal(dense(Graph.from_pyg(twice)), 2 * (PATH > 0))


def test_pyg_edges_in_one_direction_are_refused_unless_symmetrized() -> None:
    data = SimpleNamespace(edge_index=[[0, 1], [1, 2]], edge_weight=[2.0, 4.0], num_nodes=3)
    with pytest.raises(InvalidInputError, match="pass symmetrize=True"):
        Graph.from_pyg(data)
    np.testing.assert_array_equal(dense(Graph.from_pyg(data, symmetrize=True)), PATH)


@pytest.mark.parametrize(
    ("fields", "weight", "message"),
    [
        ({}, "auto", r"data.edge_index must have shape \(2, n_edges\), got none; of a heterogeneous graph"),
        (
            {"edge_index": np.zeros((3, 2), int)},
            "auto",
            r"must have shape \(2, n_edges\), got \(3, 2\)",
        ),
        ({"edge_index": [[0, 3], [3, 0]]}, "auto", r"data.edge_index must name nodes 0\.\.2, got 0\.\.3"),
        (
            {"edge_index": [[0, 1], [1, 0]], "edge_weight": [1.0]},
            "auto",
            "data.edge_weight must have one weight",
        ),
        ({"edge_index": [[0, 1], [1, 0]]}, "length", r"data.length must have one weight per edge, got shape \(\)"),
    ],
)
def test_bad_pyg_data_is_refused(fields: dict[str, Any], weight: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Graph.from_pyg(SimpleNamespace(num_nodes=3, **fields), weight)


def test_pysal_weights_keep_their_order() -> None:
    weights = pytest.importorskip("libpysal.weights")
    w = weights.W({"a": ["b"], "b": ["a", "c"], "c": ["b"]}, {"a": [1], "b": [1, 2], "c": [2]})
    np.testing.assert_array_equal(dense(Graph.from_pysal(w)), PATH)
    w.transform = "r"
    with pytest.raises(InvalidInputError, match=r"transform 'R', which scales rows; take the original"):
        Graph.from_pysal(w)
    w.transform = "o"
    np.testing.assert_array_equal(dense(Graph.from_pysal(w)), PATH)


def test_pysal_graphs_and_nearest_neighbours_are_read() -> None:
    pysal = pytest.importorskip("libpysal.graph")
    w = pysal.Graph.from_arrays(["a", "b", "b", "c"], ["b", "a", "c", "b"], [1, 1, 2, 2])
    np.testing.assert_array_equal(dense(Graph.from_pysal(w)), PATH)
    with pytest.raises(InvalidInputError, match="scales rows"):
        Graph.from_pysal(w.transform("R"))
    one_way = pysal.Graph.from_arrays(["a", "b", "c"], ["b", "a", "b"], [1, 1, 4])
    with pytest.raises(InvalidInputError, match="pass symmetrize=True"):
        Graph.from_pysal(one_way)
    np.testing.assert_array_equal(dense(Graph.from_pysal(one_way, symmetrize=True)), PATH)


def test_polygons_that_share_a_point_are_neighbours() -> None:
    geopandas, shapely = pytest.importorskip("geopandas"), pytest.importorskip("shapely")
    squares = [shapely.box(x, y, x + 1, y + 1) for x, y in [(0, 0), (1, 0), (1, 1), (2.001, 0), (1.999, 1), (5, 5)]]
    frame = geopandas.GeoDataFrame({"name": list("abcdef")}, geometry=squares, index=list("uvwxyz"))
    graph = Graph.from_polygons(frame)
    # 0-1 share a side, 0-2 and 1-4 a corner, 2-4 overlap a little, 3 is just apart from 1 and touches 4.
    neighbours = {(int(i), int(j)) for i, j in np.argwhere(np.triu(dense(graph)))}
    assert neighbours == {(0, 1), (0, 2), (1, 2), (1, 4), (2, 4), (3, 4)}
    assert graph.isolated.tolist() == [False] * 5 + [True]
    assert described(Graph.from_polygons(frame.geometry)) == described(graph)


def test_geometries_other_than_polygons_are_refused() -> None:
    geopandas, shapely = pytest.importorskip("geopandas"), pytest.importorskip("shapely")
    shapes = geopandas.GeoSeries([shapely.box(0, 0, 1, 1), shapely.Point(0, 0)])
    with pytest.raises(InvalidInputError, match="geometry must contain polygons, got Point at row 1; drop such rows"):
        Graph.from_polygons(shapes)
    with pytest.raises(InvalidInputError, match="got nothing at row 0"):
        Graph.from_polygons(geopandas.GeoSeries([None, shapely.box(0, 0, 1, 1)]))


def test_ids_come_along_from_every_library() -> None:
    networkx, igraph, pysal = (pytest.importorskip(name) for name in ("networkx", "igraph", "libpysal.graph"))
    weights = pytest.importorskip("libpysal.weights")
    named = igraph.Graph([(0, 1), (1, 2)])
    named.vs["name"] = ["c", "a", "b"]
    graphs = {
        "networkx": Graph.from_networkx(networkx.path_graph(["c", "a", "b"])),
        "igraph": Graph.from_igraph(named),
        "W": Graph.from_pysal(weights.W({"c": ["a"], "a": ["c", "b"], "b": ["a"]}, id_order=["c", "a", "b"])),
        "pysal": Graph.from_pysal(pysal.Graph.from_arrays(list("caab"), list("acba"), [1, 1, 1, 1])),
        "pyg": Graph.from_pyg(SimpleNamespace(edge_index=[[0, 1, 1, 2], [1, 0, 2, 1]], num_nodes=3, name=list("cab"))),
        "edges": Graph.from_edges(["c", "a"], ["a", "b"]),
        "matrix": Graph(pd.DataFrame([[0, 1, 0], [1, 0, 1], [0, 1, 0]], index=list("cab"), columns=list("cab"))),
    }
    for name, graph in graphs.items():
        assert graph.ids is not None, name
        assert graph == Graph([[0, 1, 0], [1, 0, 1], [0, 1, 0]], ids=["c", "a", "b"]), name


def test_ends_are_looked_up_in_ids() -> None:
    graph = Graph.from_edges([30, 10], [10, 20], ids=[10, 20, 30, 40])
    assert graph.degrees.tolist() == [2, 1, 1, 0]
    assert Graph.from_edges([(0, 1), (1, 1)], [(1, 1), (2, 0)]).ids.tolist() == [(0, 1), (1, 1), (2, 0)]  # type: ignore[union-attr]
    assert Graph.from_edges(pd.Series([0, 1], dtype=object), pd.Series([1, 2])).ids is None
    with pytest.raises(InvalidInputError, match="u must name nodes in ids, got 30 at edge 0"):
        Graph.from_edges([30, 10], [10, 20], ids=[10, 20])


@pytest.mark.parametrize(
    ("ids", "message"),
    [(["a"], "each of the 2 nodes, got 1"), (["a", None], "missing one at node 1"), (["a", "a"], "'a' more than once")],
)
def test_bad_ids_are_refused(ids: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Graph([[0, 1], [1, 0]], ids=ids)


def test_nearest_neighbours_match_brute_force_and_go_both_ways() -> None:
    points = np.random.default_rng(0).normal(size=(30, 2))
    near = np.argsort(np.linalg.norm(points[:, None] - points[None], axis=2), axis=1)[:, 1:4]
    expected = np.zeros((30, 30))
    expected[np.repeat(np.arange(30), 3), near.ravel()] = 1
    graph = Graph.from_knn(pd.DataFrame(points, index=[f"p{i}" for i in range(30)]), 3)
    np.testing.assert_array_equal(dense(graph), np.maximum(expected, expected.T))
    assert graph.ids is not None
    assert graph.ids[2] == "p2"
    assert Graph.from_knn(np.zeros((6, 2)), 2).degrees.min() >= 2
    assert Graph.from_knn([0.0, 1.0, 5.0], 1).degrees.tolist() == [1, 2, 1]


def test_haversine_neighbours_are_those_of_great_circles() -> None:
    rng = np.random.default_rng(1)
    points = np.column_stack([rng.uniform(-180, 180, 40), rng.uniform(-90, 90, 40)])
    lon, lat = np.radians(points).T
    half = np.sin((lat[:, None] - lat) / 2) ** 2
    half += np.cos(lat)[:, None] * np.cos(lat) * np.sin((lon[:, None] - lon) / 2) ** 2
    near = np.argsort(half, axis=1)[:, 1:5]
    assert all(dense(Graph.from_knn(points, 4, metric="haversine"))[i, near[i]].all() for i in range(40))


@pytest.mark.parametrize(
    ("points", "options", "message"),
    [
        ([[0.0, 1.0], [np.nan, 1.0]], {"k": 1}, "points must be finite, got .* at row 1"),
        ([[0.0, 1.0], [1.0, 1.0]], {"k": 2}, "k must be from 1 to the 2 points less one, got 2"),
        ([[0.0, 95.0], [1.0, 1.0]], {"k": 1, "metric": "haversine"}, "latitude .up to 90.*swap the columns"),
        ([[0.0], [1.0]], {"k": 1, "metric": "cosine"}, "metric must be 'euclidean' or 'haversine', got 'cosine'"),
        ([["a"], ["b"]], {"k": 1}, "points must be numbers"),
    ],
)
def test_bad_points_are_refused(points: Any, options: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Graph.from_knn(points, **options)


def test_rook_neighbours_share_a_border_and_polygons_keep_their_index() -> None:
    geopandas, shapely = pytest.importorskip("geopandas"), pytest.importorskip("shapely")
    squares = [shapely.box(x, y, x + 1, y + 1) for x, y in [(0, 0), (1, 0), (1, 1)]]
    frame = geopandas.GeoDataFrame({"rent": [1.0, 2.0, 3.0]}, geometry=squares, index=list("xyz"))
    assert Graph.from_polygons(frame, rook=True) == Graph.from_edges(["x", "y"], ["y", "z"])
    assert Graph.from_polygons(frame).n_edges == 3
    assert Graph.from_knn(frame.set_geometry(frame.centroid), 1).ids is not None

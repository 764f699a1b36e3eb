import numpy as np
import pytest

from graphmrf._typing import Floats
from graphmrf.graph import Graph
from graphmrf.report import layout


def grid(side: int) -> Graph:
    node = np.arange(side * side).reshape(side, side)
    u = np.concatenate([node[:, :-1].ravel(), node[:-1].ravel()])
    v = np.concatenate([node[:, 1:].ravel(), node[1:].ravel()])
    return Graph.from_edges(u, v)


def lengths(xy: Floats, pairs: tuple[np.ndarray, np.ndarray]) -> Floats:
    distance: Floats = np.linalg.norm(xy[pairs[0]] - xy[pairs[1]], axis=1)
    return distance


@pytest.mark.parametrize("side", [7, 25])
def test_neighbours_are_drawn_near_each_other(side: int) -> None:
    graph = grid(side)
    xy = layout.positions(graph.adjacency, graph.components)
    edges = lengths(xy, graph.adjacency.nonzero())
    rng = np.random.default_rng(0)
    others = lengths(xy, (rng.integers(0, graph.n_nodes, 500), rng.integers(0, graph.n_nodes, 500)))
    assert np.median(edges) < 0.45 * np.median(others)
    assert edges.max() < 3 * np.median(edges)


def test_distances_in_a_grid_follow_its_geometry() -> None:
    graph = grid(25)
    xy = layout.positions(graph.adjacency, graph.components)
    place = np.stack(np.divmod(np.arange(625), 25), axis=1).astype(float)
    drawn, true = (np.linalg.norm(points[:, None] - points[::13], axis=2).ravel() for points in (xy, place))
    assert np.corrcoef(drawn, true)[0, 1] > 0.97


@pytest.mark.slow
def test_the_same_graph_gets_the_same_drawing() -> None:
    graph = grid(20)
    first, second = (layout.positions(graph.adjacency, graph.components) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.slow
def test_mesh_forces_agree_with_the_sum_over_all_pairs() -> None:
    xy = np.random.default_rng(1).uniform(0, 60, (3000, 2))
    exact, mesh = layout.repulsion(xy), layout.mesh_repulsion(xy)
    far = np.linalg.norm(exact - exact.mean(axis=0), axis=1) > 5
    error = np.linalg.norm(mesh - exact, axis=1)[far] / np.linalg.norm(exact, axis=1)[far]
    assert np.median(error) < 0.05


def test_components_are_packed_side_by_side() -> None:
    """A ring of 30, a ring of 12, an edge and three isolated nodes: no bounding box meets another."""
    u = np.concatenate([np.arange(30), 30 + np.arange(12), [42]])
    v = np.concatenate([(np.arange(30) + 1) % 30, 30 + (np.arange(12) + 1) % 12, [43]])
    graph = Graph.from_edges(u, v, n_nodes=47)
    xy = layout.positions(graph.adjacency, graph.components)
    boxes = [(xy[graph.components == c].min(axis=0), xy[graph.components == c].max(axis=0)) for c in range(6)]
    for i, (low, high) in enumerate(boxes):
        for other_low, other_high in boxes[:i]:
            assert (low > other_high).any() or (other_low > high).any()


def test_thousands_of_small_components_are_all_placed() -> None:
    n = 6000
    start = np.arange(0, n, 3)
    graph = Graph.from_edges(np.concatenate([start, start + 1]), np.concatenate([start + 1, start + 2]))
    xy = layout.positions(graph.adjacency, graph.components)
    assert len(np.unique(xy.round(6), axis=0)) == n


@pytest.mark.parametrize("n", [1, 2, 3])
def test_tiny_graphs_have_distinct_places(n: int) -> None:
    graph = Graph(np.ones((n, n)) - np.eye(n))
    xy = layout.positions(graph.adjacency, graph.components)
    assert len(np.unique(xy, axis=0)) == n


@pytest.mark.parametrize("leaves", [60, 500])
def test_leaves_of_a_star_do_not_share_a_place(leaves: int) -> None:
    graph = Graph.from_edges(np.zeros(leaves, dtype=int), np.arange(1, leaves + 1))
    xy = layout.positions(graph.adjacency, graph.components)
    assert len(np.unique(xy.round(3), axis=0)) == leaves + 1

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

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


@pytest.mark.parametrize(
    "container",
    [
        sparse.csr_array,
        sparse.csr_matrix,
        sparse.csc_array,
        sparse.coo_array,
        sparse.coo_matrix,
        sparse.lil_array,
        sparse.dok_array,
        np.asarray,
        np.ndarray.tolist,
        lambda W: sparse.csr_array(W.astype(np.float32)),
        lambda W: sparse.csr_array(W.astype(np.uint8)),
    ],
)
def test_every_matrix_container_gives_the_same_graph(container: Any) -> None:
    assert described(Graph(container(PATH))) == ([0, 1, 3, 4], [1, 0, 2, 1], [1, 1, 2, 2], ())


@given(cases.cases())
def test_a_matrix_is_kept_exactly(case: cases.Case) -> None:
    graph = Graph(sparse.csr_array(case.W))
    np.testing.assert_array_equal(dense(graph), case.W)
    assert (graph.n_nodes, graph.n_edges) == (len(case.W), int(np.count_nonzero(np.triu(case.W))))
    np.testing.assert_allclose(graph.degrees, case.W.sum(axis=1))


def test_equal_weights_of_one_are_not_stored() -> None:
    graph = Graph(PATH > 0)
    assert graph.weights is None
    assert not graph.is_weighted
    assert repr(graph) == "Graph(n_nodes=3, n_edges=2, unweighted)"
    assert Graph(PATH).is_weighted
    assert repr(Graph(PATH)) == "Graph(n_nodes=3, n_edges=2, weighted)"


def test_self_loops_are_dropped_with_a_note() -> None:
    graph = Graph(PATH + np.diag([5, 0, 7]))
    np.testing.assert_array_equal(dense(graph), PATH)
    assert graph.notes == ("dropped 2 self loops",)


def test_explicit_zeros_are_no_edges() -> None:
    W = sparse.csr_array((np.array([0.0, 0.0]), (np.array([0, 1]), np.array([1, 0]))), shape=(2, 2))
    assert Graph(W).n_edges == 0
    assert Graph(W).isolated.all()


@pytest.mark.parametrize("dtype", [np.int8, np.float64])
def test_entries_listed_twice_add_up_without_overflow(dtype: type) -> None:
    ends = np.array([0, 1, 0, 1]), np.array([1, 0, 1, 0])
    W = sparse.coo_array((np.full(4, 100, dtype=dtype), ends), shape=(2, 2))
    assert dense(Graph(W))[0, 1] == 200


def test_the_callers_matrix_is_not_changed() -> None:
    data, indices, indptr = np.array([1.0, 2, 0, 3, 3, 2, 0]), np.array([2, 1, 0, 0, 0, 0, 2]), np.array([0, 3, 5, 7])
    W = sparse.csr_array((data, indices, indptr), shape=(3, 3))
    kept = [array.copy() for array in (W.data, W.indices, W.indptr)]
    with pytest.raises(InvalidInputError):
        Graph(W)
    Graph(W, symmetrize=True)
    for before, after in zip(kept, (W.data, W.indices, W.indptr), strict=True):
        np.testing.assert_array_equal(after, before)


def test_the_graph_does_not_follow_the_callers_matrix() -> None:
    W = sparse.csr_array(PATH)
    graph = Graph(W)
    W.data[:] = 9.0
    np.testing.assert_array_equal(dense(graph), PATH)
    W.data[:] = -1.0


def test_a_directed_matrix_is_refused_with_the_remedy() -> None:
    W = PATH.copy()
    W[0, 1] = 4
    with pytest.raises(
        InvalidInputError,
        match=r"^W must be symmetric, got 2 unmatched entries, such as W\[0, 1\] = 4 but W\[1, 0\] = 1; "
        r"pass symmetrize=True to drop the directions, that is to use \(W \+ W\.T\) / 2$",
    ):
        Graph(W)


def test_symmetrize_averages_over_directions_and_says_so() -> None:
    W = np.triu(PATH)
    graph = Graph(W, symmetrize=True)
    np.testing.assert_array_equal(dense(graph), PATH / 2)
    assert graph.notes == ("averaged over directions: 4 entries differed from their counterparts",)
    assert Graph(PATH, symmetrize=True).notes == ()


def test_rounding_is_no_direction_and_is_evened_out() -> None:
    W = PATH.copy()
    W[0, 1] += 1e-15
    matrix = dense(Graph(W))
    np.testing.assert_array_equal(matrix, matrix.T)


@pytest.mark.parametrize(
    ("W", "message"),
    [
        (np.ones((2, 3)), r"W must be a square matrix, got shape \(2, 3\)"),
        (np.ones(4), r"W must be a square matrix, got shape \(4,\)"),
        ([(0, 1), (1, 2), (2, 3)], r"got shape \(3, 2\); edge lists go to Graph.from_edges"),
        (nx.path_graph(3), "Graph.from_networkx"),
        (sparse.csr_array(np.ones((3, 2))), r"W must be a square matrix, got shape \(3, 2\)"),
        ([["a", "b"], ["c", "d"]], "W must be numeric, got dtype <U1"),
        (np.eye(2) * 1j, "W must be numeric, got dtype complex128"),
        ([[0, np.nan], [np.nan, 0]], r"weights must be finite and >= 0, got nan at entry \(0, 1\); remove the edge or"),
        ([[0, 0, 0], [0, 0, np.inf], [0, np.inf, 0]], r"got inf at entry \(1, 2\)"),
        ([[0, 1, 0], [1, 0, 0], [0, 0, -1.5]], r"got -1.5 at entry \(2, 2\)"),
    ],
)
def test_a_bad_matrix_is_refused(W: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Graph(W)


@pytest.mark.parametrize(
    ("arguments", "n_nodes", "message"),
    [
        (([0, 1], [1]), None, "u and v must have the same length, got 2 and 1"),
        (([0.5], [1]), None, "u must contain integer node numbers, got dtype float64; number the nodes 0..n-1"),
        ((["a", None], ["b", "a"]), None, "u must name a node for every edge, got none at edge 1; drop the edge"),
        ((["a"], ["b"]), 3, "n_nodes must be the number of ids, 2, got 3; name all nodes with ids="),
        (([[0]], [[1]]), None, r"u must be one-dimensional, got shape \(1, 1\)"),
        (([0, 3], [1, 1]), 3, r"edges must join nodes 0\.\.2, got node 3; raise n_nodes or renumber"),
        (([0, -1], [1, 1]), None, r"edges must join nodes 0\.\.1, got node -1"),
        (([], []), -1, "n_nodes must be >= 0, got -1"),
        (([0], [1], [1, 2]), None, r"weight must have one entry per edge, got shape \(2,\) for 1 edges"),
        (([0, 4], [1, 2], [1, -3]), None, r"got -3.0 at edge 1 \(4 -- 2\); remove the edge or correct its weight"),
        (([0, 4], [1, 2], [np.nan, 1]), None, r"got nan at edge 0 \(0 -- 1\)"),
        (([0], [1], ["heavy"]), None, "weight must be numeric: could not convert string to float: 'heavy'"),
    ],
)
def test_bad_edges_are_refused(arguments: Any, n_nodes: int | None, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Graph.from_edges(*arguments, n_nodes=n_nodes)


def test_repeated_edges_count_once_without_weights() -> None:
    graph = Graph.from_edges([0, 1, 1, 2], [1, 0, 2, 1])
    np.testing.assert_array_equal(dense(graph), PATH > 0)
    assert graph.notes == ("2 repeated edges were counted once",)


def test_repeated_edges_add_up_with_weights() -> None:
    graph = Graph.from_edges([0, 1, 2], [1, 2, 1], [1.0, 0.5, 1.5])
    np.testing.assert_array_equal(dense(graph), PATH)
    assert graph.notes == ("1 repeated edge was added to the first",)


def test_edges_of_weight_zero_and_loops_are_dropped_with_notes() -> None:
    graph = Graph.from_edges([0, 1, 2, 2], [1, 2, 2, 0], [1, 2, 8, 0])
    np.testing.assert_array_equal(dense(graph), PATH)
    assert graph.notes == ("dropped 1 self loop", "dropped 1 edge of weight 0")


@given(cases.cases(), st.randoms(use_true_random=False))
def test_the_order_and_the_direction_of_edges_do_not_matter(case: cases.Case, random: Any) -> None:
    rows, columns = np.nonzero(np.triu(case.W))
    listed = [(i, j) if random.random() < 0.5 else (j, i) for i, j in zip(rows, columns, strict=True)]
    random.shuffle(listed)
    u, v = np.array(listed, dtype=np.int32).reshape(-1, 2).T
    graph = Graph.from_edges(u, v, case.W[u, v], n_nodes=len(case.W))
    assert described(graph) == described(case.graph)


def test_the_number_of_nodes_is_that_of_the_largest_end_point_or_more() -> None:
    assert Graph.from_edges([0, 1], [1, 4]).n_nodes == 5
    assert Graph.from_edges([0, 1], [1, 4], n_nodes=7).n_nodes == 7
    assert Graph.from_edges([], []).n_nodes == 0
    assert Graph.from_edges([], [], [], n_nodes=2).isolated.tolist() == [True, True]


@pytest.mark.parametrize("unit", [1e308, 1e300, 1e200, 1e-200, 1e-300, 1e-307])
@pytest.mark.parametrize("engine", ["scipy", "numba"])
def test_weights_of_any_unit_give_the_same_operator(unit: float, engine: str) -> None:
    W = np.array([[0, 1, 0.5, 0], [1, 0, 1, 0], [0.5, 1, 0, 0.25], [0, 0, 0.25, 0]])
    expected = Graph(W)
    u, v = np.nonzero(np.triu(W))
    for graph in (Graph(W * unit, engine=engine), Graph.from_edges(u, v, W[u, v] * unit).to(engine)):
        np.testing.assert_allclose(graph.S.toarray(), expected.S.toarray(), rtol=1e-14)
        block = graph.engine.load(np.eye(4))
        out = graph.engine.like(block)
        graph.engine.advance(block, np.ones(4), block, np.zeros(4), graph.engine.mask(None, 4), out)
        np.testing.assert_allclose(graph.engine.unload(out, 4), expected.S.toarray(), rtol=1e-14)
        assert "weights are in units of 2^" in " ".join(graph.notes)


def test_repeated_edges_of_the_largest_weights_add_up() -> None:
    graph = Graph.from_edges([0, 0, 1], [1, 1, 2], [1.5e308, 1.5e308, 1.5e308])
    np.testing.assert_allclose(graph.S.toarray(), Graph.from_edges([0, 1], [1, 2], [2.0, 1.0]).S.toarray())


@pytest.mark.parametrize(("small", "large"), [(5e-324, 1.0), (1e-310, 1e-300), (1e-300, 1e300)])
def test_weights_that_cannot_be_represented_together_are_refused(small: float, large: float) -> None:
    with pytest.raises(InvalidInputError, match="weights must be"):
        Graph.from_edges([0, 1], [1, 2], [small, large])
    with pytest.raises(InvalidInputError, match="weights must be"):
        Graph([[0, small, 0], [small, 0, large], [0, large, 0]])

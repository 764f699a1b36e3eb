import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import cases
import oracle
from graphmrf.graph import Graph, checks

PATH = np.array([[0.0, 1, 0], [1, 0, 2], [0, 2, 0]])


def described(graph: Graph) -> tuple[Any, ...]:
    weights = None if graph.weights is None else graph.weights.tolist()
    return graph.indptr.tolist(), graph.indices.tolist(), weights, graph.notes


@given(cases.cases())
def test_the_operators_are_those_of_the_paper(case: cases.Case) -> None:
    np.testing.assert_allclose(case.graph.S.toarray(), oracle.normalised_adjacency(case.W), atol=1e-15)
    np.testing.assert_allclose(case.graph.N.toarray(), oracle.laplacian(case.W), atol=1e-15)


def test_an_isolated_node_has_an_empty_row_in_both_operators() -> None:
    graph = Graph.from_edges([0], [2], n_nodes=3)
    assert graph.isolated.tolist() == [False, True, False]
    assert graph.S[[1], :].nnz == graph.N[[1], :].nnz == 0
    assert graph.N.diagonal().tolist() == [1, 0, 1]


@pytest.mark.parametrize("n", [0, 1])
def test_graphs_without_edges_have_all_properties(n: int) -> None:
    for graph in (Graph(np.zeros((n, n))), Graph.from_edges([], [], n_nodes=n)):
        assert (graph.n_nodes, graph.n_edges, graph.n_components, graph.bandwidth) == (n, 0, n, 0)
        assert graph.degrees.tolist() == [0.0] * n
        assert graph.components.tolist() == list(range(n))
        assert graph.S.shape == graph.N.shape == (n, n)
        assert not graph.is_weighted


def test_components_are_numbered() -> None:
    graph = Graph.from_edges([0, 3], [2, 4], n_nodes=6)
    assert graph.n_components == 4
    labels = graph.components
    assert labels[0] == labels[2]
    assert labels[3] == labels[4]
    assert len(set(labels[[0, 1, 3, 5]])) == 4


def test_bandwidth_is_small_for_a_shuffled_path_and_large_for_a_star() -> None:
    order = np.random.default_rng(0).permutation(50)
    assert Graph.from_edges(order[:-1], order[1:]).bandwidth == 1
    assert Graph.from_edges(np.zeros(49, dtype=int), np.arange(1, 50)).bandwidth >= 24


def test_indices_are_int32_until_they_no_longer_fit() -> None:
    assert checks.index_type(2**31 - 1, 10) is np.int32
    assert checks.index_type(2**31, 10) is np.int64
    assert checks.index_type(10, 2**31) is np.int64
    graph = Graph(PATH)
    assert graph.indptr.dtype == graph.indices.dtype == np.int32


def test_a_graph_with_int64_indices_gives_the_same_operators() -> None:
    expected, graph = Graph(PATH), Graph(PATH)
    wide = {name: getattr(graph, name).astype(np.int64) for name in ("indptr", "indices")}
    graph.__setstate__(graph.__getstate__() | wide)
    assert graph.indptr.dtype == graph.indices.dtype == np.int64
    np.testing.assert_array_equal(graph.S.toarray(), expected.S.toarray())
    np.testing.assert_array_equal(graph.N.toarray(), expected.N.toarray())


@pytest.mark.parametrize("name", ["indptr", "indices", "weights", "degrees", "isolated", "components"])
@pytest.mark.parametrize("remade", [lambda g: g, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_arrays_are_read_only(name: str, remade: Any) -> None:
    array = getattr(remade(Graph(PATH)), name)
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 7


@pytest.mark.parametrize("name", ["S", "N"])
def test_operators_are_read_only(name: str) -> None:
    with pytest.raises(ValueError, match="read-only"):
        getattr(Graph(PATH), name).data[0] = 7


@pytest.mark.parametrize("name", ["indptr", "weights", "notes", "degrees", "n_nodes", "anything"])
def test_attributes_are_frozen(name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(Graph(PATH), name, None)


def test_pickling_keeps_the_graph_and_leaves_the_caches_behind() -> None:
    graph = Graph(PATH + np.eye(3))
    small = len(pickle.dumps(graph))
    _ = graph.engine, graph.S, graph.N, graph.components, graph.degrees
    assert len(pickle.dumps(graph)) == small
    loaded = pickle.loads(pickle.dumps(graph))
    assert described(loaded) == described(graph)
    np.testing.assert_array_equal(loaded.N.toarray(), graph.N.toarray())


def test_loops_are_entries_of_the_compressed_rows() -> None:
    indptr, indices, weights = Graph.from_edges([0], [1]).with_loops(np.array([1.0, 3.0]))
    assert weights is not None
    assert [each.tolist() for each in (indptr, indices, weights)] == [[0, 2, 4], [1, 0, 0, 1], [1.0, 1.0, 1.0, 3.0]]

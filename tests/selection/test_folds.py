"""Folds that imitate the holes: distances against dense algebra, the choice between random folds and regions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import shortest_path

import families
import graphmrf as gm
from cases import Case, cases
from graphmrf._typing import Bools, Floats, Ints
from graphmrf.errors import InvalidInputError
from graphmrf.graph import Graph
from graphmrf.selection import MatchedFolds, assign_folds, distance_matched_folds, split, steps_to_label

SEEDS = st.integers(0, 10**6)


def dense_steps(W: Floats) -> Floats:
    steps: Floats = shortest_path(W, unweighted=True)
    return steps


def dense_distances(W: Floats, known: Bools, folds: Ints) -> tuple[Floats, Floats]:
    """Distances of held-out labels to other folds, and of all other nodes to labels, from the matrix of all paths."""
    steps, labelled = dense_steps(W), np.flatnonzero(known)
    among = np.where(folds[:, None] != folds, steps[np.ix_(labelled, labelled)], np.inf)
    return among.min(axis=1), steps[np.ix_(~known, labelled)].min(axis=1, initial=np.inf)


def left_half(side: int) -> Bools:
    return np.arange(side * side) % side < side // 2


@given(cases())
def test_steps_are_the_shortest_paths(case: Case) -> None:
    expected = dense_steps(case.W)[:, case.known].min(axis=1)
    np.testing.assert_array_equal(steps_to_label(case.graph, case.known), expected)


@given(cases(), st.integers(2, 6), SEEDS)
def test_distances_are_those_of_all_paths(case: Case, n_folds: int, seed: int) -> None:
    matched = distance_matched_folds(case.graph, case.known, n_folds, random_state=seed)
    held, target = dense_distances(case.W, case.known, matched.folds)
    np.testing.assert_array_equal(matched.distances, held)
    np.testing.assert_array_equal(matched.target, target)


@pytest.mark.parametrize("seed", range(3))
def test_distances_of_regions_are_those_of_all_paths(seed: int) -> None:
    graph, known = families.grid(16), left_half(16)
    matched = distance_matched_folds(graph, known, 4, random_state=seed)
    assert not matched.is_random
    held, target = dense_distances(graph.adjacency.toarray(), known, matched.folds)
    np.testing.assert_array_equal(matched.distances, held)
    np.testing.assert_array_equal(matched.target, target)


@pytest.mark.parametrize("fraction", [0.02, 0.3, 0.9])
@pytest.mark.parametrize("graph", [families.grid(40), families.path(300), families.tree(700), families.star(200)])
def test_random_holes_have_the_random_folds(graph: Graph, fraction: float) -> None:
    for seed in range(5):
        known = split(graph.n_nodes, fraction, random_state=seed)
        matched = distance_matched_folds(graph, known, random_state=seed)
        assert matched.is_random
        np.testing.assert_array_equal(matched.folds, assign_folds(int(known.sum()), 5, random_state=seed))
        np.testing.assert_array_equal(matched.weights, 1.0)
        assert matched.notes == ()


@pytest.mark.parametrize("side", [20, 30])
def test_holes_in_blocks_have_folds_of_regions(side: int) -> None:
    graph, known = families.grid(side), left_half(side)
    matched = distance_matched_folds(graph, known)
    plain = np.mean(np.log2(dense_distances(graph.adjacency.toarray(), known, assign_folds(known.sum(), 5))[0]))
    wanted, found = np.mean(np.log2(matched.target)), np.mean(np.log2(matched.distances))
    assert abs(found - wanted) < 0.6 * abs(plain - wanted)
    assert "held-out regions" in matched.notes[0]
    sizes = np.bincount(matched.folds)
    assert sizes.size == 5
    assert sizes.max() <= 2 * known.sum() / 5


def test_weights_have_the_distribution_of_the_target() -> None:
    matched = distance_matched_folds(families.grid(40), left_half(40))
    assert matched.weights.mean() == pytest.approx(1.0)
    for near in (2, 4):
        share = matched.weights @ (matched.distances < near) / matched.weights.size
        assert share == pytest.approx(np.mean(matched.target < near), abs=0.02)


@given(st.lists(st.integers(1, 40), min_size=12, max_size=60), st.lists(st.integers(1, 40), min_size=1), SEEDS)
def test_weights_are_bounded_by_the_labels_of_a_group(held: list[int], target: list[int], seed: int) -> None:
    folds = assign_folds(len(held), 3, random_state=seed)
    matched = MatchedFolds(folds, np.array(held, float), np.array(target, float), regions=folds)
    assert matched.weights.min() >= 0
    assert matched.weights.mean() == pytest.approx(1.0)
    assert matched.weights.max() <= len(held) / 3 + 1e-9


def test_weights_do_not_change_where_distances_already_match() -> None:
    distances = np.repeat([1.0, 2.0, 5.0, np.inf], 10)
    matched = MatchedFolds(assign_folds(40, 5), distances, np.tile(distances, 3), regions=assign_folds(40, 8))
    np.testing.assert_allclose(matched.weights, 1.0)


def test_the_note_names_nodes_beyond_all_held_out_labels() -> None:
    folds = assign_folds(20, 5)
    near = MatchedFolds(folds, np.full(20, 3.0), np.full(30, 2.0))
    assert near.extrapolation is None
    one = MatchedFolds(folds, np.full(20, 3.0), np.append(np.full(30, 2.0), 4.0))
    assert one.extrapolation is None  # one node of 31 may be the farthest by chance
    far = MatchedFolds(folds, np.full(20, 3.0), np.repeat([2.0, 9.0, np.inf], [10, 20, 2]))
    assert far.extrapolation == (
        "22 of 32 nodes to predict lie farther from the nearest label (up to 9 steps, 2 not connected to any) than any "
        "held-out label did from the others (at most 3 steps); their accuracy and intervals are extrapolated"
    )


def test_a_component_without_labels_is_imitated_by_components() -> None:
    """Half of 40 paths of 5 nodes have all labels, the others none: whole paths are held out."""
    nodes = np.arange(200)
    inner = nodes[nodes % 5 != 4]
    graph = Graph.from_edges(inner, inner + 1, n_nodes=200)
    matched = distance_matched_folds(graph, nodes < 100)
    assert np.isinf(matched.target).all()
    assert np.isinf(matched.distances).mean() > 0.8
    assert matched.extrapolation is None


def test_all_labelled() -> None:
    matched = distance_matched_folds(families.grid(5), np.ones(25, dtype=bool), random_state=3)
    np.testing.assert_array_equal(matched.folds, assign_folds(25, 5, random_state=3))
    assert matched.target.size == 0
    assert matched.notes == ()


def test_two_labels() -> None:
    known = np.arange(9) < 2
    matched = distance_matched_folds(families.path(9), known)
    assert sorted(matched.folds.tolist()) == [0, 1]
    np.testing.assert_array_equal(matched.distances, [1.0, 1.0])


def test_no_edges() -> None:
    graph, known = Graph.from_edges([], [], n_nodes=30), np.arange(30) < 12
    matched = distance_matched_folds(graph, known, 3, random_state=1)
    np.testing.assert_array_equal(matched.folds, assign_folds(12, 3, random_state=1))
    assert np.isinf(matched.distances).all()
    assert np.isinf(matched.target).all()


def test_isolated_nodes_do_not_change_the_choice() -> None:
    block, known = families.grid(12), left_half(12)
    graph = Graph.from_edges(*block.adjacency.nonzero(), n_nodes=150)
    matched = distance_matched_folds(graph, np.append(known, np.array([True, True, False, False, False, False])))
    assert not matched.is_random
    assert np.isinf(matched.distances[-2:]).all()
    assert np.isinf(matched.target).sum() == 4


def test_one_label_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="at least 2 labelled nodes"):
        distance_matched_folds(families.path(4), np.arange(4) < 1)


def test_node_order_changes_the_draw_only() -> None:
    """On a shuffled lattice the number of regions and the distances are similar."""
    graph, known, order = families.grid(30), left_half(30), np.random.default_rng(0).permutation(900)
    place = np.argsort(order)
    u, v = graph.adjacency.nonzero()
    shuffled = distance_matched_folds(Graph.from_edges(place[u], place[v]), known[order])
    plain = distance_matched_folds(graph, known)
    np.testing.assert_array_equal(np.sort(shuffled.target), np.sort(plain.target))
    assert np.mean(np.log2(shuffled.distances)) == pytest.approx(np.mean(np.log2(plain.distances)), abs=0.5)


def test_the_same_seed_has_the_same_folds() -> None:
    known = left_half(20)
    first, again = (distance_matched_folds(families.grid(20), known, random_state=7) for _ in range(2))
    np.testing.assert_array_equal(first.folds, again.folds)
    other = distance_matched_folds(families.grid(20), known, random_state=8)
    assert (first.folds != other.folds).any()


def test_they_are_public() -> None:
    assert gm.selection.distance_matched_folds is distance_matched_folds

from collections.abc import Callable

import numpy as np

from graphmrf.report import PredictionReport
from graphmrf.report.sampled_drawing import LISTED_NODES, most_uncertain, sample_drawing

Maker = Callable[..., PredictionReport]


def test_a_small_graph_is_drawn_whole(make_report: Maker) -> None:
    drawing = sample_drawing(make_report(40))
    np.testing.assert_array_equal(drawing.nodes, np.arange(40))
    assert len(drawing.edges) == 40
    assert drawing.dropped == ()


def test_coordinates_are_used_as_given(make_report: Maker) -> None:
    xy = np.random.default_rng(0).normal(size=(40, 2))
    np.testing.assert_array_equal(sample_drawing(make_report(40, coordinates=xy)).xy, xy)


def test_a_large_graph_is_sampled_with_its_most_uncertain_nodes_and_says_so(make_report: Maker) -> None:
    report = make_report(500)
    drawing = sample_drawing(report, max_nodes=100, max_edges=5)
    assert len(np.unique(drawing.nodes)) == 100
    assert np.isin(most_uncertain(report.targets[0]), drawing.nodes).all()
    assert drawing.dropped == (
        "The drawing shows a random sample of 100 of 500 nodes.",
        "The drawing shows 5 of 500 edges.",
    )


def test_drawn_edges_are_edges_of_the_graph(make_report: Maker) -> None:
    report = make_report(500)
    drawing = sample_drawing(report, max_nodes=300)
    u, v = drawing.nodes[drawing.edges].T
    assert len(u) > 0
    assert (report.graph.adjacency.toarray()[u, v] == 1).all()


def test_the_sample_depends_on_the_seed_only(make_report: Maker) -> None:
    first, again, other = (sample_drawing(make_report(500), max_nodes=100, seed=seed).nodes for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_most_uncertain_nodes_are_hidden_and_sorted(make_report: Maker) -> None:
    target = make_report(100).targets[0]
    assert target.std is not None
    nodes = most_uncertain(target)
    hidden = sorted(target.std[~target.observed], reverse=True)
    np.testing.assert_array_equal(target.std[nodes], hidden[:LISTED_NODES])
    assert not target.observed[nodes].any()

from base64 import b64decode
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from graphmrf.graph import Graph
from graphmrf.report.drawing import draw_graph, shared_arrays
from graphmrf.report.tables import most_uncertain

Maker = Callable[..., Any]


def test_a_small_graph_is_drawn_whole(make_report: Maker) -> None:
    drawing = draw_graph(make_report(40))
    np.testing.assert_array_equal(drawing.place, np.arange(40))
    assert len(drawing.edges) == 40
    assert drawing.said == ()


def test_coordinates_are_used_as_given(make_report: Maker) -> None:
    xy = np.random.default_rng(0).normal(size=(40, 2))
    np.testing.assert_array_equal(draw_graph(make_report(40, coordinates=xy)).xy, xy)


def test_a_large_graph_is_drawn_in_cells_with_means_and_says_so(make_report: Maker) -> None:
    xy = np.random.default_rng(1).uniform(size=(500, 2))
    drawing = draw_graph(make_report(500, coordinates=xy), max_nodes=100)
    assert drawing.counts.sum() == 500
    assert np.abs(xy - drawing.xy[drawing.place]).max() <= drawing.size / 2 * (1 + 1e-9)
    values = np.where(np.arange(500) % 3, np.arange(500.0), np.nan)
    means = [np.nanmean(values[drawing.place == k]) for k in np.unique(drawing.place[np.isfinite(values)])]
    np.testing.assert_allclose(drawing.mean(values)[np.isfinite(drawing.mean(values))], means)
    assert "500 nodes and 500 edges are too many to be drawn" in drawing.said[0]


def test_nodes_at_one_place_are_one_cell(make_report: Maker) -> None:
    drawing = draw_graph(make_report(50, coordinates=np.ones((50, 2))), max_nodes=10)
    np.testing.assert_array_equal(drawing.counts, [50])


def test_too_many_edges_are_left_out_and_that_is_told(make_report: Maker) -> None:
    drawing = draw_graph(make_report(500), max_edges=5)
    assert len(drawing.edges) == 0
    assert drawing.said == ("Its 500 edges are too many to be drawn.",)


@pytest.mark.parametrize("most", [20_000, 100])
def test_a_panel_is_drawn_once_for_each_time(make_report: Maker, most: int) -> None:
    times, space = (
        pd.to_datetime(["2020-01-01", "2021-01-01", "2022-01-01"]),
        Graph.from_edges(*np.triu_indices(40, 39)),
    )
    places = np.random.default_rng(0).integers(0, 4, (40, 2)).astype(float)
    report = make_report(120, graph=space.over_time(times), coordinates=places.repeat(3, axis=0))
    drawn = draw_graph(report, max_nodes=most)
    at = drawn.xy[drawn.place].reshape(40, 3, 2)
    width, height = np.ptp(at[:, 0], axis=0)
    np.testing.assert_allclose(at[:, 1] - at[:, 0], np.tile([1.2 * width, 0.0], (40, 1)), atol=1e-12)
    np.testing.assert_allclose(at[:, 2] - at[:, 0], np.tile([0.0, -1.35 * height], (40, 1)), atol=1e-12)
    assert [title[0] for title in drawn.titles] == ["2020-01-01", "2021-01-01", "2022-01-01"]
    if most == 20_000:
        np.testing.assert_array_equal(drawn.place, np.arange(120))
        np.testing.assert_array_equal(drawn.edges, [[0, 117], [1, 118], [2, 119]])  # none between times
    else:
        assert len(drawn.xy) < 120
        np.testing.assert_allclose(at[:, 0] - at[0, 0], at[:, 1] - at[0, 1])


def test_drawn_edges_are_those_of_the_graph(make_report: Maker) -> None:
    report = make_report(300)
    u, v = draw_graph(report).edges.T
    assert len(u) == report.graph.n_edges
    assert (report.graph.adjacency.toarray()[u, v] == 1).all()


def test_outlines_are_kept_to_a_fraction_of_a_pixel(make_report: Maker) -> None:
    angle = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    shapes = [[circle + 3 * k, 0.5 * circle + 3 * k] if k else [circle] for k in range(40)]
    report = make_report(40, shapes=shapes, coordinates=np.arange(80.0).reshape(40, 2))
    arrays = shared_arrays(report, draw_graph(report))
    assert {"shape", "ring", "vertex", "frame"} <= set(arrays)
    shape, ring, vertex = (_unpacked(arrays[name]) for name in ("shape", "ring", "vertex"))
    np.testing.assert_array_equal(np.diff(shape), [1] + [2] * 39)
    points = np.array(arrays["frame"][:2]) + arrays["frame"][2] * vertex.reshape(-1, 2)
    last = points[ring[shape[39]] : ring[shape[39] + 1]] - 3 * 39
    assert np.abs(np.linalg.norm(last, axis=1) - 1).max() < 2 * arrays["frame"][2]
    assert len(last) > 40


def _unpacked(packed: dict[str, str]) -> np.ndarray:
    return np.frombuffer(b64decode(packed["data"]), dtype=f"<{packed['dtype']}")


def test_most_uncertain_nodes_are_hidden_and_sorted(make_report: Maker) -> None:
    target = make_report(100).targets[0]
    assert target.std is not None
    nodes = most_uncertain(target)
    hidden = sorted(target.std[~target.observed], reverse=True)
    np.testing.assert_array_equal(target.std[nodes], hidden[:25])
    assert not target.observed[nodes].any()

"""Names of earlier versions: an error that gives the new one."""

from typing import Any

import pytest

import graphmrf as gm
from graphmrf.errors import InvalidInputError

GRAPH = gm.Graph.from_edges([0, 1], [1, 2])


@pytest.mark.parametrize(("old", "new"), [("seed", "random_state"), ("folds", "cv")])
@pytest.mark.parametrize("make", [gm.LabelPropagation, gm.GraphRegressor, gm.GraphClassifier])
def test_a_former_option_is_refused_with_the_new_name(make: Any, old: str, new: str) -> None:
    with pytest.raises(InvalidInputError, match=f"now called {new}"):
        make(**{old: 3})


def test_a_former_attribute_is_refused_with_the_new_name() -> None:
    model: Any = gm.LabelPropagation(alpha=0.5).fit(GRAPH, None, [1.0, 2.0, float("nan")])
    with pytest.raises(AttributeError, match="now called dof_"):
        _ = model.freedom_
    assert not hasattr(model, "freedom_")
    assert not hasattr(model, "anything_else_")


def test_a_graph_moves_by_its_new_name() -> None:
    graph: Any = GRAPH
    with pytest.raises(AttributeError, match="now called to"):
        graph.on("numba")
    assert graph.to("numba").engine_name == "numba"

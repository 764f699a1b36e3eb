"""Names of earlier versions: an error that gives the new one."""

from importlib import import_module
from typing import Any

import pytest
from typer.testing import CliRunner

import graphmrf as gm
from graphmrf.cli import app
from graphmrf.errors import InvalidInputError, RenamedError
from graphmrf.selection import assign_folds, split

GRAPH = gm.Graph.from_edges([0, 1], [1, 2])


@pytest.mark.parametrize(("old", "new"), [("seed", "random_state"), ("folds", "cv")])
@pytest.mark.parametrize("make", [gm.LabelPropagation, gm.GraphRegressor, gm.GraphClassifier, gm.GraphImputer])
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


@pytest.mark.parametrize(
    "call",
    [
        gm.compare,
        gm.GraphRegressor.sample,
        gm.LabelPropagation.sample,
        gm.GraphImputer.sample,
        gm.GaussianMRF([[1.0]], [1.0]).sample,
        split,
        assign_folds,
    ],
)
def test_a_former_option_of_a_function_is_refused_with_the_new_name(call: Any) -> None:
    with pytest.raises(InvalidInputError, match="has no option seed; it is now called random_state"):
        call(seed=1)


@pytest.mark.parametrize(
    ("module", "name", "new"),
    [
        (gm, "experiments", "graphmrf_paper"),
        (gm.datasets, "catalogue", "graphmrf_paper.catalogue"),
        ("graphmrf.field", "COMPONENTS", "TERMS"),
    ],
)
def test_a_former_module_or_name_is_refused_with_the_new_name(module: Any, name: str, new: str) -> None:
    module = import_module(module) if isinstance(module, str) else module
    with pytest.raises(RenamedError, match=f"has no {name}; it is now called {new}"):
        getattr(module, name)
    with pytest.raises(AttributeError, match="has no attribute 'anything_else'"):
        _ = module.anything_else


def test_former_methods_and_attributes_are_refused_with_the_new_name() -> None:
    with pytest.raises(InvalidInputError, match="now called from_polygons"):
        gm.Graph.from_geopandas(None)
    model: Any = gm.LinearRegression().fit(GRAPH, [[0.0], [1.0], [3.0]], [1.0, 2.0, 4.0])
    with pytest.raises(AttributeError, match="now called coef_"):
        _ = model.coefficients_


@pytest.mark.parametrize(
    "words", [("predict", "n.csv", "--whole", "--integer"), ("foresee", "n.csv", "--reach", "--target-r2")]
)
def test_a_former_option_of_a_command_is_refused_with_the_new_name(words: tuple[str, ...]) -> None:
    *arguments, new = words
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert f"now called {new}" in " ".join(result.output.split())

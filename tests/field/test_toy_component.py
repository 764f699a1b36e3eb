"""A new component is one class in the list: it is searched, predicts and has its share with both solvers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphmrf import Graph
from graphmrf._typing import Floats, Ints
from graphmrf.field import COMPONENTS, FittedField, LinearComponent, fit_exact, fit_sparse
from graphmrf.field.hyperparameters import variance

GROUP = np.arange(120) % 3 == 0


class Group(LinearComponent):
    """An offset of every third node, which neither features nor neighbours tell."""

    name, effect, words = "group", "group offset", ("the offset of a group", "what every third node has on top")
    parameters = (variance("group"),)
    of_features = False

    def features(self, labels: Any, h: Any, nodes: Ints) -> Floats:  # noqa: ARG002 - the same for all
        return np.asarray(GROUP[nodes, None] - GROUP.mean())

    def columns(self, graph: Any, design: Any, h: Any, most: int) -> Floats:  # noqa: ARG002 - the same for all
        return np.asarray(GROUP[:, None] - GROUP.mean())


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize("fit", [fit_exact, fit_sparse])
def test_a_component_of_its_own_is_fitted_and_told(fit: Callable[..., FittedField]) -> None:
    rng = np.random.default_rng(0)
    graph = Graph.from_edges(np.arange(120), (np.arange(120) + 1) % 120)
    X = rng.standard_normal((120, 1))
    y = X[:, 0] + 4.0 * GROUP + 0.1 * rng.standard_normal(120)
    hidden = np.where(rng.random(120) < 0.4, np.nan, y)
    field = fit(graph, X, hidden, components=(*COMPONENTS, Group()))
    assert field.shares["group offset"] > 0.5
    assert sum(field.shares.values()) == pytest.approx(1.0)
    assert field.posterior.h["group"] > 0.0
    assert np.abs(field.predictions[0] - y).max() < 1.0

"""The exact field with its dense algebra on a device, against the same on the host."""

import pickle
from typing import Any

import numpy as np
import pytest

from cases import random_case
from graphmrf import GraphRegressor
from graphmrf._typing import Floats
from graphmrf.field import correlations, matern
from graphmrf.field.fit import choose_solver, exact_cost, most_bytes, sparse_cost
from graphmrf.graph import Graph

pytestmark = pytest.mark.usefixtures("few_draws")


def shape(model: GraphRegressor) -> Floats:
    return np.hstack([np.ravel(value) for value in dict(model.hyperparameters_).values()])


@pytest.mark.parametrize("launched", [1, 10**6], ids=["covariances there", "eigenvectors there"])
def test_it_is_the_same_wherever_it_is_computed(launched: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(correlations, "_LAUNCHED", launched)
    case = random_case(3, n=260, p=2, labelled=210)
    graphs = case.graph, case.graph.on("cuda")
    here, there = (GraphRegressor().fit(graph, case.X, case.y) for graph in graphs)
    assert [isinstance(matern.eigen(graph).vectors, np.ndarray) for graph in graphs] == [True, False]
    other = random_case(4, n=20, p=2)
    quantities: list[Any] = [
        shape,
        lambda model: model.predict(return_std=True),
        lambda model: model.predict(other.graph, other.X),
        lambda model: model.sample(2, seed=0),
        lambda model: model.shares_,
        lambda model: model.coefficients_,
        lambda model: model.coef_,
        lambda model: model.left_out_,
        lambda model: model.log_evidence_,
    ]
    if launched == 1:
        there = pickle.loads(pickle.dumps(there))  # with plain arrays
    for quantity in quantities:
        np.testing.assert_allclose(np.asarray(quantity(there)), np.asarray(quantity(here)), rtol=1e-6, atol=1e-7)


def test_few_labels_and_missing_features_are_averaged_there_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(correlations, "_LAUNCHED", 1)
    rng = np.random.default_rng(0)
    graph = Graph.from_edges(*rng.integers(0, 40, (2, 80)), n_nodes=40)
    X, y = rng.standard_normal((40, 2)), rng.standard_normal(40)
    X[::5, 1] = y[20:] = np.nan
    here, there = (GraphRegressor().fit(on, X, y).predict(return_std=True) for on in (graph, graph.on("cuda")))
    np.testing.assert_allclose(there, here, rtol=1e-5, atol=1e-6)


def test_foreseen_costs_are_those_of_the_device() -> None:
    graph = Graph.from_edges(np.arange(3000), np.roll(np.arange(3000), 1))
    there = graph.on("cuda")
    for cost in (exact_cost, sparse_cost):
        assert cost(there, 900, 5)[0] < 0.2 * cost(graph, 900, 5)[0]
    assert most_bytes(there, 900) > most_bytes(graph, 900)
    assert choose_solver(there, 900, 5) == ("exact", "takes some seconds")

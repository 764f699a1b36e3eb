from typing import Any

import numpy as np
import pytest
from sklearn.metrics import r2_score

from graphmrf import LinearGraphConvolution, SimpleGraphConvolution
from graphmrf_paper.accuracy import count_data, inductive, lgc_coefficients, transductive
from graphmrf_paper.attributes import load_task
from graphmrf_paper.published import printed
from graphmrf_paper.splits import authors_split
from small_paper import N_NODES

pytestmark = pytest.mark.slow


def test_accuracy_is_that_of_the_estimator_on_hidden_nodes() -> None:
    graph, X, y = load_task(None, "us-2016", "income")
    labelled = authors_split(len(y), 0.3, 5)
    fitted = LinearGraphConvolution(random_state=5, shrinkage=0).fit(graph, X, np.where(labelled, y, np.nan))
    value, training = (r2_score(y[nodes], fitted.predict()[nodes]) for nodes in (~labelled, labelled))
    expected = {"value": value, "training": training, "alpha": fitted.alpha_}
    found = transductive(None, {"data": "us-2016", "outcome": "income", "method": "LGC", "seed": 5, "fraction": 0.3})
    assert found == {"LGC": expected}


def test_a_base_and_its_residual_propagation_come_from_one_run() -> None:
    options: dict[str, Any] = {"data": "us-2016", "outcome": "income", "seed": 1, "fraction": 0.3}
    assert list(transductive(None, {**options, "method": "SGC exact"})) == ["SGC exact", "SGC exact/RP"]
    pytest.importorskip("torch_geometric")
    assert list(transductive(None, {**options, "method": "GCN", "effort": "quick"})) == ["GCN", "GCN/RP"]


def test_inductive_accuracy_is_measured_on_the_other_graph() -> None:
    graph, X, y = load_task(None, "us-2012", "income")
    labelled = authors_split(len(y), 0.3, 3)
    fitted = LinearGraphConvolution(random_state=3, shrinkage=0).fit(graph, X, np.where(labelled, y, np.nan))
    new_graph, X_new, y_new = load_task(None, "us-2016", "income")
    pair = {"train": "us-2012", "test": "us-2016"}
    found = inductive(None, {**pair, "outcome": "income", "method": "LGC", "seed": 3})
    expected = r2_score(y_new[~labelled], fitted.predict(new_graph, X_new)[~labelled])
    assert found == {"LGC": {"value": expected, "alpha": fitted.alpha_}}


@pytest.mark.parametrize("method", ["LP", "LR", "LGC", "LGC/RP"])
def test_on_the_real_data_a_split_is_near_print(real_data: str, method: str) -> None:
    options = {"data": "us-2016", "outcome": "income", "method": method, "seed": 1, "fraction": 0.3}
    found = transductive(real_data, options)
    assert found[method]["value"] == pytest.approx(printed("real-accuracy", "us-2016/income", method), abs=0.04)


def test_smoothing_by_one_step_at_least_is_the_best_of_the_three_by_cross_validation() -> None:
    graph, X, y = load_task(None, "us-2016", "income")
    hidden = np.where(authors_split(len(y), 0.3, 1), y, np.nan)
    options: dict[str, Any] = {"data": "us-2016", "outcome": "income", "seed": 1, "fraction": 0.3}
    found = transductive(None, {**options, "method": "SGC smoothed"})["SGC smoothed"]
    scores = SimpleGraphConvolution(random_state=1).fit(graph, X, hidden).cv_results_
    assert scores is not None
    assert found["layers"] == 1 + np.argmax(scores["mean_r2"][1:])
    fitted = SimpleGraphConvolution(n_layers=int(found["layers"])).fit(graph, X, hidden)
    test = np.isnan(hidden)
    assert found["value"] == pytest.approx(r2_score(y[test], fitted.predict()[test]))


def test_coefficients_are_named() -> None:
    found = lgc_coefficients(None, {"data": "us-2016", "outcome": "election", "seed": 1})
    coefficients = found["coefficients"]
    assert list(coefficients)[:3] == ["sh050m", "sh100m", "sh500m"]
    assert len(coefficients) == 9


def test_attributes_are_counted_as_the_experiments_use_them() -> None:
    assert count_data(None, {"data": "twitch-ptbr"}) == {"vertices": N_NODES, "edges": 300, "attributes": 66}

from typing import TYPE_CHECKING

import numpy as np
import pytest

import oracle
from graphmrf import GaussianMRF
from graphmrf_paper.attributes import load_attributes
from graphmrf_paper.expected import LEVEL_FITTED, LP_FULL, MEASURED, SIMULATED, expected_accuracy
from graphmrf_paper.published import authors
from graphmrf_paper.splits import authors_split
from small_paper import N_NODES

if TYPE_CHECKING:
    from graphmrf._typing import Bools, Floats
    from graphmrf.graph import Graph
    from graphmrf.model.expected_accuracy import KnownData

pytestmark = pytest.mark.slow
OPTIONS: dict[str, str | int] = {"data": "cdc-2008", "outcome": "pm2.5", "seed": 1, "splits": 2}
OURS, THEIRS = "maximum likelihood", "authors' parameters"
KINDS: "dict[str, KnownData]" = {"LP": "labels", "LGC": "features", "LGC/RP": "both"}


def fitted() -> "tuple[Graph, GaussianMRF, Floats]":
    graph, frame = load_attributes(None, "cdc-2008")
    return graph, GaussianMRF.fit(graph, frame, center=False), frame.to_numpy()


def hidden(seed: int) -> "Bools":
    return np.asarray(~authors_split(N_NODES, 0.3, seed))


def test_the_paper_s_formula_is_that_of_the_library() -> None:
    graph, mrf, _ = fitted()
    found = expected_accuracy(None, OPTIONS)[OURS]
    for name, given in KINDS.items():
        expected = [mrf.expected_r2(graph, "pm2.5", ~hidden(seed), given) for seed in (1, 2)]
        np.testing.assert_allclose(found[name], expected, rtol=1e-8)


def test_a_fitted_level_costs_nothing() -> None:
    graph, mrf, _ = fitted()
    U, t = hidden(1), mrf.index("pm2.5")
    K = np.linalg.inv(mrf.H[t, t] * np.eye(N_NODES) + mrf.C[t, t] * graph.N.toarray())
    centre = np.eye(U.sum()) - 1 / U.sum()
    left = np.trace(centre @ K[np.ix_(U, U)])
    Gamma = np.kron(mrf.H, np.eye(N_NODES)) + np.kron(mrf.C, graph.N.toarray())
    block = slice(N_NODES * t, N_NODES * (t + 1))
    prior = np.linalg.inv(Gamma)[block, block]
    expected = 1 - left / np.trace(centre @ prior[np.ix_(U, U)])
    found = expected_accuracy(None, OPTIONS)[OURS]
    assert found["LGC" + LEVEL_FITTED][0] == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("name", ["LP", "LGC", "LGC/RP"])
def test_the_simulated_expectation_is_that_of_predictions_on_samples(name: str) -> None:
    graph, mrf, _ = fitted()
    U, t, scores = hidden(1), mrf.index("pm2.5"), []
    for A in mrf.sample(graph, 100, random_state=5):
        known = A.copy()
        known[U if KINDS[name] != "features" else slice(None), t] = np.nan
        if KINDS[name] == "labels":
            known[:, np.arange(A.shape[1]) != t] = np.nan
        mean = oracle.field_given(graph.adjacency.toarray(), mrf.H, mrf.C, known)[0][:, t]
        y = A[U, t]
        scores.append(1 - ((y - mean[U]) ** 2).sum() / ((y - y.mean()) ** 2).sum())
    error = np.std(scores) / np.sqrt(100)
    found = expected_accuracy(None, OPTIONS)[OURS][name + SIMULATED][0]
    assert abs(found - np.mean(scores)) < 5 * error


def test_label_propagation_of_the_full_model_is_the_mean_given_labels() -> None:
    graph, mrf, A = fitted()
    U, t = hidden(1), mrf.index("pm2.5")
    known = np.full(A.shape, np.nan)
    known[~U, t] = A[~U, t]
    mean, y = oracle.field_given(graph.adjacency.toarray(), mrf.H, mrf.C, known)[0][U, t], A[U, t]
    expected = 1 - ((y - mean) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    assert expected_accuracy(None, OPTIONS)[OURS][LP_FULL + MEASURED][0] == pytest.approx(expected, rel=1e-6)


def test_the_authors_parameters_give_the_r2_that_they_expect(real_data: str) -> None:
    found = expected_accuracy(real_data, {"data": "london-2016", "outcome": "edu", "seed": 1, "splits": 10})[THEIRS]
    for name in KINDS:
        assert np.mean(found[name]) == pytest.approx(
            authors("r2-estimate-real", f"London/edu/{name}", "expected"), abs=6e-4
        )

from typing import TYPE_CHECKING

import numpy as np
import pytest

from graphmrf import GaussianMRF
from graphmrf.selection import split
from graphmrf_paper.attributes import load_attributes, load_raw
from graphmrf_paper.generative import LEVEL_FITTED, draw_maps, expected_splits, recover_parameters
from small_paper import N_NODES

if TYPE_CHECKING:
    from graphmrf.model.expected_accuracy import KnownData

pytestmark = pytest.mark.slow


def test_foreseen_accuracy_is_that_of_the_model() -> None:
    graph, frame = load_attributes(None, "cdc-2008")
    mrf = GaussianMRF.fit(graph, frame, center=False)
    found = expected_splits(None, {"data": "cdc-2008", "outcome": "pm2.5", "seed": 1, "splits": 2})
    kinds: dict[str, KnownData] = {"LP": "labels", "LGC": "features", "LGC/RP": "both"}
    for name, given in kinds.items():
        expected = [mrf.expected_r2(graph, "pm2.5", split(N_NODES, 0.3, random_state=seed), given) for seed in (1, 2)]
        np.testing.assert_allclose(found[name], expected, rtol=1e-8)
        assert np.all(np.asarray(found[name + LEVEL_FITTED]) > expected)


def test_a_fitted_level_costs_nothing_of_the_foreseen_accuracy() -> None:
    graph, frame = load_attributes(None, "cdc-2008")
    mrf = GaussianMRF.fit(graph, frame, center=False)
    U, t = ~split(N_NODES, 0.3, random_state=1), mrf.index("pm2.5")
    K = np.linalg.inv(mrf.H[t, t] * np.eye(N_NODES) + mrf.C[t, t] * graph.N.toarray())
    centre = np.eye(U.sum()) - 1 / U.sum()
    left = np.trace(centre @ K[np.ix_(U, U)])
    Gamma = np.kron(mrf.H, np.eye(N_NODES)) + np.kron(mrf.C, graph.N.toarray())
    block = slice(N_NODES * t, N_NODES * (t + 1))
    prior = np.linalg.inv(Gamma)[block, block]
    expected = 1 - left / np.trace(centre @ prior[np.ix_(U, U)])
    found = expected_splits(None, {"data": "cdc-2008", "outcome": "pm2.5", "seed": 1, "splits": 1})
    np.testing.assert_allclose(found["LGC" + LEVEL_FITTED], [expected], rtol=1e-8)


def test_maps_keep_what_was_observed_in_its_own_units() -> None:
    layers = draw_maps(None, {"data": "us-2016", "seed": 1})["layers"]
    assert len(layers) == 3
    observed = load_raw(None, "us-2016").frame["unemployment"]
    np.testing.assert_allclose(layers[0]["unemployment"], observed, rtol=1e-4)
    assert np.std(np.subtract(layers[1]["unemployment"], layers[2]["unemployment"])) > 0


def test_the_fit_of_a_synthetic_sample_is_at_least_as_likely_as_the_truth(real_data: str) -> None:
    found = recover_parameters(real_data, {"data": "synthetic-paper-h10"})
    assert found["nll"] == pytest.approx(-4.62173, abs=2e-5)
    assert found["true nll"] == pytest.approx(-4.61738, abs=2e-5)
    assert found["error H"] == pytest.approx(0.020, abs=1e-3)

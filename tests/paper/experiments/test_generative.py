import numpy as np
import pytest

from graphmrf_paper.attributes import load_raw
from graphmrf_paper.generative import draw_maps, recover_parameters

pytestmark = pytest.mark.slow


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

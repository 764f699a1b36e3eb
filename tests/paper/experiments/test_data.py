import numpy as np
import pytest

from graphmrf_paper.attributes import load_attributes, load_raw

pytestmark = pytest.mark.slow


def test_attributes_are_standardised_over_all_nodes() -> None:
    values = load_attributes(None, "london-2016")[1].to_numpy()
    np.testing.assert_allclose(values.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(values.std(axis=0, ddof=1), 1)


def test_the_logarithm_is_taken_before_standardising() -> None:
    plain, logarithm = (load_attributes(None, name)[1]["election"] for name in ("london-2016", "london-2016+log"))
    expected = np.log(load_raw(None, "london-2016").frame["election"])
    assert np.corrcoef(logarithm, expected)[0, 1] == pytest.approx(1)
    assert np.corrcoef(plain, expected)[0, 1] < 0.999

import pytest

from graphmrf_paper.small_tables import count_data, lgc_coefficients
from small_paper import N_NODES

pytestmark = pytest.mark.slow


def test_coefficients_are_named() -> None:
    found = lgc_coefficients(None, {"data": "us-2016", "outcome": "election", "seed": 1})
    coefficients = found["coefficients"]
    assert list(coefficients)[:3] == ["sh050m", "sh100m", "sh500m"]
    assert len(coefficients) == 9


def test_attributes_are_counted_as_the_experiments_use_them() -> None:
    assert count_data(None, {"data": "twitch-ptbr"}) == {"vertices": N_NODES, "edges": 300, "attributes": 66}

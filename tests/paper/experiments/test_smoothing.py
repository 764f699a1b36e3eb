import numpy as np
import pytest

from graphmrf_paper.smoothing import OMEGA_GRID, recover_omega

pytestmark = pytest.mark.slow


def test_omega_is_scored_at_every_level_of_the_grid() -> None:
    options = {"data": "synthetic-watts-strogatz-h1", "step": 8, "seed": 1}
    without = recover_omega(None, {**options, "features": 0})
    assert list(without) == ["LP"]
    scores = np.asarray(without["LP"])
    assert len(scores) == len(OMEGA_GRID)
    assert abs(int(scores.argmax()) - 8) <= 3
    assert list(recover_omega(None, {**options, "features": 1})) == ["LGC", "LGC/RP"]

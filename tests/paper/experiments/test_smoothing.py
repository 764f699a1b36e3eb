import numpy as np
import pytest

from graphmrf_paper.runs import RunSettings
from graphmrf_paper.smoothing import OMEGA_GRID, OMEGA_LP, misspecify, recover_omega

pytestmark = pytest.mark.slow


def test_omega_is_scored_at_every_level_of_the_grid() -> None:
    options = {"data": "synthetic-watts-strogatz-h1", "step": 8, "seed": 1}
    without = recover_omega(None, {**options, "features": 0})
    assert list(without) == ["LP"]
    scores = np.asarray(without["LP"])
    assert len(scores) == len(OMEGA_GRID)
    assert abs(int(scores.argmax()) - 8) <= 3
    assert list(recover_omega(None, {**options, "features": 1})) == ["LGC", "LGC/RP"]


def test_the_true_level_is_better_than_a_tenth_of_it_and_ten_times() -> None:
    found = misspecify(None, {"data": "us-2016", "outcome": "election", "seed": 1})
    assert list(found) == ["LP", "LGC", "LGC/RP"]
    assert found["LGC/RP"]["1.0"] > max(found["LGC/RP"]["0.1"], found["LGC/RP"]["10.0"]) - 0.05


def test_the_inset_shows_the_column_of_the_dashed_line() -> None:
    settings = RunSettings(quick=True)
    results = {run.key: {"LP": list(OMEGA_GRID)} for run in OMEGA_LP.plan(settings)}
    (figure,) = OMEGA_LP.collect(results, settings).figures
    assert "Inset: R² against the ω of LP where the true one is 10" in figure.caption

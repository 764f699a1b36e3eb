import numpy as np
import pytest

from graphmrf_paper.deviations import expected_from_authors, truncated_lgc, truncated_smoothing
from graphmrf_paper.synthetic import watts_strogatz

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.9])
def test_smoothing_without_end_is_that_of_a_dense_inverse(alpha: float) -> None:
    graph, X = watts_strogatz(40, 4, 0.1), np.random.default_rng(0).standard_normal((40, 2))
    S = graph.S.toarray()
    (stopped,) = truncated_smoothing(graph.S, X, (alpha,), 3)
    dense = (1 - alpha) * sum(np.linalg.matrix_power(alpha * S, i) @ X for i in range(3))
    np.testing.assert_allclose(stopped, dense + np.linalg.matrix_power(alpha * S, 3) @ X, atol=1e-12)
    (converged,) = truncated_smoothing(graph.S, X, (alpha,), 400)
    np.testing.assert_allclose(converged, (1 - alpha) * np.linalg.solve(np.eye(40) - alpha * S, X), atol=1e-10)


def test_twenty_steps_give_the_printed_accuracy_of_pm25(real_data: str) -> None:
    found = truncated_lgc(real_data, {"data": "cdc-2008", "outcome": "pm2.5", "steps": 20, "seed": 1})["LGC"]
    assert abs(found["value"] - 0.27) < 0.02
    assert found["alpha"] > 0.98


def test_the_authors_parameters_give_the_r2_that_they_expect(real_data: str) -> None:
    found = expected_from_authors(real_data, {"data": "cdc-2008", "seed": 1, "splits": 1})
    assert found["theirs"]["pm2.5"] == pytest.approx([-1.558], abs=0.03)
    assert found["ours"]["pm2.5"][0] < -4
    assert found["ours log-likelihood"] > found["theirs log-likelihood"]

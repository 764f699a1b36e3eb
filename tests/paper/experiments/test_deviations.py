import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

from graphmrf_paper.attributes import load_task
from graphmrf_paper.deviations import TrainedConvolution, truncated_lgc, truncated_smoothing
from graphmrf_paper.splits import authors_split
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
    assert abs(found["value"] - 0.27) < 0.03
    assert found["alpha"] > 0.98


def test_the_trained_method_is_linear_in_smoothed_features_and_no_better_than_least_squares_where_it_learnt() -> None:
    graph, X, y = load_task(None, "us-2012", "election")
    labelled = authors_split(graph.n_nodes, 0.5, 1)
    fitted = TrainedConvolution().fit(graph, X.to_numpy(), np.where(labelled, y, np.nan), seed=1)
    (Z,) = truncated_smoothing(graph.S, X.to_numpy(), (fitted.alpha_,), 256)
    predicted = fitted.predict(graph, X.to_numpy())
    np.testing.assert_allclose(np.ptp(predicted - Z @ fitted.coefficients(9)), 0, atol=1e-4)
    exact = LinearRegression().fit(Z[labelled], y[labelled]).score(Z[labelled], y[labelled])
    assert 0 < r2_score(y[labelled], predicted[labelled]) <= exact

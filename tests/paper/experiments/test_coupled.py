import numpy as np
import pytest

import oracle
from graphmrf import LinearGraphConvolution
from graphmrf_paper.attributes import load_task
from graphmrf_paper.coupled import COUPLED, couple_drawn, couple_real, coupled_field
from graphmrf_paper.runs import RunSettings
from graphmrf_paper.splits import authors_split
from graphmrf_paper.synthetic import watts_strogatz

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("coupling", [-0.6, 0.0, 0.9])
def test_the_mean_given_the_feature_is_smoothed_from_own_and_neighbours_features(coupling: float) -> None:
    graph, mrf = watts_strogatz(40, 4, 0.1), coupled_field(coupling)
    x, N = np.random.default_rng(0).standard_normal(40), graph.N.toarray()
    dense, _ = oracle.field_given(graph.adjacency.toarray(), mrf.H, mrf.C, np.column_stack([x, np.full(40, np.nan)]))
    formula = np.linalg.solve(np.eye(40) + mrf.omega(1) * N, x * mrf.beta(1) + N @ x * mrf.edge_beta(1))
    np.testing.assert_allclose(dense[:, 1], formula, atol=1e-10)


def test_neighbours_features_help_where_the_feature_acts_along_edges() -> None:
    options: dict[str, str | int | float] = {"data": "synthetic-watts-strogatz-h1", "seed": 1}
    found = couple_drawn(None, {**options, "coupling": -0.9})
    assert found["LGC/RP, X and NX"]["value"] > found["LGC/RP"]["value"] + 0.1


def test_on_real_data_neighbours_features_are_columns_of_their_own() -> None:
    graph, X, y = load_task(None, "london-2016", "income")
    labelled = authors_split(len(y), 0.3, 1)
    both = np.hstack([X.to_numpy(), graph.N @ X.to_numpy()])
    predicted = LinearGraphConvolution().fit(graph, both, np.where(labelled, y, np.nan)).predict()[~labelled]
    expected = 1 - ((y[~labelled] - predicted) ** 2).sum() / ((y[~labelled] - y[~labelled].mean()) ** 2).sum()
    found = couple_real(None, {"data": "london-2016", "outcome": "income", "seed": 1})
    assert found["LGC, X and NX"]["value"] == pytest.approx(expected)


def test_filters_are_drawn_before_anything_is_run() -> None:
    (figure,) = COUPLED.collect({}, RunSettings(quick=True)).figures
    assert [len(panel.series) for panel in figure.panels] == [7, 0]  # type: ignore[union-attr]

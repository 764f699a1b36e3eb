"""Transformed outcomes: medians where there is no mean to speak of, and totals as of joint draws."""

import numpy as np
import pytest
from scipy.stats import lognorm

import graphmrf as gm
from graphmrf.field import Scale
from graphmrf.field.posterior import Mixture
from graphmrf.field.reading import Numbers
from graphmrf.field.transform import Power
from graphmrf.linalg import smooth


@pytest.mark.parametrize(("std", "central"), [(0.5, True), (1.3, True), (1.4, False), (4.0, False)])
def test_the_mean_is_predicted_where_it_is_in_the_central_half(std: float, *, central: bool) -> None:
    scale = Scale(np.exp(np.linspace(-3.0, 3.0, 41)), Power(0.0, signed=False))
    unit = float(np.log(np.exp(np.linspace(-3.0, 3.0, 41))).std())
    reading, mixture = Numbers(scale), Mixture(np.ones(1), np.zeros((1, 1)), np.full((1, 1), (std / unit) ** 2))

    class At:
        outcome = latent = mixture

    centre, spread = (float(each[0]) for each in reading.moments(At(), "observation"))  # type: ignore[arg-type]
    expected = lognorm(std)
    if central:
        assert (centre, spread) == pytest.approx((expected.mean(), expected.std()), rel=1e-3)
    else:
        half = 0.5 * (expected.ppf(0.84134) - expected.ppf(0.15866))
        assert (centre, spread) == pytest.approx((expected.median(), half), rel=1e-3)


def field(seed: int) -> tuple[gm.Graph, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    graph, x = gm.Graph.from_knn(rng.random((150, 2)), 5), rng.normal(size=(150, 1))
    smoothed = smooth(graph, rng.normal(size=(150, 1)), 0.9)[:, 0]
    y = np.exp(1.0 + 0.6 * x[:, 0] + 0.6 * smoothed / smoothed.std() + 0.5 * rng.normal(size=150))
    return graph, x, y, np.isin(np.arange(150), rng.permutation(150)[:20])


@pytest.mark.slow
def test_totals_of_few_labels_are_covered_and_are_those_of_draws() -> None:
    inside = []
    for seed in range(12):
        graph, x, y, known = field(seed)
        model = gm.GraphRegressor(transform="log", learner=None).fit(graph, x, np.where(known, y, np.nan))
        total = model.predict_total(np.zeros(150)).iloc[0]
        low, high = np.quantile(model.sample(1000).sum(axis=1), [0.05, 0.95])
        assert total["upper"] - total["lower"] == pytest.approx(high - low, rel=0.25)
        inside.append(total["lower"] <= y.sum() <= total["upper"])
    assert np.mean(inside) >= 0.75


@pytest.mark.parametrize("labels", [5, 10])
def test_hardly_any_labels_predict_nothing_absurd(labels: int) -> None:
    for seed in range(3):
        graph, x, y, known = field(seed)
        known &= np.cumsum(known) <= labels
        found = gm.GraphRegressor(transform="log").fit(graph, x, np.where(known, y, np.nan)).predict()
        assert found.max() < 100 * y[known].max()

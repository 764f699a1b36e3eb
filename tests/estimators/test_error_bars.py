"""Error bars hold what they promise on data drawn from the model."""

from typing import Any

import numpy as np
import pytest

import oracle
from graphmrf import Graph, LabelPropagation, LinearGraphConvolution, LinearRegression, ResidualPropagation
from graphmrf._typing import Floats
from graphmrf.estimators.error_bars import degrees_of_freedom, interval_width
from graphmrf.metrics import coverage

N, ALPHA, DRAWS = 80, 0.9, 40
Z90 = 1.6448536


def ring_with_chords(rng: np.random.Generator) -> Floats:
    W = np.zeros((N, N))
    nodes = np.arange(N)
    for u, v in [*zip(nodes, np.roll(nodes, 1), strict=True), *rng.integers(0, N, (60, 2))]:
        if u != v:
            W[u, v] = W[v, u] = 1.0
    return W


@pytest.mark.parametrize("labels", [8, 40])
@pytest.mark.parametrize("name", ["LP", "LR", "LGC", "LGC/RP"])
def test_intervals_hold_as_much_as_they_say(name: str, labels: int) -> None:
    rng = np.random.default_rng(1)
    W = ring_with_chords(rng)
    graph, X = Graph(W), rng.normal(size=(N, 2))
    level = 0.0 if name == "LR" else ALPHA
    fields = 2.0 * oracle.draw(W, level, rng, DRAWS) + 5.0
    if name != "LP":
        fields = fields + oracle.smooth(W, X - X.mean(axis=0), level) @ np.array([1.5, -1.0])
    models: dict[str, Any] = {
        "LP": LabelPropagation(alpha=ALPHA),
        "LR": LinearRegression(),
        "LGC": LinearGraphConvolution(alpha=ALPHA),
        "LGC/RP": ResidualPropagation(LinearGraphConvolution(alpha=ALPHA), alpha=ALPHA),
    }
    inside, nearly_all, scales = [], [], []
    for y in fields:
        hidden = rng.permutation(N) >= labels
        model = models[name].fit(graph, X, np.where(hidden, np.nan, y))
        mean, std = (part[hidden] for part in model.predict(return_std=True))
        inside.append(coverage(y[hidden], mean - Z90 * std, mean + Z90 * std))
        width = interval_width(0.99, model.dof_) * std
        nearly_all.append(coverage(y[hidden], mean - width, mean + width))
        scales.append(model.scale_)
    assert np.mean(inside) == pytest.approx(0.9, abs=0.03)
    assert np.mean(nearly_all) == pytest.approx(0.99, abs=0.0075)
    assert np.sqrt(np.mean(np.square(scales))) == pytest.approx(2.0, rel=0.12)


def test_coefficients_of_very_many_labels_count_as_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    graph, X = Graph(ring_with_chords(rng)), rng.normal(size=(N, 2))
    y = np.where(rng.random(N) < 0.1, np.nan, X[:, 0] + rng.normal(size=N))
    models: tuple[Any, ...] = LinearGraphConvolution(alpha=0.5), ResidualPropagation(LinearGraphConvolution(alpha=0.5))
    whole = [model.fit(graph, X, y).predict(return_std=True) for model in models]
    monkeypatch.setattr(LinearGraphConvolution, "certain", 1)
    for model, (mean, std) in zip(models, whole, strict=True):
        same, less = model.fit(graph, X, y).predict(return_std=True)
        np.testing.assert_array_equal(same, mean)
        np.testing.assert_allclose(less, std, rtol=0.25)  # 3 coefficients of 72 labels
    elsewhere = models[0].predict(graph, X, return_std=True)
    np.testing.assert_allclose(elsewhere[1], models[0].predict(return_std=True)[1], rtol=1e-6)


def test_a_chosen_level_costs_two_degrees_of_freedom() -> None:
    found = (
        degrees_of_freedom(20, 4.0),
        degrees_of_freedom(20, 4.0, chosen=True),
        degrees_of_freedom(7, 4.0, chosen=True),
    )
    assert found == (16.0, 14.0, 2.0)

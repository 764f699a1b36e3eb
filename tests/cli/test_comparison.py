"""The sentence on what carries the prediction."""

import numpy as np
import pytest

from graphmrf.cli.comparison import Fit, best, carrier
from graphmrf.cli.methods import AUTO, METHODS, Tuning, choose


def fit(method: str, r2: float) -> Fit:
    scores = {"alpha": np.zeros(1), "mean_r2": np.array([r2]), "fold_r2": np.array([[r2]])}
    return Fit(METHODS[method], METHODS[method].make(Tuning()), scores)


@pytest.mark.parametrize(
    ("scores", "start"),
    [
        ((0.5, 0.4, 0.6, 0.7), "Both carry"),
        ((0.7, 0.1, 0.2, 0.7), "Outcomes of neighbours carry"),
        ((0.2, 0.7, 0.6, 0.7), "Features carry"),
        ((0.6, 0.5, 0.6, 0.61), "Outcomes of neighbours and features say the same"),
        ((-0.1, 0.0, 0.01, 0.0), "Neither"),
    ],
)
def test_what_carries_the_prediction(scores: tuple[float, ...], start: str) -> None:
    fits = [fit(method.key, r2) for method, r2 in zip(choose(AUTO, n_features=1), scores, strict=True)]
    sentence = carrier(fits)
    assert sentence.startswith(start)
    assert f"{scores[0]:.2f}" in sentence


def test_of_equals_the_simplest_is_best() -> None:
    fits = [fit("lp", np.nan), fit("lgc", 0.5), fit("lgc-rp", 0.5)]
    assert best(fits) is fits[1]

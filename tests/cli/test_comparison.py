"""Which method is taken, and the sentence on what carries the prediction."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from graphmrf.cli.comparison import Fit, best, carrier, passed_over
from graphmrf.estimators.methods import METHODS


def fit(method: str, r2: float) -> Fit:
    scores = {"alpha": np.zeros(1), "mean_r2": np.array([r2]), "fold_r2": np.array([[r2]])}
    return Fit(METHODS[method], METHODS[method].make(), r2, None, scores)


OTHERS = ("lp", "lr", "lgc", "lgc-rp")


def a_field(r2: float, **shares: float) -> Fit:
    """A fit of the field whose shares are known."""
    known = {name.replace("_", " "): share for name, share in shares.items()}
    return replace(fit("field", r2), estimator=SimpleNamespace(shares_=known))


@pytest.mark.parametrize(
    ("scores", "start"),
    [
        ((0.5, 0.4, 0.6, 0.7), "Both carry"),
        ((0.7, 0.1, 0.2, 0.7), "Outcomes of neighbours carry the prediction and features add nothing"),
        ((0.7, 0.1, 0.2, 0.71), "Outcomes of neighbours carry the prediction and features add little"),
        ((0.2, 0.7, 0.6, 0.7), "Features carry the prediction and outcomes of neighbours add nothing"),
        ((0.2, 0.7, 0.6, 0.719), "Features carry the prediction and outcomes of neighbours add little"),
        ((0.6, 0.5, 0.6, 0.61), "Outcomes of neighbours and features say the same"),
        ((-0.1, 0.0, 0.01, 0.0), "Neither"),
    ],
)
def test_what_carries_the_prediction(scores: tuple[float, ...], start: str) -> None:
    fits = [fit(method, r2) for method, r2 in zip(OTHERS, scores, strict=True)]
    sentence = carrier(fits, best(fits))
    assert sentence.startswith(start)
    assert f"{scores[0]:.2f}" in sentence


@pytest.mark.parametrize(
    ("shares", "sentence"),
    [
        (
            {"own_features": 0.46, "graph_field": 0.3, "nonlinear_effects": 0.04, "noise": 0.2},
            "Own features carry the prediction (46 % of the variation), then the graph field (30 %) and nonlinear "
            "effects of features (4 %)",
        ),
        ({"own_features": 0.004, "graph_field": 0.6}, "The graph field carries the prediction (60 % of the variation)"),
        ({"own_features": 0.0, "noise": 1.0}, "Neither outcomes of neighbours nor features carry a prediction here"),
    ],
)
def test_the_shares_of_the_field_are_told_in_one_sentence(shares: dict[str, float], sentence: str) -> None:
    chosen = a_field(0.8, **shares)
    fits = [*(fit(method, r2) for method, r2 in zip(OTHERS, (0.5, 0.4, 0.6, 0.7), strict=True)), chosen]
    alone = "outcomes of neighbours alone reach R2 0.50, linear effects of features alone 0.60, all together 0.80"
    assert carrier(fits, chosen) == f"{sentence}: {alone}."
    assert carrier([chosen], chosen) == f"{sentence}."


@pytest.mark.parametrize(("r2", "taken"), [(0.7, "field"), (0.691, "field"), (0.689, "lgc-rp"), (np.nan, "lgc-rp")])
def test_the_field_gives_way_to_a_clearly_better_method(r2: float, taken: str) -> None:
    fits = [*(fit(method, score) for method, score in zip(OTHERS, (0.5, 0.4, 0.6, 0.7), strict=True)), a_field(r2)]
    chosen = best(fits)
    assert chosen.method.key == taken
    assert passed_over(fits, chosen).endswith(f"so {taken} is used") == (taken != "field")


def test_of_equals_the_simplest_is_best() -> None:
    fits = [fit("lp", np.nan), fit("lgc", 0.5), fit("lgc-rp", 0.5)]
    assert best(fits) is fits[1]
    assert passed_over(fits, fits[1]) == ""

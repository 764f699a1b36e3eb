"""Which method is taken, and the sentence on what carries the prediction."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmrf._typing import Floats
from graphmrf.cli.comparison import (
    ENOUGH,
    Fit,
    best,
    carrier,
    fit_numbers,
    gain,
    nested_choice,
    passed_over,
    preferred,
    standard_error,
)
from graphmrf.datasets import Features
from graphmrf.estimators.methods import METHODS
from graphmrf.graph import Graph
from graphmrf.text import MINUS, number


def fit(method: str, r2: float, *, noise: float = 0.0, labels: int = 100) -> Fit:
    """A fit with this R², whose losses vary by `noise` in another way for every method."""
    scores = {"alpha": np.zeros(1), "mean_r2": np.array([r2]), "fold_r2": np.array([[r2]])}
    draws = np.random.default_rng(len(method)).standard_normal(labels)
    losses = 1 - r2 + noise * (draws - draws.mean())
    return Fit(METHODS[method], METHODS[method].make(), r2, losses, 0.1, None, scores)


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
    sentence = carrier(fits, best(fits, folds=5))
    assert sentence.startswith(start)
    assert number(scores[0], 2) in sentence


@pytest.mark.parametrize(
    ("shares", "sentence"),
    [
        (
            {"own_features": 0.46, "graph_field": 0.3, "nonlinear_effects": 0.04, "noise": 0.2},
            "Own features carry the prediction (46 % of the variation), then the graph field (30 %) and nonlinear "
            "effects (4 %)",
        ),
        ({"own_features": 0.004, "graph_field": 0.6}, "The graph field carries the prediction (60 % of the variation)"),
        ({"own_features": 0.0, "noise": 1.0}, "Neither outcomes of neighbours nor features carry a prediction here"),
    ],
)
def test_the_shares_of_the_field_are_told_in_one_sentence(shares: dict[str, float], sentence: str) -> None:
    chosen = a_field(0.8, **shares)
    fits = [*(fit(method, r2) for method, r2 in zip(OTHERS, (0.5, 0.4, 0.6, 0.7), strict=True)), chosen]
    alone = "outcomes of neighbours alone reach R² 0.50, linear effects of features alone 0.60, all together 0.80"
    assert carrier(fits, chosen) == f"{sentence}: {alone}."
    assert carrier([chosen], chosen) == f"{sentence}."


def test_all_together_is_the_accuracy_of_the_method_chosen() -> None:
    chosen = a_field(0.695, own_features=0.7, noise=0.3)
    fits = [*(fit(method, r2) for method, r2 in zip(OTHERS, (0.5, 0.4, 0.6, 0.73), strict=True)), chosen]
    assert carrier(fits, chosen).endswith("all together 0.69.")
    surer = fit("lgc-rp", 0.6)
    without = [*(fit(method, r2) for method, r2 in zip(OTHERS[:3], (0.5, 0.4, 0.55), strict=True)), surer]
    assert carrier([*without, fit("field", 0.65)], surer).endswith("together 0.60.")


def test_numbers_below_zero_have_minus_signs() -> None:
    fits = [fit(method, r2) for method, r2 in zip(OTHERS, (-0.2, -0.1, -0.3, -0.001), strict=True)]
    told = carrier(fits, fits[-1])
    assert told.endswith(f"alone reach R² {MINUS}0.20, features alone {MINUS}0.10, both 0.00.")
    assert "-" not in told


@pytest.mark.parametrize(("r2", "taken"), [(0.7, "field"), (0.691, "field"), (0.689, "lgc-rp"), (np.nan, "lgc-rp")])
def test_the_field_gives_way_to_a_clearly_better_method(r2: float, taken: str) -> None:
    fits = [*(fit(method, score) for method, score in zip(OTHERS, (0.5, 0.4, 0.6, 0.7), strict=True)), a_field(r2)]
    chosen = best(fits, folds=5)
    assert chosen.method.key == taken
    assert passed_over(fits, chosen, folds=5).endswith(f"so {taken} is used") == (taken != "field")


@pytest.mark.parametrize(("noise", "taken"), [(0.1, "lgc"), (2.0, "field")])
def test_a_gain_within_two_standard_errors_is_none(noise: float, taken: str) -> None:
    field, other = fit("field", 0.5), fit("lgc", 0.6, noise=noise)
    difference, error = gain(other, field, folds=5)
    assert difference == pytest.approx(0.1)
    assert (difference > 2 * error) == (taken == "lgc")
    chosen = best([other, field], folds=5)
    assert chosen.method.key == taken
    told = passed_over([other, field], chosen, folds=5)
    assert told == ("" if taken == "field" else _told(error, "so lgc is used"))
    asked = best([other, field], folds=5, asked=True)
    assert asked is field
    said = preferred([other, field], field, folds=5, asked="--conformal")
    assert said == ("" if taken == "field" else _told(error, "which is used because --conformal asks for it"))


def _told(error: float, end: str) -> str:
    return f"at held-out values lgc has a higher R² than field, by 0.100 ± {error:.3f} (standard error), {end}"


def test_the_field_is_never_left_with_few_labels() -> None:
    for labels in (2, ENOUGH - 1, ENOUGH):
        fits = [fit("lp", 0.9, labels=labels), fit("field", 0.1, labels=labels)]
        assert best(fits, folds=5).method.key == ("lp" if labels == ENOUGH else "field")


def test_of_several_better_methods_the_surest_is_taken() -> None:
    fits = [fit("lr", 0.7, noise=0.8), fit("lgc", 0.65, noise=0.01), fit("field", 0.3)]
    assert best(fits, folds=5).method.key == "lgc"


@given(rivals=st.integers(1, 4), seed=st.integers(0, 10_000))
def test_equal_methods_rarely_take_the_place_of_the_field(rivals: int, seed: int) -> None:
    """Twenty contests of methods whose heavy-tailed losses have one expectation: three in them have never been seen."""
    rng = np.random.default_rng(seed)
    left = 0
    for _ in range(20):
        losses = rng.standard_normal((rivals + 1, 60)) ** 2
        fits = [
            replace(fit(key, 0.5), losses=row) for key, row in zip((*OTHERS[:rivals], "field"), losses, strict=True)
        ]
        left += best(fits, folds=5).method.key != "field"
    assert left <= 3


def test_the_standard_error_is_that_of_nadeau_and_bengio() -> None:
    rng = np.random.default_rng(0)
    means = rng.standard_normal((2000, 5, 40)).mean(axis=2)  # folds of forty independent losses
    expected = np.sqrt((1 / 5 + 1 / 4) * means.var(axis=1, ddof=1).mean())
    assert standard_error(rng.standard_normal(200), 5) == pytest.approx(expected, rel=0.1)
    assert np.isnan(standard_error(np.ones(1), 1))


def test_the_level_of_a_fold_is_chosen_by_the_others() -> None:
    rng = np.random.default_rng(0)
    losses, folds = rng.random((4, 30)), rng.permutation(np.arange(30) % 5)
    expected = np.empty(30)
    for fold in range(5):
        level = np.argmin(losses[:, folds != fold].sum(axis=1))
        expected[folds == fold] = losses[level, folds == fold]
    np.testing.assert_array_equal(nested_choice(losses, folds), expected)
    assert nested_choice(losses, folds).sum() >= losses.sum(axis=1).min()
    np.testing.assert_array_equal(nested_choice(losses[:1], folds), losses[0])


def _path(n: int, seed: int) -> tuple[Graph, Features, Floats]:
    rng = np.random.default_rng(seed)
    X, y = pd.DataFrame({"age": rng.standard_normal(n)}), rng.standard_normal(n)
    y += X["age"].to_numpy()
    y[::2] = np.nan
    return Graph.from_edges(range(n - 1), range(1, n)), Features(X, (), X), y


@pytest.mark.parametrize("method", ["lr", "lgc-rp"])
def test_losses_of_a_fit_are_squared_errors_in_units_of_the_variance(method: str) -> None:
    graph, made, y = _path(120, 0)
    options = {"cv": 5, "random_state": 0, "transform": "identity"}
    fitted = fit_numbers(METHODS[method], graph, made, y, alpha=0.5, **options)
    assert 1 - fitted.losses.mean() == pytest.approx(fitted.score)
    searched = fit_numbers(METHODS[method], graph, made, y, alpha="cv", **options)
    assert 1 - searched.losses.mean() <= searched.score + 1e-12


def test_the_standard_error_of_r2_is_the_spread_over_samples() -> None:
    """Of linear regression with a hundred labels; the correction for shared training data makes it 1.5 times that."""
    options: Any = {"alpha": "cv", "cv": 5, "random_state": 0, "transform": "identity"}
    fits = [fit_numbers(METHODS["lr"], *_path(200, seed), **options) for seed in range(60)]
    spread = np.std([fitted.score for fitted in fits])
    assert np.mean([fitted.error for fitted in fits]) == pytest.approx(1.5 * spread, rel=0.25)


def test_of_equals_the_simplest_is_best() -> None:
    fits = [fit("lp", np.nan), fit("lgc", 0.5), fit("lgc-rp", 0.5)]
    assert best(fits, folds=5) is fits[1]
    assert passed_over(fits, fits[1], folds=5) == ""

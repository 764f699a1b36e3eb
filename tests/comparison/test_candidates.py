"""Which method is taken, and the sentence on what carries the prediction."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmrf._typing import Floats
from graphmrf.comparison import Comparison, FittedMethod, Settings, as_outcome, choose, compare, predict_outcome
from graphmrf.comparison.candidates import (
    ENOUGH,
    best_of,
    compare_methods,
    gain,
    nested_choice,
)
from graphmrf.comparison.explanation import what_carries
from graphmrf.comparison.held_out import standard_error
from graphmrf.errors import InvalidInputError
from graphmrf.estimators.inputs import Labels
from graphmrf.estimators.methods import METHODS
from graphmrf.graph import Graph
from graphmrf.text import MINUS, number


def fit(method: str, r2: float, *, noise: float = 0.0, labels: int = 100) -> FittedMethod:
    """A fit with this R², whose losses vary by `noise` in another way for every method."""
    draws = np.random.default_rng(len(method)).standard_normal(labels)
    losses = 1 - r2 + noise * (draws - draws.mean())
    return FittedMethod(METHODS[method], r2, 0.1, losses=losses, model=METHODS[method].make())


OTHERS = ("lp", "lr", "lgc", "lgc-rp")


@pytest.mark.parametrize(
    ("scores", "start"),
    [
        ((0.5, 0.4, 0.6, 0.7), "Both carry"),
        ((0.7, 0.1, 0.2, 0.7), "Outcomes of neighbours carry the prediction and features add nothing"),
        ((0.7, 0.1, 0.2, 0.71), "Outcomes of neighbours carry the prediction and features add little"),
        ((0.2, 0.7, 0.6, 0.7), "Features carry the prediction and outcomes of neighbours add nothing"),
        ((0.2, 0.7, 0.6, 0.719), "Features carry the prediction and outcomes of neighbours add little"),
        ((0.6, 0.5, 0.6, 0.61), "Outcomes of neighbours and features contain the same information"),
        ((-0.1, 0.0, 0.01, 0.0), "Neither"),
    ],
)
def test_what_carries_the_prediction(scores: tuple[float, ...], start: str) -> None:
    fits = [fit(method, r2) for method, r2 in zip(OTHERS, scores, strict=True)]
    sentence = what_carries(fits, best_of(fits), {})
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
    chosen, shares = fit("field", 0.8), {name.replace("_", " "): share for name, share in shares.items()}
    fits = [*(fit(method, r2) for method, r2 in zip(OTHERS, (0.5, 0.4, 0.6, 0.7), strict=True)), chosen]
    alone = "outcomes of neighbours alone reach R² 0.50, linear effects of features alone 0.60, all together 0.80"
    assert what_carries(fits, chosen, shares) == f"{sentence}: {alone}."
    assert what_carries([chosen], chosen, shares) == f"{sentence}."


def test_all_together_is_the_accuracy_of_the_method_chosen() -> None:
    chosen, shares = fit("field", 0.695), {"own features": 0.7, "noise": 0.3}
    fits = [*(fit(method, r2) for method, r2 in zip(OTHERS, (0.5, 0.4, 0.6, 0.73), strict=True)), chosen]
    assert what_carries(fits, chosen, shares).endswith("all together 0.69.")
    surer = fit("lgc-rp", 0.6)
    without = [*(fit(method, r2) for method, r2 in zip(OTHERS[:3], (0.5, 0.4, 0.55), strict=True)), surer]
    assert what_carries([*without, fit("field", 0.65)], surer, {}).endswith("together 0.60.")


def test_numbers_below_zero_have_minus_signs() -> None:
    fits = [fit(method, r2) for method, r2 in zip(OTHERS, (-0.2, -0.1, -0.3, -0.001), strict=True)]
    told = what_carries(fits, fits[-1], {})
    assert told.endswith(f"alone reach R² {MINUS}0.20, features alone {MINUS}0.10, both 0.00.")
    assert "-" not in told


@pytest.mark.parametrize(("r2", "taken"), [(0.7, "field"), (0.691, "field"), (0.689, "lgc-rp"), (np.nan, "lgc-rp")])
def test_the_field_gives_way_to_a_clearly_better_method(r2: float, taken: str) -> None:
    fits = [*(fit(method, score) for method, score in zip(OTHERS, (0.5, 0.4, 0.6, 0.7), strict=True)), fit("field", r2)]
    assert best_of(fits).method.key == taken


@pytest.mark.parametrize(("noise", "taken"), [(0.1, "lgc"), (2.0, "field")])
def test_a_gain_within_two_standard_errors_is_none(noise: float, taken: str) -> None:
    field, other = fit("field", 0.5), fit("lgc", 0.6, noise=noise)
    difference, error = gain(other, field)
    assert difference == pytest.approx(0.1)
    assert (difference > 2 * error) == (taken == "lgc")
    assert best_of([other, field]).method.key == taken
    assert best_of([other, field], ["suggested labels"]) is field


def test_the_field_is_never_left_with_few_labels() -> None:
    for labels in (2, ENOUGH - 1, ENOUGH):
        fits = [fit("lp", 0.9, labels=labels), fit("field", 0.1, labels=labels)]
        assert best_of(fits).method.key == ("lp" if labels == ENOUGH else "field")


def test_of_several_better_methods_the_surest_is_taken() -> None:
    fits = [fit("lr", 0.7, noise=0.8), fit("lgc", 0.65, noise=0.01), fit("field", 0.3)]
    assert best_of(fits).method.key == "lgc"


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
        left += best_of(fits).method.key != "field"
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


def _path(n: int, seed: int) -> tuple[Graph, pd.DataFrame, Floats]:
    rng = np.random.default_rng(seed)
    X, y = pd.DataFrame({"age": rng.standard_normal(n)}), rng.standard_normal(n)
    y += X["age"].to_numpy()
    y[::2] = np.nan
    return Graph.from_edges(range(n - 1), range(1, n)), X, y


def fitted(method: str, data: tuple[Graph, pd.DataFrame, Floats], **options: Any) -> FittedMethod:
    return compare_methods(*data, Settings((method,), **options)).chosen


@pytest.mark.parametrize("method", ["lr", "lgc-rp"])
def test_losses_of_a_fit_are_squared_errors_in_units_of_the_variance(method: str) -> None:
    alpha = 0.5 if method == "lgc-rp" else None
    found = fitted(method, _path(120, 0), alpha=alpha)
    assert 1 - found.losses.mean() == pytest.approx(found.score)
    searched = fitted(method, _path(120, 0))
    assert 1 - searched.losses.mean() <= searched.score + 1e-12


def test_the_standard_error_of_r2_is_the_spread_over_samples() -> None:
    """Of linear regression with a hundred labels; the correction for shared training data makes it 1.5 times that."""
    fits = [fitted("lr", _path(200, seed)) for seed in range(60)]
    spread = np.std([each.score for each in fits])
    assert np.mean([each.error for each in fits]) == pytest.approx(1.5 * spread, rel=0.25)


def test_of_equals_the_simplest_is_best() -> None:
    fits = [fit("lp", np.nan), fit("lgc", 0.5), fit("lgc-rp", 0.5)]
    assert best_of(fits) is fits[1]


def test_a_comparison_says_what_was_chosen_and_why() -> None:
    graph, X, y = _path(120, 0)
    found = compare(graph, X, y, methods=["lp", "lr"])
    assert isinstance(found, Comparison)
    assert found.chosen.method.key == "lr"
    assert found.reason == "lr is used: it has the highest R² at held-out values"
    table = found.table
    assert table.index.tolist() == ["lp", "lr"]
    assert table["chosen"].tolist() == [False, True]
    assert table.loc["lr", "r2"] == found.chosen.score
    assert repr(found).splitlines() == [*table.drop(columns="uses").round(3).to_string().splitlines(), found.reason]
    assert f"<p>{found.reason}</p>" in found._repr_html_()
    np.testing.assert_array_equal(found.model.predict(), METHODS["lr"].make().fit(graph, X, y).predict())


@pytest.mark.slow
def test_methods_are_compared_on_tables_with_categories() -> None:
    rng, (graph, _, _) = np.random.default_rng(0), _path(120, 0)
    X = pd.DataFrame({"kind": rng.choice(["a", "b", "c"], 120), "x": rng.standard_normal(120)})
    y = (X["x"] + 3.0 * (X["kind"] == "b")).where(rng.random(120) < 0.7)
    X.loc[5, "kind"], X.loc[7, "x"] = None, np.nan
    found = compare(graph, X, y, methods=["lr", "field"])
    coded = X.assign(**{f"kind={level}": 1.0 * (X["kind"] == level) for level in "abc"}).drop(columns="kind")
    alone = METHODS["lr"].make().fit(graph, coded.fillna(coded.mean()), y)
    scores = {fit.method.key: fit for fit in found.methods}
    np.testing.assert_allclose(scores["lr"].model.predict(), alone.predict())
    np.testing.assert_allclose(scores["field"].model.predict(), METHODS["field"].make().fit(graph, X, y).predict())
    assert found.table["r2"].min() > 0.9


def test_a_method_that_offers_what_is_wanted_is_used() -> None:
    graph, X, y = _path(120, 0)
    found = compare_methods(graph, X, y, Settings(("lr", "field"), needs=("suggested labels",)))
    assert found.chosen.method.key == "field"
    with pytest.raises(
        InvalidInputError, match="method lr does not offer a learning curve and suggested labels; use method field"
    ):
        choose(["lr"], n_features=1, wanted=["a learning curve", "suggested labels"])


@pytest.mark.slow
def test_the_least_log_loss_decides_between_classes() -> None:
    """Two cliques with a bridge between them: neighbours say all, the feature nothing."""
    clique = np.kron(np.eye(2), np.ones((12, 12)) - np.eye(12))
    clique[0, 12] = clique[12, 0] = 1
    X = pd.DataFrame({"noise": np.random.default_rng(0).standard_normal(24)})
    truth = np.repeat(["a", "b"], 12)
    y = [value if k % 2 else None for k, value in enumerate(truth)]
    found = compare(Graph(clique), X, y)
    losses = found.table["log_loss"]
    assert losses[found.chosen.method.key] == losses.min()
    assert np.mean(found.model.predict() == truth) > 0.9
    codes, model = np.repeat([0, 1], 12)[1::2], found.chosen.model
    assert found.chosen.loss == pytest.approx(-np.log(model.held_out_proba_[np.arange(12), codes]).mean())


def test_words_are_classes_and_numbers_are_not() -> None:
    labels = as_outcome(pd.Series([True, None, False]), 3)
    assert isinstance(labels, Labels)
    assert labels.classes.tolist() == [False, True]
    np.testing.assert_array_equal(as_outcome(pd.Series([0, 1, None]), 3), [0, 1, np.nan])


def test_accuracy_of_methods_is_reported_in_their_order() -> None:
    ring, y = Graph.from_edges(np.arange(40), (np.arange(40) + 1) % 40), np.sin(np.arange(40) / 5.0)
    y[1::2] = np.nan
    lines: list[str] = []
    found = predict_outcome(ring, None, y, Settings(("lp", "field")), name="wave", advance=lines.append)
    scores = [f"{fit.method.key}: R² {number(fit.score)}" for fit in found.methods]
    assert [line.split(" ±")[0] for line in lines] == [*(f"wave: {each}" for each in scores), ""]


@pytest.mark.parametrize(("shown", "value"), [(0, "no"), (1, "hardly any")])
def test_columns_with_hardly_any_value_at_the_nodes_to_predict_are_left_out(shown: int, value: str) -> None:
    ring = Graph.from_edges(np.arange(60), (np.arange(60) + 1) % 60)
    y = np.random.default_rng(0).standard_normal(60)
    copy = np.where(np.isin(np.arange(60), np.arange(60)[1::2][shown:]), np.nan, 2 * y)
    y[1::2] = np.nan
    X = pd.DataFrame({"x": np.arange(60.0) % 7, "from y": copy})
    note = f"column 'from y' is left out: it has {value} value at the nodes to predict"
    found = compare(ring, X, y, methods=["lr", "lgc"])
    assert found.table["r2"].max() < 0.5  # 1 with the column that follows from the outcome
    assert found.notes == (note,)
    prediction = predict_outcome(ring, X, y, Settings(("lr",)))
    assert prediction.methods[0].score == found.methods[0].score
    assert f"y: {note}" in prediction.notes

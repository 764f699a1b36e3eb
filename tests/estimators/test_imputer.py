"""GraphImputer: whole tables, numbers and classes."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from graphmrf import GaussianMRF, Graph, GraphImputer, GraphRegressor
from graphmrf.errors import InvalidInputError

RNG = np.random.default_rng(2)
N = 80
RING = Graph.from_edges(np.arange(N), (np.arange(N) + 1) % N).with_ids([f"n{i}" for i in range(N)])
LEVEL = np.sin(np.arange(N) / 6)
WHOLE = pd.DataFrame(
    {
        "a": LEVEL + 0.1 * RNG.normal(size=N),
        "b": 3 * LEVEL + RNG.normal(size=N),
        "side": np.where(LEVEL > 0, "up", "down"),
        "same": 7.0,
    },
    index=RING.ids,
)
TABLE = WHOLE.mask(RNG.random(WHOLE.shape) < 0.2)


def r2(truth: Any, found: Any) -> float:
    return float(1 - np.sum((truth - found) ** 2) / np.sum((truth - truth.mean()) ** 2))


def test_a_coupled_field_of_all_columns_fills_numbers() -> None:
    numbers = TABLE[["a", "b"]]
    imputer = GraphImputer(RING, method="coupled").fit(numbers)
    posterior = GaussianMRF.fit(RING, numbers, coupled=True, center="fitted").condition(RING, numbers)
    np.testing.assert_allclose(imputer.filled_, posterior.mean, atol=1e-8)
    np.testing.assert_allclose(imputer.std_, posterior.std, atol=1e-8)
    assert imputer.methods_ == {"a": "coupled", "b": "coupled"}


@pytest.mark.slow
def test_fields_of_single_columns_fill_numbers() -> None:
    imputer = GraphImputer(RING, method="fields").fit(TABLE[["a", "b"]])
    model = GraphRegressor().fit(RING, TABLE[["b"]], TABLE["a"])
    np.testing.assert_allclose(imputer.filled_["a"], model.predict())
    hole = TABLE["a"].isna()
    assert (imputer.std_["a"][hole] > 0).all()
    assert (imputer.std_["a"][~hole] == 0).all()


@pytest.mark.slow
def test_all_columns_are_filled_by_what_predicts_hidden_cells_best() -> None:
    imputer = GraphImputer(RING).fit(TABLE)
    assert imputer.methods_["side"] == "classes"
    assert imputer.methods_["same"] == "constant"
    for name in ("a", "b"):
        assert imputer.methods_[name] == imputer.scores_.loc[name].idxmax()
        hole = TABLE[name].isna()
        assert r2(WHOLE[name][hole], imputer.filled_[name][hole]) > 0.4
    hole = TABLE["side"].isna()
    assert (imputer.filled_["side"][hole] == WHOLE["side"][hole]).mean() > 0.7
    assert (imputer.probability_["side"][hole] >= 0.5).all()
    filled = imputer.transform(TABLE)
    pd.testing.assert_frame_equal(filled, imputer.filled_)
    assert (filled["same"] == 7.0).all()
    known = TABLE.notna()
    pd.testing.assert_frame_equal(filled[known], TABLE[known], check_dtype=False)


@pytest.mark.slow
def test_draws_spread_as_the_standard_deviations_say_and_keep_known_cells() -> None:
    imputer = GraphImputer(RING, method="coupled").fit(TABLE)
    drawn = imputer.sample(200)
    hole = TABLE["b"].isna()
    spread = np.std([each["b"][hole] for each in drawn], axis=0)
    np.testing.assert_allclose(spread, imputer.std_["b"][hole], rtol=0.3)
    for each in drawn[:3]:
        assert not each.isna().any().any()
        assert (each["side"][~TABLE["side"].isna()] == TABLE["side"].dropna()).all()


def test_it_is_a_transformer_of_arrays_and_shuffled_tables() -> None:
    values = TABLE[["a", "b"]].to_numpy()
    graph = RING.with_ids(None)
    filled = make_pipeline(GraphImputer(graph, method="coupled"), StandardScaler()).fit_transform(values)
    assert np.isfinite(filled).all()
    shuffled = TABLE[["a", "b"]].sample(frac=1, random_state=0)
    again = clone(GraphImputer(RING, method="coupled")).fit(shuffled)
    expected = GraphImputer(graph, method="coupled").fit_transform(values)[:, 0]
    np.testing.assert_allclose(again.filled_["a"], expected)


def test_counts_and_shares_are_filled_by_their_likelihood_and_size() -> None:
    people = np.geomspace(50, 5000, N)
    cases = RNG.poisson(0.05 * people * np.exp(LEVEL)).astype(float)
    votes = RNG.binomial(people.astype(int), 1 / (1 + np.exp(-LEVEL))).astype(float)
    hidden = np.arange(N) % 5 == 0
    table = pd.DataFrame({"people": people.astype(int), "cases": cases, "votes": votes, "a": TABLE["a"]}, RING.ids)
    known = table.mask(np.outer(hidden, [False, True, True, False]))
    likelihoods, sizes = {"cases": "poisson", "votes": "binomial"}, {"cases": "people", "votes": "people"}
    imputer = GraphImputer(RING, method="coupled", likelihoods=likelihoods, sizes=sizes).fit(known)
    assert imputer.methods_ == {"cases": "fields", "votes": "fields", "a": "coupled"}
    for name in likelihoods:
        filled, std, truth = (each[name][hidden] for each in (imputer.filled_, imputer.std_, table))
        assert r2(np.log(truth), np.log(filled)) > 0.9
        assert (np.abs(filled - truth) < 1.645 * std).mean() > 0.6
        assert (std > 0.9 * np.sqrt(filled * (1 - filled / people[hidden]))).all()  # that of a new count
    drawn = imputer.sample(3)
    assert all((each["cases"] % 1 == 0).all() and (each["votes"] <= people).all() for each in drawn)


@pytest.mark.parametrize(
    ("options", "table", "message"),
    [
        ({"method": "mean"}, TABLE, "method must be"),
        ({}, TABLE.assign(b=np.nan), "none in 'b'"),
        ({"likelihoods": {"side": "poisson"}}, TABLE, "columns of numbers"),
        ({}, TABLE.to_numpy()[:5, :2].astype(float), "80 nodes"),
        ({}, TABLE.set_axis(["a", "a", "side", "same"], axis=1), "'a' more than once"),
        ({}, TABLE[["a", "b"]].set_axis([1, "1"], axis=1), "'1' more than once"),
        ({"likelihoods": {"a": "poisson"}, "sizes": {"a": "b"}}, TABLE, "fill 'b' first"),
        ({"sizes": {"a": "same"}}, TABLE, "columns with a likelihood"),
    ],
)
def test_what_cannot_be_filled_is_refused(options: dict[str, Any], table: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        GraphImputer(RING, **options).fit(table)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["auto", "coupled"])
def test_copies_and_totals_are_filled_from_what_they_follow_from(method: str) -> None:
    rng = np.random.default_rng(4)
    whole = WHOLE[["a", "b"]].assign(twice=2 * WHOLE["a"] + 1)
    table = whole.mask(rng.random(whole.shape) < 0.15)
    imputer = GraphImputer(RING, method=method).fit(table)
    assert imputer.methods_["a"] == imputer.methods_["twice"] == "fields"
    assert method == "auto" or imputer.methods_["b"] == "coupled"
    hole = table["twice"].isna() & table["a"].notna()
    np.testing.assert_allclose(imputer.filled_["twice"][hole], whole["twice"][hole], atol=0.1)


def test_of_one_known_cell_the_spread_is_unknown() -> None:
    lonely = TABLE[["a", "b"]].assign(c=np.where(np.arange(N) == 3, 5.0, np.nan))
    imputer = GraphImputer(RING, method="coupled").fit(lonely)
    assert (imputer.filled_["c"] == 5.0).all()
    assert imputer.std_["c"].isna().sum() == N - 1
    assert "no standard deviation: c" in imputer.notes_[0]


@pytest.mark.parametrize("known", [2, 3, 4])
def test_columns_of_few_cells_are_filled_by_fields(known: int) -> None:
    rng, n = np.random.default_rng(0), 20
    ring = Graph.from_edges(np.arange(n), (np.arange(n) + 1) % n)
    table = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc")).mask(rng.random((n, 3)) < 0.2)
    few = table.assign(d=np.where(np.arange(n) < known, rng.normal(size=n), np.nan))
    model = GraphImputer(ring).fit(few)
    assert model.methods_["d"] == "fields"
    assert not model.filled_.isna().any(axis=None)

"""Counts, shares, known errors and several observations of a node."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from graphmrf import Graph, GraphRegressor
from graphmrf._typing import Floats
from graphmrf.errors import InvalidInputError
from graphmrf.estimators.rows import propose_likelihood

N = 120
RING = Graph.from_edges(np.arange(N), (np.arange(N) + 1) % N)
HIDDEN = np.arange(N) % 3 == 0
ETA = np.sin(np.arange(N) / 8.0)


def hide(y: Floats) -> Floats:
    return np.where(HIDDEN, np.nan, y)


def counts(seed: int, exposure: Floats) -> Floats:
    return np.random.default_rng(seed).poisson(exposure * np.exp(ETA)).astype(float)


@pytest.mark.parametrize("likelihood", ["poisson", "negative-binomial"])
def test_rates_of_counts(likelihood: str) -> None:
    exposure = np.random.default_rng(1).uniform(5.0, 30.0, N)
    y = counts(0, exposure)
    model = GraphRegressor(likelihood=likelihood).fit(RING, None, hide(y), exposure=exposure)
    rate, std = model.predict(return_std=True)
    assert np.abs(np.log(rate) - ETA)[HIDDEN].mean() < 0.25
    assert std[HIDDEN].mean() > std[~HIDDEN].mean() > 0
    expected, deviation = model.predict(of="observation", return_std=True)
    np.testing.assert_allclose(expected, exposure * rate, rtol=1e-6)
    assert (deviation > np.sqrt(expected)).all()
    low, high = model.predict_interval(0.9, of="observation")
    assert 0.8 <= ((y >= low) & (y <= high))[HIDDEN].mean() <= 1.0
    assert (low == np.round(low)).all()
    low, high = model.predict_interval(0.9)
    assert 0.8 <= ((np.exp(ETA) >= low) & (np.exp(ETA) <= high))[HIDDEN].mean() <= 1.0


def test_totals_of_counts_add_up_what_is_known() -> None:
    exposure = np.full(N, 10.0)
    y = counts(2, exposure)
    model = GraphRegressor(likelihood="poisson").fit(RING, None, hide(y), exposure=exposure)
    groups = np.where(HIDDEN, "hidden", "known")
    totals, means = model.predict_total(groups), model.predict_mean(groups)
    assert totals.loc["known", "prediction"] == y[~HIDDEN].sum()
    assert totals.loc["known", "std"] == 0
    assert totals.loc["hidden", "lower"] <= y[HIDDEN].sum() <= totals.loc["hidden", "upper"]
    assert means.loc["known", "prediction"] == pytest.approx(y[~HIDDEN].mean() / 10)


def test_probabilities_draws_and_intervals_agree() -> None:
    exposure = np.full(N, 6.0)
    model = GraphRegressor(likelihood="poisson").fit(RING, None, hide(counts(3, exposure)), exposure=exposure)
    for of in ("latent", "observation"):
        draws = model.sample(4000, of=of)
        value = 1.0 if of == "latent" else 6.0
        np.testing.assert_allclose(model.probability(above=value, of=of), (draws > value).mean(axis=0), atol=0.04)
        centre = np.median(draws, axis=0) if of == "latent" else draws.mean(axis=0)
        np.testing.assert_allclose(model.predict(of=of), centre, rtol=0.08)
    low, high = model.predict_interval(0.8, of="latent")
    draws = model.sample(4000)
    assert (draws < low).mean() == pytest.approx(0.1, abs=0.01)
    assert (draws > high).mean() == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize("likelihood", ["poisson", "negative-binomial"])
@pytest.mark.parametrize("observed", [1, 2, 4])
def test_few_counts_give_rates_of_their_size(likelihood: str, observed: int) -> None:
    """The mean of a rate whose logarithm is this uncertain is infinite; the median is near what was counted."""
    y = np.full(N, np.nan)
    y[[0, 30, 60, 90][:observed]] = [3.0, 5.0, 2.0, 4.0][:observed]
    model = GraphRegressor(likelihood=likelihood).fit(RING, None, y, exposure=1.0)
    for of in ("latent", "observation"):
        rate, std = model.predict(of=of, return_std=True)
        low, high = model.predict_interval(0.9, of=of)
        assert ((low <= rate) & (rate <= high)).all()
        assert ((rate > 1) & (rate < 10)).all()
        assert ((std > 0) & (std <= 3.0 * (high - low))).all()
    totals = model.predict_total(np.where(np.isnan(y), "hidden", "known")).loc["hidden"]
    assert totals["lower"] <= totals["prediction"] <= totals["upper"]
    expected = np.median(model.sample(1000)[:, np.isnan(y)].sum(axis=1))
    assert totals["prediction"] == pytest.approx(expected, rel=0.3)
    assert model.predict_mean(np.where(np.isnan(y), "hidden", "known"))["prediction"]["hidden"] < 40
    assert model.loo_["prediction"].between(0.0, 50.0).all()


@pytest.mark.parametrize("seed", [0, 5])
def test_gamma_rates_are_no_rough_field(seed: int) -> None:
    """Searched from a large size alone, a field of low order stands for them, with less evidence than Poisson's."""
    y = np.random.default_rng(seed).negative_binomial(1.0, 1.0 / 31.0, N).astype(float)
    evidence = [
        GraphRegressor(likelihood=name, learner=None).fit(RING, None, y, exposure=30.0).log_evidence_
        for name in ("negative-binomial", "poisson")
    ]
    assert evidence[0] > evidence[1] + 2.0


def test_totals_of_one_node_are_its_prediction() -> None:
    y = hide(counts(2, np.full(N, 10.0)))
    model = GraphRegressor(likelihood="negative-binomial").fit(RING, None, y, exposure=10.0)
    totals = model.predict_total([node if node < 6 else None for node in range(N)])
    mean, std = model.predict(of="observation", return_std=True)
    np.testing.assert_allclose(totals["prediction"][[0, 3]], mean[[0, 3]], rtol=0.1)
    np.testing.assert_allclose(totals["std"][[0, 3]], std[[0, 3]], rtol=0.1)


def test_shares_and_yes_or_no() -> None:
    share, rng = 1.0 / (1.0 + np.exp(-2.0 * ETA)), np.random.default_rng(0)
    trials = rng.integers(3, 30, N).astype(float)
    model = GraphRegressor(likelihood="binomial")
    model.fit(RING, None, hide(rng.binomial(trials.astype(int), share).astype(float)), trials=trials)
    assert np.abs(model.predict() - share)[HIDDEN].mean() < 0.1
    np.testing.assert_allclose(model.predict(of="observation"), trials * model.predict(), rtol=1e-6)
    yes = rng.binomial(1, share).astype(float)
    found = model.fit(RING, None, hide(yes)).predict()
    assert "noise" in model.hyperparameters_
    assert (found > 0).all()
    assert (found < 1).all()
    assert np.mean((found > 0.5)[HIDDEN] == (share > 0.5)[HIDDEN]) > 0.75


def test_known_errors_decide_how_much_a_value_counts() -> None:
    rng = np.random.default_rng(0)
    std = np.where(np.arange(N) % 2 == 0, 0.05, 1.5)
    y = 100.0 + 10.0 * (ETA + std * rng.standard_normal(N))
    model = GraphRegressor().fit(RING, None, hide(y), std=10.0 * std)
    mean, deviation = model.predict(return_std=True)
    truth = 100.0 + 10.0 * ETA
    assert np.sqrt(np.mean((mean - truth) ** 2)) < 0.5 * np.sqrt(np.mean((y - truth)[~HIDDEN] ** 2))
    exact = ~HIDDEN & (std < 1)
    np.testing.assert_allclose(mean[exact], y[exact], atol=1.0)
    assert deviation[exact].max() < deviation[~HIDDEN & (std > 1)].min()
    assert "gaussian, known standard errors" in model.summary()
    with pytest.raises(InvalidInputError, match="above must be a finite number, got nan"):
        model.probability(above=np.nan)
    again = GraphRegressor().fit(RING, None, hide(y / 10.0), std=std)
    np.testing.assert_allclose(again.predict(), mean / 10.0, rtol=1e-6)


def test_weights_are_precisions() -> None:
    weight = np.where(np.arange(N) % 2 == 0, 100.0, 1.0)
    y = ETA + np.random.default_rng(0).standard_normal(N) / np.sqrt(weight)
    plain = GraphRegressor(likelihood="gaussian").fit(RING, None, hide(y))
    weighted = GraphRegressor(likelihood="gaussian").fit(RING, None, hide(y), weight=weight)
    assert np.mean((weighted.predict() - ETA)[HIDDEN] ** 2) < np.mean((plain.predict() - ETA)[HIDDEN] ** 2)
    scaled = GraphRegressor(likelihood="gaussian").fit(RING, None, hide(y), weight=7.0 * weight)
    np.testing.assert_allclose(scaled.predict(), weighted.predict())


def test_several_observations_of_a_node() -> None:
    rng = np.random.default_rng(0)
    nodes = rng.permutation(np.repeat(np.arange(N), rng.integers(0, 4, N)))
    y = ETA[nodes] + 0.5 * rng.standard_normal(nodes.size)
    model = GraphRegressor().fit(RING, None, y, nodes=nodes)
    assert model.hyperparameters_["repeated.error"][0] == pytest.approx(0.5, rel=0.2)
    assert np.sqrt(np.mean((model.predict() - ETA) ** 2)) < 0.25
    exposure = rng.uniform(1.0, 5.0, nodes.size)
    cases = rng.poisson(exposure * np.exp(ETA[nodes]))
    rates = GraphRegressor(likelihood="poisson").fit(RING, None, cases, nodes=nodes, exposure=exposure)
    assert np.abs(np.log(rates.predict()) - ETA).mean() < 0.3


def test_rows_of_counts_are_as_good_as_their_sum() -> None:
    exposure = np.full(N, 6.0)
    y, half = counts(1, exposure), counts(5, exposure)
    twice = np.tile(np.flatnonzero(~HIDDEN), 2)
    model = GraphRegressor(likelihood="poisson")
    once = model.fit(RING, None, hide(y + half), exposure=12.0).predict()
    rows = np.concatenate([y[~HIDDEN], half[~HIDDEN]])
    np.testing.assert_allclose(model.fit(RING, None, rows, nodes=twice, exposure=6.0).predict(), once, rtol=1e-3)


def test_long_tables_by_id() -> None:
    ids = [f"n{k}" for k in range(N)]
    graph = RING.with_ids(ids)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"node": rng.choice(ids[:100], 150)})
    table["cases"] = rng.poisson(3.0, 150)
    model = GraphRegressor(likelihood="poisson").fit(graph, None, table["cases"], nodes=table["node"])
    found: Any = model.predict()
    assert found.index.tolist() == ids
    assert found.name == "cases"
    with pytest.raises(InvalidInputError, match="must be of the graph"):
        model.fit(graph, None, table["cases"], nodes=["elsewhere"] * 150)


def test_exposures_follow_ids() -> None:
    ids = [f"n{k}" for k in range(N)]
    exposure = np.linspace(2.0, 20.0, N)
    y = hide(counts(0, exposure))
    model = GraphRegressor(likelihood="poisson")
    expected = model.fit(RING, None, y, exposure=exposure).predict()
    series = pd.Series(exposure, index=ids).iloc[::-1]
    found = model.fit(RING.with_ids(ids), None, pd.Series(y, index=ids), exposure=series).predict()
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("likelihood", ["poisson", "negative-binomial", "binomial"])
@pytest.mark.parametrize("case", ["one label", "zeros", "all labelled", "isolated nodes"])
def test_limits(likelihood: str, case: str) -> None:
    graph = Graph.from_edges([0, 1], [1, 2], n_nodes=12) if case == "isolated nodes" else RING
    y = np.zeros(graph.n_nodes) if case != "all labelled" else (np.arange(N) % 2).astype(float)
    if case in ("one label", "zeros"):
        y[1:] = np.nan if case == "one label" else 0.0
    if case == "isolated nodes":
        y[[1, 5]] = 1.0
        y[[0, 6]] = np.nan
    mean, std = GraphRegressor(likelihood=likelihood).fit(graph, None, y).predict(return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert (mean > 0).all()


def test_out_of_fold_and_leave_one_out_are_in_units_of_the_counts() -> None:
    exposure = np.random.default_rng(1).uniform(5.0, 30.0, N)
    y = counts(0, exposure)
    model = GraphRegressor(likelihood="poisson").fit(RING, None, hide(y), exposure=exposure)
    folds = np.arange(80) % 4
    mean, std = model.out_of_fold(RING, None, hide(y), folds, return_std=True)
    scores = (y[~HIDDEN] - mean) / std
    assert np.abs(scores).mean() == pytest.approx(0.8, abs=0.2)
    table = model.loo_
    assert np.corrcoef(table["prediction"], table["label"])[0, 1] > 0.8
    assert ((table["label"] - table["prediction"]) / table["std"]).std() == pytest.approx(1.0, abs=0.25)


BAD: dict[str, tuple[str, list[float], dict[str, Any], str]] = {
    "negative counts": ("poisson", [-1.0, 2.0], {}, "0 or more, got -1 in row 0"),
    "fractions": ("negative-binomial", [1.0, 2.5], {}, "whole numbers of cases"),
    "successes beyond trials": ("binomial", [3.0, 1.0], {"trials": [2.0, 2.0]}, "at most their trials, got 3 of 2"),
    "binomial without trials": ("binomial", [3.0, 1.0], {}, "pass trials="),
    "fractions of trials": ("binomial", [1.0, 1.0], {"trials": [2.5, 2.0]}, "trials must be whole"),
    "no error": ("gaussian", [1.0, 2.0], {"std": [0.0, 1.0]}, "must be positive, got 0 in row 0"),
    "missing error": ("auto", [1.0, 2.0], {"std": [1.0, np.nan]}, "got none in row 1"),
    "no exposure": ("poisson", [1.0, 2.0], {"exposure": [0.0, 1.0]}, "use the population"),
    "exposure of numbers": ("gaussian", [1.0, 2.0], {"exposure": [1.0, 1.0]}, "exposure is for likelihood"),
    "errors of counts": ("poisson", [1.0, 2.0], {"std": [1.0, 1.0]}, "std is for likelihood 'gaussian'"),
    "two precisions": ("gaussian", [1.0, 2.0], {"std": 1.0, "weight": 1.0}, "pass one of them"),
    "wrong length": ("poisson", [1.0, 2.0], {"exposure": [1.0, 1.0, 1.0]}, "one for each of the 3 rows"),
    "words": ("poisson", [1.0, 2.0], {"exposure": ["a", "b", "c"]}, "must be numeric"),
    "name": ("gamma", [1.0, 2.0], {}, "likelihood must be one of"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_with_a_remedy(case: str) -> None:
    likelihood, y, options, message = BAD[case]
    options = {k: [*v, 1.0] if isinstance(v, list) and len(v) == 2 else v for k, v in options.items()}
    if case == "wrong length":
        options = {"exposure": [1.0, 1.0]}
    with pytest.raises(InvalidInputError, match=message):
        GraphRegressor(likelihood=likelihood).fit(Graph.from_edges([0, 1], [1, 2]), None, [*y, np.nan], **options)


def test_errors_name_the_node_and_the_column() -> None:
    """Rows of a table need not be in the order of the nodes."""
    graph = Graph.from_edges(["a", "b"], ["b", "c"])
    cases, people = pd.Series({"c": 2.0, "b": -1.0, "a": 1.0}, name="cases"), pd.Series({"c": 0.0, "a": 1.0, "b": 1.0})
    model = GraphRegressor(likelihood="poisson")
    with pytest.raises(InvalidInputError, match=r"got -1 at node 'b', column 'cases' \(1 such rows"):
        model.fit(graph, None, cases)
    with pytest.raises(InvalidInputError, match="must be positive, got 0 at node 'c', column 'people'"):
        model.fit(graph, None, cases.abs(), exposure=people.rename("people"))
    with pytest.raises(InvalidInputError, match="got -1 at node 'c' in row 1"):
        model.fit(graph, None, np.array([1.0, -1.0]), nodes=np.array(["a", "c"]))


def test_what_needs_numbers_says_so() -> None:
    model = GraphRegressor(likelihood="poisson").fit(RING, None, hide(counts(0, np.ones(N))))
    with pytest.raises(InvalidInputError, match="need numbers"):
        model.explain(int(np.flatnonzero(HIDDEN)[0]))
    model.fit(RING, None, hide(counts(0, np.ones(N))), exposure=np.where(HIDDEN, np.nan, 1.0))
    with pytest.raises(InvalidInputError, match="of='latent'"):
        model.predict(of="observation")


def test_proposals() -> None:
    assert propose_likelihood([0, 1, 1])[0] == "binomial"
    assert propose_likelihood([0, 4], trials=[3, 5])[0] == "binomial"
    assert propose_likelihood([0, 4], exposure=[3, 5])[0] == "negative-binomial"
    assert propose_likelihood([0, 4])[0] == "gaussian"
    assert propose_likelihood([0.5, 4], std=[1, 1])[0] == "gaussian"


def test_weights_count_with_the_default_likelihood() -> None:
    rng, n = np.random.default_rng(0), 20
    ring = Graph.from_edges(np.arange(n), (np.arange(n) + 1) % n)
    y = np.where(np.arange(n) % 4, rng.normal(size=n), np.nan)
    weight = np.exp(rng.normal(size=n))
    plain, weighted = GraphRegressor(), GraphRegressor(likelihood="gaussian")
    found = plain.fit(ring, None, y, weight=weight).predict()
    np.testing.assert_allclose(found, weighted.fit(ring, None, y, weight=weight).predict(), atol=1e-9)
    with pytest.raises(InvalidInputError):
        GraphRegressor(likelihood="student").fit(ring, None, y, weight=weight)


@pytest.mark.parametrize("unit", [1e-6, 1e8])
def test_known_errors_do_not_depend_on_the_unit(unit: float) -> None:
    rng, n = np.random.default_rng(0), 20
    ring = Graph.from_edges(np.arange(n), (np.arange(n) + 1) % n)
    y = np.where(np.arange(n) % 4, np.sin(np.arange(n) / 3) + 0.5 * rng.normal(size=n), np.nan)
    mean, std = GraphRegressor().fit(ring, None, y, std=0.5).predict(return_std=True)
    others, stds = GraphRegressor().fit(ring, None, unit * y, std=0.5 * unit).predict(return_std=True)
    np.testing.assert_allclose(others / unit, mean, atol=1e-9)
    np.testing.assert_allclose(stds / unit, std, rtol=1e-9)


def test_intervals_of_counts_end_where_no_number_lies_between() -> None:
    n = 20
    ring = Graph.from_edges(np.arange(n), (np.arange(n) + 1) % n)
    counts = np.append([3.0, 4, 5, 2, 6, 3, 4, 5, 2, 3], np.full(10, np.nan))
    model = GraphRegressor(likelihood="poisson")
    model.fit(ring, None, counts, exposure=np.where(np.isnan(counts), 1e18, 1.0))
    low, high = model.predict_interval(0.9, of="observation")
    assert np.all(low <= high)


@pytest.mark.slow
def test_yes_or_no_is_found_in_the_middle_of_a_feature() -> None:
    """A step that no line shows: from 0 and 1 alone a search ends where nothing matters."""
    rng, n = np.random.default_rng(0), 300
    ring = Graph.from_edges(np.arange(n), (np.arange(n) + 1) % n)
    X = rng.standard_normal((n, 4))
    yes = (np.abs(X[:, 0]) < 0.4).astype(float)
    known = rng.random(n) < 0.5
    probability = GraphRegressor(likelihood="binomial").fit(ring, X, np.where(known, yes, np.nan)).predict()
    assert np.mean((probability > 0.5) == yes, where=~known) > 0.85


@pytest.mark.parametrize(("likelihood", "weight"), [("binomial", 1e5), ("ordinal", 3.0), ("ordinal", 10.0)])
def test_labels_that_count_many_times_determine_the_class_of_their_node(likelihood: str, weight: float) -> None:
    codes = np.digitize(ETA, [0.0] if likelihood == "binomial" else [-0.5, 0.5]).astype(float)
    y = hide(np.where(np.arange(N) % 20 == 1, 0.0, codes))
    model = GraphRegressor(likelihood=likelihood, learner=None, members=4).fit(RING, None, y, weight=weight)
    above = np.column_stack([model.probability(above=k, of="observation") for k in range(int(codes.max()))])
    known, right = ~HIDDEN, np.where(y[:, None] > np.arange(above.shape[1]), above, 1.0 - above)
    assert (right[known] > 0.5).mean() > 0.9
    assert right[known].mean() > 0.85

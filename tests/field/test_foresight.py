"""Accuracy, further labels and sums over regions as the field foresees them: against dense algebra and themselves."""

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import random_case
from graphmrf import Graph, GraphRegressor
from graphmrf._typing import Floats
from graphmrf.errors import InvalidInputError
from graphmrf.field import foresight
from graphmrf.field.foresight import Foresight, RegionSums, neighbourhoods

pytestmark = pytest.mark.usefixtures("few_draws")

CASE = random_case(9, n=40, p=2, labelled=24)
KNOWN, REST = CASE.known, np.flatnonzero(~CASE.known)


@cache
def fitted(solver: str = "exact", transform: str = "identity") -> GraphRegressor:
    y = np.exp(CASE.y - np.nanmean(CASE.y)) if transform != "identity" else CASE.y
    return GraphRegressor(solver=solver, transform=transform).fit(CASE.graph, CASE.X, y)


def joint(model: GraphRegressor) -> Floats:
    """Calibrated joint covariance of the unlabelled nodes in units of the outcome, from very many draws."""
    draws = model.sample(40_000, seed=1)[:, REST]
    return np.asarray(np.cov(draws, rowvar=False))


every = pytest.mark.parametrize("solver", ["exact", "sparse"])


@every
def test_sums_have_the_joint_covariance_of_draws(solver: str) -> None:
    model = fitted(solver)
    groups = np.where(np.arange(40) % 3 == 0, "a", "b")
    found, covariance = model.predict_total(groups), joint(model)
    for name, row in found.iterrows():
        own = (groups[REST] == name).astype(float)
        widened = model._regions.scale(int(own.sum()))[0] / model._regions.node_scale
        assert row["std"] == pytest.approx(widened * np.sqrt(own @ covariance @ own), rel=0.03)
        assert row["prediction"] == pytest.approx(model.predict()[groups == name].sum())
        assert row["lower"] < row["prediction"] < row["upper"]


@every
def test_a_group_of_one_node_is_its_prediction(solver: str) -> None:
    model = fitted(solver)
    found, (mean, std), (low, high) = model.predict_mean(np.arange(40)), *_predicted(model)
    for name, values in (("prediction", mean), ("std", std), ("lower", low), ("upper", high)):
        np.testing.assert_allclose(found[name], values, atol=1e-12)
    assert (found["n_nodes"] == 1).all()
    assert (found["n_observed"] == KNOWN).all()


def _predicted(model: GraphRegressor) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    return model.predict(return_std=True), model.predict_interval(0.9)


def test_a_group_of_observed_nodes_is_known() -> None:
    found = fitted().predict_total(["known" if known else None for known in KNOWN]).loc["known"]
    assert found["std"] == 0
    assert found["lower"] == found["upper"] == found["prediction"] == pytest.approx(CASE.y[KNOWN].sum())
    assert found["n_nodes"] == found["n_observed"] == 24


@settings(max_examples=20)
@given(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=40, max_size=40))
def test_totals_add_up_and_means_are_totals_over_nodes(groups: list[str | None]) -> None:
    model = fitted()
    total, mean = model.predict_total(groups), model.predict_mean(groups)
    inside = np.array([name is not None for name in groups])
    assert total["prediction"].sum() == pytest.approx(model.predict()[inside].sum())
    assert set(total.index) == {name for name in groups if name is not None}
    assert total["n_nodes"].sum() == inside.sum()
    np.testing.assert_allclose(mean["std"] * mean["n_nodes"], total["std"])
    widths = total["upper"] - total["lower"]
    assert ((widths > 0) == (total["n_observed"] < total["n_nodes"])).all()


def test_groups_keep_their_name_and_may_be_empty() -> None:
    named = pd.Series(pd.Categorical(["b", "a"] * 20, categories=["a", "b", "c"]), name="borough")
    found = fitted().predict_total(named)
    assert found.index.name == "borough"
    assert list(found.index) == ["a", "b"]
    assert list(fitted().predict_total([10, 9, None, 2] * 10).index) == [2, 9, 10]
    assert fitted().predict_total([None] * 40).empty


def test_a_transformed_outcome_is_summed_in_its_units() -> None:
    model = fitted(transform="log")
    found = model.predict_total(["all"] * 40).loc["all"]
    assert found["prediction"] == pytest.approx(model.predict().sum())
    assert found["std"] > 0


@pytest.mark.parametrize("groups", [["a"] * 39, "a", [["a"] * 40]])
def test_groups_of_another_length_are_refused(groups: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"each of the 40 nodes, got shape .*; use None"):
        fitted().predict_total(groups)


def test_levels_are_probabilities() -> None:
    with pytest.raises(InvalidInputError, match="level must be between 0 and 1"):
        fitted().predict_mean(["a"] * 40, level=1.0)


def test_two_labels_leave_two_degrees_of_freedom() -> None:
    y = np.where(np.arange(40) < 2, CASE.truth, np.nan)
    model = GraphRegressor(solver="exact").fit(CASE.graph, CASE.X, y)
    assert model._regions.scale(1) == (model._regions.node_scale, 2.0)


def test_scales_of_regions_follow_how_wrong_joint_deviations_are() -> None:
    model = fitted()
    assert model._regions.scale(1) == (model._regions.node_scale, 23.0)
    sizes, scales, freedoms = RegionSums(model._field, CASE.graph).scales
    assert sizes.tolist() == [1.0, 2.0, 4.0]
    assert (scales > 0).all()
    assert (np.diff(freedoms) < 0).all()  # the larger regions are, the fewer tell
    assert freedoms[0] == 10 + 24


@every
def test_r2_with_the_present_labels_is_what_is_expected_now(solver: str) -> None:
    model = fitted(solver)
    (now, error), (same, _) = (model.expected_r2(mask, return_std=True) for mask in (None, KNOWN))
    assert now == pytest.approx(same, abs=1e-9)
    assert now < 1
    assert error > 0
    fewer = KNOWN & (np.cumsum(KNOWN) <= 6)
    assert model.expected_r2(fewer) < now


def test_expected_r2_is_that_of_data_drawn_from_the_field() -> None:
    ring = Graph.from_edges(np.arange(400), (np.arange(400) + 1) % 400)
    rng, found, measured = np.random.default_rng(0), [], []
    for _ in range(4):
        smooth = np.linalg.solve(np.eye(400) + 30.0 * ring.N.toarray(), rng.standard_normal(400))
        y = smooth / smooth.std() + 0.3 * rng.standard_normal(400)
        known = rng.random(400) < 0.6
        model = GraphRegressor().fit(ring, None, np.where(known, y, np.nan))
        found.append(model.expected_r2())
        left = y[~known] - model.predict()[~known]
        measured.append(1 - left.var() / y[~known].var())
    assert np.mean(found) == pytest.approx(np.mean(measured), abs=0.05)


@every
def test_a_learning_curve_starts_at_what_is_expected_now_and_rises(solver: str) -> None:
    model = fitted(solver)
    curve = model.expected_learning_curve([24, 30, 36], draws=2)
    now, error = model.expected_r2(return_std=True)
    assert curve["expected_r2"].iloc[0] == pytest.approx(now)
    assert curve["upper"].iloc[0] - curve["lower"].iloc[0] == pytest.approx(2 * 1.645 * error)
    assert curve["expected_r2"].iloc[-1] > now - 0.05
    assert model.expected_learning_curve()["n_labels"].tolist() == [24, 30, 36]
    with pytest.raises(InvalidInputError, match="n_labels must be from the 24 labels there are to 38"):
        model.expected_learning_curve([39])


def test_masks_are_checked() -> None:
    with pytest.raises(InvalidInputError, match="labelled must be True or False for each of the 40 nodes"):
        fitted().expected_r2([1, 2])
    with pytest.raises(InvalidInputError, match="at least 2 unlabelled"):
        fitted().expected_r2(np.ones(40, dtype=bool))
    with pytest.raises(InvalidInputError, match="at least one node"):
        fitted().expected_r2(np.zeros(40, dtype=bool))
    with pytest.raises(InvalidInputError, match="k must be a whole number from 0 to the 16 nodes to ask"):
        fitted().suggest(17)


@cache
def star() -> GraphRegressor:
    """Two stars, smooth within each: their centres tell most."""
    centres, leaves = np.repeat([0, 1], 30), np.arange(2, 62)
    graph = Graph.from_edges([*centres, 0, *range(62, 100)], [*leaves, 1, *range(63, 101)])
    rng = np.random.default_rng(0)
    y = np.linalg.solve(np.eye(101) + 50.0 * graph.N.toarray(), rng.standard_normal(101))
    y[[0, 1, *range(2, 62, 2), *range(62, 101, 3)]] = np.nan
    return GraphRegressor().fit(graph, None, y)


def test_suggested_nodes_raise_the_expected_r2_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foresight, "_HELPS", (0.0, 0.0))
    found = star().suggest(3)
    assert found["node"].is_unique
    assert np.isnan(star()._field.y[found["node"]]).all()
    assert (np.diff(found["expected_r2"]) > -1e-6).all()
    assert found.attrs["reason"] == ""


def test_suggested_nodes_raise_the_expected_r2_where_features_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foresight, "_HELPS", (0.0, 0.0))
    rng, nodes = np.random.default_rng(10), np.arange(120)
    ring, X = Graph.from_edges(nodes, (nodes + 1) % 120), rng.standard_normal((120, 1))
    y = X[:, 0] + 0.2 * rng.standard_normal(120)
    y[60:], X[rng.permutation(120)[:24]] = np.nan, np.nan
    model = GraphRegressor().fit(ring, X, y)
    foreseen = model.suggest(3)["expected_r2"].to_numpy()
    assert (np.diff([model.expected_r2(), *foreseen]) > -1e-6).all()


def test_probes_suggest_what_the_matrix_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foresight, "_HELPS", (0.0, 0.0))
    dense = star().suggest(3)
    monkeypatch.setattr(foresight, "_TARGETS", (10, 500, 64, 16))
    probed = star().suggest(3)
    assert probed["expected_r2"].iloc[-1] == pytest.approx(dense["expected_r2"].iloc[-1], abs=0.01)


def test_only_nodes_that_can_be_asked_are_suggested() -> None:
    among = np.isin(np.arange(101), [0, 62, 65, 68])
    assert set(star().suggest(3, among=among)["node"]) <= {0, 62, 65, 68}


def test_where_no_label_helps_others_none_is_named() -> None:
    pairs = Graph.from_edges(np.arange(0, 200, 2), np.arange(1, 200, 2))
    y = np.random.default_rng(3).standard_normal(200)
    y[:20] = np.nan
    found = GraphRegressor().fit(pairs, None, y).suggest(5)
    assert found.empty
    assert "no label helps other nodes" in found.attrs["reason"]


@settings(max_examples=20)
@given(st.integers(0, 1000), st.integers(1, 9))
def test_neighbourhoods_have_every_node_once(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    parts = list(neighbourhoods(CASE.graph, REST, size, rng))
    assert sorted(np.concatenate(parts).tolist()) == list(range(REST.size))
    assert max(part.size for part in parts) <= size


@every
def test_expected_r2_and_its_error_are_those_of_dense_algebra(solver: str) -> None:
    foreseen, field = fitted(solver)._foresight, fitted(solver)._field
    posterior, unit = field.posterior, float(np.nanstd(CASE.y))
    (mean, variance), n = field.standardised.moments, REST.size
    central = posterior.central
    Sigma = central.times_covariance(REST, np.eye(n)) + central.noise * np.eye(n)
    Sigma *= variance.sum() / central.moments(REST)[1].sum()
    whole, squares = Sigma.sum() / n / variance.sum(), np.sum(Sigma**2) / variance.sum() ** 2
    left_out = posterior.left_out[1]
    errors = np.append(field.calibration.scores**2 * left_out / left_out.mean(), np.ones(10))
    c = (1.0 + field.calibration.trust * (np.sqrt(errors.mean()) - 1.0)) ** 2
    variation = unit**2 * (np.var(mean) + (1.0 - whole) * np.mean(variance))
    share = unit**2 * c * np.mean(variance) / variation
    tails = max(np.var(errors) / errors.mean() ** 2, 2.0)
    expected = 1.0 - share, share * np.sqrt(tails / errors.size + tails * squares)
    assert foreseen.expected_r2() == pytest.approx(expected, rel=1e-6)
    assert foreseen._shrunk(24) == pytest.approx(c)
    assert foreseen._shrunk(48) == pytest.approx(1.0 + (c - 1.0) / 2 if c > 1 else c)
    assert foreseen._shrunk(12) == pytest.approx(c)


def test_labels_that_are_all_the_same_have_nothing_to_explain() -> None:
    field: Any = SimpleNamespace(scale=SimpleNamespace(is_constant=True))
    foreseen = Foresight(field)
    vars(foreseen)["_errors"] = np.ones(3)
    assert foreseen._r2(np.arange(2), np.ones(2), 5) == (0.0, 0.0)


def test_the_factor_of_a_sum_is_that_of_as_large_a_part_of_the_labels() -> None:
    calibration = SimpleNamespace(scale=1.3, trust=0.5)
    field: Any = SimpleNamespace(rows=np.arange(10), y=np.zeros(30), calibration=calibration)
    regions = RegionSums(field, CASE.graph)
    regions.__dict__["scales"] = (np.array([1.0, 2.0, 4.0]), np.array([1.0, 1.5, 2.0]), np.array([12.0, 11.0, 10.0]))
    assert regions.scale(1) == pytest.approx((1.15, 9.0))
    for nodes, factor, freedom in (
        (2, 1.0, 12.0),
        (4, 1.5, 11.0),
        (6, 1.5 + 0.5 * np.log2(1.5), None),
        (99, 2.0, 10.0),
    ):
        found = regions.scale(nodes)
        assert found == pytest.approx((factor, 12.0 - (factor - 1.0) / 0.5 if freedom is None else freedom))


def test_breadth_first_takes_the_nearest_nodes_first() -> None:
    tree = Graph.from_edges([0, 0, 1, 1, 2, 7], [1, 2, 3, 4, 5, 8], n_nodes=9)
    found = list(foresight.breadth_first(tree, 0))
    assert (found[0], set(found[1:3]), set(found[3:])) == (0, {1, 2}, {3, 4, 5})
    assert list(foresight.breadth_first(tree, 6)) == [6]


def test_two_unlabelled_nodes_are_enough_for_a_coefficient_of_determination() -> None:
    labelled = np.arange(40) != REST[0]
    with pytest.raises(InvalidInputError, match="at least 2"):
        fitted()._foresight.expected_r2(labelled)
    labelled[REST[1]] = False
    assert np.isfinite(fitted()._foresight.expected_r2(labelled)).all()


@pytest.mark.parametrize(("labels", "freedom"), [(2, 2.0), (3, 2.0), (4, 3.0)])
def test_sums_given_a_handful_of_labels_are_as_uncertain_as_these_are_few(labels: int, freedom: float) -> None:
    calibration, scale = SimpleNamespace(scale=1.3, trust=1.0), SimpleNamespace(is_constant=False)
    field: Any = SimpleNamespace(rows=np.arange(labels), y=np.zeros(30), calibration=calibration, scale=scale)
    sizes, scales, freedoms = RegionSums(field, CASE.graph).scales
    assert (sizes.tolist(), freedoms.tolist()) == ([1.0], [freedom])
    assert scales[0] == pytest.approx(1.3)

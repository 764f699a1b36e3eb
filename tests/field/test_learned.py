"""Learned effects: cross-fitted columns, what they add, and what they do on other graphs."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression as Plain
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import r2_score

from cases import random_case
from graphmrf import Graph, GraphClassifier, GraphRegressor, load
from graphmrf.errors import InvalidInputError
from graphmrf.field.features import Design
from graphmrf.field.learned import LEAST_LABELS, LearnedEffects, Trees, boosted_trees, label_means, with_learned
from graphmrf.field.likelihoods import LIKELIHOODS
from graphmrf.field.observations import Observations, Responses


def ring(n: int) -> Graph:
    return Graph.from_edges(np.arange(n), (np.arange(n) + 1) % n)


def problem(n: int = 60) -> tuple[Graph, Design, Observations]:
    rng = np.random.default_rng(0)
    graph, X = ring(n), rng.standard_normal((n, 2))
    nodes = np.sort(rng.permutation(n)[: 2 * n // 3])
    z = X[nodes, 0] + 0.1 * rng.standard_normal(nodes.size)
    return graph, Design.of(graph, X), Observations.of(nodes, z)


def test_a_learned_column_is_out_of_fold_at_labels_and_the_mean_of_folds_elsewhere() -> None:
    graph, design, labels = problem()
    found = with_learned(design, labels, Plain(), 0)
    assert isinstance(found.learner, LearnedEffects)
    known, folds = np.isin(np.arange(60), labels.nodes), found.learner.folds
    expected, elsewhere = np.empty(60), []
    for fold in range(5):
        own, others = labels.nodes[folds == fold], labels.nodes[folds != fold]
        inputs = np.hstack([design.learnable, label_means(graph, others, labels.z[folds != fold])])
        model = Plain().fit(inputs[others], labels.z[folds != fold])
        expected[own] = model.predict(inputs[own])
        elsewhere.append(model.predict(inputs[~known]))
    expected[~known] = np.mean(elsewhere, axis=0)
    at_labels = expected[known]
    np.testing.assert_allclose(found.learned[:, 0], (expected - at_labels.mean()) / at_labels.std(), atol=1e-5)


def test_a_learner_sees_second_neighbours_and_degrees() -> None:
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3], n_nodes=5)
    X = np.array([[0.0], [1.0], [2.0], [4.0], [8.0]])
    design = Design.of(graph, X)
    S = graph.adjacency.toarray() / np.maximum(graph.degrees, 1)[:, None]
    degrees = np.log1p(graph.degrees)
    np.testing.assert_allclose(design.learnable[:, 2], (S @ S @ design.own)[:, 0])
    np.testing.assert_allclose(design.learnable[:, 3:], np.column_stack([degrees, S @ degrees]))


def stairs(n: int, steps: int, noise: float = 0.3) -> tuple[Graph, np.ndarray, np.ndarray]:
    """Return a ring, 8 features, and an outcome that jumps with the first."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, 8))
    return ring(n), X, 2.0 * (np.floor(steps * norm.cdf(X[:, 0])) % 2) + noise * rng.standard_normal(n)


@pytest.mark.parametrize("solver", ["dense", "sparse"])
def test_boosted_trees_add_what_no_other_term_has(solver: str) -> None:
    graph, X, y = stairs(600, 4)
    known = np.random.default_rng(3).random(600) < 0.6
    labels = np.where(known, y, np.nan)
    plain = GraphRegressor(solver=solver, learner=None).fit(graph, X, labels)
    learned = GraphRegressor(solver=solver).fit(graph, X, labels)
    found = [r2_score(y[~known], model.predict()[~known]) for model in (plain, learned)]
    assert found[1] > found[0] + 0.1
    assert learned.shares_["learned effects"] > 0.4
    assert learned.notes_[0].startswith("boosted trees are among the effects")
    low, high = learned.predict_interval(0.9)
    assert 0.85 < np.mean((low <= y)[~known] & (y <= high)[~known]) < 0.95


@pytest.mark.parametrize("solver", ["dense", "sparse"])
def test_boosted_trees_do_not_depend_on_units(solver: str) -> None:
    graph, X, y = stairs(300, 3)
    labels = np.where(np.random.default_rng(3).random(300) < 0.6, y, np.nan)
    expected = GraphRegressor(solver=solver).fit(graph, X, labels)
    found = GraphRegressor(solver=solver).fit(graph, X * 1e3 + 5.0, 100.0 * labels - 3.0)
    assert found.notes_ == expected.notes_
    assert "learned effects" in expected.shares_
    np.testing.assert_allclose((found.predict() + 3.0) / 100.0, expected.predict(), atol=1e-6)


@pytest.mark.parametrize("solver", ["dense", "sparse"])
def test_boosted_trees_are_left_out_where_effects_are_linear(solver: str) -> None:
    rng, n = np.random.default_rng(4), 300
    graph, X = ring(n), rng.standard_normal((n, 3))
    y = np.where(rng.random(n) < 0.5, X @ [1.0, -1.0, 0.5] + 0.5 * rng.standard_normal(n), np.nan)
    plain = GraphRegressor(solver=solver, learner=None).fit(graph, X, y)
    tried = GraphRegressor(solver=solver).fit(graph, X, y)
    np.testing.assert_array_equal(tried.predict(), plain.predict())
    assert tried.notes_[0].startswith("boosted trees were tried and left out")
    assert "learned effects" not in tried.shares_


def test_boosted_trees_are_not_tried_where_none_could_split() -> None:
    graph, X, y = stairs(100, 2)
    y[LEAST_LABELS - 1 :] = np.nan
    assert GraphRegressor().fit(graph, X, y).notes_ == ()
    folds = np.arange(LEAST_LABELS - 1) % 5
    trees = boosted_trees(0).fit(X[: LEAST_LABELS - 1][folds > 0], y[: LEAST_LABELS - 1][folds > 0])
    assert np.ptp(trees.predict(X)) == 0


def test_a_model_with_boosted_trees_is_stored(tmp_path: Path) -> None:
    graph, X, y = stairs(200, 2)
    y[::3] = np.nan
    model = GraphRegressor().fit(graph, X, y)
    assert "learned effects" in model.shares_
    model.save(tmp_path / "model.gmrf")
    np.testing.assert_allclose(load(tmp_path / "model.gmrf").predict(), model.predict())


def test_learned_effects_hold_on_another_graph_and_out_of_fold() -> None:
    rng, n = np.random.default_rng(2), 300
    graph, X = ring(n), rng.standard_normal((n, 4))
    y = 2.0 * np.sign(X[:, 0]) + 0.2 * rng.standard_normal(n)
    model = GraphRegressor(learner=HistGradientBoostingRegressor(max_iter=50, random_state=0)).fit(graph, X, y)
    other = rng.standard_normal((100, 4))
    assert r2_score(2.0 * np.sign(other[:, 0]), model.predict(ring(100), other)) > 0.9
    folds = np.arange(n) % 3
    assert r2_score(y, model.out_of_fold(graph, X, y, folds)) > 0.9
    line = model.partial_dependence(0, np.array([-1.0, 1.0]))
    assert 3.0 < line[1] - line[0] < 4.5


@pytest.mark.parametrize("likelihood", ["poisson", "binomial"])
def test_a_learner_that_is_passed_learns_counts_and_shares(likelihood: str) -> None:
    """An outcome that alternates with a feature, for which there is no other term."""
    rng, n = np.random.default_rng(5), 400
    graph, X = ring(n), rng.standard_normal((n, 2))
    high = np.floor(4 * norm.cdf(X[:, 0])) % 2
    drawn = rng.poisson(2.0 + 8.0 * high) if likelihood == "poisson" else rng.binomial(10, 0.2 + 0.6 * high)
    y = np.where(rng.random(n) < 0.7, drawn, np.nan)
    trees = HistGradientBoostingRegressor(max_iter=50, random_state=0)
    model = GraphRegressor(terms=["own", "learned"], likelihood=likelihood, learner=trees)
    model.fit(graph, X, y, trials=10 if likelihood == "binomial" else None)
    assert model.shares_["learned effects"] > 0.3
    expected = 2.0 + 8.0 * high if likelihood == "poisson" else 0.2 + 0.6 * high
    assert np.corrcoef(model.predict()[np.isnan(y)], expected[np.isnan(y)])[0, 1] > 0.9


def test_neighbours_that_differ_are_reported() -> None:
    rng, n = np.random.default_rng(0), 200
    side = np.arange(n) % 2
    graph, X = ring(n), rng.standard_normal((n, 1))
    differ = GraphRegressor().fit(graph, X, np.where(rng.random(n) < 0.6, side + 0.1 * X[:, 0], np.nan))
    assert differ.notes_[0].startswith("neighbours differ: Moran's I of the outcome is -0.9")
    alike = GraphRegressor().fit(graph, X, np.where(rng.random(n) < 0.6, X[:, 0], np.nan))
    assert not any("differ" in note for note in alike.notes_)


def test_copies_that_are_labelled_together_are_reported() -> None:
    """Three copies of every page, with links to two hubs of their own."""
    rng, pages = np.random.default_rng(0), 60
    page = np.repeat(np.arange(pages), 3)
    hub = rng.integers(0, 20, (pages, 2))
    edges = (np.tile(np.arange(180), 2), 180 + hub[page].T.ravel())
    graph, X = Graph.from_edges(*edges, n_nodes=200), rng.standard_normal((200, 1))
    y = np.append(rng.standard_normal(pages)[page], rng.standard_normal(20))
    together = np.append(rng.random(pages)[page] < 0.5, rng.random(20) < 0.5)
    model = GraphRegressor(learner=None)
    assert any("are copies of each other" in note for note in model.fit(graph, X, np.where(together, y, np.nan)).notes_)
    alone = rng.random(200) < 0.5
    assert not any("copies" in note for note in model.fit(graph, X, np.where(alone, y, np.nan)).notes_)


@pytest.mark.parametrize("likelihood", ["poisson", "negative-binomial", "binomial", "gaussian"])
def test_trees_have_the_loss_of_the_likelihood(likelihood: str) -> None:
    rng, n = np.random.default_rng(5), 500
    graph, X = ring(n), rng.standard_normal((n, 6))
    eta = 0.8 * np.sign(np.abs(X[:, 0]) - 0.67)
    trials, exposure = np.full(n, 20.0), rng.uniform(5.0, 10.0, n)
    drawn: dict[str, tuple[np.ndarray, dict[str, np.ndarray], np.ndarray]] = {
        "binomial": (rng.binomial(20, expit(eta)).astype(float), {"trials": trials}, expit(eta)),
        "gaussian": (eta + 0.5 * rng.standard_normal(n), {"std": np.full(n, 0.5)}, eta),
    }
    y, given, truth = drawn.get(
        likelihood, (rng.poisson(np.exp(eta) * exposure).astype(float), {"exposure": exposure}, np.exp(eta))
    )
    known = rng.random(n) < 0.5
    model = GraphRegressor(likelihood=likelihood, terms=("own", "learned", "field"))
    model.fit(graph, X, np.where(known, y, np.nan), **given)
    assert "learned effects" in model.shares_
    assert r2_score(truth[~known], model.predict()[~known]) > 0.7
    low, high = model.predict_interval(0.9, of="observation")
    assert 0.85 < np.mean((low <= y)[~known] & (y <= high)[~known]) < 0.98
    folds = np.arange(int(known.sum())) % 5
    held_out = model.out_of_fold(graph, X, y, folds)
    assert np.corrcoef(held_out, (y / given["exposure"] if "exposure" in given else y)[known])[0, 1] > 0.4


def test_counts_that_are_all_zero_need_no_tree() -> None:
    y = np.where(np.arange(80) % 4, 0.0, np.nan)
    labels = Responses.of(LIKELIHOODS["poisson"], np.flatnonzero(~np.isnan(y)), np.zeros(60), np.ones(60))
    design = Design.of(ring(80), np.random.default_rng(0).standard_normal((80, 2)))
    np.testing.assert_allclose(with_learned(design, labels, "auto", 0).learned, 0.0, atol=1e-9)


@given(st.integers(0, 10**6))
def test_label_means_leave_out_the_own_label(seed: int) -> None:
    case, rng = random_case(seed), np.random.default_rng(seed)
    n = case.graph.n_nodes
    nodes = np.sort(rng.permutation(n)[: n // 2])
    y, here = np.zeros(n), np.zeros(n)
    y[nodes], here[nodes] = rng.standard_normal(nodes.size), 1.0
    linked = case.W.sum(axis=1) > 0
    P = np.where(linked[:, None], case.W / np.where(linked, case.W.sum(axis=1), 1.0)[:, None], 0.0)
    counts, P2 = np.maximum((case.W > 0).sum(axis=1), 1), P @ P
    np.fill_diagonal(P2, 0.0)
    expected = [P @ y / (P @ here + 1 / counts), P @ here * counts, P2 @ y / (P2 @ here + 1 / counts)]
    np.testing.assert_allclose(label_means(case.graph, nodes, y[nodes]), np.column_stack(expected), atol=1e-9)


def test_trees_use_neighbours_that_differ() -> None:
    rng, n = np.random.default_rng(6), 500
    side, u, v = rng.integers(0, 2, n), *rng.integers(0, n, (2, 8 * n))
    keep = (side[u] != side[v]) & (u != v)
    graph, X = Graph.from_edges(u[keep], v[keep], n_nodes=n), rng.standard_normal((n, 2))
    y = side + 0.2 * rng.standard_normal(n)
    known = rng.random(n) < 0.4
    model = GraphRegressor().fit(graph, X, np.where(known, y, np.nan))
    assert r2_score(y[~known], model.predict()[~known]) > 0.5
    other = model.predict(ring(40), rng.standard_normal((40, 2)))
    assert np.mean(np.abs(other - 0.5)) < 0.2


@pytest.mark.parametrize("different", [3, 255, 2000])
def test_trees_split_a_column_where_scikit_learn_does(different: int) -> None:
    """Weighted labels, for which scikit-learn would take quantiles of every column in a loop of its own."""
    rng = np.random.default_rng(different)
    X = rng.integers(0, different, (1500, 2)) / 7.0
    z = np.floor(3 * X[:, 0] / X[:, 0].max()) + 0.1 * rng.standard_normal(1500)
    trees = Trees.fit(Observations.of(np.arange(1500), z), X, 0)
    expected = boosted_trees(0).fit(X.astype(np.float32), z.astype(np.float32))
    assert max(len(each) for each in trees.edges) <= 254
    assert np.mean((trees.predict(X) - expected.predict(X)) ** 2) < 0.01 * z.var()


@pytest.mark.parametrize("learner", [Plain, "boosting", 5, LogisticRegression()])
def test_what_is_no_regressor_is_refused(learner: object) -> None:
    graph, X, y = stairs(100, 2)
    with pytest.raises(InvalidInputError, match="learner must be 'auto', None or a regressor"):
        GraphRegressor(learner=learner).fit(graph, X, y)


def test_a_learner_without_features_is_refused() -> None:
    graph, _, y = stairs(100, 2)
    with pytest.raises(InvalidInputError, match="LinearRegression needs features"):
        GraphRegressor(learner=Plain()).fit(graph, None, y)


@pytest.mark.slow
def test_classes_with_a_learner_settle() -> None:
    """What the values of all classes have in common converges slowly, and changes no probability."""
    rng, n = np.random.default_rng(1), 300
    graph, X = Graph.from_knn(rng.random((n, 2)), 6), rng.standard_normal((n, 5))
    score = np.sign(X[:, 0]) * np.abs(X[:, 1]) * np.sign(X[:, 2]) + 0.05 * rng.standard_normal(n)
    classes = np.array(list("abcd"), dtype=object)[np.digitize(score, np.quantile(score, [0.25, 0.5, 0.75]))]
    classes[rng.random(n) > 0.7] = None
    model = GraphClassifier(learner=Plain()).fit(graph, X, classes)
    np.testing.assert_allclose(model.predict_proba().sum(axis=1), 1.0)

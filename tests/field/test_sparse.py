"""The sparse representation against the dense one and against joint Gaussian algebra."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import latent
from families import FAMILIES
from fields import covariance_gap
from graphmrf import Graph
from graphmrf._typing import Floats
from graphmrf.field import TERMS, Design, FieldOptions, Observations, fit_field
from graphmrf.field.dense import DenseField, DensePosterior
from graphmrf.field.precision import GraphPrecisions
from graphmrf.field.search import find_mode
from graphmrf.field.sparse import SparseField, SparsePosterior, SparseSystem, make_columns, pivoted_columns

seeds, orders = st.integers(0, 10**6), st.sampled_from([1, 2, 3])
LINEAR = ("own", "neighbours", "smoothed", "field")
NONLINEAR = ("own", "nonlinear", "field")
SETS = [LINEAR, ("field",), ("own", "time", "field"), ("own", "neighbours"), ("smoothed",), NONLINEAR]
EVERYWHERE = np.arange(16)


def sparse_field(design: Design, observations: Observations, names: tuple[str, ...]) -> SparseField:
    fixed = {"nonlinear.lengths": latent.hyperparameters(design.p)["nonlinear.lengths"]}
    return SparseField.of(design, tuple(TERMS[name] for name in names), observations, fixed)


def both(
    design: Design, observations: Observations, names: tuple[str, ...] = LINEAR, order: float = 1.0
) -> tuple[DensePosterior, SparsePosterior]:
    h = latent.hyperparameters(design.p, order=order)
    dense = DenseField.of(design, tuple(TERMS[name] for name in names), observations)
    return DensePosterior(dense, h), SparsePosterior(SparseSystem(sparse_field(design, observations, names), h))


def check_equal(dense: DensePosterior, sparse: SparsePosterior, n: int) -> None:
    nodes = np.arange(n)
    for found, expected in zip(sparse.moments(nodes), dense.moments(nodes), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-6)
    for name, part in dense.parts(nodes).items():
        np.testing.assert_allclose(sparse.parts(nodes)[name], part, atol=1e-6)
    some, Z = np.array([3, 0, n - 1]), np.random.default_rng(0).standard_normal((3, 2))
    np.testing.assert_allclose(sparse.covariance_times(some, Z), dense.covariance_times(some, Z), atol=1e-6)


@given(seeds, orders)
@settings(max_examples=15)
def test_both_representations_are_equal(seed: int, order: int) -> None:
    _, design, observations = latent.problem(seed)
    check_equal(*both(design, observations, order=order), 16)


@pytest.mark.parametrize("names", SETS[1:5], ids=str)
def test_they_are_equal_for_fewer_terms(names: tuple[str, ...]) -> None:
    _, design, observations = latent.problem(3)
    check_equal(*both(design, observations, names), 16)


@pytest.mark.parametrize("name", ["pieces", "tree", "star", "grid", "expander"])
@pytest.mark.parametrize("order", [1, 2])
def test_they_are_equal_on_graphs_of_known_shape(name: str, order: int) -> None:
    graph, rng = FAMILIES[name], np.random.default_rng(0)
    design = Design.of(graph, rng.standard_normal((graph.n_nodes, 2)))
    observations = Observations.of(np.arange(0, graph.n_nodes, 2), rng.standard_normal((graph.n_nodes + 1) // 2))
    check_equal(*both(design, observations, order=order), graph.n_nodes)


def test_they_are_equal_without_edges_and_without_features() -> None:
    rng, graph = np.random.default_rng(0), Graph.from_edges([], [], n_nodes=9)
    observations = Observations.of(np.arange(5), rng.standard_normal(5))
    check_equal(*both(Design.of(graph, rng.standard_normal((9, 2))), observations), 9)
    check_equal(*both(Design.of(graph, np.zeros((9, 0))), observations, ("field",)), 9)


def test_a_node_may_have_several_observations() -> None:
    _, design, _ = latent.problem(3)
    repeated = Observations.of(np.array([2, 2, 5, 9, 9, 9]), np.array([0.1, 0.4, -1.0, 2.0, 1.5, 1.0]))
    check_equal(*both(design, repeated), 16)
    check_equal(*both(design, repeated.weighted(np.array([1.0, 0.1, 1.0, 2.0, 1.0, 0.5]))), 16)


@given(seeds, orders)
@settings(max_examples=10)
def test_the_misfit_is_the_density_of_the_labels(seed: int, order: int) -> None:
    W, design, observations = latent.problem(seed)
    h = latent.hyperparameters(design.p, order=float(order))
    expected = latent.misfit(latent.prior(LINEAR, W, design, h), observations, h["noise"])
    system = SparseSystem(sparse_field(design, observations, LINEAR), h)
    assert system.misfit == pytest.approx(expected, abs=1e-6)


@given(seeds, st.sampled_from(SETS))
@settings(max_examples=15)
def test_gradients_are_those_of_finite_differences(seed: int, names: tuple[str, ...]) -> None:
    _, design, observations = latent.problem(seed)
    data = sparse_field(design, observations, names)
    x = 0.7 * np.random.default_rng(seed).standard_normal(data.size)
    value, gradient, curvature = data.expand(x)
    assert value == pytest.approx(data.value(x))
    np.testing.assert_allclose(gradient, latent.slopes(data.value, x), atol=5e-3, rtol=1e-3)
    assert np.linalg.eigvalsh(curvature).min() > 0.9


@pytest.mark.parametrize("order", [0.7, 1.5, 2.5])
def test_fractional_orders_are_nearly_those_of_the_eigenvectors(order: float) -> None:
    for seed in range(3):
        _, design, observations = latent.problem(seed)
        dense, sparse = both(design, observations, order=order)
        for found, expected in zip(sparse.moments(EVERYWHERE), dense.moments(EVERYWHERE), strict=True):
            np.testing.assert_allclose(found, expected, atol=0.02)


@pytest.mark.parametrize("order", [1.0, 1.5, 2.0, 2.6])
def test_with_equal_ranges_the_evidence_is_that_of_the_dense_field(order: float) -> None:
    _, design, observations = latent.problem(3)
    sparse = sparse_field(design, observations, ("own", "neighbours", "field"))
    dense = DenseField.of(design, sparse.terms, observations)
    x = latent.with_one_range(sparse.space, 0.5 * np.random.default_rng(0).standard_normal(sparse.size), order)
    P = latent.by_one_range(dense.space, sparse.space)
    z = dense.space.taken_from(sparse.space, x)
    value, gradient, curvature = sparse.expand(x)
    expected = dense.expand(z)
    accuracy = 1e-6 if order == round(order) else 0.02
    assert value - 0.5 * x @ x == pytest.approx(expected[0] - 0.5 * z @ z, abs=accuracy)
    np.testing.assert_allclose(P @ (gradient - x), expected[1] - z, atol=0.05)
    np.testing.assert_allclose(P @ (curvature - np.eye(x.size)) @ P.T, expected[2] - np.eye(z.size), atol=0.05)


def test_from_the_largest_order_on_the_slope_is_none_and_the_curvature_that_of_smaller_orders() -> None:
    _, design, observations = latent.problem(3)
    field = sparse_field(design, observations, ("own", "field"))
    order = list(field.space.names).index("field.order")
    x = 0.3 * np.random.default_rng(0).standard_normal(field.size)

    def at(order_there: float) -> tuple[float, Floats, Floats]:
        there = x.copy()
        there[order] = np.log(order_there) / 0.7
        value, gradient, curvature = field.expand(there)
        np.testing.assert_allclose(gradient, latent.slopes(field.value, there), atol=5e-3, rtol=1e-3)
        return value, gradient - there, curvature

    (_, _, below), (_, slope, above) = at(2.99), at(3.5)
    assert slope[order] == 0.0
    assert below[order, order] > 1.001
    np.testing.assert_allclose(above, below, atol=0.05 * below[order, order])


def test_a_singular_precision_has_no_posterior_density() -> None:
    n = 400
    z = np.sin(np.arange(20.0))
    graph = Graph.from_edges(np.arange(n - 1), np.arange(1, n))
    field = sparse_field(Design.of(graph, np.zeros((n, 0))), Observations.of(np.arange(0, n, 20), z), ("field",))
    x = np.zeros(field.size)
    x[list(field.space.names).index("field.range")] = -9.0
    x[:] = latent.with_one_range(field.space, x, order=3.0)
    assert field.value(x) == field.expand(x)[0] == np.inf
    assert np.isfinite(find_mode(field, np.zeros(field.size)).value)


def nonlinear_prior(data: SparseField, W: Floats, h: dict[str, float]) -> Floats:
    """The covariance with the columns of the nonlinear term in place of its kernel, and what they leave."""
    Phi, left = data.columns["nonlinear"]
    others = latent.prior(("own", "field"), W, data.design, h)
    return np.asarray(others + h["nonlinear"] * (Phi @ Phi.T + np.diag(left)))


@given(seeds)
@settings(max_examples=10)
def test_nonlinear_effects_are_columns_and_what_they_leave(seed: int) -> None:
    W, design, observations = latent.problem(seed)
    h = latent.hyperparameters(design.p)
    data = sparse_field(design, observations, NONLINEAR)
    K = nonlinear_prior(data, W, h)
    mean, covariance = latent.given(K, observations, h["noise"])
    found = SparsePosterior(SparseSystem(data, h)).moments(EVERYWHERE)
    np.testing.assert_allclose(found[0], mean, atol=0.02)
    np.testing.assert_allclose(found[1], np.diag(covariance), atol=0.02)
    assert SparseSystem(data, h).misfit == pytest.approx(latent.misfit(K, observations, h["noise"]), abs=1e-6)
    exact = latent.prior(NONLINEAR, W, design, h)
    np.testing.assert_allclose(found[0], latent.given(exact, observations, h["noise"])[0], atol=0.05)


def iterated(field: SparseField) -> SparseField:
    """The same without a sparse factor."""
    fixed = {**field.fixed, "field.order": np.ones(1)}
    return replace(field, precisions=GraphPrecisions(field.design.graph, 1, max_flops=0.0), fixed=fixed)


def network(n: int, labels: int) -> tuple[Design, Observations]:
    rng = np.random.default_rng(0)
    design = Design.of(Graph.from_edges(*rng.integers(0, n, (2, 3 * n)), n_nodes=n), rng.standard_normal((n, 2)))
    return design, Observations.of(np.sort(rng.choice(n, labels, replace=False)), rng.standard_normal(labels))


@pytest.mark.parametrize("names", [LINEAR, NONLINEAR, ("field",)], ids=str)
@pytest.mark.parametrize(("n", "labels", "gap"), [(60, 14, 0.02), (400, 150, 0.1)])
def test_iteration_agrees_with_the_factor(names: tuple[str, ...], n: int, labels: int, gap: float) -> None:
    field = iterated(sparse_field(*network(n, labels), names))
    factored = replace(field, precisions=GraphPrecisions(field.design.graph, 1))
    x = 0.3 * np.random.default_rng(2).standard_normal(field.size)
    x[list(field.space.names).index("field.range")] = 0.0
    assert field.value(x) == pytest.approx(factored.value(x), abs=0.25 * np.sqrt(n))
    (_, gradient, curvature), (_, expected, information) = field.expand(x), factored.expand(x)
    np.testing.assert_allclose(gradient, expected, atol=0.05 + gap * np.abs(expected).max())
    np.testing.assert_allclose(curvature, information, rtol=0.05, atol=0.02 * np.abs(information).max())
    (mean, variance), moments = field.posterior(x).moments(np.arange(n)), factored.posterior(x).moments(np.arange(n))
    np.testing.assert_allclose(mean, moments[0], atol=0.02)
    np.testing.assert_allclose(variance, moments[1], rtol=0.05)


@given(seeds)
def test_pivoted_columns_are_exact_at_all_pivots(seed: int) -> None:
    Z = np.random.default_rng(seed).standard_normal((30, 2))
    K, among = latent.kernel(Z), np.arange(0, 30, 2)
    Phi, left = pivoted_columns(lambda i: K[i], among, 30)
    np.testing.assert_allclose((Phi @ Phi.T)[np.ix_(among, among)], K[np.ix_(among, among)], atol=2e-2)
    np.testing.assert_allclose(left, 1.0 - (Phi**2).sum(axis=1), atol=1e-9)
    assert left[among].max() < 1e-2
    assert (left >= 0).all()
    repeated, _ = pivoted_columns(lambda i: K[i], np.repeat(among, 3), 30)
    np.testing.assert_array_equal(repeated, Phi)


@pytest.mark.parametrize("names", SETS, ids=str)
def test_draws_have_mean_and_covariance(names: tuple[str, ...]) -> None:
    _, design, observations = latent.problem(4)
    posterior, nodes = both(design, observations, names)[1], np.arange(0, 16, 3)
    draws = posterior.draw(nodes, 20_000, np.random.default_rng(0)) - posterior.moments(nodes)[0]
    assert covariance_gap(draws, posterior.covariance_times(nodes, np.eye(nodes.size))) < 5


def test_other_observations_at_the_same_hyperparameters() -> None:
    _, design, observations = latent.problem(4)
    others = Observations.of(np.array([1, 1, 5]), np.array([0.3, 0.5, -1.0]))
    dense, sparse = both(design, observations)
    check_equal(dense.given(others), sparse.given(others), 16)


@pytest.mark.slow
def test_a_network_without_a_sparse_factor_is_dense_and_a_map_is_not() -> None:
    rng, n = np.random.default_rng(0), 3600
    row, column = np.divmod(np.arange(n), 60)
    right, below = np.flatnonzero(column < 59), np.flatnonzero(row < 59)
    lattice = Graph.from_edges(np.append(right, below), np.append(right + 1, below + 60))
    network = Graph.from_edges(*rng.integers(0, n, (2, 20 * n)), n_nodes=n)
    observations = Observations.of(np.arange(30), rng.standard_normal(30))
    options = FieldOptions(terms=("field",), members=1)
    fields = [fit_field(Design.of(g, np.zeros((n, 0))), observations, options).field for g in (network, lattice)]
    assert [type(field) for field in fields] == [DenseField, SparseField]


def test_of_many_linear_columns_the_leading_ones_stay_and_the_rest_is_variance_of_nodes() -> None:
    rng, n = np.random.default_rng(0), 320
    graph = Graph.from_edges(np.arange(n - 1), np.arange(1, n))
    design = Design.of(graph, rng.standard_normal((n, 300)) * np.linspace(1.0, 0.1, 300))
    Phi, left = make_columns(design, (TERMS["own"],), np.arange(n), {})["own"]
    K = design.own @ design.own.T / 300
    values, vectors = np.linalg.eigh(K)
    best = (vectors[:, -256:] * values[-256:]) @ vectors[:, -256:].T
    np.testing.assert_allclose(Phi @ Phi.T, best, atol=1e-9)
    np.testing.assert_allclose((Phi**2).sum(axis=1) + left, np.diag(K))

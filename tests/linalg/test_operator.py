"""Every operator, on every engine, exact and iterative, against the dense algebra of its matrix."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cases
import oracle
from families import FAMILIES, grid, path
from graphmrf._typing import Floats
from graphmrf.engines import ENGINES
from graphmrf.engines.probes import edge_words, rademacher_from_bits
from graphmrf.errors import ConvergenceError
from graphmrf.graph import Graph
from graphmrf.linalg.dense import Dense
from graphmrf.linalg.limits import Limits
from graphmrf.linalg.operator import WhitenedSystem, edge_noise, incidence, rademacher_block, rademacher_edge_noise
from graphmrf.linalg.precision import NodePrecision, PrecisionBlock
from graphmrf.model.conditional import Conditional

ITERATIVE = Limits(dense_precision=0, dense_variance=0)


@dataclass
class Setting:
    """An operator, its matrix, and the way between its layout and plain columns."""

    operator: Any
    matrix: Floats
    wrap: Callable[[Floats], Floats]
    unwrap: Callable[[Floats], Floats]


def node(graph: Graph, limits: Limits, rng: np.random.Generator) -> Setting:
    omega, d = float(10 ** rng.uniform(-1, 2)), rng.exponential(3.0, graph.n_nodes) * (rng.random(graph.n_nodes) < 0.5)
    matrix = np.eye(graph.n_nodes) + omega * oracle.laplacian(graph.adjacency.toarray()) + np.diag(d)
    return Setting(NodePrecision(graph, omega, d, limits), matrix, np.asarray, np.asarray)


def dense(graph: Graph, limits: Limits, rng: np.random.Generator) -> Setting:
    setting = node(graph, limits, rng)
    return Setting(Dense(setting.matrix), setting.matrix, np.asarray, np.asarray)


def block(graph: Graph, limits: Limits, rng: np.random.Generator) -> Setting:
    n, q = graph.n_nodes, 3
    Z, G = rng.normal(size=(q, q)), rng.normal(size=(q, 2))
    H, C, missing = Z @ Z.T + np.eye(q), G @ G.T, rng.random((n, q)) < 0.6
    gamma = np.kron(np.eye(n), H) + np.kron(oracle.laplacian(graph.adjacency.toarray()), C)
    M = missing.ravel()

    def wrap(B: Floats) -> Floats:
        stack = np.zeros((B.shape[1], n, q))
        stack[:, missing] = B.T
        return stack

    operator = PrecisionBlock(graph, H, C, missing, limits)
    return Setting(operator, gamma[M][:, M], wrap, lambda x: x[..., missing].T)


def attributes(graph: Graph, limits: Limits, rng: np.random.Generator) -> Setting:
    setting, limit = block(graph, limits, rng), limits.dense_variance
    assert isinstance(setting.operator, PrecisionBlock)
    H, C, missing = setting.operator.H, setting.operator.C, setting.operator.missing
    return replace(setting, operator=Conditional(graph, H, C, missing, dense_entries=limit, exact_entries=limit))


MAKERS = {"node": node, "dense": dense, "block": block, "attributes": attributes}
every_operator = pytest.mark.parametrize("name", MAKERS)
every_root = pytest.mark.parametrize("name", ["node", "dense", "attributes"])
every_engine = pytest.mark.parametrize("engine", sorted(ENGINES))
SINGLE = Limits(dense_precision=0, dense_variance=0, single_nodes=0)
every_limit = pytest.mark.parametrize("limits", [Limits(), ITERATIVE, SINGLE], ids=["exact", "iterative", "float32"])


@every_operator
@every_engine
@every_limit
@pytest.mark.parametrize("family", FAMILIES)
def test_products_and_solves_are_those_of_the_matrix(name: str, engine: str, limits: Limits, family: str) -> None:
    rng, graph = np.random.default_rng(1), FAMILIES[family].to(engine)
    setting = MAKERS[name](graph, limits, rng)
    for k in (0, 1, 5):
        B = rng.normal(size=(len(setting.matrix), k))
        moved = setting.unwrap(setting.operator.apply(setting.wrap(B)))
        np.testing.assert_allclose(moved, setting.matrix @ B, atol=1e-9)
        if graph.n_nodes:
            x = setting.unwrap(setting.operator.solve(setting.wrap(B), tolerance=1e-10))
            np.testing.assert_allclose(setting.matrix @ x, B, rtol=0, atol=1e-7)


@every_operator
@given(case=cases.cases(), seed=st.integers(0, 10**6))
def test_iterations_find_what_factors_find(name: str, case: cases.Case, seed: int) -> None:
    exact, found = (MAKERS[name](case.graph, limits, np.random.default_rng(seed)) for limits in (Limits(), ITERATIVE))
    B = np.random.default_rng(seed).normal(size=(len(exact.matrix), 2))
    x = exact.unwrap(found.operator.solve(exact.wrap(B), tolerance=1e-11))
    np.testing.assert_allclose(x, np.linalg.solve(exact.matrix, B), rtol=0, atol=1e-6)


def variances(setting: Setting, probes: int) -> Floats:
    """Variances of all entries, by whichever name the operator has for them."""
    if isinstance(setting.operator, Conditional):
        return setting.unwrap(setting.operator.variance(probes=probes)[0])
    return setting.unwrap(setting.operator.inverse_diagonal(probes=probes, random_state=0))


@every_root
@every_engine
def test_small_operators_have_exact_diagonals_and_determinants(name: str, engine: str) -> None:
    setting = MAKERS[name](FAMILIES["pieces"].to(engine), Limits(), np.random.default_rng(2))
    np.testing.assert_allclose(variances(setting, 1), np.diag(np.linalg.inv(setting.matrix)), rtol=1e-7)
    if name != "attributes":
        determinant = setting.operator.log_determinant(probes=1, random_state=0)
        assert determinant == pytest.approx(np.linalg.slogdet(setting.matrix)[1])


@every_root
@every_engine
@pytest.mark.parametrize("graph", [grid(12), path(150)], ids=["grid", "path"])
def test_probes_come_close_to_diagonals_and_determinants(name: str, engine: str, graph: Graph) -> None:
    setting = MAKERS[name](graph.to(engine), ITERATIVE, np.random.default_rng(2))
    ratio = variances(setting, 200) / np.diag(np.linalg.inv(setting.matrix))
    assert np.sqrt(((ratio - 1.0) ** 2).mean()) < 0.08
    if name != "attributes":
        determinant, expected = setting.operator.log_determinant(probes=100), np.linalg.slogdet(setting.matrix)[1]
        assert determinant == pytest.approx(expected, rel=0.02, abs=0.5)


@every_root
@every_limit
def test_draws_have_the_inverse_as_their_covariance(name: str, limits: Limits) -> None:
    setting = MAKERS[name](Graph.from_edges([0, 1, 2], [1, 2, 0], n_nodes=4), limits, np.random.default_rng(5))
    draws = setting.unwrap(setting.operator.draw(20_000, np.random.default_rng(0), tolerance=1e-6))
    covariance = np.linalg.inv(setting.matrix)
    unit = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    np.testing.assert_allclose(draws @ draws.T / 20_000 / unit, covariance / unit, atol=0.04)


@pytest.mark.parametrize("name", ["node", "block"])
def test_too_few_iterations_raise(name: str) -> None:
    limits = Limits(dense_precision=0, max_iterations=2)
    setting = MAKERS[name](path(60), limits, np.random.default_rng(1))
    B = np.random.default_rng(0).normal(size=(len(setting.matrix), 1))
    with pytest.raises(ConvergenceError, match="relative residual"):
        setting.operator.solve(setting.wrap(B), tolerance=1e-10)


@given(cases.cases())
def test_the_incidence_is_a_root_of_the_laplacian(case: cases.Case) -> None:
    B = incidence(case.graph)
    assert B.shape == (case.graph.n_edges, case.graph.n_nodes)
    np.testing.assert_allclose((B.T @ B).toarray(), oracle.laplacian(case.W), atol=1e-12)


@given(cases.cases(), st.integers(0, 10**6))
def test_edge_noise_is_the_incidence_times_normals_in_chunks_of_any_size(case: cases.Case, seed: int) -> None:
    expected = incidence(case.graph).T @ np.random.default_rng(seed).standard_normal((case.graph.n_edges, 2))
    for at_once in (1, 2**22):
        noise = edge_noise(case.graph, 2, np.random.default_rng(seed), at_once=at_once)
        np.testing.assert_allclose(noise, expected, atol=1e-14)


@given(cases.cases(), st.integers(0, 10**6), st.integers(1, 70))
def test_rademacher_edge_noise_is_the_incidence_times_rademacher_variables(case: cases.Case, seed: int, k: int) -> None:
    u, v = np.nonzero(np.triu(case.W, 1))
    keys = np.random.default_rng(seed).integers(2**64, size=-(-k // 64), dtype=np.uint64)
    signs = np.hstack([rademacher_from_bits(edge_words(key, u, v), 64) for key in keys])[:, :k]
    assert np.isin(signs, [-1.0, 1.0]).all()
    expected = incidence(case.graph).T @ signs
    for small in (10**6, -1):  # by SciPy, and by the compiled kernel
        drawn = rademacher_edge_noise(case.graph, k, np.random.default_rng(seed), small=small)
        np.testing.assert_allclose(drawn, expected, rtol=1e-5, atol=1e-5)


def test_variables_of_edges_are_independent_of_each_other_and_of_the_key() -> None:
    (u, v), keys = np.triu_indices(200, 1), np.array([0, 1, 2**32], dtype=np.uint64)
    signs = np.hstack([rademacher_from_bits(edge_words(key, u, v), 8) for key in keys])
    np.testing.assert_allclose(signs.T @ signs / len(signs), np.eye(24), atol=0.035)  # five standard errors
    by_row = np.zeros((200, 24))
    np.add.at(by_row, u, signs)
    assert abs(np.mean(by_row[:150] ** 2 / np.arange(199, 49, -1)[:, None]) - 1.0) < 0.12  # five, too


def test_rademacher_probes_are_independent() -> None:
    signs = rademacher_block(20_000, 6, np.random.default_rng(0))
    np.testing.assert_allclose(signs.T @ signs / len(signs), np.eye(6), atol=0.03)


def test_conjugate_gradients_take_one_step_for_every_eigenvalue() -> None:
    n, omega = 12, 3.0
    graph, ones = Graph.from_edges(*np.triu_indices(n, 1)), np.ones((n, 1, 1))  # I - N has the eigenvalues 1, -1/11
    tables = ((1.0 + omega) * ones, np.full((1, 1), omega), ones / np.sqrt(1.0 + omega))
    edges = np.sqrt(omega / (1.0 + omega)) * ones
    system = WhitenedSystem(graph.engine, np.arange(n), *tables, edges, 1.0 + 1.0 / omega)
    B = np.random.default_rng(0).normal(size=(n, 5))
    found = system.solve(B, tolerance=1e-10, together=2)
    assert (found.iterations, found.converged) == (2, True)
    np.testing.assert_allclose(found.x, np.linalg.solve(np.eye(n) + omega * graph.N.toarray(), B), atol=1e-10)

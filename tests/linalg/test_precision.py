"""Blocks of the precision against dense algebra, on both engines."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle
from cases import random_case
from graphmrf._typing import Bools, Floats
from graphmrf.errors import ConvergenceError
from graphmrf.graph import Graph
from graphmrf.linalg.limits import Limits
from graphmrf.linalg.precision import NodePrecision, PrecisionBlock


def parameters(rng: np.random.Generator, q: int) -> tuple[Floats, Floats]:
    """H of condition up to 1e5; C diagonal with a zero, coupled of low rank, or coupled."""
    Z = rng.normal(size=(q, q)) * 10.0 ** rng.uniform(-1, 1, q)
    H = np.linalg.inv(Z.T @ Z + 0.01 * np.eye(q))
    G = rng.normal(size=(q, int(rng.integers(1, q + 1))))
    h = 10.0 ** rng.uniform(-1, 2, q) * (rng.random(q) < 0.7)
    return H, np.diag(h) if rng.random() < 0.5 else G @ G.T * 10.0 ** rng.uniform(-1, 2)


def random_block(seed: int, q: int = 3) -> PrecisionBlock:
    rng = np.random.default_rng(seed)
    case = random_case(seed)
    H, C = parameters(rng, q)
    missing = rng.random((len(case.W), q)) < rng.choice([0.2, 0.6, 1.0])
    return PrecisionBlock(case.graph, H, C, missing)


def dense(block: PrecisionBlock) -> Floats:
    """Gamma_MM, entries node by node."""
    M = block.missing.ravel()
    W = block.graph.adjacency.toarray()
    gamma = np.kron(np.eye(len(W)), block.H) + np.kron(oracle.laplacian(W), block.C)
    return np.asarray(gamma[M][:, M])


def on_the_other_engine(block: PrecisionBlock) -> PrecisionBlock:
    return replace(block, graph=block.graph.to("numba"))


seeds = st.integers(0, 10**6)


@given(seeds)
def test_matrix_is_the_block_of_the_precision(seed: int) -> None:
    block = random_block(seed)
    np.testing.assert_allclose(block.matrix.toarray(), dense(block), atol=1e-12 * np.abs(dense(block)).max(initial=1.0))


@given(seeds)
def test_apply_multiplies_by_the_block(seed: int) -> None:
    block = random_block(seed)
    X = np.random.default_rng(seed).normal(size=(2, *block.missing.shape)) * block.missing
    for engine in (block, on_the_other_engine(block)):
        actual = engine.apply(X)
        assert not actual[:, ~block.missing].any()
        np.testing.assert_allclose(actual[:, block.missing], X[:, block.missing] @ dense(block), rtol=1e-9, atol=1e-9)


@given(seeds)
def test_solve_agrees_with_dense_algebra(seed: int) -> None:
    block = random_block(seed)
    B = np.random.default_rng(seed).normal(size=(3, *block.missing.shape))
    gamma = dense(block)
    root = np.linalg.cholesky(gamma).T if block.size else gamma
    for engine in (block, on_the_other_engine(block), replace(block, limits=Limits(single_nodes=0))):
        x = engine.solve(B, tolerance=1e-11)
        assert not x[:, ~block.missing].any()
        expected = np.linalg.solve(gamma, B[:, block.missing].T)
        error = root @ (x[:, block.missing].T - expected)  # the energy norm: no units
        assert np.linalg.norm(error) <= 1e-8 * np.linalg.norm(root @ expected)


@given(seeds)
def test_precondition_inverts_the_diagonal_blocks(seed: int) -> None:
    block = random_block(seed)
    gamma = np.zeros((block.missing.size,) * 2)
    gamma[np.ix_(block.missing.ravel(), block.missing.ravel())] = dense(block)
    R = np.random.default_rng(seed).normal(size=(2, *block.missing.shape)) * block.missing
    Z = block.precondition(R)
    q = block.missing.shape[1]
    for i, M in enumerate(block.missing):
        inverse = np.linalg.inv(gamma[i * q : (i + 1) * q, i * q : (i + 1) * q][np.ix_(M, M)])
        np.testing.assert_allclose(Z[:, i, M], R[:, i, M] @ inverse, rtol=1e-7)
        np.testing.assert_allclose(block.node_variance[i, M], np.diag(inverse), rtol=1e-7)


def test_residual_is_the_true_one_for_a_badly_conditioned_H() -> None:
    """The trap of coupled systems: one step length per column reports convergence long before it is reached."""
    rng = np.random.default_rng(0)
    u, v = rng.integers(0, 300, (2, 900))
    graph = Graph.from_edges(u, v, n_nodes=300)
    units = np.diag([1e-4, 1.0, 1e4])
    H = units @ (np.ones((3, 3)) + 1e-6 * np.eye(3)) @ units
    missing = rng.random((300, 3)) < 0.8
    block = PrecisionBlock(graph, H, units @ np.diag([1e-3, 1.0, 3.0]) @ units, missing, Limits(max_iterations=2000))
    B = rng.normal(size=(4, 300, 3)) @ units * missing
    R = (B - block.apply(block.solve(B, tolerance=1e-9)))[:, missing]
    for r, b in zip(R, B[:, missing], strict=True):
        assert np.linalg.norm(r / _unit(missing, units)) <= 1e-5 * np.linalg.norm(b / _unit(missing, units))


def _unit(missing: Bools, units: Floats) -> Floats:
    return np.broadcast_to(np.diag(units), missing.shape)[missing]


def test_right_hand_sides_do_not_disturb_each_other() -> None:
    block = random_block(3)
    B = np.random.default_rng(0).normal(size=(3, *block.missing.shape))
    B[1] = 0.0
    together = block.solve(B, tolerance=1e-12)
    alone = np.concatenate([block.solve(b[None], tolerance=1e-12) for b in B])
    np.testing.assert_allclose(together, alone, rtol=1e-7, atol=1e-12)
    assert not together[1].any()


def test_nothing_missing_needs_no_iteration() -> None:
    block = random_block(5)
    empty = PrecisionBlock(block.graph, block.H, block.C, np.zeros_like(block.missing), Limits(max_iterations=0))
    assert not empty.solve(np.ones((2, *block.missing.shape))).any()


def test_a_tolerance_out_of_reach_is_an_error() -> None:
    block = random_block(7)
    B = np.random.default_rng(0).normal(size=(1, *block.missing.shape))
    with pytest.raises(ConvergenceError, match="relative residual"):
        block.solve(B, tolerance=1e-30)


DRAWN = Limits(dense_variance=0, dense_precision=0)


def test_draws_come_close_to_the_inverse_without_a_seed() -> None:
    graph, d = random_case(1, n=80).graph, np.arange(80) % 4.0
    exact, drawn = NodePrecision(graph, 5.0, d), NodePrecision(graph, 5.0, d, DRAWN)
    np.testing.assert_allclose(drawn.inverse_diagonal(probes=2000), exact.inverse_diagonal(), rtol=0.05)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_quadratic_forms_and_the_determinant_by_iterating_are_those_of_dense_algebra(seed: int) -> None:
    case, rng = random_case(seed, n=30), np.random.default_rng(seed)
    d, rows, omega = rng.exponential(size=30), np.array([2, 3, 11, 29, 17]), 7.0
    B = np.zeros((30, 4))
    B[rows] = rng.normal(size=(5, 4))
    expected = np.eye(30) + omega * oracle.laplacian(case.W) + np.diag(d)
    units = np.eye(30)  # as probes they tell the trace of the logarithm exactly
    forms, log_determinant = NodePrecision(case.graph, omega, d, DRAWN).quadratic_forms(
        B[rows], rows, units, tolerance=1e-12
    )
    np.testing.assert_allclose(forms, np.einsum("ij,ij->j", B, np.linalg.solve(expected, B)), rtol=1e-9)
    assert log_determinant == pytest.approx(np.linalg.slogdet(expected)[1], rel=1e-9)


@pytest.mark.parametrize("omega", [0.5, 40.0])
def test_iterations_are_bounded_by_the_largest_eigenvalue_of_the_whitened_edges(omega: float) -> None:
    case = random_case(3)
    S = np.eye(len(case.W)) - oracle.laplacian(case.W)
    for d, is_tight in ((0.0, True), (2.0, False)):
        largest = np.linalg.eigvalsh(omega * S / (1.0 + omega + d))[-1]
        sigma = NodePrecision(case.graph, omega, np.full(len(S), d)).system.sigma
        assert 1.0 < sigma <= 1.0 / largest + 1e-12
        assert (sigma == pytest.approx(1.0 / largest)) == is_tight


def test_so_many_right_hand_sides_go_in_one_block_as_memory_allows() -> None:
    block = random_block(3)
    for times, together in ((3.0, 3), (3.9, 3), (0.5, 1)):
        limits = Limits(block_bytes=int(times * 8 * block.missing.size))
        assert replace(block, limits=limits).together == together
    B = np.random.default_rng(0).normal(size=(7, *block.missing.shape))
    few = replace(block, limits=Limits(block_bytes=3 * 8 * block.missing.size))
    np.testing.assert_allclose(few.solve(B), block.solve(B), atol=1e-6 * np.abs(block.solve(B)).max())


@pytest.mark.parametrize("seed", [0, 1])
def test_variances_of_nodes_by_draws_are_those_of_dense_algebra(seed: int) -> None:
    case, d = random_case(seed, n=30), np.random.default_rng(seed).exponential(size=30)
    expected = np.diag(np.linalg.inv(np.eye(30) + 0.5 * oracle.laplacian(case.W) + np.diag(d)))
    found = NodePrecision(case.graph, 0.5, d, DRAWN).inverse_diagonal(probes=600, random_state=seed)
    np.testing.assert_allclose(found, expected, rtol=0.03)


@pytest.mark.parametrize("probes", [1, 17])
def test_variances_of_nodes_are_means_of_as_many_draws(probes: int) -> None:
    case, d, omega = random_case(1, n=30), np.linspace(0.0, 1.0, 30), 3.0
    A = NodePrecision(case.graph, omega, d, DRAWN)
    rng = np.random.default_rng(5)
    noise = np.hstack([A.noise(k, rng, rademacher=True) for k in ([16, 1] if probes > 16 else [probes])])
    x = np.linalg.solve(np.eye(30) + omega * oracle.laplacian(case.W) + np.diag(d), noise)
    told = omega**2 * np.mean((oracle.normalised_adjacency(case.W) @ x) ** 2, axis=1)
    D = 1.0 + omega * (case.W.sum(axis=1) > 0) + d
    np.testing.assert_allclose(A.inverse_diagonal(probes=probes, random_state=5), (1.0 + told / D) / D, rtol=1e-2)

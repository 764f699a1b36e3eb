"""Sparse factors against dense linear algebra."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from graphmrf.linalg.factor import Ordering, SparseFactor

if TYPE_CHECKING:
    from graphmrf._typing import Floats


def _factor(Q: sp.csc_array[Any]) -> SparseFactor:
    factor = SparseFactor.of(Q, Ordering.of(Q))
    assert factor is not None
    return factor


def _laplacian(n: int, u: Any, v: Any) -> sp.csc_array[Any]:
    W = sp.coo_array((np.ones(len(u)), (u, v)), shape=(n, n)).tocsc()
    W = W + W.T
    W.setdiag(0.0)
    W.data[:] = np.minimum(W.data, 1.0)
    return sp.csc_array(sp.diags_array(np.asarray(W.sum(axis=0))) - W)


def _lattice(height: int, width: int) -> sp.csc_array[Any]:
    i = np.arange(height * width).reshape(height, width)
    u, v = np.r_[i[1:].ravel(), i[:, 1:].ravel()], np.r_[i[:-1].ravel(), i[:, :-1].ravel()]
    return _laplacian(height * width, u, v)


def _random_graph(n: int, n_edges: int, seed: int) -> sp.csc_array[Any]:
    rng = np.random.default_rng(seed)
    return _laplacian(n, rng.integers(0, n, n_edges), rng.integers(0, n, n_edges))


def _power(N: sp.csc_array[Any], kappa2: float, nu: int) -> sp.csc_array[Any]:
    n = N.shape[0]
    base = N + kappa2 * sp.eye_array(n)
    Q = base
    for _ in range(nu - 1):
        Q = Q @ base
    return sp.csc_array(Q + 0.1 * sp.eye_array(n))


@st.composite
def precisions(draw: st.DrawFn) -> sp.csc_array[Any]:
    """Precision matrices of graphs, sparse enough to have isolated nodes and several components."""
    n = draw(st.integers(1, 80))
    N = _random_graph(n, draw(st.integers(0, 3 * n)), draw(st.integers(0, 2**32 - 1)))
    return _power(N, draw(st.floats(1e-3, 10.0)), draw(st.integers(1, 3)))


def _agree(actual: Floats, expected: Floats) -> None:
    np.testing.assert_allclose(actual, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())


@pytest.mark.slow
@given(precisions())
def test_factor_agrees_with_dense_algebra(Q: sp.csc_array[Any]) -> None:
    n, factor, inverse = Q.shape[0], _factor(Q), np.linalg.inv(Q.toarray())
    identity = np.eye(n)
    _agree(factor.solve(identity), inverse)
    _agree(factor.draw(identity) @ factor.draw(identity).T, inverse)
    _agree(factor.inverse_diagonal(), np.diag(inverse))
    _agree(factor.inverse_entries().toarray(), inverse * (Q.toarray() != 0))
    assert factor.log_determinant == pytest.approx(np.linalg.slogdet(Q.toarray())[1], rel=1e-9, abs=1e-9)


@given(precisions(), st.integers(0, 2**32 - 1))
def test_any_order_gives_the_same_answers(Q: sp.csc_array[Any], seed: int) -> None:
    n = Q.shape[0]
    order = np.random.default_rng(seed).permutation(n)
    factor = SparseFactor.of(Q, Ordering(order, 0, 0.0))
    assert factor is not None
    _agree(factor.inverse_diagonal(), np.diag(np.linalg.inv(Q.toarray())))
    _agree(factor.solve(np.eye(n)), np.linalg.inv(Q.toarray()))


@given(precisions())
def test_fill_and_flops_are_those_of_symbolic_elimination(Q: sp.csc_array[Any]) -> None:
    ordering = Ordering.of(Q)
    counts = _eliminated_counts(Q.toarray() != 0, ordering)
    assert ordering.fill == counts.sum()
    assert ordering.flops == np.square(counts).sum()
    assert ordering.fill == len(_factor(Q).data) + Q.shape[0]


def _eliminated_counts(pattern: Any, ordering: Ordering) -> Any:
    filled = pattern[np.ix_(ordering.permutation, ordering.permutation)]
    counts = np.zeros(len(filled), int)
    for j in range(len(filled)):
        below = j + 1 + np.flatnonzero(filled[j + 1 :, j])
        counts[j] = 1 + len(below)
        filled[np.ix_(below, below)] = True
    return counts


@given(precisions())
def test_permutation_holds_every_row_once(Q: sp.csc_array[Any]) -> None:
    assert np.array_equal(np.sort(Ordering.of(Q).permutation), np.arange(Q.shape[0]))
    assert np.array_equal(np.sort(Ordering.of(Q, max_flops=0).permutation), np.arange(Q.shape[0]))
    assert np.array_equal(np.sort(Ordering.of(Q, max_flops=Q.nnz**2 / Q.shape[0]).permutation), np.arange(Q.shape[0]))


@pytest.mark.parametrize("nu", [1, 2, 3])
def test_wide_supernodes_of_a_lattice(nu: int) -> None:
    Q = _power(_lattice(35, 30), 0.1, nu)
    factor, inverse = _factor(Q), np.linalg.inv(Q.toarray())
    _agree(factor.inverse_diagonal(), np.diag(inverse))
    _agree(factor.inverse_entries().toarray(), inverse * (Q.toarray() != 0))


def test_dense_matrix_is_one_supernode_wider_than_a_panel() -> None:
    rng = np.random.default_rng(0)
    A = rng.normal(size=(200, 300))
    Q = sp.csc_array(A @ A.T)
    factor = _factor(Q)
    assert Ordering.of(Q).fill == 200 * 201 // 2
    _agree(factor.inverse_entries().toarray(), np.linalg.inv(Q.toarray()))


def test_one_node() -> None:
    factor = _factor(sp.csc_array([[4.0]]))
    assert factor.log_determinant == pytest.approx(np.log(4.0))
    assert factor.solve(np.array([2.0])).tolist() == [0.5]
    assert factor.draw(np.array([2.0])).tolist() == [1.0]
    assert factor.inverse_diagonal().tolist() == [0.25]


def test_no_node() -> None:
    factor = _factor(sp.csc_array((0, 0)))
    assert factor.log_determinant == 0.0
    assert factor.solve(np.zeros(0)).shape == (0,)
    assert factor.draw(np.zeros((0, 3))).shape == (0, 3)
    assert factor.inverse_diagonal().shape == (0,)


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1.0, 1e150, 1e300])
def test_extreme_scales(scale: float) -> None:
    Q = _power(_lattice(6, 5), 0.5, 1)
    factor, inverse = _factor(sp.csc_array(Q * scale)), np.linalg.inv(Q.toarray())
    expected = np.linalg.slogdet(Q.toarray())[1] + 30 * np.log(scale)
    assert factor.log_determinant == pytest.approx(expected)
    _agree(factor.inverse_diagonal() * scale, np.diag(inverse))
    _agree(factor.solve(np.full(30, scale)), inverse.sum(axis=1))


def test_diagonal_of_extreme_range() -> None:
    d = np.array([1e-300, 1.0, 1e300, 1e-10])
    factor = _factor(sp.csc_array(sp.diags_array(d)))
    np.testing.assert_allclose(factor.inverse_diagonal(), 1 / d)
    np.testing.assert_allclose(factor.draw(np.ones(4)), 1 / np.sqrt(d))
    assert factor.log_determinant == pytest.approx(np.log(d).sum())


@pytest.mark.parametrize(
    "Q",
    [
        [[1.0, 2.0], [2.0, 1.0]],
        [[0.0, 1.0], [1.0, 0.0]],
        [[-1.0, 0.0], [0.0, 1.0]],
        [[1.0, 0.0], [0.0, 0.0]],
        [[1.0, 1.0], [1.0, 1.0]],
        [[0.0]],
    ],
)
def test_no_factor_unless_positive_definite(Q: list[list[float]]) -> None:
    matrix = sp.csc_array(np.array(Q))
    assert SparseFactor.of(matrix, Ordering.of(matrix)) is None


def test_no_factor_of_an_indefinite_lattice() -> None:
    Q = sp.csc_array(_lattice(20, 20) - 0.5 * sp.eye_array(400))
    assert SparseFactor.of(Q, Ordering.of(Q)) is None


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_no_factor_of_values_that_are_not_finite(value: float) -> None:
    Q = _power(_lattice(5, 5), 0.1, 1)
    Q.data[3] = value
    assert SparseFactor.of(Q, Ordering.of(Q)) is None


def test_stored_zeros_belong_to_the_pattern() -> None:
    Q, pattern = _power(_lattice(8, 8), 0.1, 1).toarray(), _power(_lattice(8, 8), 0.1, 2)
    rows, columns = pattern.indices, np.repeat(np.arange(64), np.diff(pattern.indptr))
    entries = _factor(sp.csc_array((Q[rows, columns], rows, pattern.indptr), shape=(64, 64))).inverse_entries()
    assert entries.nnz == pattern.nnz
    _agree(entries.toarray(), np.linalg.inv(Q) * (pattern.toarray() != 0))


def test_one_ordering_serves_all_values() -> None:
    N = _lattice(9, 7)
    ordering = Ordering.of(_power(N, 1.0, 2))
    for kappa2 in (1e-3, 0.1, 10.0):
        Q = _power(N, kappa2, 2)
        factor = SparseFactor.of(Q, ordering)
        assert factor is not None
        _agree(factor.solve(np.eye(63)), np.linalg.inv(Q.toarray()))


def test_rows_columns_and_matrix_classes_are_all_the_same() -> None:
    Q = _power(_lattice(6, 6), 0.1, 2)
    ordering = Ordering.of(Q)
    expected = _factor(Q).inverse_diagonal()
    long = sp.csc_array((Q.data, Q.indices.astype(np.int64), Q.indptr.astype(np.int64)), shape=Q.shape)
    for other in (sp.csr_array(Q), sp.csr_matrix(Q), sp.csc_matrix(Q), long):
        assert np.array_equal(Ordering.of(other).permutation, ordering.permutation)
        factor = SparseFactor.of(other, ordering)
        assert factor is not None
        _agree(factor.inverse_diagonal(), expected)


def test_inputs_stay_as_they_are() -> None:
    Q, b = _power(_lattice(6, 6), 0.1, 2), np.arange(36.0)
    Q_before, b_before = Q.copy(), b.copy()
    factor = _factor(Q)
    factor.solve(b)
    factor.draw(b)
    factor.inverse_entries().data[:] = 0.0
    assert np.array_equal(b, b_before)
    assert np.array_equal(Q.indices, Q_before.indices)
    assert np.array_equal(Q.data, Q_before.data)


def test_single_precision_and_integers_are_solved_in_double() -> None:
    Q = _power(_lattice(4, 4), 0.1, 1)
    expected = np.linalg.inv(Q.toarray()).sum(axis=1)
    _agree(_factor(Q).solve(np.ones(16, dtype=np.int64)), expected)
    _agree(_factor(Q).solve(np.ones(16, dtype=np.float32)), expected)
    single = Q.astype(np.float32)
    np.testing.assert_allclose(
        _factor(single).inverse_diagonal(), np.diag(np.linalg.inv(single.toarray().astype(float)))
    )
    whole = sp.csc_array(_lattice(4, 4) + sp.eye_array(16)).astype(np.int64)
    _agree(_factor(whole).inverse_diagonal(), np.diag(np.linalg.inv(whole.toarray())))


def test_fill_of_an_expander_is_counted_without_a_factor() -> None:
    N = _random_graph(20_000, 100_000, seed=0)
    Ordering.of(_lattice(10, 10))  # compiled
    start = time.process_time()
    ordering = Ordering.of(N)
    assert ordering.fill > 1e7
    assert ordering.flops > 1e11
    assert time.process_time() - start < 3.0


def test_pattern_beyond_the_limit_is_not_ordered_but_counted() -> None:
    Q = _power(_random_graph(60, 200, seed=1), 0.1, 2)
    ordering = Ordering.of(Q, max_flops=10)
    counts = _eliminated_counts(Q.toarray() != 0, ordering)
    assert (ordering.fill, ordering.flops) == (counts.sum(), np.square(counts).sum())


@pytest.mark.parametrize("max_flops", [np.inf, 1e5])
def test_a_tree_has_no_fill(max_flops: float) -> None:
    rng, n = np.random.default_rng(0), 3000
    N = _laplacian(n, np.arange(1, n), (rng.random(n - 1) * np.arange(1, n)).astype(int))
    assert Ordering.of(N, max_flops=max_flops).fill == 2 * n - 1


def test_nested_dissection_of_a_lattice_fills_in_little() -> None:
    N = _lattice(60, 60)
    natural = _eliminated_counts(N.toarray() != 0, Ordering(np.arange(3600), 0, 0.0)).sum()
    assert Ordering.of(N).fill < natural / 3

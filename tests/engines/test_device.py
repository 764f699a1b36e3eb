"""Arrays on a device against NumPy: the same functions, operators, views and assignments."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from graphmrf.engines.device import DeviceArray
from graphmrf.errors import InvalidInputError

# ruff: noqa: ARG005 - all formulas take the same arguments

RNG = np.random.default_rng(0)
A, B, V = RNG.random((4, 4)), RNG.random((4, 4)), RNG.random(4)
ROWS, SOME = np.array([2, 0]), np.array([True, False, True, True])


def placed(array: Any) -> Any:
    return DeviceArray.of(array, "cpu")


@pytest.mark.parametrize(
    "formula",
    [
        lambda A, B, v: 2.0 * A - B / 3.0 + 1.0,
        lambda A, B, v: v @ A @ B @ v,
        lambda A, B, v: v[:, None] * A * v,
        lambda A, B, v: np.exp(-A) * A**-0.5 + np.sqrt(B) - np.log(A) + np.maximum(A, 0.5) + np.minimum(B, 0.2),
        lambda A, B, v: 1.0 / A + np.square(B) + abs(A - B),
        lambda A, B, v: np.einsum("ij,ij->i", A, B),
        lambda A, B, v: np.hstack([A, B, v[:, None]]),
        lambda A, B, v: np.column_stack([v, A]),
        lambda A, B, v: np.concatenate([A, B], axis=1) @ np.stack([A, B]).reshape(8, 4),
        lambda A, B, v: np.tensordot(v, A, axes=1) + np.dot(v, B) + np.vdot(A, B),
        lambda A, B, v: A[ROWS] + A[np.ix_(ROWS, ROWS)].sum() + B[ROWS, :][:, SOME].sum(axis=1)[:, None],
        lambda A, B, v: A.T[1:3, ::2].ravel().mean() + B.mean(axis=0),
        lambda A, B, v: np.linalg.inv(A @ A.T + np.eye(4)) + np.tril(A) + np.diag(np.diag(B)),
        lambda A, B, v: np.linalg.eigh(A @ A.T)[0],
        lambda A, B, v: np.sum([A, B], axis=0) + np.sum(A, axis=0) + np.sum(B),
        lambda A, B, v: np.cos(A) + np.median(B) + (A > 0.5),  # by way of the host
        lambda A, B, v: np.add.reduce(A) + np.clip(B, 0.2, 0.4),
    ],
)
def test_formulas_are_those_of_numpy(formula: Callable[..., Any]) -> None:
    expected = formula(A, B, V)
    for arguments in [(placed(A), placed(B), V), (placed(A), B, placed(V)), (A, placed(B), placed(V))]:
        np.testing.assert_allclose(np.asarray(formula(*arguments)), expected, rtol=1e-12)


def test_results_can_be_written_into_arrays_of_either_place() -> None:
    there, here = placed(np.zeros((4, 4))), np.zeros((4, 4))
    for out in (there, here):
        np.matmul(A, placed(B), out=out)
        np.testing.assert_allclose(np.asarray(out), A @ B)
        np.multiply.outer(V, placed(V), out=out)
        np.testing.assert_allclose(np.asarray(out), np.outer(V, V))
        out[1:3] += placed(A)[1:3]
        out[:, 1] = V
        out[ROWS] -= 1.0
        np.multiply(out, 2.0, out=out)
    np.testing.assert_allclose(np.asarray(there), here)
    np.dot(V, placed(A), out=there[0])
    np.testing.assert_allclose(np.asarray(there[0]), V @ A)


def test_factors_solve_and_invert() -> None:
    K = A @ A.T + np.eye(4)
    R = placed(K).cholesky()
    assert R is not None
    np.testing.assert_allclose(np.asarray(R.T @ R), K)
    np.testing.assert_allclose(np.asarray(R.solve_factored(placed(B))), np.linalg.solve(K, B))
    np.testing.assert_allclose(np.asarray(R.solve_triangular(placed(B))), np.linalg.solve(np.asarray(R).T, B))
    np.testing.assert_allclose(np.asarray(R.inverse_factored()), np.linalg.inv(K))
    assert placed(-K).cholesky() is None


def test_what_does_not_fit_is_refused_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(torch, "empty", full)
    with pytest.raises(InvalidInputError, match=r'8\.0 GB more do not; use GraphRegressor\(solver="sparse"\)'):
        placed(A).empty(10**9)


def test_a_pickle_holds_a_plain_array() -> None:
    kept = pickle.loads(pickle.dumps(placed(A)))
    assert isinstance(kept, np.ndarray)
    np.testing.assert_array_equal(kept, A)
    assert placed(A).shape == (4, 4)
    assert (placed(A).size, placed(A).ndim, len(placed(A))) == (16, 2, 4)
    assert placed(V).tolist() == V.tolist()

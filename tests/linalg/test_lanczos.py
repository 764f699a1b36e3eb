from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eigh_tridiagonal

import cases
import oracle
from families import FAMILIES
from graphmrf._typing import Bools, Floats
from graphmrf.engines import ENGINES, Engine
from graphmrf.graph import Graph
from graphmrf.linalg.multishift import inverse, jacobi_eigen, lanczos

every_engine = pytest.mark.parametrize("kind", sorted(ENGINES))


def build(kind: str, graph: Graph) -> Engine:
    return graph.to(kind).engine


def run(engine: Engine, B: Floats, allowed: Bools | None, steps: int) -> tuple[Floats, Floats, Floats]:
    """The unit vectors (steps, n, k) and the coefficients a and b (steps, k)."""
    k, start = B.shape[1], engine.load(B)
    vectors, a, b = [], [], []
    for vector, scale, diagonal, beside in islice(lanczos(engine, start, engine.mask(allowed, start.shape[1])), steps):
        vectors.append(engine.unload(vector, k) * scale[:k])
        a.append(diagonal[:k])
        b.append(beside[:k])
    return np.stack(vectors), np.stack(a), np.stack(b)


@every_engine
@settings(max_examples=10)
@given(case=cases.cases(), seed=st.integers(0, 10**6))
def test_the_recurrence_tridiagonalises_the_masked_operator(kind: str, case: cases.Case, seed: int) -> None:
    rng, n, k = np.random.default_rng(seed), len(case.W), 3
    allowed = rng.random((n, k)) < 0.8
    B = rng.normal(size=(n, k)) * allowed
    vectors, a, b = run(build(kind, case.graph), B, allowed, 4)
    for c in np.flatnonzero(b[:3].min(axis=0) > 1e-6):
        V = vectors[:, :, c]
        M = np.diag(allowed[:, c].astype(float))
        T = V @ M @ (np.eye(n) - oracle.laplacian(case.W)) @ M @ V.T
        np.testing.assert_allclose(V @ V.T, np.eye(4), atol=1e-7)
        np.testing.assert_allclose(T, np.diag(a[:, c]) + np.diag(b[:3, c], 1) + np.diag(b[:3, c], -1), atol=1e-7)


@every_engine
def test_a_column_with_an_exhausted_space_goes_on_with_zeros(kind: str) -> None:
    graph = Graph.from_edges([0], [1], n_nodes=3)
    vectors, a, b = run(build(kind, graph), np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 5.0]]), None, 5)
    np.testing.assert_allclose(b[0], [1.0, 0.0, 0.0], atol=1e-15)
    assert not b[2:, 0].any()
    assert not vectors[2:, :, 0].any()
    assert a[0].tolist() == pytest.approx([0.0, 1.0, 1.0])
    assert np.isfinite(vectors).all()


@every_engine
def test_zero_columns_stay_zero(kind: str) -> None:
    vectors, a, b = run(build(kind, FAMILIES["grid"]), np.zeros((36, 2)), None, 3)
    assert not vectors.any()
    assert not a.any()
    assert not b.any()


def test_both_engines_take_the_same_steps() -> None:
    graph, B = FAMILIES["pieces"], np.random.default_rng(0).normal(size=(27, 5))
    plain, compiled = (run(build(kind, graph), B, None, 6) for kind in ("scipy", "numba"))
    for one, other in zip(plain, compiled, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


def test_the_inverse_of_zero_is_zero() -> None:
    assert inverse(np.array([0.0, 2.0, 4.0])).tolist() == [0.0, 0.5, 0.25]


def test_where_the_quick_method_of_lapack_fails_the_slow_one_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(a: Floats, b: Floats, lapack_driver: Any = "auto") -> Any:
        if lapack_driver == "auto":
            raise np.linalg.LinAlgError("stemr did not converge")
        return eigh_tridiagonal(a, b, lapack_driver=lapack_driver)

    monkeypatch.setattr("graphmrf.linalg.multishift.eigh_tridiagonal", fails)
    a, b = np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.25])
    values, vectors = jacobi_eigen(a, b)
    np.testing.assert_allclose((vectors * values) @ vectors.T, np.diag(a) + np.diag(b, 1) + np.diag(b, -1), atol=1e-12)

"""A new engine is one class and one row: dense NumPy in under 60 lines, and everything runs on it."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphmrf as gm
from cases import check_model_on, random_case
from graphmrf.engines import ENGINES, Engine


class ToyEngine(Engine):
    """Products by the dense matrix I - N; blocks are arrays (n, k), windows are pairs of values and rows."""

    def __init__(self, indptr: Any, indices: Any, weights: Any, degrees: Any) -> None:
        self.n, self.S, self.products = degrees.size, np.diag((degrees == 0).astype(float)), 0
        i, values = np.repeat(np.arange(self.n), np.diff(indptr)), 1.0 if weights is None else weights
        self.S[i, indices] = values / np.sqrt(degrees[i] * degrees[indices])

    def spread(self, X: Any, rows: Any, fill: float) -> Any:
        whole = np.full((self.n, X.shape[1]), fill)
        whole[rows] = X
        return whole

    def load(self, X: Any, rows: Any = None) -> Any:
        return np.array(X) if rows is None else self.spread(X, rows, 0.0)

    def unload(self, V: Any, k: int, rows: Any = None) -> Any:
        return V[:, :k] if rows is None else V[rows, :k]

    def zeros(self, k: int, dtype: Any = np.float64) -> Any:
        return np.zeros((self.n, k), dtype)

    def like(self, V: Any) -> Any:
        return np.zeros_like(V)

    def mask(self, allowed: Any, width: int, rows: Any = None) -> Any:
        if allowed is None or rows is None:
            return np.ones((1, width)) if allowed is None else allowed
        return self.spread(allowed, rows, 1.0)

    def advance(self, V: Any, scale: Any, previous: Any, back: Any, mask: Any, out: Any) -> Any:
        out[:] = mask * (self.S @ (V * scale) - previous * back)
        self.products += 1
        return (V * scale * out).sum(axis=0, dtype=float)

    def subtract(self, out: Any, coefficient: Any, V: Any) -> Any:
        out -= (V * coefficient).astype(V.dtype)
        return (out.astype(float) ** 2).sum(axis=0)

    def mix(self, V: Any, tables: Any, kinds: Any, minus: Any, out: Any) -> None:
        mixed = V.reshape(self.n, -1, tables.shape[1]) @ tables[kinds]
        out[:] = mixed.reshape(out.shape) - (0.0 if minus is None else minus)

    def window(self, k: int, slots: int, rows: Any, dtype: Any = np.float64) -> Any:
        return np.zeros((k, slots, self.n if rows is None else len(rows)), dtype), rows

    def store(self, V: Any, window: Any, slot: int) -> None:
        window[0][:, slot] = (V if window[1] is None else V[window[1]]).T[: len(window[0])]

    def restore(self, window: Any, slot: int, out: Any) -> None:
        np.copyto(out, window[0][:, slot].T)

    def read(self, window: Any) -> Any:
        return window[0]

    def combine(self, window: Any, coefficients: Any, out: Any, keep: Any = None) -> None:
        out[0][:] *= 1.0 if keep is None else keep[:, :, None]
        out[0][:] += coefficients @ window[0][:, : coefficients.shape[2]]


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    ENGINES["toy"] = ToyEngine
    yield
    del ENGINES["toy"]


def test_a_regression_runs_on_a_new_engine() -> None:
    case = random_case(4, n=80, p=3, labelled=50)
    graphs = case.graph, case.graph.to("toy")
    expected, found = (gm.LinearGraphConvolution().fit(graph, case.X, case.y) for graph in graphs)
    assert found.alpha_ == expected.alpha_
    np.testing.assert_allclose(found.predict(), expected.predict(), rtol=1e-8)
    toy = graphs[1].engine
    assert isinstance(toy, ToyEngine)
    assert toy.products > 10


def test_a_model_draws_and_conditions_on_a_new_engine() -> None:
    toy = check_model_on("toy").engine
    assert isinstance(toy, ToyEngine)
    assert toy.products > 10

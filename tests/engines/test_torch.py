"""The CUDA engine: estimators and models run on it unchanged, its memory is planned, its absence is told."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

import graphmrf as gm
from cases import check_model_on, random_case
from graphmrf import engines
from graphmrf._typing import Floats
from graphmrf.engines.torch import TorchEngine
from graphmrf.errors import InvalidInputError, MissingExtraError
from graphmrf.linalg.multishift import ShiftedSystems

ON_CPU = partial(TorchEngine, device="cpu")


@pytest.mark.parametrize(
    "make",
    [gm.LinearGraphConvolution, gm.LabelPropagation, lambda: gm.ResidualPropagation(gm.LinearGraphConvolution())],
)
def test_estimators_run_on_it(make: Any) -> None:
    case = random_case(4, n=80, p=3, labelled=50)
    expected, found = (make().fit(graph, case.X, case.y) for graph in (case.graph, case.graph.to("cuda")))
    assert found.alpha_ == expected.alpha_
    np.testing.assert_allclose(found.predict(), expected.predict(), rtol=1e-7)


def test_a_model_draws_and_conditions_on_it() -> None:
    check_model_on("cuda")


class Loading(TorchEngine):
    """An engine that notes how many columns are loaded."""

    loaded: list[int]

    def load(self, X: Floats, rows: Any = None) -> Any:
        self.loaded.append(X.shape[1])
        return super().load(X, rows)


def test_what_does_not_fit_is_solved_in_column_tiles_or_refused() -> None:
    case = random_case(1, n=30)
    arrays = (case.graph.indptr, case.graph.indices, case.graph.weights, case.graph.degrees)
    B, sigma = np.random.default_rng(0).normal(size=(30, 7)), np.array([[1.5], [2.0]])
    expected = ShiftedSystems(ON_CPU(*arrays), sigma).solve(B, tolerance=1e-10).x
    for columns, widths in [(1, [1] * 7), (3, [3, 3, 1])]:
        engine, loaded = Loading(*arrays, device="cpu", memory=columns * 30 * (8 * 14 + 1) + 1), list[int]()
        engine.loaded = loaded
        found = ShiftedSystems(engine, sigma).solve(B, tolerance=1e-10).x
        np.testing.assert_allclose(found, expected, atol=1e-9)
        assert loaded[::2] == widths
    with pytest.raises(InvalidInputError, match="one column of the solve must fit in the memory of the GPU"):
        ShiftedSystems(ON_CPU(*arrays, memory=3300.0), sigma).solve(B, tolerance=1e-10)
    with pytest.raises(InvalidInputError, match=r'the graph must fit in .* use engine="numba"'):
        ON_CPU(*arrays, memory=100.0)


def test_asked_for_and_absent_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_case(1).graph.to("cuda")
    monkeypatch.setitem(engines.ENGINES, "cuda", engines.build_cuda)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InvalidInputError, match=r'needs an NVIDIA GPU .* pip install "graphmrf\[gpu\]"'):
        _ = graph.engine
    monkeypatch.setattr(engines, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r'pip install "graphmrf\[gpu\]"'):
        _ = graph.engine


def test_auto_takes_a_gpu_that_is_there_for_a_graph_that_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "gpu_present", lambda: True)
    graph = random_case(1).graph
    arrays = (graph.indptr, graph.indices, graph.weights, graph.degrees)
    assert isinstance(engines.build_engine("auto", *arrays, small=1, large=graph.n_edges), TorchEngine)
    assert not isinstance(engines.build_engine("auto", *arrays, large=graph.n_edges), TorchEngine)
    assert not isinstance(engines.build_engine("auto", *arrays, small=1, large=graph.n_edges + 1), TorchEngine)


def test_without_a_driver_there_is_no_gpu() -> None:
    assert engines.gpu_present() == torch.cuda.is_available()

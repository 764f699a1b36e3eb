"""The paper's preprocessing against its definition."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from graphmrf.datasets import Attribute, Dataset, Info, load, paper
from graphmrf.errors import InvalidInputError
from graphmrf.graph import Graph
from graphmrf_paper.attributes import component_scores, z_scores

pytestmark = pytest.mark.slow


def dataset(name: str, **columns: list[float]) -> Dataset:
    n = len(next(iter(columns.values())))
    attributes = tuple(Attribute(column, "", "") for column in columns)
    info = Info(name, "A path", n, n - 1, attributes, (), "", "")
    graph = Graph.from_edges(range(n - 1), range(1, n))
    return Dataset(graph, pd.DataFrame({"node": range(n), "code": "x", **columns}), info)


def test_filled_with_the_mean_then_standardised() -> None:
    values = paper(dataset("us-2016", income=[1, np.nan, 3, 8], birth=[5, 5, 5, 5]))
    assert list(values.columns) == ["income", "birth"]
    filled = np.array([1, 4, 3, 8])
    np.testing.assert_allclose(values["income"], (filled - 4) / np.sqrt((9 + 0 + 1 + 16) / 3))
    assert values["birth"].tolist() == [0, 0, 0, 0]


def test_a_constant_with_rounding_is_still_constant() -> None:
    np.testing.assert_array_equal(z_scores(np.full((3, 1), 0.1)) == 0, True)


def test_a_column_without_values() -> None:
    with pytest.raises(InvalidInputError, match="'income' has no value at any node"):
        paper(dataset("us-2016", income=[np.nan, np.nan]))


def test_synthetic_values_stay() -> None:
    data = dataset("synthetic-paper-h1", a1=[1, 2, 4])
    assert paper(data)["a1"].tolist() == [1, 2, 4]


def test_scores_are_those_of_a_dense_decomposition() -> None:
    X = (np.random.default_rng(1).random((30, 12)) < 0.3).astype(float)
    _, _, Vt = np.linalg.svd(X, full_matrices=False)
    V = Vt[:5].T
    expected = X @ (V * np.sign(V.sum(axis=0)))
    np.testing.assert_allclose(component_scores(sparse.csr_array(X), 5), expected - expected.mean(axis=0), atol=1e-10)


def test_twitch_has_65_features_and_the_outcome(raw_data: Path, cache: Path) -> None:
    data = load("twitch-ptbr", data_dir=raw_data, cache_dir=cache)
    values = paper(data)
    assert list(values.columns[[0, 63, 64, 65]]) == ["component_1", "component_64", "root_degree", "days"]
    assert values.shape == (1912, 66)
    np.testing.assert_allclose(values.mean(), 0, atol=1e-10)
    np.testing.assert_allclose(values[["root_degree", "days"]].std(), 1)
    spread = values.iloc[:, :64].std()
    assert spread.iloc[0] > spread.iloc[63]
    root = np.sqrt(data.graph.degrees)
    np.testing.assert_allclose(values["root_degree"], (root - root.mean()) / root.std(ddof=1))

"""Edges in files that are no tables, beside other readers of them."""

from pathlib import Path
from typing import Literal, get_args

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import graphmrf as gm
from graphmrf.datasets.edge_files import name_words, read_edge_file

Symmetry = Literal["general", "symmetric"]
Field = Literal["real", "integer", "pattern"]


@given(st.integers(1, 12), st.sampled_from(get_args(Symmetry)), st.sampled_from(get_args(Field)))
def test_a_matrix_market_file_holds_what_scipy_wrote(
    tmp_path_factory: pytest.TempPathFactory, n: int, symmetry: Symmetry, field: Field
) -> None:
    rng = np.random.default_rng(n)
    upper = np.triu(rng.integers(0, 4, (n, n)), 1) * (1 if field == "integer" else rng.random((n, n)))
    W = upper + upper.T
    path = tmp_path_factory.mktemp("matrix") / "W.mtx"
    scipy.io.mmwrite(path, sp.coo_array(W), field=field, symmetry=symmetry, precision=17)
    read = read_edge_file(path)
    u, v = (np.asarray(read.columns[end].to_numpy()) - 1 for end in ("source", "target"))
    weights = read.columns["weight"].to_numpy() if "weight" in read.columns else np.ones(u.size)
    actual = sp.coo_array((weights, (u, v)), (n, n)).toarray()
    actual = np.maximum(actual, actual.T)
    assert read.size == n
    np.testing.assert_array_equal(actual, W != 0 if field == "pattern" else W)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "first line"),
        ("%%MatrixMarket vector coordinate real general\n2 2 1\n1 2 1\n", "first line"),
        ("%%MatrixMarket matrix coordinate real general\n", "cannot be read as .mtx"),
        ("%%MatrixMarket matrix coordinate real general\n2 2\n1 2 1\n", "cannot be read as .mtx"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 1\n", "expected 2 lines of 3 numbers, got 1 of 3"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2\n", "expected 1 lines of 3 numbers, got 1 of 2"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 1\n2 1\n", "cannot be read as .mtx"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 3 1\n", "entry 1: row and column must be whole"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1.5 1\n", "from 1 to 2"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\nnan 1 1\n", "from 1 to 2"),
        ("%%MatrixMarket matrix coordinate real general\n2 3 1\n1 2 1\n", "square matrix"),
        ("%%MatrixMarket matrix array real general\n2 2\n0\n1\n1\n0\n", "save a sparse matrix"),
        (f"%%MatrixMarket matrix coordinate real general\n{'9' * 5000} 2 1\n1 2 1\n", "cannot be read as .mtx"),
    ],
)
def test_a_damaged_matrix_market_file_is_refused(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "W.mtx"
    path.write_text(text)
    with pytest.raises(gm.errors.InvalidInputError, match=told):
        read_edge_file(path)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12), st.sampled_from([1, 3, 900]))
def test_ids_that_are_numbers_give_the_graph_that_their_texts_give(edges: list[tuple[int, int]], spread: int) -> None:
    ids = spread * np.random.default_rng(0).permutation(6) - 2  # one after the other, in a table, and in a hash table
    ends = pd.DataFrame({"source": ids[[u for u, _ in edges]], "target": ids[[v for _, v in edges]].astype(np.int32)})
    nodes = pd.DataFrame({"id": ids, "x": np.arange(6.0)})
    numbers = gm.read(nodes=nodes, edges=ends)
    texts = gm.read(nodes=nodes.astype({"id": str}), edges=ends.astype(str))
    assert numbers.graph.with_ids(None) == texts.graph.with_ids(None)
    assert numbers.graph.notes == texts.graph.notes


@pytest.mark.parametrize("stray", [7, -1, 2**40])
def test_a_number_that_is_no_id_is_named(stray: int) -> None:
    nodes, edges = pd.DataFrame({"id": [0, 1, 2]}), pd.DataFrame({"source": [0, 1], "target": [1, stray]})
    with pytest.raises(gm.errors.InvalidInputError, match=rf"row 2, column target: node '{stray}' is not in"):
        gm.read(nodes=nodes, edges=edges)


def test_names_of_columns_are_split_into_words() -> None:
    assert [name_words(name) for name in ("travelTime_min", "GEOID10")] == [["travel", "time", "min"], ["geoid"]]

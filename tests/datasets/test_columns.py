"""Columns to features and attributes: each treatment and the line that tells it."""

import numpy as np
import pandas as pd
import pytest

from graphmrf.datasets import AttributedGraph, attributes, features
from graphmrf.datasets.columns import is_dates
from graphmrf.errors import InvalidInputError
from graphmrf.graph import Graph


def attributed(**columns: object) -> AttributedGraph:
    frame = pd.DataFrame({"id": range(6), **columns})
    return AttributedGraph(Graph.from_edges(range(5), range(1, 6)), frame, "id")


def test_rows_are_named_by_ids_that_look_like_other_rows() -> None:
    frame = pd.DataFrame({"id": [2, 0, 1], "age": [1.0, 2.0, 4.0]})
    table = AttributedGraph(Graph.from_edges([0, 1], [1, 2]), frame, "id")
    for made in (features(table).X, attributes(table).A):
        np.testing.assert_array_equal(table.graph.align(made)["age"], [1.0, 2.0, 4.0])


def test_the_id_the_targets_and_ignored_columns_are_no_features() -> None:
    table = attributed(a=range(6), b=range(6), c=range(6), d=range(6))
    assert list(features(table, targets=["a", "b"], ignore=["c"]).X.columns) == ["d"]


def test_numbers_and_booleans_become_floats() -> None:
    made = features(attributed(a=range(6), b=[True, False] * 3))
    assert made.X.dtypes.tolist() == [np.float64, np.float64]
    assert made.X["b"].tolist() == [1, 0, 1, 0, 1, 0]
    assert made.notes == ()


def test_missing_numbers_become_the_mean_and_are_told() -> None:
    made = features(attributed(a=[1, np.nan, 3, 5, np.nan, 7]))
    assert made.X["a"].tolist() == [1, 4, 3, 5, 4, 7]
    assert made.notes == ("filled missing cells with the column mean: 'a' (2 cells)",)


def test_constants_are_dropped_and_told() -> None:
    nan = np.nan
    made = features(attributed(a=[2] * 6, b=["u"] * 6, c=[nan] * 6, d=[2, nan, 2, 2, 2, 2], e=range(6)))
    assert list(made.X.columns) == ["e"]
    assert made.notes == ("ignored 'a', 'b', 'c', 'd': a single value",)


def test_text_is_one_hot_encoded_against_its_first_level() -> None:
    made = features(attributed(side=["s", "n", None, "n", "s", "s"]))
    assert made.X.to_dict("list") == {"side=n": [0, 1, 0, 1, 0, 0], "side=s": [1, 0, 0, 0, 1, 1]}
    assert made.notes == ("one-hot encoded: 'side' (3 levels, one for empty cells)",)


def test_text_that_names_nodes_is_dropped_and_told() -> None:
    made = features(attributed(street=list("abcdef")))
    assert made.X.shape == (6, 0)
    assert made.notes == ("ignored 'street' (6 values): text with too many different values",)


def test_codes_of_digits_and_letters_are_no_numbers() -> None:
    made = features(attributed(code=["01004", "2A004", "59350", "75056", "69123", "13055"]))
    assert made.notes == ("ignored 'code' (6 values): text with too many different values",)


def test_what_is_neither_number_nor_text_is_dropped_and_told() -> None:
    made = features(attributed(day=pd.date_range("2020-01-01", periods=6), shape=[np.zeros(2)] * 6))
    assert made.X.shape == (6, 0)
    assert made.notes[0].startswith("ignored 'day' (datetime64")
    assert made.notes[0].endswith("'shape' (object): neither numeric nor text")


def test_a_column_to_ignore_must_exist() -> None:
    with pytest.raises(InvalidInputError, match=r"no column 'zzz' to ignore.*'id', 'a'"):
        features(attributed(a=range(6)), ignore=["zzz"])


def test_an_infinite_feature_is_an_error() -> None:
    with pytest.raises(InvalidInputError, match="row 2, column a: 'inf'"):
        features(attributed(a=[1, np.inf, 3, 5, 6, 7]))


def test_names_that_collide_are_an_error() -> None:
    with pytest.raises(InvalidInputError, match="same name"):
        features(attributed(side=["n", "s"] * 3, **{"side=s": range(6)}))


def test_levels_of_few_nodes_are_pooled() -> None:
    state = ["a"] * 300 + ["b"] * 295 + ["c"] * 3 + ["d"] * 2
    frame = pd.DataFrame({"id": np.arange(600), "state": state})
    graph = Graph.from_edges(np.arange(599), np.arange(1, 600))
    made = features(AttributedGraph(graph, frame, "id"))
    assert list(made.X.columns) == ["state=b", "state=other"]
    assert made.X["state=other"].sum() == 5


def test_the_limits_of_levels_are_arguments() -> None:
    frame = pd.DataFrame({"id": np.arange(600), "state": ["a", "b", "c"] * 197 + ["d"] * 9})
    table = AttributedGraph(Graph.from_edges(np.arange(599), np.arange(1, 600)), frame, "id")
    assert list(features(table).X.columns) == ["state=b", "state=c", "state=other"]
    assert list(features(table, rare=5).X.columns) == ["state=b", "state=c", "state=d"]
    assert features(table, max_levels=3).X.shape == (600, 0)


def test_attributes_are_the_numeric_columns_that_vary() -> None:
    table = attributed(rent=[1, np.nan, 3, 4, 5, 6], side=["n", "s"] * 3, one=[1] * 6)
    found = attributes(table)
    assert found.A.columns.tolist() == ["rent"]
    np.testing.assert_array_equal(found.A["rent"], [1, np.nan, 3, 4, 5, 6])
    assert found.notes == ("ignored 'side': not numeric", "ignored 'one': a single value")


def test_attributes_that_are_named_must_be_there_and_numeric() -> None:
    table = attributed(rent=range(6), side=["n", "s"] * 3)
    assert attributes(table, named=["rent"]).notes == ()
    with pytest.raises(InvalidInputError, match="'n' is not a finite number"):
        attributes(table, named=["side"])
    with pytest.raises(InvalidInputError, match=r"no column 'ren'; did you mean 'rent'\?"):
        attributes(table, ignore=["ren"])
    with pytest.raises(InvalidInputError, match="no numeric column that varies"):
        attributes(table, ignore=["rent"])


def test_numbers_of_single_precision_stay_so_and_share_their_memory_where_none_is_missing() -> None:
    frame = pd.DataFrame({"id": [1, 2, 3], "x": np.array([0.5, 1.5, 3.5], np.float32), "z": [0.5, np.nan, 1.0]})
    graph = Graph.from_edges([0, 1], [1, 2])
    whole = features(AttributedGraph(graph, frame[["id", "x"]], "id"))
    assert whole.X["x"].dtype == np.float32
    assert whole.X is whole.unfilled
    mixed = features(AttributedGraph(graph, frame, "id"))
    assert mixed.X.dtypes.tolist() == [np.float32, np.float64]
    assert mixed.X["z"].tolist() == [0.5, 0.75, 1.0]


def test_what_is_the_same_at_all_nodes_with_an_outcome_is_left_out_and_told() -> None:
    frame = pd.DataFrame(
        {
            "id": range(8),
            "y": [1.0, 2.0, 3.0, 4.0, None, None, None, None],
            "garden": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
            "area": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 9.0],
            "side": ["n", "s", "n", "s", "n", "s", "w", "w"],
        }
    )
    table = AttributedGraph(Graph.from_edges([0, 1], [1, 2], n_nodes=8), frame, "id")
    made = features(table, targets=["y"], rare=1)
    assert list(made.X.columns) == ["area", "side=s"]
    assert made.names == ("area", "side")
    assert "ignored 'garden', 'side=w': a single value in the rows with an outcome" in made.notes
    assert list(features(table, ignore=["y"], rare=1).X.columns) == ["garden", "area", "side=s", "side=w"]
    nobody = AttributedGraph(table.graph, frame.assign(y=np.nan), "id")
    assert "garden" in features(nobody, targets=["y"], rare=1).X.columns


def test_a_column_that_is_empty_where_outcomes_are_is_left_out_and_told_once() -> None:
    frame = pd.DataFrame(
        {"id": range(6), "x": [1.0, 2.0, 0.5, 3.0, 1.5, 2.5], "rent": [5.0, 6.0, 4.0, 7.0, None, None]}
    )
    frame["deposit"] = 3 * frame["rent"]
    table = AttributedGraph(Graph.from_edges(range(5), range(1, 6)), frame, "id")
    made = features(table, targets=["rent"])
    assert list(made.X.columns) == ["x"]
    assert made.notes == ("ignored 'deposit': no values in the rows to be predicted",)
    known = features(table, targets=["x"])
    assert list(known.X.columns) == ["rent", "deposit"]


def test_dates_are_recognised_by_their_cells() -> None:
    assert is_dates(pd.Series(["2020-01-31", None]))
    assert not is_dates(pd.Series(["31.1.2020", "soon"]))

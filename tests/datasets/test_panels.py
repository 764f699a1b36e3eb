"""Long tables of panels: read, spread over nodes and times, and refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from graphmrf import Graph, read
from graphmrf.datasets import features
from graphmrf.errors import InvalidInputError

EDGES = pd.DataFrame({"u": ["a", "b"], "v": ["b", "c"]})
LONG = pd.DataFrame(
    {
        "id": ["c", "a", "b", "a", "c"],
        "year": [2001, 2003, 2001, 2001, 2003],
        "rent": [5.0, 2.0, 3.0, 1.0, None],
        "area": [30.0, 10.0, 20.0, 10.0, 30.0],
    }
)


def test_a_row_of_every_node_and_time_node_by_node() -> None:
    table = read(LONG, EDGES, id="id", time="year", horizon=1)
    assert table.keys == ("id", "year")
    assert table.frame["id"].tolist() == ["c"] * 3 + ["a"] * 3 + ["b"] * 3
    assert table.frame["year"].tolist() == [2001, 2003, 2005] * 3
    np.testing.assert_array_equal(table.outcome("rent"), [5, np.nan, np.nan, 1, 2, np.nan, 3, np.nan, np.nan])
    assert table.frame["area"].tolist() == [30.0] * 3 + [10.0] * 3 + [20.0] * 3  # the same at all times
    expected = Graph.from_edges(EDGES.u, EDGES.v, ids=["c", "a", "b"]).over_time([2001, 2003, 2005])
    assert table.graph == expected
    assert table.labels[1] == "c, 2003"
    assert list(features(table, targets=["rent"]).X.columns) == ["area"]
    assert "4 of 9 rows" in table.notes[-1]


def test_dates_go_on_as_they_did() -> None:
    months = pd.date_range("2020-11-01", periods=3, freq="MS").strftime("%Y-%m-%d")
    long = pd.DataFrame({"id": list("abc") * 3, "month": months.repeat(3), "rent": range(9)})
    table = read(long, EDGES, id="id", time="month", horizon=2)
    assert table.frame["month"][:5].dt.strftime("%Y-%m-%d").tolist() == [*months, "2021-02-01", "2021-03-01"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"year": [2001, 2003, 2001, 2003, 2003]}, "rows 3 and 5: both are of id 'a' at year 2003"),
        (
            {"year": ["2001", "soon", "2001", "2002", "2003"]},
            "row 3, column year: 'soon' is neither a number nor a date",
        ),
        ({"year": ["2001", "", "2001", "2002", "2003"]}, "row 3, column year: the time is missing"),
        ({"id": ["c", "", "b", "a", "c"]}, "row 3, column id: the node id is missing"),
    ],
)
def test_long_tables_that_cannot_be_right_are_refused(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    (LONG.assign(**change)).to_csv(tmp_path / "nodes.csv", index=False)
    EDGES.to_csv(tmp_path / "edges.csv", index=False)
    with pytest.raises(InvalidInputError, match=message):
        read(tmp_path / "nodes.csv", tmp_path / "edges.csv", time="year")


def test_ids_are_found_by_being_once_at_each_time() -> None:
    people = pd.Series(range(100, 105))  # once at each time, too, but of more values
    long = LONG.rename(columns={"id": "state"})[["year", "rent", "state"]].assign(people=people, side=["x"] * 5)
    table = read(long, EDGES, time="year")
    assert table.keys == ("state", "year")
    assert "'state', once at each year, is used as the node id" in table.notes[0]
    with pytest.raises(InvalidInputError, match="no id column found"):
        read(long[["year", "rent", "side"]], EDGES, time="year")


def test_a_stray_word_is_named_by_its_row_of_the_file(tmp_path: Path) -> None:
    LONG.assign(rent=["5", "2", "3", "?x", "1"]).to_csv(tmp_path / "nodes.csv", index=False)
    EDGES.to_csv(tmp_path / "edges.csv", index=False)
    table = read(tmp_path / "nodes.csv", tmp_path / "edges.csv", time="year")
    with pytest.raises(InvalidInputError, match=r"nodes.csv, row 5, column rent: '\?x'"):
        table.outcome("rent")
    with pytest.raises(InvalidInputError, match="times"):
        table.outcome("year")


@pytest.mark.parametrize(
    ("times", "horizon", "message"), [([1, 1, 1], 1, "at least two times"), ([1, 2, 3], -1, "0 or")]
)
def test_horizons_that_cannot_be_are_refused(times: list[int], horizon: int, message: str) -> None:
    long = pd.DataFrame({"id": list("abc"), "year": times})
    with pytest.raises(InvalidInputError, match=message):
        read(long, EDGES, id="id", time="year", horizon=horizon)

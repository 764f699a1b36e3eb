"""Reading two files: every format, ids, columns found by name, and every bad input."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphmrf.datasets import AttributedGraph, read
from graphmrf.errors import InvalidInputError

NODES = "id,rent,side\n007,9.5,n\n008,,s\n7,11,n\n"
EDGES = "source,target\n007,008\n008,7\n"


@pytest.fixture
def table(tmp_path: Path) -> Callable[..., AttributedGraph]:
    def make(nodes: str = NODES, edges: str = EDGES, **options: Any) -> AttributedGraph:
        (tmp_path / "nodes.csv").write_text(nodes, encoding="utf-8")
        (tmp_path / "edges.csv").write_text(edges, encoding="utf-8")
        return read(tmp_path / "nodes.csv", tmp_path / "edges.csv", **options)

    return make


def save(text: str, path: Path) -> Path:
    """Write the CSV `text` in the format of the suffix of `path`."""
    rows = [line.split(",") for line in text.splitlines()]
    if path.name.endswith(".parquet"):
        pq.write_table(pa.table({name: [row[i] for row in rows[1:]] for i, name in enumerate(rows[0])}), path)
        return path
    content = text.replace(",", "\t" if ".tsv" in path.name else ",").encode()
    path.write_bytes(gzip.compress(content) if path.name.endswith(".gz") else content)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".tsv.gz", ".CSV", ".parquet"])
def test_every_format_gives_the_same_graph(suffix: str, tmp_path: Path) -> None:
    table = read(save(NODES, tmp_path / f"n{suffix}"), save(EDGES, tmp_path / f"e{suffix}"))
    assert table.frame["id"].tolist() == ["007", "008", "7"]
    np.testing.assert_array_equal(table.graph.adjacency.toarray(), [[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    np.testing.assert_array_equal(table.outcome("rent"), [9.5, np.nan, 11])


def test_ids_keep_their_zeros_and_their_name_and_come_first(table: Callable[..., AttributedGraph]) -> None:
    frame = table("rent,name\n1,00123\n2,123\n", "u,v\n00123,123\n").frame
    assert list(frame.columns) == ["name", "rent"]
    assert frame["name"].tolist() == ["00123", "123"]


def test_ids_that_are_all_written_as_integers_are_integers(table: Callable[..., AttributedGraph]) -> None:
    assert table("id,a\n10,1\n-9,2\n", "u,v\n10,-9\n").frame["id"].tolist() == [10, -9]


def test_ids_may_look_missing(table: Callable[..., AttributedGraph]) -> None:
    assert table("id,a\nNA,1\nnull,2\n", "u,v\nNA,null\n").frame["id"].tolist() == ["NA", "null"]


@pytest.mark.parametrize("ids", [[1, 2, 30], ["1", "2", "30"], [1.0, 2.0, 30.0]])
@pytest.mark.parametrize("ends", [[1, 2], ["1", "2"], [1.0, 2.0]])
def test_integers_match_strings_of_the_same_integers(ids: list[object], ends: list[object], tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ids, "a": [1.0, 2.0, 3.0]}), tmp_path / "n.parquet")
    pq.write_table(pa.table({"u": ends, "v": [30, 30]}), tmp_path / "e.parquet")
    table = read(tmp_path / "n.parquet", tmp_path / "e.parquet")
    assert table.frame["id"].tolist() == ids
    np.testing.assert_array_equal(table.graph.degrees, [1, 1, 2])


def test_quoted_cells_may_hold_delimiters_and_line_breaks(table: Callable[..., AttributedGraph]) -> None:
    frame = table('id,a\n"x,1",1\n"y\n2",2\n', 'u,v\n"x,1","y\n2"\n').frame
    assert frame["id"].tolist() == ["x,1", "y\n2"]


def test_byte_order_mark_and_blanks_around_names_do_not_matter(table: Callable[..., AttributedGraph]) -> None:
    frame = table("\ufeffid, rent\n a , 1.5\n b ,\n", "source, target\na, b\n").frame
    assert list(frame.columns) == ["id", "rent"]
    np.testing.assert_array_equal(frame["rent"], [1.5, np.nan])


@pytest.mark.parametrize("names", ["u,v", "from,to", "src,dst", "node1,node2", "Source,Target"])
def test_edge_columns_are_found_by_name(names: str, table: Callable[..., AttributedGraph]) -> None:
    assert table(edges=f"{names}\n007,7\n").graph.degrees.tolist() == [1, 0, 1]


def test_edge_columns_by_option(table: Callable[..., AttributedGraph]) -> None:
    made = table(edges="a,b,c\n007,008,2\n", source="a", dest="b", weight="c")
    assert made.graph.degrees.tolist() == [2, 2, 0]


def test_the_id_column_by_option(table: Callable[..., AttributedGraph]) -> None:
    assert table("id,code\n1,007\n2,008\n", "u,v\n007,008\n", id="code").frame.columns[0] == "code"


def test_a_first_column_without_repeats_is_the_id_and_is_told(table: Callable[..., AttributedGraph]) -> None:
    made = table("district,a\nD1,1\nD2,2\n", "u,v\nD1,D2\n")
    assert made.id == "district"
    assert any("'district'" in note for note in made.notes)


def test_a_single_numeric_column_is_the_weight_and_is_told(table: Callable[..., AttributedGraph]) -> None:
    made = table(edges="u,v,trips,road\n007,008,2.5,A1\n")
    assert made.graph.degrees.tolist() == [2.5, 2.5, 0]
    assert any("'trips'" in note for note in made.notes)


def test_weights_can_be_ignored(table: Callable[..., AttributedGraph]) -> None:
    assert not table(edges="u,v,weight\n007,008,2.5\n", weight="none").graph.is_weighted


def test_what_the_graph_changed_is_told(table: Callable[..., AttributedGraph]) -> None:
    notes = table(edges="u,v\n007,007\n007,008\n008,007\n").notes
    assert any("self loop" in note for note in notes)
    assert any("repeated" in note for note in notes)


def test_a_saved_row_index_is_left_out_and_told(table: Callable[..., AttributedGraph]) -> None:
    made = table(",id,a\n0,x,1\n1,y,2\n", ",u,v\n0,x,y\n")
    assert list(made.frame.columns) == ["id", "a"]
    assert not made.graph.is_weighted
    assert sum("row index" in note for note in made.notes) == 2


def test_a_header_without_edges_is_a_graph_without_edges(table: Callable[..., AttributedGraph]) -> None:
    assert table(edges="u,v\n").graph.n_edges == 0


def test_cells_become_what_they_say(table: Callable[..., AttributedGraph]) -> None:
    frame = table(
        "id,n,x,yes,code,text,none\na,1,1e3,True,01,u,\nb,2,NA,FALSE,02,null,\nc,3,-.5,true,10,w,nan\n", "u,v\na,b\n"
    ).frame
    assert frame["n"].tolist() == [1, 2, 3]
    np.testing.assert_array_equal(frame["x"], [1000, np.nan, -0.5])
    assert frame["yes"].tolist() == [True, False, True]
    assert frame["code"].tolist() == ["01", "02", "10"]
    assert frame["text"].isna().tolist() == [False, True, False]
    assert frame["none"].isna().all()


def test_true_and_false_with_empty_cells_are_numbers(table: Callable[..., AttributedGraph]) -> None:
    made = table("id,yes\na,True\nb,\nc,false\n", "u,v\na,b\n")
    np.testing.assert_array_equal(made.outcome("yes"), [1.0, np.nan, 0.0])


BAD = {
    "duplicate id": ("id,a\nx,1\ny,2\nx,3\n", "u,v\n", ["nodes.csv, rows 2 and 4", "column id", "'x'", "--id"]),
    "missing id": ("id,a\nx,1\n,2\n", "u,v\n", ["nodes.csv, row 3", "column id", "missing"]),
    "no node rows": ("id,a\n", "u,v\n", ["nodes.csv", "no rows"]),
    "empty nodes": ("", EDGES, ["nodes.csv", "is empty"]),
    "blank nodes": ("\n\n", EDGES, ["nodes.csv", "is empty"]),
    "empty edges": (NODES, "", ["edges.csv", "is empty"]),
    "ragged": ("id,a\nx,1\n\ny\n", EDGES, ["nodes.csv, row 4", "expected 2 columns, got 1"]),
    "repeated column": ("id,a,a\nx,1,2\n", EDGES, ["nodes.csv", "more than one column named 'a'"]),
    "no id column": ("rent,side\n1.5,n\n2.5,s\n", EDGES, ["nodes.csv", "'rent', 'side'", "--id"]),
    "unknown node": (
        NODES,
        "u,v\n007,008\n\n007,Q9\n",
        ["edges.csv, row 4, column v", "'Q9'", "nodes.csv", "--unknown add"],
    ),
    "unknown nodes": (
        NODES,
        "u,v\nP1,007\n007,008\nP2,7\n",
        ["edges.csv, row 2", "'P1'", "(2 such cells in the column)"],
    ),
    "other zeros": (
        "id,a\n01001,1\n01002,1\n",
        "u,v\n1001,01002\n",
        ["edges.csv, row 2", "'1001'", "'01001'"],
    ),
    "end missing": (NODES, "u,v\n007,\n", ["edges.csv, row 2, column v", "missing"]),
    "no end columns": (NODES, "a,b,c\n007,P1,P2\n", ["edges.csv", "'a', 'b'", "--source and --dest"]),
    "a distance": (NODES, "u,v,km\n007,008,2\n", ["edges.csv, column km", "--weight-is distance", "--weight none"]),
    "negative weight": (NODES, "u,v,w\n007,008,1\n008,7,-2\n", ["edges.csv, row 3, column w", "-2", ">= 0"]),
    "NaN weight": (NODES, "u,v,w\n007,008,1\n008,7,NaN\n", ["edges.csv, row 3, column w", "a missing value", ">= 0"]),
    "empty weight": (NODES, "u,v,w\n007,008,\n008,7,1\n", ["edges.csv, row 2, column w", ">= 0"]),
    "infinite weight": (NODES, "u,v,w\n007,008,1\n008,7,inf\n", ["edges.csv, row 3, column w", "inf"]),
    "text weight": (NODES, "u,v,weight\n007,008,1\n008,7,far\n", ["edges.csv, row 3, column weight", "'far'"]),
    "two weights": (NODES, "u,v,weight,km\n007,008,1,2\n", ["edges.csv", "'weight', 'km'", "--weight"]),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_names_the_place_and_the_remedy(name: str, table: Callable[..., AttributedGraph]) -> None:
    nodes, edges, parts = BAD[name]
    with pytest.raises(InvalidInputError) as caught:
        table(nodes, edges)
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize("option", ["id", "source", "dest", "weight"])
def test_an_option_that_names_no_column(option: str, table: Callable[..., AttributedGraph]) -> None:
    with pytest.raises(InvalidInputError, match=rf"no column 'zzz'.*--{option}"):
        table(**{option: "zzz"})


def test_text_in_a_numeric_column_names_the_row(table: Callable[..., AttributedGraph]) -> None:
    made = table('id,rent\nx,1\n\n"y\nz",2\nw,abc\n', "u,v\n")
    with pytest.raises(InvalidInputError, match=r"row 6, column rent: 'abc' is not a finite number; .*empty"):
        made.outcome("rent")


def test_outcomes_that_are_not_there(table: Callable[..., AttributedGraph]) -> None:
    with pytest.raises(InvalidInputError, match="no column 'income'; it has 'rent', 'side'"):
        table().outcome("income")
    with pytest.raises(InvalidInputError, match="node ids"):
        table().outcome("id")


def test_rows_of_parquet_are_counted_from_one(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": [1, 2, 3], "rent": [1.0, np.inf, 2.0]})
    frame.to_parquet(tmp_path / "n.parquet")
    (tmp_path / "e.csv").write_text("u,v\n1,2\n")
    with pytest.raises(InvalidInputError, match="row 2, column rent: 'inf'"):
        read(tmp_path / "n.parquet", tmp_path / "e.csv").outcome("rent")


def test_places_that_hold_no_table(tmp_path: Path) -> None:
    edges = save(EDGES, tmp_path / "edges.csv")
    with pytest.raises(InvalidInputError, match=r"nodes.csv: no such file"):
        read(tmp_path / "nodes.csv", edges)
    with pytest.raises(InvalidInputError, match="is a directory"):
        read(tmp_path, edges)
    with pytest.raises(InvalidInputError, match=r"suffix.*\.csv, .*\.parquet"):
        read(save(NODES, tmp_path / "nodes.doc"), edges)


@pytest.mark.parametrize("suffix", [".csv.gz", ".parquet"])
@pytest.mark.parametrize("size", [0, 40])
def test_a_file_cut_short(suffix: str, size: int, tmp_path: Path) -> None:
    nodes = save("id,a\n" + "".join(f"x{i},{i * i}\n" for i in range(500)), tmp_path / f"nodes{suffix}")
    nodes.write_bytes(nodes.read_bytes()[:size])
    with pytest.raises(InvalidInputError, match=rf"nodes{suffix} (cannot be read|is empty)"):
        read(nodes, save(EDGES, tmp_path / "edges.csv"))


@pytest.mark.parametrize("suffix", [".csv.gz", ".parquet"])
def test_a_file_under_the_wrong_suffix(suffix: str, tmp_path: Path) -> None:
    (tmp_path / f"nodes{suffix}").write_text(NODES)
    with pytest.raises(InvalidInputError, match="wrong suffix"):
        read(tmp_path / f"nodes{suffix}", save(EDGES, tmp_path / "edges.csv"))


def test_text_in_no_known_encoding(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_bytes(b"id,a\nx,caf\xe9\x81\n")
    with pytest.raises(InvalidInputError, match="UTF-8"):
        read(tmp_path / "nodes.csv", save(EDGES, tmp_path / "edges.csv"))


def test_tables_in_memory_are_read_like_files() -> None:
    nodes = pd.DataFrame({"rent": [9.5, np.nan, 11.0]}, index=pd.Index(["007", "008", "7"], name="district"))
    edges = pd.DataFrame({"source": ["007", "008"], "target": ["008", "7"]})
    made = read(nodes, edges)
    assert made.frame.columns.tolist() == ["district", "rent"]
    assert made.graph.ids is not None
    assert (made.id, made.graph.ids.tolist(), made.graph.degrees.tolist()) == (
        "district",
        ["007", "008", "7"],
        [1, 2, 1],
    )
    np.testing.assert_array_equal(made.outcome("rent"), [9.5, np.nan, 11])
    assert read(pa.Table.from_pandas(nodes.reset_index()), edges).graph == made.graph
    with pytest.raises(InvalidInputError, match=r"row 1, column source: node '007' is written '7'"):
        read(nodes.drop("007"), edges)
    with pytest.raises(InvalidInputError, match="a path or a DataFrame, got dict"):
        read({"id": [1]}, edges)


def test_tables_of_geopandas_are_read_without_their_shapes() -> None:
    geopandas, shapely = pytest.importorskip("geopandas"), pytest.importorskip("shapely")
    areas = geopandas.GeoDataFrame({"id": ["a", "b"], "rent": [1.0, 2.0]}, geometry=[shapely.box(0, 0, 1, 1)] * 2)
    assert read(areas, pd.DataFrame({"u": ["a"], "v": ["b"]})).frame.columns.tolist() == ["id", "rent"]


def test_the_ids_of_files_are_those_of_the_graph(table: Callable[..., AttributedGraph]) -> None:
    made = table()
    assert made.graph.ids is not None
    assert made.graph.ids.tolist() == made.frame["id"].tolist()
    assert repr(made.graph) == "Graph(n_nodes=3, n_edges=2, unweighted, ids 007, 008, 7)"


KNOWN = pd.DataFrame({"id": [1, 2, 3], "rent": [9.0, 8.0, 7.0]})


@pytest.mark.parametrize(
    ("ends", "ids"), [([(1, 2), (3, 5), (4, 1)], [1, 2, 3, 4, 5]), ([("1", "2"), ("3", "x")], ["1", "2", "3", "x"])]
)
def test_ends_without_a_row_are_added_with_empty_cells(ends: list[Any], ids: list[Any]) -> None:
    edges = pd.DataFrame(ends, columns=["u", "v"])
    found = read(KNOWN, edges, unknown="add")
    assert sorted(found.frame["id"].tolist()) == ids
    assert found.frame["id"].tolist()[:3] == ids[:3]
    assert found.frame["rent"][:3].tolist() == [9.0, 8.0, 7.0]
    assert found.frame["rent"][3:].isna().all()
    assert found.graph.n_edges == len(ends)
    assert any("added to" in note for note in found.notes)


def test_nothing_is_added_where_all_ids_are_others() -> None:
    with pytest.raises(InvalidInputError, match="no edge joins two nodes"):
        read(KNOWN, pd.DataFrame({"u": ["a"], "v": ["b"]}), unknown="add")


def test_ids_that_differ_in_unicode_normalisation_are_matched_with_a_note(
    table: Callable[..., AttributedGraph],
) -> None:
    made = table("id,rent\nZ\u00fcrich,1\nBern,2\n", "u,v\nZu\u0308rich,Bern\n")
    assert made.graph.n_edges == 1
    assert r"'Zu\u0308rich' is matched to 'Z\xfcrich'" in made.notes[-1]
    with pytest.raises(InvalidInputError, match=r"the same: 'Z\\xfcrich' in the graph is 'Zu\\u0308rich'"):
        made.graph.align(pd.Series([1.0, 2.0], ["Zu\u0308rich", "Bern"]))


def test_a_table_of_edges_that_is_not_there_is_named_as_such(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(NODES)
    with pytest.raises(InvalidInputError, match=r"none.csv: no such file; it should be the table of edges"):
        read(tmp_path / "nodes.csv", tmp_path / "none.csv")

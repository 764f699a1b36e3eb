"""Graphs of tables without edges: near places, touching areas, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from graphmrf import Graph
from graphmrf.datasets import AttributedGraph, read_points, read_shapes
from graphmrf.datasets.places import geometries
from graphmrf.datasets.written_tables import write
from graphmrf.errors import InvalidInputError

PLACES = pd.DataFrame({"id": list("abcd"), "Lat": [0.0, 0.0, 0.0, 10.0], "longitude": [179.0, -179.0, 170.0, 0.0]})


def test_longitude_and_latitude_are_measured_on_the_globe_in_either_order() -> None:
    made = read_points(PLACES, "Lat,longitude", 1)
    expected = Graph.from_knn(PLACES[["longitude", "Lat"]].to_numpy(), 1, metric="haversine")
    assert made.graph == expected.with_ids(list("abcd"))
    assert made.graph == read_points(PLACES, "longitude, Lat", 1).graph
    assert "on the globe" in made.notes[-1]
    assert "straight" in read_points(PLACES.rename(columns={"Lat": "y"}), "longitude,y", 1).notes[-1]


@pytest.mark.parametrize(
    ("frame", "columns", "k", "message"),
    [
        (PLACES, "lon,lat", 1, "no column 'lon'; .*--knn"),
        (PLACES, " , ", 1, "--knn needs the columns"),
        (PLACES, "longitude", 4, "-k must be from 1 to 3"),
        (PLACES.assign(Lat=[1.0, np.nan, 2.0, 3.0]), "Lat", 1, "row 2, column Lat: a coordinate must be a number, got"),
        (PLACES.assign(Lat=["1", "2", "x", "4"]), "Lat", 1, "row 3, column Lat: a coordinate .* got 'x'"),
    ],
)
def test_bad_places_are_refused(frame: Any, columns: str, k: int, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        read_points(frame, columns, k)


@pytest.mark.parametrize("first", ["name", "NAME", "county"])
def test_a_code_without_repeats_is_the_id_where_names_repeat(first: str) -> None:
    frame = pd.DataFrame({first: ["Lake", "Lake", "Bay"], "state_code": [1, 1, 2], "fips": ["01", "02", "03"]})
    made = read_points(frame.assign(x=[0.0, 1.0, 2.0]), "x", 1)
    assert (made.id, made.frame["fips"].tolist()) == ("fips", ["01", "02", "03"])
    assert any(f"'{first}' is not unique, so 'fips' is used as the node id" in note for note in made.notes)
    assert read_points(frame.assign(**{first: list("abc")}, x=[0.0, 1.0, 2.0]), "x", 1).id == first


@pytest.mark.parametrize("repeated", [{"id": [1, 1, 2], "fips": [1, 2, 3]}, {"name": list("aab"), "rent": [1, 2, 3]}])
def test_repeated_ids_are_refused_without_a_code(repeated: Any) -> None:
    with pytest.raises(InvalidInputError, match="is not unique"):
        read_points(pd.DataFrame(repeated).assign(x=[0.0, 1.0, 2.0]), "x", 1)


def test_areas_that_touch_are_joined_by_id(tmp_path: Path) -> None:
    geopandas, shapely = pytest.importorskip("geopandas"), pytest.importorskip("shapely")
    squares = [shapely.box(x, 0, x + 1, 1) for x in range(4)]
    areas = geopandas.GeoDataFrame({"name": list("wxyz"), "code": [3, 1, 4, 2]}, geometry=squares, crs=4326)
    areas.to_file(tmp_path / "areas.geojson", driver="GeoJSON")
    nodes = pd.DataFrame({"id": [1, 2, 3], "rent": [1.0, 2.0, np.nan]})
    made = read_shapes(nodes, tmp_path / "areas.geojson")
    assert made.graph == Graph.from_edges([0], [2], n_nodes=3).with_ids([1, 2, 3])
    assert "'code'" in made.notes[-1]
    with pytest.raises(InvalidInputError, match=r"no column has the ids of all nodes; 'code' lacks '9' \(1 of 3\)"):
        read_shapes(nodes.assign(id=[1, 2, 9]), tmp_path / "areas.geojson")
    areas.assign(other=[1, 3, 2, 4]).to_file(tmp_path / "two.geojson", driver="GeoJSON")
    with pytest.raises(InvalidInputError, match="columns 'code', 'other' all have the ids of the nodes, in another"):
        read_shapes(nodes, tmp_path / "two.geojson")
    areas.assign(code=[3, 1, 2, 2]).to_file(tmp_path / "parts.geojson", driver="GeoJSON")
    with pytest.raises(InvalidInputError, match=r"'2' \(1 of 3\) have several shapes in 'code'; join the parts"):
        read_shapes(nodes, tmp_path / "parts.geojson")
    (tmp_path / "broken.geojson").write_text("{")
    with pytest.raises(InvalidInputError, match="cannot be read as shapes"):
        read_shapes(nodes, tmp_path / "broken.geojson")


NODE = Graph.from_edges([], [], n_nodes=1)


def test_points_are_written_by_the_columns_of_degrees() -> None:
    frame = pd.DataFrame({"id": [1], "latino_pct": [0.2], "lone": [500.0], "Lon": [7.0], "Latitude": [50.0]})
    assert geometries(AttributedGraph(NODE, frame, "id"))[0]["coordinates"] == [7.0, 50.0]
    with pytest.raises(InvalidInputError, match="GeoJSON and GeoPackage need the places of the nodes"):
        geometries(AttributedGraph(NODE, frame.drop(columns=["Lon"]), "id"))


def test_a_geopackage_has_the_table_and_the_areas(tmp_path: Path) -> None:
    geopandas, shapely = pytest.importorskip("geopandas"), pytest.importorskip("shapely")
    squares = [shapely.box(x, 0, x + 1, 1) for x in range(3)]
    areas = geopandas.GeoDataFrame({"id": [1, 2, 3]}, geometry=squares, crs=4326)
    areas.to_file(tmp_path / "areas.geojson", driver="GeoJSON")
    table = read_shapes(pd.DataFrame({"id": [1, 2, 3], "rent": [1.0, 2.0, np.nan]}), tmp_path / "areas.geojson")
    frame = pd.DataFrame({"id": [1, 2, 3], "prediction": [1.0, 2.0, 3.5], "observed": [True, True, False]})
    written = write(frame, tmp_path / "rents.gpkg", places=geometries(table))
    made = geopandas.read_file(written)
    pd.testing.assert_frame_equal(pd.DataFrame(made.drop(columns="geometry")), frame, check_dtype=False)
    assert made.geometry.geom_equals(areas.geometry).all()
    assert made.crs == areas.crs
    assert [path.name for path in tmp_path.glob("*rents*")] == ["rents.gpkg"]
    with pytest.raises(InvalidInputError, match="a GeoPackage has a column 'fid' of its own"):
        write(frame.assign(fid=0), tmp_path / "rents.gpkg", places=geometries(table))
    with pytest.raises(InvalidInputError, match="the suffix gives the format"):
        write(frame, tmp_path / "rents.gpkg")

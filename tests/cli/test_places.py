"""predict without a table of edges: near places, touching areas."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from graphmrf.cli import app


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["predict", *(str(argument) for argument in arguments)])


@pytest.fixture
def places(tmp_path: Path) -> Path:
    x, y = (part.ravel() for part in np.meshgrid(np.arange(6.0), np.arange(6.0)))
    rent = np.where(np.arange(36) % 3 == 0, np.nan, (np.sin(x / 2) + y).round(6))
    frame = pd.DataFrame({"id": [f"p{i}" for i in range(36)], "lon": x, "lat": y, "rent": rent})
    frame.to_csv(tmp_path / "places.csv", index=False)
    return tmp_path / "places.csv"


def test_near_places_are_joined(places: Path) -> None:
    out = places.with_name("out.csv")
    result = run(places, "--knn", "lon,lat", "-k", 4, "-t", "rent", "--method", "lp", "-o", out)
    assert result.exit_code == 0, result.output
    assert "joined to its 4 nearest by 'lon', 'lat', measured on the globe" in " ".join(result.output.split())
    assert pd.read_csv(out)["prediction"].notna().all()


def test_touching_areas_are_joined(places: Path) -> None:
    geopandas, shapely = pytest.importorskip("geopandas"), pytest.importorskip("shapely")
    frame, shapes, out = pd.read_csv(places), places.with_name("areas.geojson"), places.with_name("out.csv")
    squares = shapely.box(frame["lon"], frame["lat"], frame["lon"] + 1, frame["lat"] + 1)
    areas = geopandas.GeoDataFrame({"id": frame["id"]}, geometry=squares, crs=4326).iloc[::-1]
    areas.to_file(shapes, driver="GeoJSON")
    result = run(places, "--shapes", shapes, "-t", "rent", "--method", "lp", "-o", out)
    assert result.exit_code == 0, result.output
    assert "110 pairs of areas touch" in " ".join(result.output.split())
    assert pd.read_csv(out)["prediction"].notna().all()


@pytest.mark.parametrize("suffix", [".geojson", ".gpkg"])
def test_areas_with_their_columns_are_one_file(places: Path, suffix: str) -> None:
    geopandas, shapely = pytest.importorskip("geopandas"), pytest.importorskip("shapely")
    frame, areas, out = pd.read_csv(places), places.with_name(f"areas{suffix}"), places.with_name("out.geojson")
    frame["id"] = [f"{k:03d}" for k in range(36)]
    squares = shapely.box(frame["lon"], frame["lat"], frame["lon"] + 1, frame["lat"] + 1)
    geopandas.GeoDataFrame(frame[["id", "rent"]], geometry=squares, crs=4326).to_file(areas)
    result = run(areas, "-t", "rent", "--method", "lp", "-o", out)
    assert result.exit_code == 0, result.output
    assert "110 pairs of areas touch" in " ".join(result.output.split())
    saved = geopandas.read_file(out)
    assert saved["id"].tolist() == frame["id"].tolist()
    assert saved["prediction"].notna().all()
    foreseen = CliRunner().invoke(app, ["foresee", str(areas), "-t", "rent"])
    assert foreseen.exit_code == 0, foreseen.output
    assert saved.geom_equals_exact(geopandas.GeoSeries(squares, crs=4326), 1e-9).all()


def test_areas_with_edges_in_a_file_are_written_with_their_shapes(places: Path) -> None:
    geopandas, shapely = pytest.importorskip("geopandas"), pytest.importorskip("shapely")
    frame, areas, out = pd.read_csv(places), places.with_name("areas.geojson"), places.with_name("out.gpkg")
    squares = geopandas.GeoSeries(shapely.box(frame["lon"], frame["lat"], frame["lon"] + 1, frame["lat"] + 1), crs=4326)
    geopandas.GeoDataFrame(frame[["id", "rent"]], geometry=squares).to_file(areas)
    edges = places.with_name("edges.csv")
    ids = frame["id"].astype(str)
    pd.DataFrame({"source": ids[:-1].to_numpy(), "target": ids[1:].to_numpy()}).to_csv(edges, index=False)
    result = run(areas, edges, "-t", "rent", "--method", "lp", "-o", out)
    assert result.exit_code == 0, result.output
    assert geopandas.read_file(out).geom_equals_exact(squares, 1e-9).all()


def test_points_have_their_coordinates(places: Path) -> None:
    geopandas = pytest.importorskip("geopandas")
    frame, points = pd.read_csv(places), places.with_name("points.geojson")
    at = geopandas.points_from_xy(frame["lon"], frame["lat"], crs=4326)
    geopandas.GeoDataFrame(frame[["id", "rent"]], geometry=at).to_file(points)
    result = run(points, "-t", "rent", "--method", "lp")
    assert result.exit_code == 2
    assert "points.geojson contains points, which cannot touch; join near ones with --knn lon,lat" in result.stderr
    saved = []
    for nodes in (points, places):
        result = run(nodes, "--knn", "lon,lat", "-t", "rent", "--method", "lp", "-o", places.with_name("out.csv"))
        assert result.exit_code == 0, result.output
        saved.append(places.with_name("out.csv").read_text())
    assert saved[0] == saved[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "no edges given: pass one of an edge file, --knn or --shapes"),
        (["--knn", "lon,lat", "--shapes", "areas.geojson"], "edges are given more than once: pass one of"),
        (["--knn", "east,north"], "no column 'east'"),
        (["--knn", "lon,lat", "-k", "0"], "-k must be from 1 to 35"),
        (["--shapes", "areas.geojson"], "areas.geojson"),
    ],
)
def test_bad_places_exit_with_2(places: Path, options: list[str], message: str) -> None:
    result = run(places, "-t", "rent", *options)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


def test_models_are_fitted_drawn_and_asked_without_edges(places: Path) -> None:
    model, draws, knn = places.with_name("model.json"), places.with_name("draws.csv"), ["--knn", "lon,lat", "-k", "4"]

    def call(*arguments: object) -> Any:
        return CliRunner().invoke(app, [str(each) for each in arguments])

    fitted = call("fit", places, *knn, "-a", "rent", "-o", model)
    assert fitted.exit_code == 0, fitted.output
    assert "36 nodes, 24 of them with values, " in fitted.stdout
    drawn = call("sample", model, "--given", places, *knn, "-n", 2, "-o", draws)
    assert drawn.exit_code == 0, drawn.output
    assert len(pd.read_csv(draws)) == 72
    seen = call("foresee", model, places, *knn, "--target", "rent")
    assert seen.exit_code == 0, seen.output
    assert "24 nodes are labelled, 12 to be predicted" in seen.stdout
    for wrong, message in (
        (("sample", model, *knn), "need the nodes"),
        (("sample", model), "no table of edges"),
        (("foresee", model, places, places, *knn, "-t", "rent"), "foresee takes NODES, or MODEL and NODES"),
        (("fit", places), "no edges given: pass one of an edge file, --knn or --shapes"),
    ):
        refused = call(*wrong)
        assert (refused.exit_code, message in refused.stderr) == (2, True), refused.output

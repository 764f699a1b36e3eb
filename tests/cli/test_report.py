"""Results in other formats, and the page made again from results that were kept."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from graphmrf.cli import app
from graphmrf.datasets.written_tables import PAGE
from graphmrf.report.page import pack_content


def report(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["report", *map(str, arguments)])


def test_the_page_is_made_again_from_parquet_byte_by_byte(town: Any) -> None:
    results, page = town.folder / "results.parquet", town.folder / "page.html"
    made = town.run("--method", "lgc-rp", "-o", str(results), "--report", str(page))
    assert made.exit_code == 0, made.output
    again = report(results, "-o", town.folder / "again.html")
    assert again.exit_code == 0, again.output
    assert (town.folder / "again.html").read_bytes() == page.read_bytes()
    assert report(results, "--quiet").stdout == ""
    assert (town.folder / "results.html").read_bytes() == page.read_bytes()


def test_parquet_with_a_page_is_read_like_any_other(town: Any) -> None:
    outputs = [town.folder / "out.parquet", town.folder / "out.csv"]
    for output in outputs:
        assert town.run("--method", "lr", "-o", str(output)).exit_code == 0
    first, second = pd.read_parquet(outputs[0]), pd.read_csv(outputs[1], dtype={"place": str})
    pd.testing.assert_frame_equal(first, second, check_dtype=False)


def test_the_command_on_the_page_has_no_folders_above(town: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(town.folder)
    assert town.run("--method", "lr", "--report", str(town.folder / "page.html")).exit_code == 0
    text = (town.folder / "page.html").read_text()
    assert "graphmrf predict nodes.csv edges.csv --method lr --report page.html" in text
    assert str(town.folder) not in text


def kept(folder: Path, page: bytes | None) -> Path:
    table = pa.table({"id": ["a"]})
    path = folder / "odd.parquet"
    pq.write_table(table.replace_schema_metadata({} if page is None else {PAGE: page}), path)
    return path


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (None, "contains no page"),
        (b"nonsense", "is damaged"),
        (pack_content([]), "is damaged"),  # type: ignore[arg-type]  # what a stranger may have written
        (pack_content({"format": 99}), "needs content of format"),
        (pack_content({"format": 1}), "is damaged"),
        (pack_content({"format": 1, "title": "x", "sections": 7}), "is damaged"),
    ],
)
def test_what_is_no_page_is_refused(page: bytes | None, message: str, tmp_path: Path) -> None:
    result = report(kept(tmp_path, page))
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert not (tmp_path / "odd.html").exists()


def test_other_files_are_refused(town: Any) -> None:
    for arguments, message in (
        ((town.folder / "nodes.csv",), "predict with -o results.parquet"),
        ((town.folder / "absent.parquet",), "no such file"),
        ((kept(town.folder, None), "-o", town.folder / "page.txt"), "something.html"),
    ):
        result = report(*arguments)
        assert result.exit_code == 2
        assert message in result.stderr


def test_geojson_has_points_and_null_for_nothing(town: Any) -> None:
    rng = np.random.default_rng(0)
    town.write(town.nodes.assign(lon=rng.uniform(0, 1, 64), lat=rng.uniform(50, 51, 64)))
    out = town.folder / "out.geojson"
    result = town.run("--target", "income", "--method", "lr", "-o", str(out))
    assert result.exit_code == 0, result.output
    features = json.loads(out.read_text())["features"]
    frame = pd.read_csv(town.folder / "nodes.csv", dtype={"place": str})
    assert [each["properties"]["place"] for each in features] == frame["place"].tolist()
    points = [each["geometry"]["coordinates"] for each in features]
    np.testing.assert_allclose(points, frame[["lon", "lat"]], rtol=1e-13)  # pandas below 3 rounds as it reads
    given = frame["income"].notna()
    assert [each["properties"]["left_out"] is not None for each in features] == given.tolist()


def test_geojson_without_places_is_refused_before_anything_is_fitted(town: Any) -> None:
    result = town.run("--method", "lr", "-o", str(town.folder / "out.geojson"))
    assert result.exit_code == 2
    assert "give areas with --shapes, or columns lon and lat" in result.stderr
    assert town.made == []


def test_areas_are_written_and_drawn(tmp_path: Path) -> None:
    geopandas, shapely = pytest.importorskip("geopandas"), pytest.importorskip("shapely")
    ids, rng = [f"a{k}" for k in range(36)], np.random.default_rng(1)
    boxes = [shapely.box(x, y, x + 1, y + 1) for y in range(50, 56) for x in range(6)]
    frame = geopandas.GeoDataFrame({"id": ids}, geometry=boxes, crs=4326)
    frame.to_file(tmp_path / "areas.geojson", driver="GeoJSON")
    y = np.arange(36.0) % 6 + rng.normal(size=36)
    pd.DataFrame({"id": ids, "y": np.where(rng.random(36) < 0.7, y, np.nan)}).to_csv(tmp_path / "n.csv", index=False)
    out, page = tmp_path / "out.geojson", tmp_path / "page.html"
    options = ["--shapes", str(tmp_path / "areas.geojson"), "--method", "lp", "-o", str(out), "--report", str(page)]
    result = CliRunner().invoke(app, ["predict", str(tmp_path / "n.csv"), *options])
    assert result.exit_code == 0, result.output
    written = geopandas.read_file(out)
    assert written.geometry.geom_equals(geopandas.GeoSeries(boxes, crs=4326)).all()
    assert {"prediction", "std", "left_out", "residual"} <= set(written.columns)
    text = page.read_text()
    assert "The map" in text
    assert '"vertex":' in text.replace(" ", "")

import json
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphmrf._typing import Floats
from graphmrf.errors import InvalidInputError
from graphmrf_paper.figures import draw, outlined, packaged_shapes, read_outlines
from graphmrf_paper.findings import Chart, Figure, Heat, Map, Series

pytestmark = pytest.mark.slow

SERIES = (Series("LP", [0.1, 0.2], [0.4, 0.5], [0.01, 0.02]), Series("LGC", [0.1, 0.2], [0.5, 0.6]))
PANELS: dict[str, Chart | Heat | Map] = {
    "lines": Chart("lines", "U.S.", "share", "R²", SERIES),
    "ramp": Chart(
        "lines",
        "LGC",
        "λ",
        "g",
        (Series("ω = 1", [0, 1], [1, 0], colour=0.0), Series("ω = 2", [0, 1], [1, 0], colour=1.0)),
    ),
    "bars": Chart("bars", "income", "", "R²", (Series("transductive", [0, 1], [0.4, 0.5]), SERIES[0]), ("LR", "LGC")),
    "points": Chart(
        "points", "CDC", "foreseen", "measured", (Series("airT, LP", [-4.0], [0.4], colour=0.0, marker="o"),)
    ),
    "heat": Heat("LP", "true ω", "ω", np.eye(3), ("0.1", "", "1"), ("0.1", "", "1"), marks=((0, 0), (1, 2))),
    "signed": Heat("H", "", "", np.array([[2.0, -1.0, np.nan], [-1.0, 2.0, 0.0]]), signed=True),
    "map": Map("election", "us-2016", ("01001", "01003"), np.array([-0.5, 0.5]), (-1.0, 1.0)),
}
TRIANGLE = [[-100.0, 40.0], [-99.0, 40.0], [-99.0, 41.0], [-100.0, 40.0]]


def place(_: str) -> Floats:
    return np.array([[0.0, 0.0], [1.0, 1.0]])


@pytest.mark.parametrize("kind", PANELS)
def test_every_kind_of_panel_is_drawn_the_same_twice(kind: str) -> None:
    figure = Figure(kind, "A caption", (PANELS[kind], PANELS[kind]), columns=2)
    first, second = draw(figure, {}, place), draw(figure, {}, place)
    assert first == second
    assert first.png.startswith(b"\x89PNG")
    assert ET.fromstring(first.svg).tag.endswith("svg")


def write_shapes(path: Path, features: list[Mapping[str, Any]]) -> Path:
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path


@pytest.mark.parametrize(
    "named",
    [
        {"id": "01001"},
        {"id": 1001},
        {"properties": {"GEOID": "01001"}},
        {"properties": {"GEO_ID": "0500000US01001"}},
        {"properties": {"STATE": "01", "COUNTY": "001"}},
    ],
)
def test_counties_are_known_by_any_usual_code(tmp_path: Path, named: dict[str, Any]) -> None:
    polygons = {"type": "MultiPolygon", "coordinates": [[TRIANGLE], [TRIANGLE]]}
    shapes = read_outlines(write_shapes(tmp_path / "s.json", [{**named, "geometry": polygons}]))
    assert list(shapes) == ["01001"]
    assert len(shapes["01001"]) == 2
    assert outlined(("01001", "01003"), shapes)
    assert not outlined(("01003", "01005", "01007"), shapes)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{oops", "is not JSON"),
        ("[1, 2]", "has no list of features"),
        ('{"features": [{"id": "x", "geometry": null}]}', "has no outline with a FIPS code"),
    ],
)
def test_what_is_no_map_is_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "s.json").write_text(content)
    with pytest.raises(InvalidInputError, match=message):
        read_outlines(tmp_path / "s.json")


def test_a_map_is_drawn_on_outlines_when_there_are_any() -> None:
    shapes = {code: [np.asarray(TRIANGLE)] for code in ("01001", "01003")}
    figure = Figure("map", "A map", (PANELS["map"],))
    assert draw(figure, shapes, place).png != draw(figure, {}, place).png


def test_packaged_outlines_are_counties() -> None:
    pytest.importorskip("bokeh_sampledata")
    shapes = packaged_shapes()
    assert len(shapes) > 3000
    assert shapes["06037"][0].shape[1] == 2

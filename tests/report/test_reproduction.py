import json
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphmrf.errors import InvalidInputError
from graphmrf.experiments.findings import Bars, Cell, Figure, Goal, Heat, Lines, Map, Points, Row, Series, Table
from graphmrf.report.reproduction import (
    ReproductionFigure,
    ReproductionReport,
    ReproductionSection,
    render_reproduction,
)
from graphmrf.report.reproduction_figures import draw
from graphmrf.report.reproduction_shapes import Atlas, outlined, packaged_shapes, read_shapes

SERIES = (Series("LP", [0.1, 0.2], [0.4, 0.5], [0.01, 0.02]), Series("LGC", [0.1, 0.2], [0.5, 0.6]))
PANELS: dict[str, Lines | Bars | Points | Heat | Map] = {
    "lines": Lines("U.S.", "share", "R²", SERIES),
    "ramp": Lines(
        "LGC", "λ", "g", (Series("ω = 1", [0, 1], [1, 0], colour=0.0), Series("ω = 2", [0, 1], [1, 0], colour=1.0))
    ),
    "bars": Bars("income", ("LR", "LGC"), "R²", (Series("transductive", [0, 1], [0.4, 0.5]), SERIES[0])),
    "points": Points("CDC", "foreseen", "measured", (Series("airT, LP", [-4.0], [0.4], colour=0.0, marker="o"),)),
    "heat": Heat("LP", "true ω", "ω", np.eye(3), ("0.1", "", "1"), ("0.1", "", "1"), marks=((0, 0), (1, 2))),
    "signed": Heat("H", "", "", np.array([[2.0, -1.0, np.nan], [-1.0, 2.0, 0.0]]), signed=True),
    "map": Map("election", "us-2016", ("01001", "01003"), np.array([-0.5, 0.5]), (-1.0, 1.0)),
}
ATLAS = Atlas(points={"us-2016": np.array([[0.0, 0.0], [1.0, 1.0]])})
TRIANGLE = [[-100.0, 40.0], [-99.0, 40.0], [-99.0, 41.0], [-100.0, 40.0]]


class Outline(HTMLParser):
    """Tags that are open, ids, and texts of cells."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        named = dict(attrs)
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.links += [value for value in (named.get("href"),) if value and value.startswith("#")]


def page(**section: Any) -> str:
    return render_reproduction(
        ReproductionReport((ReproductionSection("t", "A <title>", "Table 1", **section),), "2 splits")
    )


def test_a_cell_shows_ours_the_papers_and_the_difference() -> None:
    cells = (Cell(0.668, 0.66, 0.01, 10), Cell(0.40, 0.27, 0.02, 10), Cell(None, 0.5, note="needs the gnn extra"))
    table = Table("t", "R²", ("data",), ("LR", "LGC", "GCN"), (Row(("U.S. & co",), cells),), ranked=True)
    html = page(tables=(table,))
    assert '0.668<small>0.66 <span class="near">+0.008</span></small>' in html
    assert (
        '<td class="number" title="10 runs, standard deviation 0.020">0.400<small>0.27 <span class="far">+0.130' in html
    )
    assert 'title="needs the gnn extra"' in html
    assert "U.S. &amp; co" in html
    assert '<td class="number best" title="10 runs, standard deviation 0.010">0.668' in html


def test_goals_are_counted_and_linked() -> None:
    goals = (Goal("a", "0.1", "< 1", True), Goal("b", "2", "< 1", False), Goal("c", "3", "printed"))
    html = page(goals=goals)
    assert "1 of 2 goals are met." in html
    outline = Outline()
    outline.feed(html)
    assert {link[1:] for link in outline.links} <= set(outline.ids)
    assert len(outline.ids) == len(set(outline.ids))


def test_what_users_wrote_is_escaped_and_nothing_is_loaded() -> None:
    html = page(remarks=("<script>alert(1)</script>",), figures=(ReproductionFigure("f", 'say "hi"', b"<svg/>"),))
    assert "<script>alert" not in html
    assert "A &lt;title&gt;" in html
    assert 'alt="say &quot;hi&quot;"' in html
    assert "http://" not in html
    assert "https://" not in html


@pytest.mark.parametrize("kind", PANELS)
def test_every_kind_of_panel_is_drawn_the_same_twice(kind: str) -> None:
    figure = Figure(kind, "A caption", (PANELS[kind], PANELS[kind]), columns=2)
    first, second = draw(figure, ATLAS), draw(figure, ATLAS)
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
    shapes = read_shapes(write_shapes(tmp_path / "s.json", [{**named, "geometry": polygons}]))
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
        read_shapes(tmp_path / "s.json")


def test_a_map_is_drawn_on_outlines_when_there_are_any() -> None:
    shapes = {code: [np.asarray(TRIANGLE)] for code in ("01001", "01003")}
    figure = Figure("map", "A map", (PANELS["map"],))
    assert draw(figure, Atlas(shapes)).png != draw(figure, ATLAS).png


def test_packaged_outlines_are_counties() -> None:
    pytest.importorskip("bokeh_sampledata")
    shapes = packaged_shapes()
    assert len(shapes) > 3000
    assert shapes["06037"][0].shape[1] == 2

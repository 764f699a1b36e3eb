from html.parser import HTMLParser
from typing import Any

import pytest

from graphmrf.report.page import asset, templates
from graphmrf_paper.figures import Drawing
from graphmrf_paper.findings import Figure, Findings, Goal, PaperTable, TableCell, TableRow
from graphmrf_paper.pages import Reproduction, as_page
from graphmrf_paper.runner import timings
from graphmrf_paper.runs import Experiment, Outline, RunSettings

pytestmark = pytest.mark.slow


class Anchors(HTMLParser):
    """Ids, and links to them."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        named = dict(attrs)
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.links += [value for value in (named.get("href"),) if value and value.startswith("#")]


def page(remarks: tuple[str, ...] = (), **found: Any) -> str:
    experiment = Experiment("t", "A <title>", "Table 1", (), lambda _: Outline(), remarks)
    settings = RunSettings(quick=True)
    made = Reproduction([(experiment, Findings(**found))], settings, timings([experiment], settings, {}), "graphmrf")
    drawings = {figure.name: Drawing(b"", b"<svg/>", 800) for figure in found.get("figures", ())}
    return as_page(made, drawings, shell=templates().get_template("page.html"), style=asset("page.css"))


def test_a_cell_shows_ours_the_papers_and_the_difference() -> None:
    cells = (
        TableCell(0.668, 0.66, 0.652, 0.01, 10),
        TableCell(0.40, 0.27, None, 0.02, 10),
        TableCell(None, 0.5, note="needs the gnn extra"),
    )
    table = PaperTable("t", "R²", ("data",), ("LR", "LGC", "GCN"), (TableRow(("U.S. & co",), cells),), ranked=True)
    html = page(tables=(table,))
    assert '0.668<small>0.66 / 0.652 <span class="near">+0.008</span></small>' in html
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
    anchors = Anchors()
    anchors.feed(html)
    assert {link[1:] for link in anchors.links} <= set(anchors.ids)
    assert len(anchors.ids) == len(set(anchors.ids))


def test_what_users_wrote_is_escaped_and_nothing_is_loaded() -> None:
    html = page(remarks=("<script>alert(1)</script>",), figures=(Figure("f", 'say "hi"', ()),))
    assert "<script>alert" not in html
    assert "A &lt;title&gt;" in html
    assert 'alt="say &#34;hi&#34;"' in html
    assert "http://" not in html
    assert "https://" not in html

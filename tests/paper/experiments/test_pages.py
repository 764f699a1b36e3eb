from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from graphmrf.text import DASH
from graphmrf_paper.figures import Drawing
from graphmrf_paper.findings import Figure, Findings, Goal, PaperTable, TableCell, TableRow
from graphmrf_paper.pages import Reproduction, as_document, as_page
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


def reproduction(remarks: tuple[str, ...] = (), **found: Any) -> Reproduction:
    experiment = Experiment("t", "A <title>", "Table 1", (), lambda _: Outline(), remarks)
    settings = RunSettings(quick=True)
    return Reproduction([(experiment, Findings(**found))], settings, timings([experiment], settings, {}), "graphmrf")


def page(remarks: tuple[str, ...] = (), **found: Any) -> str:
    made = reproduction(remarks, **found)
    drawings = {figure.name: Drawing(b"", b"<svg/>", 800) for figure in found.get("figures", ())}
    return as_page(made, drawings)


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


def table(*cells: TableCell, name: str = "t", **form: Any) -> PaperTable:
    columns = tuple(f"c{k}" for k in range(len(cells)))
    return PaperTable(name, f"{name}.", ("row",), columns, (TableRow(("r",), cells),), **form)


def test_mean_differences_have_a_line_for_each_quantity_and_one_for_all_accuracies() -> None:
    tables = (
        table(TableCell(0.5, 0.4), TableCell(0.5, 0.7, 0.52), TableCell(None, 0.3)),
        table(TableCell(0.3, None, 0.26)),
        table(TableCell(9.0, 8.0), quantity="K"),
        table(TableCell(5.0, 1.0), quantity=""),
    )
    assert reproduction(tables=tables).mean_differences() == [
        ("Table 1", "R²", "0.1500 (2 cells)", "0.0300 (2 cells)"),
        ("Table 1", "K", "1.0000 (1 cell)", DASH),
        ("all of these", "R²", "0.1500 (2 cells)", "0.0300 (2 cells)"),
    ]
    document = as_document(reproduction(tables=tables, goals=(Goal("a", "1"),)))
    assert "| all of these | R² | 0.1500 (2 cells) | 0.0300 (2 cells) |" in document


def test_means_over_some_of_their_runs_are_marked() -> None:
    cells = TableCell(0.5, 0.4, n_runs=9, missing=1), TableCell(0.6, n_runs=10)
    document = as_document(reproduction(tables=(table(*cells),)))
    assert "In brackets: print. †: not all runs." in document
    assert "| r | 0.500† (0.40) | 0.600 |" in document
    assert f'title="9 runs (1 are missing), standard deviation {DASH}">0.500†<small>0.40' in page(
        tables=(table(*cells),)
    )


def test_a_table_beside_two_sources_names_both_commits() -> None:
    mixed = table(TableCell(0.5, 0.4, 0.42), numbers=("synthetic-accuracy", "real-accuracy"))
    assert "In brackets: print / the authors' files (cf60223 and 46ed0fa)." in as_document(
        reproduction(tables=(mixed,))
    )


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        ((0.11, 0.02), "training explains Table 4"),
        ((0.11, 0.15), "Table 4 is missed, and training does not explain it"),
    ],
)
def test_prose_follows_from_the_numbers(shares: tuple[float, float], words: str) -> None:
    goals = [
        Goal(what, "", met=share < 0.05, share=share)
        for what, share in zip(("coefficients", "coefficient of LGC, trained"), shares, strict=True)
    ]
    made = [
        (Experiment(name, name, name, (), lambda _: Outline()), Findings(goals=(goal,)))
        for name, goal in zip(("coefficients", "trained-lgc"), goals, strict=True)
    ]
    whole = reproduction()
    document = " ".join(as_document(replace(whole, parts=made)).split())
    assert f"by {shares[0]:.1%}".replace("%", " %") + " by least squares" in document
    assert words in document
    assert words not in as_document(whole)
    assert "overfits Twitch" not in document, "has no numbers here"

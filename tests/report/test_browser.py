"""The page in a real browser: it draws, answers to the mouse, and asks the network for nothing."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from graphmrf.graph import Graph
from graphmrf.report import PredictionReport, drawing, write_report
from tools import page as towns

pytestmark = pytest.mark.slow

Maker = Callable[..., Any]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
]
TIPS = """() => [...document.querySelectorAll("section:not([hidden]) .map")]
    .map((map) => map.querySelectorAll(".tip:not([hidden])").length)"""


def missing(what: str) -> None:
    """Skip where nobody promised a browser; in continuous integration its absence is a failure."""
    message = f"{what} is missing; the browser tests need Debian's chromium and pip install playwright"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    chromium = shutil.which("chromium")
    if chromium is None:
        missing("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, headless=True, args=FLAGS)
        yield browser
        browser.close()


class Visit:
    """An open page, what it asked the network for and what it complained about."""

    def __init__(self, browser: Any, path: Path, **context: Any) -> None:
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.page = browser.new_context(reduced_motion="reduce", **context).new_page()
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda line: self.errors.append(line.text) if line.type == "error" else None)
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("section.target[data-drawn]", timeout=60_000)


@pytest.fixture
def visit(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Visit]]:
    visits: list[Visit] = []

    def open_page(report: PredictionReport, **context: Any) -> Visit:
        visits.append(Visit(browser, write_report(tmp_path / "report.html", report), **context))
        return visits[-1]

    yield open_page
    for seen in visits:
        assert seen.errors == []
        assert [url for url in seen.requests if not url.startswith(("file:", "data:", "blob:"))] == []
        seen.page.context.close()


def painted(page: Any, place: int = 0) -> int:
    """Colours on a canvas, which is empty with one."""
    colours: int = page.evaluate(
        """(k) => { const c = document.querySelectorAll(".map canvas")[k];
        const pixels = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
        return new Set(new Uint32Array(pixels.buffer)).size; }""",
        place,
    )
    return colours


def test_every_figure_is_drawn(make_report: Maker, visit: Callable[..., Visit]) -> None:
    page = visit(make_report()).page
    drawn = page.evaluate(
        "[...document.querySelectorAll('[data-figure]')].map((d) => d.querySelectorAll('svg.main-svg').length)"
    )
    assert len(drawn) == 8
    assert min(drawn) >= 1
    assert [painted(page, k) > 20 for k in range(3)] == [True] * 3


def test_areas_are_filled(make_report: Maker, visit: Callable[..., Visit]) -> None:
    square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    corners = np.stack(np.divmod(np.arange(40.0), 8), axis=1)
    shapes = [[corner + square] for corner in corners]
    page = visit(make_report(shapes=shapes, coordinates=corners + 0.5)).page
    filled = page.evaluate(
        """() => { const c = document.querySelector(".map canvas");
        return c.getContext("2d").getImageData(c.width / 2, c.height / 2, 1, 1).data[3]; }"""
    )
    assert filled == 255
    point_at(page, 0, 12)
    assert page.inner_text(".readout").startswith("ward-12: ")


def test_a_panel_has_a_map_for_every_time_below_its_name(make_report: Maker, visit: Callable[..., Visit]) -> None:
    panel = Graph.from_edges(np.arange(9), np.arange(1, 10)).over_time([2018, 2019, 2020, 2021])
    corners = np.stack(np.divmod(np.arange(10.0), 5), axis=1)
    page = visit(make_report(graph=panel, coordinates=corners.repeat(4, axis=0))).page
    inked = page.evaluate(
        """() => { const c = document.querySelector(".map canvas"), ratio = window.devicePixelRatio || 1;
        const top = c.getContext("2d").getImageData(0, 0, c.width, 12 * ratio).data;
        return top.filter((v, i) => i % 4 === 3 && v > 100).length; }"""
    )
    assert inked > 30  # the names of the first row of times, above all nodes
    point_at(page, 0, 7)
    assert page.inner_text(".readout").startswith("ward-7: ")


def test_many_nodes_are_drawn_in_cells(
    make_report: Maker, visit: Callable[..., Visit], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "draw_graph", partial(drawing.draw_graph, max_nodes=1000))
    page = visit(make_report(2500, coordinates=np.random.default_rng(0).uniform(size=(2500, 2)))).page
    assert 300 < int(page.get_attribute(".map", "data-nodes")) < 2500
    assert painted(page) > 20
    page.hover("tr[data-node] >> nth=0")
    assert "mean of" in page.inner_text(".tip >> nth=0")
    assert page.locator(".find").count() == 0


def test_columns_sort_both_ways(make_report: Maker, visit: Callable[..., Visit]) -> None:
    page = visit(make_report()).page
    table = page.locator("table", has_text="Observed among them")
    head = table.locator("thead th", has_text="Std")

    def shown() -> list[float]:
        return [float(text) for text in table.locator("tbody tr td:nth-child(3)").all_inner_texts()]

    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert shown() == sorted(shown(), reverse=True)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert shown() == sorted(shown())
    table.locator("thead th button", has_text="Node").click()
    names = table.locator("tbody th").all_inner_texts()
    assert names == sorted(names, key=lambda name: int(name.removeprefix("ward-")))


def point_at(page: Any, place: int, node: int) -> None:
    """Move the mouse over a node of a drawing, whose place is looked for by its tip."""
    canvas = page.locator(".map canvas").nth(place)
    canvas.scroll_into_view_if_needed()
    page.locator("input[name=id]").fill(f"ward-{node}")
    page.locator("input[name=id]").press("Enter")
    ring = page.locator(".map").nth(place).locator(".ring").bounding_box()
    page.locator("input[name=id]").fill("")
    page.locator("input[name=id]").press("Enter")
    page.mouse.move(ring["x"] + ring["width"] / 2 - 2, ring["y"] + ring["height"] / 2)
    page.mouse.move(ring["x"] + ring["width"] / 2, ring["y"] + ring["height"] / 2)


def test_pointing_at_a_node_marks_it_in_all_drawings(make_report: Maker, visit: Callable[..., Visit]) -> None:
    features = pd.DataFrame({"age": np.arange(40), "side": ["north", "south"] * 20})
    page = visit(make_report(features=features)).page
    point_at(page, 0, 6)
    page.wait_for_function("document.querySelector('.readout').textContent.startsWith('ward-6: ')")
    assert "±" in page.inner_text(".readout")
    assert page.evaluate(TIPS) == [1, 1, 1]
    tip = page.inner_text(".tip >> nth=0")
    assert "90 % interval: " in tip
    assert "age 6 · side north" in tip


def test_drawings_zoom_together_by_button_and_by_key(make_report: Maker, visit: Callable[..., Visit]) -> None:
    page = visit(make_report()).page
    page.fill("input[name=id]", "ward-7")
    page.press("input[name=id]", "Enter")

    def places() -> list[Any]:
        page.wait_for_timeout(200)
        return [page.locator(".ring").nth(k).get_attribute("style") for k in (0, 1)]

    before = places()
    page.locator(".map").nth(1).get_by_label("Zoom in").click()
    zoomed = places()
    assert all(a != b for a, b in zip(before, zoomed, strict=True))
    page.locator(".map").first.focus()
    page.keyboard.press("ArrowLeft")
    assert places() != zoomed
    page.keyboard.press("0")
    assert places() == before


def test_the_table_is_saved_as_csv(make_report: Maker, visit: Callable[..., Visit], tmp_path: Path) -> None:
    report = make_report(features=pd.DataFrame({"a,b": np.arange(40.0)}))
    page = visit(report).page
    with page.expect_download() as waiting:
        page.click("[data-save=csv]")
    waiting.value.save_as(tmp_path / "saved.csv")
    assert waiting.value.suggested_filename == "income.csv"
    frame, target = pd.read_csv(tmp_path / "saved.csv"), report.targets[0]
    columns = ["id", "prediction", "std", "lower", "upper", "left_out", "residual", "observed", "a,b"]
    assert list(frame.columns) == columns
    np.testing.assert_allclose(frame["prediction"], target.values, rtol=1e-14)  # pandas below 3 rounds as it reads
    np.testing.assert_array_equal(frame["std"].isna(), target.observed)
    np.testing.assert_array_equal(frame["observed"], target.observed)


def test_themes_and_tabs_may_change_while_it_draws(make_report: Maker, visit: Callable[..., Visit]) -> None:
    page = visit(make_report(names=("income", "rent"))).page
    for scheme in ("dark", "light") * 3:
        page.emulate_media(color_scheme=scheme)
        page.locator(".tabs a").nth(1).click()
        page.locator(".tabs a").first.click()
        page.dispatch_event("#target-0 tr[data-node]", "mouseenter")
    page.wait_for_selector("#target-0[data-drawn]")
    assert painted(page) > 20


def test_a_node_is_found_by_its_id(make_report: Maker, visit: Callable[..., Visit]) -> None:
    page = visit(make_report()).page
    page.fill("input[name=id]", "ward-7")
    page.press("input[name=id]", "Enter")
    assert page.inner_text(".readout").startswith("ward-7: ")
    assert page.evaluate(TIPS) == [1, 1, 1]
    page.fill("input[name=id]", "nowhere")
    page.press("input[name=id]", "Enter")
    assert "No node" in page.inner_text(".readout")


def test_tabs_show_one_target_at_a_time(make_report: Maker, visit: Callable[..., Visit]) -> None:
    page = visit(make_report(names=("income", "rent"))).page
    assert page.locator("section.target:visible h2").all_inner_texts() == ["Predicted income for 20 of 40 nodes."]
    page.locator(".tabs a").first.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#target-1[data-drawn]")
    assert page.locator("section.target:visible h2").all_inner_texts() == ["Predicted rent for 20 of 40 nodes."]
    assert page.url.endswith("#target-1")


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_its_screen_in_both_themes(
    make_report: Maker, visit: Callable[..., Visit], width: int, scheme: str
) -> None:
    page = visit(make_report(), viewport={"width": width, "height": 800}, color_scheme=scheme).page
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    paint = page.evaluate("getComputedStyle(document.body).backgroundColor").removeprefix("rgb(").removesuffix(")")
    assert (max(int(c) for c in paint.split(",")) < 64) == (scheme == "dark")
    bars = page.evaluate(
        "[...document.querySelectorAll('.bar')].map((b) => [b.clientWidth, b.parentElement.clientWidth])"
    )
    assert [width / whole for width, whole in bars] == pytest.approx([0.25, 0.45, 0.3], abs=0.02)


def test_axe_finds_no_barrier_in_any_view(browser: Any, tmp_path: Path) -> None:
    """Numbers and classes, a light desktop and a dark phone; the benchmark has all four."""
    axe = towns.axe_script()
    if not axe:
        pytest.skip("axe-core could not be fetched by npm, and it is not ours to ship")
    path = write_report(tmp_path / "report.html", towns.town(40))
    assert towns.violations(browser, path, axe, ((1280, "light"), (360, "dark"))) == []


def test_classes_are_drawn_and_shown_alone(visit: Callable[..., Visit]) -> None:
    report = towns.town(100)
    page = visit(replace(report, targets=report.targets[1:])).page
    before = painted(page)
    page.locator(".classes button").first.click()
    assert page.locator(".classes button").first.get_attribute("aria-pressed") == "true"
    assert painted(page) < before
    diagonal = page.locator(".confusion td.right").all_inner_texts()
    target: Any = report.targets[1]
    truth, said = target.codes[target.observed], target.tested
    assert [int(text) for text in diagonal] == [int(np.sum((truth == k) & (said == k))) for k in range(4)]
    page.dispatch_event("tr[data-node] >> nth=0", "mouseenter")
    assert "%" in page.inner_text(".tip >> nth=0")


def test_markup_in_names_stays_text(make_report: Maker, visit: Callable[..., Visit]) -> None:
    evil = "<script>document.title = 'hacked'</script><b>x</b>"
    page = visit(make_report(names=(evil,), title="Wards", node_ids=[f"{evil}{i}" for i in range(40)])).page
    page.hover("tr[data-node] >> nth=0")
    assert page.title() == "Wards"
    assert evil in page.inner_text("h2")
    assert evil in page.locator(".tip").first.text_content()

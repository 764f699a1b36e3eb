"""The page in a real browser: it draws, answers to the mouse, and asks the network for nothing."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from graphmrf.report import PredictionReport, write_report

Maker = Callable[..., PredictionReport]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
]
LABELS = """() => [...document.querySelectorAll("section:not([hidden]) .map")]
    .map((map) => map.querySelectorAll(".annotation").length)"""


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
        self.page = browser.new_context(**context).new_page()
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


def test_every_figure_is_drawn(make_report: Maker, visit: Callable[..., Visit]) -> None:
    page = visit(make_report()).page
    drawn = page.evaluate(
        "[...document.querySelectorAll('[data-figure]')].map((d) => d.querySelectorAll('svg.main-svg').length)"
    )
    assert len(drawn) == 6
    assert min(drawn) >= 1
    assert page.locator(".map").first.locator(".scatterlayer path.point").count() == 40


def test_many_nodes_are_drawn_with_webgl(make_report: Maker, visit: Callable[..., Visit]) -> None:
    page = visit(make_report(2500)).page
    kinds = page.evaluate("document.querySelector('.map').data.map((trace) => [trace.type, trace.x.length])")
    assert [kind for kind, _ in kinds[1:]] == ["scattergl", "scattergl"]
    assert kinds[1][1] + kinds[2][1] == 2500


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


def test_pointing_at_a_node_marks_it_in_the_other_drawing(make_report: Maker, visit: Callable[..., Visit]) -> None:
    page = visit(make_report()).page
    page.locator(".map").first.scroll_into_view_if_needed()
    point = (
        page.locator(".map").first.locator(".scatterlayer .trace").nth(2).locator("path.point").nth(3).bounding_box()
    )
    x, y = point["x"] + point["width"] / 2, point["y"] + point["height"] / 2
    page.mouse.move(x - 2, y)
    page.mouse.move(x, y)
    page.wait_for_function("document.querySelector('.readout').textContent.startsWith('ward-6: ')")
    assert "±" in page.inner_text(".readout")
    assert page.evaluate(LABELS) == [0, 1]


def test_a_node_is_found_by_its_id(make_report: Maker, visit: Callable[..., Visit]) -> None:
    page = visit(make_report()).page
    page.fill("input[name=id]", "ward-7")
    page.press("input[name=id]", "Enter")
    assert page.inner_text(".readout").startswith("ward-7: ")
    assert page.evaluate(LABELS) == [1, 1]
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


def test_markup_in_names_stays_text(make_report: Maker, visit: Callable[..., Visit]) -> None:
    evil = "<script>document.title = 'hacked'</script><b>x</b>"
    page = visit(make_report(names=(evil,), title="Wards", node_ids=[f"{evil}{i}" for i in range(40)])).page
    page.hover("tr[data-node]")
    assert page.title() == "Wards"
    assert evil in page.inner_text("h2")
    assert evil in page.locator(".annotation-text").first.text_content()

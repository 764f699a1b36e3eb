"""The page of a prediction in a real browser: size, time to load, frames while it moves, accessibility, errors.

Pages of invented towns are made without fitting. Needs Chromium and Playwright; axe-core is fetched by npm into a
cache, and its column is empty where that fails. ``python -m tools.page --nodes 10000 --loads 50`` opens
each page so often. Seconds of the browser are CPU time of its main thread, for the machine may be shared.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from benchmarks.show import timed
from graphmrf.comparison import Explanation, FittedMethod, Prediction
from graphmrf.estimators.methods import METHODS
from graphmrf.graph import Graph
from graphmrf.report import PredictionReport, write_report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.show import Row

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
AXE = "axe-core@4.10.3"
VIEWS = ((1280, "light"), (1280, "dark"), (360, "light"), (360, "dark"))
"""Widths and themes in which accessibility is checked."""


def axe_script() -> str:
    """Return the script of axe-core, fetched once into a cache; empty where npm cannot fetch it."""
    folder = Path.home() / ".cache" / "graphmrf" / "axe"
    script = folder / "node_modules" / "axe-core" / "axe.min.js"
    npm = shutil.which("npm")
    if not script.exists() and npm is not None:
        folder.mkdir(parents=True, exist_ok=True)
        command = [npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--silent", AXE]
        subprocess.run(command, check=False, capture_output=True, timeout=120)
    return script.read_text(encoding="utf-8") if script.exists() else ""


def town(n: int, *, shapes: bool = False) -> PredictionReport:
    """Return the report of an invented town on a grid of n nodes: one target of numbers, one of classes."""
    side = int(np.sqrt(n))
    n, rng = side * side, np.random.default_rng(0)
    node = np.arange(n).reshape(side, side)
    u, v = np.concatenate([[node[:, :-1], node[:, 1:]], [node[:-1].T, node[1:].T]], axis=1).reshape(2, -1)
    corners = np.stack(np.divmod(np.arange(n), side), axis=1).astype(float)
    square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    return PredictionReport(
        title=f"A town of {n:,}",
        graph=Graph.from_edges(u, v, n_nodes=n),
        node_ids=[f"T{k}" for k in range(n)],
        targets=(_numbers(corners, rng), _classes(corners, rng)),
        coordinates=corners + 0.5,
        shapes=[[corner + square] for corner in corners] if shapes else None,
        features=pd.DataFrame({"age": rng.normal(40, 5, n).round(1), "side": rng.choice(["north", "south"], n)}),
    )


def _numbers(corners: Any, rng: np.random.Generator) -> Prediction:
    n = len(corners)
    truth = np.sin(corners[:, 0] / 7) + np.cos(corners[:, 1] / 5) + 0.3 * rng.normal(size=n)
    y = np.where(rng.random(n) < 0.3, truth, np.nan)
    mean, std = truth + 0.3 * rng.normal(size=n), rng.uniform(0.2, 0.4, n)
    known = np.flatnonzero(~np.isnan(y))
    residual = rng.normal(size=known.size)
    tested = {"node": known, "out_of_fold": mean[known], "left_out": mean[known], "residual": residual}
    rows = tuple(FittedMethod(METHODS[key], 0.6, 0.03) for key in ("field", "lgc-rp", "lp"))
    return Prediction(
        "rent",
        y,
        mean,
        method="field",
        std=std,
        lower=mean - 1.6 * std,
        upper=mean + 1.6 * std,
        carries="The graph field carries the prediction.",
        methods=rows,
        explanation=Explanation({"own features": 0.3, "graph field": 0.4, "noise": 0.3}),
        held_out=pd.DataFrame(tested),
        coverage=pd.DataFrame({"level": [0.5, 0.8, 0.9], "inside": [0.52, 0.8, 0.89]}),
    )


def _classes(corners: Any, rng: np.random.Generator) -> Prediction:
    n, k = len(corners), 4
    probability = rng.dirichlet(np.full(k, 0.6), n)
    codes, observed = probability.argmax(axis=1), rng.random(n) < 0.3
    m = int(observed.sum())
    said = np.where(rng.random(m) < 0.7, codes[observed], rng.integers(0, k, m))
    return Prediction(
        "land",
        np.where(observed, codes, np.nan),
        codes.astype(float),
        "lgc-rp",
        methods=(FittedMethod(METHODS["lgc-rp"], 0.72, 0.02, 0.9), FittedMethod(METHODS["lp"], 0.66, 0.02)),
        classes=np.array(["sea", "wood", "field", "town"]),
        probability=probability,
        held_out=pd.DataFrame({"node": np.flatnonzero(observed), "out_of_fold": said}),
        held_out_probability=probability[observed],
    )


def visit(browser: Any, path: Path, **context: Any) -> tuple[Any, list[str], Callable[[], float]]:
    """Open a page and wait until all of it is drawn.

    Returned are the page, the list to which it adds its complaints, and a clock: the seconds of CPU that its main
    thread has spent so far.
    """
    errors: list[str] = []
    page = browser.new_context(reduced_motion="reduce", **context).new_page()
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def clock() -> float:
        found = session.send("Performance.getMetrics")["metrics"]
        return float(next(each["value"] for each in found if each["name"] == "TaskDuration"))

    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda line: errors.append(line.text) if line.type in ("error", "warning") else None)
    page.goto(path.as_uri())
    page.wait_for_selector("section.target[data-drawn]", timeout=120_000)
    return page, errors, clock


def frame(page: Any, clock: Callable[[], float]) -> float:
    """Return the milliseconds of CPU of a frame in which the drawings are painted again, while they are moved."""
    script = """async () => {
        const map = document.querySelector(".map");
        for (let k = 0; k < 20; k++) {
            const key = k % 2 ? "ArrowLeft" : "ArrowRight";
            map.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
            await new Promise((next) => requestAnimationFrame(() => setTimeout(next)));
        } }"""
    start = clock()
    page.evaluate(script)
    return 1000 * (clock() - start) / 20


def violations(browser: Any, path: Path, axe: str, views: tuple[tuple[int, str], ...] = VIEWS) -> list[str] | None:
    """Return what axe-core finds in the views of every target of a page; None without axe-core."""
    if not axe:
        return None
    found: set[str] = set()
    for width, scheme in views:
        view = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
        page, _, _ = visit(browser, path, bypass_csp=True, **view)
        page.evaluate(axe)
        for tab in range(page.locator(".tabs a").count()):
            page.locator(".tabs a").nth(tab).click()
            page.wait_for_selector(f"#target-{tab}[data-drawn]", timeout=120_000)
            for each in page.evaluate("axe.run(document)")["violations"]:
                found |= {f"{each['id']}: {node['target'][0]} ({width} {scheme})" for node in each["nodes"]}
        page.context.close()
    return sorted(found)


def measure(browser: Any, report: PredictionReport, name: str, *, loads: int, axe: str) -> Row:
    """Return the figures of one page."""
    with tempfile.TemporaryDirectory() as folder:
        made, path = timed(lambda: write_report(Path(folder) / "report.html", report))
        seconds, complaints, moving = [], list[str](), float("nan")
        for k in range(loads):
            page, errors, clock = visit(browser, path, color_scheme="dark" if k % 2 else "light")
            seconds.append(clock())
            moving = frame(page, clock) if k == 0 else moving
            page.locator(".tabs a").nth(1).click()
            page.wait_for_selector("#target-1[data-drawn]", timeout=120_000)
            page.dispatch_event("#target-1 tr[data-node]", "mouseenter")
            complaints += errors
            page.context.close()
        found = violations(browser, path, axe)
        return {
            "page": name,
            "nodes": report.graph.n_nodes,
            "megabytes": path.stat().st_size / 1e6,
            "made, s": made,
            "drawn, CPU s": statistics.median(seconds),
            "frame, CPU ms": moving,
            "loads": loads,
            "console errors": len(complaints),
            "axe violations": None if found is None else len(found),
            "found": "; ".join([*dict.fromkeys(complaints), *(found or ())]),
        }


def pages(sizes: list[int], loads: int) -> Iterator[Row]:
    """Yield the figures of towns of these sizes; of small ones also as areas."""
    from playwright.sync_api import sync_playwright

    axe = axe_script()
    kinds = [(n, kind) for n in sizes for kind in (("nodes", "areas") if n <= 1000 else ("nodes",))]
    with sync_playwright() as playwright:
        chromium = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, headless=True, args=FLAGS)
        for n, kind in kinds:
            yield measure(browser, town(n, shapes=kind == "areas"), kind, loads=loads, axe=axe)
        browser.close()


def run(*, quick: bool = False) -> list[Row]:
    """Return a row for every page."""
    return [*pages([400] if quick else [1000, 10_000, 1_000_000], 1 if quick else 50)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1000])
    parser.add_argument("--loads", type=int, default=5)
    asked = parser.parse_args()
    for row in pages(asked.nodes, asked.loads):
        print(json.dumps(row), flush=True)

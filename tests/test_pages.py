"""Every block of code of the documentation runs, every example of the gallery draws, and the README says the same."""

import runpy
from pathlib import Path

import matplotlib as mpl
import pytest
from benchmarks import record
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from pages import ROOT, pages, run_page

GALLERY = sorted((ROOT / "examples" / "gallery").glob("[a-z]*.py"))


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plt, "show", lambda: None)
    mpl.use("Agg")


@pytest.mark.parametrize("page", pages(), ids=lambda path: str(path.relative_to(ROOT / "docs")))
def test_the_page_runs(page: Path) -> None:
    try:
        assert run_page(page)
    finally:
        plt.close("all")


@pytest.mark.parametrize("script", GALLERY, ids=lambda path: path.stem)
def test_the_example_draws(script: Path) -> None:
    made = runpy.run_path(str(script))
    try:
        assert isinstance(made["figure"], Figure)
        assert (made["__doc__"] or "").count("\n\n") >= 1, "a title, and what it shows"
        assert (ROOT / "docs" / "images" / "gallery" / f"{script.stem}.png").exists(), "make gallery"
    finally:
        plt.close("all")


def test_the_readme_fits_a_terminal() -> None:
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()
    assert [line for line in lines if len(line) > 80 and not line.startswith("|")] == []


def test_the_tables_of_benchmarks_are_those_that_were_kept() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    made = page.partition(record.BEGIN)[2].partition(record.END)[0].strip()
    assert made == record.tables(record.read())
    assert {row["benchmark"] for row in record.read()} <= set(record.TABLES)


def test_a_new_line_replaces_one_of_the_same_size_and_texts() -> None:
    old = [{"benchmark": "a", "graph": "grid", "nodes": 9, "s": 2.0}, {"benchmark": "a", "graph": "path", "nodes": 9}]
    new = [{"benchmark": "a", "graph": "grid", "nodes": 9, "s": 1.0}, {"benchmark": "a", "graph": "grid", "nodes": 4}]
    assert record.merged(old, new) == [new[0], old[1], new[1]]

"""Every block of code of the documentation runs, every example of the gallery draws, and the README says the same."""

import runpy
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from tools.pages import ROOT, pages, run_page

pytestmark = pytest.mark.slow

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

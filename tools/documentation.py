"""The documentation in figures: pages, blocks of code and how many of them run, links and how many are broken.

``python -m tools.documentation [--run]`` builds the site strictly into a temporary folder; ``--run`` also runs
every block, as the tests do.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlparse

from benchmarks.show import Row, show
from tools.pages import RUN, blocks, pages, run_page

PROJECT = Path(__file__).parent.parent


class Page(HTMLParser):
    """Addresses that a page refers to, and the anchors it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002 - of the base
        """Keep what matters of a tag."""
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def broken(site: Path) -> tuple[int, list[str]]:
    """Return how many links there are within a site, and those that lead nowhere."""
    found = {path: Page(path.read_text("utf-8")) for path in site.rglob("*.html") if path.name != "404.html"}
    count, lost = 0, []
    for path, page in found.items():
        for link in page.links:
            address, anchor = urldefrag(link)
            if urlparse(link).scheme or link.startswith("//"):
                continue
            count += 1
            target = path if not address else (path.parent / unquote(address.split("?")[0])).resolve()
            target = target / "index.html" if target.is_dir() else target
            missing = anchor and target in found and unquote(anchor) not in found[target].anchors
            if not target.exists() or (missing and not anchor.startswith("__")):
                lost.append(f"{path.relative_to(site)}: {link}")
    return count, lost


def run(*, quick: bool) -> list[Row]:
    """Build the site and count; without `quick` every block runs, too."""
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder, "site").resolve()
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(site)]
        environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
        subprocess.run(command, cwd=PROJECT, check=True, capture_output=True, env=environment)
        count, lost = broken(site)
        n_pages = sum(path.name != "404.html" for path in site.rglob("*.html"))
    languages = Counter(
        language for path in (PROJECT / "docs").rglob("*.md") for language, _ in blocks(path.read_text("utf-8"))
    )
    ran = sum(languages[language] for language in RUN) if quick else sum(map(_run_elsewhere, pages()))
    print(*lost, sep="\n")
    return [
        {
            "pages": n_pages,
            "blocks of code": languages["python"] + languages["console"] + languages["sh"],
            "of them to be run": sum(languages[language] for language in RUN),
            "ran": None if quick else ran,
            "links within the site": count,
            "broken": len(lost),
        }
    ]


def _run_elsewhere(path: Path) -> int:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        return run_page(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tools.documentation", description=__doc__)
    parser.add_argument("--run", action="store_true", help="also run every block")
    show("documentation", __doc__, run(quick=not parser.parse_args().run))

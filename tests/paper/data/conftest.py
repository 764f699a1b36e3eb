"""The tiny data set under its name, its server, and a cache of its own for every test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphmrf_paper import catalogue
from mirror import CONTENT, Mirror, serve, tiny


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """No place from the environment, no proxy between a test and its server."""
    for name in ("GRAPHMRF_DATA", "GRAPHMRF_CACHE", "GRAPHMRF_MIRROR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setitem(catalogue.RECIPES, "tiny", tiny())


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    with serve(CONTENT) as running:
        yield running


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"

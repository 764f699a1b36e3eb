from pathlib import Path

import pytest

import small_paper


@pytest.fixture(scope="session")
def small_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The paper's data sets, in miniature."""
    return small_paper.write_all(tmp_path_factory.mktemp("data"))


@pytest.fixture(autouse=True)
def _surroundings(small_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_paper.use(small_data, monkeypatch)


@pytest.fixture
def real_data(raw_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The folder of the published files, with a cache that has no miniatures in their place."""
    monkeypatch.setenv("GRAPHMRF_CACHE", str(tmp_path / "cache"))
    return str(raw_data)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results.jsonl"

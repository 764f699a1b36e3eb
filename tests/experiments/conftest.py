from pathlib import Path

import pytest

from graphmrf.experiments import Source
from small_paper import write_all


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    """Where the paper's data sets are, in miniature."""
    return Source(str(write_all(tmp_path_factory.mktemp("data"))))


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results.jsonl"

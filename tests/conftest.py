import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("graphmrf", deadline=None, derandomize=True, max_examples=30)
settings.load_profile("graphmrf")


@pytest.fixture(scope="session")
def raw_data() -> Path:
    if "GRAPHMRF_DATA" not in os.environ:
        pytest.skip("GRAPHMRF_DATA is not set; point it at a folder with the paper's raw files")
    return Path(os.environ["GRAPHMRF_DATA"])


@pytest.fixture(scope="session")
def clean_data(raw_data: Path) -> Path:
    """Tables that others cleaned, to compare ours with: the folder `data` beside the one of the raw files."""
    folder = raw_data.with_name("data")
    if not folder.is_dir():
        pytest.skip(f"there is no folder {folder} with cleaned tables")
    return folder

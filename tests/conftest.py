import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("graphmrf", deadline=None, derandomize=True, max_examples=30)
settings.load_profile("graphmrf")


def _folder(variable: str) -> Path:
    if variable not in os.environ:
        pytest.skip(f"{variable} is not set; point it at a folder with the paper's data sets")
    return Path(os.environ[variable])


@pytest.fixture(scope="session")
def raw_data() -> Path:
    return _folder("GRAPHMRF_DATA")


@pytest.fixture(scope="session")
def clean_data() -> Path:
    return _folder("GRAPHMRF_CLEAN_DATA")

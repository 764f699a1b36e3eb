import os
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from graphmrf.engines import ENGINES, Engine

settings.register_profile("graphmrf", deadline=None, derandomize=True, max_examples=30)
settings.load_profile("graphmrf")


def _cuda(*arrays: Any) -> Engine:
    """The CUDA engine; where there is no GPU, on CPU tensors with plain operations in place of its kernels."""
    torch = import_module("torch")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_num_threads(1)  # more only wait for each other on graphs this small
    engine: Engine = import_module("graphmrf.engines.torch").TorchEngine(*arrays, device=device)
    return engine


ENGINES["cuda"] = _cuda


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

"""Every record of the package is frozen: its cached properties need no invalidating, and threads may share it."""

from collections.abc import Iterator
from dataclasses import is_dataclass
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import pytest

PACKAGES = ("linalg", "model", "field", "graph", "selection")


def records(package: str) -> Iterator[type[Any]]:
    folder = import_module(f"graphmrf.{package}")
    for found in walk_packages(folder.__path__, f"{folder.__name__}."):
        module = import_module(found.name)
        yield from (value for value in vars(module).values() if isinstance(value, type) and is_dataclass(value))


@pytest.mark.parametrize("package", PACKAGES)
def test_every_record_is_frozen(package: str) -> None:
    loose = {made.__qualname__ for made in records(package) if not made.__dataclass_params__.frozen}
    assert loose <= {"_Anderson"}  # the memory of one run of EM

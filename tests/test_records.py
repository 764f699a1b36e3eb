"""What holds for all definitions: records are frozen, and an option has one default wherever it occurs."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from importlib import import_module
from inspect import Parameter, isfunction, signature
from itertools import chain
from pkgutil import walk_packages
from typing import Any

import pytest

PACKAGES = ("linalg", "model", "field", "graph", "selection")


COMMON = {
    **{"seed": 0, "random_state": 0, "n_samples": 1, "target": -1, "k": 1, "near": False},
    **{"center": True, "coupled": False, "unit_variance": True},
}


def definitions(package: str) -> Iterator[Any]:
    folder = import_module(f"graphmrf.{package}")
    for found in walk_packages(folder.__path__, f"{folder.__name__}."):
        values = vars(import_module(found.name)).values()
        yield from (value for value in values if getattr(value, "__module__", None) == found.name)


def records(package: str) -> Iterator[type[Any]]:
    yield from (value for value in definitions(package) if isinstance(value, type) and is_dataclass(value))


def functions(package: str) -> Iterator[Callable[..., Any]]:
    for value in definitions(package):
        inside = vars(value).values() if isinstance(value, type) else (value,)
        yield from (each for each in (getattr(one, "__func__", one) for one in inside) if isfunction(each))


@pytest.mark.parametrize("package", PACKAGES)
def test_every_record_is_frozen(package: str) -> None:
    loose = {made.__qualname__ for made in records(package) if not made.__dataclass_params__.frozen}
    assert loose <= {"Anderson"}  # the memory of one run of EM


def test_an_option_has_one_default_wherever_it_occurs() -> None:
    """Methods of the same name are those of one contract: whoever calls them does not ask which class they are of."""
    found = defaultdict[str, set[Any]](set)
    for function in chain.from_iterable(map(functions, PACKAGES)):
        if function.__qualname__.startswith("Dense."):  # exact: it reads no tolerance, and takes no probes
            continue
        called = function.__qualname__ if function.__name__ == "__init__" else function.__name__
        for name, option in signature(function).parameters.items():
            if option.default is not Parameter.empty:
                found[name if name in COMMON else f"{called}({name})"].add(repr(option.default))
    assert {name: values for name, values in found.items() if len(values) > 1} == {}
    assert {
        name: values for name, values in found.items() if values - {repr(COMMON.get(name))} and name in COMMON
    } == {}

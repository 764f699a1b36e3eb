"""Modules that a command loads when it runs, so that help and completion do not wait for numerical libraries."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphmrf import datasets, model, report
    from graphmrf.cli import foresight, inputs, model_results, prediction, reproduction, results
    from graphmrf.engines import dask as clusters

__all__ = [
    "clusters",
    "datasets",
    "foresight",
    "inputs",
    "model",
    "model_results",
    "prediction",
    "report",
    "reproduction",
    "results",
]

_BELOW = {"clusters": "engines.dask", "datasets": "datasets", "model": "model", "report": "report"}
"""Those that lie below; the others are chapters of the command line."""


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module 'graphmrf.cli.later' has no attribute {name!r}")
    return import_module(f"graphmrf.{_BELOW.get(name, f'cli.{name}')}")

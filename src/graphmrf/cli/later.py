"""What help and completion do not wait for: modules that a command loads when it runs, and Pydantic."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from typer.core import TyperGroup

if TYPE_CHECKING:
    from graphmrf import comparison, datasets, model, paper, report
    from graphmrf.cli import filling, inputs, model_results, results
    from graphmrf.engines import dask as clusters

__all__ = [
    "CommandGroup",
    "clusters",
    "comparison",
    "datasets",
    "filling",
    "inputs",
    "model",
    "model_results",
    "paper",
    "report",
    "results",
]

_HOMES = {name: f"cli.{name}" for name in ("filling", "inputs", "model_results", "results")} | {
    "clusters": "engines.dask"
}
"""Chapters of the command line, and what has another name here; the others are packages below."""


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module 'graphmrf.cli.later' has no attribute {name!r}")
    return import_module(f"graphmrf.{_HOMES.get(name, name)}")


class CommandGroup(TyperGroup):
    """A group of commands whose flags are off unless they are given.

    Typer leaves its own flags, such as --help, undecided. To check what is neither on nor off it loads Pydantic, for
    which every command and its help would wait.
    """

    def get_params(self, ctx: Any) -> Any:
        """Return the options, those of Typer included."""
        params = super().get_params(ctx)
        for flag in params:
            if getattr(flag, "is_flag", False) and flag.default is None:
                flag.default = False
        return params

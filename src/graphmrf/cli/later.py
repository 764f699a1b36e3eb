"""What help and completion do not wait for: modules that a command loads when it runs, and Pydantic."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from typer.core import TyperGroup

if TYPE_CHECKING:
    from graphmrf import comparison as comparison
    from graphmrf import datasets as datasets
    from graphmrf import estimators as estimators
    from graphmrf import model as model
    from graphmrf import paper as paper
    from graphmrf import report as report
    from graphmrf.cli import inputs as inputs
    from graphmrf.cli import model_results as model_results
    from graphmrf.cli import results as results
    from graphmrf.cli import targets as targets
    from graphmrf.engines import dask as dask

_HOMES = {name: name for name in ("comparison", "datasets", "estimators", "model", "paper", "report")}
_HOMES |= {name: f"cli.{name}" for name in ("inputs", "model_results", "results", "targets")}
_HOMES["dask"] = "engines.dask"


def __getattr__(name: str) -> ModuleType:
    if name not in _HOMES:
        raise AttributeError(f"module 'graphmrf.cli.later' has no attribute {name!r}")
    return import_module(f"graphmrf.{_HOMES[name]}")


class CommandGroup(TyperGroup):
    """A group of commands whose flags are off unless they are given.

    Typer leaves its own flags, such as --help, undecided, and loads Pydantic to check what is neither on nor off.
    """

    def get_params(self, ctx: Any) -> Any:
        """Return the options, those of Typer included."""
        params = super().get_params(ctx)
        for flag in params:
            if getattr(flag, "is_flag", False) and flag.default is None:
                flag.default = False
        return params

"""The paper's data sets and experiments: the one place where the library hands over to `graphmrf_paper`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphmrf_paper import synthetic
    from graphmrf_paper.attributes import paper
    from graphmrf_paper.catalogue import info, load, n_files, names
    from graphmrf_paper.dataset import Attribute, Dataset, Info
    from graphmrf_paper.reproduction import run_again, show_list

__all__ = [
    "Attribute",
    "Dataset",
    "Info",
    "info",
    "load",
    "n_files",
    "names",
    "paper",
    "run_again",
    "show_list",
    "synthetic",
]

_HOMES = {
    "Attribute": "dataset",
    "Dataset": "dataset",
    "Info": "dataset",
    "info": "catalogue",
    "load": "catalogue",
    "n_files": "catalogue",
    "names": "catalogue",
    "paper": "attributes",
    "run_again": "reproduction",
    "show_list": "reproduction",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: the library itself needs nothing of the paper."""
    if name not in __all__:
        raise AttributeError(f"module 'graphmrf.paper' has no attribute {name!r}")
    value = import_module(f"graphmrf_paper.{_HOMES.get(name, name)}")
    return getattr(value, name) if name in _HOMES else value

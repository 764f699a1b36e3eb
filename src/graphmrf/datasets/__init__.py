"""Tables to graphs and back, the paper's data sets by name, and a bundled example."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphmrf.datasets import synthetic
from graphmrf.datasets.attributed_graph import AttributedGraph, read, read_edges, read_on_workers
from graphmrf.datasets.columns import Attributes, Features, attributes, features
from graphmrf.datasets.dataset import Attribute, Dataset, Example, Info, example
from graphmrf.datasets.places import NEAREST, geometries, read_points, read_shapes
from graphmrf.datasets.table_files import count_rows
from graphmrf.datasets.written_tables import check_writable, is_geojson, keeps_page, read_page, write

if TYPE_CHECKING:
    from graphmrf.datasets.catalogue import info, load, n_files, names
    from graphmrf.datasets.paper_scaling import paper

__all__ = [
    "NEAREST",
    "Attribute",
    "AttributedGraph",
    "Attributes",
    "Dataset",
    "Example",
    "Features",
    "Info",
    "attributes",
    "check_writable",
    "count_rows",
    "example",
    "features",
    "geometries",
    "info",
    "is_geojson",
    "keeps_page",
    "load",
    "n_files",
    "names",
    "paper",
    "read",
    "read_edges",
    "read_on_workers",
    "read_page",
    "read_points",
    "read_shapes",
    "synthetic",
    "write",
]

_HOMES = {
    "info": "catalogue",
    "load": "catalogue",
    "n_files": "catalogue",
    "names": "catalogue",
    "paper": "paper_scaling",
}


def __getattr__(name: str) -> Any:
    """Load the catalogue when it is first used: tables are read without a downloader and without the model."""
    if name not in _HOMES:
        raise AttributeError(f"module 'graphmrf.datasets' has no attribute {name!r}")
    return getattr(import_module(f"graphmrf.datasets.{_HOMES[name]}"), name)

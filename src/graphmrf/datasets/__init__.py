"""Tables to graphs and back, the paper's data sets by name, and a bundled example."""

from graphmrf.datasets.bundled import Example, example
from graphmrf.datasets.catalogue import info, load, n_files, names
from graphmrf.datasets.dataset import Attribute, Dataset, Info
from graphmrf.datasets.encode import Features, features
from graphmrf.datasets.files import check_place, check_writable, write
from graphmrf.datasets.paper import paper
from graphmrf.datasets.tables import AttributedGraph, read

__all__ = [
    "Attribute",
    "AttributedGraph",
    "Dataset",
    "Example",
    "Features",
    "Info",
    "check_place",
    "check_writable",
    "example",
    "features",
    "info",
    "load",
    "n_files",
    "names",
    "paper",
    "read",
    "write",
]

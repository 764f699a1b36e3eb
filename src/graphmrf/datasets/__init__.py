"""Tables to graphs and back: reading, features, writing; and a bundled example."""

from graphmrf.datasets.bundled import Example, example
from graphmrf.datasets.encode import Features, features
from graphmrf.datasets.files import check_place, check_writable, write
from graphmrf.datasets.tables import AttributedGraph, read

__all__ = [
    "AttributedGraph",
    "Example",
    "Features",
    "check_place",
    "check_writable",
    "example",
    "features",
    "read",
    "write",
]

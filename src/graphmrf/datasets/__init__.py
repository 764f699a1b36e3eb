"""Tables to graphs and back: reading, writing, features, and a bundled example."""

from graphmrf.datasets.files import check_writable, write
from graphmrf.datasets.tables import AttributedGraph, read

__all__ = ["AttributedGraph", "check_writable", "read", "write"]

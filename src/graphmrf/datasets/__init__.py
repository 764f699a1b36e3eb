"""Tables to graphs and back, and the bundled example; data sets by name are those of `graphmrf_paper`."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphmrf.datasets.attributed_graph import AttributedGraph, read, read_edges, read_on_workers, read_repeated
from graphmrf.datasets.columns import Attributes, Features, attributes, features
from graphmrf.datasets.places import degrees, geometries, read_points, read_shapes, with_areas
from graphmrf.datasets.table_files import count_rows
from graphmrf.datasets.written_tables import check_writable, is_geographic, keeps_page, read_page, write
from graphmrf.errors import missing_name

if TYPE_CHECKING:
    from graphmrf.paper import Attribute, Dataset, Info, info, load, n_files, names, paper, synthetic

__all__ = [
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
    "degrees",
    "example",
    "features",
    "geometries",
    "info",
    "is_geographic",
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
    "read_repeated",
    "read_shapes",
    "synthetic",
    "with_areas",
    "write",
]

_RENAMED = {
    "catalogue": "graphmrf_paper.catalogue",
    "dataset": "graphmrf_paper.dataset",
    "paper_scaling": "graphmrf_paper.attributes",
}


def __getattr__(name: str) -> Any:
    """Hand over to the paper's data sets when they are first used: tables are read without them."""
    if name not in __all__:
        raise missing_name(__name__, name, _RENAMED)
    return getattr(import_module("graphmrf.paper"), name)


@dataclass(frozen=True)
class Example:
    """Files of the bundled example.

    Parameters
    ----------
    nodes : path
        1000 districts: `district`, the position `x`, `y`, then `income` (thousand a year), `green` (% of the area),
        `minutes` (to the centre) and `rent` (per square metre), which is missing for 70 % of them.
    edges : path
        Districts that border on each other: `source`, `target`.
    hidden : path
        The rents that are missing in `nodes`.
    """

    nodes: Path
    edges: Path
    hidden: Path


def example() -> Example:
    """Return the files of the bundled example.

    Examples
    --------
    >>> from graphmrf.datasets import read
    >>> files = example()
    >>> read(files.nodes, files.edges).graph
    Graph(n_nodes=1000, n_edges=2922, unweighted, ids D0001, D0002, D0003, ...)
    """
    folder = Path(__file__).parent / "example_files"
    return Example(*(folder / f"{name}.csv" for name in ("nodes", "edges", "hidden")))

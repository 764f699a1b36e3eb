"""The example that comes with the package: an invented city, drawn from the model itself."""

from dataclasses import dataclass
from pathlib import Path

_FOLDER = Path(__file__).parent / "example"


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
    Graph(n_nodes=1000, n_edges=2922, unweighted)
    """
    return Example(*(_FOLDER / f"{name}.csv" for name in ("nodes", "edges", "hidden")))

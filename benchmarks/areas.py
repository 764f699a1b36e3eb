"""Small real areas bundled with libpysal, as tasks: 32 to 262 nodes, by which nothing was chosen.

``areas()`` reads them from the installed package; where that has no libpysal or geopandas, from the file that
``python -m benchmarks.areas FILE.npz`` wrote elsewhere, named by ``GRAPHMRF_AREAS``. Run by itself it prints the tasks.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.paper_data import Task
from graphmrf.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphmrf._typing import Floats, Ints


class Area(NamedTuple):
    """Where the shapes are, the columns, those of them that are outcomes, and a table to join by two columns."""

    shapes: str
    columns: tuple[str, ...]
    outcomes: tuple[str, ...]
    table: tuple[str, str, str] | None = None


AREAS = {
    "columbus": Area("columbus.shp", ("CRIME", "HOVAL", "INC", "OPEN", "DISCBD"), ("CRIME", "HOVAL", "INC")),
    "baltim": Area(
        "baltim.shp",
        ("PRICE", "AGE", "NROOM", "DWELL", "NBATH", "PATIO", "FIREPL", "AC", "BMENT", "GAR", "LOTSZ", "SQFT"),
        ("PRICE", "AGE"),
    ),
    "georgia": Area(
        "G_utm.shp",
        ("PctRural", "PctBach", "PctEld", "PctFB", "PctPov", "PctBlack"),
        ("PctRural", "PctBach", "PctEld", "PctPov"),
    ),
    "sids2": Area("sids2.shp", ("SIDR74", "NWR74", "BIR74"), ("SIDR74", "NWR74")),
    "stl": Area("stl_hom.shp", ("HR8893", "PE87", "RDAC90", "PO8893"), ("HR8893", "PE87", "RDAC90")),
    "tokyo": Area(
        "tokyomet262.shp",
        ("eb2564", "OCC_TEC", "OWNH", "POP65", "UNEMP"),
        ("OCC_TEC", "OWNH", "POP65", "UNEMP"),
        ("Tokyomortality.csv", "IDnum0", "AreaID"),
    ),
    "us_income": Area("us48.shp", ("1929", "1969", "2009"), ("1929", "2009"), ("usjoin.csv", "Name", "STATE_NAME")),
    "mexico": Area("mexicojoin.shp", ("PCGDP1940", "PCGDP1970", "PCGDP2000"), ("PCGDP2000",)),
}
"""Columns that say much the same as another of the same year (counts beside rates) are left out."""

NEAREST = 4
"""Neighbours of a house of Baltimore, which are points: as in the weights that come with them."""


def centres(name: str) -> Floats | None:
    """Return the coordinates (n, 2) of an area's nodes; None where an older file has none."""
    if not os.environ.get("GRAPHMRF_AREAS"):
        return _read(name)[2]
    with np.load(os.environ["GRAPHMRF_AREAS"]) as file:
        found = file.get(f"{name} places")
    return None if found is None else np.asarray(found)


def areas() -> Iterator[Task]:
    """Yield the tasks: every outcome from the other columns of its area, standardised."""
    for name, area in AREAS.items():
        edges, values = _stored(name) if os.environ.get("GRAPHMRF_AREAS") else _read(name)[:2]
        graph = Graph.from_edges(*edges, n_nodes=len(values))
        for outcome in area.outcomes:
            place = area.columns.index(outcome)
            yield Task(name, outcome, graph, np.delete(values, place, axis=1), values[:, place])


@cache
def _stored(name: str) -> tuple[Ints, Floats]:
    with np.load(os.environ["GRAPHMRF_AREAS"]) as file:
        return file[f"{name} edges"], file[f"{name} values"]


@cache
def _read(name: str) -> tuple[Ints, Floats, Floats]:
    """Return the edges (2, m), the standardised columns (n, q) and the coordinates (n, 2) of an area."""
    import geopandas
    import libpysal

    area, folder = AREAS[name], Path(libpysal.examples.__file__).parent / name
    frame = geopandas.read_file(folder / area.shapes)
    if area.table is not None:
        file, key, own = area.table
        frame = frame.merge(pd.read_csv(folder / file), left_on=own, right_on=key)
    points = bool((frame.geometry.geom_type == "Point").all())
    weights = libpysal.weights.KNN.from_dataframe(frame, k=NEAREST) if points else None
    graph = Graph.from_polygons(frame) if weights is None else Graph.from_pysal(weights.symmetrize())
    values = frame[list(area.columns)].to_numpy(dtype=np.float64)
    u, v = np.triu(graph.S.toarray()).nonzero()
    inside = frame.geometry.representative_point()
    places = np.column_stack([inside.x, inside.y])
    return np.array([u, v]), (values - values.mean(axis=0)) / values.std(axis=0), places


def main() -> None:
    """Write the areas to a file, or print what they are."""
    if len(sys.argv) > 1:
        found = {name: _read(name) for name in AREAS}
        parts = {
            f"{name} {what}": part
            for name, pair in found.items()
            for what, part in zip(("edges", "values", "places"), pair, strict=True)
        }
        np.savez_compressed(sys.argv[1], **parts)  # type: ignore[arg-type]  # the stubs expect allow_pickle first
    for task in areas():
        print(
            f"{task.data}:{task.outcome}: {task.graph.n_nodes} nodes, {task.graph.n_edges} edges, p {task.X.shape[1]}"
        )


if __name__ == "__main__":
    main()

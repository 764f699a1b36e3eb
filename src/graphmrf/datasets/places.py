"""Graphs of tables without a table of edges: places near each other, areas that touch."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from graphmrf._typing import Floats
from graphmrf.datasets.attributed_graph import AttributedGraph, with_nodes
from graphmrf.datasets.columns import CODES
from graphmrf.datasets.edge_files import name_words
from graphmrf.datasets.ids import IDS, id_column, unique_ids
from graphmrf.datasets.table_files import PathLike, TableFile, as_numbers, frame_file, listing, read_areas, read_table
from graphmrf.errors import InvalidInputError
from graphmrf.files import check_readable
from graphmrf.graph import Graph


def read_points(
    nodes: PathLike | Any,
    columns: str,
    k: int = 8,
    *,
    id: str | None = None,  # noqa: A002 - the public name of the option
) -> AttributedGraph:
    """Return the graph of a table of places: each is joined to its `k` nearest, see `Graph.from_knn`.

    `nodes`, `id`: as in `read`. `columns`: names of the columns with coordinates, separated by commas, such as
    ``"x,y"``. Longitude and latitude in degrees, recognised by name (lon, lng or long, and lat), are measured on the
    globe, in either order.
    """
    file = read_table(nodes)
    name, assumed = _id_column(file, id)
    keys, names = unique_ids(file, name), [part.strip() for part in columns.split(",") if part.strip()]
    if not names:
        raise InvalidInputError("--knn needs the columns with coordinates, got none; write for example --knn lon,lat")
    globe = [_globe(part) for part in names]
    if sorted(globe) == ["lat", "lon"]:
        names = [names[globe.index("lon")], names[globe.index("lat")]]
    points = np.column_stack([_coordinate(file, file.require(part, option="--knn")) for part in names])
    metric = "haversine" if len(names) == 2 and "" not in globe else "euclidean"
    if not 1 <= k < len(keys):
        raise InvalidInputError(f"-k must be from 1 to {len(keys) - 1}, one less than the nodes, got {k}")
    graph = Graph.from_knn(points, k, metric=metric)
    measured = "on the globe" if metric == "haversine" else "in a straight line"
    note = f"{file.path.name}: every node is joined to its {k} nearest by {listing(names)}, measured {measured}"
    return with_nodes(graph, file, name, (*file.notes, *assumed, note))


def read_shapes(
    nodes: PathLike | Any,
    shapes: PathLike,
    *,
    id: str | None = None,  # noqa: A002 - the public name of the option
) -> AttributedGraph:
    """Return the graph of a table of areas whose shapes are in a file: those that touch are joined.

    `nodes`, `id`: as in `read`; the table may be the file of the shapes, too. `shapes`: GeoJSON, GeoPackage, shapefile
    or anything GeoPandas reads, with one polygon for every node; its column of ids is that of the same name, or the
    only one with the ids of all nodes. Other polygons are ignored. Raises MissingExtraError without GeoPandas.
    """
    file = read_table(nodes)
    name, assumed = _id_column(file, id)
    keys, areas = unique_ids(file, name), read_areas(check_readable(shapes))
    if set(areas.geom_type) == {"Point"}:
        raise InvalidInputError(f"{shapes} contains points, which cannot touch; join near ones with --knn lon,lat")
    column, rows = _matched(areas, keys, name, Path(shapes))
    try:
        graph = Graph.from_polygons(np.asarray(areas.geometry.iloc[rows]))
    except InvalidInputError as error:
        raise InvalidInputError(f"{shapes}, in the order of {file.path}: {error}") from error
    note = f"{Path(shapes).name}: {graph.n_edges:,} pairs of areas touch, matched by '{column}'"
    table = with_nodes(graph, file, name, (*file.notes, *assumed, note))
    return replace(table, shapes=areas.geometry.iloc[rows])


def with_areas(table: AttributedGraph, nodes: Path) -> AttributedGraph:
    """Return a table whose edges are in a file of their own with the areas of its nodes, where `nodes` has one each."""
    areas = read_areas(nodes)
    one_each = len(areas) == table.graph.n_nodes and not set(areas.geom_type) & {"Point", None}
    return replace(table, shapes=areas.geometry) if one_each else table


def _id_column(file: TableFile, option: str | None) -> tuple[str, tuple[str, ...]]:
    """Return the id column of a table without edges, and a note if it was guessed; with edges their ids decide.

    Where names, or the cells of a first column, repeat, it is the first column without repeats that is named like a
    code, such as `fips`.
    """
    known = file.by_name
    named = option is not None or any(name in known for name in IDS if name != "name")
    first = known.get("name", next(iter(file.columns)))
    if named or file.has_unique(first):
        return id_column(file, option)
    codes = (name for name in file.columns if not CODES.isdisjoint(name_words(name)[-1:]) and file.has_unique(name))
    code = next(codes, None)
    if code is None:
        return id_column(file, option)
    return code, (f"{file.path.name}: '{first}' is not unique, so '{code}' is used as the node id",)


def geometries(table: AttributedGraph) -> list[Any]:
    """Return a geometry of GeoJSON for every node: its area, or its point by longitude and latitude in degrees.

    Raises InvalidInputError if there are no shapes and no coordinates.
    """
    if table.shapes is not None:
        areas = table.shapes if table.shapes.crs is None else table.shapes.to_crs(4326)
        return [area.__geo_interface__ for area in areas]
    found = degrees(table.frame)
    if found is None:
        raise InvalidInputError(
            "GeoJSON and GeoPackage need the places of the nodes; give areas with --shapes, or columns lon and lat, "
            "or write .csv, .parquet or .xlsx"
        )
    points = [as_numbers(table.frame[name])[0] for name in found]
    return [{"type": "Point", "coordinates": [float(x), float(y)]} for x, y in zip(*points, strict=True)]


def _matched(areas: Any, keys: pa.Array, name: str, path: Path) -> tuple[str, Any]:
    """Return the column of ids of the areas, and the row of every node."""
    if len(areas.columns) == 1:
        raise InvalidInputError(f"{path} has no columns besides its shapes; it needs the ids of the nodes")
    file = frame_file(areas, path)
    found = {column: file.keys(column).combine_chunks() for column in file.columns}
    rows = {column: pc.index_in(keys, value_set=cells) for column, cells in found.items()}
    whole = [column for column, places in rows.items() if places.null_count == 0]
    if name in whole or (whole and all(rows[column].equals(rows[whole[0]]) for column in whole)):
        column = name if name in whole else whole[0]
        _check_single(found[column], keys, column, path)
        return column, rows[column].to_numpy()
    if whole:
        raise InvalidInputError(
            f"{path}: columns {listing(whole)} all have the ids of the nodes, in another order; name the right one "
            f"'{name}', as in NODES"
        )
    raise _unmatched(rows, keys, path)


def _check_single(cells: pa.Array, keys: pa.Array, column: str, path: Path) -> None:
    """Raise where a node has several areas."""
    counts = pc.value_counts(cells.filter(pc.is_in(cells, value_set=keys)))
    several = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
    if len(several):
        raise InvalidInputError(
            f"{path}: {listing(several[:4].to_pylist())} ({len(several)} of {len(keys)}) have several shapes in "
            f"'{column}'; join the parts of each, with GeoPandas .dissolve('{column}')"
        )


def _unmatched(found: dict[str, Any], keys: pa.Array, path: Path) -> InvalidInputError:
    """Return an error that names nodes which the best column lacks."""
    best = min(found, key=lambda each: found[each].null_count)
    missing = keys.filter(found[best].is_null())
    return InvalidInputError(
        f"{path}: no column has the ids of all nodes; '{best}' lacks {listing(missing[:4].to_pylist())} "
        f"({len(missing)} of {len(keys)}); add their shapes, or drop these nodes"
    )


def degrees(frame: pd.DataFrame) -> tuple[Any, Any] | None:
    """Return the columns of longitude and latitude: the shortest names with that prefix."""
    found = []
    for axis, bound in (("lon", 180), ("lat", 90)):
        like = [name for name in frame.columns[1:] if _globe(str(name)) == axis and _within(frame[name], bound)]
        found += sorted(like, key=lambda name: len(str(name)))[:1]
    return (found[0], found[1]) if len(found) == 2 else None


def _within(column: pd.Series, bound: float) -> bool:
    """Whether a column has numbers that can be degrees."""
    numbers, stray = as_numbers(column)
    return stray is None and bool(np.all(np.abs(numbers[~np.isnan(numbers)]) <= bound))


def _globe(name: str) -> str:
    """Return whether a column is a longitude or a latitude, by its name; nothing for neither."""
    start = name.lower()
    return "lon" if start.startswith(("lon", "lng")) else "lat" if start.startswith("lat") else ""


def _coordinate(file: TableFile, name: str) -> Floats:
    series = file.values(name)
    numbers, stray = as_numbers(series)
    bad = np.flatnonzero(~np.isfinite(numbers))
    if stray is not None or bad.size:
        record = int(bad[0]) if stray is None else stray
        raise InvalidInputError(
            f"{file.place(record)}, column {name}: a coordinate must be a number, got "
            f"{'nothing' if series.isna().iloc[record] else repr(series.iloc[record])}; correct it or drop the row"
        )
    return numbers

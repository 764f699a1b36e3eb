"""Outlines of counties for maps: from a GeoJSON file, or from the bokeh_sampledata package where it is installed."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from graphmrf._typing import Floats
from graphmrf.errors import InvalidInputError

Rings: TypeAlias = list[Floats]

_KEYS = ("GEOID", "geoid", "FIPS", "fips", "fips_code", "GEO_ID", "id")
_LEAST_SHARE = 0.5


@dataclass(frozen=True, eq=False)
class Atlas:
    """Where to draw nodes: outlines by id, else a point for each node of a data set.

    Parameters
    ----------
    shapes : mapping from id to rings
        Longitude and latitude of every outline; empty for none.
    points : mapping from data set to array of shape (n, 2)
        Where to draw nodes without outlines.
    """

    shapes: Mapping[str, Rings] = field(default_factory=dict)
    points: Mapping[str, Floats] = field(default_factory=dict)


def read_shapes(path: Path) -> dict[str, Rings]:
    """Return the outlines of a GeoJSON file by FIPS code, taken from the id of a feature or one of its properties.

    Raises
    ------
    InvalidInputError
        The file cannot be read, is no GeoJSON, or has no FIPS codes.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read ({error.strerror}); check --shapes") from error
    except ValueError as error:
        raise InvalidInputError(f"{path} is not JSON ({error}); --shapes takes a GeoJSON file") from error
    features = content.get("features") if isinstance(content, dict) else None
    if not isinstance(features, list):
        raise InvalidInputError(f"{path} has no list of features; --shapes takes a GeoJSON FeatureCollection")
    named = ((_fips(feature), list(_rings(feature.get("geometry") or {}))) for feature in features)
    shapes = {code: rings for code, rings in named if code and rings}
    if not shapes:
        raise InvalidInputError(
            f"{path} has no outline with a FIPS code; it may be the id or one of {', '.join(_KEYS)}"
        )
    return shapes


def packaged_shapes() -> dict[str, Rings]:
    """Return the outlines of the bokeh_sampledata package, none where it is not installed."""
    if find_spec("bokeh_sampledata") is None:
        return {}
    from bokeh_sampledata.us_counties import data

    return {
        f"{state:02d}{county:03d}": list(_parts(np.column_stack([each["lons"], each["lats"]])))
        for (state, county), each in data.items()
    }


def outlined(ids: tuple[str, ...], shapes: Mapping[str, Rings]) -> bool:
    """Return whether enough nodes have an outline to draw a map of them."""
    return bool(ids) and sum(code in shapes for code in ids) >= _LEAST_SHARE * len(ids)


def _fips(feature: Mapping[str, Any]) -> str:
    """Return five digits from the id or a property; '0500000US01001' and 1001 are codes, too."""
    properties = feature.get("properties") or {}
    if "STATE" in properties and "COUNTY" in properties:
        return f"{int(properties['STATE']):02d}{int(properties['COUNTY']):03d}"
    for value in (feature.get("id"), *(properties.get(key) for key in _KEYS)):
        match = re.fullmatch(r"(?:.*US)?(\d{4,5})", str(value))
        if match:
            return match[1].zfill(5)
    return ""


def _rings(geometry: Mapping[str, Any]) -> Iterator[Floats]:
    kind, coordinates = geometry.get("type"), geometry.get("coordinates") or []
    polygons = coordinates if kind == "MultiPolygon" else [coordinates] if kind == "Polygon" else []
    for polygon in polygons:
        if polygon:
            yield np.asarray(polygon[0], dtype=np.float64)[:, :2]


def _parts(line: Floats) -> Iterator[Floats]:
    """Split a line of points at its NaN."""
    breaks = np.flatnonzero(np.isnan(line).any(axis=1))
    for part in np.split(line, breaks):
        kept = part[~np.isnan(part).any(axis=1)]
        if len(kept) > 2:
            yield kept

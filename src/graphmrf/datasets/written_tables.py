"""Tables to files, by suffix and atomically, and the report page stored in Parquet."""

import contextlib
import gzip
import io
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, cast

import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from graphmrf.datasets.table_files import (
    DELIMITERS,
    EXCEL,
    PARQUET,
    PathLike,
    geopandas_module,
    openpyxl_module,
    unreadable,
)
from graphmrf.errors import InvalidInputError
from graphmrf.files import atomic, check_place, check_readable

GEOJSON, GPKG = GEOGRAPHIC = (".geojson", ".gpkg")
_TAKEN = ("fid", "geom", "geometry")  # names of columns that a GeoPackage has itself
WRITTEN = (*(suffix for suffix in DELIMITERS if ".txt" not in suffix), *PARQUET, EXCEL)
_FOLDER = "a folder of Parquet"
_PART_NAME = "part-{:05}.parquet"  # names of the files in a folder of Parquet
_PART = b"graphmrf.part"  # key of the metadata of a file of a folder, by which one of ours is recognised
# Key of the metadata of a Parquet file that has the content of the report page.
PAGE = b"graphmrf.page"


def check_writable(path: PathLike, *, geographic: bool = False) -> Path:
    """Check that a table can be written to a path, and return the path; with places only a geographic one.

    Raises InvalidInputError: an unknown suffix, a missing extra, a directory in its place, or a folder that is missing
    or cannot be written.
    """
    found, known = _format(path), (*WRITTEN, *(GEOGRAPHIC if geographic else ()))
    if found == _FOLDER and geographic:
        return _check_folder(Path(path))
    if found not in known:
        raise InvalidInputError(f"{path}: the suffix gives the format and must be one of {', '.join(known)}")
    if found == EXCEL:
        openpyxl_module(path)
    if found == GPKG:
        geopandas_module(path)
    return check_place(path)


def _format(path: PathLike) -> str:
    """Return the suffix of a place to write to; of a folder that is there, without one, the marker for a folder."""
    name = Path(path).name.lower()
    suffix = next((suffix for suffix in (*WRITTEN, *GEOGRAPHIC) if name.endswith(suffix)), "")
    return suffix or (_FOLDER if os.path.isdir(path) else "")  # noqa: PTH112 - pathlib's raises for names too long


def _check_folder(folder: Path) -> Path:
    """Check that a folder for the parts of a table contains nothing but such parts, and return it."""
    stray = next((file for file in sorted(folder.iterdir()) if not _is_own_part(file)), None)
    if stray is not None:
        raise InvalidInputError(
            f"{folder} is a directory with other files ({stray.name}), which are never replaced; give an empty one, "
            "or a file name"
        )
    return check_place(folder / _PART_NAME.format(0)).parent


def _is_own_part(file: Path) -> bool:
    """Return whether a file is part of a table that `write` has written."""
    if not file.match("part-*.parquet"):
        return False
    try:
        return _PART in (pa.parquet.read_schema(file).metadata or {})
    except (pa.ArrowException, OSError, ValueError):
        return False


def is_geographic(path: PathLike) -> bool:
    """Return whether a file is to be written as GeoJSON or GeoPackage, by its suffix."""
    return _format(path) in GEOGRAPHIC


def write(
    frame: pd.DataFrame,
    path: PathLike,
    *,
    places: Sequence[Any] | None = None,
    page: bytes | None = None,
    part_rows: int = 1_000_000,
) -> Path:
    r"""Write a table in the format of its suffix, all of it or nothing, and return its path.

    `frame`: without its index. `path`: see `check_writable`; a folder that is empty, or written by this function, gets
    several files of Parquet of `part_rows` rows: a million are some 50 MB of predictions. `places`: geometries as in
    GeoJSON, one for each row, of a geographic file. `page`: what Parquet stores besides the table, see `read_page`.
    """
    suffix = _format(path)
    path = check_writable(path, geographic=places is not None or suffix == _FOLDER)
    if suffix == _FOLDER:
        return _write_parts(frame, path, part_rows)
    with atomic(path) as draft:
        if suffix == GEOJSON:
            draft.write_text(_as_geojson(frame, places or ()), encoding="utf-8")
        elif suffix == GPKG:
            draft.write_bytes(_as_geopackage(frame, places or (), path))
        else:
            _save(frame, draft, suffix, {} if page is None else {PAGE: page})
    return path


def _write_parts(frame: pd.DataFrame, folder: Path, part_rows: int) -> Path:
    """Write a table as files with a number of rows each; files of an earlier table are removed."""
    firsts = range(0, max(len(frame), 1), part_rows)
    names = [_PART_NAME.format(k) for k in range(len(firsts))]
    for name, first in zip(names, firsts, strict=True):
        with atomic(folder / name) as draft:
            _save(frame.iloc[first : first + part_rows], draft, PARQUET[0], {_PART: name.encode()})
    for file in folder.glob("part-*.parquet"):
        if file.name not in names:
            file.unlink()
    return folder


def _as_geojson(frame: pd.DataFrame, places: Sequence[Any]) -> str:
    """Return a feature for each row, missing cells being null."""
    rows = json.loads(frame.to_json(orient="records", double_precision=15, date_format="iso"))
    features = [
        {"type": "Feature", "geometry": place, "properties": row} for place, row in zip(places, rows, strict=True)
    ]
    return json.dumps({"type": "FeatureCollection", "features": features}, ensure_ascii=False)


def _as_geopackage(frame: pd.DataFrame, places: Sequence[Any], path: Path) -> bytes:
    """Return a table with a geometry in each row, longitude and latitude, as a GeoPackage."""
    taken = [str(name) for name in frame.columns if str(name).lower() in _TAKEN]
    if taken:
        raise InvalidInputError(
            f"{path}: a GeoPackage has a column '{taken[0]}' of its own; rename the one of the table"
        )
    features = geopandas_module(path).GeoDataFrame.from_features(
        [{"geometry": place, "properties": {}} for place in places], crs=4326
    )
    table = frame.reset_index(drop=True).set_axis([str(name) for name in frame.columns], axis=1)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "table.gpkg")
        features[["geometry"]].join(table).to_file(file, driver="GPKG", layer=path.stem)
        return file.read_bytes()


def keeps_page(path: PathLike) -> bool:
    """Return whether a file to write stores the report page, too: Parquet does."""
    return _format(path) in PARQUET


def read_page(path: PathLike) -> bytes:
    """Return the content of the report page in a Parquet file of results.

    Raises InvalidInputError: no such file, no Parquet, or results without a page.
    """
    path = check_readable(path)
    if not keeps_page(path):
        raise InvalidInputError(f"{path}: pages can be rebuilt only from Parquet; predict with -o results.parquet")
    try:
        metadata = pa.parquet.read_schema(path).metadata or {}
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidInputError(unreadable(path, error)) from error
    if PAGE not in metadata:
        raise InvalidInputError(
            f"{path} contains no page; only files written by graphmrf predict -o results.parquet do"
        )
    return bytes(metadata[PAGE])


def _save(frame: pd.DataFrame, path: Path, suffix: str, metadata: dict[bytes, bytes]) -> None:
    if suffix in PARQUET:
        table = pa.Table.from_pandas(frame, preserve_index=False)
        pa.parquet.write_table(table.replace_schema_metadata((table.schema.metadata or {}) | metadata), path)
        return
    if suffix == EXCEL:
        path.write_bytes(_workbook(frame))
        return
    # No time and no name in the header: the same table gives the same bytes.
    with path.open("wb") as raw, contextlib.ExitStack() as stack:
        stream: IO[bytes] = raw
        if suffix.endswith(".gz"):
            stream = cast("IO[bytes]", stack.enter_context(gzip.GzipFile("", "wb", fileobj=raw, mtime=0)))
        frame.to_csv(stream, index=False, sep=DELIMITERS[suffix], lineterminator="\n")


def _workbook(frame: pd.DataFrame) -> bytes:
    """Return a table as xlsx; an archive in a file complains once more where a full disk cut it short.

    openpyxl writes drafts to disk, by lxml where that is installed, whose error for a full one is no OSError.
    """
    whole = io.BytesIO()
    try:
        frame.to_excel(whole, index=False, engine="openpyxl")
    except Exception as error:
        if type(error).__name__ != "SerialisationError":
            raise
        raise OSError(f"no draft of the workbook could be written: {error}") from error
    return whole.getvalue()

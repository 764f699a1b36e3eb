"""Cleaned tables as Parquet files in a folder, stamped with the files they came from; all of them or none."""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from graphmrf.datasets.recipe import Tables
from graphmrf.errors import FetchError

FORMAT = 1
_STAMP = b"graphmrf"


def stamp(name: str, sha256: Mapping[str, str]) -> bytes:
    """Return what a cached copy must say of itself: format, data set, checksums of the raw files."""
    return json.dumps({"format": FORMAT, "name": name, "raw": dict(sha256)}, sort_keys=True).encode()


def place(root: Path, name: str, mark: bytes) -> Path:
    """Return the folder of a copy; another format or other raw files have another one."""
    return root / "clean" / f"{name}-{hashlib.sha256(mark).hexdigest()[:16]}"


def read(folder: Path, mark: bytes) -> Tables | None:
    """Return the tables of a copy, or None where there is none that is whole and says `mark`."""
    tables = {}
    for file in sorted(folder.glob("*.parquet")):
        try:
            table = pa.parquet.read_table(file)
        except (OSError, pa.ArrowException):
            return None
        if (table.schema.metadata or {}).get(_STAMP) != mark:
            return None
        tables[file.stem] = table.to_pandas()
    return tables if {"nodes", "edges"} <= tables.keys() else None


def write(tables: Tables, folder: Path, mark: bytes) -> None:
    """Keep the tables: written to a folder of their own, which takes the final name in one step.

    Raises
    ------
    FetchError
        The disk is full or refuses; nothing is left behind.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".", ignore_cleanup_errors=True) as scratch:
            for name, frame in tables.items():
                table = pa.Table.from_pandas(frame, preserve_index=False)
                marked = table.replace_schema_metadata({**(table.schema.metadata or {}), _STAMP: mark})
                pa.parquet.write_table(marked, Path(scratch, f"{name}.parquet"))
            _rename(Path(scratch), folder, mark)
    except OSError as error:
        raise FetchError(
            f"cannot keep the cleaned tables in {folder.parent} ({error.strerror or error}); "
            "free some space, or choose another folder with cache_dir or GRAPHMRF_CACHE"
        ) from error


def _rename(scratch: Path, folder: Path, mark: bytes) -> None:
    """Give a folder its final name; a damaged copy there makes way, a whole one of another process stays."""
    for last in (False, False, True):
        try:
            scratch.rename(folder)
        except OSError:
            if read(folder, mark) is not None:
                return
            if last:
                raise
            with suppress(OSError):
                shutil.rmtree(folder.rename(scratch.with_name(f"{scratch.name}.old")), ignore_errors=True)
        else:
            return

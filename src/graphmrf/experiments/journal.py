"""Results as JSON lines: one for each finished run, safe on the disk before the next; a torn last line is dropped."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO
from zlib import crc32

from graphmrf.errors import InvalidInputError
from graphmrf.experiments.run import Result
from graphmrf.files import check_place

try:
    import fcntl
except ImportError:  # Windows: two commands on one folder are then not kept apart
    fcntl = None  # type: ignore[assignment]

JOURNAL_FORMAT = 1
RESULTS_FILE = "results.jsonl"
_TITLE, _SUM = "graphmrf reproduction", "crc32"


@dataclass(frozen=True)
class Record:
    """A finished run: its key, what it found, its CPU time, and the wall-clock time since the one before."""

    key: str
    result: Result
    seconds: float
    elapsed: float = 0.0


@dataclass(frozen=True)
class Journal:
    """The open results file of one command."""

    stream: BinaryIO
    found: dict[str, Record]

    def append(self, record: Record) -> None:
        """Add a line, and return when it is on the disk."""
        times = {"seconds": round(record.seconds, 3), "elapsed": round(record.elapsed, 3)}
        line = {"key": record.key, "result": record.result, **times}
        _write_line(self.stream, line | {_SUM: _sum(line)})
        self.found[record.key] = record

    @property
    def results(self) -> dict[str, Result]:
        """What the finished runs found, by key."""
        return {key: record.result for key, record in self.found.items()}


@contextmanager
def open_journal(path: Path) -> Iterator[Journal]:
    """Open a results file, new or from an earlier command, for reading and adding.

    Parameters
    ----------
    path : path
        The file; its folder must exist.

    Raises
    ------
    InvalidInputError
        The file is of another format, is damaged, or another command is writing to it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open_journal(Path(folder, "results.jsonl")) as first:
    ...         first.append(Record("accuracy seed=1", {"r2": 0.5}, 0.1))
    ...     with open_journal(Path(folder, "results.jsonl")) as second:
    ...         second.results
    {'accuracy seed=1': {'r2': 0.5}}
    """
    with check_place(path).open("a+b", buffering=0) as stream:
        _lock(stream, path)
        title = {"title": _TITLE, "format": JOURNAL_FORMAT, "version": version("graphmrf")}
        stream.seek(0)
        content = stream.read()
        # Checked before anything is cut off: the file may be another's.
        if not _encoded(title).startswith(content):
            _check_title(content.split(b"\n", 1)[0], path)
        whole = _whole_lines(stream, content)
        if not whole:
            _write_line(stream, title)
        yield Journal(stream, {record.key: record for record in _records(whole[1:], path)})


def _lock(stream: BinaryIO, path: Path) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise InvalidInputError(
            f"another command is writing to {path}; wait until it is done, or give another folder with --output"
        ) from error


def _whole_lines(stream: BinaryIO, content: bytes) -> list[bytes]:
    """Return the complete lines, and cut off what a killed command left after them."""
    end = content.rfind(b"\n") + 1
    if end < len(content):
        stream.truncate(end)
    return content[:end].splitlines()


def _write_line(stream: BinaryIO, value: Any) -> None:
    line = memoryview(_encoded(value))
    while line:  # a disk that fills up takes a part of the line, then raises
        line = line[stream.write(line) :]
    os.fsync(stream.fileno())


def _encoded(value: Any) -> bytes:
    return (json.dumps(value, allow_nan=False) + "\n").encode()


def _sum(line: dict[str, Any]) -> int:
    """Return the checksum of all else in a line."""
    return crc32(json.dumps({name: line[name] for name in sorted(line) if name != _SUM}).encode())


def _check_title(line: bytes, path: Path) -> None:
    try:
        title = json.loads(line)
        ours = title["title"] == _TITLE
    except (ValueError, KeyError, TypeError, RecursionError):
        ours = False
    if not ours:
        raise InvalidInputError(
            f"{path} is not a results file of graphmrf reproduce; give another folder with --output"
        )
    if title.get("format") != JOURNAL_FORMAT:
        raise InvalidInputError(
            f"{path} has format {title.get('format')} (graphmrf {title.get('version')}), this version has format "
            f"{JOURNAL_FORMAT}; give another folder with --output, or move the file away to start again"
        )


def _records(lines: list[bytes], path: Path) -> Iterator[Record]:
    for number, line in enumerate(lines, start=2):
        try:
            yield _record(json.loads(line))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise InvalidInputError(
                f"{path}, line {number} is damaged; delete that line, its run is repeated"
            ) from error


def _record(value: Any) -> Record:
    """Return what a line says; raise TypeError where it has other types than were written."""
    record = Record(value["key"], value["result"], value["seconds"], value.get("elapsed", 0.0))
    times = (record.seconds, record.elapsed)
    if not isinstance(record.key, str) or not isinstance(record.result, dict):
        raise TypeError("a line is a key and what was found")
    if _SUM in value and value[_SUM] != _sum(value):  # lines of earlier versions have none
        raise ValueError("a flipped bit gives another number and no error elsewhere")
    if any(isinstance(time, bool) or not isinstance(time, int | float) for time in times):
        raise TypeError("times are numbers")
    return record

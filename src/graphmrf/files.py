"""Atomic writes, which leave a file whole or untouched; checks of paths; free memory.

Files at other places are read by fsspec, from any URL it supports.
"""

import hashlib
import os
import platform
import re
import stat
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from graphmrf.errors import InvalidInputError, MissingExtraError

_PathLike: TypeAlias = str | os.PathLike[str]

_DRAFT = re.compile(r"\.graphmrf-([0-9a-f]{8})-(\d+)-[0-9a-f]{32}\.tmp")
# A URL, also one that went through a path, which takes slashes; one letter is a drive of Windows.
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.:-]+):/+(.*)")


def as_url(path: _PathLike) -> str | None:
    """Return the URL of a remote file or folder, also where it was made a path; None for a local one."""
    parts = _URL.fullmatch(os.fspath(path))
    if parts is None or os.path.exists(path):  # noqa: PTH110 - pathlib's raises for names that are too long
        return None
    return f"{parts[1]}:///{parts[2]}" if parts[1] in ("file", "local") else f"{parts[1]}://{parts[2]}"


def parquet_files(path: str) -> list[str]:
    """Return the Parquet files of a folder, a pattern or a URL of fsspec, as URLs in order.

    Raises InvalidInputError if there are none, or the URL cannot be reached.
    """
    with _remote_errors(path):
        pattern = path if "*" in path or path.endswith(".parquet") else f"{path.rstrip('/')}/*.parquet"
        files, _, found = import_module("fsspec").get_fs_token_paths(pattern)
    if not found:
        raise InvalidInputError(
            f"{path} has no .parquet files; give a folder of them, or a pattern such as edges/*.parquet"
        )
    return [files.unstrip_protocol(each) for each in sorted(found)]


@contextmanager
def opened(url: str) -> Iterator[Any]:
    """Give the stream of a file at a URL of fsspec.

    Raises InvalidInputError if it is not there, or may not be read.
    """
    with _remote_errors(url), import_module("fsspec").open(url) as stream:
        yield stream


@contextmanager
def _remote_errors(url: str) -> Iterator[None]:
    """Convert the errors of any kind of storage to one with the remedy."""
    try:
        yield
    except (InvalidInputError, MemoryError):
        raise
    except ImportError as error:
        raise MissingExtraError(
            f"{url} needs a package that is missing ({error}); pip install it, and 'graphmrf[dask]', on all machines"
        ) from error
    except Exception as error:
        message = (str(error) or type(error).__name__).splitlines()[0]
        raise InvalidInputError(
            f"{url} cannot be read ({message}); check the address, the file, and credentials, which workers need, too"
        ) from error


@contextmanager
def atomic(path: _PathLike) -> Iterator[Path]:
    """Give a temporary path in the same folder to write to; it takes the final name in one step when all went well.

    Drafts of killed processes in the folder are removed.
    """
    path = Path(path)
    remove_leftovers(path.parent)
    # The name does not contain that of the file, which may be as long as a name can be.
    draft = path.with_name(f".graphmrf-{_machine()}-{os.getpid()}-{uuid.uuid4().hex}.tmp")
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def remove_leftovers(folder: _PathLike) -> None:
    """Remove the drafts in a folder whose process is gone; those of other machines once they are a day old."""
    with suppress(OSError):
        for file in Path(folder).glob(".graphmrf-*.tmp"):
            with suppress(OSError):  # another run may be tidying up, too
                if _is_left_behind(file):
                    file.unlink()


def _is_left_behind(file: Path, *, abandoned: float = 86_400.0) -> bool:
    """Whether the process of a draft is gone; that of another machine counts as gone after some seconds, a day."""
    parts = _DRAFT.fullmatch(file.name)
    if parts is None:
        return False
    if time.time() - file.lstat().st_mtime > abandoned:
        return True
    return parts[1] == _machine() and not _is_running(int(parts[2]))


def _machine() -> str:
    return hashlib.sha256(platform.node().encode()).hexdigest()[:8]


def _is_running(process: int) -> bool:
    if os.name != "posix":  # where signal 0 would end the process it is sent to
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def check_place(path: _PathLike) -> Path:
    """Check that a file can be written to its folder later, and return its path."""
    path = Path(path)
    found = _kind(path)
    if found:
        _check_file(path, found)
    if not os.path.isdir(path.parent):  # noqa: PTH112 - pathlib's raises for names that are too long
        raise InvalidInputError(f"{path}: folder {path.parent} does not exist; create it first")
    if found and not os.access(path, os.W_OK):
        raise InvalidInputError(f"{path} is write-protected; choose another place")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            return path
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be written ({error.strerror}); choose another place") from error


def _check_file(path: Path, found: int) -> None:
    """Raise for what is no file, given its mode: a pipe would block, a device never end."""
    if stat.S_ISDIR(found):
        raise InvalidInputError(f"{path} is a directory; give a file")
    if not stat.S_ISREG(found):
        what = _SPECIAL.get(stat.S_IFMT(found), "no plain file")
        raise InvalidInputError(
            f"{path} is {what}; graphmrf reads and writes plain files only, so save it as one first"
        )


_SPECIAL = {stat.S_IFIFO: "a named pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFSOCK: "a socket"}


def _kind(path: Path) -> int:
    """Return the mode of what has this name, 0 for nothing; raise for a name that cannot be."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except OSError as error:
        text = str(path)
        shown = text if len(text) <= 200 else f"{text[:100]}...{text[-20:]}"
        raise InvalidInputError(f"{shown}: {_reason(error)}; check the path") from error


def is_absent(path: _PathLike) -> bool:
    """Return whether there is nothing of this name; raise InvalidInputError for a name that cannot be."""
    return not _kind(Path(path))


def check_readable(path: _PathLike) -> Path:
    """Return the path of a file to read.

    Raises InvalidInputError: nothing there, a directory, a pipe, a device, a loop of links, a name too long, or no
    permission.
    """
    path = Path(path)
    found = _kind(path)
    if not found:
        raise InvalidInputError(f"{path}: no such file; check the path")
    _check_file(path, found)
    try:
        with path.open("rb"):
            return path
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {_reason(error)}; check its permissions") from error


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


def check_apart(outputs: Sequence[_PathLike | None], inputs: Sequence[_PathLike | None]) -> None:
    """Raise unless every file to write is another than those to read and than the other outputs; None is none.

    A folder to write to has none of the inputs in it, and nothing is written into a folder that is read. Links, hard
    links and other spellings of a path are seen through.

    Raises InvalidInputError: a file is named twice.
    """
    written = [path for path in outputs if path is not None]
    for k, path in enumerate(written):
        if any(_same(path, each) or _inside(each, path) or _inside(path, each) for each in inputs if each is not None):
            raise InvalidInputError(f"{os.fspath(path)} is an input, too; write results to a file of their own")
        if any(_same(path, other) for other in written[:k]):
            raise InvalidInputError(f"{os.fspath(path)} is named twice; write results to a file of their own")


def _inside(path: _PathLike, folder: _PathLike) -> bool:
    """Return whether a path lies in a folder, which may not be one."""
    if not os.path.isdir(folder):  # noqa: PTH112 - pathlib's raises for names that are too long
        return False
    return Path(os.path.realpath(folder)) in Path(os.path.realpath(path)).parents


def _same(one: _PathLike, other: _PathLike) -> bool:
    if os.path.realpath(one) == os.path.realpath(other):
        return True
    try:
        return os.path.samefile(one, other)  # noqa: PTH121 - takes what is no Path
    except OSError:
        return False


def free_memory() -> int | None:
    """Return the bytes that programs may still take; None where the system does not report them."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    except OSError:
        return None
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable")), None)

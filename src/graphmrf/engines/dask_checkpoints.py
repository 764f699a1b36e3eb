"""Checkpoints in a folder: a run continues from them when workers, or the run itself, are lost.

Of finished parts the results are stored (`Store`). Of the running part, where rows are divided among workers, it is the
iterates: the results of its operations so far, and the blocks of the workers after the last of them (`Iterates`).
Files contain plain arrays with checksums, no code.
"""

from __future__ import annotations

import pickle
import shutil
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphmrf.files import atomic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from graphmrf._typing import Ints


@dataclass(frozen=True)
class Saving:
    """When the iterates of a running part are saved."""

    # seconds of a solve after which they are: the most that a lost worker costs, and little beside the minute in which
    # a new one starts
    every: float = 30.0
    # share of the time that saving may take; if it takes long it is done less often (30 GB a worker take half a minute,
    # every ten minutes)
    share: float = 0.05
    spare: float = 0.25  # share of the free disk that they may take; they are there twice while they are written
    # bytes above which a result is taken for rows, which end a part, and not for a sum: nothing is saved after it
    largest: int = 2**20


class Store:
    """Results of parts in a folder (None: nowhere), under a fingerprint of the graph, the function and the part."""

    def __init__(self, folder: Path | None, arrays: tuple[Any, ...]) -> None:
        self._folder = folder
        self._graph = b"" if folder is None else _fingerprint(arrays)
        self.running: Path | None = None
        """Folder of the latest part, for iterates while it runs."""

    def of(self, name: str) -> Store:
        """Return a store for a graph derived from this one by a named operation."""
        return Store(self._folder, (self._graph, name))

    def remembered(
        self, function: Callable[..., Any], parts: Iterable[tuple[Any, ...]], run: Callable[..., Iterator[Any]]
    ) -> Iterator[Any]:
        """Yield stored results, and those that `run` computes for the other parts."""
        if self._folder is None:
            yield from run(function, parts)
            return
        files: deque[tuple[Path, bool]] = deque()
        for result in run(function, self._missing(function, parts, files)):
            while files[0][1]:
                yield _stored(files.popleft()[0])
            values = result if isinstance(result, tuple) else (result,)
            named = {f"arr_{i}": each for i, each in enumerate(values)}
            write_arrays(files[0][0], named | {"single": not isinstance(result, tuple)})
            files.popleft()
            yield result
        for file, _ in files:
            yield _stored(file)

    def _missing(
        self, function: Callable[..., Any], parts: Iterable[tuple[Any, ...]], files: deque[tuple[Path, bool]]
    ) -> Iterator[tuple[Any, ...]]:
        """Yield the parts without a stored result; list the file of every part and whether it exists."""
        for part in parts:
            name = _fingerprint((self._graph, function.__module__, function.__qualname__, part)).hex()
            file = (self._folder or Path()) / f"{name}.npz"
            files.append((file, _is_stored(file)))
            if not files[-1][1]:
                self.running = file.with_suffix("")
                yield part


def _fingerprint(values: Any) -> bytes:
    return blake2b(pickle.dumps(values, protocol=5), digest_size=16).digest()


def _is_stored(file: Path) -> bool:
    """Return whether the file of a part exists and is undamaged; reading verifies the checksums of its arrays."""
    try:
        _stored(file)
    except Exception:  # a damaged file can raise any error; its part runs again
        return False
    return True


def _stored(file: Path) -> Any:
    with np.load(file, allow_pickle=False) as stored:
        values = [stored[f"arr_{i}"] for i in range(len(stored.files) - 1)]
        result = tuple(value if value.ndim else value.item() for value in values)
        return result[0] if stored["single"] else result


class Iterates:
    """The iterates of a part: results of its operations in their order, and blocks of the workers after some of them.

    A function called again with the same part repeats the same operations. Those with stored results are skipped; after
    the last of them workers restore their blocks and the work continues. Files of another division of the rows are
    useless.
    """

    def __init__(self, folder: Path, bounds: Ints, saving: Saving) -> None:
        self.folder, self._bounds, self._saving = folder, bounds, saving
        self._results: list[Any] = _read_results(folder / "results.npz", bounds)
        self._stored, self._next = len(self._results), 0
        self._last = self._began = time.monotonic()
        self._pause, self.is_closed = saving.every, False
        self.is_behind = self._stored > 0

    @property
    def knows(self) -> bool:
        """Whether the next result is stored."""
        return self._next < self._stored

    @property
    def is_due(self) -> bool:
        """Whether it is time to save the blocks."""
        return not self.is_closed and time.monotonic() - self._last >= self._pause

    def rewind(self) -> Iterates:
        """Go back to the first result; workers have lost their blocks."""
        del self._results[self._stored :]
        self._next, self.is_behind, self._last = 0, self._stored > 0, time.monotonic()
        return self

    def next_result(self) -> Any:
        """Return a stored result."""
        self._next += 1
        return self._results[self._next - 1].copy()

    def note(self, result: Any) -> None:
        """Add a result."""
        self.is_closed |= result.nbytes > self._saving.largest
        if not self.is_closed:
            self._results.append(result.copy())
            self._next += 1

    def file(self, part: int, *, new: bool) -> Path:
        """Return the file for the blocks of a part of the rows, to be written now or already stored."""
        return self.folder / f"{len(self._results) if new else self._stored}-{part}.npz"

    def has_room(self, n_bytes: int) -> bool:
        """Whether the disk has room for this many bytes of blocks; if not, saving stops."""
        self._began = time.monotonic()
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            if 2 * n_bytes <= self._saving.spare * shutil.disk_usage(self.folder).free:
                return True
        self.is_closed = True
        return False

    def save(self) -> None:
        """Save the results: blocks after the last of them are in their files; earlier ones are removed."""
        values = {f"arr_{i}": each for i, each in enumerate(self._results)}
        try:
            write_arrays(self.folder / "results.npz", values | {"bounds": self._bounds})
        except OSError:  # the disk is full: earlier files stay
            self.is_closed = True
            return
        self._stored = len(self._results)
        for file in self.folder.glob("*-*.npz"):
            if not file.name.startswith(f"{self._stored}-"):
                file.unlink()
        self._last = time.monotonic()
        self._pause = max(self._saving.every, (self._last - self._began) / self._saving.share)

    def discard(self) -> None:
        """Remove all files."""
        self._results, self._stored, self.is_behind = [], 0, False
        shutil.rmtree(self.folder, ignore_errors=True)


def _read_results(file: Path, bounds: Ints) -> list[Any]:
    """Return the results stored with the same division of the rows; none where there are none, or damaged ones."""
    try:
        with np.load(file, allow_pickle=False) as stored:
            if np.array_equal(stored["bounds"], bounds):
                return [stored[f"arr_{i}"] for i in range(len(stored.files) - 1)]
    except Exception:  # see `_is_stored`
        return []
    return []


def same_division(folder: Path | None, bounds: Ints) -> Ints:
    """Return the division of the rows in an earlier run if it has at least as many parts; otherwise store this one."""
    if folder is None:
        return bounds
    file = folder / f"rows-{bounds[-1]}.npy"
    try:
        before: Ints = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        before = bounds[:0]
    if before.size >= bounds.size:
        return before
    with atomic(file) as draft, draft.open("wb") as stream:
        np.save(stream, bounds)
    return bounds


def named_arrays(blocks: dict[int, Any], first: int) -> dict[str, Any]:
    """Return the arrays of blocks and windows from a number on, by names that `read_blocks` understands."""
    named: dict[str, Any] = {}
    for place, value in blocks.items():
        if place >= first and isinstance(value, tuple):
            named |= {f"{place - first}.{i}": each for i, each in enumerate(value) if each is not None}
        elif place >= first:
            named[str(place - first)] = value
    return named


def read_blocks(file: Path, first: int) -> dict[int, Any]:
    """Return the blocks and windows in a file of `named_arrays`, numbered from another number on."""
    blocks: dict[int, Any] = {}
    with np.load(file, allow_pickle=False) as stored:
        for name in stored.files:
            number, _, i = name.partition(".")
            values, rows = blocks.get(first + int(number), (None, None))
            window = (stored[name], rows) if i == "0" else (values, stored[name])
            blocks[first + int(number)] = window if i else stored[name]
    return blocks


def write_arrays(file: Path, named: dict[str, Any]) -> None:
    """Write arrays to a file for `numpy.load`, atomically."""
    with atomic(file) as draft, draft.open("wb") as stream:
        np.savez(stream, **named)

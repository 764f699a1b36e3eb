"""Functions compiled by numba that run in every thread and process, also where no compiled code can be cached."""

from __future__ import annotations

import logging
import os
import threading
from types import FunctionType
from typing import TYPE_CHECKING, Any

from numba import njit

if TYPE_CHECKING:
    from collections.abc import Callable

_LOGGER = logging.getLogger("graphmrf.engines")
_LOCK = threading.RLock()
# Without the lock of the interpreter other threads continue, such as those that keep connections of a worker alive.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract", "nsz", "arcp"}, "nogil": True}


class Kernel:
    """A function compiled for all cores (loops over ``numba.prange``), or for one core in a forked child.

    numba's OpenMP layer ends a forked child that asks for its threads, and its own layer (workqueue) ends a process in
    which two threads ask at once. So kernels take turns, a fork waits for the running one, and its child computes on
    one core. If compiled code cannot be cached, or the cache is damaged, it is compiled again.
    """

    def __init__(self, function: Callable[..., Any], *, parallel: bool = True) -> None:
        self._function, self._parallel = function, parallel
        self.dispatchers: dict[bool, Any] = {}
        self._uncached: set[bool] = set()

    def __call__(self, *arguments: Any) -> Any:
        """Return what the function returns."""
        with _LOCK:
            parallel = self._parallel and not IN_CHILD.is_set()
            try:
                return self._dispatcher(parallel)(*arguments)
            except MemoryError:
                raise
            except Exception as error:  # any error of a damaged cache or a full disk, before the code has run
                if parallel in self._uncached:
                    raise
                self._uncached.add(parallel)
                del self.dispatchers[parallel]
                _LOGGER.warning("compiled code of %s cannot be cached (%r)", self._function.__name__, error)
                return self._dispatcher(parallel)(*arguments)

    def _dispatcher(self, parallel: bool) -> Any:  # noqa: FBT001 - a key
        if parallel not in self.dispatchers:
            function = self._function if parallel else _renamed(self._function)
            cache = parallel not in self._uncached
            self.dispatchers[parallel] = _compiled(function, cache=cache, parallel=parallel)
        return self.dispatchers[parallel]


def _compiled(function: Callable[..., Any], *, cache: bool, parallel: bool) -> Any:
    try:
        return njit(cache=cache, parallel=parallel, **_OPTIONS)(function)
    except RuntimeError as error:
        if not cache or "cannot cache" not in str(error):
            raise
    if not _WARNED.is_set():
        _WARNED.set()
        _LOGGER.warning(
            "no folder for compiled code can be written, so every process compiles it again, for some seconds; "
            "name one with the environment variable NUMBA_CACHE_DIR"
        )
    return njit(parallel=parallel, **_OPTIONS)(function)


def _renamed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a copy of a function under its own name, because numba's cache ignores options."""
    assert isinstance(function, FunctionType)
    copy = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__)
    copy.__qualname__ = f"{function.__qualname__}_serial"
    copy.__module__ = function.__module__
    return copy


IN_CHILD, _WARNED = threading.Event(), threading.Event()


def _in_child() -> None:
    IN_CHILD.set()
    _LOCK.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_in_child)

"""Columns divided among workers: each worker of a cluster stores the whole graph and has its own engine.

A worker computes the parts of `map_columns`, whole solves of blocks of columns, without communication. The client
stores what it sent until the result is back, so a worker may be lost at any moment: its part is sent again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from concurrent.futures import CancelledError, wait
from contextlib import suppress
from importlib import import_module
from itertools import product
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from graphmrf.caching import cached_property
from graphmrf.engines import Engine, build_engine
from graphmrf.engines.dask import USABLE, Cluster, at_work, column_bytes, limit_threads, read_arrays, with_time_left
from graphmrf.engines.dask_checkpoints import Store
from graphmrf.errors import ClusterError, GraphMRFError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


class ColumnsEngine:
    """An engine whose workers each store the graph and compute parts of the work; single products are computed here."""

    def __init__(self, machines: Cluster, arrays: tuple[Any, ...]) -> None:
        self.n, self._machines, self._arrays, self.token = arrays[3].size, machines, arrays, uuid4().hex
        self._sent: Any = None

    def __getattr__(self, name: str) -> Any:
        """Return a method of the engine of this machine."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._here, name)

    @cached_property
    def _here(self) -> Engine:
        return build_engine("auto", *self._arrays)

    def map_columns(
        self, function: Callable[..., Any], parts: Iterable[tuple[Any, ...]], total: int = 0
    ) -> Iterator[Any]:
        """Yield ``function(engine, *part)`` of every part, in their order, computed by the workers."""
        store = Store(self._machines.checkpoint, self._arrays)
        return with_time_left(store.remembered(function, parts, self._run), total)

    def _run(self, function: Callable[..., Any], parts: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        self._check_memory()
        self._machines.will_release(self)
        tasks = TaskQueue(self._machines, self._graph_for, (function, self.token, self._machines.engine))
        try:
            yield from tasks.results(parts)
        finally:
            tasks.cancel()

    def release(self, *, patience: float = 10.0) -> None:
        """Let the workers drop the graph, waiting some seconds for workers that do not respond."""
        client = self._machines.client
        if client.status == "running":
            asked = [client._run(forget, self.token, workers=[worker]) for worker in self._machines.workers()]
            wait([asyncio.run_coroutine_threadsafe(each, client.loop.asyncio_loop) for each in asked], patience)

    def _graph_for(self, worker: str) -> Any:
        """Return the reference to the graph for a worker: a folder, or a future that Dask copies between workers."""
        if self._machines.sees_disk(worker):
            return self._machines.write_arrays(self.token, self._arrays)
        if self._sent is None or self._sent.status != "finished":
            self._sent = self._machines.send(worker, self._arrays)
        return self._sent

    def _check_memory(self) -> None:
        limit, needed = self._machines.memory(), column_bytes(self._arrays)
        if 0 < USABLE * limit < needed:
            raise ClusterError(
                f"a worker needs {needed / USABLE / 1e9:.1f} GB to hold this graph and solve on it, the smallest has "
                f"{limit / 1e9:.1f}; give workers more memory, or divide rows: partition='rows'"
            )


class TaskQueue:
    """Parts in progress: up to two at each worker, sent again if they are lost, returned in order.

    `task`: first arguments of `work`. `attempts`: one more than the three lost workers that Dask allows a task.
    """

    def __init__(
        self, machines: Cluster, graph_for: Callable[[str], Any], task: tuple[Any, ...], *, attempts: int = 4
    ) -> None:
        self._attempts = attempts
        self._machines, self._graph_for, self._task = machines, graph_for, task
        self._out: dict[int, tuple[Any, str, tuple[Any, ...], int]] = {}
        self._again: list[tuple[int, tuple[Any, ...], int]] = []

    def results(self, parts: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """Yield the results in the order of the parts."""
        waiting, done, turn = ((number, part, 0) for number, part in enumerate(parts)), dict[int, Any](), 0
        more = True
        while more or self._again or self._out or done:
            finished = self._finished()
            more = self._hand_out(waiting)  # before results travel, so that workers compute meanwhile
            for number in finished:
                future, worker, part, attempt = self._out.pop(number)
                try:
                    done[number] = self._machines.wait([worker], self._gather, future)
                except Exception as error:  # of the network, of Dask, or of the work itself
                    self._send_again(number, part, attempt, error)
            while turn in done:
                yield done.pop(turn)
                turn += 1

    def cancel(self) -> None:
        """Cancel everything in progress, so that its memory is freed."""
        futures = [future for future, *_ in self._out.values()]
        self._out = {}
        if futures and self._machines.client.status == "running":
            self._machines.client.cancel(futures, force=True)

    def _hand_out(self, waiting: Iterator[tuple[int, tuple[Any, ...], int]]) -> bool:
        """Send every worker a part, and then the next, so that none waits; return whether there may be more."""
        workers = self._machines.some_workers()
        pending = Counter(worker for future, worker, *_ in self._out.values() if future.status == "pending")
        for held, worker in product((0, 1), workers):
            if pending[worker] <= held:
                task = self._again.pop() if self._again else next(waiting, None)
                if task is None:
                    return False
                self._send(*task, worker)
                pending[worker] += 1
        return True

    def _send(self, number: int, part: tuple[Any, ...], attempt: int, worker: str) -> None:
        try:
            graph, sent = self._graph_for(worker), self._machines.send(worker, tuple(map(_in_one_piece, part)))
            future = self._machines.client.submit(work, *self._task, graph, sent, workers=[worker], pure=False)
        except Exception as error:  # the worker was just lost, or the part cannot be sent
            self._send_again(number, part, attempt, error)
        else:
            self._out[number] = future, worker, part, attempt

    async def _gather(self, future: Any) -> Any:
        return await self._machines.client._gather(future, direct=self._machines.direct)

    def _finished(self) -> list[int]:
        """Wait a moment; return the parts that are done or lost."""
        if self._out:
            # the time limit, or some were cancelled, as their status shows
            with self._machines.client.as_current(), suppress(TimeoutError, CancelledError):
                futures = [future for future, *_ in self._out.values()]
                import_module("distributed").wait(futures, timeout=1.0, return_when="FIRST_COMPLETED")
        alive = self._machines.workers()
        for future, worker, *_ in self._out.values():
            if worker not in alive and future.status == "pending":
                future.cancel(force=True)
        return [number for number, (future, *_) in self._out.items() if future.status != "pending"]

    def _send_again(self, number: int, part: tuple[Any, ...], attempt: int, error: Exception) -> None:
        """Queue a part that was lost with its worker; raise an error of the work itself, or one repeated too often."""
        self._machines.look_again()
        self._machines.workers()  # raises where the scheduler is gone, too
        network = OSError, CancelledError, import_module("distributed").KilledWorker, RuntimeError
        if isinstance(error, GraphMRFError) or not isinstance(error, network):
            raise error
        if attempt + 1 >= self._attempts:
            raise ClusterError(
                f"{self._attempts} workers in a row were lost at the same work ({error}); most likely it needs more "
                "memory than they have: start them with a higher --memory-limit, or divide rows: partition='rows'"
            ) from error
        self._again.append((number, part, attempt + 1))


def _in_one_piece(value: Any) -> Any:
    """Return a value, arrays in a form that is sent without a second copy."""
    cut = isinstance(value, np.ndarray) and not (value.flags.c_contiguous or value.flags.f_contiguous)
    return np.ascontiguousarray(value) if cut else value


HELD: dict[str, Engine] = {}  # engines of this worker, by the token of their graph
_FORGOTTEN: set[str] = set()  # tokens of released graphs: an engine that is still being built for one is not stored


def work(function: Callable[..., Any], token: str, engine: str, graph: Any, part: tuple[Any, ...]) -> Any:
    """Compute a part on a worker, with its engine of the graph."""
    worker = import_module("distributed").get_worker()
    with at_work(worker):
        if token not in HELD:
            while len(HELD) >= 2:  # of a graph, and of the same with loops
                del HELD[next(iter(HELD))]
            HELD[token] = build_engine(engine, *(read_arrays(graph) if isinstance(graph, str) else graph))
        limit_threads(worker)
        try:
            return function(HELD[token], *part)
        finally:
            if token in _FORGOTTEN:
                HELD.pop(token, None)


def forget(token: str) -> None:
    """Release the engine of a graph on this worker."""
    _FORGOTTEN.add(token)
    HELD.pop(token, None)

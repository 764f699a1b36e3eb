"""Rows divided among workers: for graphs whose edges do not fit one of them.

Every worker stores some rows of the adjacency, and the same rows of all blocks and windows, as an actor with the
kernels of one machine. A product fetches the rows of other workers that its edges lead to (the halo) from where they
are; sums over nodes are added up here. Operations without a result wait until one with a result is sent, so a Lanczos
step is two messages to every worker, whatever the size of the graph.

The blocks of a lost worker are lost. Work by `map_columns` continues from the last stored iterates, see
`graphmrf.engines.dask_checkpoints.Iterates`, on rows that the other workers take over.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import CancelledError
from importlib import import_module
from itertools import count, pairwise
from operator import getitem
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

import numpy as np

from graphmrf.engines.dask import Cluster, with_time_left
from graphmrf.engines.dask_checkpoints import Iterates, Store, same_division
from graphmrf.engines.dask_parts import (
    BlockNumber,
    Calls,
    Home,
    RowBlock,
    call_parts,
    compress_rows,
    joined_components,
    row_components,
    row_sums,
    split_edges,
    with_loops,
    with_rows,
)
from graphmrf.engines.numba import padded_width
from graphmrf.engines.protocol import Engine
from graphmrf.errors import ClusterError
from graphmrf.files import parquet_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import DTypeLike

    from graphmrf._typing import Bools, Floats, Ints

_PROGRESS = logging.getLogger("graphmrf.progress")

# Exceptions raised when a worker is lost: a cut connection, a cancelled future, a missing actor; or it has no memory.
_LOST = (OSError, RuntimeError, KeyError, MemoryError, CancelledError, asyncio.CancelledError)


class Remote:
    """A block, or a window of some rows (None: all), that workers store until this object is deleted."""

    def __init__(self, engine: RowsEngine, shape: tuple[int, ...], rows: Ints | None = None) -> None:
        self.place, self.shape, self.rows, self._forget = engine.new_place(), shape, rows, engine.forgotten

    def __del__(self) -> None:
        self._forget.append(int(self.place))


class RowsLostError(ClusterError):
    """Rows were lost with their worker."""


class RowsEngine(Engine):
    """An engine whose rows lie on several workers.

    `make`: returns what every part of the rows is made from: arrays, or a future of them. `bounds`: first row of every
    part, and n. `attempts`: times a part is computed before the run gives up.
    """

    on_host = False

    def __init__(
        self, machines: Cluster, make: Callable[[], list[Any]], bounds: Ints, store: Store, *, attempts: int = 5
    ) -> None:
        self.attempts = attempts
        self.n, self.bounds, self._machines, self._make = int(bounds[-1]), bounds, machines, make
        self._sources = make()
        machines.will_release(self)
        self.forgotten: list[int] = []
        self.messages, self._steps, self._done, self._token = 0, 0, "", uuid4().hex
        self._store, self._numbers, self._batches = store, count(), count()
        self._queues: list[list[Any]] = [[] for _ in self._sources]
        self._parts: list[Home] = []
        self._futures: list[Any] = []
        self._matrices: dict[tuple[int, int], tuple[Remote, Any, Any]] = {}
        self._iterates: Iterates | None = None
        self._first = 0

    @classmethod
    def of_arrays(
        cls, machines: Cluster, indptr: Ints, indices: Ints, weights: Floats | None, degrees: Floats
    ) -> RowsEngine:
        """Return the engine of a graph on this machine, its rows cut into parts with about the same work each."""
        n, n_parts = degrees.size, max(1, min(machines.parts or len(machines.workers()), degrees.size))
        cost = indptr.astype(np.int64) + 16 * np.arange(n + 1)
        bounds: Ints = np.searchsorted(cost, np.linspace(0, cost[-1], n_parts + 1)).astype(np.int64)
        bounds[0], bounds[-1] = 0, n
        bounds = same_division(machines.checkpoint, bounds)
        spans = [slice(int(indptr[a]), int(indptr[b])) for a, b in pairwise(bounds.tolist())]
        sources = [
            (indptr[a : b + 1] - indptr[a], indices[span], None if weights is None else weights[span])
            for a, b, span in zip(bounds[:-1], bounds[1:], spans, strict=True)
        ]
        return cls(machines, lambda: sources, bounds, Store(machines.checkpoint, (indptr, indices, weights)))

    @classmethod
    def of_files(
        cls, machines: Cluster, path: str, n: int, names: tuple[str, ...], ids: Any = None
    ) -> tuple[RowsEngine, Ints, Floats]:
        """Return the engine of a graph in Parquet files that only workers read, its row pointers and its degrees.

        `names`: columns of the two ends and, where edges have weights, of these. No process ever stores more edges than
        a file has, or a part of the rows.
        """
        files, client = parquet_files(path), machines.client
        known = None if ids is None else import_module("pyarrow").array(ids)
        n_parts = max(1, min(machines.parts or len(machines.workers()), n))
        bounds = same_division(machines.checkpoint, np.linspace(0, n, n_parts + 1).astype(np.int64))
        n_parts = bounds.size - 1

        def read() -> list[Any]:
            places = None if known is None else machines.send(machines.some_workers()[0], known)
            split = [client.submit(split_edges, file, names, bounds, places, pure=False) for file in files]
            pieces = [[client.submit(getitem, each, p, pure=False) for each in split] for p in range(n_parts)]
            return [client.submit(compress_rows, bounds, p, each, pure=False) for p, each in enumerate(pieces)]

        engine = cls(machines, read, bounds, Store(None, ()))
        indptr, degrees = engine._counted(weighted=len(names) > 2)
        engine._store = Store(machines.checkpoint, (path, indptr, degrees))
        return engine, indptr, degrees

    def _counted(self, *, weighted: bool) -> tuple[Ints, Floats]:
        """Return the row pointers of a graph of files, and its degrees."""
        client = self._machines.client
        sums = [client.submit(row_sums, each, pure=False) for each in self._sources]
        counts, weights = zip(*self._machines.collect(sums), strict=True)
        indptr = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
        return indptr, np.concatenate(weights) if weighted else np.diff(indptr).astype(np.float64)

    def remote_edges(self) -> RowsEngine:
        return self

    def looped(self) -> RowsEngine:
        """Return the engine of the same graph of files with every node its own neighbour."""
        client, firsts = self._machines.client, self.bounds[:-1].tolist()

        def add() -> list[Any]:
            rows = zip(self._sound_sources(), firsts, strict=True)
            return [client.submit(with_loops, each, first, pure=False) for each, first in rows]

        return RowsEngine(self._machines, add, self.bounds, self._store.of("looped"))

    def components(self) -> tuple[int, Ints]:
        """Return the number of components of a graph of files, and that of every node."""
        labels: Ints = np.arange(self.n)
        for _, others in self.over_rows(row_components, None, self.n):
            labels = joined_components(labels, others)
        return int(labels.max(initial=-1)) + 1, labels

    def over_rows(self, function: Callable[..., Any], state: Any, about: Any) -> Iterator[tuple[Any, Any]]:
        """Yield what a function makes of the rows of a graph of files, part by part, see `Graph.over_rows`."""
        for p in range(len(self._sources)):
            state, result = self._on_part(function, p, state, about)
            yield state, result

    def _on_part(self, function: Callable[..., Any], p: int, *values: Any) -> Any:
        """Return what a function makes of the rows of a part, on a worker; again if that is lost."""
        machines = self._machines
        for attempt in range(1, self.attempts + 1):
            try:
                sent, rows = machines.send(machines.some_workers()[0], values), self._sound_sources()[p]
                work = machines.client.submit(with_rows, function, rows, int(self.bounds[p]), sent, pure=False)
                return machines.collect([work])[0]
            except (OSError, ClusterError):
                if attempt == self.attempts or machines.client.status != "running":
                    raise
                machines.look_again()
        raise AssertionError

    def map_columns(
        self, function: Callable[..., Any], parts: Iterable[tuple[Any, ...]], total: int = 0
    ) -> Iterator[Any]:
        """Yield ``function(self, *part)`` of every part; one during which rows are lost is computed again."""
        self._done, self._steps = "", 0
        return with_time_left(self._store.remembered(function, parts, self._run), total, self._report)

    def compute(self, function: Callable[..., Any], *part: Any) -> Any:
        """Return ``function(self, *part)``; if rows are lost meanwhile, it is computed again."""
        iterates = Iterates(self._machines.folder / uuid4().hex, self.bounds, self._machines.saving)
        try:
            return self._attempts(function, part, iterates)
        finally:
            iterates.discard()

    def _report(self, done: str) -> None:
        """Report the finished parts, and the products computed since."""
        self._done = f"{done}, "
        _PROGRESS.info("%s%d products", self._done, self._steps)

    def _run(self, function: Callable[..., Any], parts: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        for part in parts:
            iterates = Iterates(
                self._store.running or self._machines.folder / uuid4().hex, self.bounds, self._machines.saving
            )
            yield self._attempts(function, part, iterates)
            iterates.discard()  # now that the result is stored

    def _attempts(self, function: Callable[..., Any], part: tuple[Any, ...], iterates: Iterates) -> Any:
        if self._iterates is not None:  # of a part that this one belongs to: it restarts if rows are lost later
            self._iterates.discard()
        for attempt in range(1, self.attempts + 1):
            self._iterates, self._first, self._matrices = iterates.rewind(), next(self._numbers) + 1, {}
            try:
                return function(self, *part)
            except RowsLostError as error:
                if attempt == self.attempts:
                    raise ClusterError(
                        f"workers were lost {self.attempts} times at the same work ({error.__cause__}); most likely it "
                        "needs more memory than they have: start more of them, or with a higher --memory-limit"
                    ) from error
            finally:
                self._iterates = None
        raise AssertionError

    def load(self, X: Floats, rows: Ints | None = None) -> Remote:
        X = np.asarray(X)
        if rows is None:
            return self._new("load", X.shape[1], [(X[a:b],) for a, b in self._ranges])
        return self._new("load", X.shape[1], [(X[chosen], local) for chosen, local in self._split(rows)])

    def unload(self, V: Remote, k: int, rows: Ints | None = None) -> Floats:
        if rows is None:
            return self._ask("unload", [(V.place, k)] * len(self._queues), np.concatenate)
        split = self._split(rows)

        def join(found: list[Any]) -> Floats:
            values = np.empty((len(rows), k), dtype=found[0].dtype)
            for (chosen, _), part in zip(split, found, strict=True):
                values[chosen] = part
            return values

        return self._ask("unload", [(V.place, k, local) for _, local in split], join)

    def zeros(self, k: int, dtype: DTypeLike = np.float64) -> Remote:
        return self._new("zeros", k, [(k, dtype)] * len(self._queues))

    def random(self, seed: int, k: int, kind: Literal["rademacher", "normal"] = "rademacher") -> Remote:
        return self._new("random", k, [(seed, k, kind)] * len(self._queues))

    def mask(self, allowed: Bools | None, width: int, rows: Ints | None = None) -> Remote:
        if allowed is None:
            return self._new("mask", width, [(None, width)] * len(self._queues))
        if rows is None:
            return self._new("mask", width, [(allowed[a:b], width) for a, b in self._ranges])
        split = self._split(rows)
        return self._new("mask", width, [(allowed[chosen], width, local) for chosen, local in split])

    def like(self, V: Remote) -> Remote:
        return self._new("like", V.shape[1], [(V.place,)] * len(self._queues))

    def advance(self, V: Remote, scale: Floats, previous: Remote, back: Floats, mask: Remote, out: Remote) -> Floats:
        self._steps += 1
        _PROGRESS.info("%s%d products", self._done, self._steps)
        return self._sum("advance", V.place, scale, previous.place, back, mask.place, out.place)

    def subtract(self, out: Remote, coefficient: Floats, V: Remote) -> Floats:
        return self._sum("subtract", out.place, coefficient, V.place)

    def mix(self, V: Remote, tables: Floats, kinds: Ints, minus: Remote | None, out: Remote) -> None:
        matrices = self._sent(tables, kinds).place
        self._queue("mix", V.place, matrices, None if minus is None else minus.place, out.place)

    def window(self, k: int, slots: int, rows: Ints | None, dtype: DTypeLike = np.float64) -> Remote:
        """Return a window of zeros."""
        made = Remote(self, (k, slots, self.n if rows is None else len(rows)), rows)
        local = [None] * len(self._queues) if rows is None else [local for _, local in self._split(rows)]
        self._each("window", made.place, [(k, slots, part, dtype) for part in local])
        return made

    def store(self, V: Remote, window: Remote, slot: int) -> None:
        self._queue("store", V.place, window.place, slot)

    def restore(self, window: Remote, slot: int, out: Remote) -> None:
        self._queue("restore", window.place, slot, out.place)

    def combine(self, window: Remote, coefficients: Floats, out: Remote, keep: Floats | None = None) -> None:
        self._queue("combine", window.place, coefficients.copy(), out.place, None if keep is None else keep.copy())

    def read(self, window: Remote) -> Floats:
        def join(found: list[Any]) -> Floats:
            if window.rows is None:
                return np.concatenate(found, axis=2)
            values = np.empty(window.shape, dtype=found[0].dtype)
            for (chosen, _), part in zip(self._split(window.rows), found, strict=True):
                values[:, :, chosen] = part
            return values

        return self._ask("read", [(window.place,)] * len(self._queues), join)

    def close(self) -> None:
        """Release the blocks on the workers."""
        self._queues = [[] for _ in self._sources]
        self._matrices = {}
        self._let_go()

    def release(self) -> None:
        """Release everything the workers have of this graph, its rows included."""
        self.close()
        self._cancel([source for source in self._sources if not isinstance(source, tuple)])

    def _let_go(self) -> None:
        futures, self._futures, self._parts = self._futures, [], []
        self._cancel(futures)

    def _cancel(self, futures: list[Any]) -> None:
        if futures and self._machines.client.status == "running":
            self._machines.client.cancel(futures, force=True)

    def _sound_sources(self) -> list[Any]:
        """Return the sources of the parts; rebuilt if they were lost with the ids, which Dask cannot send again."""
        if any(getattr(source, "status", "") in ("cancelled", "lost") for source in self._sources):
            self._sources = self._make()
        return self._sources

    def homes(self) -> list[str]:
        """Return the workers of the parts; none before the first operation with a result."""
        return [address for address, _ in self._parts]

    def new_place(self) -> BlockNumber:
        """Return the number of a new block or window."""
        return BlockNumber(next(self._numbers))

    @property
    def _ranges(self) -> list[tuple[int, int]]:
        return list(zip(self.bounds[:-1].tolist(), self.bounds[1:].tolist(), strict=True))

    def _split(self, rows: Ints) -> list[tuple[Bools, Ints]]:
        """Return, for every part, a mask of the rows it contains, and their numbers in the part."""
        return [((rows >= a) & (rows < b), rows[(rows >= a) & (rows < b)] - a) for a, b in self._ranges]

    def _sent(self, tables: Floats, kinds: Ints) -> Remote:
        """Send every worker the small matrices of its rows, unless it has them, and return their handle."""
        key = id(tables), id(kinds)
        if key not in self._matrices:
            made = Remote(self, (self.n,))
            used = [np.unique(kinds[a:b], return_inverse=True) for a, b in self._ranges]
            self._each("hold", made.place, [(tables[some], inverse) for some, inverse in used])
            self._matrices[key] = made, tables, kinds  # cached, so that no other array gets their number
            while len(self._matrices) > 8:  # a solve uses three
                del self._matrices[next(iter(self._matrices))]
        return self._matrices[key][0]

    def _new(self, name: str, k: int, values: list[tuple[Any, ...]]) -> Remote:
        made = Remote(self, (self.n, k if name == "mask" else padded_width(k)))
        self._each(name, made.place, values)
        return made

    def _queue(self, name: str, *values: Any) -> None:
        self._each(name, None, [values] * len(self._queues))

    def _each(self, name: str, place: BlockNumber | None, values: list[tuple[Any, ...]]) -> None:
        for queue, own in zip(self._queues, values, strict=True):
            queue.append((name, place, own))

    def _sum(self, name: str, *values: Any) -> Floats:
        return self._ask(name, [values] * len(self._queues), lambda found: np.asarray(sum(found)))

    def _ask(self, name: str, values: list[tuple[Any, ...]], join: Callable[[list[Any]], Floats]) -> Floats:
        """Send the queued operations and one with a result; return the joined results of the parts.

        Results known from iterates are not computed again: workers get the blocks that follow from them instead.
        """
        iterates = self._iterates
        if iterates is not None and iterates.knows:
            self._queues = [[] for _ in self._sources]
            known: Floats = iterates.next_result()
            return known
        forgotten, self.forgotten[:] = list(self.forgotten), []
        if forgotten:
            self._queue("forget", forgotten)
        self._each(name, None, values)
        queues, self._queues = self._queues, [[] for _ in self._sources]
        batch = next(self._batches)
        try:
            parts = self._parts or self._start_again()
            if iterates is not None and iterates.is_behind:
                self._recall(parts, iterates)
            found = join(self.call(parts, "run", [(batch, queue) for queue in queues]))
            if iterates is not None:
                self._note(parts, iterates, found)
        except _LOST as error:
            self.close()
            if self._machines.client.status != "running":
                raise self._machines.lost() from error
            raise RowsLostError(
                f"a worker was lost, and rows of the graph with it ({error}); the other workers take them over when "
                "this is run again"
            ) from error
        return found

    def _note(self, parts: list[Home], iterates: Iterates, result: Floats) -> None:
        """Add a result to iterates; if it is time, let the workers store their blocks."""
        iterates.note(result)
        if not iterates.is_due:
            return
        first = (self._first,)
        n_bytes = sum(self.call(parts, "size", [first] * len(parts)))
        folder, homes = iterates.folder.parent, set(self.homes())
        if not iterates.has_room(n_bytes) or not all(self._machines.sees_disk(home, folder) for home in homes):
            iterates.is_closed = True
            return
        files = [iterates.file(p, new=True) for p in range(len(parts))]
        if all(self.call(parts, "save", [(str(file.resolve()), *first) for file in files])):
            iterates.save()
        else:
            iterates.is_closed = True

    def _recall(self, parts: list[Home], iterates: Iterates) -> None:
        """Let the workers read their stored blocks."""
        files = [iterates.file(p, new=False) for p in range(len(parts))]
        if not all(self.call(parts, "recall", [(str(file.resolve()), self._first) for file in files])):
            iterates.discard()
            raise OSError(f"what was stored in {iterates.folder} is damaged, or not seen by all workers")
        iterates.is_behind = False

    def call(self, parts: list[Home], name: str, values: list[tuple[Any, ...]]) -> list[Any]:
        """Return what a method of every part returns; give up when a worker is gone or does not respond."""
        found: list[Any] = self._machines.wait({address for address, _ in parts}, self._called, parts, name, values)
        return found

    async def _called(self, parts: list[Home], name: str, values: list[tuple[Any, ...]]) -> list[Any]:
        calls: dict[str, Calls] = {address: {} for address, _ in parts}
        for (address, key), own in zip(parts, values, strict=True):
            calls[address][key] = own
        found = await asyncio.gather(*(call_parts(self._rpc(home), name, some) for home, some in calls.items()))
        self.messages += len(calls)
        answers = dict(zip(calls, found, strict=True))
        return [answers[address][key] for address, key in parts]

    def _rpc(self, address: str) -> Any:
        """Return the connection to a worker, by the scheduler where it cannot be reached from here."""
        client = self._machines.client
        if self._machines.direct:
            return client.rpc(address)
        return import_module("distributed.actor").ProxyRPC(client.scheduler, address)

    def _start_again(self) -> list[Home]:
        """Assign every part of the rows to a worker; repeat for all of them if one is lost meanwhile."""
        for _ in range(self.attempts - 1):
            try:
                return self._start()
            except _LOST:
                self._let_go()
                if self._machines.client.status != "running":
                    raise
        return self._start()

    def _start(self) -> list[Home]:
        machines, client = self._machines, self._machines.client
        machines.look_again()
        _ = machines.direct  # determined here, as the loop of the client must not wait for it
        workers, sources = machines.some_workers(), self._sound_sources()
        homes = [workers[p % len(workers)] for p in range(len(sources))]
        for p, home in enumerate(homes):
            made = (self._source(sources[p], p, home), self.bounds, p, machines.silence)
            self._futures.append(client.submit(RowBlock, *made, workers=[home], actor=True, pure=False))
        machines.wait(homes, client._gather, self._futures)
        parts = [(home, future.key) for home, future in zip(homes, self._futures, strict=True)]
        self.call(parts, "connect", [(parts,)] * len(parts))
        self._parts = parts
        return parts

    def _source(self, source: Any, part: int, home: str) -> Any:
        """Return what a worker makes a part of the rows from: a folder, or a future of arrays."""
        if not isinstance(source, tuple):
            return source
        if self._machines.sees_disk(home):
            return self._machines.write_arrays(f"{self._token}-{part}", source)
        return self._machines.send(home, source)

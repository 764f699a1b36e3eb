"""Parts of the rows of a graph on workers: read from Parquet files, and stored as actors.

Edges of files are distributed by the part of their row and assembled into the rows of a part. Each function is a Dask
task, repeated if its worker is lost; none sees more edges than a file or a part has. `RowBlock` is
the actor that has the rows of a part, and the same rows of blocks and windows.
"""

from __future__ import annotations

import asyncio
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from graphmrf.engines.dask import at_work, limit_threads, read_arrays
from graphmrf.engines.dask_checkpoints import named_arrays, read_blocks, write_arrays
from graphmrf.engines.numba import NumbaEngine
from graphmrf.engines.probes import random_columns
from graphmrf.errors import InvalidInputError
from graphmrf.files import opened

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphmrf._typing import Floats, Ints

_Piece: TypeAlias = "tuple[Ints, Floats | None]"  # edges of one file with their row in one part, see `split_edges`

_Rows: TypeAlias = "tuple[Ints, Ints, Floats | None]"  # compressed rows: pointers, columns, and weights or None


def weight_sums(indptr: Ints, weights: Floats) -> Floats:
    """Return the sum of the weights of every row."""
    sums = np.zeros(indptr.size - 1)
    filled = np.diff(indptr) > 0
    sums[filled] = np.add.reduceat(weights, indptr[:-1][filled])
    return sums


def split_edges(file: str, names: tuple[str, ...], bounds: Ints, ids: Any = None) -> list[_Piece]:
    """Return the edges of a file, both ways round and without loops, by the part of their row.

    An edge is one number, its row in the part times the number of nodes plus its column, which sorts by both. The
    weight of an edge from the larger number to the smaller is negative, to distinguish an edge listed in both
    directions from one listed twice.
    """
    with opened(file) as stream:
        table = import_module("pyarrow.parquet").read_table(stream, columns=list(names))
    n, weight = int(bounds[-1]), names[2:]
    u, v = (_numbered(file, table[end], n) if ids is None else _located(file, table[end], ids) for end in names[:2])
    weights = _weighed(f"{file}, column {weight[0]}", table[weight[0]].to_numpy()) if weight else None
    proper = u != v if weights is None else (u != v) & (weights > 0)
    u, v = u[proper].astype(np.int64), v[proper].astype(np.int64)
    rows, columns = np.concatenate([u, v]), np.concatenate([v, u])
    part = np.searchsorted(bounds, rows, side="right") - 1
    pairs = (rows - bounds[part]) * n + columns
    if weights is None:
        return [(pairs[part == p], None) for p in range(bounds.size - 1)]
    signed = np.tile(np.where(u < v, weights[proper], -weights[proper]), 2)
    return [(pairs[part == p], signed[part == p]) for p in range(bounds.size - 1)]


def _weighed(place: str, weights: Floats) -> Floats:
    """Return the weights of edges; raise InvalidInputError unless they are finite and >= 0."""
    if weights.dtype.kind not in "iuf" or not (np.isfinite(weights) & (weights >= 0)).all():
        raise InvalidInputError(f"{place}: an edge weight must be a finite number >= 0; correct it or remove the edge")
    return weights.astype(np.float64)


def _numbered(file: str, ends: Any, n: int) -> Ints:
    """Return ends of edges that are numbers of nodes; raise InvalidInputError for others."""
    numbers: Ints = ends.to_numpy()
    if numbers.dtype.kind not in "iu" or numbers.min(initial=0) < 0:
        raise InvalidInputError(f"{file}: ends of edges must be whole numbers from 0 to {n - 1}; or pass ids=")
    if numbers.max(initial=0) >= n:
        raise InvalidInputError(f"{file}: there are {n} nodes, got the number {numbers.max()}; raise n_nodes")
    return numbers


def _located(file: str, ends: Any, ids: Any) -> Ints:
    """Return the numbers of nodes by their ids; raise InvalidInputError for an id that no node has."""
    pyarrow, compute = import_module("pyarrow"), import_module("pyarrow.compute")
    try:
        cells = ends.cast(ids.type)
        found = compute.index_in(
            compute.utf8_trim_whitespace(cells) if pyarrow.types.is_string(ids.type) else cells, value_set=ids
        )
    except pyarrow.ArrowException as error:
        raise InvalidInputError(
            f"{file}: ends of edges are {ends.type}, ids are {ids.type}; save both alike"
        ) from error
    if found.null_count:
        stray = ends.filter(found.is_null())[0]
        raise InvalidInputError(f"{file}: an edge leads to {stray}, which is no id; add the node, or drop the edge")
    numbers: Ints = found.to_numpy()
    return numbers


def compress_rows(bounds: Ints, part: int, pieces: list[_Piece]) -> _Rows:
    """Return the compressed rows of a part from its edges, see `split_edges`.

    An edge listed again counts once; weights add up, except for an edge listed in both directions with the same weight.
    """
    pairs, n = np.concatenate([each for each, _ in pieces]), int(bounds[-1])
    weights = None if pieces[0][1] is None else np.concatenate([each for _, each in pieces])
    if weights is None:
        pairs.sort()
    else:
        order = np.argsort(pairs, kind="stable")
        pairs, weights = pairs[order], weights[order]
    once = np.ones(pairs.size, dtype=bool)
    np.not_equal(pairs[1:], pairs[:-1], out=once[1:])
    if weights is not None:
        there, back = (np.add.reduceat(np.maximum(w, 0.0), np.flatnonzero(once)) for w in (weights, -weights))
        weights = np.where(np.isclose(there, back, rtol=1e-9, atol=0.0), there, there + back)
    if not once.all():
        pairs = pairs[once]
    indptr = np.searchsorted(pairs, n * np.arange(bounds[part + 1] - bounds[part] + 1))
    indices: Ints = np.empty(pairs.size, dtype=np.int32 if n < 2**31 else np.int64)
    np.remainder(pairs, n, out=indices, casting="same_kind")
    return indptr, indices, weights


def row_sums(rows: _Rows) -> tuple[Ints, Floats | None]:
    """Return the neighbours that every row has, and the sums of their weights where there are weights."""
    return np.diff(rows[0]), None if rows[2] is None else weight_sums(rows[0], rows[2])


def with_loops(rows: _Rows, first: int) -> _Rows:
    """Return rows of which every node is its own neighbour, too."""
    (indptr, indices, weights), n = rows, rows[0].size - 1
    loops = np.insert(indices, indptr[1:], np.arange(first, first + n))
    return indptr + np.arange(n + 1), loops, None if weights is None else np.insert(weights, indptr[1:], 1.0)


def with_rows(function: Callable[..., Any], rows: _Rows, first: int, values: tuple[Any, ...]) -> Any:
    """Return what a function makes of the rows of a part, the number of the first, and values that were sent."""
    return function(rows, first, *values)


def row_components(rows: _Rows, first: int, _: None, n: int) -> tuple[None, Ints]:
    """Return the component of every node of the graph by the edges of some rows, see `Graph.over_rows`."""
    before, after = np.zeros(first, rows[0].dtype), np.full(n - first - rows[0].size + 1, rows[0][-1])
    indptr = np.concatenate([before, rows[0], after])
    edges = sparse.csr_array((np.ones(rows[1].size, np.int8), rows[1], indptr), shape=(n, n))
    labels: Ints = connected_components(edges, directed=False)[1]
    return None, labels


def joined_components(labels: Ints, others: Ints) -> Ints:
    """Return the components of all nodes by two sets of edges, from the components by either."""
    k, size = int(labels.max(initial=-1)) + 1, int(labels.max(initial=-1) + others.max(initial=-1)) + 2
    same = sparse.coo_array((np.ones(labels.size, np.int8), (labels, k + others)), shape=(size, size))
    return np.asarray(connected_components(same.tocsr(), directed=False)[1][labels])


class BlockNumber(int):
    """Number of a block or window on the workers."""

    __slots__ = ()


Home: TypeAlias = "tuple[str, str]"
"""Where a part of the rows is: the address of its worker, and the key of its actor there."""

Calls: TypeAlias = "dict[str, tuple[Any, ...]]"  # arguments of a method of some parts, by the key of their actor

_Operation: TypeAlias = "tuple[str, BlockNumber | None, tuple[Any, ...]]"
"""Name, number of the block for its result (None: it is returned), and arguments; a number refers to its block."""


class RowBlock:
    """Some rows of a graph on a worker, and the same rows of the blocks and windows of an engine.

    `source`: compressed rows of the adjacency with global columns, or the folder of their files. `bounds` (n_parts +
    1,): first row of every part. `patience`: seconds to wait for the rows of another part.
    """

    def __init__(self, source: Any, bounds: Ints, number: int, patience: float) -> None:
        indptr, indices, weights = (read_arrays(source) if isinstance(source, str) else source)[:3]
        self.first, stop, self.number, self._patience = int(bounds[number]), int(bounds[number + 1]), number, patience
        halo, places = _localised(indices, slice(self.first, stop), int(bounds[-1]))
        degrees = np.diff(indptr).astype(float) if weights is None else weight_sums(indptr, weights)
        index = np.int32 if indptr[-1] < 2**31 else np.int64
        self.engine = NumbaEngine(indptr.astype(index), places, weights, degrees)
        cuts, self._n_halo = np.searchsorted(halo, bounds).tolist(), halo.size
        self._spans = {p: slice(a, b) for p, (a, b) in enumerate(pairwise(cuts)) if a < b}
        self._halo = {p: halo[span] - bounds[p] for p, span in self._spans.items()}
        self._worker = import_module("distributed").get_worker()
        self._asked: dict[int, Ints] = {}
        self._blocks: dict[int, Any] = {}
        self._homes: dict[str, list[tuple[int, str]]] = {}
        self._moved = asyncio.Condition()
        self._ready, self._scratch = -1, np.empty((0, 0))

    async def each(self, name: str, calls: Calls) -> dict[str, Any]:
        """Return what a method of some parts on this worker returns: one message serves all of them."""
        parts = self._worker.state.actors
        found = await asyncio.gather(*(getattr(parts[key], name)(*values) for key, values in calls.items()))
        return dict(zip(calls, found, strict=True))

    async def connect(self, peers: list[Home]) -> None:
        """Store where the other parts are, and send them the list of their rows needed here."""
        self._homes = {address: [] for address, _ in peers}
        for part in self._halo:
            self._homes[peers[part][0]].append((part, peers[part][1]))
        for address, parts in self._homes.items():
            await self._ask(address, "expect", {key: (self.number, self._halo[part]) for part, key in parts})

    async def _ask(self, address: str, name: str, calls: Calls) -> dict[str, Any]:
        """Return what a method of some parts on a worker returns, without a network where they are on this one."""
        if address == self._worker.address:
            return await self.each(name, calls)
        return await call_parts(self._worker.rpc(address), name, calls) if calls else {}

    async def expect(self, asker: int, rows: Ints) -> None:
        """Store the rows that another part will request."""
        self._asked[asker] = rows

    async def rows(self, batch: int, place: int, asker: int) -> Floats:
        """Return the requested rows of a block once this part has reached the same step."""
        async with self._moved:
            await asyncio.wait_for(self._moved.wait_for(lambda: self._ready >= batch), self._patience)
        found: Floats = await self._in_thread(self._blocks[place].__getitem__, self._asked[asker])
        return found

    async def run(self, batch: int, operations: list[_Operation]) -> Any:
        """Do one operation after the other, and return the result of the last."""
        *before, last = operations
        await self._in_thread(self._do, before)
        async with self._moved:
            self._ready = batch
            self._moved.notify_all()
        if last[0] == "advance":
            last = (*last[:2], (await self._extended(batch, last[2][0]), *last[2][1:]))
        return await self._in_thread(self._do, [last])

    async def _in_thread(self, call: Callable[..., Any], *values: Any) -> Any:
        executor = self._worker.executors["actor"]  # one thread, which ends with the worker
        return await asyncio.get_running_loop().run_in_executor(executor, call, *values)

    def _do(self, operations: list[_Operation]) -> Any:
        result = None
        with at_work(self._worker):
            limit_threads(self._worker)
            for name, place, values in operations:
                arguments = [self._blocks[value] if isinstance(value, BlockNumber) else value for value in values]
                result = self._local(name)(*arguments)
                if place is not None:
                    self._blocks[place] = result
        return result

    async def _extended(self, batch: int, place: BlockNumber) -> Floats:
        """Return a block with the rows of other parts below its own."""
        V = self._blocks[place]
        if self._scratch.shape != (len(V) + self._n_halo, V.shape[1]) or self._scratch.dtype != V.dtype:
            self._scratch = np.empty((len(V) + self._n_halo, V.shape[1]), V.dtype)
        own = self._in_thread(np.copyto, self._scratch[: len(V)], V)
        await asyncio.gather(own, *(self._fetch(batch, place, address, len(V)) for address in self._homes))
        return self._scratch

    async def _fetch(self, batch: int, place: BlockNumber, address: str, n: int) -> None:
        """Put the rows of a block that the parts on a worker have below the `n` own ones."""
        parts = self._homes[address]
        found = await self._ask(address, "rows", {key: (batch, int(place), self.number) for _, key in parts})
        for part, key in parts:
            await self._in_thread(np.copyto, self._scratch[n:][self._spans[part]], found[key])

    async def size(self, first: int) -> int:
        """Return the bytes of the blocks and windows from a number on."""
        return sum(array.nbytes for array in named_arrays(self._blocks, first).values())

    async def save(self, file: str, first: int) -> bool:
        """Write blocks and windows from a number on to a file; return whether the disk took them."""
        try:
            await self._in_thread(write_arrays, Path(file), named_arrays(self._blocks, first))
        except OSError:
            return False
        return True

    async def recall(self, file: str, first: int) -> bool:
        """Read what `save` wrote, numbered from another number on; return whether the file is there and whole."""
        try:
            self._blocks |= await self._in_thread(read_blocks, Path(file), first)
        except Exception:  # a damaged file can raise any error
            return False
        return True

    def _local(self, name: str) -> Callable[..., Any]:
        own: dict[str, Callable[..., Any]]
        own = {"random": self._random, "mix": self._mix, "forget": self._forget, "hold": lambda *values: values}
        return own[name] if name in own else getattr(self.engine, name)

    def _random(self, seed: int, k: int, kind: Literal["rademacher", "normal"]) -> Floats:
        return self.engine.load(random_columns(seed, self.engine.n, k, kind, first=self.first))

    def _mix(self, V: Floats, matrices: tuple[Floats, Ints], minus: Floats | None, out: Floats) -> None:
        self.engine.mix(V, *matrices, minus, out)

    def _forget(self, places: list[int]) -> None:
        for place in places:
            self._blocks.pop(place, None)


async def call_parts(rpc: Any, name: str, calls: Calls) -> dict[str, Any]:
    """Call a method of parts of the rows on another worker, and return or raise what it does.

    The proxies of Dask for actors wait forever if their worker is lost before they have arrived.
    """
    wrapped = [import_module("distributed.protocol").to_serialize(value) for value in (name, calls)]
    answer = await rpc.actor_execute(function="each", actor=next(iter(calls)), args=wrapped, kwargs={})
    if answer["status"] != "OK":
        raise answer["exception"]
    found: dict[str, Any] = answer["result"]
    return found


def _localised(indices: Ints, own: slice, n: int) -> tuple[Ints, Ints]:
    """Return the remote rows that edges lead to (the halo), and the edges renumbered with these below the own rows."""
    needed = np.zeros(n, dtype=bool)
    needed[indices] = True
    needed[own] = False
    halo, n_own = np.flatnonzero(needed), own.stop - own.start
    index = np.int32 if n_own + halo.size < 2**31 else np.int64
    places: Ints = np.zeros(n, dtype=index)
    places[own] = np.arange(n_own)
    places[halo] = n_own + np.arange(halo.size)
    return halo, places[indices]

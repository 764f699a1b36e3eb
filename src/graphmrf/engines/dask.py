"""Clusters: the workers of Dask distributed as an engine, ``graph.to(cluster)``.

Workers divide either the columns, each holding the whole graph (`graphmrf.engines.dask_columns`), or, for graphs that
do not fit one worker, its rows (`graphmrf.engines.dask_rows`). This module has the code of both: the connection,
waiting for workers that may be lost at any moment, and sending data to them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import sys
import tempfile
import threading
import time
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

import numpy as np

from graphmrf.caching import cached_property
from graphmrf.engines.dask_checkpoints import Saving
from graphmrf.errors import ClusterError, InvalidInputError, MissingExtraError
from graphmrf.text import count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Executor
    from types import TracebackType

    from graphmrf._typing import Floats, Ints
    from graphmrf.engines import Engine

__all__ = ["Cluster", "cluster"]

_PROGRESS = logging.getLogger("graphmrf.progress")

USABLE = 0.8  # share of a worker's memory that graph and blocks may take: Dask starts no work on a worker beyond it


class Cluster:
    """Dask workers as an engine of graphs: ``with gm.cluster("local:4") as machines: graph.to(machines)``.

    A graph that is pickled comes back without its cluster, on the engine "auto".

    Parameters
    ----------
    client : distributed.Client
        The connection.
    partition : {"auto", "columns", "rows"}
        Whether workers divide columns, each holding the whole graph, or rows of the graph; "auto" takes columns if the
        graph fits every worker.
    engine : str
        Engine of the workers.
    checkpoint : path, optional
        Folder for the results of finished parts, and with rows for iterates of the running part, so that an interrupted
        run can continue.
    silence : float
        Seconds without a heartbeat after which a worker counts as lost, and seconds to wait for a worker if there is
        none. Workers send one about every second, but none during a product.
    saving : Saving, optional
        When iterates are saved.
    parts : int, optional
        Parts that rows are cut into; by default one for every worker.
    """

    def __init__(  # noqa: PLR0913 - options of a run
        self,
        client: Any,
        *,
        partition: Literal["auto", "columns", "rows"] = "auto",
        engine: str = "auto",
        checkpoint: str | Path | None = None,
        silence: float = 120.0,
        saving: Saving | None = None,
        parts: int | None = None,
    ) -> None:
        self.client, self.partition, self.engine, self.silence = client, partition, engine, silence
        self.parts, self.saving = parts, saving or Saving()
        self.checkpoint = None if checkpoint is None else _made(Path(checkpoint))
        self._owned: list[Any] = []
        self._folder: Path | None = None
        self._seen: tuple[float, dict[str, dict[str, Any]]] = (-np.inf, {})
        self._signs: dict[str, tuple[float | None, float]] = {}
        self._dismissed: set[str] = set()
        self._holding: list[Any] = []
        self._seeing: dict[tuple[str, Path], bool] = {}

    def __call__(self, indptr: Ints, indices: Ints, weights: Floats | None, degrees: Floats) -> Engine:
        """Return an engine for a graph; workers receive the graph when they first compute."""
        arrays = indptr, indices, weights, degrees
        if self._holds(column_bytes(arrays)) if self.partition == "auto" else self.partition == "columns":
            made: Engine = import_module("graphmrf.engines.dask_columns").ColumnsEngine(self, arrays)
            return made
        rows: Engine = import_module("graphmrf.engines.dask_rows").RowsEngine.of_arrays(self, *arrays)
        return rows

    def read_rows(self, path: str, n: int, names: tuple[str, ...], ids: Any = None) -> tuple[Engine, Ints, Floats]:
        """Return an engine on rows of a graph that workers read from Parquet files, its row pointers and degrees."""
        rows = import_module("graphmrf.engines.dask_rows")
        found: tuple[Engine, Ints, Floats] = rows.RowsEngine.of_files(self, path, n, names, ids)
        return found

    def will_release(self, engine: Any) -> None:
        """Register an engine whose graph must be released on the workers at the end."""
        if engine not in self._holding:
            self._holding.append(engine)

    def collect(self, futures: list[Any]) -> list[Any]:
        """Return the results of futures; errors of the work are raised unchanged, a lost scheduler as ClusterError."""
        try:
            found: list[Any] = self.wait([], self.client._gather, futures)  # which detects silent workers
        except (OSError, CancelledError) as error:
            self.look_again()
            self.workers()
            raise ClusterError(f"workers were lost at this work ({error}); start more, and run it again") from error
        except import_module("distributed").KilledWorker as error:
            raise ClusterError(
                f"several workers were lost at the same work ({error}); most likely it needs more memory than they "
                "have: start more of them, or with a higher --memory-limit"
            ) from error
        return found

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return str, ("auto",)

    def __repr__(self) -> str:
        return f"Cluster({self.address}, {len(self.workers())} workers)"

    @property
    def address(self) -> str:
        """Address of the scheduler."""
        return str(self.client.scheduler.address) if self.client.scheduler else "closed"

    @property
    def dashboard(self) -> str:
        """Link to the page that shows what the workers do."""
        return str(self.client.dashboard_link or "")

    def workers(self) -> dict[str, dict[str, Any]]:
        """Return the scheduler's information on every live worker, by address, at most one second old."""
        now = time.monotonic()
        if self.client.status != "running":
            raise self.lost()
        if now - self._seen[0] > 1.0:
            try:
                self._seen = now, self.client.scheduler_info(n_workers=-1)["workers"]
            except (OSError, TypeError, AttributeError) as error:
                raise self.lost() from error
        signs, found = self._signs, self._seen[1]
        for name, about in found.items():
            if name not in signs or signs[name][0] != about.get("last_seen"):  # clocks of machines may differ
                signs[name] = about.get("last_seen"), now
        silent = {name for name in found if now - signs[name][1] >= self.silence}
        for name in silent - self._dismissed:
            self.dismiss(name)
        return {name: about for name, about in found.items() if name not in silent}

    def dismiss(self, worker: str) -> None:
        """Make the scheduler drop a silent worker now instead of after five minutes, so that others take over."""
        self._dismissed.add(worker)
        self.look_again()
        with suppress(Exception):  # the scheduler is gone, too, which is detected later
            self.client.run_on_scheduler(_remove_worker, worker)

    def wait(self, needed: Iterable[str], call: Callable[..., Any], /, *values: Any, **options: Any) -> Any:
        """Return the result of a coroutine of the client, without a time limit; stop if a worker is gone."""
        if self.client.status != "running":
            raise self.lost()
        running = asyncio.run_coroutine_threadsafe(call(*values, **options), self.client.loop.asyncio_loop)
        try:
            while not running.done():
                with suppress(TimeoutError):
                    return running.result(1.0)
                gone = set(needed) - set(self.workers())
                if gone and not running.done():
                    raise OSError(f"worker {', '.join(sorted(gone))} is gone")
            return running.result()
        finally:
            running.cancel()

    def ask(self, worker: str, function: Callable[..., Any], *values: Any) -> Any:
        """Return the result of a function on one worker, alongside its work, without waiting for others."""
        return self.wait([worker], self.client._run, function, *values, workers=[worker])[worker]

    def executor(self) -> Executor:
        """Return an executor, like a pool of processes; lost tasks run again."""
        pool: Executor = self.client.get_executor(pure=False)
        return pool

    def look_again(self) -> None:
        """Discard the cached list of workers."""
        self._seen = -np.inf, {}

    def lost(self) -> ClusterError:
        """Return the error for a lost scheduler."""
        resumed = f"; the same command continues from {self.checkpoint}" if self.checkpoint else ""
        again = resumed or ", and the work with --checkpoint DIR, which saves finished work"
        return ClusterError(f"the scheduler at {self.address} is gone, and the work with it; start it again{again}")

    def memory(self) -> int:
        """Return the bytes that the smallest worker may use; 0 where no limit is set."""
        limits = (int(about.get("memory_limit") or 0) for about in self.workers().values())
        return min((limit for limit in limits if limit), default=0)

    def close(self) -> None:
        """Free the memory of the workers, and stop those started here."""
        holding, self._holding = self._holding, []
        with suppress(OSError, RuntimeError):  # the workers are gone, and their memory with them
            for engine in holding:
                engine.release()
        for each in self._owned:
            each.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._owned, self._folder = [], None

    def sees_disk(self, worker: str, folder: Path | None = None) -> bool:
        """Whether a worker sees a folder of this machine, by default that which is deleted in the end."""
        key = worker, folder or self.folder
        if key not in self._seeing:
            mark = key[1].resolve() / f".mark-{uuid4().hex}"
            mark.write_text(str(mark))
            self._seeing[key] = self.ask(worker, _sees, str(mark))
            mark.unlink(missing_ok=True)
        return self._seeing[key]

    def write_arrays(self, token: str, arrays: tuple[Any, ...]) -> str:
        """Return the folder of arrays for workers that see it to map into memory."""
        folder = self.folder / token
        if not folder.exists():
            _write(_made(folder), arrays)
        return str(folder)

    def send(self, worker: str, value: Any) -> Any:
        """Return a future of a value sent to a worker."""
        options = {"workers": [worker], "hash": False, "direct": self.direct}
        [sent] = self.wait([worker], self.client.scatter, [value], asynchronous=True, **options)
        return sent

    def some_workers(self) -> list[str]:
        """Return the workers; wait for one if there is none, and raise ClusterError after `silence` seconds."""
        end = time.monotonic() + self.silence
        while not self.workers():
            if time.monotonic() > end:
                raise ClusterError(
                    f"all workers at {self.address} are gone; start more, with more memory if that ended them: "
                    f"dask worker {self.address} --memory-limit ..."
                )
            time.sleep(0.2)
        return list(self.workers())

    @cached_property
    def direct(self) -> bool:
        """Whether data can go to the workers directly instead of through the scheduler."""
        for worker in self.some_workers():
            options = {"workers": [worker], "direct": True, "hash": False}
            try:
                self.wait([worker], self.client.scatter, b"", asynchronous=True, **options)
            except Exception:  # any error of the network
                self.look_again()
                if worker in self.workers():
                    return False
            else:
                return True
        return False

    @property
    def folder(self) -> Path:
        """A folder of this machine that is deleted when the cluster is closed."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="graphmrf-"))
        return self._folder

    def fits(self, n_nodes: int, n_edges: int) -> bool:
        """Whether an unweighted graph with these numbers of nodes and edges fits every worker, with its solves."""
        zeros = (np.broadcast_to(np.int32(0), size) for size in (n_nodes + 1, 2 * n_edges))
        return self._holds(column_bytes((*zeros, None, np.broadcast_to(0.0, n_nodes))))

    def _holds(self, n_bytes: int) -> bool:
        return not self.memory() or n_bytes <= USABLE * self.memory()


def column_bytes(arrays: tuple[Any, ...], *, blocks: int = 19) -> int:
    """Return the bytes a worker needs to solve for columns of a graph: its edges, and blocks of 16 float64 columns.

    At the peak these are three of right-hand sides (received, stored, and those of the next part), three Lanczos
    vectors, a window of four, and nine of solutions and directions, for 14 levels at 30 per cent of the nodes.
    """
    edges = sum(array.nbytes for array in arrays if array is not None)
    return int(edges + blocks * 16 * 8 * arrays[3].size)


def largest_graphs(machines: Cluster, *, halo: float = 1.5) -> dict[str, int]:
    """Return the nodes of the largest graphs that fit, with 20 edges for every node, by what is divided.

    Rows on all workers take `halo` times the memory of columns on one: each also stores the rows of neighbours on other
    workers.
    """
    memory, one = int(USABLE * machines.memory()), np.zeros(1)
    per_node = column_bytes((np.zeros(1, np.int64), np.zeros(40, np.int32), None, one))
    return {"columns": memory // per_node, "rows": memory * len(machines.workers()) // int(halo * per_node)}


def cluster(where: Any = "local", *, workers: int = 1, timeout: str = "20s", **options: Any) -> Cluster:
    """Return a cluster for graphs, as a context manager.

    Parameters
    ----------
    where : str or distributed.Client
        "local" for workers on this machine, one for every core, or "local:4" for four; the address of a scheduler,
        tcp://..., or tls://... with the certificates of Dask's configuration; a scheduler file, ....json; a client.
    workers : int
        Workers to wait for.
    timeout : str
        How long to wait for the scheduler and the workers.
    options
        Those of `Cluster`: `partition`, `engine`, `checkpoint`, `silence`, `saving`, `parts`.

    Raises
    ------
    ClusterError
        If there is no scheduler at the address, there are too few workers, or their versions differ.

    Examples
    --------
    >>> import graphmrf as gm
    >>> graph = gm.Graph.from_edges([0, 1, 2], [1, 2, 3])
    >>> with gm.cluster("local:1") as machines:  # doctest: +SKIP
    ...     model = gm.LabelPropagation().fit(graph.to(machines), None, [1.0, float("nan"), 2.0, float("nan")])
    """
    if options.get("partition", "auto") not in ("auto", "columns", "rows"):
        raise InvalidInputError(f"partition must be 'auto', 'columns' or 'rows', got {options['partition']!r}")
    client, owned = _connect(where, timeout)
    made = Cluster(client, **options)
    made._owned = owned
    try:
        _check_workers(made, workers, timeout)
    except BaseException:
        made.close()
        raise
    return made


def _connect(where: Any, timeout: str) -> tuple[Any, list[Any]]:
    """Return a client, and the objects that must be closed with the cluster."""
    if hasattr(where, "scheduler_info"):
        return where, []
    try:
        distributed = import_module("distributed")
    except ImportError as error:
        raise MissingExtraError("clusters need Dask; install it with: pip install 'graphmrf[dask]'") from error
    kind, _, count = str(where).partition(":")
    if kind == "local":
        return _local(distributed, count)
    try:
        client = distributed.Client(**_checked_address(str(where)), timeout=timeout, set_as_default=False)
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidInputError(f"a cluster is {_WHERE}, got {where!r} ({error})") from error
    except OSError as error:
        raise ClusterError(
            f"no Dask scheduler answers at {where} ({error}); start one with: dask scheduler, and dask worker ADDRESS"
        ) from error
    return client, [client]


_WHERE = "tcp://host:8786, tls://host:8786, a scheduler file .json, or local:4"


def _checked_address(where: str) -> dict[str, str]:
    """Return the address of a scheduler as a client needs it; raise ValueError for an invalid one.

    The client would try an invalid address until the time limit, and wait forever for a missing file.
    """
    if not where.strip():
        raise InvalidInputError(f"a cluster is {_WHERE}, got an empty address")
    if not where.endswith(".json"):
        scheme, place = import_module("distributed.comm.addressing").parse_address(where)
        import_module("distributed.comm.registry").get_backend(scheme)
        if scheme in {"tcp", "tls"}:
            import_module("distributed.comm.addressing").parse_host_port(place)
        return {"address": where}
    if not Path(where).is_file():
        raise InvalidInputError(f"{where} does not exist; create it with: dask scheduler --scheduler-file {where}")
    return {"scheduler_file": where}


def _local(distributed: Any, count: str) -> tuple[Any, list[Any]]:
    """Start workers on this machine that listen on its loopback address alone."""
    cores = os.cpu_count() or 1
    if count and not (count.isdecimal() and int(count) > 0):
        raise InvalidInputError(f"local workers are written local or local:4, got local:{count}")
    n_workers = int(count or cores)
    threads = max(1, cores // n_workers)
    machines = distributed.LocalCluster(
        n_workers=n_workers,
        threads_per_worker=threads,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
        env={"NUMBA_NUM_THREADS": os.environ.get("NUMBA_NUM_THREADS", str(threads))},
    )
    client = distributed.Client(machines, set_as_default=False)
    return client, [client, machines]


def _check_workers(made: Cluster, wanted: int, timeout: str) -> None:
    try:
        made.client.wait_for_workers(max(wanted, 1), timeout=timeout)
    except TimeoutError as error:
        found = len(made.workers())
        raise ClusterError(
            f"{max(wanted, 1)} workers are needed, {found} are at {made.address}; start more with: "
            f"dask worker {made.address}"
        ) from error
    found = made.client.get_versions(packages=list(_SAME))
    ours = _packages(found["client"])
    for worker, about in found["workers"].items():
        theirs = _packages(about)
        other = [
            f"{name} {theirs[name] or 'not installed'} instead of {mine}"
            for name, mine in ours.items()
            if theirs[name] != mine
        ]
        if other:
            raise ClusterError(
                f"worker {worker} has {', '.join(other)}; install the same there: "
                f"pip install 'graphmrf[dask]=={ours['graphmrf']}'"
            )


# Packages whose versions must agree, because machines exchange pickled functions and arrays.
_SAME = ("graphmrf", "numpy", "scipy", "distributed")


def own_versions() -> dict[str, str | None]:
    """Return the local versions of what must agree on all machines."""
    return _packages(import_module("distributed.versions").get_versions(packages=list(_SAME)))


def _packages(about: dict[str, Any]) -> dict[str, str | None]:
    """Return the versions that matter: of the packages, and of Python without its last number."""
    found = about["packages"]
    return {"Python": ".".join(found["python"].split(".")[:2]), **{name: found.get(name) for name in _SAME}}


# A worker computes one part at a time with all of its threads; concurrent kernels would compete for them.
_ALONE = threading.Lock()


def limit_threads(worker: Any) -> None:
    """Let kernels use as many threads as a worker was given."""
    numba = sys.modules.get("numba")
    if numba is not None:
        numba.set_num_threads(min(worker.state.nthreads, numba.config.NUMBA_NUM_THREADS))


@contextmanager
def at_work(worker: Any) -> Iterator[None]:
    """Compute one part at a time on a worker, without Dask's profiler, which would take 40 % of the time."""
    profiler = worker.periodic_callbacks.get("profile")
    with _ALONE:
        if profiler is not None:
            worker.loop.add_callback(profiler.stop)
        try:
            yield
        finally:
            if profiler is not None:
                worker.loop.add_callback(profiler.start)


async def _remove_worker(worker: str, dask_scheduler: Any = None) -> None:
    await dask_scheduler.remove_worker(worker, stimulus_id="silent-for-graphmrf")


def _sees(mark: str) -> bool:
    return Path(mark).exists() and Path(mark).read_text() == mark


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _write(folder: Path, arrays: tuple[Any, ...]) -> None:
    for i, array in enumerate(arrays):
        if array is not None:
            np.save(folder / f"{i}.npy", array)


def read_arrays(folder: str) -> list[Any]:
    """Return the arrays of a folder, mapped into memory."""
    files = [Path(folder) / f"{i}.npy" for i in range(4)]
    return [np.asarray(np.load(file, mmap_mode="r")) if file.exists() else None for file in files]


def with_time_left(
    results: Iterator[Any], total: int, report: Callable[[str], object] = _PROGRESS.info
) -> Iterator[Any]:
    """Yield results, and report their number and, if the total is known, the time left."""
    start = time.monotonic()
    for done, result in enumerate(results, 1):
        left = timedelta(seconds=round((time.monotonic() - start) / done * (total - done)))
        report(f"{done} of {total} parts done, about {left} left" if total > done else f"{count(done, 'part')} done")
        yield result

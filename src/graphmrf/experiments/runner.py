"""The runs of a command on all cores: what is done already is not repeated, what is done now is kept at once."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from typing import TypeAlias

import numba
from threadpoolctl import threadpool_limits

from graphmrf.errors import GraphMRFError
from graphmrf.experiments.journal import Journal, Record
from graphmrf.experiments.run import Result, Run

_Outcome: TypeAlias = tuple[Result, float]
Watch: TypeAlias = Callable[[Run], None]


def pending(runs: Iterable[Run], journal: Journal) -> tuple[Run, ...]:
    """Return the runs that are not done yet, each once."""
    return tuple(run for run in dict.fromkeys(runs) if run.key not in journal.found)


def available_cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def execute(
    runs: Iterable[Run],
    journal: Journal,
    data_dir: str | None,
    *,
    jobs: int,
    watch: Watch,
    elsewhere: Executor | None = None,
) -> dict[str, str]:
    """Do the runs that are missing, and keep each result as it comes.

    Parameters
    ----------
    runs : iterable of Run
        All that is wanted.
    journal : Journal
        What is there; grows.
    data_dir : str or None
        Folder of the raw files; None: as `graphmrf.datasets.load` finds them.
    jobs : int
        Number of processes, each on one core; results do not depend on it.
    watch : callable
        Called with every run when it has ended.
    elsewhere : Executor, optional
        What runs are submitted to in place of processes of this machine: the workers of a cluster.

    Returns
    -------
    dict
        Message of every run that failed, by key; it is tried again by the next command.

    Raises
    ------
    GraphMRFError
        A process was killed from outside; what was finished is kept.
    """
    missing = pending(runs, journal)
    failures: dict[str, str] = {}
    if not missing:
        return failures
    last = time.monotonic()
    try:
        with _pool(min(jobs, len(missing))) if elsewhere is None else nullcontext(elsewhere) as pool:
            waiting = {pool.submit(_timed, run, data_dir): run for run in missing}
            for future in _finished(waiting):
                run, now = waiting[future], time.monotonic()
                _keep(run, future, journal, failures, elapsed=now - last)
                last = now
                watch(run)
    except BrokenProcessPool as error:
        raise GraphMRFError(
            "a worker process was killed, perhaps for want of memory; what was finished is kept: "
            "the same command goes on from there, --jobs 1 needs least memory"
        ) from error
    return failures


def _keep(run: Run, future: Future[_Outcome], journal: Journal, failures: dict[str, str], *, elapsed: float) -> None:
    try:
        result, seconds = future.result()
    except BrokenProcessPool:
        raise
    except Exception as error:  # one run that fails must not take the others with it
        failures[run.key] = f"{type(error).__name__}: {error}"
    else:
        journal.append(Record(run.key, result, seconds, elapsed))


def _finished(waiting: Iterable[Future[_Outcome]]) -> Iterator[Future[_Outcome]]:
    left = set(waiting)
    while left:
        done, left = wait(left, return_when=FIRST_COMPLETED)
        yield from done


@contextmanager
def _pool(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool; whatever ends the block early ends its processes, too."""
    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_prepare)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - before:
            child.terminate()
        raise
    finally:
        pool.shutdown()


def _prepare() -> None:
    """One thread for each process, and none that outlives the command."""
    os.environ["OMP_NUM_THREADS"] = "1"  # for what is not loaded yet
    threadpool_limits(1)
    numba.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _timed(run: Run, data_dir: str | None) -> _Outcome:
    start = time.process_time()
    result = run.perform(data_dir)
    return result, time.process_time() - start

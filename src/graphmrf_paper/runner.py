"""Runs on all cores, the file that stores each result when it is known, and how long the runs took."""

import json
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias
from zlib import crc32

import numba
from threadpoolctl import threadpool_limits

from graphmrf.errors import GraphMRFError, InvalidInputError
from graphmrf.files import check_place
from graphmrf.text import DASH
from graphmrf_paper.findings import bar
from graphmrf_paper.methods import TABLE_METHODS
from graphmrf_paper.runs import Experiment, Result, Run, RunSettings

try:
    import fcntl
except ImportError:  # Windows: no lock against a second command on one folder
    fcntl = None  # type: ignore[assignment]

JOURNAL_FORMAT = 2
RESULTS_FILE = "results.jsonl"
_TITLE, _SUM = "graphmrf reproduction", "crc32"


@dataclass(frozen=True)
class Record:
    """A finished run: its key, its result, its CPU time, and the wall-clock time since the one before."""

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
        write_line(self.stream, line | {_SUM: _sum(line)})
        self.found[record.key] = record

    @property
    def results(self) -> dict[str, Result]:
        """Results of the finished runs by key."""
        return {key: record.result for key, record in self.found.items()}


@contextmanager
def open_journal(path: Path) -> Iterator[Journal]:
    """Open a results file, new or from an earlier command, for reading and adding; its folder must exist.

    Raises
    ------
    InvalidInputError
        The file is of another format, is damaged, or another command is writing to it.
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
            write_line(stream, title)
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
    """Return the complete lines; remove the fragment that a killed command left."""
    end = content.rfind(b"\n") + 1
    if end < len(content):
        stream.truncate(end)
    return content[:end].splitlines()


def write_line(stream: BinaryIO, value: Any) -> None:
    """Write a value as a line of JSON, and return when it is on the disk."""
    line = memoryview(_encoded(value))
    while line:  # a disk that fills up takes a part of the line, then raises
        line = line[stream.write(line) :]
    os.fsync(stream.fileno())


def _encoded(value: Any) -> bytes:
    return (json.dumps(value, allow_nan=False) + "\n").encode()


def _sum(line: dict[str, Any]) -> int:
    return crc32(json.dumps({name: line[name] for name in sorted(line)}).encode())


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
            value = json.loads(line)
            if value.pop(_SUM) != _sum(value):
                raise ValueError("a flipped bit gives another number and no error elsewhere")
            yield Record(**value)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InvalidInputError(
                f"{path}, line {number} is damaged; delete that line, its run is repeated"
            ) from error


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
    executor: Executor | None = None,
) -> dict[str, str]:
    """Do the runs that the journal lacks, and store each result as it comes.

    Each of the `jobs` processes has one core, and results do not depend on their number; with an `executor`, such as a
    cluster, runs are submitted to it instead. `watch` is called with every run when it has ended. Returned are the
    messages of runs that failed, by key, which the next command tries again. `GraphMRFError` is raised when a process
    was killed from outside; finished runs are stored.
    """
    missing = pending(runs, journal)
    failures: dict[str, str] = {}
    if not missing:
        return failures
    last = time.monotonic()
    try:
        with process_pool(min(jobs, len(missing))) if executor is None else nullcontext(executor) as pool:
            waiting = {pool.submit(_timed, run, data_dir): run for run in missing}
            for future in as_completed(waiting):
                run, now = waiting[future], time.monotonic()
                try:
                    outcome = future.result()
                except BrokenProcessPool:
                    raise
                except Exception as error:  # one run that fails must not take the others with it
                    failures[run.key] = f"{type(error).__name__}: {error}"
                else:
                    journal.append(Record(run.key, *outcome, now - last))
                last = now
                watch(run)
    except BrokenProcessPool as error:
        raise GraphMRFError(
            "a worker process was killed, perhaps for want of memory; what was finished is kept: "
            "the same command goes on from there, --jobs 1 needs least memory"
        ) from error
    return failures


@contextmanager
def process_pool(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool whose processes end with the block, also after an error."""
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
    """Use one thread in each process, and end it with the command."""
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


@dataclass(frozen=True)
class Timing:
    """Time of some runs in seconds: between the ends of runs by the clock, CPU time, and that of SGC and GCN in it."""

    name: str
    n_runs: int
    elapsed: float
    cpu: float
    networks: float

    @classmethod
    def of(cls, name: str, ended: Sequence[tuple[Run, Record]]) -> "Timing":
        """Return the time of runs that ended."""
        trained = [record.seconds for run, record in ended if run.method and TABLE_METHODS[run.method].is_network]
        elapsed, cpu = (sum(getattr(record, name) for _, record in ended) for name in ("elapsed", "seconds"))
        return cls(name, len(ended), elapsed, cpu, sum(trained))

    def sentence(self) -> str:
        """Return CPU and wall-clock time in words."""
        trained = f" (SGC, GCN: {spoken(self.networks)})" if self.networks else ""
        return f"{self.n_runs:,} runs took {spoken(self.cpu)} of one core{trained}, {spoken(self.elapsed)} by the clock"


def timings(
    experiments: Iterable[Experiment], settings: RunSettings, found: Mapping[str, Record]
) -> tuple[Timing, ...]:
    """Return the time of the finished runs of every experiment, and last of all runs, each counted once."""
    plans = {experiment.name: set(experiment.plan(settings)) for experiment in experiments}
    plans["all, runs in common once"] = set().union(*plans.values())
    return tuple(
        Timing.of(name, [(run, found[run.key]) for run in runs if run.key in found]) for name, runs in plans.items()
    )


def timing_table(times: Sequence[Timing]) -> str:
    """Return a table of times in Markdown."""
    heads = ("experiment", "runs", "wall-clock time", "CPU time", "all others", "SGC, GCN")
    lines = [bar(heads), "| --- |" + " ---: |" * 5]
    for timing in times:
        seconds = (timing.elapsed, timing.cpu, timing.cpu - timing.networks, timing.networks)
        lines.append(bar([timing.name, f"{timing.n_runs:,}", *(spoken(each) if each else DASH for each in seconds)]))
    return "\n".join(lines)


def spoken(seconds: float) -> str:
    """Return a time in words."""
    if seconds < 90:
        return f"{round(seconds)} seconds" if seconds >= 1.5 else "1 second"
    return f"{-(-seconds // 60):.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"

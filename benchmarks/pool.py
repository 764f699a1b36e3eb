"""Work for all cores: one process and one thread for each."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from benchmarks.more_data import more_root
from benchmarks.show import show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from benchmarks.show import Row

Work = TypeVar("Work")
Result = TypeVar("Result")

NO_DATA: list[Row] = [{"skipped": "set GRAPHMRF_DATA to the folder of the raw data sets"}]
"""What a benchmark shows without its data."""

ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def perform(
    function: Callable[[Work], Result], work: Sequence[Work], jobs: int | None = None
) -> Iterator[tuple[Work, Result]]:
    """Yield every piece of work with its result as it is finished, and count them on the terminal."""
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))  # for the processes, which read it when they start
    with ProcessPoolExecutor(jobs or os.cpu_count(), mp_context=multiprocessing.get_context("spawn")) as pool:
        futures = {pool.submit(function, each): each for each in work}
        try:
            for k, future in enumerate(as_completed(futures), start=1):
                print(f"\r{k} of {len(work)}", end="\n" * (k == len(work)), file=sys.stderr, flush=True)
                yield futures[future], future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def resume(
    function: Callable[[Work], Result], work: Sequence[Work], jobs: int, keep: Path | None
) -> dict[Work, Result]:
    """Return the results of all work, by the work.

    Parameters
    ----------
    function : callable
        Returns what JSON can hold.
    work : list of tuples
        Of numbers and text.
    jobs : int
        Processes; with 0 nothing is computed, and what is kept is returned.
    keep : path, optional
        File that finished work is added to, a line each, and not done again. Ctrl-C returns what is finished.
    """
    lines = keep.read_text().splitlines() if keep is not None and keep.exists() else []
    kept: dict[Any, Result] = {tuple(done): result for done, result in map(json.loads, lines)}
    found = {each: kept[each] for each in work if each in kept}
    try:
        for done, result in perform(function, [each for each in work if each not in found and jobs], jobs or 1):
            found[done] = result
            if keep is not None:
                with keep.open("a") as file:
                    file.write(json.dumps([done, result]) + "\n")
    except KeyboardInterrupt:
        print(f"stopped: {len(found)} of {len(work)} are finished, and shown", file=sys.stderr)
    return found


def sweep(name: str, text: str | None, one: Callable[[Any], Row], choices: Mapping[str, Sequence[str]]) -> None:
    """Measure all that the command line chooses and show a line for all choices but the last, which names results."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=text)
    for key, values in choices.items():
        parser.add_argument(f"--{key}", nargs="*", choices=values, default=list(values))
    parser.add_argument("--jobs", type=int, default=1, help="processes; 0 prints what is in the file")
    parser.add_argument("--keep", type=Path, help="file of finished runs, which are not repeated")
    given = vars(parser.parse_args())
    if more_root() is None:
        show(name, text, NO_DATA)
        return
    show(name, text, swept(one, {key: given[key] for key in choices}, given["jobs"], given["keep"]))


def swept(one: Callable[[Any], Row], choices: Mapping[str, Sequence[str]], jobs: int, keep: Path | None) -> list[Row]:
    """Return a row for all choices but the last, which names results."""
    found = resume(one, list(product(*choices.values())), jobs, keep)
    rows: dict[Any, Row] = {}
    for each, result in found.items():
        row = rows.setdefault(each[:-1], dict(zip(choices, each[:-1], strict=False)))
        row |= {f"{each[-1]} {key}": value for key, value in result.items()}
    return list(rows.values())

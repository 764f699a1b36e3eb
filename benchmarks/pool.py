"""Work for all cores: one process and one thread for each."""

from __future__ import annotations

import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Work = TypeVar("Work")
Result = TypeVar("Result")

ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def perform(
    function: Callable[[Work], Result], work: Sequence[Work], jobs: int | None = None
) -> Iterator[tuple[Work, Result]]:
    """Yield every piece of work with its result as it is finished, and count them on the terminal."""
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))  # for the processes, which read it when they start
    with ProcessPoolExecutor(jobs or os.cpu_count(), mp_context=multiprocessing.get_context("spawn")) as pool:
        futures = {pool.submit(function, each): each for each in work}
        for k, future in enumerate(as_completed(futures), start=1):
            print(f"\r{k} of {len(work)}", end="\n" * (k == len(work)), file=sys.stderr, flush=True)
            yield futures[future], future.result()

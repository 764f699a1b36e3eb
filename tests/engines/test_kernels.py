"""Compiled kernels in threads, in forked processes, and where nothing can be cached: real ones of each."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

import cases
from graphmrf.engines import kernels
from graphmrf.estimators import LabelPropagation

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

FIT = """
import multiprocessing, threading
import numpy as np
from graphmrf import Graph, LabelPropagation
rng, n = np.random.default_rng(0), 2000
graph = Graph.from_edges(*rng.integers(0, n, (2, 8 * n)), n_nodes=n).to("numba")
y = rng.normal(size=n)
y[::2] = np.nan

def fit(_=0):
    return LabelPropagation(alpha=0.9).fit(graph, None, y).predict()
"""

FORKED = """
expected = fit()
with multiprocessing.get_context("fork").Pool(2) as pool:
    for found in pool.map(fit, range(4)):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
"""

FORKED_WHILE_THREADS_FIT = """
stop = threading.Event()
def work():
    while not stop.is_set():
        fit()
expected = fit()
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
with multiprocessing.get_context("fork").Pool(1) as pool:
    for found in pool.map(fit, range(2)):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
stop.set()
for thread in threads:
    thread.join()
"""

THREADS = """
found = [[] for _ in range(4)]
def work(mine):
    for _ in range(10):
        mine.append(fit())
threads = [threading.Thread(target=work, args=(mine,)) for mine in found]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
expected = fit()
for mine in found:
    assert len(mine) == 10
    for values in mine:
        np.testing.assert_array_equal(values, expected)
"""

SAVED = """
import sys
import numpy as np
from graphmrf import Graph, LabelPropagation, LinearGraphConvolution, ResidualPropagation
rng, n = np.random.default_rng(0), 12_000
graph = Graph.from_edges(*rng.integers(0, n, (2, 9 * n)), n_nodes=n).to("numba")
X, y = rng.normal(size=(n, 2)), rng.normal(size=n)
y[::2] = np.nan
models = LabelPropagation(alpha=0.9), ResidualPropagation(LinearGraphConvolution(alpha=0.9))
np.save(sys.argv[1], [model.fit(graph, X, y).predict(return_std=True) for model in models])
"""

TINY = """
import os, sys
import numpy as np
from numba import prange
from numba.core import caching
if sys.argv[1:] == ["no locator"]:
    caching.CompileResultCacheImpl._locator_classes = []
from graphmrf.engines.kernels import Kernel

@Kernel
def total(x):
    sums = np.zeros(4)
    for t in prange(4):
        for i in range(t, x.size, 4):
            sums[t] += x[i]
    return sums

print(total(np.arange(8.0)).tolist(), total(np.arange(4.0)).tolist())
if sys.argv[1:] == ["twice"]:
    child = os.fork()
    if child == 0:
        print(total(np.arange(8.0)).tolist(), flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""
RIGHT = "[4.0, 6.0, 8.0, 10.0] [0.0, 1.0, 2.0, 3.0]"


def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NUMBA_NUM_THREADS": "2", **variables}
    done = subprocess.run(
        [sys.executable, *words], env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize(
    ("layer", "script"),
    [
        ("omp", FORKED),
        ("omp", FORKED_WHILE_THREADS_FIT),
        ("workqueue", FORKED_WHILE_THREADS_FIT),
        ("workqueue", THREADS),
    ],
    ids=["fork", "both", "both-workqueue", "threads"],
)
def test_fits_in_forked_processes_and_in_threads(layer: str, script: str) -> None:
    assert run("-c", FIT + script, NUMBA_THREADING_LAYER=layer).stderr == ""


def test_one_thread_and_two_give_the_same_bytes(tmp_path: Path) -> None:
    one, two = (tmp_path / f"{n}.npy" for n in (1, 2))
    run("-c", SAVED, str(one), NUMBA_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    run("-c", SAVED, str(two), NUMBA_NUM_THREADS="2", OPENBLAS_NUM_THREADS="1")
    assert one.read_bytes() == two.read_bytes()


def tiny(folder: Path) -> str:
    (folder / "tiny.py").write_text(TINY)
    return str(folder / "tiny.py")


def test_code_that_cannot_be_cached_is_compiled_anew_and_told_once(tmp_path: Path) -> None:
    done = run(tiny(tmp_path), "no locator")
    assert done.stdout.strip() == RIGHT
    assert done.stderr.count("NUMBA_CACHE_DIR") == 1


def test_a_damaged_cache_is_told_and_passed_by(tmp_path: Path) -> None:
    words, variables = (tiny(tmp_path),), {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert run(*words, **variables).stdout.strip() == RIGHT
    for suffix in ("nbc", "nbi"):
        (kept,) = (tmp_path / "cache").rglob(f"*.{suffix}")
        kept.write_bytes(b"\x80\x04damaged")
        done = run(*words, **variables)
        assert done.stdout.strip() == RIGHT
        assert "compiled code of total cannot be cached" in done.stderr


def test_the_code_for_one_core_is_kept_under_a_name_of_its_own(tmp_path: Path) -> None:
    done = run(tiny(tmp_path), "twice", NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert done.stdout.split("\n")[:2] == [RIGHT, RIGHT.split("] ")[0] + "]"]
    names = {path.name.split("-")[0] for path in (tmp_path / "cache").rglob("*.nbi")}
    assert names == {"tiny.total", "tiny.total_serial"}


def test_one_core_and_all_give_the_same_bits() -> None:
    case = cases.random_case(2, n=40)
    y = np.where(np.arange(40) % 2, np.nan, np.arange(40.0))

    def fit() -> object:
        return LabelPropagation(alpha=0.8).fit(case.graph.to("numba"), None, y).predict()

    expected = fit()
    kernels.IN_CHILD.set()
    try:
        found = fit()
    finally:
        kernels.IN_CHILD.clear()
    np.testing.assert_array_equal(found, expected)
    assert False in kernels.advance.dispatchers

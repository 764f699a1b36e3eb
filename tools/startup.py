"""Waiting before anything is computed: `import graphmrf` and the help of every command, wall-clock and CPU seconds.

``python -m tools.startup --against COMMIT`` measures an older commit in the same run.
"""

from __future__ import annotations

import argparse
import io
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from benchmarks.show import Row, show, timed

PROJECT = Path(__file__).parent.parent
_REPEATS = 5
_MAIN = "from graphmrf.cli import main; main()"
_CALLS = {
    "import graphmrf": ("import graphmrf",),
    "import graphmrf, GraphRegressor": ("from graphmrf import GraphRegressor",),
    "graphmrf --help": (_MAIN, "--help"),
    **{
        f"graphmrf {name} --help": (_MAIN, *name.split(), "--help")
        for name in ("predict", "fit", "sample", "foresee", "reproduce", "datasets list")
    },
}


def run(*, quick: bool) -> list[Row]:
    """Time every call on this source tree; quick takes one repeat."""
    return measure({"": PROJECT / "src"}, 1 if quick else _REPEATS)


def measure(trees: dict[str, Path], repeats: int) -> list[Row]:
    """Return the least wall-clock and CPU seconds of every call, the trees taking turns because machines are shared."""
    rows = []
    for name, call in _CALLS.items():
        row: Row = {"call": name}
        times: dict[str, list[tuple[float, float]]] = {tree: [] for tree in trees}
        for _ in range(repeats):
            for tree, source in trees.items():
                times[tree].append(_seconds(call, source))
        for tree, found in times.items():
            row |= {f"{tree} wall s".strip(): min(wall for wall, _ in found)}
            row |= {f"{tree} CPU s".strip(): min(cpu for _, cpu in found)}
        rows.append(row)
    return rows


def _seconds(call: tuple[str, ...], source: Path) -> tuple[float, float]:
    """Return wall-clock and CPU seconds of a new process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = os.environ | {"PYTHONPATH": str(source), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", *call]
    wall, _ = timed(lambda: subprocess.run(command, check=True, capture_output=True, env=environment))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _unpack(commit: str, folder: Path) -> Path:
    """Return the sources of a commit."""
    packed = subprocess.run(["git", "archive", commit, "src"], cwd=PROJECT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


def main() -> None:
    """Measure this tree, and an older commit beside it."""
    parser = argparse.ArgumentParser(prog="python -m tools.startup", description=__doc__)
    parser.add_argument("--against", metavar="COMMIT", help="also measure this commit")
    parser.add_argument("--repeats", type=int, default=_REPEATS, help="the least time of so many is taken")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trees = {"before": _unpack(options.against, Path(folder))} if options.against else {}
        rows = measure(trees | {"after" if trees else "": PROJECT / "src"}, options.repeats)
    show("startup", __doc__, rows)


if __name__ == "__main__":
    main()

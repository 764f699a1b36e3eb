"""`pip install .` into a new environment, then `graphmrf predict` on 3,000 nodes: first run, later runs, and an import.

These are the two commands from nothing to a prediction on one's own two files; the environment is made in the first.
The first run finds no compiled Python files and no kernel cache: it compiles the libraries' sources and the kernels of
the field, which a graph of 2,000 nodes and more needs; later runs do not.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.show import Row, best_of, timed
from benchmarks.workload import workload

PROJECT = Path(__file__).parent.parent


def run(*, quick: bool) -> list[Row]:
    """Install, then time the command line; quick leaves out the installation and times this environment."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        installed, python = (0.0, Path(sys.executable)) if quick else timed(lambda: _install(place))
        nodes, edges = _write(place)
        program = python.parent / "graphmrf"
        predict: list[str | Path] = [program, "predict", nodes, edges, "--target", "outcome", "-o", place / "out.csv"]
        environment = os.environ | {"NUMBA_CACHE_DIR": str(place / "kernels")}

        def call(*command: str | Path) -> None:
            subprocess.run([str(part) for part in command], check=True, capture_output=True, env=environment)

        first, _ = timed(lambda: call(*predict))
        later, _ = best_of(3, lambda: call(*predict))
        imports, _ = best_of(3, lambda: call(python, "-c", "import graphmrf"))
        one_method, _ = best_of(3, lambda: call(*predict, "--method", "lgc-rp"))
        compiled = (place / "kernels").exists()
    return [
        {
            "nodes": 3000,
            "commands": 2,
            "install s": installed,
            "first run s": first,
            "both s": installed + first,
            "later run s": later,
            "first / later": first / later,
            "import alone / later": imports / later,
            "one method / later": one_method / later,
            "kernels compiled": compiled,
        }
    ]


def _install(place: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", place / "env"], check=True)
    python = place / "env" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-compile", PROJECT], check=True)
    return python


def _write(place: Path) -> tuple[Path, Path]:
    work = workload(3000, n_features=8)
    table = pd.DataFrame(work.X, columns=[f"x{k}" for k in range(8)])
    table.insert(0, "id", np.arange(3000))
    table["outcome"] = work.y
    table.to_csv(place / "nodes.csv", index=False)
    upper = np.repeat(np.arange(3000), np.diff(work.graph.indptr)) < work.graph.indices
    u = np.repeat(np.arange(3000), np.diff(work.graph.indptr))[upper]
    pd.DataFrame({"u": u, "v": work.graph.indices[upper]}).to_csv(place / "edges.csv", index=False)
    return place / "nodes.csv", place / "edges.csv"

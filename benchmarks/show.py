"""Measuring and printing: a table for people, JSON lines for programs."""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import resource
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Row: TypeAlias = dict[str, Any]

_AT_ONCE = 12


def show(name: str, text: str | None, rows: list[Row]) -> None:
    """Print the rows as a table (as several if it is wide) and as JSON lines."""
    console = Console(width=160)
    console.rule(f"{name}: {(text or '').splitlines()[0]}")
    columns = list(dict.fromkeys(key for row in rows for key in row))
    titles = list(itertools.takewhile(lambda column: isinstance(rows[0].get(column), str), columns))
    others = columns[len(titles) :]
    for first in range(0, max(len(others), 1), _AT_ONCE):
        shown = [*titles, *others[first : first + _AT_ONCE]]
        table = Table(*shown)
        for row in rows:
            table.add_row(*(_cell(row.get(column)) for column in shown))
        console.print(table)
    for row in rows:
        print(json.dumps({"benchmark": name, **row}, default=float))


def run_named(package: str, names: Sequence[str], text: str | None) -> None:
    """Run the modules of a package that the command line names, or all, and print their tables and JSON lines."""
    parser = argparse.ArgumentParser(prog=f"python -m {package}", description=text)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(names)}; default all")
    parser.add_argument("--quick", action="store_true", help="smaller sizes and fewer repeats, to see that all runs")
    options = parser.parse_args()
    unknown = set(options.names) - set(names)
    if unknown:
        parser.error(f"unknown name {', '.join(sorted(unknown))}; choose from {', '.join(names)}")
    for name in options.names or names:
        module = importlib.import_module(f"{package}.{name}")
        show_each(name, module.__doc__, module.run(quick=options.quick))


def show_each(name: str, text: str | None, rows: list[Row]) -> None:
    """Print rows in one table, those that name a benchmark of their own ("holes behind") in a table of theirs."""
    parts: dict[str, list[Row]] = {name: []}
    for row in rows:
        parts.setdefault(row.get("benchmark", name), []).append(row)
    for title, part in parts.items():
        show(title, text, [{key: value for key, value in row.items() if key != "benchmark"} for row in part])


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict):
        return " ".join(f"{name} {number:.3f}" for name, number in value.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds `work` took and what it returned."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def best_of(repeats: int, work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the shortest time over some repeats, the machine being shared, and the last result."""
    runs = [timed(work) for _ in range(repeats)]
    return min(seconds for seconds, _ in runs), runs[-1][1]


def peak_gigabytes() -> float:
    """Return the most memory this process has held so far.

    Linux tells; `getrusage` also counts what the parent of a new process held when it was started.
    """
    status = Path("/proc/self/status")
    if status.exists():
        [line] = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
        return int(line.split()[1]) / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20

"""The tables of docs/reliability.md, from JSON lines that catalogue, torture, fuzz, mutate and threads printed.

``python -m tools.reliability LOG ...`` puts the lines of those files in place of the ones kept in
``tools/reliability.jsonl`` under the same benchmark, and writes the tables again; without files it only writes the
tables. Runs of the same benchmark, with different seeds, are added up.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benchmarks.show import Row

KEPT = Path(__file__).with_name("reliability.jsonl")
PAGE = Path(__file__).parent.parent / "docs" / "reliability.md"


def main(logs: list[str]) -> None:
    """Keep the lines of some logs, and write the page."""
    rows = kept_rows()
    new = _rows(line for log in logs for line in Path(log).read_text().splitlines())
    replaced = {row["benchmark"] for row in new}
    rows = [row for row in rows if row["benchmark"] not in replaced] + new
    KEPT.write_text("".join(json.dumps(row) + "\n" for row in rows))
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")


def kept_rows() -> list[Row]:
    """Return the rows of the latest runs."""
    return _rows(KEPT.read_text().splitlines()) if KEPT.exists() else []


def _rows(lines: Iterable[str]) -> list[Row]:
    return [json.loads(line) for line in lines if line.startswith('{"benchmark"')]


def written(page: str, rows: list[Row]) -> str:
    """Return a page with its tables written again: each between a comment with its name and one with `end`."""
    for table in (catalogue, torture, flips, fuzz, mutate, threads):
        before, mark, rest = page.partition(f"<!-- {table.__name__} -->\n")
        _, end, after = rest.partition("<!-- end -->")
        page = f"{before}{mark}\n{table(rows)}\n\n{end}{after}"
    return page


def catalogue(rows: list[Row]) -> str:
    """Return the table of bad and odd inputs."""
    columns = ("tried", "right answers", "refused with a remedy", "bugs of ours", "anything else", "warnings")
    heads = ["inputs", "tried", "right answers", "refused with a remedy", "internal errors", "other", "warnings"]
    found = [row for row in rows if row["benchmark"] == "catalogue"]
    return _table(heads, [[row["inputs"], *(row[name] for name in columns)] for row in found])


def mutate(rows: list[Row]) -> str:
    """Return the table of faults put into the source, all runs added up."""
    added = _added((row for row in rows if row["benchmark"] == "mutate"), "package")
    cells = [
        [
            name,
            *(row[key] for key in ("mutants", "killed", "equivalent")),
            *(f"{row['killed'] / total:.0%}" for total in (row["mutants"], row["mutants"] - row["equivalent"])),
        ]
        for name, row in added.items()
    ]
    heads = ["package", "faults", "found by a test", "without effect", "found", "found of those with an effect"]
    return _table(heads, cells) + _seeds(rows, "mutate")


def torture(rows: list[Row]) -> str:
    """Return the table of interrupted commands, all runs added up."""
    added = _added((row for row in rows if row["benchmark"] == "torture" and "SIGKILL" in row), "command")
    columns = ("faults", "broken", "left over", "a bug of ours")
    heads = ["command", "interruptions", "lost or half-written files", "files left over", "internal errors"]
    cells = [[name, *(row[key] for key in columns)] for name, row in _with_total(added).items()]
    return _table(heads, cells) + _seeds(rows, "torture")


def flips(rows: list[Row]) -> str:
    """Return the table of flipped bits, all runs added up."""
    added = _added((row for row in rows if row["benchmark"] == "torture" and "SIGKILL" not in row), "command")
    columns = ("faults", "found", "harmless", "silently wrong")
    heads = ["file", "bits flipped", "detected and refused", "rebuilt or without effect", "silently wrong"]
    total = _with_total(added)
    return _table(heads, [[name.removeprefix("read "), *(row[key] for key in columns)] for name, row in total.items()])


def fuzz(rows: list[Row]) -> str:
    """Return the table of fuzzed files, all runs added up."""
    added = _added((row for row in rows if row["benchmark"] == "fuzz"), "format")
    columns = ("files", "read", "refused", "findings")
    cells = [[name, *(row[key] for key in columns)] for name, row in _with_total(added).items()]
    return _table(["format", *columns], cells) + _seeds(rows, "fuzz")


def threads(rows: list[Row]) -> str:
    """Return the table of one thread against two."""
    found = [row for row in rows if row["benchmark"] == "threads"]
    spoken = {True: "yes", False: "no"}
    cells = [
        [
            row["solver"],
            spoken[row["same bytes, run again"]],
            spoken[row["same bytes, 2 threads"]],
            f"{row['largest difference']:.0e}" if row["largest difference"] else "0",
        ]
        for row in found
    ]
    return _table(["solver", "same bytes, run again", "same bytes, 2 threads", "largest difference"], cells)


def _added(rows: Iterable[Row], by: str) -> dict[str, dict[str, int]]:
    """Return the sums of all numbers of rows that have the same name."""
    sums: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in rows:
        for key, value in row.items():
            if isinstance(value, int) and not isinstance(value, bool):
                sums[row[by]][key] += value
    return sums


def _with_total(added: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    total = _added(({"all": "all", **row} for row in added.values()), "all")
    return {**added, **total}


def _seeds(rows: list[Row], benchmark: str) -> str:
    """Return the sentence that names the seeds of a benchmark's runs."""
    seeds = sorted({row["seed"] for row in rows if row["benchmark"] == benchmark and "seed" in row})
    return f"\n\nSeeds: {', '.join(map(str, seeds))}." if seeds else ""


def _table(heads: list[str], rows: list[list[Any]]) -> str:
    ruler = ["---", *["--:"] * (len(heads) - 1)]
    shown = [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in [heads, ruler, *shown])


if __name__ == "__main__":
    main(sys.argv[1:])

"""Files as people export them: which variants of one small town are understood, which are refused, and none misread.

The variants are those of the tests (tests/file_variants.py): a variant that is read must give the graph, ids and
numbers of the plain files; one that is refused must say file, place and remedy.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from file_variants import VARIANTS

if TYPE_CHECKING:
    from benchmarks.show import Row


def run(*, quick: bool) -> list[Row]:
    """Read every variant; quick reads the same, for they take seconds."""
    del quick
    rows: list[Row] = []
    for variant in VARIANTS:
        with tempfile.TemporaryDirectory() as folder:
            outcome, told = variant.outcome(Path(folder))
        rows.append({"variant": variant.name, "outcome": outcome, "told": told.replace(f"{folder}/", "")[:160]})
    counts = Counter(row["outcome"] for row in rows)
    total = ", ".join(f"{counts[kind]} {kind}" for kind in ("understood", "refused", "MISREAD"))
    return [*rows, {"variant": f"all {len(rows)}", "outcome": total, "told": ""}]

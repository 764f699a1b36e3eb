"""Bad and odd inputs: how many have the right answer, how many a refusal with its remedy, and anything else.

The cases are those of the tests (tests/catalogue_commands.py, catalogue_tables.py, catalogue_containers.py, and the
files of tests/file_variants.py).
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from catalogue_commands import COMMANDS
from catalogue_containers import CONTAINERS
from catalogue_tables import TABLES
from file_variants import VARIANTS

if TYPE_CHECKING:
    from benchmarks.show import Row

VERDICTS = ("right", "refused")


def run(*, quick: bool) -> list[Row]:
    """Try every case; quick tries the same, for they take a minute."""
    del quick
    groups = {
        "commands and options": [case.outcome()[0] for case in COMMANDS],
        "tables": [case.outcome()[0] for case in TABLES],
        "encodings, archives and types": [case.outcome()[0] for case in CONTAINERS],
        "files as people export them": [],
    }
    for variant in VARIANTS:
        with tempfile.TemporaryDirectory() as folder:
            outcome, _ = variant.outcome(Path(folder))
        groups["files as people export them"].append("right" if outcome == "understood" else outcome)
    rows = [_row(name, outcomes) for name, outcomes in groups.items()]
    return [*rows, _row("all", [outcome for outcomes in groups.values() for outcome in outcomes])]


def _row(name: str, outcomes: list[str]) -> Row:
    counts = Counter(outcome if outcome in VERDICTS else "else" for outcome in outcomes)
    bugs = sum(outcome == "A BUG OF OURS" for outcome in outcomes)
    sprayed = sum(outcome.startswith("WARNING") for outcome in outcomes)
    return {
        "inputs": name,
        "tried": len(outcomes),
        "right answers": counts["right"],
        "refused with a remedy": counts["refused"],
        "anything else": counts["else"],
        "bugs of ours": bugs,
        "warnings": sprayed,
        "first": next((outcome for outcome in outcomes if outcome not in VERDICTS), ""),
    }

"""The estimator checks of scikit-learn: how many run, pass, and do not apply, and why.

The checks are those of the tests (tests/scikit_checks.py). Rows of ``X`` name nodes in `NodeAdapter` and
`GraphSmoother`, while many checks hand in a matrix of any numbers.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from scikit_checks import CHECKED, NOT_APPLICABLE, results

if TYPE_CHECKING:
    from benchmarks.show import Row


def run(*, quick: bool) -> list[Row]:
    """Run every check on both; quick runs the same, for they take seconds."""
    del quick
    rows: list[Row] = []
    for name in CHECKED:
        found = results(name)
        failed = [each["check_name"] for each in found if each["status"] == "failed"]
        passed = sum(each["status"] == "passed" for each in found)
        why = Counter(f"not applicable: {NOT_APPLICABLE[c]}" if c in NOT_APPLICABLE else "FAILED" for c in failed)
        counts = {"run": len(found), "passed": passed, "skipped": len(found) - passed - len(failed), **why}
        rows += [{"estimator": name, "outcome": outcome, "checks": n} for outcome, n in counts.items()]
    return rows

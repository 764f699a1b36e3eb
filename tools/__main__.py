"""Run checks of the repository that print a table: ``python -m tools [NAME ...] [--quick]``."""

from __future__ import annotations

from benchmarks.show import run_named

NAMES = ("catalogue", "file_variants", "scikit_checks", "threads", "startup", "documentation", "page")

if __name__ == "__main__":
    run_named("tools", NAMES, __doc__)

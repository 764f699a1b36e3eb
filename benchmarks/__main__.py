"""Run the benchmarks: ``python -m benchmarks [NAME ...] [--quick]``."""

from __future__ import annotations

import argparse
import importlib

from benchmarks.show import show

NAMES = (
    *(
        "search",
        "smoothing",
        "scaling",
        "factor",
        "hard_spectra",
        "published",
        "accuracy",
        "core",
        "linear_coverage",
        "auto",
        "start",
        "startup",
    ),
    *("fit", "recovery", "spectrum", "sample", "foresee", "foresee_field", "coupled", "missing"),
    *(
        "catalogue",
        "threads",
        "file_variants",
        "scikit_checks",
        "networks",
        "inductive",
        "classification",
        "sgc_speed",
        "scalable",
        "core_speed",
        "solvers",
        "cluster",
        "page",
    ),
)


def main() -> None:
    """Run the named benchmarks, or all of them, and print their tables and JSON lines."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(NAMES)}; default all")
    parser.add_argument("--quick", action="store_true", help="smaller sizes and fewer repeats, to see that all runs")
    options = parser.parse_args()
    unknown = set(options.names) - set(NAMES)
    if unknown:
        parser.error(f"unknown benchmark {', '.join(sorted(unknown))}; choose from {', '.join(NAMES)}")
    for name in options.names or NAMES:
        module = importlib.import_module(f"benchmarks.{name}")
        show(name, module.__doc__, module.run(quick=options.quick))


if __name__ == "__main__":
    main()

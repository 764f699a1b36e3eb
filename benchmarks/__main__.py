"""Run the benchmarks: ``python -m benchmarks [NAME ...] [--quick]``."""

from __future__ import annotations

from benchmarks.show import run_named

NAMES = (
    "search",
    "smoothing",
    "scaling",
    "factor",
    "hard_spectra",
    "everything",
    "core",
    "holes",
    "heaton",
    "ablation",
    "linear_coverage",
    "start",
    "first_answer",
    "life",
    "fit",
    "recovery",
    "spectrum",
    "sample",
    "foresee",
    "foresee_field",
    "missing",
    "inductive",
    "classes",
    "counts",
    "surveys",
    "panels",
    "tables",
    "laplace",
    "sgc_speed",
    "scalable",
    "core_speed",
    "solvers",
    "cluster",
    "gpu",
)

if __name__ == "__main__":
    run_named("benchmarks", NAMES, __doc__)

"""What the benchmarks measured, kept as JSON lines, and the tables and the plot of docs/benchmarks.md made of it.

``python -m benchmarks search | python -m benchmarks.record`` adds the lines of a run to ``benchmarks/results.jsonl``,
where a line replaces an older one of the same benchmark, graph and size, and writes the page anew; without lines it
writes the page alone.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benchmarks.show import Row

HERE = Path(__file__).parent
RESULTS = HERE / "results.jsonl"
PAGE = HERE.parent / "docs" / "benchmarks.md"
PLOT = HERE.parent / "docs" / "images" / "scaling.png"
BEGIN, END = "<!-- tables: made by python -m benchmarks.record -->", "<!-- end of tables -->"

_SIZES = ("nodes", "labels", "columns", "alpha")
"""Numbers that tell rows apart, beside all texts but those below."""
_FOUND = ("chosen", "explanation")
"""Texts that are results."""


class Table(NamedTuple):
    """A table of the page: what it shows, and its columns as pairs of title and key."""

    title: str
    text: str
    columns: tuple[tuple[str, str], ...]


TABLES = {
    "smoothing": Table(
        "One smoothing",
        "16 columns at α = .9 to a relative residual of 1e-6 on two cores: seconds, and how many times as long peers "
        "take at the same accuracy (`python -m benchmarks smoothing`).",
        (("nodes", "nodes"), ("edges", "edges"), ("precision", "precision"), ("seconds", "ours s"),
         ("SciPy's CG", "times scipy"), ("APPNP by CSR", "times appnp-csr"), ("PyGSP", "times pygsp"),
         ("error", "error"), ("machine", "machine")),
    ),
    "orders": Table(
        "Order of the nodes",
        "16 columns at α = .9 on graphs whose nodes are numbered at random, then renumbered; ordering pays from so "
        "many smoothings on (`python -m benchmarks.smoothing orders`).",
        (("graph", "graph"), ("nodes", "nodes"), ("order", "order"), ("times faster", "times faster"),
         ("ordering s", "ordering s"), ("pays from", "pays from")),
    ),
    "search": Table(
        "Search of the smoothing level",
        "14 levels and 5 folds, against a loop of SciPy's conjugate gradients to the same residual of 1e-6; at "
        "1,000,000 nodes the loop runs 1 of 5 folds and 2 of 16 columns, multiplied (`python -m benchmarks search`).",
        (("search", "search"), ("nodes", "nodes"), ("seconds", "ours s"), ("times faster", "times faster"),
         ("difference", "relative difference"), ("machine", "machine")),
    ),
    "hard_spectra": Table(
        "Levels near 1 on grids and roads",
        "Multigrid, set-up included, against our conjugate gradients of all columns at once and SciPy's of one column, "
        "multiplied; CPU seconds to a residual of 1e-8 (`python -m benchmarks hard_spectra`).",
        (("graph", "graph"), ("nodes", "nodes"), ("α", "alpha"), ("seconds", "multigrid s"),
         ("times faster", "times faster"), ("times SciPy's CG", "times SciPy"), ("difference", "difference")),
    ),
    "core_speed": Table(
        "A fit of `GraphRegressor`",
        "Fit and prediction with 2 threads, beside gradient boosting with residual propagation: wall-clock time, peak "
        "memory, R² and coverage (`python -m benchmarks core_speed`).",
        (("case", "case"), ("nodes", "nodes"), ("labels", "labels"), ("seconds", "GR s"), ("GB", "GR GB"),
         ("R²", "GR R2"), ("in 90 %", "GR 90 %"), ("boosting s", "GB/RP s"), ("boosting R²", "GB/RP R2")),
    ),
    "scalable": Table(
        "`GraphRegressor` by its sparse solver",
        "A third of the nodes labelled, 16 features, beside LGC/RP and gradient boosting on neighbours' features with "
        "residual propagation (`python -m benchmarks scalable`).",
        (("outcome", "outcome"), ("nodes", "nodes"), ("labels", "labels"), ("seconds", "fit s"), ("GB", "peak GB"),
         ("R²", "R2"), ("in 90 %", "coverage of 90%"), ("LGC/RP R²", "LGC/RP R2"), ("boosting s", "GB/RP s"),
         ("boosting R²", "GB/RP R2")),
    ),
    "scaling": Table(
        "Growth",
        "Searches on graphs of growing size, on two cores (`python -m benchmarks.scaling --nodes ...`).",
        (("nodes", "nodes"), ("edges", "edges"), ("LP s", "LP s"), ("LGC s", "LGC s"), ("GB", "peak GB")),
    ),
    "scaling files": Table(
        "From files to files",
        "`graphmrf predict --method lgc-rp` on 64 Parquet files of nodes, 16 features in float32, and 64 of edges, a "
        "tenth of the nodes labelled, on two cores: wall-clock and CPU time, peak memory, R² and coverage "
        "(`python -m benchmarks.scaling files --nodes ...`).",
        (("nodes", "nodes"), ("edges", "edges"), ("ids", "ids"), ("seconds", "seconds"), ("CPU s", "processor s"),
         ("GB", "peak GB"), ("R²", "R2"), ("in 90 %", "coverage of 90%")),
    ),
}  # fmt: skip
"""Tables of the page by benchmark, in their order."""


def merged(old: Iterable[Row], new: Iterable[Row]) -> list[Row]:
    """Return the rows of both, where a new one replaces those of the same benchmark, texts and sizes.

    Examples
    --------
    >>> old = [{"benchmark": "a", "graph": "grid", "nodes": 9, "s": 2.0}, {"benchmark": "a", "graph": "path"}]
    >>> new = [{"benchmark": "a", "graph": "grid", "nodes": 9, "s": 1.0}, {"benchmark": "a", "graph": "ring"}]
    >>> merged(old, new) == [new[0], old[1], new[1]]
    True
    """
    return list({_identity(row): row for row in [*old, *new]}.values())


def _identity(row: Row) -> tuple[Any, ...]:
    texts = tuple((key, text) for key, text in row.items() if isinstance(text, str) and key not in _FOUND)
    return (*texts, *((key, row[key]) for key in _SIZES if key in row))


def tables(rows: list[Row]) -> str:
    """Return the tables of the page in Markdown."""
    parts = []
    for name, table in TABLES.items():
        own = [row for row in rows if row["benchmark"] == name]
        shown = [(title, key) for title, key in table.columns if any(row.get(key) is not None for row in own)]
        if own:
            head = f"| {' | '.join(title for title, _ in shown)} |\n|{' --- |' * len(shown)}"
            lines = [f"| {' | '.join(_cell(row.get(key)) for _, key in shown)} |" for row in own]
            parts.append("\n".join([f"### {table.title}", "", table.text, "", head, *lines]))
    return "\n\n".join(parts)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, float):
        return f"{value:,}" if isinstance(value, int) else str(value)
    if value and abs(value) < 0.001:
        return f"{value:.0e}"
    digits = 4 if 0.99 < value < 1.0 else 3
    return f"{value:,.0f}" if value >= 1000 or value == int(value) else f"{value:.{digits}g}"


def plot(rows: list[Row]) -> None:
    """Draw time and memory against edges, both in logarithms, where they were measured."""
    own = [row for row in rows if row["benchmark"] == "scaling"]
    if not own:
        return
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3), layout="constrained")
    for axes, keys, unit in zip(
        figure.subplots(1, 2), (("LP s", "LGC s"), ("peak GB",)), ("seconds", "GB"), strict=True
    ):
        for key in keys:
            axes.loglog([row["edges"] for row in own], [row[key] for row in own], "o-", label=key.split()[0])
        axes.set(xlabel="edges", ylabel=unit)
        axes.legend()
    figure.savefig(PLOT, dpi=110)


def main() -> None:
    """Add the lines of standard input and write the page; with ``--check`` fail where the page is not up to date."""
    if "--check" in sys.argv:
        stale = PAGE.read_text("utf-8") != written(read())
        sys.exit(f"{PAGE} differs from {RESULTS}: run python -m benchmarks.record" if stale else 0)
    given = [] if sys.stdin.isatty() else [json.loads(line) for line in sys.stdin if line.startswith("{")]
    rows = merged(read(), given)
    RESULTS.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    PAGE.write_text(written(rows), "utf-8")
    plot(rows)


def written(rows: list[Row]) -> str:
    """Return the text of the page with its tables made of these rows."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    return f"{before}{BEGIN}\n\n{tables(rows)}\n\n{END}{rest.partition(END)[2]}"


def read() -> list[Row]:
    """Return the rows that were kept."""
    return [json.loads(line) for line in RESULTS.read_text("utf-8").splitlines()] if RESULTS.exists() else []


if __name__ == "__main__":
    main()

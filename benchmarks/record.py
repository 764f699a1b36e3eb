"""The store of what benchmarks measured, and the tables and the plot of the documentation, which are made from it.

``python -m benchmarks search | python -m benchmarks.record`` adds the lines of a run to ``benchmarks/results.jsonl``.
A line replaces an older one of the same benchmark, graph and size; lines that no table shows are left out. Then it
writes every table again, in whatever page of ``docs/`` has ``<!-- table: NAME -->`` and ``<!-- end of table -->``.
``python -m benchmarks.record FILE ...`` reads lines from files, and without lines it only writes the tables.
"""

from __future__ import annotations

import json
import re
import sys
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benchmarks.show import Row

HERE = Path(__file__).parent
RESULTS = HERE / "results.jsonl"
DOCS = HERE.parent / "docs"
PLOT = DOCS / "images" / "scaling.png"
PLACE = re.compile(r"(<!-- table: ([\w ]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)

_SIZES = ("nodes", "labels", "columns", "alpha", "split")
"""Numbers that tell rows apart, beside all texts but those below."""
_FOUND = (
    "ahead of log rates",
    "over Poisson",
    "chosen",
    "explanation",
    "source",
    "earns",
    "best",
    "verdict",
    "of",
    "reason",
    "solver",
)
"""Texts that are results."""


class Table(NamedTuple):
    """A table: what it shows, its columns as pairs of title and key, and, where not all rows are shown, which."""

    text: str
    columns: tuple[tuple[str, str], ...]
    only: tuple[str, tuple[str | None, ...]] | None = None

    def shows(self, row: Row) -> bool:
        """Whether the table has a line for a row."""
        return self.only is None or row.get(self.only[0]) in self.only[1]


HOLES = ("random 20", "random 61", "random 0.3", "wild 61")
"""Kinds of holes in the table of what each term contributes."""

TABLES = {
    "smoothing": Table(
        "16 columns at α = .9 to a relative residual of 1e-6 on two cores: seconds, and how many times as long peers "
        "take at the same accuracy (`python -m benchmarks smoothing`).",
        (("nodes", "nodes"), ("edges", "edges"), ("precision", "precision"), ("seconds", "ours s"),
         ("SciPy's CG", "times scipy"), ("APPNP by CSR", "times appnp-csr"), ("PyGSP", "times pygsp"),
         ("error", "error"), ("machine", "machine")),
    ),
    "orders": Table(
        "16 columns at α = .9 on graphs whose nodes are numbered at random, then in reverse Cuthill-McKee order; "
        "ordering pays from the given number of smoothings. Order by degree or by communities gains less (`python -m "
        "benchmarks.smoothing orders`).",
        (("graph", "graph"), ("nodes", "nodes"), ("times faster", "times faster"), ("ordering s", "ordering s"),
         ("pays from", "pays from")),
        ("order", ("reverse Cuthill-McKee",)),
    ),
    "search": Table(
        "14 levels and 5 folds, against a loop of SciPy's conjugate gradients to the same residual of 1e-6; at "
        "1,000,000 nodes the loop runs 1 of 5 folds and 2 of 16 columns, multiplied (`python -m benchmarks search`).",
        (("search", "search"), ("nodes", "nodes"), ("seconds", "ours s"), ("times faster", "times faster"),
         ("difference", "relative difference"), ("machine", "machine")),
    ),
    "hard_spectra": Table(
        "Multigrid, set-up included, against our conjugate gradients of all columns at once and SciPy's of one column, "
        "multiplied; CPU seconds to a residual of 1e-8 (`python -m benchmarks hard_spectra`).",
        (("graph", "graph"), ("nodes", "nodes"), ("α", "alpha"), ("seconds", "multigrid s"),
         ("times faster", "times faster"), ("times SciPy's CG", "times SciPy"), ("difference", "difference")),
    ),
    "everything": Table(
        "Means over the runs that a method finished, with the R² of `GraphRegressor` on the same runs beside; an R² "
        "below -1 counts as -1. The rank is that among all methods of a run, CRPS in standard deviations of the "
        "outcome (the mean absolute error where a method has no error bars), memory on top of what the process held "
        "before (`python -m benchmarks.everything`).",
        (("hole", "hole"), ("method", "method"), ("runs", "runs"), ("rank", "rank"), ("R²", "R2"),
         ("`GraphRegressor` there", "GraphRegressor R2 there"), ("CRPS", "CRPS"), ("in 90 %", "90 %"),
         ("seconds", "s"), ("CPU s", "CPU s"), ("GB", "GB")),
    ),
    "everything overall": Table(
        "`GraphRegressor` beside the best of all other methods, chosen in hindsight for every set; level is within "
        ".005 in R².",
        (("hole", "hole"), ("sets", "sets"), ("`GraphRegressor` R²", "GraphRegressor"), ("best R²", "best R2"),
         ("ahead by", "ahead by"), ("ahead", "ahead"), ("level", "level"), ("behind", "behind")),
    ),
    "everything by set": Table(
        "Sets and holes where `GraphRegressor` is behind the best other method by more than .005 in R²; also with "
        "`learner=None`.",
        (("set", "set"), ("hole", "hole"), ("`GraphRegressor` R²", "GraphRegressor"),
         ("without trees", "GraphRegressor without trees"), ("best", "best"), ("best R²", "best R2"),
         ("ahead by", "ahead by")),
        ("verdict", ("behind",)),
    ),
    "everything targets": Table(
        "What was to be reached, 30 % of the labels at random unless the figure names other holes; differences are of "
        "R².",
        (("figure", "figure"), ("target", "target"), ("of", "of"), ("value", "value"), ("verdict", "verdict")),
    ),
    "panels": Table(
        "R² and coverage of 90 % intervals of hidden values of panels: 30 % at random, or the whole last time. "
        "LGC/RP on the same product graph; boosting has lags; the last value of the node "
        "(`python -m benchmarks.panels`).",
        (("panel", "panel"), ("hidden", "hidden"), ("R²", "GraphRegressor R2"), ("in 90 %", "GraphRegressor 90 %"),
         ("CPU s", "GraphRegressor CPU s"), ("LGC/RP", "LGC/RP R2"), ("in 90 %", "LGC/RP 90 %"),
         ("boosting", "boosting R2"), ("last value", "last value R2"), ("each time alone", "each time alone R2")),
    ),
    "tables": Table(
        "Mean R² over columns of removed cells: `GraphImputer` by its two methods, feature propagation, nearest "
        "neighbours, iterative ridge and a chain of boosting with neighbours' columns (`python -m benchmarks.tables`).",
        (("table", "table"), ("removed", "removed"), ("coupled", "coupled R2"), ("in 90 %", "coupled 90 %"),
         ("fields", "fields R2"), ("in 90 %", "fields 90 %"), ("feature propagation", "features R2"),
         ("kNN", "knn R2"), ("ridge", "ridge R2"), ("boosting", "boosting R2")),
    ),
    "core": Table(
        "Means over runs on the paper's 14 tasks and on draws from the paper's model; labels below 1 are a share of "
        "the nodes. R², coverage of 90 % intervals and seconds; how far R² is ahead of LGC/RP on the same runs, with "
        "its standard error, where outcomes of one graph and split count as one observation; for draws also the R² of "
        "the true model (`python -m benchmarks.core`).",
        (("tasks", "tasks"), ("labels", "labels"), ("R²", "GR R2"), ("in 90 %", "GR 90 %"), ("seconds", "GR s"),
         ("LGC/RP R²", "LGC/RP R2"), ("LGC/RP in 90 %", "LGC/RP 90 %"), ("ahead by", "ahead"), ("±", "±"),
         ("true model R²", "true"), ("runs", "runs")),
        ("tasks", ("14 tasks", "areas", "drawn")),
    ),
    "holes": Table(
        "Labels missing at random and in blocks: means over runs that all methods finished; coverage of 90 % "
        "intervals, also by steps to the nearest label, and the mean error of the R² expected before the outcomes are "
        "known, by three ways to estimate it (`python -m benchmarks.holes`).",
        (("hole", "hole"), ("method", "method"), ("runs", "runs"), ("R²", "R2"), ("in 90 %", "90 %"),
         ("at 1", "90 % at 1"), ("at 10+", "90 % at 10+"), ("expected R² off by", "expected R2, |error|"),
         ("random folds off by", "random folds, |error|"), ("imitating folds off by", "imitating folds, |error|")),
    ),
    "holes behind": Table(
        "Runs in which `GraphRegressor` is behind the better of LGC/RP and boosting by more than .02 in R².",
        (("task", "task"), ("hole", "hole"), ("R²", "GraphRegressor"), ("LGC/RP", "LGC/RP"),
         ("boosting", "boosting"), ("behind by", "behind"), ("in 90 %", "90 %"), ("reason", "reason")),
    ),
    "heaton": Table(
        "Land temperature under clouds with the split of the competition of Heaton and others (2019), "
        "doi:10.1007/s13253-018-00348-w: 150,000 cells, 105,569 of them labelled. `GraphRegressor`, LGC/RP and "
        "boosting + RP were measured here, on two cores that also did other work (`python -m benchmarks.heaton`). All "
        "other rows are those of the competition, from memory, on other machines with as many cores as given; of "
        "them only the RMSE was compared with a second source.",
        (("method", "method"), ("RMSE", "RMSE"), ("CRPS", "CRPS"), ("in 95 %", "CVG"), ("in 90 %", "90 %"),
         ("in 90 %, 10+ steps away", "90 % at 10+"), ("R²", "R2"), ("minutes", "minutes"), ("cores", "cores"),
         ("GB", "peak GB")),
        ("source", (None, "from memory, RMSE checked")),
    ),
    "ablation": Table(
        "What it costs to leave out each term or rule, on the same runs: R², and the distance of the coverage of 90 % "
        "intervals from 90 %, with standard errors over runs (`python -m benchmarks.ablation --splits 1 --labels 20 61 "
        "0.3 --wild 61 --tasks London`, also with `--sets validation`: two tasks each). In \"wild 61\" one label in "
        "twenty is wrong by 10 standard deviations. A term or rule earns its place if, with some number of labels, it "
        "costs at least .002 in R² or 1 point of coverage, and more than twice the standard error. Trees were chosen "
        "in none of these; for sets where they are, see [accuracy](accuracy.md).",
        (("tasks", "sets"), ("without", "without"),
         *((f"{hole}: {title}", f"{hole} {key}") for hole in HOLES for title, key in
           (("R² lost", "R2 costs"), ("±", "R2 ±"), ("coverage lost", "90 % costs"), ("±", "90 % ±"))),
         ("earns its place", "earns")),
    ),
    "core_speed": Table(
        "Fit and prediction with 2 threads, beside gradient boosting with residual propagation: CPU time, as the "
        "machine was shared, peak memory, R² and coverage (`python -m benchmarks core_speed`).",
        (("case", "case"), ("nodes", "nodes"), ("labels", "labels"), ("CPU s", "GR CPU s"), ("GB", "GR GB"),
         ("R²", "GR R2"), ("in 90 %", "GR 90 %"), ("boosting CPU s", "GB/RP CPU s"), ("boosting R²", "GB/RP R2"),
         ("times as long", "times CPU")),
    ),
    "scalable": Table(
        "A third of the nodes labelled, 16 features, beside LGC/RP and gradient boosting on neighbours' features with "
        "residual propagation (`python -m benchmarks scalable`).",
        (("outcome", "outcome"), ("nodes", "nodes"), ("labels", "labels"), ("seconds", "fit s"), ("GB", "peak GB"),
         ("R²", "R2"), ("in 90 %", "coverage of 90%"), ("LGC/RP R²", "LGC/RP R2"), ("boosting s", "GB/RP s"),
         ("boosting R²", "GB/RP R2")),
    ),
    "scaling": Table(
        "Searches on graphs of growing size, on two cores (`python -m benchmarks.scaling --nodes ...`).",
        (("nodes", "nodes"), ("edges", "edges"), ("LP s", "LP s"), ("LGC s", "LGC s"), ("GB", "peak GB")),
    ),
    "scaling files": Table(
        "`graphmrf predict --method lgc-rp` on 64 Parquet files of nodes, 16 features in float32, and 64 of edges, a "
        "tenth of the nodes labelled, on two cores: wall-clock and CPU time, peak memory, R² and coverage "
        "(`python -m benchmarks.scaling files --nodes ...`).",
        (("nodes", "nodes"), ("edges", "edges"), ("ids", "ids"), ("seconds", "seconds"), ("CPU s", "processor s"),
         ("GB", "peak GB"), ("R²", "R2"), ("in 90 %", "coverage of 90%")),
    ),
    "counts": Table(
        "Half of the areas hidden at random: share of the Poisson deviance of their counts that is explained, how far "
        "that is ahead of a normal field of log rates (± standard error over draws), coverage of 90 % intervals of new "
        "counts, seconds (`python -m benchmarks.counts`).",
        (("task", "task"), ("method", "method"), ("explained", "explained"),
         ("ahead of log rates", "ahead of log rates"),
         ("in 90 %", "90 % intervals contain"), ("seconds", "seconds"), ("over Poisson", "over Poisson")),
    ),
    "classes": Table(
        "Classes with 30 % of the labels: log loss, area under the ROC curve, expected calibration error in ten groups "
        "of equal size, and that error by chance, of outcomes drawn from the very probabilities; accuracy on Karate "
        "club; one draw, 20 of Karate club (`python -m benchmarks.classes --draws 1`).",
        (("task", "task"), ("method", "method"), ("log loss", "log loss"), ("AUC", "AUC"),
         ("calibration error", "calibration error"), ("by chance", "by chance"), ("seconds", "seconds"),
         ("default", "default"), ("auto", "auto"), ("label propagation", "label propagation")),
    ),
    "surveys": Table(
        "Simulated surveys with known standard errors: mean squared error of the true area means over that of the "
        "survey, and coverage of 90 % intervals; one draw (`python -m benchmarks.surveys --draws 1`).",
        (("data", "data"), ("outcome", "outcome"), ("areas", "areas"), ("solver", "solver"),
         ("known errors", "known errors"), ("equal noise", "equal noise"), ("Fay-Herriot", "Fay-Herriot"),
         ("in 90 %", "90 % intervals contain"), ("seconds", "seconds")),
    ),
    "laplace": Table(
        "Laplace's approximation beside a long run of elliptical slice sampling of the same model, half of the nodes "
        "labelled: over all nodes the largest difference of posterior means and the sampler's own standard error, in "
        "posterior standard deviations, and the least and the greatest ratio of standard deviations "
        "(`python -m benchmarks laplace`).",
        (("task", "task"), ("likelihood", "likelihood"), ("nodes", "nodes"), ("labels", "labels"),
         ("means differ", "means differ"), ("sampler's error", "sampler's error"),
         ("standard deviations, least ratio", "least ratio"), ("greatest ratio", "greatest ratio"),
         ("draws", "draws")),
    ),
}  # fmt: skip
"""Tables by benchmark."""


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


def table(name: str, rows: list[Row]) -> str:
    """Return the text and the table of a benchmark in Markdown."""
    own = [row for row in rows if row["benchmark"] == name and TABLES[name].shows(row)]
    shown = [(title, key) for title, key in TABLES[name].columns if any(row.get(key) is not None for row in own)]
    head = f"| {' | '.join(title for title, _ in shown)} |\n|{' --- |' * len(shown)}"
    lines = [f"| {' | '.join(_cell(row.get(key)) for _, key in shown)} |" for row in own]
    return "\n".join(["", TABLES[name].text, "", *([head, *lines] if own else ["Not measured yet."]), "", ""])


def pages(rows: list[Row]) -> dict[Path, str]:
    """Return the text of every page that has a table, with its tables made from these rows."""
    found = {path: path.read_text("utf-8") for path in sorted(DOCS.rglob("*.md"))}
    return {
        path: PLACE.sub(lambda place: f"{place[1]}{table(place[2], rows)}{place[3]}", text)
        for path, text in found.items()
        if PLACE.search(text)
    }


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
    """Add lines to the store and write the tables; with ``--check`` fail where a page differs from the store."""
    if sys.argv[1:] == ["--check"]:
        stale = [str(path) for path, text in pages(read()).items() if path.read_text("utf-8") != text]
        sys.exit(f"{', '.join(stale)} differ from {RESULTS}: run make tables" if stale else 0)
    texts = [Path(name).read_text("utf-8") for name in sys.argv[1:]] or [sys.stdin.read()]
    found = merged(read(), parsed(chain.from_iterable(text.splitlines() for text in texts)))
    rows = [row for row in found if TABLES[row["benchmark"]].shows(row)]
    RESULTS.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    for path, text in pages(rows).items():
        path.write_text(text, "utf-8")
    plot(rows)


def parsed(lines: Iterable[str]) -> list[Row]:
    """Return the rows in lines of JSON whose benchmark has a table.

    Examples
    --------
    >>> parsed(['a table', '{"benchmark": "core", "tasks": "drawn", "R2": 0.5}', '{"benchmark": "of old"}'])
    [{'benchmark': 'core', 'tasks': 'drawn', 'R2': 0.5}]
    """
    rows = [json.loads(line) for line in lines if line.startswith("{")]
    return [row for row in rows if row["benchmark"] in TABLES]


def read() -> list[Row]:
    """Return the rows that were kept."""
    return [json.loads(line) for line in RESULTS.read_text("utf-8").splitlines()] if RESULTS.exists() else []


if __name__ == "__main__":
    main()

"""Results of an experiment: tables with the paper's numbers beside ours, also as text, panels of figures, and goals."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from graphmrf._typing import Floats
from graphmrf.text import DASH, MINUS, count, number

TOLERANCE = 0.05
"""Largest relative difference that counts as agreement, chosen before the comparisons were run."""
SOURCES = ("printed", "authors")
"""What our numbers are compared with: attributes of a cell."""
PARTIAL = "\N{DAGGER}"
"""Mark of a number that is a mean over fewer runs than planned."""


@dataclass(frozen=True)
class TableCell:
    """One number: ours, that printed in the paper, that in its authors' files, and how ours spread over runs.

    It is a mean over `n_runs`; `missing` counts runs that it lacks. `note` is why our number is missing.
    """

    ours: float | None = None
    printed: float | None = None
    authors: float | None = None
    spread: float | None = None
    n_runs: int = 0
    missing: int = 0
    note: str = ""

    @property
    def difference(self) -> float | None:
        """Ours less the printed number."""
        return None if self.ours is None or self.printed is None else self.ours - self.printed


@dataclass(frozen=True)
class TableRow:
    """A line of a table: labels, then one cell for each column."""

    labels: tuple[str, ...]
    cells: tuple[TableCell, ...]


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper.

    Parameters
    ----------
    name, caption : str
        Name of its files, and what it shows.
    heads, columns : tuple of str
        Names of the columns of labels, and of those of numbers.
    rows : tuple of TableRow
        The lines.
    decimals : int
        Decimals of ours.
    ranked : bool
        Whether the largest number of a row is the best.
    numbers : tuple of str
        The experiments whose published numbers stand beside ours; that of its own name where it is empty.
    quantity : str
        What its numbers are; empty where they differ.
    """

    name: str
    caption: str
    heads: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...] = ()
    decimals: int = 3
    ranked: bool = False
    numbers: tuple[str, ...] = ()
    quantity: str = "R²"

    def cells(self, columns: Sequence[str] | None = None) -> Iterator[TableCell]:
        """Yield the cells of some columns, row by row."""
        wanted = [k for k, column in enumerate(self.columns) if columns is None or column in columns]
        for row in self.rows:
            yield from (row.cells[k] for k in wanted)

    def at(self, row: str, column: str) -> TableCell:
        """Return the cell of a row, its labels joined by slashes, and a column; an empty one where there is none."""
        places = {"/".join(each.labels): each for each in self.rows}
        known = row in places and column in self.columns
        return places[row].cells[self.columns.index(column)] if known else TableCell()

    def having(self, label: str) -> "PaperTable":
        """Return the table with the rows of a label only."""
        return replace(self, rows=tuple(row for row in self.rows if label in row.labels))

    def best(self, row: TableRow) -> float | None:
        """Return the largest of our numbers in a row, None in a table that ranks nothing."""
        ours = [cell.ours for cell in row.cells if cell.ours is not None]
        return max(ours) if ours and self.ranked else None


@dataclass(frozen=True)
class Series:
    """A line, a group of bars or of points."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    spread: Sequence[float] = ()
    colour: float | None = None
    marker: str = ""


@dataclass(frozen=True)
class Chart:
    """Curves over one axis, points about the diagonal, or groups of bars: one value of every series for each group."""

    kind: Literal["lines", "points", "bars"]
    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Heat:
    """A matrix in colours; `marks` are (column, row) positions, `inset` is a column that is also drawn as a curve."""

    title: str
    x_label: str
    y_label: str
    values: Floats
    x_ticks: tuple[str, ...] = ()
    y_ticks: tuple[str, ...] = ()
    marks: tuple[tuple[int, int], ...] = ()
    signed: bool = False
    inset: int | None = None
    kind: ClassVar[str] = "heat"


@dataclass(frozen=True, eq=False)
class Map:
    """A value at every node of a data set, between limits; drawn on shapes when their ids are known."""

    title: str
    data: str
    ids: tuple[str, ...]
    values: Floats
    limits: tuple[float, float]
    kind: ClassVar[str] = "map"


@dataclass(frozen=True)
class Figure:
    """A figure of the paper: panels side by side, `columns` in a row; the caption is its text for screen readers."""

    name: str
    caption: str
    panels: tuple[Chart | Heat | Map, ...]
    columns: int = 3


@dataclass(frozen=True)
class Goal:
    """A number to reach: what was measured, what was wanted, whether it is met, and what it is compared with.

    `share` is the relative difference, the larger of the two where there are two numbers to compare with.
    """

    what: str
    measured: str
    wanted: str = DASH
    met: bool | None = None
    printed: str = DASH
    authors: str = DASH
    share: float | None = None


@dataclass(frozen=True)
class Findings:
    """Tables, figures and goals of an experiment."""

    tables: tuple[PaperTable, ...] = ()
    figures: tuple[Figure, ...] = ()
    goals: tuple[Goal, ...] = ()


def compare(what: str, cells: Iterable[TableCell], *, decimals: int = 3, small: bool = False) -> list[Goal]:
    """Return the goal that our numbers agree with those printed and with the authors' files.

    One rule serves every table and figure: the absolute differences add up to at most `TOLERANCE` of the absolute
    numbers compared with, for each of the two where there are numbers.

    Cells without our number, or without a number to compare with, do not count. Nothing is wanted of networks that are
    too small to agree, as in a quick run.

    Examples
    --------
    >>> (goal,) = compare("R² of LP", [TableCell(0.40, 0.41), TableCell(0.50, 0.50, 0.48)])
    >>> goal.printed, goal.authors, goal.met
    ('0.455, off by 1.1 % (2 cells, largest 0.010)', '0.480, off by 4.2 % (1 cell, largest 0.020)', True)
    """
    known = [cell for cell in cells if cell.ours is not None and not cell.printed is cell.authors is None]
    if not known:
        return []
    distances = {source: distance(known, source) for source in SOURCES}
    share = max(each.share for each in distances.values() if each is not None)
    texts = {source: DASH if each is None else each.text(decimals) for source, each in distances.items()}
    ours = number(float(np.mean([cell.ours for cell in known])), decimals)
    wanted = "none: networks of a quick run are small" if small else f"≤ {percent(TOLERANCE, 0)}"
    return [Goal(what, ours, wanted, None if small else share <= TOLERANCE, share=share, **texts)]


@dataclass(frozen=True)
class Distance:
    """How far our numbers are from published ones.

    `theirs` is the mean of the published numbers; of |ours - theirs| there are the mean, the maximum, and the sum as
    a share of the sum of |theirs|.
    """

    n_cells: int
    theirs: float
    mean: float
    largest: float
    share: float

    def text(self, decimals: int) -> str:
        """Return the mean of the published numbers and the difference in words."""
        cells, largest = count(self.n_cells, "cell"), number(self.largest, decimals)
        return f"{number(self.theirs, decimals)}, off by {percent(self.share, 1)} ({cells}, largest {largest})"


def distance(cells: Iterable[TableCell], source: str) -> Distance | None:
    """Return the distance from the numbers of a source, "printed" or "authors"; None where no cell has both numbers."""
    both = [(cell.ours, theirs) for cell in cells if (theirs := getattr(cell, source)) is not None]
    pairs = np.array([(ours, theirs) for ours, theirs in both if ours is not None])
    if not len(pairs):
        return None
    off = np.abs(pairs[:, 0] - pairs[:, 1])
    return Distance(len(off), float(pairs[:, 1].mean()), float(off.mean()), float(off.max()), share_off(pairs))


def share_off(pairs: ArrayLike) -> float:
    """Return the sum of |ours - theirs| as a share of the sum of |theirs|."""
    ours, theirs = np.asarray(pairs).T
    return float(np.abs(ours - theirs).sum() / np.abs(theirs).sum())


def percent(share: float, places: int) -> str:
    """Return a share in per cent."""
    return f"{share:.{places}%}".replace("%", " %")


def as_csv(table: PaperTable) -> str:
    """Return one line for each cell: labels, column, ours, spread, runs, printed, authors, difference from print, note.

    Examples
    --------
    >>> row = TableRow(("U.S.", "income"), (TableCell(0.5, 0.4, 0.41, 0.01, 10),))
    >>> print(as_csv(PaperTable("t", "T", ("data", "outcome"), ("LP",), (row,))))
    data,outcome,column,ours,std,runs,printed,authors,difference,note
    U.S.,income,LP,0.5,0.01,10,0.4,0.41,0.1,
    <BLANKLINE>
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([*table.heads, "column", "ours", "std", "runs", "printed", "authors", "difference", "note"])
    for row in table.rows:
        for column, cell in zip(table.columns, row.cells, strict=True):
            values = [_plain(value) for value in (cell.ours, cell.spread)]
            ends = [*map(_plain, (cell.printed, cell.authors, cell.difference)), cell.note]
            writer.writerow([*row.labels, column, *values, cell.n_runs or "", *ends])
    return stream.getvalue()


def as_markdown(table: PaperTable) -> str:
    """Return the table with the numbers to compare with in brackets behind ours, the best of a row in bold.

    In brackets stand the printed number and, behind a slash, that of the authors' files; a dagger marks means over
    fewer runs than planned.

    Examples
    --------
    >>> cells = TableCell(0.5, 0.4), TableCell(None, 0.3, 0.312), TableCell(0.2, None, 0.21, missing=1)
    >>> row = TableRow(("U.S.",), cells)
    >>> print(as_markdown(PaperTable("t", "T", ("data",), ("LP", "GCN", "LR"), (row,), ranked=True)))
    | data | LP | GCN | LR |
    | --- | ---: | ---: | ---: |
    | U.S. | **0.500** (0.40) | – (0.30 / 0.312) | 0.200† (/ 0.210) |
    """
    best = [table.best(row) for row in table.rows]
    lines = [
        bar([*table.heads, *table.columns]),
        bar(["---"] * len(table.heads) + ["---:"] * len(table.columns)),
        *(
            bar([*row.labels, *(_cell(cell, table.decimals, top, ("**", "**")) for cell in row.cells)])
            for row, top in zip(table.rows, best, strict=True)
        ),
    ]
    return "\n".join(lines)


def as_latex(table: PaperTable) -> str:
    r"""Return a table for booktabs, the numbers to compare with in brackets behind ours.

    Examples
    --------
    >>> row = TableRow(("U.S.",), (TableCell(0.5, 0.4),))
    >>> print(as_latex(PaperTable("t", "T", ("data",), ("LP",), (row,))).splitlines()[6])
    U.S. & 0.500 {\scriptsize (0.40)} \\
    """
    body = [
        " & ".join([*map(_escaped, row.labels), *(_latex_cell(cell, table, row) for cell in row.cells)]) + r" \\"
        for row in table.rows
    ]
    heads = " & ".join(map(_escaped, [*table.heads, *table.columns])) + r" \\"
    shape = "l" * len(table.heads) + "r" * len(table.columns)
    before = [
        r"\begin{table}",
        rf"\caption{{{_escaped(table.caption)} In brackets: print / files of its authors.}}",
        rf"\begin{{tabular}}{{{shape}}}",
        r"\toprule",
    ]
    after = (r"\bottomrule", r"\end{tabular}", r"\end{table}", "")
    return "\n".join([*before, heads, r"\midrule", *body, *after])


def bar(cells: Sequence[str]) -> str:
    """Return a line of a table in Markdown."""
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def _cell(cell: TableCell, decimals: int, best: float | None, bold: tuple[str, str]) -> str:
    text = number(cell.ours, decimals)
    mark = PARTIAL if cell.missing else ""
    if best is not None and cell.ours is not None and text == number(best, decimals):
        text = f"{bold[0]}{text}{bold[1]}"
    theirs = reference(cell, decimals)
    return f"{text}{mark} ({theirs})" if theirs else text + mark


def reference(cell: TableCell, decimals: int) -> str:
    """Return the numbers to compare with as text: the printed one, a slash and that of the authors' files."""
    printed = "" if cell.printed is None else number(cell.printed, min(decimals, 2))
    return printed if cell.authors is None else f"{printed} / {number(cell.authors, decimals)}".lstrip()


def _latex_cell(cell: TableCell, table: PaperTable, row: TableRow) -> str:
    text = _cell(cell, table.decimals, table.best(row), (r"\textbf{", "}"))
    text = text.replace(MINUS, "$-$").replace(DASH, "---").replace(PARTIAL, r"\dag")
    value, bracket, paper = text.partition(" (")
    return value + (rf" {{\scriptsize ({paper}}}" if bracket else "")


def _escaped(text: str) -> str:
    for sign in "&%_#":
        text = text.replace(sign, "\\" + sign)
    for sign, command in {"α": r"$\alpha$", "ω": r"$\omega$", "²": "$^2$", "₀": "$_0$", MINUS: "$-$"}.items():
        text = text.replace(sign, command)
    return text


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"

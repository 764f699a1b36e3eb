"""Results of an experiment: tables with the paper's numbers beside ours, also as text, panels of figures, and goals."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from graphmrf._typing import Floats
from graphmrf.text import DASH, MINUS, count, number

TOLERANCE = 0.05
"""Largest relative difference that counts as agreement, chosen before the comparisons were run."""


@dataclass(frozen=True)
class TableCell:
    """One number: ours, that printed in the paper, that in its authors' files, and how ours spread over runs.

    `note` is why our number is missing.

    Examples
    --------
    >>> round(TableCell(0.66, 0.65).difference, 6), TableCell(None, 0.65, note="needs the gnn extra").difference
    (0.01, None)
    """

    ours: float | None = None
    printed: float | None = None
    authors: float | None = None
    spread: float | None = None
    n_runs: int = 0
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
    numbers : str
        The experiment whose published numbers stand beside ours; that of its own name where it is empty.
    """

    name: str
    caption: str
    heads: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...] = ()
    decimals: int = 3
    ranked: bool = False
    numbers: str = ""

    def cells(self, columns: Sequence[str] | None = None) -> Iterator[TableCell]:
        """Yield the cells of some columns, row by row."""
        wanted = [k for k, column in enumerate(self.columns) if columns is None or column in columns]
        for row in self.rows:
            yield from (row.cells[k] for k in wanted)

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
    """A number to reach: what was measured, what was wanted, whether it is met, and what it is compared with."""

    what: str
    measured: str
    wanted: str = DASH
    met: bool | None = None
    printed: str = DASH
    authors: str = DASH


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
    pairs = {
        source: [(cell.ours or 0.0, theirs) for cell in known if (theirs := getattr(cell, source)) is not None]
        for source in ("printed", "authors")
    }
    if not known:
        return []
    texts = {source: _distance(each, decimals) for source, each in pairs.items()}
    met = all(share_off(each) <= TOLERANCE for each in pairs.values() if each)
    ours = number(float(np.mean([cell.ours for cell in known])), decimals)
    wanted = "none: networks of a quick run are small" if small else f"≤ {TOLERANCE:.0%}".replace("%", " %")
    return [Goal(what, ours, wanted, None if small else met, **texts)]


def share_off(pairs: Sequence[tuple[float, float]]) -> float:
    """Return the sum of |ours - theirs| as a share of the sum of |theirs|."""
    ours, theirs = np.array(pairs).T
    return float(np.abs(ours - theirs).sum() / np.abs(theirs).sum())


def _distance(pairs: Sequence[tuple[float, float]], decimals: int) -> str:
    if not pairs:
        return DASH
    ours, theirs = np.array(pairs).T
    largest = number(float(np.abs(ours - theirs).max()), decimals)
    off = f"off by {share_off(pairs):.1%}".replace("%", " %")
    return f"{number(float(theirs.mean()), decimals)}, {off} ({count(len(pairs), 'cell')}, largest {largest})"


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

    In brackets stand the printed number and, behind a slash, that of the authors' files.

    Examples
    --------
    >>> row = TableRow(("U.S.",), (TableCell(0.5, 0.4), TableCell(None, 0.3, 0.312), TableCell(0.2, None, 0.21)))
    >>> print(as_markdown(PaperTable("t", "T", ("data",), ("LP", "GCN", "LR"), (row,), ranked=True)))
    | data | LP | GCN | LR |
    | --- | ---: | ---: | ---: |
    | U.S. | **0.500** (0.40) | – (0.30 / 0.312) | 0.200 (/ 0.210) |
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
    if best is not None and cell.ours is not None and text == number(best, decimals):
        text = f"{bold[0]}{text}{bold[1]}"
    theirs = reference(cell, decimals)
    return f"{text} ({theirs})" if theirs else text


def reference(cell: TableCell, decimals: int) -> str:
    """Return the numbers to compare with as text: the printed one, a slash and that of the authors' files."""
    printed = "" if cell.printed is None else number(cell.printed, min(decimals, 2))
    return printed if cell.authors is None else f"{printed} / {number(cell.authors, decimals)}".lstrip()


def _latex_cell(cell: TableCell, table: PaperTable, row: TableRow) -> str:
    text = _cell(cell, table.decimals, table.best(row), (r"\textbf{", "}"))
    text = text.replace(MINUS, "$-$").replace(DASH, "---")
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

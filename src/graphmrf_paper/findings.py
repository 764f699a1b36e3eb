"""What an experiment found: tables with the paper's numbers beside ours, also as text, panels of figures, and goals."""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, ClassVar, Literal

import numpy as np

from graphmrf._typing import Floats
from graphmrf.text import DASH, MINUS, number


@dataclass(frozen=True)
class TableCell:
    """One number: ours, the paper's, and how ours spread over runs.

    Parameters
    ----------
    ours, paper : float or None
        None where there is no number.
    spread : float or None
        Standard deviation over runs.
    n_runs : int
        Number of runs behind ours.
    note : str
        Why there is no number, or what to know about it.

    Examples
    --------
    >>> round(TableCell(0.66, 0.65).difference, 6), TableCell(None, 0.65, note="needs the gnn extra").difference
    (0.01, None)
    """

    ours: float | None = None
    paper: float | None = None
    spread: float | None = None
    n_runs: int = 0
    note: str = ""

    @property
    def difference(self) -> float | None:
        """Ours less the paper's."""
        return None if self.ours is None or self.paper is None else self.ours - self.paper


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
    name : str
        Name of its files.
    caption : str
        What it shows.
    heads : tuple of str
        Names of the label columns.
    columns : tuple of str
        Names of the columns of numbers.
    rows : tuple of TableRow
        The lines.
    decimals : int
        Decimals of ours.
    ranked : bool
        Whether the largest number of a row is the best.
    """

    name: str
    caption: str
    heads: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]
    decimals: int = 3
    ranked: bool = False

    def cells(self, columns: Sequence[str] | None = None) -> Iterator[TableCell]:
        """Yield the cells of some columns, row by row."""
        wanted = [k for k, column in enumerate(self.columns) if columns is None or column in columns]
        for row in self.rows:
            yield from (row.cells[k] for k in wanted)

    def differences(self, columns: Sequence[str] | None = None) -> Floats:
        """Return ours less the paper's, wherever both have a number."""
        return np.array([cell.difference for cell in self.cells(columns) if cell.difference is not None])

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
    """A matrix in colours; `marks` are (column, row) positions."""

    title: str
    x_label: str
    y_label: str
    values: Floats
    x_ticks: tuple[str, ...] = ()
    y_ticks: tuple[str, ...] = ()
    marks: tuple[tuple[int, int], ...] = ()
    signed: bool = False
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
    """A figure of the paper: panels side by side.

    Parameters
    ----------
    name : str
        Name of its files.
    caption : str
        What it shows; also what a screen reader reads.
    panels : tuple
        `Chart`, `Heat` or `Map`.
    columns : int
        Panels in a row.
    """

    name: str
    caption: str
    panels: tuple[Chart | Heat | Map, ...]
    columns: int = 3


@dataclass(frozen=True)
class Goal:
    """A figure to reach: what was measured, what was wanted, and whether it is met."""

    what: str
    measured: str
    wanted: str
    met: bool | None = None


@dataclass(frozen=True)
class Findings:
    """All that the runs of an experiment found: tables, figures, and how far from a goal they are."""

    tables: tuple[PaperTable, ...] = ()
    figures: tuple[Figure, ...] = ()
    goals: tuple[Goal, ...] = ()


@cache
def _printed_tables() -> Mapping[str, Any]:
    text = files("graphmrf_paper").joinpath("published.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def printed(table: str, row: str, column: str, *, quantity: str = "value") -> float | None:
    """Return a number printed in the paper (Jia & Benson, arXiv:2101.07730), None where it has none.

    Parameters
    ----------
    table : str
        Name of the experiment.
    row, column : str
        Names of row and column.
    quantity : {"value", "alpha", "layers"}
        The number itself, or the average smoothing level or number of layers in brackets behind it.

    Examples
    --------
    >>> printed("real-accuracy", "us-2016/income", "LGC")
    0.66
    >>> printed("real-accuracy", "us-2016/income", "LGC", quantity="alpha")
    0.46
    """
    cell = _printed_tables().get(table, {}).get(row.replace("+log", ""), {}).get(column, {})
    value: float | None = cell.get(quantity)
    return value


def as_csv(table: PaperTable) -> str:
    """Return one line for each cell: labels, column, ours, spread, runs, paper, difference, note.

    Examples
    --------
    >>> row = TableRow(("U.S.", "income"), (TableCell(0.5, 0.4, 0.01, 10),))
    >>> print(as_csv(PaperTable("t", "T", ("data", "outcome"), ("LP",), (row,))))
    data,outcome,column,ours,std,runs,paper,difference,note
    U.S.,income,LP,0.5,0.01,10,0.4,0.1,
    <BLANKLINE>
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([*table.heads, "column", "ours", "std", "runs", "paper", "difference", "note"])
    for row in table.rows:
        for column, cell in zip(table.columns, row.cells, strict=True):
            values = [_plain(value) for value in (cell.ours, cell.spread)]
            ends = [_plain(cell.paper), _plain(cell.difference), cell.note]
            writer.writerow([*row.labels, column, *values, cell.n_runs or "", *ends])
    return stream.getvalue()


def as_markdown(table: PaperTable) -> str:
    """Return the table with the paper's number in brackets behind ours, the best of a row in bold.

    Examples
    --------
    >>> row = TableRow(("U.S.",), (TableCell(0.5, 0.4), TableCell(None, 0.3)))
    >>> print(as_markdown(PaperTable("t", "T", ("data",), ("LP", "GCN"), (row,), ranked=True)))
    | data | LP | GCN |
    | --- | ---: | ---: |
    | U.S. | **0.500** (0.40) | – (0.30) |
    """
    best = [table.best(row) for row in table.rows]
    lines = [
        _bar([*table.heads, *table.columns]),
        _bar(["---"] * len(table.heads) + ["---:"] * len(table.columns)),
        *(
            _bar([*row.labels, *(_cell(cell, table.decimals, top, ("**", "**")) for cell in row.cells)])
            for row, top in zip(table.rows, best, strict=True)
        ),
    ]
    return "\n".join(lines)


def as_latex(table: PaperTable) -> str:
    r"""Return a table for booktabs, the paper's numbers in brackets behind ours.

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
    return "\n".join(
        [
            r"\begin{table}",
            rf"\caption{{{_escaped(table.caption)} In brackets: the paper.}}",
            rf"\begin{{tabular}}{{{shape}}}",
            r"\toprule",
            heads,
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _bar(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def _cell(cell: TableCell, decimals: int, best: float | None, bold: tuple[str, str]) -> str:
    text = number(cell.ours, decimals)
    if best is not None and cell.ours is not None and text == number(best, decimals):
        text = f"{bold[0]}{text}{bold[1]}"
    return text if cell.paper is None else f"{text} ({number(cell.paper, min(decimals, 2))})"


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

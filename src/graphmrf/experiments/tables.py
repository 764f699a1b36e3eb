r"""Tables as text: CSV (one line a cell), Markdown and LaTeX (booktabs)."""

import csv
import io
from collections.abc import Sequence

from graphmrf.experiments.findings import Cell, Row, Table

DASH, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"


def number(value: float | None, decimals: int) -> str:
    """Return a number with a minus sign of its own width, a dash for none.

    Examples
    --------
    >>> number(-0.5, 2), number(None, 2), number(3106.0, 0)
    ('−0.50', '–', '3,106')
    """
    return DASH if value is None else f"{value:,.{decimals}f}".replace("-", MINUS)


def as_csv(table: Table) -> str:
    """Return one line for each cell: labels, column, ours, spread, runs, paper, difference, note.

    Examples
    --------
    >>> row = Row(("U.S.", "income"), (Cell(0.5, 0.4, 0.01, 10),))
    >>> print(as_csv(Table("t", "T", ("data", "outcome"), ("LP",), (row,))))
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


def as_markdown(table: Table) -> str:
    """Return the table with the paper's number in brackets behind ours, the best of a row in bold.

    Examples
    --------
    >>> row = Row(("U.S.",), (Cell(0.5, 0.4), Cell(None, 0.3)))
    >>> print(as_markdown(Table("t", "T", ("data",), ("LP", "GCN"), (row,), ranked=True)))
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


def as_latex(table: Table) -> str:
    r"""Return a table for booktabs, the paper's numbers in brackets behind ours.

    Examples
    --------
    >>> row = Row(("U.S.",), (Cell(0.5, 0.4),))
    >>> print(as_latex(Table("t", "T", ("data",), ("LP",), (row,))).splitlines()[6])
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


def _cell(cell: Cell, decimals: int, best: float | None, bold: tuple[str, str]) -> str:
    text = number(cell.ours, decimals)
    if best is not None and cell.ours is not None and text == number(best, decimals):
        text = f"{bold[0]}{text}{bold[1]}"
    return text if cell.paper is None else f"{text} ({number(cell.paper, min(decimals, 2))})"


def _latex_cell(cell: Cell, table: Table, row: Row) -> str:
    text = _cell(cell, table.decimals, table.best(row), (r"\textbf{", "}")).replace(MINUS, "$-$").replace(DASH, "---")
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

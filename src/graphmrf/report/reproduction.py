"""The page of a reproduction: every table and figure of the paper, ours beside the paper's, in one file."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template
from typing import Protocol

from graphmrf.text import DASH, number

NEAR, FAR = 0.015, 0.04
MOST_ROWS = 20


class CellRow(Protocol):
    """A number of ours and what belongs to it."""

    @property
    def ours(self) -> float | None:
        """Ours."""

    @property
    def paper(self) -> float | None:
        """The paper's."""

    @property
    def difference(self) -> float | None:
        """Ours less the paper's."""

    @property
    def spread(self) -> float | None:
        """Standard deviation over runs."""

    @property
    def n_runs(self) -> int:
        """Number of runs."""

    @property
    def note(self) -> str:
        """Why there is no number."""


class LineRow(Protocol):
    """A line of a table."""

    @property
    def labels(self) -> tuple[str, ...]:
        """How it begins."""

    @property
    def cells(self) -> Sequence[CellRow]:
        """Its numbers."""


class TableRow(Protocol):
    """A table."""

    @property
    def name(self) -> str:
        """Name of its files."""

    @property
    def caption(self) -> str:
        """What it shows."""

    @property
    def heads(self) -> tuple[str, ...]:
        """Names of the labels."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the numbers."""

    @property
    def rows(self) -> Sequence[LineRow]:
        """Its lines."""

    @property
    def decimals(self) -> int:
        """Decimals of ours."""

    @property
    def ranked(self) -> bool:
        """Whether the largest number of a line is the best."""


class GoalRow(Protocol):
    """A figure to reach."""

    @property
    def what(self) -> str:
        """What was measured."""

    @property
    def measured(self) -> str:
        """The measurement."""

    @property
    def wanted(self) -> str:
        """What was wanted."""

    @property
    def met(self) -> bool | None:
        """Whether it is met; None when it is only printed."""


@dataclass(frozen=True)
class ReproductionFigure:
    """A drawn figure: its name, its caption, the SVG, and its width in pixels."""

    name: str
    caption: str
    svg: bytes
    width: int = 800


@dataclass(frozen=True)
class ReproductionSection:
    """One table or figure of the paper.

    Parameters
    ----------
    name, title, place : str
        Its name on the command line, what it shows, where it is in the paper.
    tables, figures, goals : sequences
        What to show.
    remarks : sequence of str
        What agrees, what differs, and why.
    """

    name: str
    title: str
    place: str
    tables: Sequence[TableRow] = ()
    figures: Sequence[ReproductionFigure] = ()
    goals: Sequence[GoalRow] = ()
    remarks: Sequence[str] = ()


@dataclass(frozen=True)
class ReproductionReport:
    """Everything on the page.

    Parameters
    ----------
    sections : sequence of ReproductionSection
        In the order of the paper.
    subtitle : str
        How much was run.
    notes : sequence of str
        What was left out, and why.
    command, version : str
        How the page was made.

    Examples
    --------
    >>> section = ReproductionSection("data-statistics", "Statistics of the data sets", "Table 2")
    >>> "Table 2" in render_reproduction(ReproductionReport((section,), "quick run"))
    True
    """

    sections: Sequence[ReproductionSection]
    subtitle: str
    notes: Sequence[str] = ()
    command: str = ""
    version: str = ""


def render_reproduction(report: ReproductionReport) -> str:
    """Return the page as one HTML document that needs no network and no script to be read."""
    links = "".join(f'<a href="#{escape(each.name)}">{escape(each.place)}</a>' for each in report.sections)
    return Template(_asset("page.html")).substitute(
        title="A unifying generative model for graph learning: the experiments of the paper, run again",
        subtitle=escape(report.subtitle),
        style=_asset("page.css") + _asset("reproduction.css"),
        tabs=f'<nav class="tabs" aria-label="Tables and figures"><a href="#summary">Summary</a>{links}</nav>',
        sections=_summary(report) + "".join(_section(each) for each in report.sections),
        about=_about(report),
        plotly="",
        data="{}",
        script=_asset("reproduction.js"),
    )


def _summary(report: ReproductionReport) -> str:
    judged = [goal for section in report.sections for goal in section.goals if goal.met is not None]
    met = sum(bool(goal.met) for goal in judged)
    headline = f"{met} of {len(judged)} goals are met." if judged else "Nothing was measured against a goal."
    rows = "".join(_goal(section, goal) for section in report.sections for goal in section.goals)
    heads = "".join(
        f'<th scope="col">{name}</th>' for name in ("In the paper", "Measured quantity", "Here", "Goal", "")
    )
    listing = f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'
    reading = (
        "Large numbers are ours; below each stands the paper's and the difference. "
        f"Differences in accuracy beyond {NEAR} are marked, those beyond {FAR} strongly. "
        "Point at a cell for its spread over runs."
    )
    return (
        f'<section id="summary" aria-labelledby="head-summary"><h2 id="head-summary">{headline}</h2>'
        f'<p class="lede">{reading}</p><div class="card">{listing if rows else ""}</div></section>'
    )


def _goal(section: ReproductionSection, goal: GoalRow) -> str:
    sign = {True: '<span class="met">met</span>', False: '<span class="unmet">not met</span>', None: ""}[goal.met]
    place = f'<a href="#{escape(section.name)}">{escape(section.place)}</a>'
    return (
        f'<tr><th scope="row">{place}</th><td>{escape(goal.what)}</td><td>{escape(goal.measured)}</td>'
        f"<td>{escape(goal.wanted)}</td><td>{sign}</td></tr>"
    )


def _section(section: ReproductionSection) -> str:
    figures = "".join(_figure(figure) for figure in section.figures)
    tables = "".join(_card(table) for table in section.tables)
    remarks = "".join(f"<li>{escape(remark)}</li>" for remark in section.remarks)
    listing = f'<ul class="remarks">{remarks}</ul>' if remarks else ""
    name = escape(section.name)
    return (
        f'<section id="{name}" class="experiment" aria-labelledby="head-{name}">'
        f'<h2 id="head-{name}"><small>{escape(section.place)}</small> {escape(section.title)}</h2>'
        f"{listing}{figures}{tables}</section>"
    )


def _figure(figure: ReproductionFigure) -> str:
    data = base64.b64encode(figure.svg).decode()
    return (
        f'<figure class="card drawing"><img style="max-width:{figure.width}px" alt="{escape(figure.caption)}" '
        f'src="data:image/svg+xml;base64,{data}">'
        f"<figcaption>{escape(figure.caption)}</figcaption></figure>"
    )


def _card(table: TableRow) -> str:
    heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in table.heads)
    heads += "".join(f'<th scope="col" class="number">{escape(column)}</th>' for column in table.columns)
    body = "".join(_row(row, table) for row in table.rows)
    caption = escape(table.caption)
    kind = "scroll tall" if len(table.rows) > MOST_ROWS else "scroll"
    return (
        f'<div class="card"><p>{caption}</p><div class="{kind}" tabindex="0" role="region" aria-label="{caption}">'
        f'<table class="compared"><caption class="unseen">{caption}</caption><thead><tr>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table></div></div>"
    )


def _row(row: LineRow, table: TableRow) -> str:
    ours = [cell.ours for cell in row.cells if cell.ours is not None]
    best = number(max(ours), table.decimals) if ours and table.ranked else None
    labels = "".join(f'<th scope="row">{escape(label)}</th>' for label in row.labels)
    return f"<tr>{labels}{''.join(_cell(cell, table, best) for cell in row.cells)}</tr>"


def _cell(cell: CellRow, table: TableRow, best: str | None) -> str:
    text = number(cell.ours, table.decimals)
    kind = "number best" if text == best else "number"
    small = ""
    if cell.paper is not None:
        small = f"<small>{number(cell.paper, min(table.decimals, 2))}{_difference(cell, table)}</small>"
    elif cell.ours is None and cell.note:
        small = f"<small>{escape(cell.note)}</small>"
    return f'<td class="{kind}" title="{escape(_hint(cell))}">{text}{small}</td>'


def _difference(cell: CellRow, table: TableRow) -> str:
    if cell.difference is None or table.decimals == 0:
        return ""
    size = abs(cell.difference) if table.ranked else 0.0  # only accuracies are marked
    kind = "far" if size > FAR else "off" if size > NEAR else "near"
    sign = "+" if cell.difference >= 0 else ""
    return f' <span class="{kind}">{sign}{number(cell.difference, table.decimals)}</span>'


def _hint(cell: CellRow) -> str:
    if cell.ours is None:
        return cell.note or "no number"
    spread = DASH if cell.spread is None else number(cell.spread, 3)
    return f"{cell.n_runs} runs, standard deviation {spread}" if cell.n_runs else ""


def _about(report: ReproductionReport) -> str:
    notes = "".join(f"<li>{escape(note)}</li>" for note in report.notes)
    parts = [f"<h3>What was left out</h3><ul>{notes}</ul>"] if notes else []
    if report.command:
        parts.append(f"<h3>The command that made this page</h3><pre>{escape(report.command)}</pre>")
    made_by = f"graphmrf {report.version}".strip()
    parts.append(f'<p class="fine">Made by {escape(made_by)}. This file works offline and loads nothing.</p>')
    return "".join(parts)


def _asset(name: str) -> str:
    return files("graphmrf.report").joinpath("assets", name).read_text(encoding="utf-8")

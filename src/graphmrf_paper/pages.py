"""The pages of a reproduction, Markdown and HTML: tables and figures beside the paper's, and differences."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TypeAlias

from jinja2 import ChoiceLoader, Environment, PackageLoader, select_autoescape
from markupsafe import Markup

from graphmrf.report.page import asset, templates
from graphmrf.text import DASH, count, joined, number
from graphmrf_paper.figures import Drawing
from graphmrf_paper.findings import (
    PARTIAL,
    SOURCES,
    Findings,
    Goal,
    PaperTable,
    TableCell,
    TableRow,
    as_markdown,
    bar,
    distance,
    percent,
    reference,
)
from graphmrf_paper.published import commit_of
from graphmrf_paper.runner import Timing, spoken, timing_table
from graphmrf_paper.runs import Experiment, Run, RunSettings

Parts: TypeAlias = Sequence[tuple[Experiment, Findings]]

_NEAR, _FAR = 0.015, 0.04  # differences of R² that are marked
_MOST_ROWS = 20  # of a table before it scrolls: about one screen


@dataclass(frozen=True)
class Reproduction:
    """Everything on the pages: experiments and what they found, how much was run, how long it took, the command.

    `times` has the time of every experiment, and last that of all together; `missing` are the runs without a result,
    `left_out` are notes on what else was not run, and why.
    """

    parts: Parts
    settings: RunSettings
    times: Sequence[Timing]
    command: str
    left_out: Sequence[str] = ()
    missing: Sequence[Run] = ()

    def table(self, name: str) -> PaperTable:
        """Return a table by its name, an empty one where it is not there."""
        tables = (table for _, found in self.parts for table in found.tables)
        return next((table for table in tables if table.name == name), PaperTable(name, "", (), ()))

    def goal(self, experiment: str, what: str) -> Goal | None:
        """Return a goal of an experiment, None where it is not there."""
        goals = (goal for each, found in self.parts if each.name == experiment for goal in found.goals)
        return next((goal for goal in goals if goal.what == what), None)

    def mean_differences(self) -> list[tuple[str, ...]]:
        """Return lines of place, quantity and mean |difference| from each source, and last that of all R²."""
        cells: dict[tuple[str, str], list[TableCell]] = {}
        for experiment, found in self.parts:
            for table in found.tables:
                if table.quantity:
                    cells.setdefault((experiment.place, table.quantity), []).extend(table.cells())
        all_r2 = [cell for (_, quantity), some in cells.items() if quantity == "R²" for cell in some]
        lines = [(*key, *_mean_differences(some)) for key, some in {**cells, ("all of these", "R²"): all_r2}.items()]
        return [line for line in lines if line[2:] != (DASH, DASH)]

    def expected_time(self) -> str:
        """Return a sentence on the time of a complete reproduction on two cores."""
        seconds = (self.times[-1].cpu + sum(run.seconds for run in self.missing)) / 2
        rest = f", {len(self.missing):,} runs without a result at their expected time" if self.missing else ""
        return f"On two idle cores all of it takes about {spoken(seconds)}{rest}."


def as_document(made: Reproduction, *, drawn: bool = True) -> str:
    """Return the page in Markdown; `drawn` says whether there are files of figures to show."""
    return _templates().get_template("reproduction.md").render(made=made, drawn=drawn)


def _mean_differences(cells: Sequence[TableCell]) -> tuple[str, ...]:
    found = [distance(cells, source) for source in SOURCES]
    return tuple(DASH if each is None else f"{number(each.mean, 4)} ({count(each.n_cells, 'cell')})" for each in found)


def _sources(table: PaperTable) -> str:
    """Return sentences on the sources of the numbers in brackets and on marked cells; empty without any."""
    cells = list(table.cells())
    printed, authors = (any(getattr(cell, source) is not None for cell in cells) for source in SOURCES)
    commits = joined(list(dict.fromkeys(map(commit_of, table.numbers or (table.name,)))))
    sources = [*(["print"] if printed else []), *([f"the authors' files ({commits})"] if authors else [])]
    brackets = f" In brackets: {' / '.join(sources)}." if sources else ""
    return brackets + (f" {PARTIAL}: not all runs." if any(cell.missing for cell in cells) else "")


def as_page(made: Reproduction, drawings: Mapping[str, Drawing]) -> str:
    """Return the page as one HTML document that needs no network and no script to be read.

    `drawings` are figures by name; those that are not there are not shown.
    """
    pages = _templates()
    goals = [goal for _, found in made.parts for goal in found.goals if goal.met is not None]
    quick = ", quick run" if made.settings.quick else ""
    return pages.get_template("reproduction.html").render(
        style=asset("page.css") + _asset(pages, "reproduction.css"),
        script=_asset(pages, "reproduction.js"),
        title="A unifying generative model for graph learning: the experiments of the paper, run again",
        subtitle=f"{len(made.settings.seeds)} splits{quick}; {made.times[-1].sentence()}",
        headline=f"{sum(bool(goal.met) for goal in goals)} of {len(goals)} goals are met."
        if goals
        else "Nothing was measured against a goal.",
        made=made,
        drawings=drawings,
        command=made.command,
        version=version("graphmrf"),
        limits=(_NEAR, _FAR, _MOST_ROWS),
    )


def _templates() -> Environment:
    pages = templates()  # for the document around the page
    pages.loader = ChoiceLoader([PackageLoader("graphmrf_paper"), *filter(None, [pages.loader])])
    pages.autoescape = select_autoescape(["html"])
    pages.filters |= {
        "number": number,
        "base64": lambda content: base64.b64encode(content).decode(),
        "bar": bar,
        "percent": percent,
        "markdown": as_markdown,
        "timing_table": timing_table,
    }
    pages.globals |= {
        "best": _best,
        "closeness": _closeness,
        "difference": _difference,
        "distance": distance,
        "hint": _hint,
        "partial": PARTIAL,
        "reference": reference,
        "sources": _sources,
    }
    return pages


def _asset(pages: Environment, name: str) -> Markup:
    assert pages.loader is not None
    return Markup(pages.loader.get_source(pages, name)[0])  # of ours


def _best(table: PaperTable, row: TableRow) -> str | None:
    value = table.best(row)
    return None if value is None else number(value, table.decimals)


def _difference(cell: TableCell, table: PaperTable) -> str:
    """Return ours less the paper's with its sign, nothing where either is missing, or for counts."""
    if cell.difference is None or table.decimals == 0:
        return ""
    return ("+" if cell.difference >= 0 else "") + number(cell.difference, table.decimals)


def _closeness(cell: TableCell, table: PaperTable) -> str:
    """Return the style of a difference; only accuracies have one."""
    size = abs(cell.difference or 0.0) if table.ranked else 0.0
    return "far" if size > _FAR else "off" if size > _NEAR else "near"


def _hint(cell: TableCell) -> str:
    if cell.ours is None:
        return cell.note or "no number"
    missing = f" ({cell.missing} are missing)" if cell.missing else ""
    return f"{cell.n_runs} runs{missing}, standard deviation {number(cell.spread, 3)}" if cell.n_runs else ""

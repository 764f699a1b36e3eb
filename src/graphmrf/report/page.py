"""The page: rows, figures and sentences laid out by templates, and written in one piece."""

import math
import os
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from graphmrf.errors import InvalidInputError
from graphmrf.files import atomic, check_place
from graphmrf.report import charts, tables
from graphmrf.report.rows import MethodRow, PredictionReport, TargetReport, method_name
from graphmrf.report.sampled_drawing import SampledDrawing, sample_drawing
from graphmrf.text import DASH, above_zero, count, nothing_predicts, number, r2_in_words, smoothing_level

OWN_FEATURES = ("lr", "lr-rp")
"""Methods whose coefficients are of a node's own features, and whose constant is where features are 0."""


def write_report(path: str | os.PathLike[str], report: PredictionReport) -> Path:
    """Write the report to `path`, all of it or nothing.

    Parameters
    ----------
    path : str or path
        An HTML file; an existing one is replaced.
    report : PredictionReport
        What to show.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    InvalidInputError
        If `path` is a directory or cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from graphmrf.graph import Graph
    >>> target = TargetReport("income", np.array([1.0, np.nan]), np.array([1.0, 2.0]), method="lp")
    >>> report = PredictionReport("Two wards", Graph.from_edges([0], [1]), ["a", "b"], (target,))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(Path(folder) / "report.html", report).name
    'report.html'
    """
    path = check_place(path)
    try:
        with atomic(path) as draft:
            draft.write_bytes(render(report).encode("utf-8", "xmlcharrefreplace"))
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be written ({error.strerror}); choose another place") from error
    return path


def render(report: PredictionReport) -> str:
    """The report as one HTML document that needs no network.

    Examples
    --------
    >>> from graphmrf.graph import Graph
    >>> target = TargetReport("income", np.array([1.0, np.nan]), np.array([1.0, 2.0]), method="lp")
    >>> "Predicted income for 1 of 2 nodes." in render(
    ...     PredictionReport("Two wards", Graph.from_edges([0], [1]), ["a", "b"], (target,))
    ... )
    True
    """
    from plotly.offline import get_plotlyjs

    drawing = sample_drawing(report)
    figures = [_figures(target, drawing) for target in report.targets]
    arrays = [charts.target_arrays(target, drawing) for target in report.targets]
    return (
        templates()
        .get_template("prediction.html")
        .render(
            title=report.title,
            subtitle=f"{count(report.graph.n_nodes, 'node')}, {count(report.graph.n_edges, 'edge')}",
            style=asset("page.css"),
            sections=[
                _section(report, target) | {"figures": drawn}
                for target, drawn in zip(report.targets, figures, strict=True)
            ],
            dropped=drawing.dropped,
            notes=report.notes,
            command=report.command,
            version=report.version,
            plotly=Markup(get_plotlyjs()),  # code of Plotly itself
            data={
                "nodes": charts.shared_arrays(report, drawing),
                "targets": [each | {"figures": drawn} for each, drawn in zip(arrays, figures, strict=True)],
            },
            script=asset("page.js"),
        )
    )


def templates() -> Environment:
    """The templates of pages: whatever they are given is escaped, and what they are not given is an error.

    Examples
    --------
    >>> templates().from_string("{{ name }}").render(name="<b>")
    '&lt;b&gt;'
    """
    environment = Environment(
        loader=PackageLoader("graphmrf.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False}
    return environment


def asset(name: str) -> Markup:
    """A style sheet or script of ours, which is put into a page as it is."""
    return Markup(files("graphmrf.report").joinpath("assets", name).read_text(encoding="utf-8"))


def _figures(target: TargetReport, drawing: SampledDrawing) -> dict[str, Any]:
    figures = {
        "value_map": charts.value_map(target, drawing),
        "std_map": charts.std_map(target, drawing),
        "comparison": charts.comparison_chart(target),
        "alpha_curves": charts.alpha_chart(target),
        "distribution": charts.distribution_chart(target),
        "coefficients": charts.coefficient_chart(target.coefficients) if target.coefficients else None,
    }
    return {name: figure for name, figure in figures.items() if figure is not None}


def _section(report: PredictionReport, target: TargetReport) -> dict[str, Any]:
    """Everything that the template says of one target: sentences, facts and tables; a part without rows is None."""
    rows = target.coefficients
    return {
        "target": target,
        "headline": headline(target),
        "sentences": [each for each in (accuracy(target), target.carries, check(target)) if each],
        "facts": {term: fact for term, fact in _facts(target).items() if fact != DASH},
        "has_std": target.std is not None,
        "hidden": f"{int(np.sum(~target.observed)):,}",
        "level": smoothing_level(target.alpha),
        "shares": tables.share_rows(target),
        "methods": tables.method_rows(target),
        "uncertain": tables.uncertain_nodes(report, target),
        "coefficients": tables.coefficient_rows(rows),
        "own_features": target.method in OWN_FEATURES,
        "intercept": "" if rows is None or rows.intercept is None else number(rows.intercept),
        "effects": tables.effect_rows(target.effects),
        "further": [(each.title, each.about, tables.further_rows(each)) for each in target.further],
    }


def _facts(target: TargetReport) -> dict[str, str]:
    row = target.chosen
    return {
        "Predicted": count(int(np.sum(~target.observed)), "node"),
        "Observed": count(int(np.sum(target.observed)), "node"),
        "Method": method_name(target.method),
        "Smoothing level α": smoothing_level(target.alpha),
        "R² in cross-validation": _measured(row) if row else DASH,
    }


def _measured(row: MethodRow) -> str:
    """Return an accuracy with its standard error."""
    return number(row.r2, 3) + (f" ± {number(row.error, 3)}" if math.isfinite(row.error) else "")


def headline(target: TargetReport) -> str:
    """What was predicted, for how many nodes.

    Examples
    --------
    >>> y = np.array([1.0, np.nan])
    >>> headline(TargetReport("income", y, np.array([1.0, 2.0]), method="lp"))
    'Predicted income for 1 of 2 nodes.'
    """
    hidden = int(np.sum(~target.observed))
    return f"Predicted {target.name} for {hidden:,} of {count(len(target.y), 'node')}."


def accuracy(target: TargetReport) -> str:
    """What accuracy to expect, in words; empty when it was not measured.

    Examples
    --------
    >>> from graphmrf.report.rows import MethodRow
    >>> y = np.array([1.0, np.nan])
    >>> rows = (MethodRow("lp", 0.714, (0.7, 0.72)),)
    >>> accuracy(TargetReport("income", y, np.array([1.0, 2.0]), method="lp", comparison=rows))
    'Expect an R² of about 0.71: it explains 71 % of the variation at nodes it has not seen.'
    """
    row = target.chosen
    if row is None or not math.isfinite(row.r2):
        return ""
    if not above_zero(row.r2, row.error):
        return nothing_predicts(target.name, row.r2, row.error)
    explains = f"it explains {100 * row.r2:.0f} % of the variation at nodes it has not seen"
    expected = r2_in_words(row.r2, row.error, 2)
    if "between" in expected:
        return f"Expect an {expected}: {explains}, but known values are too few, or too uneven, to be sure."
    return f"Expect an R² of about {number(row.r2, 2)}: {explains}."


def check(target: TargetReport) -> str:
    """How the prediction fared against outcomes kept hidden; empty when there are none.

    Examples
    --------
    >>> from graphmrf.report.rows import Truth
    >>> y = np.array([1.0, np.nan])
    >>> check(TargetReport("income", y, np.array([1.0, 2.0]), method="lp", truth=Truth(0.7, 0.88, 700)))
    'Checked against 700 outcomes it never saw: R² 0.70; the 90 % intervals contain 88 % of them.'
    """
    truth = target.truth
    if truth is None:
        return ""
    inside = ""
    if truth.coverage is not None:
        inside = f"; the {100 * target.level:g} % intervals contain {100 * truth.coverage:.0f} % of them"
    return f"Checked against {count(truth.n_nodes, 'outcome')} it never saw: R² {number(truth.r2, 2)}{inside}."

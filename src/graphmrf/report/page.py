"""The page: template, styles, script, Plotly and data put together, and written in one piece."""

import json
import os
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from graphmrf.errors import InvalidInputError
from graphmrf.files import atomic, check_place
from graphmrf.report import charts, maps, sections
from graphmrf.report.picture import Picture, draw
from graphmrf.report.rows import PredictionReport, TargetReport
from graphmrf.text import count


def render(report: PredictionReport) -> str:
    """The report as one HTML document that needs no network.

    Examples
    --------
    >>> import numpy as np
    >>> from graphmrf.graph import Graph
    >>> target = TargetReport("income", np.array([1.0, np.nan]), np.array([1.0, 2.0]), method="lp")
    >>> "Predicted income for 1 of 2 nodes." in render(
    ...     PredictionReport("Two wards", Graph.from_edges([0], [1]), ["a", "b"], (target,))
    ... )
    True
    """
    from plotly.offline import get_plotlyjs

    picture = draw(report)
    graph = report.graph
    return Template(_asset("page.html")).substitute(
        title=escape(report.title),
        subtitle=f"{count(graph.n_nodes, 'node')}, {count(graph.n_edges, 'edge')}",
        style=_asset("page.css"),
        tabs=sections.tabs(report),
        sections="\n".join(sections.target_section(report, i, picture) for i in range(len(report.targets))),
        about=sections.about(report),
        plotly=get_plotlyjs(),
        data=embedded(_data(report, picture)),
        script=_asset("page.js"),
    )


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
    >>> import numpy as np
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


def embedded(value: Any) -> str:
    r"""JSON that can stand inside a script element whatever strings it holds.

    Examples
    --------
    >>> embedded({"id": "</script>"})
    '{"id": "\\u003c/script\\u003e"}'
    """
    text = json.dumps(value, allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _data(report: PredictionReport, picture: Picture) -> dict[str, Any]:
    targets = [
        maps.target_arrays(target, picture) | {"figures": _figures(target, picture)} for target in report.targets
    ]
    return {"nodes": maps.shared_arrays(report, picture), "targets": targets}


def _figures(target: TargetReport, picture: Picture) -> dict[str, Any]:
    figures = {
        "value_map": maps.value_map(target, picture),
        "std_map": maps.std_map(target, picture),
        "comparison": charts.comparison(target),
        "alpha_curves": charts.alpha_curves(target),
        "distribution": charts.distribution(target),
        "coefficients": charts.coefficients(target.coefficients) if target.coefficients else None,
    }
    return {name: figure for name, figure in figures.items() if figure is not None}


def _asset(name: str) -> str:
    return files("graphmrf.report").joinpath("assets", name).read_text(encoding="utf-8")

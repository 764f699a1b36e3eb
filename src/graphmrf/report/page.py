"""The page: rows, figures and sentences as plain content, laid out by templates, and written in one piece."""

import json
import math
import os
import re
import zlib
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined, TemplateError
from markupsafe import Markup, escape

from graphmrf.comparison import FittedMethod, Prediction
from graphmrf.errors import InvalidInputError
from graphmrf.files import atomic, check_place
from graphmrf.report import charts, drawing, tables
from graphmrf.report.drawing import PredictionReport
from graphmrf.text import DASH, count, number, r2_range, smoothing_level

Content: TypeAlias = dict[str, Any]
"""What a page shows, as values of JSON: texts, tables, specifications of figures, arrays in base64."""

CONTENT_FORMAT = 1  # version of the content; pages are made again only from the same one
GLOSSARY = {
    "graph field": "What neighbours have in common that features do not explain: a smooth surface over the graph, "
    "estimated from the known values nearby.",
    "local effects": "Effects of features that change from one part of the graph to another, such as the price of a "
    "garden, which differs between districts.",
    "nonlinear effects": "Curves and interactions of features, which a straight line for each feature misses.",
    "residual propagation": "The errors of a method at known values are propagated along the edges and added "
    "to the predictions of their neighbours.",
    "label propagation": "Known values spread along the edges, as deviations from their mean that grow with the square "
    "root of a node's number of neighbours: this is no average, so predictions may exceed all known values. Features "
    "are not used.",
    "graph convolution": "A linear regression on features that were first averaged over the neighbourhood of every "
    "node.",
    "field regression": "The outcome is a sum of random parts: linear, nonlinear and local effects of features, a "
    "smooth field over the graph, and noise. Their sizes are estimated from the known values.",
    "smoothing level": "α controls how far a value spreads along the edges: 0 ignores them, close to 1 averages over "
    "wide neighbourhoods.",
    "cross-validation": "Known values are held out in turn, a fifth of them at a time by default, and predicted from "
    "the others.",
    "standard deviation": "The typical error of a prediction: about two of three true values are closer than that.",
}
"""Words of the page that are explained in place."""

_PERCENT = re.compile(r"(?<=\d) (?=%)")
_WORDS = re.compile("|".join(map(re.escape, GLOSSARY)), re.IGNORECASE)


def write_report(path: str | os.PathLike[str], report: PredictionReport) -> Path:
    """Write the report to an HTML file, all of it or nothing, and return its path; an existing file is replaced.

    Raises InvalidInputError if `path` is a directory or cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from graphmrf.graph import Graph
    >>> target = Prediction("income", np.array([1.0, np.nan]), np.array([1.0, 2.0]), method="lp")
    >>> report = PredictionReport("Two wards", Graph.from_edges([0], [1]), ["a", "b"], (target,))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(Path(folder) / "report.html", report).name
    'report.html'
    """
    return write_content(path, page_content(report))


def write_content(path: str | os.PathLike[str], content: Content) -> Path:
    """Write a page of this content, all of it or nothing; see `write_report`."""
    path = check_place(path)
    try:
        with atomic(path) as draft:
            draft.write_bytes(render_content(content).encode("utf-8", "xmlcharrefreplace"))
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be written ({error.strerror}); choose another place") from error
    return path


def render(report: PredictionReport) -> str:
    """The report as one HTML document that needs no network."""
    return render_content(page_content(report))


def page_content(report: PredictionReport) -> Content:
    """Content of a page for `render_content`, ready for JSON and of a size that does not grow with the graph."""
    drawn = drawing.draw_graph(report)
    sections, targets = zip(*(_target(report, target, drawn) for target in report.targets), strict=True)
    return {
        "format": CONTENT_FORMAT,
        "title": report.title,
        "subtitle": f"{count(report.graph.n_nodes, 'node')}, {count(report.graph.n_edges, 'edge')}",
        "sections": list(sections),
        "said": list(drawn.said),
        "areas": report.shapes is not None and not drawn.size,
        "cells": bool(drawn.size),
        "notes": list(report.notes),
        "command": report.command,
        "version": report.version,
        "data": {
            "nodes": drawing.shared_arrays(report, drawn),
            "features": drawing.feature_arrays(report, drawn),
            "targets": [{"position": k, **target} for k, target in enumerate(targets)],
        },
    }


def pack_content(content: Content) -> bytes:
    """A content, compressed, for `unpack_content`."""
    return zlib.compress(json.dumps(content, allow_nan=False).encode("utf-8", "surrogatepass"), level=6)


def unpack_content(packed: bytes, *, largest: int = 200_000_000) -> Content:
    """The content of a page that was packed, of so many bytes at most: ten times those of a large page.

    Raises InvalidInputError if it is damaged, or larger than any page.
    """
    try:
        whole = zlib.decompressobj().decompress(packed, largest)
        content = json.loads(whole.decode("utf-8", "surrogatepass"))
    except (zlib.error, ValueError, RecursionError) as error:
        raise InvalidInputError("the content of the page is damaged; predict again") from error
    if not isinstance(content, dict):
        raise InvalidInputError("the content of the page is damaged; predict again")
    return content


def render_content(content: Content) -> str:
    """The HTML document of a content.

    Only our own scripts and Plotly run in it, by their hashes: whatever a content holds, none of it is executed. Plotly
    is compressed, to two fifths; the page unpacks it while the first maps are drawn.

    Raises InvalidInputError if it is no content of this version.
    """
    from plotly.offline import get_plotlyjs

    if content.get("format") != CONTENT_FORMAT:
        raise InvalidInputError(
            f"a page needs content of format {CONTENT_FORMAT}, got {content.get('format')!r}; predict again"
        )
    plotly, ours = get_plotlyjs(), asset("map.js") + asset("page.js")
    parts = {
        "style": asset("page.css"),
        "plotly": b64encode(zlib.compress(plotly.encode(), level=9)).decode("ascii"),
        "script": ours,
        "policy": _policy(plotly, ours),
        "glossary": GLOSSARY,
    }
    try:
        return templates().get_template("prediction.html").render(**content, **parts)
    except (TemplateError, TypeError, KeyError, AttributeError, ValueError) as error:
        raise InvalidInputError(f"the content of the page is damaged ({error}); predict again") from error


def _policy(*scripts: str) -> str:
    """The scripts that may run, by the hashes of their text."""
    hashes = (b64encode(sha256(script.encode()).digest()).decode("ascii") for script in scripts)
    return " ".join(f"'sha256-{each}'" for each in hashes)


def templates() -> Environment:
    """The templates of pages: whatever they are given is escaped, and what they are not given is an error."""
    environment = Environment(
        loader=PackageLoader("graphmrf.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False}
    environment.filters["explained"] = with_glossary
    environment.filters["anchor"] = _anchor
    return environment


def with_glossary(text: str) -> Markup:
    """A text in which the first use of a word of the glossary links to its meaning; percentages do not wrap.

    Examples
    --------
    >>> print(with_glossary("<b> the graph field").partition(" data-about")[0])
    &lt;b&gt; the <a class="term" href="#word-graph-field"
    """
    linked: set[str] = set()
    text = _PERCENT.sub("\N{NO-BREAK SPACE}", text)
    parts, end = [], 0
    for found in _WORDS.finditer(text):
        word = found[0].lower()
        if word in linked:
            continue
        linked.add(word)
        parts += [escape(text[end : found.start()]), _linked(found[0])]
        end = found.end()
    return Markup("").join([*parts, escape(text[end:])])


def _linked(word: str) -> Markup:
    about = GLOSSARY[word.lower()]
    return Markup('<a class="term" href="#word-{}" data-about="{}">{}</a>').format(_anchor(word), about, word)


def _anchor(word: str) -> str:
    return word.lower().replace(" ", "-")


def asset(name: str) -> Markup:
    """A style sheet or script of ours, which is put into a page as it is."""
    return Markup(files("graphmrf.report").joinpath("assets", name).read_text(encoding="utf-8"))


def _target(report: PredictionReport, target: Prediction, drawn: drawing.GraphDrawing) -> tuple[Content, Content]:
    """The content of the template for one target, and the arrays for the scripts; a part without rows is None."""
    figures, maps = _present(_figures(target)), _present(drawing.maps(target))
    section = (_section if target.classes is None else _class_section)(report, target, drawn)
    shown = {
        "name": target.name,
        "headline": headline(target),
        "facts": {term: fact for term, fact in _facts(target).items() if fact != DASH},
        "hidden": f"{int(np.sum(target.predicted)):,}",
        "methods": tables.method_rows(target),
        "further": [list(each) for each in tables.further_tables(report, target)],
        "figures": list(figures),
        "maps": maps,
    }
    arrays = drawing.target_arrays(target, drawn) | {"maps": maps, "figures": figures}
    return _plain(shown | section), _plain(arrays)


def _plain(value: Content) -> Content:
    """Values of JSON only, so that what is shown at once and what is shown from a file are the same."""
    plain: Content = json.loads(json.dumps(value, allow_nan=False, default=str))
    return plain


def _present(parts: Content) -> Content:
    return {name: part for name, part in parts.items() if part is not None}


def _figures(target: Prediction) -> Content:
    rows, n_labels, curve = target.explanation.effects, int(target.observed.sum()), target.explanation.learning
    if target.classes is not None:
        return {"reliability": charts.reliability_chart(target), "comparison": charts.comparison_chart(target)}
    return {
        "accuracy": charts.accuracy_chart(target),
        "coverage": None if target.coverage is None else charts.coverage_chart(target.coverage, n_labels, target.level),
        "comparison": charts.comparison_chart(target),
        "effects": charts.effects_chart(rows) if rows and rows.values.any() else None,
        **charts.dependence_charts(target),
        "learning": None if curve is None else charts.learning_chart(curve, target.score_name),
        "alpha_curves": charts.alpha_chart(target),
        "distribution": charts.distribution_chart(target),
    }


def _section(report: PredictionReport, target: Prediction, drawn: drawing.GraphDrawing) -> Content:
    """The sentences and tables of a target of numbers."""
    rows, tested = target.explanation.effects, 0 if target.held_out is None else len(target.held_out)
    return {
        "kind": "numbers",
        "sentences": [each for each in _summary(target) if each],
        "level": f"{100 * target.level:g} %",
        "alpha": smoothing_level(target.alpha),
        "shares": tables.share_rows(target),
        "uncertain": tables.uncertain_nodes(report, target, drawn),
        "surprising": tables.surprising_nodes(report, target, drawn),
        "effects": tables.effect_rows(rows, standardised=True),
        "raw_effects": tables.effect_rows(rows),
        "own_features": target.chosen is None or not target.chosen.method.smooths,
        "transform": rows.transform if rows else "",
        "intercept": "" if rows is None or rows.intercept is None else number(rows.intercept),
        "tested": tested,
        "shown_labels": charts.shown_labels(tested),
        "exceedance": target.exceedance,
        "above": "" if target.above is None else f"{target.above:g}",
        "smoothed": bool((target.predicted & target.observed).any()),
        "has_field": bool(target.explanation.shares),
        "score_name": target.score_name,
    }


def _summary(target: Prediction) -> tuple[str, ...]:
    measured = (f"{_first_capital(each)}." for each in target.measured)
    return (accuracy(target), *measured, target.carries, coverage_sentence(target))


def _class_section(report: PredictionReport, target: Prediction, drawn: drawing.GraphDrawing) -> Content:
    """The sentences and tables of a target of classes."""
    return {
        "kind": "classes",
        "sentences": [each for each in (class_accuracy(target), most_confused(target)) if each],
        "classes": tables.class_rows(target),
        "confusion": tables.confusion_matrix(target),
        "unsure": tables.unsure_classes(report, target, drawn),
    }


def _facts(target: Prediction) -> dict[str, str]:
    row = target.chosen
    known = {
        "Predicted": count(int(np.sum(target.predicted)), "node"),
        "Observed": count(int(np.sum(target.observed)), "node"),
        "Method": target.method_name,
        "Smoothing level α": smoothing_level(target.alpha),
    }
    if target.classes is not None:
        return known | {"Right, held out": _percent(row) if row and target.is_checked else DASH}
    inside = DASH
    if target.coverage is not None:
        share = np.interp(target.level, target.coverage["level"], target.coverage["inside"])
        inside = f"{100 * share:.0f} % of known values"
    return known | {
        f"{_first_capital(target.score_name)} in cross-validation": _measured(row) if row else DASH,
        f"{100 * target.level:g} % intervals contain": inside,
    }


def _measured(row: FittedMethod) -> str:
    """Return an accuracy with its standard error."""
    return number(row.score, 3) + (f" ± {number(row.error, 3)}" if math.isfinite(row.error) else "")


def _percent(row: FittedMethod) -> str:
    return f"{100 * row.score:.0f} %" + (f" ± {100 * row.error:.0f} %" if math.isfinite(row.error) else "")


def _first_capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def headline(target: Prediction) -> str:
    """What was predicted, for how many nodes."""
    hidden = int(np.sum(target.predicted))
    return f"Predicted {target.name} for {hidden:,} of {count(len(target.observed), 'node')}."


def accuracy(target: Prediction) -> str:
    """Sentence on the accuracy to expect; empty when it was not measured."""
    row = target.chosen
    if row is None or not math.isfinite(row.score):
        return ""
    if target.predicts_nothing:
        return target.predicts_nothing
    about = f"{_first_capital(target.score_name)} is about {number(row.score, 2)}"
    within = r2_range(row.score, row.error)
    if within:
        return f"{about}, but uncertain ({within}): few or uneven observations."
    what = "variation" if target.score_name == "R²" else "deviance"
    return f"{about}: the prediction explains {100 * row.score:.0f} % of the {what} at nodes it has not seen."


def coverage_sentence(target: Prediction) -> str:
    """Sentence on the share of known values inside their out-of-fold interval; empty where that was not measured."""
    if target.coverage is None:
        return ""
    inside = float(np.interp(target.level, target.coverage["level"], target.coverage["inside"]))
    percent = f"{100 * target.level:g} %"
    way = "region by region" if target.in_regions else "fold by fold"
    return f"Held out {way}, {100 * inside:.0f} % of the known values lie inside their {percent} interval."


def class_accuracy(target: Prediction) -> str:
    """Sentence on the share of right classes, beside that of always the most frequent one; empty without a method."""
    row = target.chosen
    if row is None:
        return ""
    if not target.is_checked:
        return "Predictions are not checked, as every label is the only one of its class."
    known = target.codes[target.observed]
    often = int(np.bincount(known, minlength=len(target.classes)).argmax())
    share = 100 * float(np.mean(known == often))
    return (
        f"Expect {100 * row.score:.0f} % of the classes to be right; predicting “{target.classes[often]}” everywhere "
        f"would be right for {share:.0f} % of the known ones."
    )


def most_confused(target: Prediction) -> str:
    """Sentence on the two classes that are confused most; empty where none is."""
    truth, said = target.codes[target.observed], target.tested
    k = len(target.classes)
    mistakes = np.bincount(truth * k + said, minlength=k * k).reshape(k, k)
    np.fill_diagonal(mistakes, 0)
    if not (mistakes.any() and target.is_checked):
        return ""
    a, b = divmod(int(mistakes.argmax()), k)
    times = count(int(mistakes[a, b]), "time")
    return f"The most frequent error: “{target.classes[a]}” predicted as “{target.classes[b]}” ({times})."

"""The tables of a report as texts with sort keys, which the templates escape and lay out."""

import math
from collections.abc import Iterator, Sequence
from typing import NotRequired, TypeAlias, TypedDict

import numpy as np
from scipy.sparse import csr_array

from graphmrf.field import EFFECTS
from graphmrf.graph import Graph
from graphmrf.report.charts import LISTED_COEFFICIENTS, largest
from graphmrf.report.rows import (
    Effects,
    FeatureCoefficients,
    FurtherTable,
    MethodRow,
    PredictionReport,
    TargetReport,
    effect_name,
    method_name,
    method_uses,
)
from graphmrf.report.sampled_drawing import most_uncertain
from graphmrf.text import DASH, MINUS, decimals, number, smoothing_level

SMALLEST = -1e308
"""Where a missing number sorts: before all others, and still a number for JavaScript, which -inf in HTML is not."""

FAINT = 0.01
"""Part of a feature's largest effect up to which another is as good as none, by eye; doubled, faint columns go, too."""

TextCell: TypeAlias = tuple[str, float | str]
"""A text, and what it is sorted by: a number for a cell of numbers."""


class TextRow(TypedDict):
    """One line: its cells, and what the first of them is accompanied by."""

    cells: Sequence[TextCell]
    node: NotRequired[int]
    chosen: NotRequired[bool]
    about: NotRequired[str]
    width: NotRequired[str]
    quiet: NotRequired[bool]


class TextTable(TypedDict):
    """A table; a head that starts with # is over numbers, and `which` says what part of the rows is listed."""

    caption: str
    heads: Sequence[str]
    body: Sequence[TextRow]
    which: NotRequired[str]


def uncertain_nodes(report: PredictionReport, target: TargetReport) -> TextTable | None:
    """The predicted nodes with the largest standard deviations; None without error bars."""
    nodes = most_uncertain(target)
    if not len(nodes):
        return None
    interval = [] if target.lower is None else [f"#{100 * target.level:g} % interval"]
    heads = ["Node", "#Prediction", "#Std", *interval, "#Neighbours", "#Observed among them"]
    degree, known = _neighbours(report.graph, target)
    places = decimals(target.values)
    body: list[TextRow] = []
    for node in nodes:
        counts = [(f"{n:,}", float(n)) for n in (int(degree[node]), int(known[node]))]
        name = str(report.node_ids[node])
        body.append({"cells": [(name, name), *_moments(target, node, places), *counts], "node": int(node)})
    return {"caption": f"Most uncertain predictions of {target.name}", "heads": heads, "body": body}


def method_rows(target: TargetReport) -> TextTable | None:
    """Accuracy, spread over folds and smoothing level of every method, best first; None without rows."""
    if not target.comparison:
        return None
    rows = sorted(target.comparison, key=lambda row: -row.r2 if np.isfinite(row.r2) else np.inf)
    body = [_method_row(row, chosen=row.method == target.method) for row in rows]
    caption = f"Accuracy of each method for {target.name}"
    return {"caption": caption, "heads": ["Method", "#R²", "#Folds", "#α"], "body": body}


def coefficient_rows(rows: FeatureCoefficients | None) -> TextTable | None:
    """The largest coefficients by magnitude, each to three digits, because every feature has units of its own."""
    if rows is None or not len(rows.names):
        return None
    pairs = [(str(rows.names[i]), float(rows.values[i])) for i in largest(rows)]
    body: list[TextRow] = [
        {"cells": [(name, name), _numeric(value, decimals([-value, value]))]} for name, value in pairs
    ]
    which = _which(len(rows.names), "largest", "coefficients") or "The coefficients"
    return {"caption": "Coefficients", "heads": ["Feature", "#Coefficient"], "body": body, "which": which}


def effect_rows(rows: Effects | None) -> TextTable | None:
    """Coefficients with their standard errors, the clearest first; groups without any effect are left out."""
    groups = [] if rows is None else _groups_with_effect(rows)
    if rows is None or not groups:
        return None
    body: list[TextRow] = []
    for i in rows.order[:LISTED_COEFFICIENTS]:
        name = str(rows.names[i])
        body.append({"cells": [(name, name), *map(_estimate, rows.values[i, groups], rows.errors[i, groups])]})
    heads = ["Feature", *(f"#{rows.groups[k]}" for k in groups)]
    which = _which(len(rows.names), "clearest", "features") or "Linear effects"
    return {"caption": "Coefficients and their errors", "heads": heads, "body": body, "which": which}


def share_rows(target: TargetReport) -> TextTable | None:
    """Share of the variance of every kind of effect, as a number and a bar; None where shares are not known."""
    if not target.shares:
        return None
    body: list[TextRow] = []
    for name, share in target.shares.items():
        label = effect_name(name)
        cells: list[TextCell] = [(label[0].upper() + label[1:], label), (f"{100 * share:.0f} %", float(share))]
        about, width = EFFECTS.get(name, ("", ""))[1], f"{100 * share:.1f}"
        body.append({"cells": cells, "about": about, "width": width, "quiet": name == "noise"})
    caption = f"Share of the variation of {target.name} by kind of effect"
    return {"caption": caption, "heads": ["Effect", "#Share", ""], "body": body}


def further_rows(table: FurtherTable) -> TextTable | None:
    """A table of texts, sorted by the numbers they begin with; None without rows."""
    if not table.body:
        return None
    body: list[TextRow] = []
    for k, texts in enumerate(table.body):
        pairs = zip(table.heads, texts, strict=False)  # no text is under the head of bars
        row: TextRow = {"cells": [(text, _leading(text) if head.startswith("#") else text) for head, text in pairs]}
        if table.widths:
            row["width"] = f"{100 * table.widths[k]:.1f}"
        body.append(row)
    return {"caption": table.title, "heads": table.heads, "body": body}


def _leading(text: str) -> float:
    """The number a text begins with, as it is shown to people."""
    try:
        return float(text.split(" ")[0].replace(",", "").replace(MINUS, "-"))
    except ValueError:
        return SMALLEST


def _which(total: int, order: str, noun: str) -> str:
    """Say how many of the rows are listed; nothing where all are."""
    return f"The {LISTED_COEFFICIENTS} {order} of {total:,} {noun}" if total > LISTED_COEFFICIENTS else ""


def _groups_with_effect(rows: Effects) -> list[int]:
    """Groups of which at least one feature has more than `FAINT` of its largest effect, errors included."""
    size = np.abs(rows.values) + rows.errors
    counts = size > FAINT * size.max(axis=1, keepdims=True, initial=0.0)
    return [k for k in range(len(rows.groups)) if rows.values[:, k].any() and counts[:, k].any()]


def _estimate(value: float, error: float) -> TextCell:
    """An estimate to two digits of its error, because every feature has units of its own."""
    if not value:
        return DASH, 0.0
    digits = decimals([-error, error] if error > 0 else [0.0, value])
    places = None if digits is None else max(digits - 1, 0)
    return f"{number(value, places)} ± {number(error, places)}", _sortable(value)


def _moments(target: TargetReport, node: int, places: int | None) -> Iterator[TextCell]:
    """Prediction, standard deviation and, where there is one, the interval of a node."""
    assert target.std is not None
    yield _numeric(target.prediction[node], places)
    yield _numeric(target.std[node], places)
    if target.lower is not None and target.upper is not None:
        low, high = float(target.lower[node]), float(target.upper[node])
        yield f"{number(low, places)} to {number(high, places)}", _sortable(high - low)


def _method_row(row: MethodRow, *, chosen: bool) -> TextRow:
    folds = [fold for fold in row.fold_r2 if np.isfinite(fold)]
    spread = f"{number(min(folds), 2)} to {number(max(folds), 2)}" if folds else DASH
    cells: list[TextCell] = [
        (method_name(row.method), row.method),
        _numeric(row.r2, 3),
        (spread, max(folds) - min(folds) if folds else -1.0),
        (smoothing_level(row.alpha), -1.0 if row.alpha is None else row.alpha),
    ]
    uses = method_uses(row.method)
    return {"cells": cells, "chosen": chosen, "about": f"uses {uses}" if uses else ""}


def _numeric(value: float, places: int | None) -> TextCell:
    return number(value, places), _sortable(value)


def _sortable(value: float) -> float:
    return float(value) if math.isfinite(value) else SMALLEST


def _neighbours(graph: Graph, target: TargetReport) -> tuple[np.ndarray, np.ndarray]:
    pattern = csr_array((np.ones(len(graph.indices)), graph.indices, graph.indptr), shape=(graph.n_nodes,) * 2)
    return np.diff(graph.indptr), pattern @ target.observed

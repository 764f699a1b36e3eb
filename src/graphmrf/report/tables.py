"""The tables of a report as HTML; every string from the user is escaped."""

import math
from collections.abc import Sequence
from html import escape

import numpy as np
from scipy.sparse import csr_array

from graphmrf.graph import Graph
from graphmrf.report.charts import largest
from graphmrf.report.parts import Coefficients, Effects, MethodRow
from graphmrf.report.picture import most_uncertain
from graphmrf.report.prose import EFFECTS, effect_name, method_name, method_uses
from graphmrf.report.rows import PredictionReport, TargetReport
from graphmrf.text import DASH, decimals, number, smoothing_level

SMALLEST = -1e308  # where a missing number sorts

NEGLIGIBLE = 0.01
"""Part of a feature's largest effect up to which another of its effects is as good as none."""

Cell = tuple[str, float | str]


def table(columns: Sequence[str], rows: Sequence[str], *, caption: str) -> str:
    """A table; a column name that starts with # holds numbers, one without a name cannot be sorted by.

    Examples
    --------
    >>> "<th scope" in table(["#std"], ["<tr><td>1</td></tr>"], caption="One")
    True
    """
    heads = "".join(_head(name) if name else "<td></td>" for name in columns)
    kind = "scroll tall" if len(rows) > 12 else "scroll"
    return (
        f'<div class="{kind}" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f'<caption class="unseen">{escape(caption)}</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def uncertain_nodes(report: PredictionReport, target: TargetReport) -> str:
    """The predicted nodes with the largest standard deviations, empty without error bars."""
    nodes = most_uncertain(target)
    if not len(nodes):
        return ""
    columns = ["Node", "#Prediction", "#Std"]
    if target.lower is not None:
        columns.append(f"#{100 * target.level:g} % interval")
    columns += ["#Neighbours", "#Observed among them"]
    degree, known = _neighbours(report.graph, target)
    rows = [_uncertain_row(report, target, int(node), (int(degree[node]), int(known[node]))) for node in nodes]
    return table(columns, rows, caption=f"Most uncertain predictions of {target.name}")


def method_rows(target: TargetReport) -> str:
    """Accuracy, spread over folds and smoothing level of every method, best first; empty without rows."""
    if not target.comparison:
        return ""
    rows = sorted(target.comparison, key=lambda row: -row.r2 if np.isfinite(row.r2) else np.inf)
    columns = ["Method", "#R²", "#Folds", "#α"]
    body = [_method_row(row, chosen=row.method == target.method) for row in rows]
    return table(columns, body, caption=f"Accuracy of each method for {target.name}")


def coefficient_rows(rows: Coefficients) -> str:
    """The largest coefficients by magnitude, each to three digits, because every feature has units of its own."""
    pairs = [(str(rows.names[i]), float(rows.values[i])) for i in largest(rows)]
    body = [_row([(name, name), _numeric(value, decimals([-value, value]))]) for name, value in pairs]
    return table(["Feature", "#Coefficient"], body, caption="Coefficients")


def effect_rows(rows: Effects, limit: int) -> str:
    """Coefficients with their standard errors, the clearest first; groups without any effect are left out."""
    groups = _groups_with_effect(rows)
    body = [
        _row(
            [(str(rows.names[i]), str(rows.names[i])), *map(_estimate, rows.values[i, groups], rows.errors[i, groups])]
        )
        for i in rows.order[:limit]
    ]
    heads = [f"#{rows.groups[k]}" for k in groups]
    return table(["Feature", *heads], body, caption="Coefficients and their errors") if groups else ""


def _groups_with_effect(rows: Effects) -> list[int]:
    """Groups of which at least one feature has more than `NEGLIGIBLE` of its largest effect, errors included."""
    reach = np.abs(rows.values) + rows.errors
    counts = reach > NEGLIGIBLE * reach.max(axis=1, keepdims=True, initial=0.0)
    return [k for k in range(len(rows.groups)) if rows.values[:, k].any() and counts[:, k].any()]


def _estimate(value: float, error: float) -> Cell:
    """An estimate to two digits of its error, because every feature has units of its own."""
    if not value:
        return DASH, 0.0
    digits = decimals([-error, error] if error > 0 else [0.0, value])
    places = None if digits is None else max(digits - 1, 0)
    return f"{number(value, places)} ± {number(error, places)}", float(value)


def share_rows(target: TargetReport) -> str:
    """Share of the variance of every kind of effect, as a number and a bar."""
    body = []
    for name, share in target.shares.items():
        label = effect_name(name)
        about = f"<small>{escape(EFFECTS[name][1])}</small>" if name in EFFECTS else ""
        kind = "bar quiet" if name == "noise" else "bar"
        bar = f'<td class="bars"><i class="{kind}" style="width:{100 * share:.1f}%"></i></td>'
        row = _row([(label[0].upper() + label[1:], label), (f"{100 * share:.0f} %", share)], extra=about)
        body.append(row.replace("</tr>", f"{bar}</tr>"))
    return table(["Effect", "#Share", ""], body, caption=f"Share of the variation of {target.name} by kind of effect")


def _uncertain_row(report: PredictionReport, target: TargetReport, node: int, neighbours: tuple[int, int]) -> str:
    assert target.std is not None
    places = decimals(target.values)
    name = str(report.node_ids[node])
    cells = [(name, name), _numeric(target.prediction[node], places), _numeric(target.std[node], places)]
    if target.lower is not None and target.upper is not None:
        low, high = float(target.lower[node]), float(target.upper[node])
        cells.append((f"{number(low, places)} to {number(high, places)}", high - low))
    cells += [(f"{n:,}", n) for n in neighbours]
    return _row(cells, attributes=f' data-node="{node}"')


def _method_row(row: MethodRow, *, chosen: bool) -> str:
    folds = [fold for fold in row.fold_r2 if np.isfinite(fold)]
    spread = f"{number(min(folds), 2)} to {number(max(folds), 2)}" if folds else DASH
    cells: list[Cell] = [
        (method_name(row.method), row.method),
        _numeric(row.r2, 3),
        (spread, max(folds) - min(folds) if folds else -1.0),
        (smoothing_level(row.alpha), -1.0 if row.alpha is None else row.alpha),
    ]
    badge = '<span class="badge">chosen</span>' if chosen else ""
    uses = f"<small>uses {method_uses(row.method)}</small>" if method_uses(row.method) else ""
    return _row(cells, attributes=' class="chosen"' if chosen else "", extra=badge + uses)


def _row(cells: Sequence[Cell], *, attributes: str = "", extra: str = "") -> str:
    """A row of escaped cells; `extra` is HTML of our own that follows the name."""
    name, key = cells[0]
    tail = "".join(f"<td{_kind(key)}>{escape(text)}</td>" for text, key in cells[1:])
    return f'<tr{attributes}><th scope="row"{_kind(key)}>{escape(name)}{extra}</th>{tail}</tr>'


def _kind(key: float | str) -> str:
    if isinstance(key, str):
        return f' data-key="{escape(key)}"'
    return f' class="number" data-key="{float(key) if math.isfinite(key) else SMALLEST!r}"'


def _head(name: str) -> str:
    numeric = name.startswith("#")
    kind = ' class="number"' if numeric else ""
    label = escape(name.removeprefix("#"))
    return f'<th scope="col"{kind}><button type="button" class="sort">{label}<i aria-hidden="true"></i></button></th>'


def _numeric(value: float, places: int | None) -> Cell:
    return number(value, places), float(value)


def _neighbours(graph: Graph, target: TargetReport) -> tuple[np.ndarray, np.ndarray]:
    pattern = csr_array((np.ones(len(graph.indices)), graph.indices, graph.indptr), shape=(graph.n_nodes,) * 2)
    return np.diff(graph.indptr), pattern @ target.observed

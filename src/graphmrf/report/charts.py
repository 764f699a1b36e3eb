"""Drawings of the graph and charts, as Plotly specifications; colours are CSS variables that the page resolves."""

import json
from base64 import b64encode
from html import escape
from typing import Any, TypeAlias

import numpy as np

from graphmrf._typing import Floats
from graphmrf.report.rows import AlphaCurve, FeatureCoefficients, PredictionReport, TargetReport, method_name
from graphmrf.report.sampled_drawing import SampledDrawing
from graphmrf.text import decimals, smoothing_level

Spec: TypeAlias = dict[str, Any]

LISTED_COEFFICIENTS = 20
"""Coefficients in the chart and the table, by eye: what fits a screen; twice as many push the rest of the page away."""
BINS = 30
"""Bins of the histogram, by eye; with twice as many, the few dozen outcomes people have make a comb."""
CHART_HEIGHT = 360
"""Pixels, by eye: a third of a laptop's screen; twice as high, a chart and its sentence do not fit one screen."""
SVG_NODES = 2_000
"""Drawn nodes up to which the drawing is SVG, by eye; with twice as many, dragging stutters on a laptop. Then WebGL."""
SVG_EDGES = 6_000
"""The same for edges, which are one path and cheaper; WebGL draws coarser lines, so SVG is kept while it is smooth."""
MUTED_STYLES = (("dash", "square"), ("dot", "diamond"), ("dashdot", "triangle-up"), ("longdash", "cross"))
PLAIN_NUMBERS: Spec = {"exponentformat": "power", "minexponent": 5, "separatethousands": True}
AXIS: Spec = {
    **PLAIN_NUMBERS,
    "gridcolor": "var(--line)",
    "zerolinecolor": "var(--line)",
    "linecolor": "var(--line)",
    "fixedrange": True,
    "automargin": True,
}


def specification(traces: list[Any], layout: Spec) -> Spec:
    """A checked Plotly figure as plain JSON values, in the page's typography.

    Examples
    --------
    >>> specification([], {"height": 100})["layout"]["height"]
    100
    """
    import plotly.graph_objects as go

    base: Spec = {
        "template": {},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "var(--sans)", "size": 13, "color": "var(--ink-2)"},
        "hoverlabel": {
            "bgcolor": "var(--raised)",
            "bordercolor": "var(--line-2)",
            "font": {"family": "var(--sans)", "size": 13, "color": "var(--ink)"},
            "align": "left",
        },
        "margin": {"l": 8, "r": 16, "t": 8, "b": 8},
        "showlegend": False,
    }
    figure: Spec = json.loads(go.Figure(traces, base | layout).to_json())
    return figure


def shared_arrays(report: PredictionReport, drawing: SampledDrawing) -> Spec:
    """Identifiers, coordinates and edges of the drawn nodes, once for all drawings of the page."""
    return {
        "index": packed(drawing.nodes, "<i4"),
        "id": [str(report.node_ids[node]) for node in drawing.nodes],
        "x": packed(drawing.xy[:, 0], "<f8"),
        "y": packed(drawing.xy[:, 1], "<f8"),
        "from": packed(drawing.edges[:, 0], "<i4"),
        "to": packed(drawing.edges[:, 1], "<i4"),
    }


def target_arrays(target: TargetReport, drawing: SampledDrawing) -> Spec:
    """Values and standard deviations of the drawn nodes, and how many decimals to show."""
    nodes = drawing.nodes
    return {
        "value": packed(target.values[nodes], "<f8"),
        "std": None if target.std is None else packed(target.std[nodes], "<f8"),
        "observed": packed(target.observed[nodes], "u1"),
        "decimals": decimals(target.values),
    }


def value_map(target: TargetReport, drawing: SampledDrawing) -> Spec:
    """The graph coloured by value: observed where known, predicted elsewhere."""
    scale = _scale(target.values, "value", 7)
    bar = {"colorbar": _colorbar(), "showscale": True}
    return _graph(drawing, observed=scale, predicted=scale | bar)


def std_map(target: TargetReport, drawing: SampledDrawing) -> Spec | None:
    """The graph coloured by standard deviation; None for a method without error bars."""
    if target.std is None:
        return None
    scale = _scale(target.std[~target.observed], "std", 5)
    bar = {"colorbar": _colorbar(), "showscale": True}
    return _graph(drawing, observed={"color": "var(--quiet-2)"}, predicted=scale | bar)


def packed(values: Any, dtype: str) -> Spec:
    """An array as base64, so that a hundred thousand numbers stay small and exact.

    Examples
    --------
    >>> packed([1, 2], "<i4")
    {'dtype': 'i4', 'data': 'AQAAAAIAAAA='}
    """
    return {"dtype": dtype[-2:], "data": b64encode(np.asarray(values).astype(dtype).tobytes()).decode("ascii")}


def _scale(values: Floats, name: str, steps: int) -> Spec:
    """Colours from the 1st to the 99th percentile, so that a few extremes do not wash out the rest."""
    low, high = np.percentile(values, [1, 99]) if values.size else (0.0, 1.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    colors = [[i / (steps - 1), f"var(--{name}-{i})"] for i in range(steps)]
    return {"cmin": float(low), "cmax": float(high), "colorscale": colors}


def _colorbar() -> Spec:
    return {
        "orientation": "h",
        "thickness": 10,
        "len": 0.7,
        "y": 0,
        "yanchor": "top",
        "outlinewidth": 0,
        "ticks": "",
        **PLAIN_NUMBERS,
        "tickfont": {"color": "var(--ink-2)", "size": 12},
    }


def _graph(drawing: SampledDrawing, *, observed: Spec, predicted: Spec) -> Spec:
    """Edges below, observed nodes as squares, predicted nodes as circles; the page fills in the shared arrays."""
    import plotly.graph_objects as go

    nodes = go.Scatter if len(drawing.nodes) <= SVG_NODES else go.Scattergl
    lines = go.Scatter if len(drawing.edges) <= SVG_EDGES else go.Scattergl
    size = float(np.clip(190 / np.sqrt(len(drawing.nodes)), 2.6, 13))
    outline = {"width": 0.7 if nodes is go.Scatter else 0, "color": "var(--paper)"}
    style = {"mode": "markers", "hoverinfo": "text"}
    small, large = {"size": 0.8 * size, "symbol": "square"}, {"size": size, "symbol": "circle"}
    width = float(np.clip(60 / np.sqrt(len(drawing.edges) + 1), 0.4, 1.2))
    traces = [
        lines(name="edges", mode="lines", hoverinfo="skip", line={"color": "var(--edge)", "width": width}),
        nodes(name="observed", marker=small | observed | {"line": outline}, **style),
        nodes(name="predicted", marker=large | predicted | {"line": outline}, **style),
    ]
    hidden = {"visible": False, "automargin": False}
    y = hidden | {"scaleanchor": "x"}
    margin = {"l": 4, "r": 4, "t": 4, "b": 44}
    return specification(traces, {"xaxis": hidden, "yaxis": y, "margin": margin, "dragmode": "pan"})


def comparison_chart(target: TargetReport) -> Spec | None:
    """Accuracy of every method as bars with a dot for each fold; None without rows."""
    import plotly.graph_objects as go

    rows = sorted((row for row in target.comparison if np.isfinite(row.r2)), key=lambda row: row.r2)
    if not rows:
        return None
    colors = ["var(--accent)" if row.method == target.method else "var(--quiet)" for row in rows]
    bars = go.Bar(
        x=[row.r2 for row in rows],
        orientation="h",
        width=0.36,
        marker={"color": colors, "line": {"width": 0}},
        hovertemplate="R² %{x:.3f}<extra></extra>",
    )
    folds = [(fold, i) for i, row in enumerate(rows) for fold in row.fold_r2 if np.isfinite(fold)]
    dots = go.Scatter(
        x=[fold for fold, _ in folds],
        y=[i for _, i in folds],
        mode="markers",
        marker={"size": 7, "color": "var(--paper)", "line": {"width": 1.3, "color": "var(--ink)"}, "opacity": 0.9},
        hovertemplate="one fold<br>R² %{x:.3f}<extra></extra>",
    )
    axis = AXIS | {"title": _title("R² in cross-validation"), "range": _r2_range([*(row.r2 for row in rows), *dots.x])}
    names = [_above(i, method_name(row.method), bold=row.method == target.method) for i, row in enumerate(rows)]
    y = AXIS | {"visible": False, "range": [-0.4, len(rows) - 0.2]}
    return specification([bars, dots], {"xaxis": axis, "yaxis": y, "annotations": names, "height": 60 + 58 * len(rows)})


def _above(bar: int, name: str, *, bold: bool) -> Spec:
    """A name above its bar, where even a phone has room for it."""
    text = f"<b>{_label(name, 60)}</b>" if bold else _label(name, 60)
    place = {"x": 0, "xref": "paper", "xanchor": "left", "y": bar + 0.2, "yanchor": "bottom", "showarrow": False}
    return place | {"text": text, "xshift": -3, "font": {"color": "var(--ink)" if bold else "var(--ink-2)", "size": 13}}


def alpha_chart(target: TargetReport) -> Spec | None:
    """Accuracy against the smoothing level, evenly spaced levels; None when no level was searched."""
    if not target.curves:
        return None
    levels = np.unique(np.concatenate([curve.alphas for curve in target.curves]))
    ordered = sorted(target.curves, key=lambda curve: curve.method == target.method)
    traces = [trace for i, curve in enumerate(ordered) for trace in _curve(curve, levels, target.method, i)]
    ticks = list(range(len(levels))) if len(levels) <= 8 else [*range(0, len(levels) - 2, 2), len(levels) - 1]
    axis = AXIS | {
        "title": _title("smoothing level α"),
        "tickvals": ticks,
        "ticktext": [smoothing_level(levels[i]) for i in ticks],
        "tickangle": 0,
        "showgrid": False,
        "range": [-0.4, len(levels) - 0.6],
    }
    values = np.concatenate([np.ravel(curve.mean_r2) for curve in target.curves])
    accuracy = AXIS | {"title": _title("R²"), "range": _r2_range(values, start=None, headroom=0.2)}
    legend = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "traceorder": "reversed"}
    layout = {"xaxis": axis, "yaxis": accuracy, "legend": legend, "showlegend": True, "height": CHART_HEIGHT}
    return specification(traces, layout | {"hovermode": "closest"})


def _curve(curve: AlphaCurve, levels: Floats, method: str, position: int) -> list[Any]:
    import plotly.graph_objects as go

    chosen = curve.method == method
    color = "var(--accent)" if chosen else "var(--ink-3)"
    dash, symbol = ("solid", "circle") if chosen else MUTED_STYLES[position % len(MUTED_STYLES)]
    x = np.searchsorted(levels, curve.alphas)
    line = go.Scatter(
        x=x,
        y=curve.mean_r2,
        mode="lines+markers",
        name=_label(method_name(curve.method), 60),
        line={"color": color, "width": 3 if chosen else 1.6, "dash": dash},
        marker={"size": 6 if chosen else 5, "symbol": symbol, "color": color},
        customdata=[smoothing_level(alpha) for alpha in curve.alphas],
        hovertemplate="α = %{customdata}<br>R² %{y:.3f}<extra>%{fullData.name}</extra>",
    )
    mark = _chosen_mark(curve, levels, color, large=chosen)
    return [*(_band(curve, x) if chosen else []), line, *mark]


def _band(curve: AlphaCurve, x: Any) -> list[Any]:
    import plotly.graph_objects as go

    if curve.fold_r2.shape[1] < 2:
        return []
    outline = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False}
    low = go.Scatter(x=x, y=curve.fold_r2.min(axis=1), **outline)
    high = go.Scatter(x=x, y=curve.fold_r2.max(axis=1), fill="tonexty", fillcolor="var(--accent-wash)", **outline)
    return [low, high]


def _chosen_mark(curve: AlphaCurve, levels: Floats, color: str, *, large: bool) -> list[Any]:
    import plotly.graph_objects as go

    at = np.flatnonzero(np.isclose(curve.alphas, curve.chosen))
    if not at.size:
        return []
    marker = {
        "size": 16 if large else 11,
        "symbol": "circle-open",
        "color": color,
        "line": {"width": 2.5 if large else 1.5, "color": color},
    }
    x, y = np.searchsorted(levels, curve.alphas[at[:1]]), curve.mean_r2[at[:1]]
    label = [f"<b>chosen: α = {smoothing_level(curve.chosen)}</b>"] if large else None
    return [
        go.Scatter(
            x=x,
            y=y,
            mode="markers+text" if large else "markers",
            text=label,
            textposition="top center" if x[0] < len(levels) - 2 else "top left",
            textfont={"color": "var(--accent)", "size": 13},
            marker=marker,
            hoverinfo="skip",
            showlegend=False,
            cliponaxis=False,
        )
    ]


def _bin_edges(values: Floats) -> Floats:
    """Return the edges of common bins, also for values between which float64 has no room for them.

    Examples
    --------
    >>> _bin_edges(np.array([2.0**60, 2.0**60 + 256]))[[0, -1]] - 2.0**60
    array([-30720.,  30976.])
    """
    low, high = float(values.min()), float(values.max())
    room = BINS * np.spacing(max(abs(low), abs(high)))
    if high - low < 2 * room:
        room = max(4 * room, 0.5 * (low == high))
        low, high = low - room, high + room
    return np.linspace(low, high, BINS + 1)


def distribution_chart(target: TargetReport) -> Spec:
    """Shares of observed and of predicted values over common bins."""
    import plotly.graph_objects as go

    edges = _bin_edges(target.values)
    centres, width = (edges[1:] + edges[:-1]) / 2, edges[1] - edges[0]
    groups = (
        ("observed", target.y[target.observed], "var(--quiet)"),
        ("predicted", target.prediction[~target.observed], "var(--accent)"),
    )
    bars = [
        go.Bar(
            x=centres,
            y=100 * np.histogram(values, edges)[0] / max(len(values), 1),
            width=width,
            name=f"{name} ({len(values):,})",
            marker={"color": color, "line": {"width": 0}},
            opacity=0.6 if name == "predicted" else 1.0,
            hovertemplate="%{x:,.4g}: %{y:.1f} %<extra>%{fullData.name}</extra>",
        )
        for name, values, color in groups
        if len(values)
    ]
    legend = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"}
    x, y = AXIS | {"title": _title(_label(target.name, 40)), "showgrid": False}, AXIS | {"ticksuffix": " %"}
    layout = {
        "barmode": "overlay",
        "xaxis": x,
        "yaxis": y,
        "legend": legend,
        "showlegend": True,
        "height": CHART_HEIGHT,
    }
    return specification(bars, layout)


def coefficient_chart(rows: FeatureCoefficients) -> Spec | None:
    """The largest coefficients as bars to the left and right of zero; None without any."""
    import plotly.graph_objects as go

    order = largest(rows)[::-1]
    if not len(order):
        return None
    values = rows.values[order]
    bars = go.Bar(
        x=values,
        orientation="h",
        width=0.62,
        marker={"color": ["var(--accent)" if value >= 0 else "var(--warm)" for value in values], "line": {"width": 0}},
        customdata=[escape(str(rows.names[i])) for i in order],
        hovertemplate="%{customdata}<br>%{x:.4g}<extra></extra>",
    )
    names = _names([str(rows.names[i]) for i in order])
    return specification([bars], {"xaxis": AXIS, "yaxis": names, "height": 60 + 26 * len(order)})


def largest(rows: FeatureCoefficients) -> Any:
    """Positions of the coefficients that are listed, largest magnitude first.

    Examples
    --------
    >>> largest(FeatureCoefficients(("a", "b"), np.array([1.0, -2.0])))
    array([1, 0])
    """
    return np.argsort(-np.abs(rows.values), kind="stable")[:LISTED_COEFFICIENTS]


def _names(names: list[str]) -> Spec:
    """A vertical axis of names, one for each bar; numbered underneath because names may repeat."""
    ticks = {"tickvals": list(range(len(names))), "ticktext": [_label(name) for name in names]}
    return AXIS | ticks | {"showgrid": False, "zeroline": False, "ticklabelstandoff": 6}


def _title(text: str) -> Spec:
    return {"text": text, "font": {"size": 13}, "standoff": 8}


def _label(text: str, limit: int = 24) -> str:
    """Text that Plotly shows literally: its own tags escaped, long names cut."""
    return escape(text if len(text) <= limit else text[: limit - 1] + "…", quote=False)


def _r2_range(values: Any, *, start: float | None = 0.0, headroom: float = 0.08) -> list[float]:
    """Axis limits: from `start` (or just below the smallest) to just above the largest, never below -1."""
    finite = np.asarray([value for value in values if np.isfinite(value)] or [0.0, 1.0])
    low, high = float(finite.min()), min(float(finite.max()), 1.0)
    low = max(low if start is None else min(low, start), -1.0)
    span = max(high - low, 0.05)
    return [max(low - (0 if low == start else 0.08 * span), -1.0), max(high + headroom * span, low + span)]

"""Charts as Plotly specifications; colours are CSS variables that the page resolves."""

import math
from html import escape
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from graphmrf._typing import Floats
from graphmrf.comparison import Effects, FittedMethod, Prediction
from graphmrf.text import smoothing_level

Spec: TypeAlias = dict[str, Any]

LISTED_COEFFICIENTS = 20  # coefficients in the chart and the table: what fits a screen
SHOWN_LABELS = 2_000  # dots of observed against predicted values: beyond, a random part of the labels
# Where axes of R² end: below, a method is far worse than the mean; what is there is drawn at the end.
WORST_R2 = -1.0
MUTED_STYLES = (("dash", "square"), ("dot", "diamond"), ("dashdot", "triangle-up"), ("longdash", "cross"))
LEGEND: Spec = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"}
AXIS: Spec = {
    "exponentformat": "power",
    "minexponent": 5,
    "separatethousands": True,
    "gridcolor": "var(--line)",
    "zerolinecolor": "var(--line)",
    "linecolor": "var(--line)",
    "fixedrange": True,
    "automargin": True,
}


def scatter(**options: Any) -> Spec:
    """Lines or markers of Plotly."""
    return {"type": "scatter", **options}


def bars(**options: Any) -> Spec:
    """Bars of Plotly."""
    return {"type": "bar", **options}


def _axis(title: str = "", **options: Any) -> Spec:
    """An axis with a title."""
    words = {"title": {"text": title, "font": {"size": 13}, "standoff": 8}} if title else {}
    return AXIS | words | options


def _lines(x: Any, y: Any, color: str = "var(--accent)", *, markers: bool = False, **options: Any) -> Spec:
    """A line, with markers or without."""
    mode = "lines+markers" if markers else "lines"
    return scatter(x=x, y=y, mode=mode, line={"color": color, "width": 2.5}, **options)


def _diagonal(ends: list[float]) -> Spec:
    """The dotted line on which both axes agree."""
    return scatter(x=ends, y=ends, mode="lines", line={"color": "var(--ink-3)", "dash": "dot"}, hoverinfo="skip")


def specification(traces: list[Spec], layout: Spec) -> Spec:
    """A figure of Plotly as plain JSON values, in the page's typography."""
    base: Spec = {
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
        "height": 360,
    }
    figure: Spec = _plain({"data": traces, "layout": base | layout})
    return figure


def _plain(value: Any) -> Any:
    """Arrays and tables as lists, numbers as those of Python, what is not finite as None."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, np.ndarray | pd.Series | pd.Index):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def comparison_chart(target: Prediction) -> Spec | None:
    """Accuracy of every method as bars with a dot for each fold; None without rows."""
    rows = sorted((row for row in target.methods if np.isfinite(row.score)), key=lambda row: row.score)
    if not rows:
        return None
    name = "right" if target.classes is not None else target.score_name
    colors = ["var(--accent)" if row.method.key == target.method else "var(--quiet)" for row in rows]
    heights = bars(
        x=[max(row.score, WORST_R2) for row in rows],
        orientation="h",
        width=0.36,
        marker={"color": colors, "line": {"width": 0}},
        customdata=[row.score for row in rows],
        hovertemplate=name + " %{customdata:.3f}<extra></extra>",
    )
    shown = [value for row in rows for value in (row.score, *row.fold_scores)]
    title = "share of right classes, held out" if name == "right" else f"{name} in cross-validation"
    axis = _axis(title, range=_r2_range(shown))
    names = [_above(i, row.method.name, bold=row.method.key == target.method) for i, row in enumerate(rows)]
    layout = {"xaxis": axis, "yaxis": _axis(visible=False, range=[-0.4, len(rows) - 0.2]), "annotations": names}
    return specification([heights, _fold_dots(rows)], layout | {"height": 60 + 58 * len(rows)})


def _fold_dots(rows: list[FittedMethod]) -> Spec:
    """A dot for each fold, at the edge where the axis ends before it."""
    folds = [(fold, i) for i, row in enumerate(rows) for fold in row.fold_scores if np.isfinite(fold)]
    outline = {"width": 1.3, "color": "var(--ink)"}
    return scatter(
        x=[max(fold, WORST_R2) for fold, _ in folds],
        y=[i for _, i in folds],
        mode="markers",
        marker={"size": 7, "color": "var(--paper)", "line": outline, "opacity": 0.9},
        customdata=[fold for fold, _ in folds],
        hovertemplate="one fold<br>%{customdata:.3f}<extra></extra>",
    )


def _above(bar: int, name: str, *, bold: bool) -> Spec:
    """A name above its bar, where even a phone has room for it."""
    text = f"<b>{_label(name, 60)}</b>" if bold else _label(name, 60)
    place = {"x": 0, "xref": "paper", "xanchor": "left", "y": bar + 0.2, "yanchor": "bottom", "showarrow": False}
    return place | {"text": text, "xshift": -3, "font": {"color": "var(--ink)" if bold else "var(--ink-2)", "size": 13}}


def alpha_chart(target: Prediction) -> Spec | None:
    """Accuracy against the smoothing level, evenly spaced levels; None when no level was searched."""
    curves = _searched(target)
    if not curves:
        return None
    levels = np.unique(np.concatenate([curve.search["alpha"] for curve in curves]))
    ordered = sorted(curves, key=lambda curve: curve.method.key == target.method)
    traces = [trace for i, curve in enumerate(ordered) for trace in _curve(curve, levels, target.method, i)]
    ticks = list(range(len(levels))) if len(levels) <= 8 else [*range(0, len(levels) - 2, 2), len(levels) - 1]
    texts = {"tickvals": ticks, "ticktext": [smoothing_level(levels[i]) for i in ticks], "tickangle": 0}
    axis = _axis("smoothing level α", showgrid=False, range=[-0.4, len(levels) - 0.6], **texts)
    values = np.concatenate([np.ravel(curve.search["mean_r2"]) for curve in curves])
    accuracy = _axis(target.score_name, range=_r2_range(values, start=None, headroom=0.2))
    legend = {"legend": LEGEND | {"traceorder": "reversed"}, "showlegend": True, "hovermode": "closest"}
    return specification(traces, {"xaxis": axis, "yaxis": accuracy} | legend)


def _searched(target: Prediction) -> list[FittedMethod]:
    """The methods for which several levels were tried."""
    return [each for each in target.methods if each.search and len(each.search["alpha"]) > 1]


def _curve(curve: FittedMethod, levels: Floats, method: str, position: int) -> list[Any]:
    """The accuracy of a method at its levels, the one that was chosen circled; with a band of folds if it is used."""
    used = curve.method.key == method
    color = "var(--accent)" if used else "var(--ink-3)"
    dash, symbol = ("solid", "circle") if used else MUTED_STYLES[position % len(MUTED_STYLES)]
    alpha, r2, folds = (curve.search[name] for name in ("alpha", "mean_r2", "fold_r2"))
    x, chosen = np.searchsorted(levels, alpha), np.isclose(alpha, curve.alpha or 0.0)
    line = scatter(
        x=x,
        y=np.maximum(r2, WORST_R2),
        mode="lines+markers+text",
        name=_label(curve.method.name, 60),
        line={"color": color, "width": 3 if used else 1.6, "dash": dash},
        marker={
            "size": np.where(chosen, 16 if used else 11, 6 if used else 5),
            "symbol": np.where(chosen, "circle-open", symbol),
            "color": color,
            "line": {"width": np.where(chosen, 2.5 if used else 1.5, 0), "color": color},
        },
        text=np.where(chosen & used, f"<b>chosen: α = {smoothing_level(curve.alpha)}</b>", ""),
        textposition=np.where(x < len(levels) - 2, "top center", "top left"),
        textfont={"color": color, "size": 13},
        cliponaxis=False,
        customdata=list(zip(map(smoothing_level, alpha), r2, strict=True)),
        hovertemplate="α = %{customdata[0]}<br>R² %{customdata[1]:.3f}<extra>%{fullData.name}</extra>",
    )
    if not used or folds.shape[1] < 2:
        return [line]
    return [*_ribbon(x, np.maximum(folds.min(axis=1), WORST_R2), folds.max(axis=1), "var(--accent-wash)"), line]


def _bin_edges(values: Floats, bins: int = 30) -> Floats:
    """Return the edges of common bins, also for values between which float64 has no room for them.

    Examples
    --------
    >>> _bin_edges(np.array([2.0**60, 2.0**60 + 256]))[[0, -1]] - 2.0**60
    array([-30720.,  30976.])
    """
    low, high = float(values.min()), float(values.max())
    room = bins * np.spacing(max(abs(low), abs(high)))
    if high - low < 2 * room:
        room = max(4 * room, 0.5 * (low == high))
        low, high = low - room, high + room
    return np.linspace(low, high, bins + 1)


def distribution_chart(target: Prediction) -> Spec:
    """Shares of observed and of predicted values over common bins."""
    edges = _bin_edges(target.values)
    centres, width = (edges[1:] + edges[:-1]) / 2, edges[1] - edges[0]
    groups = (
        ("observed", target.y[target.observed], "var(--quiet)"),
        ("predicted", target.value[target.predicted], "var(--accent)"),
    )
    heights = [
        bars(
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
    axes = {"xaxis": _axis(_label(target.name, 40), showgrid=False), "yaxis": _axis(ticksuffix=" %")}
    return specification(heights, axes | {"barmode": "overlay", "legend": LEGEND, "showlegend": True})


def accuracy_chart(target: Prediction) -> Spec | None:
    """Observed values against predictions of them without their fold; None where nothing was held out."""
    if target.held_out is None:
        return None
    rows = target.held_out[np.isfinite(target.held_out["out_of_fold"])]
    if rows.empty:
        return None
    rows = rows.sample(SHOWN_LABELS, random_state=0) if len(rows) > SHOWN_LABELS else rows
    y = target.y[rows["node"].to_numpy()]
    ends = _padded([*y, *rows["out_of_fold"]])
    dots = scatter(
        x=rows["out_of_fold"],
        y=y,
        mode="markers",
        marker={"size": 7 if len(rows) < 300 else 5, "color": "var(--accent)", "opacity": 0.55},
        hovertemplate="observed %{y:,.4g}<br>predicted %{x:,.4g}<extra></extra>",
    )
    x, y = _axis("out-of-fold prediction", range=ends), _axis(_label(f"observed {target.name}", 40), range=ends)
    return specification([_diagonal(ends), dots], {"xaxis": x, "yaxis": y})


def shown_labels(n_labels: int) -> str:
    """Which of the known values are drawn, in words."""
    few = n_labels <= SHOWN_LABELS
    return "Every known value" if few else f"{SHOWN_LABELS:,} of the {n_labels:,} known values, drawn at random"


def _padded(values: Any) -> list[float]:
    low, high = float(np.min(values)), float(np.max(values))
    room = 0.04 * (high - low) or 0.5
    return [low - room, high + room]


def coverage_chart(rows: pd.DataFrame, n_labels: int, level: float) -> Spec:
    """Share of left-out labels inside intervals against the probability the intervals claim, with a band of chance."""
    claimed, inside = rows["level"].to_numpy(), rows["inside"].to_numpy()
    chance = 1.645 * np.sqrt(claimed * (1 - claimed) / max(n_labels, 1))
    low, high = (100 * np.clip(claimed + side * chance, 0.0, 1.0) for side in (-1.0, 1.0))
    band = _ribbon(100 * claimed, low, high, "var(--quiet-2)")
    curve = _lines(
        100 * claimed,
        100 * inside,
        markers=True,
        marker={"size": [13 if np.isclose(each, level) else 6 for each in claimed], "color": "var(--accent)"},
        hovertemplate="intervals of %{x:.0f} %<br>contain %{y:.1f} % of the values<extra></extra>",
    )
    return _percent_chart([*band, _diagonal([0.0, 100.0]), curve], "probability of the interval", "known values inside")


def _percent_chart(traces: list[Any], x: str, y: str, *, low: float = 0.0) -> Spec:
    axes = {name: _axis(title, ticksuffix=" %", range=[low, 101]) for name, title in (("xaxis", x), ("yaxis", y))}
    return specification(traces, axes)


def _ribbon(x: Any, low: Any, high: Any, color: str, **axes: str) -> list[Any]:
    plain = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False, **axes}
    return [scatter(x=x, y=low, **plain), scatter(x=x, y=high, fill="tonexty", fillcolor=color, **plain)]


def reliability_chart(target: Prediction) -> Spec | None:
    """Share of right classes against the probability they were given, of labels that were held out, by bins."""
    sure = target.held_out_probability[np.arange(len(target.tested)), target.tested]
    if not (len(sure) and target.is_checked):
        return None
    right = target.tested == target.codes[target.observed]
    bins = np.array_split(np.argsort(sure, kind="stable"), int(np.clip(len(sure) // 20, 1, 10)))
    x, y = (np.array([100 * values[each].mean() for each in bins]) for values in (sure, right))
    error = 100 * np.array([1.645 * np.sqrt(sure[each].mean() * (1 - sure[each].mean()) / len(each)) for each in bins])
    low = max(min(float(x.min()), float(y.min())) - 8, 0.0)
    dots = _lines(
        x,
        y,
        markers=True,
        error_y={"array": error, "color": "var(--quiet)", "thickness": 1.5},
        marker={"size": 8, "color": "var(--accent)"},
        customdata=[len(each) for each in bins],
        hovertemplate="given %{x:.0f} %: %{y:.0f} % right<br>%{customdata} labels<extra></extra>",
    )
    return _percent_chart(
        [_diagonal([0.0, 100.0]), dots], "probability given to the class", "right among them", low=low
    )


def learning_chart(rows: pd.DataFrame, score: str = "R²") -> Spec:
    """Expected accuracy with more labels, with its band; labels on a logarithmic scale."""
    x = rows["n_labels"].to_numpy()
    line = _lines(
        x,
        rows["expected_r2"],
        markers=True,
        marker={"size": [13, *[6] * (len(x) - 1)], "color": "var(--accent)"},
        customdata=rows[["lower", "upper"]].to_numpy(),
        hovertemplate="%{x:,} labels<br>"
        + score
        + " %{y:.3f} (%{customdata[0]:.2f} to %{customdata[1]:.2f})<extra></extra>",
    )
    band = _ribbon(x, rows["lower"], rows["upper"], "var(--accent-wash)")
    labels = _axis("known values", type="log", tickvals=x, ticktext=[f"{n:,}" for n in x])
    values = rows[["expected_r2", "lower", "upper"]].to_numpy().ravel()
    accuracy = _axis(f"expected {score}", range=_r2_range(values, start=None))
    return specification([*band, line], {"xaxis": labels, "yaxis": accuracy})


def dependence_charts(target: Prediction, *, most: int = 6) -> dict[str, Spec]:
    """The prediction against one feature at a time, all on one scale; those first that bend or rise most."""
    curves = target.explanation.dependence
    if curves is None or curves.empty:
        return {}
    reach = curves.groupby("feature", sort=False)["mean"].agg(np.ptp).sort_values(ascending=False)
    shown = curves[curves["feature"].isin(reach.index[:most])]
    ends, found = _padded(shown["mean"]), {}
    for k, name in enumerate(reach.index[:most]):
        rows = shown[shown["feature"] == name]
        line = _lines(rows["x"], rows["mean"], hovertemplate="%{x:,.4g}: %{y:,.4g}<extra></extra>")
        axes = {"xaxis": _axis(_label(str(name), 40), showgrid=False, nticks=6), "yaxis": _axis(range=ends, nticks=6)}
        found[f"dependence-{k}"] = specification([line], axes | {"height": 220})
    return found


def effects_chart(rows: Effects) -> Spec:
    """Effects of a standard deviation of each feature, a dot for each."""
    order = rows.order[:LISTED_COEFFICIENTS][::-1]
    dots = scatter(
        x=rows.standardised[order],
        y=np.arange(len(order)),
        mode="markers",
        marker={"size": 9, "color": "var(--accent)"},
        customdata=[escape(str(rows.names[i])) for i in order],
        hovertemplate="%{customdata}<br>%{x:.4g}<extra></extra>",
    )
    names = [_label(str(rows.names[i])) for i in order]  # numbered on the axis, because names may repeat
    y = _axis(tickvals=[*range(len(names))], ticktext=names, showgrid=False, zeroline=False, ticklabelstandoff=6)
    axes = {"xaxis": _axis(zerolinecolor="var(--ink-3)"), "yaxis": y}
    return specification([dots], axes | {"height": 90 + 30 * len(order)})


def _label(text: str, limit: int = 24) -> str:
    """Text that Plotly shows literally: its own tags escaped, long names cut."""
    return escape(text if len(text) <= limit else text[: limit - 1] + "…", quote=False)


def _r2_range(values: Any, *, start: float | None = 0.0, headroom: float = 0.08) -> list[float]:
    """Axis limits: from `start` (or just below the smallest) to just above the largest, never below `WORST_R2`."""
    finite = np.asarray([value for value in values if np.isfinite(value)] or [0.0, 1.0])
    low, high = float(finite.min()), min(float(finite.max()), 1.0)
    low = max(low if start is None else min(low, start), WORST_R2)
    span = max(high - low, 0.05)
    below = 0.0 if low == start else 0.08 * span if low > WORST_R2 else 0.02
    return [low - below, max(high + headroom * span, low + span)]

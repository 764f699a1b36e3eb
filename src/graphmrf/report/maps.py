"""The two drawings of the graph, coloured by value and by uncertainty, and the arrays that they share."""

from base64 import b64encode
from typing import Any

import numpy as np

from graphmrf._typing import Floats
from graphmrf.report.charts import PLAIN_NUMBERS, Spec, specification
from graphmrf.report.picture import Picture
from graphmrf.report.rows import PredictionReport, TargetReport
from graphmrf.text import decimals

SVG_NODES = 2_000
SVG_EDGES = 6_000


def shared_arrays(report: PredictionReport, picture: Picture) -> Spec:
    """Identifiers, coordinates and edges of the drawn nodes, once for all drawings of the page."""
    return {
        "index": packed(picture.nodes, "<i4"),
        "id": [str(report.node_ids[node]) for node in picture.nodes],
        "x": packed(picture.xy[:, 0], "<f8"),
        "y": packed(picture.xy[:, 1], "<f8"),
        "from": packed(picture.edges[:, 0], "<i4"),
        "to": packed(picture.edges[:, 1], "<i4"),
    }


def target_arrays(target: TargetReport, picture: Picture) -> Spec:
    """Values and standard deviations of the drawn nodes, and how many decimals to show."""
    nodes = picture.nodes
    return {
        "value": packed(target.values[nodes], "<f8"),
        "std": None if target.std is None else packed(target.std[nodes], "<f8"),
        "observed": packed(target.observed[nodes], "u1"),
        "decimals": decimals(target.values),
    }


def value_map(target: TargetReport, picture: Picture) -> Spec:
    """The graph coloured by value: observed where known, predicted elsewhere."""
    scale = _scale(target.values, "value", 7)
    bar = {"colorbar": _colorbar(), "showscale": True}
    return _drawing(picture, observed=scale, predicted=scale | bar)


def std_map(target: TargetReport, picture: Picture) -> Spec | None:
    """The graph coloured by standard deviation; None for a method without error bars."""
    if target.std is None:
        return None
    scale = _scale(target.std[~target.observed], "std", 5)
    bar = {"colorbar": _colorbar(), "showscale": True}
    return _drawing(picture, observed={"color": "var(--quiet-2)"}, predicted=scale | bar)


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


def _drawing(picture: Picture, *, observed: Spec, predicted: Spec) -> Spec:
    """Edges below, observed nodes as squares, predicted nodes as circles; the page fills in the shared arrays."""
    import plotly.graph_objects as go

    nodes = go.Scatter if len(picture.nodes) <= SVG_NODES else go.Scattergl
    lines = go.Scatter if len(picture.edges) <= SVG_EDGES else go.Scattergl
    size = float(np.clip(190 / np.sqrt(len(picture.nodes)), 2.6, 13))
    outline = {"width": 0.7 if nodes is go.Scatter else 0, "color": "var(--paper)"}
    style = {"mode": "markers", "hoverinfo": "text"}
    small, large = {"size": 0.8 * size, "symbol": "square"}, {"size": size, "symbol": "circle"}
    width = float(np.clip(60 / np.sqrt(len(picture.edges) + 1), 0.4, 1.2))
    traces = [
        lines(name="edges", mode="lines", hoverinfo="skip", line={"color": "var(--edge)", "width": width}),
        nodes(name="observed", marker=small | observed | {"line": outline}, **style),
        nodes(name="predicted", marker=large | predicted | {"line": outline}, **style),
    ]
    hidden = {"visible": False, "automargin": False}
    y = hidden | {"scaleanchor": "x"}
    margin = {"l": 4, "r": 4, "t": 4, "b": 44}
    return specification(traces, {"xaxis": hidden, "yaxis": y, "margin": margin, "dragmode": "pan"})

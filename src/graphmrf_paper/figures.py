"""Figures with Matplotlib: panels in, PNG and SVG out, the same bytes every time; maps on outlines of counties."""

import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from graphmrf._typing import Floats
from graphmrf.errors import InvalidInputError, MissingExtraError
from graphmrf.text import number
from graphmrf_paper.findings import Chart, Figure, Heat, Map, Series

Rings: TypeAlias = list[Floats]
"""Longitude and latitude along the outlines of one county."""
Place: TypeAlias = Callable[[str], Floats]
"""From the name of a data set to where its nodes are drawn, (n, 2), where they have no outline."""

_KEYS = ("GEOID", "geoid", "FIPS", "fips", "fips_code", "GEO_ID", "id")
_LEAST_SHARE = 0.5  # of the nodes must have an outline, or all are drawn as points
_COLOURS = {
    "LP": "#c2500b",
    "LR": "#b08900",
    "LGC": "#0a5fa5",
    "LGC/RP": "#15803d",
    "SGC": "#8a4fae",
    "GCN": "#b3265e",
    "transductive": "#a9b8c6",
    "inductive": "#0a5fa5",
}
_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "font.family": "DejaVu Sans",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#6b7885",
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "legend.frameon": False,
    "svg.hashsalt": "graphmrf",
    "svg.fonttype": "path",
}


def check_figures() -> None:
    """Raise unless figures can be drawn."""
    if find_spec("matplotlib") is None:
        raise MissingExtraError(
            "figures need Matplotlib; install it with pip install 'graphmrf[figures]', or use --no-figures"
        )


@dataclass(frozen=True)
class Drawing:
    """A figure as PNG and as SVG, and its width on the page in pixels."""

    png: bytes
    svg: bytes
    width: int


def draw(figure: Figure, shapes: Mapping[str, Rings], place: Place) -> Drawing:
    """Return the drawn figure; `shapes` are outlines of nodes by id, `place` gives positions where there are none."""
    check_figures()
    import matplotlib as mpl
    from matplotlib.figure import Figure as Canvas

    columns = min(figure.columns, len(figure.panels))
    rows = -(-len(figure.panels) // columns)
    width, height = _PANEL_SIZES[figure.panels[0].kind]
    with mpl.rc_context(_STYLE):
        canvas = Canvas(figsize=(width * columns, height * rows), layout="constrained")
        axes = np.atleast_1d(canvas.subplots(rows, columns)).ravel()
        for panel, ax in zip(figure.panels, axes, strict=False):
            _paint(ax, panel, shapes, place)
        for ax in axes[len(figure.panels) :]:
            ax.set_axis_off()
        _legend(canvas, axes)
        return Drawing(_saved(canvas, "png"), _saved(canvas, "svg"), round(_PIXELS * width * columns))


def _paint(ax: Any, panel: Chart | Heat | Map, shapes: Mapping[str, Rings], place: Place) -> None:
    if isinstance(panel, Map):
        _map(ax, panel, shapes, place)
    elif isinstance(panel, Heat):
        _heat(ax, panel)
    else:
        _CHARTS[panel.kind](ax, panel)


def _legend(canvas: Any, axes: Any) -> None:
    """Draw one legend below all panels without a legend of their own."""
    named: dict[str, Any] = {}
    for ax in axes:
        if ax.get_legend() is None:
            handles, labels = ax.get_legend_handles_labels()
            named |= dict(zip(labels, handles, strict=True))
    if 1 < len(named) <= _MOST_NAMES:
        canvas.legend(named.values(), named.keys(), loc="outside lower center", ncols=len(named))


def _saved(canvas: Any, kind: str) -> bytes:
    stream = io.BytesIO()
    undated = {"Date": None} if kind == "svg" else {"Software": None}
    canvas.savefig(stream, format=kind, dpi=150, metadata=undated)
    return stream.getvalue()


def _lines(ax: Any, panel: Chart) -> None:
    import matplotlib as mpl

    for line in panel.series:
        colour = _COLOURS.get(line.label) if line.colour is None else mpl.colormaps["coolwarm"](line.colour)
        style = {"marker": "o" if line.colour is None else "", "markersize": 3, "linewidth": 1.3, "label": line.label}
        ax.plot(line.x, line.y, color=colour, **style)
        if len(line.spread):
            y, spread = np.asarray(line.y), np.asarray(line.spread)
            ax.fill_between(line.x, y - spread, y + spread, color=colour, alpha=0.12, linewidth=0)
    _name(ax, panel)


def _bars(ax: Any, panel: Chart) -> None:
    places = np.arange(len(panel.groups))
    wide = 0.8 / max(len(panel.series), 1)
    for k, series in enumerate(panel.series):
        at = places + (k - (len(panel.series) - 1) / 2) * wide
        style = {"color": _COLOURS.get(series.label), "label": series.label, "error_kw": {"linewidth": 0.8}}
        ax.bar(at, series.y, wide, yerr=series.spread if len(series.spread) else None, **style)
    ax.axhline(0, color="#6b7885", linewidth=0.8)
    ax.set_xticks(places, panel.groups, rotation=30, ha="right")
    ax.set_title(panel.title)
    ax.set_ylabel(panel.y_label)


def _shade(series: Series) -> Any:
    import matplotlib as mpl

    return mpl.colormaps["viridis"](0.9 * (series.colour or 0.0))  # the palest tenth is not seen on white


def _points(ax: Any, panel: Chart) -> None:
    values = [value for each in panel.series for value in (*each.x, *each.y)]
    low, high = max(min([0.0, *values]), _LOWEST) - 0.03, max([1.0, *values]) + 0.03
    ax.plot([low, high], [low, high], color="#c9d0d7", linewidth=1, zorder=0)
    for each in panel.series:
        edge = {"markeredgecolor": "white", "markeredgewidth": 0.5}
        shown = (np.maximum(values, low) for values in (each.x, each.y))
        ax.plot(*shown, each.marker, color=_shade(each), markersize=6, clip_on=False, **edge)
        for x, y in zip(each.x, each.y, strict=True):
            if x < low:
                ax.annotate(f"← {number(x, 1)}", (low, y), (6, 4), textcoords="offset points", fontsize=7)
    outcomes = {each.label.rpartition(", ")[0]: _shade(each) for each in panel.series}
    methods = {each.label.rpartition(", ")[2]: each.marker for each in panel.series}
    for name, colour in outcomes.items():
        ax.plot([], [], "s", color=colour, markersize=5, label=name)
    for name, marker in methods.items():
        ax.plot([], [], marker, color="#6b7885", markerfacecolor="none", markersize=5, label=name)
    ax.set_xlim(low, high)
    ax.set_ylim(low, high)
    ax.set_aspect("equal")
    _name(ax, panel)
    above = sum(np.sum(np.greater(each.y, each.x)) - np.sum(np.less(each.y, each.x)) for each in panel.series)
    corner = "lower right" if above > 0 else "upper left"  # the side of the diagonal with fewer points
    ax.legend(fontsize=7, loc=corner, ncols=2, columnspacing=0.8, handletextpad=0.2)


def _heat(ax: Any, panel: Heat) -> None:
    from matplotlib.colors import FuncNorm

    if panel.signed:
        limit = float(np.nanmax(np.abs(panel.values)))
        roots = (lambda v: np.sign(v) * np.sqrt(np.abs(v)), lambda v: np.sign(v) * v**2)
        image = ax.imshow(panel.values, cmap="RdBu_r", norm=FuncNorm(roots, -limit, limit))
    else:
        low = float(np.nanmax(panel.values)) - 1.0 if np.nanmin(panel.values) < -1.0 else float(np.nanmin(panel.values))
        image = ax.imshow(panel.values, origin="lower", cmap="viridis", vmin=low)
        ax.plot([0, len(panel.values) - 1], [0, len(panel.values) - 1], color="#dfd82c", linewidth=0.8)
    if panel.inset is not None:
        _inset(ax, panel, panel.inset)
    for column, row in panel.marks:
        ax.plot(column, row, "o", color="#dfd82c", markersize=5, markeredgecolor="black", markeredgewidth=0.5)
    for axis, ticks in ((ax.xaxis, panel.x_ticks), (ax.yaxis, panel.y_ticks)):
        shown = [k for k, text in enumerate(ticks) if text]
        axis.set_ticks(shown, [ticks[k] for k in shown])
    ax.figure.colorbar(image, ax=ax, shrink=0.8)
    _name(ax, panel)


def _inset(ax: Any, panel: Heat, column: int) -> None:
    """Draw one column of a matrix as a curve, in the corner above the diagonal's end."""
    ax.axvline(column, color="black", linestyle="--", linewidth=0.8)
    small = ax.inset_axes((0.05, 0.63, 0.42, 0.33))
    curve = panel.values[:, column]
    small.plot(curve, color="black", linewidth=1)
    small.plot(int(np.argmax(curve)), float(np.max(curve)), "o", color="#dfd82c", markersize=4, markeredgecolor="black")
    shown = [k for k, text in enumerate(panel.y_ticks) if text]
    small.set_xticks(shown, [panel.y_ticks[k] for k in shown])
    small.tick_params(labelsize=6, length=2, pad=1)
    small.patch.set_alpha(0.85)


def _map(ax: Any, panel: Map, shapes: Mapping[str, Rings], place: Place) -> None:
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import Normalize

    scale = Normalize(*panel.limits, clip=True)
    colours: dict[str, Any] = {
        "cmap": "coolwarm" if panel.limits[0] < 0 else "YlOrRd",
        "norm": scale,
        "rasterized": True,
    }
    if outlined(panel.ids, shapes):
        pairs = [
            (ring, value)
            for code, value in zip(panel.ids, panel.values, strict=True)
            for ring in shapes.get(code, ())
            if ring[:, 0].max() < -60 and ring[:, 0].min() > -130  # the contiguous states
        ]
        image = PolyCollection([ring for ring, _ in pairs], array=np.array([value for _, value in pairs]), **colours)
        image.set_edgecolor("face")
        image.set_linewidth(0.2)
        ax.add_collection(image)
        ax.autoscale_view()
        ax.set_aspect(1.28)
    else:
        x, y = place(panel.data).T
        image = ax.scatter(x, y, c=panel.values, s=2.5, linewidths=0, **colours)
        ax.set_aspect("equal")
    ax.set_axis_off()
    ax.set_title(panel.title)
    ax.figure.colorbar(image, ax=ax, shrink=0.6, extend="both")


def _name(ax: Any, panel: Chart | Heat) -> None:
    ax.set_title(panel.title)
    ax.set_xlabel(panel.x_label)
    ax.set_ylabel(panel.y_label)


_PIXELS = 105  # to an inch: text of 9 points then is as large as that of the page
_MOST_NAMES = 9  # in one legend; the eleven curves of a gradient differ by colour, as described in the caption
_LOWEST = -0.25  # an R² that is lower is drawn at the edge: the others would shrink to a corner
_CHARTS = {"lines": _lines, "bars": _bars, "points": _points}
_PANEL_SIZES = {"heat": (3.8, 3.2), "points": (4.0, 4.2), "map": (4.4, 2.9), "lines": (3.6, 3.0), "bars": (3.6, 3.0)}


def read_outlines(path: Path) -> dict[str, Rings]:
    """Return the outlines of a GeoJSON file by FIPS code, taken from the id of a feature or one of its properties."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read ({error.strerror}); check --shapes") from error
    except ValueError as error:
        raise InvalidInputError(f"{path} is not JSON ({error}); --shapes takes a GeoJSON file") from error
    features = content.get("features") if isinstance(content, dict) else None
    if not isinstance(features, list):
        raise InvalidInputError(f"{path} has no list of features; --shapes takes a GeoJSON FeatureCollection")
    named = ((_fips(feature), list(_rings(feature.get("geometry") or {}))) for feature in features)
    shapes = {code: rings for code, rings in named if code and rings}
    if not shapes:
        raise InvalidInputError(
            f"{path} has no outline with a FIPS code; it may be the id or one of {', '.join(_KEYS)}"
        )
    return shapes


def packaged_shapes() -> dict[str, Rings]:
    """Return the outlines of the bokeh_sampledata package, none where it is not installed."""
    if find_spec("bokeh_sampledata") is None:
        return {}
    from bokeh_sampledata.us_counties import data

    return {
        f"{state:02d}{county:03d}": list(_parts(np.column_stack([each["lons"], each["lats"]])))
        for (state, county), each in data.items()
    }


def outlined(ids: tuple[str, ...], shapes: Mapping[str, Rings]) -> bool:
    """Return whether enough nodes have an outline to draw a map of them."""
    return bool(ids) and sum(code in shapes for code in ids) >= _LEAST_SHARE * len(ids)


def _fips(feature: Mapping[str, Any]) -> str:
    """Return the five-digit code in the id or a property, also from '0500000US01001' or 1001."""
    properties = feature.get("properties") or {}
    if "STATE" in properties and "COUNTY" in properties:
        return f"{int(properties['STATE']):02d}{int(properties['COUNTY']):03d}"
    for value in (feature.get("id"), *(properties.get(key) for key in _KEYS)):
        match = re.fullmatch(r"(?:.*US)?(\d{4,5})", str(value))
        if match:
            return match[1].zfill(5)
    return ""


def _rings(geometry: Mapping[str, Any]) -> Iterator[Floats]:
    kind, coordinates = geometry.get("type"), geometry.get("coordinates") or []
    polygons = coordinates if kind == "MultiPolygon" else [coordinates] if kind == "Polygon" else []
    for polygon in polygons:
        if polygon:
            yield np.asarray(polygon[0], dtype=np.float64)[:, :2]


def _parts(line: Floats) -> Iterator[Floats]:
    """Split a line of points at its NaN."""
    breaks = np.flatnonzero(np.isnan(line).any(axis=1))
    for part in np.split(line, breaks):
        kept = part[~np.isnan(part).any(axis=1)]
        if len(kept) > 2:
            yield kept
